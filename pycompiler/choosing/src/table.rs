//! Tables over the choices of a few variables, and which of their entries are new.

/// The shape of a table: its variables, and how many candidates each has. Its costs stand row by row.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) scope: Vec<usize>,
    pub(crate) shape: Vec<usize>,
    /// Along each axis, the entries in which something may be new, in order; None if nothing is.
    pub(crate) changed: Option<Vec<Vec<usize>>>,
}

impl Table {
    /// Makes a table all of which is new.
    pub(crate) fn new(scope: Vec<usize>, sizes: &[usize]) -> Table {
        let shape: Vec<usize> = scope.iter().map(|&variable| sizes[variable]).collect();
        let changed = Some(shape.iter().map(|&size| (0..size).collect()).collect());
        Table { scope, shape, changed }
    }

    pub(crate) fn entries(&self) -> usize {
        self.shape.iter().product()
    }

    /// How far apart two entries are that differ by one in the choice of `variable`; 0 if it is none of the table's.
    pub(crate) fn stride(&self, variable: usize) -> usize {
        match self.axis(variable) {
            Some(axis) => self.shape[axis + 1..].iter().product(),
            None => 0,
        }
    }

    pub(crate) fn axis(&self, variable: usize) -> Option<usize> {
        self.scope.iter().position(|&other| other == variable)
    }

    /// Notes that entries, by their number in the table, are new, beside those that are already.
    pub(crate) fn change(&mut self, entries: &[usize]) {
        if entries.is_empty() {
            return;
        }
        let mut marks = Marks::new(&self.shape);
        for (axis, known) in self.changed.iter().flatten().enumerate() {
            marks.axis(axis, known);
        }
        for &entry in entries {
            marks.entry(entry);
        }
        self.changed = Some(marks.found());
    }
}

/// Marks along the axes of a table.
pub(crate) struct Marks<'a> {
    shape: &'a [usize],
    marks: Vec<Vec<bool>>,
}

impl Marks<'_> {
    pub(crate) fn new(shape: &[usize]) -> Marks<'_> {
        Marks { shape, marks: shape.iter().map(|&size| vec![false; size]).collect() }
    }

    pub(crate) fn axis(&mut self, axis: usize, entries: &[usize]) {
        for &entry in entries {
            self.marks[axis][entry] = true;
        }
    }

    /// Marks an entry by its number.
    pub(crate) fn entry(&mut self, mut number: usize) {
        for (axis, &size) in self.shape.iter().enumerate().rev() {
            self.marks[axis][number % size] = true;
            number /= size;
        }
    }

    pub(crate) fn found(self) -> Vec<Vec<usize>> {
        let marked = |axis: Vec<bool>| axis.iter().enumerate().filter(|(_, &mark)| mark).map(|(at, _)| at).collect();
        self.marks.into_iter().map(marked).collect()
    }
}
