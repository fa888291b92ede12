//! Distances between lines that stand in order.

use crate::rules::{up, Rules};
use crate::timeline::Needs;
use crate::touches::Access;

/// The steps that must pass before a line or an MV is legal behind the lines of the last steps, newest first.
pub fn distance<'a>(rules: &Rules, recent: impl Iterator<Item = Option<&'a Needs>>, next: &Needs) -> i64 {
    let mut most = 0;
    for (back, before) in (1..).zip(recent) {
        for write in before.into_iter().flat_map(|line| line.accesses(true)) {
            for read in next.accesses(false).filter(|read| read.memory == write.memory) {
                most = most.max(apart(rules, write, read) - back);
            }
        }
    }
    most
}

/// The steps after a write from which a read of the same memory is legal.
fn apart(rules: &Rules, write: &Access, read: &Access) -> i64 {
    let mut most = 0;
    let applies = rules.applying(write.memory, (write.slot, write.source), read.slot);
    for rule in applies.filter(|rule| rule.port || write.touches(read)) {
        most = most.max(match rule.steps {
            Some(steps) => steps + 1,
            None => in_cycles(write, read, rule.cycles.unwrap_or(0), rules.cycles),
        });
    }
    most
}

/// The steps after which no word is read in fewer than `gap` cycles after the one that writes it.
fn in_cycles(write: &Access, read: &Access, gap: i64, cycles: i64) -> i64 {
    let mut most = 0;
    for (wrote, written) in (0..).zip(&write.cycles) {
        for (reads, _) in (0..).zip(&read.cycles).filter(|(_, word)| *word == written) {
            most = most.max(up(gap + 1 - reads + wrote, cycles));
        }
    }
    most
}
