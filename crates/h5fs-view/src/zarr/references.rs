//! References to the chunks of a Zarr store, as a JSON document of kerchunk, version 1
//! (<https://fsspec.github.io/kerchunk/spec.html>). The document contains the metadata documents of
//! the store, and where the bytes of each chunk are in the source. A reader then needs only the
//! source.

use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::text::write_json_text;
use h5fs_reader::wire::to_u64;

use crate::limits;
use crate::text_files::streamed::ResumableText;
use crate::zarr::chunk_locations::{ChunkLocation, ChunkLocations, ChunkPosition};
use crate::zarr::json;
use crate::zarr::member_chunks::MEMBER_CHUNK_BYTES;

/// The parts of a document of references, in the order in which they are written.
#[derive(Default)]
pub struct ReferencePlan {
    entries: Vec<PlanEntry>,
    /// The URLs of the files with the chunks, as JSON strings.
    urls: Vec<Vec<u8>>,
    /// Total length in bytes of the texts in `entries` and `urls`.
    text_bytes: usize,
    chunk_count: u64,
    /// Number of the chunks of joined arrays among these chunks.
    member_chunk_count: u64,
}

enum PlanEntry {
    /// A member of the document: its key and its value as a text.
    Text(Vec<u8>, Vec<u8>),
    /// The path of an array, and its chunks.
    Chunks(Vec<u8>, ChunkLocations),
}

impl ReferencePlan {
    /// Adds a file with chunks, and returns its number. The first file has the number 0.
    ///
    /// # Errors
    /// `Unsupported` if readers would take the URL for a template. `Limit` if the texts of the plan
    /// become too long.
    pub fn add_file(&mut self, url: &str) -> Result<usize> {
        if url.contains("{{") {
            return Err(Error::unsupported("references to a name with `{{`", None));
        }
        let mut text = Vec::new();
        write_json_text(url.as_bytes(), &mut text);
        self.count_text(text.len())?;
        self.urls.push(text);
        Ok(self.urls.len() - 1)
    }

    /// Adds a metadata document with the name `name` of the array or group at `path`.
    ///
    /// # Errors
    /// `Limit` if the texts of the plan become too long.
    pub fn add_document(&mut self, path: &[u8], name: &[u8], document: Vec<u8>) -> Result<()> {
        self.add_text(child_path(path, name), document)
    }

    /// Adds the content of the single chunk of the array at `path`. The array has `rank`
    /// dimensions.
    ///
    /// # Errors
    /// `Limit` if the texts of the plan become too long.
    pub fn add_chunk(&mut self, path: &[u8], rank: usize, content: &[u8]) -> Result<()> {
        let mut encoded = b"base64:".to_vec();
        json::append_base64(content, &mut encoded);
        let indices = std::iter::repeat_n(&0, rank);
        self.add_text(chunk_key(path, indices), encoded)
    }

    /// Adds the locations of the chunks of the array at `path`.
    pub fn add_chunks(&mut self, path: &[u8], chunks: ChunkLocations) {
        self.chunk_count = self.chunk_count.saturating_add(chunks.chunk_count());
        let member_chunks = chunks.member_chunk_count();
        self.member_chunk_count = self.member_chunk_count.saturating_add(member_chunks);
        self.entries.push(PlanEntry::Chunks(path.to_vec(), chunks));
    }

    /// Returns how many chunks the plan may still locate.
    pub fn max_further_chunks(&self) -> u64 {
        limits::KERCHUNK_CHUNKS.saturating_sub(self.chunk_count)
    }

    /// Returns how many chunks of joined arrays the plan may still locate. Their locations are in
    /// memory.
    pub fn max_further_member_chunks(&self) -> u64 {
        let most = limits::KERCHUNK_MEMBER_CHUNKS.saturating_sub(self.member_chunk_count);
        most.min(self.max_further_chunks())
    }

    /// Returns the approximate memory of the plan in bytes.
    pub fn weight(&self) -> u64 {
        let texts = self.text_bytes + self.entries.len() * 2 * size_of::<PlanEntry>();
        let locations = self.member_chunk_count.saturating_mul(MEMBER_CHUNK_BYTES);
        to_u64(texts).saturating_add(locations)
    }

    fn add_text(&mut self, key: Vec<u8>, text: Vec<u8>) -> Result<()> {
        self.count_text(key.len() + text.len())?;
        self.entries.push(PlanEntry::Text(key, text));
        Ok(())
    }

