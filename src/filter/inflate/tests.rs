use std::io::{Read, Write};

use proptest::prelude::*;

use super::*;

/// Decodes with `input` bytes at a time into rooms of `room` bytes.
fn decode(stream: &[u8], input: usize, room: usize) -> Result<(Vec<u8>, bool)> {
    let mut inflater = Inflater::default();
    let (mut at, mut input) = (0, input);
    let mut output = Vec::new();
    loop {
        let from = output.len();
        output.resize(from + room, 0);
        let end = stream.len().min(at + input);
        // A copy must go on as the original would.
        let mut copy = inflater.clone();
        let step = copy.inflate(&stream[at..end], &mut output, from)?;
        inflater = copy;
        output.truncate(from + step.written);
        at += step.used;
        if step.is_done {
            return Ok((output, at <= stream.len()));
        }
        if step.used == 0 && step.written == 0 {
            if end == stream.len() {
                return Err(Error::corrupt("ends too early", None));
            }
            input *= 2;
        }
    }
}

fn encode(content: &[u8], level: u32) -> Vec<u8> {
    let level = flate2::Compression::new(level);
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Content with runs of every short period and matches of every distance.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let part = (prop::collection::vec(any::<u8>(), 1..40), 1_usize..300);
    prop::collection::vec(part, 0..60).prop_map(|parts| {
        let repeated = parts
            .iter()
            .map(|(part, times)| part.repeat(times * times % 50 + 1));
        repeated.collect::<Vec<_>>().concat()
    })
}

proptest! {
    #[test]
    fn what_zlib_wrote_is_read_in_any_steps(
        content in content(), level in 0_u32..10, input in 1_usize..500, room in 1_usize..3000,
    ) {
        let stream = encode(&content, level);
        let (decoded, _) = decode(&stream, input, room).unwrap();
        prop_assert!(decoded == content);
        let (decoded, _) = decode(&stream, stream.len(), content.len() + 1).unwrap();
        prop_assert!(decoded == content);
    }

    #[test]
    fn damage_is_refused_where_another_decoder_refuses_it(
        content in content(), level in 0_u32..10, place in any::<prop::sample::Index>(), bit in 0_u32..8,
    ) {
        let mut stream = encode(&content, level);
        let place = place.index(stream.len());
        stream[place] ^= 1_u8 << bit;
        let ours = decode(&stream, stream.len(), 1 << 20);
        let mut theirs = Vec::new();
        let theirs = flate2::read::ZlibDecoder::new(&*stream).read_to_end(&mut theirs).map(|_| theirs);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        if let (Ok((ours, _)), Ok(theirs)) = (ours, theirs) {
            prop_assert!(ours == theirs);
        }
    }

    #[test]
    fn any_bytes_end(mut bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        bytes.splice(0..0, [0x78, 0x9c]);
        let _ = decode(&bytes, 7, 1000);
    }
}

#[test]
fn long_streams_use_long_codes() {
    // Symbols of very different frequency have codes of up to 15 bits.
    let mut content = Vec::new();
    for symbol in 0..24_u32 {
        let byte = u8::try_from(symbol * 7).unwrap();
        content.extend(std::iter::repeat_n(byte, 1 << symbol.min(17)));
    }
    let mut state = 1_u32;
    for place in (1..content.len()).rev() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        content.swap(place, state as usize % (place + 1));
    }
    for level in [1, 6, 9] {
        let (decoded, _) = decode(&encode(&content, level), 1 << 16, 1 << 20).unwrap();
        assert!(decoded == content);
    }
}

#[test]
fn a_cut_stream_has_no_end() {
    let stream = encode(b"abcabcabcabcabc", 9);
    for end in 0..stream.len() {
        assert!(decode(&stream[..end], 1000, 100).is_err(), "{end}");
    }
}
