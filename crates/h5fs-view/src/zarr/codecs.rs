//! The `codecs` of an array in its document: `bytes` for chunks that the mount decodes, and codecs
//! that reverse the filters of stored chunks. Their names are those of zarr-python and zarrs.

use std::ops::ControlFlow;

use h5fs_reader::error::Result;
use h5fs_reader::filter::{BLOSC, BZIP2, DEFLATE, FLETCHER32, SHUFFLE, ZSTD};
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::storage::{Filter, Pipeline};
use h5fs_reader::model::text::{JsonObject, json_text};

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

/// A codec that reverses a filter: its name in Zarr version 3, and its parameters in JSON.
#[derive(Debug, PartialEq, Eq)]
struct Codec {
    name: &'static str,
    parameters: Vec<(&'static str, String)>,
}

/// The values of Blosc's parameter `shuffle` in Zarr version 3. Their numbers are those of Blosc.
const BLOSC_SHUFFLES: [&str; 3] = ["noshuffle", "shuffle", "bitshuffle"];

impl Codec {
    /// Returns the codec in JSON, as a document of Zarr version 3 has it.
    fn version_3(&self) -> String {
        let mut configuration = JsonObject::default();
        for (name, value) in &self.parameters {
            configuration.add_json(name, value);
        }
        json::named_configuration(self.name, configuration)
    }

    /// Returns the codec in JSON, as a document of Zarr version 2 has it: the configuration of
    /// numcodecs.
    fn version_2(&self) -> String {
        let mut object = JsonObject::default();
        object.add_text("id", self.name.trim_start_matches("numcodecs."));
        for (name, value) in &self.parameters {
            match *name {
                // Stored blocks have these parameters in their headers.
                "typesize" | "checksum" => {}
                "shuffle" => {
                    let text = value.trim_matches('"');
                    let number = BLOSC_SHUFFLES.iter().position(|name| *name == text);
                    object.add_json(name, number.unwrap_or_default());
                }
                _ => object.add_json(name, value),
            }
        }
        object.finish()
    }
}

/// Returns the codecs, in JSON, of chunks that are served as stored. Returns `None` if Zarr readers
/// do not have a codec for a filter, or if the elements need a conversion.
pub(super) fn stored_codecs(array: &ZarrArray) -> Option<Vec<String>> {
    let chunked = array.stored_grid()?;
    if chunked.pipeline.0.is_empty() || array.has_file_for_every_chunk() {
        return None;
    }
    let filters = filter_codecs(array)?;
    let first = if array.is_big_endian()? {
        bytes_codec("big")
    } else {
        decoded_chunk_codec(&array.data_type)
    };
    let filters = filters.iter().map(Codec::version_3);
    Some(std::iter::once(first).chain(filters).collect())
}

/// Returns the filters, in JSON of Zarr version 2, of bytes of the file that references locate.
/// Returns `None` if Zarr readers do not have a codec for a filter, or if the elements need a
/// conversion.
pub(super) fn referenced_filters(array: &ZarrArray) -> Option<Vec<String>> {
    array.is_big_endian()?;
    let filters = filter_codecs(array)?;
    Some(filters.iter().map(Codec::version_2).collect())
}

/// Returns the codecs that reverse the filters of the array's stored chunks. Returns `None` if Zarr
/// readers do not have a codec for a filter.
fn filter_codecs(array: &ZarrArray) -> Option<Vec<Codec>> {
    let sticks_out = || {
        let mut sizes = array.dims.iter().zip(&array.chunk_shape);
        sizes.any(|(dim, chunk)| dim % chunk > 0)
    };
    let Some(chunked) = array.stored_grid() else {
        return Some(Vec::new());
    };
    if chunked.has_unfiltered_edge_chunks && sticks_out() {
        return None;
    }
    pipeline_codecs(&chunked.pipeline, array.array.datatype.size)
}

/// Returns the codecs that reverse a filter pipeline. Elements have `size` bytes. Returns `None` if
/// Zarr readers do not have a codec for a filter.
fn pipeline_codecs(pipeline: &Pipeline, size: u32) -> Option<Vec<Codec>> {
    let numbered = pipeline.0.iter().enumerate();
    numbered
        .map(|(place, filter)| filter_codec(filter, place, size))
        .collect()
}

/// Returns the codec that reverses the filter at position `place` of a pipeline. Returns `None` if
/// Zarr readers do not have such a codec.
fn filter_codec(filter: &Filter, place: usize, size: u32) -> Option<Codec> {
    let parameter = |number: usize| filter.parameters.get(number).copied();
    let number = |name, value: u32| (name, value.to_string());
    let (name, parameters) = match filter.id {
        DEFLATE => {
            let level = parameter(0).unwrap_or(6).min(9);
            ("numcodecs.zlib", vec![number("level", level)])
        }
        SHUFFLE if place == 0 && parameter(0) == Some(size) => {
            ("numcodecs.shuffle", vec![number("elementsize", size)])
        }
        FLETCHER32 => ("numcodecs.fletcher32", Vec::new()),
        BZIP2 => {
            let level = parameter(0).unwrap_or(9).clamp(1, 9);
            ("numcodecs.bz2", vec![number("level", level)])
        }
        ZSTD => {
            let level = parameter(0).unwrap_or(3).min(22);
            let checksum = ("checksum", false.to_string());
            ("zstd", vec![number("level", level), checksum])
        }
        BLOSC => ("blosc", blosc_parameters(parameter)?),
        _ => return None,
    };
    Some(Codec { name, parameters })
}

/// Returns the parameters of Blosc from those of its filter. Returns `None` for a compressor that
/// Zarr readers do not have.
fn blosc_parameters(
    parameter: impl Fn(usize) -> Option<u32>,
) -> Option<Vec<(&'static str, String)>> {
    let names = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];
    let name = usize::try_from(parameter(6).unwrap_or(0)).ok();
    let name = name
        .and_then(|name| names.get(name))
        .filter(|name| **name != "snappy")?;
    let shuffle = usize::try_from(parameter(5).unwrap_or(1)).ok();
    let shuffle = shuffle.and_then(|shuffle| BLOSC_SHUFFLES.get(shuffle))?;
    let size = parameter(2).filter(|size| (1..256).contains(size))?;
    Some(vec![
        ("typesize", size.to_string()),
        ("cname", json_text(name.as_bytes())),
        ("clevel", parameter(4).unwrap_or(5).min(9).to_string()),
        ("shuffle", json_text(shuffle.as_bytes())),
        ("blocksize", 0.to_string()),
    ])
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

