//! The `codecs` of an array in its document: `bytes` for chunks that the mount decodes, and codecs
//! that reverse the filters of stored chunks. Their names are those of zarr-python and zarrs.

use std::ops::ControlFlow;

use h5fs_reader::error::Result;
use h5fs_reader::filter::{BLOSC, BZIP2, DEFLATE, FLETCHER32, SHUFFLE, ZSTD};
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::storage::{Filter, Pipeline};
use h5fs_reader::model::text::JsonObject;

use crate::limits;
use crate::zarr::array::ZarrArray;
use crate::zarr::datatype::{DataType, DataTypeKind};
use crate::zarr::json;

/// Returns the codec, in JSON, of chunks that the mount decodes.
pub(super) fn decoded_chunk_codec(data_type: &DataType) -> String {
    match data_type.kind {
        DataTypeKind::Text => json::named_configuration("vlen-utf8", JsonObject::default()),
        DataTypeKind::Bool
        | DataTypeKind::Integer { size: 1, .. }
        | DataTypeKind::NullTerminatedBytes { .. }
        | DataTypeKind::RawBytes { .. } => r#"{"name": "bytes"}"#.to_owned(),
        _ => bytes_codec("little"),
    }
}

fn bytes_codec(endian: &str) -> String {
    let mut configuration = JsonObject::default();
    configuration.add_text("endian", endian);
    json::named_configuration("bytes", configuration)
}

/// Returns the codecs, in JSON, of chunks that are served as stored. Returns `None` if Zarr readers
/// do not have a codec for a filter, or if the elements need a conversion.
pub(super) fn stored_codecs(array: &ZarrArray) -> Option<Vec<String>> {
    let chunked = array.stored_grid()?;
    if chunked.pipeline.0.is_empty() || array.has_file_for_every_chunk() {
        return None;
    }
    referenced_codecs(array)
}

/// Returns the codecs, in JSON, of bytes of the file that references locate. Returns `None` if Zarr
/// readers do not have a codec for a filter, or if the elements need a conversion.
pub(super) fn referenced_codecs(array: &ZarrArray) -> Option<Vec<String>> {
    let sticks_out = || {
        let mut sizes = array.dims.iter().zip(&array.chunk_shape);
        sizes.any(|(dim, chunk)| dim % chunk > 0)
    };
    let chunked = array.stored_grid();
    if chunked.is_some_and(|chunked| chunked.has_unfiltered_edge_chunks) && sticks_out() {
        return None;
    }
    let first = if array.is_big_endian()? {
        bytes_codec("big")
    } else {
        decoded_chunk_codec(&array.data_type)
    };
    let size = array.array.datatype.size;
    let filters = match chunked {
        Some(chunked) => pipeline_codecs(&chunked.pipeline, size)?,
        None => Vec::new(),
    };
    Some(std::iter::once(first).chain(filters).collect())
}

/// Returns the codecs that reverse a filter pipeline. Elements have `size` bytes. Returns `None` if
/// Zarr readers do not have a codec for a filter.
fn pipeline_codecs(pipeline: &Pipeline, size: u32) -> Option<Vec<String>> {
    let numbered = pipeline.0.iter().enumerate();
    numbered
        .map(|(place, filter)| filter_codec(filter, place, size))
        .collect()
}

