//! Facts of the full chip, typed from the manual. The spec must state them even if no test of behaviour sees them.

use emu2::spec::{Addressing, DataWidth, MatrixKernel, MauPort, Ports, Spec, Status, Unit};

fn spec() -> Spec {
    Spec::load("mncore2").unwrap()
}

#[test]
fn tree_and_links() {
    let spec = spec();
    let c = spec.counts;
    assert_eq!((c.group, c.l2b, c.l1b, c.mab, c.pe, c.cycle), (4, 2, 8, 16, 4, 4));
    assert_eq!(spec.units(emu2::spec::LevelName::Pe), 4096);
    assert_eq!(spec.machine.clock_mhz, 750);
    let letters: String = spec.levels.iter().map(|l| l.selector).collect();
    assert_eq!(letters, "ncbmp");
    let ports: Vec<_> = spec.ports.iter().map(|(n, w)| (n.as_str(), *w)).collect();
    let expected = [
        ("l2bm_narrow", 16),
        ("l2bm_lane", 8),
        ("reduce_inputs", 4),
        ("l1b_pair", 2),
        ("dar_lane", 64),
        ("mv_block", 16),
        ("mv_unit", 64),
    ];
    assert_eq!(ports, expected);
}

#[test]
fn memories() {
    let spec = spec();
    let table: &[(&str, u64, Unit, Ports, &str)] = &[
        ("pdm", 524_288, Unit::Long, Ports::Shared, "PDM"),
        ("dram", 536_870_912, Unit::Long, Ports::Shared, "DRAM"),
        ("dar", 1024, Unit::Long, Ports::Shared, "DAR"),
        ("dar_buffer", 258, Unit::Long, Ports::Shared, "DARBUF"),
        ("l2bm", 32_768, Unit::Long, Ports::Shared, "L2BM"),
        ("l1bm", 8_192, Unit::Long, Ports::Shared, "L1BM"),
        ("turnaround", 256, Unit::Long, Ports::Split, "TURN"),
        ("lm0", 2_048, Unit::Word, Ports::Shared, "LM0"),
        ("lm1", 2_048, Unit::Word, Ports::Shared, "LM1"),
        ("grf0", 256, Unit::Word, Ports::Split, "GREG0"),
        ("grf1", 256, Unit::Word, Ports::Split, "GREG1"),
        ("t", 8, Unit::Cycle, Ports::Split, "TREG"),
        ("omr", 64, Unit::Mask, Ports::Split, "OMR"),
        ("bar0", 1, Unit::Base, Ports::Split, "BAR0"),
        ("bar1", 1, Unit::Base, Ports::Split, "BAR1"),
        ("mx", 16, Unit::Matrix, Ports::Shared, "MATX"),
        ("my", 16, Unit::Matrix, Ports::Shared, "MATY"),
    ];
    let reached: Vec<_> = spec.memories.iter().filter_map(|m| Some((m.name.as_str(), m.host?))).collect();
    assert_eq!(reached, [("pdm", 0)]);
    assert_eq!(spec.memories.len(), table.len());
    for (m, (name, words, unit, ports, dump)) in spec.memories.iter().zip(table) {
        assert_eq!((m.name.as_str(), m.words, m.unit, m.ports, m.dump.as_str()), (*name, *words, *unit, *ports, *dump));
    }
}

