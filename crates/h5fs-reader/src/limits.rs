//! All limits on the resources that a file can make the program use, in one place.
//!
//! A structure that exceeds a limit is rejected with [`Error::Limit`](crate::error::Error::Limit).

/// Maximum number of bytes of one metadata structure that is read in one piece (object header
/// chunk, heap block, B-tree node). At most three quarters of [`METADATA_CACHE`], so that
/// structures needed in several alternating steps stay in the cache.
pub const METADATA_BLOCK: u64 = 16 << 20;

/// Maximum number of bytes of metadata that one request reads: verified blocks and object headers.
/// Processing this much takes about a quarter of a second.
pub const REQUEST_METADATA: u64 = 256 << 20;

/// Maximum number of bytes of verified metadata blocks that all HDF5 files of a mount cache
/// together. A group of a million links has this much metadata, and its listing reads these blocks
/// repeatedly.
pub const METADATA_CACHE: u64 = 22 << 20;

/// Maximum number of chunks of one object header: the first chunk and all continuations.
pub const HEADER_CHUNKS: usize = 4096;

/// Maximum number of bytes of one object header with all its chunks.
pub const HEADER_BYTES: u64 = 16 << 20;

/// Maximum messages of one object header. Version 1 counts all messages in 16 bits. Version 2
/// counts its links in 16 bits and its attributes in 16 bits.
pub const HEADER_MESSAGES: usize = 1 << 17;

/// Maximum levels of a tree of nodes (B-trees, doubling tables).
pub const TREE_DEPTH: usize = 64;

/// Maximum number of bytes of the nodes of a tree that are in memory at one time: one node of each
/// level.
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

/// Maximum number of bytes of one filtered chunk, stored or decoded, because the whole chunk is in
/// memory during decoding. An unfiltered chunk is read in parts and may have any size.
pub const CHUNK_BYTES: u64 = 1 << 30;

/// Maximum number of bytes of all concurrent large decodes together. A decode that needs more runs
/// alone. Also the maximum bytes of decoded chunks that are kept although they do not fit into the
/// cache.
pub const DECODE_BYTES: u64 = 256 << 20;

/// Maximum number of bytes of a small decode: the stored chunk, and twice the decoded chunk.
pub const SMALL_DECODE: u64 = 13 << 18;

/// Maximum number of bytes of all concurrent small decodes together.
pub const SMALL_DECODES: u64 = 40 << 20;

/// Maximum number of bytes of a medium decode. A medium decode does not wait for large ones.
pub const MEDIUM_DECODE: u64 = 64 << 20;

/// Maximum number of bytes of all concurrent medium decodes together.
pub const MEDIUM_DECODES: u64 = 128 << 20;

/// Maximum number of bytes of freed buffers that are kept for the next chunks and replies.
pub const POOL_BYTES: u64 = 16 << 20;

/// Time for which a chunk larger than the cache is kept after its last read.
pub const KEPT_TIME: std::time::Duration = std::time::Duration::from_secs(10);

/// Maximum number of chunks that wait for decoding ahead of readers.
pub const PREFETCH_CHUNKS: usize = 64;

/// Number of bytes of the first read-ahead of a sequential reader of an array.
pub const AHEAD_LEAST: u64 = 1 << 20;

/// Maximum number of bytes of the read-ahead of a sequential reader of an array.
pub const AHEAD_BYTES: u64 = 64 << 20;

/// Maximum ranges of a remote source that are requested together.
pub const RANGES_AT_ONCE: usize = 4096;

/// Maximum number of bytes of metadata of a remote source that are requested together with one
/// structure.
pub const HINTED_METADATA: u64 = 4 << 20;

/// Number of chunks of an array in a remote source that readers touch until the whole array is
/// requested. An eighth of the array's chunks, but at least two, also suffices.
pub const TOUCHED_CHUNKS: u64 = 8;

