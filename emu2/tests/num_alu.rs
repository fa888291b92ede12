//! ALU lane kernels and flag rules against worked vectors and the slow reference.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod num_reference;

use emu2::num::alu::{alu_kernel, alu_kernel_names, AluParams};
use emu2::num::flags::FlagRule;
use emu2::num::lane::Lane;
use num_reference::alu::{alu, Params};
use num_reference::gen::{boundary, word, Rng};
use num_reference::{flag_bits, lane, long, pack_lanes, Fmt, D, F, H};
use proptest::prelude::*;

/// Reciprocal square root table used by the vectors below.
const TABLE: [u8; 32] = [
    63, 62, 60, 58, 57, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, //
    45, 43, 42, 41, 40, 39, 38, 37, 36, 36, 35, 34, 34, 33, 33, 32,
];

/// kernel, flag rule of the signed or float form, flag rule of the unsigned form
const RULES: [(&str, &str, &str); 23] = [
    ("passa", "x_zero", "-"),
    ("inc", "msb_clear", "no_carry"),
    ("dec", "msb_clear", "no_borrow"),
    ("add", "msb_clear", "no_carry"),
    ("sub", "msb_clear", "no_borrow"),
    ("not", "result_zero", "-"),
    ("lnot", "result_zero", "-"),
    ("and", "result_zero", "-"),
    ("or", "result_zero", "-"),
    ("xor", "result_zero", "-"),
    ("packbit", "y_msb_clear", "-"),
    ("lsl", "result_zero", "-"),
    ("lsr", "result_zero", "result_zero"),
    ("bsl", "result_zero", "-"),
    ("bsr", "result_zero", "-"),
    ("max", "x_chosen", "x_chosen"),
    ("min", "x_chosen", "x_chosen"),
    ("relu", "x_bit_clear", "-"),
    ("lrelu", "x_msb_clear", "-"),
    ("ilrelu", "x_msb_clear", "-"),
    ("rsqrt", "x_msb_clear", "-"),
    ("floor", "none", "-"),
    ("ftoi", "none", "none"),
];

fn fmt_of(width: u32) -> Fmt {
    match width {
        16 => H,
        32 => F,
        _ => D,
    }
}

fn class(lane: Lane, unsigned: bool) -> char {
    match (lane.format().is_some(), unsigned) {
        (false, false) => 'i',
        (false, true) => 'u',
        (true, false) => 'f',
        (true, true) => 'v',
    }
}

/// Every kernel instantiation: name, lane, unsigned, flag rule.
fn instances() -> Vec<(&'static str, Lane, bool, FlagRule)> {
    let mut all = Vec::new();
    for (name, signed_rule, unsigned_rule) in RULES {
        for lane in Lane::ALL {
            for unsigned in [false, true] {
                if alu_kernel(name, lane, unsigned).is_some() {
                    let rule = if unsigned { unsigned_rule } else { signed_rule };
                    all.push((name, lane, unsigned, FlagRule::from_name(rule).expect("rule")));
                }
            }
        }
    }
    all
}

/// Parameters of a kernel that are worth a test.
fn params(name: &str) -> Vec<AluParams> {
    let with = |bit, amount| AluParams { bit, amount, table: TABLE };
    match name {
        "relu" => (0..4).map(|bit| with(bit, 0)).collect(),
        "lrelu" | "ilrelu" => vec![with(0, 1), with(0, 3)],
        _ => vec![with(0, 0)],
    }
}

/// Compares kernel and flag rule with the reference on whole rows.
fn check(
    (name, ty, unsigned, rule): (&str, Lane, bool, FlagRule),
    p: &AluParams,
    x: &[u64],
    y: &[u64],
) -> Result<(), String> {
    let kernel = alu_kernel(name, ty, unsigned).expect("instance");
    let mut out = vec![0; x.len()];
    let mut flags = vec![0xAA; x.len()];
    kernel.run(p, x, y, &mut out);
    rule.eval(ty, p, x, y, &out, &mut flags);
    let slow = Params { bit: p.bit, amount: p.amount, table: p.table };
    let w = ty.width();
    for i in 0..x.len() {
        let (mut lanes, mut fs) = (Vec::new(), Vec::new());
        for k in 0..ty.count() as u32 {
            let (a, b) = (lane(x[i], w, k), lane(y[i], w, k));
            let (r, f) = alu(name, class(ty, unsigned), w, &slow, a, b);
            lanes.push(r);
            fs.push(f.unwrap_or(false));
        }
        let want = (pack_lanes(w, &lanes), flag_bits(&fs));
        if (out[i], flags[i]) != want {
            return Err(format!(
                "{name} {ty:?} unsigned={unsigned} bit={} amount={} x={:016x} y={:016x}: got {:016x}/{:04b}, want {:016x}/{:04b}",
                p.bit, p.amount, x[i], y[i], out[i], flags[i], want.0, want.1
            ));
        }
    }
    Ok(())
}

