//! Names beneath a prefix, or in a directory of the web, as servers list them.
//!
//! | file | what is read |
//! |---|---|
//! | `s3` | the answer of `ListObjectsV2`, of Google's servers, too |
//! | `azure` | the answer of `List Blobs` |
//! | `index`, `json` | index pages of web servers, in HTML or JSON |
//! | `thredds` | catalogs of THREDDS |
//! | `tree` | trees of datasets of Hugging Face |
//! | `webdav` | properties of WebDAV |
//! | `web` | which of these a server of the web speaks, and names that are looked up |
//! | `page`, `keys`, `href` | a page of names; keys of stores; references of pages |
//! | `xml` | documents of XML, bounded and whole |

mod azure;
mod href;
mod index;
pub(super) mod json;
mod keys;
pub(super) mod page;
mod s3;
pub(super) mod thredds;
pub(super) mod tree;
pub(super) mod web;
mod webdav;
mod xml;

use crate::cli::fetcher::names::page::Page;
use crate::cli::fetcher::trouble::Trouble;
use crate::source::location::Scheme;

/// Reads the page of the keys that begin with `prefix`. Their names are what follows its last
/// `/`; a key that ends there has none.
///
/// # Errors
/// Fails if it has more than its bounds. What is no whole page, or one of other keys, may be
/// right the next time: a proxy may have cut it off, or have sent a page of its own in its
/// place.
pub(super) fn parse(scheme: Scheme, body: &[u8], prefix: &[u8]) -> Result<Page, Trouble> {
    match scheme {
        Scheme::Azure => azure::page(body, prefix),
        _ => s3::page(body, prefix),
    }
}
