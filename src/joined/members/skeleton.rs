//! What members have in common that differ in their values only: their groups, variables and
//! dimensions. It is kept once for all members alike.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::joined::members::content;
use crate::joined::members::convention::{Convention, Rows, Table};
use crate::joined::paths::Path;
use crate::model::Datatype;
use crate::model::array::Fill;
use crate::model::attribute::AttributeContent;
use crate::model::datatype::Class;
use crate::view::cf::packing::Packing;
use crate::view::cf::time::TimeUnits;

/// An attribute's name and value.
pub(in crate::joined) type Named = (Vec<u8>, AttributeContent);

/// The groups, variables and dimensions of a member.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) struct Skeleton {
    /// In the order of the walk, the root first.
    pub(in crate::joined) groups: Vec<Path>,
    pub(in crate::joined) variables: Vec<Variable>,
    pub(in crate::joined) dimensions: Vec<Dimension>,
    /// Groups that are tables by a convention.
    pub(in crate::joined) tables: Vec<Table>,
}

/// A dimension of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) struct Dimension {
    /// The path of its scale, or its label in the group of the variable. One without a name has a
    /// key that no path is.
    pub(in crate::joined) key: Path,
    pub(in crate::joined) has_name: bool,
    pub(in crate::joined) is_unlimited: bool,
    /// What a convention says of it.
    pub(in crate::joined) rows: Rows,
    /// The variable that has its values.
    pub(in crate::joined) coordinate: Option<usize>,
}

/// An array of a member.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::joined) struct Variable {
    pub(in crate::joined) path: Path,
    pub(in crate::joined) datatype: Datatype,
    /// The numbers of its dimensions.
    pub(in crate::joined) dims: Vec<usize>,
    pub(in crate::joined) chunk_shape: Option<Vec<u64>>,
    pub(in crate::joined) fill: Fill,
    pub(in crate::joined) role: Role,
    /// Whether it is a dimension scale.
    pub(in crate::joined) is_scale: bool,
    /// The attributes by which its numbers have a meaning.
    pub(in crate::joined) marks: Vec<Named>,
    /// The meaning that these give, or why there is none.
    pub(in crate::joined) meaning: Meaning,
    /// What a convention says of its elements.
    pub(in crate::joined) convention: Convention,
}

/// What a variable is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::joined) enum Role {
    /// Its values are what the file was made for.
    Data,
    /// It has the values of its own dimension.
    Coordinate,
    /// It has the bounds of this variable's values.
    Bounds(usize),
    /// It stands for a dimension without values.
    Dimension,
}

/// The meaning of stored numbers. It follows from the datatype and the attributes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::joined) struct Meaning {
    pub(in crate::joined) packing: Option<Packing>,
    pub(in crate::joined) time: Option<TimeUnits>,
    /// Why the attributes cannot be used.
    pub(in crate::joined) refusal: Option<String>,
}

/// Attributes that say how numbers are packed.
pub(in crate::joined) const PACKING: [&[u8]; 5] = [
    b"scale_factor",
    b"add_offset",
    b"_FillValue",
    b"missing_value",
    b"_Unsigned",
];

/// Attributes that say which stored numbers are valid: any other one is missing.
pub(in crate::joined) const VALID: [&[u8]; 3] = [b"valid_min", b"valid_max", b"valid_range"];

/// Attributes without which integers mean nothing: two files that do not have the same differ.
pub(in crate::joined) const FLAGS: [&[u8]; 3] = [b"flag_values", b"flag_masks", b"flag_meanings"];

/// Attributes that say what numbers are: a file without one contradicts none.
pub(in crate::joined) const SENSE: [&[u8]; 2] = [b"standard_name", b"positive"];

/// All other attributes that the rules look at.
const OTHER_MARKS: [&[u8]; 6] = [
    b"units",
    b"calendar",
    b"bounds",
    b"climatology",
    b"ancillary_variables",
    b"dtype",
];

/// Whether the rules look at an attribute.
pub(in crate::joined) fn is_mark(name: &[u8]) -> bool {
    let of_numbers = PACKING.iter().chain(&VALID);
    let mut all = of_numbers.chain(&FLAGS).chain(&SENSE).chain(&OTHER_MARKS);
    all.any(|mark| *mark == name)
}

