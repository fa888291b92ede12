//! From merged TOML tables to a [`Spec`]: typed entries, names resolved, every rule of a spec checked.

use super::expr::Expr;
use super::map::{End, ResolvedForm};
use super::model::*;
use super::source::{Document, Entry};
use super::{
    control, encoding, mnemonic, ResolvedParameter, Spec, BLOCK, BLOCK_EXTENDED, IMM, IMMU, LONG_BITS, ROTATE, RSQRT,
    WORDS_PER_LONG, ZERO,
};
use crate::error::{Code, Error};
use crate::num::alu::alu_kernel;
use crate::num::flags::FlagRule;
use crate::num::format::FloatFormat;
use crate::num::reduce::reduce_kernel;
use crate::num::MAB_PES;
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

/// Larger changes of an exponent field leave every format's range.
const MAX_AMOUNT: u32 = 63;
/// Lengths that the block float kernels of halves can keep.
const BLOCK_LENGTHS: std::ops::RangeInclusive<u32> = 6..=9;

/// Larger trees than this are a slip of the pen.
const MAX_COUNT: u32 = 1024;

pub(super) fn resolve(mut document: Document) -> Result<Spec, Error> {
    let fingerprint = fingerprint(&document);
    let mut spec = Spec {
        machine: single(&mut document, "machine")?,
        counts: single(&mut document, "counts")?,
        ports: single(&mut document, "ports")?,
        timing: single(&mut document, "timing")?,
        levels: list(&mut document, "level")?,
        widths: list(&mut document, "width")?,
        formats: list(&mut document, "format")?,
        precisions: list(&mut document, "precision")?,
        memories: list(&mut document, "memory")?,
        operands: list(&mut document, "operand")?,
        forwards: list(&mut document, "forward")?,
        fixed: list(&mut document, "fixed")?,
        bases: list(&mut document, "base")?,
        banks: list(&mut document, "bank")?,
        mask: single(&mut document, "mask")?,
        literals: list(&mut document, "literal")?,
        slots: list(&mut document, "slot")?,
        shares: list(&mut document, "share")?,
        alu: list(&mut document, "alu")?,
        mau_precisions: list(&mut document, "mau_precision")?,
        mau: list(&mut document, "mau")?,
        matrix_ops: list(&mut document, "matrix_op")?,
        transfers: list(&mut document, "transfer")?,
        reductions: list(&mut document, "reduction")?,
        controls: list(&mut document, "control")?,
        hazards: list(&mut document, "hazard")?,
        forms: Vec::new(),
        parameters: Vec::new(),
        mnemonics: HashMap::new(),
        encoding: None,
        fingerprint,
    };
    let encoding = encoding::Raw::take(&mut document)?;
    if let Some(key) = document.single.keys().chain(document.list.keys()).next() {
        return Err(Error::new(Code::SpecUnknownKey, format!("`{key}` is not a section of a spec")));
    }
    check_counts(&spec)?;
    check_formats(&spec)?;
    check_memories(&spec)?;
    check_operands(&spec)?;
    check_alu_mau(&spec)?;
    control::check(&spec)?;
    check_examples(&spec)?;
    spec.transfers = expand_reductions(&spec)?;
    for at in 0..spec.transfers.len() {
        let (forms, parameter) = resolve_transfer(&spec, &spec.transfers[at])?;
        spec.forms.push(forms);
        spec.parameters.push(parameter);
    }
    spec.mnemonics = mnemonic::expand(&spec)?;
    spec.encoding = encoding.map(|raw| encoding::resolve(raw, &spec)).transpose()?;
    Ok(spec)
}

