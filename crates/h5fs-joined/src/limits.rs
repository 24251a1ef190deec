//! The limits on the memory and the work that joining the files of a directory may take.

/// The limits of the crates `h5fs-conventions` and `h5fs-reader`.
pub use h5fs_conventions::limits::*;

/// Maximum files of a directory that are joined.
pub const JOINED_FILES: usize = 1 << 16;

/// Maximum names in a directory whose files are joined.
pub const JOINED_NAMES: usize = 1 << 18;

/// Maximum bytes of memory for the metadata of joined files: variables, dimensions, positions, and
/// the values of their coordinates.
pub const JOINED_BYTES: u64 = 64 << 20;

/// Maximum different skeletons of joined files. A skeleton is the description of a file without its
/// values, and files that differ only in values share one.
pub const JOINED_SKELETONS: usize = 4096;

/// Maximum scalars of ASDF trees that differ between joined files and are reported as absent.
pub const JOINED_SCALARS: usize = 1024;

/// Maximum objects of one file that is joined with others.
pub const JOINED_OBJECTS: usize = 1 << 14;

/// Maximum bytes of the attributes of one file that is joined with others.
pub const JOINED_ATTRIBUTES: usize = 4 << 20;

/// Maximum bytes of the coordinates, bounds and scalars of one file that is joined with others. The
/// small variables that are compared have a second budget of the same size.
pub const JOINED_VALUES: u64 = 8 << 20;

/// Maximum bytes of a coordinate, in one file that is joined with others, whose values are all kept
/// in memory. Of a longer coordinate, only the first value, the last value and a hash are kept.
pub const JOINED_COORDINATE: u64 = 1 << 20;

/// Maximum bytes of a coordinate, in one file that is joined with others, of which only the first
/// value, the last value and a hash are kept. A file with a longer coordinate is not joined.
pub const JOINED_LONG: u64 = 1 << 30;

/// Maximum product of two numbers, for files that share variables and are joined: the number of
/// files, and the number of different dimensions in all of them. The product bounds the memory for
/// the position of each file along each dimension.
pub const JOINED_PLACES: usize = 4 << 20;

/// Maximum bytes of a variable without a joined dimension that is compared in all joined files. For
/// a larger variable, the variable of the first file is shown.
pub const JOINED_COMPARED: u64 = 64 << 10;

/// Maximum sources of one virtual dataset whose existence is checked when its file is scanned for
/// the joined file.
pub const JOINED_SOURCES: usize = 1024;

/// Maximum files that are opened again to compare small variables that may grow, for all variables
/// of joined files together.
pub const JOINED_REOPENED: u64 = 4096;

/// Maximum length of a chain of files that external links follow from a member of joined files.
pub const JOINED_LINKED: usize = 8;

/// Maximum bytes of the scan file, which keeps data read from joined files for the next mount. A
/// full scan file does not grow. If the scan file is 7/8 full, the next mount starts a new one.
pub const JOINED_KEPT: u64 = 32 << 20;

/// Maximum bytes of all scan files of a user. The least recently used ones are deleted.
pub const JOINED_KEPT_ALL: u64 = 256 << 20;

/// Maximum scan files of a user. The least recently used ones are deleted.
pub const JOINED_KEPT_FILES: usize = 1024;

/// Maximum lines in the log about parts that the joined file lacks. One more line gives the number
/// of absent parts that are not logged.
pub const JOINED_TOLD: usize = 100;

/// Maximum bytes of one array of the joined file that is collected in memory, such as the values of
/// a coordinate of all files.
pub const JOINED_INLINE: u64 = 16 << 20;
