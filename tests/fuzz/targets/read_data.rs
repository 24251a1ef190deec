//! A file with faults behind right checksums. The first eight bytes choose the faults, the rest is the file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((seed, file)) = bytes.split_first_chunk() {
        h5fs_fuzz::walk_mutant(file, u64::from_le_bytes(*seed));
    }
});
