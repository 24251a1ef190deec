//! All limits on the resources that a file can make the program use. The crate `h5fs-reader`
//! defines the limits of parsing a file's format, and `h5fs-fetcher` those of fetching its bytes.
//! This module re-exports both.
//!
//! A structure that exceeds a limit is rejected with
//! [`Error::Limit`](h5fs_reader::error::Error::Limit).

/// The limits of the crates `h5fs-fetcher`, `h5fs-joined`, `h5fs-conventions` and `h5fs-reader`.
pub use h5fs_fetcher::limits::*;
pub use h5fs_joined::limits::*;

/// Duration of a request until it counts as slow. Requests for other objects then no longer wait
/// for it.
pub const SLOW_REQUEST: std::time::Duration = std::time::Duration::from_millis(10);

/// Maximum concurrent slow requests ([`SLOW_REQUEST`]), in addition to one request for each thread.
pub const SLOW_REQUESTS: usize = 16;

/// Maximum further concurrent requests in a mounted directory, each for a file for which no other
/// request runs.
pub const FILE_PLACES: usize = 16;

/// Time that an idle thread waits for a request before it ends.
pub const IDLE_WORKER: std::time::Duration = std::time::Duration::from_secs(10);

/// Maximum objects below one opened directory of a remote source whose metadata the crawler
/// (`fs/data_files/crawl.rs`) fetches before a program requests it.
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

/// Maximum inodes that are kept after the kernel has forgotten them, with `noforget`.
pub const FORGOTTEN_INODES: usize = 1 << 18;

/// Maximum objects of a mounted file whose last error is remembered.
pub const OBJECT_ERRORS: usize = 1024;

/// Initial size in bytes of the cache of decoded chunks, without `cache_size`. A larger cache would
/// mostly contain bytes that the kernel's page cache also contains. A small cache soon reuses freed
/// memory, which is still in the processor's cache. Decoding into such memory is a third faster
/// than decoding into fresh memory. It is a sixth faster than decoding into memory that was freed
/// 32 MiB ago.
pub const CACHE_LEAST: u64 = 8 << 20;

/// Bounds of the largest cache size in bytes, without `cache_size`. The cache grows if that avoids
/// decoding chunks again, up to a quarter of the machine's memory within these bounds.
pub const CACHE_MOST: std::ops::RangeInclusive<u64> = (64 << 20)..=(1 << 30);

/// Maximum bytes of one extended attribute's value, and of one object's list of names.
pub const XATTR_BYTES: usize = 65_536;

/// Maximum bytes of attribute values that one `listxattr` request formats. Their lengths show which
/// values are too long for an extended attribute.
pub const LISTED_TEXT: usize = 8 << 20;

/// Maximum bytes of a symbolic link's text.
pub const SYMLINK_BYTES: usize = 4095;

/// Maximum threads that serve requests.
pub const THREADS: usize = 256;

/// Maximum bytes of memory for reading, in addition to the cache and the threads. The sum contains:
///
/// - the largest chunk, stored and twice decoded
/// - open objects
/// - the decoders of two ASDF streams
/// - joined files
/// - 64 MiB for other uses
/// - memory that allocators leave unused
pub const SERVING_BYTES: u64 = {
    let (decoders, unused) = (2 * (160 << 20), 384 << 20);
    // `JOINED_BYTES` four times: the metadata of the old state of the joined file, the metadata of
    // the new state, arrays in memory, and data that is computed while files are joined.
    let joined = 4 * JOINED_BYTES;
    3 * CHUNK_BYTES + OPEN_BYTES + decoders + (64 << 20) + joined + unused
};

/// Maximum bytes of memory for each thread that serves requests. The sum contains 16 MiB for a
/// request, its stack, a reply, and the stacks of threads that decode for it.
pub const THREAD_BYTES: u64 = 64 << 20;

/// Maximum threads of the user who runs h5fs, in addition to the number of threads that the whole
/// system had when this limit was set.
pub const OWN_THREADS: u64 = 4096;

/// Time after the last write to a mounted file during which damage counts as a write in progress.
pub const HALF_WRITTEN: std::time::Duration = std::time::Duration::from_secs(1);

/// Maximum bytes of one element in `json`, and of its text, that are not added to the memory that
/// [`OPEN_BYTES`] limits while the element is written.
pub const UNCOUNTED_ELEMENT: usize = 256 << 10;

/// Maximum values in a text (`csv`, `json`, `text`) whose length in bytes is found by formatting
/// all values. Formatting this many values takes about a second.
pub const COUNTED_VALUES: u64 = 1 << 24;

