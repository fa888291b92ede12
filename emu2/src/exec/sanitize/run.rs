//! A run whose values are followed by their validity.

use super::finding::{Case, Findings, Key, Origin, What, Word};
use super::followed::Followed;
use super::observed::PLAIN;
use super::text::Finding;
use super::traffic::Traffic;
use super::worker::Work;
use crate::asm::{DebugGet, HostCommand, Item, ItemKind, L2bmTransfer, Mv, Program};
use crate::error::{Code, Error};
use crate::exec::debug_place::{debug_place, debug_set};
use crate::exec::dram_address_register;
use crate::exec::engine::RunError;
use crate::exec::host_command;
use crate::exec::lower::Lowering;
use crate::exec::tags::Tags;
use crate::exec::transfer_l2bm::{self, L2bmTransfers};
use crate::exec::transfer_mv::words::{SideWords, WordRange};
use crate::exec::transfer_mv::MvTransfers;
use crate::exec::validity::VALID;
use crate::interrupt::Interrupt;
use crate::machine::{Machine, Region};
use crate::num::level::Level;
use crate::spec::{LevelName, Spec, Unit, WORD_BITS};
use std::collections::HashSet;
use std::sync::Arc;

/// A region runs at the latest when it has this many steps and transfers.
const REGION: usize = 1024;

/// Runs programs of one machine and looks for uses of undefined values, timing and ranges that results depend on. Follows
/// the memories of the machine from run to run.
pub struct Sanitizer {
    spec: Arc<Spec>,
    lowering: Lowering,
    transfers: [L2bmTransfers; 2],
    mvs: [MvTransfers; 2],
    followed: Followed,
    traffic: Traffic,
    findings: Findings,
    interrupt: Interrupt,
}

fn at(line: u32, e: Error) -> RunError {
    RunError { line, diagnostic: *e.0 }
}

/// Whether an instruction fills the buffer of the DAR or empties it.
fn is_table(spec: &Spec, instruction: &L2bmTransfer) -> bool {
    spec.transfers[instruction.form.transfer].level == LevelName::Group
}

impl Sanitizer {
    /// A sanitizer for one machine of `spec`.
    ///
    /// # Errors
    /// [`Code::NoKernel`] if a kernel that it needs is missing.
    pub fn new(spec: Arc<Spec>) -> Result<Sanitizer, Error> {
        Ok(Sanitizer {
            lowering: Lowering::new(spec.clone()),
            transfers: [L2bmTransfers::default(), L2bmTransfers::of_validity()],
            mvs: [MvTransfers::default(), MvTransfers::of_validity()],
            followed: Followed::new(spec.clone())?,
            spec,
            traffic: Traffic::default(),
            findings: Findings::default(),
            interrupt: Interrupt::default(),
        })
    }

    /// Makes later runs end with [`Code::Interrupted`] soon after `interrupt` is requested.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// Does the same as [`run`](crate::exec::Engine::run) and leaves the same bits, and keeps what it finds.
    ///
    /// # Errors
    /// Those of [`run`](crate::exec::Engine::run).
    pub fn run(
        &mut self,
        machine: &mut Machine,
        program: &Program,
        tags: &mut dyn Tags,
        on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
    ) -> Result<(), RunError> {
        machine.check_usable().map_err(|e| at(0, e))?;
        Level::check_wanted().map_err(|e| at(0, e))?;
        if [machine.spec(), &program.spec].iter().any(|spec| spec.digest != self.spec.digest) {
            let message = format!("the program or the machine is not of `{}`", self.spec.machine.name);
            return Err(at(0, Error::new(Code::WrongSpec, message)));
        }
        self.followed.absorb(machine);
        self.traffic.start();
        let ran = self.items(machine, program, tags, on_get);
        if ran.is_err() {
            machine.poison();
        }
        ran
    }

    /// The findings since the last call, in the order of their lines. `program` is the one that ran.
    pub fn findings(&mut self, program: &Program) -> Vec<Finding> {
        let all = std::mem::take(&mut self.findings);
        super::text::findings(&self.spec, &all, program)
    }

