//! Checks ALU and MAU operations against the kernels of the engine.

use crate::error::Error;
use crate::num::alu::alu_kernel;
use crate::num::blockfloat::{EXTENSION, G_KEPT};
use crate::num::flags::FlagRule;
use crate::num::lane::Lane;
use crate::num::MAB_PES;
use crate::spec::fault::{bad, unknown};
use crate::spec::model::*;
use crate::spec::{Spec, BLOCK, BLOCK_EXTENDED, IMM, IMMU, LONG_BITS, ROTATE, RSQRT, WORD_BITS, ZERO};

/// A larger change of an exponent field leaves the range of every format.
const MAX_AMOUNT: u32 = 63;
/// The mantissa lengths that the block float kernels of halves support.
const BLOCK_LENGTHS: std::ops::RangeInclusive<u32> = 6..=9;

pub(super) fn check_alu_mau(spec: &Spec) -> Result<(), Error> {
    for a in &spec.alu {
        let place = format!("[[alu]] `{}`", a.name);
        if a.sources > 2 || (a.literal && a.sources > 0) {
            return Err(bad(format!("{place}: {} sources", a.sources)));
        }
        if a.unsigned.is_empty() == a.unsigned_flag.is_some() {
            return Err(bad(format!("{place}: `unsigned` and `unsigned_flag` go together")));
        }
        for rule in a.unsigned_flag.iter().chain([&a.flag]) {
            if FlagRule::from_name(rule).is_none() {
                let known: Vec<_> = FlagRule::names().collect();
                return Err(unknown(format!("{place}: no flag rule `{rule}`; they are {}", known.join(", "))));
            }
        }
        check_kernel(spec, a, &place)?;
        if let Some(name) = a.excludes.iter().find(|n| spec.memory(n).is_none()) {
            return Err(unknown(format!("{place}: no memory `{name}`")));
        }
    }
    for m in &spec.mau_precisions {
        check_mau_precision(spec, m)?;
        if spec.format(&m.reduced).is_none() {
            return Err(unknown(format!("[[mau_precision]] `{}`: no format `{}`", m.name, m.reduced)));
        }
    }
    for m in &spec.mau {
        let twice = (0..m.sources.len()).any(|i| m.sources[..i].contains(&m.sources[i]));
        if m.sources.is_empty() || twice {
            return Err(bad(format!("[[mau]] `{}`: each source has a port of its own", m.name)));
        }
    }
    Ok(())
}

/// Checks that the multiplier kernels support the omitted bits and the matrix size.
fn check_mau_precision(spec: &Spec, m: &MauPrecision) -> Result<(), Error> {
    let place = format!("[[mau_precision]] `{}`", m.name);
    let Some(precision) = spec.precisions.iter().find(|p| p.name == m.name && p.kind == LaneKind::Float) else {
        return Err(unknown(format!("{place}: no float precision has this name")));
    };
    let fraction = precision.format.as_deref().and_then(|f| spec.format(f)).map_or(0, |f| f.fraction);
    let most = fraction.min(WORD_BITS);
    if m.omitted_bits > most || m.ignored_bits > fraction {
        return Err(bad(format!(
            "{place}: {} omitted and {} ignored bits; at most {most}",
            m.omitted_bits, m.ignored_bits
        )));
    }
    if spec.banks.is_empty() {
        return Ok(());
    }
    let rows = precision.lanes * spec.counts.pe;
    if m.rows != rows || spec.counts.pe as usize != MAB_PES {
        return Err(bad(format!(
            "{place}: {} rows; the product kernels are for {rows} rows and {MAB_PES} PEs in a MAB",
            m.rows
        )));
    }
    // The product kernel of singles takes one word of each PE.
    let single = precision.lane() == Some(Lane::F) && !precision.pseudo;
    let columns = if single { spec.counts.pe } else { rows };
    if m.columns != columns {
        return Err(bad(format!("{place}: {} columns; the product kernel takes {columns}", m.columns)));
    }
    Ok(())
}

