//! The host interface: bytes, tags, kernels in sequence, faults.

use emu2::error::{Code, Error};
use emu2::host::{Device, Endian, Kernel, NO_TAG};
use emu2::spec::Spec;
use std::sync::Arc;

fn open(name: &str) -> Device {
    Device::open(Arc::new(Spec::load(name).unwrap())).unwrap()
}

fn kernel(device: &Device, text: &str) -> Kernel {
    device.load_kernel(text.as_bytes(), "kernel.vsm").unwrap_or_else(|e| panic!("{e}"))
}

fn run(device: &mut Device, kernel: &Kernel) -> Vec<String> {
    let mut lines = Vec::new();
    let sink = &mut |line: &str| {
        lines.push(line.to_string());
        Ok(())
    };
    device.exec(kernel, sink).unwrap_or_else(|e| panic!("line {}: {}", e.line, e.diagnostic));
    lines
}

fn pdm(device: &Device, addr: u64, count: u64) -> Vec<u64> {
    device.debug_read("pdm", [0; 5], addr, count).unwrap()
}

/// Bytes 0 to 63 as long words of the device, the first and the last one, in every mode. Typed by hand.
#[test]
fn golden_buffer() {
    let table: [(u8, u64, u64); 5] = [
        (0, 0x3F3E_3D3C_3B3A_3938, 0x0706_0504_0302_0100),
        (1, 0x0001_0203_0405_0607, 0x3839_3A3B_3C3D_3E3F),
        (2, 0x0100_0302_0504_0706, 0x3938_3B3A_3D3C_3F3E),
        (3, 0x0302_0100_0706_0504, 0x3B3A_3938_3F3E_3D3C),
        (4, 0x0706_0504_0302_0100, 0x3F3E_3D3C_3B3A_3938),
    ];
    let golden: Vec<u8> = (0..64).collect();
    for (mode, first, last) in table {
        let mut device = open("mini");
        assert_eq!(device.endian().mode(), 4);
        device.set_endian(Endian::new(mode).unwrap());
        device.send(&golden, 128, NO_TAG).unwrap();
        let words = pdm(&device, 16, 8);
        assert_eq!((words[0], words[7]), (first, last), "mode {mode}");
        assert_eq!((pdm(&device, 15, 1), pdm(&device, 24, 1)), (vec![0], vec![0]));
        let mut back = device.alloc(64).unwrap();
        device.recv(&mut back, 128, NO_TAG).unwrap();
        assert_eq!(back, golden, "mode {mode}");
    }
    assert_eq!(Endian::new(5).unwrap_err().code(), Code::BadOption);
}

