//! Every number that bounds what a file may make the program do, in one place.
//!
//! A structure that asks for more is answered with [`Error::Limit`](crate::error::Error::Limit).

/// Bytes of one metadata structure that is read in one piece (object header chunk, heap block,
/// B-tree node). At most three quarters of [`METADATA_CACHE`], so that the structures that several
/// steps need in turn stay in the cache.
pub const METADATA_BLOCK: u64 = 16 << 20;

/// Bytes of metadata that one request looks at: blocks that are read and verified, and object
/// headers. Looking at all of them takes about a quarter of a second.
pub const REQUEST_METADATA: u64 = 256 << 20;

/// Bytes of verified metadata blocks that all HDF5 files of a mount keep together. A group of a
/// million links has this many, and its listing goes to and fro in them.
pub const METADATA_CACHE: u64 = 22 << 20;

/// Chunks of one object header: the first one and all continuations.
pub const HEADER_CHUNKS: usize = 4096;

/// Bytes of one object header with all its chunks.
pub const HEADER_BYTES: u64 = 16 << 20;

/// Messages of one object header. Version 1 counts all messages in 16 bits; version 2 counts
/// its links in 16 bits and its attributes in 16 bits.
pub const HEADER_MESSAGES: usize = 1 << 17;

/// Levels of a tree of nodes (B-trees, doubling tables).
pub const TREE_DEPTH: usize = 64;

/// Bytes of the nodes of a tree that are in use at a time: one node of each level.
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

/// Bytes of one filtered chunk, as stored and as decoded: the whole chunk is in memory while it
/// is decoded. A chunk without filters is read in parts and may have any size.
pub const CHUNK_BYTES: u64 = 1 << 30;

/// Bytes that all large decodes under way take together; a decode that needs more runs alone.
/// Also the bytes of the decoded chunks that are kept although the cache is too small for them.
pub const DECODE_BYTES: u64 = 256 << 20;

/// Bytes that a small decode takes at most: the chunk as stored, and twice as decoded.
pub const SMALL_DECODE: u64 = 13 << 18;

/// Bytes that all small decodes under way take together.
pub const SMALL_DECODES: u64 = 40 << 20;

/// Bytes that a medium decode takes at most. A medium decode waits for no large one.
pub const MEDIUM_DECODE: u64 = 64 << 20;

/// Bytes that all medium decodes under way take together.
pub const MEDIUM_DECODES: u64 = 128 << 20;

/// Bytes of freed buffers that are kept for the next chunks and replies.
pub const POOL_BYTES: u64 = 16 << 20;

/// Time that a chunk larger than the cache is kept after its last read.
pub const KEPT_TIME: std::time::Duration = std::time::Duration::from_secs(10);

/// Time after which a request counts as slow: it then no longer keeps requests for other
/// objects waiting.
pub const SLOW_REQUEST: std::time::Duration = std::time::Duration::from_millis(10);

/// Slow requests that are under way at a time, beside one request for each thread.
pub const SLOW_REQUESTS: usize = 16;

/// Requests under way beside these, about files of a mounted directory about which no other request
/// is.
pub const FILE_PLACES: usize = 16;

/// Time that an idle thread waits for a request before it ends.
pub const IDLE_WORKER: std::time::Duration = std::time::Duration::from_secs(10);

/// Chunks that wait to be decoded ahead of readers.
pub const PREFETCH_CHUNKS: usize = 64;

/// Bytes of an array that are asked for ahead of a sequential reader, at first.
pub const AHEAD_LEAST: u64 = 1 << 20;

/// Bytes of an array that are asked for ahead of a sequential reader, at most.
pub const AHEAD_BYTES: u64 = 64 << 20;

/// Ranges of a far source that are asked for at once.
pub const RANGES_AT_ONCE: usize = 4096;

/// Bytes of metadata of a far source that are asked for along with a structure.
pub const HINTED_METADATA: u64 = 4 << 20;

/// Objects beneath an opened directory of a far source that are looked at ahead of its readers.
pub const CRAWLED_OBJECTS: usize = 4096;

/// Chunks of the larger arrays among them whose indices are looked into as well: `stat` counts those
/// that are stored.
pub const CRAWLED_CHUNKS: u64 = 4096;

/// Objects that are looked at in turn meanwhile, so that what they lack is asked for at once.
pub const CRAWL_WINDOW: usize = 256;

/// Times that one object is looked at: once for each of its structures that has to come first.
pub const CRAWL_LOOKS: u32 = 64;

/// Groups of a far source that are known to have been looked at.
pub const CRAWLED_GROUPS: usize = 65_536;

/// Opened directories of a far source that wait to be looked into.
pub const CRAWLS: usize = 16;

/// Chunks of an array in a far source that readers touch until all of it is asked for, or an eighth
/// of its chunks.
pub const TOUCHED_CHUNKS: u64 = 8;

/// Stored bytes of an array in a far source that is asked for as a whole.
pub const WHOLE_BYTES: u64 = 256 << 20;

/// Chunks of an array in a far source that is asked for as a whole.
pub const WHOLE_CHUNKS: u64 = 65_536;

/// Places of chunks in a far source that an open array remembers.
pub const LOCATED_CHUNKS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(1024).unwrap();

/// Bytes of one attribute's value. Two copies are in memory while it is read.
pub const ATTRIBUTE_BYTES: u64 = 8 << 20;

/// Bytes of one attribute's value as text in `.h5fs/attrs`.
pub const ATTRIBUTE_TEXT: usize = 8 << 20;

/// Bytes of such texts, of ASDF values as JSON and of pictures in `png`, that an open file keeps: the
/// largest text, so that a lookup, `stat` and an open have it rendered once.
pub const KEPT_TEXTS: u64 = (8 << 20) + (64 << 10);