    /// Looks for undefined words in a region that the host reads; [`Sanitizer::findings`] then lists them at line 0.
    ///
    /// # Errors
    /// [`Code::AddressRange`] and others if the region does not exist.
    pub fn show(&mut self, machine: &mut Machine, region: &Region) -> Result<(), Error> {
        region.check(&self.spec)?;
        self.followed.absorb(machine);
        self.shown(0, region, |k| region.addr + k);
        Ok(())
    }

    /// The validity of a region, as [`Machine::read`] gives its words: a bit is 1 where something has written the bit.
    ///
    /// # Errors
    /// [`Code::AddressRange`] and others if the region does not exist.
    pub fn validity(&mut self, machine: &mut Machine, region: &Region) -> Result<Vec<u64>, Error> {
        self.followed.absorb(machine);
        let mut words = self.followed.shadow.read(region)?;
        if self.followed.assumed() {
            words.fill(VALID);
        }
        Ok(words)
    }

    fn items(
        &mut self,
        machine: &mut Machine,
        program: &Program,
        tags: &mut dyn Tags,
        on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
    ) -> Result<(), RunError> {
        // Tags that nothing in the program signals belong to transfers that the host did before, if it is not a part of
        // the program.
        let mut carried = Some(HashSet::new());
        program.for_each(|item| -> Result<(), RunError> {
            match (&item.kind, &mut carried) {
                (ItemKind::Mv(mv), Some(carried)) => carried.extend(mv.tag),
                (ItemKind::Host(_), _) => carried = None,
                _ => {}
            }
            Ok(())
        })?;
        let mut work = Vec::new();
        program.for_each_block(|items| {
            for item in items {
                self.interrupt.check().map_err(|e| at(item.line, e))?;
                self.item(machine, item, &mut work, &carried, tags, on_get)?;
            }
            self.flush(machine, &mut work);
            self.interrupt.check().map_err(|e| at(items.last().map_or(0, |item| item.line), e))
        })
    }

    fn item(
        &mut self,
        machine: &mut Machine,
        item: &Item,
        work: &mut Vec<Work>,
        carried: &Option<HashSet<u32>>,
        tags: &mut dyn Tags,
        on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
    ) -> Result<(), RunError> {
        let line = item.line;
        let wait = match &item.kind {
            ItemKind::Nop { wait, .. } => *wait,
            ItemKind::Step(step) => step.wait,
            _ => None,
        };
        if let Some(tag) = wait {
            let host = carried.as_ref().is_some_and(|carried| !carried.contains(&tag));
            self.traffic.wait(line, tag, host, &mut self.findings);
            tags.wait(tag).map_err(|e| at(line, e))?;
        }
        match &item.kind {
            ItemKind::Nop { .. } => {}
            ItemKind::Step(step) => {
                self.l2bm_traffic(machine, line, &step.l2bm).map_err(|e| at(line, e))?;
                let mut lowered = self.lowering.step(machine.layout(), step).map_err(|e| at(line, e))?;
                lowered.ops.iter_mut().for_each(|op| op.keep = step.forward);
                let mut transfer = None;
                if let [instruction] = &step.l2bm[..] {
                    transfer = self.in_region(machine, instruction).map_err(|e| at(line, e))?;
                }
                if step.l2bm.is_empty() || transfer.is_some() {
                    let down = transfer.as_ref().is_some_and(|pair| pair[0].down());
                    let steps = (!lowered.ops.is_empty()).then_some(Work::Step(line, lowered));
                    let transfer = transfer.map(|pair| Work::Transfer(Box::new(pair)));
                    let both = if down { [steps, transfer] } else { [transfer, steps] };
                    work.extend(both.into_iter().flatten());
                    if work.len() >= REGION {
                        self.flush(machine, work);
                    }
                    return Ok(());
                }
                self.flush(machine, work);
                for instruction in step.l2bm.iter().filter(|one| is_table(&self.spec, one)) {
                    let shadow = &mut self.followed.shadow;
                    dram_address_register::share_state(machine, shadow, instruction).map_err(|e| at(line, e))?;
                }
                let [real, valid] = &mut self.transfers;
                let moved = real.read(machine, &step.l2bm).map_err(|e| at(line, e))?;
                let moved_validity = valid.read(&mut self.followed.shadow, &step.l2bm).map_err(|e| at(line, e))?;
                work.push(Work::Step(line, lowered));
                self.flush(machine, work);
                transfer_l2bm::write(machine, moved);
                transfer_l2bm::write(&mut self.followed.shadow, moved_validity);
            }
            ItemKind::Mv(mv) => {
                self.flush(machine, work);
                self.mv(machine, line, mv).map_err(|e| at(line, e))?;
                mv.tag.into_iter().for_each(|tag| tags.signal(tag));
            }
            ItemKind::Set(set) => {
                self.flush(machine, work);
                debug_set(machine, set).map_err(|e| at(line, e))?;
                self.followed.absorb(machine);
            }
            ItemKind::Host(command) => {
                self.flush(machine, work);
                self.host(machine, line, command, tags).map_err(|e| at(line, e))?;
            }
            ItemKind::Get(get) => {
                self.flush(machine, work);
                self.get(line, get);
                on_get(get, machine).map_err(|e| at(line, e))?;
            }
        }
        Ok(())
    }

