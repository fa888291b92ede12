//! The choice of the clone that an arithmetic kernel runs: the fastest one, found by timing its first calls.
//!
//! The clone of the best level is not always the fastest one. That depends on the kernel and on the processor. The first
//! calls of a kernel run its clones in turns and are timed. Then the choice is made, once per process. Every call does
//! useful work and all clones give the same bits, so results never depend on the choice. Nothing is timed if a level is
//! forced or if the host has only one clone worth trying.

use super::level::{Level, LevelCell};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Instant;

/// Number of clones that are compared: those of the two best levels.
const CANDIDATES: usize = 2;

/// Timed calls of each candidate. The fastest call counts, because other work of the host only ever adds time.
const CALLS: u32 = 16;

/// The better level is kept unless the other one takes at most this fraction of its time. A smaller gain is noise.
const CLEARLY: f64 = 0.9;

/// Every kernel that has chosen a clone, in the order of the choices.
static CHOSEN: Mutex<Vec<&'static Choice>> = Mutex::new(Vec::new());

/// The choice of one kernel.
pub(crate) struct Choice {
    name: &'static str,
    chosen: LevelCell,
    registered: Once,
    begun: AtomicU32,
    ended: AtomicU32,
    /// Nanoseconds of the fastest call of each candidate.
    fastest: [AtomicU64; CANDIDATES],
}

/// A call that is timed.
pub(crate) struct Timed {
    candidate: usize,
    start: Instant,
}

impl Choice {
    /// A kernel called `name` that has not chosen yet.
    pub(crate) const fn new(name: &'static str) -> Choice {
        Choice {
            name,
            chosen: LevelCell::empty(),
            registered: Once::new(),
            begun: AtomicU32::new(0),
            ended: AtomicU32::new(0),
            fastest: [const { AtomicU64::new(u64::MAX) }; CANDIDATES],
        }
    }

    /// The level that a call uses. A timed call must be given to [`Choice::end`].
    #[inline]
    pub(crate) fn begin(&'static self) -> (Level, Option<Timed>) {
        match Level::known_forced().or_else(|| self.chosen.get()) {
            Some(level) => (level, None),
            None => self.begin_timed(),
        }
    }

    /// Notes the time of a call, if it is measured.
    #[inline]
    pub(crate) fn end(&'static self, timed: Option<Timed>) {
        if let Some(timed) = timed {
            self.end_timed(&timed);
        }
    }

    #[cold]
    fn begin_timed(&'static self) -> (Level, Option<Timed>) {
        if let Some(level) = Level::forced() {
            return (level, None);
        }
        let candidates = candidates();
        let [best, .., _] = candidates[..] else {
            let best = candidates.first().copied().unwrap_or(Level::current());
            self.choose(best);
            return (best, None);
        };
        let call = self.begun.fetch_add(1, Ordering::Relaxed);
        if call >= CALLS * CANDIDATES as u32 {
            // Other threads still run the last timed calls.
            return (best, None);
        }
        // The order is 0 1 1 0, so that calls of two sizes in turns do not fall to one candidate each.
        let candidate = call.div_ceil(2) as usize % CANDIDATES;
        let level = candidates.get(candidate).copied().unwrap_or(best);
        (level, Some(Timed { candidate, start: Instant::now() }))
    }

    #[cold]
    fn end_timed(&'static self, Timed { candidate, start }: &Timed) {
        let took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.fastest[*candidate].fetch_min(took, Ordering::Relaxed);
        let ended = self.ended.fetch_add(1, Ordering::AcqRel) + 1;
        if ended == CALLS * CANDIDATES as u32 {
            let [best, other] = self.fastest.each_ref().map(|time| time.load(Ordering::Relaxed) as f64);
            let at = usize::from(other < best * CLEARLY);
            self.choose(candidates().get(at).copied().unwrap_or(Level::current()));
        }
    }

    /// Makes the choice once.
    fn choose(&'static self, level: Level) {
        self.registered.call_once(|| {
            self.chosen.set(level);
            CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).push(self);
        });
    }
}

/// The levels whose clones are compared, the best one first. The baseline is a candidate only if there is no other level.
fn candidates() -> Vec<Level> {
    let supported = Level::supported();
    let better = if supported.len() > 1 { &supported[1..] } else { &supported[..] };
    better.iter().rev().take(CANDIDATES).copied().collect()
}

/// The kernels that have chosen a clone so far, by name, and the level of each. Empty if a level is forced. Kernels choose
/// after their first calls.
pub fn choices() -> Vec<(&'static str, Level)> {
    if Level::forced().is_some() {
        return Vec::new();
    }
    let chosen = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all: Vec<_> = chosen.iter().filter_map(|choice| Some((choice.name, choice.chosen.get()?))).collect();
    sorting::sort_by_key(&mut all, |(name, _)| *name);
    all
}

/// Calls `$body` with `$args` in the clone that the kernel called `$name` has chosen.
macro_rules! call_chosen {
    ($name:expr, $body:expr, $args:expr) => {{
        static CHOICE: $crate::num::clone_choice::Choice = $crate::num::clone_choice::Choice::new($name);
        let (level, timed) = CHOICE.begin();
        level.call($body, $args);
        CHOICE.end(timed);
    }};
}
pub(crate) use call_chosen;

/// Declares an arithmetic kernel: a function that has a clone for every level and calls the one that it has chosen.
macro_rules! choosing_kernel {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) {
            struct Body;
            impl $crate::num::level::Apply<($($ty,)*)> for Body {
                #[inline(always)]
                fn apply(self, ($($arg,)*): ($($ty,)*)) $body
            }
            $crate::num::clone_choice::call_chosen!(stringify!($name), Body, ($($arg,)*));
        }
    )*};
}
pub(crate) use choosing_kernel;

/// Does the same as `choosing_kernel`. The constant `FUSED` tells the kernel whether the host's fused multiply-add is one
/// instruction.
macro_rules! choosing_fusing_kernel {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:expr;)*) => {$(
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) {
            struct Body<const FUSED: bool>;
            impl<const FUSED: bool> $crate::num::level::Apply<($($ty,)*)> for Body<FUSED> {
                #[inline(always)]
                fn apply(self, ($($arg,)*): ($($ty,)*)) {
                    $body($($arg),*);
                }
            }
            static CHOICE: $crate::num::clone_choice::Choice = $crate::num::clone_choice::Choice::new(stringify!($name));
            let (level, timed) = CHOICE.begin();
            if level.fuses() {
                level.call(Body::<true>, ($($arg,)*));
            } else {
                level.call(Body::<false>, ($($arg,)*));
            }
            CHOICE.end(timed);
        }
    )*};
}
pub(crate) use choosing_fusing_kernel;
