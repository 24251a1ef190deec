//! Small files for tests, written structure by structure.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::Result;
use crate::hdf5::file::caches::Caches;
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::{Address, AddressEncoding, Width};
use crate::memory::request_budget::RequestBudget;
use crate::model::storage::{ChunkIndex, IndexCursor, StoredChunk};
use crate::source::memory::MemorySource;
use crate::wire::checksum::lookup3;

/// Returns the address of a structure at an offset in a file.
pub(crate) fn at(offset: u64) -> Address {
    Address::new(0, offset).unwrap()
}

/// Returns an encoding in which addresses and lengths have `bytes` bytes each.
pub(crate) fn form(bytes: u8) -> AddressEncoding {
    let width = Width::new(bytes).unwrap();
    AddressEncoding {
        base: 0,
        size_of_offsets: width,
        size_of_lengths: width,
        original_header_start: None,
    }
}

/// Returns a file of `blocks`, each at its offset. Addresses and lengths have eight bytes.
pub(crate) fn file(blocks: impl IntoIterator<Item = (usize, Vec<u8>)>) -> Arc<Metadata> {
    let mut file = Vec::new();
    for (at, block) in blocks {
        file.resize(file.len().max(at + block.len()), 0);
        file[at..at + block.len()].copy_from_slice(&block);
    }
    let cache = Caches::default().new_block_cache();
    let source = Arc::new(MemorySource::new(file));
    Arc::new(Metadata::new(source, form(8), cache))
}

/// Returns `block` with its lookup3 checksum appended.
pub(crate) fn with_checksum(mut block: Vec<u8>) -> Vec<u8> {
    block.extend(lookup3(&block).to_le_bytes());
    block
}

/// Returns the bytes of all words in little-endian order.
pub(crate) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns the grid coordinates and the file offset of every chunk that a walk visits. Checks that
/// a walk that is interrupted after each chunk visits the same chunks.
pub(crate) fn walk_chunks(index: &dyn ChunkIndex) -> Result<Vec<(Vec<u64>, u64)>> {
    let mut met = Vec::new();
    let mut visit = |place: &[u64], chunk: StoredChunk| {
        met.push((place.to_vec(), chunk.offset));
        ControlFlow::Continue(())
    };
    let budget = RequestBudget::default();
    let walked = index.walk(&budget, &mut visit);
    let mut place = IndexCursor::default();
    let mut again = Vec::new();
    let ended = loop {
        let before = (place.clone(), again.len());
        let step = index.walk_from(&mut place, &budget, &mut |place, chunk| {
            again.push((place.to_vec(), chunk.offset));
            ControlFlow::Break(())
        });
        if step.is_err() {
            assert_eq!(place, before.0);
            break step;
        }
        if again.len() == before.1 {
            break Ok(());
        }
    };
    assert_eq!(again, met);
    assert_eq!(ended, walked);
    walked.map(|()| met)
}
