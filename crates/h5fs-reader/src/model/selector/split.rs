//! Splits the name of a file into the name of an object and a selector.

use crate::model::selector::Selector;
use crate::model::selector::labels::LabelSelector;

/// Returns all divisions of `name` into a name that is not empty and a valid selector, the longest
/// name first.
pub fn split_selector(name: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let places = name.iter().enumerate().rev();
    places
        .filter(|&(at, &byte)| byte == b'[' && at > 0)
        .filter_map(|(at, _)| name.split_at_checked(at))
        .filter(|(_, selector)| is_selector(selector))
}

/// Returns whether `text` is a selector, with or without named dimensions.
fn is_selector(text: &[u8]) -> bool {
    Selector::parse(text).is_some() || matches!(LabelSelector::parse(text), Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_of_their_own() {
        let ways = |name: &'static str| {
            split_selector(name.as_bytes())
                .map(|(name, _)| str::from_utf8(name).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(ways("a[0][x]"), ["a[0]", "a"]);
        assert_eq!(ways("a['x[0]']"), ["a"]);
        assert_eq!(ways("a[[0,1],:]"), ["a"]);
        assert_eq!(ways("a[[0,1]][2]"), ["a[[0,1]]", "a"]);
        assert_eq!(ways("a[x='b]c']"), ["a"]);
        assert_eq!(ways("a[x@[0,1]]"), ["a"]);
        assert!(ways("[0]").is_empty());
        assert!(ways("a[]").is_empty());
    }
}
