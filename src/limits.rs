//! Every number that bounds what a file may make the program do, in one place.
//!
//! A structure that asks for more is answered with [`Error::Limit`](crate::error::Error::Limit).

/// Bytes of one metadata structure that is fetched in one piece (object header chunk, heap block, node).
/// At most two thirds of what is kept, so that what many steps need in turn is there for all of them.
pub const METADATA_BLOCK: u64 = METADATA_CACHE / 3 * 2;

/// Bytes of metadata that one request looks at: blocks that are fetched and verified, and object headers. It takes some
/// quarter of a second.
pub const REQUEST_METADATA: u64 = 256 << 20;

/// Looks at one structure of a file that grows, until it is taken for damaged.
pub const GROWING_ATTEMPTS: u32 = 100;

/// Bytes of verified metadata blocks that all HDF5 files of a mount keep together: as many as a group of a million links has,
/// which is listed in an order that goes to and fro in them.
pub const METADATA_CACHE: u64 = 24 << 20;

/// Bytes of parsed objects (group, dataset, committed datatype) that all HDF5 files of a mount keep together.
pub const OBJECT_CACHE: u64 = 4 << 20;

/// Bytes of described nodes that all ASDF files of a mount keep together.
pub const NODE_CACHE: u64 = 4 << 20;

/// Blocks of one object header: its first chunk and all continuations.
pub const HEADER_CHUNKS: usize = 4096;

/// Bytes of one object header, all its blocks together.
pub const HEADER_BYTES: u64 = 16 << 20;

/// Messages of one object header. Version 1 counts them in 16 bits, version 2 its links and its attributes in as many each.
pub const HEADER_MESSAGES: usize = 1 << 17;

/// Levels of a tree of nodes (B-trees, doubling tables).
pub const TREE_DEPTH: usize = 64;

/// Bytes of all nodes of a tree that are in use at a time: one of each level.
pub const TREE_BRANCH: u64 = METADATA_CACHE;

/// Datatypes within datatypes (compound, array, variable-length, enumeration).
pub const DATATYPE_DEPTH: usize = 64;

/// Members of one compound or enumeration datatype, and datatypes within one datatype message.
pub const DATATYPE_MEMBERS: usize = 65_536;

/// Dimensions of a dataspace.
pub const RANK: usize = 32;

/// Filters in one pipeline.
pub const FILTERS: usize = 32;

/// Bytes that the filters of a pipeline may add to a chunk, besides an eighth of its length.
pub const FILTER_OVERHEAD: usize = 64 << 10;

/// Bytes of memory that chunks have left and the next ones will use.
pub const SPARE_BYTES: u64 = 16 << 20;

/// Bytes of one filtered chunk, as stored and as decoded: it is in memory whole while it is decoded. Chunks
/// without filters are read in parts and may be of any size.
pub const CHUNK_BYTES: u64 = 1 << 30;

/// Bytes that all large decodes under way take together, one that needs more being alone; and the decoded chunks that are
/// kept because the cache is too small for them.
pub const DECODE_BYTES: u64 = 256 << 20;

/// Bytes that a small decode takes at most: as stored, and twice as decoded.
pub const SMALL_DECODE: u64 = 13 << 18;

/// Bytes that all small decodes under way take together.
pub const SMALL_DECODES: u64 = 40 << 20;

/// Bytes that a decode takes at most that waits for no larger one.
pub const MEDIUM_DECODE: u64 = 64 << 20;

/// Bytes that all decodes of more than a small one's, and no more than that, take together.
pub const MEDIUM_DECODES: u64 = 128 << 20;

/// How long a chunk is kept that the cache is too small for, after it was last read.
pub const KEPT_TIME: std::time::Duration = std::time::Duration::from_secs(10);

/// After which a request that is still under way no longer keeps those of other objects waiting.
pub const SLOW_REQUEST: std::time::Duration = std::time::Duration::from_millis(10);

/// Requests that take longer and are under way at a time, beside one for each thread.
pub const SLOW_REQUESTS: usize = 16;

/// How long a thread waits for such requests before it ends.
pub const IDLE_WORKER: std::time::Duration = std::time::Duration::from_secs(10);

/// Chunks that wait to be decoded ahead of readers.
pub const PREFETCH_CHUNKS: usize = 64;

/// Bytes of small chunks that are decoded ahead of one reader.
pub const PREFETCH_BYTES: u64 = 8 << 20;

/// Bytes of one attribute's value, which is in memory twice while it is read.
pub const ATTRIBUTE_BYTES: u64 = 8 << 20;

