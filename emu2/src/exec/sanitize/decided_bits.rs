//! Bits of bitwise operations that a defined input decides: an `and` with a defined 0 is 0, whatever the other bit is.

use crate::machine::Path;

/// Rows for one operation.
#[derive(Clone, Debug)]
pub(super) struct DecidedBits {
    /// The sources with other bits in undefined places, and a result.
    x: Vec<u64>,
    y: Vec<u64>,
    out: Vec<u64>,
    /// For all results so far: the bits that were 1 in each, and those that were 1 in some.
    every: Vec<u64>,
    some: Vec<u64>,
}

impl DecidedBits {
    pub(super) fn new(lanes: usize) -> DecidedBits {
        let row = || vec![0; lanes];
        DecidedBits { x: row(), y: row(), out: row(), every: row(), some: row() }
    }

    /// Writes the validity of the result to `out`; of its second long word only if `second`. `values` and `validity` are
    /// those of the two sources.
    ///
    /// Each bit of the result depends on one bit of each source. So it is defined if it is the same with zeros and with
    /// ones in the undefined bits of each source.
    pub(super) fn decided(
        &mut self,
        operation: impl Fn(&[u64], &[u64], &mut [u64]),
        values: [Path<'_>; 2],
        validity: [Path<'_>; 2],
        second: bool,
        [l0, l1]: [&mut [u64]; 2],
    ) {
        let (x, y) = ((values[0].0, validity[0].0), (values[1].0, validity[1].0));
        self.row(&operation, x, y, l0);
        if second {
            let (x, y) = ((values[0].1, validity[0].1), (values[1].1, validity[1].1));
            self.row(&operation, x, y, l1);
        }
    }

    fn row(&mut self, operation: impl Fn(&[u64], &[u64], &mut [u64]), x: Path<'_>, y: Path<'_>, row: &mut [u64]) {
        self.every.fill(u64::MAX);
        self.some.fill(0);
        for (a, b) in [(0, 0), (0, u64::MAX), (u64::MAX, 0), (u64::MAX, u64::MAX)] {
            fill(x, a, &mut self.x);
            fill(y, b, &mut self.y);
            operation(&self.x, &self.y, &mut self.out);
            self.every.iter_mut().zip(&self.out).for_each(|(every, out)| *every &= out);
            self.some.iter_mut().zip(&self.out).for_each(|(some, out)| *some |= out);
        }
        let results = self.every.iter().zip(&self.some);
        row.iter_mut().zip(results).for_each(|(row, (every, some))| *row = !(every ^ some));
    }
}

/// Copies values with the bits of `other` where they are undefined.
fn fill((values, validity): Path<'_>, other: u64, to: &mut [u64]) {
    let pairs = values.iter().zip(validity);
    to.iter_mut().zip(pairs).for_each(|(to, (value, valid))| *to = value & valid | other & !valid);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of the sources, and whether they are defined.
    const X: (u64, u64) = (0b0011_0011, 0b0000_1111);
    const Y: (u64, u64) = (0b0101_0101, 0b0101_1010);

    fn validity(operation: fn(u64, u64) -> u64) -> u64 {
        let mut row = [0];
        DecidedBits::new(1).row(
            |x, y, out| out[0] = operation(x[0], y[0]),
            (&[X.0], &[X.1]),
            (&[Y.0], &[Y.1]),
            &mut row,
        );
        row[0] & 0xFF
    }

    #[test]
    fn each_bit_by_itself() {
        let both = X.1 & Y.1;
        let zero = |(value, valid): (u64, u64)| !value & valid;
        let one = |(value, valid): (u64, u64)| value & valid;
        let table: [(fn(u64, u64) -> u64, u64); 4] = [
            (|x, y| x & y, both | zero(X) | zero(Y)),
            (|x, y| x | y, both | one(X) | one(Y)),
            (|x, y| x ^ y, both),
            (|x, _| x, X.1),
        ];
        for (operation, expected) in table {
            assert_eq!(validity(operation), expected);
        }
    }
}
