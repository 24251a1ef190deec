//! A cache of a store's listings of names beneath a prefix. Entries expire after a while.
//!
//! Small directories are cached completely. For a large directory, only the first page is cached,
//! and each other name is looked up separately.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lru::LruCache;

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::cancel::WantedCheck;
use crate::memory::lock::lock;
use crate::source::location::{Location, Url};
use crate::source::remote::connection::Connection;
use crate::source::remote::failure::is_missing;
use crate::source::remote::message::{ListedName, ListedType};
use crate::wire::{Count, to_u64};

/// Minimum duration of a failed listing request whose failure is cached. Lookups of other names in
/// the directory then fail at once, instead of waiting for the same failure.
const MIN_CACHED_FAILURE_DURATION: Duration = Duration::from_secs(1);

/// Maximum time for which the failure of a listing is cached.
const MAX_FAILURE_VALIDITY: Duration = Duration::from_secs(10);

/// Maximum number of directories whose failed listing is cached.
const MAX_CACHED_FAILURES: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// A name, and the type of its entry.
pub(super) type NamedEntry = (Box<[u8]>, ListedType);

/// Names of a directory, sorted and distinct.
#[derive(Debug)]
pub(super) struct NameListing {
    names: Vec<NamedEntry>,
    /// Token of the next page, empty after the last page.
    next: Vec<u8>,
    since: Instant,
}

/// The cached listings of a store.
#[derive(Debug)]
pub(super) struct CachedListings {
    connection: Arc<Connection>,
    /// Whether names may exist that no listing contains, as in a web directory.
    has_others: bool,
    kept: Mutex<ListingCache>,
}

#[derive(Debug)]
struct ListingCache {
    /// All names, or the names of the first page, by prefix.
    listings: LruCache<Vec<u8>, Arc<NameListing>>,
    /// Number of bytes of all cached listings.
    bytes: u64,
    /// Names that were looked up separately, with the time of the lookup and the type of the entry,
    /// or `None` if the name does not exist.
    lookups: LruCache<Vec<u8>, (Instant, Option<ListedType>)>,
    /// Directories, or names in web directories, whose listing failed slowly. Contains the expiry
    /// time and the error.
    failed: LruCache<Vec<u8>, (Instant, Error)>,
}

impl NameListing {
    /// Creates a listing of one page or several. `next` is the token of the page after them.
    pub(super) fn new(mut names: Vec<NamedEntry>, next: Vec<u8>) -> Self {
        // If a prefix and an object have the same name, the prefix hides the object.
        let is_object = |named: &ListedType| *named != ListedType::Prefix;
        names.sort_by(|(a, one), (b, other)| (a, is_object(one)).cmp(&(b, is_object(other))));
        names.dedup_by(|(a, _), (b, _)| a == b);
        NameListing {
            names,
            next,
            since: Instant::now(),
        }
    }

    pub(super) fn names(&self) -> &[NamedEntry] {
        &self.names
    }

    pub(super) fn next(&self) -> &[u8] {
        &self.next
    }

    pub(super) fn is_whole(&self) -> bool {
        self.next.is_empty()
    }

    fn get(&self, name: &[u8]) -> Option<&ListedType> {
        let place = self.names.binary_search_by(|(own, _)| (**own).cmp(name));
        let entry = place.ok().and_then(|place| self.names.get(place));
        entry.map(|(_, named)| named)
    }

    fn bytes(&self) -> u64 {
        self.names.iter().map(entry_bytes).sum()
    }
}

/// Returns the number of bytes that a cached name occupies.
pub(super) fn entry_bytes((name, named): &NamedEntry) -> u64 {
    let own = size_of::<NamedEntry>();
    to_u64(own.plus(name.len()).plus(named.tag_bytes()))
}

impl CachedListings {
    pub(super) fn new(connection: &Arc<Connection>) -> Self {
        CachedListings {
            connection: Arc::clone(connection),
            has_others: is_web_directory(connection),
            kept: Mutex::new(ListingCache {
                listings: LruCache::unbounded(),
                bytes: 0,
                lookups: LruCache::sparse(limits::LOOKED_NAMES),
                failed: LruCache::sparse(MAX_CACHED_FAILURES),
            }),
        }
    }

    /// Returns whether names may exist that no listing contains.
    pub(super) fn has_unlisted_names(&self) -> bool {
        self.has_others
    }

