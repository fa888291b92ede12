//! Resolves transfers: expands reductions, resolves forms and checks index maps.

use crate::error::{Code, Error};
use crate::num::lane::Lane;
use crate::num::reduce::reduce_kernel;
use crate::spec::expr::Expr;
use crate::spec::fault::{bad, unknown};
use crate::spec::map::{End, ResolvedForm};
use crate::spec::model::*;
use crate::spec::{ResolvedParameter, Spec, BUFFER_STATE};

/// Makes a transfer for every reduction that an entry names, and for every suffix of its forms.
pub(super) fn expand_reductions(spec: &Spec) -> Result<Vec<Transfer>, Error> {
    for r in &spec.reductions {
        let lane = spec.precisions.iter().find(|p| p.name == r.precision).and_then(Precision::lane);
        if lane.and_then(|lane| reduce_kernel(&r.kernel, lane, false)).is_none() {
            return Err(unknown(format!("[[reduction]] `{}`: no kernel `{}` for `{}`", r.name, r.kernel, r.precision)));
        }
    }
    let mut all = Vec::new();
    for transfer in &spec.transfers {
        let entry = transfer.name.clone();
        let place = format!("[[transfer]] `{entry}`");
        if transfer.reductions.is_empty() {
            all.push(Transfer { entry, ..transfer.clone() });
            continue;
        }
        let named = transfer.form.iter().flat_map(|f| &f.reductions);
        if let Some(name) = named.into_iter().find(|n| !transfer.reductions.contains(n)) {
            return Err(unknown(format!("{place}: a form is for `{name}`, which the entry does not reduce with")));
        }
        for name in &transfer.reductions {
            let Some(at) = spec.reductions.iter().position(|r| r.name == *name) else {
                return Err(unknown(format!("{place}: no reduction `{name}`")));
            };
            let of = |f: &&Form| f.reductions.is_empty() || f.reductions.contains(name);
            let mut suffixes: Vec<&str> = Vec::new();
            for form in transfer.form.iter().filter(of) {
                if !suffixes.contains(&form.suffix.as_str()) {
                    suffixes.push(&form.suffix);
                }
                check_conversions(spec, &spec.reductions[at], form, &place)?;
            }
            for suffix in suffixes {
                let form = transfer.form.iter().filter(of).filter(|f| f.suffix == suffix).cloned().collect();
                let (name, entry) = (format!("{entry}{name}{suffix}"), entry.clone());
                all.push(Transfer { name, entry, form, reduction: Some(at), ..transfer.clone() });
            }
        }
    }
    Ok(all)
}

/// The default of a set that stands for all numbers.
const ALL_NUMBERS: i64 = -1;
/// Checks that a form that widens or narrows has a kernel that does so. Only halves can be widened.
fn check_conversions(spec: &Spec, reduction: &Reduction, form: &Form, place: &str) -> Result<(), Error> {
    if form.widen.is_none() && !form.narrow {
        return Ok(());
    }
    let lane = reduction_lane(spec, reduction, form.widen == Some(Widen::Always));
    let kernel = lane.and_then(|lane| reduce_kernel(&reduction.kernel, lane, form.narrow));
    let halves = form.widen.is_none() || lane == Some(Lane::F);
    match kernel.filter(|_| halves) {
        Some(_) => Ok(()),
        None => Err(unknown(format!("{place} form `{}`: no kernel converts for `{}`", form.name, reduction.name))),
    }
}

/// The lane type that a reduction works on. With `widened`, the type of twice the width.
pub fn reduction_lane(spec: &Spec, reduction: &Reduction, widened: bool) -> Option<Lane> {
    let own = spec.precisions.iter().find(|p| p.name == reduction.precision)?.lane()?;
    if !widened {
        return Some(own);
    }
    Lane::ALL.into_iter().find(|l| l.format().is_some() == own.format().is_some() && l.width() == 2 * own.width())
}

type Resolved = (Vec<ResolvedForm>, Option<ResolvedParameter>);

