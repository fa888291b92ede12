//! Number formats and format conversions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod num_reference;

use emu2::num::convert::{
    double_to_single, extend_f, extend_h2, extend_h4, half_to_single, reduce_d, reduce_f2, reduce_f4, single_to_double,
    single_to_half,
};
use emu2::num::format::FloatFormat;
use num_reference::gen::{boundary, number, Rng};
use num_reference::{convert, long, Fmt, D, F, H};
use proptest::prelude::*;

fn of(fmt: Fmt) -> FloatFormat {
    FloatFormat::supported(fmt.e, fmt.m).expect("supported")
}

#[test]
fn format_facts() {
    #[rustfmt::skip]
    let table = [
        // format, bits, bias, 1.0, all ones
        (FloatFormat::HALF, 16, 31, 0x3E00, 63),
        (FloatFormat::SINGLE, 32, 127, 0x3F80_0000, 255),
        (FloatFormat::DOUBLE, 64, 1023, 0x3FF0_0000_0000_0000, 2047),
    ];
    for (f, bits, bias, one, ones) in table {
        assert_eq!((f.bits(), f.bias(), f.one(), f.exp_max()), (bits, bias, one, ones));
        assert_eq!(f.sign_mask() | f.exp_mask() | f.frac_mask(), u64::MAX >> (64 - bits));
        assert_eq!(FloatFormat::supported(f.exp_bits, f.frac_bits), Some(f));
    }
    for refused in [(5, 10), (8, 7), (11, 53), (0, 0), (6, 23)] {
        assert_eq!(FloatFormat::supported(refused.0, refused.1), None);
    }
}

#[test]
fn to_f64_vectors() {
    let h = FloatFormat::HALF;
    #[rustfmt::skip]
    let table = [
        (h, 0x3E00, 1.0), (h, 0x4280, 5.0), (h, 0xBC00, -0.5), (h, 0x48E0, 46.0), (h, 0x41F8, 3.96875),
        (h, 0x7E00, f64::INFINITY), (h, 0xFFFF, f64::NEG_INFINITY),
        (FloatFormat::SINGLE, 0x4048_F5C3, f64::from(f32::from_bits(0x4048_F5C3))), (FloatFormat::SINGLE, 0xFF80_0001, f64::NEG_INFINITY),
        (FloatFormat::DOUBLE, 0x7FF0_0000_0000_0001, f64::INFINITY),
    ];
    for (f, bits, value) in table {
        assert_eq!(f.to_f64(bits), value);
    }
    for (f, bits, sign) in [(h, 0x01FF, false), (h, 0x8001, true), (FloatFormat::DOUBLE, 1, false)] {
        let v = f.to_f64(bits);
        assert!(v == 0.0 && v.is_sign_negative() == sign);
    }
}

#[test]
fn halves_round_trip_through_f64() {
    for bits in 0..=0xFFFF {
        let exp = H.exp(bits);
        let canonical = if exp == 0 || exp == 63 { bits & !0x1FF } else { bits };
        assert_eq!(FloatFormat::HALF.from_f64(FloatFormat::HALF.to_f64(bits)), canonical);
    }
}

#[test]
fn extend_halves_exhaustive() {
    for bits in 0..=0xFFFFu16 {
        let single = half_to_single(bits);
        assert_eq!(u64::from(single), convert(H, F, u64::from(bits)), "{bits:04x}");
        let host = f64::from(f32::from_bits(single));
        assert_eq!(host.to_bits(), FloatFormat::HALF.to_f64(u64::from(bits)).to_bits());
    }
}

