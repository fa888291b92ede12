//! Half precision: 16 x 16, exact products of 9-bit mantissas.

use super::half_element::{is_extended, mantissa, short_mantissa, unit_of, EXP, EXTENDED, FRAC};
use super::{block, in_pieces, long_words, power_of_two, Cycle, MABS, TOGETHER};
use crate::num::blockfloat::{largest, EXTENSION};
use crate::num::clone_choice::choosing_kernel;
use crate::num::level::kernel;
use crate::num::mau::{add_odd, flip, round_to, round_to_single, single_to_f64, MauNeg};
use crate::num::MAB_PES;

/// Lanes of a long word.
const LANES: usize = 4;

/// Elements of a block.
const N: usize = LANES * MAB_PES;

/// Pairs of elements.
const PAIRS: usize = N / 2;

/// The singles of a MAB in row L0 or in row L1.
type Plane = [i32; N / 2];

/// A decoded matrix register of halves.
///
/// Hosts multiply 16-bit integers in pairs and add the two products. In a vector register of the host, each of several rows
/// has such a pair of columns. The rows take different columns in turn. So a vector of the machine is read as it lies in
/// memory, from its element pair `s` on, and no part of it has to be repeated for all rows.
///
/// Rows and columns are stored in the order in which results and vectors lie in memory.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct HMatrix {
    /// Signed mantissas in units of an extended element: entry `[s][i]` is the column pair `(i + s) % PAIRS` of row `i`.
    diagonals: [[[[i16; 2]; PAIRS]; 2]; PAIRS],
    /// Exponent field of each row.
    exponents: [u8; N],
    /// The value of a mantissa's unit in each row.
    units: [[f32; PAIRS]; 2],
    /// Whether any element is extended.
    extended: bool,
}

/// A decoded vector. It holds its signed mantissas twice, so that all pairs follow each other from any start.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Vector([[i16; 2]; 2 * PAIRS]);

/// Where row `i` of a register is stored: at the place of its result in the rows L0 and L1 of singles in memory.
const fn place(i: usize) -> usize {
    let (pe, lane) = (i / LANES, i % LANES);
    // The last lane of a little-endian long word comes first.
    lane / 2 * (2 * MAB_PES) + 2 * pe + (1 - lane % 2)
}

impl HMatrix {
    const ZERO: HMatrix = HMatrix {
        diagonals: [[[[0; 2]; PAIRS]; 2]; PAIRS],
        exponents: [0; N],
        units: [[0.0; PAIRS]; 2],
        extended: false,
    };

    /// Decodes the registers of `mabs` consecutive MABs from their long words, `[row][MAB][PE]`.
    #[must_use]
    pub fn decode(register: &[u64], mabs: usize) -> Vec<Self> {
        let mut matrices = Vec::new();
        Self::decode_into(register, mabs, &mut matrices);
        matrices
    }

    /// Does the same as [`HMatrix::decode`] in memory that has been used before.
    pub fn decode_into(register: &[u64], mabs: usize, matrices: &mut Vec<Self>) {
        matrices.resize(mabs, Self::ZERO);
        decode_matrices(register, matrices);
    }

    /// The sums of products of the rows and the vectors of MAB `m` in [`TOGETHER`] cycles. No element may be extended.
    #[inline(always)]
    fn short(&self, m: usize, vectors: &[[Vector; MABS]; TOGETHER], sums: &mut [[[Plane; MABS]; 2]; TOGETHER]) {
        let mut all = [[[0i32; PAIRS]; 2]; TOGETHER];
        for s in 0..PAIRS {
            for c in 0..TOGETHER {
                for half in 0..2 {
                    let sums = pair_sums(&self.diagonals[s][half], &vectors[c][m], s);
                    for i in 0..PAIRS {
                        all[c][half][i] += sums[i];
                    }
                }
            }
        }
        for c in 0..TOGETHER {
            for half in 0..2 {
                sums[c][half][m] = all[c][half];
            }
        }
    }

