//! The pickled attributes of pandas that describe categories.

use std::collections::HashSet;

use h5fs_reader::error::Result;
use h5fs_reader::wire::to_u64;

use crate::pickle::{Pickle, PickleValue};
use crate::table_budget::TableBudget;

/// Parses a pickle, and charges its size to `budget`, because many columns may refer to one pickle.
/// Returns `None` for an unsupported pickle.
///
/// # Errors
/// `Limit` if the budget is exceeded.
pub fn parse_pickle(pickle: &[u8], budget: &TableBudget) -> Result<Option<Pickle>> {
    budget.spend(to_u64(pickle.len()))?;
    Ok(Pickle::read(pickle))
}

/// Returns the names of the compound members (the columns of a table) whose categories are ordered.
/// `info` is the pickled value of the attribute `info` that pandas writes. Returns `None` if the
/// pickle is unsupported or too large.
pub fn members_with_ordered_categories(info: &[u8]) -> Option<HashSet<Vec<u8>>> {
    let budget = TableBudget::default();
    let info = parse_pickle(info, &budget).ok()??;
    let PickleValue::Dictionary(members) = info.get(info.root_value())? else {
        return None;
    };
    let mut ordered = HashSet::new();
    for &(name, about) in members {
        let Some(name) = info.text(name) else {
            continue;
        };
        budget.spend_on_name(name.len()).ok()?;
        budget.spend(to_u64(info.pairs(about).len())).ok()?;
        let is_ordered = info.value(about, b"ordered").and_then(|own| info.get(own));
        // If a name occurs twice, the last occurrence counts.
        if is_ordered == Some(&PickleValue::Bool(true)) {
            ordered.insert(name.into_owned());
        } else {
            ordered.remove(&*name);
        }
    }
    Some(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that pandas 2.3 writes for the columns `kind` (ordered) and `n`, and the data
    /// columns `o2` (ordered) and `plain`.
    #[test]
    fn ordered_categories_are_found_in_info() {
        let info = b"(dp0\nI1\n(dp1\nVnames\np2\n(lp3\nNasVtype\np4\nVIndex\np5\nssVindex\np6\n(dp7\ns\
            Vvalues_block_0\np8\n(dp9\nVordered\np10\nI01\nssVvalues_block_1\np11\n(dp12\nsVo2\np13\n\
            (dp14\ng10\nI01\nssVplain\np15\n(dp16\ng10\nI00\nss.";
        let names = [&b"values_block_0"[..], b"o2"].map(<[u8]>::to_vec);
        assert_eq!(
            members_with_ordered_categories(info),
            Some(HashSet::from(names))
        );
        assert_eq!(
            members_with_ordered_categories(b"(dp0\n."),
            Some(HashSet::new())
        );
        assert_eq!(members_with_ordered_categories(b"(lp0\n."), None);
        assert_eq!(members_with_ordered_categories(&info[..100]), None);
    }
}
