//! Debug statements: what each form sets and prints, one test per sentence of the manual.

use emu2::asm::{assemble, Policy};
use emu2::error::Code;
use emu2::machine::Machine;
use emu2::spec::Spec;
use emu2::word::{encode, write, Form, Options};
use std::sync::Arc;

fn spec(name: &str) -> Arc<Spec> {
    Arc::new(Spec::load(name).unwrap())
}

fn lines_on(name: &str, text: &str) -> Vec<String> {
    let spec = spec(name);
    let program = assemble(text, "test.vsm", &spec, Policy::Check).unwrap_or_else(|e| panic!("{e}"));
    let mut lines = Vec::new();
    let mut machine = Machine::new(spec);
    emu2::report::run(&mut machine, &program, &mut |line| {
        lines.push(line.to_string());
        Ok(())
    })
    .unwrap_or_else(|e| panic!("{}", e.diagnostic));
    lines
}

fn lines(text: &str) -> Vec<String> {
    lines_on("mini", text)
}

/// Place and bits of lines without a type.
fn bits(lines: &[String]) -> Vec<(String, u64)> {
    let place = |line: &str| line.split("):").next().unwrap().trim_start_matches("DEBUG-").to_string() + ")";
    let value = |line: &str| {
        let hex = line.split("v:0x").nth(1).unwrap().split(')').next().unwrap();
        u64::from_str_radix(hex, 16).unwrap()
    };
    lines.iter().map(|line| (place(line), value(line))).collect()
}

fn found(text: &str) -> Vec<(String, u64)> {
    bits(&lines_on("mncore2", text))
}

fn expected(table: &[(&str, u64)]) -> Vec<(String, u64)> {
    table.iter().map(|(place, value)| ((*place).to_string(), *value)).collect()
}

/// Every entry has a line per cycle, and all lines have the entry's number.
#[test]
fn mask_registers() {
    let text = "d set $lm0p1 3 00000000000000010000000000000000000000000000FFFF\n\
                lpassa $lm0v $omr1\n\
                spassa $lm0v $omr2\n\
                d get $omr1n0c0b0m0p1 2 # two entries\n";
    let values = [[0, 15, 0, 15], [14, 15, 14, 15]];
    let mut expected = Vec::new();
    for (entry, cycles) in (1..).zip(values) {
        for value in cycles {
            let place = format!("DEBUG-OMR(n0c0b0m0p1,{entry})");
            expected.push(format!("{place}:Mask{{{value}}} #d get $omr1n0c0b0m0p1 2"));
        }
    }
    assert_eq!(lines(text), expected);
}

/// A row of a matrix register as a PE holds it (guess).
#[test]
fn matrix_registers() {
    let text = "d set $lm0m1p2 2 40000000000000003F80000000000000\n\
                fmwrite $lm0v $ly6\n\
                d getf $ly6n0c0b0m1p2 2\n";
    let expected = [
        "DEBUG-MATY(n0c0b0m1p2,6):(2, 0) (0x40000000, 0x00000000) #d getf $ly6n0c0b0m1p2 2",
        "DEBUG-MATY(n0c0b0m1p2,7):(1, 0) (0x3f800000, 0x00000000) #d getf $ly6n0c0b0m1p2 2",
    ];
    assert_eq!(lines(text), expected);
}

