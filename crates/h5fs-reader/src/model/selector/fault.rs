//! Explanations of why a selector does not match, for the users who wrote it.

use crate::limits;
use crate::model::selection::Selection;
use crate::model::selector::{
    DimensionIndex, SelectorStep, closing_bracket, parse_index, parse_step, split_indices,
};
use crate::model::{Datatype, Shape, datatype::Class};
use crate::wire::Count;

/// Explains the fault in `text`, a selector for an array of `datatype` and `shape`. Returns `None`
/// if the selector is valid.
pub fn explain(text: &[u8], datatype: &Datatype, shape: &Shape) -> Option<String> {
    if *shape == Shape::Null {
        return Some("the dataspace is null: there are no elements to select".to_owned());
    }
    let mut picked = Selection::all_elements(datatype, shape.dims()).ok()?;
    let mut rest = text;
    while !rest.is_empty() {
        let Some(inner) = rest.strip_prefix(b"[") else {
            let behind = String::from_utf8_lossy(rest);
            return Some(format!("`{behind}` follows the last bracket"));
        };
        let Some((step, after)) = parse_step(inner) else {
            return Some(explain_bracket(inner).to_owned());
        };
        if let Some(fault) = explain_step(&mut picked, &step, inner) {
            return Some(fault);
        }
        rest = after;
    }
    None
}

/// Explains why `inner`, the text after an opening bracket, is not a step of a selector.
fn explain_bracket(inner: &[u8]) -> &'static str {
    match inner.trim_ascii() {
        [b'\'' | b'"', ..] => {
            "the name of the field does not end with a quotation mark and a bracket"
        }
        text if !text.contains(&b']') => "no `]` closes the bracket",
        _ => "the brackets are empty",
    }
}

/// Applies one more step, whose text is `inner`, to the selection `picked`. Returns an explanation
/// if the step does not match the selection.
fn explain_step(picked: &mut Selection, step: &SelectorStep, inner: &[u8]) -> Option<String> {
    match step {
        SelectorStep::Field(name) => {
            let taken = picked.select_field(name);
            taken
                .is_err()
                .then(|| explain_field(&picked.datatype, name, inner))
        }
        SelectorStep::Indices(indices) => {
            let dims = picked.dims();
            let taken = picked.apply_indices(indices);
            taken.is_err().then(|| explain_indices(indices, &dims))
        }
    }
}

/// Explains why the field `name` does not exist. The user may have meant the name as indices.
fn explain_field(datatype: &Datatype, name: &[u8], inner: &[u8]) -> String {
    let is_quoted = matches!(inner.trim_ascii_start(), [b'\'' | b'"', ..]);
    let shown = String::from_utf8_lossy(name);
    match &datatype.class {
        Class::Compound(members) => {
            let names = list_names(members.iter().map(|member| &member.name[..]));
            format!("there is no field `{shown}`; there are {names}")
        }
        _ if is_quoted => format!("there is no field `{shown}`: the elements have no fields"),
        _ => {
            let end = closing_bracket(inner);
            let indices = end.and_then(|end| inner.get(..end)).unwrap_or(name);
            let fault = explain_non_indices(&String::from_utf8_lossy(indices));
            format!("{fault}, and the elements have no fields")
        }
    }
}

/// Returns names separated by commas. A list that would exceed [`limits::NAMED_FIELDS`] bytes ends
/// with `…`.
fn list_names<'n>(names: impl Iterator<Item = &'n [u8]>) -> String {
    let mut text = String::new();
    for name in names {
        let name = String::from_utf8_lossy(name);
        if !text.is_empty() {
            text.push_str(", ");
        }
        if text.len().plus(name.len()) > limits::NAMED_FIELDS {
            text.push('…');
            break;
        }
        text.push_str(&name);
    }
    text
}

/// Explains why a text is not a list of indices.
fn explain_non_indices(text: &str) -> String {
    let mut indices = Vec::new();
    for part in split_indices(text) {
        match parse_index(part) {
            Some(index) => indices.push(index),
            None if has_step_of_zero(part) => return format!("`{part}` has a step of 0"),
            None => return format!("`{part}` is not an index"),
        }
    }
    let count = |is: fn(&DimensionIndex) -> bool| indices.iter().filter(|&index| is(index)).count();
    if count(|index| *index == DimensionIndex::Ellipsis) > 1 {
        return format!("`{text}` has more than one `...`");
    }
    if count(|index| matches!(index, DimensionIndex::List(_))) > 1 {
        return format!("`{text}` has more than one list of indices");
    }
    format!("`{text}` is not an index")
}

fn has_step_of_zero(index: &str) -> bool {
    let step = index.split(':').nth(2).map(str::trim);
    step.is_some_and(|step| step.parse() == Ok(0))
}

/// Explains why `indices` do not match the dimensions `dims`.
fn explain_indices(indices: &[DimensionIndex], dims: &[u64]) -> String {
    let named = indices
        .iter()
        .filter(|&index| *index != DimensionIndex::Ellipsis);
    let named = named.count();
    if named > dims.len() {
        return format!("too many indices ({named}): the shape is {dims:?}");
    }
    // A number outside 64 bits was replaced by another number, which the message must not show.
    let is_exact = |at: &i64| !matches!(*at, i64::MIN | i64::MAX);
    let outside = first_out_of_range(indices, dims).filter(is_exact);
    let index = outside.map_or_else(String::new, |index| format!("{index} is "));
    format!("{index}out of range: the shape is {dims:?}")
}

