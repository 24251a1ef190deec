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
        StreamCodec::Zstd => zstd::stream::encode_all(content, 1).unwrap(),
        _ => {
            let info = FrameInfo::new().block_size(BlockSize::Max64KB);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
    }
}

fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// The pieces of a long block in every framing that is one stream; `change` is what happens to the
/// stored bytes.
fn long(content: &[u8], decoded: usize, change: impl Fn(&mut Vec<u8>)) -> Vec<Box<dyn Pieces>> {
    let resumables = Arc::<Resumables>::default();
    let changed = |mut stored: Vec<u8>| {
        change(&mut stored);
        encoded(&stored, decoded)
    };
    let streams = [StreamCodec::Zstd, StreamCodec::Lz4Frame].map(|codec| -> Box<dyn Pieces> {
        let stream = Stream::new(changed(stream(codec, content)), codec, PIECE);
        Box::new(StreamPieces::new(stream, &resumables))
    });
    let mut pieces = Vec::from(streams);
    let zlib = Checkpointed::new(changed(zlib(content)), PIECE).unwrap();
    pieces.push(Box::new(StreamPieces::new(zlib, &resumables)));
    let bzip2 = Bzip2Blocks::new(changed(bzip2(content)), PIECE);
    pieces.push(Box::new(StreamPieces::new(bzip2, &resumables)));
    pieces
}