impl PartialEq for Variable {
    fn eq(&self, other: &Self) -> bool {
        self.facts() == other.facts()
    }
}

impl Eq for Variable {}

impl Hash for Variable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.facts().hash(state);
    }
}

impl Variable {
    /// All but the meaning, which follows from it.
    fn facts(&self) -> impl PartialEq + Hash + '_ {
        (
            (&self.path, &self.datatype, &self.dims, &self.chunk_shape),
            (&self.fill, self.role, self.is_scale, &self.marks),
            &self.convention,
        )
    }

    /// The value of an attribute that the rules look at.
    pub(in crate::joined) fn mark(&self, name: &[u8]) -> Option<&AttributeContent> {
        let mut marks = self.marks.iter();
        marks.find(|mark| mark.0 == name).map(|mark| &mark.1)
    }

    /// The text of such an attribute.
    pub(in crate::joined) fn text(&self, name: &[u8]) -> Option<&[u8]> {
        self.mark(name).and_then(content::text)
    }

    /// The attributes that say how its numbers are packed, and which of them are missing.
    pub(in crate::joined) fn packing_marks(&self) -> Vec<Option<&AttributeContent>> {
        let names = PACKING.iter().chain(&VALID);
        names.map(|name| self.mark(name)).collect()
    }

    /// Whether the same stored elements stand for the same as those of another file.
    pub(in crate::joined) fn means_the_same(&self, other: &Self) -> bool {
        (self.datatype == other.datatype || are_texts_alike(&self.datatype, &other.datatype))
            && self.packing_marks() == other.packing_marks()
            && self.meaning.time == other.meaning.time
    }

    /// Whether an attribute says the same of its numbers as of those of another file.
    pub(in crate::joined) fn says_the_same(&self, other: &Self, name: &[u8]) -> bool {
        let texts = || self.text(name).zip(other.text(name));
        self.mark(name) == other.mark(name) || texts().is_some_and(|(own, other)| own == other)
    }
}

/// Whether both types are of texts of any length, which differ in their character sets alone.
fn are_texts_alike(one: &Datatype, other: &Datatype) -> bool {
    let padding = |own: &Datatype| match own.class {
        Class::VariableString { padding, .. } => Some((padding, own.size)),
        _ => None,
    };
    padding(one).is_some() && padding(one) == padding(other)
}

impl Skeleton {
    /// What a variable is there for, and of what, by path.
    pub(in crate::joined) fn role(&self, variable: &Variable) -> (bool, bool, Option<&[u8]>) {
        let bounded = match variable.role {
            Role::Bounds(of) => self.variables.get(of),
            _ => None,
        };
        (
            variable.role == Role::Coordinate,
            variable.role == Role::Dimension,
            bounded.map(|bounded| &*bounded.path),
        )
    }

    /// The dimensions of a variable.
    pub(in crate::joined) fn dims<'s>(
        &'s self,
        variable: &'s Variable,
    ) -> impl Iterator<Item = &'s Dimension> {
        variable.dims.iter().map(|&dim| &self.dimensions[dim])
    }

    /// The keys of the dimensions of a variable that have names; `None` for the others.
    pub(in crate::joined) fn names(&self, variable: &Variable) -> Vec<Option<Path>> {
        let names = self.dims(variable);
        names
            .map(|dim| dim.has_name.then(|| Path::clone(&dim.key)))
            .collect()
    }

    /// Bytes of memory that it takes, about.
    pub(in crate::joined) fn weight(&self) -> u64 {
        let variable = |variable: &Variable| {
            let marks = variable.marks.iter();
            let marks: usize = marks
                .map(|(name, value)| name.len() + value.elements.len() + 150)
                .sum();
            500 + 2 * variable.path.len() + marks + variable.datatype.weight() as usize
        };
        let variables: usize = self.variables.iter().map(variable).sum();
        let groups: usize = self.groups.iter().map(|path| path.len() + 40).sum();
        let dimensions: usize = self.dimensions.iter().map(|dim| dim.key.len() + 64).sum();
        let columns = self
            .tables
            .iter()
            .filter_map(|table| table.columns.as_ref());
        let columns = columns.flat_map(|(_, names)| names);
        let columns: usize = columns.map(|name| name.len() + 40).sum();
        crate::wire::to_u64(variables + groups + dimensions + columns)
    }
}
