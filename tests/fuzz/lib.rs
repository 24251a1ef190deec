//! What the fuzz targets have in common: the walk that the integration tests take.

#![allow(dead_code)]

#[path = "../integration/hostile/mutation.rs"]
mod mutation;
#[path = "../integration/hostile/visit.rs"]
mod visit;

/// Looks at all of the file that `bytes` are.
pub fn walk(bytes: Vec<u8>) {
    let _ = visit::open_and_walk(bytes, visit::Bounds::SMALL);
}

/// Looks at all of a good file with faults that `seed` chooses. Its checksums are made right, which a fuzzer that
/// changes bytes alone cannot do.
pub fn walk_mutant(original: &[u8], seed: u64) {
    let original = mutation::Original::new(original.to_vec());
    walk(original.mutant(&mut mutation::Random(seed)));
}
