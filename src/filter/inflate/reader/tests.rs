use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::{Compression, FlushCompress};
use proptest::prelude::*;

use super::*;

const LENGTH: usize = 5 << 20;

/// Numbers that differ little, with noise in their lowest bits.
fn samples() -> Vec<u8> {
    let mut state = 1_u32;
    let sample = |place: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = f32::from((state >> 20) as u16) / 1e5;
        ((place as f32 / 1e4).sin() + noise).to_le_bytes()
    };
    (0..LENGTH / 4).flat_map(sample).collect()
}

/// Bytes of which every other four stand 30 000 before, too.
fn far_matches() -> Vec<u8> {
    let mut bytes = samples();
    for at in (30_000..bytes.len() - 8).step_by(8) {
        bytes.copy_within(at - 30_000..at - 29_996, at);
    }
    bytes
}

fn encode(content: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// What comes before the end or an error, and which of them it is.
fn read(stored: impl Read, threads: usize) -> (Vec<u8>, io::Result<()>) {
    let mut reader = Reader::new(stored, threads);
    let mut bytes = Vec::new();
    let ended = reader.read_to_end(&mut bytes);
    (bytes, ended.map(|_| ()))
}

#[track_caller]
fn assert_read(stream: &[u8], content: &[u8]) {
    for threads in [1, 2] {
        let (bytes, ended) = read(stream, threads);
        assert!(ended.is_ok(), "{threads} threads: {ended:?}");
        assert!(bytes == content, "{threads} threads");
    }
}

#[test]
fn what_zlib_wrote_is_read() {
    let samples = samples();
    for level in [1, 9] {
        assert_read(&encode(&samples, level), &samples);
    }
    let far = far_matches();
    assert_read(&encode(&far, 6), &far);
    let zeros = vec![0; 3 * LENGTH];
    assert_read(&encode(&zeros, 6), &zeros);
    assert_read(&encode(b"", 6), b"");
}

#[test]
fn the_second_thread_decodes_about_half() {
    let stream = encode(&samples(), 6);
    let mut reader = Reader::new(&*stream, 2);
    let mut sizes = Vec::new();
    while !reader.run.is_done {
        reader.round().unwrap();
        sizes.push(reader.run.end - reader.given);
        reader.given = reader.run.end;
    }
    // The first round has no input yet, the second one no second thread; the last one ends the stream.
    let round = INPUT * LENGTH / stream.len();
    let rest = &sizes[2..sizes.len() - 2];
    assert!(rest.len() >= 2, "{sizes:?}");
    assert!(
        rest.iter().all(|&size| size > round / 5 * 4),
        "{sizes:?} of {round}"
    );
}

/// Blocks of compressed data, stored as they are: what begins within them is no block of this stream.
#[test]
fn what_looks_like_a_block_is_none() {
    let content = encode(&samples(), 6);
    assert_read(&encode(&content, 0), &content);
}

#[test]
fn blocks_of_every_kind_follow_each_other() {
    let mut content = Vec::new();
    let mut stream = Vec::with_capacity(2 * LENGTH);
    let mut compress = flate2::Compress::new(Compression::new(6), true);
    for (number, part) in samples().chunks(100_000).enumerate() {
        // Stored, with codes of their own, with fixed ones; empty ones where the encoder is flushed.
        let part = match number % 3 {
            0 => encode(part, 9),
            1 => part.to_vec(),
            _ => part[..50].to_vec(),
        };
        content.extend_from_slice(&part);
        let flush = [FlushCompress::Sync, FlushCompress::Full][number % 2];
        compress.compress_vec(&part, &mut stream, flush).unwrap();
    }
    let end = FlushCompress::Finish;
    compress.compress_vec(&[], &mut stream, end).unwrap();
    assert_read(&stream, &content);
}

/// Bytes, and behind them an error.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::ErrorKind::HostUnreachable.into()),
            read => Ok(read),
        }
    }
}

#[test]
fn what_was_read_before_a_failure_is_given() {
    let samples = samples();
    let stream = encode(&samples, 6);
    let part = 2 * stream.len() / 3;
    for threads in [1, 2] {
        let (bytes, ended) = read(Failing(&stream[..part]), threads);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::HostUnreachable);
        assert!(samples.starts_with(&bytes) && bytes.len() > LENGTH / 2);
        let (cut, ended) = read(&stream[..part], threads);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(cut.len(), bytes.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn damage_is_the_same_for_one_thread_and_two(place in any::<prop::sample::Index>(), bit in 0_u32..8) {
        let mut stream = encode(&samples()[..LENGTH / 2], 1);
        let place = place.index(stream.len());
        stream[place] ^= 1_u8 << bit;
        let (one, end_of_one) = read(&*stream, 1);
        let (two, end_of_two) = read(&*stream, 2);
        prop_assert!(one == two);
        prop_assert_eq!(end_of_one.is_err(), end_of_two.is_err());
        let mut theirs = Vec::new();
        let end_of_theirs = flate2::read::ZlibDecoder::new(&*stream).read_to_end(&mut theirs);
        prop_assert_eq!(end_of_one.is_err(), end_of_theirs.is_err());
    }
}
