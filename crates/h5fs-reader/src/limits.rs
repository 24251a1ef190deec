//! All limits on the resources that a file can make the program use, in one place.
//!
//! A structure that exceeds a limit is rejected with [`Error::Limit`](crate::error::Error::Limit).

/// Maximum number of bytes of one metadata structure that is read in one piece (object header
/// chunk, heap block, B-tree node). At most three quarters of [`METADATA_CACHE`], so that
/// structures needed in several alternating steps stay in the cache.
pub const METADATA_BLOCK: u64 = 16 << 20;

/// Maximum number of bytes of metadata that one request reads: blocks with a verified checksum, and
/// object headers. Processing this much takes about a quarter of a second.
pub const REQUEST_METADATA: u64 = 256 << 20;

/// Maximum number of bytes of metadata blocks with a verified checksum that all HDF5 files of a
/// mount cache together. A group of a million links has this much metadata, and its listing reads
/// these blocks repeatedly.
pub const METADATA_CACHE: u64 = 22 << 20;

/// Maximum number of chunks of one object header: the first chunk and all continuation chunks.
pub const HEADER_CHUNKS: usize = 4096;

/// Maximum number of bytes of one object header with all its chunks.
pub const HEADER_BYTES: u64 = 16 << 20;

/// Maximum number of messages of one object header. A version 1 header stores the number of all
/// messages in 16 bits. A version 2 header counts its links and its attributes in 16 bits each.
pub const HEADER_MESSAGES: usize = 1 << 17;

/// Maximum levels of a tree of nodes (B-trees, doubling tables).
pub const TREE_DEPTH: usize = 64;

/// Maximum number of bytes of the nodes of one B-tree that are in memory at the same time: one node
/// of each level.
pub const TREE_BRANCH: u64 = METADATA_CACHE;

/// Maximum nesting of datatypes (compound, array, variable-length, enumeration).
pub const DATATYPE_DEPTH: usize = 64;

/// Maximum members of one compound or enumeration datatype, and maximum datatypes within one
/// datatype message.
pub const DATATYPE_MEMBERS: usize = 65_536;

/// Maximum dimensions of a dataspace.
pub const RANK: usize = 32;

/// Maximum filters in one pipeline.
pub const FILTERS: usize = 32;

/// Maximum number of bytes that the filters of a pipeline may add to a chunk, in addition to an
/// eighth of its length.
pub const FILTER_OVERHEAD: usize = 64 << 10;

/// Maximum number of bytes of one filtered chunk, both stored and decoded, because the whole chunk
/// is in memory during decoding. An unfiltered chunk is read in parts and may have any size.
pub const CHUNK_BYTES: u64 = 1 << 30;

/// Maximum memory in bytes of all concurrent large decodes together. A decode that needs more
/// memory runs alone. Also the maximum number of bytes of decoded chunks that are kept in memory
/// although they do not fit into the cache.
pub const DECODE_BYTES: u64 = 256 << 20;

/// Maximum memory in bytes of a decode that counts as small: the size of the stored chunk plus
/// twice the size of the decoded chunk.
pub const SMALL_DECODE: u64 = 13 << 18;

/// Maximum memory in bytes of all concurrent small decodes together.
pub const SMALL_DECODES: u64 = 40 << 20;

/// Maximum memory in bytes of a decode that counts as medium. A medium decode does not wait for
/// large decodes.
pub const MEDIUM_DECODE: u64 = 64 << 20;

/// Maximum memory in bytes of all concurrent medium decodes together.
pub const MEDIUM_DECODES: u64 = 128 << 20;

/// Maximum number of bytes of freed buffers that are kept for the next chunks and replies to reads.
pub const POOL_BYTES: u64 = 16 << 20;

/// Time for which a decoded chunk that is larger than the cache is kept in memory after its last
/// read.
pub const KEPT_TIME: std::time::Duration = std::time::Duration::from_secs(10);

/// Maximum number of chunks in the queue of the decode threads, which decode chunks before a reader
/// reaches them.
pub const PREFETCH_CHUNKS: usize = 64;

