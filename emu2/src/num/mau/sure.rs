//! The quickest way of the multiply-adds of singles and doubles: whole blocks whose rounding is certain.
//!
//! The host forms product and sum without error, as pairs of numbers. What the multiplier may be off, and what the host may
//! be, is an error bound; where the sum less the bound and the sum plus the bound round alike, that is the result.
//!
//! One bound covers everything that is rare, so that few operations are left for what is common:
//!
//! * exponent field 0 counts as zero, which the host does not do. As an addend that is less than the least bound; as a factor it
//!   makes the product wrong by less than the smallest normal number times the other factor, and `a*a + b*b` is more than
//!   that factor or less than 1;
//! * the low part of a tiny product is not exact, by less than the least bound;
//! * where the sum is less than such a bound, the bound is taken as the sum itself. Then nothing but zero rounds alike;
//! * infinities and sums past the largest number make NaN of the low part, which is not equal to itself.

use crate::num::MAB_PES;

/// Long words of a block.
const BLOCK: usize = 32;

/// Long words that are worked on side by side: two vectors of 32 bytes, since each operation waits for the one before.
const GROUP: usize = 8;

/// Bytes of a group.
const BYTES: usize = GROUP * size_of::<u64>();

/// Groups of a block beyond which all of it is done again.
const FEW: usize = BLOCK / GROUP / 2;

macro_rules! sure {
    ($name:ident, $block:ident, $lanes:ident, $parts:ident, $float:ty, $bits:ty, $least:literal) => {
        /// `a * b + c` without error, but where the product is tiny: the product rounded, the sum of that and `c` rounded, and
        /// what the sum lacks. Calls the host's fused multiply-add.
        #[inline(always)]
        pub(super) fn $parts(a: $float, b: $float, c: $float) -> ($float, $float, $float) {
            let product = a * b;
            let product_low = a.mul_add(b, -product);
            let high = product + c;
            let t = high - product;
            let sum_low = (product - (high - t)) + (c - t);
            (product, high, product_low + sum_low)
        }

        /// `out = x * y + z`, rounded once. `signs` are flipped in x and z, `kept` are the bits of x that take part, for lanes
        /// that follow each other. `bound` is more than what the multiplier can be off, relative to the product. `careful`
        /// and `exact` get what is not certain: rows that begin at a multiple of [`GROUP`], the latter a few. Calls the host's
        /// fused multiply-add.
        #[inline(always)]
        pub(super) fn $name(
            [x, y, z]: [&[u64]; 3],
            signs: [$bits; 2],
            kept: [$bits; BYTES / size_of::<$bits>()],
            bound: $float,
            out: &mut [u64],
            careful: impl Fn(&[u64], &[u64], &[u64], &mut [u64]),
            exact: impl Fn(&[u64], &[u64], &[u64], &mut [u64]),
        ) {
            const LANES: usize = BYTES / size_of::<$bits>();
            let ((x, x_rest), (y, y_rest), (z, z_rest)) = (x.as_chunks(), y.as_chunks(), z.as_chunks());
            let (out, out_rest) = out.as_chunks_mut();
            let mut least = [0; BLOCK];
            for (((out, x), y), z) in out.iter_mut().zip(x).zip(y).zip(z) {
                if $block([x, y, z], signs, kept, bound, out, &mut least) {
                    continue;
                }
                let most: &[$float] = bytemuck::cast_slice(&*out);
                let pairs =
                    bytemuck::cast_slice::<u64, $float>(&least).chunks_exact(LANES).zip(most.chunks_exact(LANES));
                let mut doubtful = [false; BLOCK / GROUP];
                for (doubtful, (least, most)) in doubtful.iter_mut().zip(pairs) {
                    *doubtful = least.iter().zip(most).fold(false, |any, (least, most)| any | (*least != *most));
                }
                if doubtful.iter().filter(|d| **d).count() > FEW {
                    careful(x, y, z, out);
                    continue;
                }
                for group in (0..BLOCK / GROUP).filter(|group| doubtful[*group]) {
                    let group = group * GROUP..(group + 1) * GROUP;
                    exact(&x[group.clone()], &y[group.clone()], &z[group.clone()], &mut out[group]);
                }
            }
            if !out_rest.is_empty() {
                careful(x_rest, y_rest, z_rest, out_rest);
            }
        }

        /// One block; false: where `out` and `least` differ, the result is not certain.
        #[inline(always)]
        fn $block(
            [x, y, z]: [&[u64; BLOCK]; 3],
            signs: [$bits; 2],
            kept: [$bits; BYTES / size_of::<$bits>()],
            bound: $float,
            out: &mut [u64; BLOCK],
            least: &mut [u64; BLOCK],
        ) -> bool {
            const LANES: usize = BYTES / size_of::<$bits>();
            type Lanes<T> = [[T; LANES]; BLOCK / GROUP];
            let [x, y, z]: [&Lanes<$bits>; 3] = [x, y, z].map(bytemuck::cast_ref);
            let [out, least]: [&mut Lanes<$float>; 2] = [out, least].map(bytemuck::cast_mut);
            // A sum of differences: what is spelled as a condition becomes a masked store.
            let mut apart = [0.0; LANES];
            for ((((out, least), x), y), z) in out.iter_mut().zip(least).zip(x).zip(y).zip(z) {
                // Copies, so that nothing is stored before all is read: slices of a kernel might overlap for all the compiler knows.
                let (low_end, high_end) = $lanes([*x, *y, *z], signs, kept, bound);
                for i in 0..LANES {
                    apart[i] += high_end[i] - low_end[i];
                }
                (*least, *out) = (low_end, high_end);
            }
            // Differences are +0 or more, or NaN.
            apart.iter().fold(0, |all, d| all | d.to_bits()) == 0
        }

        /// The least and the most that each lane of a group may be.
        #[inline(always)]
        fn $lanes(
            [x, y, z]: [[$bits; BYTES / size_of::<$bits>()]; 3],
            signs: [$bits; 2],
            kept: [$bits; BYTES / size_of::<$bits>()],
            bound: $float,
        ) -> ([$float; BYTES / size_of::<$bits>()], [$float; BYTES / size_of::<$bits>()]) {
            const LANES: usize = BYTES / size_of::<$bits>();
            // Covers the roundings of the low part and of its bounds.
            let rounding = <$float>::EPSILON * 2.0;
            let smallest = <$float>::MIN_POSITIVE * $least;
            let factor = <$float>::MIN_POSITIVE * 2.0;
            let (mut low_end, mut high_end) = ([0.0; LANES], [0.0; LANES]);
            for i in 0..LANES {
                let a = <$float>::from_bits(x[i] & kept[i] ^ signs[0]);
                let (b, c) = (<$float>::from_bits(y[i]), <$float>::from_bits(z[i] ^ signs[1]));
                let (product, high, low) = $parts(a, b, c);
                let rare = a.mul_add(a, b * b).mul_add(factor, smallest);
                let size = high.abs() + low.abs();
                let rare = if size < rare { size } else { rare };
                let error = product.abs().mul_add(bound, low.abs().mul_add(rounding, rare));
                (low_end[i], high_end[i]) = (high + (low - error), high + (low + error));
            }
            (low_end, high_end)
        }
    };
}

