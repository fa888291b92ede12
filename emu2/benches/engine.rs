//! Speed of the engine and the assembler. `cargo bench --package emu2`; compare figures of one run only.
//!
//! `plain_loop` reads and writes the rows that `long_add` does, without an emulator: the bound to compare with.

#![allow(clippy::unwrap_used, missing_docs)]

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use emu2::asm::{assemble, Policy, Program};
use emu2::machine::Machine;
use emu2::spec::Spec;
use std::hint::black_box;
use std::sync::Arc;

const STEPS: usize = 64;

fn program(spec: &Arc<Spec>, line: &str) -> Program {
    assemble(&format!("{line}\n").repeat(STEPS), "bench.vsm", spec, Policy::Run).unwrap()
}

fn engine(c: &mut Criterion) {
    let spec = Arc::new(Spec::load("mncore2").unwrap());
    let lanes = emu2::spec::LevelName::Pe;
    let operations = spec.units(lanes) * u64::from(spec.counts.cycle) * STEPS as u64;
    let mut group = c.benchmark_group("engine");
    group.throughput(Throughput::Elements(operations)).sample_size(20);
    for (name, line) in [
        ("long_add", "ladd $lm0v $ln0v $lr0v"),
        ("fvfma", "fvfma $lm0v $ln0v $lr0v $ls0v"),
        ("hvfma", "hvfma $lm0v $ln0v $llr0v $lls0v"),
        ("dvfmau", "dvfmau $lm0v $ln0v $lr0v $ls0v"),
        ("l1bmd", "l1bmd $lb0 $lm0v"),
    ] {
        let program = program(&spec, line);
        let mut machine = Machine::new(spec.clone());
        group.bench_function(name, |b| b.iter(|| emu2::exec::run(&mut machine, &program, &mut |_, _| Ok(())).unwrap()));
    }
    let rows = spec.lanes() * spec.counts.cycle as usize;
    let units = spec.units(emu2::spec::LevelName::L1b) as usize;
    let (x, y) = (vec![1u64; rows * units], vec![2u64; rows * units]);
    let mut out = vec![0u64; rows * units];
    group.bench_function("plain_loop", |b| {
        b.iter(|| {
            for unit in 0..units {
                let range = unit * rows..(unit + 1) * rows;
                for _ in 0..STEPS {
                    let (x, y) = (black_box(&x[range.clone()]), black_box(&y[range.clone()]));
                    for ((o, x), y) in out[range.clone()].iter_mut().zip(x).zip(y) {
                        *o = x.wrapping_add(*y);
                    }
                    black_box(&mut out);
                }
            }
        });
    });
    group.finish();
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
