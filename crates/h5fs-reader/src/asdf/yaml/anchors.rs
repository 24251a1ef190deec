//! The names of anchors and aliases. In YAML 1.1, they consist of letters, digits, `-` and `_`. In
//! YAML 1.2, which the parser implements, they consist of almost any characters.

use crate::wire::Count;

/// The end of an anchor's name in YAML 1.1 and YAML 1.2.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnchorNameEnd {
    /// The name ends at the same character in both versions, or is invalid in YAML 1.1.
    Whole,
    /// In YAML 1.1, the name ends before the colon at this byte offset, which separates a key from
    /// its value.
    Colon(usize),
    /// In YAML 1.1, the name ends at this byte offset, and the following text would have a meaning
    /// that no file intends.
    Ambiguous(usize),
}

/// Returns the end of the name that begins at byte `at` of `text`, including its `&` or `*`.
pub(super) fn find_name_end(text: &str, at: usize) -> AnchorNameEnd {
    let rest = text.get(at..).unwrap_or_default();
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let Some((name, after)) = rest.strip_prefix(['&', '*']).and_then(|name| {
        let end = name.find(|c| !is_word(c)).unwrap_or(name.len());
        name.split_at_checked(end).filter(|_| end > 0)
    }) else {
        return AnchorNameEnd::Whole;
    };
    let end = at.plus_one().plus(name.len());
    let mut after = after.chars();
    match (after.next(), after.next()) {
        (Some(':'), None | Some(' ' | '\t' | '\r' | '\n' | ',' | '[' | ']' | '{' | '}')) => {
            AnchorNameEnd::Colon(end)
        }
        (Some(':' | '?'), _) => AnchorNameEnd::Ambiguous(end),
        _ => AnchorNameEnd::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_before_a_colon() {
        assert_eq!(find_name_end("{*id: 1}", 1), AnchorNameEnd::Colon(4));
        assert_eq!(find_name_end("&a-_9:", 0), AnchorNameEnd::Colon(5));
        assert_eq!(find_name_end("*id : 1", 0), AnchorNameEnd::Whole);
        assert_eq!(find_name_end("[*id]", 1), AnchorNameEnd::Whole);
        assert_eq!(find_name_end("*a.b: 1", 0), AnchorNameEnd::Whole);
        assert_eq!(find_name_end("&i:d 1", 0), AnchorNameEnd::Ambiguous(2));
        assert_eq!(find_name_end("*é: 1", 0), AnchorNameEnd::Whole);
        assert_eq!(find_name_end("x", 7), AnchorNameEnd::Whole);
    }
}