/// Bytes of an object on a fractal heap: an attribute's value with its name, datatype and
/// dataspace.
pub const HEAP_OBJECT: u64 = ATTRIBUTE_BYTES + (256 << 10);

/// Bytes of one variable-length element.
pub const VARIABLE_LENGTH_BYTES: u64 = 1 << 30;

/// Bytes of a name in an old-style group, and of the path of a soft link there.
pub const LINK_TEXT: usize = 64 << 10;

/// Symbol table nodes without entries that one listing of an old-style group passes over.
/// During a seek, nodes with entries are passed over as well: a node with up to 64 entries
/// counts as one, a larger one as several.
pub const PASSED_NODES: usize = 1 << 19;

/// Symbol table nodes that one unreadable node, one unreadable name or one repeated name counts
/// for.
pub const UNREAD_NODES: usize = 128;

/// Unreadable links on a heap that one answer passes over.
pub const UNREAD_LINKS: usize = 1 << 20;

/// Links on a heap that one answer passes over because they repeat the name before, or are
/// filed under the hash of another name.
pub const PASSED_LINKS: usize = 4096;

/// Nodes of a version 1 B-tree that are read on the way to one entry.
pub const EMPTY_NODES: usize = 4096;

/// Chunks of an index that lie outside of their dataset and are passed over.
pub const STRAY_CHUNKS: usize = 1 << 20;

/// Bytes of a link's text that a search through links counts as one link.
pub const SEARCHED_TEXT: usize = 128;

/// Links of one file that the search for canonical paths follows.
pub const PATH_INDEX_LINKS: usize = 400_000;

/// Bytes of names that the search for canonical paths in one file keeps.
pub const PATH_INDEX_NAMES: usize = 6 << 20;

/// Steps from an object up to the root when its path is put together.
pub const PATH_DEPTH: usize = 1 << 16;

/// Time after which a listing hands out the entries that it has; the next request goes on.
pub const LISTING_TIME: std::time::Duration = std::time::Duration::from_millis(250);

/// Time in which a text of a file that grows is written in full when it is opened, so that all of it
/// is of one state.
pub const GROWING_TIME: std::time::Duration = std::time::Duration::from_millis(250);

/// Links that are searched for one whose name was cut because it was too long to be shown.
pub const CUT_NAME_LINKS: usize = 1 << 20;

/// Bytes of a text of a file that grows that is written in full when it is opened.
pub const GROWING_TEXT: usize = 1 << 20;

/// Files and directories of one mount that are open at a time.
pub const OPEN_HANDLES: usize = 1 << 16;

/// Bytes that each open file or directory counts for.
pub const OPEN_HANDLE: u64 = 1 << 10;

/// Bytes of what is open at a time: descriptions of arrays, texts, and the positions of readers
/// of texts and listings.
pub const OPEN_BYTES: u64 = 256 << 20;

/// Errors that `.h5fs/errors` lists.
pub const LAST_ERRORS: usize = 1000;

/// Absent and refused other files that are named there, of each file of a mount.
pub const NAMED_ABSENT: usize = 1000;

/// Bytes of one of its lines.
pub const ERROR_LINE: usize = 4096;

/// Inodes that the kernel has forgotten and that are kept, with `noforget`.
pub const FORGOTTEN_INODES: usize = 1 << 18;

/// Bytes of the array descriptions that a mounted file keeps after the last handle is closed.
pub const READERS: u64 = 1 << 20;

/// Objects of a mounted file whose last error is remembered.
pub const OBJECT_ERRORS: usize = 1024;

/// Chunks of an array whose stored size is computed for a directory's listing, without a
/// `stat`.
pub const LISTED_CHUNKS: u64 = 64;

/// Symbolic links that are followed on the way of one path.
pub const SYMLINK_HOPS: usize = 40;

/// Chunks that are counted for `st_blocks` and for holes; the rest is taken as data.
pub const ALLOCATION_WALK: usize = 1 << 17;

/// Bytes of decoded chunks that are kept at first if the user does not say. With more, the
/// kernel's page cache would keep the same bytes again. Decoding into memory that was freed
/// just before, and is therefore still in the processor's cache, is a third faster than
/// decoding into fresh memory, and a sixth faster than into memory that was freed 32 MiB ago.
pub const CACHE_LEAST: u64 = 8 << 20;

/// Bounds of the size, in bytes, up to which the cache grows where that spares decoding chunks
/// again: a quarter of the machine's memory, but within these bounds.
pub const CACHE_MOST: std::ops::RangeInclusive<u64> = (64 << 20)..=(1 << 30);

/// Bytes of a file name in a directory entry of the kernel.
pub const NAME_BYTES: usize = 255;

/// Bytes of one extended attribute's value, and of one object's list of names.
pub const XATTR_BYTES: usize = 65_536;

/// Bytes of the attributes' texts that are made for one list of attributes; the texts tell
/// which attributes are too long for the list.
pub const LISTED_TEXT: usize = 8 << 20;

/// Bytes of the path of another file: the longest that Linux takes.
pub const FILE_PATH: usize = 4095;

/// Bytes of an error's text.
pub const ERROR_TEXT: usize = 2048;

/// Bytes of the names of fields that a message lists.
pub const NAMED_FIELDS: usize = 500;

/// Bytes of a symbolic link's text.
pub const SYMLINK_BYTES: usize = 4095;

/// Bytes of an ASDF tree's text, and of the texts of its scalars and of its keys that are
/// collections.
pub const TREE_BYTES: u64 = 12 << 20;

