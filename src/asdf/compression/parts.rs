//! The parts of a stream that are decoded alone: places from which it can be decoded without the way
//! from its beginning.

use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;

use crate::asdf::compression::codec::{Decoder, Stored, StreamCodec};
use crate::asdf::compression::{Encoded, lz4_frames, xz_streams, zstd_frames};
use crate::error::{Error, Result};
use crate::limits;
use crate::wire::to_u64;

/// Decoded bytes up to which neighbours are made one part.
const MERGED: u64 = 64 << 10;

/// So many parts of equal length at most.
const PARTS: u64 = 16 << 10;

/// A stretch of the stored bytes that is decoded alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Offset of the stored bytes in the source.
    pub offset: u64,
    /// Their length; of .xz blocks that without padding.
    pub stored: u64,
    /// Offset of the decoded bytes in the block's content.
    pub start: u64,
    /// Their length.
    pub decoded: u64,
    /// What the decoder needs in front of the stored bytes.
    pub head: Arc<[u8]>,
}

impl Part {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.decoded)
    }
}

/// The parts of a stream, one after another, or none where it has no index that can be trusted.
///
/// # Errors
/// `Io` as the stream cannot be read.
pub fn find(encoded: &Encoded, codec: StreamCodec) -> Result<Arc<[Part]>> {
    let parts = match codec {
        StreamCodec::Zstd => zstd_frames::parts(encoded)?,
        StreamCodec::Lz4Frame => lz4_frames::parts(encoded)?,
        StreamCodec::Xz => xz_streams::parts(encoded)?,
    };
    let whole = |parts: &PartList| parts.end() == encoded.decoded;
    let list = parts.filter(whole).map(|parts| parts.list);
    Ok(list.unwrap_or_default().into())
}

/// Parts while they are found.
#[derive(Debug)]
pub struct PartList {
    list: Vec<Part>,
    /// Bytes up to which neighbours are merged.
    merged: u64,
    decoded: u64,
}

impl PartList {
    /// No parts yet of what should be `decoded` bytes of content; where that is long, the
    /// parts are longer too, so that their number is bounded.
    pub fn new(decoded: u64) -> Self {
        PartList {
            list: Vec::new(),
            merged: MERGED.max(decoded / PARTS),
            decoded,
        }
    }

    /// Where the content of the parts so far ends.
    pub fn end(&self) -> u64 {
        self.list.last().map_or(0, Part::end)
    }

    /// Adds a part at the end, unless it holds nothing; `None` for too many, or for more than the content.
    pub fn push(&mut self, offset: u64, stored: u64, decoded: u64, head: &Arc<[u8]>) -> Option<()> {
        if decoded == 0 {
            return Some(());
        }
        let start = self.end();
        let end = start.checked_add(decoded)?;
        if end > self.decoded || self.list.len() >= limits::STREAM_PARTS {
            return None;
        }
        self.list.push(Part {
            offset,
            stored,
            start,
            decoded,
            head: Arc::clone(head),
        });
        Some(())
    }

    /// As `push`, for a part that may be decoded together with the one before it where it follows that.
    pub fn append(
        &mut self,
        offset: u64,
        stored: u64,
        decoded: u64,
        head: &Arc<[u8]>,
    ) -> Option<()> {
        let (merged, most) = (self.merged, self.decoded);
        if let Some(last) = self.list.last_mut()
            && last.offset.checked_add(last.stored) == Some(offset)
            && last.decoded.saturating_add(decoded) <= merged
            && last.end().saturating_add(decoded) <= most
        {
            last.stored = last.stored.saturating_add(stored);
            last.decoded = last.decoded.saturating_add(decoded);
            return Some(());
        }
        self.push(offset, stored, decoded, head)
    }
}

/// The content from one part on.
pub struct PartsReader {
    encoded: Encoded,
    codec: StreamCodec,
    parts: Arc<[Part]>,
    next: usize,
    current: Option<Current>,
}

struct Current {
    decoder: Decoder<'static>,
    /// Bytes that are still to come.
    left: u64,
}

impl PartsReader {
    /// Begins with the part number `first`.
    pub fn new(encoded: Encoded, codec: StreamCodec, parts: Arc<[Part]>, first: usize) -> Self {
        PartsReader {
            encoded,
            codec,
            parts,
            next: first,
            current: None,
        }
    }

    fn begin(&mut self) -> io::Result<Option<&mut Current>> {
        if self.current.is_none() {
            let Some(part) = self.parts.get(self.next) else {
                return Ok(None);
            };
            self.next = self.next.saturating_add(1);
            let source = Arc::clone(&self.encoded.source);
            let (length, tail) = match self.codec {
                StreamCodec::Xz => (xz_streams::padded(part.stored), xz_streams::tail(part)),
                _ => (part.stored, Vec::new()),
            };
            let stored = Stored::new(source, part.offset, length);
            let head = Cursor::new(Arc::clone(&part.head));
            let stored = head.chain(stored).chain(Cursor::new(tail));
            let decoder = self.codec.part_decoder(BufReader::new(stored));
            self.current = Some(Current {
                decoder: decoder.map_err(io::Error::other)?,
                left: part.decoded,
            });
        }
        Ok(self.current.as_mut())
    }
}

impl Read for PartsReader {
    /// Checks the end of a part, where its own checksum stands, before it gives its last bytes.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at = self.encoded.offset;
        let other_length =
            || io::Error::other(Error::corrupt("block: a part of another length", at));
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
        current.left = current.left.saturating_sub(to_u64(read));
        if current.left == 0 {
            if current.decoder.read(&mut [0])? > 0 {
                return Err(other_length());
            }
            self.current = None;
        }
        Ok(read)
    }
}
