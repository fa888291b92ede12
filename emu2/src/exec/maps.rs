//! Index maps turned into block copies, once per form and parameter.

use crate::error::{Code, Error};
use crate::num::reduce::ReduceKernel;
use crate::spec::{Move, Spec, HALVES, WORD_BITS};
use std::collections::BTreeMap;

/// A copy between a PE path buffer `[cycle][half][lane]` and L1BM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeRun {
    /// First word of the path buffer.
    pub(super) path: usize,
    /// First long word, from the written address.
    pub(super) offset: u64,
    /// Long words of the path buffer.
    pub(super) length: usize,
    /// Every one of them is the same long word of the memory.
    pub(super) broadcast: bool,
}

/// How the words of a PE path buffer meet in a reduction.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    /// Inputs of each stage.
    pub(super) tree: Vec<usize>,
    /// First word of the path buffer and length of each copy that lines up the elements: element e of result r comes to
    /// lie at `e * results + r`.
    pub(super) copies: Vec<(usize, usize)>,
    /// Results, each one long word; of narrowed ones those of the upper words come first.
    pub(super) results: usize,
    /// Two results make one long word.
    pub(super) narrow: bool,
}

/// The meeting of a reducing form. Results lie in a row from the written address on, as the loader has checked.
pub(super) fn meeting(spec: &Spec, moves: &[Move], tree: &[usize], narrow: bool) -> Meeting {
    let lanes = spec.lanes();
    let mut results: BTreeMap<(u32, u64), Vec<usize>> = BTreeMap::new();
    for (from, to) in moves {
        let lane = (from.mab * spec.counts.pe + from.pe) as usize;
        let row = (from.cycle * HALVES + from.half) as usize;
        results.entry((to.half, to.addr)).or_default().push(row * lanes + lane);
    }
    let count: usize = tree.iter().product();
    let elements = (0..count).flat_map(|e| results.values().filter_map(move |words| words.get(e).copied()));
    let mut copies: Vec<(usize, usize)> = Vec::new();
    for word in elements {
        match copies.last_mut() {
            Some((first, length)) if *first + *length == word => *length += 1,
            _ => copies.push((word, 1)),
        }
    }
    Meeting { tree: tree.to_vec(), copies, results: results.len(), narrow }
}

impl Meeting {
    /// The long words that a result path `[cycle][half][lane]` becomes, in `buffers.out`.
    pub(super) fn reduce(&self, kernel: ReduceKernel, path: &[u64], buffers: &mut Reduce) {
        let Reduce { inputs, stages, out } = buffers;
        inputs.clear();
        for (first, length) in &self.copies {
            inputs.extend_from_slice(&path[*first..first + length]);
        }
        out.resize(self.results, 0);
        kernel.tree(&self.tree, inputs, stages, out);
        if self.narrow {
            let (upper, lower) = out.split_at_mut(self.results / 2);
            // A narrowed result lies in the upper word.
            for (upper, lower) in upper.iter_mut().zip(lower) {
                *upper |= *lower >> WORD_BITS;
            }
            out.truncate(self.results / 2);
        }
    }
}

/// Buffers of a reduction.
#[derive(Clone, Debug, Default)]
pub(super) struct Reduce {
    inputs: Vec<u64>,
    stages: Vec<u64>,
    pub(super) out: Vec<u64>,
}

/// A copy between the memory of an L2B and that of one of its L1Bs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UpperRun {
    /// L1B inside the L2B.
    pub(super) l1b: usize,
    /// First long word of the L1B's memory, from the written address.
    pub(super) lower: u64,
    /// First long word of the L2B's memory, from the written address.
    pub(super) upper: u64,
    /// Long words.
    pub(super) length: usize,
}

