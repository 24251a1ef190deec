//! References to the chunks of a Zarr store, as a JSON document of kerchunk, version 1
//! (<https://fsspec.github.io/kerchunk/spec.html>). The document contains the metadata documents of
//! the store, and where the bytes of each chunk are in the source. A reader then needs only the
//! source.

use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::Array;
use h5fs_reader::model::array::{Layout, Storage};
use h5fs_reader::model::storage::{IndexCursor, StoredChunk};
use h5fs_reader::model::text::write_json_text;
use h5fs_reader::source::SharedSource;
use h5fs_reader::wire::{Extent, to_u64};

use crate::limits;
use crate::text_files::streamed::ResumableText;
use crate::zarr::array::ZarrArray;
use crate::zarr::codecs;
use crate::zarr::json;
use crate::zarr::store_entry::DOCUMENT;

/// The parts of a document of references, in the order in which they are written.
#[derive(Default)]
pub struct ReferencePlan {
    entries: Vec<PlanEntry>,
    /// Total length in bytes of the texts in `entries`.
    text_bytes: usize,
    chunk_count: u64,
}

enum PlanEntry {
    /// A member of the document: its key and its value as a text.
    Text(Vec<u8>, Vec<u8>),
    /// The chunks of an array. The key is the common beginning of their keys.
    Chunks(Vec<u8>, ChunkLocations),
}

/// Where the chunks of an array are in the source.
pub struct ChunkLocations {
    kind: LocationKind,
    /// Number of dimensions that the store's array has after the dimensions of the file's array.
    inner_rank: usize,
}

enum LocationKind {
    /// Chunks of equal length, one after another.
    Contiguous {
        start: u64,
        chunk_bytes: u64,
        /// Number of chunks along each dimension of the file's array.
        counts: Vec<u64>,
    },
    /// The stored chunks of a chunked array, and their number.
    Stored(Arc<Array>, u64),
}

impl ChunkLocations {
    /// Finds the chunks of `array`, which has the grid
    /// [`Referenced`](crate::zarr::grid::ChunkGridKind::Referenced). Returns `None` if references
    /// cannot locate them: Zarr readers do not have a codec for them, they are not in the source
    /// that is `own`, or there are more than `max_chunks`.
    ///
    /// # Errors
    /// Fails if the chunk index cannot be read.
    pub fn find(
        array: &ZarrArray,
        own: &dyn Fn(&SharedSource) -> bool,
        max_chunks: u64,
        budget: &RequestBudget,
    ) -> Result<Option<Self>> {
        if codecs::referenced_codecs(array).is_none() {
            return Ok(None);
        }
        let kind = match &array.array.storage {
            Ok(Storage::Chunked(_)) => stored_chunks(array, own, max_chunks, budget)?,
            _ => contiguous_chunks(array, own),
        };
        let rank = array.array.shape.dims().len();
        let chunks = kind.map(|kind| ChunkLocations {
            kind,
            inner_rank: array.dims.len() - rank,
        });
        Ok(chunks.filter(|chunks| chunks.chunk_count() <= max_chunks))
    }

    fn chunk_count(&self) -> u64 {
        match &self.kind {
            LocationKind::Contiguous { counts, .. } => counts
                .iter()
                .fold(1, |all, count| all.saturating_mul(*count)),
            LocationKind::Stored(_, count) => *count,
        }
    }
}