    /// The exact products of the rows and the vector, in stored order.
    #[inline(always)]
    fn times(&self, vector: &Vector, field: u16) -> [f64; N] {
        let mut all = [0f64; N];
        // guess: products with extended elements are exact. Their shift loses nothing.
        for s in 0..PAIRS {
            for half in 0..2 {
                let sums = pair_sums(&self.diagonals[s][half], vector, s);
                for i in 0..PAIRS {
                    all[half * PAIRS + i] += f64::from(sums[i]);
                }
            }
        }
        // A mantissa's unit is 2^(E - 31 - 8), and 2^6 less for extended elements.
        let unit = i64::from(field >> 9) - 2 * (31 + 8 + i64::from(EXTENSION));
        for (sum, e) in all.iter_mut().zip(&self.exponents) {
            *sum *= power_of_two(i64::from(*e) + unit);
        }
        all
    }
}

/// The products of each row's pair on diagonal `s`, added. Two products of mantissas are less than 2^31, even if one
/// element is extended and the other one counts in units of extended elements.
///
/// The loop is separate, and its sums are not added to others here. Otherwise the compiler reorders them and finds no
/// pairs.
#[inline(always)]
fn pair_sums(diagonal: &[[i16; 2]; PAIRS], vector: &Vector, s: usize) -> [i32; PAIRS] {
    let mut sums = [0; PAIRS];
    for i in 0..PAIRS {
        let (a, x) = (diagonal[i], vector.0[s + i]);
        sums[i] = i32::from(a[0]) * i32::from(x[0]) + i32::from(a[1]) * i32::from(x[1]);
    }
    sums
}

impl Vector {
    const ZERO: Vector = Vector([[0; 2]; 2 * PAIRS]);

    #[inline(always)]
    fn new(mantissas: [i16; N]) -> Vector {
        let mut twice = [[0; N]; 2];
        twice.fill(mantissas);
        Vector(bytemuck::cast(twice))
    }

    /// Decodes a block, which is the long words of the PEs of a MAB. Also returns its exponent field.
    #[inline(always)]
    fn decode(x: [u64; MAB_PES], flip: u64) -> (Vector, u16) {
        let block: [u16; N] = bytemuck::cast(x.map(|x| x ^ flip));
        let (mut mantissas, mut exponent) = ([0; N], 0);
        for (m, v) in mantissas.iter_mut().zip(block) {
            *m = mantissa(v);
            exponent = exponent.max(v & EXP);
        }
        (Vector::new(mantissas), exponent)
    }
}

