//! Decoders of the filters that were applied to a chunk when it was written (HDF5 3.0, IV.A.2.l
//! "Filter Pipeline").
//!
//! Each decoder receives the exact or maximum length of its result before it starts, and cannot
//! produce more. The errors carry no file offset, because only the caller knows the chunk's offset
//! in the file.
//!
//! Arithmetic: parameters and lengths in chunks have at most 32 bits, and buffers have at most
//! [`limits::CHUNK_BYTES`]. Sums and products of two such numbers therefore do not overflow. A
//! larger product saturates, and the comparison with the expected length then rejects it.

mod bit_planes;
mod bits;
pub mod bitshuffle;
mod blocks;
pub mod blosc;
pub(crate) mod blosc2;
pub mod bzip2;
pub mod context;
pub mod deflate;
pub mod fletcher32;
mod history;
pub(crate) mod jpegls;
pub mod length;
pub mod lz4;
pub(crate) mod lzf;
pub mod nbit;
pub mod scaleoffset;
pub mod shuffle;
pub mod szip;
pub mod zfp;
pub mod zstd;

pub use context::DecoderResources;
pub use length::DecodedLength;

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::memory::cancel::{WantedCheck, check_wanted};
use crate::model::storage::{Filter, Pipeline};
use crate::wire::{Count, to_u64};

/// Identifier of the filter deflate: zlib streams.
pub const DEFLATE: u16 = 1;
/// Identifier of the filter shuffle: the first bytes of all elements, then all second bytes, and so
/// on.
pub const SHUFFLE: u16 = 2;
/// Identifier of the filter fletcher32: a checksum after the data.
pub const FLETCHER32: u16 = 3;
/// Identifier of the filter szip: the compression of CCSDS 121.0-B.
pub const SZIP: u16 = 4;
const NBIT: u16 = 5;
const SCALEOFFSET: u16 = 6;
/// Identifier of the filter bzip2.
pub const BZIP2: u16 = 307;
const LZF: u16 = 32000;
/// Identifier of the filter Blosc, version 1.
pub const BLOSC: u16 = 32001;
const LZ4: u16 = 32004;
const BITSHUFFLE: u16 = 32008;
const ZFP: u16 = 32013;
/// Identifier of the filter Zstandard.
pub const ZSTD: u16 = 32015;
const FCIDECOMP: u16 = 32018;
const BITGROOM: u16 = 32022;
const GRANULAR_BITROUND: u16 = 32023;
const BLOSC2: u16 = 32026;