/// Long word k goes to `addr + 2k` in LM and GRF, `addr + k` in memories of long words, cycle k in T.
#[test]
fn long_words_lie_one_after_the_other() {
    let payload = "00000000000000010000000000000002000000000000000A";
    for (place, step) in [
        ("$lm6n0c0b0m0p0", 2),
        ("$ln6n0c0b0m0p0", 2),
        ("$lr6n0c0b0m0p0", 2),
        ("$ls6n0c0b0m0p0", 2),
        ("$lb6n0c0b0", 1),
        ("$lc6n0c0", 1),
        ("$p6n0", 1),
        ("$d6n0", 1),
    ] {
        let text = format!("d set {place} 3 {payload}\nd get {place} 3\n");
        let got = found(&text);
        let addresses: Vec<String> =
            got.iter().map(|(p, _)| p.rsplit(',').next().unwrap().trim_end_matches(')').to_string()).collect();
        assert_eq!(addresses, [6, 6 + step, 6 + 2 * step].map(|a: u32| a.to_string()), "{place}");
        assert_eq!(got.iter().map(|(_, v)| *v).collect::<Vec<_>>(), [1, 2, 10], "{place}");
    }
    let cycles = "d set $lt 3 00000000000000010000000000000002000000000000000a\nd get $ltn3c1b7m15p3 4\n";
    let unit = |k: u32| format!("TREG(n3c1b7m15p3,{k})");
    assert_eq!(found(cycles), [(unit(0), 1), (unit(1), 2), (unit(2), 10), (unit(3), 0)]);
}

/// A public program sets 28 long words with one statement.
#[test]
fn long_payloads() {
    let payload: String = (1..=28u64).map(|k| format!("{:016x}", k * 0x0123_4567_89AB)).collect();
    let got = found(&format!("d set $lm0n0c0b0m0p0 28 {payload}\nd get $lm0n0c0b0m0p0 28\n"));
    assert_eq!(
        got.iter().map(|(_, v)| *v).collect::<Vec<_>>(),
        (1..=28).map(|k| k * 0x0123_4567_89AB).collect::<Vec<_>>()
    );
}

/// Items of one letter each. The letters of words and halves are a guess.
#[test]
fn typed_payloads() {
    let table: &[(&str, &[u64])] = &[
        ("l0123456789abcdef", &[0x0123_4567_89AB_CDEF]),
        ("l0000000000000001l0000000000000002", &[1, 2]),
        ("l0000000000000001 \tl0000000000000002", &[1, 2]),
        ("i3F800000 i40000000", &[0x3F80_0000_4000_0000]),
        ("i3F800000i40000000", &[0x3F80_0000_4000_0000]),
        ("s1111s2222s3333s4444", &[0x1111_2222_3333_4444]),
        ("i11112222 s3333 s4444 l0000000000000005", &[0x1111_2222_3333_4444, 5]),
        ("s1111 s2222 i33334444", &[0x1111_2222_3333_4444]),
        ("s1_2", &[0x0000_0001_0000_0002]),
        ("s1_2s8000_ffffffff ! two words each", &[0x0000_0001_0000_0002, 0x0000_8000_FFFF_FFFF]),
        ("s1_2 i11112222 s3333 s4444", &[0x0000_0001_0000_0002, 0x1111_2222_3333_4444]),
    ];
    for (payload, words) in table {
        let count = words.len();
        let got = found(&format!("d set $lm0n0c0b0m0p0 {count} {payload}\nd get $lm0n0c0b0m0p0 {count}\n"));
        assert_eq!(got.iter().map(|(_, v)| *v).collect::<Vec<_>>(), *words, "{payload}");
    }
}

/// Words take the upper half of each long word of the payload, in order.
#[test]
fn words_take_the_upper_half() {
    for (letter, name) in [('m', "LM0"), ('n', "LM1"), ('r', "GREG0"), ('s', "GREG1")] {
        let text =
            format!("d set ${letter}1n0c0b0m0p0 2 11111111AAAAAAAA22222222BBBBBBBB\nd get $l{letter}0n0c0b0m0p0 2\n");
        let line = |at: u32| format!("{name}(n0c0b0m0p0,{at})");
        assert_eq!(found(&text), [(line(0), 0x1111_1111), (line(2), 0x2222_2222_0000_0000)]);
    }
    // The T register has long entries under both names.
    let t = "d set $tn0c0b0m0p0 1 11111111AAAAAAAA\nd get $tn0c0b0m0p0 1\n";
    assert_eq!(found(t), expected(&[("TREG(n0c0b0m0p0,0)", 0x1111_1111_AAAA_AAAA)]));
}

