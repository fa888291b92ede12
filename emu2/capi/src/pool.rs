//! Tags, waits and register sets that a program reserves: small numbers, each taken at most once.
//!
//! guess: the lowest free number is taken, and giving a number back that is not taken is an error.

use crate::status::{Refusal, Status};
use std::ops::RangeInclusive;

/// A pool of numbers below 64.
#[derive(Clone, Debug)]
pub struct Pool {
    name: &'static str,
    range: RangeInclusive<u32>,
    taken: u64,
}

impl Pool {
    /// A pool with every number of `range`, which ends below 64.
    pub fn new(name: &'static str, range: RangeInclusive<u32>) -> Pool {
        Pool { name, range, taken: 0 }
    }

    /// Takes a number.
    ///
    /// # Errors
    /// [`Status::Busy`] if all are taken.
    pub fn take(&mut self) -> Result<u32, Refusal> {
        let free = self.range.clone().find(|number| self.taken >> number & 1 == 0);
        let free = free.ok_or_else(|| Refusal::new(Status::Busy, format!("every {} is taken", self.name)))?;
        self.taken |= 1 << free;
        Ok(free)
    }

    /// Gives a number back.
    ///
    /// # Errors
    /// [`Status::Param`] if it is not taken.
    pub fn give_back(&mut self, number: u32) -> Result<(), Refusal> {
        self.check_taken(number)?;
        self.taken &= !(1 << number);
        Ok(())
    }

    /// Checks that a number is taken.
    ///
    /// # Errors
    /// [`Status::Param`] if it is not.
    pub fn check_taken(&self, number: u32) -> Result<(), Refusal> {
        if self.range.contains(&number) && self.taken >> number & 1 == 1 {
            return Ok(());
        }
        Err(Refusal::param(format!("{} {number} is not taken", self.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_once() {
        let mut pool = Pool::new("tag", 1..=3);
        assert_eq!((0..3).map(|_| pool.take().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(pool.take().unwrap_err().status, Status::Busy);
        pool.give_back(2).unwrap();
        assert_eq!(pool.give_back(2).unwrap_err().status, Status::Param);
        assert_eq!(pool.take(), Ok(2));
        assert_eq!([0, 4, 64, u32::MAX].map(|n| pool.give_back(n).unwrap_err().status), [Status::Param; 4]);
    }
}