/// Returns the first integer in `indices` that is out of range for its dimension, or `None` if all
/// are in range.
fn first_out_of_range(indices: &[DimensionIndex], dims: &[u64]) -> Option<i64> {
    let is_named = |index: &&DimensionIndex| **index != DimensionIndex::Ellipsis;
    let before = indices.iter().take_while(is_named).zip(dims);
    let behind = indices.iter().rev().take_while(is_named);
    let mut pairs = before.chain(behind.zip(dims.iter().rev()));
    pairs.find_map(|(index, &count)| {
        let most = i64::try_from(count).unwrap_or(i64::MAX);
        let is_outside = |at: &&i64| !(most.wrapping_neg()..most).contains(*at);
        match index {
            DimensionIndex::Integer(at) => Some(at).filter(is_outside).copied(),
            DimensionIndex::List(list) => list.iter().find(is_outside).copied(),
            DimensionIndex::Slice { .. } | DimensionIndex::Ellipsis => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::selector::Selector;
    use crate::testing::{int, member, type_of};

    fn fault(text: &str, datatype: &Datatype, dims: &[u64]) -> Option<String> {
        let shape = Shape::fixed(dims.to_vec());
        let fault = explain(text.as_bytes(), datatype, &shape);
        let selector = Selector::parse(text.as_bytes());
        let picks = selector.is_some_and(|selector| selector.select(datatype, &shape).is_ok());
        assert_eq!(fault.is_none(), picks, "{text}: {fault:?}");
        fault
    }

    #[test]
    fn invalid_selectors_are_explained() {
        for (text, wanted) in [
            ("[999]", "999 is out of range: the shape is [365, 36, 72]"),
            ("[-366]", "-366 is out of range: the shape is [365, 36, 72]"),
            (
                "[..., 72]",
                "72 is out of range: the shape is [365, 36, 72]",
            ),
            ("[0][:,99]", "99 is out of range: the shape is [36, 72]"),
            (
                "[[1,400],:]",
                "400 is out of range: the shape is [365, 36, 72]",
            ),
            (
                "[0,0,0,0]",
                "too many indices (4): the shape is [365, 36, 72]",
            ),
            (
                "[99999999999999999999]",
                "out of range: the shape is [365, 36, 72]",
            ),
            (
                "[x]",
                "`x` is not an index, and the elements have no fields",
            ),
            (
                "[0,1.5]",
                "`1.5` is not an index, and the elements have no fields",
            ),
            (
                "[::0]",
                "`::0` has a step of 0, and the elements have no fields",
            ),
            (
                "[...,...]",
                "`...,...` has more than one `...`, and the elements have no fields",
            ),
            (
                "[[1],[2]]",
                "`[1],[2]` has more than one list of indices, and the elements have no fields",
            ),
            (
                "['x']",
                "there is no field `x`: the elements have no fields",
            ),
            ("[", "no `]` closes the bracket"),
            ("[0", "no `]` closes the bracket"),
            ("[0][1", "no `]` closes the bracket"),
            ("[]", "the brackets are empty"),
            (
                "['x]",
                "the name of the field does not end with a quotation mark and a bracket",
            ),
            ("[0]x", "`x` follows the last bracket"),
        ] {
            assert_eq!(
                fault(text, &int(2), &[365, 36, 72]).as_deref(),
                Some(wanted),
                "{text}"
            );
        }
        for text in ["[0]", "[0:0]", "[-365, ..., 71]", "[[]]"] {
            assert_eq!(fault(text, &int(2), &[365, 36, 72]), None, "{text}");
        }
        let scalar = fault("[0]", &int(2), &[]);
        assert_eq!(
            scalar.as_deref(),
            Some("too many indices (1): the shape is []")
        );
        assert!(
            explain(b"[0]", &int(2), &Shape::Null)
                .unwrap()
                .contains("null")
        );
    }

    #[test]
    fn missing_fields_are_explained_with_existing_names() {
        let inner = type_of(
            4,
            Class::Compound(vec![member("x", 0, int(2)), member("y", 2, int(2))]),
        );
        let record = type_of(
            6,
            Class::Compound(vec![member("flux", 0, int(2)), member("pos", 2, inner)]),
        );
        for (text, wanted) in [
            ("[no]", "there is no field `no`; there are flux, pos"),
            ("[pos]['z']", "there is no field `z`; there are x, y"),
            ("[flux][9]", "9 is out of range: the shape is [3]"),
        ] {
            assert_eq!(
                fault(text, &record, &[3]).as_deref(),
                Some(wanted),
                "{text}"
            );
        }
        let many = (0..1000).map(|n| member(&format!("field {n}"), 0, int(2)));
        let many = type_of(2, Class::Compound(many.collect()));
        let text = fault("[no]", &many, &[3]).unwrap();
        assert!(
            text.ends_with(", …") && text.len() < 2 * limits::NAMED_FIELDS,
            "{text}"
        );
    }
}