    /// Requests one page of the entries whose paths start with `prefix`: the first page if `after`
    /// is empty, otherwise the page with the token `after`. The names are the parts of the paths
    /// after the last `/` of `prefix`. Names that are not valid file names are omitted.
    ///
    /// # Errors
    /// Fails with the server's error, or with [`Error::cancelled`] if `is_wanted` returns false.
    pub(super) fn request_page(
        &self,
        prefix: &[u8],
        after: &[u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<NameListing> {
        let asked = self.failure_key(prefix);
        let began = Instant::now();
        let listed = self.connection.list(prefix, after, is_wanted);
        let (names, next) = listed.inspect_err(|error| {
            let took = began.elapsed();
            if took >= MIN_CACHED_FAILURE_DURATION
                && !error.is_cancelled()
                && !is_missing(error)
                && let Some(until) = Instant::now().checked_add(took.min(MAX_FAILURE_VALIDITY))
            {
                let failure = (until, error.clone());
                lock(&self.kept).failed.put(asked.to_vec(), failure);
            }
        })?;
        lock(&self.kept).failed.pop(asked);
        let names = names.into_iter().filter_map(named_entry).collect();
        Ok(NameListing::new(names, next))
    }

    /// Returns the key of a cached failure: the directory, or for the web the name itself, because
    /// each name has its own request.
    fn failure_key<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        if self.has_others {
            path
        } else {
            split_directory(path).0
        }
    }

    /// Fails if a recent listing of the directory failed slowly. Without this check, each of its
    /// names would wait for the same failure.
    fn refuse_failed(&self, path: &[u8]) -> Result<()> {
        let failed = lock(&self.kept).failed.get(self.failure_key(path)).cloned();
        match failed {
            Some((until, error)) if Instant::now() < until => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the cached listing of the directory `prefix`: the whole listing or its first page.
    pub(super) fn cached(&self, prefix: &[u8]) -> Option<Arc<NameListing>> {
        let mut kept = lock(&self.kept);
        let known = kept.listings.get(prefix).cloned();
        known.filter(|listing| listing.since.elapsed() < self.validity())
    }

    /// Returns the listing like [`cached`](Self::cached), and requests it if it is not cached.
    ///
    /// # Errors
    /// Fails as [`request_page`](Self::request_page) does.
    pub(super) fn get_or_request(
        &self,
        prefix: &[u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Arc<NameListing>> {
        if let Some(known) = self.cached(prefix) {
            return Ok(known);
        }
        let listing = Arc::new(self.request_page(prefix, b"", is_wanted)?);
        self.cache_listing(prefix, Arc::clone(&listing));
        Ok(listing)
    }

    /// Caches the listing of the directory `prefix`.
    pub(super) fn cache_listing(&self, prefix: &[u8], listing: Arc<NameListing>) {
        let bytes = |listing: &NameListing| listing.bytes();
        let mut kept = lock(&self.kept);
        kept.bytes = kept.bytes.plus(bytes(&listing));
        let before = kept.listings.put(prefix.to_vec(), listing);
        kept.bytes = kept.bytes.minus_or_zero(before.as_deref().map_or(0, bytes));
        while kept.bytes > limits::LISTED_BYTES || kept.listings.len() > limits::LISTED_DIRECTORIES
        {
            let Some((_, gone)) = kept.listings.pop_lru() else {
                break;
            };
            kept.bytes = kept.bytes.minus_or_zero(bytes(&gone));
        }
    }

    /// Returns the entry at `path`. In a large directory, the name is looked up separately, unless
    /// `is_object` finds it first.
    ///
    /// # Errors
    /// Fails as [`request_page`](Self::request_page) does, and as `is_object` does.
    pub(super) fn entry_at(
        &self,
        path: &[u8],
        is_wanted: &WantedCheck<'_>,
        is_object: impl FnOnce() -> Result<Option<ListedType>>,
    ) -> Result<Option<ListedType>> {
        let (prefix, name) = split_directory(path);
        if !is_file_name(name) || path.len() > limits::KEY_BYTES {
            return Ok(None);
        }
        let looked = self.cached_lookup(path);
        let known = self.cached(prefix).filter(|listing| listing.is_whole());
        match (looked, known) {
            (Some((when, named)), known) if known.as_ref().is_none_or(|k| k.since < when) => {
                return Ok(named);
            }
            (Some((_, named)), _) if self.has_others => return Ok(named),
            (_, Some(listing)) => match listing.get(name) {
                None | Some(ListedType::ObjectWithoutMetadata) if self.has_others => {}
                named => return Ok(named.cloned()),
            },
            (_, None) => {}
        }
        self.refuse_failed(path)?;
        if self.has_others {
            let named = self.request_page(path, b"", is_wanted)?.get(name).cloned();
            self.cache_lookup(path, named.clone());
            return Ok(named);
        }
        // If one page contains all names of the directory, one request answers all lookups.
        let first = self.get_or_request(prefix, is_wanted)?;
        if first.is_whole() {
            return Ok(first.get(name).cloned());
        }
        let named = match is_object()? {
            Some(object) => Some(object),
            None => self.look_up_name(path, name, is_wanted)?,
        };
        self.cache_lookup(path, named.clone());
        Ok(named)
    }

    /// Caches the result of looking up the name at `path`; `None` means that it does not exist.
    pub(super) fn cache_lookup(&self, path: &[u8], named: Option<ListedType>) {
        let mut kept = lock(&self.kept);
        kept.lookups.put(path.to_vec(), (Instant::now(), named));
    }

    /// Discards all cached listings and lookups. Cached failures remain.
    pub(super) fn forget(&self) {
        let mut kept = lock(&self.kept);
        kept.listings.clear();
        kept.bytes = 0;
        kept.lookups.clear();
    }

    fn cached_lookup(&self, path: &[u8]) -> Option<(Instant, Option<ListedType>)> {
        let looked = lock(&self.kept).lookups.get(path).cloned();
        looked.filter(|(when, _)| when.elapsed() < self.validity())
    }

    /// Looks up one name of a large directory. Returns `None` if the name does not exist.
    fn look_up_name(
        &self,
        path: &[u8],
        name: &[u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Option<ListedType>> {
        let page = self.request_page(path, b"", is_wanted)?;
        let found = page.get(name).cloned();
        if found == Some(ListedType::Prefix) || page.is_whole() {
            return Ok(found);
        }
        // Other names may sort between the object and the prefix: `a`, `a-1`, `a/`.
        let beneath = self.request_page(&[path, b"/"].concat(), b"", is_wanted)?;
        if beneath.names.is_empty() {
            Ok(found)
        } else {
            Ok(Some(ListedType::Prefix))
        }
    }

    fn validity(&self) -> Duration {
        self.connection.validity()
    }
}

/// Returns whether the URL of the connection is on a web server.
fn is_web_directory(connection: &Connection) -> bool {
    let location = Location::parse(connection.url().into());
    location.is_ok_and(|location| location.url().is_some_and(Url::is_web_page))
}

fn named_entry(listed: ListedName) -> Option<NamedEntry> {
    let ListedName {
        name,
        entry_type: named,
    } = listed;
    is_file_name(&name).then(|| (name.into(), named))
}

/// Returns whether the name is a valid local file name.
fn is_file_name(name: &[u8]) -> bool {
    let is_short = (1..=limits::NAME_BYTES).contains(&name.len());
    is_short && name != b"." && name != b".." && !name.contains(&0) && !name.contains(&b'/')
}

/// Splits a path into the directory, with a `/` at its end, and the name.
fn split_directory(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    let begin = slash.map_or(0, Count::plus_one);
    path.split_at_checked(begin).unwrap_or((b"", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::remote::fake::normal_fetcher;
    use crate::source::remote::state::ObjectState;

    fn object(length: u64) -> ListedType {
        ListedType::Object(ObjectState {
            length,
            ..ObjectState::default()
        })
    }

    #[test]
    fn a_prefix_hides_the_object_of_its_name() {
        let entry = |name: &str, named| (name.as_bytes().into(), named);
        let names = vec![
            entry("b", object(1)),
            entry("a", object(2)),
            entry("a", ListedType::Prefix),
        ];
        let listing = NameListing::new(names, Vec::new());
        assert_eq!(listing.names().len(), 2);
        assert_eq!(listing.get(b"a"), Some(&ListedType::Prefix));
        assert_eq!(listing.get(b"b"), Some(&object(1)));
        assert_eq!(listing.get(b"c"), None);
    }

    #[test]
    fn cached_listings_are_limited() {
        let pair = normal_fetcher();
        let listings = CachedListings::new(&pair.connection);
        let many = |count: usize| {
            let entry = |i: usize| (format!("{i:0200}").into_bytes().into(), ListedType::Prefix);
            Arc::new(NameListing::new(
                (0..count).map(entry).collect(),
                Vec::new(),
            ))
        };
        let large = many(30_000);
        for name in [b"a/", b"b/", b"c/"] {
            listings.cache_listing(name, Arc::clone(&large));
            assert!(lock(&listings.kept).bytes <= limits::LISTED_BYTES);
        }
        assert!(listings.cached(b"a/").is_none() && listings.cached(b"c/").is_some());
        for number in 0..=limits::LISTED_DIRECTORIES {
            listings.cache_listing(format!("{number}/").as_bytes(), many(1));
        }
        let kept = lock(&listings.kept).listings.len();
        assert_eq!(kept, limits::LISTED_DIRECTORIES);
    }

    #[test]
    fn a_path_has_a_directory_and_a_name() {
        assert_eq!(split_directory(b"a/b/c.h5"), (&b"a/b/"[..], &b"c.h5"[..]));
        assert_eq!(split_directory(b"c.h5"), (&b""[..], &b"c.h5"[..]));
    }

    #[test]
    fn not_every_key_is_the_name_of_a_file() {
        let long = [b'a'; limits::NAME_BYTES + 1];
        for wrong in [&b""[..], b".", b"..", b"a\0b", b"a/b", &long] {
            assert!(!is_file_name(wrong), "{wrong:?}");
        }
        for right in [&b"a"[..], b"...", b" ", b"\xff", &long[1..]] {
            assert!(is_file_name(right), "{right:?}");
        }
    }
}