/// Bytes of a tree's text that several threads may compose at the same time, each its own; only one
/// thread at a time composes more.
pub const TREE_TURN: u64 = 256 << 10;

/// Nodes of an ASDF tree, with its keys, and with each alias counted. They take about 35 MiB
/// and half a second.
pub const TREE_NODES: usize = 400_000;

/// Levels of an ASDF tree.
pub const TREE_LEVELS: usize = 1000;

/// Anchors of an ASDF tree. The parser keeps all of them while it reads the text.
pub const TREE_ANCHORS: usize = 100_000;

/// Bytes of all resolved tags of an ASDF tree's nodes.
pub const TREE_TAGS_WRITTEN: usize = 32 << 20;

/// Bytes of the different tags of an ASDF tree, plus [`TREE_TAG`] for each.
pub const TREE_TAGS: usize = 1 << 20;

/// Bytes that each different tag of an ASDF tree counts for.
pub const TREE_TAG: usize = 64;

/// Bytes of a reference in an ASDF tree, and of the path that an alias leads over.
pub const TREE_PATH: usize = 64 << 10;

/// Mapping entries that all merge keys of an ASDF tree bring in or pass over.
pub const TREE_MERGED: usize = 1 << 20;

/// Bytes that are searched for the first block of an ASDF file.
pub const BLOCK_SEARCH: u64 = 64 << 20;

/// Blocks of one ASDF file.
pub const BLOCKS: usize = 1 << 20;

/// Bytes at the end of an ASDF file that are searched for the block index.
pub const BLOCK_INDEX_SEARCH: u64 = 16 << 20;

/// Bytes that describing one ASDF ndarray or chunked ndarray looks at and makes, or finding the
/// nulls of one: texts of the tree, plus 16 for each node, with aliases counted each time. It
/// takes less than a second.
pub const DESCRIPTION: u64 = REQUEST_METADATA / 4 * 3;

/// Bytes of the text of a number or a date in an ASDF tree.
pub const NUMBER_TEXT: usize = 4096;

/// Bytes of the names of all fields of one ASDF ndarray's datatype.
pub const FIELD_NAMES: usize = 1 << 20;

/// Bytes of one ASDF ndarray's inline data.
pub const INLINE_BYTES: u64 = 64 << 20;

/// Mapping entries and bytes of references that are looked at to describe the chunks of one
/// ASDF chunked ndarray.
pub const CHUNK_ENTRIES: usize = 1 << 22;

/// Chunks of one ASDF chunked ndarray that do not say their shape.
pub const SHAPELESS_CHUNKS: usize = 256;

/// Dimensions of all chunks of one ASDF chunked ndarray, added up.
pub const CHUNK_AXES: usize = 1 << 19;

/// Elements of all chunks of one ASDF chunked ndarray that stand in the tree, with aliases
/// counted each time.
pub const CHUNK_ELEMENTS: u64 = 1 << 20;

/// Decoded bytes of a compressed ASDF block that is always decoded in one piece.
pub const WHOLE_BLOCK: u64 = 16 << 20;

/// Separately compressed chunks of one ASDF block.
pub const BLOCK_CHUNKS: usize = 1 << 20;

/// Stored bytes of a compressed ASDF block, beside sixteen times the bytes of its content.
pub const BLOCK_SURPLUS: u64 = 64 << 20;

/// Stored bytes of an ASDF block that is decoded in one piece, beside nine eighths of the bytes
/// of its content.
pub const WHOLE_SURPLUS: u64 = 1 << 20;

/// Parts of one compressed stream at which decoding can begin.
pub const STREAM_PARTS: usize = 1 << 16;

/// Binary logarithm of the bytes that a Zstandard frame may refer back to. The decoder has the
/// same bound.
pub const ZSTD_WINDOW_LOG: u32 = 27;

/// KiB of memory that an .xz stream's dictionary may take.
pub const XZ_KIB: u32 = 80 << 10;

/// Places of one zlib stream at which decoding can begin; each takes 43 KiB.
pub const ZLIB_CHECKPOINTS: usize = 128;

/// ASDF blocks of one file whose decoders are kept between two reads.
pub const RESUMABLE_BLOCKS: usize = 2;

/// Bytes of the decoded bzip2 blocks that one ASDF block keeps.
pub const BZIP2_KEPT: u64 = 16 << 20;

/// Threads that serve requests.
pub const THREADS: usize = 256;

/// Bytes of memory that reading may take beside the cache and the threads: the largest chunk as
/// stored and twice as decoded, what is open, the decoders of two ASDF streams, files that are shown
/// as one, 64 MiB for all else, and memory that allocators leave unused.
pub const SERVING_BYTES: u64 = {
    let (decoders, unused) = (2 * (160 << 20), 384 << 20);
    // Files as one: what is known of them in an old state and the next, and as much for their arrays
    // and for what is worked out while they are joined.
    let joined = 4 * JOINED_BYTES;
    3 * CHUNK_BYTES + OPEN_BYTES + decoders + (64 << 20) + joined + unused
};

/// Bytes of memory that each thread that serves requests may take: 16 MiB for a request, its
/// stack, a reply, and the stacks of threads that decode for it.
pub const THREAD_BYTES: u64 = 64 << 20;

/// Threads that a user may have beside as many as the whole system had when the source was
/// opened.
pub const OWN_THREADS: u64 = 4096;

/// Bytes that are looked at to find the objects of one global heap collection, on average. The
/// collections of the HDF5 library have 4 KiB, or few objects.
pub const COLLECTION_METADATA: u64 = 16 << 10;

/// Bytes of fractal heap objects that one listing reads in a file that is shorter than that.
pub const HEAP_LISTING: u64 = 256 << 20;