/// Number of bytes of the first read-ahead of a sequential reader of an array.
pub const AHEAD_LEAST: u64 = 1 << 20;

/// Maximum number of bytes of the read-ahead of a sequential reader of an array.
pub const AHEAD_BYTES: u64 = 64 << 20;

/// Maximum number of byte ranges of a remote source that the array layer requests in one call.
pub const RANGES_AT_ONCE: usize = 4096;

/// Maximum number of bytes of metadata that one call requests ahead from a remote source, for
/// example together with a structure that a request waits for.
pub const HINTED_METADATA: u64 = 4 << 20;

/// Number of different chunks of one array in a remote source that are read before the whole array
/// is requested. If an eighth of the array's chunks is fewer, that number is used, but at least
/// two.
pub const TOUCHED_CHUNKS: u64 = 8;

/// Maximum number of stored bytes of one array in a remote source that is requested whole.
pub const WHOLE_BYTES: u64 = 256 << 20;

/// Maximum number of chunks of one array in a remote source that is requested whole.
pub const WHOLE_CHUNKS: u64 = 65_536;

/// Maximum number of chunk locations in a remote source that one open array remembers.
pub const LOCATED_CHUNKS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(1024).unwrap();

/// Maximum number of bytes of one attribute's value. Two copies of the value are in memory while it
/// is read.
pub const ATTRIBUTE_BYTES: u64 = 8 << 20;

/// Maximum number of bytes of one attribute's value as text in `.h5fs/attrs`.
pub const ATTRIBUTE_TEXT: usize = 8 << 20;

/// Maximum number of bytes of an object on a fractal heap: an attribute's value with its name,
/// datatype and dataspace.
pub const HEAP_OBJECT: u64 = ATTRIBUTE_BYTES + (256 << 10);

/// Maximum number of bytes of one variable-length element.
pub const VARIABLE_LENGTH_BYTES: u64 = 1 << 30;

/// Maximum number of bytes of a name in an old-style group, and of a soft link's path there.
pub const LINK_TEXT: usize = 64 << 10;

/// Maximum number of symbol table nodes without entries that one listing of an old-style group
/// skips. A seek also skips nodes with entries: a node with up to 64 entries counts as one, a
/// larger one as several.
pub const PASSED_NODES: usize = 1 << 19;

/// Number of skipped nodes that one unreadable symbol table node, one unreadable link or one
/// repeated name counts as. The sum is limited by [`PASSED_NODES`].
pub const UNREAD_NODES: usize = 128;

/// Maximum number of unreadable links of a group with a fractal heap that are skipped to find the
/// next readable link.
pub const UNREAD_LINKS: usize = 1 << 20;

/// Maximum number of links of a group with a fractal heap that are skipped to find the next link,
/// because they repeat the previous name or are indexed under the hash of another name.
pub const PASSED_LINKS: usize = 4096;

/// Maximum number of child nodes of a version 1 B-tree that are read to reach the next entry. Nodes
/// without entries could otherwise follow each other without end.
pub const EMPTY_NODES: usize = 4096;

/// Maximum number of chunks outside of their dataset that one walk over a chunk index skips.
pub const STRAY_CHUNKS: usize = 1 << 20;

/// Number of bytes of a link's name and target that cost as much as one more link. A search through
/// the links of a file limits the sum of the costs.
pub const SEARCHED_TEXT: usize = 128;

/// Maximum number of links of one file that the search for canonical paths examines. A link with a
/// long name or target counts as several ([`SEARCHED_TEXT`]).
pub const PATH_INDEX_LINKS: usize = 400_000;

/// Maximum number of bytes of names that the search for canonical paths in one file keeps.
pub const PATH_INDEX_NAMES: usize = 6 << 20;

/// Maximum steps from an object to the root when its path is assembled.
pub const PATH_DEPTH: usize = 1 << 16;

/// Maximum memory in bytes of all open objects together: descriptions of arrays, texts, and the
/// positions of open texts and listings.
pub const OPEN_BYTES: u64 = 256 << 20;

