//! How a data file of an archive is opened: as a filesystem of its own, whose links to other files
//! of the archive lead there.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::array::Engine;
use crate::detect;
use crate::error::{Error, Result};
use crate::fs::archive::members::Opening;
use crate::fs::filesystem::Filesystem;
use crate::fs::indexes::Indexes;
use crate::fs::mount::Shared;
use crate::fs::opening::{open_source, opener_with};
use crate::fs::options::Options;
use crate::fs::other_files::{Beside, OtherFiles};
use crate::fs::watch::Watch;
use crate::source::beneath::Beneath;
use crate::source::changes::Changes;
use crate::source::file::FileSource;
use crate::source::neighbours::Neighbours;

/// Opens data files.
pub(super) struct Opener {
    root: Arc<Beneath>,
    shared: Shared,
    caches: detect::Caches,
    changes: Option<Arc<Changes>>,
    /// The neighbours of a file in the directory.
    neighbours: Arc<Neighbours>,
    options: Options,
}

impl Opener {
    pub(super) fn new(
        root: &Arc<Beneath>,
        engine: &Arc<Engine>,
        changes: Option<Arc<Changes>>,
        options: &Options,
    ) -> Self {
        // Which file of the directory is said to come first is the same.
        let first = root.path().join("first");
        let neighbours = Neighbours::of(&first, options.external, options.guard.clone());
        Opener {
            neighbours: Arc::new(neighbours.watched_by(changes.clone())),
            root: Arc::clone(root),
            shared: Shared {
                engine: Arc::clone(engine),
                indexes: Arc::new(Indexes::default()),
            },
            caches: detect::Caches::default(),
            changes,
            options: options.clone(),
        }
    }

    /// Opens the data file that `opening` tells of.
    ///
    /// # Errors
    /// As it cannot be opened, or is of no known format, or its root is damaged.
    pub(super) fn open(&self, opening: &Opening<'_>) -> Result<Filesystem> {
        let absolute = self.root.absolute(opening.path);
        let options = &self.options;
        let watch = Watch::over(&absolute, Arc::new(self.file(opening.path)?))
            .told_by(self.changes.clone())
            .opened_again_by(self.again(opening.path));
        if !options.force {
            detect::refuse_locked(&*watch.file())?;
        }
        let now = watch.identity();
        let seen = opening.seen.as_ref();
        let generation = seen.map_or(0, |seen| seen.generation_in(&now));
        let others = OtherFiles::new(&absolute, opener_with(options, &self.caches)).of_member(
            Arc::clone(opening.inodes),
            Beside::new(self.root.path(), opening.path, &self.neighbours),
        );
        let opened = open_source(watch.file(), &watch, &others, options)?;
        let shared = self.shared.clone();
        Ok(Filesystem::member(
            opened,
            options,
            others,
            watch,
            (shared, generation),
        ))
    }

    fn file(&self, path: &Path) -> Result<FileSource> {
        let absolute = self.root.absolute(path);
        let opened = self.root.open_file(path);
        let file = opened.map_err(|error| Error::io(&error, absolute.display().to_string()))?;
        FileSource::from_file(file, &absolute, self.changes.as_ref())
    }

    /// Opens the file again once it has changed.
    fn again(&self, path: &Path) -> Box<dyn Fn() -> io::Result<std::fs::File> + Send + Sync> {
        let (root, path) = (Arc::clone(&self.root), path.to_path_buf());
        Box::new(move || root.open_file(&path))
    }
}
