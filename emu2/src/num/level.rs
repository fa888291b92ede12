//! Clones of the kernels for the instruction sets that the host's processor may have.
//!
//! A kernel is compiled once for the target's baseline and, on x86-64, once each for the microarchitecture levels v3 (AVX2,
//! FMA) and v4 (AVX-512). All clones give the same bits. `EMU2_LEVEL` names the clone to use. Without it, arithmetic
//! kernels run the clone that was fastest at first use (`clone_choice.rs`), and all other kernels the best clone that the
//! host supports.

// The one file with `unsafe`: see the proof in `Level::call`.
#![allow(unsafe_code)]

use crate::error::{Code, Error};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Once;

/// Names the clone to use: `baseline`, `v3` or `v4`.
pub const LEVEL_VARIABLE: &str = "EMU2_LEVEL";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    V3,
    #[cfg(target_arch = "x86_64")]
    V4,
}

/// A set of vector instructions that this host has. No `Level` can be made for instructions that the host lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(Kind);

#[cfg(target_arch = "x86_64")]
const KINDS: &[Kind] = &[Kind::Baseline, Kind::V3, Kind::V4];
#[cfg(not(target_arch = "x86_64"))]
const KINDS: &[Kind] = &[Kind::Baseline];

/// A level that can be set while the program runs, or none yet.
pub(crate) struct LevelCell(AtomicU8);

impl LevelCell {
    pub(crate) const fn empty() -> LevelCell {
        LevelCell(AtomicU8::new(u8::MAX))
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<Level> {
        // The value is the index of a kind. Only `set` stores one, and it takes a `Level`, so the host has it.
        KINDS.get(usize::from(self.0.load(Ordering::Relaxed))).map(|kind| Level(*kind))
    }

    pub(crate) fn set(&self, level: Level) {
        let index = KINDS.iter().position(|kind| *kind == level.0).unwrap_or_default();
        self.0.store(index as u8, Ordering::Relaxed);
    }
}

/// The level of kernels that do not choose for themselves: the forced one, otherwise the best.
static CURRENT: LevelCell = LevelCell::empty();

/// The level that all kernels must use, if one is forced.
static FORCED: LevelCell = LevelCell::empty();

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Kind::V3 => "v3",
            #[cfg(target_arch = "x86_64")]
            Kind::V4 => "v4",
        }
    }

    fn supported(self) -> bool {
        match self {
            Kind::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Kind::V3 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Kind::V4 => {
                Kind::V3.supported()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }
}

impl Level {
    /// The levels that this host has, the plainest first.
    pub fn supported() -> Vec<Level> {
        KINDS.iter().filter(|kind| kind.supported()).map(|kind| Level(*kind)).collect()
    }

    /// The level called `name`, if this host has it.
    pub fn named(name: &str) -> Option<Level> {
        Level::supported().into_iter().find(|level| level.name() == name)
    }

    /// The level's name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The level in use: the level that [`LEVEL_VARIABLE`] names if the host has it, otherwise the best. Arithmetic kernels
    /// may use another one, see [`choices`](super::clone_choice::choices).
    #[inline]
    pub fn current() -> Level {
        match CURRENT.get() {
            Some(level) => level,
            None => Level::choose(),
        }
    }

    #[cold]
    fn choose() -> Level {
        Level::read_variable();
        CURRENT.get().unwrap_or_else(|| {
            let best = Level::supported().last().copied().unwrap_or(Level(Kind::Baseline));
            CURRENT.set(best);
            best
        })
    }

    /// Forces the level that [`LEVEL_VARIABLE`] names if the host has it, once per process.
    fn read_variable() {
        static READ: Once = Once::new();
        READ.call_once(|| {
            let wanted = std::env::var(LEVEL_VARIABLE).ok().and_then(|name| Level::named(&name));
            if let (Some(level), None) = (wanted, FORCED.get()) {
                level.set();
            }
        });
    }

    /// The level that all kernels must use, if [`LEVEL_VARIABLE`] or [`Level::set`] forces one.
    pub fn forced() -> Option<Level> {
        Level::read_variable();
        FORCED.get()
    }

    /// The same as [`Level::forced`], for every call of a kernel. The variable must have been read before.
    #[inline]
    pub(crate) fn known_forced() -> Option<Level> {
        FORCED.get()
    }

    /// Refuses a level that [`LEVEL_VARIABLE`] names and this host lacks.
    ///
    /// # Errors
    /// [`Code::BadOption`] with the names of the levels that the host has.
    pub fn check_wanted() -> Result<(), Error> {
        let Some(name) = std::env::var_os(LEVEL_VARIABLE) else { return Ok(()) };
        let supported = Level::supported();
        if supported.iter().any(|level| level.name() == name) {
            return Ok(());
        }
        let names: Vec<_> = supported.iter().map(|level| level.name()).collect();
        let message = format!("{LEVEL_VARIABLE} is {name:?}; this host has {}", names.join(", "));
        Err(Error::new(Code::BadOption, message))
    }

    /// Forces this level from now on, for all kernels and in all threads. Results do not depend on it.
    pub fn set(self) {
        FORCED.set(self);
        CURRENT.set(self);
    }

    /// Whether a fused multiply-add of the host is one instruction at this level.
    #[inline]
    pub fn fuses(self) -> bool {
        self.0 != Kind::Baseline || cfg!(any(target_arch = "aarch64", target_feature = "fma"))
    }

    /// Calls `f` with `args`, compiled for this level.
    #[inline]
    pub(crate) fn call<A, F: Apply<A>>(self, f: F, args: A) {
        match self.0 {
            Kind::Baseline => f.apply(args),
            // SAFETY: a function with target features may be called where the processor has them. A `Level` is made only in
            // this file, from kinds whose `supported` has just been true (`supported`, `named`) or that `LevelCell::set`
            // has stored, which takes a `Level`.
            #[cfg(target_arch = "x86_64")]
            Kind::V3 => unsafe { v3(f, args) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Kind::V4 => unsafe { v4(f, args) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn v3<A, F: Apply<A>>(f: F, args: A) {
    f.apply(args);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn v4<A, F: Apply<A>>(f: F, args: A) {
    f.apply(args);
}

/// Code that has a clone for every level. `apply` and all functions that it calls must be `#[inline(always)]`, because only
/// code that is inlined into a clone is compiled for its level. Function items and large closures as arguments are separate
/// calls.
pub(crate) trait Apply<A> {
    /// Runs the code with `args`.
    fn apply(self, args: A);
}

/// Declares a kernel that does not choose its clone: a copy, or a rare path. It calls the clone of the current level.
macro_rules! kernel {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) {
            struct Body;
            impl $crate::num::level::Apply<($($ty,)*)> for Body {
                #[inline(always)]
                fn apply(self, ($($arg,)*): ($($ty,)*)) $body
            }
            $crate::num::level::Level::current().call(Body, ($($arg,)*));
        }
    )*};
}
pub(crate) use kernel;

/// Does the same as `kernel`. The constant `FUSED` tells the kernel whether the host's fused multiply-add is one
/// instruction.
macro_rules! fusing_kernel {
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
            let level = $crate::num::level::Level::current();
            if level.fuses() {
                level.call(Body::<true>, ($($arg,)*));
            } else {
                level.call(Body::<false>, ($($arg,)*));
            }
        }
    )*};
}
pub(crate) use fusing_kernel;
