//! The names in the directory of an array of a Zarr store: `zarr.json`, `c`, and the names of
//! chunks and fields.

use std::sync::Arc;

use h5fs_reader::model::Array;

use crate::zarr::array::{RecordArray, StoreNode, ZarrArray};
use crate::zarr::grid::ChunkGridKind;

/// The name of the document of an array or group.
pub const DOCUMENT: &[u8] = b"zarr.json";

/// The name of the directory that contains the chunks of an array.
const CHUNKS: &[u8] = b"c";

/// A file or directory in the directory of a store's array.
pub enum StoreEntry {
    /// The directory of an array, or of a group whose arrays are the fields of records.
    Directory(StoreNode),
    /// The document of an array, or of a group whose arrays are the fields of records.
    Document(StoreNode),
    /// The directory of the chunks whose grid indices begin with these numbers.
    Chunks(ZarrArray, Vec<u64>),
    /// The file of the chunk with these grid indices.
    Chunk(ZarrArray, Vec<u64>),
}

impl StoreEntry {
    /// Finds the entry at `path` (names separated by `/`) in the directory of `array`, which has
    /// the kind of chunk grid `grid`. Returns `None` if no entry has this path. `field` converts
    /// the displayed name of a record's field to its name in the file. The function does not check
    /// whether a chunk is stored.
    pub fn find(
        array: &Arc<Array>,
        grid: ChunkGridKind,
        path: &[u8],
        field: impl Fn(&RecordArray, &[u8]) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let mut shown = StoreNode::from_array(array, grid)?;
        let mut names = path
            .split(|&byte| byte == b'/')
            .filter(|name| !name.is_empty());
        loop {
            let Some(name) = names.next() else {
                return Some(StoreEntry::Directory(shown));
            };
            if name == DOCUMENT {
                return names
                    .next()
                    .is_none()
                    .then_some(StoreEntry::Document(shown));
            }
            shown = match shown {
                StoreNode::Fields(record) => record.field(&field(&record, name)?)?,
                StoreNode::Array(array) if name == CHUNKS => return chunk_entry(array, names),
                StoreNode::Array(_) => return None,
            };
        }
    }

    /// Returns whether the entry is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self, StoreEntry::Directory(_) | StoreEntry::Chunks(..))
    }

    /// Returns the names in this directory, as in the file. The names of chunks are not included.
    pub fn names(&self) -> Vec<EntryName<'_>> {
        match self {
            StoreEntry::Directory(StoreNode::Array(array)) => {
                vec![
                    EntryName::Document,
                    EntryName::Chunks(array.dims.is_empty()),
                ]
            }
            StoreEntry::Directory(StoreNode::Fields(record)) => {
                let fields = shown_field_names(record).into_iter().map(EntryName::Field);
                std::iter::once(EntryName::Document).chain(fields).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A name in the directory of a store's array.
pub enum EntryName<'a> {
    /// The document `zarr.json`.
    Document,
    /// The directory of the chunks, or the only chunk of a scalar, which is a file. The flag is set
    /// for a scalar.
    Chunks(bool),
    /// A field, by its name in the file.
    Field(&'a [u8]),
}

impl EntryName<'_> {
    /// Returns the name, as in the file.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            EntryName::Document => DOCUMENT,
            EntryName::Chunks(_) => CHUNKS,
            EntryName::Field(name) => name,
        }
    }
}

/// Returns the names of the fields that the store shows, as in the file, each once.
pub fn shown_field_names(record: &RecordArray) -> Vec<&[u8]> {
    let mut names: Vec<&[u8]> = record
        .field_names()
        .filter(|name| record.field(name).is_some())
        .collect();
    h5fs_reader::memory::distinct::deduplicate_by_name(&mut names, |name| name);
    names
}

/// Returns the chunk whose grid indices are `names`, or the directory of the chunks whose indices
/// begin with `names`. Returns `None` if the indices are not in the chunk grid.
fn chunk_entry<'n>(array: ZarrArray, names: impl Iterator<Item = &'n [u8]>) -> Option<StoreEntry> {
    let numbers: Option<Vec<u64>> = names.map(parse_index).collect();
    let numbers = numbers?;
    let is_inside = numbers.len() <= array.dims.len()
        && numbers
            .iter()
            .zip(array.chunk_counts())
            .all(|(number, count)| *number < count);
    if !is_inside {
        return None;
    }
    Some(if numbers.len() == array.dims.len() {
        StoreEntry::Chunk(array, numbers)
    } else {
        StoreEntry::Chunks(array, numbers)
    })
}

/// Parses a grid index in the name of a chunk. Returns `None` for a text that is not a decimal
/// number without leading zeros.
fn parse_index(name: &[u8]) -> Option<u64> {
    let is_plain =
        name.iter().all(u8::is_ascii_digit) && (name.len() == 1 || name.first() != Some(&b'0'));
    let text = std::str::from_utf8(name).ok().filter(|_| is_plain)?;
    text.parse().ok()
}
