//! Integer expressions of index maps. They have names, integers, `+ - * / %`, bitwise `& ^ |`, `==` (1 or 0) and
//! parentheses.

use std::fmt;

/// A parsed expression. Names are resolved when the expression is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A literal.
    Int(i64),
    /// A counter, count, port or parameter.
    Name(String),
    /// Two operands and one of `+ - * / % & ^ | =`. The last one stands for `==`.
    Binary(Box<Expr>, char, Box<Expr>),
}

/// The reason why an expression did not parse or evaluate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError(pub String);

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Expr {
    /// Parses `text`. Precedence from tightest to loosest: `*`, `/`, `%`, then `+`, `-`, then `&`, `^`, `|`, then `==`.
    /// Operators of one level group from the left. Each pair of parentheses may hold one `==`.
    ///
    /// # Errors
    /// [`ExprError`] if `text` is no expression, has a number beyond `i64`, or nests too deeply.
    pub fn parse(text: &str) -> Result<Expr, ExprError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let expr = parser.comparison()?;
        match parser.peek() {
            None => Ok(expr),
            Some(c) => Err(ExprError(format!("unexpected `{c}` in `{text}`"))),
        }
    }

    /// Evaluates the expression. `name` gives the values of names. `/` and `%` are Euclidean.
    ///
    /// # Errors
    /// [`ExprError`] for a name without a value, for overflow and for division by zero.
    pub fn eval(&self, name: &dyn Fn(&str) -> Option<i64>) -> Result<i64, ExprError> {
        match self {
            Expr::Int(value) => Ok(*value),
            Expr::Name(n) => name(n).ok_or_else(|| unnamed(n)),
            Expr::Binary(left, op, right) => apply(left.eval(name)?, *op, right.eval(name)?),
        }
    }

    /// Finds the places of names once, for an expression that is evaluated many times. A name is a counter, by its
    /// number, or has a value.
    ///
    /// # Errors
    /// [`ExprError`] for a name that neither knows.
    pub fn bind(
        &self,
        counter: &dyn Fn(&str) -> Option<usize>,
        value: &dyn Fn(&str) -> Option<i64>,
    ) -> Result<Bound, ExprError> {
        Ok(match self {
            Expr::Int(value) => Bound::Int(*value),
            Expr::Name(n) => match counter(n) {
                Some(at) => Bound::Counter(at),
                None => Bound::Int(value(n).ok_or_else(|| unnamed(n))?),
            },
            Expr::Binary(left, op, right) => {
                Bound::Binary(Box::new(left.bind(counter, value)?), *op, Box::new(right.bind(counter, value)?))
            }
        })
    }

    /// Replaces every name that `value` knows by its value, and evaluates the parts that are then constant.
    #[must_use]
    pub fn with(self, value: &dyn Fn(&str) -> Option<i64>) -> Expr {
        match self {
            Expr::Name(n) => value(&n).map_or(Expr::Name(n), Expr::Int),
            Expr::Int(_) => self,
            Expr::Binary(a, op, b) => {
                let (a, b) = (a.with(value), b.with(value));
                let both = matches!((&a, &b), (Expr::Int(_), Expr::Int(_)));
                let whole = Expr::Binary(Box::new(a), op, Box::new(b));
                match whole.eval(&|_| None) {
                    Ok(known) if both => Expr::Int(known),
                    _ => whole,
                }
            }
        }
    }

    /// Adds all names that the expression uses to `out`.
    pub fn names<'a>(&'a self, out: &mut Vec<&'a str>) {
        match self {
            Expr::Int(_) => {}
            Expr::Name(n) => out.push(n),
            Expr::Binary(a, _, b) => {
                a.names(out);
                b.names(out);
            }
        }
    }
}

/// An expression whose names are numbers of counters; see [`Expr::bind`].
#[derive(Clone, Debug)]
pub enum Bound {
    /// A value.
    Int(i64),
    /// The counter with this number.
    Counter(usize),
    /// Two operands and an operator of [`Expr::Binary`].
    Binary(Box<Bound>, char, Box<Bound>),
}

impl Bound {
    /// Evaluates the expression for these values of the counters.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn eval(&self, counters: &[u32]) -> Result<i64, ExprError> {
        match self {
            Bound::Int(value) => Ok(*value),
            Bound::Counter(at) => Ok(counters.get(*at).copied().map_or(0, i64::from)),
            Bound::Binary(left, op, right) => apply(left.eval(counters)?, *op, right.eval(counters)?),
        }
    }

    /// Adds the numbers of the counters that the expression uses to `out`.
    pub fn counters(&self, out: &mut Vec<usize>) {
        match self {
            Bound::Int(_) => {}
            Bound::Counter(at) => out.push(*at),
            Bound::Binary(left, _, right) => {
                left.counters(out);
                right.counters(out);
            }
        }
    }
}

