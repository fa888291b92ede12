//! The shared library calls its own functions, also in a process where another library has functions of the same names.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
