//! The reduction network above the PEs: stages of several inputs, lane by lane (reference, chapter on reductions).
//!
//! Inputs are flat: `inputs` holds `n` vectors of `out.len()` long words each, one after the other. So a row of PEs
//! (`4 * mab + pe`) holds the vectors of all MABs, 4 long words each.

use super::clone_choice::Choice;
use super::convert::reduce_f2;
use super::lane::{float_key, select, Lane, Word};
use super::level::Apply;
use std::marker::PhantomData;

mod fadd;

/// The operation of a reduction on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Floating addition; each stage rounds its inputs to a common alignment and then its result.
    Fadd,
    /// Maximum of sign-magnitude integers, which orders floats too.
    Max,
    /// Minimum of sign-magnitude integers.
    Min,
    /// Wrapping integer addition.
    Iadd,
    /// Bitwise and.
    Band,
    /// Bitwise or.
    Bor,
    /// Logical and: 1 if all lanes are non-zero, else 0.
    Land,
    /// Logical or: 1 if any lane is non-zero, else 0.
    Lor,
}

const NAMES: [(&str, ReduceOp); 8] = [
    ("fadd", ReduceOp::Fadd),
    ("max", ReduceOp::Max),
    ("min", ReduceOp::Min),
    ("iadd", ReduceOp::Iadd),
    ("band", ReduceOp::Band),
    ("bor", ReduceOp::Bor),
    ("and", ReduceOp::Land),
    ("or", ReduceOp::Lor),
];

/// `fn(inputs, out)`: computes one stage.
type StageFn = fn(&[u64], &mut [u64]);

/// A reduction instantiated for a lane type.
#[derive(Clone, Copy, Debug)]
pub struct ReduceKernel {
    stage: StageFn,
    last: StageFn,
    neutral: u64,
}

/// Makes one function of the clones of a stage for lanes of type `T`, with the name under which its choice of a clone is
/// listed.
macro_rules! clones {
    ($name:literal, $($stage:ident)::+ ::<T>) => {{
        fn run<T: Word>(inputs: &[u64], out: &mut [u64]) {
            struct Body<T>(PhantomData<T>);
            impl<T: Word> Apply<(&[u64], &mut [u64])> for Body<T> {
                #[inline(always)]
                fn apply(self, (inputs, out): (&[u64], &mut [u64])) {
                    $($stage)::+::<T>(inputs, out);
                }
            }
            // Each lane width needs its own static, because a generic function has one static for all its instances.
            static CHOICES: [Choice; 3] = [
                Choice::new(concat!("reduce ", $name, " 16")),
                Choice::new(concat!("reduce ", $name, " 32")),
                Choice::new(concat!("reduce ", $name, " 64")),
            ];
            let choice = &CHOICES[size_of::<T>().ilog2() as usize - 1];
            let (level, timed) = choice.begin();
            level.call(Body::<T>(PhantomData), (inputs, out));
            choice.end(timed);
        }
        run::<T> as StageFn
    }};
}

/// The reduction `name` (as in `l1bmrl<name>`) on lanes of the given precision; `None` if the combination does not exist.
///
/// With `reduced` (opcode suffix `r`, singles only) the last stage gives 2 halves in w0 (top 32 bits) of each long word:
/// sums are rounded once, a maximum or minimum is converted.
#[must_use]
pub fn reduce_kernel(name: &str, lane: Lane, reduced: bool) -> Option<ReduceKernel> {
    let (_, op) = NAMES.iter().find(|(n, _)| *n == name)?;
    let float = matches!(op, ReduceOp::Fadd | ReduceOp::Max | ReduceOp::Min);
    if lane.format().is_some() != float || (reduced && lane != Lane::F) {
        return None;
    }
    let mut kernel = match lane.width() {
        16 => kernel::<u16>(*op),
        32 => kernel::<u32>(*op),
        _ => kernel::<u64>(*op),
    };
    if reduced {
        kernel.last = reduced_stage::<u32>(*op);
    }
    Some(kernel)
}

/// Finds the last stage of a reduction of singles to halves.
fn reduced_stage<T: Word>(op: ReduceOp) -> StageFn {
    match op {
        ReduceOp::Max => clones!("max_reduced", max_reduced::<T>),
        ReduceOp::Min => clones!("min_reduced", min_reduced::<T>),
        _ => clones!("fadd_reduced", fadd::fadd_reduced::<T>),
    }
}

fn kernel<T: Word>(op: ReduceOp) -> ReduceKernel {
    let stage = match op {
        ReduceOp::Fadd => clones!("fadd", fadd::fadd::<T>),
        ReduceOp::Max => clones!("max", max::<T>),
        ReduceOp::Min => clones!("min", min::<T>),
        ReduceOp::Iadd => clones!("iadd", iadd::<T>),
        ReduceOp::Band => clones!("band", band::<T>),
        ReduceOp::Bor => clones!("bor", bor::<T>),
        ReduceOp::Land => clones!("land", land::<T>),
        ReduceOp::Lor => clones!("lor", lor::<T>),
    };
    let lane = match op {
        ReduceOp::Fadd | ReduceOp::Iadd | ReduceOp::Bor | ReduceOp::Lor => T::ZERO,
        ReduceOp::Max | ReduceOp::Band | ReduceOp::Land => T::MAX,
        ReduceOp::Min => !T::MSB,
    };
    ReduceKernel { stage, last: stage, neutral: splat(lane) }
}

