//! Kernels: programs that come from a source, from assembled text or from a container.

use crate::asm::{AssembleError, Assembler, Policy, Program};
use crate::error::{Diagnostic, Error};
use crate::exec::KeptRegions;
use crate::interrupt::Interrupt;
use crate::report::Report;
use crate::spec::Spec;
use crate::word::{self, TagUse, FLAT_MV, FLAT_PE, MAGIC, STATEMENT};
use std::sync::{Arc, OnceLock};

/// Ending of the names of assembled text.
const ASSEMBLED: &str = ".asm";
/// Ending of the names of sources.
const SOURCE: &str = ".vsm";

/// A program ready to run on any device of its spec, any number of times. Copies share it.
#[derive(Clone, Debug)]
pub struct Kernel {
    program: Arc<Program>,
    report: Arc<Report>,
    regions: Arc<KeptRegions>,
    tag_uses: Arc<OnceLock<Vec<TagUse>>>,
}

impl Kernel {
    /// The kernel that runs `program`.
    pub fn new(program: Program) -> Kernel {
        let report = Arc::new(Report::of(&program));
        Kernel { program: Arc::new(program), report, regions: Arc::default(), tag_uses: Arc::default() }
    }

    /// Does the same as [`Kernel::new`], but stops if `interrupt` is requested.
    pub(super) fn until(program: Program, interrupt: &Interrupt) -> Result<Kernel, AssembleError> {
        match Report::of_until(&program, interrupt) {
            Ok(report) => Ok(Kernel {
                report: Arc::new(report),
                program: Arc::new(program),
                regions: Arc::default(),
                tag_uses: Arc::default(),
            }),
            Err(stopped) => {
                Err(AssembleError { name: program.name, text: program.text, diagnostics: vec![*stopped.0] })
            }
        }
    }

    /// The program of the kernel.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The program, for those that keep it.
    pub(super) fn shared(&self) -> Arc<Program> {
        self.program.clone()
    }

    /// The lowered form of the program, for the engine.
    pub(super) fn regions(&self) -> &KeptRegions {
        &self.regions
    }

    /// The tags that the kernel waits for and that its MVs signal, in its order.
    pub fn tag_uses(&self) -> &[TagUse] {
        self.tag_uses.get_or_init(|| word::tag_uses(&self.program))
    }

    /// The cost of one run.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

/// Reads a program from a source, from assembled text or from a container.
pub(super) fn load(
    assembler: &Assembler,
    spec: &Arc<Spec>,
    data: &[u8],
    name: &str,
    interrupt: &Interrupt,
) -> Result<Program, AssembleError> {
    if data.starts_with(&MAGIC) {
        let bad = |error: Error| AssembleError {
            name: name.to_string(),
            text: Arc::from(""),
            diagnostics: vec![Diagnostic { span: None, ..*error.0 }],
        };
        return assembler.assemble(&word::unpack(data).map_err(bad)?, name, Policy::Run);
    }
    if name.ends_with(ASSEMBLED) || (!name.ends_with(SOURCE) && looks_assembled(spec, data)) {
        return word::read_until(data, name, spec, interrupt);
    }
    assembler.assemble_bytes(data, name, Policy::Run)
}

/// Whether some line begins as only lines of assembled text do: with one of their letters and a blank.
fn looks_assembled(spec: &Spec, data: &[u8]) -> bool {
    let word = spec.encoding.as_ref().map(|e| e.letter);
    let letters: Vec<u8> =
        [word, Some(STATEMENT), Some(FLAT_PE), Some(FLAT_MV)].iter().flatten().map(|c| *c as u8).collect();
    data.split(|b| *b == b'\n').any(|line| match line.trim_ascii_start() {
        [letter, b' ' | b'\t', ..] => letters.contains(letter),
        _ => false,
    })
}
