//! Filter pipelines, and the input of decoders.

use h5fs_reader::error::Error;

use super::datasets::bad_message;
use super::hdf5::*;
use super::tree::*;

/// Checks a dataset with one chunk of 64 bytes. `stored` are its bytes after these filters.
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
    ); // a name of 65535 bytes
    bad_message(kind::FILTERS, vec![2, 1, 1, 0, 0, 0, 0xff, 0xff]); // 65535 parameters
    bad_alone_is_bad(with_bad_dataset(vec![filters(&[(1, &[6][..]); 255])]));
    assert!(
        bad_chunk(&[(31_999, &[])], b"x")
            .to_string()
            .contains("31999")
    );
}

/// A pipeline with deflate thirty-two times. Each pass is decoded, and none may exceed the chunk
/// size limit.
#[test]
fn one_filter_thirty_two_times() {
    let deflate = &[(1, &[6][..]); 32];
    let over_and_over = |content: &[u8], times: usize| {
        (0..times).fold(content.to_vec(), |inner, _| stored_deflated(&inner))
    };
    let content: Vec<u8> = (0..64).collect();
    let mut file = Hdf5::new();
    let bad = one_chunk(
        &mut file,
        filters(deflate),
        64,
        &over_and_over(&content, 32),
    );
    let tree = good_is_good(file.beside_good(bad));
    assert_eq!(tree.content("bad"), Ok(content.clone()));

    bad_chunk(deflate, &over_and_over(&content, 31));
    bad_chunk(deflate, &over_and_over(&content, 33));
    let bomb = super::bounded::zeros_deflated(64 << 20);
    for passes in [0, 1, 15, 31] {
        bad_chunk(deflate, &over_and_over(&bomb, passes));
    }
}

