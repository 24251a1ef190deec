//! Opens a data file of an archive as a filesystem of its own. External links to other data files
//! of the archive lead to the directories of those data files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use h5fs_joined::choice::JoinChoice;
use h5fs_joined::{ScanOptions, join};
use h5fs_reader::array::Engine;
use h5fs_reader::detect;
use h5fs_reader::error::line::escape_to_one_line;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::directory::Directory;
use h5fs_reader::source::local::audience::{Audience, Readers};
use h5fs_reader::source::local::changes::ChangeWatcher;
use h5fs_reader::source::neighbours::Neighbours;

use crate::archive::entry_inspector::EntryInspector;
use crate::archive::joined::JoinedFiles;
use crate::archive::joined::member::{ListingOpener, MemberOptions};
use crate::archive::joined::progress::ScanProgress;
use crate::archive::members::OpeningArguments;
use crate::data_files::indexes::PathIndexes;
use crate::data_files::mount::{MISSING_FILES_TARGET, SharedResources};
use crate::data_files::opening::{container_opener_with_caches, open_source};
use crate::data_files::other_files::{self, ArchiveLocation, OtherFiles};
use crate::data_files::watch::{SourceReopener, SourceWatch};
use crate::filesystem::Filesystem;
use crate::limits;
use crate::name::VIEWS;
use crate::options::Options;
use crate::state::errors::{ErrorKind, RecentErrors};

/// Opens the data files of an archive.
pub(super) struct MemberOpener {
    root: Arc<dyn Directory>,
    inspector: Arc<EntryInspector>,
    /// Progress of scanning the data files to join them.
    progress: Arc<ScanProgress>,
    shared: SharedResources,
    caches: detect::Caches,
    changes: Option<Arc<ChangeWatcher>>,
    /// The resolver for names of other files that a data file in the directory references.
    neighbours: Arc<Neighbours>,
    /// Errors of all data files of the directory.
    errors: Arc<RecentErrors>,
    options: Options,
}

impl MemberOpener {
    pub(super) fn new(
        (root, look): (&Arc<dyn Directory>, &Arc<EntryInspector>),
        progress: &Arc<ScanProgress>,
        (engine, errors): (&Arc<Engine>, &Arc<RecentErrors>),
        changes: Option<Arc<ChangeWatcher>>,
        options: &Options,
    ) -> Self {
        // This resolver never opens a file. Each data file gets a resolver of its own, for the
        // users who may read that data file.
        let readers = Readers::All(Audience::all_users());
        let neighbours = root.neighbours(options.external, options.guard.clone(), readers);
        MemberOpener {
            neighbours: Arc::new(neighbours.with_watcher(changes.clone())),
            root: Arc::clone(root),
            inspector: Arc::clone(look),
            progress: Arc::clone(progress),
            shared: SharedResources {
                engine: Arc::clone(engine),
                indexes: Arc::new(PathIndexes::default()),
            },
            caches: detect::Caches::default(),
            changes,
            errors: Arc::clone(errors),
            options: options.clone(),
        }
    }

    /// Opens the data file described by `opening`.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, its format is unknown, or its root is damaged.
    pub(super) fn open(&self, opening: &OpeningArguments<'_>) -> Result<Filesystem> {
        if opening.is_joined {
            return self.open_joined(opening);
        }
        let absolute = self.root.absolute_path(opening.path);
        let options = &self.options;
        let open = self.source_reopener(opening.path);
        let watch = SourceWatch::from_file(&absolute, open(opening.cancel)?)
            .with_changes(self.changes.clone())
            .with_cancellable_reopener(open);
        if !options.force {
            detect::refuse_locked(&*watch.file())?;
        }
        let now = watch.identity();
        let seen = opening.last_seen.as_ref();
        let generation = seen.map_or(0, |seen| seen.generation_for_identity(&now));
        let others = OtherFiles::new(
            &absolute,
            container_opener_with_caches(options, &self.caches),
        )
        .for_member(
            Arc::clone(opening.inodes),
            ArchiveLocation::new(self.root.path(), opening.path, &self.neighbours),
        );
        let opened = open_source(watch.file(), &watch, &others, options, opening.cancel)?;
        let shared = self.shared.clone();
        Ok(Filesystem::from_member(
            opened,
            options,
            others,
            watch,
            (shared, generation, self.errors.for_file(opening.path)),
        ))
    }