choosing_kernel! {
    /// `out = A * x + z` per MAB. x is 4 halves, addend and result are 4 singles on L0 and L1. PE p holds elements
    /// `4p..4p + 4`.
    pub fn h_mfma(a: &[HMatrix], cycles: &mut [Cycle<'_>], neg: MauNeg) {
        products::<false>(a, cycles, neg);
    }

    /// Does the same as [`h_mfma`], with the addends that lie in `out`. `z` is not read.
    pub fn h_mfma_onto(a: &[HMatrix], cycles: &mut [Cycle<'_>], neg: MauNeg) {
        products::<true>(a, cycles, neg);
    }

    /// Computes [`h_mfma`], rounded once to 4 halves on L0.
    pub fn h_mfma_r(a: &[HMatrix], cycles: &mut [Cycle<'_>], neg: MauNeg) {
        let half = round_to::<6, 9>;
        let (nx, nz) = (flip(neg.x, 16), flip(neg.z, 32));
        for Cycle { x, z, out } in cycles {
            for (mab, a) in a.iter().enumerate() {
                let (vector, field) = Vector::decode(block(x, mab), nx);
                let s = sums(a, &vector, field, addends(*z, mab, nz));
                for (p, o) in out[0][long_words(mab, 1)].iter_mut().enumerate() {
                    let lane = |k: usize| half(s[place(LANES * p + k)]);
                    *o = lane(0) << 48 | lane(1) << 32 | lane(2) << 16 | lane(3);
                }
            }
        }
    }
}

/// [`h_mfma`]. `ONTO`: the addends lie in `out`.
#[inline(always)]
fn products<const ONTO: bool>(a: &[HMatrix], cycles: &mut [Cycle<'_>], neg: MauNeg) {
    let (nx, nz) = (flip(neg.x, 16), flip(neg.z, 32));
    let mut vectors = [[Vector::ZERO; MABS]; TOGETHER];
    let mut units = [[0.0; MABS]; TOGETHER];
    let mut sums = [[[[0; PAIRS]; MABS]; 2]; TOGETHER];
    // The addends of a piece, which rare elements need again after the results have been written over them.
    let mut held = [[[0; MABS * MAB_PES]; 2]; TOGETHER];
    in_pieces!(a, cycles, |mab, a, piece| {
        let at = || long_words(mab, a.len());
        let mut usual = true;
        for ((cycle, vectors), units) in piece.iter().zip(&mut vectors).zip(&mut units) {
            usual &= decode(&cycle.x[at()], nx as u16, vectors, units);
        }
        let mut extended = false;
        if !usual {
            for (cycle, units) in piece.iter().zip(&mut units) {
                unlike(&cycle.x[at()], units, &mut extended);
            }
        }
        for (m, a) in a.iter().enumerate() {
            extended |= a.extended;
            a.short(m, &vectors, &mut sums);
        }
        let mut most = [0; PAIRS];
        for (c, (Cycle { z, out, .. }, sums)) in piece.iter_mut().zip(&sums).enumerate() {
            for half in 0..2 {
                let out = &mut out[half][at()];
                let z = if ONTO {
                    let held = &mut held[c][half][..out.len()];
                    held.copy_from_slice(out);
                    &*held
                } else {
                    &z[half][at()]
                };
                add(a, half, &sums[half], &units[c], z, nz as u32, out, &mut most);
            }
        }
        if extended || most.iter().any(|most| *most >= f32::INFINITY.to_bits()) {
            for (c, Cycle { x, z, out }) in piece.iter_mut().enumerate() {
                let z: [&[u64]; 2] = std::array::from_fn(|half| if ONTO { &held[c][half][..] } else { &z[half][at()] });
                let [o0, o1] = out;
                exactly(a, &x[at()], z, [&mut o0[at()], &mut o1[at()]], nx, nz);
            }
        }
    });
}

kernel! {
    /// Decodes registers from their long words, `[row][MAB][PE]`.
    fn decode_matrices(register: &[u64], matrices: &mut [HMatrix]) {
        let lanes = matrices.len() * MAB_PES;
        for (mab, matrix) in matrices.iter_mut().enumerate() {
            // Each row's mantissas in the order of memory, twice, so that pairs follow each other from any start.
            let mut rows = [Vector::ZERO; N];
            let mut fields = [0; N];
            let (mut differ, mut least) = ([0; N], [u16::MAX; N]);
            for (i, row) in register.chunks_exact(lanes).take(N).enumerate() {
                let row: [u16; N] = bytemuck::cast(block(row, mab));
                let mut mantissas = [0; N];
                for j in 0..N {
                    mantissas[j] = short_mantissa(row[j]) << EXTENSION;
                    differ[j] |= row[j] ^ row[0];
                    // Here 0 wraps to the largest number.
                    least[j] = least[j].min((row[j] & (EXP | FRAC)).wrapping_sub(1));
                }
                rows[place(i)] = Vector::new(mantissas);
                fields[place(i)] = row[0] & EXP;
            }
            matrix.extended = false;
            let differ = differ.iter().fold(0, |all, d| all | d & EXP);
            if (differ != 0) | (largest(least.map(|size| !size)) > !FRAC) {
                matrix.extended = unlike_rows(register, mab, lanes, &mut rows, &mut fields);
            }
            for half in 0..2 {
                for i in 0..PAIRS {
                    let field = fields[half * PAIRS + i];
                    matrix.exponents[half * PAIRS + i] = (field >> 9) as u8;
                    matrix.units[half][i] = unit_of(field);
                }
            }
            for (s, diagonal) in matrix.diagonals.iter_mut().enumerate() {
                for (half, rows) in rows.as_chunks::<PAIRS>().0.iter().enumerate() {
                    for i in 0..PAIRS {
                        diagonal[half][i] = rows[i].0[i + s];
                    }
                }
            }
        }
    }

    /// Computes the MABs of a cycle in doubles. The rows begin at the first of them.
    fn exactly(a: &[HMatrix], x: &[u64], z: [&[u64]; 2], out: [&mut [u64]; 2], nx: u64, nz: u64) {
        let mut out = out;
        for (mab, a) in a.iter().enumerate() {
            let (vector, field) = Vector::decode(block(x, mab), nx);
            let sums = sums(a, &vector, field, addends(z, mab, nz));
            let bits = sums.map(|sum| round_to_single(sum) as u32);
            for (out, bits) in out.iter_mut().zip(bits.chunks_exact(N / 2)) {
                out[long_words(mab, 1)].copy_from_slice(bytemuck::cast_slice(bits));
            }
        }
    }

    /// The exponent fields of vectors whose elements need not share one. Sets `extended` if an element is extended.
    fn unlike(row: &[u64], units: &mut [f32; MABS], extended: &mut bool) {
        let row: &[u16] = bytemuck::cast_slice(row);
        for (unit, x) in units.iter_mut().zip(row.chunks_exact(N)) {
            *unit = unit_of(x.iter().fold(0, |e, v| e.max(v & EXP))) * EXTENDED;
            *extended |= x.iter().any(|v| is_extended(*v));
        }
    }
}

/// Decodes the rows of a register whose elements differ in their exponent fields or are extended. Returns whether one is
/// extended.
fn unlike_rows(register: &[u64], mab: usize, lanes: usize, rows: &mut [Vector; N], fields: &mut [u16; N]) -> bool {
    let mut extended = false;
    for (i, row) in register.chunks_exact(lanes).take(N).enumerate() {
        let row: [u16; N] = bytemuck::cast(block(row, mab));
        (rows[place(i)], fields[place(i)]) = (Vector::new(row.map(mantissa)), largest(row.map(|v| v & EXP)));
        extended |= row.iter().any(|v| is_extended(*v));
    }
    extended
}

/// Decodes consecutive vectors as if none had extended elements. Returns false if the elements of a vector differ in their
/// exponent fields, or if a vector has extended elements.
#[inline(always)]
fn decode(row: &[u64], flip: u16, vectors: &mut [Vector; MABS], units: &mut [f32; MABS]) -> bool {
    let (blocks, _) = bytemuck::cast_slice::<_, u16>(row).as_chunks::<N>();
    let (mut differ, mut least) = ([0; N], [u16::MAX; N]);
    for ((x, vector), unit) in blocks.iter().zip(vectors).zip(units) {
        let mut mantissas = [0; N];
        for i in 0..N {
            mantissas[i] = short_mantissa(x[i] ^ flip);
            differ[i] |= x[i] ^ x[0];
            // Here 0 wraps to the largest number.
            least[i] = least[i].min((x[i] & (EXP | FRAC)).wrapping_sub(1));
        }
        *vector = Vector::new(mantissas);
        *unit = unit_of(x[0] & EXP) * EXTENDED;
    }
    let differ = differ.iter().fold(0, |all, d| all | d & EXP);
    let least = least.iter().fold(u16::MAX, |least, size| least.min(*size));
    (differ == 0) & (least >= FRAC)
}

/// Sums of products in their units, plus addends. The sums are singles, because every product of mantissas is a multiple of
/// 2^6 below 2^24 if no element is extended. `most` becomes the largest magnitude of an addend.
#[inline(always)]
fn add(
    a: &[HMatrix],
    half: usize,
    sums: &[Plane; MABS],
    units: &[f32; MABS],
    z: &[u64],
    flip: u32,
    out: &mut [u64],
    most: &mut [u32; PAIRS],
) {
    let (z, out) = (z.as_chunks::<MAB_PES>().0, out.as_chunks_mut::<MAB_PES>().0);
    for (m, ((a, z), out)) in a.iter().zip(z).zip(out).enumerate() {
        let z: [u32; PAIRS] = bytemuck::cast(*z);
        let (sums, unit) = (&sums[m], units[m]);
        let mut results = [0; PAIRS];
        for i in 0..PAIRS {
            let size = z[i] & 0x7FFF_FFFF;
            let z = f32::from_bits(z[i] ^ flip);
            let z = if f32::from_bits(size) < f32::MIN_POSITIVE { 0.0 } else { z };
            // No product is -0, so no sum is -0.
            results[i] = (sums[i] as f32 * a.units[half][i] * unit + z).to_bits();
            most[i] = most[i].max(size);
        }
        *out = bytemuck::cast(results);
    }
}

/// The addends of a MAB in stored order.
#[inline(always)]
fn addends(z: [&[u64]; 2], mab: usize, flip: u64) -> [u32; N] {
    let flipped = z.map(|z| block(z, mab).map(|z| z ^ flip));
    bytemuck::cast(flipped)
}

/// Products plus addends of one MAB, as doubles rounded to odd, in stored order.
#[inline(always)]
fn sums(a: &HMatrix, vector: &Vector, field: u16, z: [u32; N]) -> [u64; N] {
    let products = a.times(vector, field);
    let mut sums = [0; N];
    for ((sum, p), z) in sums.iter_mut().zip(products).zip(z) {
        *sum = add_odd(p, single_to_f64(u64::from(z)));
    }
    sums
}