    fn pipeline(filters: &[(u16, &[u32])]) -> Option<Vec<Codec>> {
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
        let version_3: Vec<String> = codecs.iter().map(Codec::version_3).collect();
        assert_eq!(
            version_3,
            [
                r#"{"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}"#,
                r#"{"name": "numcodecs.zlib", "configuration": {"level": 7}}"#,
                r#"{"name": "numcodecs.fletcher32", "configuration": {}}"#,
            ]
        );
        let version_2: Vec<String> = codecs.iter().map(Codec::version_2).collect();
        assert_eq!(
            version_2,
            [
                r#"{"id": "shuffle", "elementsize": 4}"#,
                r#"{"id": "zlib", "level": 7}"#,
                r#"{"id": "fletcher32"}"#,
            ]
        );
    }

    /// Expected: the configurations of numcodecs and of the codec specifications of Zarr.
    #[test]
    fn parameters_of_blosc() {
        let blosc = pipeline(&[(BLOSC, &[2, 2, 4, 64, 5, 2, 5])]).unwrap();
        let expected = [
            r#"{"name": "blosc", "configuration": {"typesize": 4, "cname": "zstd", "clevel": 5, "#,
            r#""shuffle": "bitshuffle", "blocksize": 0}}"#,
        ];
        assert_eq!(blosc[0].version_3(), expected.concat());
        let expected =
            r#"{"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 2, "blocksize": 0}"#;
        assert_eq!(blosc[0].version_2(), expected);
    }

    #[test]
    fn pipelines_that_readers_cannot_undo() {
        assert_eq!(pipeline(&[(DEFLATE, &[4]), (SHUFFLE, &[4])]), None);
        assert_eq!(pipeline(&[(SHUFFLE, &[8]), (DEFLATE, &[4])]), None);
        assert_eq!(pipeline(&[(h5fs_reader::filter::SZIP, &[141, 32])]), None);
        assert_eq!(pipeline(&[(BLOSC, &[2, 2, 4, 64, 5, 1, 3])]), None);
    }
}
