//! Reduction stages and trees against worked vectors and the reference.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod num_reference;

use emu2::num::lane::Lane;
use emu2::num::reduce::{reduce_kernel, reduce_kernel_names};
use num_reference::gen::{boundary, fraction, number, Rng};
use num_reference::reduce::{fadd, stage, tree};
use num_reference::{convert, lane, long, pack_lanes, Fmt, D, F, H};
use proptest::prelude::*;

const FLOAT: [&str; 3] = ["fadd", "max", "min"];
const INTEGER: [&str; 5] = ["iadd", "band", "bor", "and", "or"];

fn fmt_of(width: u32) -> Fmt {
    match width {
        16 => H,
        32 => F,
        _ => D,
    }
}

/// All instances that exist.
fn instances() -> Vec<(&'static str, Lane)> {
    let floats = FLOAT.into_iter().flat_map(|n| [Lane::D, Lane::F, Lane::H].map(|l| (n, l)));
    let integers = INTEGER.into_iter().flat_map(|n| [Lane::L, Lane::I, Lane::S].map(|l| (n, l)));
    floats.chain(integers).collect()
}

/// One tree of a kernel over flat inputs against the reference, lane by lane.
fn check(name: &str, ty: Lane, fan_in: &[usize], inputs: &[u64]) -> Result<(), String> {
    let n: usize = fan_in.iter().product();
    let width = inputs.len() / n;
    let mut out = vec![0xEE; width];
    let mut scratch = vec![1, 2, 3];
    reduce_kernel(name, ty, false).expect("instance").tree(fan_in, inputs, &mut scratch, &mut out);
    for i in 0..width {
        for k in 0..ty.count() as u32 {
            let lanes: Vec<u64> = (0..n).map(|v| lane(inputs[v * width + i], ty.width(), k)).collect();
            let (got, want) = (lane(out[i], ty.width(), k), tree(name, ty.width(), fan_in, &lanes));
            if got != want {
                return Err(format!("{name} {ty:?} {fan_in:?} {lanes:x?}: got {got:x}, want {want:x}"));
            }
        }
    }
    Ok(())
}

/// Reduced singles: all stages but the last in single precision.
fn check_reduced(name: &str, fan_in: &[usize], inputs: &[u64]) -> Result<(), String> {
    let n: usize = fan_in.iter().product();
    let width = inputs.len() / n;
    let mut out = vec![0xEE; width];
    reduce_kernel(name, Lane::F, true).expect("instance").tree(fan_in, inputs, &mut Vec::new(), &mut out);
    for i in 0..width {
        for k in 0..2 {
            let mut level: Vec<u64> = (0..n).map(|v| lane(inputs[v * width + i], 32, k)).collect();
            let shown = level.clone();
            for &n in &fan_in[..fan_in.len() - 1] {
                level = level.chunks(n).map(|group| stage(name, 32, group)).collect();
            }
            let want = match name {
                "fadd" => fadd(F, H, &level),
                _ => convert(F, H, stage(name, 32, &level)),
            };
            let got = lane(out[i], 16, k);
            if got != want {
                return Err(format!("{name} reduced {fan_in:?} {shown:x?}: got {got:x}, want {want:x}"));
            }
        }
        if out[i] & 0xFFFF_FFFF != 0 {
            return Err(format!("{name} reduced leaves {:x}", out[i]));
        }
    }
    Ok(())
}

#[test]
fn table_is_closed() {
    let mut names: Vec<_> = reduce_kernel_names().collect();
    names.sort_unstable();
    let mut tested: Vec<_> = FLOAT.into_iter().chain(INTEGER).collect();
    tested.sort_unstable();
    assert_eq!(names, tested);
    for (name, lane) in instances() {
        assert!(reduce_kernel(name, lane, false).is_some());
        assert_eq!(reduce_kernel(name, lane, true).is_some(), lane == Lane::F);
    }
    assert!(reduce_kernel("fadd", Lane::I, false).is_none());
    assert!(reduce_kernel("band", Lane::F, false).is_none());
    assert!(reduce_kernel("nonsense", Lane::F, false).is_none());
}

