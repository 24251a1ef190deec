//! Fuzzes files with arbitrary bytes: reads their arrays, completely and by selectors.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|bytes: &[u8]| h5fs_fuzz::read(bytes.to_vec()));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    h5fs_fuzz::mutate(data, size, max_size, seed)
});