fn unnamed(name: &str) -> ExprError {
    ExprError(format!("nothing is named `{name}`"))
}

fn apply(a: i64, op: char, b: i64) -> Result<i64, ExprError> {
    let value = match op {
        '+' => a.checked_add(b),
        '-' => a.checked_sub(b),
        '*' => a.checked_mul(b),
        '/' => a.checked_div_euclid(b),
        '&' => Some(a & b),
        '^' => Some(a ^ b),
        '|' => Some(a | b),
        '=' => Some(i64::from(a == b)),
        _ => a.checked_rem_euclid(b),
    };
    value.ok_or_else(|| ExprError(format!("`{a} {op} {b}` has no value")))
}

/// The bound on nesting, so that no spec file can exhaust the stack. No index map needs this depth.
const MAX_DEPTH: u32 = 64;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed.chars().next()
    }

    fn comparison(&mut self) -> Result<Expr, ExprError> {
        let left = self.bits()?;
        if self.peek() != Some('=') {
            return Ok(left);
        }
        if !self.text[self.at..].starts_with("==") {
            return Err(ExprError(format!("unexpected `=` in `{}`", self.text)));
        }
        self.at += 2;
        Ok(Expr::Binary(Box::new(left), '=', Box::new(self.bits()?)))
    }

    fn bits(&mut self) -> Result<Expr, ExprError> {
        let first = self.sum()?;
        self.chain(first, &['&', '^', '|'], Self::sum)
    }

    fn sum(&mut self) -> Result<Expr, ExprError> {
        let first = self.product()?;
        self.chain(first, &['+', '-'], Self::product)
    }

    fn product(&mut self) -> Result<Expr, ExprError> {
        let first = self.atom()?;
        self.chain(first, &['*', '/', '%'], Self::atom)
    }

    fn chain(
        &mut self,
        mut left: Expr,
        ops: &[char],
        next: fn(&mut Self) -> Result<Expr, ExprError>,
    ) -> Result<Expr, ExprError> {
        while let Some(op) = self.peek().filter(|c| ops.contains(c)) {
            self.at += 1;
            let right = next(self)?;
            left = Expr::Binary(Box::new(left), op, Box::new(right));
        }
        Ok(left)
    }

    fn take(&mut self, accept: fn(char) -> bool) -> &str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn atom(&mut self) -> Result<Expr, ExprError> {
        match self.peek() {
            Some('(') => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(ExprError("the expression nests too deeply".into()));
                }
                self.at += 1;
                let inner = self.comparison()?;
                if self.peek() != Some(')') {
                    return Err(ExprError(format!("`)` is missing in `{}`", self.text)));
                }
                self.at += 1;
                self.depth -= 1;
                Ok(inner)
            }
            Some(c) if c.is_ascii_digit() => {
                let digits = self.take(|c| c.is_ascii_digit());
                digits.parse().map(Expr::Int).map_err(|_| ExprError(format!("`{digits}` is too large")))
            }
            Some(c) if c.is_ascii_lowercase() => {
                Ok(Expr::Name(self.take(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_').to_string()))
            }
            Some(c) => Err(ExprError(format!("unexpected `{c}` in `{}`", self.text))),
            None => Err(ExprError(format!("`{}` ends too early", self.text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let table: &[(&str, Result<i64, &str>)] = &[
            ("1 + 2*3", Ok(7)),
            ("(1 + 2)*3", Ok(9)),
            ("10 - 3 - 2", Ok(5)),
            ("(m - 5) % 4", Ok(1)),
            ("7 / 2 * 2", Ok(6)),
            ("m % 0", Err("`2 % 0` has no value")),
            ("6 & 3 + 1", Ok(4)),
            ("5 ^ 4 | 2", Ok(3)),
            ("(m ^ 3) & 1 == 1", Ok(1)),
            ("m == 3", Ok(0)),
            ("m = 3", Err("unexpected `=` in `m = 3`")),
            ("q", Err("nothing is named `q`")),
            ("1 +", Err("`1 +` ends too early")),
            ("(1", Err("`)` is missing in `(1`")),
            ("1 1", Err("unexpected `1` in `1 1`")),
            ("99999999999999999999", Err("`99999999999999999999` is too large")),
            ("9223372036854775807 + 1", Err("`9223372036854775807 + 1` has no value")),
        ];
        for (text, expected) in table {
            let value = Expr::parse(text).and_then(|e| e.eval(&|n| (n == "m").then_some(2)));
            assert_eq!(value, expected.map_err(|m| ExprError(m.to_string())), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        assert!(Expr::parse(&"(".repeat(100_000)).is_err());
    }
}
