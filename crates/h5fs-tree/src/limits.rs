//! Limits on the memory, the open files and the work that programs which read a tree can cause.

/// The limits of the crates `h5fs-view`, `h5fs-joined` and those below.
pub use h5fs_joined::limits::*;
pub use h5fs_view::limits::*;

/// Duration of a request until it counts as slow. Requests for other objects then no longer wait
/// for it.
pub const SLOW_REQUEST: std::time::Duration = std::time::Duration::from_millis(10);

/// Maximum concurrent slow requests ([`SLOW_REQUEST`]), in addition to one request for each thread.
pub const SLOW_REQUESTS: usize = 16;

/// Maximum concurrent requests in a mounted directory, in addition to [`SLOW_REQUESTS`] and one for
/// each thread, that are each for a file for which no other request runs.
pub const FILE_PLACES: usize = 16;

/// Time that an idle thread waits for a request before it ends.
pub const IDLE_WORKER: std::time::Duration = std::time::Duration::from_secs(10);

/// Maximum objects below one opened directory of a remote source whose metadata the crawler
/// (`data_files/crawl.rs`) fetches before a program requests it.
pub const CRAWLED_OBJECTS: usize = 4096;

/// Maximum chunks whose chunk index the crawler fetches below one opened directory of a remote
/// source. Arrays of at most [`LISTED_CHUNKS`] chunks do not count. `stat` needs the index to count
/// the stored chunks.
pub const CRAWLED_CHUNKS: u64 = 4096;

/// Maximum structures of a remote source that the crawler reads in one pass. The bytes that they
/// lack are requested together.
pub const CRAWL_WINDOW: usize = 256;

/// Maximum times that the crawler tries again to read one structure of a remote source. Each
/// attempt may find a pointer to further bytes that are missing.
pub const CRAWL_LOOKS: u32 = 64;

/// Maximum groups of a remote source that the crawler remembers as fetched.
pub const CRAWLED_GROUPS: usize = 65_536;

/// Maximum opened directories of a remote source that wait for the crawler.
pub const CRAWLS: usize = 16;

/// Maximum bytes of generated content that an open data file caches: texts of attributes, pages,
/// ASDF values as JSON, and pictures in `png`. The largest text fits, so that a lookup, `stat` and
/// open generate it only once.
pub const KEPT_TEXTS: u64 = (8 << 20) + (64 << 10);

/// Maximum bytes of other results that an open data file caches for views: the table convention of
/// a group, and the plans of computed HDF5 files.
pub const KEPT_DERIVED: u64 = 12 << 20;

/// Maximum bytes of the lengths of unlimited dimensions that an open data file caches.
pub const DIMENSION_LENGTHS: u64 = 1 << 20;

/// Time after which a listing returns the entries found so far. The next request continues the
/// listing.
pub const LISTING_TIME: std::time::Duration = std::time::Duration::from_millis(250);

/// Maximum time for generating a whole text when it is opened, so that all of the text describes
/// one state of a data file that grows.
pub const GROWING_TIME: std::time::Duration = std::time::Duration::from_millis(250);

/// Maximum links of a group that a lookup reads to find the link with a given shortened name. Names
/// that are too long are shown shortened.
pub const CUT_NAME_LINKS: usize = 1 << 20;

/// Maximum bytes of a text about a growing data file that is generated whole when it is opened.
pub const GROWING_TEXT: usize = 1 << 20;

/// Maximum open files and directories of one mount.
pub const OPEN_HANDLES: usize = 1 << 16;

/// Bytes that each open file or directory adds to the memory that [`OPEN_BYTES`] limits.
pub const OPEN_HANDLE: u64 = 1 << 10;

/// Maximum errors that `.h5fs/errors` lists.
pub const LAST_ERRORS: usize = 1000;

/// Maximum inodes that are kept after the kernel has forgotten them, if the mount option `noforget`
/// is set.
pub const FORGOTTEN_INODES: usize = 1 << 18;

/// Maximum objects of a mounted file whose last error is remembered.
pub const OBJECT_ERRORS: usize = 1024;

/// Initial size in bytes of the cache of decoded chunks, if the option `cache_size` is not set. A
/// larger cache would mostly contain bytes that the kernel's page cache also contains. A small
/// cache soon reuses freed memory, which is still in the processor's cache. Decoding into such
/// memory is a third faster than decoding into fresh memory. It is a sixth faster than decoding
/// into memory that was freed 32 MiB ago.
pub const CACHE_LEAST: u64 = 8 << 20;

/// Maximum bytes of attribute values that one `listxattr` request formats. Their lengths show which
/// values are too long for an extended attribute.
pub const LISTED_TEXT: usize = 8 << 20;

/// Maximum bytes of a symbolic link's text.
pub const SYMLINK_BYTES: usize = 4095;

/// Time after the last write to a mounted file during which damage counts as a write in progress.
pub const HALF_WRITTEN: std::time::Duration = std::time::Duration::from_secs(1);

/// Maximum links of a group that its document in a Zarr store examines for `_h5fs_absent`, the
/// objects missing in the store.
pub const ZARR_LINKS: usize = 16_384;