/// Maximum stored bytes of an array in a remote source that is requested whole.
pub const WHOLE_BYTES: u64 = 256 << 20;

/// Maximum number of chunks of an array in a remote source that is requested whole.
pub const WHOLE_CHUNKS: u64 = 65_536;

/// Maximum chunk offsets in a remote source that an open array remembers.
pub const LOCATED_CHUNKS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(1024).unwrap();

/// Maximum number of bytes of one attribute's value. Two copies are in memory during the read.
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

/// Maximum symbol table nodes without entries that one listing of an old-style group skips. A seek
/// also skips nodes with entries: a node with up to 64 entries counts as one, a larger one as
/// several.
pub const PASSED_NODES: usize = 1 << 19;

/// Number of symbol table nodes that one unreadable node, one unreadable name or one repeated name
/// counts as.
pub const UNREAD_NODES: usize = 128;

/// Maximum unreadable links on a heap that one reply skips.
pub const UNREAD_LINKS: usize = 1 << 20;

/// Maximum links on a heap that one reply skips because they repeat the previous name, or are
/// stored under the hash of another name.
pub const PASSED_LINKS: usize = 4096;

/// Maximum nodes of a version 1 B-tree that are read to find one entry.
pub const EMPTY_NODES: usize = 4096;

/// Maximum number of chunks of an index that are outside of their dataset and are skipped.
pub const STRAY_CHUNKS: usize = 1 << 20;

/// Length in bytes of a link's text that a search through links counts as one more link.
pub const SEARCHED_TEXT: usize = 128;

/// Maximum links of one file that the search for canonical paths follows.
pub const PATH_INDEX_LINKS: usize = 400_000;

/// Maximum number of bytes of names that the search for canonical paths in one file keeps.
pub const PATH_INDEX_NAMES: usize = 6 << 20;

/// Maximum steps from an object to the root when its path is assembled.
pub const PATH_DEPTH: usize = 1 << 16;

/// Maximum number of bytes of all open objects: descriptions of arrays, texts, and positions of
/// readers of texts and listings.
pub const OPEN_BYTES: u64 = 256 << 20;

/// Maximum missing or refused other files that `.h5fs/errors` names, for each file of a mount.
pub const NAMED_ABSENT: usize = 1000;

/// Maximum number of bytes of a line of `.h5fs/errors`.
pub const ERROR_LINE: usize = 4096;

/// Maximum number of bytes of the array descriptions that a mounted file keeps after the last
/// handle is closed.
pub const READERS: u64 = 1 << 20;

/// Maximum number of chunks of an array whose stored size is computed for a directory's listing,
/// without a `stat`.
pub const LISTED_CHUNKS: u64 = 64;

/// Maximum symbolic links that are followed in one path.
pub const SYMLINK_HOPS: usize = 40;

/// Maximum number of chunks that are counted for `st_blocks` and for holes. Later chunks are
/// reported as data.
pub const ALLOCATION_WALK: usize = 1 << 17;

/// Maximum number of bytes of a file name in a directory entry of the kernel.
pub const NAME_BYTES: usize = 255;

/// Maximum number of bytes of the path of another file: the longest path that Linux accepts.
pub const FILE_PATH: usize = 4095;

/// Maximum number of bytes of an error's text.
pub const ERROR_TEXT: usize = 2048;

/// Maximum number of bytes of the names of fields that a message lists.
pub const NAMED_FIELDS: usize = 500;

/// Maximum number of bytes of an ASDF tree's text. The same limit applies to the texts of all
/// scalars and of all keys that are mappings or sequences together.
pub const TREE_BYTES: u64 = 12 << 20;

/// Maximum number of bytes of a tree's text that is parsed concurrently with other trees. Larger
/// trees are parsed one at a time.
pub const TREE_TURN: u64 = 256 << 10;

/// Maximum nodes of an ASDF tree, including its keys and counting each alias. They take about 35
/// MiB and half a second.
pub const TREE_NODES: usize = 400_000;

