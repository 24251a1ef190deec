//! Fuzzes the tree of an ASDF file with one block.

#![no_main]

const HEAD: &[u8] = b"#ASDF 1.0.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0\n";
const BLOCK: &[u8] =
    b"\n...\n\xd3BLK\0\x30\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x10\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x000123456789abcdef";

libfuzzer_sys::fuzz_target!(|tree: &[u8]| h5fs_fuzz::walk([HEAD, tree, BLOCK].concat()));