/// All lane pairs `x[i], y[j]` of a width, packed into rows and checked.
fn check_pairs(instance: (&str, Lane, bool, FlagRule), xs: &[u64], ys: &[u64]) {
    let w = instance.1.width();
    let n = instance.1.count();
    for p in params(instance.0) {
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for &a in xs {
            for b in ys.chunks(n) {
                x.push(pack_lanes(w, &vec![a; n]));
                // The lanes of a short last chunk repeat its first value.
                let lanes: Vec<u64> = (0..n).map(|k| *b.get(k).unwrap_or(&b[0])).collect();
                y.push(pack_lanes(w, &lanes));
            }
            if x.len() > 4096 {
                check(instance, &p, &x, &y).unwrap();
                x.clear();
                y.clear();
            }
        }
        check(instance, &p, &x, &y).unwrap();
    }
}

#[test]
fn table_is_closed() {
    let names: Vec<_> = alu_kernel_names().collect();
    let tested: Vec<_> = RULES.iter().map(|r| r.0).collect();
    for name in &names {
        assert!(tested.contains(name), "{name} has no test row");
    }
    assert_eq!(names.len(), tested.len());
    assert!(alu_kernel("nonsense", Lane::I, false).is_none());
    assert!(alu_kernel("inc", Lane::F, false).is_none());
    assert!(alu_kernel("relu", Lane::I, false).is_none());
    assert!(alu_kernel("xor", Lane::I, true).is_none());
    assert!(alu_kernel("max", Lane::F, true).is_none());
    assert!(alu_kernel("ftoi", Lane::F, true).is_some());
    assert_eq!(alu_kernel("max", Lane::F, false).map(|k| k.operands()), Some(2));
    assert_eq!(alu_kernel("rsqrt", Lane::D, false).map(|k| k.operands()), Some(1));
    for name in FlagRule::names() {
        assert_eq!(FlagRule::from_name(name).map(FlagRule::name), Some(name));
    }
    assert_eq!(FlagRule::from_name("nonsense"), None);
}

