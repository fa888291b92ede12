//! Speed of the engine and the assembler. Run `cargo bench --package emu2-benches`, and compare figures of one run only.
//!
//! Every class of kernels is measured beside its limits: loops of [`emu2::limits`] on the same amount of data, compiled for
//! the same processor level. Elements are lane operations (one operation on one PE in one cycle), multiply-adds or long
//! words moved.

#![allow(clippy::unwrap_used, missing_docs)]

use criterion::{criterion_group, criterion_main, BenchmarkGroup, Criterion, Throughput};
use emu2::asm::{assemble, Policy, Program};
use emu2::limits;
use emu2::machine::{Machine, Region};
use emu2::spec::{LevelName, Spec, Unit};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// Steps of a program. They are enough to hide the evaluation of index maps and the last forwarding update of a region.
const STEPS: usize = 256;

type Group<'a> = BenchmarkGroup<'a, criterion::measurement::WallTime>;

/// Name, line, and elements per PE and cycle. 0 stands for matrix products, whose size the spec says.
const KERNELS: [(&str, &str, u64); 17] = [
    ("long_add", "ladd $lm0v $ln0v $lr0v", 1),
    ("long_add_kept", "ladd $lm0v $ln0v $lr0v; fvadd $aluf $lm0v $nowrite", 1),
    ("long_add_wide", "ladd $llm0v $lln0v $llr0v", 1),
    ("long_add_masked", "ladd $lm0v $ln0v $lr0v/1000", 1),
    ("fvfma", "fvfma $lm0v $ln0v $lr0v $ls0v", 2),
    ("hvfma", "hvfma $lm0v $ln0v $llr0v $lls0v", 4),
    ("dvfma", "dvfmau $lm0v $ln0v $lr0v $nowrite\ndvfmad $lm0v $ln0v $mauf $ls0v", 1),
    ("hmfma", "hmfma $lx $lm0v $llr0v $lls0v", 0),
    ("gmfma", "gmfma $lx $lm0v $lr0v $ls0v", 0),
    ("fmfma", "fmfma $lx $lm0v $lr0v $ls0v", 0),
    ("l1bmd_load", "l1bmd $lb0 $lm0v", 1),
    ("l1bmd_store", "l1bmd $lm0v $lb0", 1),
    ("l1bmm_load", "l1bmm $lb0 $lm0v", 1),
    ("l1bmp_load", "l1bmp $lb0 $lm0v", 1),
    ("l1bmrdfadd", "l1bmrdfadd $lm0v $lb0", 1),
    ("l1bmrffadd", "l1bmrffadd $lm0v $lb0", 1),
    ("l1bmrfmax", "l1bmrfmax $lm0v $lb0", 1),
];

/// A machine whose inputs hold numbers between 1 and 4 of the kernel's format, a different one in every lane. Lanes of a
/// MAB share exponents, as block float needs.
fn machine(spec: &Arc<Spec>, name: &str) -> Machine {
    let mut machine = Machine::new(spec.clone());
    let (exponents, fractions) = match name.chars().next().unwrap() {
        'd' => (0x3FF0_0000_0000_0000, 0x800F_FFFF_FFFF_FFFF),
        'f' | 'g' => (0x3F80_0000_3F80_0000, 0x807F_FFFF_807F_FFFF),
        _ => (0x3E00_3E00_3E00_3E00, 0x81FF_81FF_81FF_81FF),
    };
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state ^ state >> 33) & fractions | exponents
    };
    for (memory, entry) in spec.memories.iter().enumerate() {
        let words = match (entry.level, entry.unit) {
            (LevelName::Pe, Unit::Word | Unit::Matrix) | (LevelName::L1b, _) => entry.words.min(64),
            _ => continue,
        };
        let region = Region { memory, units: [None; 5], addr: 0, count: words };
        let data: Vec<u64> = (0..words * spec.units(entry.level)).map(|_| random()).collect();
        machine.write(&region, &data).unwrap();
    }
    machine
}

fn program(spec: &Arc<Spec>, lines: &str) -> Program {
    assemble(&format!("{lines}\n").repeat(STEPS), "bench.vsm", spec, Policy::Run).unwrap()
}

