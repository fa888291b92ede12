//! The two ends of an index map whose parameters are known, evaluated for each combination of its counters.

use super::expr::{Bound, Expr, ExprError};
use super::place::{Move, Place, COORDINATES};

/// An expression of counters. Most depend on one counter at most, and maps have up to a million words.
enum Value {
    Fixed(i64),
    /// The number of the counter, and the value for each of its values.
    Table(usize, Vec<i64>),
    Sum(Box<Value>, Box<Value>),
    Other(Bound),
}

/// The filter and the coordinates of both ends.
pub(super) struct Reader<'a> {
    loops: &'a [(String, u32)],
    filter: Option<Value>,
    from: Vec<(usize, Value)>,
    to: Vec<(usize, Value)>,
}

impl Value {
    fn of(bound: Bound, loops: &[(String, u32)]) -> Value {
        let mut counters = Vec::new();
        bound.counters(&mut counters);
        sorting::sort(&mut counters);
        counters.dedup();
        let mut values = vec![0u32; loops.len()];
        match counters[..] {
            // An expression without a value for a counter fails where that is read, if it is.
            [] => bound.eval(&values).map_or(Value::Other(bound), Value::Fixed),
            [counter] => {
                let table: Result<Vec<i64>, ExprError> = (0..loops[counter].1)
                    .map(|at| {
                        values[counter] = at;
                        bound.eval(&values)
                    })
                    .collect();
                table.map_or(Value::Other(bound), |table| Value::Table(counter, table))
            }
            _ => match bound {
                Bound::Binary(left, '+', right) => {
                    Value::Sum(Box::new(Value::of(*left, loops)), Box::new(Value::of(*right, loops)))
                }
                other => Value::Other(other),
            },
        }
    }

    fn eval(&self, counters: &[u32]) -> Result<i64, ExprError> {
        match self {
            Value::Fixed(value) => Ok(*value),
            Value::Table(counter, values) => Ok(values[counters[*counter] as usize]),
            Value::Sum(left, right) => {
                let (a, b) = (left.eval(counters)?, right.eval(counters)?);
                a.checked_add(b).ok_or_else(|| ExprError(format!("`{a} + {b}` has no value")))
            }
            Value::Other(bound) => bound.eval(counters),
        }
    }
}

impl<'a> Reader<'a> {
    /// Binds the names of counters, and those that `parameters` give a value.
    pub(super) fn new(
        loops: &'a [(String, u32)],
        filter: Option<&Expr>,
        from: &[(usize, Expr)],
        to: &[(usize, Expr)],
        parameters: &[(&str, i64)],
    ) -> Result<Reader<'a>, ExprError> {
        let counter = |n: &str| loops.iter().position(|(l, _)| l == n);
        let value = |n: &str| parameters.iter().find(|(p, _)| *p == n).map(|(_, v)| *v);
        let bind = |e: &Expr| e.bind(&counter, &value).map(|bound| Value::of(bound, loops));
        let end = |coordinates: &[(usize, Expr)]| {
            coordinates.iter().map(|(at, e)| bind(e).map(|b| (*at, b))).collect::<Result<_, _>>()
        };
        Ok(Reader { loops, filter: filter.map(bind).transpose()?, from: end(from)?, to: end(to)? })
    }

    /// Calls `visit` for every combination of the counters.
    pub(super) fn each(&self, visit: &mut dyn FnMut(&[u32]) -> Result<(), ExprError>) -> Result<(), ExprError> {
        let total: u64 = self.loops.iter().map(|(_, n)| u64::from(*n)).product();
        let mut counters = vec![0u32; self.loops.len()];
        for _ in 0..total {
            visit(&counters)?;
            for at in (0..counters.len()).rev() {
                counters[at] += 1;
                if counters[at] < self.loops[at].1 {
                    break;
                }
                counters[at] = 0;
            }
        }
        Ok(())
    }

    /// Whether a word moves.
    pub(super) fn passes(&self, counters: &[u32]) -> Result<bool, ExprError> {
        self.filter.as_ref().map_or(Ok(true), |f| f.eval(counters).map(|v| v != 0))
    }

    /// Where a word comes from.
    pub(super) fn from(&self, counters: &[u32]) -> Result<Place, ExprError> {
        place(&self.from, counters)
    }

    /// Where a word goes.
    pub(super) fn to(&self, counters: &[u32]) -> Result<Place, ExprError> {
        place(&self.to, counters)
    }

    /// Both ends of a word; `None` if it does not move.
    pub(super) fn moved(&self, counters: &[u32]) -> Result<Option<Move>, ExprError> {
        if !self.passes(counters)? {
            return Ok(None);
        }
        Ok(Some((self.from(counters)?, self.to(counters)?)))
    }
}

fn place(coordinates: &[(usize, Value)], counters: &[u32]) -> Result<Place, ExprError> {
    let mut values = [0i64; COORDINATES.len()];
    for (index, value) in coordinates {
        values[*index] = value.eval(counters)?;
    }
    Place::from_values(values)
}