/// Bytes of one attribute's text as a file.
pub const ATTRIBUTE_TEXT: usize = 8 << 20;

/// Bytes of an object on a fractal heap: those of an attribute, and of its name, datatype and dataspace.
pub const HEAP_OBJECT: u64 = ATTRIBUTE_BYTES + (256 << 10);

/// Bytes of one variable-length element.
pub const VARIABLE_LENGTH_BYTES: u64 = 1 << 30;

/// Bytes of a name in an old-style group, and of a path that a link there leads over.
pub const LINK_TEXT: usize = 64 << 10;

/// What may be passed over by one listing of an old-style group: nodes without entries and, in a seek, with up to 64, more
/// counting as several.
pub const PASSED_NODES: usize = 1 << 19;

/// Nodes that count as much as one that cannot be read, or a name that cannot, or that is the one before.
pub const UNREAD_NODES: usize = 128;

/// Links on a heap that cannot be read and are passed over by one answer.
pub const UNREAD_LINKS: usize = 1 << 20;

/// Links on a heap that have the name of the one before, or are filed under the hash of another name,
/// and are passed over by one answer.
pub const PASSED_LINKS: usize = 4096;

/// Nodes of a B-tree of version 1 that are met on the way to one entry.
pub const EMPTY_NODES: usize = 4096;

/// Chunks in an index that are outside of their dataset and passed over.
pub const STRAY_CHUNKS: usize = 1 << 20;

/// Bytes of a link's text that a search through links looks at for the price of a link.
pub const SEARCHED_TEXT: usize = 128;

/// Links that the search for canonical paths in one file follows before it gives up.
pub const PATH_INDEX_LINKS: usize = 400_000;

/// Bytes of all names together that the search for canonical paths in one file keeps.
pub const PATH_INDEX_NAMES: usize = 6 << 20;

/// Bytes that the canonical paths of all files of a mount take together: at least what one of the most links and names does.
pub const PATH_INDEXES: u64 = 18 << 20;

/// Steps from an object up to the root when its path is put together.
pub const PATH_DEPTH: usize = 1 << 16;

/// After which a listing hands out what it has, and is asked for the rest.
pub const LISTING_TIME: std::time::Duration = std::time::Duration::from_millis(250);

/// Links that are looked through for one whose name was too long to be shown whole.
pub const CUT_NAME_LINKS: usize = 1 << 20;

/// Bytes of names that were too long to be shown whole and are remembered once found.
pub const CUT_NAMES: u64 = 1 << 20;

/// Files and directories of one mount that are open at a time.
pub const OPEN_HANDLES: usize = 1 << 16;

/// Bytes that count for any of them.
pub const OPEN_HANDLE: u64 = 1 << 10;

/// Bytes of the descriptions of arrays, of texts, and of where readers of texts and listings are,
/// that are open at a time.
pub const OPEN_BYTES: u64 = 256 << 20;

/// Bytes of the descriptions of arrays whose readers a mounted file keeps after the last handle is closed.
pub const READERS: u64 = 1 << 20;

/// Objects whose last error a mounted file remembers.
pub const OBJECT_ERRORS: usize = 1024;

/// Chunks an array may have for its stored size to be worked out unasked, with a directory's listing.
pub const LISTED_CHUNKS: u64 = 64;

/// Symbolic links that are followed on the way of one path.
pub const SYMLINK_HOPS: usize = 40;

/// Chunks that are counted for `st_blocks` and for holes; beyond them the rest is taken as data.
pub const ALLOCATION_WALK: usize = 1 << 17;

/// Bytes of decoded chunks that are kept at first, where the user does not say. More would be kept twice,
/// the kernel having its page cache, and cost page faults and misses: decoding into memory that chunks
/// evicted just before leave, and that the processor's cache therefore still has, is a third faster than
/// into fresh memory, and a sixth faster than into that of 32 MiB ago.
pub const CACHE_LEAST: u64 = 8 << 20;

/// Evicted chunks that are remembered, so that the cache grows when they are read again.
pub const DEPARTED_CHUNKS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(1 << 16).unwrap();

/// Bytes up to which the cache grows where that spares decoding chunks again: a quarter of memory, but not
/// outside these bounds.
pub const CACHE_MOST: std::ops::RangeInclusive<u64> = (64 << 20)..=(1 << 30);

/// Bytes of a file name that the kernel's directory entries can hold.
pub const NAME_BYTES: usize = 255;