#[test]
fn neutral_elements() {
    #[rustfmt::skip]
    let table = [
        ("fadd", Lane::D, 0), ("iadd", Lane::I, 0), ("bor", Lane::S, 0), ("or", Lane::L, 0),
        ("max", Lane::H, u64::MAX), ("band", Lane::L, u64::MAX), ("and", Lane::I, u64::MAX),
        ("min", Lane::D, 0x7FFF_FFFF_FFFF_FFFF), ("min", Lane::F, 0x7FFF_FFFF_7FFF_FFFF), ("min", Lane::H, 0x7FFF_7FFF_7FFF_7FFF),
    ];
    for (name, ty, want) in table {
        assert_eq!(reduce_kernel(name, ty, false).expect(name).neutral(), want, "{name} {ty:?}");
    }
    // Absent elements change nothing.
    let mut rng = Rng(5);
    for (name, ty) in instances() {
        let kernel = reduce_kernel(name, ty, false).expect(name);
        for _ in 0..200 {
            let x = rng.words::<3>();
            let (mut with, mut without) = ([0], [0]);
            kernel.stage(&[x[0], x[1], x[2], kernel.neutral()], &mut with);
            kernel.stage(&x, &mut without);
            assert_eq!(with, without, "{name} {ty:?} {x:x?}");
        }
    }
}

#[test]
fn worked_vectors() {
    // The 64 doubles -15.5, -15 ... 15.5 (with -0 as element 0) over 4 * mab + pe.
    let row: Vec<u64> = (0..64)
        .map(|i| (f64::from(i) / 2.0 - 16.0).to_bits())
        .enumerate()
        .map(|(i, v)| if i == 0 { 1 << 63 } else { v })
        .collect();
    let mut out = [0; 4];
    let kernel = reduce_kernel("fadd", Lane::D, false).expect("fadd");
    kernel.tree(&[4, 4], &row, &mut Vec::new(), &mut out);
    assert_eq!(out, [0, (-8.0f64).to_bits(), 0, 8.0f64.to_bits()]);

    #[rustfmt::skip]
    let table: &[(&str, Lane, &[u64], u64)] = &[
        ("iadd", Lane::I, &[0xFFFF_FFFF_0000_0001, 0x0000_0001_7FFF_FFFF], 0x8000_0000),
        ("and", Lane::L, &[2, 1, 4], 1),
        ("and", Lane::I, &[2, 1, 4], 1),
        ("and", Lane::L, &[2, 0, 4], 0),
        ("or", Lane::L, &[0, 40, 2], 1),
        ("or", Lane::S, &[0x0001_0000_8000_0000, 0], 0x0001_0000_0001_0000),
        ("and", Lane::L, &[7], 1),
        ("band", Lane::L, &[6, 3], 2),
        ("bor", Lane::L, &[6, 3], 7),
        ("max", Lane::F, &[0x8000_0000_7F80_0000, 0x0000_0000_7F80_0001], 0x7F80_0001),
        ("min", Lane::F, &[0x8000_0000_7F80_0000, 0x0000_0000_7F80_0001], 0x8000_0000_7F80_0000),
        ("max", Lane::H, &[0xBE00_C000_0001_FFFF, 0xC000_BE00_8000_FE00], 0xBE00_BE00_0001_FE00),
        // The alignment rounds first: 1 + (2^-27 + 2^-28), each below half a guard bit, is 1 + 0.
        ("fadd", Lane::F, &[0x3F80_0000 << 32, 0x3200_0000 << 32, 0x3180_0000 << 32], 0x3F80_0000 << 32),
        // A tie of the result, made by the rounding of the alignment: 1 + 2^-24 - 2^-28 rounds to 1 + 2^-24, then to even.
        ("fadd", Lane::F, &[0x3F80_0001 << 32, 0x3380_0000 << 32, 0xB180_0000 << 32], 0x3F80_0002 << 32),
        ("fadd", Lane::F, &[0x7F80_0000 << 32, 0xFF80_0000 << 32], 0),
        ("fadd", Lane::F, &[0x7F7F_FFFF << 32, 0x7F7F_FFFF << 32], 0x7F80_0000 << 32),
        ("fadd", Lane::F, &[0x0080_0001 << 32, 0x8080_0000 << 32, 0x0000_0042 << 32], 0),
    ];
    for &(name, ty, inputs, want) in table {
        let mut out = [0];
        reduce_kernel(name, ty, false).expect(name).stage(inputs, &mut out);
        assert_eq!(out[0], want, "{name} {ty:?} {inputs:x?}: got {:x}", out[0]);
    }
    // One rounding to half: 1 + 2^-10 + 2^-26 is above the tie, rounding to single first would land on it.
    let mut out = [0];
    let inputs = [0x3F80_2000_3F80_2000, 0x3280_0000_0000_0000];
    reduce_kernel("fadd", Lane::F, true).expect("fadd").stage(&inputs, &mut out);
    reduce_kernel("fadd", Lane::F, true).expect("fadd").tree(&[2], &inputs, &mut Vec::new(), &mut out);
    assert_eq!(out[0], 0x3E01_3E00_0000_0000);
}

