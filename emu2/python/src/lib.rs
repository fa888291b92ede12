//! Python bindings of emu2.
