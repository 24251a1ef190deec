//! Opens a file to be mounted, in the format that its content has.

use std::sync::Arc;

use h5fs_reader::detect;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::source::local::audience::Readers;
use h5fs_reader::source::open::{OpenSource, SharedOpenSource};

use crate::data_files::file_state::OpenedFile;
use crate::data_files::other_files::{ContainerOpener, OtherFiles};
use crate::data_files::watch::SourceWatch;
use crate::options::Options;
use crate::stat::SourceAttributes;

/// Refuses to show a file to other users if permission bits cannot express its access control list.
/// If an access control list is added while the file is mounted, only its denials take effect.
pub(crate) fn refuse_unsupported_acl(file: &dyn OpenSource, options: &Options) -> Result<()> {
    let umask = options.umask.unwrap_or(0);
    if options.allow_other
        && file
            .acl()
            .is_some_and(|acl| acl.grants_more_than_mode(umask))
    {
        return Err(Error::Usage(
            "allow_other: permission bits cannot express its access control list; `setfacl -b` \
             removes the list, umask=077 excludes other users"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Returns a function that detects the format of an open file and parses the file.
pub(crate) fn container_opener(options: &Options) -> ContainerOpener {
    container_opener_with_caches(options, &detect::Caches::default())
}

/// Returns a function like [`container_opener`], for files that share the caches of parsed
/// structures.
pub(crate) fn container_opener_with_caches(
    options: &Options,
    caches: &detect::Caches,
) -> ContainerOpener {
    let (force, caches) = (options.force, caches.clone());
    Box::new(move |source, neighbours, _| detect::open(source, neighbours, &caches, force))
}

/// Opens the source of `watch` for a request with the token `cancel`. `file` is the source's
/// current state.
pub(crate) fn open_source(
    file: SharedOpenSource,
    watch: &SourceWatch,
    others: &OtherFiles,
    options: &Options,
    cancel: &CancelToken,
) -> Result<OpenedFile> {
    let path = watch.path();
    let attributes = file.attributes()?;
    let state = file.opened_state();
    let readers = if options.allow_other {
        Readers::All(file.audience()?.apply_umask(options.umask.unwrap_or(0)))
    } else {
        Readers::Owner
    };
    let neighbours = Arc::new(others.neighbours(watch, readers, options));
    Ok(OpenedFile {
        container: others.open_container(file, &neighbours, cancel)?,
        origin: Arc::new(
            SourceAttributes::new(path.to_path_buf(), attributes).restricted_to(readers),
        ),
        neighbours,
        state: Some(state),
        watch: None,
        shown_name: [].into(),
    })
}