/// Attributes of one object.
pub const ATTRIBUTES: u64 = 1 << 20;

/// Member files of a family.
pub const FAMILY_MEMBERS: u64 = 1000;

/// Structures in the metadata cache images of all files of a mount together, 24 bytes each.
pub const CACHE_IMAGE_ENTRIES: usize = 1 << 16;

/// Bytes of the names of raw files that one HDF5 dataset lists.
pub const RAW_FILE_NAMES: usize = 1 << 20;

/// Bytes of a selection that a region reference points to.
pub const REGION_BYTES: u64 = 16 << 20;

/// Runs of elements in one irregular selection.
pub const REGION_RUNS: usize = 1 << 20;

/// Bytes that the runs of all parts of one virtual dataset take. A column of many rows that is
/// no rectangle has one run for each row.
pub const VIRTUAL_RUNS: u64 = 16 << 20;

/// Parts of one virtual dataset, with each file that a `printf` name stands for counted; chunks
/// of one ASDF chunked ndarray.
pub const VIRTUAL_MAPPINGS: usize = 1 << 16;

/// Bytes of the list of a virtual dataset's parts, as it is stored.
pub const VIRTUAL_LIST: u64 = 16 << 20;

/// Bytes of a name in the list of a virtual dataset's parts.
pub const VIRTUAL_NAME: usize = 4096;

/// Bytes of memory that the parts of one virtual dataset take, with the parts of its sources
/// that are virtual datasets too.
pub const VIRTUAL_BYTES: u64 = 24 << 20;

/// Bytes of a virtual dataset's parts that several threads may take at the same time; only one
/// thread at a time takes more.
pub const VIRTUAL_TURN: u64 = 1 << 20;

/// Bytes of large objects that are parsed to describe one virtual dataset, or to open one of
/// its sources. An object that is parsed twice counts twice.
pub const VIRTUAL_WORK: u64 = 128 << 20;

/// Bytes of an object up to which it is not large in this count.
pub const VIRTUAL_SMALL: u64 = 96 << 10;

/// Bytes of the descriptions of sources that all virtual datasets of a mount keep together,
/// with the elements that the descriptions hold.
pub const VIRTUAL_SOURCES: u64 = 4 << 20;

/// Elements of parts that are read for one element of a virtual dataset: parts may lie over
/// each other.
pub const VIRTUAL_OVERLAPS: u64 = 16;

/// Far sources of one read of a virtual array that are opened before the first of them is read.
pub const VIRTUAL_FAR: usize = 32;

/// Threads that open the far sources of one read.
pub const VIRTUAL_FAR_THREADS: usize = 8;

/// Virtual datasets within virtual datasets.
pub const VIRTUAL_DEPTH: usize = 16;

/// Files of a directory that are joined.
pub const JOINED_FILES: usize = 1 << 16;

/// Names in a directory of files that are joined.
pub const JOINED_NAMES: usize = 1 << 18;

/// Bytes of memory that is kept of the files that are joined: what tells their variables,
/// dimensions and places, and the values of their coordinates.
pub const JOINED_BYTES: u64 = 64 << 20;

/// Joined files that differ in more than their values: each is described once.
pub const JOINED_SKELETONS: usize = 4096;

/// Scalars of ASDF trees that differ between files that are joined, and are named as absent.
pub const JOINED_SCALARS: usize = 1024;

/// Objects of a file that is joined with others.
pub const JOINED_OBJECTS: usize = 1 << 14;

/// Bytes of the attributes of a file that is joined with others.
pub const JOINED_ATTRIBUTES: usize = 4 << 20;

/// Bytes of the coordinates, bounds and scalars of a file that is joined with others; as many of small
/// variables are compared.
pub const JOINED_VALUES: u64 = 8 << 20;

/// Bytes of a coordinate of a file that is joined with others: it is kept. Of a longer one only the
/// ends are read.
pub const JOINED_COORDINATE: u64 = 1 << 20;

/// Bytes of a coordinate of a file that is joined with others, of which only the ends are kept.
pub const JOINED_LONG: u64 = 1 << 30;

/// Dimensions of joined files, times the files of a kind.
pub const JOINED_PLACES: usize = 4 << 20;

/// Bytes of a variable up to which it is compared in all files that are joined: a larger one that
/// no joined dimension has is that of the first file.
pub const JOINED_COMPARED: u64 = 64 << 10;

/// Sources of a virtual dataset of a file that is joined with others: whether they are missing is found
/// out when the files are listed.
pub const JOINED_SOURCES: usize = 1024;

/// Files that are opened once more to compare small variables that may grow, for all variables of joined
/// files together.
pub const JOINED_REOPENED: u64 = 4096;

/// Files that links lead through, one after another, from a member of joined files.
pub const JOINED_LINKED: usize = 8;

/// Bytes of a file in which what was read of joined files is kept for the next time. Nothing is added
/// to one that is full; one of 7/8 of them begins anew the next time that it is opened.
pub const JOINED_KEPT: u64 = 32 << 20;

/// Bytes of all such files of a user: those that were used longest ago are deleted.
pub const JOINED_KEPT_ALL: u64 = 256 << 20;

/// Such files of a user: those that were used longest ago are deleted.
pub const JOINED_KEPT_FILES: usize = 1024;

/// Lines of the log about what is not in a joined file; a last one counts the rest.
pub const JOINED_TOLD: usize = 100;

/// Bytes of the values of a coordinate of all joined files together.
pub const JOINED_INLINE: u64 = 16 << 20;

/// Files that a mount watches for changes, open or not. Each watch costs the kernel a kilobyte.
/// For all other files, only the times tell of a change.
pub const FILE_WATCHES: usize = 4096;