/// Checks that every precision and sign of the op has a kernel in the engine.
fn check_kernel(spec: &Spec, a: &Alu, place: &str) -> Result<(), Error> {
    let own_rules = [ZERO, ROTATE, BLOCK, BLOCK_EXTENDED].contains(&a.kernel.as_str());
    if own_rules {
        return check_engine_kernel(spec, a, place);
    }
    let literal = [IMM, IMMU].contains(&a.kernel.as_str());
    if literal != a.literal || (literal && !a.precisions.is_empty()) {
        return Err(bad(format!("{place}: `literal` and the kernels {IMM}, {IMMU} go together, without precisions")));
    }
    if !literal && a.precisions.is_empty() {
        return Err(unknown(format!("{place}: the kernel `{}` needs precisions", a.kernel)));
    }
    if let Some(letter) = a.unsigned.iter().find(|letter| !a.precisions.contains(letter)) {
        return Err(unknown(format!("{place}: `unsigned` names `{letter}`, which is none of its precisions")));
    }
    if a.table.is_some() != (a.kernel == RSQRT) {
        return Err(bad(format!("{place}: `table` belongs to the kernel {RSQRT}")));
    }
    // The kernels do not check these parameters.
    if a.table.is_some_and(|t| t.iter().any(|entry| !(32..64).contains(entry))) {
        return Err(bad(format!("{place}: entries of `table` are 64ths of a number from 1/2 to below 1: 32 to 63")));
    }
    if a.amount > MAX_AMOUNT {
        return Err(bad(format!("{place}: amount {} is past {MAX_AMOUNT}", a.amount)));
    }
    for precision in spec.precisions.iter().filter(|p| a.precisions.contains(&p.name)) {
        if a.bit >= LONG_BITS / precision.lanes {
            return Err(bad(format!("{place}: bit {} is past the lanes of `{}`", a.bit, precision.name)));
        }
        let signs = if a.unsigned.contains(&precision.name) { &[false, true][..] } else { &[false][..] };
        for unsigned in signs {
            let kernel = precision.lane().and_then(|lane| alu_kernel(&a.kernel, lane, *unsigned));
            let sources = kernel.map(|k| u32::from(k.operands()));
            if sources != Some(a.sources) {
                let sign = if *unsigned { " unsigned" } else { "" };
                let message = format!(
                    "{place}: no{sign} kernel `{}` for `{}` with {} sources",
                    a.kernel, precision.name, a.sources
                );
                return Err(unknown(message));
            }
        }
    }
    Ok(())
}

/// Checks the ops with kernels that work across PEs, and `zero`.
fn check_engine_kernel(spec: &Spec, a: &Alu, place: &str) -> Result<(), Error> {
    let block = [BLOCK, BLOCK_EXTENDED].contains(&a.kernel.as_str());
    let sources = u32::from(a.kernel != ZERO);
    if a.sources != sources || a.literal || !a.unsigned.is_empty() || a.precisions.is_empty() == block {
        return Err(bad(format!("{place}: the kernel `{}` has other operands or precisions", a.kernel)));
    }
    if let Some(l) = &a.lengths {
        let kept = BLOCK_LENGTHS.contains(&l.minimum) && BLOCK_LENGTHS.contains(&l.maximum) && l.minimum <= l.maximum;
        if !block || !kept {
            return Err(bad(format!("{place}: mantissa lengths {} to {} have no kernel", l.minimum, l.maximum)));
        }
    }
    if block && spec.counts.pe as usize != MAB_PES {
        return Err(bad(format!(
            "{place}: block float kernels are for {MAB_PES} PEs in a MAB, not {}",
            spec.counts.pe
        )));
    }
    if a.kernel == BLOCK_EXTENDED && a.amount != EXTENSION {
        return Err(bad(format!("{place}: amount {}; the extended kernels are for {EXTENSION}", a.amount)));
    }
    for name in a.precisions.iter().filter(|_| block) {
        check_kept(spec, name, place)?;
    }
    for name in a.precisions.iter().chain(&a.path_precisions).chain(a.lengths.iter().map(|l| &l.precision)) {
        let Some(precision) = spec.precisions.iter().find(|p| p.name == *name) else {
            return Err(unknown(format!("{place}: no precision is called `{name}`")));
        };
        if block && (precision.kind != LaneKind::Float || !a.precisions.contains(name)) {
            return Err(unknown(format!("{place}: no kernel `{}` for `{name}`", a.kernel)));
        }
    }
    Ok(())
}

/// Checks that a block of a pseudo format keeps exactly the fraction bits that products use of a matrix factor.
fn check_kept(spec: &Spec, name: &str, place: &str) -> Result<(), Error> {
    let precision = spec.precisions.iter().find(|p| p.name == name && p.pseudo);
    let format = precision.and_then(|p| p.format.as_deref()).and_then(|name| spec.format(name));
    let factor = spec.mau_precisions.iter().find(|m| m.name == name);
    let (Some(format), Some(factor)) = (format, factor) else { return Ok(()) };
    match format.fraction.checked_sub(factor.ignored_bits) {
        Some(G_KEPT) => Ok(()),
        _ => Err(bad(format!(
            "{place}: `{name}` has {} fraction bits of which {} are ignored; the block float kernel keeps {G_KEPT}",
            format.fraction, factor.ignored_bits
        ))),
    }
}
