//! The structure of a member: its groups, variables and dimensions, without values. Members with
//! the same structure share one skeleton.

use std::hash::{Hash, Hasher};

use h5fs_conventions::packing::Packing;
use h5fs_conventions::time::TimeUnits;
use h5fs_reader::model::Datatype;
use h5fs_reader::model::array::Fill;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::wire::{Count, to_u64};
use serde::{Deserialize, Serialize};

use crate::members::content;
use crate::members::convention::{ConventionRules, FirstDimensionMeaning, MemberTable};
use crate::paths::Path;

/// The name and the value of an attribute.
pub(crate) type NamedAttribute = (Vec<u8>, AttributeContent);

/// The groups, variables and dimensions of a member.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Skeleton {
    /// Paths of the groups, in the order in which the scan found them. The root is the first one.
    pub(crate) groups: Vec<Path>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) dimensions: Vec<Dimension>,
    /// Groups that are tables by a convention (AnnData, pandas or HDMF).
    pub(crate) tables: Vec<MemberTable>,
}

/// A dimension of a member.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Dimension {
    /// The path of the dimension scale, or the dimension's label within the variable's group. A
    /// dimension without a name has a key that differs from all paths.
    pub(crate) key: Path,
    pub(crate) has_name: bool,
    pub(crate) is_unlimited: bool,
    /// The meaning of the dimension by a convention, for example rows of a table.
    pub(crate) rows: FirstDimensionMeaning,
    /// The index of the variable with the coordinates of this dimension.
    pub(crate) coordinate: Option<usize>,
}

/// An array of a member.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Variable {
    pub(crate) path: Path,
    pub(crate) datatype: Datatype,
    /// For each dimension of the array, its index in the list of dimensions of the skeleton.
    pub(crate) dims: Vec<usize>,
    pub(crate) chunk_shape: Option<Vec<u64>>,
    pub(crate) fill: Fill,
    pub(crate) role: VariableRole,
    /// Whether the variable is a dimension scale.
    pub(crate) is_scale: bool,
    /// The attributes that determine the meaning of the variable's numbers.
    pub(crate) marks: Vec<NamedAttribute>,
    /// The meaning of the numbers according to these attributes, or the reason why it is unknown.
    pub(crate) meaning: NumberMeaning,
    /// The rules of a convention for the variable's elements.
    pub(crate) convention: ConventionRules,
}

/// The role of a variable in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum VariableRole {
    /// A data variable: none of the other roles.
    Data,
    /// A variable with the coordinates of its own dimension.
    Coordinate,
    /// A variable with the bounds of the variable with this index.
    Bounds(usize),
    /// A dimension scale without values.
    Dimension,
}

/// The meaning of a variable's stored numbers, derived from its datatype and attributes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct NumberMeaning {
    pub(crate) packing: Option<Packing>,
    pub(crate) time: Option<TimeUnits>,
    /// The reason why the meaning is unknown: an attribute is invalid.
    pub(crate) refusal: Option<String>,
}

/// Attributes that define how numbers are packed.
pub(crate) const PACKING_ATTRIBUTES: [&[u8]; 5] = [
    b"scale_factor",
    b"add_offset",
    b"_FillValue",
    b"missing_value",
    b"_Unsigned",
];

/// Attributes that define the valid range of numbers. A number outside the range is a missing
/// value.
pub(crate) const VALID_RANGE_ATTRIBUTES: [&[u8]; 3] = [b"valid_min", b"valid_max", b"valid_range"];

/// Attributes that define the meaning of integer flags. They must be equal in all files.
pub(crate) const FLAG_ATTRIBUTES: [&[u8]; 3] = [b"flag_values", b"flag_masks", b"flag_meanings"];

/// Attributes that describe the quantity of the numbers and its direction. Files with different
/// values cannot be joined. A file without such an attribute can be joined with any other file.
pub(crate) const QUANTITY_ATTRIBUTES: [&[u8]; 2] = [b"standard_name", b"positive"];

/// All other attributes that decide how a variable is joined.
const OTHER_JOINING_ATTRIBUTES: [&[u8]; 6] = [
    b"units",
    b"calendar",
    b"bounds",
    b"climatology",
    b"ancillary_variables",
    b"dtype",
];

/// Returns whether an attribute decides how a variable is joined.
pub(crate) fn is_joining_attribute(name: &[u8]) -> bool {
    let of_numbers = PACKING_ATTRIBUTES.iter().chain(&VALID_RANGE_ATTRIBUTES);
    let mut all = of_numbers
        .chain(&FLAG_ATTRIBUTES)
        .chain(&QUANTITY_ATTRIBUTES)
        .chain(&OTHER_JOINING_ATTRIBUTES);
    all.any(|mark| *mark == name)
}

impl PartialEq for Variable {
    fn eq(&self, other: &Self) -> bool {
        self.identifying_fields() == other.identifying_fields()
    }
}

impl Eq for Variable {}

impl Hash for Variable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identifying_fields().hash(state);
    }
}