/// Bytes of one extended attribute's value, and of one object's list of names.
pub const XATTR_BYTES: usize = 65_536;

/// Bytes of text that one list of attributes makes of their values, to leave out those that are too long.
pub const LISTED_TEXT: usize = 8 << 20;

/// Bytes of the path of another file: as many as Linux takes.
pub const FILE_PATH: usize = 4095;

/// Bytes of what an error says went wrong.
pub const ERROR_TEXT: usize = 2048;

/// Bytes of a symbolic link's text.
pub const SYMLINK_BYTES: usize = 4095;

/// Bytes of an ASDF tree's text, and of what its scalars and its keys that are collections say.
pub const TREE_BYTES: u64 = 12 << 20;

/// Nodes of an ASDF tree, keys included, aliases counted each time. They take some 35 MiB and half a second.
pub const TREE_NODES: usize = 400_000;

/// Levels of an ASDF tree.
pub const TREE_LEVELS: usize = 1000;

/// Anchors of an ASDF tree, which the parser keeps while it reads the text.
pub const TREE_ANCHORS: usize = 100_000;

/// Bytes of all tags of an ASDF tree's nodes, as they are meant.
pub const TREE_TAGS_WRITTEN: usize = 32 << 20;

/// Bytes of those that differ, [`TREE_TAG`] counted for each besides.
pub const TREE_TAGS: usize = 1 << 20;

/// Bytes that count for any tag of an ASDF tree.
pub const TREE_TAG: usize = 64;

/// Bytes of a reference, and of the path that an alias leads over, in an ASDF tree.
pub const TREE_PATH: usize = 64 << 10;

/// Mapping entries that the merge keys of an ASDF tree bring in or pass over, all together.
pub const TREE_MERGED: usize = 1 << 20;

/// Bytes that are searched for the first block of an ASDF file.
pub const BLOCK_SEARCH: u64 = 64 << 20;

/// Blocks of one ASDF file.
pub const BLOCKS: usize = 1 << 20;

/// Blocks whose headers an ASDF file keeps, with what was made of them.
pub const BLOCK_CACHE: std::num::NonZeroUsize = std::num::NonZeroUsize::new(1024).unwrap();

/// Bytes at the end of an ASDF file that are searched for the block index.
pub const BLOCK_INDEX_SEARCH: u64 = 16 << 20;

/// Bytes that describing one ASDF ndarray or chunked ndarray looks at and makes, and finding the nulls of one: texts of the
/// tree, aliases counted each time, with 16 for each node. It takes less than a second.
pub const DESCRIPTION: u64 = REQUEST_METADATA / 4 * 3;

/// Bytes of the text of a number in an ASDF tree, and of a date.
pub const NUMBER_TEXT: usize = 4096;

/// Bytes of the names of all fields of one ASDF ndarray's datatype together.
pub const FIELD_NAMES: usize = 1 << 20;

/// Bytes of one ASDF ndarray's inline data.
pub const INLINE_BYTES: u64 = 64 << 20;

/// Entries of mappings and bytes of references that are looked at to describe the chunks of one ASDF chunked ndarray.
pub const CHUNK_ENTRIES: usize = 1 << 22;

/// Chunks of one ASDF chunked ndarray that do not say their shape.
pub const SHAPELESS_CHUNKS: usize = 256;

/// Dimensions of all chunks of one ASDF chunked ndarray together.
pub const CHUNK_AXES: usize = 1 << 19;

/// Elements of all chunks of one ASDF chunked ndarray that stand in the tree, aliases counted each time.
pub const CHUNK_ELEMENTS: u64 = 1 << 20;

/// Bytes of large ndarrays and texts that all ASDF files of a mount keep together as they were made of their trees.
pub const INLINE_KEPT: u64 = 32 << 20;

/// Decoded bytes of a compressed ASDF block that is always decoded at once.
pub const WHOLE_BLOCK: u64 = 16 << 20;

/// Bytes of a piece of a compressed ASDF block that is one long stream.
pub const BLOCK_PIECE: std::num::NonZeroU64 = std::num::NonZeroU64::new(1 << 20).unwrap();

/// Separately compressed chunks of one ASDF block.
pub const BLOCK_CHUNKS: usize = 1 << 20;

/// Chunks of one ASDF block of which is kept where they are; those between are found from there.
pub const CHUNK_MARKS: usize = 1 << 16;

/// Bytes that the places of chunks in ASDF blocks take, of all files of a mount together: four blocks of the most chunks.
pub const CHUNK_TABLES: u64 = 5 << 20;