/// A function that reverses one filter: it turns encoded bytes and the filter's parameters into
/// bytes of the given length.
type FilterDecoder =
    fn(Buffer, &[u32], DecodedLength, &mut DecoderResources, &WantedCheck<'_>) -> Result<Buffer>;

/// Returns the decoder of the filter that is registered as `id`, or `None` if the filter is not
/// supported.
fn decoder(id: u16) -> Option<FilterDecoder> {
    let decoder: FilterDecoder = match id {
        DEFLATE => |bytes, _, length, context, _| deflate::decode(&bytes, length, context),
        SHUFFLE => |bytes, parameters, _, context, _| shuffle::decode(bytes, parameters, context),
        FLETCHER32 => |bytes, _, _, _, _| fletcher32::decode(bytes),
        SZIP => |bytes, parameters, length, context, _| {
            szip::decode(&bytes, parameters, length, context)
        },
        NBIT => {
            |bytes, parameters, length, context, _| nbit::decode(bytes, parameters, length, context)
        }
        SCALEOFFSET => |bytes, parameters, length, context, _| {
            scaleoffset::decode(bytes, parameters, length, context)
        },
        BZIP2 => {
            |bytes, _, length, context, is_wanted| bzip2::decode(&bytes, length, context, is_wanted)
        }
        LZF => |bytes, _, length, context, _| lzf::decode(&bytes, length, context),
        BLOSC => |bytes, _, length, context, _| blosc::decode(&bytes, length, context),
        BLOSC2 => |bytes, _, length, context, _| blosc2::decode(&bytes, length, context),
        LZ4 => |bytes, _, length, context, _| lz4::decode(&bytes, length, context),
        BITSHUFFLE => |bytes, parameters, length, context, _| {
            bitshuffle::decode(&bytes, parameters, length, context)
        },
        ZFP => {
            |bytes, parameters, length, context, _| zfp::decode(&bytes, parameters, length, context)
        }
        FCIDECOMP => |bytes, _, length, context, is_wanted| {
            jpegls::decode(&bytes, length, context, is_wanted)
        },
        ZSTD => |bytes, _, length, context, _| zstd::decode(&bytes, length, context),
        // These filters rounded the numbers before they were stored, and rounding cannot be
        // reversed.
        BITGROOM | GRANULAR_BITROUND => |bytes, _, _, _, _| Ok(bytes),
        _ => return None,
    };
    Some(decoder)
}

/// Checks that all filters of `pipeline` are supported.
///
/// # Errors
/// `Unsupported` names the first unsupported filter. `Limit` if the pipeline has too many filters.
pub fn check(pipeline: &Pipeline) -> Result<()> {
    const NONE_LEFT_OUT: u32 = 0;
    check_masked(pipeline, NONE_LEFT_OUT)
}

/// Checks that all filters that were applied to a chunk are supported. If bit i of `filter_mask` is
/// set, filter i was not applied.
///
/// # Errors
/// Fails as [`check`] does.
pub(crate) fn check_masked(pipeline: &Pipeline, filter_mask: u32) -> Result<()> {
    Error::check_limit(pipeline.0.len(), limits::FILTERS, "filters")?;
    let is_applied = |index: u32| filter_mask.checked_shr(index).unwrap_or(0) & 1 == 0;
    let unknown_filter = (0_u32..)
        .zip(&pipeline.0)
        .find(|(index, filter)| is_applied(*index) && decoder(filter.id).is_none());
    match unknown_filter {
        Some((_, filter)) => Err(unknown(filter)),
        None => Ok(()),
    }
}

/// Decodes one chunk by reversing its filters, the last one first.
///
/// If bit i of `filter_mask` is set, filter i was not applied. The result is exactly `chunk_bytes`
/// long. `is_wanted` is called between filters. The slowest decoders, bzip2 and JPEG-LS, also call
/// it after each mebibyte. All other decoders finish a chunk within two seconds, however large it
/// is.
///
/// # Errors
/// `Corrupt` if the bytes are damaged or do not decode to `chunk_bytes` bytes. `Unsupported` for a
/// filter, or a mode of one, that is not implemented. `Limit` for a chunk over the limit.
/// [`Error::cancelled`] once `is_wanted` returns false.
pub fn decode(
    pipeline: &Pipeline,
    filter_mask: u32,
    stored: Buffer,
    chunk_bytes: usize,
    context: &mut DecoderResources,
    is_wanted: &WantedCheck<'_>,
) -> Result<Buffer> {
    Error::check_limit(to_u64(chunk_bytes), limits::CHUNK_BYTES, "bytes of a chunk")?;
    Error::check_limit(pipeline.0.len(), limits::FILTERS, "filters")?;
    let applied: Vec<&Filter> = (0..32)
        .zip(&pipeline.0)
        .filter(|(place, _)| filter_mask.unbounded_shr(*place) & 1 == 0)
        .map(|(_, filter)| filter)
        .collect();
    let mut bytes = stored;
    let mut before = applied.as_slice();
    while let Some((filter, earlier)) = before.split_last() {
        before = earlier;
        check_wanted(is_wanted)?;
        let decoder = decoder(filter.id).ok_or_else(|| unknown(filter))?;
        let length = encoded_length(before, chunk_bytes);
        bytes = decoder(bytes, &filter.parameters, length, context, is_wanted)?;
        length.check("filter pipeline", bytes.len())?;
    }
    DecodedLength::Exactly(chunk_bytes).check("chunk", bytes.len())?;
    Ok(bytes)
}

/// Returns the exact or maximum length of a chunk of `chunk_bytes` bytes after `filters` were
/// applied to it.
fn encoded_length(filters: &[&Filter], chunk_bytes: usize) -> DecodedLength {
    let mut length = DecodedLength::Exactly(chunk_bytes);
    for filter in filters {
        length = match (filter.id, length) {
            (SHUFFLE | BITGROOM | GRANULAR_BITROUND, same) => same,
            (FLETCHER32, DecodedLength::Exactly(bytes)) => {
                DecodedLength::Exactly(bytes.plus(fletcher32::CHECKSUM_BYTES))
            }
            // Encoders that fail to compress add few bytes: headers, and some bytes for each block.
            _ => DecodedLength::AtMost(
                chunk_bytes
                    .plus(chunk_bytes.wrapping_shr(3))
                    .plus(limits::FILTER_OVERHEAD),
            ),
        };
    }
    length
}

fn unknown(filter: &Filter) -> Error {
    let id = filter.id;
    match name(id).or(filter.name.as_deref()) {
        Some(name) => Error::unsupported(format!("filter {id} ({name})"), None),
        None => Error::unsupported(format!("filter {id}"), None),
    }
}

/// Returns the name under which filter `id` is registered with The HDF Group, or `None` if the name
/// is unknown.
pub fn name(id: u16) -> Option<&'static str> {
    let name = match id {
        DEFLATE => "deflate",
        SHUFFLE => "shuffle",
        FLETCHER32 => "fletcher32",
        SZIP => "szip",
        NBIT => "nbit",
        SCALEOFFSET => "scaleoffset",
        305 => "LZO",
        BZIP2 => "bzip2",
        LZF => "LZF",
        BLOSC => "Blosc",
        32002 => "MAFISC",
        32003 => "Snappy",
        LZ4 => "LZ4",
        32005 => "APAX",
        32006 => "CBF",
        32007 => "JPEG-XR",
        BITSHUFFLE => "bitshuffle",
        32009 => "SPDP",
        32010 => "LPC-Rice",
        32011 => "CCSDS-123",
        32012 => "JPEG-LS",
        ZFP => "ZFP",
        32014 => "fpzip",
        ZSTD => "Zstandard",
        32016 => "B3D",
        32017 => "SZ",
        FCIDECOMP => "FCIDECOMP",
        32019 => "JPEG",
        32020 => "VBZ",
        32021 => "FAPEC",
        BITGROOM => "BITGROOM",
        GRANULAR_BITROUND => "Granular BitRound",
        32024 => "SZ3",
        32025 => "Delta-Rice",
        BLOSC2 => "Blosc2",
        32027 => "FLAC",
        32028 => "SPERR",
        32029 => "TERSE/PROLIX",
        32030 => "FFMPEG",
        32033 => "HTJ2K",
        _ => return None,
    };
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(pipeline: &Pipeline, mask: u32, stored: Vec<u8>, bytes: usize) -> Result<Vec<u8>> {
        let context = &mut DecoderResources::default();
        super::decode(pipeline, mask, stored.into(), bytes, context, &|| true).map(Buffer::into_vec)
    }

    fn filter(id: u16, parameters: &[u32]) -> Filter {
        Filter {
            id,
            name: None,
            parameters: parameters.to_vec(),
        }
    }

    /// Returns the chunk that `h5py.Dataset.id.read_direct_chunk` returns for `np.arange(6,
    /// dtype='<u2')` with `shuffle=True, compression='gzip', fletcher32=True`.
    fn arange6() -> (Pipeline, Vec<u8>) {
        let pipeline = Pipeline(vec![
            filter(SHUFFLE, &[2]),
            filter(DEFLATE, &[4]),
            filter(FLETCHER32, &[]),
        ]);
        let stored = b"\x78\x5e\x63\x60\x64\x62\x66\x61\x65\0\x03\0\0\x89\0\x10\x1c\x0f\xef\x72";
        (pipeline, stored.to_vec())
    }

    #[test]
    fn filters_are_reversed_from_last_to_first() {
        let (pipeline, stored) = arange6();
        let expected = [0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0];
        assert_eq!(check(&pipeline), Ok(()));
        assert_eq!(decode(&pipeline, 0, stored, 12), Ok(expected.to_vec()));
    }

    #[test]
    fn a_masked_filter_was_not_applied() {
        let pipeline = Pipeline(vec![filter(32017, &[]), filter(SHUFFLE, &[2])]);
        let decoded = decode(&pipeline, 0b01, vec![1, 2, 0, 0], 4);
        assert_eq!(decoded, Ok(vec![1, 0, 2, 0]));
        let decoded = decode(&pipeline, 0b11, vec![1, 2, 0, 0], 4);
        assert_eq!(decoded, Ok(vec![1, 2, 0, 0]));
    }

    #[test]
    fn the_result_has_the_length_of_a_chunk() {
        let (pipeline, stored) = arange6();
        for wrong in [0, 11, 13] {
            assert!(decode(&pipeline, 0, stored.clone(), wrong).is_err());
        }
        assert!(decode(&Pipeline::default(), 0, vec![1, 2], 3).is_err());
        assert_eq!(
            decode(&Pipeline::default(), 0, vec![1, 2], 2),
            Ok(vec![1, 2])
        );
    }

    /// The writer's library rounds before it stores, so the reader returns the stored numbers.
    #[test]
    fn rounding_filters_leave_numbers_unchanged() {
        for id in [BITGROOM, GRANULAR_BITROUND] {
            let pipeline = Pipeline(vec![filter(id, &[3, 0, 4]), filter(SHUFFLE, &[2])]);
            let decoded = decode(&pipeline, 0, vec![1, 2, 3, 4], 4);
            assert_eq!(decoded, Ok(vec![1, 3, 2, 4]));
        }
    }

    /// The table in the documentation lists every filter that has a name, and states which are
    /// read.
    #[test]
    fn the_documentation_has_the_same_filters() {
        let (_, section) = include_str!("../../../docs/views.md")
            .split_once("\n## Filters\n")
            .unwrap();
        let section = section.split("\n## ").next().unwrap();
        let documented: Vec<(u16, String, bool)> = section
            .lines()
            .filter_map(|line| {
                let cells: Vec<&str> = line.strip_prefix("| ")?.split(" | ").collect();
                let number = cells[0].parse().ok()?;
                Some((number, cells[1].to_owned(), cells[2].starts_with("read")))
            })
            .collect();
        let known: Vec<_> = (0..=u16::MAX)
            .filter_map(|id| Some((id, name(id)?.to_owned(), decoder(id).is_some())))
            .collect();
        assert_eq!(documented, known);
    }

    #[test]
    fn an_unknown_filter_is_named() {
        let mut unregistered = filter(300, &[]);
        unregistered.name = Some("mine".to_owned());
        let text = |filter| check(&Pipeline(vec![filter])).unwrap_err().to_string();
        assert_eq!(
            text(filter(32017, &[])),
            "filter 32017 (SZ) is not supported"
        );
        assert_eq!(text(unregistered), "filter 300 (mine) is not supported");
        assert_eq!(text(filter(300, &[])), "filter 300 is not supported");
    }
}
