//! Finds reads of forwarding paths whose unit was idle in the last step that was not a `nop`.

use crate::asm::line::Line;
use crate::asm::statement::{PeInstruction, PeKind, SourceKind};
use crate::error::Span;
use crate::spec::{ForwardUnit, Spec};

/// The units that worked in the last step that was not a `nop`.
#[derive(Debug, Default)]
pub(super) struct Worked {
    mau: bool,
    alu: bool,
    l1bm: bool,
    matrix: bool,
}

impl Worked {
    /// The operands of the line that read a path whose unit was idle: span, and entry of `forwards`.
    pub(super) fn idle<'l>(&'l self, spec: &'l Spec, line: &'l Line) -> impl Iterator<Item = (Span, usize)> + 'l {
        line.pe.iter().flat_map(|i| &i.sources).filter_map(move |source| match source.kind {
            SourceKind::Forward(path) if !self.worked(spec.forwards[path].unit) => Some((source.span, path)),
            _ => None,
        })
    }

    fn worked(&self, unit: ForwardUnit) -> bool {
        match unit {
            ForwardUnit::Mau => self.mau,
            ForwardUnit::Alu => self.alu,
            ForwardUnit::L1bm => self.l1bm,
            ForwardUnit::Matrix => self.matrix,
        }
    }

    /// Takes a refused line: all units count as having worked, because it is unknown which ones would have.
    pub(super) fn assume(&mut self) {
        *self = Worked { mau: true, alu: true, l1bm: true, matrix: true };
    }

    /// Takes a line that has run. A line with `noforward` leaves the paths as they are.
    pub(super) fn step(&mut self, line: &Line) {
        if line.noforward {
            return;
        }
        let any = |unit: fn(&PeInstruction) -> bool| line.pe.iter().any(unit);
        self.alu = any(|i| matches!(i.kind, PeKind::Alu { .. }));
        self.mau = any(|i| matches!(i.kind, PeKind::Mau { .. }));
        // Matrix reads and transfers towards the PEs have no source. Only these drive a forwarding path.
        self.matrix = any(|i| matches!(i.kind, PeKind::Matrix { .. }) && i.sources.is_empty());
        self.l1bm = any(|i| matches!(i.kind, PeKind::L1bm { .. }) && i.sources.is_empty());
    }
}