#[inline(always)]
fn max<T: Word>(inputs: &[u64], out: &mut [u64]) {
    fold::<T>(inputs, out, |a, b| select(float_key(b) > float_key(a), b, a));
}

#[inline(always)]
fn min<T: Word>(inputs: &[u64], out: &mut [u64]) {
    fold::<T>(inputs, out, |a, b| select(float_key(b) < float_key(a), b, a));
}

#[inline(always)]
fn iadd<T: Word>(inputs: &[u64], out: &mut [u64]) {
    fold::<T>(inputs, out, |a, b| a.add(b));
}

#[inline(always)]
fn band<T: Word>(inputs: &[u64], out: &mut [u64]) {
    fold::<T>(inputs, out, |a, b| a & b);
}

#[inline(always)]
fn bor<T: Word>(inputs: &[u64], out: &mut [u64]) {
    fold::<T>(inputs, out, |a, b| a | b);
}

#[inline(always)]
fn land<T: Word>(inputs: &[u64], out: &mut [u64]) {
    fold::<T>(inputs, out, |a, b| select((a != T::ZERO) & (b != T::ZERO), T::ONE, T::ZERO));
    truth::<T>(out);
}

#[inline(always)]
fn lor<T: Word>(inputs: &[u64], out: &mut [u64]) {
    fold::<T>(inputs, out, |a, b| a | b);
    truth::<T>(out);
}

#[inline(always)]
fn max_reduced<T: Word>(inputs: &[u64], out: &mut [u64]) {
    max::<T>(inputs, out);
    reduce_f2(out);
}

#[inline(always)]
fn min_reduced<T: Word>(inputs: &[u64], out: &mut [u64]) {
    min::<T>(inputs, out);
    reduce_f2(out);
}

/// A long word with the same value in all lanes.
fn splat<T: Word>(lane: T) -> u64 {
    let mut word = [0u64];
    bytemuck::cast_slice_mut::<u64, T>(&mut word).fill(lane);
    word[0]
}

/// Folds the vectors of `inputs` into `out`.
#[inline(always)]
fn fold<T: Word>(inputs: &[u64], out: &mut [u64], f: impl Fn(T, T) -> T) {
    let width = out.len();
    out.copy_from_slice(&inputs[..width]);
    let out: &mut [T] = bytemuck::cast_slice_mut(out);
    for x in inputs[width..].chunks_exact(width) {
        let x: &[T] = bytemuck::cast_slice(x);
        for (o, &v) in out.iter_mut().zip(x) {
            *o = f(*o, v);
        }
    }
}

/// Turns non-zero lanes into the integer 1.
#[inline(always)]
fn truth<T: Word>(out: &mut [u64]) {
    for o in bytemuck::cast_slice_mut::<u64, T>(out) {
        *o = select(*o != T::ZERO, T::ONE, T::ZERO);
    }
}

impl ReduceKernel {
    /// The long word that an absent element contributes.
    #[must_use]
    pub const fn neutral(self) -> u64 {
        self.neutral
    }

    /// Computes one stage: all vectors of `inputs` into `out`.
    pub fn stage(self, inputs: &[u64], out: &mut [u64]) {
        (self.stage)(inputs, out);
    }

    /// Computes a tree. Stage s takes groups of `fan_in[s]` consecutive vectors of the stage before it. The product of all
    /// fan-ins is the number of vectors in `inputs`. `scratch` keeps its allocation between calls.
    pub fn tree(self, fan_in: &[usize], inputs: &[u64], scratch: &mut Vec<u64>, out: &mut [u64]) {
        let width = out.len();
        debug_assert_eq!(inputs.len(), width * fan_in.iter().product::<usize>());
        let Some((_, inner)) = fan_in.split_last() else {
            return;
        };
        let mut stage = 0;
        for &n in inner {
            // The results of a stage follow those of the stage before it.
            let results = if stage == 0 { inputs.len() / n } else { stage / n };
            let done = if stage == 0 { 0 } else { scratch.len() };
            scratch.resize(done + results, 0);
            let (before, to) = scratch.split_at_mut(done);
            let from = if stage == 0 { inputs } else { &before[done - stage..] };
            for (group, result) in from.chunks_exact(n * width).zip(to.chunks_exact_mut(width)) {
                (self.stage)(group, result);
            }
            stage = results;
        }
        let from = if stage == 0 { inputs } else { &scratch[scratch.len() - stage..] };
        (self.last)(from, out);
    }
}

/// The names of all reductions, for messages.
pub fn reduce_kernel_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}
