//! The source datasets of a virtual dataset, in other files or in the same file.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use crate::error::{Cause, Error, Result, quote};
use crate::hdf5::file::opening::OpeningBudget;
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::memory::request_budget::RequestBudget;
use crate::memory::shared_lru::FileLru;
use crate::model::array::{OpenVirtualSource, VirtualSource};
use crate::model::{Container, NodeKind, paths};
use crate::source::SharedSource;
use crate::source::local::descriptors::weight_per_open_file;
use crate::source::neighbours::Neighbours;
use crate::wire::{Count, to_u64};

/// A file that contains source datasets of virtual datasets.
pub(crate) trait VirtualSourceFile: Container {
    /// Returns a view of the file for a request whose metadata reads are charged to `budget`.
    /// `opening` is the budget for reading the metadata of virtual datasets.
    fn container_for_request(
        &self,
        budget: &RequestBudget,
        opening: &OpeningBudget,
    ) -> Arc<dyn Container>;
}

/// An opener for files that another file references.
pub(crate) trait OtherFileOpener: fmt::Debug + Send + Sync {
    /// Opens the file in `source`. Files that it references are looked up in `neighbours`. Metadata
    /// reads are charged to `budget`. `opening` is the budget for reading the metadata of virtual
    /// datasets.
    ///
    /// # Errors
    /// Fails if the file is damaged or unsupported.
    fn open(
        &self,
        source: SharedSource,
        neighbours: Arc<Neighbours>,
        budget: &RequestBudget,
        opening: &OpeningBudget,
    ) -> Result<Arc<dyn VirtualSourceFile>>;
}

/// The files that the datasets of one file reference. Recently used files stay open.
#[derive(Debug)]
pub(crate) struct OtherFiles {
    owner: Weak<dyn VirtualSourceFile>,
    neighbours: Arc<Neighbours>,
    opener: Box<dyn OtherFileOpener>,
    open_files: FileLru<Vec<u8>, Arc<dyn VirtualSourceFile>>,
    /// The budget for opening sources while elements are read. It is the full budget, because no
    /// virtual dataset is being described at that time.
    opening: OpeningBudget,
}

impl OtherFiles {
    /// Creates the set of files that the file `own` references. The files are looked up in
    /// `neighbours`, and `open` is the cache of open files.
    pub(crate) fn new(
        own: Weak<dyn VirtualSourceFile>,
        neighbours: Arc<Neighbours>,
        opener: Box<dyn OtherFileOpener>,
        open: FileLru<Vec<u8>, Arc<dyn VirtualSourceFile>>,
        opening: OpeningBudget,
    ) -> Self {
        OtherFiles {
            owner: own,
            neighbours,
            opener,
            open_files: open,
            opening,
        }
    }

    pub(crate) fn neighbours(&self) -> &Arc<Neighbours> {
        &self.neighbours
    }

    /// Returns the file called `name`, where `.` means the referencing file itself. Returns `None`
    /// if the file does not exist.
    fn open_file(
        &self,
        name: &[u8],
        budget: &RequestBudget,
        opening: &OpeningBudget,
    ) -> Result<Option<Arc<dyn VirtualSourceFile>>> {
        if name == b"." {
            let closed = || Error::from_cause(Cause::Stale, "the file itself");
            return self.owner.upgrade().map(Some).ok_or_else(closed);
        }
        let key = normalize_path(name);
        if let Some(file) = self.open_files.get(key.clone()) {
            return Ok(Some(file));
        }
        let cancel = budget.cancel_token();
        let is_wanted = || !cancel.is_cancelled();
        let Some((source, neighbours)) = self.neighbours.open_with_neighbours(name, &is_wanted)?
        else {
            return Ok(None);
        };
        let neighbours = Arc::new(neighbours);
        let file = self.opener.open(source, neighbours, budget, opening)?;
        let kept = Arc::clone(&file);
        let weight = weight_per_open_file(limits::VIRTUAL_SOURCES, limits::OPEN_VIRTUAL_SOURCES);
        self.open_files.put(key, kept, weight);
        Ok(Some(file))
    }
}

/// Normalizes a path: `./a//b` becomes `a/b`.
fn normalize_path(name: &[u8]) -> Vec<u8> {
    let path: PathBuf = Path::new(OsStr::from_bytes(name)).components().collect();
    path.into_os_string().into_vec()
}

/// A source dataset of a virtual dataset.
#[derive(Debug)]
pub(crate) struct SourceDataset {
    /// The files that the file of the virtual dataset references.
    pub(crate) files: Arc<OtherFiles>,
    /// The name of the source's file, in the bytes that the virtual dataset stores. `.` means the
    /// file of the virtual dataset itself.
    pub(crate) file: Arc<[u8]>,
    /// The path of the source dataset from the root of its file.
    pub(crate) path: Arc<[u8]>,
}

impl SourceDataset {
    /// Opens the source dataset for a request whose metadata reads are charged to `budget`.
    /// `opening` is the budget of the virtual dataset that the source belongs to. Returns `None` if
    /// the file or the dataset does not exist.
    ///
    /// # Errors
    /// Fails as [`open`](VirtualSource::open) does. `Limit` if the budget `opening` is exhausted.
    pub(crate) fn open_with_budget(
        &self,
        budget: &RequestBudget,
        opening: &OpeningBudget,
    ) -> Result<Option<OpenVirtualSource>> {
        let opening = opening.nested_source()?;
        let Some(file) = self.files.open_file(&self.file, budget, &opening)? else {
            return Ok(None);
        };
        let opened = file.container_for_request(budget, &opening);
        let Some(id) = paths::resolve_path(&*opened, opened.root(), &self.path)? else {
            return Ok(None);
        };
        match &opened.node(id)?.kind {
            NodeKind::Array(array) => Ok(Some(OpenVirtualSource {
                array: Arc::clone(array),
                file: Some(Arc::new(file)),
                recode: None,
            })),
            _ => Err(Error::corrupt(
                "the source of a virtual dataset is not a dataset",
                id.number(),
            )),
        }
    }
}

impl VirtualSource for SourceDataset {
    fn open(&self, cancel: &CancelToken) -> Result<Option<OpenVirtualSource>> {
        let (budget, _granted) = RequestBudget::unlimited_until_cancelled(cancel);
        let found = self.open_with_budget(&budget, &self.files.opening)?;
        if found.is_none() {
            self.files.neighbours.record_missing_part(&self.name())?;
        }
        Ok(found)
    }

    fn name(&self) -> String {
        format!("{}:{}", quote(&self.file), quote(&self.path))
    }

    fn is_in_other_file(&self) -> bool {
        *self.file != *b"."
    }

    fn weight(&self) -> u64 {
        let names = self.file.len().plus(self.path.len());
        to_u64(names.plus(size_of::<Self>()))
    }
}