/// An omitted selector means all units of its level. Every subset of selectors is legal.
#[test]
fn selectors_may_be_omitted_at_any_level() {
    let counts = [4u32, 2, 8, 16, 4];
    let letters = ['n', 'c', 'b', 'm', 'p'];
    for subset in 0..32u32 {
        let named = |level: usize| subset >> level & 1 != 0;
        let selectors: String =
            (0..5).filter(|l| named(*l)).map(|l| format!("{}{}", letters[l], counts[l] - 1)).collect();
        let free: u32 = (0..5).filter(|l| !named(*l)).map(|l| counts[l]).product();
        let got = found(&format!("d set $lm0{selectors} 1 0000000000000007\nd get $lm0{selectors} 1\n"));
        assert_eq!(got.len() as u32, free, "{selectors}");
        assert!(got.iter().all(|(_, value)| *value == 7), "{selectors}");
        // In tree order n is outermost and p innermost.
        let mut places = Vec::new();
        for at in 0..counts.iter().product() {
            let digits: Vec<u32> = (0..5).map(|l| at / counts[l + 1..].iter().product::<u32>() % counts[l]).collect();
            if (0..5).all(|l| !named(l) || digits[l] == counts[l] - 1) {
                let unit: String = (0..5).map(|l| format!("{}{}", letters[l], digits[l])).collect();
                places.push(format!("LM0({unit},0)"));
            }
        }
        assert_eq!(got.into_iter().map(|(place, _)| place).collect::<Vec<_>>(), places, "{selectors}");
    }
    // Only one PE of every MAB is set.
    let text = "d set $lm0p1 1 0000000000000007\nd get $lm0n2c1b3m4 1\n";
    assert_eq!(found(text).iter().map(|(_, v)| *v).collect::<Vec<_>>(), [0, 7, 0, 0]);
}

/// Extensions of this project: `d set` on DRAM and PDM, `d get` of PDM, L1BM and L2BM; PDM shows PDM.
#[test]
fn memories_above_the_pes() {
    let text = "d set $p3n1 1 00000000000000A1\nd set $d3n1 1 00000000000000B2\nd set $p5 1 00000000000000C3\n\
                d get $p3n1 1\nd get $d3n1 1\nd get $p5 1\nd get $d536870911n3 1\nd get $lb8191n3c1b7 1\n\
                d get $lc32767n3c1 1\n";
    let table = [
        ("PDM(n1,3)", 0xA1),
        ("DRAM(n1,3)", 0xB2),
        ("PDM(n0,5)", 0xC3),
        ("PDM(n1,5)", 0xC3),
        ("PDM(n2,5)", 0xC3),
        ("PDM(n3,5)", 0xC3),
        ("DRAM(n3,536870911)", 0),
        ("L1BM(n3c1b7,8191)", 0),
        ("L2BM(n3c1,32767)", 0),
    ];
    assert_eq!(found(text), expected(&table));
}

/// A dump shows the values after the statement before it, whatever its latency. `d set` takes effect before the next line.
#[test]
fn statements_take_effect_at_once() {
    let text = "d set $lm0n0c0b0m0p0 1 0000000000000005\nlinc $lm0 $lr0\nd get $lr0n0c0b0m0p0 1\n\
                d set $lm0n0c0b0m0p0 1 0000000000000009\nlinc $lm0 $lr0\nd get $lr0n0c0b0m0p0 1\n";
    let place = "GREG0(n0c0b0m0p0,0)";
    assert_eq!(found(text), expected(&[(place, 6), (place, 10)]));
}

/// Every memory starts at zero, also the memories off the chip.
#[test]
fn memories_start_at_zero() {
    for place in ["$lm4094", "$ln0", "$lr510", "$ls0", "$lt", "$lb8191", "$lc32767", "$p524287", "$d536870911"] {
        assert!(found(&format!("d get {place} 1\n")).iter().all(|(_, value)| *value == 0), "{place}");
    }
}