/// Maximum number of missing or refused other files that `.h5fs/errors` names for each data file.
pub const NAMED_ABSENT: usize = 1000;

/// Maximum number of bytes of a line of `.h5fs/errors`.
pub const ERROR_LINE: usize = 4096;

/// Maximum number of bytes of the array readers that a mounted file keeps after their last handle
/// is closed. The same limit applies to the variable-length arrays, and to selected parts of them.
pub const READERS: u64 = 1 << 20;

/// Maximum number of chunks of an array whose stored size is computed already when its directory is
/// listed. The stored size of a larger array is computed at its first `stat`.
pub const LISTED_CHUNKS: u64 = 64;

/// Maximum symbolic links that are followed in one path.
pub const SYMLINK_HOPS: usize = 40;

/// Maximum number of stored chunks of one array that are counted for `st_blocks` and for holes. If
/// an array has more, the whole array is reported as data.
pub const ALLOCATION_WALK: usize = 1 << 17;

/// Maximum number of bytes of a file name in a directory entry of the kernel.
pub const NAME_BYTES: usize = 255;

/// Maximum number of bytes of the path of another file that a data file names: the longest path
/// that Linux accepts.
pub const FILE_PATH: usize = 4095;

/// Maximum number of bytes of an error message's text.
pub const ERROR_TEXT: usize = 2048;

/// Maximum number of bytes of the field names that an error message about a selector lists.
pub const NAMED_FIELDS: usize = 500;

/// Maximum number of bytes of an ASDF tree's text. The same limit applies to the sum of the texts
/// of all scalars and of all keys that are mappings or sequences.
pub const TREE_BYTES: u64 = 12 << 20;

/// Maximum number of bytes of a tree's text that is parsed concurrently with other trees. Larger
/// trees are parsed one at a time.
pub const TREE_TURN: u64 = 256 << 10;

/// Maximum nodes of an ASDF tree, including its keys and counting each alias. They take about 35
/// MiB and half a second.
pub const TREE_NODES: usize = 400_000;

/// Maximum number of nested levels of an ASDF tree.
pub const TREE_LEVELS: usize = 1000;

/// Maximum anchors of an ASDF tree. The parser keeps all anchors while it reads the text.
pub const TREE_ANCHORS: usize = 100_000;

/// Maximum number of bytes of the resolved tags of all nodes of an ASDF tree, counting repeated
/// tags each time.
pub const TREE_TAGS_WRITTEN: usize = 32 << 20;

/// Maximum number of bytes of the different tags of an ASDF tree, plus [`TREE_TAG`] for each
/// different tag.
pub const TREE_TAGS: usize = 1 << 20;

/// Number of bytes that each different tag of an ASDF tree counts as, in addition to its text.
pub const TREE_TAG: usize = 64;

/// Maximum number of bytes of a `$ref` URI in an ASDF tree, and of the path of an aliased node.
pub const TREE_PATH: usize = 64 << 10;

/// Maximum number of mapping entries that all merge keys (`<<`) of an ASDF tree add or skip
/// together.
pub const TREE_MERGED: usize = 1 << 20;

/// Maximum number of bytes that are searched for the first block of an ASDF file.
pub const BLOCK_SEARCH: u64 = 64 << 20;

/// Maximum blocks of one ASDF file.
pub const BLOCKS: usize = 1 << 20;

/// Maximum number of bytes at the end of an ASDF file that are searched for the block index.
pub const BLOCK_INDEX_SEARCH: u64 = 16 << 20;

/// Maximum number of bytes that are read and created to describe one ASDF ndarray or chunked
/// ndarray, or to find its nulls. These are texts of the tree, plus 16 bytes for each node,
/// counting aliases each time. This takes less than a second.
pub const DESCRIPTION: u64 = REQUEST_METADATA / 4 * 3;

/// Maximum number of bytes of the text of a number or a date in an ASDF tree.
pub const NUMBER_TEXT: usize = 4096;

/// Maximum number of bytes of the names of all fields of one ASDF ndarray's datatype.
pub const FIELD_NAMES: usize = 1 << 20;

