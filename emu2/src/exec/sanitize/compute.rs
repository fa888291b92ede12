//! The validity of a result of which some input is undefined.

use super::observed::{defined_address, Buffers, On};
use crate::exec::compute::Compute;
use crate::exec::flag::Flags;
use crate::exec::mask::{LoweredMask, MaskRows, Through};
use crate::exec::op::Op;
use crate::exec::source::{gather, Origin as From, Source};
use crate::exec::validity::{converted, whole_lanes, VALID};
use crate::machine::{Out, Path};
use crate::num::lane::Lane;
use crate::num::mau::MauOutput;
use crate::num::MAB_PES;
use crate::spec::WORDS_PER_LONG;

/// Computes the validity of the result of instruction `at` into its buffer.
pub(super) fn compute(op: &Op, at: usize, on: &On<'_>, buffers: &mut Buffers) {
    let Buffers { lanes, cycles, results, flags, sources, addresses, mask, mask_validity, bits, zeros, .. } = buffers;
    let lanes = *lanes;
    let [l0, l1] = &mut results[at];
    if let Compute::Load(load) = &op.compute {
        let memory = &on.shadow.own[load.place.slot];
        let plane = l0.len();
        l0.fill(VALID);
        l1.fill(VALID);
        for run in load.runs.iter() {
            let target = if run.path < plane { &mut l0[run.path..] } else { &mut l1[run.path - plane..] };
            run.bring(memory, load.place.address, &mut target[..run.length]);
        }
    }
    for c in 0..*cycles {
        let rows = c * lanes..(c + 1) * lanes;
        let (l0, l1) = (&mut l0[rows.clone()], &mut l1[rows]);
        if !matches!(op.compute, Compute::Load(_)) {
            for (source, [s0, s1]) in op.sources.iter().zip(sources.iter_mut()) {
                fetch(source, c, on, addresses, [s0, s1]);
            }
            let all: [Path<'_>; 3] = std::array::from_fn(|k| (&sources[k][0][..], &sources[k][1][..]));
            of_cycle(op, &all[..op.sources.len()], c, on, [&mut *l0, &mut *l1]);
            let apart = op.mixes.is_none() && !op.cancels;
            if let (Compute::Alu { kernel, params, path }, true, [x, y]) = (&op.compute, apart, &op.sources[..]) {
                let [f, g] = &mut bits.fetch;
                let fetched = [
                    x.fetch(on.real, on.index, c, &zeros[..lanes], f),
                    y.fetch(on.real, on.index, c, &zeros[..lanes], g),
                ];
                bits.rows.decided(
                    |x, y, out| kernel.run(params, x, y, out),
                    fetched,
                    [all[0], all[1]],
                    *path,
                    [l0, l1],
                );
            }
        }
        if let Some(write) = op.flag_writes.first() {
            for (lane, flags) in flags[at][c * lanes..][..lanes].iter_mut().enumerate() {
                *flags = defined_flags(&write.rule, l0[lane], l1[lane]);
            }
        }
        if let Some(flush) = &op.zero_flush {
            match flush.rows(on.real, c, mask) {
                Through::All => continue,
                Through::Nothing => mask.fill(0),
                Through::Rows => {}
            }
            validity_of_mask(flush, c, on, mask_validity);
            // Cleared bits are defined, if the mask is.
            let flushed = |row: &mut [u64], mask: &[u64], validity: &[u64]| {
                row.iter_mut().zip(mask).zip(validity).for_each(|((word, mask), v)| *word = (*word | !mask) & v);
            };
            flushed(l0, &mask.l0, &mask_validity.l0);
            flushed(l1, &mask.l1, &mask_validity.l1);
        }
    }
}

/// The validity of the bits of a mask.
pub(super) fn validity_of_mask(mask: &LoweredMask, c: usize, on: &On<'_>, rows: &mut MaskRows) {
    if mask.register().is_none() || mask.rows(on.shadow, c, rows) != Through::Rows {
        rows.fill(VALID);
    }
}

/// Fetches the validity of a source. Words that a narrow read does not fill are zeros, so they are defined.
fn fetch(source: &Source, c: usize, on: &On<'_>, addresses: &mut [u32], [s0, s1]: [&mut Vec<u64>; 2]) {
    let lanes = s0.len();
    match &source.origin {
        From::Fixed(_) => {
            s0.fill(VALID);
            s1.fill(VALID);
        }
        From::Forward(path) if on.summary.paths[*path] => {
            s0.fill(VALID);
            s1.fill(VALID);
        }
        From::Forward(path) => {
            let (l0, l1) = on.shadow.forward[*path].planes();
            s0.copy_from_slice(&l0[c * lanes..][..lanes]);
            s1.copy_from_slice(&l1[c * lanes..][..lanes]);
        }
        From::Memory(access) => {
            if on.per_pe(access) {
                access.addresses(on.real, c, addresses);
            } else {
                addresses.fill(access.at[c]);
            }
            let mut rows = vec![VALID; 2 * lanes];
            gather(&on.shadow.pe[access.slot], access.words, addresses, &mut rows);
            s0.copy_from_slice(&rows[..lanes]);
            s1.copy_from_slice(&rows[lanes..]);
            if access.words < WORDS_PER_LONG {
                s0.iter_mut().for_each(|word| *word |= u64::from(u32::MAX));
            }
            if on.per_pe(access) {
                for lane in (0..lanes).filter(|lane| !defined_address(access, on, c, *lane, lanes)) {
                    (s0[lane], s1[lane]) = (0, 0);
                }
            }
        }
    }
    if source.conversion.is_some() {
        for (l0, l1) in s0.iter_mut().zip(s1) {
            (*l0, *l1) = converted(source.conversion, *l0, *l1);
        }
    }
}

/// The validity of the result of a cycle.
fn of_cycle(op: &Op, sources: &[Path<'_>], c: usize, on: &On<'_>, [l0, l1]: [&mut [u64]; 2]) {
    let mix = |word: u64| op.mixes.map_or(word, |lane| whole_lanes(word, lane));
    let all = |lane: usize, half: fn(&Path<'_>, usize) -> u64| {
        sources.iter().fold(VALID, |bits, source| bits & half(source, lane))
    };
    let first: fn(&Path<'_>, usize) -> u64 = |path, lane| path.0[lane];
    let second: fn(&Path<'_>, usize) -> u64 = |path, lane| path.1[lane];
    let lanes = l0.len();
    let own_second = |lane: usize| sources.first().map_or(VALID, |x| x.1[lane]);
    match &op.compute {
        Compute::Mau(mau) => mau.validity(sources, &on.shadow.pe, [l0, l1]),
        Compute::MatrixRead(access) => {
            l1.fill(VALID);
            let wide = access.halves() > 1;
            access.columns(&on.shadow.pe, c, Out { l0, l1: wide.then_some(l1) });
        }
        Compute::Rotate { distance, pes } => {
            for lane in 0..lanes {
                let mab = lane - lane % pes;
                l0[lane] = sources.first().map_or(VALID, |x| x.0[mab + (lane + distance) % pes]);
                l1[lane] = own_second(lane);
            }
        }
        // A block runs across the PEs of a MAB.
        Compute::Block { path, .. } => {
            let block = |mab: usize, half: fn(&Path<'_>, usize) -> u64| {
                whole_lanes((mab..mab + MAB_PES).fold(VALID, |bits, lane| bits & all(lane, half)), Lane::L)
            };
            for lane in 0..lanes {
                let mab = lane - lane % MAB_PES;
                l0[lane] = block(mab, first);
                l1[lane] = if *path { block(mab, second) } else { own_second(lane) };
            }
        }
        Compute::Alu { path, .. } => {
            let result = |lane, half| if op.cancels { VALID } else { mix(all(lane, half)) };
            for lane in 0..lanes {
                l0[lane] = result(lane, first);
                l1[lane] = if *path { result(lane, second) } else { own_second(lane) };
            }
        }
        _ => {
            for lane in 0..lanes {
                l0[lane] = sources.first().map_or(VALID, |x| x.0[lane]);
                l1[lane] = own_second(lane);
            }
        }
    }
}

/// The flags that are defined for a result of this validity, as bits of the mask register.
fn defined_flags(rule: &Flags, l0: u64, l1: u64) -> u64 {
    // A bit for each half of a long word that is valid, the first one at the top.
    let halves = |word: u64| (0..4).filter(|k| word >> (16 * k) & 0xFFFF == 0xFFFF).fold(0, |bits, k| bits | 1 << k);
    let word = |word: u64, shift: u32| u64::from(word >> shift & 0xFFFF_FFFF == 0xFFFF_FFFF);
    match rule {
        Flags::Alu(_, lane, _) => halves(whole_lanes(l0, *lane)),
        Flags::Mau(MauOutput::H) => word(l0, 32) << 3 | word(l0, 0) << 2 | word(l1, 32) << 1 | word(l1, 0),
        Flags::Mau(MauOutput::F) => halves(whole_lanes(l0, Lane::F)),
        Flags::Mau(MauOutput::HReduced) => halves(l0),
        Flags::Mau(_) => halves(whole_lanes(l0, Lane::L)),
    }
}