#[test]
fn pieces_of_a_stream_are_found_in_any_order() {
    let content = content();
    let piece = usize::try_from(PIECE.get()).unwrap();
    for pieces in long(&content, content.len(), |_| {}) {
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
fn what_streams_forget_for_others_is_decoded_again() {
    let content = content();
    let resumables = Arc::<Resumables>::default();
    let at = |place: usize, stored: &[u8]| Encoded {
        offset: u64::try_from(place).unwrap(),
        source: Arc::new(MemorySource::new([&vec![b'.'; place], stored].concat())),
        ..encoded(stored, content.len())
    };
    // One more than a file keeps something for, of each kind.
    let streams = (0..=limits::RESUMABLE_BLOCKS).flat_map(|round| {
        let zlib = Checkpointed::new(at(3 * round, &zlib(&content)), PIECE).unwrap();
        let bzip2 = Bzip2Blocks::new(at(3 * round + 1, &bzip2(&content)), PIECE);
        let codec = StreamCodec::Zstd;
        let zstd = Stream::new(at(3 * round + 2, &stream(codec, &content)), codec, PIECE);
        [
            StreamPieces::new(zlib, &resumables),
            StreamPieces::new(bzip2, &resumables),
            StreamPieces::new(zstd, &resumables),
        ]
    });
    let streams: Vec<StreamPieces> = streams.collect();
    let piece = usize::try_from(PIECE.get()).unwrap();
    for number in [2, 1, 4] {
        for stream in &streams {
            let start = number * piece;
            let expected = &content[start..content.len().min(start + piece)];
            let decoded = stream.decode(u64::try_from(number).unwrap()).unwrap();
            assert!(decoded == expected, "{stream:?}, piece {number}");
        }
    }
}

#[test]
fn a_stream_of_another_length_is_corrupt() {
    let content = content();
    for wrong in [content.len() - 1, content.len() + 1] {
        for pieces in long(&content, wrong, |_| {}) {
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
    let cut = |stored: &mut Vec<u8>| stored.truncate(stored.len() * 9 / 10);
    for pieces in long(&content, content.len(), cut) {
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

#[test]
fn bzip2_blocks_are_decoded_by_many_at_once() {
    let content = content().repeat(4);
    let stored = bzip2(&content);
    let blocks = Bzip2Blocks::new(encoded(&stored, content.len()), PIECE);
    let pieces = StreamPieces::new(blocks, &Arc::default());
    let piece = usize::try_from(PIECE.get()).unwrap();
    std::thread::scope(|scope| {
        for first in 0..4_usize {
            let (pieces, content) = (&pieces, &content);
            scope.spawn(move || {
                for number in (first..18).step_by(4).chain((first..18).rev().step_by(3)) {
                    let start = number * piece;
                    let expected = &content[start..content.len().min(start + piece)];
                    let decoded = pieces.decode(u64::try_from(number).unwrap()).unwrap();
                    assert!(decoded == expected, "piece {number}");
                }
            });
        }
    });
}

#[test]
fn a_damaged_bzip2_block_ends_the_stream_before_it() {
    let content = content().repeat(2);
    let mut stored = bzip2(&content);
    // The third block is damaged: 100 000 bytes each are in the first and the second.
    let third = stored.len() / 6 * 5 / 2;
    stored[third] ^= 0x10;
    let blocks = Bzip2Blocks::new(encoded(&stored, content.len()), PIECE);
    let pieces = StreamPieces::new(blocks, &Arc::default());
    assert!(matches!(pieces.decode(8), Err(Error::Corrupt { .. })));
    assert!(pieces.decode(0).unwrap() == content[..65_536]);
    assert!(matches!(pieces.decode(4), Err(Error::Corrupt { .. })));
}

#[test]
fn the_checksum_of_a_whole_bzip2_stream_is_verified() {
    let content = content();
    let mut stored = bzip2(&content);
    // Of its 32 bits the last byte holds some, and up to seven bits that mean nothing.
    let last = stored.len() - 2;
    stored[last] ^= 1;
    let blocks = Bzip2Blocks::new(encoded(&stored, content.len()), PIECE);
    let pieces = StreamPieces::new(blocks, &Arc::default());
    assert!(pieces.decode(0).is_ok());
    assert!(matches!(pieces.decode(4), Err(Error::Corrupt { .. })));
}

/// `lz4.frame.compress(b'abc' * 100)` of Python's lz4.
const LZ4_FRAME_OF_ABC: &[u8] = &[
    4, 34, 77, 24, 104, 64, 44, 1, 0, 0, 0, 0, 0, 0, 132, 14, 0, 0, 0, 63, 97, 98, 99, 3, 0, 255,
    18, 80, 98, 99, 97, 98, 99, 0, 0, 0, 0,
];

/// What hdf5plugin's Zstd filter makes of the same.
const ZSTD: &[u8] = &[
    40, 181, 47, 253, 96, 44, 0, 85, 0, 0, 24, 97, 98, 99, 1, 0, 38, 170, 110, 8,
];

/// What hdf5plugin's Blosc filter makes of the same.
const BLOSC: &[u8] = &[
    2, 1, 33, 1, 44, 1, 0, 0, 44, 1, 0, 0, 41, 0, 0, 0, 20, 0, 0, 0, 17, 0, 0, 0, 111, 97, 98, 99,
    97, 98, 99, 6, 0, 255, 15, 80, 98, 99, 97, 98, 99,
];

/// What hdf5plugin's Blosc2 filter makes of the same: a frame, whose chunk begins after a header of 97 bytes.
const BLOSC2_FRAME: &[u8] = &[
    158, 168, 98, 50, 102, 114, 97, 109, 101, 0, 210, 0, 0, 0, 97, 207, 0, 0, 0, 0, 0, 0, 0, 229,
    164, 18, 0, 81, 3, 211, 0, 0, 0, 0, 0, 0, 1, 44, 211, 0, 0, 0, 0, 0, 0, 0, 57, 210, 0, 0, 0, 1,
    210, 0, 0, 1, 44, 210, 0, 0, 1, 44, 209, 0, 0, 209, 0, 1, 194, 216, 6, 0, 0, 0, 0, 0, 1, 1, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 147, 205, 0, 7, 222, 0, 0, 220, 0, 0, 5, 1, 37, 1, 44, 1, 0, 0, 44, 1,
    0, 0, 57, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 36, 0, 0, 0, 17, 0, 0, 0,
    111, 97, 98, 99, 97, 98, 99, 6, 0, 255, 15, 80, 98, 99, 97, 98, 99, 5, 1, 7, 8, 8, 0, 0, 0, 8,
    0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 148, 1, 147, 205, 0, 6, 222, 0, 0, 220, 0, 0, 206, 0, 0, 0, 35, 216, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// The pieces of a block of this code.
fn block_pieces(code: &[u8; 4], stored: &[u8], decoded: usize) -> Result<Arc<dyn Pieces>> {
    let mut file = b"\xd3BLK\x00\x30\0\0\0\0".to_vec();
    file.extend(code);
    for size in [stored.len(), stored.len(), decoded] {
        file.extend(u64::try_from(size).unwrap().to_be_bytes());
    }
    file.extend([0; 16]);
    file.extend(stored);
    let source: SharedSource = Arc::new(MemorySource::new(file));
    let block = Block::read(&*source, 0).unwrap();
    pieces(&source, &block, &Arc::default())
}

#[test]
fn the_code_and_the_first_bytes_say_the_framing() {
    let framed = |stored: &[u8]| {
        let length = u32::try_from(stored.len()).unwrap().to_be_bytes();
        [&length, stored].concat()
    };
    for (code, stored) in [
        (b"xz\0\0", XZ.to_vec()),
        (b"zstd", ZSTD.to_vec()),
        (b"lz4f", LZ4_FRAME_OF_ABC.to_vec()),
        (b"lz4\0", LZ4_FRAME_OF_ABC.to_vec()),
        (b"blsc", BLOSC.to_vec()),
        (b"blsc", framed(BLOSC)),
        (b"bls2", BLOSC2_FRAME.to_vec()),
        (b"bls2", BLOSC2_FRAME[97..97 + 57].to_vec()),
    ] {
        let pieces = block_pieces(code, &stored, 300).unwrap();
        assert_eq!(pieces.decode(0), Ok(b"abc".repeat(100)), "{pieces:?}");
        assert_eq!(pieces.decode(1), Err(Error::NotFound), "{pieces:?}");
    }
}

#[test]
fn long_blocks_are_decoded_in_pieces() {
    let length = usize::try_from(limits::WHOLE_BLOCK).unwrap() + 7;
    let content = [vec![0; length - 7], b"the end".to_vec()].concat();
    for (code, stored) in [
        (b"zlib", zlib(&content)),
        (b"bzp2", bzip2(&content)),
        (b"zstd", stream(StreamCodec::Zstd, &content)),
    ] {
        let pieces = block_pieces(code, &stored, length).unwrap();
        assert_eq!(pieces.piece_bytes(), 1 << 20);
        assert_eq!(pieces.bytes(), limits::WHOLE_BLOCK + 7);
        assert_eq!(pieces.decode(16), Ok(b"the end".to_vec()), "{pieces:?}");
        assert!(pieces.decode(3).unwrap() == [0; 1 << 20], "{pieces:?}");
        assert_eq!(pieces.decode(17), Err(Error::NotFound), "{pieces:?}");
    }
}
