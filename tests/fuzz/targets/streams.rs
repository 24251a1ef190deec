//! Fuzzes an ASDF block that is one compressed stream. Its pieces, read in any order, must be parts
//! of the content that is decoded at once. The input consists of the codec, the length of the
//! pieces, the block's length in two bytes, an order, and the stored bytes.

#![no_main]

use std::num::NonZeroU64;
use std::sync::Arc;

use h5fs_reader::asdf::compression::bzip2::{Bzip2, Bzip2Block};
use h5fs_reader::asdf::compression::encoded::EncodedBlock;
use h5fs_reader::asdf::compression::stream::StreamBlock;
use h5fs_reader::asdf::compression::stream::codec::StreamCodec;
use h5fs_reader::asdf::compression::whole_block::{WholeBlock, WholeCodec};
use h5fs_reader::asdf::compression::zlib::ZlibBlock;
use h5fs_reader::error::Result;
use h5fs_reader::memory::buffer::{Buffer, BufferPool};
use h5fs_reader::model::storage::{DecodeContext, PieceDecoder};
use h5fs_reader::source::memory::MemorySource;
use h5fs_reader::wire::Extent;

fn stream(
    codec: WholeCodec,
    encoded: EncodedBlock,
    piece: NonZeroU64,
) -> Result<Box<dyn PieceDecoder>> {
    let resumes = Arc::default();
    Ok(match codec {
        WholeCodec::Zlib => Box::new(ZlibBlock::new(encoded, piece, resumes)?),
        WholeCodec::Stream(codec) => {
            Box::new(StreamBlock::with_states(codec, encoded, piece, resumes))
        }
        _ => Box::new(Bzip2Block::with_states(Bzip2, encoded, piece, resumes)),
    })
}

fn decode(pieces: &dyn PieceDecoder, number: u64) -> Result<Buffer> {
    let mut context = DecodeContext {
        threads: &|| 2,
        pool: &BufferPool::default(),
        is_wanted: &|| true,
        on_extra_piece: &mut |_, _| {},
    };
    pieces.decode(number, &mut context)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(([codec, piece, low, high, order], stored)) = bytes.split_first_chunk() else {
        return;
    };
    let codec = match codec % 5 {
        0 => WholeCodec::Bzip2,
        1 => WholeCodec::Zlib,
        2 => WholeCodec::Stream(StreamCodec::Zstd),
        3 => WholeCodec::Stream(StreamCodec::Lz4Frame),
        _ => WholeCodec::Stream(StreamCodec::Xz),
    };
    let encoded = EncodedBlock {
        block_offset: 0,
        source: Arc::new(MemorySource::new(stored.to_vec())),
        stored: Extent::saturating(0, stored.len() as u64),
        decoded: u64::from(u16::from_le_bytes([*low, *high])),
    };
    let length = NonZeroU64::new(u64::from(*piece) * 8 + 1).expect("one at least");
    let content = WholeBlock::new(encoded.clone(), codec).and_then(|whole| decode(&whole, 0));
    let pieces = encoded.decoded.div_ceil(length.get());
    let Ok(stream) = stream(codec, encoded, length) else {
        assert!(content.is_err(), "refused, but decodes at once");
        return;
    };
    for step in 0..pieces.min(24) {
        let number = step * u64::from(order | 1) % pieces;
        let decoded = decode(&*stream, number);
        if let Ok(content) = &content {
            let all: Vec<&[u8]> = content.chunks(length.get() as usize).collect();
            assert!(
                decoded.as_deref() == Ok(all[number as usize]),
                "piece {number}"
            );
        }
    }
});
