//! Turns the index maps of L1BM instructions into block copies between L1BM and the PEs, once per form and parameter.

use super::access::UPPER;
use super::validity::whole_lanes;
use super::wrap::wrapped;
use crate::error::{Code, Error};
use crate::machine::Path;
use crate::num::lane::Lane;
use crate::num::level::kernel;
use crate::num::reduce::ReduceKernel;
use crate::num::MAB_PES;
use crate::spec::{Move, Place, Spec, WORD_BITS};
use std::collections::BTreeMap;

/// A copy between L1BM and the planes of a PE path. The planes are L0, then L1, each `[cycle][lane]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeRun {
    /// First word of the path.
    pub(super) path: usize,
    /// First long word, relative to the written address.
    pub(super) offset: u64,
    /// Long words of the path.
    pub(super) length: usize,
    /// Long words of the memory. They repeat if there are fewer than on the path.
    pub(super) period: usize,
}

/// How the words of a PE path are arranged for a reduction.
#[derive(Clone, Debug)]
pub(super) struct ReductionLayout {
    /// Inputs of each stage.
    pub(super) tree: Vec<usize>,
    /// The copies that arrange the elements: first word of the path buffer, and length. Element e of result r comes to lie
    /// at `e * results + r`.
    pub(super) copies: Vec<(usize, usize)>,
    /// Results, each one long word. Of narrowed results, those of the upper words come first.
    pub(super) results: usize,
    /// Two results make one long word.
    pub(super) narrow: bool,
}

/// A range of one plane of a path.
pub(super) fn part<'a>((l0, l1): Path<'a>, first: usize, length: usize) -> &'a [u64] {
    match first.checked_sub(l0.len()) {
        None => &l0[first..][..length],
        Some(first) => &l1[first..][..length],
    }
}

/// The position of a PE's long word on the path.
fn path_word(spec: &Spec, pe: &Place) -> usize {
    let lane = pe.mab * spec.counts.pe + pe.pe;
    (pe.half * spec.counts.cycle + pe.cycle) as usize * spec.lanes() + lane as usize
}

/// The layout of a reducing form. The results follow each other from the written address on, as the loader has checked.
pub(super) fn reduction_layout(spec: &Spec, moves: &[Move], tree: &[usize], narrow: bool) -> ReductionLayout {
    let plane = spec.counts.cycle as usize * spec.lanes();
    let mut results: BTreeMap<(u32, u64), Vec<usize>> = BTreeMap::new();
    for (from, to) in moves {
        results.entry((to.half, to.addr)).or_default().push(path_word(spec, from));
    }
    let count: usize = tree.iter().product();
    let elements = (0..count).flat_map(|e| results.values().filter_map(move |words| words.get(e).copied()));
    let mut copies: Vec<(usize, usize)> = Vec::new();
    for word in elements {
        match copies.last_mut() {
            Some((first, length)) if *first + *length == word && word != plane => *length += 1,
            _ => copies.push((word, 1)),
        }
    }
    ReductionLayout { tree: tree.to_vec(), copies, results: results.len(), narrow }
}

impl ReductionLayout {
    /// Reduces the planes of a path to the long words of `buffers.out`.
    pub(super) fn reduce(&self, kernel: ReduceKernel, path: Path<'_>, buffers: &mut ReduceBuffers) {
        self.results(kernel, path, buffers);
        self.join_narrow(&mut buffers.out);
    }

    /// Reduces the validity of the planes of a path: `kernel` is a bitwise and, `lane` the lanes that are reduced.
    pub(super) fn reduce_validity(
        &self,
        kernel: ReduceKernel,
        lane: Lane,
        path: Path<'_>,
        buffers: &mut ReduceBuffers,
    ) {
        self.results(kernel, path, buffers);
        for word in &mut buffers.out {
            *word = if self.narrow { whole_lanes(*word, Lane::L) & UPPER } else { whole_lanes(*word, lane) };
        }
        self.join_narrow(&mut buffers.out);
    }