#[test]
fn worked_vectors() {
    use Lane::{D, F, H, I, L, S};
    let msb1_h = 0x8000_8000_8000_8000;
    #[rustfmt::skip]
    let table: &[(&str, Lane, bool, u32, u64, u64, u64)] = &[
        // name, lane, unsigned, bit or amount, x, y, result
        ("inc", L, false, 0, 2, 0, 3),
        ("not", I, false, 0, 0x8000_0000_8000_0000, 0, 0x7FFF_FFFF_7FFF_FFFF),
        ("bsl", S, false, 0, 0x1234_1234_1234_1234, 0x41F8_0000_0008_0018, 0x3412_1234_3412_3412),
        ("bsl", I, false, 0, 0x1234_5678_1234_5678, 0x0000_0010_0000_0030, 0x5678_1234_5678_1234),
        ("lsl", I, false, 0, 0x0000_0003_0000_0003, (33 << 32) | 65, 6),
        ("lsr", S, false, 0, 0x8000_8000_8000_4000, 0x0001_0010_001F_0020, 0xC000_FFFF_FFFF_4000),
        ("lsr", S, true, 0, 0x8000_8000_8000_4000, 0x0001_0010_001F_0020, 0x4000_0000_0000_4000),
        ("bsr", S, false, 0, 0x1234_1234_1234_1234, 0x0004_0014_0000_0010, 0x4123_4123_1234_1234),
        ("packbit", L, false, 0, 5, 0, 10),
        ("packbit", L, false, 0, 5, 1 << 63, 11),
        ("lnot", I, false, 0, 0x0000_0007_0000_0000, 0, 1),
        ("max", F, false, 0, 0x8000_0000_7F80_0001, 0x0000_0000_7F80_0000, 0x8000_0000_7F80_0001),
        ("max", F, false, 0, 0x8000_0001_BF80_0000, 0x0000_0042_C000_0000, 0x8000_0001_BF80_0000),
        ("min", F, false, 0, 0x3F80_0000_BF80_0000, 0xBF80_0000_C000_0000, 0xBF80_0000_C000_0000),
        ("min", L, true, 0, u64::MAX, 1, 1),
        ("min", L, false, 0, u64::MAX, 1, u64::MAX),
        ("relu", F, false, 0, 0x8000_0000_3F80_0000, 0x4000_0000_4000_0000, 0x8000_0000_4000_0000),
        ("relu", F, false, 1, 0x4000_0000_BF80_0000, 0x4000_0000_4000_0000, 0x8000_0000_4000_0000),
        ("lrelu", F, false, 1, 0x8000_0000_8000_0000, 0x4000_0000_0080_0001, 0x3F80_0000_8000_0000),
        ("lrelu", F, false, 3, 0x8000_0000_8000_0000, 0xC080_0001_7F80_0000, 0xBF00_0001_7F80_0000),
        ("ilrelu", H, false, 1, msb1_h, 0x3E00_0000_0001_7DFF, 0x4000_0200_0201_7FFF),
        ("rsqrt", F, false, 0, 0x3F80_0000_3FC0_0000, 0, 0x3F7C_0000_3F50_0000),
        ("rsqrt", F, false, 0, 0x40C0_0000_C0C0_0000, 0, 0x3ED0_0000_3ED0_0000),
        ("rsqrt", F, false, 0, 0x8000_0001_FF80_0001, 0, 0x7F80_0000_0000_0000),
        ("rsqrt", D, false, 0, 0x3FF0_0000_0000_0000, 0, 0x3FEF_8000_0000_0000),
        ("floor", F, false, 0, 0x3F00_0000_BF00_0000, 0, 0x0000_0000_BF80_0000),
        ("floor", F, false, 0, 0x4030_0000_C030_0000, 0, 0x4000_0000_C040_0000),
        ("floor", F, false, 0, 0x8000_0001_FF80_0001, 0, 0x8000_0001_FF80_0001),
        ("floor", H, false, 0, 0x3DFF_BFFF_C1FF_0200, 0, 0x0000_C000_C200_0000),
        ("ftoi", F, false, 0, 0x4030_0000_C030_0000, 0, 0x0000_0002_FFFF_FFFE),
        ("ftoi", F, false, 0, 0x4F32_D05E_CF32_D05E, 0, 0x7FFF_FFFF_8000_0000),
        ("ftoi", F, true, 0, 0xC030_0000_FF80_0000, 0, 0x0000_0002_FFFF_FFFF),
        ("ftoi", D, false, 0, 0xC1E0_0000_0010_0000, 0, 0xFFFF_FFFF_8000_0000),
        ("ftoi", H, false, 0, 0x4D00_CD00_5C00_DC00, 0, 0x00C0_FF40_7FFF_8000),
    ];
    for &(name, ty, unsigned, n, x, y, want) in table {
        let p = AluParams { bit: n, amount: n, table: TABLE };
        let mut out = [0];
        alu_kernel(name, ty, unsigned).expect(name).run(&p, &[x], &[y], &mut out);
        assert_eq!(out[0], want, "{name} {ty:?} {x:016x} {y:016x}: got {:016x}", out[0]);
    }
}

#[test]
fn flag_vectors() {
    let p = AluParams::default();
    #[rustfmt::skip]
    let table: &[(&str, Lane, u64, u64, u64, u8)] = &[
        // rule, lane, x, y, result, flags
        ("result_zero", Lane::L, 0, 0, 0, 0b1111),
        ("result_zero", Lane::L, 1, 0, 1, 0b0000),
        ("result_zero", Lane::I, 0, 0, 0x0000_0000_0000_0042, 0b1100),
        ("result_zero", Lane::S, 0, 0, 0x0000_0001_0000_0042, 0b1010),
        ("msb_clear", Lane::I, 0, 0, 0x8000_0000_7FFF_FFFF, 0b0011),
        ("no_carry", Lane::I, 0xFFFF_FFFF_0000_0001, 0, 0x0000_0000_0000_0002, 0b0011),
        ("no_borrow", Lane::S, 0x0000_0001_0000_0001, 0, 0xFFFF_0000_FFFF_0000, 0b0101),
        ("x_chosen", Lane::F, 0x8000_0000_0000_0001, 0, 0x8000_0000_0000_0002, 0b1100),
        ("y_msb_clear", Lane::S, 0, 0x8000_0000_0000_8000, 0, 0b0110),
        ("none", Lane::S, 0, 0, 0, 0),
    ];
    for &(rule, ty, x, y, out, want) in table {
        let mut flags = [0xFF];
        FlagRule::from_name(rule).expect(rule).eval(ty, &p, &[x], &[y], &[out], &mut flags);
        assert_eq!(flags[0], want, "{rule} {ty:?}: got {:04b}", flags[0]);
    }
}