/// Stored bytes of a compressed ASDF block beside sixteen times those of its content.
pub const BLOCK_SURPLUS: u64 = 64 << 20;

/// Stored bytes of an ASDF block that is decoded at once beside nine eighths of those of its content.
pub const WHOLE_SURPLUS: u64 = 1 << 20;

/// Parts of one compressed stream that are found without the way from its beginning.
pub const STREAM_PARTS: usize = 1 << 16;

/// Binary logarithm of the bytes that a Zstandard frame may refer back to: what the decoder itself keeps to.
pub const ZSTD_WINDOW_LOG: u32 = 27;

/// KiB of memory that an .xz stream's dictionary may take.
pub const XZ_KIB: u32 = 80 << 10;

/// ASDF blocks of one file for which is kept what it takes to decode a stream on.
pub const RESUMABLE_BLOCKS: usize = 2;

/// Bytes of memory that the bzip2 blocks take that one ASDF block keeps decoded.
pub const BZIP2_KEPT: u64 = 16 << 20;

/// Threads that serve requests.
pub const THREADS: usize = 256;

/// Bytes of memory that reading may take beside the cache and what each thread takes: the largest chunk as it is stored and
/// twice decoded, what is open, decoders of two ASDF streams, 64 MiB for all else, and what allocators leave unused.
pub const SERVING_BYTES: u64 = {
    let (decoders, unused) = (2 * (160 << 20), 1 << 30);
    3 * CHUNK_BYTES + OPEN_BYTES + decoders + (64 << 20) + unused
};

/// Bytes of memory that each thread that serves requests may take: 16 MiB for a request, its stack, a reply, and the stacks
/// of those that decode for it.
pub const THREAD_BYTES: u64 = 64 << 20;

/// Threads that a user may have, when a source is opened for reading, beside as many as the whole system has.
pub const OWN_THREADS: u64 = 4096;

/// Bytes that are looked at to find the objects of one global heap collection, on average: those of the HDF5 library have
/// 4 KiB, or few objects.
pub const COLLECTION_METADATA: u64 = 16 << 10;

/// Bytes of directories of global heap collections that all files of a mount keep together: at least the largest one.
pub const GLOBAL_HEAP_CACHE: u64 = 2 << 20;

/// Bytes of objects on a fractal heap that one listing fetches in a file that is shorter than that.
pub const HEAP_LISTING: u64 = 256 << 20;

/// Places of a long listing that an open directory of an old-style group remembers, some 80 bytes each.
pub const LISTING_MARKS: usize = 2048;

/// Links between two such places, at least.
pub const LISTING_MARKS_APART: u64 = 128;

/// Attributes of one object.
pub const ATTRIBUTES: u64 = 1 << 20;

/// Member files of a family.
pub const FAMILY_MEMBERS: u64 = 1000;

/// Structures in the metadata cache images of all files of a mount together, 24 bytes each.
pub const CACHE_IMAGE_ENTRIES: usize = 1 << 16;

/// Raw files that hold elements of HDF5 datasets and that each HDF5 file keeps open.
pub const OPEN_RAW_FILES: std::num::NonZeroUsize = std::num::NonZeroUsize::new(64).unwrap();

/// Bytes of the names of raw files that one HDF5 dataset lists.
pub const RAW_FILE_NAMES: usize = 1 << 20;

/// Bytes of a selection that a region reference points to.
pub const REGION_BYTES: u64 = 16 << 20;

/// Runs of elements that an irregular selection may consist of.
pub const REGION_RUNS: usize = 1 << 20;

/// Bytes that the runs of all parts of one virtual dataset take. A column of many rows that is no rectangle has one run a
/// row.
pub const VIRTUAL_RUNS: u64 = 16 << 20;

/// Mappings of one virtual dataset, those that a `printf` name stands for each counted; chunks of one ASDF
/// chunked ndarray.
pub const VIRTUAL_MAPPINGS: usize = 1 << 16;

/// Bytes of the list of a virtual dataset's parts, as it is stored.
pub const VIRTUAL_LIST: u64 = 16 << 20;

/// Bytes of a name in that list.
pub const VIRTUAL_NAME: usize = 4096;

/// Bytes of memory that the parts of one virtual dataset take, with those of others that it is described by.
pub const VIRTUAL_BYTES: u64 = 24 << 20;

/// Bytes of them that any number of threads may take at the same time; more than that only one.
pub const VIRTUAL_TURN: u64 = 1 << 20;