impl Variable {
    /// Returns all fields that identify the variable. The field `meaning` is derived from these
    /// fields.
    fn identifying_fields(&self) -> impl PartialEq + Hash + '_ {
        (
            (&self.path, &self.datatype, &self.dims, &self.chunk_shape),
            (&self.fill, self.role, self.is_scale, &self.marks),
            &self.convention,
        )
    }

    /// Returns the value of an attribute in `marks`.
    pub(crate) fn attribute(&self, name: &[u8]) -> Option<&AttributeContent> {
        let mut marks = self.marks.iter();
        marks.find(|mark| mark.0 == name).map(|mark| &mark.1)
    }

    /// Returns the text of an attribute in `marks`.
    pub(crate) fn attribute_text(&self, name: &[u8]) -> Option<&[u8]> {
        self.attribute(name).and_then(content::attribute_text)
    }

    /// Returns the values of the attributes that define packing and the valid range. A missing
    /// attribute is `None`.
    pub(crate) fn packing_attributes(&self) -> Vec<Option<&AttributeContent>> {
        let names = PACKING_ATTRIBUTES.iter().chain(&VALID_RANGE_ATTRIBUTES);
        names.map(|name| self.attribute(name)).collect()
    }

    /// Returns whether equal stored elements have the same meaning in `self` and `other`.
    pub(crate) fn has_same_meaning(&self, other: &Self) -> bool {
        (self.datatype == other.datatype || is_same_text_type(&self.datatype, &other.datatype))
            && self.packing_attributes() == other.packing_attributes()
            && self.meaning.time == other.meaning.time
    }

    /// Returns whether the attribute `name` has the same value in `self` and `other`. Texts may
    /// differ in their padding.
    pub(crate) fn has_same_attribute(&self, other: &Self, name: &[u8]) -> bool {
        let texts = || self.attribute_text(name).zip(other.attribute_text(name));
        self.attribute(name) == other.attribute(name)
            || texts().is_some_and(|(own, other)| own == other)
    }
}

/// Returns whether both types are variable-length texts that differ only in their character sets.
fn is_same_text_type(one: &Datatype, other: &Datatype) -> bool {
    let padding = |own: &Datatype| match own.class {
        Class::VariableString { padding, .. } => Some((padding, own.size)),
        _ => None,
    };
    padding(one).is_some() && padding(one) == padding(other)
}

impl Skeleton {
    /// Returns a variable's role in a form that does not depend on the skeleton: whether the
    /// variable is a coordinate, whether it is a dimension without values, and the path of the
    /// variable that it bounds.
    pub(crate) fn resolved_role(&self, variable: &Variable) -> (bool, bool, Option<&[u8]>) {
        let bounded = match variable.role {
            VariableRole::Bounds(of) => self.variables.get(of),
            _ => None,
        };
        (
            variable.role == VariableRole::Coordinate,
            variable.role == VariableRole::Dimension,
            bounded.map(|bounded| &*bounded.path),
        )
    }

    /// Iterates over the dimensions of a variable.
    pub(crate) fn dims<'s>(
        &'s self,
        variable: &'s Variable,
    ) -> impl Iterator<Item = &'s Dimension> {
        variable.dims.iter().map(|&dim| &self.dimensions[dim])
    }

    /// Returns the key of each dimension of a variable, or `None` for a dimension without a name.
    pub(crate) fn dimension_names(&self, variable: &Variable) -> Vec<Option<Path>> {
        let names = self.dims(variable);
        names
            .map(|dim| dim.has_name.then(|| Path::clone(&dim.key)))
            .collect()
    }

    /// Returns the approximate memory of the skeleton, in bytes.
    pub(crate) fn weight(&self) -> u64 {
        let variable = |variable: &Variable| {
            let marks = variable.marks.iter();
            let marks: usize = marks
                .map(|(name, value)| name.len() + value.elements.len() + 150)
                .sum();
            let own = to_u64(500 + 2 * variable.path.len() + marks);
            let parts = [variable.datatype.weight(), variable.convention.weight()];
            own.plus(u64::sum(parts))
        };
        let variables = u64::sum(self.variables.iter().map(variable));
        let groups: usize = self.groups.iter().map(|path| path.len() + 40).sum();
        let dimensions: usize = self.dimensions.iter().map(|dim| dim.key.len() + 64).sum();
        let columns = self
            .tables
            .iter()
            .filter_map(|table| table.columns.as_ref());
        let columns = columns.flat_map(|(_, names)| names);
        let columns: usize = columns.map(|name| name.len() + 40).sum();
        to_u64(groups + dimensions + columns).plus(variables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::testing::int;

    use crate::members::content::text_attribute;
    use crate::members::convention::{CodedField, ElementRelation};

    fn weight(convention: ConventionRules) -> u64 {
        let variable = Variable {
            path: b"df/table"[..].into(),
            datatype: int(4),
            dims: Vec::new(),
            chunk_shape: None,
            fill: Fill::Zero,
            role: VariableRole::Data,
            is_scale: false,
            marks: Vec::new(),
            meaning: NumberMeaning::default(),
            convention,
        };
        let skeleton = Skeleton {
            groups: Vec::new(),
            variables: vec![variable],
            dimensions: Vec::new(),
            tables: Vec::new(),
        };
        skeleton.weight()
    }

    /// pandas stores the names of all columns as a term of the table.
    #[test]
    fn convention_rules_are_weighed() {
        let long = "x".repeat(1000);
        let path = || Path::from(long.as_bytes());
        let terms = ConventionRules {
            terms: vec![(b"non_index_axes".to_vec(), text_attribute(long.as_bytes()))],
            ..ConventionRules::default()
        };
        let coded = CodedField {
            name: long.as_bytes().to_vec(),
            names: path(),
            is_ordered: false,
        };
        let fields = ConventionRules::new_rows()
            .with_relation(ElementRelation::Fields(vec![coded.clone(), coded]));
        let places = ConventionRules::new_rows()
            .with_required_group(&path())
            .with_table_rows(Some(path()));
        let plain = weight(ConventionRules::default());
        for (convention, bytes) in [(terms, 1000), (fields, 4000), (places, 2000)] {
            let own = weight(convention.clone()) - plain;
            assert!((bytes..bytes + 500).contains(&own), "{own}: {convention:?}");
        }
    }
}
