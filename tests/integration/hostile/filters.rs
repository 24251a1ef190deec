//! Filter pipelines, and what decoders are given.

use h5fs::error::Error;

use super::datasets::bad_message;
use super::hdf5::*;
use super::tree::*;

/// One chunk of 64 bytes, stored as `stored`, behind these filters.
#[track_caller]
fn bad_chunk(pipeline: &[(u16, &[u32])], stored: &[u8]) -> Error {
    let mut file = Hdf5::new();
    let bad = one_chunk(&mut file, filters(pipeline), 64, stored);
    bad_alone_is_bad(file.beside_good(bad))
}

#[test]
fn pipelines_that_cannot_be() {
    bad_message(kind::FILTERS, Vec::new());
    bad_message(kind::FILTERS, vec![9, 1]);
    bad_message(kind::FILTERS, vec![2, 255]);
    bad_message(
        kind::FILTERS,
        vec![1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0xff, 0xff, 0, 0, 0, 0],
    ); // a name of 65535
    bad_message(kind::FILTERS, vec![2, 1, 1, 0, 0, 0, 0xff, 0xff]); // 65535 parameters
    bad_alone_is_bad(with_bad_dataset(vec![filters(&[(1, &[6][..]); 255])]));
    assert!(
        bad_chunk(&[(31_999, &[])], b"x")
            .to_string()
            .contains("31999")
    );
}

/// Deflate thirty-two times over: each pass is bounded like one.
#[test]
fn one_filter_thirty_two_times() {
    bad_chunk(&[(1, &[6][..]); 32], b"\x78\x9c\x03\0\0\0\0\x01");
}

#[test]
fn coders_that_get_nonsense() {
    let (zeros, ones) = (&[0; 40][..], &[0xff; 40][..]);
    for stored in [zeros, ones, b"x"] {
        for filter in [
            1, 4, 5, 6, 307, 32_000, 32_001, 32_004, 32_008, 32_013, 32_015, 32_026,
        ] {
            // Parameters missing, absurd, plausible.
            for parameters in [
                &[][..],
                &[u32::MAX; 20],
                &[0; 20],
                &[4, 8, 8, 64, 0, 1, 1, 1],
            ] {
                let mut file = Hdf5::new();
                let bad = one_chunk(&mut file, filters(&[(filter, parameters)]), 64, stored);
                let tree = good_is_good(file.beside_good(bad));
                // Some nonsense is a code for something; then it is all of the chunk.
                if let Ok(bytes) = tree.content("bad") {
                    assert_eq!(bytes.len(), 64, "filter {filter}");
                }
            }
        }
    }
}

#[test]
fn shuffles_and_sums_that_do_not_fit() {
    for size in [0, 65, u32::MAX] {
        let mut file = Hdf5::new();
        let bad = one_chunk(&mut file, filters(&[(2, &[size])]), 64, &[7; 64]);
        let tree = good_is_good(file.beside_good(bad));
        assert!(tree.content("bad").map_or(true, |bytes| bytes == [7; 64]));
    }
    bad_chunk(&[(2, &[4])], &[7; 63]);
    bad_chunk(&[(3, &[])], &[7; 3]); // shorter than the sum
    bad_chunk(&[(3, &[])], &[7; 68]); // a wrong sum
}

/// Deflate that holds 256 MiB, in a chunk that says 64 bytes: no more is decoded.
#[test]
fn a_bomb_in_a_small_chunk() {
    bad_chunk(&[(1, &[9])], &super::bounded::zeros_deflated(256 << 20));
}
