//! The fastest form of the multiply-adds of singles and doubles, for blocks whose rounding is certain.
//!
//! The host's fused multiply-add rounds once, as the machine does. The remainder is the exact sum less the rounded one, and
//! is computed without error. An error bound covers the machine's approximate multiplier and the host's own errors. The
//! result is certain if its magnitude stays the same when remainder and bound are subtracted from it. (The next number
//! below the result is at most as far away as the next one above.)
//!
//! One bound covers all rare cases, so that the common case needs few operations:
//!
//! * The machine reads exponent field 0 as zero; the host does not. An addend of that kind is below the least bound. A
//!   factor of that kind makes the product wrong by less than the smallest normal number times the other factor, and
//!   `a*a + b*b` is more than that factor or less than 1.
//! * The remainder of a tiny product is not exact, but the error is below the least bound.
//! * If result and product are below the bound, the bound is taken as their sum. Only zero is certain then.
//! * Infinities and sums past the largest number make the remainder NaN.

use crate::num::MAB_PES;

/// Long words of a block.
const BLOCK: usize = 32;

/// Long words that are computed side by side: two vectors of 32 bytes, because each operation waits for the previous one.
const GROUP: usize = 8;

/// Bytes of a group.
const BYTES: usize = GROUP * size_of::<u64>();

/// If more groups of a block than this are not certain, the whole block is computed again.
const FEW: usize = BLOCK / GROUP / 2;

macro_rules! certain {
    ($name:ident, $block:ident, $lanes:ident, $float:ty, $bits:ty, $least:literal) => {
        /// `out = x * y + z`, rounded once. `signs` are flipped in x and z. `kept` are the bits of x that take part, for
        /// consecutive lanes. `bound` is above the relative error of the machine's multiplier. Rows that are not certain go
        /// to `careful`, or to `exact` if they are few; they begin at a multiple of [`GROUP`]. Calls the host's fused
        /// multiply-add.
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
            let ((x, x_rest), (y, y_rest), (z, z_rest)) = (x.as_chunks(), y.as_chunks(), z.as_chunks());
            let (out, out_rest) = out.as_chunks_mut();
            let mut apart = [0; BLOCK];
            for (((out, x), y), z) in out.iter_mut().zip(x).zip(y).zip(z) {
                if $block([x, y, z], signs, kept, bound, out, &mut apart) {
                    continue;
                }
                let (groups, _) = apart.as_chunks::<GROUP>();
                let mut doubtful = [false; BLOCK / GROUP];
                for (doubtful, apart) in doubtful.iter_mut().zip(groups) {
                    *doubtful = apart.iter().fold(0, |all, d| all | d) != 0;
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

        /// Computes one block. If it returns false, the results of lanes where `apart` is not 0 are not certain.
        #[inline(always)]
        fn $block(
            [x, y, z]: [&[u64; BLOCK]; 3],
            signs: [$bits; 2],
            kept: [$bits; BYTES / size_of::<$bits>()],
            bound: $float,
            out: &mut [u64; BLOCK],
            apart: &mut [u64; BLOCK],
        ) -> bool {
            const LANES: usize = BYTES / size_of::<$bits>();
            type Lanes<T> = [[T; LANES]; BLOCK / GROUP];
            let [x, y, z]: [&Lanes<$bits>; 3] = [x, y, z].map(bytemuck::cast_ref);
            let [out, apart]: [&mut Lanes<$float>; 2] = [out, apart].map(bytemuck::cast_mut);
            // Adds the differences. A condition would become a masked store.
            let mut all = [0.0; LANES];
            for ((((out, apart), x), y), z) in out.iter_mut().zip(apart).zip(x).zip(y).zip(z) {
                // Copies, so that nothing is stored before all is read: for the compiler, the slices of a kernel might
                // overlap.
                let (sums, differences) = $lanes([*x, *y, *z], signs, kept, bound);
                for i in 0..LANES {
                    all[i] += differences[i];
                }
                (*apart, *out) = (differences, sums);
            }
            // Differences are +0 or more, or NaN.
            all.iter().fold(0, |all, d| all | d.to_bits()) == 0
        }

        /// The sum of each lane of a group, and a difference that is 0 if the sum is certain.
        #[inline(always)]
        fn $lanes(
            [x, y, z]: [[$bits; BYTES / size_of::<$bits>()]; 3],
            signs: [$bits; 2],
            kept: [$bits; BYTES / size_of::<$bits>()],
            bound: $float,
        ) -> ([$float; BYTES / size_of::<$bits>()], [$float; BYTES / size_of::<$bits>()]) {
            const LANES: usize = BYTES / size_of::<$bits>();
            // Covers the rounding errors of the remainder and of its bounds.
            let rounding = 1.0 + <$float>::EPSILON * 4.0;
            let bound = bound + <$float>::EPSILON * <$float>::EPSILON;
            let smallest = <$float>::MIN_POSITIVE * $least;
            let factor = <$float>::MIN_POSITIVE * 2.0;
            let (mut sums, mut apart) = ([0.0; LANES], [0.0; LANES]);
            for i in 0..LANES {
                let a = <$float>::from_bits(x[i] & kept[i] ^ signs[0]);
                let (b, c) = (<$float>::from_bits(y[i]), <$float>::from_bits(z[i] ^ signs[1]));
                let sum = a.mul_add(b, c);
                // The product is close to this, and sum - c is exactly this plus the low part.
                let product = sum - c;
                let t = product - sum;
                let product_low = (sum - (product - t)) - (c + t);
                let left = a.mul_add(b, -product) - product_low;
                let rare = a.mul_add(a, b * b).mul_add(factor, smallest);
                let size = sum.abs() + product.abs();
                let rare = if size < rare { size } else { rare };
                let error = left.abs().mul_add(rounding, product.abs().mul_add(bound, rare));
                apart[i] = sum.abs() - (sum.abs() - error);
                // Adding 0 turns -0 into +0.
                sums[i] = sum + 0.0;
            }
            (sums, apart)
        }
    };
}

certain!(singles, block_of_singles, group_of_singles, f32, u32, 16.0);
certain!(doubles, block_of_doubles, group_of_doubles, f64, u64, 1024.0);

/// Does the same as [`doubles`], for PEs `FIRST` and `FIRST + 1` of each MAB; the others have the product 0. The factors
/// are packed together, so that no lane of the host is idle.
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
        let (multiplied, mut apart) = group_of_doubles([a, b, c], signs, [u64::MAX; GROUP], bound);
        let mut sums = [0; GROUP];
        for i in 0..GROUP {
            let addend = f64::from_bits(rest[i] ^ signs[1]);
            sums[i] = if addend.abs() < f64::MIN_POSITIVE { 0 } else { addend.to_bits() };
            // This is NaN if the addend is infinite, because the output does not keep the fraction of an infinity.
            apart[i] += addend * 0.0;
        }
        let mut mabs: Mabs = [[0; MAB_PES]; GROUP / 2];
        for m in 0..GROUP / 2 {
            for k in 0..2 {
                mabs[m][FIRST + k] = multiplied[2 * m + k].to_bits();
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
