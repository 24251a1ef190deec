use std::io::Write;
use std::num::NonZeroU64;

use lz4_flex::frame::{BlockSize, FrameInfo};

use super::*;
use crate::source::memory::MemorySource;

const PIECE: NonZeroU64 = NonZeroU64::new(64 << 10).unwrap();

/// Content of four pieces and a half that compresses, but not to nothing.
fn content() -> Vec<u8> {
    let length = u32::try_from(PIECE.get() * 9 / 2).unwrap();
    let number = |place: u32| (place / 5).wrapping_mul(0x9e37_79b9).to_le_bytes()[3];
    (0..length).map(number).collect()
}

fn encoded(stored: &[u8], decoded: usize) -> Encoded {
    Encoded {
        offset: 3,
        stored: u64::try_from(stored.len()).unwrap(),
        decoded: u64::try_from(decoded).unwrap(),
        source: Arc::new(MemorySource::new([b"...", stored, b"..."].concat())),
    }
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn stream(codec: StreamCodec, content: &[u8]) -> Vec<u8> {
    match codec {
        StreamCodec::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        StreamCodec::Zstd => zstd::stream::encode_all(content, 1).unwrap(),
        _ => {
            let info = FrameInfo::new().block_size(BlockSize::Max64KB);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
    }
}

const STREAMS: [StreamCodec; 3] = [StreamCodec::Bzip2, StreamCodec::Zstd, StreamCodec::Lz4Frame];

/// The pieces of a long block in every framing that is one stream.
fn long(encode: impl Fn(Option<StreamCodec>) -> Encoded) -> Vec<Box<dyn Pieces>> {
    let resumables = Arc::<Resumables>::default();
    let streams = STREAMS.map(|codec| -> Box<dyn Pieces> {
        let stream = Stream::new(encode(Some(codec)), codec, PIECE);
        Box::new(StreamPieces::new(stream, &resumables))
    });
    let mut pieces = Vec::from(streams);
    let zlib = Checkpointed::new(encode(None), PIECE).unwrap();
    pieces.push(Box::new(StreamPieces::new(zlib, &resumables)));
    pieces
}

fn stored(codec: Option<StreamCodec>, content: &[u8]) -> Vec<u8> {
    codec.map_or_else(|| zlib(content), |codec| stream(codec, content))
}

#[test]
fn pieces_of_a_stream_are_found_in_any_order() {
    let content = content();
    let piece = usize::try_from(PIECE.get()).unwrap();
    for pieces in long(|codec| encoded(&stored(codec, &content), content.len())) {
        for number in [0, 1, 4, 2, 0, 3, 4] {
            let start = number * piece;
            let expected = &content[start..content.len().min(start + piece)];
            let decoded = pieces.decode(u64::try_from(number).unwrap()).unwrap();
            assert!(decoded == expected, "{pieces:?}, piece {number}");
        }
        assert_eq!(pieces.decode(5), Err(Error::NotFound));
    }
}

#[test]
fn a_stream_of_another_length_is_corrupt() {
    let content = content();
    for wrong in [content.len() - 1, content.len() + 1] {
        for pieces in long(|codec| encoded(&stored(codec, &content), wrong)) {
            assert!(pieces.decode(0).is_ok(), "{pieces:?}");
            let last = pieces.decode(4);
            assert!(
                matches!(last, Err(Error::Corrupt { .. })),
                "{pieces:?}: {last:?}"
            );
        }
    }
}

#[test]
fn a_cut_stream_gives_what_is_there() {
    let content = content();
    let cut = |codec| {
        let mut stored = stored(codec, &content);
        stored.truncate(stored.len() * 9 / 10);
        encoded(&stored, content.len())
    };
    for pieces in long(cut) {
        assert!(pieces.decode(0).is_ok(), "{pieces:?}");
        assert!(
            pieces.decode(4).is_err() && pieces.decode(0).is_ok(),
            "{pieces:?}"
        );
    }
}

#[test]
fn what_no_zlib_stream_can_hold_is_refused() {
    let claim = encoded(&zlib(b"abc"), 1 << 40);
    assert!(Checkpointed::new(claim, PIECE).is_err());
}

/// Python's `lzma.compress(b'abc' * 100)`.
const XZ: &[u8] = &[
    253, 55, 122, 88, 90, 0, 0, 4, 230, 214, 180, 70, 2, 0, 33, 1, 22, 0, 0, 0, 116, 47, 229, 163,
    224, 1, 43, 0, 11, 93, 0, 48, 152, 136, 173, 75, 54, 237, 27, 178, 0, 0, 0, 0, 50, 232, 210,
    147, 3, 191, 5, 39, 0, 1, 39, 172, 2, 0, 0, 0, 79, 91, 34, 198, 177, 196, 103, 251, 2, 0, 0, 0,
    0, 4, 89, 90,
];

#[test]
fn xz_streams_are_decoded() {
    let whole = |decoded| Whole::new(encoded(XZ, decoded), StreamCodec::Xz.whole());
    let decode = |decoded| whole(decoded).unwrap().decode(0);
    assert_eq!(decode(300), Ok(b"abc".repeat(100)));
    assert!(decode(299).is_err() && decode(301).is_err());
    let long = Stream::new(encoded(XZ, 300), StreamCodec::Xz, PIECE);
    let long = StreamPieces::new(long, &Arc::default());
    assert_eq!(long.decode(0), Ok(b"abc".repeat(100)));
}