#[test]
fn reduce_boundaries() {
    // All patterns of dropped bits that decide a rounding, next to even and odd kept bits, at every exponent.
    let mut checked = 0;
    for (from, to) in [(F, H), (D, F)] {
        let drop = from.m - to.m;
        let half = 1u64 << (drop - 1);
        let mut fractions = Vec::new();
        for kept in [0, 1, 2, 3, (1 << to.m) - 2, (1 << to.m) - 1] {
            for dropped in [0, 1, half - 1, half, half + 1, 2 * half - 1] {
                fractions.push((kept << drop) | dropped);
            }
        }
        for bits in boundary(from, 1, &fractions) {
            let got =
                if from == F { u64::from(single_to_half(bits as u32)) } else { u64::from(double_to_single(bits)) };
            assert_eq!(got, convert(from, to, bits), "{bits:016x}");
            checked += 1;
        }
    }
    println!("{checked} conversions");
}

#[test]
fn reduce_vectors() {
    #[rustfmt::skip]
    let halves = [
        (0x3F80_0000, 0x3E00), (0x3F80_2000, 0x3E00), (0x3F80_2001, 0x3E01), (0x3F80_6000, 0x3E02),
        (0x7F80_0001, 0x7E00), (0xFF7F_FFFF, 0xFE00), (0x8000_0000, 0x8000), (0x8DA2_4260, 0x8000),
        (0x3080_0000, 0x0200), (0x307F_E000, 0x0200), (0x307F_DFFF, 0x0000), (0x4F7F_E000, 0x7E00), (0x4F7F_DFFF, 0x7DFF),
    ];
    for (single, half) in halves {
        assert_eq!(single_to_half(single), half, "{single:08x}");
    }
    assert_eq!(double_to_single(0x4010_0000_0000_0000), 0x4080_0000);
    assert_eq!(single_to_double(0x3F80_0000), 0x3FF0_0000_0000_0000);
    assert_eq!(single_to_double(0xFF80_0001), 0xFFF0_0000_0000_0000);
    assert_eq!(single_to_double(0x8000_0001), 1 << 63);
}

#[test]
fn rows_place_their_lanes() {
    let x = [0x3E00_4280_BC00_8000u64, 0x4440_4540_0000_7E00];
    let (mut l0, mut l1, mut back) = ([0; 2], [0; 2], [0; 2]);
    extend_h4(&x, &mut l0, &mut l1);
    assert_eq!(l0, [0x3F80_0000_40A0_0000, 0x4110_0000_4150_0000]);
    assert_eq!(l1, [0xBF00_0000_8000_0000, 0x0000_0000_7F80_0000]);
    reduce_f4(&l0, &l1, &mut back);
    assert_eq!(back, x);
    extend_h2(&x, &mut l0);
    assert_eq!(l0, [0x3F80_0000_40A0_0000, 0x4110_0000_4150_0000]);
    back = l0;
    reduce_f2(&mut back);
    assert_eq!(back, [0x3E00_4280_0000_0000, 0x4440_4540_0000_0000]);
    extend_f(&l0, &mut l1);
    assert_eq!(l1, [0x3FF0_0000_0000_0000, 0x4022_0000_0000_0000]);
    reduce_d(&l1, &mut back);
    assert_eq!(back, [0x3F80_0000_0000_0000, 0x4110_0000_0000_0000]);
}

#[test]
fn random_reductions() {
    let seed = 0x5EED_0001;
    println!("seed {seed:#x}");
    let mut rng = Rng(seed);
    for _ in 0..if long() { 20_000_000 } else { 300_000 } {
        let f = number(F, rng.words());
        assert_eq!(u64::from(single_to_half(f as u32)), convert(F, H, f), "{f:08x}");
        assert_eq!(single_to_double(f as u32), convert(F, D, f), "{f:08x}");
        let d = number(D, rng.words());
        assert_eq!(u64::from(double_to_single(d)), convert(D, F, d), "{d:016x}");
    }
}

proptest! {
    #![proptest_config(num_reference::proptest(if long() { 1_000_000 } else { 20_000 }))]

    #[test]
    fn from_f64_is_nearest_even(bits: u64) {
        prop_assume!(!f64::from_bits(bits).is_nan());
        for fmt in [H, F, D] {
            // Host denormals count as zero in these formats.
            prop_assert_eq!(of(fmt).from_f64(f64::from_bits(bits)), convert(D, fmt, bits));
        }
    }
}
