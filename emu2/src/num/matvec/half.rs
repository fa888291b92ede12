//! Half precision: 16 x 16, exact products of 9-bit mantissas.

use super::{power_of_two, vectors};
use crate::num::blockfloat::EXTENSION;
use crate::num::level::{fusing_kernel, kernel};
use crate::num::mau::{add_odd, flip, flushed_single, round_to, round_to_single, single_to_f64, MauNeg};
use crate::num::MAB_PES;

/// Lanes of a long word.
const LANES: usize = 4;

/// Elements of a block.
const N: usize = LANES * MAB_PES;

const EXP: u16 = 0x7E00;
const FRAC: u16 = 0x01FF;

/// A decoded matrix register of halves.
///
/// Rows and columns are stored in the order in which results and vectors lie in memory, so that all loops run over whole
/// vectors.
#[derive(Clone, Debug)]
pub struct HMatrix {
    /// Signed mantissas in units of an extended element, `[column][row]`.
    mantissas: [[f32; N]; N],
    /// Exponent field of each row.
    exponents: [i64; N],
    /// What a mantissa's unit is worth in each row.
    units: [f32; N],
    /// Whether any element is extended.
    extended: bool,
}

/// Where row `i` of a register is stored: where its result lies in the rows L0 and L1 of singles, as they are in memory.
const fn place(i: usize) -> usize {
    let (pe, lane) = (i / LANES, i % LANES);
    // The last lane of a little-endian long word comes first.
    lane / 2 * (2 * MAB_PES) + 2 * pe + (1 - lane % 2)
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

/// What the unit of a signed mantissa is worth in a block with this exponent field: `2^(E - 31 - 8)`, and 2^6 less, since it
/// is that of an extended element.
#[inline(always)]
fn unit(field: u16) -> f32 {
    f32::from_bits((u32::from(field >> 9) + 127 - 31 - 8 - EXTENSION) << 23)
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
        let mut matrix = Self { mantissas: [[0.0; N]; N], exponents: [0; N], units: [0.0; N], extended: false };
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
            matrix.units[place(i)] = unit(exponent);
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

    /// The products of the rows and the vector in stored order, if neither has extended elements: then every product of
    /// mantissas is a multiple of 2^12 below 2^30, so that 16 of them are exact in singles, as is their sum times its unit.
    #[inline(always)]
    fn short<const FUSED: bool>(&self, vector: &Vector) -> [f32; N] {
        // Two sums, so that an addition need not wait for the one before.
        let (mut even, mut odd) = ([0f32; N], [0f32; N]);
        let pairs = self.mantissas.chunks_exact(2).zip(vector.mantissas.chunks_exact(2));
        for (columns, x) in pairs {
            for (sum, &a) in even.iter_mut().zip(&columns[0]) {
                *sum = if FUSED { a.mul_add(x[0], *sum) } else { *sum + a * x[0] };
            }
            for (sum, &a) in odd.iter_mut().zip(&columns[1]) {
                *sum = if FUSED { a.mul_add(x[1], *sum) } else { *sum + a * x[1] };
            }
        }
        let vector = unit(vector.exponent);
        for ((sum, odd), &row) in even.iter_mut().zip(odd).zip(&self.units) {
            *sum = (*sum + odd) * (row * vector);
        }
        even
    }

    /// The exact products of the rows and the vector, in stored order.
    #[inline(always)]
    fn times(&self, vector: &Vector) -> [f64; N] {
        let mut sums = [0f64; N];
        // guess: products with extended elements are exact, nothing is lost by their shift.
        for (column, &x) in self.mantissas.iter().zip(&vector.mantissas) {
            for (sum, &a) in sums.iter_mut().zip(column) {
                *sum += f64::from(a) * f64::from(x);
            }
        }
        // A mantissa's unit is 2^(E - 31 - 8), and 2^6 less for extended elements.
        let unit = i64::from(vector.exponent >> 9) - 2 * (31 + 8 + i64::from(EXTENSION));
        for (sum, e) in sums.iter_mut().zip(&self.exponents) {
            *sum *= power_of_two(e + unit);
        }
        sums
    }
}

/// A decoded vector.
struct Vector {
    mantissas: [f32; N],
    exponent: u16,
    extended: bool,
}

impl Vector {
    /// Decodes a block, the long words of the PEs of a MAB.
    #[inline(always)]
    fn decode(x: &[u64], flip: u64) -> Vector {
        let mut block = [0; MAB_PES];
        for (b, &v) in block.iter_mut().zip(x) {
            *b = v ^ flip;
        }
        let block: &[u16] = bytemuck::cast_slice(&block);
        let mut mantissas = [0f32; N];
        let (mut exponent, mut extended) = (0, 0);
        for (m, &v) in mantissas.iter_mut().zip(block) {
            *m = mantissa(v);
            exponent = (v & EXP).max(exponent);
            extended |= extension(v);
        }
        Vector { mantissas, exponent, extended: extended != 0 }
    }
}

fusing_kernel! {
    /// `out = A * x + z` per MAB: `x` is a row of 4 halves, addend and output are 4 singles in two rows (L0, L1). PE p holds
    /// elements `4p..4p + 4`.
    pub fn h_mfma(a: &[HMatrix], x: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg, out0: &mut [u64], out1: &mut [u64]) = rows::<FUSED>;
}

#[inline(always)]
fn rows<const FUSED: bool>(
    a: &[HMatrix],
    x: &[u64],
    z0: &[u64],
    z1: &[u64],
    neg: MauNeg,
    out0: &mut [u64],
    out1: &mut [u64],
) {
    let (nx, nz) = (flip(neg.x, 16), flip(neg.z, 32));
    for (mab, first) in vectors(a.len(), x.len()) {
        let (a, range) = (&a[mab], first..first + MAB_PES);
        let vector = Vector::decode(&x[range.clone()], nx);
        let z = addends(&z0[range.clone()], &z1[range.clone()], nz);
        let extended = a.extended | vector.extended;
        let mut bits = [0u32; N];
        let mut doubtful = 0;
        if !extended {
            let products = a.short::<FUSED>(&vector);
            for ((bits, p), z) in bits.iter_mut().zip(products).zip(z) {
                let s = p + flushed_single(z);
                doubtful |= u32::from(!s.is_finite());
                // Adding 0 makes -0 +0.
                *bits = (s + 0.0).to_bits();
            }
        }
        if extended | (doubtful != 0) {
            for (bits, sum) in bits.iter_mut().zip(sums(a, &vector, z)) {
                *bits = round_to_single(sum) as u32;
            }
        }
        let (upper, lower) = bits.split_at(N / 2);
        bytemuck::cast_slice_mut(&mut out0[range.clone()]).copy_from_slice(upper);
        bytemuck::cast_slice_mut(&mut out1[range]).copy_from_slice(lower);
    }
}

kernel! {
    /// As [`h_mfma`], rounded once to a row of 4 halves.
    pub fn h_mfma_r(a: &[HMatrix], x: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg, out: &mut [u64]) {
        let half = round_to::<6, 9>;
        let (nx, nz) = (flip(neg.x, 16), flip(neg.z, 32));
        for (mab, first) in vectors(a.len(), out.len()) {
            let (a, range) = (&a[mab], first..first + MAB_PES);
            let z = addends(&z0[range.clone()], &z1[range.clone()], nz);
            let s = sums(a, &Vector::decode(&x[range.clone()], nx), z);
            for (p, o) in out[range].iter_mut().enumerate() {
                let lane = |k: usize| half(s[place(LANES * p + k)]);
                *o = lane(0) << 48 | lane(1) << 32 | lane(2) << 16 | lane(3);
            }
        }
    }
}

/// The addends of a MAB in stored order.
#[inline(always)]
fn addends(z0: &[u64], z1: &[u64], flip: u64) -> [u32; N] {
    let mut all = [0; N];
    all[..N / 2].copy_from_slice(bytemuck::cast_slice(z0));
    all[N / 2..].copy_from_slice(bytemuck::cast_slice(z1));
    for z in &mut all {
        *z ^= flip as u32;
    }
    all
}

/// Products plus addends of one MAB as doubles rounded to odd, in stored order.
#[inline(always)]
fn sums(a: &HMatrix, vector: &Vector, z: [u32; N]) -> [u64; N] {
    let products = a.times(vector);
    let mut sums = [0; N];
    for ((sum, p), z) in sums.iter_mut().zip(products).zip(z) {
        *sum = add_odd(p, single_to_f64(u64::from(z)));
    }
    sums
}
