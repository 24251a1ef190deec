//! The names of keys as numbers. Equal names have the same number, and the numbers are in the byte
//! order of the names. Comparing and sorting keys thus costs the same however long the keys are and
//! however often aliases repeat them.

use std::collections::HashMap;

use crate::asdf::yaml::{Document, NodeIndex};
use crate::wire::{to_u64, to_usize};

/// Sets `YamlNode::name_number` of each of `keys`.
pub(super) fn assign_name_numbers(document: &mut Document, keys: &[NodeIndex]) {
    let numbers = numbers(document, keys);
    for (key, number) in keys.iter().zip(numbers) {
        if let Some(node) = document.nodes.get_mut(key.slot()) {
            node.name_number = number;
        }
    }
}

fn numbers(document: &Document, keys: &[NodeIndex]) -> Vec<u32> {
    let mut places = HashMap::new();
    let mut names = Vec::new();
    let place = |&key: &NodeIndex| {
        let name = document.key_text(key);
        *places.entry(name).or_insert_with(|| {
            let place = u32::try_from(to_u64(names.len())).unwrap_or(u32::MAX);
            names.push((name, place));
            place
        })
    };
    let of_keys: Vec<u32> = keys.iter().map(place).collect();
    names.sort();
    let mut sorted = vec![0; names.len()];
    for (number, (_, place)) in (0..).zip(names) {
        if let Some(sorted) = sorted.get_mut(slot(place)) {
            *sorted = number;
        }
    }
    let number = |&place: &u32| sorted.get(slot(place)).copied();
    of_keys.iter().filter_map(number).collect()
}

fn slot(place: u32) -> usize {
    to_usize(u64::from(place)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asdf::yaml::compose::compose;

    #[test]
    fn numbers_are_in_the_order_of_the_names() {
        let text = "{b: 1, '': 2, ab: 3, [1, 2]: 4, 'b': 5, é: 6, a: 7}";
        let document = compose(text.as_bytes(), 0).unwrap();
        let keys = document.pairs(NodeIndex::ROOT).unwrap().iter();
        let mut keys: Vec<_> = keys
            .map(|&(key, _)| (document.name_number(key), document.key_text(key)))
            .collect();
        keys.sort_unstable();
        let expected = [
            (0, ""),
            (1, "[1, 2]"),
            (2, "a"),
            (3, "ab"),
            (4, "b"),
            (4, "b"),
            (5, "é"),
        ];
        assert_eq!(keys, expected);
    }
}
