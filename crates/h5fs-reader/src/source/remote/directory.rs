//! The prefix of a URL as a directory of files.
//!
//! Directory entries come from listings; a file's object is requested when the file is opened.
//! After the file is closed, a cache keeps its object open: while the object's state is assumed to
//! be current, opening the file again needs no request. A web directory may list names without
//! metadata, so metadata is then requested for each name.

mod object_cache;

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use nix::errno::Errno;

use crate::error::{Cause, Error, Result};
use crate::limits;
use crate::memory::cancel::WantedCheck;
use crate::source::attributes::FileAttributes;
use crate::source::directory::{
    Directory, DirectoryEntries, EntryType, EntryVisitor, ListedEntry, OpenContent, OpenedSource,
    PathInfo,
};
use crate::source::identity::{Identity, ObjectIdentity};
use crate::source::local::audience::Readers;
use crate::source::mounts::mount_guard::MountGuard;
use crate::source::neighbours::Neighbours;
use crate::source::neighbours::policy::OtherFilesPolicy;
use crate::source::remote::connection::Connection;
use crate::source::remote::directory::object_cache::OpenObjectCache;
use crate::source::remote::failure::{is_missing, unexpected_reply_error};
use crate::source::remote::listings::{CachedListings, NameListing, NamedEntry, entry_bytes};
use crate::source::remote::message::{Counters, ListedType};
use crate::source::remote::object::RemoteObject;
use crate::source::remote::state::ObjectState;
use crate::wire::{Count, to_u64, to_usize};

/// Number of low bits in a listing position that count the names within a page.
const NAME_INDEX_BITS: u32 = 24;

/// Number of positions for `.` and `..`.
const DOT_ENTRIES: u64 = 2;

/// A directory that is the prefix of a URL.
#[derive(Debug, Clone)]
pub struct RemoteDirectory(Arc<Prefix>);

#[derive(Debug)]
struct Prefix {
    connection: Arc<Connection>,
    listings: CachedListings,
    objects: OpenObjectCache,
    path: PathBuf,
    /// Modification time of directories, in seconds since 1970. Stores record none, so this is the
    /// time of the mount.
    mount_time: i64,
}

/// An open directory. One page of names is in memory at a time.
struct OpenDirectory {
    directory: RemoteDirectory,
    prefix: Vec<u8>,
    /// Tokens of the pages known so far.
    pages: Vec<Vec<u8>>,
    page: Option<(usize, Arc<NameListing>)>,
    /// The names of all pages so far, for the cache, or `None` if there are too many.
    gathered: Option<GatheredNames>,
}

#[derive(Default)]
struct GatheredNames {
    names: Vec<NamedEntry>,
    bytes: u64,
    pages: usize,
}

impl RemoteDirectory {
    /// Opens the prefix of the URL of `connection`.
    ///
    /// # Errors
    /// `ENOENT` if no key starts with the prefix, or else the server's error. A web directory may
    /// be empty.
    pub fn open(connection: &Arc<Connection>) -> Result<Self> {
        let now = SystemTime::UNIX_EPOCH.elapsed();
        let seconds = now.map_or(0, |now| now.as_secs());
        let prefix = Prefix {
            connection: Arc::clone(connection),
            listings: CachedListings::new(connection),
            objects: OpenObjectCache::new(),
            path: connection.prefix(),
            mount_time: i64::try_from(seconds).unwrap_or(0),
        };
        let is_empty = prefix
            .listings
            .get_or_request(b"", &|| true)?
            .names()
            .is_empty();
        if is_empty && !prefix.listings.has_unlisted_names() {
            let name = connection.url().display().to_string();
            return Err(Error::from_io(&Errno::ENOENT.into(), name));
        }
        Ok(RemoteDirectory(Arc::new(prefix)))
    }

    fn directory_info(&self) -> PathInfo {
        let attributes = self.attributes(0o040_555, 0, self.0.mount_time);
        self.entry_info(
            EntryType::Directory,
            attributes,
            b"",
            ObjectState::default(),
        )
    }

    fn object_info(&self, path: &[u8], state: &ObjectState) -> PathInfo {
        let attributes = self.attributes(0o100_444, state.length, state.modified);
        self.entry_info(
            EntryType::File,
            attributes,
            path,
            state.to_comparable_form(),
        )
    }

    fn entry_info(
        &self,
        kind: EntryType,
        attributes: FileAttributes,
        name: &[u8],
        state: ObjectState,
    ) -> PathInfo {
        let number = state_hash(&state);
        let name = name.to_vec();
        PathInfo {
            kind,
            attributes,
            blocks: attributes.size.div_ceil(512),
            identity: Identity::Object(Arc::new(ObjectIdentity { name, state })),
            entry_id: number,
        }
    }