/// Number of values that each unfiltered chunk of an array counts as, towards [`COUNTED_VALUES`].
/// Finding and reading a chunk takes more than a microsecond.
pub const CHUNK_VALUES: u64 = 24;

/// Bytes of an element that count as one more value, towards [`COUNTED_VALUES`]. Reading these
/// bytes takes the time of reading a short element.
pub const VALUE_BYTES: u64 = 256;

/// Number of values that each filtered chunk of an array counts as, towards [`COUNTED_VALUES`].
pub const FILTERED_CHUNK_VALUES: u64 = 48;

/// Maximum bytes of a text whose length is found by formatting all of it.
pub const COUNTED_BYTES: u64 = 1 << 28;

/// Maximum time for formatting a text to find its length in bytes.
pub const COUNTED_TIME: std::time::Duration = std::time::Duration::from_secs(30);

/// Maximum bytes of the resume points that a mounted file keeps for texts such as CSV. From a
/// resume point, formatting continues in the middle of a text. The two texts with the most resume
/// points fit.
pub const COUNTS: u64 = 1 << 20;

/// Maximum pixels of a picture in `png`.
pub const PICTURE_PIXELS: u64 = 64 << 20;

/// Maximum pixels of a row or a column of a picture in `png`. libpng accepts no more.
pub const PICTURE_EDGE: u64 = 1_000_000;

/// Maximum numbers of a picture in `png` that is compressed. The size of such a picture is known
/// only after compression. Reading and compressing this many numbers takes about a second.
pub const PICTURE_COMPRESSED: u64 = 4 << 20;

/// Maximum bytes of an array that are read for a picture in `png`, counting one page for each
/// isolated pixel.
pub const PICTURE_TOUCHED: u64 = 4 << 30;

/// Maximum time for the encoding of a picture in `png`.
pub const PICTURE_TIME: std::time::Duration = std::time::Duration::from_secs(120);

/// Maximum columns of a FITS table, as the standard defines it.
pub const FITS_COLUMNS: usize = 999;

/// Maximum cards of attributes in the header of a FITS file.
pub const FITS_CARDS: usize = 4096;

/// Maximum bytes of a text in a FITS header, and of a text in a column whose texts do not have a
/// fixed length.
pub const FITS_TEXT: usize = 4096;

/// Maximum columns of a Parquet file. Readers take seconds for the footer of a file with more
/// columns.
pub const PARQUET_COLUMNS: u64 = 16_384;

/// Maximum bytes of the names of the columns of a Parquet file.
pub const PARQUET_NAMES: u64 = 4 << 20;

/// Maximum row groups of a Parquet file, because the format numbers them with a signed 16-bit
/// integer.
pub const PARQUET_GROUPS: u64 = 32_767;

/// Maximum column chunks of a Parquet file, for all columns in all row groups. Each takes some 40
/// bytes of the footer.
pub const PARQUET_CHUNKS: u64 = 1 << 18;

/// Maximum bytes of the footer of a Parquet file. The footer repeats the names of all columns for
/// each row group.
pub const PARQUET_FOOTER: u64 = 64 << 20;

/// Maximum bytes of a page of a Parquet file, because its length is a signed 32-bit integer.
pub const PARQUET_PAGE: u64 = i32::MAX as u64;

/// Maximum values of a Parquet file that are read to find the minimum and maximum of sorted
/// columns. Reading them takes about a second.
pub const PARQUET_SORTED: u64 = 1 << 24;

/// Maximum bytes of a text in a Parquet file.
pub const PARQUET_TEXT: usize = 16 << 20;

/// Maximum values of a dictionary of a Parquet file.
pub const PARQUET_DICTIONARY: u64 = 16_384;

/// Maximum bytes of the texts of a dictionary of a Parquet file. Each row group repeats them.
pub const PARQUET_DICTIONARY_BYTES: u64 = 256 << 10;

/// Maximum columns whose attributes the footer of a Parquet file contains, and maximum columns
/// whose absence it explains.
pub const PARQUET_SAID: usize = 256;

/// Maximum bytes of an attribute of a column in the footer of a Parquet file.
pub const PARQUET_SAID_TEXT: usize = 4096;

/// Maximum columns of a matrix of MATLAB's chars with more than [`TEXT_ELEMENT_BYTES`] bytes. A
/// part of each column is read for each row.
pub const CHAR_COLUMNS: u64 = 4096;

/// Maximum bytes of an element of an array in a Zarr store. A document contains one element, the
/// fill value.
pub const ZARR_ELEMENT: usize = 64 << 10;

