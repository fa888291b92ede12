//! What the schedule of a program over rows is made from, and what it has ([`crate::place_rows`]).

/// What an operand reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// the input of this number
    Input(usize),
    /// the constant of this number
    Constant(usize),
    /// the result of this instruction
    Result(usize),
    /// the flags of this instruction
    Flags(usize),
}

/// One instruction of a program.
#[derive(Clone, Debug)]
pub struct Operation {
    /// the number of the unit that issues it
    pub unit: usize,
    /// what it reads, and whether it converts that
    pub sources: Vec<(What, bool)>,
    /// the instruction whose flags decide which rows are cleared
    pub flush: Option<usize>,
    /// its number in the program, or that of the instruction that it repeats; None for a copy of a row
    pub origin: Option<usize>,
}

/// The places of rows, and the steps that must lie between a write and a read.
///
/// Banks are numbered: the register files, the T register, the masks, then the LMs.
#[derive(Clone, Debug)]
pub struct Places {
    /// how many register files there are
    pub files: usize,
    /// how many banks there are; the number of a unit's forwarding path is higher by this
    pub banks: usize,
    /// how many units there are
    pub units: usize,
    /// the unit that copies rows
    pub copies: usize,
    /// the LM of each input; None for one that lies in registers
    pub homes: Vec<Option<usize>>,
    /// the bank of the result
    pub result: usize,
    /// for each constant, whether its words are equal
    pub uniform: Vec<bool>,
    /// steps between a write to LM and a read there
    pub lm: i64,
    /// steps between a write to a register and its read
    pub stored: i64,
    /// steps between the flags and the instruction that they mask
    pub masks: i64,
}

/// A finished schedule.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// the instructions of the program, then copies and repetitions
    pub operations: Vec<Operation>,
    /// their numbers, in the order in which they were placed
    pub order: Vec<usize>,
    /// the step of each
    pub steps: Vec<i64>,
    /// the bank or the forwarding path of each operand of each
    pub banks: Vec<Vec<usize>>,
    /// results in banks, with the step of the last reader there, as they came
    pub stored: Vec<(usize, usize, i64)>,
    /// constants in banks
    pub constants: Vec<(usize, usize)>,
    /// inputs in register files
    pub held: Vec<(usize, usize)>,
}

/// Whether instructions read what is there.
pub(crate) fn has_meaning(operations: &[Operation], interval: i64, places: &Places) -> bool {
    let lms = places.files + 2;
    let legal = |(number, one): (usize, &Operation)| {
        let reads = one.sources.iter().all(|(what, _)| match *what {
            What::Input(input) => input < places.homes.len(),
            What::Constant(constant) => constant < places.uniform.len(),
            What::Result(index) | What::Flags(index) => index < number,
        });
        reads && one.unit < places.units && one.flush.is_none_or(|index| index < number)
    };
    (1..1 << 20).contains(&interval)
        && places.copies < places.units
        && places.banks >= lms
        && places.result < places.banks
        && places.homes.iter().flatten().all(|home| (lms..places.banks).contains(home))
        && operations.iter().enumerate().all(legal)
}
