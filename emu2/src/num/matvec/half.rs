//! Half precision: 16 x 16, exact products of 9-bit mantissas.

use super::{block, cycles, first, in_pieces, power_of_two, vectors, MABS, TOGETHER};
use crate::num::blockfloat::EXTENSION;
use crate::num::level::{fusing_kernel, kernel};
use crate::num::mau::{add_odd, flip, flushed_single, round_to, round_to_single, single_to_f64, MauNeg};
use crate::num::MAB_PES;

/// Lanes of a long word.
const LANES: usize = 4;

/// Elements of a block.
const N: usize = LANES * MAB_PES;

/// What a MAB has in the row L0 or L1 of singles.
type Plane = [f32; N / 2];

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

/// Signed mantissa of an element that is not extended.
#[inline(always)]
fn short_mantissa(v: u16) -> f32 {
    let sign = v as i16 >> 15;
    f32::from(((v & FRAC) as i16 ^ sign) - sign)
}

/// Units of an extended element in that of another one.
const EXTENDED: f32 = (1u32 << EXTENSION) as f32;

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

    /// The products of the rows and `C` vectors, [`MABS`] apart as are their exponent fields and results, in stored order, if
    /// none has extended elements: then every product of mantissas is a multiple of 2^6 below 2^24, so that 16 of them are
    /// exact in singles, as is their sum times its unit.
    #[inline(always)]
    fn short<const FUSED: bool, const C: usize>(
        &self,
        vectors: &[[f32; N]],
        fields: &[u16],
        products: &mut [&mut [Plane]; 2],
    ) {
        let mut all = [[0f32; N]; C];
        for j in 0..N {
            for c in 0..C {
                let x = vectors[c * MABS][j];
                for i in 0..N {
                    let a = self.mantissas[j][i];
                    all[c][i] = if FUSED { a.mul_add(x, all[c][i]) } else { all[c][i] + a * x };
                }
            }
        }
        for c in 0..C {
            let unit = unit(fields[c * MABS]) * EXTENDED;
            for i in 0..N {
                all[c][i] *= self.units[i] * unit;
            }
            let (upper, lower) = all[c].split_at(N / 2);
            products[0][c * MABS].copy_from_slice(upper);
            products[1][c * MABS].copy_from_slice(lower);
        }
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
}

