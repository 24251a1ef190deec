//! A source as the parsing process opens it: with the privileges of the user that called the
//! program, before the process enters its sandbox. No byte of the source has been read.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::directory::Directory;
use h5fs_reader::source::local::changes::ChangeWatcher;
use h5fs_reader::source::local::local_directory::LocalDirectory;
use h5fs_tree::{
    Archive, External, Filesystem, MountGuard, MountProcess, Options, ServedTree, UnreadSource,
};

use crate::cli::mount::opener;
use crate::cli::mount::remote_source::RemoteSource;
use crate::cli::options::{self, Settings};
use crate::cli::sandbox::{self, SourceUser};
use crate::limits;

/// An open source that has not been read yet.
pub(in crate::cli) enum MountSource {
    File(UnreadSource),
    /// A directory, with a watch for changes of its files. The sandbox forbids creating the watch
    /// later.
    Directory(LocalDirectory, Option<Arc<ChangeWatcher>>),
    Object(RemoteSource),
}

impl MountSource {
    /// Opens the file or the directory at `path`.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub(in crate::cli) fn open(path: &Path, settings: &Settings) -> Result<Self> {
        let failed = |error| Error::from_io(&error, path.display().to_string());
        if path.is_dir() {
            let path = path.canonicalize().map_err(failed)?;
            let directory = LocalDirectory::open(&path).map_err(failed)?;
            return Ok(MountSource::Directory(directory, ChangeWatcher::new()));
        }
        Ok(MountSource::File(with_opener(
            UnreadSource::open(path)?,
            settings,
        )?))
    }

    /// Returns the path of the source on this machine, if it has one.
    pub(in crate::cli) fn path(&self) -> Option<&Path> {
        match self {
            MountSource::File(file) => Some(file.path()),
            MountSource::Directory(directory, _) => Some(directory.path()),
            MountSource::Object(_) => None,
        }
    }

    /// Returns whether the files of the source would be hidden by a mount at `point`.
    pub(in crate::cli) fn is_hidden_by(&self, point: &Path) -> bool {
        matches!(self, MountSource::Directory(directory, _) if directory.path().starts_with(point))
    }

    /// Returns the description of the source with which the process enters its sandbox. The user
    /// `run_as`, if set, reads the source instead of its owner.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub(in crate::cli) fn sandbox_source(
        &self,
        run_as: Option<u32>,
    ) -> Result<sandbox::ShownSource<'_>> {
        let (path, owner, is_directory) = match self {
            MountSource::File(file) => (file.path(), file.owner()?, false),
            MountSource::Directory(directory, _) => {
                let there = directory.path_info(Path::new(""), false)?;
                (directory.path(), there.attributes.uid, true)
            }
            MountSource::Object(object) => return Ok(object.sandbox_source(run_as)),
        };
        Ok(sandbox::ShownSource {
            path,
            reader: run_as.map_or(SourceUser::Owner(owner), SourceUser::Chosen),
            is_directory,
        })
    }

    /// Returns the options that apply in a sandboxed process.
    pub(in crate::cli) fn sandbox_options(&self, options: &Options) -> Options {
        match self {
            MountSource::Object(_) => RemoteSource::sandbox_options(options),
            MountSource::File(_) | MountSource::Directory(..) => options.clone(),
        }
    }

    /// Reads the source and returns its tree. Adds warnings for the user who mounts to `warnings`.
    ///
    /// # Errors
    /// Fails if the source is not a data file, or if its root is damaged.
    pub(in crate::cli) fn open_tree(
        self,
        mut options: Options,
        warnings: &mut Vec<String>,
    ) -> Result<ServedTree> {
        let file = match self {
            MountSource::File(file) => file,
            MountSource::Object(object) => {
                let (served, connection) = object.open_tree(&mut options)?;
                warnings.extend(connection.warnings());
                return Ok(served);
            }
            MountSource::Directory(directory, changes) => {
                let archive = Archive::new(Arc::new(directory), changes, &options);
                return Ok(ServedTree::Archive(Box::new(archive)));
            }
        };
        let filesystem = Filesystem::from_source(file, &options)?;
        Ok(ServedTree::File(Box::new(filesystem)))
    }
}

/// Starts the opener if the sandbox permits no file, so that the source can be opened again after a
/// change. The opener is started before the mount is made, so that it inherits no descriptor of the
/// mount.
fn with_opener(source: UnreadSource, settings: &Settings) -> Result<UnreadSource> {
    if !settings.no_sandbox && settings.external == External::None {
        let reader = settings.run_as.map_or_else(|| source.owner(), Ok)?;
        let opener = opener::start(source.path(), reader);
        let failed =
            |error| Error::from_io(&error, "starting the process that opens the source again");
        return Ok(source.with_reopener(opener.map_err(failed)?));
    }
    Ok(source)
}

/// Returns the options of the filesystem. `guard` identifies the mount, if there is one. `scans` is
/// the cache file for scan results of a directory's files.
pub(in crate::cli) fn filesystem_options(
    settings: &Settings,
    guard: Option<MountGuard>,
    scans: Option<Arc<File>>,
) -> Options {
    Options {
        open_files: settings.open_files.unwrap_or(limits::OPEN_MEMBERS),
        uid: settings.uid,
        gid: settings.gid,
        umask: settings.umask,
        direct_io: settings.direct_io,
        cache_size: settings
            .cache_size
            .map_or_else(options::default_cache_size, Into::into),
        threads: settings.threads.unwrap_or_else(options::default_threads),
        views: !settings.no_views,
        external: settings.external,
        guard,
        allow_other: settings.allow_other,
        verify: settings.verify,
        force: settings.force,
        strict: settings.strict,
        partial: settings.partial,
        ordered: false,
        scripts: false,
        scans,
        process: Some(MountProcess::open()),
    }
}
