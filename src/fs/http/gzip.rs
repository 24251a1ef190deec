//! Texts, compressed.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;
use libdeflater::{CompressionLvl, Compressor};

use crate::error::{Cause, Error, Result};
use crate::fs::http::access::texts;
use crate::limits;

/// Bytes from which on a text is worth it.
const LEAST: u64 = 512;

/// Whether a text of so many bytes is compressed: it is in memory meanwhile.
pub(super) fn is_worthwhile(length: u64) -> bool {
    (LEAST..=limits::HTTP_GZIP).contains(&length)
}

/// Whether the client takes it: RFC 9110, section 12.5.3.
pub(super) fn is_accepted(headers: &HeaderMap) -> bool {
    let words = texts(headers, &ACCEPT_ENCODING).flat_map(|text| text.split(','));
    words.map(str::trim).any(|word| {
        let (name, weight) = word.split_once(';').unwrap_or((word, ""));
        let zero = weight
            .trim()
            .strip_prefix("q=")
            .and_then(|text| text.parse().ok());
        name.trim().eq_ignore_ascii_case("gzip") && zero != Some(0.0)
    })
}

/// The text in the form of gzip.
///
/// # Errors
/// None for a text that is short enough.
pub(super) fn packed(text: &[u8]) -> Result<Vec<u8>> {
    let mut compressor = Compressor::new(CompressionLvl::fastest());
    let mut packed = vec![0; compressor.gzip_compress_bound(text.len())];
    let length = compressor.gzip_compress(text, &mut packed);
    let length = length.map_err(|_| Error::caused(Cause::Failed, "compressing a text"))?;
    packed.truncate(length);
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_says_what_it_takes() {
        let takes = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, text.parse().unwrap());
            is_accepted(&headers)
        };
        assert!(takes("gzip") && takes("br, GZIP;q=0.5") && takes("deflate, gzip"));
        assert!(
            !takes("identity") && !takes("gzip;q=0") && !takes("gzip;q=0.0") && !takes("xgzip")
        );
        assert!(!is_accepted(&HeaderMap::new()));
    }
}