    /// Fills `buffers.out` as if every result was `word`.
    pub(super) fn fill(&self, word: u64, buffers: &mut ReduceBuffers) {
        buffers.out.clear();
        buffers.out.resize(if self.narrow { self.results / 2 } else { self.results }, word);
    }

    fn results(&self, kernel: ReduceKernel, path: Path<'_>, buffers: &mut ReduceBuffers) {
        let ReduceBuffers { inputs, stages, out } = buffers;
        inputs.clear();
        for (first, length) in &self.copies {
            inputs.extend_from_slice(part(path, *first, *length));
        }
        out.resize(self.results, 0);
        kernel.tree(&self.tree, inputs, stages, out);
    }

    fn join_narrow(&self, out: &mut Vec<u64>) {
        if self.narrow {
            let (upper, lower) = out.split_at_mut(self.results / 2);
            // A narrowed result is in the upper word.
            for (upper, lower) in upper.iter_mut().zip(lower) {
                *upper |= *lower >> WORD_BITS;
            }
            out.truncate(self.results / 2);
        }
    }
}

/// Buffers of a reduction.
#[derive(Clone, Debug, Default)]
pub(super) struct ReduceBuffers {
    inputs: Vec<u64>,
    stages: Vec<u64>,
    pub(super) out: Vec<u64>,
}

/// Block copies of an L1BM form. `to_pe`: the PE side is the destination.
pub(super) fn pe_runs(spec: &Spec, moves: &[Move], to_pe: bool) -> Vec<PeRun> {
    let mut words: Vec<(usize, u64)> = moves
        .iter()
        .map(|(from, to)| {
            let (pe, memory) = if to_pe { (to, from) } else { (from, to) };
            (path_word(spec, pe), memory.addr)
        })
        .collect();
    words.sort_unstable();
    // Words are joined inside a row first, because one row may repeat a few words and the next row others.
    let lanes = spec.lanes();
    let plane = spec.counts.cycle as usize * lanes;
    let copies = words.into_iter().map(|(path, offset)| PeRun { path, offset, length: 1, period: 1 });
    let copies = join(copies, |run, next| {
        let follows = next.path % lanes != 0 && next.offset == run.offset + run.length as u64;
        run.period += usize::from(follows);
        follows
    });
    let copies = join(copies, |run, next| {
        to_pe && next.path % lanes != 0 && next.offset == run.offset && next.length == run.period
    });
    join(copies, |run, next| {
        // No run crosses from one plane to the other, because the planes need not be adjacent.
        let plain = run.period == run.length && next.period == next.length && next.path != plane;
        let follows = plain && next.offset == run.offset + run.length as u64;
        run.period += if follows { next.length } else { 0 };
        follows
    })
}

/// Merges neighbours on the path for which `joins` says so.
fn join(runs: impl IntoIterator<Item = PeRun>, joins: impl Fn(&mut PeRun, &PeRun) -> bool) -> Vec<PeRun> {
    let mut all: Vec<PeRun> = Vec::new();
    for next in runs {
        if let Some(run) = all.last_mut().filter(|run| run.path + run.length == next.path) {
            if joins(run, &next) {
                run.length += next.length;
                continue;
            }
        }
        all.push(next);
    }
    all
}

/// Runs of repeated words: each row of the path is filled with the next `period` long words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RepeatedRows {
    /// First long word, relative to the written address.
    pub(super) offset: u64,
    /// Long words of all rows together.
    pub(super) words: usize,
    pub(super) period: usize,
    /// Long words of a row of the path.
    pub(super) length: usize,
}

