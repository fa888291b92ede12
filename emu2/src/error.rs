//! The table of diagnostics. Every message that a user can get has a code, a title and a remedy here.

use std::fmt;

macro_rules! codes {
    ($( $name:ident = $code:literal, $title:literal, $remedy:literal; )*) => {
        /// The kind of a fault, one variant per row of the table. The first letter of a code is its subject: `S` spec,
        /// `A` assembly, `W` machine words, `R` run time, `Z` sanitized runs, `H` host interface,
        /// `F` files, `M` apps, `D` debugger.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code { $( #[doc = $title] $name, )* }

        impl Code {
            /// Every code, in table order.
            pub const ALL: &'static [Code] = &[ $( Code::$name, )* ];

            /// The stable identifier, such as `A0101`.
            pub const fn id(self) -> &'static str { match self { $( Code::$name => $code, )* } }

            /// One line that says what the fault is.
            pub const fn title(self) -> &'static str { match self { $( Code::$name => $title, )* } }

            /// The default advice. A diagnostic may have a more precise one.
            pub const fn remedy(self) -> &'static str { match self { $( Code::$name => $remedy, )* } }
        }
    };
}

codes! {
    SpecSyntax = "S0001", "the spec is not valid TOML", "correct the TOML at the position named";
    SpecUnknownKey = "S0002", "unknown key in the spec", "remove it or use one of the keys named";
    SpecMissingKey = "S0003", "a required key of the spec is missing", "add it to the entry named";
    SpecDuplicate = "S0004", "two entries of the spec have the same name or meaning", "rename or remove one of them";
    SpecUnknownName = "S0005", "the spec uses a name that is not declared", "declare the name, or use one of the declared names";
    SpecBadValue = "S0006", "a value of the spec is outside its range", "use a value of the range named";
    SpecExpression = "S0007", "an expression of the spec is malformed or has no value", "use integers, names, + - * / % & ^ | == and parentheses";
    SpecMapRange = "S0008", "an index map names an address or a unit that does not exist", "correct the expression or the loop";
    SpecMapOverlap = "S0009", "an index map writes the same word twice", "make every destination unique";
    SpecMapGap = "S0010", "an index map does not write all of its destination", "write every long word and every PE";
    SpecNotFound = "S0011", "the spec cannot be found", "name a built-in spec, a folder of .toml files, or one .toml file";
    SpecExtends = "S0012", "`extends` does not lead to a spec", "name a built-in spec or a folder beside this one";
    SpecWrongType = "S0013", "a value of the spec has the wrong type", "give it the type named";

    TooMany = "A0001", "there are more errors and warnings than are listed", "correct those above and assemble again";

    UnexpectedText = "A0101", "unexpected text", "remove it, or follow the syntax of the statement";
    UnknownMnemonic = "A0102", "no instruction has this mnemonic", "use a mnemonic of the spec; mnemonics are lower case";
    NumberExpected = "A0103", "a number is missing or malformed", "write a decimal number";
    TooLarge = "A0104", "the number or the source is too large", "use a smaller one";

    UnknownOperand = "A0201", "no operand has this name", "use an operand of the spec";
    BadOperandAddress = "A0202", "the address of the operand is malformed", "write a number, a stride such as `0v` or a list such as `[0,2,4,6]`, as the operand allows";
    OperandRange = "A0203", "the address is past the end of the memory", "use a smaller address";
    Misaligned = "A0204", "the address is not aligned to the access", "use a multiple of the number named";
    BadStride = "A0205", "the stride is not a multiple of the access width", "use a multiple of the access width; both count words of 32 bits";
    ListLength = "A0206", "the address list has the wrong length", "write one address per cycle";
    WrongOperand = "A0207", "this kind of operand is not allowed here", "use one of the kinds named";
    MissingOperand = "A0208", "an operand is missing", "write the sources first, then at least one destination";
    ExtraOperand = "A0209", "one operand too many", "remove it";
    NowriteCompany = "A0210", "`$nowrite` is used with other destinations", "make it the only destination, or remove it";
    BadNegation = "A0211", "this operand cannot be negated", "negate sources of MAU instructions only";
    BadConversion = "A0212", "this operand cannot be converted", "use `e` only if a next lower format exists, and `r` only if the lowest format is read";
    BadMask = "A0213", "the mask is malformed, or not allowed here", "write one 0 or 1 per cycle, such as `/1000` or `/ll1000`, or a mask register, such as `/$imr1`";
    AddressWraps = "A0214", "the access runs past the end of the memory and wraps", "use a smaller address or stride";
    BadLength = "A0215", "the mantissa length is missing or outside its range", "write a length of the range named after the mnemonic";

    LiteralMissing = "A0301", "a literal is missing, or its kind is unknown", "write a literal such as `i\"1\"`";
    LiteralUnterminated = "A0302", "the literal has no closing quote", "close it on the same line";
    LiteralMalformed = "A0303", "the text of the literal is not a number", "write a decimal, `0x` or `0b` integer, or a decimal float or `inf`";
    LiteralRange = "A0304", "the value of the literal is outside the range of its kind", "use a smaller number or another kind of literal";

    NoForm = "A0401", "the transfer has no form for these operands", "use one of the forms named";
    MissingParameter = "A0402", "the transfer needs a parameter", "write it after the mnemonic";
    BadParameter = "A0403", "the parameter is malformed, out of range, or not allowed here", "use a value of the range named";
    MissingSize = "A0404", "the MV has no size", "write it after the mnemonic, such as `/n64`";
    SizeUnit = "A0405", "the size of the MV is not a multiple of its unit", "use a multiple of the unit";
    BadMvParameter = "A0406", "an MV parameter is malformed, unknown or given twice", "use `n<size>`, `i<two hex digits>`, `nd<blocks of an entry>`, `p<priority>`, each at most once";
    BadTag = "A0407", "the tag is malformed, or no `wait` can name it", "write `i` and two hex digits, from `i01`";
    UnusualTag = "A0408", "the tag is outside the documented range", "use a tag of the documented range";
    BadUnit = "A0409", "the selector is malformed, or the unit does not exist", "select a unit the machine has";
    AssumedUnit = "A0411", "a selector is missing, so the unit is assumed", "write the unit that is meant, such as `@.0`";

    TurnaroundPair = "A0410", "the turnaround register is read in a different layout from the one it was written in", "read it with the instruction that matches the one that sent the data";

    UnknownDebug = "A0501", "the debug statement is malformed", "write `d get[type] <location> <count>` or `d set <location> <count> <payload>`";
    BadLocation = "A0502", "the location is malformed", "write memory, address and selectors such as `$lm0n0c0b0m0p0`";
    DebugRange = "A0503", "the debug statement reaches past the end of the memory", "use a smaller address or count";
    BadPayload = "A0504", "the payload is malformed", "write 16 hex digits per long word, or items such as `l` and 16, `i` and 8, `s` and 4 hex digits";
    PayloadCount = "A0505", "the payload and the count have different numbers of long words", "correct the count or the payload";

    SlotTwice = "A0601", "two instructions of the line need the same unit", "put them on two lines";
    NotAlone = "A0602", "this instruction cannot share a line", "put it on a line of its own";
    WrongCompany = "A0603", "these instructions cannot share a line", "put them on two lines";
    NeedsCompany = "A0604", "this instruction cannot stand alone on a line", "add an instruction to the line; with `wait`, a `nop` is enough";
    WrittenTwice = "A0605", "a memory is written twice in one step", "put the writes on two lines";
    ReadTwice = "A0606", "a memory is read at different words in one step", "read the same words, or use another memory";
    SharedPort = "A0607", "a memory with one port is read and written at different words in one step", "use the same words, or another memory";
    Excluded = "A0608", "another instruction of the line does not allow accesses to this memory", "use another memory or another line";
    MaskLengths = "A0609", "the masks of a line have different lengths", "use masks of one length, or two lines";
    MaskRegisters = "A0610", "a line uses two mask registers as masks", "use one mask register, or two lines";
    FlushTwice = "A0611", "a line has two zero flushes", "put the instructions on two lines";
    UnitFull = "A0612", "too many instructions of one unit on a line", "put them on two lines";
    UnitPrecisions = "A0613", "instructions of one unit have different precisions", "use one precision, or two lines";
    BankTwice = "A0614", "a matrix register is used twice on a line", "use the other one, or two lines";
    SharedInput = "A0615", "two instructions share an input and read different operands through it", "read the same operand with the same `-`, `e` and `r`, or use two lines";

    PortHazard = "A0701", "a memory is read too soon after a write through the same port", "put more steps in between";
    DataHazard = "A0702", "words are read too soon after they are written", "put more steps in between";
    WaitHazard = "A0703", "words that an MV writes are read before a `wait` for the MV", "give the MV a tag, and `wait` for the tag before this line";
    IdleUnit = "A0704", "the unit of the forwarding path was idle in the last step that was not a `nop`", "read the path in the next step that is not a `nop`";
    TurnaroundLate = "A0705", "the turnaround register is read too late", "read it in the step after the one that writes it";
    TurnaroundLost = "A0706", "nothing was written to the turnaround register in this step", "remove `noforward`, or send to L1BM";

    NoWord = "W0101", "the machine word of this instruction is not known", "run the source itself, or use `assemble3`, which writes the statement instead of a word";
    InferredWord = "W0102", "the machine word is inferred: no public program contains it", "use `--allow-inferred` to write it anyway";
    FieldConflict = "W0103", "two instructions need different values in one field of the machine word", "put the instructions on two lines";
    LineCount = "W0104", "the program is too long to write out", "run the source itself";
    AmbiguousWord = "W0105", "the machine word also stands for another step", "put the matrix read in the step before the one that reads its path, or use `assemble3`, which writes the statement instead of a word";

    BadLine = "W0201", "the line is not assembled text", "write `i` and a word, `d` and a debug statement, or `s`, `j`, `m` and a statement; sources end in .vsm";
    WordLength = "W0202", "the machine word has the wrong length", "copy the whole line from the assembler's output";
    WordDigit = "W0203", "the machine word contains a character other than 0 and 1", "copy the whole line from the assembler's output";
    UnknownBits = "W0204", "the machine word sets bits whose meaning is unknown", "run the source itself";
    UnreadableWord = "W0205", "the machine word stands for no instruction", "run the source itself";
    InferredReading = "W0206", "the meaning of the machine word is inferred", "compare the instruction with the source";
    BadRecord = "W0207", "the line of memory contents is malformed", "write `r`, the group, the address in 9 hex digits, 001, and 16 hex digits";
    HostCommand = "W0208", "the host command is malformed or not allowed here", "write `c 0 0 i01 i00 0`, `e 0 0 i02 i00 0` with address and count, or `f`";

    BadContainer = "W0301", "the file is not a program container", "use a file that `assemble3 --loader` wrote";

    Unreadable = "F0001", "the file cannot be read", "check the path and its permissions";
    NotUtf8 = "F0002", "the file is not UTF-8 text", "save it as UTF-8; comments may be in any encoding";
    EmptyFile = "F0003", "the file is empty", "write at least a comment or a `nop`";
    MemoryFile = "F0004", "the memory file is malformed", "give {\"load\":[{\"region\":\"pdm0\",\"file\":\"data.bin\",\"offset\":0}]}";
    Unwritable = "F0005", "the file cannot be written", "check the folder and its permissions";
    MemoryRange = "F0006", "the memory file reaches past the end of its region", "lower the offset or the length";
    Overwrites = "F0008", "an output would overwrite another file of the command", "name another file";
    SavedState = "F0009", "the file is no saved state", "name a file that a device of this version has saved";
    FileSize = "F0007", "the file is too large", "use a smaller file; the limit is lower for pipes and devices";

    AddressRange = "R0001", "the address is past the end of the memory", "use a smaller address or count";
    UnknownMemory = "R0002", "no memory has this name", "use a memory of the spec";
    BadSelector = "R0003", "this memory has no such unit", "select a unit the machine has";
    Poisoned = "R0004", "the machine stopped after an earlier error", "reset the machine";
    WrongSpec = "R0005", "the program was assembled for another spec", "assemble it with the machine's own spec";
    NoKernel = "R0006", "the emulator does not implement this entry of the spec", "use a precision and a kernel that the emulator has";
    BadShape = "R0007", "the array has the wrong shape", "give one axis per level that is not selected, then the addresses";
    BadOption = "R0009", "the option has no such value", "use one of the values named";
    Interrupted = "R0010", "the call was interrupted", "reset the machine, then call again";
    UnsignalledTag = "R0008", "no MV or transfer signals the tag of this `wait`", "give the MV the tag, or correct the tag";

    UndefinedShown = "Z0101", "a word without a defined value is shown", "write the word first, or do not show it";
    UndefinedMask = "Z0102", "a word is shown that depends on an undefined mask", "write the mask register in every cycle before it masks";
    UndefinedAddress = "Z0103", "a word depends on an undefined address", "write the register that forms the address before the access";
    WrapAtRun = "Z0201", "an address that a register gives leaves the memory and wraps", "use a smaller offset; one from the upper half of the range counts as negative";
    TwoWriters = "Z0202", "one step or MV writes a word twice", "make the addresses different, or mask all writes but one";
    TagNeverSignalled = "Z0301", "a `wait` for a tag that nothing has signalled", "put the MV with the tag before the `wait`, or correct the tag";
    TagSignalledTwice = "Z0302", "a tag is signalled again before anything has waited for it", "wait for the tag between the two MVs, or use another tag";
    ReadInFlight = "Z0303", "words are read while an MV may still write them", "wait for the tag of the MV before this line";
    WrittenInFlight = "Z0304", "words are written while an MV may still use them", "wait for the tag of the MV before this line";
    ValueOverflow = "Z0401", "finite values give an infinity", "scale the values, or use a format with more exponent bits";
    ValueUnderflow = "Z0402", "a product of values other than zero is zero", "scale the values, or use a format with more exponent bits";

    TransferRange = "H0001", "the transfer goes past the end of the memory that the host can access", "use a smaller offset or fewer bytes; only an MV accesses the other memory";
    TransferUnit = "H0002", "the offset or length of the transfer is not a whole number of units", "use multiples of 8 bytes";
    TagRange = "H0003", "the tag is out of range", "use a tag that an MV may have, or 0 for no tag";
    NothingToReceive = "H0004", "no MV has signalled the tag since data was last received with it", "give the tag to the last MV of the kernel and receive once per run, or use tag 0";
    TagInFlight = "H0005", "the data of an earlier transfer with this tag has not been received", "receive it first, or use another tag";
    Closed = "H0006", "the device is closed", "open another one";

    BadApp = "M0001", "the file is not an app, or it is damaged", "give a file that `pycompiler partition --app` wrote";
    AppFormat = "M0002", "the app has another format", "write it again with the compiler of this version";
    AppNeeds = "M0003", "the app needs a feature that this reader does not have", "run it with `pycompiler run`";
    AppInputs = "M0004", "the inputs are not those of the app", "give an array for each input, with its type and shape";
    BadArrays = "M0005", "the file is not a set of arrays", "write it with numpy.savez(path, name=array)";

    BadPlace = "D0001", "the place or condition is malformed", "write a place such as `lm0[12].f of n0c1b2m3p0`, and a condition such as `lm0[12] == 0x10`";
    NoStatement = "D0002", "the program has no such statement", "name a line, a cycle or a tag that the program reaches";
    BadBreakpoint = "D0003", "there is no such breakpoint", "use a kind or a number that the debugger lists";
    BadCommand = "D0004", "the debugger does not know this command", "`help` lists the commands";
    BadRequest = "D0005", "the editor's request is malformed or comes too early", "send `launch` with a program first, then requests of the Debug Adapter Protocol";
    NoTool = "D0006", "a package that this command needs is not installed", "install it: pip install 'emu2[tools]'";
    NotThere = "D0007", "the value is not in its words now", "go to another line; a place such as `lm0[3]` shows any word";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The input is refused.
    Error,
    /// The input is accepted, but its results may surprise.
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
    /// The code.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// The place in the source text, if the fault is about a text.
    pub span: Option<Span>,
    /// The message, with the names and numbers of this case.
    pub message: String,
    /// The advice for this case.
    pub help: String,
}

impl Diagnostic {
    /// An error with the remedy of the table.
    pub fn error(code: Code, span: Option<Span>, message: impl Into<String>) -> Self {
        Diagnostic { code, severity: Severity::Error, span, message: message.into(), help: code.remedy().into() }
    }

    /// A warning with the remedy of the table.
    pub fn warning(code: Code, span: Option<Span>, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// Replaces the remedy by one for this case.
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

/// A fault that is not in a source text: spec, files, machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub Box<Diagnostic>);

impl Error {
    /// An error with the remedy of the table.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error(Box::new(Diagnostic::error(code, None, message)))
    }

    /// Replaces the remedy by one for this case.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = help.into();
        self
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.0.code
    }
}
