//! The common parts of all Markdown pages of the manual: file name, text, and the note that the page is generated.

/// A page of the manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// File name.
    pub name: String,
    /// Markdown.
    pub text: String,
}

/// The note at the top of every page.
pub(super) const NOTE: &str = "<!-- Generated from isa_specs by `make manual`; do not edit. -->\n\n";