/// Requests to the fetcher for bytes that a reader waits for, under way at a time.
pub const NEEDED_RUNS_ASKED: usize = 64;

/// Requests to the fetcher that are under way when more bytes are asked for that nobody waits for.
pub const EXPECTED_RUNS_ASKED: usize = 64;

/// Requests for bytes that nobody waits for, which wait to be sent to the fetcher.
pub const EXPECTED_RUNS: usize = 1024;

/// Files of the cache on disk from which pages of remote objects are read.
pub const OPEN_SEGMENTS: usize = 256;

/// Bytes of a file-space page that are brought for a structure in it.
pub const PAGED_BLOCK: u64 = 512 << 10;

/// Bytes of the first file-space page that are brought when the URL of a paged file is mounted.
pub const FIRST_PAGE: u64 = 8 << 20;

/// Bytes of the object of a URL that comes as a whole once bytes behind its first ones are read: as
/// long as it takes, many requests for its parts would take.
pub const SMALL_OBJECT: u64 = 8 << 20;

/// The same, of an object beneath a prefix, and of one beside the URL's: of thousands, one value of
/// each may be read.
pub const SMALL_MEMBER: u64 = 1 << 20;

/// Runs of pages that failed a moment ago, and are not asked for again at once.
pub const FAILED_RUNS: usize = 64;

/// Ranges of one hint that are taken.
pub const HINTED_RANGES: usize = 1 << 16;

/// Time after the last write to a file that is mounted in which what is damaged in it counts as
/// half written.
pub const HALF_WRITTEN: std::time::Duration = std::time::Duration::from_secs(1);

/// Time after which a write counts as ended if only the time of its beginning is known.
pub const UNSEEN_WRITE: std::time::Duration = std::time::Duration::from_secs(60);

/// Other files with elements of its arrays that an ASDF file keeps open.
pub const OPEN_NEIGHBOURS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(128).unwrap();

/// Sources of virtual datasets that a mount keeps, and files of these sources that it keeps:
/// each may hold a file open.
pub const OPEN_VIRTUAL_SOURCES: std::num::NonZeroUsize = std::num::NonZeroUsize::new(256).unwrap();

/// Links that the path of a soft link may lead over. At most [`SYMLINK_HOPS`] of them may be
/// soft links.
pub const PATH_LINKS: usize = 256;

/// Dimensions of an array together with the dimensions of its elements that are arrays.
pub const SELECTION_RANK: usize = 64;

/// Indices of one list in a selector. In a mount, the length of a name allows fewer.
pub const SELECTED_PLACES: usize = 65_536;

/// Bytes of one element, and of its text, where an array is shown as text.
pub const TEXT_ELEMENT_BYTES: u64 = 16 << 20;

/// Bytes of one element in `json`, and of its text, that do not count as open while it is written.
pub const UNCOUNTED_ELEMENT: usize = 256 << 10;

/// Values of a text whose length is counted: looking at so many takes about a second.
pub const COUNTED_VALUES: u64 = 1 << 24;

/// Values that a chunk of the array counts for beside its own: to find and read one takes more than a
/// microsecond.
pub const CHUNK_VALUES: u64 = 24;

/// Bytes of an element that count for one more value: reading so many takes as long as looking at a
/// short one.
pub const VALUE_BYTES: u64 = 256;

/// Values that a chunk with filters counts for beside its own.
pub const FILTERED_CHUNK_VALUES: u64 = 48;

/// Values up to which counting a text, or encoding a picture, is quick: more wait until other
/// requests of that kind are done.
pub const QUICK_VALUES: u64 = 1 << 12;

/// Bytes of a text whose length is counted.
pub const COUNTED_BYTES: u64 = 1 << 28;

/// Time after which a count is given up.
pub const COUNTED_TIME: std::time::Duration = std::time::Duration::from_secs(30);

/// Bytes of the marks that a mounted file keeps for texts that were counted: those of two texts
/// with the most marks.
pub const COUNTS: u64 = 1 << 20;

/// Pixels of a picture in `png`, of which so many are shown.
pub const PICTURE_PIXELS: u64 = 64 << 20;

/// Pixels of a row or a column that are shown of a picture in `png`: libpng takes no more.
pub const PICTURE_EDGE: u64 = 1_000_000;

/// Numbers of a picture in `png` that is compressed, so that only the file made whole has a length:
/// to read and compress so many takes about a second.
pub const PICTURE_COMPRESSED: u64 = 4 << 20;

/// Bytes of an array that are touched, a page for a pixel that stands alone, to read all pixels that
/// are shown of a picture in `png`.
pub const PICTURE_TOUCHED: u64 = 4 << 30;

/// Time that the encoding of a picture in `png` may take.
pub const PICTURE_TIME: std::time::Duration = std::time::Duration::from_secs(120);

/// Columns of a FITS table: the standard has no more.
pub const FITS_COLUMNS: usize = 999;

/// Cards of attributes in the header of a FITS file.
pub const FITS_CARDS: usize = 4096;

/// Bytes of a text in a FITS header, and of one in a column whose texts are not stored in a fixed
/// length.
pub const FITS_TEXT: usize = 4096;

/// Columns of a Parquet file: readers take seconds for the footer of more.
pub const PARQUET_COLUMNS: u64 = 16_384;

/// Bytes of the names of the columns of a Parquet file.
pub const PARQUET_NAMES: u64 = 4 << 20;

/// Groups of rows of a Parquet file: their number is one of 16 bits.
pub const PARQUET_GROUPS: u64 = 32_767;

/// Chunks of a Parquet file, of all columns in all groups: each takes some 40 bytes of the footer.
pub const PARQUET_CHUNKS: u64 = 1 << 18;

