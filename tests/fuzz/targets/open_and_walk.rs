//! Any bytes as a file: opened, listed, described and read as far as a small file goes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| h5fs_fuzz::walk(bytes.to_vec()));