/// Past the fourth, the entries of T repeat under their own addresses (guess).
#[test]
fn more_than_all_cycles() {
    let text = "d set $ltn0c0b0m0p0 4 0000000000000001000000000000000200000000000000030000000000000004\n\
                d get $ltn0c0b0m0p0 6\n";
    let unit = |k: u64| (format!("TREG(n0c0b0m0p0,{k})"), k % 4 + 1);
    assert_eq!(found(text), (0..6).map(unit).collect::<Vec<_>>());
}

/// A word access shows the 64 bits that begin at the word, and addresses grow by 1 (guess).
#[test]
fn words_are_shown_with_what_follows() {
    let text = "d set $ls268n0c0b0m0p0 2 11111111222222223333333344444444\nd get $s269n0c0b0m0p0 2\n";
    let table = [("GREG1(n0c0b0m0p0,269)", 0x2222_2222_3333_3333), ("GREG1(n0c0b0m0p0,270)", 0x3333_3333_4444_4444)];
    assert_eq!(found(text), expected(&table));
}

/// Exact lines of every type. The lines of block floats are a guess.
#[test]
fn text_of_every_type() {
    let unit = "n0c0b0m0p0";
    let table = [
        ("3FF0000000000000", "", "(f:1, i:{{0x3FF0,0x0},{0x0,0x0}}, v:0x3FF0000000000000)"),
        ("0000000000000000", "", "(f:0, i:{{0x0,0x0},{0x0,0x0}}, v:0x0)"),
        ("C010000000000000", "d", "(-4) (0xc010000000000000)"),
        ("7FF0000000000001", "d", "(inf) (0x7ff0000000000001)"),
        ("8000000000000019", "d", "(-0) (0x8000000000000019)"),
        ("49742400C0490FDB", "f", "(1e+06, -3.14159) (0x49742400, 0xc0490fdb)"),
        ("FF80000100000001", "f", "(-inf, 0) (0xff800001, 0x00000001)"),
        ("40C401F04284401F", "h", "(2.76562, 0, 5.03125, 2.12109) (0x40c4, 0x01f0, 0x4284, 0x401f)"),
        ("3E00803E00007E00", "h", "(1, -0, 0, inf) (0x3e00, 0x803e, 0x0000, 0x7e00)"),
        // 1, 3, -0.5 and 0 after `hbfn/9`, and similar values.
        ("40804180C0404000", "bh", "(1, 3, -0.5, 0) (0x4080, 0x4180, 0xc040, 0x4000)"),
        ("4020000040600000", "bf", "(1, 3) (0x40200000, 0x40600000)"),
        ("C010000040000000", "bg", "(-0.5, 0) (0xc0100000, 0x40000000)"),
        ("C012000000000000", "bd", "(-1) (0xc012000000000000)"),
        ("0018000000000000", "bd", "(2.22507e-308) (0x0018000000000000)"),
        ("0010000000000001", "bd", "(9.88131e-324) (0x0010000000000001)"),
        ("FFF0000000000001", "bd", "(-inf) (0xfff0000000000001)"),
        ("8000000000000001", "bd", "(-0) (0x8000000000000001)"),
    ];
    for (word, letters, value) in table {
        let text = format!("d set $ln4{unit} 1 {word}\nd get{letters} $ln4{unit} 1\n");
        assert_eq!(lines(&text), [format!("DEBUG-LM1({unit},4):{value} #d get{letters} $ln4{unit} 1")]);
    }
}

/// The echo: comments are removed, blanks normalised, and `$t` is written `$lt`. Selectors stay as they were written.
#[test]
fn echoes() {
    let table = [
        ("d get $lm0n0c0b0m0p0 1", "d get $lm0n0c0b0m0p0 1"),
        ("\t d \t get\t$lm0n0c0b0m0p0\t \t1 \t# comment", "d get $lm0n0c0b0m0p0 1"),
        ("d getd $tn0c0b0m0p0 1#x", "d getd $ltn0c0b0m0p0 1"),
        ("d getd $ltn0c0b0m0p0 1", "d getd $ltn0c0b0m0p0 1"),
        ("d geth $m0n0b0m0p0 1\r", "d geth $m0n0b0m0p0 1"),
        ("d getd $d0n0 1  # expect=[1.0] / Float @[0]", "d getd $d0n0 1"),
    ];
    for (text, echo) in table {
        let found = lines(&format!("{text}\n"));
        assert!(found.iter().all(|line| line.ends_with(&format!(" #{echo}"))), "{text}: {found:?}");
    }
}