    fn count_text(&mut self, length: usize) -> Result<()> {
        self.text_bytes = self.text_bytes.saturating_add(length);
        let what = "bytes of documents and elements in kerchunk.json";
        Error::check_limit(self.text_bytes, limits::KERCHUNK_BYTES, what)
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
pub struct ReferencesText(Arc<ReferencePlan>);

/// A position between two members of a document of references.
#[derive(Default)]
pub struct ReferencesPosition {
    entry: usize,
    chunk: ChunkPosition,
    has_member: bool,
}

impl ReferencesText {
    /// Creates the text of `plan`.
    pub fn new(plan: Arc<ReferencePlan>) -> Self {
        ReferencesText(plan)
    }

    /// Appends the member for a chunk with the key `key`.
    fn write_chunk(
        &self,
        key: &[u8],
        location: ChunkLocation,
        out: &mut Vec<u8>,
        has_member: &mut bool,
    ) {
        let ChunkLocation {
            file,
            offset,
            length,
        } = location;
        begin_member(key, out, has_member);
        out.push(b'[');
        out.extend_from_slice(self.0.urls.get(file).map_or(b"null", Vec::as_slice));
        out.extend_from_slice(format!(", {offset}, {length}]").as_bytes());
    }

    /// Appends locations of chunks until `out` holds `enough` bytes. Returns whether there may be
    /// more.
    fn write_chunks(
        &self,
        (path, chunks): (&[u8], &ChunkLocations),
        place: &mut ReferencesPosition,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let ReferencesPosition {
            chunk, has_member, ..
        } = place;
        let inner = std::iter::repeat_n(&0, chunks.inner_rank);
        chunks.visit_from(chunk, cancel, &mut |indices, location| {
            let indices = indices.iter().chain(inner.clone());
            self.write_chunk(&chunk_key(path, indices), location, out, has_member);
            if out.len() >= enough {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
    }
}

/// Returns the key of the chunk with these grid indices of the array at `path`.
fn chunk_key<'i>(path: &[u8], indices: impl Iterator<Item = &'i u64>) -> Vec<u8> {
    let name: Vec<String> = indices.map(u64::to_string).collect();
    // An array without dimensions has one chunk, called `0`.
    let name = if name.is_empty() {
        "0".to_owned()
    } else {
        name.join(".")
    };
    child_path(path, name.as_bytes())
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
        while let Some(entry) = self.0.entries.get(place.entry) {
            let is_more = match entry {
                PlanEntry::Text(key, text) => {
                    begin_member(key, out, &mut place.has_member);
                    write_json_text(text, out);
                    false
                }
                PlanEntry::Chunks(path, chunks) => {
                    self.write_chunks((path, chunks), place, enough, cancel, out)?
                }
            };
            if !is_more {
                place.entry += 1;
                place.chunk = ChunkPosition::default();
            }
            if out.len() >= enough {
                return Ok(true);
            }
        }
        out.extend_from_slice(b"\n}}\n");
        Ok(false)
    }

    fn own_bytes(&self) -> u64 {
        self.0.weight()
    }

    fn progress_bytes(&self, place: &ReferencesPosition) -> u64 {
        place.chunk.weight()
    }
}

/// Appends the key of the next member of the document.
fn begin_member(key: &[u8], out: &mut Vec<u8>, has_member: &mut bool) {
    out.extend_from_slice(if *has_member { b",\n" } else { b"\n" });
    *has_member = true;
    write_json_text(key, out);
    out.extend_from_slice(b": ");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_files::streamed::StreamedText;
    use crate::view::View;
    use crate::zarr::chunk_locations::LocationKind;

    fn whole_text(plan: ReferencePlan) -> String {
        let text = ReferencesText::new(Arc::new(plan));
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
        plan.add_file("x \"y\".h5").unwrap();
        plan.add_document(b"a/b", b".zarray", b"{\"a\": 2}\n".to_vec())
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
        plan.add_document(b"", b".zgroup", b"{}".to_vec()).unwrap();
        // The base64 text is that of RFC 4648, section 10.
        let expected = [
            r#"{"version": 1, "refs": {"#,
            r#""a/b/.zarray": "{\"a\": 2}\n","#,
            r#""a/b/0.0.0": ["x \"y\".h5", 100, 8],"#,
            r#""a/b/1.0.0": ["x \"y\".h5", 108, 8],"#,
            r#""s/0": "base64:Zm9v","#,
            r#"".zgroup": "{}""#,
            "}}\n",
        ];
        assert_eq!(whole_text(plan), expected.join("\n"));
    }

    #[test]
    fn texts_have_a_bound() {
        let mut plan = ReferencePlan::default();
        let rest = limits::KERCHUNK_BYTES - b".zgroup".len();
        plan.add_document(b"", b".zgroup", vec![b' '; rest])
            .unwrap();
        let beyond = plan.add_document(b"", b".zgroup", Vec::new());
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
        assert!(ReferencePlan::default().add_file("a{{b}}.h5").is_err());
    }
}
