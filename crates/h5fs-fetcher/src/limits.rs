//! The limits on the resources that a server or an index of objects can make the fetcher use.

/// The limits of the crate `h5fs_reader`.
pub use h5fs_reader::limits::*;

/// Maximum concurrent HTTP connections of one mount, unless the option `connections` sets another.
pub const CONNECTIONS: usize = 64;

/// Largest value of the option `connections`.
pub const MOST_CONNECTIONS: usize = 256;

/// Largest value of the option `max_requests`, in requests per second to one server.
pub const MOST_REQUESTS: usize = 100_000;

/// Maximum requests that the fetcher has accepted and not answered.
pub const FETCHES: usize = 16_384;

/// Maximum objects that the fetcher keeps open.
pub const FETCHED_OBJECTS: usize = 65_536;

/// Minimum bytes that a server must send within the time of the option `timeout`.
pub const SLOWEST: usize = 64 << 10;

/// Maximum bytes of a response header.
pub const RESPONSE_HEADERS: usize = 64 << 10;

/// Maximum bytes of an entity tag.
pub const ETAG_BYTES: usize = 1024;

/// Maximum bytes that are read of a server's error message.
pub const ERROR_BODY: usize = 64 << 10;

/// Maximum time for reading the body of an error or redirect response after its header.
pub const ERROR_TIME: std::time::Duration = std::time::Duration::from_secs(2);

/// Maximum bytes of a small page of a listing.
pub const SMALL_LISTING: usize = 256 << 10;

/// Maximum medium and large pages of listings that the fetcher reads concurrently.
pub const MEDIUM_LISTINGS: usize = 8;

/// Maximum bytes of a medium page of a listing.
pub const MEDIUM_LISTING: usize = 2 << 20;

/// Maximum large pages of listings that the fetcher reads concurrently.
pub const LARGE_LISTINGS: usize = 2;

/// Maximum nesting of elements of an XML document.
pub const XML_DEPTH: usize = 16;

/// Maximum redirects in a row.
pub const REDIRECTS: usize = 5;

/// Maximum hosts whose addresses are remembered, and maximum remembered redirects.
pub const HOSTS: usize = 1024;

/// Maximum bytes of a configuration file of the AWS tools, and of a response with credentials.
pub const AWS_FILE: usize = 1 << 20;

/// Maximum bytes of an object's URL without secrets, which is stored with its pages in the disk
/// cache.
pub const CACHED_NAME: usize = 4096;

/// Bytes of the stack of a connection's thread.
pub const CONNECTION_STACK: usize = 512 << 10;

/// Maximum bytes of writable memory of the fetcher's process, in addition to its connections.
pub const FETCHING_BYTES: u64 = 256 << 20;

/// Maximum bytes of memory of the fetcher's process for each connection: its stack, its buffers,
/// and TLS.
pub const CONNECTION_BYTES: u64 = 4 << 20;