/// Maximum number of bytes of one ASDF ndarray's inline data.
pub const INLINE_BYTES: u64 = 64 << 20;

/// Maximum mapping entries and bytes of references that are read to describe the chunks of one ASDF
/// chunked ndarray.
pub const CHUNK_ENTRIES: usize = 1 << 22;

/// Maximum number of chunks of one ASDF chunked ndarray that do not state their shape.
pub const SHAPELESS_CHUNKS: usize = 256;

/// Maximum sum of the numbers of dimensions of all chunks of one ASDF chunked ndarray.
pub const CHUNK_AXES: usize = 1 << 19;

/// Maximum number of elements of all inline chunks of one ASDF chunked ndarray, counting aliases
/// each time.
pub const CHUNK_ELEMENTS: u64 = 1 << 20;

/// Maximum decoded bytes of a compressed ASDF block that is always decoded in one piece.
pub const WHOLE_BLOCK: u64 = 16 << 20;

/// Maximum separately compressed chunks of one ASDF block.
pub const BLOCK_CHUNKS: usize = 1 << 20;

/// Maximum number of stored bytes of a compressed ASDF block, in addition to sixteen times its
/// decoded size.
pub const BLOCK_SURPLUS: u64 = 64 << 20;

/// Maximum number of stored bytes of an ASDF block that is decoded in one piece, in addition to
/// nine eighths of its decoded size.
pub const WHOLE_SURPLUS: u64 = 1 << 20;

/// Maximum number of parts of one compressed stream. Decoding can start at the beginning of each
/// part.
pub const STREAM_PARTS: usize = 1 << 16;

/// Binary logarithm of the maximum bytes that a Zstandard frame may refer back to. The decoder has
/// the same limit.
pub const ZSTD_WINDOW_LOG: u32 = 27;

/// Maximum KiB of memory for an .xz stream's dictionary.
pub const XZ_KIB: u32 = 80 << 10;

/// Maximum number of positions of one zlib stream at which decoding can start. Each position takes
/// 43 KiB of memory.
pub const ZLIB_CHECKPOINTS: usize = 128;

/// Maximum ASDF blocks of one file whose decoders are kept between two reads.
pub const RESUMABLE_BLOCKS: usize = 2;

/// Maximum number of bytes of decoded bzip2 blocks that are kept in memory for one ASDF block.
pub const BZIP2_KEPT: u64 = 16 << 20;

/// Number of bytes of the metadata budget that one variable-length element may spend on reading its
/// global heap collection, on average over all elements of a request. Collections that the HDF5
/// library writes have 4 KiB, or few objects.
pub const COLLECTION_METADATA: u64 = 16 << 10;

/// Maximum number of bytes of fractal heap objects that one listing reads. In a larger file, the
/// maximum is the length of the file.
pub const HEAP_LISTING: u64 = 256 << 20;

/// Maximum attributes of one object.
pub const ATTRIBUTES: u64 = 1 << 20;

/// Maximum member files of a family.
pub const FAMILY_MEMBERS: u64 = 1000;

/// Maximum number of structures in the metadata cache images of all HDF5 files of a mount together.
/// Each takes 24 bytes of memory.
pub const CACHE_IMAGE_ENTRIES: usize = 1 << 16;

/// Maximum number of bytes of the names of raw files that one HDF5 dataset lists.
pub const RAW_FILE_NAMES: usize = 1 << 20;

/// Maximum number of stored bytes of the selection that one region reference points to.
pub const REGION_BYTES: u64 = 16 << 20;

/// Maximum number of runs of elements in one irregular selection.
pub const REGION_RUNS: usize = 1 << 20;

/// Maximum number of bytes of the lists of runs of all parts of one virtual dataset. A
/// non-rectangular column of many rows has one run for each row.
pub const VIRTUAL_RUNS: u64 = 16 << 20;

/// Maximum number of parts of one virtual dataset, counting each file of a `printf`-style source
/// name. Also the maximum number of chunks of one ASDF chunked ndarray.
pub const VIRTUAL_MAPPINGS: usize = 1 << 16;

