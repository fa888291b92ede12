//! Programs as text.

use emu2::asm::{
    Access, Address, Convert, DebugGet, DebugSet, Destination, FormRef, ItemKind, L2bmTransfer, Location, Mask,
    MaskEntry, Mv, PeInstruction, PeKind, Program, Selected, Source, SourceKind, Step, Target,
};
use emu2::spec::{
    ControlKernel, End, LiteralKind, MatrixKernel, Mnemonic, ParameterStyle, Spec, Unit, UnitSet, HALVES,
    WORDS_PER_LONG, WORD_BITS,
};

/// The whole program, one statement per line.
pub fn program(program: &Program) -> String {
    program.items.iter().map(|item| item_text(&program.spec, &item.kind) + "\n").collect()
}

/// One statement.
pub fn item_text(spec: &Spec, kind: &ItemKind) -> String {
    match kind {
        ItemKind::Step(step) => step_text(spec, step),
        ItemKind::Nop { count, wait } => {
            let nop = control(spec, ControlKernel::Nop);
            let count = if *count == 1 { nop } else { format!("{nop}/{count}") };
            join([Some(count), wait.map(|tag| wait_text(spec, tag))])
        }
        ItemKind::Mv(mv) => mv_text(spec, mv),
        ItemKind::Set(set) => set_text(spec, set),
        ItemKind::Get(get) => get_text(get),
        ItemKind::Host(_) => unreachable!("no command of the host is generated"),
    }
}