#[test]
fn sixteen_bit_lanes_exhaustive() {
    let all: Vec<u64> = (0..=0xFFFF).collect();
    for instance in instances().into_iter().filter(|i| i.1.width() == 16) {
        let kernel = alu_kernel(instance.0, instance.1, instance.2).expect("instance");
        if kernel.operands() == 1 {
            let row: Vec<u64> = all.chunks(4).map(|c| pack_lanes(16, c)).collect();
            for p in params(instance.0) {
                check(instance, &p, &row, &vec![0; row.len()]).unwrap();
            }
        } else if instance.0.contains("relu") {
            // Only the top four bits of x matter.
            let xs: Vec<u64> = (0..16).map(|t| t << 12 | 0x5A5).collect();
            check_pairs(instance, &xs, &all);
        } else {
            let xs = boundary(H, if long() { 1 } else { 8 }, &[0, 1, 0x1FF]);
            check_pairs(instance, &xs, &all);
        }
    }
}

#[test]
fn boundary_pairs() {
    for instance in instances() {
        let fmt = fmt_of(instance.1.width());
        let step = match (fmt, long()) {
            (H, _) => 1,
            (F, true) => 1,
            (F, false) => 8,
            (_, true) => 8,
            (_, false) => 128,
        };
        let fractions = [0, 1, (1 << fmt.m) - 1, 1 << (fmt.m - 1)];
        let set = boundary(fmt, step, &fractions);
        let kernel = alu_kernel(instance.0, instance.1, instance.2).expect("instance");
        if kernel.operands() == 1 {
            // The same set on the x side; y does not matter.
            for p in params(instance.0) {
                let rows: Vec<u64> =
                    set.iter().map(|&v| pack_lanes(fmt.width(), &vec![v; instance.1.count()])).collect();
                check(instance, &p, &rows, &rows).unwrap();
            }
        } else {
            check_pairs(instance, &set, &set);
        }
    }
}

#[test]
fn every_shift_count() {
    let mut rng = Rng(7);
    for name in ["lsl", "lsr", "bsl", "bsr"] {
        for instance in instances().into_iter().filter(|i| i.0 == name) {
            let w = instance.1.width();
            let mask = u64::MAX >> (64 - w);
            let xs: Vec<u64> =
                [0, 1, mask, 1 << (w - 1)].into_iter().chain((0..60).map(|_| rng.next() & mask)).collect();
            // Counts wrap at twice the width. Higher bits of y are ignored.
            let ys: Vec<u64> = (0..u64::from(4 * w)).chain((0..64).map(|_| rng.next() & mask)).collect();
            check_pairs(instance, &xs, &ys);
        }
    }
}

proptest! {
    #![proptest_config(num_reference::proptest(if long() { 200_000 } else { 4_000 }))]

    /// Rows of random lanes, float-structured or plain, for every kernel.
    #[test]
    fn random_rows(index in 0usize..10_000, pick in 0usize..4, r in prop::collection::vec(any::<[u64; 4]>(), 1..40)) {
        let instances = instances();
        let instance = instances[index % instances.len()];
        let (w, n) = (instance.1.width(), instance.1.count());
        let fmt = fmt_of(w);
        let ps = params(instance.0);
        let row = |k: usize| -> Vec<u64> {
            r.chunks(n)
                .map(|c| {
                    let lanes: Vec<u64> =
                        (0..n).map(|i| { let q = c[i % c.len()]; word(fmt, [q[k].rotate_left(i as u32), q[k + 1]]) }).collect();
                    pack_lanes(w, &lanes)
                })
                .collect()
        };
        let (x, mut y) = (row(0), row(2));
        // Ties and carries occur with equal operands.
        if index % 5 == 0 {
            y.copy_from_slice(&x);
        }
        prop_assert_eq!(check(instance, &ps[pick % ps.len()], &x, &y), Ok(()));
    }
}
