//! A PNG file without compression. Its length follows from the shape and the number type, and each
//! byte depends on only a few pixels.
//!
//! The zlib stream (RFC 1950) is split into IDAT chunks, each with its own CRC. The first chunk has
//! the zlib header, the last chunk the checksum of all rows, and each of the others one stored
//! block (RFC 1951, 3.2.4). Texts that depend on the pixels are padded with spaces. A pass over all
//! pixels is needed only for the scale of the values, and for the checksum in the last bytes. The
//! checksum of each block that was read is cached.

use std::sync::Mutex;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::Result;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::wire::{to_u64, to_usize};
use libdeflater::{Crc, adler32};

use crate::elements::overlapping_bytes;
use crate::pictures::png::levels::{LevelConversion, NUMBER_WIDTH};
use crate::pictures::png::picture::Picture;
use crate::view::View;

/// Maximum number of bytes of rows in one stored block of the zlib stream. All blocks except the
/// last have this length.
const BLOCK: u64 = 65_535;

/// Length in bytes of a PNG chunk without its content: the fields length, type and CRC.
const CHUNK: u64 = 12;

/// Length in bytes of a stored block's header: the flag of the last block, and the block's length
/// twice.
const BLOCK_HEADER: u64 = 5;

/// Length in bytes of the last IDAT chunk, which has the checksum of all rows, and of the chunk
/// IEND.
const TAIL: u64 = 2 * CHUNK + 4;

/// The modulus of Adler-32.
const ADLER: u64 = 65_521;

/// The uncompressed PNG file of a picture.
pub struct UncompressedPng {
    picture: Picture,
    /// Length of a row in bytes, including its filter type.
    row_bytes: u64,
    /// Total length of all rows in bytes.
    total_row_bytes: u64,
    /// Length in bytes of the file before the first stored block.
    head: u64,
    levels: Mutex<Option<LevelConversion>>,
    /// For each stored block, the Adler-32 checksum of its rows; `None` for blocks that were not
    /// read yet.
    checksums: Mutex<Vec<Option<u32>>>,
    /// A cache of the stored block that was read last: its number, and its IDAT chunk.
    last_block: Mutex<Option<(u64, Vec<u8>)>>,
}

impl UncompressedPng {
    pub(super) fn new(picture: Picture) -> Self {
        let row = 1 + picture
            .bit_count(picture.shown_pixels(picture.image.width))
            .div_ceil(8);
        let mut stored = UncompressedPng {
            total_row_bytes: row.saturating_mul(picture.shown_pixels(picture.image.height)),
            row_bytes: row,
            picture,
            head: 0,
            levels: Mutex::default(),
            checksums: Mutex::default(),
            last_block: Mutex::default(),
        };
        stored.head = to_u64(stored.head(None).len());
        stored
    }