/// Bytes of the footer of a Parquet file, in which each group has the names of all columns again.
pub const PARQUET_FOOTER: u64 = 64 << 20;

/// Bytes of a page of a Parquet file: its length is one of 32 bits with a sign.
pub const PARQUET_PAGE: u64 = i32::MAX as u64;

/// Values of a Parquet file that are looked at for the bounds of sorted columns: it takes about a second.
pub const PARQUET_SORTED: u64 = 1 << 24;

/// Bytes of a text in a Parquet file.
pub const PARQUET_TEXT: usize = 16 << 20;

/// Values of a dictionary of a Parquet file.
pub const PARQUET_DICTIONARY: u64 = 16_384;

/// Bytes of the texts of a dictionary of a Parquet file, which each group holds again.
pub const PARQUET_DICTIONARY_BYTES: u64 = 256 << 10;

/// Attributes of columns in the footer of a Parquet file, and columns that it says to have left out.
pub const PARQUET_SAID: usize = 256;

/// Bytes of one of those attributes.
pub const PARQUET_SAID_TEXT: usize = 4096;

/// Columns of a matrix of MATLAB's chars whose bytes are more than [`TEXT_ELEMENT_BYTES`]: of each
/// column a part is read for a row.
pub const CHAR_COLUMNS: u64 = 4096;

/// Bytes of an element that an array of a Zarr store has: a document holds one, the fill value.
pub const ZARR_ELEMENT: usize = 64 << 10;

/// Bytes of a record of which fields are arrays of a Zarr store.
pub const ZARR_RECORD: u32 = 1 << 20;

/// Links of a group that its document in a Zarr store looks at, for those that the store lacks.
pub const ZARR_LINKS: usize = 16_384;

/// Names in a document of a Zarr store of what the store lacks.
pub const ZARR_ABSENT: usize = 4096;

/// Links below a group of a Zarr store, and fields, whose documents stand in that of the group.
pub const ZARR_CONSOLIDATED_LINKS: usize = 4096;

/// Bytes of the document of such a group: two of them are kept among the texts.
pub const ZARR_CONSOLIDATED_BYTES: usize = 4 << 20;

/// Groups within each other, below such a group.
pub const ZARR_CONSOLIDATED_DEPTH: usize = 64;

/// Columns of one element where an array is shown as csv.
pub const CSV_COLUMNS: usize = 65_536;

/// Values of one netCDF variable that stand for missing ones. Each of its elements is compared
/// with all of them.
pub const MISSING_VALUES: usize = 64;

/// Links of a group that are searched for coordinates of a netCDF variable in it.
pub const COORDINATE_LINKS: usize = 4096;

/// Bytes of the names of these links, and of the names of coordinates that attributes have.
pub const COORDINATE_NAMES: usize = 1 << 20;

/// Coordinates of a netCDF variable beside those of its dimensions.
pub const COORDINATES: usize = 64;

/// Integers or references in an attribute by which a convention marks an object.
pub const MARKS: usize = 65_536;

/// Links of one group that are looked at for its table, where no convention names the columns.
pub const TABLE_MEMBERS: usize = 65_536;

/// Bytes of what an open file keeps of whether its groups are tables.
pub const CONVENTIONS: u64 = 1 << 20;

/// Bytes of the names and descriptions of the columns of a group's table, and bytes that are looked
/// at to find them: names, plus 64 for each member.
pub const TABLE_BYTES: u64 = 32 << 20;

/// Lists within lists in a column of a group's table.
pub const TABLE_LISTS: usize = 8;

/// Values of one Python pickle in a pandas table, and places of them on its stack and in its memo.
pub const PICKLE_VALUES: usize = 1 << 19;

/// Places in the lists and dictionaries of one Python pickle: a value may have very many.
pub const PICKLE_PLACES: usize = 1 << 21;

/// Elements of a variable-length dataset that is served as a file: its size takes a walk over
/// all of them.
pub const VARIABLE_LENGTH_ELEMENTS: u64 = 1 << 28;

/// Other files that external links lead to and that a mount knows.
pub const MOUNTED_FILES: usize = 32_768;

/// Bytes of the names of other files that the search for canonical paths in one file keeps.
pub const NAMED_FILES: usize = 1 << 20;

/// Other files whose links are searched for a name under `.h5fs/external` that no known link
/// has.
pub const SEARCHED_FILES: u64 = 256;

/// Time after which these files are searched again.
pub const SEARCH_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Other files that are mounted and kept open.
pub const OPEN_MOUNTED_FILES: usize = 16;

/// Data files of a mounted directory that are kept open, unless the user says otherwise.
pub const OPEN_MEMBERS: usize = 64;

/// Data files of a mounted directory that a user may have kept open.
pub const MOST_OPEN_MEMBERS: usize = 4096;

/// Files of a mounted directory of which is remembered whether they are data files, and as many
/// others of which is remembered in which state they were opened; about 150 bytes each. The first
/// bytes of all others are read again, and the kernel keeps nothing of them once they are closed.
pub const KNOWN_KINDS: usize = 1 << 14;

/// Bytes of memory that the other files, or the data files of a mounted directory, take together;
/// one file alone may take more.
pub const OPEN_MOUNTED_BYTES: u64 = 16 << 20;

/// Bytes of memory that the data files of a mounted directory together take in which requests are
/// at work and of which each takes more than a quarter of [`OPEN_MOUNTED_BYTES`]; one alone may
/// take more. Other requests in such files wait.
pub const HEAVY_AT_WORK: u64 = 32 << 20;

/// Bytes of an ASDF value as JSON up to which its text is kept; a longer one is counted, and written
/// while it is read.
pub const ASDF_JSON_SIZED: usize = 8 << 20;