fn join(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn control(spec: &Spec, kernel: ControlKernel) -> String {
    spec.controls.iter().find(|c| c.kernel == kernel).expect("a control").name.clone()
}

fn wait_text(spec: &Spec, tag: u32) -> String {
    format!("{} i{tag:02x}", control(spec, ControlKernel::Wait))
}

fn step_text(spec: &Spec, step: &Step) -> String {
    let noforward = (!step.forward).then(|| control(spec, ControlKernel::Noforward));
    let pe = step.pe.iter().map(|i| Some(instruction(spec, i)));
    let l2bm = step.l2bm.iter().map(|t| Some(upper(spec, t)));
    let wait = step.wait.map(|tag| wait_text(spec, tag));
    join(std::iter::once(noforward).chain(pe).chain(l2bm).chain([wait]))
}

/// The text of a mnemonic.
pub fn mnemonic(spec: &Spec, wanted: Mnemonic) -> String {
    let found = spec.mnemonics.iter().find(|(_, m)| **m == wanted);
    found.map_or_else(|| format!("{wanted:?}"), |(text, _)| text.clone())
}

/// An instruction of a PE line.
pub fn instruction(spec: &Spec, i: &PeInstruction) -> String {
    let flush = i.zero_flush.as_ref().map(|m| format!("/{}", mask(spec, m))).unwrap_or_default();
    let mut words = Vec::new();
    let sources = i.sources.iter().map(|s| source(spec, s));
    match i.kind {
        PeKind::Alu { op, precision, unsigned, literal: word, length } => {
            let name = mnemonic(spec, Mnemonic::Alu { op, precision, unsigned });
            let length = length.map(|n| format!("/{n}")).unwrap_or_default();
            words.push(format!("{name}{length}{flush}"));
            words.extend(word.map(|word| literal(spec, word)));
            words.extend(sources);
        }
        PeKind::Mau { op, precision, mau_precision, half, reduced, bank } => {
            let name = mnemonic(spec, Mnemonic::Mau { op, precision, mau_precision, half, reduced });
            words.push(format!("{name}{flush}"));
            words.extend(bank.map(|bank| format!("${}{}", prefix(spec, WORDS_PER_LONG), spec.banks[bank].name)));
            words.extend(sources);
        }
        PeKind::Matrix { op, precision, mau_precision, bank, row, wide } => {
            let name = mnemonic(spec, Mnemonic::Matrix { op, precision, mau_precision });
            let prefix = prefix(spec, if wide { WORDS_PER_LONG * HALVES } else { WORDS_PER_LONG });
            let matrix = format!("${prefix}{}{row}", spec.banks[bank].name);
            words.push(format!("{name}{flush}"));
            words.extend(sources);
            words.push(matrix);
            if spec.matrix_ops[op].kernel == MatrixKernel::Write {
                return words.join(" ");
            }
        }
        PeKind::L1bm { form, address } => {
            let resolved = &spec.forms[form.transfer][form.form];
            words.push(format!("{}{flush}", transfer(spec, form)));
            words.extend(sources);
            if matches!(resolved.destination, End::Pe) {
                words.push(l1bm(spec, &resolved.source, address));
            } else {
                words.push(l1bm(spec, &resolved.destination, address));
                return words.join(" ");
            }
        }
    }
    if i.destinations.is_empty() {
        words.push("$nowrite".into());
    }
    words.extend(i.destinations.iter().map(|d| destination(spec, d)));
    words.join(" ")
}

/// A transfer's mnemonic with its parameter.
fn transfer(spec: &Spec, form: FormRef) -> String {
    let (name, resolved) = (&spec.transfers[form.transfer].name, &spec.forms[form.transfer][form.form]);
    match &spec.parameters[form.transfer] {
        Some(p) if p.forms.is_empty() || p.forms.contains(&resolved.name) => match p.style {
            _ if p.default == Some(form.parameter) => name.clone(),
            ParameterStyle::At => format!("{name}@{}", form.parameter),
            ParameterStyle::Signed => format!("{name}{:+}", form.parameter),
            ParameterStyle::Set => set(name, UnitSet::from_code(form.parameter), spec.counts.l1b),
        },
        _ => name.clone(),
    }
}

/// A set in one of its spellings: by its free bits, or as a list.
fn set(name: &str, set: UnitSet, count: u32) -> String {
    let members: Vec<String> = set.members(count).map(|b| b.to_string()).collect();
    match (set.first + set.free) % 2 {
        0 if members.len() == 1 << set.free.count_ones() => format!("{name}@{}", members.join(",")),
        _ => format!("{name}@{}/{}", set.first, set.free),
    }
}

/// An operand above the PEs.
fn end(spec: &Spec, end: &End, address: u64, selected: Selected) -> String {
    place(spec, end, address, selected, false)
}

/// An operand above the PEs, or one that goes through the DAR.
fn place(spec: &Spec, end: &End, address: u64, selected: Selected, table: bool) -> String {
    let End::Memory { operand, width, selectors, .. } = end else { return String::new() };
    let entry = &spec.operands[*operand];
    let prefix = width.map_or_else(|| entry.widths[0].clone(), |words| prefix(spec, words));
    let number = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
    let selector = match (selectors.is_empty(), entry.selectors.len()) {
        (true, _) => String::new(),
        (false, 1) => format!("@{}", number(selected.group)),
        (false, _) => format!("@{}.{}", number(selected.group), number(selected.l2b)),
    };
    let suffix = if table { "i" } else { &entry.suffix };
    format!("${prefix}{}{suffix}{address}{selector}", entry.letter)
}

/// The L1BM operand of an instruction of the PEs.
fn l1bm(spec: &Spec, at: &End, address: Option<u64>) -> String {
    match address {
        Some(address) => end(spec, at, address, Selected::default()),
        None => end(spec, at, 0, Selected::default()).replace("b0", "bi"),
    }
}

fn upper(spec: &Spec, t: &L2bmTransfer) -> String {
    let form = &spec.forms[t.form.transfer][t.form.form];
    if spec.transfers[t.form.transfer].name == "l2bmdarw" {
        return "l2bmdarw".into();
    }
    let source = end(spec, &form.source, t.source, t.source_unit);
    let destination = end(spec, &form.destination, t.destination, Selected::default());
    format!("{} {source} {destination}", transfer(spec, t.form))
}

fn mv_text(spec: &Spec, mv: &Mv) -> String {
    let form = &spec.forms[mv.form.transfer][mv.form.form];
    let name = transfer(spec, mv.form);
    let tag = mv.tag.map(|tag| format!("i{tag:02x}")).unwrap_or_default();
    let priority = if mv.priority == 0 { String::new() } else { format!("p{}", mv.priority) };
    let source = place(spec, &form.source, mv.source, mv.source_unit, mv.source_dar.is_some());
    let destination = place(spec, &form.destination, mv.destination, mv.destination_unit, mv.destination_dar.is_some());
    let blocks = mv.source_dar.or(mv.destination_dar).map(|n| format!("nd{n}")).unwrap_or_default();
    // Parameters stand in any order.
    let parameters = match mv.size / 16 % 3 {
        0 => format!("n{}{tag}{blocks}{priority}", mv.size),
        1 => format!("{tag}{blocks}n{}{priority}", mv.size),
        _ => format!("{priority}{blocks}{tag}n{}", mv.size),
    };
    format!("{name}/{parameters} {source} {destination}")
}

pub fn prefix(spec: &Spec, words: u32) -> String {
    spec.widths.iter().find(|w| w.words == words).map(|w| w.prefix.clone()).unwrap_or_default()
}

fn literal(spec: &Spec, word: u32) -> String {
    let whole = |l: &&emu2::spec::Literal| l.kind == LiteralKind::Unsigned && l.bits == Some(WORD_BITS);
    let name = spec.literals.iter().find(whole).map_or("", |l| l.name.as_str());
    format!("{name}\"0x{word:X}\"")
}

/// A mask without its `/`.
pub fn mask(spec: &Spec, mask: &Mask) -> String {
    let wide = if mask.wide { prefix(spec, WORDS_PER_LONG * HALVES) } else { String::new() };
    match mask.entry {
        MaskEntry::Cycles(pattern) => {
            let digits: String =
                (0..spec.counts.cycle).map(|c| if pattern >> c & 1 == 1 { '1' } else { '0' }).collect();
            format!("{wide}{digits}")
        }
        MaskEntry::Register(entry) => format!("${wide}{}{entry}", spec.mask.source),
    }
}

/// A memory operand of the PEs.
pub fn access(spec: &Spec, access: &Access) -> String {
    let memory = &spec.memories[access.memory];
    let operand = spec.operands.iter().find(|o| o.memory == memory.name).expect("an operand");
    if memory.unit == Unit::Cycle {
        return format!("${}", operand.letter);
    }
    let indirect = if access.indirect { "t" } else { "" };
    let address = match &access.address {
        Address::Stride { base: 0, stride: 0 } if access.indirect => String::new(),
        Address::Stride { base, stride: 0 } => base.to_string(),
        Address::Stride { base, stride } if *stride == access.words => format!("{base}v"),
        Address::Stride { base, stride } => format!("{base}v{stride}"),
        Address::Flat(list) => format!("[{}]", list.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
        Address::Cycle => String::new(),
    };
    let modify = access.modify.map(|last| format!("j{last}")).unwrap_or_default();
    format!("${}{}{indirect}{address}{modify}", prefix(spec, access.words), operand.letter)
}

fn source(spec: &Spec, s: &Source) -> String {
    let operand = match &s.kind {
        SourceKind::Memory(a) => access(spec, a),
        SourceKind::Forward(path) => format!("${}", spec.forwards[*path].name),
        SourceKind::Fixed(fixed) => format!("${}", spec.fixed[*fixed].name),
    };
    let convert = match s.convert {
        None => "",
        Some(Convert::Extend) => "e",
        Some(Convert::Reduce) => "r",
    };
    format!("{}{operand}{convert}", if s.negate { "-" } else { "" })
}

fn destination(spec: &Spec, d: &Destination) -> String {
    let target = match &d.target {
        Target::Memory(a) => access(spec, a),
        Target::Base { base, words } => format!("${}{}", prefix(spec, *words), spec.bases[*base].name),
        Target::Flags { entry } => format!("${}{entry}", spec.mask.destination),
    };
    let mask = d.mask.as_ref().map(|m| format!("/{}", mask(spec, m))).unwrap_or_default();
    format!("{target}{mask}")
}

fn location(spec: &Spec, location: &Location) -> String {
    let memory = &spec.memories[location.memory];
    let letters = match spec.operands.iter().find(|o| o.memory == memory.name && o.table.is_none()) {
        Some(operand) => {
            let prefix = prefix(spec, location.words);
            let prefix = if operand.widths.contains(&prefix) { prefix } else { operand.widths[0].clone() };
            format!("{prefix}{}{}", operand.letter, operand.suffix)
        }
        None => match spec.banks.iter().find(|b| b.memory == memory.name) {
            Some(bank) => format!("{}{}", prefix(spec, location.words), bank.name),
            None => spec.mask.destination.clone(),
        },
    };
    let address = if memory.unit == Unit::Cycle { String::new() } else { location.address.to_string() };
    let units = spec.levels.iter().zip(location.units).filter_map(|(l, unit)| Some(format!("{}{}", l.selector, unit?)));
    format!("${letters}{address}{}", units.collect::<String>())
}

fn set_text(spec: &Spec, set: &DebugSet) -> String {
    let payload: String = set.payload.iter().map(|word| format!("{word:016X}")).collect();
    format!("d set {} {} {payload}", location(spec, &set.location), set.payload.len())
}

fn get_text(get: &DebugGet) -> String {
    get.statement.clone()
}

/// The statement as dump lines echo it.
pub fn get(spec: &Spec, get: &DebugGet) -> String {
    let letter = get.precision.map(|p| spec.precisions[p].name.as_str()).unwrap_or_default();
    format!("d get{letter} {} {}", location(spec, &get.location), get.count)
}
