//! The built-in specs are embedded in the crate: a change of one must rebuild it.

fn main() {
    println!("cargo:rerun-if-changed=../isa_specs");
}
