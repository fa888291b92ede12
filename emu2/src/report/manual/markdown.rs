//! What every Markdown page of the manual has: a file name, its text, and the note that it is generated.

/// A page of the manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// File name.
    pub name: String,
    /// Markdown.
    pub text: String,
}

/// Stands at the top of every page.
pub(super) const NOTE: &str = "<!-- Generated from isa_specs by `make manual`; do not edit. -->\n\n";