/// Bytes of large objects that are parsed to describe one virtual dataset, or to open one of its sources, those that are
/// parsed again counted again.
pub const VIRTUAL_WORK: u64 = 128 << 20;

/// Bytes of an object that is not large.
pub const VIRTUAL_SMALL: u64 = 96 << 10;

/// Bytes of the descriptions of their sources that all virtual datasets of a mount keep together, elements that stand in
/// them included.
pub const VIRTUAL_SOURCES: u64 = 4 << 20;

/// Elements of parts of a virtual dataset that are read for one of its own: parts may lie over each other.
pub const VIRTUAL_OVERLAPS: u64 = 16;

/// Virtual datasets within virtual datasets.
pub const VIRTUAL_DEPTH: usize = 16;

/// Other files, open or not, of which each mounted file knows what they looked like, some 250 bytes
/// each.
pub const SEEN_NEIGHBOURS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(1 << 14).unwrap();

/// Files that a mount watches for changes, open or not, each of which costs the kernel a kilobyte.
/// Of others only the times tell.
pub const FILE_WATCHES: usize = 4096;

/// After which a write has ended, where nothing tells but the time at which it began.
pub const UNSEEN_WRITE: std::time::Duration = std::time::Duration::from_secs(60);

/// Other files that an ASDF file keeps open, which its arrays have their elements in.
pub const OPEN_NEIGHBOURS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(128).unwrap();

/// Sources of virtual datasets, and files that these are in, that a mount keeps of either: each may
/// hold a file open.
pub const OPEN_VIRTUAL_SOURCES: std::num::NonZeroUsize = std::num::NonZeroUsize::new(256).unwrap();

/// Links that the path of a soft link may lead over, of which as many may be soft as [`SYMLINK_HOPS`].
pub const PATH_LINKS: usize = 256;

/// Dimensions of an array together with those of elements that are arrays.
pub const SELECTION_RANK: usize = 64;

/// Bytes of one element, and of its text, where an array is shown as text.
pub const TEXT_ELEMENT_BYTES: u64 = 16 << 20;

/// Columns of one element where an array is shown as csv.
pub const CSV_COLUMNS: usize = 65_536;

/// Elements of a variable-length dataset that is served as a file: its size takes a walk over all of them.
pub const VARIABLE_LENGTH_ELEMENTS: u64 = 1 << 28;

/// Other files that external links lead to and that a mount knows.
pub const MOUNTED_FILES: usize = 32_768;

/// Bytes of the names of other files that the search for canonical paths in one file keeps.
pub const NAMED_FILES: usize = 1 << 20;

/// Other files whose links are searched for a name that no link is known to have.
pub const SEARCHED_FILES: u64 = 256;

/// After which they are searched again.
pub const SEARCH_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Other files that are mounted and kept open.
pub const OPEN_MOUNTED_FILES: usize = 16;

/// Bytes of memory that they take together; one alone may take more.
pub const OPEN_MOUNTED_BYTES: u64 = 16 << 20;

/// Links that are followed for a description of the file.
pub const NDL_LINKS: usize = 1 << 20;

/// Elements of a dimension coordinate whose values a description of the file holds.
pub const NDL_VALUES: u64 = 4096;

/// Bytes of one value, and of its text, in a description of the file.
pub const NDL_VALUE_BYTES: usize = 1 << 20;

/// Bytes of the names of a group's members, and of groups whose turn comes later, in a description of the file.
pub const NDL_NAMES: usize = 16 << 20;

/// Bytes of an object's path in a description of the file.
pub const NDL_PATH_BYTES: usize = 64 << 10;

/// Links of one group that are looked through for the scale of a netCDF dimension.
pub const NDL_SCALES: usize = 4096;

/// Runs of bytes without an end of a string that an HDF5 file remembers.
pub const LONG_STRINGS: usize = 4096;

/// Bytes of a line that a worker tells its supervisor, or a supervisor its launcher: two paths and
/// a reason, escaped.
pub const REPORT_BYTES: usize = 64 << 10;

/// How often a supervisor looks whether its mount answers.
pub const MOUNT_LOOK: std::time::Duration = std::time::Duration::from_secs(10);

/// Seconds that a mount may leave this unanswered, until it is ended. Those in which its worker
/// waits for a disk do not count.
pub const MOUNT_UNANSWERED: u32 = 60;

/// How long a mount waits for another one that is being made at the same place.
pub const MOUNT_POINT_LOCK: std::time::Duration = std::time::Duration::from_secs(10);
