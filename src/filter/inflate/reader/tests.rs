use std::io::Write;
use std::time::Duration;

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

/// Decoded bytes of each round of two threads.
fn rounds(stream: &[u8]) -> Vec<usize> {
    let mut reader = Reader::new(stream, 2);
    let mut sizes = Vec::new();
    while !reader.run.is_done {
        let is_of_two = reader.begun.is_some();
        reader.round().unwrap();
        if is_of_two {
            sizes.push(reader.run.end - reader.given);
        }
        reader.given = reader.run.end;
    }
    sizes
}

/// On a busy machine the second thread may come too late, but not always.
#[test]
fn the_second_thread_decodes_about_half() {
    let stream = encode(&samples(), 6);
    let whole = INPUT * LENGTH / stream.len();
    let by_two = || {
        let sizes = rounds(&stream);
        sizes.iter().any(|&size| size > whole / 5 * 4)
    };
    assert!((0..100).any(|_| by_two()));
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

/// Bits of RFC 1951, the first one lowest.
#[derive(Clone, Default)]
struct Bits(Vec<bool>);

impl Bits {
    /// A number, its lowest bit first.
    fn number(&mut self, value: u32, count: u32) -> &mut Self {
        self.0.extend((0..count).map(|bit| value >> bit & 1 == 1));
        self
    }

    /// A code as it is written on paper.
    fn code(&mut self, code: &str) -> &mut Self {
        self.0.extend(code.chars().map(|bit| bit == '1'));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| (0..).zip(bits).map(|(at, &bit)| u8::from(bit) << at).sum();
        self.0.chunks(8).map(byte).collect()
    }
}

/// The header of a block whose codes are 1, 2, … 14 bits long for the bytes from 0 on, 15 ones but the last for its
/// end, 15 ones for a match, for which there are no distances: nearly any bits are bytes then.
fn header_of_many_meanings() -> Bits {
    let mut bits = Bits::default();
    bits.number(0b100, 3)
        .number(1, 5)
        .number(0, 5)
        .number(15, 4);
    // 17 codes of lengths: those of 0, 1 and 2 have four bits, as 3 to 12; 13, 14, 15 and 18 have five, 6 bits.
    let length_of = |symbol: u32| match symbol {
        16 | 17 => 0,
        0..=14 => 4,
        _ => 5,
    };
    for symbol in super::super::ORDER {
        bits.number(length_of(symbol.into()), 3);
    }
    // Canonical: 0 to 14 are 0000 to 1110, then 15 is 11110, 18 is 11111.
    let code = |bits: &mut Bits, symbol: u32| {
        match symbol {
            15 => bits.code("11110"),
            18 => bits.code("11111"),
            _ => bits.code(&format!("{symbol:04b}")),
        };
    };
    (1..=14).for_each(|length| code(&mut bits, length));
    // Zeros for 14 to 255.
    code(&mut bits, 18);
    bits.number(138 - 11, 7);
    code(&mut bits, 18);
    bits.number(242 - 138 - 11, 7);
    [15, 15, 0]
        .iter()
        .for_each(|&length| code(&mut bits, length));
    bits
}

/// A stream of blocks that store bytes as they are, none of which says its length with many ones in a row.
fn stored(content: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x9c];
    let parts: Vec<&[u8]> = content.chunks(0xaaaa).collect();
    for (number, part) in parts.iter().enumerate() {
        let length = u16::try_from(part.len()).unwrap();
        stream.push(u8::from(number + 1 == parts.len()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend_from_slice(part);
    }
    stream.extend(adler(content));
    stream
}

fn adler(content: &[u8]) -> [u8; 4] {
    let (low, high) = content.iter().fold((1_u32, 0_u32), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    (high << 16 | low).to_be_bytes()
}

#[track_caller]
fn assert_soon(stream: &[u8], content: &[u8]) {
    let started = Instant::now();
    assert_read(stream, content);
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}

/// Every few bytes a block might begin, which would be long and end in damage. None of them is worth more than what
/// stands there, which is copied.
#[test]
fn many_places_where_no_block_begins_cost_little() {
    let mut some = Bits::default();
    while some.0.len() < 8 * 200_000 {
        some.0.extend(header_of_many_meanings().0);
    }
    some.number(0xffff, 16);
    let content = some.bytes().repeat(60);
    assert_soon(&stored(&content), &content);
}

/// Blocks of nothing with fixed codes, 10 bits each, behind two of some bytes each.
#[test]
fn many_blocks_of_nothing_cost_little() {
    let mut content = Vec::new();
    let mut stream = Bits::default();
    stream.number(0x9c78, 16);
    for number in 0..400_000 {
        if number % 200_000 == 0 {
            stream.0.extend(header_of_many_meanings().0);
            for byte in [0, 0, 1].iter().cycle().take(40_000) {
                stream.code(["0", "10"][usize::from(*byte)]);
                content.push(*byte);
            }
            stream.code("111111111111110");
        }
        stream.number(0b010, 3).number(0, 7);
    }
    stream.number(0b011, 3).number(0, 7);
    let stream = [stream.bytes(), adler(&content).to_vec()].concat();
    assert_soon(&stream, &content);
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
