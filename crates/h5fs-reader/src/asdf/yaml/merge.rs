//! The entries of a mapping, with duplicates resolved and merge keys (`<<`) followed.

use std::collections::{HashMap, HashSet};

use crate::asdf::yaml::resolve::CoreTag;
use crate::asdf::yaml::{Document, KeyIdentity, NodeContent, NodeIndex};
use crate::error::{Error, Result};
use crate::limits;
use crate::wire::{Count, to_u64};

/// The number of pairs that the merge keys of one tree may still read.
#[derive(Debug)]
pub(crate) struct MergeBudget(usize);

impl MergeBudget {
    /// Returns the number of pairs that merge keys have read so far.
    pub(crate) fn spent(&self) -> usize {
        limits::TREE_MERGED.minus_or_zero(self.0)
    }
}

impl Default for MergeBudget {
    fn default() -> Self {
        MergeBudget(limits::TREE_MERGED)
    }
}

/// The entries of a mapping, including the entries from its merge keys.
#[derive(Debug, Default)]
pub(crate) struct MergedEntries {
    /// Keys with their values, in the order of the keys in the text, including merged ones.
    pub(crate) pairs: Vec<(NodeIndex, NodeIndex)>,
    /// The error that explains why entries from merge keys are missing.
    pub(crate) error: Option<Error>,
}

/// Returns the entries of `mapping`, or no entries for any other node. Of equal keys, the last one
/// is used. The mapping's own keys take precedence over merged ones, and earlier mappings of a
/// merge list over later ones.
pub(crate) fn entries(
    document: &Document,
    mapping: NodeIndex,
    budget: &mut MergeBudget,
) -> MergedEntries {
    let mut found = MergedPairs::new(document);
    let mut merges = found.add_own_pairs(document.pairs(mapping).unwrap_or_default());
    let mut visited = HashSet::from([mapping]);
    let mut error = None;
    while let Some(operand) = merges.pop() {
        let step = match document.content(operand) {
            NodeContent::Mapping(pairs) if visited.insert(operand) => {
                charge(budget, pairs.len()).map(|()| merges.extend(found.add_own_pairs(pairs)))
            }
            NodeContent::Mapping(_) => Ok(()),
            NodeContent::Sequence(items) => charge(budget, items.len())
                .and_then(|()| operands(document, items))
                .map(|items| merges.extend(items.iter().rev())),
            NodeContent::Scalar(_) => Err(not_a_mapping_error(document, operand)),
        };
        if let Err(why) = step {
            error = Some(why);
            break;
        }
    }
    let mut pairs: Vec<_> = found.pairs.into_values().collect();
    pairs.sort_unstable_by_key(|&(key, _)| key);
    MergedEntries { pairs, error }
}

/// Returns the items of a merge list. Fails if one of them is not a mapping.
fn operands<'a>(document: &Document, items: &'a [NodeIndex]) -> Result<&'a [NodeIndex]> {
    let other = items.iter().find(|&&item| document.pairs(item).is_none());
    other.map_or(Ok(items), |&other| {
        Err(not_a_mapping_error(document, other))
    })
}

fn not_a_mapping_error(document: &Document, operand: NodeIndex) -> Error {
    let what = "merge key (<<): its value is not a mapping";
    Error::corrupt(what, document.file_offset(operand))
}

fn charge(budget: &mut MergeBudget, pairs: usize) -> Result<()> {
    let most = to_u64(limits::TREE_MERGED);
    let left = budget.0.checked_sub(pairs.plus_one());
    budget.0 = left.ok_or_else(|| Error::limit("number of entries from merge keys", most))?;
    Ok(())
}

struct MergedPairs<'a> {
    document: &'a Document,
    pairs: HashMap<KeyIdentity, (NodeIndex, NodeIndex)>,
}

impl<'a> MergedPairs<'a> {
    fn new(document: &'a Document) -> Self {
        MergedPairs {
            document,
            pairs: HashMap::new(),
        }
    }

    /// Adds the pairs of one mapping whose keys are not present yet. Returns the operands of its
    /// merge keys, the operand with the highest precedence last.
    fn add_own_pairs(&mut self, pairs: &[(NodeIndex, NodeIndex)]) -> Vec<NodeIndex> {
        let mut merges = Vec::new();
        for &(key, value) in pairs.iter().rev() {
            if self.document.core_tag(key) == Some(CoreTag::Merge) {
                merges.push(value);
            } else {
                let identity = self.document.identity(key);
                self.pairs.entry(identity).or_insert((key, value));
            }
        }
        merges.reverse();
        merges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asdf::yaml::compose::compose;

    /// Returns the entries of the last item of a list of mappings, as text.
    fn last(text: &str) -> (Vec<String>, bool) {
        let document = compose(text.as_bytes(), 0).unwrap();
        let mapping = *document.items(NodeIndex::ROOT).unwrap().last().unwrap();
        let entries = entries(&document, mapping, &mut MergeBudget::default());
        let pairs = entries.pairs.iter();
        let pairs = pairs.map(|&(key, value)| {
            format!("{}={}", document.key_text(key), document.key_text(value))
        });
        (pairs.collect(), entries.error.is_some())
    }

    #[test]
    fn own_keys_and_earlier_mappings_take_precedence() {
        let (pairs, _) = last("[&a {k: 1, n: 1}, {<<: [*a, {k: 2, z: 2}], n: 3, n: 4}]");
        assert_eq!(pairs, ["k=1", "z=2", "n=4"]);
    }

    #[test]
    fn keys_of_different_types_are_different() {
        assert_eq!(last("[{7: a, '7': b, !!str 7: c}]").0, ["7=a", "7=c"]);
    }

    #[test]
    fn cyclic_and_invalid_merges_end() {
        assert_eq!(last("[&a {<<: *a, k: 1}]"), (vec!["k=1".to_owned()], false));
        assert_eq!(last("[{<<: text, k: 1}]"), (vec!["k=1".to_owned()], true));
    }

    #[test]
    fn an_error_states_the_offset_of_the_merged_node() {
        let document = compose(b"{<<: [{k: 1}, text]}", 100).unwrap();
        let error = entries(&document, NodeIndex::ROOT, &mut MergeBudget::default()).error;
        assert!(error.unwrap().to_string().ends_with("at byte 114)"));
    }
}