/// Maximum stored bytes of the list of a virtual dataset's parts.
pub const VIRTUAL_LIST: u64 = 16 << 20;

/// Maximum number of bytes of a name in the list of a virtual dataset's parts.
pub const VIRTUAL_NAME: usize = 4096;

/// Maximum number of bytes of memory for the parts of one virtual dataset, including the parts of
/// sources that are also virtual datasets.
pub const VIRTUAL_BYTES: u64 = 24 << 20;

/// Maximum memory in bytes of a virtual dataset's list of parts that is built concurrently with
/// other lists. Larger lists of parts are built one at a time.
pub const VIRTUAL_TURN: u64 = 1 << 20;

/// Maximum number of bytes of large objects that are parsed to describe one virtual dataset, or to
/// open one of its sources. An object that is parsed twice counts twice.
pub const VIRTUAL_WORK: u64 = 128 << 20;

/// Number of bytes of the smallest object that counts as large for [`VIRTUAL_WORK`].
pub const VIRTUAL_SMALL: u64 = 96 << 10;

/// Maximum number of bytes of the descriptions of source arrays, including inline elements, that
/// all virtual datasets of a mount keep in memory together.
pub const VIRTUAL_SOURCES: u64 = 4 << 20;

/// Maximum number of source elements that are read for one element of a virtual dataset, averaged
/// over one read. Several are read if parts overlap.
pub const VIRTUAL_OVERLAPS: u64 = 16;

/// Maximum remote sources that one read of a virtual array opens before it reads from the first.
pub const VIRTUAL_FAR: usize = 32;

/// Maximum number of threads that open the remote sources of one read of a virtual array.
pub const VIRTUAL_FAR_THREADS: usize = 8;

/// Maximum nesting of virtual datasets.
pub const VIRTUAL_DEPTH: usize = 16;

/// Maximum number of files that a mount watches for changes, open or not. Each watch costs the
/// kernel a kilobyte. For all other files, only the times show a change.
pub const FILE_WATCHES: usize = 4096;

/// Maximum number of concurrent requests to the network process (the fetcher). While this many are
/// running, even a request for bytes that a reader waits for is delayed.
pub const NEEDED_RUNS_ASKED: usize = 64;

/// Maximum number of concurrent requests to the network process (the fetcher) with which a
/// read-ahead request is sent. While this many are running, read-ahead requests wait.
pub const EXPECTED_RUNS_ASKED: usize = 64;

/// Maximum number of read-ahead requests that wait to be sent to the network process (the fetcher).
pub const EXPECTED_RUNS: usize = 1024;

/// Maximum number of files of the disk cache that are open to read pages of remote objects.
pub const OPEN_SEGMENTS: usize = 256;

/// Maximum number of bytes of a file-space page that are fetched for a structure in it.
pub const PAGED_BLOCK: u64 = 512 << 10;

/// Maximum number of bytes of the first file-space page that are fetched when the URL of a paged
/// file is mounted.
pub const FIRST_PAGE: u64 = 8 << 20;

/// Maximum number of bytes of a URL's object that is fetched whole after a read beyond its first
/// bytes. Many requests for parts would take the same time.
pub const SMALL_OBJECT: u64 = 8 << 20;

/// Maximum number of bytes of an object below a prefix, or next to the URL's object, that is
/// fetched whole after a read beyond its first bytes. This maximum is smaller than [`SMALL_OBJECT`]
/// because a program may read one value of each of thousands of such objects.
pub const SMALL_MEMBER: u64 = 1 << 20;

/// Maximum number of runs of consecutive pages that are remembered because their request failed, so
/// that the pages are not requested again at once.
pub const FAILED_RUNS: usize = 64;

/// Maximum number of byte ranges that a remote source accepts in one prefetch call.
pub const HINTED_RANGES: usize = 1 << 16;

/// Time after which a write to a file counts as complete if only the time of its start is known.
pub const UNSEEN_WRITE: std::time::Duration = std::time::Duration::from_secs(60);

/// Maximum other files that an ASDF file keeps open because they contain elements of its arrays.
pub const OPEN_NEIGHBOURS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(128).unwrap();