    fn in_region(
        &mut self,
        machine: &Machine,
        instruction: &L2bmTransfer,
    ) -> Result<Option<[transfer_l2bm::RegionTransfer; 2]>, Error> {
        let [real, valid] = &mut self.transfers;
        let pair = (real.in_region(machine, instruction)?, valid.in_region(machine, instruction)?);
        Ok(match pair {
            (Some(real), Some(valid)) => Some([real, valid]),
            _ => None,
        })
    }

    /// Runs what is collected so far.
    fn flush(&mut self, machine: &mut Machine, work: &mut Vec<Work>) {
        if !work.is_empty() {
            self.followed.run(machine, work, &self.interrupt, &mut self.findings);
            work.clear();
        }
    }

    /// Checks the words of the L2Bs that a step reads and writes against MVs in flight, and whether two instructions of the
    /// line write the same memory words.
    fn l2bm_traffic(&mut self, machine: &Machine, line: u32, all: &[L2bmTransfer]) -> Result<(), Error> {
        if self.traffic.quiet() {
            return Ok(());
        }
        for instruction in all {
            let Some((slot, start, end, writes)) = self.transfers[0].of_l2b(machine, instruction)? else { continue };
            let units = 0..machine.state.l2b.len();
            let ranges = units.map(|unit| WordRange { unit, start, end }).collect();
            self.traffic.step(line, slot, ranges, writes, &mut self.findings);
        }
        Ok(())
    }

    fn mv(&mut self, machine: &mut Machine, line: u32, mv: &Mv) -> Result<(), Error> {
        let words = self.mvs[0].words(machine, mv)?;
        for side in &words {
            self.looked_up(line, side);
        }
        let indirect = words.iter().find_map(|side| side.entries.as_ref()).map(|(dar, _)| *dar);
        self.traffic.start_mv(line, mv.tag, words, &mut self.findings);
        let shadow = &mut self.followed.shadow;
        let swap = |machine: &mut Machine, shadow: &mut Machine| {
            if let Some(dar) = indirect {
                dram_address_register::swap(machine, shadow, dar);
            }
        };
        // The validity of the words goes where the DAR sends the words.
        swap(machine, shadow);
        let moved = self.mvs[1].run(shadow, mv);
        swap(machine, shadow);
        moved?;
        self.mvs[0].run(machine, mv)
    }

