//! Rejects variables that must be absent because of the rules of a convention (AnnData, pandas or
//! HDMF).

use crate::members::content::ElementSummary;
use crate::members::convention::{ConventionRules, ElementRelation};
use crate::paths::{OmissionResult, Path};
use crate::variable::comparison::{SharedVariable, SkeletonVariable};

/// Rejects a variable whose joined array would violate the rules of its convention.
///
/// # Errors
/// Fails with the reason if the variable must be absent.
pub(super) fn check_convention(alike: &SharedVariable<'_>) -> OmissionResult<()> {
    if alike.comparison.placed_members.members.len() < 2 {
        return Ok(());
    }
    let own = &alike.first_variable().convention;
    if let ElementRelation::Refused(reason) | ElementRelation::RefusedWithGroup(reason) =
        &own.relation
    {
        return Err(reason.clone());
    }
    let differs = |other: &&SkeletonVariable<'_>| other.variable.convention != *own;
    if let Some(other) = alike.skeleton_variables.iter().find(differs) {
        let (one, file) = alike.differing_file_names(*other);
        let what = describe_difference(own, &other.variable.convention);
        return Err(format!("{what} ({one}, {file})"));
    }
    if own.table.is_some() {
        check_rows(alike)?;
    }
    if let (Some(whole), false) = (&own.whole, alike.is_in_all_members()) {
        let whole = whole.escape_ascii();
        return Err(format!(
            "it is part of /{whole}, which has this structure only in some files"
        ));
    }
    if let Some(labels) = &own.labels {
        check_labels(alike, labels)?;
    }
    if own.relation.is_index() {
        let is_sound =
            |known: Option<&ElementSummary>| matches!(known, Some(ElementSummary::EndsAndHash(..)));
        let mut all = alike.occurrences();
        let other =
            all.find(|(member, _, own)| !is_sound(member.summaries.get(own.variable_index)));
        if let Some((member, ..)) = other {
            let name = member.name.escape_ascii();
            return Err(format!(
                "an index that decreases or does not end at the number of entries ({name})"
            ));
        }
    }
    Ok(())
}

/// Rejects a variable whose rows are not the rows of its table in all files.
///
/// # Errors
/// Fails with the names of two files in which the row dimensions differ.
fn check_rows(alike: &SharedVariable<'_>) -> OmissionResult<()> {
    let rows = |own: &SkeletonVariable<'_>| {
        let dim = own.skeleton.dims(own.variable).next();
        dim.map(|dim| Path::clone(&dim.key))
    };
    let first = rows(&alike.skeleton_variables[0]);
    match alike
        .skeleton_variables
        .iter()
        .find(|other| rows(other) != first)
    {
        Some(other) => {
            let (one, file) = alike.differing_file_names(*other);
            Err(format!(
                "its rows do not match the rows of its table in all files ({one}, {file})"
            ))
        }
        None => Ok(()),
    }
}

/// Describes how the rules of a variable differ between two files.
fn describe_difference(own: &ConventionRules, other: &ConventionRules) -> String {
    let mut terms = own.terms.iter().chain(&other.terms);
    let both = |name: &[u8]| {
        [own, other].map(|of| {
            of.terms
                .iter()
                .find(|(own, _)| own == name)
                .map(|(_, is)| is)
        })
    };
    let found = terms.find(|(name, _)| {
        let [own, other] = both(name);
        own != other
    });
    match found {
        Some((name, _)) => format!("attributes {} differ", name.escape_ascii()),
        None => "its attributes differ between files".to_owned(),
    }
}

/// Rejects a matrix whose columns may have different labels in different files.
///
/// # Errors
/// Fails with the reason unless the labels are known to be equal in all files.
fn check_labels(alike: &SharedVariable<'_>, path: &Path) -> OmissionResult<()> {
    let labels = alike.comparison.variable(path);
    let known = if labels.member_count() > 0 && labels.is_in_all_members() {
        labels.are_elements_equal()
    } else {
        None
    };
    let path = path.escape_ascii();
    match known {
        Some(true) => Ok(()),
        Some(false) => Err(format!("the labels of its columns differ: /{path}")),
        None => Err(format!(
            "the labels of its columns were not compared: /{path}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::content::text_attribute;

    #[test]
    fn the_attribute_that_differs_is_named() {
        let with = |text: &[u8]| ConventionRules {
            terms: vec![
                (b"a".to_vec(), text_attribute(b"x")),
                (b"info".to_vec(), text_attribute(text)),
            ],
            ..ConventionRules::default()
        };
        assert_eq!(
            describe_difference(&with(b"1"), &with(b"2")),
            "attributes info differ"
        );
        let lacks = ConventionRules::default();
        assert_eq!(
            describe_difference(&lacks, &with(b"2")),
            "attributes a differ"
        );
        let refused = ConventionRules {
            relation: ElementRelation::Names,
            ..ConventionRules::default()
        };
        assert_eq!(
            describe_difference(&lacks, &refused),
            "its attributes differ between files"
        );
    }
}
