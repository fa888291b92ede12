//! Makes the list of legal mnemonics from names, precisions and suffixes.

use super::loaded::Spec;
use super::mnemonic::{Half, Mnemonic};
use crate::error::{Code, Error};
use std::collections::HashMap;

/// Makes the mnemonics of every entry. Refuses a mnemonic that two entries make.
pub(super) fn expand(spec: &Spec) -> Result<HashMap<String, Mnemonic>, Error> {
    let mut all = HashMap::new();
    let mut add = |text: String, mnemonic| match all.insert(text.clone(), mnemonic) {
        Some(_) => Err(Error::new(Code::SpecDuplicate, format!("two entries make the mnemonic `{text}`"))),
        None => Ok(()),
    };
    for (op, alu) in spec.alu.iter().enumerate() {
        if alu.precisions.is_empty() {
            add(alu.name.clone(), Mnemonic::Alu { op, precision: None, unsigned: false })?;
        }
        for letter in &alu.precisions {
            let precision = precision(spec, letter, "alu", &alu.name)?;
            add(format!("{letter}{}", alu.name), Mnemonic::Alu { op, precision: Some(precision), unsigned: false })?;
            if alu.unsigned.contains(letter) {
                let mnemonic = Mnemonic::Alu { op, precision: Some(precision), unsigned: true };
                add(format!("u{letter}{}", alu.name), mnemonic)?;
            }
        }
    }
    for (op, mau) in spec.mau.iter().enumerate() {
        for letter in &mau.precisions {
            let precision = precision(spec, letter, "mau", &mau.name)?;
            let mau_precision = mau_precision(spec, letter, "mau", &mau.name)?;
            let pair = mau.product && spec.mau_precisions[mau_precision].pair;
            let halves: &[_] = if pair { &[("u", Some(Half::Upper)), ("d", Some(Half::Lower))] } else { &[("", None)] };
            for (suffix, half) in halves {
                for (r, reduced) in [("", false), ("r", true)] {
                    let mnemonic = Mnemonic::Mau { op, precision, mau_precision, half: *half, reduced };
                    add(format!("{letter}{}{suffix}{r}", mau.name), mnemonic)?;
                }
            }
        }
    }
    for (op, matrix) in spec.matrix_ops.iter().enumerate() {
        for letter in &matrix.precisions {
            let precision = precision(spec, letter, "matrix_op", &matrix.name)?;
            let mau_precision = mau_precision(spec, letter, "matrix_op", &matrix.name)?;
            add(format!("{letter}{}", matrix.name), Mnemonic::Matrix { op, precision, mau_precision })?;
        }
    }
    for (index, transfer) in spec.transfers.iter().enumerate() {
        add(transfer.name.clone(), Mnemonic::Transfer(index))?;
    }
    for (index, control) in spec.controls.iter().enumerate() {
        add(control.name.clone(), Mnemonic::Control(index))?;
    }
    Ok(all)
}

fn precision(spec: &Spec, letter: &str, family: &str, name: &str) -> Result<usize, Error> {
    spec.precisions.iter().position(|p| p.name == letter).ok_or_else(|| {
        Error::new(Code::SpecUnknownName, format!("[[{family}]] `{name}`: no precision is called `{letter}`"))
    })
}

fn mau_precision(spec: &Spec, letter: &str, family: &str, name: &str) -> Result<usize, Error> {
    spec.mau_precisions.iter().position(|m| m.name == letter).ok_or_else(|| {
        Error::new(Code::SpecUnknownName, format!("[[{family}]] `{name}`: no [[mau_precision]] `{letter}`"))
    })
}
