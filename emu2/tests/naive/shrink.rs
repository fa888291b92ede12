//! Shrinks a case that fails.

use super::check::{check, Case, Verdict};
use super::print;
use emu2::asm::{Address, ItemKind, PeInstruction, Step, Target};

/// Most runs of the two machines that shrinking may cost.
const MOST_RUNS: usize = 3000;

struct Shrinker {
    best: Case,
    difference: String,
    runs: usize,
}

/// The message about a case that fails: its seed, the smallest program found that still fails, and the difference.
pub fn report(origin: &str, case: &Case) -> String {
    let (small, difference) = shrink(case);
    let memories: Vec<&str> =
        small.fill.memories.iter().map(|m| small.program.spec.memories[*m].name.as_str()).collect();
    format!(
        "{origin} on {}\nmemories with random contents: {}\n\n{}\n{difference}\n",
        small.program.spec.machine.name,
        memories.join(" "),
        print::program(&small.program)
    )
}

/// The smallest case found that still fails, and its difference.
pub fn shrink(case: &Case) -> (Case, String) {
    let mut shrinker = Shrinker { best: case.clone(), difference: String::new(), runs: 0 };
    if !shrinker.try_case(case.clone()) {
        return (case.clone(), "the difference does not show again".into());
    }
    loop {
        let before = shrinker.size();
        shrinker.drop_items();
        shrinker.simplify_items();
        shrinker.drop_contents();
        if shrinker.size() == before || shrinker.runs >= MOST_RUNS {
            return (shrinker.best, shrinker.difference);
        }
    }
}

impl Shrinker {
    fn size(&self) -> (usize, usize) {
        (print::program(&self.best.program).len(), self.best.fill.memories.len())
    }

    /// Keeps the case if it still fails.
    fn try_case(&mut self, case: Case) -> bool {
        if self.runs >= MOST_RUNS {
            return false;
        }
        self.runs += 1;
        match check(&case) {
            Verdict::Different(difference) => {
                self.best = case;
                self.difference = difference;
                true
            }
            Verdict::Same | Verdict::Undefined(_) => false,
        }
    }

    /// Leaves out runs of statements, long ones first.
    fn drop_items(&mut self) {
        let mut length = self.best.program.items.len().max(1);
        while length > 0 {
            let mut at = self.best.program.items.len().saturating_sub(length);
            loop {
                let mut case = self.best.clone();
                let end = (at + length).min(case.program.items.len());
                case.program.items.drain(at..end);
                self.try_case(case);
                if at == 0 {
                    break;
                }
                at = at.saturating_sub(length);
            }
            length /= 2;
        }
    }

    fn simplify_items(&mut self) {
        let mut at = 0;
        while at < self.best.program.items.len() {
            for change in 0.. {
                let mut case = self.best.clone();
                let changed = match &mut case.program.items[at].kind {
                    ItemKind::Step(step) => simplify_step(step, change),
                    ItemKind::Set(set) => (change == 0).then(|| set.payload.truncate(1)),
                    ItemKind::Get(get) => (change == 0).then(|| get.count = 1),
                    ItemKind::Mv(_) | ItemKind::Nop { .. } | ItemKind::Host(_) => None,
                };
                if changed.is_none() {
                    break;
                }
                if print::program(&case.program) != print::program(&self.best.program) {
                    self.try_case(case);
                }
            }
            at += 1;
        }
    }

    /// Starts with zeros in the memories.
    fn drop_contents(&mut self) {
        for memory in self.best.fill.memories.clone() {
            let mut case = self.best.clone();
            case.fill.memories.retain(|m| *m != memory);
            self.try_case(case);
        }
    }
}

/// Makes a step simpler in way number `change`. None if there is no such way.
fn simplify_step(step: &mut Step, change: usize) -> Option<()> {
    let parts = step.pe.len();
    match change {
        0 => step.forward = true,
        1 => step.wait = None,
        2 => step.l2bm.clear(),
        _ => {
            let (way, at) = ((change - 3) / parts.max(1), (change - 3) % parts.max(1));
            let instruction = step.pe.get_mut(at)?;
            if way == 0 {
                step.pe.remove(at);
            } else {
                simplify(instruction, way - 1)?;
            }
        }
    }
    Some(())
}

/// Makes an instruction simpler in way number `way`. None if there is no such way.
fn simplify(instruction: &mut PeInstruction, way: usize) -> Option<()> {
    let (sources, destinations) = (instruction.sources.len(), instruction.destinations.len());
    match way {
        0 => instruction.zero_flush = None,
        1..=4 => {
            let at = way - 1;
            if at < destinations {
                instruction.destinations.remove(at);
            }
        }
        5..=8 => {
            if let Some(destination) = instruction.destinations.get_mut(way - 5) {
                destination.mask = None;
            }
        }
        9..=12 => {
            if let Some(destination) = instruction.destinations.get_mut(way - 9) {
                if let Target::Memory(access) = &mut destination.target {
                    if let Address::Stride { base, .. } = &mut access.address {
                        *base = 0;
                    }
                    access.indirect = false;
                    access.modify = None;
                }
            }
        }
        13..=15 if way - 13 < sources => instruction.sources[way - 13].negate = false,
        13..=15 => {}
        16..=18 if way - 16 < sources => instruction.sources[way - 16].convert = None,
        16..=18 => {}
        _ => return None,
    }
    Some(())
}
