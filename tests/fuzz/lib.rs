//! The shared part of the fuzz targets: the walk and the faults of the integration tests.

#![allow(dead_code)]

#[path = "../integration/hostile/mutation.rs"]
mod mutation;
#[path = "../integration/hostile/visit.rs"]
mod visit;

use visit::Bounds;

/// Enough for a seed, and little enough for hundreds of executions a second.
const ALL: Bounds = Bounds {
    objects: 60,
    names: 30,
    bytes: 2 << 10,
    views: true,
    selectors: false,
};

/// The arrays alone, with selectors.
const DATA: Bounds = Bounds {
    bytes: 16 << 10,
    views: false,
    selectors: true,
    ..ALL
};

/// Looks at all of the file that `bytes` are.
pub fn walk(bytes: Vec<u8>) {
    let _ = visit::open_and_walk(bytes, ALL);
}

/// Reads the arrays of the file that `bytes` are.
pub fn read(bytes: Vec<u8>) {
    let _ = visit::open_and_walk(bytes, DATA);
}

/// Changes a file as libFuzzer would, or as the tests' mutants are made, and makes most of its
/// checksums right: the code behind them would be reached by chance alone otherwise. `size` bytes
/// of `data` are the file; gives the new length.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = mutation::Random(seed.into());
    let original = mutation::Original::new(data[..size].to_vec());
    if random.below(4) == 0 {
        let mutant = original.mutant(&mut random);
        data[..mutant.len()].copy_from_slice(&mutant);
        return mutant.len();
    }
    let length = libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    // Where all is still in its place.
    if length == size && random.below(8) != 0 {
        original.reseal(&mut data[..length]);
    }
    length
}
