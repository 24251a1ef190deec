//! Compares the bounds in `docs/limits.md` with the constants in `limits.rs`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;

const DOCUMENT: &str = include_str!("../../docs/limits.md");

/// Formats a bound in bytes as in the document: `64 KiB`, `3.25 MiB`.
fn bytes(bound: u64) -> String {
    let (unit, shift) = match bound {
        0x4000_0000.. => ("GiB", 30),
        0x10_0000.. => ("MiB", 20),
        _ => ("KiB", 10),
    };
    format!("{} {unit}", bound as f64 / f64::from(1 << shift))
}

/// Formats a count as in the document: `1000`, `65 536`.
fn count(bound: u64) -> String {
    let digits = bound.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8(groups.join(&b' ')).unwrap()
}

/// Formats a duration as in the document: `10 ms`, `1 s`.
fn time(bound: Duration) -> String {
    match bound.subsec_millis() {
        0 => format!("{} s", bound.as_secs()),
        _ => format!("{} ms", bound.as_millis()),
    }
}

/// Lists each constant's name, and its value in the document's format.
macro_rules! stated {
    ($($unit:ident: $($name:ident)*;)*) => {
        [$($((stringify!($name), $unit($name.try_into().unwrap())),)*)*]
    };
}

fn bounds() -> Vec<(&'static str, String)> {
    let mut bounds = stated! {
        bytes: COORDINATE_NAMES ZARR_ELEMENT ZARR_RECORD ZARR_CONSOLIDATED_BYTES KERCHUNK_INLINE KERCHUNK_BYTES;
        count: GRID_AXIS KERCHUNK_CHUNKS KERCHUNK_MEMBER_CHUNKS KERCHUNK_OBJECTS KERCHUNK_DEPTH;
        bytes: PICTURE_TOUCHED KEPT_TEXTS KEPT_DERIVED DIMENSION_LENGTHS;
        bytes: HDF5_FILE_METADATA HDF5_FILE_ABSENCES HDF5_FILE_CONVERTED_BYTES;
        count: HDF5_FILE_CONVERTED_PARTS HDF5_FILE_MEASURED;
        count: PICTURE_PIXELS PICTURE_EDGE PICTURE_COMPRESSED FITS_COLUMNS FITS_CARDS FITS_TEXT;
        count: PARQUET_COLUMNS PARQUET_GROUPS PARQUET_CHUNKS PARQUET_SORTED PARQUET_PAGE
            PARQUET_DICTIONARY PARQUET_SAID PARQUET_SAID_TEXT;
        count: NETCDF_NAME NETCDF_VARIABLES NETCDF_DIMENSIONS;
        bytes: NETCDF_HEADER NETCDF_TEXT;
        bytes: PARQUET_NAMES PARQUET_FOOTER PARQUET_TEXT PARQUET_DICTIONARY_BYTES;
        count: JOINED_FILES JOINED_NAMES JOINED_SKELETONS JOINED_OBJECTS;
        count: JOINED_SCALARS JOINED_SOURCES JOINED_REOPENED JOINED_LINKED;
        count: JOINED_PLACES JOINED_TOLD JOINED_KEPT_FILES VIRTUAL_FAR VIRTUAL_FAR_THREADS;
        bytes: JOINED_LONG JOINED_ATTRIBUTES JOINED_VALUES JOINED_BYTES JOINED_COORDINATE JOINED_INLINE JOINED_COMPARED JOINED_KEPT JOINED_KEPT_ALL;
        time: PICTURE_TIME HTML_SAMPLING HTML_DRAWING;
        count: MISSING_VALUES COORDINATE_LINKS COORDINATES LABELS HINT_NAMES;
        bytes: CACHE_LEAST CHUNK_BYTES DECODE_BYTES SMALL_DECODE MEDIUM_DECODE OPEN_BYTES
            OPEN_HANDLE SERVING_BYTES THREAD_BYTES REQUEST_METADATA FILTER_OVERHEAD XATTR_BYTES
            REPORT_BYTES PATH_INDEX_NAMES ATTRIBUTE_BYTES HEADER_BYTES VARIABLE_LENGTH_BYTES
            LINK_TEXT RAW_FILE_NAMES VIRTUAL_BYTES VIRTUAL_TURN TREE_BYTES TREE_TURN TREE_TAGS TREE_PATH
            DESCRIPTION FIELD_NAMES BLOCK_SURPLUS WHOLE_SURPLUS ATTRIBUTE_TEXT TEXT_ELEMENT_BYTES
            UNCOUNTED_ELEMENT NDL_NAMES ASDF_JSON_SIZED ASDF_JSON COUNTED_BYTES COUNTS TABLE_BYTES PAGED_BLOCK FIRST_PAGE
            SMALL_OBJECT SMALL_MEMBER;
        count: TABLE_MEMBERS TABLE_LISTS PICKLE_VALUES PICKLE_PLACES;
        bytes: HEAVY_AT_WORK AHEAD_LEAST AHEAD_BYTES WHOLE_BYTES HINTED_METADATA;
        bytes: HTML_GLANCE ORDERED_BYTES HTML_PICTURE HTML_SAMPLED GROWING_TEXT HTML_DECODED HTML_ATTRIBUTE_TEXT;
        count: ORDERED_MEMBERS HTML_ROWS HTML_TABLE_ROWS HTML_TABLE_COLUMNS HTML_ATTRIBUTES HTML_TRAIL HTML_TEXT HTML_PIECES HTML_WHOLE_PIECES
            HTML_FAR_PIECES HTML_LONG_TEXT HTML_UNFOLDED HTML_PICTURE_EDGE HTML_SOURCES HTML_OTHER_LINKS HTML_SAMPLED_CHUNKS HTML_FAR_SAMPLED_CHUNKS HTML_SAMPLED_VALUES;
        count: RANGES_AT_ONCE TOUCHED_CHUNKS WHOLE_CHUNKS CRAWLED_OBJECTS CRAWLED_CHUNKS CRAWL_WINDOW CRAWL_LOOKS
            CRAWLED_GROUPS CRAWLS;
        count: RESUMABLE_BLOCKS ZLIB_CHECKPOINTS OWN_THREADS SLOW_REQUESTS FILE_PLACES THREADS PATH_LINKS
            SYMLINK_HOPS FILTERS OPEN_HANDLES NAME_BYTES MOUNT_UNANSWERED PATH_INDEX_LINKS
            ATTRIBUTES RANK DATATYPE_DEPTH DATATYPE_MEMBERS VARIABLE_LENGTH_ELEMENTS FAMILY_MEMBERS
            VIRTUAL_MAPPINGS VIRTUAL_NAME VIRTUAL_OVERLAPS VIRTUAL_DEPTH TREE_NODES TREE_ANCHORS
            FORGOTTEN_INODES LAST_ERRORS NAMED_ABSENT ERROR_LINE EARLY_LINES
            ZARR_LINKS ZARR_ABSENT ZARR_CONSOLIDATED_LINKS ZARR_CONSOLIDATED_DEPTH NUMBER_TEXT CHUNK_AXES CHUNK_ELEMENTS CHAR_COLUMNS CSV_COLUMNS COUNTED_VALUES VALUE_BYTES CHUNK_VALUES FILTERED_CHUNK_VALUES
            NDL_VALUES REPEATED_SCALAR FILE_WATCHES MOUNTED_FILES OPEN_MEMBERS MOST_OPEN_MEMBERS
            KNOWN_KINDS SEARCHED_FILES URL_BYTES CONNECTIONS MOST_CONNECTIONS NEEDED_RUNS_ASKED
            EXPECTED_RUNS_ASKED EXPECTED_RUNS FAILED_RUNS HINTED_RANGES OPEN_SEGMENTS FETCHES
            FETCHED_OBJECTS ETAG_BYTES LISTING_NAMES MEDIUM_LISTINGS LARGE_LISTINGS KEY_BYTES XML_DEPTH REDIRECTS HOSTS
            LISTED_DIRECTORIES LISTED_PAGES UNREAD_OBJECTS MOST_REQUESTS CACHED_NAME;
        bytes: LISTED_BYTES OBJECT_BEGINNING;
        bytes: SLOWEST RESPONSE_HEADERS ERROR_BODY LISTING_BYTES SMALL_LISTING MEDIUM_LISTING AWS_FILE CONNECTION_STACK
            FETCHING_BYTES
            CONNECTION_BYTES;
        count: HTTP_SOURCES HTTP_CONNECTIONS HTTP_WAITING HTTP_FIELDS HTTP_RANGES HTTP_LARGE_PIECES HTTP_FOUND HTTP_SEARCH_DEPTH HTTP_WANTED DAV_PROPERTIES H5GROVE_OBJECTS H5GROVE_VALUES;
        bytes: HTTP_HEAD HTTP_PIECE HTTP_LARGE_PIECE HTTP_GZIP HTTP_PACKED DAV_BODY H5GROVE_BYTES;
        time: HTTP_IDLE HTTP_ENTRY HTTP_HALF_CLOSED;
        time: SLOW_REQUEST LISTING_TIME GROWING_TIME COUNTED_TIME KEPT_TIME MOUNT_LOOK UNMOUNTED_WORKER SEARCH_PAUSE ERROR_TIME
            HALF_WRITTEN;
    }
    .to_vec();
    let (least, most) = (bytes(*CACHE_MOST.start()), bytes(*CACHE_MOST.end()));
    let share = format!(
        "a quarter of the machine's memory, or of the memory limit of the control group, but {least} to {most}"
    );
    bounds.push(("CACHE_MOST", share));
    bounds.push(("LOCATED_CHUNKS", count(LOCATED_CHUNKS.get() as u64)));
    bounds.push(("LOOKED_NAMES", count(LOOKED_NAMES.get() as u64)));
    bounds.push(("KEPT_OBJECTS", count(KEPT_OBJECTS.get() as u64)));
    bounds.push(("XZ_KIB", bytes(u64::from(XZ_KIB) << 10)));
    bounds.push(("ZSTD_WINDOW_LOG", bytes(1 << ZSTD_WINDOW_LOG)));
    bounds
}

