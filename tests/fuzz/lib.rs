//! Shared code of the fuzz targets: the walk and the mutations of the integration tests.

#![allow(dead_code)]

#[path = "../integration/hostile/mutation.rs"]
mod mutation;
#[path = "../integration/hostile/visit.rs"]
mod visit;

use visit::Bounds;

/// Limits that suffice for a seed, and that permit hundreds of executions per second.
const ALL: Bounds = Bounds {
    objects: 60,
    names: 30,
    bytes: 2 << 10,
    views: true,
    selectors: false,
};

/// Limits for reading only the arrays, with selectors.
const DATA: Bounds = Bounds {
    bytes: 16 << 10,
    views: false,
    selectors: true,
    ..ALL
};

/// Walks through everything in the file with these bytes.
pub fn walk(bytes: Vec<u8>) {
    let _ = visit::open_and_walk(bytes, ALL);
}

/// Reads the arrays of the file with these bytes.
pub fn read(bytes: Vec<u8>) {
    let _ = visit::open_and_walk(bytes, DATA);
}

/// Mutates a file as libFuzzer does, or as the tests' mutants are made. Then corrects most of its
/// checksums, because the code after a checksum would otherwise rarely be reached. The file is the
/// first `size` bytes of `data`. Returns the new length.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = mutation::Random(seed.into());
    let original = mutation::Original::new(data[..size].to_vec());
    if random.below(4) == 0 {
        let mutant = original.mutant(&mut random);
        data[..mutant.len()].copy_from_slice(&mutant);
        return mutant.len();
    }
    let length = libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    // If no byte has moved, the positions of the checksums are known.
    if length == size && random.below(8) != 0 {
        original.reseal(&mut data[..length]);
    }
    length
}
