use std::io::{Cursor, Read, Write};
use std::num::NonZeroU64;

use libdeflater::{CompressionLvl, Compressor};
use lz4_flex::frame::{BlockSize, FrameInfo};
use proptest::prelude::*;

use super::stream::codec;
use super::stream::part_list::StreamPart;
use super::stream::part_search::{self, PartsReader};
use super::*;
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::{Buffer, BufferPool};
use crate::model::storage::DecodeContext;
use crate::source::memory::MemorySource;
use crate::wire::{Extent, to_u64};

const PIECE: NonZeroU64 = NonZeroU64::new(64 << 10).unwrap();

/// Returns compressible content of four pieces and a half.
fn content() -> Vec<u8> {
    let length = u32::try_from(PIECE.get() * 9 / 2).unwrap();
    let number = |place: u32| (place / 5).wrapping_mul(0x9e37_79b9).to_le_bytes()[3];
    (0..length).map(number).collect()
}

fn encoded_block(stored: &[u8], decoded: usize) -> EncodedBlock {
    EncodedBlock {
        block_offset: 0,
        stored: Extent::from(3..3 + u64::try_from(stored.len()).unwrap()),
        decoded: u64::try_from(decoded).unwrap(),
        source: Arc::new(MemorySource::new([b"...", stored, b"..."].concat())),
    }
}

/// Compresses with another library than the decoder's.
fn zlib(content: &[u8]) -> Vec<u8> {
    let mut encoder = Compressor::new(CompressionLvl::default());
    let mut stream = vec![0; encoder.zlib_compress_bound(content.len())];
    let length = encoder.zlib_compress(content, &mut stream).unwrap();
    stream.truncate(length);
    stream
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
    let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zlib_block(encoded: EncodedBlock) -> Box<dyn PieceDecoder> {
    Box::new(ZlibBlock::new(encoded, PIECE, Arc::default()).unwrap())
}

fn open_whole_block(encoded: EncodedBlock, codec: WholeCodec) -> Box<dyn PieceDecoder> {
    Box::new(WholeBlock::new(encoded, codec).unwrap())
}

fn bzip2_block(encoded: EncodedBlock) -> Box<dyn PieceDecoder> {
    Box::new(Bzip2Block::with_states(
        Bzip2,
        encoded,
        PIECE,
        Arc::default(),
    ))
}

fn stream_block(encoded: EncodedBlock, codec: StreamCodec) -> Box<dyn PieceDecoder> {
    Box::new(StreamBlock::with_states(
        codec,
        encoded,
        PIECE,
        Arc::default(),
    ))
}

/// Returns the pieces of a long block in every framing that is one stream. `change` modifies the
/// stored bytes.
fn long(
    content: &[u8],
    decoded: usize,
    change: impl Fn(&mut Vec<u8>),
) -> Vec<Box<dyn PieceDecoder>> {
    let changed = |mut stored: Vec<u8>| {
        change(&mut stored);
        encoded_block(&stored, decoded)
    };
    let streams = [StreamCodec::Zstd, StreamCodec::Lz4Frame]
        .map(|codec| stream_block(changed(stream(codec, content)), codec));
    let mut pieces = Vec::from(streams);
    pieces.push(zlib_block(changed(zlib(content))));
    pieces.push(bzip2_block(changed(bzip2(content))));
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
            let decoded = pieces.decode_alone(u64::try_from(number).unwrap()).unwrap();
            assert!(*decoded == *expected, "{pieces:?}, piece {number}");
        }
        assert_eq!(pieces.decode_alone(5), Err(Error::NotFound));
    }
}

#[test]
fn a_stream_of_another_length_is_corrupt() {
    let content = content();
    for wrong in [content.len() - 1, content.len() + 1] {
        for pieces in long(&content, wrong, |_| {}) {
            assert!(pieces.decode_alone(0).is_ok(), "{pieces:?}");
            let last = pieces.decode_alone(4);
            assert!(
                matches!(last, Err(Error::Corrupt { .. })),
                "{pieces:?}: {last:?}"
            );
        }
    }
}

