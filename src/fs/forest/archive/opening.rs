//! How a data file of an archive is opened: as a filesystem of its own, whose links to other files
//! of the archive lead there.

use std::path::Path;
use std::sync::Arc;

use crate::array::Engine;
use crate::detect;
use crate::error::Result;
use crate::fs::filesystem::Filesystem;
use crate::fs::forest::archive::members::Opening;
use crate::fs::forest::indexes::Indexes;
use crate::fs::forest::mount::Shared;
use crate::fs::forest::opening::{open_source, opener_with};
use crate::fs::forest::other_files::{Beside, OtherFiles};
use crate::fs::forest::watch::{Reopen, Watch};
use crate::fs::options::Options;
use crate::fs::state::errors::Errors;
use crate::source::directory::Directory;
use crate::source::local::changes::Changes;
use crate::source::neighbours::Neighbours;

/// Opens data files.
pub(super) struct Opener {
    root: Arc<dyn Directory>,
    shared: Shared,
    caches: detect::Caches,
    changes: Option<Arc<Changes>>,
    /// The neighbours of a file in the directory.
    neighbours: Arc<Neighbours>,
    /// Of all files.
    errors: Arc<Errors>,
    options: Options,
}

impl Opener {
    pub(super) fn new(
        root: &Arc<dyn Directory>,
        (engine, errors): (&Arc<Engine>, &Arc<Errors>),
        changes: Option<Arc<Changes>>,
        options: &Options,
    ) -> Self {
        let neighbours = root.neighbours(options.external, options.guard.clone());
        Opener {
            neighbours: Arc::new(neighbours.watched_by(changes.clone())),
            root: Arc::clone(root),
            shared: Shared {
                engine: Arc::clone(engine),
                indexes: Arc::new(Indexes::default()),
            },
            caches: detect::Caches::default(),
            changes,
            errors: Arc::clone(errors),
            options: options.clone(),
        }
    }

    /// Opens the data file that `opening` tells of.
    ///
    /// # Errors
    /// Fails if it cannot be opened, or is of no known format, or its root is damaged.
    pub(super) fn open(&self, opening: &Opening<'_>) -> Result<Filesystem> {
        let absolute = self.root.absolute(opening.path);
        let options = &self.options;
        let open = self.opens(opening.path);
        let watch = Watch::over(&absolute, open()?)
            .told_by(self.changes.clone())
            .reopened_by(open);
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
            (shared, generation, self.errors.of_file(opening.path)),
        ))
    }

    /// Opens the file now, and again once it has changed.
    fn opens(&self, path: &Path) -> Reopen {
        let (root, changes) = (Arc::clone(&self.root), self.changes.clone());
        let (path, absolute) = (path.to_path_buf(), self.root.absolute(path));
        Box::new(move || {
            root.open(&path)?
                .content
                .source(&absolute, changes.as_ref())
        })
    }
}