/// Narrowed sums and winners at the ends of the range of halves: largest 4F7FC000 = 7DFF, smallest 30800000 = 0200.
#[test]
fn narrowed_ends() {
    #[rustfmt::skip]
    let table: &[(&str, &[u32], u16)] = &[
        ("fadd", &[0x4F7F_C000, 0], 0x7DFF),
        ("fadd", &[0x4F7F_DFFF, 0], 0x7DFF),          // below the middle between it and 2^32
        ("fadd", &[0x4F7F_E000, 0], 0x7E00),          // the middle: to even, infinity
        ("fadd", &[0xCF00_0000, 0xCF00_0000], 0xFE00),
        ("fadd", &[0x7F80_0000, 0x3F80_0000], 0x7E00),
        ("fadd", &[0x7F80_0000, 0xFF80_0000], 0),     // guess: opposite infinities cancel
        ("fadd", &[0x7F7F_FFFF, 0x7F7F_FFFF], 0x7E00),
        ("fadd", &[0x3080_0000, 0], 0x0200),
        ("fadd", &[0x3000_0000, 0], 0),
        ("fadd", &[0xB000_0000, 0], 0),               // underflow is +0
        ("fadd", &[0xB000_0000, 0xB000_0000], 0x8200),
        ("fadd", &[0x8000_0000, 0x8000_0000], 0),
        ("fadd", &[0x807F_FFFF, 0x0000_0001], 0),     // exponent 0 is zero
        ("fadd", &[0x3F80_0001, 0xBF80_0001], 0),
        ("fadd", &[0x3F80_0001, 0xBF80_0000], 0x1000), // 2^-23
        ("fadd", &[0x3F80_2000, 0xB200_0000], 0x3E00), // 2^-27, half a guard bit: lost in the alignment, a tie to even
        ("fadd", &[0x3F80_2000, 0x3180_0000], 0x3E00), // a quarter of one
        ("max", &[0x4F7F_E000, 0x3F80_0000], 0x7E00),
        ("max", &[0x3000_0000, 0xBF80_0000], 0),
        ("min", &[0x4F7F_C000, 0x7F80_0000], 0x7DFF),
        ("min", &[0xBF80_2000, 0xBF80_0000], 0xBE00),
        ("max", &[0x3F80_6000, 0x3F80_5FFF], 0x3E02),
    ];
    for &(name, lanes, want) in table {
        let inputs: Vec<u64> = lanes.iter().map(|v| u64::from(*v) << 32 | u64::from(*v)).collect();
        let mut out = [0];
        reduce_kernel(name, Lane::F, true).expect(name).tree(&[2], &inputs, &mut Vec::new(), &mut out);
        let want = u64::from(want) << 48 | u64::from(want) << 32;
        assert_eq!(out[0], want, "{name} {lanes:x?}: got {:x}", out[0]);
        check_reduced(name, &[2], &inputs).unwrap();
    }
}