#[test]
fn a_truncated_stream_returns_its_complete_pieces() {
    let content = content();
    let cut = |stored: &mut Vec<u8>| stored.truncate(stored.len() * 9 / 10);
    for pieces in long(&content, content.len(), cut) {
        assert!(pieces.decode_alone(0).is_ok(), "{pieces:?}");
        assert!(
            pieces.decode_alone(4).is_err() && pieces.decode_alone(0).is_ok(),
            "{pieces:?}"
        );
    }
}

#[test]
fn an_impossible_zlib_length_is_rejected() {
    let claim = encoded_block(&zlib(b"abc"), 1 << 40);
    assert!(ZlibBlock::new(claim, PIECE, Arc::default()).is_err());
}

/// Checks repeated noise. Each match refers almost as far back as a zlib stream allows, 32 768
/// bytes.
#[test]
fn zlib_matches_reach_back_over_a_whole_window() {
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    });
    let content = noise.take(32_700).collect::<Vec<_>>().repeat(20);
    let stored = zlib(&content);
    assert!(stored.len() < 100_000, "{} bytes", stored.len());
    let pieces = zlib_block(encoded_block(&stored, content.len()));
    for number in [9, 4, 8, 5, 0, 6] {
        let start = number << 16;
        let decoded = pieces.decode_alone(u64::try_from(number).unwrap()).unwrap();
        assert!(content[start..].starts_with(&decoded), "piece {number}");
    }
}

#[test]
fn the_checksum_of_a_long_zlib_stream_is_verified() {
    let content = content();
    let mut stored = zlib(&content);
    *stored.last_mut().unwrap() ^= 1;
    let pieces = zlib_block(encoded_block(&stored, content.len()));
    assert!(pieces.decode_alone(3).is_ok());
    let why = Error::corrupt("zlib: wrong checksum", 3);
    assert_eq!(pieces.decode_alone(4), Err(why));
}

#[test]
fn every_truncation_of_a_long_zlib_stream_is_detected() {
    let content = content();
    let stored = zlib(&content);
    for end in (0..8).map(|cut| stored.len() - 1 - cut) {
        let pieces = zlib_block(encoded_block(&stored[..end], content.len()));
        let why = Error::corrupt("zlib: ends too early", 3);
        assert_eq!(pieces.decode_alone(4), Err(why), "{end}");
    }
}

proptest! {
    /// Compares with libdeflate, which decodes whole streams only.
    #[test]
    fn damaged_zlib_streams_are_refused_as_another_decoder_does(
        place in any::<prop::sample::Index>(), bit in 0_u32..8,
    ) {
        let content = content();
        let mut stored = zlib(&content);
        let place = place.index(stored.len());
        stored[place] ^= 1_u8 << bit;
        let pieces = zlib_block(encoded_block(&stored, content.len()));
        let ours = (0..5).map(|number| pieces.decode_alone(number)).collect::<Result<Vec<_>>>();
        let ours = ours.map(|pieces| pieces.iter().flat_map(|piece| piece.to_vec()).collect());
        let theirs = crate::filter::deflate::decode(
            &stored, DecodedLength::Exactly(content.len()), &mut DecoderResources::default());
        prop_assert_eq!(ours.ok(), theirs.ok().map(Buffer::into_vec));
    }
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
    let decode = |decoded| {
        open_whole_block(
            encoded_block(XZ, decoded),
            WholeCodec::Stream(StreamCodec::Xz),
        )
        .decode_alone(0)
    };
    assert_eq!(decode(300), Ok(b"abc".repeat(100).into()));
    assert!(decode(299).is_err() && decode(301).is_err());
    let long = stream_block(encoded_block(XZ, 300), StreamCodec::Xz);
    assert_eq!(long.decode_alone(0), Ok(b"abc".repeat(100).into()));
}

