//! The names in the directory of an array: `zarr.json`, `c`, the chunks, the fields.

use std::sync::Arc;

use h5fs_reader::model::Array;

use crate::view::zarr::array::{RecordArray, StoreNode, ZarrArray};
use crate::view::zarr::grid::Grid;

/// The name of each document.
pub(crate) const DOCUMENT: &[u8] = b"zarr.json";

/// The name of the directory of chunks.
const CHUNKS: &[u8] = b"c";

/// The entry at a path in the directory of an array.
pub(crate) enum StoreEntry {
    /// The directory of an array, or of a group of fields.
    Shown(StoreNode),
    /// The document of an array, or of a group of fields.
    Document(StoreNode),
    /// A directory of chunks with these first numbers.
    Chunks(ZarrArray, Vec<u64>),
    /// A chunk.
    Chunk(ZarrArray, Vec<u64>),
}

impl StoreEntry {
    /// Finds the entry at `path`, names separated by `/`, in the directory of `array` with the
    /// chunk grid `grid`; `None` if there is none. `field` converts the shown name of a record's
    /// field to its name in the file. The function does not check whether a chunk is stored.
    pub(crate) fn find(
        array: &Arc<Array>,
        grid: Grid,
        path: &[u8],
        field: impl Fn(&RecordArray, &[u8]) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let mut shown = StoreNode::from_array(array, grid)?;
        let mut names = path
            .split(|&byte| byte == b'/')
            .filter(|name| !name.is_empty());
        loop {
            let Some(name) = names.next() else {
                return Some(StoreEntry::Shown(shown));
            };
            if name == DOCUMENT {
                return names
                    .next()
                    .is_none()
                    .then_some(StoreEntry::Document(shown));
            }
            shown = match shown {
                StoreNode::Fields(record) => record.field(&field(&record, name)?)?,
                StoreNode::Array(array) if name == CHUNKS => return chunk(array, names),
                StoreNode::Array(_) => return None,
            };
        }
    }

    /// Returns whether the entry is a directory.
    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, StoreEntry::Shown(_) | StoreEntry::Chunks(..))
    }

    /// Returns the names in this directory, except those of chunks, as in the file.
    pub(crate) fn names(&self) -> Vec<Name<'_>> {
        match self {
            StoreEntry::Shown(StoreNode::Array(array)) => {
                vec![Name::Document, Name::Chunks(array.dims.is_empty())]
            }
            StoreEntry::Shown(StoreNode::Fields(record)) => {
                let fields = fields(record).into_iter().map(Name::Field);
                std::iter::once(Name::Document).chain(fields).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A name in the directory of an array.
pub(crate) enum Name<'a> {
    Document,
    /// The chunks. The flag is set for a scalar, whose only chunk is a file.
    Chunks(bool),
    /// A field, by its name in the file.
    Field(&'a [u8]),
}

impl Name<'_> {
    /// Returns the name, as in the file.
    pub(crate) fn text(&self) -> &[u8] {
        match self {
            Name::Document => DOCUMENT,
            Name::Chunks(_) => CHUNKS,
            Name::Field(name) => name,
        }
    }
}

/// Returns the names of the fields that are shown, as in the file, each once.
pub(crate) fn fields(record: &RecordArray) -> Vec<&[u8]> {
    let mut names: Vec<&[u8]> = record
        .names()
        .filter(|name| record.field(name).is_some())
        .collect();
    h5fs_reader::memory::distinct::keep_first_of_each(&mut names, |name| name);
    names
}

/// Returns the chunk, or the directory of chunks, with these numbers.
fn chunk<'n>(array: ZarrArray, names: impl Iterator<Item = &'n [u8]>) -> Option<StoreEntry> {
    let numbers: Option<Vec<u64>> = names.map(number).collect();
    let numbers = numbers?;
    let is_inside = numbers.len() <= array.dims.len()
        && numbers
            .iter()
            .zip(array.chunks())
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

/// Parses a number in the name of a chunk, which must not have leading zeros.
fn number(name: &[u8]) -> Option<u64> {
    let is_plain =
        name.iter().all(u8::is_ascii_digit) && (name.len() == 1 || name.first() != Some(&b'0'));
    let text = std::str::from_utf8(name).ok().filter(|_| is_plain)?;
    text.parse().ok()
}
