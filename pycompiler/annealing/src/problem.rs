//! The problem of a schedule, and plans for it.

/// A node runs in LM0 (0) and LM1 (1); what a node reads in DRAM has this number instead.
pub const DRAM: u8 = 2;

/// A way to run a node: the memories of its inputs and outputs. `taken` is the place, among the inputs, of the one in whose
/// long words the first output goes. `cycles` is what the node takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The memory of each input.
    pub inputs: Vec<u8>,
    /// The bank of each output.
    pub outputs: Vec<u8>,
    /// The input that the first output overwrites.
    pub taken: Option<usize>,
    /// The cycles of the node.
    pub cycles: i64,
}

/// A node. Without `choices` it has no code: its outputs are then in DRAM.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The distinct values that it reads.
    pub inputs: Vec<usize>,
    /// The values that it makes.
    pub outputs: Vec<usize>,
    /// The ways to run it, the preferred one first.
    pub choices: Vec<Choice>,
    /// The nodes that must run before it.
    pub before: Vec<usize>,
    /// Nodes of different segments do not change places.
    pub segment: i64,
}

/// A value. `size` is in long words of a PE, `words` in long words of DRAM; `down`, `up` and `copy` are cycles.
#[derive(Clone, Debug, Default)]
pub struct Value {
    /// The node that makes it.
    pub maker: Option<usize>,
    /// Its long words in LM.
    pub size: i64,
    /// Its long words in DRAM.
    pub words: i64,
    /// The cycles of a download.
    pub down: i64,
    /// The cycles of an upload.
    pub up: i64,
    /// The cycles of a copy from one LM to the other.
    pub copy: i64,
    /// Whether it is in DRAM at the beginning.
    pub given: bool,
    /// Whether it goes to DRAM as soon as it is made.
    pub stored: bool,
    /// Whether its maker may run again.
    pub remakable: bool,
}

/// A graph and the room of LM0 and LM1 in long words.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The nodes, in an order in which they may run.
    pub nodes: Vec<Node>,
    /// The values.
    pub values: Vec<Value>,
    /// The room of LM0 and LM1.
    pub rooms: [i64; 2],
    /// Long words that DRAM reads or writes in a cycle.
    pub words_per_cycle: i64,
    /// The nodes that must run behind each node.
    pub(crate) behind: Vec<Vec<usize>>,
    /// The nodes with code that read each value.
    pub(crate) readers: Vec<Vec<usize>>,
}

impl Problem {
    /// Returns the problem; None if a number names nothing, or if the order of the nodes is impossible.
    pub fn new(nodes: Vec<Node>, values: Vec<Value>, rooms: [i64; 2], words_per_cycle: i64) -> Option<Self> {
        let count = nodes.len();
        let mut behind = vec![Vec::new(); count];
        let mut readers = vec![Vec::new(); values.len()];
        for (at, node) in nodes.iter().enumerate() {
            if node.inputs.iter().chain(&node.outputs).any(|&value| value >= values.len()) {
                return None;
            }
            for choice in &node.choices {
                let sizes = choice.inputs.len() == node.inputs.len() && choice.outputs.len() == node.outputs.len();
                let banks =
                    choice.inputs.iter().all(|&bank| bank <= DRAM) && choice.outputs.iter().all(|&bank| bank < DRAM);
                let taken = choice.taken.is_none_or(|input| choice.inputs.get(input).is_some_and(|&bank| bank < DRAM));
                if !(sizes && banks && taken) {
                    return None;
                }
            }
            for &other in &node.before {
                if other >= at {
                    return None;
                }
                behind[other].push(at);
            }
            if !node.choices.is_empty() {
                for &value in &node.inputs {
                    readers[value].push(at);
                }
            }
        }
        if values.iter().any(|value| value.maker.is_some_and(|maker| maker >= count)) || words_per_cycle < 1 {
            return None;
        }
        Some(Self { nodes, values, rooms, words_per_cycle, behind, readers })
    }

    /// Whether the nodes may run in this order.
    pub fn allows(&self, order: &[usize]) -> bool {
        let mut place = vec![usize::MAX; self.nodes.len()];
        for (at, &node) in order.iter().enumerate() {
            match place.get_mut(node) {
                Some(own) if *own == usize::MAX => *own = at,
                _ => return false,
            }
        }
        let sorted = order.windows(2).all(|pair| self.nodes[pair[0]].segment <= self.nodes[pair[1]].segment);
        order.len() == place.len()
            && sorted
            && self.nodes.iter().enumerate().all(|(at, node)| node.before.iter().all(|&other| place[other] < place[at]))
    }
}

/// The decisions: an order of all nodes, and exceptions from the rules.
///
/// When room is short, the value that is read last loses its place first; `bias` is added to the place at which a value is
/// read next. `remade` values are dropped instead of stored. `picked` is the number of a node's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The order of the nodes.
    pub order: Vec<usize>,
    /// By value.
    pub bias: Vec<i64>,
    /// By value.
    pub remade: Vec<bool>,
    /// By node.
    pub picked: Vec<Option<usize>>,
}

impl Plan {
    /// Returns the plan without exceptions.
    pub fn new(order: Vec<usize>, problem: &Problem) -> Self {
        Self {
            order,
            bias: vec![0; problem.values.len()],
            remade: vec![false; problem.values.len()],
            picked: vec![None; problem.nodes.len()],
        }
    }
}