/// Returns a zlib stream with uncompressed blocks.
fn stored_deflated(content: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = content.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        stream.push(u8::from(blocks.peek().is_none())); // whether this is the last block
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    let sums = content.iter().fold((1, 0), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    stream.extend((sums.1 << 16 | sums.0).to_be_bytes());
    stream
}

#[test]
fn coders_that_get_nonsense() {
    let (zeros, ones) = (&[0; 40][..], &[0xff; 40][..]);
    for stored in [zeros, ones, b"x"] {
        for filter in [
            1, 4, 5, 6, 307, 32_000, 32_001, 32_004, 32_008, 32_013, 32_015, 32_018, 32_026,
        ] {
            // Missing, absurd, and plausible parameters.
            for parameters in [
                &[][..],
                &[u32::MAX; 20],
                &[0; 20],
                &[4, 8, 8, 64, 0, 1, 1, 1],
            ] {
                let mut file = Hdf5::new();
                let bad = one_chunk(&mut file, filters(&[(filter, parameters)]), 64, stored);
                let tree = good_is_good(file.beside_good(bad));
                // Some nonsense is a valid code. It must then decode to the whole chunk.
                if let Ok(bytes) = tree.content("bad") {
                    assert_eq!(bytes.len(), 64, "filter {filter}");
                }
            }
        }
    }
}

/// Parameters and lengths that a decoder accepts for 64 bytes. The decoder starts, and the code
/// ends too early.
#[test]
fn coders_that_get_as_far_as_the_code() {
    let scale = |kind, factor, class, size| {
        let mut parameters = vec![kind, factor, 64 / size, class, size, 0, 0, 0];
        parameters.resize(20, 0);
        parameters
    };
    const SZIP: u16 = 4;
    const NBIT: u16 = 5;
    const SCALEOFFSET: u16 = 6;
    let length = |more: &[u8]| [&64_u32.to_le_bytes()[..], more].concat();
    let minimum = |bits: u32, more: &[u8]| [&bits.to_le_bytes()[..], &[8], &[0; 16], more].concat();
    // Filter number, valid parameters, and a truncated code.
    let early: [(u16, Vec<u32>, Vec<u8>); 8] = [
        (SZIP, vec![0, 8, 8, 64], length(&[])),
        (SZIP, vec![32, 8, 8, 64], length(&[0xff; 7])),
        (SZIP, vec![32, 32, 64, 64], length(&[0x55; 3])),
        (NBIT, vec![8, 0, 16, 1, 4, 0, 12, 4], vec![0xff; 23]),
        (NBIT, vec![8, 0, 4, 1, 16, 1, 113, 3], vec![0xff; 9]),
        (SCALEOFFSET, scale(2, 0, 0, 4), minimum(7, &[0xff; 13])),
        (SCALEOFFSET, scale(2, 0, 0, 1), minimum(8, &[0xff; 63])),
        (SCALEOFFSET, scale(0, 2, 1, 8), minimum(63, &[0xff; 62])),
    ];
    for (filter, parameters, stored) in &early {
        let error = bad_chunk(&[(*filter, parameters)], stored).to_string();
        assert!(error.contains("ends too early"), "filter {filter}: {error}");
    }
}

/// Invalid parameters, such as more bits than an element has, or blocks without samples. The
/// decoder must refuse them before it reads the code.
#[test]
fn parameters_of_coders_that_cannot_be() {
    let stored = [&64_u32.to_le_bytes()[..], &[0; 200]].concat();
    let szip: [&[u32]; 12] = [
        &[],
        &[32, 8, 8],
        &[32, 0, 8, 64],
        &[32, 1, 8, 64],
        &[32, 7, 8, 64],
        &[32, 258, 8, 64],
        &[32, u32::MAX, 8, 64],
        &[32, 8, 0, 64],
        &[32, 8, 25, 64],
        &[32, 8, 255, 64],
        &[32, 8, 8, 0],
        &[32, 8, 8, u32::MAX],
    ];
    for parameters in szip {
        bad_chunk(&[(4, parameters)], &stored);
    }
    let nbit: [&[u32]; 11] = [
        &[],
        &[8, 0, 16],
        &[8, 0, 16, 1, 4, 0, 33, 0],
        &[8, 0, 16, 1, 4, 0, 32, 1],
        &[8, 0, 16, 1, 4, 0, 0, 0],
        &[8, 0, 16, 1, 4, 2, 12, 4],
        &[8, 0, 17, 1, 4, 0, 12, 4],
        &[8, 0, u32::MAX, 1, 4, 0, 12, 4],
        &[8, 0, 2, 1, 32, 0, 255, 0],
        &[9, 0, 1, 3, 64, u32::MAX, 0, 4, 1],
        &[9, 0, 1, 3, 64, 1, 61, 4, 4],
    ];
    for parameters in nbit {
        bad_chunk(&[(5, parameters)], &stored);
    }
    // Kind, factor, elements, class, size, sign, order.
    let scaleoffset: [[u32; 7]; 7] = [
        [3, 0, 16, 0, 4, 0, 0],
        [2, 0, 16, 2, 4, 0, 0],
        [2, 0, 16, 0, 3, 0, 0],
        [2, 0, 64, 0, 0, 0, 0],
        [2, 0, 17, 0, 4, 0, 0],
        [2, 0, 16, 0, 4, 0, 2],
        [0, 2, 64, 1, 1, 0, 0],
    ];
    for parameters in scaleoffset {
        let parameters = [&parameters[..], &[0; 13]].concat();
        bad_chunk(&[(6, &parameters)], &stored);
    }
    bad_chunk(&[(6, &[2, 0, 16, 0, 4, 0, 0])], &stored);
}

/// Elements larger than the chunk cannot be shuffled, so the library stores such chunks unchanged.
#[test]
fn shuffles_and_sums_that_do_not_fit() {
    bad_chunk(&[(2, &[0])], &[7; 64]);
    bad_chunk(&[(2, &[])], &[7; 64]);
    let stored: Vec<u8> = (0..64).collect();
    for size in [33, 64, 65, u32::MAX] {
        let mut file = Hdf5::new();
        let bad = one_chunk(&mut file, filters(&[(2, &[size])]), 64, &stored);
        let tree = good_is_good(file.beside_good(bad));
        assert_eq!(tree.content("bad"), Ok(stored.clone()), "{size}");
    }
    bad_chunk(&[(2, &[4])], &[7; 63]);
    bad_chunk(&[(3, &[])], &[7; 3]); // shorter than the checksum
    bad_chunk(&[(3, &[])], &[7; 68]); // a wrong checksum
}

/// A deflate stream of 256 MiB in a chunk of 64 bytes. The decoder stops at the end of the chunk.
#[test]
fn a_bomb_in_a_small_chunk() {
    bad_chunk(&[(1, &[9])], &super::bounded::zeros_deflated(256 << 20));
}