/// Maximum levels of an ASDF tree.
pub const TREE_LEVELS: usize = 1000;

/// Maximum anchors of an ASDF tree. The parser keeps all anchors while it reads the text.
pub const TREE_ANCHORS: usize = 100_000;

/// Maximum number of bytes of all resolved tags of an ASDF tree's nodes.
pub const TREE_TAGS_WRITTEN: usize = 32 << 20;

/// Maximum number of bytes of the different tags of an ASDF tree, plus [`TREE_TAG`] for each.
pub const TREE_TAGS: usize = 1 << 20;

/// Number of bytes that each different tag of an ASDF tree counts as, in addition to its text.
pub const TREE_TAG: usize = 64;

/// Maximum number of bytes of a reference in an ASDF tree, and of an alias's path.
pub const TREE_PATH: usize = 64 << 10;

/// Maximum mapping entries that all merge keys of an ASDF tree add or skip.
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

/// Maximum stored bytes of a compressed ASDF block, in addition to sixteen times its content.
pub const BLOCK_SURPLUS: u64 = 64 << 20;

/// Maximum stored bytes of an ASDF block that is decoded in one piece, in addition to nine eighths
/// of its content.
pub const WHOLE_SURPLUS: u64 = 1 << 20;

/// Maximum parts of one compressed stream at which decoding can start.
pub const STREAM_PARTS: usize = 1 << 16;

/// Binary logarithm of the maximum bytes that a Zstandard frame may refer back to. The decoder has
/// the same limit.
pub const ZSTD_WINDOW_LOG: u32 = 27;

/// Maximum KiB of memory for an .xz stream's dictionary.
pub const XZ_KIB: u32 = 80 << 10;

/// Maximum positions of one zlib stream at which decoding can start. Each takes 43 KiB.
pub const ZLIB_CHECKPOINTS: usize = 128;

/// Maximum ASDF blocks of one file whose decoders are kept between two reads.
pub const RESUMABLE_BLOCKS: usize = 2;

/// Maximum number of bytes of decoded bzip2 blocks that one ASDF block keeps.
pub const BZIP2_KEPT: u64 = 16 << 20;

/// Average bytes that are read to find the objects of one global heap collection. The collections
/// of the HDF5 library have 4 KiB, or few objects.
pub const COLLECTION_METADATA: u64 = 16 << 10;

/// Maximum number of bytes of fractal heap objects that one listing reads. In a larger file, the
/// maximum is the length of the file.
pub const HEAP_LISTING: u64 = 256 << 20;

/// Maximum attributes of one object.
pub const ATTRIBUTES: u64 = 1 << 20;

/// Maximum member files of a family.
pub const FAMILY_MEMBERS: u64 = 1000;

/// Maximum structures in the metadata cache images of all files of a mount together, 24 bytes each.
pub const CACHE_IMAGE_ENTRIES: usize = 1 << 16;

/// Maximum number of bytes of the names of raw files that one HDF5 dataset lists.
pub const RAW_FILE_NAMES: usize = 1 << 20;

/// Maximum number of bytes of a selection that a region reference points to.
pub const REGION_BYTES: u64 = 16 << 20;

/// Maximum number of runs of elements in one irregular selection.
pub const REGION_RUNS: usize = 1 << 20;

/// Maximum number of bytes of the runs of all parts of one virtual dataset. A non-rectangular
/// column of many rows has one run for each row.
pub const VIRTUAL_RUNS: u64 = 16 << 20;

/// Maximum parts of one virtual dataset, counting each file of a `printf` name, and maximum chunks
/// of one ASDF chunked ndarray.
pub const VIRTUAL_MAPPINGS: usize = 1 << 16;

/// Maximum stored bytes of the list of a virtual dataset's parts.
pub const VIRTUAL_LIST: u64 = 16 << 20;

/// Maximum number of bytes of a name in the list of a virtual dataset's parts.
pub const VIRTUAL_NAME: usize = 4096;