/// Each kernel finds the results of the one before, in every memory.
#[test]
fn state_stays_from_kernel_to_kernel() {
    let mut device = open("mncore2");
    let add = kernel(
        &device,
        "nop; wait i10\nmvb/n64i01 $p0@0 $lc0\nnop; wait i01\nl2bmb $lc0 $lb0\nnop\nl1bmp $lb0 $lr0v\nnop/2\n\
         ladd $lr0v $ls0v $ls0v\nnop/2\nl1bmm@0 $ls0v $lb64\nnop/2\nl2bm@0 $lb64 $lc64\nnop\n\
         mvp/n64i1e $lc64@0.0 $p64@0\n",
    );
    let mut total = [0u64; 4];
    for round in 1..=20u64 {
        let words: Vec<u64> = (0..64).map(|k| round * 100 + k).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        device.send(&bytes, 0, 0x10).unwrap();
        run(&mut device, &add);
        (0..4).for_each(|c| total[c] += words[c]);
        let mut out = vec![0; 128];
        device.recv(&mut out, 512, 0x1e).unwrap();
        let got: Vec<u64> = out.chunks(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
        // Cycle c, the same on each of the four PEs.
        assert_eq!(got, (0..16).map(|k| total[k / 4]).collect::<Vec<_>>(), "round {round}");
    }
    assert_eq!(device.debug_read("GRF1", [3, 1, 7, 15, 3], 2, 1).unwrap(), [total[2]]);
    device.reset();
    assert_eq!(device.debug_read("GRF1", [3, 1, 7, 15, 3], 2, 1).unwrap(), [0]);
}

/// Uses of tags, in order: S send, M a kernel whose MV carries the tag, W a kernel that waits for it, B one that does both,
/// R receive. The last step fails with the code, or everything works.
#[test]
fn tags() {
    let table: &[(&str, Option<Code>)] = &[
        ("SW", None),
        ("MW", None),
        ("MR", None),
        ("BR", None),
        ("SWW", None),
        ("MMR", None),
        ("MRMR", None),
        ("SSW", None),
        ("BSW", None),
        ("MRSW", None),
        ("W", Some(Code::UnsignalledTag)),
        ("R", Some(Code::NothingToReceive)),
        ("SR", Some(Code::NothingToReceive)),
        ("MRR", Some(Code::NothingToReceive)),
        ("MS", Some(Code::TagInFlight)),
        ("SMS", Some(Code::TagInFlight)),
        ("BSR", Some(Code::NothingToReceive)),
    ];
    for (steps, expected) in table {
        let mut device = open("mini");
        let mut result = Ok(());
        for (at, step) in steps.chars().enumerate() {
            assert_eq!(result, Ok(()), "{steps} before step {at}");
            let mut exec = |text: &str| {
                let kernel = kernel(&device, text);
                device.exec(&kernel, &mut |_| Ok(())).map(|_| ()).map_err(|e| {
                    assert_eq!(e.line, 2, "{steps}");
                    e.diagnostic.code
                })
            };
            result = match step {
                'S' => device.send(&[1; 8], 0, 0x2f).map_err(|e| e.code()),
                'R' => device.recv(&mut [0; 8], 0, 0x2f).map_err(|e| e.code()),
                'M' => exec("nop\nmvp/n64i2f $p0@0 $p64@0\n"),
                'W' => exec("nop\nlinc $lm0 $ln0; wait i2f\n"),
                _ => exec("mvp/n64i2f $p0@0 $p64@0\nnop; wait i2f\n"),
            };
        }
        assert_eq!(result.err(), *expected, "{steps}");
        // A device that stopped in a kernel refuses everything but debug reads, until it is reset.
        if *expected == Some(Code::UnsignalledTag) {
            assert_eq!(device.send(&[1; 8], 0, NO_TAG).unwrap_err().code(), Code::Poisoned);
            assert_eq!(device.recv(&mut [1; 8], 0, NO_TAG).unwrap_err().code(), Code::Poisoned);
            assert_eq!(pdm(&device, 0, 1), [0]);
            device.reset();
            device.send(&[1; 8], 0, NO_TAG).unwrap();
        }
    }
}

/// Transfers that no device accepts.
#[test]
fn bounds() {
    let mut device = open("mini");
    let size = device.size();
    assert_eq!(size, 16384 * 8);
    let table: &[(usize, u64, u32, Option<Code>)] = &[
        (8, 0, 0, None),
        (8, size - 8, 63, None),
        (size as usize, 0, 0, None),
        (0, 0, 0, Some(Code::TransferUnit)),
        (4, 0, 0, Some(Code::TransferUnit)),
        (8, 4, 0, Some(Code::TransferUnit)),
        (16, size - 8, 0, Some(Code::TransferRange)),
        (8, size, 0, Some(Code::TransferRange)),
        (8, u64::MAX - 7, 0, Some(Code::TransferRange)),
        (8, 0, 64, Some(Code::TagRange)),
        (8, 0, u32::MAX, Some(Code::TagRange)),
    ];
    for (bytes, offset, tag, expected) in table {
        let sent = device.send(&vec![0; *bytes], *offset, *tag).map_err(|e| e.code());
        assert_eq!(sent.err(), *expected, "send {bytes} at {offset} tag {tag}");
        if expected.is_some() {
            let received = device.recv(&mut vec![0; *bytes], *offset, *tag).map_err(|e| e.code());
            assert_eq!(received.err(), *expected, "recv {bytes} at {offset} tag {tag}");
        }
    }
    // A block that is reversed is transferred whole.
    device.set_endian(Endian::new(0).unwrap());
    for (bytes, offset, good) in [(64, 64, true), (32, 0, false), (64, 8, false)] {
        assert_eq!(device.send(&vec![0; bytes], offset, 0).is_ok(), good, "{bytes} at {offset}");
    }
    let alloc = |bytes| device.alloc(bytes).map(|b| b.len()).map_err(|e| e.code());
    assert_eq!(alloc(64), Ok(64));
    assert_eq!(alloc(0), Err(Code::TransferUnit));
    assert_eq!(alloc(size as usize + 64), Err(Code::TransferRange));
}

/// Sources, assembled text and containers, recognised by name or by their form.
#[test]
fn forms_of_kernels() {
    let mut device = open("mncore2");
    let source = "d set $lm0 1 4000000000000000\ndvadd $lm0v $lm0v $ln0v\nd getd $ln0n0c0b0m0p0 1\n";
    let program = emu2::asm::assemble(source, "k.vsm", device.spec(), emu2::asm::Policy::Run).unwrap();
    let options = emu2::word::Options { form: emu2::word::Form::Words, inferred: false };
    let lines = emu2::word::encode(&program, options).unwrap();
    let mut assembled = String::new();
    let push = &mut |piece: &str| {
        assembled.push_str(piece);
        Ok::<(), Error>(())
    };
    emu2::word::write(device.spec(), &lines, push).unwrap();
    let container = emu2::word::pack(&program).unwrap();
    let table: [(&[u8], &str); 6] = [
        (source.as_bytes(), "k.vsm"),
        (source.as_bytes(), "kernel"),
        (assembled.as_bytes(), "k.asm"),
        (assembled.as_bytes(), "kernel"),
        (&container, "k.idma.dat"),
        (&container, "k.vsm"),
    ];
    for (data, name) in table {
        let kernel = device.load_kernel(data, name).unwrap_or_else(|e| panic!("{name}: {e}"));
        let lines = run(&mut device, &kernel);
        assert_eq!(lines, ["DEBUG-LM1(n0c0b0m0p0,0):(4) (0x4010000000000000) #d getd $ln0n0c0b0m0p0 1"], "{name}");
        assert_eq!(kernel.report().steps, 1);
    }
    let refused: [(&[u8], &str, &str); 4] = [
        (b"fly\n", "k.vsm", "A0102"),
        (b"i 01\n", "k.asm", "W0202"),
        (b"\x7fEMU2\r\n\x1a", "k.idma.dat", "W0301"),
        (b"", "kernel", "F0003"),
    ];
    for (data, name, code) in refused {
        let error = device.load_kernel(data, name).unwrap_err();
        assert_eq!(error.diagnostics[0].code.id(), code, "{name}");
        assert!(error.to_string().contains(code), "{error}");
    }
    let mini = open("mini");
    let foreign = kernel(&mini, "nop\n");
    let error = device.exec(&foreign, &mut |_| Ok(())).unwrap_err();
    assert_eq!((error.line, error.diagnostic.code), (0, Code::WrongSpec));
    // Nothing has run, so the device is still usable.
    device.send(&[0; 8], 0, NO_TAG).unwrap();
}

/// A plain run takes the first wait of a kernel as a finished host transfer. A device does not.
#[test]
fn a_plain_run_assumes_the_host() {
    let text = "nop\nnop; wait i10\nlinc $lm0 $ln0\nd get $ln0n0c0b0m0p0 1\n";
    let mut device = open("mini");
    let kernel = kernel(&device, text);
    assert_eq!(kernel.report().host_tags, [0x10]);
    let error = device.exec(&kernel, &mut |_| Ok(())).unwrap_err();
    assert_eq!((error.line, error.diagnostic.code), (2, Code::UnsignalledTag));
    let mut machine = emu2::machine::Machine::new(device.spec().clone());
    let mut lines = 0;
    let count = &mut |_: &str| {
        lines += 1;
        Ok(())
    };
    emu2::report::run(&mut machine, kernel.program(), count).unwrap_or_else(|e| panic!("{}", e.diagnostic));
    assert_eq!(lines, 1);
}

/// A debugger reads and writes every memory of every unit in long words.
#[test]
fn debug_access() {
    let mut device = open("mncore2");
    let place = [2, 1, 5, 9, 3];
    for (at, region) in ["PDM", "DRAM", "L2BM", "L1BM", "LM0", "LM1", "GRF0", "GRF1"].iter().enumerate() {
        let words = [at as u64 + 1, 0xFFFF_FFFF_FFFF_FFFF];
        device.debug_write(region, place, 100, &words).unwrap();
        assert_eq!(device.debug_read(region, place, 99, 4).unwrap(), [0, words[0], words[1], 0], "{region}");
        let mut other = place;
        other[0] = 3;
        assert_eq!(device.debug_read(region, other, 100, 1).unwrap(), [0], "{region}");
        assert_eq!(device.debug_read(&region.to_lowercase(), place, 100, 1).unwrap(), [words[0]], "{region}");
    }
    // An address of the debugger is half of the assembly's.
    let show = kernel(&device, "d get $lm200n2c1b5m9p3 1\n");
    assert!(run(&mut device, &show)[0].contains("LM0(n2c1b5m9p3,200)"));
    assert!(run(&mut device, &show)[0].contains("v:0x5)"));
    let faults: [(&str, [u32; 5], u64, u64, Code); 5] = [
        ("CACHE", place, 0, 1, Code::UnknownMemory),
        ("LM0", [4, 0, 0, 0, 0], 0, 1, Code::BadSelector),
        ("LM0", [0, 0, 0, 0, 4], 0, 1, Code::BadSelector),
        ("LM0", place, 2047, 2, Code::AddressRange),
        ("DRAM", place, u64::MAX, 1, Code::AddressRange),
    ];
    for (region, place, addr, count, code) in faults {
        assert_eq!(device.debug_read(region, place, addr, count).unwrap_err().code(), code, "{region} {addr}");
    }
    // Levels below the level of the memory are ignored.
    assert!(device.debug_read("PDM", [0, 9, 9, 99, 9], 0, 1).is_ok());
}

/// If 1 MiB of 16 GiB is written and a far address is read, the host spends only megabytes.
#[test]
fn dram_costs_what_is_touched() {
    let mut device = open("mncore2");
    let bytes: Vec<u8> = (0..1u32 << 20).map(|k| (k % 251) as u8 + 1).collect();
    device.send(&bytes, 0, 0x10).unwrap();
    let spread = kernel(
        &device,
        "nop; wait i10\nmvp/n131072i01 $p0@0 $d536739840@3\nnop; wait i01\nd get $d0n1 64\nd get $d268435456 8\n\
         d get $d536870911 1\n",
    );
    let lines = run(&mut device, &spread);
    assert_eq!(lines.len(), 64 + 4 * 8 + 4);
    // PDM and DRAM hold the mebibyte once each, in whole pages.
    assert_eq!(device.machine().resident_bytes(), 2 << 20);
    let last = u64::from_le_bytes(bytes[bytes.len() - 8..].try_into().unwrap());
    assert_eq!(device.debug_read("DRAM", [3, 0, 0, 0, 0], 536_870_911, 1).unwrap(), [last]);
}