/// Lanes of one sum: a common exponent, some cancellation, some far below.
fn addends(fmt: Fmt, n: usize, rng: &mut Rng) -> Vec<u64> {
    let base = fmt.exp(number(fmt, rng.words())) as i64;
    let mut lanes: Vec<u64> = Vec::new();
    for i in 0..n {
        let r = rng.next();
        let near = |spread: u64| (base - ((r >> 8) % spread) as i64).max(0) as u64;
        lanes.push(match r % 8 {
            0 if i > 0 => lanes[i - 1] ^ 1 << (fmt.width() - 1),
            1 if i > 0 => lanes[i - 1] ^ 1 << (fmt.width() - 1) ^ 1,
            2 => number(fmt, rng.words()),
            3 => fmt.pack(r >> 63, near(u64::from(fmt.m) + 8), fraction(fmt.m, rng.next() >> 1)),
            _ => fmt.pack(r >> 63, near(6), fraction(fmt.m, rng.next() >> 1)),
        });
    }
    lanes
}

/// Flat inputs of `n` vectors of `width` long words.
fn inputs(ty: Lane, n: usize, width: usize, rng: &mut Rng) -> Vec<u64> {
    let fmt = fmt_of(ty.width());
    let mut flat = vec![0; n * width];
    for i in 0..width {
        for k in 0..ty.count() as u32 {
            let lanes = if ty.format().is_some() {
                addends(fmt, n, rng)
            } else {
                // Zero lanes and single bits for the logical operations.
                (0..n)
                    .map(|_| match rng.next() % 4 {
                        0 => 0,
                        1 => 1 << (rng.next() % u64::from(ty.width())),
                        _ => rng.next() & (u64::MAX >> (64 - ty.width())),
                    })
                    .collect()
            };
            for (v, bits) in lanes.into_iter().enumerate() {
                flat[v * width + i] |= bits << (64 - ty.width() * (k + 1));
            }
        }
    }
    flat
}

const TREES: [&[usize]; 6] = [&[2], &[4], &[8], &[4, 4], &[2, 4], &[3, 2, 2]];

#[test]
fn random_trees_in_bulk() {
    let seed = 0x7EE5_0001;
    let rounds = if long() { 20_000 } else { 300 };
    println!("{rounds} rounds of every kernel and tree, seed {seed:#x}");
    let mut rng = Rng(seed);
    for round in 0..rounds {
        for fan_in in TREES {
            let n = fan_in.iter().product();
            for (name, ty) in instances() {
                // Widths below and above the number of lanes that are summed together.
                let width = [1, 3, 4, 9][round % 4];
                check(name, ty, fan_in, &inputs(ty, n, width, &mut rng)).unwrap();
                if ty == Lane::F {
                    check_reduced(name, fan_in, &inputs(ty, n, width, &mut rng)).unwrap();
                }
            }
        }
    }
}

#[test]
fn two_input_stage_boundaries() {
    for (ty, step) in [(Lane::H, 1), (Lane::F, 4), (Lane::D, 32)] {
        let fmt = fmt_of(ty.width());
        let step = if long() && ty != Lane::D { 1 } else { step };
        let set = boundary(fmt, step, &[0, 1, (1 << fmt.m) - 1]);
        let n = ty.count();
        println!("{ty:?}: {} pairs", set.len() * set.len());
        for &a in &set {
            let first = pack_lanes(ty.width(), &vec![a; n]);
            let second: Vec<u64> = set
                .chunks(n)
                .map(|c| pack_lanes(ty.width(), &(0..n).map(|k| c[k % c.len()]).collect::<Vec<_>>()))
                .collect();
            let mut flat = vec![first; second.len()];
            flat.extend(second);
            check("fadd", ty, &[2], &flat).unwrap();
            if ty == Lane::F {
                check_reduced("fadd", &[2], &flat).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(num_reference::proptest(if long() { 100_000 } else { 3_000 }))]

    /// Plain bit patterns, shrinking to few set bits.
    #[test]
    fn plain_bits(index in 0usize..24, tree in 0..TREES.len(), bits in prop::collection::vec(any::<u64>(), 16)) {
        let (name, ty) = instances()[index];
        let n: usize = TREES[tree].iter().product();
        prop_assert_eq!(check(name, ty, TREES[tree], &bits[..n]), Ok(()));
    }
}
