//! The search for the parts of a stream, and the decoder that starts at a part.

use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;

use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::compression::stream::codec::{SourceRangeReader, StreamCodec, StreamDecoder};
use crate::asdf::compression::stream::part_list::{PartList, StreamPart};
use crate::asdf::compression::stream::{lz4_frames, xz_streams, zstd_frames};
use crate::error::{Error, Result};
use crate::wire::{Count, to_u64};

/// Returns the consecutive parts of a stream, or an empty list if the stream lacks a reliable
/// index.
///
/// # Errors
/// `Io` if the stream cannot be read.
pub(crate) fn find_parts(encoded: &EncodedBlock, codec: StreamCodec) -> Result<Arc<[StreamPart]>> {
    let parts = match codec {
        StreamCodec::Zstd => zstd_frames::find_parts(encoded)?,
        StreamCodec::Lz4Frame => lz4_frames::find_parts(encoded)?,
        StreamCodec::Xz => xz_streams::find_parts(encoded)?,
    };
    let list = parts.and_then(PartList::finish);
    Ok(list.unwrap_or_default())
}

/// A reader of the content of a stream from one part on.
pub struct PartsReader {
    encoded: EncodedBlock,
    codec: StreamCodec,
    parts: Arc<[StreamPart]>,
    next: usize,
    current: Option<CurrentPart>,
}

struct CurrentPart {
    decoder: StreamDecoder<'static>,
    /// Number of bytes of content of the current part that are still to be read.
    left: u64,
}

impl PartsReader {
    /// Creates a reader that begins with part number `first`.
    pub fn new(
        encoded: EncodedBlock,
        codec: StreamCodec,
        parts: Arc<[StreamPart]>,
        first: usize,
    ) -> Self {
        PartsReader {
            encoded,
            codec,
            parts,
            next: first,
            current: None,
        }
    }

    fn begin(&mut self) -> io::Result<Option<&mut CurrentPart>> {
        if self.current.is_none() {
            let Some(part) = self.parts.get(self.next) else {
                return Ok(None);
            };
            self.next = self.next.plus_one();
            let source = Arc::clone(&self.encoded.source);
            let (stored, tail) = match self.codec {
                StreamCodec::Xz => (
                    xz_streams::with_padding(part.stored),
                    xz_streams::index_and_footer(part),
                ),
                _ => (part.stored, Vec::new()),
            };
            let stored = SourceRangeReader::new(source, stored);
            let head = Cursor::new(Arc::clone(&part.head));
            let stored = head.chain(stored).chain(Cursor::new(tail));
            let decoder = self.codec.part_decoder(BufReader::new(stored));
            self.current = Some(CurrentPart {
                decoder: decoder.map_err(io::Error::other)?,
                left: part.content.length(),
            });
        }
        Ok(self.current.as_mut())
    }
}

impl Read for PartsReader {
    /// Reads content. Before the last bytes of a part are returned, reads the end of the part, so
    /// that the decoder verifies the part's checksum.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at = self.encoded.stored.start();
        let other_length =
            || io::Error::other(Error::corrupt("block: a part has an unexpected length", at));
        let Some(current) = self.begin()? else {
            return Ok(0);
        };
        let most = usize::try_from(current.left).unwrap_or(usize::MAX);
        let most = buffer.len().min(most);
        let room = buffer.get_mut(..most).unwrap_or_default();
        let read = current.decoder.read(room)?;
        if read == 0 && most > 0 {
            return Err(other_length());
        }
        current.left = current.left.minus_or_zero(to_u64(read));
        if current.left == 0 {
            if current.decoder.read(&mut [0])? > 0 {
                return Err(other_length());
            }
            self.current = None;
        }
        Ok(read)
    }
}
