//! Fuzzes the blocks of an ASDF file, whose tree has an ndarray over each of the first blocks.

#![no_main]

const TREE: &[u8] = b"#ASDF 1.0.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0
a: !core/ndarray-1.1.0 {source: 0, datatype: uint8, byteorder: little, shape: [16]}
b: !core/ndarray-1.1.0 {source: 1, datatype: int16, byteorder: big, shape: [2, 3], strides: [8, 2]}
c: !core/ndarray-1.1.0 {source: -1, datatype: float32, byteorder: little, shape: ['*', 2]}
d: !core/ndarray-1.1.0 {source: 2, datatype: complex64, byteorder: big, shape: [3], offset: 5}
...
";

libfuzzer_sys::fuzz_target!(|blocks: &[u8]| h5fs_fuzz::walk([TREE, blocks].concat()));