    /// Returns the length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.tail_start().saturating_add(TAIL)
    }

    fn block_count(&self) -> u64 {
        self.total_row_bytes.div_ceil(BLOCK)
    }

    fn tail_start(&self) -> u64 {
        let around = self.block_count().saturating_mul(CHUNK + BLOCK_HEADER);
        self.head
            .saturating_add(self.total_row_bytes)
            .saturating_add(around)
    }

    /// Returns the bytes of the file before the first stored block. Without `levels`, returns a
    /// placeholder of the same length.
    fn head(&self, levels: Option<&LevelConversion>) -> Vec<u8> {
        let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
        append_chunk(&mut out, b"IHDR", &self.picture.ihdr_content());
        let texts = levels.map(LevelConversion::text_chunks).unwrap_or_default();
        for keyword in self.picture.pixel_format().keywords {
            let found = texts.iter().find(|(found, _)| found == keyword);
            let text = found.map_or("0", |(_, text)| text);
            let padded = format!("{keyword}\0{text:NUMBER_WIDTH$}");
            append_chunk(&mut out, b"tEXt", padded.as_bytes());
        }
        for (keyword, text) in self.picture.constant_text_chunks() {
            append_chunk(&mut out, b"tEXt", format!("{keyword}\0{text}").as_bytes());
        }
        if let Some(colours) = self.picture.palette_bytes() {
            append_chunk(&mut out, b"PLTE", colours);
        }
        // The zlib header: no dictionary, fastest compression, and check bits that make it a
        // multiple of 31.
        append_chunk(&mut out, b"IDAT", &[0x78, 0x01]);
        out
    }

    /// Calls `use_them` with the conversion of values to levels. The first call reads all pixels if
    /// the conversion depends on them.
    fn with_levels<T>(
        &self,
        cancel: &CancelToken,
        use_them: impl FnOnce(&LevelConversion) -> Result<T>,
    ) -> Result<T> {
        let mut known = cancel.lock(&self.levels)?;
        let levels = match &mut *known {
            Some(levels) => levels,
            none => {
                cancel.require_heavy_slot()?;
                none.insert(
                    self.picture
                        .level_conversion(cancel, &mut || cancel.check_cancelled())?,
                )
            }
        };
        let levels = levels.clone();
        drop(known);
        use_them(&levels)
    }

    /// Returns the bytes of rows in stored block `number`: the filter type and the levels of each
    /// row.
    fn block_rows(&self, number: u64, cancel: &CancelToken) -> Result<Vec<u8>> {
        let mut at = number.saturating_mul(BLOCK);
        let end = at.saturating_add(BLOCK).min(self.total_row_bytes);
        let mut out = Vec::with_capacity(to_usize(end.saturating_sub(at))?);
        self.with_levels(cancel, |levels| {
            while at < end {
                cancel.check_cancelled()?;
                let (row, first) = (at / self.row_bytes, at % self.row_bytes);
                let last = (end - at).saturating_add(first).min(self.row_bytes);
                if first == 0 {
                    // The filter type is None.
                    out.push(0);
                }
                let part = first.max(1) - 1..last - 1;
                self.append_row_part(levels, row, part, cancel, &mut out)?;
                at = at.saturating_add(last - first);
            }
            Ok(())
        })?;
        lock(&self.checksums).resize(to_usize(self.block_count())?, None);
        if let Some(sum) = lock(&self.checksums).get_mut(to_usize(number)?) {
            *sum = Some(adler32(&out));
        }
        Ok(out)
    }

    /// Appends the bytes `range` of the levels of a row. The range is relative to the byte after
    /// the row's filter type.
    fn append_row_part(
        &self,
        levels: &LevelConversion,
        row: u64,
        range: std::ops::Range<u64>,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let bits = self.picture.bit_count(1);
        let first = range.start * 8 / bits;
        let width = self.picture.shown_pixels(self.picture.image.width);
        let end = (range.end * 8).div_ceil(bits).min(width);
        let (mut stored, mut written) = (Vec::new(), Vec::new());
        self.picture
            .append_row_pixels(row, first..end, cancel, &mut stored)?;
        levels.write(&stored, &mut written);
        let before = range.start - first * bits / 8;
        let range = before..before + (range.end - range.start);
        out.extend_from_slice(&written[overlapping_bytes(&written, 0, &range)]);
        Ok(())
    }

    /// Returns the IDAT chunk that contains stored block `number`.
    fn idat_chunk(&self, number: u64, cancel: &CancelToken) -> Result<Vec<u8>> {
        let content = self.block_rows(number, cancel)?;
        let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
        let mut block = vec![u8::from(number + 1 == self.block_count())];
        block.extend_from_slice(&length.to_le_bytes());
        block.extend_from_slice(&(!length).to_le_bytes());
        block.extend_from_slice(&content);
        let mut out = Vec::with_capacity(block.len() + to_usize(CHUNK)?);
        append_chunk(&mut out, b"IDAT", &block);
        Ok(out)
    }

    fn tail(&self, cancel: &CancelToken) -> Result<Vec<u8>> {
        let (mut low, mut high) = (1, 0);
        for number in 0..self.block_count() {
            let kept = lock(&self.checksums)
                .get(to_usize(number)?)
                .copied()
                .flatten();
            let sum = match kept {
                Some(sum) => sum,
                None => adler32(&self.block_rows(number, cancel)?),
            };
            let (own_low, own_high) = (u64::from(sum & 0xffff), u64::from(sum >> 16));
            let length = BLOCK.min(self.total_row_bytes - number * BLOCK);
            high = (high + own_high + length * (low + ADLER - 1)) % ADLER;
            low = (low + own_low + ADLER - 1) % ADLER;
        }
        let sum = u32::try_from(high << 16 | low).unwrap_or(0);
        let mut out = Vec::new();
        append_chunk(&mut out, b"IDAT", &sum.to_be_bytes());
        append_chunk(&mut out, b"IEND", b"");
        Ok(out)
    }

    /// Appends the beginning of `range`: the bytes that are in the same part of the file (head,
    /// block or tail) as the first one. Returns the offset after the appended bytes.
    fn append_piece(
        &self,
        range: std::ops::Range<u64>,
        out: &mut Vec<u8>,
        cancel: &CancelToken,
    ) -> Result<u64> {
        let mut take = |start: u64, bytes: &[u8]| {
            out.extend_from_slice(&bytes[overlapping_bytes(bytes, start, &range)]);
            range.end.min(start + to_u64(bytes.len()))
        };
        if range.start < self.head {
            let head = self.with_levels(cancel, |levels| Ok(self.head(Some(levels))))?;
            return Ok(take(0, &head));
        }
        if range.start >= self.tail_start() {
            return Ok(take(self.tail_start(), &self.tail(cancel)?));
        }
        let width = CHUNK + BLOCK_HEADER + BLOCK;
        let number = (range.start - self.head) / width;
        let start = self.head + number * width;
        if let Some((_, bytes)) = lock(&self.last_block)
            .as_ref()
            .filter(|(n, _)| *n == number)
        {
            return Ok(take(start, bytes));
        }
        let bytes = self.idat_chunk(number, cancel)?;
        let end = take(start, &bytes);
        *lock(&self.last_block) = Some((number, bytes));
        Ok(end)
    }
}

/// Appends a PNG chunk with this type and content (PNG, 5.3).
fn append_chunk(out: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    let mut crc = Crc::new();
    for part in [&name[..], content] {
        crc.update(part);
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&crc.sum().to_be_bytes());
}

impl View for UncompressedPng {
    fn length(&self) -> u64 {
        self.bytes()
    }

    fn own_bytes(&self) -> u64 {
        let sums = lock(&self.checksums).capacity() * size_of::<Option<u32>>();
        let last = lock(&self.last_block);
        let last = last.as_ref().map_or(0, |(_, bytes)| bytes.capacity());
        to_u64(sums + last)
    }

    fn forget(&self) {
        *lock(&self.checksums) = Vec::new();
        *lock(&self.last_block) = None;
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let end = offset.saturating_add(to_u64(length)).min(self.bytes());
        let (mut at, mut out) = (offset, Vec::new());
        while at < end {
            at = cancel.next_batch(at, self.append_piece(at..end, &mut out, cancel)?)?;
        }
        Ok(out.into())
    }

    fn stops_on_cancel(&self) -> bool {
        true
    }
}