/// Multiply-adds of a matrix product per PE and cycle: rows times columns in each MAB.
fn multiply_adds(spec: &Spec, name: &str) -> u64 {
    let precision = spec.mau_precisions.iter().find(|m| name.starts_with(&m.name)).unwrap();
    u64::from(precision.rows * precision.columns / spec.counts.pe)
}

fn engine(c: &mut Criterion) {
    let spec = Arc::new(Spec::load("mncore2").unwrap());
    let lane_ops = spec.units(LevelName::Pe) * u64::from(spec.counts.cycle) * STEPS as u64;
    let mut group = c.benchmark_group("engine");
    group.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_millis(500));
    // The benchmarks use one thread unless a row says otherwise.
    let threads = rayon::ThreadPoolBuilder::new().build().unwrap();
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    for (name, lines, elements) in KERNELS {
        let program = program(&spec, lines);
        let mut machine = machine(&spec, name);
        let elements = if elements == 0 { multiply_adds(&spec, name) } else { elements };
        group.throughput(Throughput::Elements(lane_ops * elements));
        let mut run = || emu2::exec::run(&mut machine, &program, &mut |_, _| Ok(())).unwrap();
        group.bench_function(name, |b| b.iter(&mut run));
        if name == "fvfma" {
            group.bench_function("fvfma_all_threads", |b| b.iter(|| threads.install(&mut run)));
        }
    }
    let rows = spec.lanes() * spec.counts.cycle as usize;
    let units = spec.units(LevelName::L1b) as usize;
    plain(&mut group, rows, units);
    group.finish();
}

/// Runs the limits on the rows of `units` L1Bs, [`STEPS`] times on each.
fn plain(group: &mut Group<'_>, rows: usize, units: usize) {
    let each = |b: &mut criterion::Bencher<'_>, step: &mut dyn FnMut(usize)| {
        b.iter(|| (0..units).for_each(|unit| (0..STEPS).for_each(|_| step(unit * rows))));
    };
    let total = (rows * units * STEPS) as u64;
    let (x, y) = (vec![1u64; rows * units], vec![2u64; rows * units]);
    let mut out = vec![0u64; rows * units];
    group.throughput(Throughput::Elements(total));
    group.bench_function("plain_add", |b| {
        each(b, &mut |at| {
            limits::add(black_box(&x[at..at + rows]), black_box(&y[at..at + rows]), &mut out[at..at + rows]);
            black_box(&mut out);
        });
    });
    group.bench_function("plain_copy", |b| {
        each(b, &mut |at| {
            limits::copy(black_box(&x[at..at + rows]), &mut out[at..at + rows]);
            black_box(&mut out);
        });
    });
    let [x, y, z] = [1.5f64, 0.75, 3.0].map(|v| vec![v; rows * units]);
    let mut out = vec![0f64; rows * units];
    group.bench_function("plain_fma_f64", |b| {
        each(b, &mut |at| {
            let row = at..at + rows;
            limits::fma_f64(black_box(&x[row.clone()]), black_box(&y[row.clone()]), &z[row.clone()], &mut out[row]);
            black_box(&mut out);
        });
    });
    const LENGTH: usize = 8192;
    let (x, mut sums) = ([3i16; LENGTH], [0; _]);
    group.throughput(Throughput::Elements(LENGTH as u64));
    group.bench_function("plain_multiply_add_16", |b| {
        b.iter(|| limits::multiply_add_16(black_box(&x), black_box(&mut sums)));
    });
}

fn assembler(c: &mut Criterion) {
    let spec = Arc::new(Spec::load("mncore2").unwrap());
    let text = "fvfma $lm0v $ln0v $lr0v $ls0v\n".repeat(10_000);
    let mut group = c.benchmark_group("assembler");
    group.throughput(Throughput::Elements(10_000)).sample_size(10);
    group.bench_function("lines", |b| b.iter(|| assemble(black_box(&text), "bench.vsm", &spec, Policy::Run).unwrap()));
    group.finish();
}

criterion_group!(benches, engine, assembler);
criterion_main!(benches);
