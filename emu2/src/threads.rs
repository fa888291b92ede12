//! The threads that share work.
//!
//! They are the threads of rayon's global pool. A forked child has none of its parent's threads, and work handed to them
//! would wait for ever. So a child gets a pool of its own when it first needs one.

use rayon::ThreadPool;
use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The process that owns the global pool: the one that asked first.
static OWNER: OnceLock<u32> = OnceLock::new();

/// The pool of a forked child, with the child's process number.
static CHILD: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Where shared work runs.
enum Pool {
    /// This thread belongs to a pool, or the global pool serves.
    Here,
    /// The pool of a forked child.
    Child(Arc<ThreadPool>),
    /// A forked child that can start no threads.
    Alone,
}

fn pool() -> Pool {
    let process = process::id();
    if rayon::current_thread_index().is_some() || *OWNER.get_or_init(|| process) == process {
        return Pool::Here;
    }
    let mut child = CHILD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, pool)) = child.as_ref().filter(|(owner, _)| *owner == process) {
        return Pool::Child(pool.clone());
    }
    let Ok(pool) = rayon::ThreadPoolBuilder::new().build() else { return Pool::Alone };
    let pool = Arc::new(pool);
    // If the parent is a forked child itself, its pool has no threads in this process that could be ended.
    std::mem::forget(child.replace((process, pool.clone())));
    Pool::Child(pool)
}

/// Number of threads that share work.
pub fn count() -> usize {
    match pool() {
        Pool::Here => rayon::current_num_threads(),
        Pool::Child(pool) => pool.current_num_threads(),
        Pool::Alone => 1,
    }
}

/// Calls `work` such that its parallel iterators use the threads of this process. Call it only if [`count`] is more than 1.
pub(crate) fn share<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match pool() {
        Pool::Child(pool) => pool.install(work),
        Pool::Here | Pool::Alone => work(),
    }
}

/// Calls `work` in a thread of the pool and `meanwhile` in this one. Returns when both are done.
pub fn beside<T: Send, U>(work: impl FnOnce() -> T + Send, meanwhile: impl FnOnce() -> U) -> (Option<T>, U) {
    let mut done = None;
    let seen = match pool() {
        Pool::Here => rayon::in_place_scope(|scope| {
            scope.spawn(|_| done = Some(work()));
            meanwhile()
        }),
        Pool::Child(pool) => pool.in_place_scope(|scope| {
            scope.spawn(|_| done = Some(work()));
            meanwhile()
        }),
        Pool::Alone => std::thread::scope(|scope| {
            scope.spawn(|| done = Some(work()));
            meanwhile()
        }),
    };
    (done, seen)
}