/// Block copies of an L1BM form. `to_pe`: the PE side is the destination.
pub(super) fn pe_runs(spec: &Spec, moves: &[Move], to_pe: bool) -> Vec<PeRun> {
    let lanes = spec.lanes();
    let mut words: Vec<(usize, u64)> = moves
        .iter()
        .map(|(from, to)| {
            let (pe, memory) = if to_pe { (to, from) } else { (from, to) };
            let lane = (pe.mab * spec.counts.pe + pe.pe) as usize;
            let row = (pe.cycle * HALVES + pe.half) as usize;
            (row * lanes + lane, memory.addr)
        })
        .collect();
    words.sort_unstable();
    let mut runs: Vec<PeRun> = Vec::new();
    for (path, offset) in words {
        if let Some(run) = runs.last_mut().filter(|r| r.path + r.length == path) {
            let broadcast = to_pe && offset == run.offset && (run.length == 1 || run.broadcast);
            let next = offset == run.offset + run.length as u64 && !run.broadcast;
            if broadcast || next {
                run.length += 1;
                run.broadcast = broadcast;
                continue;
            }
        }
        runs.push(PeRun { path, offset, length: 1, broadcast: false });
    }
    runs
}

/// Block copies of an L2BM form. `down`: the L1Bs are the destination.
pub(super) fn upper_runs(moves: &[Move], down: bool) -> Vec<UpperRun> {
    let mut words: Vec<(usize, u64, u64)> = moves
        .iter()
        .map(|(from, to)| {
            let (upper, lower) = if down { (from, to) } else { (to, from) };
            (lower.l1b as usize, lower.addr, upper.addr)
        })
        .collect();
    words.sort_unstable();
    let mut runs: Vec<UpperRun> = Vec::new();
    for (l1b, lower, upper) in words {
        match runs.last_mut() {
            Some(run)
                if run.l1b == l1b
                    && run.lower + run.length as u64 == lower
                    && run.upper + run.length as u64 == upper =>
            {
                run.length += 1;
            }
            _ => runs.push(UpperRun { l1b, lower, upper, length: 1 }),
        }
    }
    runs
}

/// The moves of a form, or a diagnostic naming it.
pub(super) fn moves(form: &crate::spec::ResolvedForm, parameters: &[(&str, i64)]) -> Result<Vec<Move>, Error> {
    form.evaluate(parameters).map_err(|e| Error::new(Code::SpecExpression, format!("form `{}`: {e}", form.name)))
}

/// Writes `words` from `addr` on, wrapping.
pub(super) fn write_wrapped(memory: &mut [u64], addr: u64, words: &[u64]) {
    wrapped(addr, words.len(), memory.len(), |at, from, n| memory[at..at + n].copy_from_slice(&words[from..from + n]));
}

/// Calls `piece(memory offset, buffer offset, length)` for `length` long words from `addr` on in a memory of `words`
/// long words, cut where the address wraps.
pub(super) fn wrapped(addr: u64, length: usize, words: usize, mut piece: impl FnMut(usize, usize, usize)) {
    let mut done = 0;
    while done < length {
        let at = ((addr + done as u64) % words as u64) as usize;
        let n = (length - done).min(words - at);
        piece(at, done, n);
        done += n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    fn form_moves(spec: &Spec, name: &str, form: &str, parameters: &[(&str, i64)]) -> Vec<Move> {
        let at = spec.transfers.iter().position(|t| t.name == name).unwrap();
        let form = spec.forms[at].iter().find(|f| f.name == form).unwrap();
        moves(form, parameters).unwrap()
    }

    #[test]
    fn distribution_is_one_copy_per_cycle() {
        let spec = Spec::load("mncore2").unwrap();
        let runs = pe_runs(&spec, &form_moves(&spec, "l1bmd", "to_pe", &[("shift", 0)]), true);
        let lengths: Vec<_> = runs.iter().map(|r| (r.path, r.offset, r.length, r.broadcast)).collect();
        assert_eq!(lengths, [(0, 0, 64, false), (128, 64, 64, false), (256, 128, 64, false), (384, 192, 64, false)]);
    }

    #[test]
    fn broadcast_is_one_fill_per_cycle() {
        let spec = Spec::load("mncore2").unwrap();
        let runs = pe_runs(&spec, &form_moves(&spec, "l1bmp", "to_pe", &[]), true);
        assert!(runs.iter().all(|r| r.broadcast && r.length == 64));
        assert_eq!(runs.len(), 4);
    }

    #[test]
    fn wrapping_cuts_the_copy() {
        let mut pieces = Vec::new();
        wrapped(14, 5, 8, |at, from, n| pieces.push((at, from, n)));
        assert_eq!(pieces, [(6, 0, 2), (0, 2, 3)]);
    }
}