    /// Opens the joined file whose name `opening` contains; the name selects the data files to
    /// join.
    fn open_joined(&self, opening: &OpeningArguments<'_>) -> Result<Filesystem> {
        let name = opening.path.as_os_str().as_bytes();
        let choice = JoinChoice::parse(name).ok_or(Error::NotFound)?;
        let place = Path::new(OsStr::from_bytes(VIEWS)).join(opening.path);
        let files = JoinedFiles::new(
            (&self.root, &self.inspector),
            choice,
            &self.progress,
            &self.options,
        );
        let reopened = Arc::clone(&files);
        let open: SourceReopener = Box::new(move |cancel| reopened.open(cancel));
        let absolute = self.root.absolute_path(&place);
        let watch = SourceWatch::from_file(&absolute, open(opening.cancel)?)
            .with_cancellable_reopener(open);
        let now = watch.identity();
        let generation = opening
            .last_seen
            .as_ref()
            .map_or(0, |seen| seen.generation_for_identity(&now));
        let errors = self.errors.for_file(&place);
        let join = self.joined_file_opener(files, errors.clone());
        let others = OtherFiles::new(&absolute, join).for_member(
            Arc::clone(opening.inodes),
            ArchiveLocation::new(self.root.path(), &place, &self.neighbours),
        );
        let opened = open_source(watch.file(), &watch, &others, &self.options, opening.cancel)?;
        let shared = (self.shared.clone(), generation, errors);
        Ok(Filesystem::from_member(
            opened,
            &self.options,
            others,
            watch,
            shared,
        ))
    }

    /// Returns a function that joins the files of the most recent listing, and reports omitted
    /// files in `errors` and in the log.
    fn joined_file_opener(
        &self,
        files: Arc<JoinedFiles>,
        errors: RecentErrors,
    ) -> other_files::ContainerOpener {
        let (engine, caches) = (Arc::clone(&self.shared.engine), self.caches.clone());
        let threads = self.options.threads;
        let options = MemberOptions {
            force: self.options.force,
            verify: self.options.verify,
            partial: self.options.partial,
        };
        let kept = self.options.scans.clone();
        Box::new(move |_, neighbours, cancel| {
            cancel.require_heavy_slot()?;
            let mut tell = OmissionReporter::new(&errors);
            for (name, reason) in &files.opened_listing().omitted {
                let reason = format!("left out: {reason}");
                tell.report(ErrorKind::Refused, &escape_to_one_line(name), &reason);
            }
            let listed = ListingOpener::new(&files, neighbours, &caches, options);
            let scanning = ScanOptions {
                threads,
                cache_file: kept.as_deref(),
                cancel,
            };
            let joined = join(&engine, Box::new(listed), files.choice(), &scanning);
            files.progress.end();
            let (joined, told) = joined?;
            for told in &told {
                tell.report(ErrorKind::Unsupported, &told.subject, &told.reason);
            }
            tell.finish();
            Ok(joined)
        })
    }

    /// Returns a function that opens the data file at `path`. The watch for changes calls it to
    /// reopen the data file.
    fn source_reopener(&self, path: &Path) -> SourceReopener {
        let (root, changes) = (Arc::clone(&self.root), self.changes.clone());
        let (path, absolute) = (path.to_path_buf(), self.root.absolute_path(path));
        Box::new(move |cancel| {
            root.open(&path, &|| !cancel.is_cancelled())?
                .content
                .into_source(&absolute, changes.as_ref())
        })
    }
}

/// Reports files and variables that are omitted from a joined file, in the list of errors and in
/// the log.
struct OmissionReporter<'a> {
    errors: &'a RecentErrors,
    count: usize,
}

impl<'a> OmissionReporter<'a> {
    fn new(errors: &'a RecentErrors) -> Self {
        OmissionReporter { errors, count: 0 }
    }

    fn report(&mut self, kind: ErrorKind, object: &str, reason: &str) {
        self.errors.add(kind, object, reason);
        self.count += 1;
        if self.count <= limits::JOINED_TOLD {
            log::warn!(target: MISSING_FILES_TARGET, "{}: {reason}", self.errors.name(object));
        }
    }

    /// Logs how many reports did not appear in the log.
    fn finish(self) {
        if let Some(more @ 1..) = self.count.checked_sub(limits::JOINED_TOLD) {
            let reason = format!("{more} more are not joined; see `.h5fs/errors`");
            log::warn!(target: MISSING_FILES_TARGET, "{}: {reason}", self.errors.name("/"));
        }
    }
}