sure!(singles, block_of_singles, group_of_singles, parts_of_single, f32, u32, 16.0);
sure!(doubles, block_of_doubles, group_of_doubles, parts_of_double, f64, u64, 1024.0);

/// As [`doubles`], for PEs `FIRST` and `FIRST + 1` of each MAB; the others have the product 0. What is multiplied is brought
/// together, so that no lane of the host is idle.
#[inline(always)]
pub(super) fn half_of_doubles<const FIRST: usize>(
    [x, y, z]: [&[u64]; 3],
    signs: [u64; 2],
    bound: f64,
    out: &mut [u64],
    careful: impl Fn(&[u64], &[u64], &[u64], &mut [u64]),
) {
    /// Long words that hold a group of factors.
    const PACKED: usize = 2 * GROUP;
    type Mabs = [[u64; MAB_PES]; GROUP / 2];
    let ((x, x_rest), (y, y_rest), (z, z_rest)) =
        (x.as_chunks::<PACKED>(), y.as_chunks::<PACKED>(), z.as_chunks::<PACKED>());
    let (out, out_rest) = out.as_chunks_mut::<PACKED>();
    let other = MAB_PES / 2 - FIRST;
    for (((out, x), y), z) in out.iter_mut().zip(x).zip(y).zip(z) {
        let [mabs_x, mabs_y, mabs_z]: [Mabs; 3] = [*x, *y, *z].map(bytemuck::cast);
        let (mut a, mut b, mut c, mut rest) = ([0; GROUP], [0; GROUP], [0; GROUP], [0; GROUP]);
        for m in 0..GROUP / 2 {
            for k in 0..2 {
                a[2 * m + k] = mabs_x[m][FIRST + k];
                b[2 * m + k] = mabs_y[m][FIRST + k];
                c[2 * m + k] = mabs_z[m][FIRST + k];
                rest[2 * m + k] = mabs_z[m][other + k];
            }
        }
        let (low_end, high_end) = group_of_doubles([a, b, c], signs, [u64::MAX; GROUP], bound);
        let mut apart = [0.0; GROUP];
        let mut sums = [0; GROUP];
        for i in 0..GROUP {
            let addend = f64::from_bits(rest[i] ^ signs[1]);
            sums[i] = if addend.abs() < f64::MIN_POSITIVE { 0 } else { addend.to_bits() };
            // NaN of an infinity, whose fraction the output does not keep.
            apart[i] = (high_end[i] - low_end[i]) + addend * 0.0;
        }
        let mut mabs: Mabs = [[0; MAB_PES]; GROUP / 2];
        for m in 0..GROUP / 2 {
            for k in 0..2 {
                mabs[m][FIRST + k] = high_end[2 * m + k].to_bits();
                mabs[m][other + k] = sums[2 * m + k];
            }
        }
        *out = bytemuck::cast(mabs);
        if apart.iter().fold(0, |all, d| all | d.to_bits()) != 0 {
            careful(x, y, z, out);
        }
    }
    if !out_rest.is_empty() {
        careful(x_rest, y_rest, z_rest, out_rest);
    }
}