/// Maximum total of links below a group, and of record fields, that are read for the consolidated
/// metadata of the group in a Zarr store. Above it, the group has no consolidated metadata.
pub const ZARR_CONSOLIDATED_LINKS: usize = 4096;

/// Maximum nesting of groups in the consolidated metadata of a Zarr store.
pub const ZARR_CONSOLIDATED_DEPTH: usize = 64;

/// Maximum links and record fields that are read for `kerchunk.json`.
pub const KERCHUNK_OBJECTS: usize = 65_536;

/// Maximum nesting of groups in `kerchunk.json`.
pub const KERCHUNK_DEPTH: usize = 64;

/// Maximum other files that a mount knows through external links.
pub const MOUNTED_FILES: usize = 32_768;

/// Maximum other files whose links are searched for a name under `.h5fs/external` to which no known
/// link leads.
pub const SEARCHED_FILES: u64 = 256;

/// Minimum time between two searches of the other files for names under `.h5fs/external`.
pub const SEARCH_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Maximum other files, reached through external links, that are kept open.
pub const OPEN_MOUNTED_FILES: usize = 16;

/// Maximum data files of a mounted directory that are kept open, if the option `open_files` is not
/// set.
pub const OPEN_MEMBERS: usize = 64;

/// Maximum files of a mounted directory that are remembered as data files or ordinary files, about
/// 150 bytes each. The same limit applies to the ordinary files whose state at the last open is
/// remembered. For further files, the first bytes are read again, and the kernel's cache of their
/// content is not reused.
pub const KNOWN_KINDS: usize = 1 << 14;

/// Maximum bytes of memory for all open files that external links lead to, or for all open data
/// files of a mounted directory. A single file may take more.
pub const OPEN_MOUNTED_BYTES: u64 = 16 << 20;

/// Maximum bytes of memory for those data files of a mounted directory that have running requests.
/// Only files that each take more than a quarter of [`OPEN_MOUNTED_BYTES`] count. A single file may
/// take more, and requests in further files of this size wait.
pub const HEAVY_AT_WORK: u64 = 32 << 20;

/// Maximum names in the path, from the root to the object, that a page shows. Of a longer path, the
/// page shows the last names.
pub const HTML_TRAIL: usize = 32;

/// Maximum links into other files that a page follows, to show the valid ones as hyperlinks.
pub const HTML_OTHER_LINKS: u64 = 64;

/// Maximum concurrent connections of clients. Further connections wait in the system's queue.
pub const HTTP_CONNECTIONS: usize = 1024;

/// Maximum requests of clients in the queue.
pub const HTTP_WAITING: usize = 512;

/// Maximum bytes of the target and the header fields of a request.
pub const HTTP_HEAD: usize = 16 << 10;

/// Maximum header fields of a request.
pub const HTTP_FIELDS: usize = 64;

/// Maximum ranges of one request.
pub const HTTP_RANGES: usize = 64;

/// Maximum time until a client has sent the next request's header, and maximum time during which a
/// client accepts no byte of a response.
pub const HTTP_IDLE: std::time::Duration = std::time::Duration::from_secs(60);

/// Maximum time for a client to authenticate.
pub const HTTP_ENTRY: std::time::Duration = std::time::Duration::from_secs(5);

/// Maximum time between two writes of a response to a client that has closed its sending side.
/// After it, the server assumes that the client has disconnected.
pub const HTTP_HALF_CLOSED: std::time::Duration = std::time::Duration::from_secs(5);

/// Maximum bytes of a response that are in memory at a time for each client.
pub const HTTP_PIECE: usize = 16 << 10;

/// Maximum bytes of a response that are in memory at a time for a client that reads fast and has
/// one of [`HTTP_LARGE_PIECES`] slots.
pub const HTTP_LARGE_PIECE: usize = 512 << 10;

/// Maximum pieces of up to [`HTTP_LARGE_PIECE`] bytes that are in memory for all clients together.
pub const HTTP_LARGE_PIECES: usize = 16;

/// Maximum bytes of the text that a search request of a page looks for.
pub const HTTP_WANTED: usize = 256;

/// Maximum bytes of the body of a request for properties (WebDAV).
pub const DAV_BODY: usize = 64 << 10;

/// Maximum properties that a request names (WebDAV).
pub const DAV_PROPERTIES: usize = 100;

/// Maximum links and attributes that are read for one answer of h5grove's routes.
pub const H5GROVE_OBJECTS: usize = 65_536;

/// Maximum bytes of one description of objects, or of their attributes, in h5grove's routes.
pub const H5GROVE_BYTES: usize = 16 << 20;

/// Maximum names, attributes and errors that one search finds.
pub const HTTP_FOUND: u64 = 1000;

/// Maximum nesting of groups that are searched.
pub const HTTP_SEARCH_DEPTH: usize = 128;

/// Maximum bytes of a text that is compressed for a client.
pub const HTTP_GZIP: u64 = 1 << 20;

/// Maximum bytes of texts that are being compressed, and of compressed texts that are being sent,
/// for all clients together.
pub const HTTP_PACKED: u64 = 16 << 20;