/// Maximum bytes of a record whose fields are arrays of a Zarr store.
pub const ZARR_RECORD: u32 = 1 << 20;

/// Maximum links of a group that its document in a Zarr store examines for `_h5fs_absent`, the
/// objects missing in the store.
pub const ZARR_LINKS: usize = 16_384;

/// Maximum names in `_h5fs_absent` of one document of a Zarr store.
pub const ZARR_ABSENT: usize = 4096;

/// Maximum links below a group of a Zarr store, and fields, in the group's consolidated metadata.
pub const ZARR_CONSOLIDATED_LINKS: usize = 4096;

/// Maximum bytes of a document with consolidated metadata in a Zarr store. Two such documents fit
/// into [`KEPT_TEXTS`].
pub const ZARR_CONSOLIDATED_BYTES: usize = 4 << 20;

/// Maximum nesting of groups in the consolidated metadata of a Zarr store.
pub const ZARR_CONSOLIDATED_DEPTH: usize = 64;

/// Maximum columns of one element in the csv view of an array.
pub const CSV_COLUMNS: usize = 65_536;

/// Maximum links of a group that are searched for coordinates of a netCDF variable in it.
pub const COORDINATE_LINKS: usize = 4096;

/// Maximum bytes of the link names that are searched for coordinates of a netCDF variable, and of
/// coordinate names in its attributes.
pub const COORDINATE_NAMES: usize = 1 << 20;

/// Maximum coordinates of a netCDF variable, in addition to the coordinates of its dimensions.
pub const COORDINATES: usize = 64;

/// Maximum links of one group that are examined for its table, if no convention names the columns.
pub const TABLE_MEMBERS: usize = 65_536;

/// Maximum bytes of each cache of facts about the objects of an open data file, such as the table
/// convention of each group.
pub const CONVENTIONS: u64 = 1 << 20;

/// Maximum nesting of lists in a column of a group's table.
pub const TABLE_LISTS: usize = 8;

/// Maximum other files that a mount knows through external links.
pub const MOUNTED_FILES: usize = 32_768;

/// Maximum other files whose links are searched for a name under `.h5fs/external` to which no known
/// link leads.
pub const SEARCHED_FILES: u64 = 256;

/// Minimum time between two searches of the other files for names under `.h5fs/external`.
pub const SEARCH_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Maximum other files, reached through external links, that are kept open.
pub const OPEN_MOUNTED_FILES: usize = 16;

/// Maximum data files of a mounted directory that are kept open, without `open_files`.
pub const OPEN_MEMBERS: usize = 64;

/// Largest value of `open_files`.
pub const MOST_OPEN_MEMBERS: usize = 4096;

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

/// Maximum bytes of an ASDF value as JSON whose text is cached. A longer text is formatted once to
/// find its length, and again while it is read.
pub const ASDF_JSON_SIZED: usize = 8 << 20;

/// Maximum bytes of an ASDF value as JSON. Aliases of long keys make the JSON longer than the tree.
pub const ASDF_JSON: u64 = 256 << 20;

/// Maximum bytes of a scalar's text that each of its aliases repeats in JSON.
pub const REPEATED_SCALAR: usize = 256;

/// Maximum links that are followed for an NDL document of the file.
pub const NDL_LINKS: usize = 1 << 20;

/// Maximum elements of a dimension coordinate whose values an NDL document contains.
pub const NDL_VALUES: u64 = 4096;

/// Maximum bytes of one value, and of its text, in an NDL document.
pub const NDL_VALUE_BYTES: usize = 1 << 20;

/// Maximum bytes of names that the writer of an NDL document remembers: members of the current
/// group, and groups that are not written yet.
pub const NDL_NAMES: usize = 16 << 20;

/// Maximum bytes of an object's path in an NDL document.
pub const NDL_PATH_BYTES: usize = 64 << 10;

/// Maximum bytes of a line that a worker reports to its supervisor, or a supervisor to its
/// launcher: two paths and a reason, escaped.
pub const REPORT_BYTES: usize = 64 << 10;

/// Interval at which a supervisor checks that its mount answers.
pub const MOUNT_LOOK: std::time::Duration = std::time::Duration::from_secs(10);

/// Seconds without an answer from the mount, after a supervisor's check, until the supervisor ends
/// the mount. Seconds that the worker waits for a disk do not count.
pub const MOUNT_UNANSWERED: u32 = 60;

/// Time for a worker to end after the kernel has ended its mount. After this time, the supervisor
/// kills the worker.
pub const UNMOUNTED_WORKER: std::time::Duration = std::time::Duration::from_secs(3);

