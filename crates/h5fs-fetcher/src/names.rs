//! Lists names: object keys with a prefix, or files in a directory of a web server.
//!
//! | file | content |
//! |---|---|
//! | `s3` | the response of `ListObjectsV2`, also of Google's servers |
//! | `azure` | the response of `List Blobs` |
//! | `index`, `json` | index pages of web servers, in HTML or JSON |
//! | `thredds` | catalogs of THREDDS |
//! | `tree` | trees of Hugging Face datasets |
//! | `webdav` | properties of WebDAV |
//! | `web` | the choice between these protocols for a web server, and lookups of single names |
//! | `page`, `keys`, `href` | a page of names; keys of object stores; references in pages |
//! | `xml` | bounded and complete XML documents |

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

use h5fs_reader::source::location::Scheme;

use crate::fetch_error::FetchError;
use crate::names::page::NamesPage;

/// Parses one page of an object store's listing. All keys of the page must start with `prefix`. A
/// key's name is the part of the key after the last `/` of `prefix`. A key is skipped if this part
/// is empty or is not a valid name.
///
/// # Errors
/// Fails if the page exceeds a limit. An incomplete page, or a page with keys that do not start
/// with `prefix`, is a temporary failure: a proxy may have truncated the page or replaced it.
pub(super) fn parse_store_page(
    scheme: Scheme,
    body: &[u8],
    prefix: &[u8],
) -> Result<NamesPage, FetchError> {
    match scheme {
        Scheme::Azure => azure::parse_page(body, prefix),
        _ => s3::parse_page(body, prefix),
    }
}