/// A test case of the public judges: inputs, the marker, candidate code, outputs with expectations.
#[test]
fn skeletons_of_judges() {
    let text = "# case 1\n\
                d set $lm0n0c0b0m0p0 1 3FF0000000000000\n\
                r 0 000000002 001 4000000000000000\n\
                r 2 01FFFFFFF 001 4008000000000000 # the last word\n\
                # ======= YOUR VSM WILL BE INSERTED HERE =======\n\
                dvadd $lm0 $lm0 $ln0\n\
                d getd $ln0n0c0b0m0p0 1  # expect=[2.0] / Double @[0] atol=1e-05\n\
                d getd $d2n0 1  # expect=[2.0]\n\
                d getd $d536870911n2 1  # expect=[3.0]\n";
    let expected = [
        "DEBUG-LM1(n0c0b0m0p0,0):(2) (0x4000000000000000) #d getd $ln0n0c0b0m0p0 1",
        "DEBUG-DRAM(n0,2):(2) (0x4000000000000000) #d getd $d2n0 1",
        "DEBUG-DRAM(n2,536870911):(3) (0x4008000000000000) #d getd $d536870911n2 1",
    ];
    assert_eq!(lines_on("mncore2", text), expected);
}

/// Malformed commands of the host are refused by name.
#[test]
fn malformed_host_commands_are_refused() {
    let error = assemble("nop\nc 0 1 2\n", "test.vsm", &spec("mini"), Policy::Run).unwrap_err();
    let found: Vec<_> = error.diagnostics.iter().map(|d| (d.code, d.span.unwrap().start)).collect();
    assert_eq!(found, [(Code::HostCommand, 6)]);
}

/// In assembled text payloads are in upper case, comments are gone, and DRAM has lines of its own.
#[test]
fn assembled_debug_lines() {
    let spec = spec("mncore2");
    let text = "  d set $lm0n0c0b0m0p0 1 3ff00000000000ab   # one\n\
                d set $tn0 2 l00000000000000aai000000bbs00ccs00dd\n\
                d set $d16n3 2 00000000000000010000000000000002\n\
                d set $d0 1 0000000000000003\n\
                d set $p0n1 1 0000000000000004\n\
                d  getf   $tn0c0b0m0p0  4 # four\n";
    let program = assemble(text, "test.vsm", &spec, Policy::Check).unwrap();
    let lines = encode(&program, Options { form: Form::Words, inferred: false }).unwrap();
    let mut out = String::new();
    write(&spec, &lines, &mut |piece| {
        out.push_str(piece);
        Ok(())
    })
    .unwrap();
    let expected = "d set $lm0n0c0b0m0p0 1 3FF00000000000AB\n\
                    d set $ltn0 2 00000000000000AA000000BB00CC00DD\n\
                    r 3 000000010 001 0000000000000001\n\
                    r 3 000000011 001 0000000000000002\n\
                    d set $d0 1 0000000000000003\n\
                    d set $p0n1 1 0000000000000004\n\
                    d getf $ltn0c0b0m0p0 4\n";
    assert_eq!(out, expected);
    let read = emu2::word::read(out.as_bytes(), "test.asm", &spec).unwrap();
    assert_eq!(
        emu2::word::print(&read),
        emu2::word::print(&program).replace(
            "d set $d16n3 2 00000000000000010000000000000002",
            "d set $d16n3 1 0000000000000001\nd set $d17n3 1 0000000000000002",
        )
    );
}