impl Vector {
    /// Decodes a block, the long words of the PEs of a MAB.
    #[inline(always)]
    fn decode(x: [u64; MAB_PES], flip: u64) -> Vector {
        let block: [u16; N] = bytemuck::cast(x.map(|x| x ^ flip));
        let mut mantissas = [0f32; N];
        let mut exponent = 0;
        for (m, v) in mantissas.iter_mut().zip(block) {
            *m = mantissa(v);
            exponent = (v & EXP).max(exponent);
        }
        Vector { mantissas, exponent }
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
    let (mabs, cycles) = (a.len(), cycles(a.len(), x.len()));
    let (nx, nz) = (flip(neg.x, 16), flip(neg.z, 32));
    let mut vectors = [[0f32; N]; MABS * TOGETHER];
    let mut products = [[[0.0; N / 2]; MABS * TOGETHER]; 2];
    let mut fields = [0; MABS * TOGETHER];
    in_pieces!(mabs, cycles, |mab, width, cycle, count| {
        let mut usual = true;
        for c in 0..count {
            let at = first(mabs, mab, cycle + c);
            let (row, into) = (&x[at..at + width * MAB_PES], c * MABS..c * MABS + width);
            let mantissas = vectors[into.clone()].as_flattened_mut();
            for (m, v) in mantissas.iter_mut().zip(bytemuck::cast_slice::<_, u16>(row)) {
                *m = short_mantissa(v ^ nx as u16);
            }
            usual &= uniform(row, &mut fields[into]);
        }
        let mut extended = 0;
        if !usual {
            for c in 0..count {
                let at = first(mabs, mab, cycle + c);
                unlike(&x[at..at + width * MAB_PES], &mut fields[c * MABS..c * MABS + width], &mut extended);
            }
        }
        let [upper, lower] = &mut products;
        for (m, a) in a[mab..mab + width].iter().enumerate() {
            if count == TOGETHER {
                let into = &mut [&mut upper[m..], &mut lower[m..]];
                a.short::<FUSED, TOGETHER>(&vectors[m..], &fields[m..], into);
            } else {
                for m in (0..count).map(|c| c * MABS + m) {
                    a.short::<FUSED, 1>(&vectors[m..], &fields[m..], &mut [&mut upper[m..], &mut lower[m..]]);
                }
            }
        }
        let mut most = 0;
        for c in 0..count {
            let at = first(mabs, mab, cycle + c);
            let (row, of) = (at..at + width * MAB_PES, c * MABS..c * MABS + width);
            most = add(upper[of.clone()].as_flattened(), &z0[row.clone()], nz as u32, &mut out0[row.clone()]).max(most);
            most = add(lower[of].as_flattened(), &z1[row.clone()], nz as u32, &mut out1[row]).max(most);
        }
        for a in &a[mab..mab + width] {
            extended |= u16::from(a.extended);
        }
        if extended == 0 && most < f32::INFINITY.to_bits() {
            continue;
        }
        for c in 0..count {
            for (m, a) in a[mab..mab + width].iter().enumerate() {
                let at = first(mabs, mab + m, cycle + c);
                let z = addends(block(z0, at), block(z1, at), nz);
                let mut bits = [0u32; N];
                exact(a, block(x, at), z, nx, &mut bits);
                let (upper, lower) = bits.split_at(N / 2);
                out0[at..at + MAB_PES].copy_from_slice(bytemuck::cast_slice(upper));
                out1[at..at + MAB_PES].copy_from_slice(bytemuck::cast_slice(lower));
            }
        }
    });
}

/// Products plus addends; the largest magnitude.
#[inline(always)]
fn add(products: &[f32], z: &[u64], flip: u32, out: &mut [u64]) -> u32 {
    let (z, out): (&[u32], &mut [u32]) = (bytemuck::cast_slice(z), bytemuck::cast_slice_mut(out));
    let mut most = 0;
    for ((out, p), z) in out.iter_mut().zip(products).zip(z) {
        let s = p + flushed_single(z ^ flip);
        // Adding 0 makes -0 +0.
        *out = (s + 0.0).to_bits();
        most = most.max(*out & 0x7FFF_FFFF);
    }
    most
}

/// One of something in each half of a long word.
const EACH: u64 = 0x0001_0001_0001_0001;

/// The exponent fields of vectors that follow each other. False: the elements of some vector differ in it, or have none and
/// are not all 0.
#[inline(always)]
fn uniform(row: &[u64], fields: &mut [u16]) -> bool {
    let mut unlike = 0;
    for (field, x) in fields.iter_mut().zip(row.as_chunks::<MAB_PES>().0) {
        *field = x[0] as u16 & EXP;
        let all = u64::from(*field) * EACH;
        let (mut differ, mut any) = (0, 0);
        for x in x {
            differ |= x ^ all;
            any |= x;
        }
        let bare = if *field == 0 { any & (u64::from(FRAC) * EACH) } else { 0 };
        unlike |= differ & (u64::from(EXP) * EACH) | bare;
    }
    unlike == 0
}

kernel! {
    /// The exponent fields of vectors whose elements need not share theirs; `extended` becomes other than 0 where one is
    /// extended.
    fn unlike(row: &[u64], fields: &mut [u16], extended: &mut u16) {
        let row: &[u16] = bytemuck::cast_slice(row);
        for (field, x) in fields.iter_mut().zip(row.chunks_exact(N)) {
            *field = x.iter().fold(0, |e, v| e.max(v & EXP));
            *extended |= x.iter().fold(0, |all, v| all | extension(*v));
        }
    }
}

kernel! {
    /// One vector in doubles.
    fn exact(a: &HMatrix, x: [u64; MAB_PES], z: [u32; N], flip: u64, bits: &mut [u32; N]) {
        for (bits, sum) in bits.iter_mut().zip(sums(a, &Vector::decode(x, flip), z)) {
            *bits = round_to_single(sum) as u32;
        }
    }
}

kernel! {
    /// As [`h_mfma`], rounded once to a row of 4 halves.
    pub fn h_mfma_r(a: &[HMatrix], x: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg, out: &mut [u64]) {
        let half = round_to::<6, 9>;
        let (nx, nz) = (flip(neg.x, 16), flip(neg.z, 32));
        for (mab, first) in vectors(a.len(), out.len()) {
            let (a, range) = (&a[mab], first..first + MAB_PES);
            let z = addends(block(z0, first), block(z1, first), nz);
            let s = sums(a, &Vector::decode(block(x, first), nx), z);
            for (p, o) in out[range].iter_mut().enumerate() {
                let lane = |k: usize| half(s[place(LANES * p + k)]);
                *o = lane(0) << 48 | lane(1) << 32 | lane(2) << 16 | lane(3);
            }
        }
    }
}

/// The addends of a MAB in stored order.
#[inline(always)]
fn addends(z0: [u64; MAB_PES], z1: [u64; MAB_PES], flip: u64) -> [u32; N] {
    let mut all = [0; N];
    all[..N / 2].copy_from_slice(bytemuck::cast_slice(&z0));
    all[N / 2..].copy_from_slice(bytemuck::cast_slice(&z1));
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
