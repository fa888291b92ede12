//! Fixed inputs: the ids of units and the top-bit pattern, as rows of the whole chip.

use crate::error::{Code, Error};
use crate::num::lane::Lane;
use crate::spec::{Expr, Spec};
use std::sync::Arc;

/// The value of entry `fixed`, in every lane of type `lane`, for all PEs in chip order.
pub(super) fn rows(spec: &Spec, fixed: usize, lane: Lane) -> Result<Arc<[u64]>, Error> {
    let entry = &spec.fixed[fixed];
    let width = lane.width();
    let fill = |value: u64| (0..lane.count() as u32).fold(0, |row, k| row | value << (k * width));
    let mask = u64::MAX >> (u64::BITS - width);
    let c = &spec.counts;
    let total = (c.group * c.l2b * c.l1b) as usize * spec.lanes();
    if entry.value == "msb" {
        return Ok(vec![fill(1 << (width - 1)); total].into());
    }
    let fail = |e: crate::spec::ExprError| Error::new(Code::SpecExpression, format!("[[fixed]] `{}`: {e}", entry.name));
    let expr = Expr::parse(&entry.value).map_err(fail)?;
    let constants = spec.constants();
    let mut out = Vec::with_capacity(total);
    for g in 0..c.group {
        for q in 0..c.l2b {
            for b in 0..c.l1b {
                for m in 0..c.mab {
                    for p in 0..c.pe {
                        let name = |n: &str| match n {
                            "g" => Some(i64::from(g)),
                            "q" => Some(i64::from(q)),
                            "b" => Some(i64::from(b)),
                            "m" => Some(i64::from(m)),
                            "p" => Some(i64::from(p)),
                            _ => constants.get(n).copied(),
                        };
                        out.push(fill(expr.eval(&name).map_err(fail)? as u64 & mask));
                    }
                }
            }
        }
    }
    Ok(out.into())
}
