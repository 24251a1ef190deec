//! Other ASDF files that contain data of ndarrays ("Low-level file layout": Exploded form). If an
//! ndarray's `source` is a URI, its elements are in the first block of that file.

use std::sync::{Arc, Mutex, MutexGuard};

use lru::LruCache;

use crate::asdf::compression::chunk_table::SharedChunkTables;
use crate::asdf::content::BlockContents;
use crate::asdf::{chain, header};
use crate::error::{Cause, Error, Result, quote};
use crate::limits;
use crate::memory::lock::lock;
use crate::memory::request_budget::RequestBudget;
use crate::source::SharedSource;
use crate::source::identity::Identity;
use crate::source::local::descriptors::max_open_files;
use crate::source::neighbours::Neighbours;
use crate::source::neighbours::neighbour::Neighbour;

/// A file with its first block, or the error of reading that block. A damaged file also stays open,
/// so that a change of the file is detected.
type OpenedFile = (Arc<Neighbour>, Result<Arc<BlockContents>>);

/// The other ASDF files that the ndarrays of one file refer to, opened when they are needed. The
/// neighbours decide which files may be opened. The most recently used files stay open. A file with
/// several names is opened once.
#[derive(Debug)]
pub(crate) struct ExternalFiles {
    neighbours: Arc<Neighbours>,
    tables: SharedChunkTables,
    files: Mutex<LruCache<Identity, OpenedFile>>,
}

impl ExternalFiles {
    /// Creates the set of other files of one ASDF file. No file is open yet.
    pub(crate) fn new(neighbours: Arc<Neighbours>, tables: SharedChunkTables) -> Self {
        ExternalFiles {
            neighbours,
            tables,
            files: Mutex::new(LruCache::sparse(max_open_files(limits::OPEN_NEIGHBOURS))),
        }
    }

    fn files(&self) -> MutexGuard<'_, LruCache<Identity, OpenedFile>> {
        lock(&self.files)
    }

    /// Opens the file called `name` and returns its first block. The work is charged to `budget`.
    ///
    /// # Errors
    /// `Io` if the file is missing or may not be opened. [`Error::cancelled`] once the request of
    /// `budget` is cancelled. Otherwise fails if it is not an ASDF file.
    pub(crate) fn open(&self, name: &[u8], budget: &RequestBudget) -> Result<Arc<BlockContents>> {
        let cancel = budget.cancel_token();
        let is_wanted = || !cancel.is_cancelled();
        let Some(file) = self.neighbours.open(name, &is_wanted)? else {
            let what = format!("other ASDF file {}: missing", quote(name));
            return Err(Error::from_cause(Cause::Missing, what));
        };
        let state = file.opened_identity();
        if let Some((_, known)) = self.files().get(&state) {
            return known.clone();
        }
        let block = first_block(Arc::<Neighbour>::clone(&file), &self.tables, budget);
        let found = block.map(Arc::new);
        let is_passing = matches!(&found, Err(error) if error.is_transient());
        if is_passing || budget.is_exhausted() {
            return found;
        }
        let mut files = self.files();
        files.get_or_insert(state, || (file, found)).1.clone()
    }
}

fn first_block(
    source: SharedSource,
    tables: &SharedChunkTables,
    budget: &RequestBudget,
) -> Result<BlockContents> {
    let header = header::read(&*source)?;
    budget.spend(header.end)?;
    let blocks = chain::list_first_block(&*source, header.end)?;
    Ok(BlockContents::new(source, blocks, tables))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::local::audience::Readers;
    use crate::source::neighbours::policy::OtherFilesPolicy;

    #[test]
    fn a_file_with_several_names_is_opened_once() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let block = [&b"\xd3BLK\0\x30\0\0\0\0"[..], &[0; 44]].concat();
        let bytes = |blocks| [b"#ASDF 1.0.0\n".to_vec(), block.repeat(blocks)].concat();
        std::fs::write(top.join("a"), bytes(3)).unwrap();
        std::fs::hard_link(top.join("a"), top.join("b")).unwrap();
        std::fs::write(top.join("none"), "none").unwrap();
        let source = top.join("source");
        let neighbours = Neighbours::new(
            &source,
            OtherFilesPolicy::WithinDirectory,
            None,
            Readers::Owner,
        );
        let externals = ExternalFiles::new(Arc::new(neighbours), SharedChunkTables::default());
        let open = |name: &[u8]| externals.open(name, &RequestBudget::default());
        let first = open(b"a").unwrap();
        assert_eq!(first.blocks().list.len(), 1, "the others are not looked at");
        for name in ["./a", "b"] {
            let other = open(name.as_bytes()).unwrap();
            assert!(Arc::ptr_eq(&first, &other), "{name}");
        }
        for _ in 0..2 {
            open(b"none").unwrap_err();
        }
        assert_eq!(externals.files().len(), 2);
        std::fs::write(top.join("a"), bytes(4)).unwrap();
        let stale = open(b"b").unwrap_err();
        assert!(stale.is_transient(), "{stale}");
    }
}
