//! An index map as a small table of source and destination ranges.

use crate::spec::{selector_name, End, LevelName, Place, ResolvedForm, Spec};
use std::fmt::Write;

/// Number of rows that are shown. The last row always is; rows before it are left out if there are more.
const MOST_ROWS: usize = 12;

/// Number of elements of a reduction that are shown.
const MOST_ELEMENTS: usize = 3;

/// A run of long words: the elements that meet in the first one, and the distance to the elements of the next one.
#[derive(Clone, Debug)]
struct Row {
    to: Place,
    from: Vec<Place>,
    length: u64,
    step: Option<(Place, Vec<Place>)>,
}

/// The table of one form, with its parameter at the default or smallest value. Of an MV it shows the first block.
pub(super) fn of(spec: &Spec, transfer: usize, form: &ResolvedForm) -> String {
    let parameter = spec.parameters[transfer].as_ref();
    let parameter = parameter.filter(|p| p.forms.is_empty() || p.forms.contains(&form.name));
    let code = parameter.map_or(0, |p| p.default.unwrap_or(p.minimum));
    let mut named = spec.form_values(transfer, code);
    for (side, end) in [("src", &form.source), ("dst", &form.destination)] {
        if let End::Memory { selectors, .. } = end {
            named.extend(selectors.iter().map(|level| (selector_name(side, *level), 0)));
        }
    }
    let mut values: Vec<(&str, i64)> = named.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    values.push(("i", 0));
    // A map that cannot be evaluated was refused when the spec was loaded.
    let mut words = form.meetings(&values).unwrap_or_default();
    // Consecutive PEs lie side by side.
    sorting::sort_by_key(&mut words, |(to, _)| (to.group, to.l2b, to.l1b, to.cycle, to.half, to.mab, to.pe, to.addr));
    let mut rows = rows(words.into_iter().map(|(to, from)| (to, from.into_iter().flatten().collect())));
    sorting::sort_by_key(&mut rows, |row| (row.to.cycle, row.to.addr, row.to));
    // Units that take the same words share a row.
    let mut cells: Vec<(Vec<String>, String, String)> = Vec::new();
    for row in &rows {
        let step = row.step.as_ref().map(|s| s.0).unwrap_or_default();
        let (unit, range) = side(spec, &form.destination, row.to, step, row.length);
        let from = sources(spec, form, row);
        match cells.iter_mut().find(|(_, r, f)| *r == range && *f == from) {
            Some((units, ..)) => units.push(unit),
            None => cells.push((vec![unit], range, from)),
        }
    }
    let name = unit_name(spec, &form.destination);
    let cells: Vec<(String, String)> = cells
        .into_iter()
        .map(|(units, range, from)| match (&units[..], units.last()) {
            ([first, _, _, ..], Some(last)) => (format!("{name} {first} to {last} {range}"), from),
            (all, _) => (format!("{name} {} {range}", all.join(", ")), from),
        })
        .collect();
    let mut out = match form.unit {
        Some(unit) => format!("{}, the first {unit} long words\n", form.name),
        None => format!("{}\n", form.name),
    };
    let count = cells.len();
    let shown = if count > MOST_ROWS { MOST_ROWS - 1 } else { count };
    let width = cells.iter().map(|(to, _)| to.len()).max().unwrap_or(0);
    for (at, (to, from)) in cells.iter().enumerate().filter(|(at, _)| *at < shown || at + 1 == count) {
        if at + 1 == count && count > MOST_ROWS {
            let _ = writeln!(out, "  ({} more)", count - MOST_ROWS);
        }
        let _ = writeln!(out, "  {to:width$} <- {from}");
    }
    out
}

/// Merges consecutive destinations: the next long word, or the next PE.
fn rows(words: impl Iterator<Item = (Place, Vec<Place>)>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    // Words that nothing reaches, such as words of units outside a set, get no row.
    for (to, from) in words.filter(|(_, from)| !from.is_empty()) {
        if let Some(row) = rows.last_mut().filter(|r| r.from.len() == from.len()) {
            let ahead = |start: &Place, at: &Place| difference(start, at, row.length);
            let steps: Option<Vec<Place>> = row.from.iter().zip(&from).map(|(a, b)| ahead(a, b)).collect();
            if let (Some(step), Some(steps)) = (ahead(&row.to, &to), steps) {
                let step = (step, steps);
                let moves = step.0 != Place::default();
                if moves && row.step.as_ref().is_none_or(|s| *s == step) {
                    row.step = Some(step);
                    row.length += 1;
                    continue;
                }
            }
        }
        rows.push(Row { to, from, length: 1, step: None });
    }
    rows
}

/// The distance per word from `start` to `at`, which lies `length` words further: nothing, one long word or one PE.
fn difference(start: &Place, at: &Place, length: u64) -> Option<Place> {
    let steps = [Place::default(), Place { addr: 1, ..Place::default() }, Place { pe: 1, ..Place::default() }];
    steps.into_iter().find(|step| {
        let moved = Place { addr: start.addr + step.addr * length, pe: start.pe + step.pe * length as u32, ..*start };
        moved == *at
    })
}

fn sources(spec: &Spec, form: &ResolvedForm, row: &Row) -> String {
    let one = |at: usize| {
        let step = row.step.as_ref().and_then(|s| s.1.get(at)).copied().unwrap_or_default();
        let (unit, range) = side(spec, &form.source, row.from[at], step, row.length);
        format!("{} {unit} {range}", unit_name(spec, &form.source))
    };
    let count = row.from.len();
    if count <= MOST_ELEMENTS {
        return (0..count).map(one).collect::<Vec<_>>().join(" with ");
    }
    format!("{} with {} with .. {} ({count} elements)", one(0), one(1), one(count - 1))
}

/// The name of the unit that is numbered: a memory, or a MAB.
fn unit_name<'s>(spec: &'s Spec, end: &End) -> &'s str {
    spec.end_memory(end).map_or("MAB", |m| spec.memories[m].dump.as_str())
}

/// The unit of the side's memory or PEs, and the range of offsets or PEs.
fn side(spec: &Spec, end: &End, at: Place, step: Place, length: u64) -> (String, String) {
    let range = |first: u64, step: u64| match step {
        0 => first.to_string(),
        _ => format!("{first}..{}", first + step * (length - 1)),
    };
    let Some(memory) = spec.end_memory(end) else {
        let half = if at.half > 0 { " second long word" } else { "" };
        let pe = range(at.pe.into(), step.pe.into());
        return (at.mab.to_string(), format!("PE {pe} cycle {}{half}", at.cycle));
    };
    let unit = match spec.memories[memory].level {
        LevelName::Group => at.group.to_string(),
        LevelName::L2b => format!("{}.{}", at.group, at.l2b),
        _ => at.l1b.to_string(),
    };
    (unit, format!("[{}]", range(at.addr, step.addr)))
}