impl RepeatedRows {
    /// `runs` as equal rows, if the runs are contiguous on the path and in the memory.
    pub(super) fn of(runs: &[PeRun]) -> Option<RepeatedRows> {
        let first = runs.first().filter(|run| run.path == 0 && run.period < run.length)?;
        let alike = |(k, run): (usize, &PeRun)| {
            let (path, offset) = (k * first.length, first.offset + (k * first.period) as u64);
            (run.path, run.offset, run.length, run.period) == (path, offset, first.length, first.period)
        };
        let words = runs.len() * first.period;
        let (offset, period, length) = (first.offset, first.period, first.length);
        runs.iter().enumerate().all(alike).then_some(RepeatedRows { offset, words, period, length })
    }
}

impl PeRun {
    /// Copies the words of the memory to `target`, the run's part of the path.
    pub(super) fn bring(&self, memory: &[u64], address: u64, target: &mut [u64]) {
        let start = ((address + self.offset) % memory.len() as u64) as usize;
        if self.period == self.length {
            return wrapped(start as u64, self.length, memory.len(), |at, to, n| {
                target[to..to + n].copy_from_slice(&memory[at..at + n]);
            });
        }
        match memory.get(start..start + self.period) {
            Some(words) => repeat(words, words.len(), target.len(), target),
            None => {
                for (k, to) in target.iter_mut().enumerate() {
                    *to = memory[(start + k % self.period) % memory.len()];
                }
            }
        }
    }
}

kernel! {
    /// Fills `target` row by row. Each row has `length` long words and repeats the next `period` long words.
    pub(super) fn repeat(words: &[u64], period: usize, length: usize, target: &mut [u64]) {
        if period == MAB_PES && length % MAB_PES == 0 {
            // Every MAB gets the same words. The sizes are known, so this is one store per MAB and no division.
            let (words, mut rest) = (words.as_chunks::<MAB_PES>().0, target);
            for words in words {
                let (row, behind) = rest.split_at_mut(length.min(rest.len()));
                rest = behind;
                for to in row.as_chunks_mut().0 {
                    *to = *words;
                }
            }
            return;
        }
        for (words, row) in words.chunks_exact(period.max(1)).zip(target.chunks_exact_mut(length.max(1))) {
            if let [word] = words {
                row.fill(*word);
            } else {
                for to in row.chunks_mut(words.len()) {
                    to.copy_from_slice(&words[..to.len()]);
                }
            }
        }
    }
}

/// The moves of a form, or a diagnostic that names the form.
pub(super) fn moves(form: &crate::spec::ResolvedForm, parameters: &[(&str, i64)]) -> Result<Vec<Move>, Error> {
    form.evaluate(parameters).map_err(|e| Error::new(Code::SpecExpression, format!("form `{}`: {e}", form.name)))
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

    fn runs(name: &str, parameters: &[(&str, i64)]) -> Vec<(usize, u64, usize, usize)> {
        let spec = Spec::load("mncore2").unwrap();
        let runs = pe_runs(&spec, &form_moves(&spec, name, "to_pe", parameters), true);
        runs.iter().map(|r| (r.path, r.offset, r.length, r.period)).collect()
    }

    #[test]
    fn distribution_is_one_copy() {
        assert_eq!(runs("l1bmd", &[("shift", 0)]), [(0, 0, 256, 256)]);
    }

    #[test]
    fn broadcast_is_one_fill_per_cycle() {
        assert_eq!(runs("l1bmp", &[]), [(0, 0, 64, 1), (64, 1, 64, 1), (128, 2, 64, 1), (192, 3, 64, 1)]);
    }

    #[test]
    fn every_mab_gets_the_same_words() {
        assert_eq!(runs("l1bmm", &[]), [(0, 0, 64, 4), (64, 4, 64, 4), (128, 8, 64, 4), (192, 12, 64, 4)]);
    }

    #[test]
    fn repeated_words_wrap() {
        let memory: Vec<u64> = (0..8).collect();
        let mut target = [0; 6];
        PeRun { path: 0, offset: 2, length: 6, period: 4 }.bring(&memory, 4, &mut target);
        assert_eq!(target, [6, 7, 0, 1, 6, 7]);
    }
}