/// Resolves the forms and the parameter of a transfer. `previous` is the entry that the transfer before it was made
/// from.
pub(super) fn resolve_transfer(spec: &Spec, transfer: &Transfer, previous: &str) -> Result<Resolved, Error> {
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
            if style == ParameterStyle::Set && (minimum != 0 || default.is_some_and(|d| d != ALL_NUMBERS)) {
                return Err(bad(format!("{place}: a set counts from 0, and its default is {ALL_NUMBERS}")));
            }
            let mut parameter = ResolvedParameter { name, style, minimum, maximum, default, partial: p.partial, forms };
            if style == ParameterStyle::Set {
                parameter.default = default.map(|_| parameter.all().code());
            }
            Some(parameter)
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
        // The reducing transfers of one entry have the same maps, so one check is enough.
        if transfer.reduction.is_none() || spec.entry_name(transfer) != previous {
            check_form(spec, transfer, &resolved, parameter.as_ref(), &place)?;
        }
        check_throughput(&resolved, &place)?;
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
    if let Some(level) = side.assumed.iter().find(|l| !side.selectors.contains(l)) {
        return Err(bad(format!("{place}: no {level:?} is selected that could be assumed")));
    }
    let (selectors, assumed) = (side.selectors.clone(), side.assumed.clone());
    Ok(End::Memory { operand, width, selectors, assumed, align, implied: side.implied })
}

/// Checks the index map at the ends of the range of its parameter.
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
            let operand = &spec.operands[*operand];
            let buffer = operand.buffer.as_ref().and_then(|b| spec.memory(b)).map(|m| spec.memories[m].words);
            // The last long words of a buffer hold its state, not data.
            let room = buffer.map(|words| words.saturating_sub(BUFFER_STATE));
            room.or(spec.memory(&operand.memory).map(|m| spec.memories[m].words)).unwrap_or(0)
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
    let codes = parameter.map_or(vec![0, 0], ResolvedParameter::extremes);
    let named = |at: usize| {
        let mut names = selected(at > 0);
        names.extend(parameter.iter().flat_map(|p| p.named(codes[at])));
        names
    };
    for at in 0..codes.len() {
        let names = named(at);
        if at > 0 && names == named(at - 1) {
            continue; // nothing selects, and no parameter changes
        }
        let mut values: Vec<(&str, i64)> = names.iter().map(|(n, v)| (n.as_str(), *v)).collect();
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

/// Checks the rates: they are given by group or by side. If both sides have a rate, both must take equally long.
fn check_throughput(form: &ResolvedForm, place: &str) -> Result<(), Error> {
    let Some(rates) = &form.throughput else { return Ok(()) };
    let by_group = [rates.same_group, rates.across];
    let by_side = [rates.source, rates.destination];
    let none = |pair: [Option<u32>; 2]| pair.iter().all(Option::is_none);
    let both = by_group.iter().all(Option::is_some);
    if form.unit.is_none() || by_group.iter().chain(&by_side).any(|r| *r == Some(0)) {
        return Err(bad(format!("{place}: `throughput` belongs to MVs, and rates are at least 1")));
    }
    if none(by_side) && !both || !none(by_side) && !none(by_group) {
        return Err(bad(format!("{place}: give `same_group` and `across`, or `source` or `destination`")));
    }
    if let [Some(source), Some(destination)] = by_side {
        let [read, written] =
            form.loads(&selected_first(form)).map_err(|e| Error::new(Code::SpecExpression, format!("{place}: {e}")))?;
        if read * u64::from(destination) != written * u64::from(source) {
            let message = format!("{place}: {read} words at {source} a cycle and {written} at {destination} differ");
            return Err(bad(message));
        }
    }
    Ok(())
}

/// Parameter values that select the first unit of every selector, and the first block.
fn selected_first(form: &ResolvedForm) -> Vec<(String, i64)> {
    let mut values = vec![("i".to_string(), 0)];
    for (side, end) in [("src", &form.source), ("dst", &form.destination)] {
        if let End::Memory { selectors, .. } = end {
            values.extend(selectors.iter().map(|level| (selector_name(side, *level), 0)));
        }
    }
    values
}

/// The name of a selector in an index map, such as `src_group` or `dst_l2b`.
pub fn selector_name(side: &str, level: LevelName) -> String {
    format!("{side}_{}", format!("{level:?}").to_lowercase())
}
