//! Scans one member: reads its groups, variables, dimensions and attributes, and the elements of
//! small variables.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_conventions::packing::Packing;
use h5fs_conventions::stored_type::StoredType;
use h5fs_conventions::{attributes, time::TimeUnits};
use h5fs_reader::array::Engine;
use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::model::array::{Storage, VirtualSource};
use h5fs_reader::model::{Array, Container, NodeId};
use h5fs_reader::wire::{Count, to_u64};

use crate::limits;
use crate::members::content::{self, ElementSummary, TreeScalar, hash_pair};
use crate::members::convention::{ElementRelation, FirstDimensionMeaning};
use crate::members::conventions;
use crate::members::conventions::described::MemberObjects;
use crate::members::layout::VariableLayout;
use crate::members::links::OpenFile;
use crate::members::opener::MemberFiles;
use crate::members::skeleton::{
    NamedAttribute, NumberMeaning, Skeleton, Variable, VariableRole, is_joining_attribute,
};
use crate::members::walk::{FoundArray, walk_member};
use crate::paths::Path;

/// The result of the scan of one member.
pub(crate) struct MemberScan {
    pub(crate) skeleton: Arc<Skeleton>,
    pub(crate) common_metadata: CommonMetadata,
    /// The length of each dimension of the skeleton.
    pub(crate) lengths: Box<[u64]>,
    /// Stored lengths of variables that are shorter than their dimensions, by variable index.
    pub(crate) stored_lengths: Vec<(usize, Box<[u64]>)>,
    /// For each variable of the skeleton, its elements or a summary of them, as far as the scan
    /// read them.
    pub(crate) summaries: Box<[ElementSummary]>,
    /// Paths of objects that the joined file cannot show, each with the reason.
    pub(crate) refusals: Vec<(Path, String)>,
}

/// The attributes of one group or variable.
pub(crate) type AttributeList = Arc<Vec<NamedAttribute>>;

/// The attributes and scalars that are equal in all members with the same skeleton.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommonMetadata {
    /// The attributes of each group, followed by those of each variable.
    pub(crate) attributes: Vec<AttributeList>,
    /// The scalar values of an ASDF tree, by path.
    pub(crate) scalars: BTreeMap<Path, TreeScalar>,
    /// Paths of scalars that differ between members or that some members lack, up to a limit.
    pub(crate) differing_scalars: BTreeSet<Path>,
}

impl CommonMetadata {
    /// Removes the attributes and scalars that are missing or different in `other`.
    pub(crate) fn retain_equal(&mut self, other: &Self) {
        for (own, other) in self.attributes.iter_mut().zip(&other.attributes) {
            if own == other {
                continue;
            }
            let other: HashMap<_, _> = other.iter().map(|(name, value)| (name, value)).collect();
            Arc::make_mut(own).retain(|(name, value)| other.get(name) == Some(&value));
        }
        for path in self.scalars.keys().chain(other.scalars.keys()) {
            let is_same = self.scalars.get(path) == other.scalars.get(path);
            if !is_same && self.differing_scalars.len() < limits::JOINED_SCALARS {
                self.differing_scalars.insert(Path::clone(path));
            }
        }
        let room = limits::JOINED_SCALARS.minus_or_zero(self.differing_scalars.len());
        let more = other.differing_scalars.iter().take(room);
        self.differing_scalars.extend(more.cloned());
        self.scalars
            .retain(|path, scalar| other.scalars.get(path) == Some(scalar));
    }
}

/// Scans a member. If the opener verifies checksums, the checksum of each block is checked before
/// its elements are read.
///
/// # Errors
/// Fails if an object cannot be read. `Limit` if there are too many objects.
pub(crate) fn scan(
    engine: &Arc<Engine>,
    opener: &dyn MemberFiles,
    member: &Arc<OpenFile>,
) -> Result<MemberScan> {
    let mut objects = walk_member(opener, member)?;
    let mut layout = VariableLayout::scan(&objects)?;
    layout.pad_arrays(&mut objects.arrays);
    let mut common = CommonMetadata {
        attributes: Vec::new(),
        scalars: objects.scalars,
        differing_scalars: BTreeSet::new(),
    };
    let mut left = limits::JOINED_ATTRIBUTES;
    for ((file, group), _) in &objects.groups {
        let (_, attributes) = read_attributes(&**file.container(), *group, &mut left)?;
        common.attributes.push(Arc::new(attributes));
    }
    for (found, variable) in objects.arrays.iter().zip(&mut layout.variables) {
        let (marks, attributes) = read_attributes(found.container(), found.node, &mut left)?;
        variable.marks = marks;
        common.attributes.push(Arc::new(attributes));
    }
    layout.find_bounds();
    let file = MemberObjects::new(&objects.groups, &objects.arrays, &common.attributes);
    let (found, tables) = conventions::find_conventions(&file)?;
    layout.apply_conventions(found);
    let groups = objects.groups.iter().map(|(_, path)| Path::clone(path));
    let mut skeleton = Skeleton {
        groups: groups.collect(),
        variables: layout.variables,
        dimensions: layout.dimensions,
        tables,
    };
    find_number_meanings(&mut skeleton, &objects.arrays)?;
    let mut scan = MemberScan {
        skeleton: Arc::new(skeleton),
        common_metadata: common,
        lengths: layout.lengths.into(),
        stored_lengths: layout.stored_lengths,
        summaries: Box::default(),
        refusals: objects.refusals,
    };
    scan.read(engine, opener.should_verify(), &objects.arrays)?;
    Ok(scan)
}