/// Returns the rows of the document that name a constant, each as the name and the bound.
fn rows() -> Vec<(&'static str, &'static str)> {
    DOCUMENT
        .lines()
        .filter_map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let name = cells.iter().rev().nth(1)?.strip_prefix('`')?;
            Some((name.strip_suffix('`')?, *cells.get(2)?))
        })
        .collect()
}

#[test]
fn the_document_states_each_limit_once() {
    let rows = rows();
    let names: BTreeSet<_> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), rows.len(), "a bound is stated twice");
    let bounds = bounds();
    assert_eq!(names, bounds.iter().map(|(name, _)| *name).collect());
    for (name, bound) in bounds {
        assert!(
            rows.contains(&(name, bound.as_str())),
            "{name} is {bound}, and not {:?}",
            rows.iter().find(|(other, _)| *other == name)
        );
    }
}

#[test]
fn bounds_are_written_in_their_units() {
    assert_eq!(bytes(13 << 18), "3.25 MiB");
    assert_eq!(bytes(1 << 30), "1 GiB");
    assert_eq!(count(1000), "1000");
    assert_eq!(count(1_048_576), "1 048 576");
    assert_eq!(time(Duration::from_millis(250)), "250 ms");
    assert_eq!(time(Duration::from_secs(10)), "10 s");
}