/// Maximum sources of virtual datasets that a mount keeps, and maximum files of these sources that
/// it keeps. Each may keep a file open.
pub const OPEN_VIRTUAL_SOURCES: std::num::NonZeroUsize = std::num::NonZeroUsize::new(256).unwrap();

/// Maximum links on the path of a soft link. At most [`SYMLINK_HOPS`] of them may be soft links.
pub const PATH_LINKS: usize = 256;

/// Maximum dimensions of an array, including the dimensions of elements that are arrays.
pub const SELECTION_RANK: usize = 64;

/// Maximum indices of one list in a selector. In a mount, the length of a name allows fewer.
pub const SELECTED_PLACES: usize = 65_536;

/// Maximum number of bytes of one element, and of the element's text, in a text view of an array.
pub const TEXT_ELEMENT_BYTES: u64 = 16 << 20;

/// Maximum number of values that a request may count or examine for a picture without being heavy.
/// A request for more values needs one of the few slots for heavy work.
pub const QUICK_VALUES: u64 = 1 << 12;

/// Maximum number of integers or references in an attribute by which a convention describes an
/// object, such as `DIMENSION_LIST`.
pub const MARKS: usize = 65_536;

/// Maximum number of elements of a variable-length dataset that is shown as a file, because
/// computing its size reads all elements.
pub const VARIABLE_LENGTH_ELEMENTS: u64 = 1 << 28;

/// Maximum number of bytes of the names of other files that the search for canonical paths in one
/// file keeps.
pub const NAMED_FILES: usize = 1 << 20;

/// Maximum number of address ranges without a NUL byte that are remembered for one HDF5 file, so
/// that the ends of long strings are found without reading the bytes again.
pub const LONG_STRINGS: usize = 4096;

/// Maximum number of log lines that are kept until the mount is ready and then printed, if syslog
/// is unavailable.
pub const EARLY_LINES: usize = 16;

/// Maximum number of bytes of a source's URL.
pub const URL_BYTES: usize = 4096;

/// Maximum number of bytes of a page of a server's listing: a thousand names of 1 KiB, encoded.
pub const LISTING_BYTES: usize = 8 << 20;

/// Maximum number of names in a page of a listing.
pub const LISTING_NAMES: usize = 50_000;

/// Maximum number of bytes of an S3 key, and of a server's continuation token for a listing.
pub const KEY_BYTES: usize = 1024;

/// Maximum number of bytes of the listings of a mounted prefix that are kept, so that a lookup of a
/// listed name needs no request.
pub const LISTED_BYTES: u64 = 16 << 20;

/// Maximum directories of a mounted prefix whose listing is kept.
pub const LISTED_DIRECTORIES: usize = 4096;

/// Maximum pages of the listing of one directory.
pub const LISTED_PAGES: usize = 1 << 14;

/// Maximum remembered names of a mounted prefix that were requested individually. Each takes up to
/// 2 KiB.
pub const LOOKED_NAMES: std::num::NonZeroUsize = std::num::NonZeroUsize::new(4096).unwrap();

/// Maximum number of objects of a mounted prefix that stay open after a read. Each takes up to 6
/// KiB.
pub const KEPT_OBJECTS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(1024).unwrap();

/// Maximum objects of a mounted prefix that were opened to check their existence and are not read
/// yet. Beyond this number, a listing is used instead.
pub const UNREAD_OBJECTS: usize = 64;

/// Number of bytes at the start of an object that are searched for the signature of a data file.
pub const OBJECT_BEGINNING: u64 = 256 << 10;

/// Maximum number of members of a group that pages and `h5fs ls` sort. A larger group is shown in
/// the order of the file's index.
pub const ORDERED_MEMBERS: u64 = 65_536;

/// Maximum number of bytes of memory for sorting the names of members.
pub const ORDERED_BYTES: u64 = 32 << 20;

/// Default maximum number of bytes that one read returns to a program that uses this crate as a
/// library.
pub const READ_BYTES: u64 = 1 << 30;