/// Bytes of an ASDF value as JSON. Aliases of long keys make it longer than the tree.
pub const ASDF_JSON: u64 = 256 << 20;

/// Bytes of a scalar's text that its aliases repeat in JSON.
pub const REPEATED_SCALAR: usize = 256;

/// Links that are followed for a description of the file.
pub const NDL_LINKS: usize = 1 << 20;

/// Elements of a dimension coordinate whose values a description of the file holds.
pub const NDL_VALUES: u64 = 4096;

/// Bytes of one value, and of its text, in a description of the file.
pub const NDL_VALUE_BYTES: usize = 1 << 20;

/// Bytes of the names of a group's members, and of groups whose turn comes later, in a
/// description of the file.
pub const NDL_NAMES: usize = 16 << 20;

/// Bytes of an object's path in a description of the file.
pub const NDL_PATH_BYTES: usize = 64 << 10;

/// Links of one group that are searched for the scale of a netCDF dimension.
pub const NDL_SCALES: usize = 4096;

/// Runs of bytes without the end of a string that an HDF5 file remembers.
pub const LONG_STRINGS: usize = 4096;

/// Bytes of a line that a worker reports to its supervisor, or a supervisor to its launcher:
/// two paths and a reason, escaped.
pub const REPORT_BYTES: usize = 64 << 10;

/// Lines of the log that a mount keeps for who mounts, where there is no syslog.
pub const EARLY_LINES: usize = 16;

/// Interval at which a supervisor looks whether its mount answers.
pub const MOUNT_LOOK: std::time::Duration = std::time::Duration::from_secs(10);

/// Seconds that a mount may leave this unanswered until the supervisor ends it. Seconds in
/// which its worker waits for a disk do not count.
pub const MOUNT_UNANSWERED: u32 = 60;

/// Time that a worker may take to end once the kernel has ended its mount; then the supervisor kills
/// it.
pub const UNMOUNTED_WORKER: std::time::Duration = std::time::Duration::from_secs(3);

/// Bytes of a source's URL.
pub const URL_BYTES: usize = 4096;

/// HTTP connections of one mount at a time, unless its options say otherwise.
pub const CONNECTIONS: usize = 64;

/// HTTP connections that the options of a mount may ask for.
pub const MOST_CONNECTIONS: usize = 256;

/// Requests a second to one server that the options of a mount may ask for.
pub const MOST_REQUESTS: usize = 100_000;

/// Requests that the fetcher has taken and not answered.
pub const FETCHES: usize = 16_384;

/// Objects that the fetcher keeps open.
pub const FETCHED_OBJECTS: usize = 65_536;

/// Bytes that a server has to bring in the time of `timeout` for the request to go on.
pub const SLOWEST: usize = 64 << 10;

/// Bytes of the header of a server's answer.
pub const RESPONSE_HEADERS: usize = 64 << 10;

/// Bytes of an entity tag.
pub const ETAG_BYTES: usize = 1024;

/// Bytes that are read of a server's word on an error.
pub const ERROR_BODY: usize = 64 << 10;

/// Time for a server's word on an error, or on a redirect, once its header is there.
pub const ERROR_TIME: std::time::Duration = std::time::Duration::from_secs(2);

/// Bytes of a page of names that a server lists: a thousand names of a kibibyte, encoded.
pub const LISTING_BYTES: usize = 8 << 20;

/// Bytes of such a page beyond which few are read at a time.
pub const SMALL_LISTING: usize = 256 << 10;

/// Pages of more bytes that the fetcher reads at a time.
pub const MEDIUM_LISTINGS: usize = 8;

/// Bytes of such a page beyond which hardly any are read at a time.
pub const MEDIUM_LISTING: usize = 2 << 20;

/// Pages of more bytes that the fetcher reads at a time.
pub const LARGE_LISTINGS: usize = 2;

/// Names in such a page.
pub const LISTING_NAMES: usize = 50_000;

/// Bytes of a key of S3, and of a server's place in a listing.
pub const KEY_BYTES: usize = 1024;

/// Bytes of the listings of a mounted prefix that are kept, so that a name in one of them is found
/// without a request.
pub const LISTED_BYTES: u64 = 16 << 20;

/// Directories of a mounted prefix of which a listing is kept.
pub const LISTED_DIRECTORIES: usize = 4096;

/// Pages of the listing of one directory.
pub const LISTED_PAGES: usize = 1 << 14;

/// Names of a mounted prefix that were asked for alone and are remembered; up to 2 KiB each.
pub const LOOKED_NAMES: std::num::NonZeroUsize = std::num::NonZeroUsize::new(4096).unwrap();

/// Objects of a mounted prefix that stay open after they were read; up to 6 KiB each.
pub const KEPT_OBJECTS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(1024).unwrap();

/// Objects among them that were opened to find out that they are there, and that nobody has read:
/// beyond, a listing tells.
pub const UNREAD_OBJECTS: usize = 64;

/// Bytes at the beginning of an object that tell whether it is a data file.
pub const OBJECT_BEGINNING: u64 = 256 << 10;

/// Elements within elements of an XML document.
pub const XML_DEPTH: usize = 16;

/// Redirects in a row.
pub const REDIRECTS: usize = 5;

/// Hosts whose addresses, and redirects that are remembered.
pub const HOSTS: usize = 1024;

/// Bytes of a file of the AWS tools, or of what a service of credentials answers.
pub const AWS_FILE: usize = 1 << 20;

/// Bytes of what people call an object, which is kept beside its pages in the cache on disk.
pub const CACHED_NAME: usize = 4096;