/// Checks streams of eighteen pieces, with zlib checkpoints before every fourth.
#[test]
fn concurrent_readers_decode_one_stream() {
    let content = content().repeat(4);
    let (bzip2, zlib) = (bzip2(&content), zlib(&content));
    let bzip2 = &*bzip2_block(encoded_block(&bzip2, content.len()));
    let zlib = &*zlib_block(encoded_block(&zlib, content.len()));
    let piece = usize::try_from(PIECE.get()).unwrap();
    let assert_piece = |pieces: &dyn PieceDecoder, number: usize| {
        let start = number * piece;
        let expected = &content[start..content.len().min(start + piece)];
        let decoded = pieces.decode_alone(u64::try_from(number).unwrap()).unwrap();
        assert!(*decoded == *expected, "{pieces:?}, piece {number}");
    };
    // Reads backwards, and reads new places, before any other reader starts.
    for number in [17, 9, 1, 13, 12] {
        assert_piece(zlib, number);
    }
    std::thread::scope(|scope| {
        for first in 0..4_usize {
            let assert_piece = &assert_piece;
            scope.spawn(move || {
                for number in (first..18).step_by(4).chain((first..18).rev().step_by(3)) {
                    assert_piece(bzip2, number);
                    assert_piece(zlib, number);
                }
            });
        }
    });
}

#[test]
fn a_damaged_bzip2_block_ends_the_stream_before_it() {
    let content = content().repeat(2);
    let mut stored = bzip2(&content);
    // The third block is damaged. The first and second contain 100 000 bytes each.
    let third = stored.len() / 6 * 5 / 2;
    stored[third] ^= 0x10;
    let pieces = bzip2_block(encoded_block(&stored, content.len()));
    assert!(matches!(pieces.decode_alone(8), Err(Error::Corrupt { .. })));
    assert!(pieces.decode_alone(0).unwrap()[..] == content[..65_536]);
    assert!(matches!(pieces.decode_alone(4), Err(Error::Corrupt { .. })));
}

#[test]
fn the_checksum_of_a_whole_bzip2_stream_is_verified() {
    let content = content();
    let mut stored = bzip2(&content);
    // The last byte contains some of the checksum's 32 bits, and up to seven unused bits.
    let last = stored.len() - 2;
    stored[last] ^= 1;
    let pieces = bzip2_block(encoded_block(&stored, content.len()));
    assert!(pieces.decode_alone(0).is_ok());
    assert!(matches!(pieces.decode_alone(4), Err(Error::Corrupt { .. })));
}

/// `lz4.frame.compress(b'abc' * 100)` of Python's lz4 4.4.
const LZ4: &[u8] = &[
    4, 34, 77, 24, 104, 64, 44, 1, 0, 0, 0, 0, 0, 0, 132, 14, 0, 0, 0, 63, 97, 98, 99, 3, 0, 255,
    18, 80, 98, 99, 97, 98, 99, 0, 0, 0, 0,
];

#[test]
fn an_lz4_frame_has_one_length() {
    let decode = |frame, length| {
        let length = DecodedLength::Exactly(length);
        StreamCodec::Lz4Frame.decode(frame, length, &mut DecoderResources::default())
    };
    assert_eq!(decode(LZ4, 300), Ok(b"abc".repeat(100).into()));
    for length in [0, 299, 301] {
        assert!(decode(LZ4, length).is_err(), "{length}");
    }
    // Four zeros are the frame's end mark. The decoder also accepts the end of the bytes instead.
    for end in 0..LZ4.len() - 4 {
        assert!(decode(&LZ4[..end], 300).is_err(), "{end}");
    }
}