/// Returns the codec that reverses the filter at position `place` of a pipeline. Returns `None` if
/// Zarr readers do not have such a codec.
fn filter_codec(filter: &Filter, place: usize, size: u32) -> Option<String> {
    let parameter = |number: usize| filter.parameters.get(number).copied();
    let mut configuration = JsonObject::default();
    let name = match filter.id {
        DEFLATE => {
            configuration.add_json("level", parameter(0).unwrap_or(6).min(9));
            "numcodecs.zlib"
        }
        SHUFFLE if place == 0 && parameter(0) == Some(size) => {
            configuration.add_json("elementsize", size);
            "numcodecs.shuffle"
        }
        FLETCHER32 => "numcodecs.fletcher32",
        BZIP2 => {
            configuration.add_json("level", parameter(0).unwrap_or(9).clamp(1, 9));
            "numcodecs.bz2"
        }
        ZSTD => {
            configuration.add_json("level", parameter(0).unwrap_or(3).min(22));
            configuration.add_json("checksum", false);
            "zstd"
        }
        BLOSC => {
            let names = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];
            let name = usize::try_from(parameter(6).unwrap_or(0)).ok();
            let name = name
                .and_then(|name| names.get(name))
                .filter(|name| **name != "snappy")?;
            let shuffles = ["noshuffle", "shuffle", "bitshuffle"];
            let shuffle = usize::try_from(parameter(5).unwrap_or(1)).ok();
            let shuffle = shuffle.and_then(|shuffle| shuffles.get(shuffle))?;
            let size = parameter(2).filter(|size| (1..256).contains(size))?;
            configuration.add_json("typesize", size);
            configuration.add_text("cname", name);
            configuration.add_json("clevel", parameter(4).unwrap_or(5).min(9));
            configuration.add_text("shuffle", shuffle);
            configuration.add_json("blocksize", 0);
            "blosc"
        }
        _ => return None,
    };
    Some(json::named_configuration(name, configuration))
}

/// Returns whether Zarr readers have codecs for the stored chunks of the array, provided that no
/// chunk skipped a filter.
pub fn has_known_codecs(array: &ZarrArray) -> bool {
    stored_codecs(array).is_some()
}

/// Returns whether every stored chunk of the array was written through all filters of the pipeline.
/// HDF5 lets single chunks skip a filter. Returns `false` if the chunk index is too large to check.
///
/// # Errors
/// Fails if the index cannot be read.
pub fn has_all_filtered_chunks(array: &ZarrArray, budget: &RequestBudget) -> Result<bool> {
    let Some(index) = array.chunk_index() else {
        return Ok(false);
    };
    let mut left = limits::ALLOCATION_WALK;
    let mut are_filtered = true;
    index.walk(budget, &mut |_, chunk| {
        are_filtered = chunk.filter_mask == 0 && left > 0;
        left = left.saturating_sub(1);
        if are_filtered {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(are_filtered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline(filters: &[(u16, &[u32])]) -> Option<Vec<String>> {
        let filters = filters.iter().map(|&(id, parameters)| Filter {
            id,
            name: None,
            parameters: parameters.to_vec(),
        });
        pipeline_codecs(&Pipeline(filters.collect()), 4)
    }

    /// Expected: the names in numcodecs and in the codec specifications of Zarr.
    #[test]
    fn codecs_of_filters() {
        let codecs = pipeline(&[(SHUFFLE, &[4]), (DEFLATE, &[7]), (FLETCHER32, &[])]).unwrap();
        assert_eq!(
            codecs,
            [
                r#"{"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}"#,
                r#"{"name": "numcodecs.zlib", "configuration": {"level": 7}}"#,
                r#"{"name": "numcodecs.fletcher32", "configuration": {}}"#,
            ]
        );
        let blosc = pipeline(&[(BLOSC, &[2, 2, 4, 64, 5, 2, 5])]).unwrap();
        let expected = [
            r#"{"name": "blosc", "configuration": {"typesize": 4, "cname": "zstd", "clevel": 5, "#,
            r#""shuffle": "bitshuffle", "blocksize": 0}}"#,
        ];
        assert_eq!(blosc, [expected.concat()]);
    }

    #[test]
    fn pipelines_that_readers_cannot_undo() {
        assert_eq!(pipeline(&[(DEFLATE, &[4]), (SHUFFLE, &[4])]), None);
        assert_eq!(pipeline(&[(SHUFFLE, &[8]), (DEFLATE, &[4])]), None);
        assert_eq!(pipeline(&[(h5fs_reader::filter::SZIP, &[141, 32])]), None);
        assert_eq!(pipeline(&[(BLOSC, &[2, 2, 4, 64, 5, 1, 3])]), None);
    }
}
