//! The table of diagnostics: every message a user can meet has a code, a title and a remedy here.

use std::fmt;

macro_rules! codes {
    ($( $name:ident = $code:literal, $title:literal, $remedy:literal; )*) => {
        /// What went wrong. One entry per row of the table; `S` spec, `A` assembly, `R` run time, `F` files.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code { $( #[doc = $title] $name, )* }

        impl Code {
            /// Every code, in table order.
            pub const ALL: &'static [Code] = &[ $( Code::$name, )* ];

            /// The stable identifier, such as `A0101`.
            pub const fn id(self) -> &'static str { match self { $( Code::$name => $code, )* } }

            /// One line saying what kind of fault it is.
            pub const fn title(self) -> &'static str { match self { $( Code::$name => $title, )* } }

            /// What to do about it, where the place of the fault says nothing more precise.
            pub const fn remedy(self) -> &'static str { match self { $( Code::$name => $remedy, )* } }
        }
    };
}

codes! {
    SpecSyntax = "S0001", "the spec is not valid TOML", "correct the TOML at the place named";
    SpecUnknownKey = "S0002", "unknown key in the spec", "remove it or use one of the keys named";
    SpecMissingKey = "S0003", "a key the spec must have is missing", "add it to the entry named";
    SpecDuplicate = "S0004", "two entries of the spec claim the same thing", "rename or remove one of them";
    SpecUnknownName = "S0005", "the spec names something that nothing declares", "declare it or use one of the names that exist";
    SpecBadValue = "S0006", "a value of the spec is outside its range", "use a value of the range named";
    SpecExpression = "S0007", "an expression of the spec does not parse or evaluate", "use integers, names, + - * / % and parentheses";
    SpecMapRange = "S0008", "an index map leaves its memory or its units", "correct the expression or the loop";
    SpecMapOverlap = "S0009", "an index map writes one place twice", "make every destination unique";
    SpecMapGap = "S0010", "an index map leaves a hole in its destination", "cover every long word and every PE";
    SpecNotFound = "S0011", "the spec cannot be found", "name a built-in spec, a folder of .toml files, or one .toml file";
    SpecExtends = "S0012", "`extends` does not lead to a spec", "name a built-in spec or a folder beside this one";
    SpecWrongType = "S0013", "a value of the spec has the wrong type", "give it the type named";

    Unreadable = "F0001", "the file cannot be read", "check the path and its permissions";
    NotUtf8 = "F0002", "the file is not UTF-8 text", "save it as UTF-8";
    EmptyFile = "F0003", "the file is empty", "write at least a comment or a `nop`";
    MemoryFile = "F0004", "the memory file is not usable", "give {\"load\":[{\"region\":\"pdm0\",\"file\":\"data.bin\",\"offset\":0}]}";
    Unwritable = "F0005", "the file cannot be written", "check the folder and its permissions";
    MemoryRange = "F0006", "the memory file reaches past the end of its region", "lower the offset or the length";

    AddressRange = "R0001", "the address is past the end of the memory", "use a smaller address or count";
    UnknownMemory = "R0002", "no memory has this name", "use a memory of the spec";
    BadSelector = "R0003", "this memory has no such unit", "select a unit the machine has";
    Poisoned = "R0004", "the machine stopped after an earlier error", "reset the machine";
    WrongSpec = "R0005", "the program was assembled for another spec", "assemble it with the machine's own spec";
    NoKernel = "R0006", "the engine has no kernel for this entry of the spec", "use a precision and kernel that the engine has";
    BadShape = "R0007", "the array has the wrong shape", "give one axis per level that is not selected, then the addresses";
    UnsignalledTag = "R0008", "the wait is for a tag that no MV before it carries", "tag the MV, or correct the tag";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// How grave a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The input is refused.
    Error,
    /// The input is accepted; results may surprise.
    Warning,
}

/// A half-open byte range of the source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end`.
    pub fn new(start: usize, end: usize) -> Self {
        Span { start: start as u32, end: end as u32 }
    }
}

/// One fault at one place, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The row of the table.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// Where in the source text, if it is about a text.
    pub span: Option<Span>,
    /// What is wrong, with the names and numbers of this case.
    pub message: String,
    /// What to do, for this case.
    pub help: String,
}

impl Diagnostic {
    /// An error whose remedy is the table's.
    pub fn error(code: Code, span: Option<Span>, message: impl Into<String>) -> Self {
        Diagnostic { code, severity: Severity::Error, span, message: message.into(), help: code.remedy().into() }
    }

    /// A warning whose remedy is the table's.
    pub fn warning(code: Code, span: Option<Span>, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// The same with a remedy of its own.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{kind}[{}]: {}\n  help: {}", self.code, self.message, self.help)
    }
}

/// A fault outside any source text: spec, files, machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub Box<Diagnostic>);

impl Error {
    /// An error whose remedy is the table's.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error(Box::new(Diagnostic::error(code, None, message)))
    }

    /// The same with a remedy of its own.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = help.into();
        self
    }

    /// The row of the table.
    pub fn code(&self) -> Code {
        self.0.code
    }
}