#[test]
fn operands() {
    use Addressing::{Flat, Indirect, Modify, Stride};
    let spec = spec();
    let all: &[&str] = &["", "l", "ll"];
    let table: &[(&str, &str, &[&str], &[Addressing], Option<&str>)] = &[
        ("m", "lm0", all, &[Stride, Flat, Indirect, Modify], Some("bar0")),
        ("n", "lm1", all, &[Stride, Flat, Modify], Some("bar1")),
        ("r", "grf0", all, &[Stride, Flat], None),
        ("s", "grf1", all, &[Stride, Flat], None),
        ("t", "t", all, &[], None),
        ("b", "l1bm", &["l", "ll"], &[], None),
        ("c", "l2bm", &["l"], &[], None),
        ("d", "dram", &[""], &[], None),
        ("di", "dram", &[""], &[], None),
        ("dar", "dar", &[""], &[], None),
        ("p", "pdm", &[""], &[], None),
    ];
    assert_eq!(spec.operands.len(), table.len());
    for (o, (letter, memory, widths, addressing, base)) in spec.operands.iter().zip(table) {
        let token = format!("{}{}", o.letter, o.suffix);
        assert_eq!((token.as_str(), o.memory.as_str(), o.base.as_deref()), (*letter, *memory, *base));
        assert_eq!(o.widths, *widths, "{letter}");
        assert_eq!(o.addressing, *addressing, "{letter}");
    }
    let widths: Vec<_> = spec.widths.iter().map(|w| (w.prefix.as_str(), w.words)).collect();
    assert_eq!(widths, [("", 1), ("l", 2), ("ll", 4)]);
    let bases: Vec<_> = spec.bases.iter().map(|b| (b.name.as_str(), b.memory.as_str(), b.bits)).collect();
    assert_eq!(bases, [("mb", "bar0", 12), ("nb", "bar1", 12)]);
    assert!(spec.bases.iter().all(|b| b.widths == ["", "l"]));
    let banks: Vec<_> = spec.banks.iter().map(|b| (b.name.as_str(), b.memory.as_str())).collect();
    assert_eq!(banks, [("x", "mx"), ("y", "my")]);
    let paths: Vec<_> = spec.forwards.iter().map(|f| (f.name.as_str(), f.first_alu_input_only)).collect();
    assert_eq!(paths, [("mauf", false), ("aluf", false), ("lbf", false), ("mreadf", true)]);
    let fixed: Vec<_> = spec.fixed.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(fixed, ["l2bid", "l1bid", "mabid", "peid", "subpeid", "msb1"]);
    let literals: Vec<_> = spec.literals.iter().map(|l| (l.name.as_str(), l.repeat)).collect();
    assert_eq!(literals, [("f", 1), ("i", 1), ("ui", 1), ("s", 2), ("us", 2), ("h", 2)]);
    assert_eq!((spec.mask.entries, spec.mask.bits, spec.mask.letter), (16, 4, 'k'));
}

#[test]
fn formats_and_precisions() {
    let spec = spec();
    let formats: Vec<_> = spec.formats.iter().map(|f| (f.name.as_str(), f.exponent, f.fraction)).collect();
    assert_eq!(formats, [("half", 6, 9), ("single", 8, 23), ("double", 11, 52)]);
    let precisions: Vec<_> = spec.precisions.iter().map(|p| (p.name.as_str(), p.lanes, p.pseudo)).collect();
    let expected =
        [("d", 1, false), ("f", 2, false), ("h", 4, false), ("g", 2, true), ("l", 1, false), ("i", 2, false)];
    assert_eq!(precisions[..6], expected);
    assert_eq!(precisions[6], ("s", 4, false));
}

#[test]
fn mau() {
    use DataWidth::{Long, Path};
    let spec = spec();
    let table = [
        ("d", 16, 0, Long, Long, "single", true, (4, 4)),
        ("f", 5, 0, Long, Long, "half", false, (8, 4)),
        ("g", 0, 5, Long, Long, "half", false, (8, 8)),
        ("h", 0, 0, Path, Path, "half", false, (16, 16)),
    ];
    assert_eq!(spec.mau_precisions.len(), table.len());
    for (m, expected) in spec.mau_precisions.iter().zip(table) {
        let (name, reduced, size) = (m.name.as_str(), m.reduced.as_str(), (m.rows, m.columns));
        let got = (name, m.omitted_bits, m.ignored_bits, m.addend, m.result, reduced, m.pair, size);
        assert_eq!(got, expected);
    }
    use MauPort::{X, Y, Z};
    let ops: Vec<_> = spec.mau.iter().map(|m| (m.name.as_str(), m.sources.as_slice(), m.product, m.matrix)).collect();
    let expected: [(&str, &[MauPort], bool, bool); 6] = [
        ("vfma", &[X, Y, Z], true, false),
        ("vmul", &[X, Y], true, false),
        ("vadd", &[X, Z], false, false),
        ("vpassa", &[X], false, false),
        ("mfma", &[X, Z], true, true),
        ("mmul", &[X], true, true),
    ];
    assert_eq!(ops, expected);
    let matrix: Vec<_> =
        spec.matrix_ops.iter().map(|m| (m.name.as_str(), m.kernel, m.wide.clone(), m.wide_only.clone())).collect();
    assert_eq!(matrix[0], ("mwrite", MatrixKernel::Write, vec!["h".to_string()], vec![]));
    assert_eq!(matrix[1], ("mread", MatrixKernel::Read, vec!["h".to_string()], vec!["h".to_string()]));
}