/// Returns the stored chunks of a chunked array. Each must have passed all filters.
fn stored_chunks(
    array: &ZarrArray,
    own: &dyn Fn(&SharedSource) -> bool,
    max_chunks: u64,
    budget: &RequestBudget,
) -> Result<Option<LocationKind>> {
    let Some(chunked) = array.stored_grid().filter(|chunked| own(&chunked.source)) else {
        return Ok(None);
    };
    let (mut count, mut can_refer) = (0, true);
    chunked.index.walk(budget, &mut |_, chunk| {
        count += 1;
        let end = Extent::checked(chunk.offset, chunk.length);
        let is_within = end.is_some_and(|extent| extent.is_within(chunked.source.length()));
        can_refer = chunk.filter_mask == 0
            && chunk.offset >= chunked.min_offset
            && is_within
            && count <= max_chunks;
        if can_refer {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    let grid_chunks = array.chunk_counts().fold(1, u64::saturating_mul);
    can_refer &= count == grid_chunks || has_uniform_fill(array);
    Ok(can_refer.then(|| LocationKind::Stored(Arc::clone(&array.array), count)))
}

/// Returns whether the fill value of the store, which is that of one store element, fills a whole
/// element of the file. An element of an array type may have different fill values inside.
fn has_uniform_fill(array: &ZarrArray) -> bool {
    let element = array.element_fill_value();
    let uniform = |own: Vec<u8>| element.chunks(own.len().max(1)).all(|part| part == own);
    array.stored_fill_value().is_ok_and(uniform)
}

/// Returns the parts of an array whose elements are one range of the source, in C order.
fn contiguous_chunks(
    array: &ZarrArray,
    own: &dyn Fn(&SharedSource) -> bool,
) -> Option<LocationKind> {
    let (extents, offset) = match &array.array.storage {
        Ok(Storage::Extents(extents)) if array.array.layout != Layout::External => (extents, 0),
        Ok(Storage::Strided(strided)) if is_c_order(&array.array, &strided.strides) => {
            match &strided.base.storage {
                Ok(Storage::Extents(extents)) => (extents, strided.offset),
                _ => return None,
            }
        }
        _ => return None,
    };
    let [stored] = &**extents else {
        return None;
    };
    let length = array.array.byte_length().ok()?;
    let start = stored.extent.start().checked_add(offset)?;
    let extent = Extent::checked(start, length)?;
    let is_there = extent.end() <= stored.extent.end() && extent.is_within(stored.source.length());
    if !is_there || !own(&stored.source) {
        return None;
    }
    let rank = array.array.shape.dims().len();
    Some(LocationKind::Contiguous {
        start,
        chunk_bytes: array.chunk_bytes()?,
        counts: array.chunk_counts().take(rank).collect(),
    })
}

/// Returns whether these strides are those of an array in C order without gaps.
fn is_c_order(array: &Array, strides: &[i64]) -> bool {
    let mut dense = i64::from(array.datatype.size);
    let mut axes = array.shape.dims().iter().zip(strides).rev();
    axes.all(|(&dim, &stride)| {
        let is_next = stride == dense || dim <= 1;
        dense = dense.saturating_mul(i64::try_from(dim).unwrap_or(i64::MAX));
        is_next
    })
}

impl ReferencePlan {
    /// Adds the metadata document of the array or group at `path`.
    ///
    /// # Errors
    /// `Limit` if the texts of the plan become too long.
    pub fn add_document(&mut self, path: &[u8], document: &[u8]) -> Result<()> {
        self.add_text(child_path(path, DOCUMENT), document.to_vec())
    }

    /// Adds the content of the single chunk of the array at `path`. The array has `rank`
    /// dimensions.
    ///
    /// # Errors
    /// `Limit` if the texts of the plan become too long.
    pub fn add_chunk(&mut self, path: &[u8], rank: usize, content: &[u8]) -> Result<()> {
        let mut encoded = b"base64:".to_vec();
        json::append_base64(content, &mut encoded);
        self.add_text(
            [&child_path(path, b"c"), "/0".repeat(rank).as_bytes()].concat(),
            encoded,
        )
    }

    /// Adds the locations of the chunks of the array at `path`.
    pub fn add_chunks(&mut self, path: &[u8], chunks: ChunkLocations) {
        self.chunk_count = self.chunk_count.saturating_add(chunks.chunk_count());
        let key = child_path(path, b"c");
        self.entries.push(PlanEntry::Chunks(key, chunks));
    }

    /// Returns how many chunks the plan may still locate.
    pub fn max_further_chunks(&self) -> u64 {
        limits::KERCHUNK_CHUNKS.saturating_sub(self.chunk_count)
    }

    /// Returns the approximate memory of the plan in bytes.
    pub fn weight(&self) -> u64 {
        to_u64(self.text_bytes + self.entries.len() * 2 * size_of::<PlanEntry>())
    }

    fn add_text(&mut self, key: Vec<u8>, text: Vec<u8>) -> Result<()> {
        let length = key.len() + text.len();
        self.text_bytes = self.text_bytes.saturating_add(length);
        if self.text_bytes > limits::KERCHUNK_BYTES {
            return Err(Error::limit(
                "bytes of documents and elements in kerchunk.json",
                to_u64(limits::KERCHUNK_BYTES),
            ));
        }
        self.entries.push(PlanEntry::Text(key, text));
        Ok(())
    }
}

/// Returns the path of the entry `name` in the group or array at `path`.
pub fn child_path(path: &[u8], name: &[u8]) -> Vec<u8> {
    match path {
        b"" => name.to_vec(),
        path => [path, b"/", name].concat(),
    }
}

/// The text of a document of references.
pub struct ReferencesText {
    plan: Arc<ReferencePlan>,
    /// The source's URL, as a JSON string.
    url: Vec<u8>,
}

/// A position between two members of a document of references.
#[derive(Default)]
pub struct ReferencesPosition {
    entry: usize,
    /// Number of the next chunk of an array that is contiguous in the source.
    number: u64,
    cursor: IndexCursor,
    has_member: bool,
}

impl ReferencesText {
    /// Creates the text of `plan`, for the source with the URL `url`.
    ///
    /// # Errors
    /// `Unsupported` if readers would take the URL for a template.
    pub fn new(plan: Arc<ReferencePlan>, url: &str) -> Result<Self> {
        if url.contains("{{") {
            return Err(Error::unsupported("references to a name with `{{`", None));
        }
        let mut text = Vec::new();
        write_json_text(url.as_bytes(), &mut text);
        Ok(ReferencesText { plan, url: text })
    }

    /// Appends the member for the chunk with the grid indices `place`.
    fn write_chunk(
        &self,
        (key, inner_rank): (&[u8], usize),
        place: &[u64],
        (offset, length): (u64, u64),
        (out, has_member): (&mut Vec<u8>, &mut bool),
    ) {
        let mut name = key.to_vec();
        for index in place.iter().chain(std::iter::repeat_n(&0, inner_rank)) {
            name.extend_from_slice(format!("/{index}").as_bytes());
        }
        begin_member(&name, out, has_member);
        out.push(b'[');
        out.extend_from_slice(&self.url);
        out.extend_from_slice(format!(", {offset}, {length}]").as_bytes());
    }

    /// Appends locations of chunks until `out` holds `enough` bytes. Returns whether there may be
    /// more.
    fn write_chunks(
        &self,
        (key, chunks): (&[u8], &ChunkLocations),
        place: &mut ReferencesPosition,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let key = (key, chunks.inner_rank);
        let ReferencesPosition {
            number,
            cursor,
            has_member,
            ..
        } = place;
        match &chunks.kind {
            LocationKind::Contiguous {
                start,
                chunk_bytes,
                counts,
            } => {
                let count = chunks.chunk_count();
                while *number < count && out.len() < enough {
                    let offset = start + *number * chunk_bytes;
                    let indices = grid_indices(*number, counts);
                    self.write_chunk(key, &indices, (offset, *chunk_bytes), (out, has_member));
                    *number += 1;
                }
                Ok(*number < count)
            }
            LocationKind::Stored(array, _) => {
                let Ok(Storage::Chunked(chunked)) = &array.storage else {
                    return Ok(false);
                };
                let mut is_full = false;
                let (budget, _granted) = RequestBudget::unlimited_until_cancelled(cancel);
                chunked
                    .index
                    .walk_from(cursor, &budget, &mut |indices, chunk: StoredChunk| {
                        let extent = (chunk.offset, chunk.length);
                        self.write_chunk(key, indices, extent, (out, has_member));
                        is_full = out.len() >= enough;
                        if is_full {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        }
                    })?;
                Ok(is_full)
            }
        }
    }
}

impl ResumableText for ReferencesText {
    type ResumePoint = ReferencesPosition;

    fn begin(&self) -> ReferencesPosition {
        ReferencesPosition::default()
    }

    fn write_from(
        &self,
        place: &mut ReferencesPosition,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if !place.has_member {
            out.extend_from_slice(b"{\"version\": 1, \"refs\": {");
        }
        while let Some(entry) = self.plan.entries.get(place.entry) {
            let is_more = match entry {
                PlanEntry::Text(key, text) => {
                    begin_member(key, out, &mut place.has_member);
                    write_json_text(text, out);
                    false
                }
                PlanEntry::Chunks(key, chunks) => {
                    self.write_chunks((key, chunks), place, enough, cancel, out)?
                }
            };
            if !is_more {
                place.entry += 1;
                place.number = 0;
                place.cursor = IndexCursor::default();
            }
            if out.len() >= enough {
                return Ok(true);
            }
        }
        out.extend_from_slice(b"\n}}\n");
        Ok(false)
    }

    fn own_bytes(&self) -> u64 {
        self.plan.weight()
    }

    fn progress_bytes(&self, place: &ReferencesPosition) -> u64 {
        to_u64(size_of_val(&*place.cursor.0))
    }
}

/// Appends the key of the next member of the document.
fn begin_member(key: &[u8], out: &mut Vec<u8>, has_member: &mut bool) {
    out.extend_from_slice(if *has_member { b",\n" } else { b"\n" });
    *has_member = true;
    write_json_text(key, out);
    out.extend_from_slice(b": ");
}

/// Returns the grid indices of chunk number `number` in C order. `counts` is the number of chunks
/// along each dimension.
fn grid_indices(number: u64, counts: &[u64]) -> Vec<u64> {
    let mut rest = number;
    let mut indices = vec![0; counts.len()];
    for (index, &count) in indices.iter_mut().zip(counts).rev() {
        *index = rest % count.max(1);
        rest /= count.max(1);
    }
    indices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_files::streamed::StreamedText;
    use crate::view::View;

    fn whole_text(plan: ReferencePlan, url: &str) -> String {
        let text = ReferencesText::new(Arc::new(plan), url).unwrap();
        let (mut place, mut out) = (text.begin(), Vec::new());
        let cancel = CancelToken::default();
        // Each call writes one member.
        while text
            .write_from(&mut place, out.len() + 1, &cancel, &mut out)
            .unwrap()
        {}
        let length = to_u64(out.len());
        let file = StreamedText::new(text, length);
        assert_eq!(file.read_at(0, usize::MAX).unwrap()[..], out[..]);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_document_of_references() {
        let mut plan = ReferencePlan::default();
        plan.add_document(b"a/b", b"{\"zarr_format\": 3}\n")
            .unwrap();
        plan.add_chunks(
            b"a/b",
            ChunkLocations {
                kind: LocationKind::Contiguous {
                    start: 100,
                    chunk_bytes: 8,
                    counts: vec![2, 1],
                },
                inner_rank: 1,
            },
        );
        plan.add_chunk(b"s", 0, b"foo").unwrap();
        plan.add_document(b"", b"{}").unwrap();
        // The base64 text is that of RFC 4648, section 10.
        let expected = [
            r#"{"version": 1, "refs": {"#,
            r#""a/b/zarr.json": "{\"zarr_format\": 3}\n","#,
            r#""a/b/c/0/0/0": ["x \"y\".h5", 100, 8],"#,
            r#""a/b/c/1/0/0": ["x \"y\".h5", 108, 8],"#,
            r#""s/c": "base64:Zm9v","#,
            r#""zarr.json": "{}""#,
            "}}\n",
        ];
        assert_eq!(whole_text(plan, "x \"y\".h5"), expected.join("\n"));
    }

    #[test]
    fn texts_have_a_bound() {
        let mut plan = ReferencePlan::default();
        let rest = limits::KERCHUNK_BYTES - b"zarr.json".len();
        plan.add_document(b"", &vec![b' '; rest]).unwrap();
        let beyond = plan.add_document(b"", b"");
        assert!(matches!(beyond, Err(Error::Limit { .. })), "{beyond:?}");
    }

    #[test]
    fn chunks_have_a_bound() {
        let mut plan = ReferencePlan::default();
        let kind = LocationKind::Contiguous {
            start: 0,
            chunk_bytes: 1,
            counts: vec![limits::KERCHUNK_CHUNKS - 1],
        };
        let inner_rank = 0;
        plan.add_chunks(b"a", ChunkLocations { kind, inner_rank });
        assert_eq!(plan.max_further_chunks(), 1);
    }

    #[test]
    fn no_reader_takes_a_url_for_a_template() {
        let plan = Arc::new(ReferencePlan::default());
        assert!(ReferencesText::new(plan, "a{{b}}.h5").is_err());
    }
}
