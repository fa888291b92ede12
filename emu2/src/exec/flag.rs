//! Flags of a result, and how they are written to the mask registers.

use super::mask::LoweredMask;
use crate::machine::{L1b, Path};
use crate::num::alu::AluParams;
use crate::num::flags::FlagRule;
use crate::num::lane::Lane;
use crate::num::mau::{mau_flags, MauOutput};

/// How an instruction computes its flags.
#[derive(Clone, Debug)]
pub(super) enum Flags {
    /// From the inputs and the result of an ALU op.
    Alu(FlagRule, Lane, AluParams),
    /// From the signs of a MAU result.
    Mau(MauOutput),
}

/// A lowered write of a mask register.
#[derive(Clone, Debug)]
pub(super) struct FlagWrite {
    pub(super) rule: Flags,
    /// Slot of the mask registers, and the entry.
    pub(super) slot: usize,
    pub(super) entry: usize,
    pub(super) mask: LoweredMask,
}

impl Flags {
    /// Flags of one cycle: four bits per PE.
    pub(super) fn eval(&self, sources: &[Path<'_>], out: Path<'_>, zeros: &[u64], flags: &mut [u64]) {
        let mut bits = vec![0u8; zeros.len()];
        match self {
            Flags::Alu(rule, lane, params) => {
                let row = |at: usize| sources.get(at).map_or(zeros, |s| s.0);
                rule.eval(*lane, params, row(0), row(1), out.0, &mut bits);
            }
            Flags::Mau(output) => mau_flags(*output, out.0, out.1, &mut bits),
        }
        for (flag, bits) in flags.iter_mut().zip(bits) {
            *flag = bits.into();
        }
    }
}

impl FlagWrite {
    /// Stores the flags `[cycle][lane]`. A flag that the write mask does not let through becomes 0, so conditions are
    /// combined by and.
    pub(super) fn store(&self, l1b: &mut L1b, lanes: usize, flags: &mut [u64]) {
        for (c, row) in flags.chunks_exact_mut(lanes).enumerate() {
            self.mask.flags(l1b, c, row);
        }
        l1b.pe[self.slot][self.entry * flags.len()..][..flags.len()].copy_from_slice(flags);
    }
}