/// The content of a frame's blocks: raw bytes, or bytes to compress.
enum Data<'a> {
    Raw(&'a [u8]),
    Compressed(&'a [u8]),
}

/// Returns an LZ4 frame of independent blocks of up to 64 KiB (LZ4 Frame Format: magic number, FLG,
/// BD, HC, blocks, EndMark).
fn lz4_frame(blocks: &[Data<'_>]) -> Vec<u8> {
    let mut frame = b"\x04\x22\x4d\x18\x60\x40\x82".to_vec();
    for block in blocks {
        let (stored, flag) = match block {
            Data::Raw(data) => (data.to_vec(), 1 << 31),
            Data::Compressed(data) => (lz4_flex::block::compress(data), 0),
        };
        frame.extend((u32::try_from(stored.len()).unwrap() | flag).to_le_bytes());
        frame.extend(stored);
    }
    frame.extend([0; 4]);
    frame
}

fn found(stored: &[u8], decoded: usize, codec: StreamCodec) -> Arc<[StreamPart]> {
    part_search::find_parts(&encoded_block(stored, decoded), codec).unwrap()
}

/// Returns the content from every part on.
fn read_parts(stored: &[u8], decoded: usize, codec: StreamCodec) -> Vec<(u64, Vec<u8>)> {
    let list = found(stored, decoded, codec);
    let from = |first| {
        let parts = Arc::clone(&list);
        let mut reader = PartsReader::new(encoded_block(stored, decoded), codec, parts, first);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        (list[first].content.start(), bytes)
    };
    (0..list.len()).map(from).collect()
}

#[track_caller]
fn assert_parts(stored: &[u8], content: &[u8], codec: StreamCodec, starts: &[usize]) {
    let read = read_parts(stored, content.len(), codec);
    assert_eq!(read.len(), starts.len());
    for ((start, bytes), expected) in read.into_iter().zip(starts) {
        assert_eq!(usize::try_from(start), Ok(*expected));
        assert!(bytes == content[*expected..], "from {start}");
    }
    let whole = codec.decode(
        stored,
        DecodedLength::Exactly(content.len()),
        &mut DecoderResources::default(),
    );
    assert!(whole.as_deref() == Ok(content));
}

#[test]
fn independent_lz4_blocks_are_parts() {
    let content = content();
    let blocks: Vec<_> = content.chunks(65_536).map(Data::Compressed).collect();
    let starts = [0, 65_536, 131_072, 196_608, 262_144];
    let stored = lz4_frame(&blocks);
    assert_parts(&stored, &content, StreamCodec::Lz4Frame, &starts);
    // Two frames, with a skippable frame between them.
    let skipped = b"\x5e\x2a\x4d\x18\x03\0\0\0abc".to_vec();
    let two = [stored.clone(), skipped, stored].concat();
    let starts = [starts, starts.map(|start| start + content.len())].concat();
    assert_parts(&two, &content.repeat(2), StreamCodec::Lz4Frame, &starts);
}

#[test]
fn flushed_lz4_blocks_are_not_parts() {
    let content = content();
    // As many blocks as if all but the last were full.
    let (first, rest) = content.split_at(65_536);
    let (second, rest) = rest.split_at(10_000);
    let (third, rest) = rest.split_at(65_536);
    let blocks = [first, second, third, &rest[..60_000]];
    let stored = lz4_frame(&blocks.map(Data::Compressed));
    assert!(found(&stored, 201_072, StreamCodec::Lz4Frame).is_empty());
    // Raw blocks store their length.
    let stored = lz4_frame(&blocks.map(Data::Raw));
    let starts = [0, 65_536, 75_536, 141_072];
    assert_parts(&stored, &content[..201_072], StreamCodec::Lz4Frame, &starts);
}

#[test]
fn empty_frames_are_counted() {
    let content = content();
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
    let behind = |count: usize| {
        let frames = [
            skipped.repeat(count),
            stream(StreamCodec::Lz4Frame, &content),
        ]
        .concat();
        found(&frames, content.len(), StreamCodec::Lz4Frame)
    };
    assert!(!behind(3).is_empty());
    assert!(behind(limits::BLOCK_CHUNKS).is_empty());
}

#[test]
fn tiny_parts_are_merged() {
    let content = content();
    let bytes: Vec<_> = content[..200_000].chunks(1).map(Data::Raw).collect();
    let stored = lz4_frame(&bytes);
    let parts = found(&stored, 200_000, StreamCodec::Lz4Frame);
    assert_eq!(
        parts.iter().map(|part| part.content.length()).max(),
        Some(65_536)
    );
    assert_eq!(parts.len(), 4);
    let frames: Vec<u8> = content[..5000]
        .chunks(1)
        .flat_map(|byte| zstd::bulk::compress(byte, 1).unwrap())
        .collect();
    assert_parts(&frames, &content[..5000], StreamCodec::Zstd, &[0]);
}

#[test]
fn zstd_frames_with_content_sizes_are_parts() {
    let content = content();
    let frames: Vec<_> = content
        .chunks(100_000)
        .map(|part| zstd::bulk::compress(part, 1).unwrap())
        .collect();
    let starts = [0, 100_000, 200_000];
    assert_parts(&frames.concat(), &content, StreamCodec::Zstd, &starts);
    let empty = zstd::bulk::compress(&[], 1).unwrap();
    assert_parts(&frames.join(&*empty), &content, StreamCodec::Zstd, &starts);
    let one = zstd::bulk::compress(&content, 1).unwrap();
    assert!(found(&one, content.len(), StreamCodec::Zstd).is_empty());
    let unsized_ = stream(StreamCodec::Zstd, &content).repeat(2);
    assert!(found(&unsized_, 2 * content.len(), StreamCodec::Zstd).is_empty());
    // The length differs from the sum of the frames.
    for wrong in [content.len() - 1, content.len() + 1] {
        assert!(found(&frames.concat(), wrong, StreamCodec::Zstd).is_empty());
    }
}

#[test]
fn a_revisited_part_is_decoded_completely() {
    let content = content().repeat(3);
    let frames: Vec<u8> = content
        .chunks(4 << 16)
        .flat_map(|part| zstd::bulk::compress(part, 1).unwrap())
        .collect();
    let pieces = stream_block(encoded_block(&frames, content.len()), StreamCodec::Zstd);
    let passed = |piece: u64| {
        let mut numbers = Vec::new();
        let mut pass = |number: u64, bytes: Buffer| {
            let start = usize::try_from(number << 16).unwrap();
            assert!(content[start..].starts_with(&bytes), "piece {number}");
            numbers.push(number);
        };
        let mut help = DecodeContext {
            threads: &|| 1,
            pool: &BufferPool::default(),
            is_wanted: &|| true,
            on_extra_piece: &mut pass,
        };
        let decoded = pieces.decode(piece, &mut help);
        let start = usize::try_from(piece << 16).unwrap();
        assert!(content[start..].starts_with(&decoded.unwrap()));
        numbers
    };
    assert_eq!(passed(9), [0_u64; 0]);
    assert_eq!(passed(1), [0_u64; 0]);
    assert_eq!(passed(10), [8, 9, 10, 11]);
    assert_eq!(passed(1), [0, 1, 2, 3]);
}

#[test]
fn xz_streams_are_parts() {
    let padded = [XZ, &[0; 8], XZ, XZ, &[0; 4]].concat();
    let content = b"abc".repeat(300);
    assert_parts(&padded, &content, StreamCodec::Xz, &[0, 300, 600]);
    assert!(found(XZ, 300, StreamCodec::Xz).is_empty());
    // The length or the checksum of a part is wrong, which is detected before its last bytes are
    // returned.
    let mut damaged = padded.clone();
    damaged[40] ^= 1;
    let list = found(&padded, 900, StreamCodec::Xz);
    let mut reader = PartsReader::new(encoded_block(&damaged, 900), StreamCodec::Xz, list, 0);
    assert!(reader.read_to_end(&mut Vec::new()).is_err());
}

#[test]
fn truncated_headers_are_not_parts() {
    let content = content();
    let lz4 = lz4_frame(&content.chunks(65_536).map(Data::Raw).collect::<Vec<_>>());
    let zstd = zstd::bulk::compress(&content, 1).unwrap().repeat(2);
    let xz = XZ.repeat(2);
    for (stored, codec) in [
        (lz4, StreamCodec::Lz4Frame),
        (zstd, StreamCodec::Zstd),
        (xz, StreamCodec::Xz),
    ] {
        for end in (0..stored.len()).filter(|end| end % 9 == 0 || *end < 40) {
            assert!(found(&stored[..end], 2 * content.len(), codec).is_empty());
        }
        for at in 0..stored.len().min(60) {
            let mut damaged = stored.clone();
            damaged[at] = !damaged[at];
            found(&damaged, 2 * content.len(), codec);
        }
    }
}

#[test]
fn a_window_over_the_limit_is_refused() {
    // A frame header that requires a window of 2 GiB, then a raw last block of one byte (RFC 8878,
    // 3.1.1).
    let frame = b"\x28\xb5\x2f\xfd\x00\xa8\x09\0\0a".to_vec();
    let decode = |frame: &[u8]| {
        let mut decoder = StreamCodec::Zstd.decoder(Cursor::new(frame))?;
        codec::fill(&mut decoder, &mut [0; 2])
    };
    assert!(matches!(decode(&frame), Err(Error::Corrupt { .. })));
    let small = [&frame[..5], &[0], &frame[6..]].concat();
    assert_eq!(decode(&small), Ok(1));
}

#[test]
fn a_truncated_bzip2_stream_is_read() {
    let content = content();
    let mut stored = bzip2(&content);
    stored.truncate(stored.len() - 9);
    let at_once = open_whole_block(encoded_block(&stored, content.len()), WholeCodec::Bzip2);
    assert!(*at_once.decode_alone(0).unwrap() == *content);
    let pieces = bzip2_block(encoded_block(&stored, content.len()));
    assert!(pieces.decode_alone(4).unwrap()[..] == content[262_144..]);
    assert!(pieces.decode_alone(0).unwrap()[..] == content[..65_536]);
    // The last block itself is truncated.
    stored.truncate(stored.len() - 9);
    let at_once = open_whole_block(encoded_block(&stored, content.len()), WholeCodec::Bzip2);
    assert!(at_once.decode_alone(0).is_err());
    let pieces = bzip2_block(encoded_block(&stored, content.len()));
    assert!(pieces.decode_alone(4).is_err() && pieces.decode_alone(0).is_ok());
}

#[test]
fn evicted_decoder_states_are_recreated() {
    let content = content();
    let resumes = Arc::<DecoderStates>::default();
    let at = |place: usize, stored: &[u8]| EncodedBlock {
        block_offset: 0,
        stored: Extent::saturating(to_u64(place), to_u64(stored.len())),
        source: Arc::new(MemorySource::new([&vec![b'.'; place], stored].concat())),
        ..encoded_block(stored, content.len())
    };
    let kept = || Arc::clone(&resumes);
    // One more block of each kind than the number of kept states.
    let streams = (0..=limits::RESUMABLE_BLOCKS).flat_map(|round| -> [Box<dyn PieceDecoder>; 3] {
        let zlib = at(3 * round, &zlib(&content));
        let bzip2 = at(3 * round + 1, &bzip2(&content));
        let codec = StreamCodec::Zstd;
        let zstd = at(3 * round + 2, &stream(codec, &content));
        [
            Box::new(ZlibBlock::new(zlib, PIECE, kept()).unwrap()),
            Box::new(Bzip2Block::with_states(Bzip2, bzip2, PIECE, kept())),
            Box::new(StreamBlock::with_states(codec, zstd, PIECE, kept())),
        ]
    });
    let streams: Vec<Box<dyn PieceDecoder>> = streams.collect();
    let piece = usize::try_from(PIECE.get()).unwrap();
    for number in [2, 1, 4] {
        for stream in &streams {
            let start = number * piece;
            let expected = &content[start..content.len().min(start + piece)];
            let decoded = stream.decode_alone(u64::try_from(number).unwrap()).unwrap();
            assert!(*decoded == *expected, "{stream:?}, piece {number}");
        }
    }
}

/// The same bytes compressed by hdf5plugin's Zstd filter.
const ZSTD: &[u8] = &[
    40, 181, 47, 253, 96, 44, 0, 85, 0, 0, 24, 97, 98, 99, 1, 0, 38, 170, 110, 8,
];

/// The same bytes compressed by hdf5plugin's Blosc filter.
const BLOSC: &[u8] = &[
    2, 1, 33, 1, 44, 1, 0, 0, 44, 1, 0, 0, 41, 0, 0, 0, 20, 0, 0, 0, 17, 0, 0, 0, 111, 97, 98, 99,
    97, 98, 99, 6, 0, 255, 15, 80, 98, 99, 97, 98, 99,
];

/// The same bytes compressed by hdf5plugin's Blosc2 filter: a frame, whose chunk begins after a
/// header of 97 bytes.
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

/// Returns the pieces of a block with this code.
fn block_pieces(code: &[u8; 4], stored: &[u8], decoded: usize) -> Result<Arc<dyn PieceDecoder>> {
    let mut file = b"\xd3BLK\x00\x30\0\0\0\0".to_vec();
    file.extend(code);
    for size in [stored.len(), stored.len(), decoded] {
        file.extend(u64::try_from(size).unwrap().to_be_bytes());
    }
    file.extend([0; 16]);
    file.extend(stored);
    let source: SharedSource = Arc::new(MemorySource::new(file));
    let block = Block::read(&*source, 0).unwrap();
    open_piece_decoder(
        &source,
        &block,
        &BlockCaches::new(&SharedChunkTables::default()),
    )
}

#[test]
fn the_framing_follows_from_code_and_first_bytes() {
    let framed = |stored: &[u8]| {
        let length = u32::try_from(stored.len()).unwrap().to_be_bytes();
        [&length, stored].concat()
    };
    for (code, stored) in [
        (b"xz\0\0", XZ.to_vec()),
        (b"zstd", ZSTD.to_vec()),
        (b"lz4f", LZ4.to_vec()),
        (b"lz4\0", LZ4.to_vec()),
        (b"blsc", BLOSC.to_vec()),
        (b"blsc", framed(BLOSC)),
        (b"bls2", BLOSC2_FRAME.to_vec()),
        (b"bls2", BLOSC2_FRAME[97..97 + 57].to_vec()),
    ] {
        let pieces = block_pieces(code, &stored, 300).unwrap();
        assert_eq!(
            pieces.decode_alone(0),
            Ok(b"abc".repeat(100).into()),
            "{pieces:?}"
        );
        assert_eq!(pieces.decode_alone(1), Err(Error::NotFound), "{pieces:?}");
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
        assert_eq!(pieces.piece_bytes(), Ok(1 << 20));
        assert_eq!(pieces.byte_length(), limits::WHOLE_BLOCK + 7);
        assert_eq!(
            pieces.decode_alone(16),
            Ok(b"the end".to_vec().into()),
            "{pieces:?}"
        );
        assert!(
            pieces.decode_alone(3).unwrap()[..] == [0; 1 << 20],
            "{pieces:?}"
        );
        assert_eq!(pieces.decode_alone(17), Err(Error::NotFound), "{pieces:?}");
    }
}

#[test]
fn a_block_with_too_many_stored_bytes_is_rejected() {
    let content = b"goodness".to_vec();
    let surplus = usize::try_from(limits::BLOCK_SURPLUS).unwrap();
    let lengthened = |stored: &[u8], length: usize| {
        let mut stored = stored.to_vec();
        stored.resize(length, 0);
        stored
    };
    for (code, stored) in [
        (b"zlib", zlib(&content)),
        (b"bzp2", bzip2(&content)),
        (b"lz4f", stream(StreamCodec::Lz4Frame, &content)),
    ] {
        for length in [stored.len(), stored.len() + 100, 2 << 20] {
            let pieces = block_pieces(code, &lengthened(&stored, length), 8).unwrap();
            assert_eq!(
                pieces.decode_alone(0),
                Ok(content.clone().into()),
                "{pieces:?}"
            );
            assert!(pieces.max_stored_bytes().unwrap() <= BLOCK_PIECE.get());
        }
        let most = surplus + 16 * content.len();
        assert!(block_pieces(code, &lengthened(&stored, most), 8).is_ok());
        let refused = block_pieces(code, &lengthened(&stored, most + 1), 8).map(|_| ());
        assert!(matches!(refused, Err(Error::Limit { .. })), "{refused:?}");
    }
    let blosc = lengthened(b"\x02\x01\0\x01\x08\0\0\0\x08\0\0\0", 2 << 20);
    let refused = block_pieces(b"bls2", &blosc, 8).map(|_| ());
    assert!(matches!(refused, Err(Error::Limit { .. })), "{refused:?}");
}