/// Bytes of the stack of a thread with a connection.
pub const CONNECTION_STACK: usize = 512 << 10;

/// Bytes of memory that the process with the network may write, besides its connections.
pub const FETCHING_BYTES: u64 = 256 << 20;

/// The same, for each connection: its stack, its buffers, and TLS.
pub const CONNECTION_BYTES: u64 = 4 << 20;

/// Members of a group that are sorted for people: those of one with more are shown in the order of the
/// file's index.
pub const ORDERED_MEMBERS: u64 = 65_536;

/// Bytes of memory that the names of members take that are sorted.
pub const ORDERED_BYTES: u64 = 32 << 20;

/// Members of a group, and of the groups in it, that one page lists.
pub const HTML_ROWS: u64 = 500;

/// Rows and columns of an array that its page shows.
pub const HTML_TABLE_ROWS: u64 = 20;

/// See [`HTML_TABLE_ROWS`].
pub const HTML_TABLE_COLUMNS: u64 = 12;

/// Attributes that a page shows.
pub const HTML_ATTRIBUTES: usize = 500;

/// Bytes of the texts of attributes that are made for a page.
pub const HTML_ATTRIBUTE_TEXT: usize = 1 << 20;

/// Names on the way from the root that a page shows: the last ones.
pub const HTML_TRAIL: usize = 32;

/// Characters of one text, a name or a value, that a page shows.
pub const HTML_TEXT: usize = 512;

/// Characters of a text that a page shows for itself: of a scalar, of an attribute that is unfolded.
pub const HTML_LONG_TEXT: usize = 65_536;

/// Attributes of a page that are shown at once; those behind are folded.
pub const HTML_UNFOLDED: usize = 12;

/// Bytes of the one element of an array, and of its chunk, that is shown beside its name.
pub const HTML_GLANCE: u64 = 64 << 10;

/// Bytes of an array that are decoded for the table on its page, and again for the line.
pub const HTML_DECODED: u64 = 32 << 20;

/// Chunks, or runs of elements, of a large array that are read for the line on its page.
pub const HTML_PIECES: u64 = 4096;

/// Such pieces of an array that is read whole for the line on a page, as its bytes are few.
pub const HTML_WHOLE_PIECES: u64 = 65_536;

/// The same where each may be a request to a server, or stand in another file.
pub const HTML_FAR_PIECES: u64 = 64;

/// Bytes that are decoded, or read, for a picture on a page.
pub const HTML_PICTURE: u64 = 128 << 20;

/// Pixels of a picture on a page, in either direction.
pub const HTML_PICTURE_EDGE: u64 = 1024;

/// Chunks, or pieces of 64 KiB, of an array that are read to find the range of its values.
pub const HTML_SAMPLED_CHUNKS: u64 = 64;

/// The same where each may be a request to a server, or stand in another file.
pub const HTML_FAR_SAMPLED_CHUNKS: u64 = 8;

/// Sources of a virtual dataset that one picture of a page, or one piece of it that is looked at for
/// the range of values, is made of.
pub const HTML_SOURCES: usize = 16;

/// Links into other files that a page follows, to show those that lead to an object as links.
pub const HTML_OTHER_LINKS: u64 = 64;

/// Time after which no further chunk is looked at to find the range of values.
pub const HTML_SAMPLING: std::time::Duration = std::time::Duration::from_secs(1);

/// Time that drawing a picture of a page may take.
pub const HTML_DRAWING: std::time::Duration = std::time::Duration::from_secs(10);

/// Bytes that are decoded for that, if more than one chunk is.
pub const HTML_SAMPLED: u64 = 64 << 20;

/// Values that are looked at for that.
pub const HTML_SAMPLED_VALUES: u64 = 1 << 20;

#[cfg(test)]
pub(crate) mod tests;

/// Sources that one server shows.
pub const HTTP_SOURCES: usize = 64;

/// Connections of clients at a time; those beyond wait in the system's queue.
pub const HTTP_CONNECTIONS: usize = 1024;

/// Requests of clients that wait for their turn.
pub const HTTP_WAITING: usize = 512;

/// Bytes of the beginning of a request: its target and its fields.
pub const HTTP_HEAD: usize = 16 << 10;

/// Fields of a request.
pub const HTTP_FIELDS: usize = 64;

/// Ranges of one request.
pub const HTTP_RANGES: usize = 64;

/// Time that a connection may be without a request, take to send one, or take nothing of an answer.
pub const HTTP_IDLE: std::time::Duration = std::time::Duration::from_secs(60);

/// Time in which a client has to be let in.
pub const HTTP_ENTRY: std::time::Duration = std::time::Duration::from_secs(5);

/// Time that a client that sends nothing more is waited for: it may have gone.
pub const HTTP_HALF_CLOSED: std::time::Duration = std::time::Duration::from_secs(5);

/// Bytes of an answer that are in memory for each client.
pub const HTTP_PIECE: usize = 16 << 10;

/// The same for a few of those that read fast.
pub const HTTP_LARGE_PIECE: usize = 512 << 10;

/// Such pieces of all clients together.
pub const HTTP_LARGE_PIECES: usize = 16;

/// Bytes of a text that is sought in a data file.
pub const HTTP_WANTED: usize = 256;

/// Names, attributes and errors that one search finds.
pub const HTTP_FOUND: u64 = 1000;

/// Groups within groups that are searched.
pub const HTTP_SEARCH_DEPTH: usize = 128;

/// Bytes of a text that is compressed for a client.
pub const HTTP_GZIP: u64 = 1 << 20;

/// Bytes of texts that are being compressed, and of compressed ones that are being sent, for all
/// clients together.
pub const HTTP_PACKED: u64 = 16 << 20;
