//! Lists which mnemonics have machine words.

use crate::spec::{EncodingOp, Mnemonic, OpTarget, Spec, Status};

/// Every mnemonic of the spec except those of control statements, sorted, with how well its machine words are known.
/// The status is that of the best case: an operand or option may still have no encoding.
pub fn coverage(spec: &Spec) -> Vec<(String, Status)> {
    let instructions = spec.mnemonics.iter().filter(|(_, m)| !matches!(m, Mnemonic::Control(_)));
    let mut all: Vec<(String, Status)> =
        instructions.map(|(name, mnemonic)| (name.clone(), status(spec, name, *mnemonic))).collect();
    sorting::sort(&mut all);
    all
}

fn status(spec: &Spec, name: &str, mnemonic: Mnemonic) -> Status {
    let Some(encoding) = &spec.encoding else { return Status::Unknown };
    let ops = encoding.ops.iter().filter(|op| encodes(op, mnemonic));
    let of_op = |op: &EncodingOp| {
        let unit = &encoding.units[op.unit];
        let coded = |precision: usize| unit.precision.as_ref().is_some_and(|p| p.code(precision).is_some());
        let known = match mnemonic {
            Mnemonic::Alu { unsigned: true, .. } | Mnemonic::Mau { reduced: true, .. } => false,
            Mnemonic::Alu { precision, .. } => precision.is_none_or(coded),
            Mnemonic::Mau { precision, .. } | Mnemonic::Matrix { precision, .. } => coded(precision),
            Mnemonic::Transfer(_) | Mnemonic::Control(_) => true,
        };
        match (known, op.seen.iter().any(|n| n == name)) {
            (false, _) => Status::Unknown,
            (true, true) => Status::Seen,
            (true, false) => Status::Inferred,
        }
    };
    ops.map(of_op).min().unwrap_or(Status::Unknown)
}

fn encodes(op: &EncodingOp, mnemonic: Mnemonic) -> bool {
    match (op.target, mnemonic) {
        (OpTarget::Alu(at), Mnemonic::Alu { op, .. }) => at == op,
        (OpTarget::Mau(at), Mnemonic::Mau { op, .. }) => at == op,
        (OpTarget::Matrix(at), Mnemonic::Matrix { op, .. }) => at == op,
        (OpTarget::Transfer { transfer, .. }, Mnemonic::Transfer(at)) => transfer == at,
        _ => false,
    }
}
