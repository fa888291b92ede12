//! Arithmetic kernels choose their clone once, by timing their first calls. No choice changes a bit.

use emu2::num::alu::{alu_kernel, AluParams};
use emu2::num::clone_choice::choices;
use emu2::num::lane::Lane;
use emu2::num::level::Level;
use emu2::num::matvec::{self, Cycle, DMatrix, FMatrix, GMatrix, HMatrix};
use emu2::num::mau::{self, MauNeg, MauOutput};
use emu2::num::reduce::reduce_kernel;
use emu2::num::{blockfloat, convert};

const LANES: usize = 64;
const MABS: usize = 16;
const NEG: MauNeg = MauNeg { x: false, y: false, z: false };

/// A row of ordinary floats in lanes of every width: each half has the same exponent field.
fn row(mut seed: u64) -> Vec<u64> {
    let mut next = || {
        seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (seed ^ seed >> 33) & 0x80FF_80FF_80FF_80FF | 0x3E00_3E00_3E00_3E00
    };
    (0..LANES).map(|_| next()).collect()
}

/// Calls every class of kernels once. Returns their results one after the other, and the name of a kernel of each class.
fn run_all() -> Vec<(&'static str, Vec<u64>)> {
    let (x, y, z) = (row(1), row(2), row(3));
    let mut all = Vec::new();
    let mut note = |name: &'static str, call: &mut dyn FnMut(&mut [u64], &mut [u64])| {
        let (mut o0, mut o1) = (vec![0; LANES], vec![0; LANES]);
        call(&mut o0, &mut o1);
        all.push((name, [o0, o1].concat()));
    };
    let singles: [[u32; 8]; 8] = std::array::from_fn(|i| std::array::from_fn(|j| (x[8 * i + j] >> 32) as u32));
    let h = HMatrix::decode(&[&x, &y, &z].map(|row| row.repeat(6)).concat(), MABS);
    let f = vec![FMatrix::decode(&singles, 5); MABS];
    let g = vec![GMatrix::decode(&singles, 5); MABS];
    let d = vec![DMatrix::decode(&std::array::from_fn(|i| std::array::from_fn(|j| x[4 * i + j])), 16); MABS];
    let products: [(&'static str, &dyn Fn(&mut [Cycle<'_>])); 8] = [
        ("h_mfma", &|c| matvec::h_mfma(&h, c, NEG)),
        ("h_mfma_r", &|c| matvec::h_mfma_r(&h, c, NEG)),
        ("f_mfma", &|c| matvec::f_mfma(&f, c, NEG)),
        ("f_mfma_r", &|c| matvec::f_mfma_r(&f, c, NEG)),
        ("g_mfma", &|c| matvec::g_mfma(&g, c, NEG)),
        ("g_mfma_r", &|c| matvec::g_mfma_r(&g, c, NEG)),
        ("d_mfma", &|c| matvec::d_mfma(&d, c, NEG, [true; 4])),
        ("d_mfma_r", &|c| matvec::d_mfma_r(&d, c, NEG, [true; 4])),
    ];
    for (name, product) in products {
        note(name, &mut |o0, o1| product(&mut [Cycle { x: &x, z: [&y, &z], out: [o0, o1] }]));
    }
    note("h_fma", &mut |o0, o1| mau::h_fma(&x, &y, &z, &z, NEG, o0, o1));
    note("h_fma_r", &mut |o0, _| mau::h_fma_r(&x, &y, &z, &z, NEG, o0));
    note("f_fma", &mut |o0, _| mau::f_fma(&x, &y, &z, NEG, 5, o0));
    note("f_fma_r", &mut |o0, _| mau::f_fma_r(&x, &y, &z, NEG, 5, o0));
    note("f_add", &mut |o0, _| mau::f_add(&x, &z, NEG, o0));
    note("d_fma", &mut |o0, _| mau::d_fma(&x, &y, &z, NEG, [true; 4], 16, o0));
    note("d_fma_both", &mut |o0, _| mau::d_fma_both(&x, &y, &z, NEG, [true, true, false, false], 16, o0));
    note("d_fma_r", &mut |o0, _| mau::d_fma_r(&x, &y, &z, NEG, 16, o0));
    note("d_add", &mut |o0, _| mau::d_add(&x, &z, NEG, o0));
    note("mau_flags", &mut |o0, _| {
        let mut flags = [0u8; LANES];
        mau::mau_flags(MauOutput::F, &x, &[], &mut flags);
        o0.iter_mut().zip(flags).for_each(|(o, flag)| *o = flag.into());
    });
    note("h_bfn", &mut |o0, _| blockfloat::h_bfn(9, &x, o0));
    note("extend_h4", &mut |o0, o1| convert::extend_h4(&x, o0, o1));
    note("reduce_f4", &mut |o0, _| convert::reduce_f4(&x, &y, o0));
    let add = alu_kernel("add", Lane::L, false).unwrap();
    note("alu add 64", &mut |o0, _| add.run(&AluParams::default(), &x, &y, o0));
    for (name, lane) in [("reduce fadd 16", Lane::H), ("reduce fadd 32", Lane::F), ("reduce fadd 64", Lane::D)] {
        let sum = reduce_kernel("fadd", lane, false).unwrap();
        let inputs = [&x[..], &y, &z].concat();
        note(name, &mut |o0, _| sum.stage(&inputs, o0));
    }
    all
}

/// More calls than a kernel times.
const CALLS: usize = 100;

// This is one test, because a forced level holds for the whole process.
#[test]
fn clones_are_chosen_once_and_give_the_same_bits() {
    let expected = run_all();
    for _ in 0..CALLS {
        assert_eq!(run_all(), expected);
    }
    let chosen = choices();
    if Level::forced().is_some() {
        assert!(chosen.is_empty(), "a forced level leaves no choice: {chosen:?}");
    } else {
        for (class, _) in &expected {
            let levels: Vec<Level> = chosen.iter().filter(|(name, _)| name == class).map(|(_, level)| *level).collect();
            let [level] = levels[..] else { panic!("{class}: {levels:?} of {chosen:?}") };
            assert!(Level::supported().contains(&level));
            // If there is another level, the baseline must not be chosen.
            assert!(Level::supported().len() == 1 || level != Level::supported()[0], "{class}");
        }
        for _ in 0..CALLS {
            run_all();
        }
        assert_eq!(choices(), chosen, "a choice was made again");
    }
    for level in Level::supported() {
        level.set();
        assert_eq!(Level::forced(), Some(level));
        assert_eq!(run_all(), expected, "forced to {}", level.name());
    }
}