/// Maximum members of a group, and of the groups in it, that one page lists.
pub const HTML_ROWS: u64 = 500;

/// Maximum rows of the table with elements on the page of an array or a group.
pub const HTML_TABLE_ROWS: u64 = 20;

/// Maximum columns of the table with elements on the page of an array or a group.
pub const HTML_TABLE_COLUMNS: u64 = 12;

/// Maximum attributes on a page.
pub const HTML_ATTRIBUTES: usize = 500;

/// Maximum bytes of the attribute texts that are made for a page.
pub const HTML_ATTRIBUTE_TEXT: usize = 1 << 20;

/// Maximum names of a page's path from the root. The last names are shown.
pub const HTML_TRAIL: usize = 32;

/// Maximum characters of a name or a value on a page.
pub const HTML_TEXT: usize = 512;

/// Maximum characters of a long text on a page: a scalar, or an unfolded attribute.
pub const HTML_LONG_TEXT: usize = 65_536;

/// Maximum attributes of a page that are not folded.
pub const HTML_UNFOLDED: usize = 12;

/// Maximum bytes of the only element of an array, and of its chunk, that is shown next to the
/// array's name.
pub const HTML_GLANCE: u64 = 64 << 10;

/// Maximum bytes of an array that are decoded for the table on its page. The line plot on the page
/// has a second budget of the same size.
pub const HTML_DECODED: u64 = 32 << 20;

/// Maximum chunks, or runs of elements, of a large array that are read for the line plot on its
/// page.
pub const HTML_PIECES: u64 = 4096;

/// Maximum chunks, or runs of elements, of a small array that is read whole for the line plot on
/// its page.
pub const HTML_WHOLE_PIECES: u64 = 65_536;

/// Maximum chunks, or runs of elements, that are read for the line plot on an array's page, if each
/// may need a request to a server or be in another file.
pub const HTML_FAR_PIECES: u64 = 64;

/// Maximum bytes that are decoded or read for a picture on a page.
pub const HTML_PICTURE: u64 = 128 << 20;

/// Maximum pixels of a picture on a page, in each direction.
pub const HTML_PICTURE_EDGE: u64 = 1024;

/// Maximum chunks, or pieces of 64 KiB, of an array that are sampled to find the range of values
/// for the picture on its page.
pub const HTML_SAMPLED_CHUNKS: u64 = 64;

/// Maximum chunks, or pieces of 64 KiB, that are sampled for the range of values on an array's
/// page, if each may need a request to a server or be in another file.
pub const HTML_FAR_SAMPLED_CHUNKS: u64 = 8;

/// Maximum sources of a virtual dataset that one picture on a page combines. The same limit applies
/// to each piece that is sampled for the range of the picture's values.
pub const HTML_SOURCES: usize = 16;

/// Maximum links into other files that a page follows, to show the valid ones as hyperlinks.
pub const HTML_OTHER_LINKS: u64 = 64;

/// Time after which no further chunk is sampled for the range of values of a picture on a page.
pub const HTML_SAMPLING: std::time::Duration = std::time::Duration::from_secs(1);

/// Maximum time for drawing a picture of a page.
pub const HTML_DRAWING: std::time::Duration = std::time::Duration::from_secs(10);

/// Maximum bytes that are decoded for the range of values of a picture on a page, if more than one
/// chunk is decoded.
pub const HTML_SAMPLED: u64 = 64 << 20;

/// Maximum values that are sampled for the range of values of a picture on a page.
pub const HTML_SAMPLED_VALUES: u64 = 1 << 20;

/// Maximum sources that one `h5fs serve` serves.
pub const HTTP_SOURCES: usize = 64;

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

/// Maximum time of a connection without a request, for sending a request, or without receiving any
/// part of a response.
pub const HTTP_IDLE: std::time::Duration = std::time::Duration::from_secs(60);

/// Maximum time for a client to authenticate.
pub const HTTP_ENTRY: std::time::Duration = std::time::Duration::from_secs(5);

/// Maximum time for the next part of a response if the client has closed its sending side. The
/// client may have disconnected.
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

/// Maximum names, attributes and errors that one search finds.
pub const HTTP_FOUND: u64 = 1000;

/// Maximum nesting of groups that are searched.
pub const HTTP_SEARCH_DEPTH: usize = 128;

/// Maximum bytes of a text that is compressed for a client.
pub const HTTP_GZIP: u64 = 1 << 20;

/// Maximum bytes of texts that are being compressed, and of compressed texts that are being sent,
/// for all clients together.
pub const HTTP_PACKED: u64 = 16 << 20;

#[cfg(test)]
mod tests;
