//! The codecs of Blosc's blocks.

use crate::error::{Error, Result};
use crate::filter::blosc::blosclz;
use crate::filter::{DecodedLength, DecoderResources, deflate, lz4, zstd};

/// The codec of a block's streams, identified by the number in the flags of the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    BloscLz,
    /// LZ4 and LZ4HC.
    Lz4,
    Snappy,
    Zlib,
    Zstd,
    /// A number that Blosc 2 uses for codecs named elsewhere, or an unassigned number.
    Other(u8),
}

impl Codec {
    /// Returns the codec with this number.
    pub(crate) fn new(number: u8) -> Self {
        match number {
            0 => Codec::BloscLz,
            1 => Codec::Lz4,
            2 => Codec::Snappy,
            3 => Codec::Zlib,
            4 => Codec::Zstd,
            other => Codec::Other(other),
        }
    }

    /// Decodes one stream, which must decode to exactly the length of `output`.
    pub(crate) fn decode_into(
        self,
        stream: &[u8],
        output: &mut [u8],
        context: &mut DecoderResources,
    ) -> Result<()> {
        let written = match self {
            Codec::BloscLz => blosclz::decode_into(stream, output)
                .ok_or_else(|| Error::corrupt("Blosc: damaged BloscLZ stream", None))?,
            Codec::Lz4 => return lz4::decode_block_into(stream, output),
            Codec::Snappy => snap::raw::Decoder::new()
                .decompress(stream, output)
                .map_err(|error| Error::corrupt(format!("Blosc: {error}"), None))?,
            Codec::Zlib => deflate::decode_into(stream, output, &mut context.deflate)?,
            Codec::Zstd => zstd::decode_into(stream, output, &mut context.zstd)?,
            Codec::Other(number) => {
                return Err(Error::unsupported(format!("Blosc: codec {number}"), None));
            }
        };
        DecodedLength::Exactly(output.len()).check("Blosc", written)?;
        Ok(())
    }
}
