//! Reads HDF5 and ASDF files in safe Rust, without the HDF5 library.
//!
//! [`file`](mod@file) is the interface for other programs:
//!
//! ```
//! use h5fs_reader::file::{File, Object};
//!
//! # fn main() -> h5fs_reader::error::Result<()> {
//! # let path = "../../src/cli/text/climate.h5";
//! let file = File::options().cache_bytes(32 << 20).open(path)?;
//! for link in file.root()?.links()? {
//!     println!("{}", String::from_utf8_lossy(&link?.name));
//! }
//! let Object::Dataset(temperature) = file.get("/surface/temperature")? else {
//!     panic!("not a dataset");
//! };
//! assert_eq!(temperature.shape(), [365, 36, 72]);
//! let units = temperature.attribute("units")?.expect("units");
//! assert_eq!(units.texts()?, ["K"]);
//! // As NumPy's `temperature[0, 10:12, 5]`:
//! let part = temperature.select("[0, 10:12, 5]")?;
//! assert_eq!(part.numbers()?, [291.1875, 293.875]);
//! let all = temperature.read()?;
//! assert_eq!(all.bytes.len(), 4 * 365 * 36 * 72);
//! # Ok(())
//! # }
//! ```
//!
//! The modules of the lower layers are public only for the crates of this repository. They may
//! change at any time.
//!
//! # Layers
//!
//! A source file imports other modules only from lower layers. The workspace's test
//! `tests/integration/layering.rs` checks this rule.
//!
//! | layer | modules | content |
//! |---|---|---|
//! | 9 | [`file`](mod@file) | files, groups and datasets for other programs |
//! | 8 | [`detect`] | which format a file has |
//! | 7 | `array` | byte ranges of arrays: chunks, cache, prefetch, gather |
//! | 7 | [`hdf5`], [`asdf`] | the formats, which describe objects. No format imports another one |
//! | 6 | [`filter`] | codecs: bytes to bytes, with limited output |
//! | 5 | [`model`] | the data model that both formats share |
//! | 4 | [`source`] | the bytes of files: local, remote, or in memory |
//! | 3 | [`memory`] | buffers, bounded caches, and the budgets of requests |
//! | 2 | [`wire`] | cursors over bytes, and checksums |
//! | 1 | [`error`] | the error type |
//! | 0 | [`limits`] | the limits of this crate |

#![forbid(unsafe_code)]
// Most numbers come from files.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::disallowed_methods,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::as_conversions
    )
)]

pub mod array;
pub mod asdf;
pub mod detect;
pub mod error;
pub mod file;
pub mod filter;
pub mod hdf5;
pub mod limits;
pub mod memory;
pub mod model;
pub mod source;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod wire;
