//! Half precision: 16 x 16, exact products of 9-bit mantissas.

use super::power_of_two;
use crate::num::blockfloat::EXTENSION;
use crate::num::mau::{add_odd, flip, round_to, round_to_single, single_to_f64, MauNeg};
use crate::num::MAB_PES;

/// Lanes of a long word.
const LANES: usize = 4;

/// Elements of a block.
const N: usize = LANES * MAB_PES;

const EXP: u16 = 0x7E00;
const FRAC: u16 = 0x01FF;

/// A decoded matrix register of halves.
///
/// Rows are stored lane by lane (all PEs' first results, then all second ones) and columns in the order in which a row
/// of long words lies in memory, so that products and sums run over whole vectors.
#[derive(Clone, Debug)]
pub struct HMatrix {
    /// Signed mantissas in units of an extended element, `[column][row]`.
    mantissas: [[f32; N]; N],
    /// Exponent field of each row.
    exponents: [i64; N],
    /// Whether any element is extended.
    extended: bool,
}

/// Where row `i` of a register is stored.
const fn place(i: usize) -> usize {
    i % LANES * MAB_PES + i / LANES
}

/// Signed mantissa in units of an extended element.
#[inline(always)]
fn mantissa(v: u16) -> f32 {
    let ordinary = i32::from(v & EXP != 0);
    let f = i32::from(v & FRAC);
    let f = f + ordinary * ((f << EXTENSION) - f);
    // Conditional negation; spelled as a branch it keeps the loops around it from vectorising.
    let sign = -i32::from(v >> 15);
    ((f ^ sign) - sign) as f32
}

/// The mantissa of an extended element, else 0.
#[inline(always)]
fn extension(v: u16) -> u16 {
    v & FRAC & u16::from(v & EXP != 0).wrapping_sub(1)
}

impl HMatrix {
    /// Decodes a register from its raw halves, `[row][column]`.
    #[must_use]
    pub fn decode(rows: &[[u16; N]; N]) -> Self {
        let mut matrix = Self { mantissas: [[0.0; N]; N], exponents: [0; N], extended: false };
        let mut decoded = [[0.0; N]; N];
        let mut extended = 0;
        for (i, (row, decoded)) in rows.iter().zip(&mut decoded).enumerate() {
            let mut exponent = 0;
            for (m, &v) in decoded.iter_mut().zip(row) {
                *m = mantissa(v);
                exponent = (v & EXP).max(exponent);
                extended |= extension(v);
            }
            matrix.exponents[place(i)] = i64::from(exponent >> 9);
        }
        matrix.extended = extended != 0;
        for (i, row) in decoded.iter().enumerate() {
            for (j, &m) in row.iter().enumerate() {
                // The last lane of a little-endian long word comes first in memory.
                matrix.mantissas[j ^ (LANES - 1)][place(i)] = m;
            }
        }
        matrix
    }

    /// The exact products of the rows and the vector, in stored order.
    #[inline(always)]
    fn times(&self, x: &[u64], flip: u64) -> [f64; N] {
        let mut block = [0; MAB_PES];
        for (b, &v) in block.iter_mut().zip(x) {
            *b = v ^ flip;
        }
        let block: &[u16] = bytemuck::cast_slice(&block);
        let mut vector = [0f32; N];
        let (mut exponent, mut extended) = (0, 0);
        for (m, &v) in vector.iter_mut().zip(block) {
            *m = mantissa(v);
            exponent = (v & EXP).max(exponent);
            extended |= extension(v);
        }

        let mut sums = [0f64; N];
        if self.extended | (extended != 0) {
            // guess: products with extended elements are exact, nothing is lost by their shift.
            for (column, &x) in self.mantissas.iter().zip(&vector) {
                for (sum, &a) in sums.iter_mut().zip(column) {
                    *sum += f64::from(a) * f64::from(x);
                }
            }
        } else {
            // Without extended elements every product is a multiple of 2^12 below 2^30: 16 of them are exact in singles.
            let mut short = [0f32; N];
            for (column, &x) in self.mantissas.iter().zip(&vector) {
                for (sum, &a) in short.iter_mut().zip(column) {
                    *sum += a * x;
                }
            }
            for (sum, s) in sums.iter_mut().zip(short) {
                *sum = f64::from(s);
            }
        }
        // A mantissa's unit is 2^(E - 31 - 8), and 2^6 less for extended elements.
        let unit = i64::from(exponent >> 9) - 2 * (31 + 8 + i64::from(EXTENSION));
        for (sum, e) in sums.iter_mut().zip(&self.exponents) {
            *sum *= power_of_two(e + unit);
        }
        sums
    }
}

/// `out = A * x + z` per MAB: `x` is a row of 4 halves, addend and output are 4 singles in two rows (L0, L1). PE p holds
/// elements `4p..4p + 4`.
pub fn h_mfma(a: &[HMatrix], x: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg, out0: &mut [u64], out1: &mut [u64]) {
    let single = round_to_single;
    let outs = out0.chunks_exact_mut(MAB_PES).zip(out1.chunks_exact_mut(MAB_PES));
    for (mab, (a, (out0, out1))) in a.iter().zip(outs).enumerate() {
        let s = sums(a, mab, x, z0, z1, neg);
        for (p, (o0, o1)) in out0.iter_mut().zip(out1).enumerate() {
            *o0 = single(s[0][p]) << 32 | single(s[1][p]);
            *o1 = single(s[2][p]) << 32 | single(s[3][p]);
        }
    }
}

/// As [`h_mfma`], rounded once to a row of 4 halves.
pub fn h_mfma_r(a: &[HMatrix], x: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg, out: &mut [u64]) {
    let half = round_to::<6, 9>;
    for (mab, (a, out)) in a.iter().zip(out.chunks_exact_mut(MAB_PES)).enumerate() {
        let s = sums(a, mab, x, z0, z1, neg);
        for (p, o) in out.iter_mut().enumerate() {
            *o = half(s[0][p]) << 48 | half(s[1][p]) << 32 | half(s[2][p]) << 16 | half(s[3][p]);
        }
    }
}

/// Products plus addends of one MAB as doubles rounded to odd, `[lane][PE]`.
#[inline(always)]
fn sums(a: &HMatrix, mab: usize, x: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg) -> [[u64; MAB_PES]; LANES] {
    let pes = mab * MAB_PES..(mab + 1) * MAB_PES;
    let products = a.times(&x[pes.clone()], flip(neg.x, 16));
    let nz = flip(neg.z, 32);
    let mut sums = [[0; MAB_PES]; LANES];
    for (p, (&z0, &z1)) in z0[pes.clone()].iter().zip(&z1[pes]).enumerate() {
        let (z0, z1) = (z0 ^ nz, z1 ^ nz);
        let z = [z0 >> 32, z0 & 0xFFFF_FFFF, z1 >> 32, z1 & 0xFFFF_FFFF];
        for k in 0..LANES {
            sums[k][p] = add_odd(products[k * MAB_PES + p], single_to_f64(z[k]));
        }
    }
    sums
}
