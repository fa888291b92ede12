//! How often a board is asked before a time-out. The emulator keeps these numbers, and asks as often as it helps: a wait ends
//! when its work is done, or when nothing can make progress any more.

/// One of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The start check of transfers.
    DdmaKickVerify,
    /// The end of transfers.
    DdmaComplete,
    /// The start check of kernels.
    IdmaKickVerify,
    /// The end of kernels.
    IdmaComplete,
}

/// The limits of a device.
#[derive(Clone, Copy, Debug)]
pub struct Limits([i32; 4]);

impl Default for Limits {
    fn default() -> Self {
        Limits([100, 2000, 100, 5000])
    }
}

impl Limits {
    /// The current value.
    pub fn get(&self, limit: Limit) -> i32 {
        self.0[limit as usize]
    }

    /// Sets a limit and returns its previous value. guess: a count below 1 changes nothing.
    pub fn set(&mut self, limit: Limit, count: i32) -> i32 {
        let previous = self.get(limit);
        if count > 0 {
            self.0[limit as usize] = count;
        }
        previous
    }
}
