//! A program, made part by part, so that memory and time of a part stay bounded.
//!
//! A part is the program of some nodes that follow each other. At its end all MVs have finished, so the next part needs to know
//! only the lines of its last steps. The first part tries all ways of placing nodes. Later ones take what was best there: nodes
//! of one network are much alike.

use crate::code::Line;
use crate::machine::Machine;
use crate::merge::{merge, place, Known, Placed};
use crate::ready::Ready;
use crate::rules::Name;
use crate::shelf::{Fragment, Lines, Shelf};
use crate::units::{prepare, Kind};
use crate::writer::{Code, Writer};
use rustc_hash::{FxHashMap as Map, FxHashSet as Set};
use std::sync::Arc;

/// When a line or an MV begins and ends, and for how many cycles it holds which slots or memories.
pub type Held = (i64, i64, Vec<(Name, i64)>);

/// A line of a node, by their numbers; None stands for the begin of a program.
type Place = Option<(usize, usize)>;

/// A node of a program.
pub struct Node {
    /// What stands beside it in the text.
    pub comment: String,
    /// Its code.
    pub fragment: Fragment,
    /// Its lines if nodes are merged: those of `fragment` with short MVs.
    pub short: Arc<[Line]>,
    /// What merging makes of it.
    pub kind: Kind,
}

/// The program of nodes that come one after the other; if `merged`, they share lines.
pub struct Program {
    machine: Arc<Machine>,
    merged: bool,
    /// At most how many lines of nodes a part has, unless it has one node.
    window: usize,
    nodes: Vec<Node>,
    lines: usize,
    known: Known,
    writer: Writer,
    merged_parts: usize,
}

impl Program {
    /// Returns an empty program.
    pub fn new(machine: Arc<Machine>, merged: bool, window: usize) -> Self {
        let writer = Writer::new(Arc::clone(&machine));
        Self { machine, merged, window, nodes: Vec::new(), lines: 0, known: Known::default(), writer, merged_parts: 0 }
    }

    /// Adds a node.
    pub fn add(&mut self, node: Node) {
        let own = node.fragment.lines.len();
        // A node that begins before all its words are there is placed together with the downloads in front of it.
        let most = if node.fragment.loose { 2 * self.window } else { self.window };
        if self.lines > 0 && self.lines + own > most {
            self.close();
        }
        self.lines += own;
        self.nodes.push(node);
    }

    /// Returns the program of all nodes, and how many parts were merged.
    pub fn finish(mut self) -> (Code, usize) {
        self.close();
        (self.writer.finish(), self.merged_parts)
    }

    /// Returns when each line and each MV of the nodes since the last part begins and ends at the earliest, as if every slot, port
    /// and memory were free, and for how many cycles it holds which of them. None if lines that belong together cannot be kept
    /// together.
    pub fn unlimited(&mut self) -> Option<Vec<Held>> {
        self.lines = 0;
        let nodes = shortened(&std::mem::take(&mut self.nodes));
        let (machine, cycles) = (&*self.machine, self.machine.rules.cycles);
        let made = prepare(machine, &nodes, &mut Shelf::new(machine), true)?;
        let each = place(machine, &made, true).into_iter().map(|one| {
            let uses = match &one.ready.line {
                Line::Move(own) => own.transfer.0.iter().map(|&port| (port, own.transfer.1)).collect(),
                Line::Step(all) => all.iter().map(|own| (own.form.facts.slot, cycles)).collect(),
            };
            (one.step * cycles, one.end.max((one.step + 1) * cycles), uses)
        });
        Some(each.collect())
    }

    /// Makes the program of the nodes since the last part.
    fn close(&mut self) {
        self.lines = 0;
        let nodes = std::mem::take(&mut self.nodes);
        let machine = &*self.machine;
        let mut shelf = Shelf::new(machine);
        let merged = if self.merged { merge(machine, &shortened(&nodes), &mut shelf, &mut self.known) } else { None };
        let own = |lines: &[Arc<Lines>]| lines.iter().map(|own| own.busy.clone()).collect::<Vec<_>>();
        let comments = nodes.iter().map(|node| node.comment.clone());
        if let Some((made, placed)) = merged {
            self.merged_parts += 1;
            self.writer.begin(comments.zip(own(&made.lines)), true);
            write(placed, &mut self.writer);
        } else {
            let lines: Vec<Arc<Lines>> = nodes.iter().map(|node| shelf.of(&node.fragment)).collect();
            self.writer.begin(comments.zip(own(&lines)), false);
            concatenate(machine, &lines, &mut self.writer);
        }
        self.writer.end();
    }
}

fn shortened(nodes: &[Node]) -> Vec<(Fragment, Kind)> {
    let own = |node: &Node| Fragment { lines: Arc::clone(&node.short), ..node.fragment.clone() };
    nodes.iter().map(|node| (own(node), node.kind)).collect()
}

/// Writes lines in the order of their steps, those of one step as one line.
///
/// Such a line counts for the node that was placed there first.
fn write(placed: Vec<Placed>, writer: &mut Writer) {
    let mut order: Vec<(i64, bool, usize)> =
        placed.iter().enumerate().map(|(number, one)| (one.step, one.end == 0, number)).collect();
    sorting::sort(&mut order);
    for group in order.chunk_by(|one, other| one.1 && other.1 && one.0 == other.0) {
        let here: Vec<Arc<Ready>> = group.iter().map(|(_, _, number)| Arc::clone(&placed[*number].ready)).collect();
        let mut owners: Vec<usize> = Vec::new();
        for (_, _, number) in group {
            if !owners.contains(&placed[*number].owner) {
                owners.push(placed[*number].owner);
            }
        }
        writer.put(&here, &owners);
    }
}

/// Writes the nodes one after the other.
///
/// A transfer from DRAM is issued right after the last line that it must follow. That is the line that wrote the data it reads,
/// or the last line that used its buffer. So it runs while earlier nodes still compute.
fn concatenate(machine: &Machine, nodes: &[Arc<Lines>], writer: &mut Writer) {
    // The transfers that are issued right behind a line.
    let mut behind: Map<Place, Vec<(usize, &Arc<Ready>)>> = Map::default();
    let mut moved: Set<(usize, usize)> = Set::default();
    let mut shared: Vec<(Place, &Arc<Ready>)> = Vec::new();
    for (node, lines) in nodes.iter().enumerate() {
        for (number, ready) in lines.lines.iter().enumerate().filter(|(_, ready)| ready.needs.shared) {
            let mut place = Some((node, number));
            if matches!(&ready.line, Line::Move(one) if one.source.memory == machine.dram) {
                moved.insert((node, number));
                place = shared.iter().rev().find(|(_, one)| one.needs.conflicts(&ready.needs)).and_then(|(at, _)| *at);
                behind.entry(place).or_default().push((node, ready));
            }
            shared.push((place, ready));
        }
    }
    let mut put_behind = |writer: &mut Writer, place| {
        for (node, ready) in behind.remove(&place).into_iter().flatten() {
            writer.put(std::slice::from_ref(ready), &[node]);
        }
    };
    put_behind(writer, None);
    for (node, lines) in nodes.iter().enumerate() {
        for (number, ready) in lines.lines.iter().enumerate() {
            if !moved.contains(&(node, number)) {
                writer.put(std::slice::from_ref(ready), &[node]);
            }
            put_behind(writer, Some((node, number)));
        }
    }
}
