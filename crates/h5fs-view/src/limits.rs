//! The limits on what a view can make the program read, compute or keep.

/// The limits of the crates `h5fs-conventions` and `h5fs-reader`.
pub use h5fs_conventions::limits::*;

/// Maximum bytes of one extended attribute's value, and of one object's list of names.
pub const XATTR_BYTES: usize = 65_536;

/// Maximum bytes of one array element in `json`, and of its text, for which no memory is reserved
/// from [`OPEN_BYTES`] while the element is written.
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

/// Maximum bytes of an array that are read for a picture in `png`. A pixel that is read separately
/// counts as a memory page of 4096 bytes.
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

/// Maximum numbers of an array whose statistics h5grove's routes calculate. This many take seconds.
pub const H5GROVE_VALUES: u64 = 1 << 30;

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

/// Maximum bytes of a name in a netCDF file, as netCDF's library defines it (`NC_MAX_NAME`).
pub const NETCDF_NAME: usize = 256;

/// Maximum variables of a netCDF file. Each of them is an open array.
pub const NETCDF_VARIABLES: usize = 8192;

/// Maximum dimensions of a netCDF file.
pub const NETCDF_DIMENSIONS: usize = 16_384;

/// Maximum bytes of the header of a netCDF file, which is in memory while the file is open.
pub const NETCDF_HEADER: usize = 16 << 20;

/// Maximum bytes of a text of variable length in a netCDF file. Each text of the variable takes as
/// many bytes as the longest one.
pub const NETCDF_TEXT: usize = 64 << 10;

/// Maximum columns of a matrix of MATLAB's chars with more than [`TEXT_ELEMENT_BYTES`] bytes. A
/// part of each column is read for each row.
pub const CHAR_COLUMNS: u64 = 4096;

/// Maximum bytes of an element of an array in a Zarr store. A document contains one element, the
/// fill value.
pub const ZARR_ELEMENT: usize = 64 << 10;

/// Maximum bytes of a record whose fields are arrays of a Zarr store.
pub const ZARR_RECORD: u32 = 1 << 20;

/// Maximum names in `_h5fs_absent` of one document of a Zarr store.
pub const ZARR_ABSENT: usize = 4096;

/// Maximum bytes of an array whose elements are in `kerchunk.json`, because no reference can locate
/// them.
pub const KERCHUNK_INLINE: u64 = 64 << 10;

/// Maximum bytes of the documents and of the elements in `kerchunk.json`. Locations do not count.
pub const KERCHUNK_BYTES: usize = 8 << 20;

/// Maximum rows or columns of a grid whose coordinates are read for a GeoTIFF.
pub const GRID_AXIS: u64 = 1 << 18;

/// Maximum stored chunks that `kerchunk.json` locates.
pub const KERCHUNK_CHUNKS: u64 = 1 << 20;

/// Maximum stored chunks of joined arrays that `kerchunk.json` locates. Their locations are in
/// memory.
pub const KERCHUNK_MEMBER_CHUNKS: u64 = 1 << 18;

/// Maximum bytes of a document with consolidated metadata in a Zarr store. Two such documents fit
/// into the texts that an open file keeps (`KEPT_TEXTS`).
pub const ZARR_CONSOLIDATED_BYTES: usize = 4 << 20;

/// Maximum columns of one element in the csv view of an array.
pub const CSV_COLUMNS: usize = 65_536;

/// Maximum links of a group that are searched for coordinates of a netCDF variable in it.
pub const COORDINATE_LINKS: usize = 4096;

/// Maximum bytes of the link names that are searched for coordinates of a netCDF variable, and of
/// coordinate names in its attributes.
pub const COORDINATE_NAMES: usize = 1 << 20;

/// Maximum coordinates of a netCDF variable, in addition to the coordinates of its dimensions.
pub const COORDINATES: usize = 64;

/// Maximum values of a coordinate that a selector by value compares with its labels.
pub const LABELS: u64 = 1 << 24;

/// Maximum links of one group that are examined for its table, if no convention names the columns.
pub const TABLE_MEMBERS: usize = 65_536;

/// Maximum nesting of lists in a column of a group's table.
pub const TABLE_LISTS: usize = 8;

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

/// Maximum characters of a name or a value on a page.
pub const HTML_TEXT: usize = 512;

/// Maximum characters of a long text on a page: a scalar, or an unfolded attribute.
pub const HTML_LONG_TEXT: usize = 65_536;

/// Maximum attributes of a page that are visible at once. Further attributes are visible after the
/// user expands the list.
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

/// Time after which no further chunk is sampled for the range of values of a picture on a page.
pub const HTML_SAMPLING: std::time::Duration = std::time::Duration::from_secs(1);

/// Maximum time for drawing a picture of a page.
pub const HTML_DRAWING: std::time::Duration = std::time::Duration::from_secs(10);

/// Maximum bytes that are decoded for the range of values of a picture on a page, if more than one
/// chunk is decoded.
pub const HTML_SAMPLED: u64 = 64 << 20;

/// Maximum values that are sampled for the range of values of a picture on a page.
pub const HTML_SAMPLED_VALUES: u64 = 1 << 20;

/// Maximum bytes of the metadata of a computed HDF5 file, and of the descriptions from which it is
/// computed.
pub const HDF5_FILE_METADATA: u64 = 8 << 20;

/// Maximum references and variable-length values in one element of a dataset of a computed HDF5
/// file. A dataset with more is absent.
pub const HDF5_FILE_CONVERTED_PARTS: usize = 256;

/// Maximum bytes of an element with references or variable-length values in a computed HDF5 file,
/// because such elements are converted in memory. A dataset with larger elements is absent.
pub const HDF5_FILE_CONVERTED_BYTES: u64 = 1 << 20;

/// Maximum bytes of the list of objects and attributes that a computed HDF5 file does not have.
pub const HDF5_FILE_ABSENCES: usize = 32 << 10;

/// Number of variable-length elements whose lengths are read when a computed HDF5 file is opened,
/// without a slot for heavy work.
pub const HDF5_FILE_MEASURED: u64 = 4096;