/// Columns "result" and "flag" of the manual's ALU table: which results L0 and L1 share, and when a flag is 1.
#[test]
fn alu_table() {
    let spec = spec();
    let path = ["passa", "zero", "imm", "immu", "bfe"];
    for a in &spec.alu {
        assert_eq!(a.data == DataWidth::Path, path.contains(&a.name.as_str()), "{}", a.name);
        let expected: &[&str] = if a.name == "bfn" { &["h"] } else { &[] };
        assert_eq!(a.path_precisions, expected, "{}", a.name);
        let excludes: &[&str] = if a.name.starts_with("imm") { &["lm0"] } else { &[] };
        assert_eq!(a.excludes, excludes, "{}", a.name);
    }
    let table: &[(&str, &str, Option<&str>)] = &[
        ("zero", "none", None),
        ("imm", "none", None),
        ("immu", "none", None),
        ("passa", "result_zero", None),
        ("msl", "none", None),
        ("msr", "none", None),
        ("inc", "msb_clear", Some("no_carry")),
        ("dec", "msb_clear", Some("no_borrow")),
        ("add", "msb_clear", Some("no_carry")),
        ("sub", "msb_clear", Some("no_borrow")),
        ("not", "result_zero", None),
        ("lnot", "result_zero", None),
        ("and", "result_zero", None),
        ("or", "result_zero", None),
        ("xor", "result_zero", None),
        ("lsl", "result_zero", None),
        ("lsr", "result_zero", Some("result_zero")),
        ("bsl", "result_zero", None),
        ("bsr", "result_zero", None),
        ("packbit", "y_msb_clear", None),
        ("max", "x_chosen", Some("x_chosen")),
        ("min", "x_chosen", Some("x_chosen")),
        ("relu", "x_bit_clear", None),
        ("relu0", "x_bit_clear", None),
        ("relu1", "x_bit_clear", None),
        ("relu2", "x_bit_clear", None),
        ("relu3", "x_bit_clear", None),
        ("lrelud", "x_msb_clear", None),
        ("lreluo", "x_msb_clear", None),
        ("ilrelud", "x_msb_clear", None),
        ("rsqrt", "x_msb_clear", None),
        ("floor", "none", None),
        ("ftoi", "none", Some("none")),
        ("bfn", "none", None),
        ("bfe", "none", None),
    ];
    for (name, flag, unsigned) in table {
        let a = spec.alu.iter().find(|a| a.name == *name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!((a.flag.as_str(), a.unsigned_flag.as_deref()), (*flag, *unsigned), "{name}");
    }
    assert_eq!(spec.alu.len(), table.len());
    let bits: Vec<_> = ["relu", "relu0", "relu1", "relu2", "relu3"]
        .iter()
        .map(|n| spec.alu.iter().find(|a| a.name == *n).unwrap().bit)
        .collect();
    assert_eq!(bits, [0, 0, 1, 2, 3]);
    let rsqrt = spec.alu.iter().find(|a| a.name == "rsqrt").and_then(|a| a.table).unwrap();
    // The largest 64th that is strictly below 1 / sqrt, exactly: y with y^2 * (16 + k) * 2^odd < 2^16.
    for (at, entry) in rsqrt.iter().enumerate() {
        let (odd, k) = (at / 16, at as u64 % 16);
        let below = |y: u64| (y * y * (16 + k)) << odd < (1 << 16);
        let largest = (1..64).rev().find(|y| below(*y)).unwrap();
        assert_eq!(u64::from(*entry), largest, "entry {at}");
    }
}

#[test]
fn hazards_and_timing() {
    let spec = spec();
    let table: &[(&str, Option<u32>, Option<u32>)] = &[
        ("lm", Some(2), None),
        ("grf", None, Some(6)),
        ("t", Some(1), None),
        ("l2bm_to_mv", Some(0), None),
        ("l2bm_up_down", Some(3), None),
        ("l1bm_down_up", Some(2), None),
        ("l1bm_inside_up", Some(2), None),
        ("l1bm_inside_to_pe", Some(2), None),
        ("l1bm_down_to_pe", Some(1), None),
        ("l1bm_from_pe_up", Some(2), None),
        ("l1bm_from_pe_to_pe", Some(2), None),
    ];
    for (name, steps, cycles) in table {
        let h = spec.hazards.iter().find(|h| h.name == *name).unwrap_or_else(|| panic!("no hazard {name}"));
        assert_eq!((h.steps, h.cycles), (*steps, *cycles), "{name}");
    }
    let memories: Vec<(&str, &[String])> =
        spec.hazards.iter().map(|h| (h.name.as_str(), h.memories.as_slice())).collect();
    let of = |name: &str| memories.iter().find(|(n, _)| *n == name).map(|(_, m)| m.join(" ")).unwrap();
    assert_eq!(of("mv"), "pdm dram l2bm");
    assert_eq!(of("lm"), "lm0 lm1");
    assert_eq!(of("grf"), "grf0 grf1");
    let t = &spec.timing;
    assert_eq!((t.mv_latency, t.mv_throughput, t.tag_minimum, t.tag_maximum), (256, 16, 1, 63));
}

/// Published rates in long words per cycle: inside a group and across groups, or at the source and at the destination.
#[test]
fn mv_rates() {
    let spec = spec();
    type Rates = [Option<u32>; 4];
    let none = [None; 4];
    let both = |inside, across| [Some(inside), Some(across), None, None];
    let source = |rate| [None, None, Some(rate), None];
    let sink = |rate| [None, None, None, Some(rate)];
    let table: &[(&str, &str, Rates)] = &[
        ("mvp", "pdm_to_dram", none),
        ("mvp", "dram_to_pdm", none),
        ("mvp", "pdm_to_pdm", none),
        ("mvp", "dram_to_l2bm", none),
        ("mvp", "l2bm_to_dram", none),
        ("mvp", "pdm_to_l2bm", both(16, 8)),
        ("mvp", "l2bm_to_pdm", both(16, 8)),
        ("mvp", "dram_to_l2bm_parallel", none),
        ("mvp", "l2bm_to_dram_parallel", none),
        ("mvp", "pdm_to_l2bm_parallel", none),
        ("mvp", "l2bm_to_pdm_parallel", none),
        ("mvb", "pdm_to_l2bm", both(8, 8)),
        ("mvb", "dram_to_l2bm", both(8, 8)),
        ("mvb2", "dram_to_l2bm", none),
        ("mvb4", "dram_to_l2bm", sink(16)),
        ("mvr", "l2bm_to_pdm", both(8, 8)),
        ("mvr", "l2bm_to_dram", source(32)),
        ("mvr2", "l2bm_to_dram", none),
        ("mvr4", "l2bm_to_dram", source(16)),
        ("mvd", "pdm_to_dram", source(8)),
        ("mvd", "dram_to_pdm", sink(8)),
        ("mvd", "pdm_to_l2bm", source(8)),
        ("mvd", "l2bm_to_pdm", sink(8)),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for (at, transfer) in spec.transfers.iter().enumerate().filter(|(_, t)| t.slot == "mv") {
        let entry = spec.entry_name(transfer);
        for form in &spec.forms[at] {
            let expected = table.iter().find(|(t, f, _)| *t == entry && *f == form.name);
            let rate = form.throughput.as_ref().map_or(none, |t| [t.same_group, t.across, t.source, t.destination]);
            assert_eq!(Some(rate), expected.map(|e| e.2), "{} {}", transfer.name, form.name);
            seen.insert((entry, form.name.as_str()));
        }
    }
    assert_eq!(seen.len(), table.len());
}

/// Strides of machine words are probably signed, so the upper half of a field's values is not even marked inferred.
#[test]
fn strides_of_machine_words() {
    let spec = spec();
    let encoding = spec.encoding.as_ref().unwrap();
    let strides: Vec<_> = encoding.fields.iter().filter(|f| f.name.ends_with("stride") && f.seen.is_some()).collect();
    assert!(!strides.is_empty());
    for field in strides {
        let half = field.maximum() / 2;
        let found = [1, half, half + 1, field.maximum()].map(|value| field.status_of(value));
        let expected = [Status::Seen, Status::Inferred, Status::Unknown, Status::Unknown];
        assert_eq!(found, expected, "{}", field.name);
    }
}

/// The buffer of the DAR tables takes 256 long words of an L2BM of each group.
#[test]
fn words_of_a_table() {
    let spec = std::sync::Arc::new(spec());
    let text = "l2bmdars $lc0@.1 $dar0\n";
    let program = emu2::asm::assemble(text, "table", &spec, emu2::asm::Policy::Check).unwrap();
    assert_eq!(emu2::report::Report::of(&program).words["l2bm"].read, 4 * 256);
}
