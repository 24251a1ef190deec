//! A zlib stream that is long enough for two threads to decode: they give what one gives, and refuse what zlib-rs refuses. The
//! level, when to flush, how many bits to damage, their places in three bytes each, and in four bytes each what there is to
//! compress, over and over.

#![no_main]

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::DeflateEncoder;
use h5fs::filter::inflate::Reader;

/// Bytes that are stored as they are, which the first round decodes: it is always one thread's.
const FIRST: usize = 768 << 10;

/// Bytes behind them.
const REST: usize = 384 << 10;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(([level, flush, damage], rest)) = bytes.split_first_chunk() else {
        return;
    };
    let (places, recipe) = rest.split_at((3 * usize::from(damage % 4)).min(rest.len()));
    let content = content(recipe);
    let mut stream = encode(&content, u32::from(level % 7), usize::from(*flush));
    let (places, _) = places.as_chunks();
    places.iter().for_each(|place| change(&mut stream, place));
    let one = read(Reader::new(&*stream, 1));
    let two = read(Reader::new(&*stream, 2));
    let theirs = read(ZlibDecoder::new(&*stream));
    assert!(one == two, "two threads: {} bytes, {}", two.0.len(), two.1);
    assert!(one.1 == theirs.1, "zlib-rs says {}", theirs.1);
    assert!(!one.1 || one == theirs, "other bytes");
    assert!(
        !places.is_empty() || one == (content, true),
        "other content"
    );
});

/// Bytes that are written as each step of the recipe says: noise of some bits, a run, what stands some way before, or words.
fn content(recipe: &[u8]) -> Vec<u8> {
    let mut content = vec![0; FIRST];
    let (steps, _) = recipe.as_chunks();
    let mut state = 1_u32;
    for [kind, low, high, count] in steps.iter().cycle() {
        let argument = usize::from(u16::from_le_bytes([*low, *high]));
        for _ in 0..=usize::from(*count) << (kind >> 4) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 16) as usize;
            content.push(match kind % 4 {
                0 => (noise % (argument % 256 + 1)) as u8,
                1 => *low,
                2 => content[content.len() - 1 - argument % (32 << 10)],
                _ => b"the chunk of a dataset "[noise % argument.clamp(1, 23)],
            });
        }
        if content.len() > FIRST + REST {
            break;
        }
    }
    content.truncate(FIRST + REST);
    content
}

/// The first bytes stored, the others compressed, with a flush behind as many KiB; at the end alone where that is none.
fn encode(content: &[u8], level: u32, flush: usize) -> Vec<u8> {
    let mut stream = vec![0x78, 0x9c];
    let (first, rest) = content.split_at(FIRST);
    for block in first.chunks(0xffff) {
        let length = block.len() as u16;
        stream.push(0);
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    let mut encoder = DeflateEncoder::new(stream, Compression::new(level));
    for part in rest.chunks(if flush == 0 { REST } else { flush << 10 }) {
        encoder.write_all(part).expect("a Vec grows");
        encoder.flush().expect("a Vec grows");
    }
    let mut stream = encoder.finish().expect("a Vec grows");
    stream.extend(adler32(content).to_be_bytes());
    stream
}

fn adler32(content: &[u8]) -> u32 {
    let (mut low, mut high) = (1, 0);
    // As many as a sum has room for.
    for part in content.chunks(5552) {
        for &byte in part {
            low += u32::from(byte);
            high += low;
        }
        (low, high) = (low % 65_521, high % 65_521);
    }
    high << 16 | low
}

/// Turns a bit behind the first bytes around, or ends the stream there.
fn change(stream: &mut Vec<u8>, [low, middle, high]: &[u8; 3]) {
    let behind = stream.len().saturating_sub(FIRST).max(1);
    let bit = u32::from_le_bytes([*low, *middle, *high, 0]) as usize;
    let place = FIRST + bit / 8 % behind;
    match high % 16 {
        15 => stream.truncate(place),
        _ => {
            if let Some(byte) = stream.get_mut(place) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }
}

/// What comes before the end or an error, and whether it was the end.
fn read(mut decoder: impl Read) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let ended = decoder.read_to_end(&mut bytes);
    (bytes, ended.is_ok())
}