/// Attributes that the joined file writes itself, or that have no meaning in the joined file.
const IGNORED_ATTRIBUTES: [&[u8]; 8] = [
    b"CLASS",
    b"NAME",
    b"DIMENSION_LIST",
    b"DIMENSION_LABELS",
    b"REFERENCE_LIST",
    b"_Netcdf4Coordinates",
    b"_Netcdf4Dimid",
    b"_nc3_strict",
];

/// Returns the attributes of an object that decide how it is joined, and all attributes of the
/// object. Subtracts their size in bytes from `left`, and fails if `left` does not suffice.
fn read_attributes(
    container: &dyn Container,
    node: NodeId,
    left: &mut usize,
) -> Result<(Vec<NamedAttribute>, Vec<NamedAttribute>)> {
    let (mut marks, mut all) = (Vec::new(), Vec::new());
    let mut failed = None;
    container.attributes(node, &mut |attribute| {
        if IGNORED_ATTRIBUTES.contains(&&*attribute.name) {
            return ControlFlow::Continue(());
        }
        let own = attribute
            .content
            .and_then(|own| content::copy_attribute(container, own));
        match own {
            Ok(Some(own)) => {
                /// Approximate memory in bytes of an attribute, except its name and elements.
                const OWN: usize = 150;
                let bytes = attribute.name.len().saturating_add(own.elements.len());
                let bytes = bytes.saturating_add(OWN);
                let Some(rest) = left.checked_sub(bytes) else {
                    let most = to_u64(limits::JOINED_ATTRIBUTES);
                    failed = Some(Error::limit("joined: bytes of attributes of a file", most));
                    return ControlFlow::Break(());
                };
                *left = rest;
                if is_joining_attribute(&attribute.name) {
                    marks.push((attribute.name.clone(), own.clone()));
                }
                all.push((attribute.name, own));
            }
            Ok(None) => {}
            Err(error) => {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    failed.map_or(Ok((marks, all)), Err)
}

/// Returns why an array must be absent: a source of its virtual dataset is missing, and the mount
/// treats a missing source as an error. Also checks the sources of each source, because a source
/// may be virtual as well. Checks at most `left` sources, because a virtual dataset may refer to
/// itself. If the mount shows fill values for a missing source instead, the member's neighbours
/// record the missing source.
fn missing_source_reason(array: &Array, depth: usize, left: &mut usize) -> Result<Option<String>> {
    let Ok(Storage::Virtual(mappings)) = &array.storage else {
        return Ok(None);
    };
    if depth > limits::VIRTUAL_DEPTH {
        return Ok(None);
    }
    let mut last: Option<Arc<dyn VirtualSource>> = None;
    for mapping in mappings.iter() {
        if last.is_some_and(|last| Arc::ptr_eq(&last, &mapping.source)) {
            last = Some(mapping.source);
            continue;
        }
        let Some(rest) = left.checked_sub(1) else {
            return Ok(None);
        };
        *left = rest;
        match mapping.source.open(&CancelToken::default()) {
            Err(
                error @ Error::Io {
                    cause: Cause::Missing,
                    ..
                },
            ) => {
                return Ok(Some(error.to_string()));
            }
            Err(
                error @ Error::Io {
                    cause: Cause::Cancelled,
                    ..
                },
            ) => return Err(error),
            // Any other error occurs again when the array is read.
            Ok(Some(opened)) => {
                if let Some(why) = missing_source_reason(&opened.array, depth + 1, left)? {
                    return Ok(Some(why));
                }
            }
            _ => {}
        }
        last = Some(mapping.source);
    }
    Ok(None)
}

/// Determines what the numbers of each variable mean: their packing and time units. Bounds have the
/// units of the variable that they bound.
fn find_number_meanings(skeleton: &mut Skeleton, arrays: &[FoundArray]) -> Result<()> {
    let numbers = 0..skeleton.variables.len();
    let times: Vec<_> = numbers
        .map(|number| variable_time_units(skeleton, number))
        .collect();
    let all = skeleton.variables.iter_mut().zip(arrays).zip(times);
    for ((variable, found), time) in all {
        let Some(stored) = StoredType::new(&variable.datatype) else {
            continue;
        };
        let packing = match attributes::read_packing(found.container(), found.node) {
            Err(error) if !error.is_transient() => {
                variable.meaning.refusal = Some(error.to_string());
                continue;
            }
            packing => packing?,
        };
        variable.meaning = NumberMeaning {
            packing: Some(Packing::new(stored, &packing)),
            time,
            refusal: None,
        };
    }
    Ok(())
}

/// Returns the time units of the variable with this index. If bounds lack units or a calendar, they
/// inherit them from the variable that they bound (CF 1.12, 7.1).
fn variable_time_units(skeleton: &Skeleton, number: usize) -> Option<TimeUnits> {
    let own = skeleton.variables.get(number)?;
    let bounded = match own.role {
        VariableRole::Bounds(of) => skeleton.variables.get(of),
        _ => None,
    };
    let text = |name: &[u8]| {
        let of_bounded = || bounded.and_then(|bounded| bounded.attribute_text(name));
        if own.attribute(name).is_some() {
            own.attribute_text(name)
        } else {
            of_bounded()
        }
    };
    TimeUnits::parse(text(b"units")?, text(b"calendar"))
}

impl MemberScan {
    /// Returns the approximate memory in bytes of the data that only this member has. Excludes the
    /// elements, which members may share.
    pub(crate) fn weight(&self) -> u64 {
        const EACH: usize = 64;
        let short = self
            .stored_lengths
            .iter()
            .map(|(_, dims)| EACH + size_of_val(&**dims));
        let ends = self
            .summaries
            .iter()
            .filter(|known| matches!(known, ElementSummary::EndsAndHash(..)));
        let own = size_of_val(&*self.lengths) + size_of_val(&*self.summaries);
        let refused = self
            .refusals
            .iter()
            .map(|(path, why)| EACH + path.len() + why.len());
        let parts = short.sum::<usize>() + refused.sum::<usize>();
        to_u64(own + parts + EACH * ends.count().plus_one())
    }

    /// Reads the elements, or a summary of the elements, of each variable.
    fn read(&mut self, engine: &Arc<Engine>, verify: bool, arrays: &[FoundArray]) -> Result<()> {
        let mut values = Vec::with_capacity(arrays.len());
        let (mut kept, mut compared) = (limits::JOINED_VALUES, limits::JOINED_VALUES);
        let labels = self.skeleton.variables.iter();
        let labels = labels.filter_map(|own| own.convention.labels.clone());
        let labels: HashSet<Path> = labels.collect();
        for (variable, found) in self.skeleton.variables.iter().zip(arrays) {
            let (container, array) = (found.container(), &found.array);
            if let Some(why) = missing_source_reason(array, 0, &mut { limits::JOINED_SOURCES })? {
                self.refusals.push((Path::clone(&found.path), why));
                values.push(ElementSummary::NotRead);
                continue;
            }
            let read = || content::read_elements(engine, container, array);
            let wanted = if labels.contains(&found.path) {
                RequestedSummary::Hash
            } else {
                match self.required_summary(variable, array)? {
                    // The array must be equal in all files.
                    RequestedSummary::Nothing
                        if variable.convention.rows == FirstDimensionMeaning::EqualInAllFiles =>
                    {
                        RequestedSummary::Hash
                    }
                    wanted => wanted,
                }
            };
            let left = match wanted {
                RequestedSummary::Hash => &mut compared,
                _ => &mut kept,
            };
            let wanted = match (left.checked_sub(array.byte_length()?), wanted) {
                (
                    _,
                    RequestedSummary::Nothing | RequestedSummary::Ends | RequestedSummary::Index,
                ) => wanted,
                (Some(rest), wanted) => {
                    *left = rest;
                    wanted
                }
                (None, RequestedSummary::Hash) => RequestedSummary::Nothing,
                // If a list does not fit, its column is reported.
                (None, RequestedSummary::Elements)
                    if variable.convention.relation == ElementRelation::Names =>
                {
                    RequestedSummary::Nothing
                }
                (None, RequestedSummary::Elements) => {
                    let most = limits::JOINED_VALUES;
                    return Err(Error::limit("joined: bytes of coordinates of a file", most));
                }
            };
            if verify && !matches!(wanted, RequestedSummary::Nothing) {
                content::verify(engine, container, found.node)?;
            }
            let known = match wanted {
                RequestedSummary::Nothing => Ok(ElementSummary::NotRead),
                RequestedSummary::Hash => content::ignore_hidden_elements(read()).map(|read| {
                    read.map_or(ElementSummary::NotRead, |read| {
                        ElementSummary::Hash(hash_pair(&read))
                    })
                }),
                RequestedSummary::Ends => content::summarize_ends(engine, array),
                RequestedSummary::Index => {
                    let entries = target_length(variable, arrays).unwrap_or(u64::MAX);
                    let begins = variable.convention.rows == FirstDimensionMeaning::RowEnds;
                    content::summarize_index(engine, array, entries, begins)
                }
                RequestedSummary::Elements => read()
                    .map(|read| read.map_or(ElementSummary::NotRead, ElementSummary::Elements)),
            };
            let name = found.path.escape_ascii().to_string();
            values.push(known.map_err(|error| error.with_context(name))?);
        }
        self.summaries = values.into();
        Ok(())
    }

    /// Returns how much of a variable's elements the join needs: all elements if they determine the
    /// place of the member, or hashes if no dimension of the variable can be joined, because then
    /// the elements must be equal in all members.
    fn required_summary(&self, variable: &Variable, array: &Array) -> Result<RequestedSummary> {
        let bytes = array.byte_length()?;
        if variable.role == VariableRole::Dimension {
            return Ok(RequestedSummary::Nothing);
        }
        if variable.convention.relation == ElementRelation::Names
            && bytes <= limits::JOINED_COORDINATE
        {
            return Ok(RequestedSummary::Elements);
        }
        if variable.convention.relation.is_index() {
            return Ok(RequestedSummary::Index);
        }
        let is_placed = variable.role != VariableRole::Data || array.shape.dims().is_empty();
        if is_placed && bytes <= limits::JOINED_COORDINATE {
            return Ok(RequestedSummary::Elements);
        }
        if variable.role == VariableRole::Coordinate {
            // A long series needs only its ends to be placed.
            return Ok(RequestedSummary::Ends);
        }
        let may_be_joined = self.skeleton.dims(variable).any(|dim| dim.is_unlimited);
        Ok(if may_be_joined || bytes > limits::JOINED_COMPARED {
            RequestedSummary::Nothing
        } else {
            RequestedSummary::Hash
        })
    }
}

/// Returns the number of elements of the array to which an index array refers.
fn target_length(variable: &Variable, arrays: &[FoundArray]) -> Option<u64> {
    let targets = variable.convention.relation.target_arrays();
    let target = targets.first()?;
    let found = arrays.iter().find(|found| found.path == **target)?;
    found.array.shape.dims().first().copied()
}

#[derive(Clone, Copy)]
enum RequestedSummary {
    Nothing,
    /// The last end in an index array, if the index is valid.
    Index,
    Hash,
    Ends,
    Elements,
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::{Scalar, ScalarValue};

    fn common(scalars: &[(&str, &str)]) -> CommonMetadata {
        let scalar = |text: &str| {
            TreeScalar(Scalar {
                text: text.to_owned(),
                value: ScalarValue::String,
            })
        };
        let scalars = scalars.iter();
        let scalars = scalars.map(|(path, text)| (Path::from(path.as_bytes()), scalar(text)));
        CommonMetadata {
            scalars: scalars.collect(),
            ..CommonMetadata::default()
        }
    }

    fn paths<'p>(all: impl Iterator<Item = &'p Path>) -> Vec<String> {
        let text = |path: &Path| String::from_utf8_lossy(path).into_owned();
        all.map(text).collect()
    }

    #[test]
    fn differing_scalars_are_reported() {
        let mut own = common(&[("unit", "K"), ("serial", "1"), ("mission", "X")]);
        own.retain_equal(&common(&[("unit", "K"), ("serial", "2"), ("mission", "X")]));
        own.retain_equal(&common(&[("unit", "K"), ("serial", "1"), ("lamp", "on")]));
        assert_eq!(paths(own.scalars.keys()), ["unit"]);
        assert_eq!(
            paths(own.differing_scalars.iter()),
            ["lamp", "mission", "serial"]
        );
        // If a scalar differs within one kind of files, it also differs for the other kinds.
        let mut other = common(&[("unit", "K")]);
        other.retain_equal(&own);
        assert_eq!(
            paths(other.differing_scalars.iter()),
            ["lamp", "mission", "serial"]
        );
    }

    #[test]
    fn the_number_of_reported_scalars_is_limited() {
        let names: Vec<String> = (0..2 * limits::JOINED_SCALARS)
            .map(|number| number.to_string())
            .collect();
        let all = |text: &'static str| {
            let pairs = names.iter().map(|name| (name.as_str(), text));
            common(&pairs.collect::<Vec<_>>())
        };
        let mut own = all("1");
        own.retain_equal(&all("2"));
        assert_eq!(own.differing_scalars.len(), limits::JOINED_SCALARS);
        assert!(own.scalars.is_empty());
    }
}