    /// Runs a command of the host.
    fn host(
        &mut self,
        machine: &mut Machine,
        line: u32,
        command: &HostCommand,
        tags: &mut dyn Tags,
    ) -> Result<(), Error> {
        let (words, count, writes) = match command {
            HostCommand::Fence => {
                self.traffic.fence();
                return Ok(());
            }
            HostCommand::Write(words, payload) => (words, payload.len() as u64, true),
            HostCommand::Read(words, count) => (words, *count, false),
        };
        if words.wait != 0 {
            self.traffic.wait(line, words.wait, false, &mut self.findings);
        }
        let region = host_command::region(machine, words, count)?;
        let slot = self.followed.shadow.layout().slot(region.memory);
        let unit = region.units[0].unwrap_or(0) as usize;
        let range = WordRange { unit, start: region.addr, end: region.addr + count };
        self.traffic.step(line, slot, vec![range], writes, &mut self.findings);
        if !writes {
            self.shown(line, &region, |k| region.addr + k);
        }
        host_command::run(machine, command, tags)?;
        self.followed.absorb(machine);
        if words.signal != 0 {
            self.traffic.signal(line, words.signal, &mut self.findings);
        }
        Ok(())
    }

    /// Checks what the DAR gives for one side of an MV.
    fn looked_up(&mut self, line: u32, side: &SideWords) {
        let Some((dar, entries)) = &side.entries else { return };
        let slot = side.slot;
        let mut found = |what, slot: crate::machine::Slot, unit, address| {
            let key = Key { line, what, memory: Some((slot.level, slot.index)), other: 0 };
            self.findings.add(key, Case { word: Some(Word::above(slot, unit, address)), ..PLAIN });
        };
        if let Some((group, address)) = side.wraps {
            found(What::Wrap, slot, group, address);
        }
        if let Some((group, address)) = side.twice {
            found(What::WrittenTwice, slot, group, address);
        }
        if self.followed.assumed() {
            return;
        }
        for range in entries {
            for entry in range.start..range.end {
                let mut word = [0];
                self.followed.shadow.state.group[range.unit][dar.index].read(entry % dar.words, &mut word);
                let address = (1 << WORD_BITS) - 1;
                if word[0] & address != address {
                    found(What::Address, *dar, range.unit, entry % dar.words);
                }
            }
        }
    }

    /// Looks at the words that a `d get` shows.
    fn get(&mut self, line: u32, get: &DebugGet) {
        let location = &get.location;
        let spec = self.spec.clone();
        let unit = spec.memories[location.memory].unit;
        let place = |k| debug_place(&spec, location.memory, location.words, location.address, k).0;
        // A mask register has a word for each cycle.
        let cycles = if unit == Unit::Mask { u64::from(spec.counts.cycle) } else { 1 };
        let words = spec.memories[location.memory].words;
        let region = Region { memory: location.memory, units: location.units, addr: 0, count: get.count * cycles };
        self.shown(line, &region, |k| (place(k / cycles) + k % cycles) % words);
    }

    /// Looks at `region.count` words of the units of a region. `address` gives the address of each.
    fn shown(&mut self, line: u32, region: &Region, address: impl Fn(u64) -> u64) {
        if self.followed.assumed() {
            return;
        }
        let (spec, slot) = (self.spec.clone(), self.followed.shadow.layout().slot(region.memory));
        let mut first = None;
        let mut count = 0;
        region.each(&spec, |unit| {
            for k in 0..region.count {
                let mut word = [0];
                self.followed.shadow.read_unit(region.memory, unit, address(k), &mut word);
                if word[0] != VALID {
                    count += 1;
                    first.get_or_insert((unit, address(k)));
                }
            }
        });
        if let Some((unit, address)) = first {
            let (word, origin) = self.followed.word(region.memory, unit, address, line);
            let what = origin.map_or(What::Shown, Origin::shown);
            let key = Key { line, what, memory: Some((slot.level, slot.index)), other: 0 };
            self.findings.add(key, Case { word: Some(word), origin, count, ..PLAIN });
        }
    }
}