/// Maximum number of bytes of memory for the parts of one virtual dataset, including the parts of
/// sources that are also virtual datasets.
pub const VIRTUAL_BYTES: u64 = 24 << 20;

/// Maximum number of bytes of a virtual dataset's parts that are read concurrently with others.
/// Larger lists of parts are read one at a time.
pub const VIRTUAL_TURN: u64 = 1 << 20;

/// Maximum number of bytes of large objects that are parsed to describe one virtual dataset, or to
/// open one of its sources. An object that is parsed twice counts twice.
pub const VIRTUAL_WORK: u64 = 128 << 20;

/// Number of bytes of the smallest object that counts as large for [`VIRTUAL_WORK`].
pub const VIRTUAL_SMALL: u64 = 96 << 10;

/// Maximum number of bytes of the descriptions of sources, and of the elements in them, that all
/// virtual datasets of a mount keep together.
pub const VIRTUAL_SOURCES: u64 = 4 << 20;

/// Maximum number of elements of parts that are read for one element of a virtual dataset, because
/// parts may overlap.
pub const VIRTUAL_OVERLAPS: u64 = 16;

/// Maximum remote sources that one read of a virtual array opens before it reads from the first.
pub const VIRTUAL_FAR: usize = 32;

/// Maximum threads that open the remote sources of one read.
pub const VIRTUAL_FAR_THREADS: usize = 8;

/// Maximum nesting of virtual datasets.
pub const VIRTUAL_DEPTH: usize = 16;

/// Maximum number of files that a mount watches for changes, open or not. Each watch costs the
/// kernel a kilobyte. For all other files, only the times show a change.
pub const FILE_WATCHES: usize = 4096;

/// Maximum concurrent requests to the fetcher for bytes that a reader waits for.
pub const NEEDED_RUNS_ASKED: usize = 64;

/// Maximum concurrent requests to the fetcher at which a read-ahead request may still start.
pub const EXPECTED_RUNS_ASKED: usize = 64;

/// Maximum read-ahead requests that wait to be sent to the fetcher.
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

/// Maximum number of runs of pages that are remembered because their request failed, so that they
/// are not requested again at once.
pub const FAILED_RUNS: usize = 64;

/// Maximum ranges that are accepted in one hint about the bytes that later reads need.
pub const HINTED_RANGES: usize = 1 << 16;

/// Time after which a write counts as complete if only the time of its start is known.
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

/// Maximum number of bytes of one element, and of its text, in a text view of an array.
pub const TEXT_ELEMENT_BYTES: u64 = 16 << 20;

/// Maximum values of a quick count or a quick picture. Larger ones wait until other requests of
/// this kind are done.
pub const QUICK_VALUES: u64 = 1 << 12;

/// Maximum integers or references in an attribute that marks an object for a convention.
pub const MARKS: usize = 65_536;

/// Maximum number of elements of a variable-length dataset that is shown as a file, because
/// computing its size reads all elements.
pub const VARIABLE_LENGTH_ELEMENTS: u64 = 1 << 28;

/// Maximum number of bytes of the names of other files that the search for canonical paths in one
/// file keeps.
pub const NAMED_FILES: usize = 1 << 20;

/// Maximum runs of bytes without a NUL that an HDF5 file remembers, so that the ends of long
/// strings are found without reading the run again.
pub const LONG_STRINGS: usize = 4096;

/// Maximum lines of the log that are kept for the user who mounts, if syslog is unavailable.
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

/// Maximum members of a group that are sorted for people. A larger group is shown in the order of
/// the file's index.
pub const ORDERED_MEMBERS: u64 = 65_536;

/// Maximum number of bytes of memory for sorting the names of members.
pub const ORDERED_BYTES: u64 = 32 << 20;

/// Maximum number of bytes of one read by another program, unless its options say otherwise.
pub const READ_BYTES: u64 = 1 << 30;