    fn attributes(&self, mode: u32, size: u64, modified: i64) -> FileAttributes {
        let (uid, gid) = self.0.connection.owner();
        FileAttributes {
            size,
            uid,
            gid,
            mode,
            modified: (modified, 0),
        }
    }

    /// Returns the entry at `path`. In a large directory, the state of an open object is used, or
    /// the object is opened now if `may_be_opened`. In both cases, the name need not be listed.
    fn entry(
        &self,
        path: &[u8],
        may_be_opened: bool,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Option<ListedType>> {
        let is_object = || {
            let object = match self.0.objects.get_unchanged(path) {
                None if may_be_opened => self.open_object(path, None, false, is_wanted)?,
                kept => kept,
            };
            Ok(object.map(|object| ListedType::Object(object.object_state().clone())))
        };
        let named = self.0.listings.entry_at(path, is_wanted, is_object);
        named.map_err(missing_to_not_found)
    }

    /// Opens the object at `path` on the server, and keeps it open. `length` is the expected
    /// length. Returns `None` if the object does not exist.
    fn open_object(
        &self,
        path: &[u8],
        length: Option<u64>,
        is_read: bool,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Option<Arc<RemoteObject>>> {
        let connection = &self.0.connection;
        let found = match length {
            Some(length) => RemoteObject::find_with_length(connection, path, length, is_wanted)?,
            None => RemoteObject::find(connection, path, is_wanted)?,
        };
        let found = found.map(Arc::new);
        if let Some(object) = &found {
            self.0.objects.insert(path, object, is_read);
        }
        Ok(found)
    }

    fn path_info(&self, path: &Path, may_be_opened: bool) -> Result<PathInfo> {
        let path = path.as_os_str().as_bytes();
        if path.is_empty() {
            return Ok(self.directory_info());
        }
        let found = self.entry(path, may_be_opened, &|| true)?;
        let found = found.ok_or(Error::NotFound)?;
        self.listed_info(path, &found)
            .ok_or_else(unexpected_reply_error)
    }

    /// Converts an entry to metadata. Returns `None` if the listing has no metadata for the entry.
    fn listed_info(&self, path: &[u8], named: &ListedType) -> Option<PathInfo> {
        match named {
            ListedType::Prefix => Some(self.directory_info()),
            ListedType::Object(state) => Some(self.object_info(path, state)),
            ListedType::ObjectWithoutMetadata => None,
        }
    }
}

impl Directory for RemoteDirectory {
    fn path(&self) -> &Path {
        &self.0.path
    }

    fn is_remote(&self) -> bool {
        true
    }

    /// Returns the metadata of the entry. Ignores `_for_others`, because all users of the mount may
    /// read the entry.
    fn path_info(&self, path: &Path, _for_others: bool) -> Result<PathInfo> {
        self.path_info(path, false)
    }

    /// Returns the metadata of an entry whose content will probably be read next. Only a mount
    /// opens the object here, because a command opens the file in another process.
    fn path_info_before_read(&self, path: &Path, _for_others: bool) -> Result<PathInfo> {
        let is_mounted = self.0.connection.is_mounted();
        self.path_info(path, is_mounted && self.0.objects.may_open_unread())
    }

    /// Always fails with `EINVAL`, because object stores have no symbolic links.
    fn read_link(&self, path: &Path) -> Result<OsString> {
        let name = path.display().to_string();
        Err(Error::from_io(&Errno::EINVAL.into(), name))
    }

    fn open(&self, path: &Path, is_wanted: &WantedCheck<'_>) -> Result<OpenedSource> {
        let name = path.as_os_str().as_bytes();
        let known = match self.entry(name, true, is_wanted)? {
            Some(ListedType::Object(state)) => state,
            Some(ListedType::Prefix) => {
                let name = path.display().to_string();
                return Err(Error::from_io(&Errno::EISDIR.into(), name));
            }
            Some(ListedType::ObjectWithoutMetadata) => return Err(unexpected_reply_error()),
            None => return Err(Error::NotFound),
        };
        let (listings, objects) = (&self.0.listings, &self.0.objects);
        let is_known = |object: &RemoteObject| {
            object.object_state().to_comparable_form() == known.to_comparable_form()
        };
        let kept = objects
            .get_unchanged(name)
            .filter(|object| is_known(object));
        let object = match kept {
            Some(object) => {
                objects.insert(name, &object, true);
                Some(object)
            }
            None => self.open_object(name, Some(known.length), true, is_wanted)?,
        };
        let Some(object) = object else {
            listings.cache_lookup(name, None);
            return Err(Error::NotFound);
        };
        if !is_known(&object) {
            let state = object.object_state().clone();
            listings.cache_lookup(name, Some(ListedType::Object(state)));
        }
        let number = state_hash(&object.object_state().to_comparable_form());
        let content = OpenContent::Object(object);
        Ok(OpenedSource {
            content,
            entry_id: number,
        })
    }

    fn list(&self, path: &Path) -> Result<Box<dyn DirectoryEntries>> {
        let mut prefix = path.as_os_str().as_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        Ok(Box::new(OpenDirectory {
            directory: self.clone(),
            prefix,
            pages: vec![Vec::new()],
            page: None,
            gathered: Some(GatheredNames::default()),
        }))
    }

    fn forget_listings(&self) {
        self.0.listings.forget();
    }

    fn neighbours(
        &self,
        policy: OtherFilesPolicy,
        _guard: Option<MountGuard>,
        readers: Readers,
    ) -> Neighbours {
        let first = self.0.path.join("first");
        Neighbours::for_object(&first, &self.0.connection, policy, readers)
    }

    fn counters(&self) -> Option<Counters> {
        self.0.connection.counters().ok()
    }

    fn unanswered_since(&self) -> Option<SystemTime> {
        self.0.connection.unanswered_since()
    }
}

impl DirectoryEntries for OpenDirectory {
    fn visit(&mut self, position: u64, visit: &mut EntryVisitor<'_>) -> Result<()> {
        for (name, next) in [(&b"."[..], 1), (b"..", DOT_ENTRIES)] {
            let listed = ListedEntry {
                name,
                is_directory: true,
                info: None,
                next,
            };
            if position < next && visit(&listed) {
                return Ok(());
            }
        }
        let place = position.minus_or_zero(DOT_ENTRIES);
        let mut number = place >> NAME_INDEX_BITS;
        let mut from = to_usize(place & ((1 << NAME_INDEX_BITS) - 1))?;
        while let Some(page) = self.page(to_usize(number)?)? {
            for (name, named) in page.names().get(from..).unwrap_or_default() {
                from = from.plus_one();
                let path = [&self.prefix, &**name].concat();
                let listed = ListedEntry {
                    name,
                    is_directory: *named == ListedType::Prefix,
                    info: self.directory.listed_info(&path, named),
                    next: DOT_ENTRIES.plus(number << NAME_INDEX_BITS | to_u64(from)),
                };
                if visit(&listed) {
                    return Ok(());
                }
            }
            (number, from) = (number.plus_one(), 0);
        }
        Ok(())
    }
}

impl OpenDirectory {
    /// Returns the page with this number, which is at most the number of pages read so far. Returns
    /// `None` after the last page.
    fn page(&mut self, number: usize) -> Result<Option<Arc<NameListing>>> {
        if let Some((own, page)) = &self.page
            && *own == number
        {
            return Ok(Some(Arc::clone(page)));
        }
        Error::check_room(number, limits::LISTED_PAGES, "pages of a listing")?;
        let Some(after) = self.pages.get(number) else {
            return Ok(None);
        };
        let listings = &self.directory.0.listings;
        let page = match number {
            0 => listings.get_or_request(&self.prefix, &|| true)?,
            _ => Arc::new(listings.request_page(&self.prefix, after, &|| true)?),
        };
        let is_new = self.pages.len() == number.plus_one();
        if is_new && !page.is_whole() {
            let next = page.next();
            // A repeated token means that the listing is a cycle.
            if self.pages.iter().any(|place| place == next) {
                let text = "the server's listing has no end";
                return Err(Error::from_cause(Cause::Unavailable, text));
            }
            self.pages.push(next.to_vec());
        }
        self.gather(number, &page);
        self.page = Some((number, Arc::clone(&page)));
        Ok(Some(page))
    }

    /// Adds a page to the gathered names. After the last page, caches the whole listing.
    fn gather(&mut self, number: usize, page: &NameListing) {
        let Some(gathered) = &mut self.gathered else {
            return;
        };
        if gathered.pages != number {
            return;
        }
        gathered.pages = gathered.pages.plus_one();
        gathered.names.extend_from_slice(page.names());
        let bytes: u64 = page.names().iter().map(entry_bytes).sum();
        gathered.bytes = gathered.bytes.plus(bytes);
        let is_first = number == 0;
        if page.is_whole() || gathered.bytes > limits::LISTED_BYTES {
            let is_kept = page.is_whole() && !is_first && gathered.bytes <= limits::LISTED_BYTES;
            let names = std::mem::take(&mut gathered.names);
            self.gathered = None;
            if is_kept {
                let whole = Arc::new(NameListing::new(names, Vec::new()));
                self.directory.0.listings.cache_listing(&self.prefix, whole);
            }
        }
    }
}

fn state_hash(state: &ObjectState) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

/// Converts the server's error for a missing bucket or prefix to `NotFound`. Returns any other
/// error unchanged.
fn missing_to_not_found(error: Error) -> Error {
    if is_missing(&error) {
        Error::NotFound
    } else {
        error
    }
}
