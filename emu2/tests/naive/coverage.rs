//! The features of the language that some programs use.

use emu2::asm::{
    Access, Address, Destination, FormRef, ItemKind, Mask, MaskEntry, PeInstruction, PeKind, Program, Source,
    SourceKind, Target,
};
use emu2::spec::{Mnemonic, Spec};
use std::collections::BTreeMap;

/// How often each mnemonic, form and way to write an operand occurs.
#[derive(Default)]
pub struct Coverage(pub BTreeMap<String, usize>);

impl Coverage {
    fn note(&mut self, what: String) {
        *self.0.entry(what).or_default() += 1;
    }

    /// Counts the features that `program` uses.
    pub fn add(&mut self, program: &Program) {
        let spec = &program.spec;
        for item in &program.items {
            match &item.kind {
                ItemKind::Step(step) => {
                    self.note(format!("{} instructions on a line", step.pe.len() + step.l2bm.len()));
                    self.note(format!("forward {}", step.forward));
                    step.pe.iter().for_each(|i| self.instruction(spec, i));
                    step.l2bm.iter().for_each(|t| self.form(spec, t.form));
                }
                ItemKind::Nop { .. } => self.note("nop".into()),
                ItemKind::Mv(mv) => self.form(spec, mv.form),
                ItemKind::Set(set) => self.note(format!("set {}", spec.memories[set.location.memory].name)),
                ItemKind::Get(get) => self.note(format!("get {}", spec.memories[get.location.memory].name)),
                ItemKind::Host(_) => self.note("host".into()),
            }
        }
    }

    fn form(&mut self, spec: &Spec, form: FormRef) {
        let name = &spec.transfers[form.transfer].name;
        self.note(format!("form {name} {}", spec.forms[form.transfer][form.form].name));
        self.note(mnemonic(spec, Mnemonic::Transfer(form.transfer)));
    }

    fn instruction(&mut self, spec: &Spec, i: &PeInstruction) {
        match i.kind {
            PeKind::Alu { op, precision, unsigned, length, .. } => {
                let name = mnemonic(spec, Mnemonic::Alu { op, precision, unsigned });
                length.into_iter().for_each(|n| self.note(format!("{name}/{n}")));
                self.note(name);
            }
            PeKind::Mau { op, precision, mau_precision, half, reduced, bank } => {
                self.note(mnemonic(spec, Mnemonic::Mau { op, precision, mau_precision, half, reduced }));
                bank.into_iter().for_each(|b| self.note(format!("product with {}", spec.banks[b].name)));
            }
            PeKind::Matrix { op, precision, mau_precision, wide, bank, .. } => {
                let name = mnemonic(spec, Mnemonic::Matrix { op, precision, mau_precision });
                self.note(format!("{name} wide {wide} {}", spec.banks[bank].name));
                self.note(name);
            }
            PeKind::L1bm { form, address } => {
                self.form(spec, form);
                let register = if address.is_none() { "turnaround" } else { "L1BM" };
                let (name, extend) =
                    (&spec.transfers[form.transfer].entry, i.sources.iter().any(|s| s.convert.is_some()));
                let way = if i.sources.is_empty() { "from" } else { "to" };
                self.note(format!("{name} {way} {register}{}", if extend { " with e" } else { "" }));
            }
        }
        if let Some(mask) = &i.zero_flush {
            self.mask("zero flush", mask);
        }
        i.sources.iter().for_each(|s| self.source(spec, s));
        self.note(format!("{} destinations", i.destinations.len()));
        i.destinations.iter().for_each(|d| self.destination(spec, d));
    }

    fn mask(&mut self, what: &str, mask: &Mask) {
        let entry = match mask.entry {
            MaskEntry::Cycles(_) => "pattern",
            MaskEntry::Register(_) => "register",
        };
        self.note(format!("{what} {entry} wide {}", mask.wide));
    }

    fn source(&mut self, spec: &Spec, s: &Source) {
        match &s.kind {
            SourceKind::Memory(access) => self.access(spec, "read", access),
            SourceKind::Forward(path) => self.note(format!("read {}", spec.forwards[*path].name)),
            SourceKind::Fixed(fixed) => self.note(format!("read {}", spec.fixed[*fixed].name)),
        }
        self.note(format!("source negate {} convert {:?}", s.negate, s.convert));
    }

    fn destination(&mut self, spec: &Spec, d: &Destination) {
        let what = match &d.target {
            Target::Memory(access) => {
                self.access(spec, "write", access);
                "memory mask"
            }
            Target::Base { base, words } => {
                self.note(format!("write {} of {words} words", spec.bases[*base].name));
                "base mask"
            }
            Target::Flags { .. } => "flags mask",
        };
        match &d.mask {
            Some(mask) => self.mask(what, mask),
            None => self.note(format!("{what} none")),
        }
    }

    fn access(&mut self, spec: &Spec, what: &str, access: &Access) {
        let name = &spec.memories[access.memory].name;
        let address = match &access.address {
            Address::Stride { stride: 0, .. } => "plain",
            Address::Stride { stride, .. } if *stride == access.words => "v",
            Address::Stride { .. } => "vN",
            Address::Flat(_) => "flat",
            Address::Cycle => "cycle",
        };
        self.note(format!("{what} {name} {address} of {} words", access.words));
        if access.indirect {
            self.note(format!("{what} {name} indirect"));
        }
        if let Some(last) = access.modify {
            self.note(format!("{what} {name} j{last}"));
        }
    }
}

fn mnemonic(spec: &Spec, wanted: Mnemonic) -> String {
    super::print::mnemonic(spec, wanted)
}