fn fingerprint(document: &Document) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (key, entry) in &document.single {
        (key, entry.table.to_string()).hash(&mut hasher);
    }
    for (key, entries) in &document.list {
        for (name, entry) in entries {
            (key, name, entry.table.to_string()).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn typed<T: DeserializeOwned>(entry: Entry, place: &str) -> Result<T, Error> {
    let origin = entry.origin;
    T::deserialize(toml::Value::Table(entry.table)).map_err(|e| {
        let text = e.message().to_string();
        let code = match text.split_whitespace().take(2).collect::<Vec<_>>()[..] {
            ["unknown", "field"] => Code::SpecUnknownKey,
            ["missing", "field"] => Code::SpecMissingKey,
            ["unknown", "variant"] => Code::SpecUnknownName,
            ["invalid", "type:"] => Code::SpecWrongType,
            _ => Code::SpecBadValue,
        };
        Error::new(code, format!("{origin}: {place}: {text}"))
    })
}

pub(super) fn single<T: DeserializeOwned>(document: &mut Document, key: &str) -> Result<T, Error> {
    match document.single.shift_remove(key) {
        Some(entry) => typed(entry, &format!("[{key}]")),
        None => Err(Error::new(Code::SpecMissingKey, format!("the spec has no [{key}]"))),
    }
}

pub(super) fn list<T: DeserializeOwned>(document: &mut Document, key: &str) -> Result<Vec<T>, Error> {
    let entries = document.list.shift_remove(key).unwrap_or_default();
    entries.into_iter().map(|(name, entry)| typed(entry, &format!("[[{key}]] `{name}`"))).collect()
}

/// Every count and port by the name that expressions use.
pub(super) fn constants(counts: &Counts, ports: &IndexMap<String, i64>) -> HashMap<String, i64> {
    let named = [
        ("group", counts.group),
        ("l2b", counts.l2b),
        ("l1b", counts.l1b),
        ("mab", counts.mab),
        ("pe", counts.pe),
        ("cycle", counts.cycle),
    ];
    let counts = named.iter().map(|(n, v)| (n.to_string(), i64::from(*v)));
    counts.chain(ports.iter().map(|(n, v)| (n.clone(), *v))).collect()
}

pub(super) fn bad(message: String) -> Error {
    Error::new(Code::SpecBadValue, message)
}

pub(super) fn unknown(message: String) -> Error {
    Error::new(Code::SpecUnknownName, message)
}

fn check_counts(spec: &Spec) -> Result<(), Error> {
    let c = &spec.counts;
    for (name, n) in
        [("group", c.group), ("l2b", c.l2b), ("l1b", c.l1b), ("mab", c.mab), ("pe", c.pe), ("cycle", c.cycle)]
    {
        if !(1..=MAX_COUNT).contains(&n) {
            return Err(bad(format!("[counts] {name} = {n}; it must be 1 to {MAX_COUNT}")));
        }
    }
    for (name, width) in &spec.ports {
        if constants(c, &IndexMap::new()).contains_key(name) {
            return Err(Error::new(Code::SpecDuplicate, format!("[ports] `{name}` is a count too")));
        }
        if !(1..=i64::from(MAX_COUNT)).contains(width) {
            return Err(bad(format!("[ports] {name} = {width}; it must be 1 to {MAX_COUNT}")));
        }
    }
    let tree = [LevelName::Group, LevelName::L2b, LevelName::L1b, LevelName::Mab, LevelName::Pe];
    if spec.levels.iter().map(|l| l.name).collect::<Vec<_>>() != tree {
        return Err(bad("[[level]] must be group, l2b, l1b, mab, pe in this order".into()));
    }
    let mut letters = HashSet::new();
    match spec.levels.iter().find(|l| !letters.insert(l.selector)) {
        Some(level) => {
            Err(Error::new(Code::SpecDuplicate, format!("two levels have the selector `{}`", level.selector)))
        }
        None => Ok(()),
    }
}

fn check_formats(spec: &Spec) -> Result<(), Error> {
    for f in &spec.formats {
        let bits = 1 + f.exponent + f.fraction;
        if FloatFormat::supported(f.exponent, f.fraction).is_none() || bits > LONG_BITS {
            let (e, m) = (f.exponent, f.fraction);
            return Err(bad(format!("[[format]] `{}`: the engine has no kernels for 1+{e}+{m} bits", f.name)));
        }
    }
    for p in &spec.precisions {
        if p.lanes == 0 || !LONG_BITS.is_multiple_of(p.lanes) {
            return Err(bad(format!("[[precision]] `{}`: {} lanes do not fill a long word", p.name, p.lanes)));
        }
        let format = p.format.as_deref().map(|name| {
            spec.format(name).ok_or_else(|| unknown(format!("[[precision]] `{}`: no format `{name}`", p.name)))
        });
        if p.lane().is_none() {
            return Err(unknown(format!("[[precision]] `{}`: the engine has no lanes of this letter", p.name)));
        }
        match (p.kind, format.transpose()?) {
            (LaneKind::Int, None) => {}
            (LaneKind::Float, Some(f)) if (1 + f.exponent + f.fraction) * p.lanes == LONG_BITS => {}
            _ => return Err(bad(format!("[[precision]] `{}`: kind, format and lanes do not fit", p.name))),
        }
    }
    for l in &spec.literals {
        let bits = match (l.kind, l.format.as_deref(), l.bits) {
            (LiteralKind::Float, Some(name), None) => {
                let f = spec
                    .format(name)
                    .ok_or_else(|| unknown(format!("[[literal]] `{}`: no format `{name}`", l.name)))?;
                1 + f.exponent + f.fraction
            }
            (LiteralKind::Signed | LiteralKind::Unsigned, None, Some(bits)) => bits,
            _ => return Err(bad(format!("[[literal]] `{}`: a float has a format, an integer has bits", l.name))),
        };
        if bits * l.repeat != super::WORD_BITS {
            return Err(bad(format!("[[literal]] `{}`: {bits} bits x {} do not fill a word", l.name, l.repeat)));
        }
    }
    Ok(())
}

/// Rows of a matrix register in the precision that has most.
fn matrix_rows(spec: &Spec) -> u64 {
    spec.mau_precisions.iter().map(|p| u64::from(p.rows)).max().unwrap_or(0)
}

fn check_memories(spec: &Spec) -> Result<(), Error> {
    let mut names = HashSet::new();
    for m in &spec.memories {
        if !names.insert(&m.dump) {
            return Err(Error::new(Code::SpecDuplicate, format!("two memories dump as `{}`", m.dump)));
        }
        let dense_limit = 1 << 24;
        if m.words == 0 || (!m.sparse && m.words > dense_limit) {
            return Err(bad(format!("[[memory]] `{}`: {} long words", m.name, m.words)));
        }
        let fits = match (m.level, m.unit) {
            (LevelName::Pe, Unit::Word) => !m.sparse,
            (LevelName::Pe, Unit::Mask) => m.words == u64::from(spec.mask.entries * spec.counts.cycle),
            (LevelName::Pe, Unit::Base) => m.words == 1,
            (LevelName::Pe, Unit::Matrix) => m.words == matrix_rows(spec),
            (LevelName::Pe, Unit::Cycle) => m.words == u64::from(spec.counts.cycle * super::HALVES),
            (LevelName::L1b | LevelName::L2b, Unit::Long) => !m.sparse,
            (LevelName::Group, Unit::Long) => m.sparse,
            _ => false,
        };
        if !fits {
            return Err(bad(format!("[[memory]] `{}`: level, unit, words and sparse do not fit together", m.name)));
        }
    }
    Ok(())
}

fn check_operands(spec: &Spec) -> Result<(), Error> {
    let mut tokens = HashSet::new();
    for o in &spec.operands {
        if spec.memory(&o.memory).is_none() {
            return Err(unknown(format!("[[operand]] `{}`: no memory `{}`", o.name, o.memory)));
        }
        for prefix in &o.widths {
            if !spec.widths.iter().any(|w| w.prefix == *prefix) {
                return Err(unknown(format!("[[operand]] `{}`: no width has the prefix `{prefix}`", o.name)));
            }
            if !tokens.insert(format!("{prefix}{}", o.letter)) {
                let message = format!("[[operand]] `{}`: `${prefix}{}` is taken", o.name, o.letter);
                return Err(Error::new(Code::SpecDuplicate, message));
            }
        }
    }
    check_registers(spec)?;
    for w in &spec.widths {
        if !w.words.is_power_of_two() || w.words > WORDS_PER_LONG * super::HALVES {
            return Err(bad(format!("[[width]] `{}`: {} words", w.name, w.words)));
        }
    }
    let constants = spec.constants();
    for f in spec.fixed.iter().filter(|f| f.value != "msb") {
        let known = |n: &str| ["g", "q", "b", "m", "p"].contains(&n).then_some(0).or_else(|| constants.get(n).copied());
        Expr::parse(&f.value)
            .and_then(|e| e.eval(&known))
            .map_err(|e| Error::new(Code::SpecExpression, format!("[[fixed]] `{}`: {e}", f.name)))?;
    }
    Ok(())
}

/// Base address, matrix and mask registers lie in memories made for them.
fn check_registers(spec: &Spec) -> Result<(), Error> {
    let made_for = |name: &str, unit: Unit, place: String| match spec.memory(name) {
        Some(m) if spec.memories[m].unit == unit => Ok(()),
        Some(_) => Err(bad(format!("{place}: the memory `{name}` is of another kind"))),
        None => Err(unknown(format!("{place}: no memory `{name}`"))),
    };
    for base in &spec.bases {
        made_for(&base.memory, Unit::Base, format!("[[base]] `{}`", base.name))?;
        if !(1..super::WORD_BITS).contains(&base.bits) {
            return Err(bad(format!("[[base]] `{}`: {} bits", base.name, base.bits)));
        }
    }
    for bank in &spec.banks {
        made_for(&bank.memory, Unit::Matrix, format!("[[bank]] `{}`", bank.name))?;
    }
    for o in spec.operands.iter().filter(|o| o.base.is_some()) {
        made_for(o.base.as_deref().unwrap_or_default(), Unit::Base, format!("[[operand]] `{}`", o.name))?;
    }
    made_for(&spec.mask.memory, Unit::Mask, "[mask]".into())?;
    // Flags of the lanes of a long word, and the write enables of its halves or of the path's words.
    if spec.mask.bits != 4 || spec.mask.entries < 2 {
        return Err(bad(format!("[mask]: the engine has masks of 4 bits, not {}", spec.mask.bits)));
    }
    Ok(())
}

fn check_alu_mau(spec: &Spec) -> Result<(), Error> {
    for a in &spec.alu {
        let place = format!("[[alu]] `{}`", a.name);
        if a.sources > 2 || (a.literal && a.sources > 0) {
            return Err(bad(format!("{place}: {} sources", a.sources)));
        }
        if a.unsigned.is_empty() == a.unsigned_flag.is_some() {
            return Err(bad(format!("{place}: `unsigned` and `unsigned_flag` go together")));
        }
        for rule in a.unsigned_flag.iter().chain([&a.flag]) {
            if FlagRule::from_name(rule).is_none() {
                let known: Vec<_> = FlagRule::names().collect();
                return Err(unknown(format!("{place}: no flag rule `{rule}`; they are {}", known.join(", "))));
            }
        }
        check_kernel(spec, a, &place)?;
        if let Some(name) = a.excludes.iter().find(|n| spec.memory(n).is_none()) {
            return Err(unknown(format!("{place}: no memory `{name}`")));
        }
    }
    for m in &spec.mau_precisions {
        check_mau_precision(spec, m)?;
        if spec.format(&m.reduced).is_none() {
            return Err(unknown(format!("[[mau_precision]] `{}`: no format `{}`", m.name, m.reduced)));
        }
    }
    for m in &spec.mau {
        let twice = (0..m.sources.len()).any(|i| m.sources[..i].contains(&m.sources[i]));
        if m.sources.is_empty() || twice {
            return Err(bad(format!("[[mau]] `{}`: each source has a port of its own", m.name)));
        }
    }
    Ok(())
}

/// What the multiplier kernels can leave out, and the matrix sizes they are made for.
fn check_mau_precision(spec: &Spec, m: &MauPrecision) -> Result<(), Error> {
    let place = format!("[[mau_precision]] `{}`", m.name);
    let Some(precision) = spec.precisions.iter().find(|p| p.name == m.name && p.kind == LaneKind::Float) else {
        return Err(unknown(format!("{place}: no float precision has this name")));
    };
    let fraction = precision.format.as_deref().and_then(|f| spec.format(f)).map_or(0, |f| f.fraction);
    let most = fraction.min(super::WORD_BITS);
    if m.omitted_bits > most || m.ignored_bits > fraction {
        return Err(bad(format!(
            "{place}: {} omitted and {} ignored bits; at most {most}",
            m.omitted_bits, m.ignored_bits
        )));
    }
    if spec.banks.is_empty() {
        return Ok(());
    }
    let rows = precision.lanes * spec.counts.pe;
    if m.rows != rows || spec.counts.pe as usize != MAB_PES {
        return Err(bad(format!(
            "{place}: {} rows; the product kernels are for {rows} rows and {MAB_PES} PEs in a MAB",
            m.rows
        )));
    }
    Ok(())
}

/// Every precision and sign of the op must have an engine kernel.
fn check_kernel(spec: &Spec, a: &Alu, place: &str) -> Result<(), Error> {
    let own_rules = [ZERO, ROTATE, BLOCK, BLOCK_EXTENDED].contains(&a.kernel.as_str());
    if own_rules {
        return check_engine_kernel(spec, a, place);
    }
    let literal = [IMM, IMMU].contains(&a.kernel.as_str());
    if literal != a.literal || (literal && !a.precisions.is_empty()) {
        return Err(bad(format!("{place}: `literal` and the kernels {IMM}, {IMMU} go together, without precisions")));
    }
    if !literal && a.precisions.is_empty() {
        return Err(unknown(format!("{place}: the kernel `{}` needs precisions", a.kernel)));
    }
    if let Some(letter) = a.unsigned.iter().find(|letter| !a.precisions.contains(letter)) {
        return Err(unknown(format!("{place}: `unsigned` names `{letter}`, which is none of its precisions")));
    }
    if a.table.is_some() != (a.kernel == RSQRT) {
        return Err(bad(format!("{place}: `table` belongs to the kernel {RSQRT}")));
    }
    // The kernels take these parameters as they are.
    if a.table.is_some_and(|t| t.iter().any(|entry| !(32..64).contains(entry))) {
        return Err(bad(format!("{place}: entries of `table` are 64ths of a number from 1/2 to below 1: 32 to 63")));
    }
    if a.amount > MAX_AMOUNT {
        return Err(bad(format!("{place}: amount {} is past {MAX_AMOUNT}", a.amount)));
    }
    for precision in spec.precisions.iter().filter(|p| a.precisions.contains(&p.name)) {
        if a.bit >= LONG_BITS / precision.lanes {
            return Err(bad(format!("{place}: bit {} is past the lanes of `{}`", a.bit, precision.name)));
        }
        let signs = if a.unsigned.contains(&precision.name) { &[false, true][..] } else { &[false][..] };
        for unsigned in signs {
            let kernel = precision.lane().and_then(|lane| alu_kernel(&a.kernel, lane, *unsigned));
            let sources = kernel.map(|k| u32::from(k.operands()));
            if sources != Some(a.sources) {
                let sign = if *unsigned { " unsigned" } else { "" };
                let message = format!(
                    "{place}: no{sign} kernel `{}` for `{}` with {} sources",
                    a.kernel, precision.name, a.sources
                );
                return Err(unknown(message));
            }
        }
    }
    Ok(())
}

/// Kernels that work across PEs, and `zero`.
fn check_engine_kernel(spec: &Spec, a: &Alu, place: &str) -> Result<(), Error> {
    let block = [BLOCK, BLOCK_EXTENDED].contains(&a.kernel.as_str());
    let sources = u32::from(a.kernel != ZERO);
    if a.sources != sources || a.literal || !a.unsigned.is_empty() || a.precisions.is_empty() == block {
        return Err(bad(format!("{place}: the kernel `{}` has other operands or precisions", a.kernel)));
    }
    if let Some(l) = &a.lengths {
        let kept = BLOCK_LENGTHS.contains(&l.minimum) && BLOCK_LENGTHS.contains(&l.maximum) && l.minimum <= l.maximum;
        if !block || !kept {
            return Err(bad(format!("{place}: mantissa lengths {} to {} have no kernel", l.minimum, l.maximum)));
        }
    }
    if block && spec.counts.pe as usize != MAB_PES {
        return Err(bad(format!(
            "{place}: block float kernels are for {MAB_PES} PEs in a MAB, not {}",
            spec.counts.pe
        )));
    }
    for name in a.precisions.iter().chain(&a.path_precisions).chain(a.lengths.iter().map(|l| &l.precision)) {
        let Some(precision) = spec.precisions.iter().find(|p| p.name == *name) else {
            return Err(unknown(format!("{place}: no precision is called `{name}`")));
        };
        if block && (precision.kind != LaneKind::Float || !a.precisions.contains(name)) {
            return Err(unknown(format!("{place}: no kernel `{}` for `{name}`", a.kernel)));
        }
    }
    Ok(())
}

/// Every instruction shows at least one example with bits on every machine.
fn check_examples(spec: &Spec) -> Result<(), Error> {
    for entry in spec.entries() {
        let place = format!("[[{}]] `{}`", entry.family, entry.name);
        if entry.examples.is_empty() {
            return Err(Error::new(Code::SpecMissingKey, format!("{place}: no example")));
        }
        for example in entry.examples {
            let expects = std::iter::once(&example.expect).chain(example.expect_on.values());
            for expect in expects {
                let hex = |w: &String| w.len() == 16 && w.chars().all(|c| c.is_ascii_hexdigit());
                if expect.is_empty() || !expect.values().all(|words| !words.is_empty() && words.iter().all(hex)) {
                    return Err(bad(format!("{place}: an example expects long words of 16 hex digits")));
                }
            }
        }
        if entry.doc.trim().is_empty() {
            return Err(Error::new(Code::SpecMissingKey, format!("{place}: `doc` is empty")));
        }
    }
    Ok(())
}

/// A transfer of its own for every reduction that one names.
fn expand_reductions(spec: &Spec) -> Result<Vec<Transfer>, Error> {
    for r in &spec.reductions {
        let lane = spec.precisions.iter().find(|p| p.name == r.precision).and_then(Precision::lane);
        if lane.and_then(|lane| reduce_kernel(&r.kernel, lane, false)).is_none() {
            return Err(unknown(format!("[[reduction]] `{}`: no kernel `{}` for `{}`", r.name, r.kernel, r.precision)));
        }
    }
    let mut all = Vec::new();
    for transfer in &spec.transfers {
        if transfer.reductions.is_empty() {
            all.push(transfer.clone());
        }
        for name in &transfer.reductions {
            let reduction = spec.reductions.iter().position(|r| r.name == *name);
            let Some(at) = reduction else {
                return Err(unknown(format!("[[transfer]] `{}`: no reduction `{name}`", transfer.name)));
            };
            all.push(Transfer { name: format!("{}{name}", transfer.name), reduction: Some(at), ..transfer.clone() });
        }
    }
    Ok(all)
}

type Resolved = (Vec<ResolvedForm>, Option<ResolvedParameter>);

fn resolve_transfer(spec: &Spec, transfer: &Transfer) -> Result<Resolved, Error> {
    let place = format!("[[transfer]] `{}`", transfer.name);
    let constants = spec.constants();
    if !spec.slots.iter().any(|s| s.name == transfer.slot) {
        return Err(unknown(format!("{place}: no slot `{}`", transfer.slot)));
    }
    let value = |text: &str| {
        Expr::parse(text)
            .and_then(|e| e.eval(&|n| constants.get(n).copied()))
            .map_err(|e| Error::new(Code::SpecExpression, format!("{place}: {e}")))
    };
    let parameter = match &transfer.parameter {
        Some(p) => {
            let (minimum, maximum) = (value(&p.minimum)?, value(&p.maximum)?);
            let names_form = |n: &String| transfer.form.iter().any(|f| f.name == *n);
            if minimum > maximum || !p.forms.iter().all(names_form) {
                return Err(bad(format!("{place}: the parameter's range or forms are wrong")));
            }
            let (name, style, default, forms) = (p.name.clone(), p.style, p.default, p.forms.clone());
            Some(ResolvedParameter { name, style, minimum, maximum, default, forms })
        }
        None => None,
    };
    let mut forms: Vec<ResolvedForm> = Vec::new();
    for form in &transfer.form {
        let place = format!("{place} form `{}`", form.name);
        if forms.iter().any(|f| f.name == form.name) {
            return Err(Error::new(Code::SpecDuplicate, format!("{place} stands there twice")));
        }
        let end = |side: &Side| resolve_end(spec, side, &place, &value);
        let (source, destination) = (end(&form.source)?, end(&form.destination)?);
        let resolved = ResolvedForm::resolve(form, source, destination, &constants, &place)?;
        if resolved.unit.is_some() != (transfer.level == LevelName::Chip) {
            return Err(bad(format!("{place}: `unit` belongs to transfers of the chip, and they need it")));
        }
        if resolved.tree.is_empty() == transfer.reduction.is_some() {
            return Err(bad(format!("{place}: `tree` and `reductions` go together")));
        }
        check_form(spec, transfer, &resolved, parameter.as_ref(), &place)?;
        forms.push(resolved);
    }
    if forms.is_empty() {
        return Err(Error::new(Code::SpecMissingKey, format!("{place}: no form")));
    }
    Ok((forms, parameter))
}

fn resolve_end(
    spec: &Spec,
    side: &Side,
    place: &str,
    value: &dyn Fn(&str) -> Result<i64, Error>,
) -> Result<End, Error> {
    if side.operand == "pe" {
        let plain = side.width.is_none() && side.selectors.is_empty() && side.align.is_none();
        return if plain {
            Ok(End::Pe)
        } else {
            Err(bad(format!("{place}: the PE side has the PE operands' grammar")))
        };
    }
    let operand = spec
        .operands
        .iter()
        .position(|o| o.name == side.operand)
        .ok_or_else(|| unknown(format!("{place}: no operand `{}`", side.operand)))?;
    let width = match &side.width {
        Some(prefix) if spec.operands[operand].widths.contains(prefix) => {
            spec.widths.iter().find(|w| w.prefix == *prefix).map(|w| w.words)
        }
        Some(prefix) => return Err(unknown(format!("{place}: `{}` has no width `{prefix}`", side.operand))),
        None => None,
    };
    if let Some(level) = side.selectors.iter().find(|s| !spec.operands[operand].selectors.contains(s)) {
        return Err(bad(format!("{place}: `{}` cannot select a {level:?}", side.operand)));
    }
    let align = side.align.as_deref().map(value).transpose()?.unwrap_or(1);
    let align =
        u64::try_from(align).ok().filter(|a| *a > 0).ok_or_else(|| bad(format!("{place}: align is {align}")))?;
    Ok(End::Memory { operand, width, selectors: side.selectors.clone(), align })
}

/// Checks the index map at the ends of every parameter's range.
fn check_form(
    spec: &Spec,
    transfer: &Transfer,
    form: &ResolvedForm,
    parameter: Option<&ResolvedParameter>,
    place: &str,
) -> Result<(), Error> {
    let size = |end: &End| match end {
        End::Pe => 1,
        End::Memory { operand, .. } => {
            spec.memory(&spec.operands[*operand].memory).map_or(0, |m| spec.memories[m].words)
        }
    };
    let sizes = (size(&form.source), size(&form.destination));
    let selected = |last: bool| {
        let mut values = Vec::new();
        for (side, end) in [("src", &form.source), ("dst", &form.destination)] {
            if let End::Memory { selectors, .. } = end {
                for level in selectors {
                    let value = if last { spec.count(*level) - 1 } else { 0 };
                    values.push((selector_name(side, *level), i64::from(value)));
                }
            }
        }
        values
    };
    let parameter = parameter.filter(|p| p.forms.is_empty() || p.forms.contains(&form.name));
    for last in [false, true] {
        let names = selected(last);
        let mut values: Vec<(&str, i64)> = names.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        if let Some(p) = parameter {
            values.push((&p.name, if last { p.maximum } else { p.minimum }));
        }
        if transfer.level == LevelName::Chip {
            let (source, destination) =
                form.block_strides(&values).map_err(|e| Error::new(Code::SpecExpression, format!("{place}: {e}")))?;
            if source == 0 || destination == 0 {
                return Err(bad(format!("{place}: blocks of an MV must advance")));
            }
            values.push(("i", 0));
        }
        form.check(&values, &spec.counts, sizes, place)?;
    }
    Ok(())
}

/// The name under which an index map sees a selector: `src_group`, `dst_l2b`.
pub fn selector_name(side: &str, level: LevelName) -> String {
    format!("{side}_{}", format!("{level:?}").to_lowercase())
}
