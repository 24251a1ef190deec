//! Reassembles the words of a line that bash passes to a completion. bash splits words at `=` and
//! `:`, and keeps quotes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Joins the `pieces` of a line into the words that the shell would parse. Also returns the length
/// in bytes of the last word without its last piece, because the shell replaces only the last
/// piece.
pub(super) fn join_words(pieces: &[OsString]) -> (Vec<OsString>, usize) {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut goes_on = false;
    let mut left_out = 0;
    for piece in pieces {
        let is_break = piece == "=" || piece == ":";
        let piece = unquote(piece);
        match words.last_mut().filter(|_| goes_on || is_break) {
            Some(word) => {
                left_out = word.len() + if is_break { piece.len() } else { 0 };
                word.extend(piece);
            }
            None => {
                left_out = 0;
                words.push(piece);
            }
        }
        goes_on = is_break;
    }
    let words = words.into_iter().map(OsString::from_vec);
    (words.collect(), left_out)
}

/// Removes quotes and backslashes from a word. The last quote may be unclosed.
fn unquote(word: &OsStr) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut quote = None;
    let mut bytes = word.as_bytes().iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', None | Some(b'"')) => plain.extend(bytes.next()),
            (_, Some(open)) if byte == open => quote = None,
            (b'\'' | b'"', None) => quote = Some(byte),
            _ => plain.push(byte),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_split_by_bash_are_joined() {
        for (pieces, words, left_out) in [
            (
                &["ls", "--sandbox", "=", "o"][..],
                &["ls", "--sandbox=o"][..],
                10,
            ),
            (&["--sandbox", "="], &["--sandbox="], 10),
            (&["s3", ":", "//bucket/a"], &["s3://bucket/a"], 3),
            (&["cat", "a b.h5", ""], &["cat", "a b.h5", ""], 0),
            (&["a\\ b", "'c d", "\"e\\\"f\""], &["a b", "c d", "e\"f"], 0),
        ] {
            let pieces: Vec<OsString> = pieces.iter().map(Into::into).collect();
            let (joined, rest) = join_words(&pieces);
            assert_eq!(
                (joined.as_slice(), rest),
                (
                    &words.iter().map(OsString::from).collect::<Vec<_>>()[..],
                    left_out
                )
            );
        }
    }
}
