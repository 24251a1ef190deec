//! Lists with distinct names, even if the file repeats a name.

use std::collections::HashSet;

/// Keeps only the first of all `items` with the same name, because a search finds the first.
pub fn deduplicate_by_name<T>(items: &mut Vec<T>, name: impl Fn(&T) -> &[u8]) {
    let mut met = HashSet::with_capacity(items.len());
    let is_first: Vec<bool> = items.iter().map(|item| met.insert(name(item))).collect();
    let mut is_first = is_first.into_iter();
    items.retain(|_| is_first.next().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_names_is_kept() {
        let mut items = vec![("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)];
        deduplicate_by_name(&mut items, |(name, _)| name.as_bytes());
        assert_eq!(items, [("b", 1), ("a", 2), ("c", 4)]);
    }
}
