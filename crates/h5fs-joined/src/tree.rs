//! The groups and arrays of the joined file.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use h5fs_conventions::csv_field::append_field;
use h5fs_reader::error::Result;
use h5fs_reader::model::Scalar;
use h5fs_reader::model::array::Fill;
use h5fs_reader::wire::{Count, to_u64};

use crate::choice::JoinChoice;
use crate::instants::IntegerWidth;
use crate::joined_array::{ArrayContent, JoinedArray, OutputDimension};
use crate::member_mapping::PlacedMembers;
use crate::members::Members;
use crate::members::content::{
    TreeScalar, number_attribute, pad_texts, text_attribute, text_list_attribute,
};
use crate::members::skeleton::NamedAttribute;
use crate::paths::{Omission, OmissionResult, Path, child_path, split_path};
use crate::placing::member_kind::{MemberKind, group_into_kinds};
use crate::placing::place_members;
use crate::placing::placement::{
    JoinAxis, JoinedDimension, NewDimension, NewDimensionValues, Placement,
};
use crate::scales::{dimension_attributes, reference_attribute};
use crate::tables::{complete_tables, omit_dependents, reported_path};
use crate::variable::comparison::{MemberComparison, member_refusals, members_without_data};
use crate::variable::{is_time_attribute, join_variable};

/// The groups and arrays of the joined file. The root is the first node.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<TreeNode>,
    /// The list of joined files as CSV. A line contains the offset and the length of one file along
    /// a joined dimension.
    pub(super) file_list: Vec<u8>,
    paths: HashMap<Path, u32>,
    /// Whether the root group already has the attributes of the members of some kind.
    has_root: bool,
    /// Approximate memory in bytes of the placements of all members.
    placement_bytes: u64,
    /// Names of the objects that are absent from each group, by the group's path.
    omitted_names: BTreeMap<Path, Vec<Vec<u8>>>,
}

/// An object of the joined file: a group, an array or a scalar.
#[derive(Debug)]
pub(super) struct TreeNode {
    pub(super) children: BTreeMap<Box<[u8]>, u32>,
    pub(super) attributes: Vec<NamedAttribute>,
    pub(super) kind: TreeEntry,
}

#[derive(Debug)]
pub(super) enum TreeEntry {
    Group,
    Array(Box<JoinedArray>),
    Scalar(Scalar),
}

/// The groups and arrays that result from joining the members of one kind.
struct JoinedSubtree {
    /// The path of the group that contains the result. Empty if it is in the root group.
    group: Path,
    groups: Vec<(Path, Vec<NamedAttribute>)>,
    arrays: Vec<JoinedArray>,
    scalars: BTreeMap<Path, TreeScalar>,
    /// Paths of the objects that are omitted, relative to `group`.
    omitted_paths: Vec<Path>,
    placed_members: Arc<PlacedMembers>,
}

impl Tree {
    /// Joins the members of each kind. The results of several kinds share the root group if the
    /// arrays that they have in common are equal.
    ///
    /// # Errors
    /// Fails if an array cannot be described.
    pub(super) fn join(
        members: &Members,
        choice: &JoinChoice,
        omissions: &mut Vec<Omission>,
    ) -> Result<Self> {
        let mut parts: Vec<JoinedSubtree> = Vec::new();
        let mut refused = Vec::new();
        for kind in group_into_kinds(members, omissions) {
            let mut own = Vec::new();
            let placement = place_members(members, &kind, &choice.join, &mut own);
            let part = placement
                .and_then(|placement| JoinedSubtree::join(members, &kind, placement, &mut own));
            match part {
                Ok(mut part) => {
                    part.choose_group(&kind, &parts);
                    parts.push(part);
                }
                Err(reason) => {
                    let what = format!("/{}", kind.name().escape_ascii());
                    let reason = format!("its files are not joined: {reason}");
                    own = vec![Omission {
                        subject: what,
                        reason,
                    }];
                    refused.extend(kind.data_variables);
                }
            }
            omissions.append(&mut own);
        }
        omit_differing_scalars(&mut parts, omissions);
        refused.extend(report_refused_objects(members, &parts, omissions));
        let mut tree = Tree::default();
        tree.find_or_add_group(b"");
        let joined: usize = parts
            .iter()
            .map(|part| part.placed_members.members.len())
            .sum();
        tree.file_list = joined_files_csv(members, &parts);
        let placed = parts
            .iter()
            .map(|part| part.placed_members.placement.weight());
        tree.placement_bytes = u64::sum(placed);
        for part in parts {
            tree.add_kind(part);
        }
        for path in refused {
            if !tree.paths.contains_key(&path) {
                tree.record_omission(&path);
            }
        }
        if let Some(root) = tree.nodes.first_mut() {
            let files = number_attribute(to_u64(joined));
            root.attributes.push((b"_h5fs_files".to_vec(), files));
        }
        tree.describe_omissions();
        tree.add_references();
        Ok(tree)
    }

    /// Returns the node index of the group at `path`. Creates the group and its parents if they do
    /// not exist.
    fn find_or_add_group(&mut self, path: &[u8]) -> u32 {
        if let Some(&number) = self.paths.get(path) {
            return number;
        }
        self.add_node(path, TreeEntry::Group, Vec::new())
    }

    fn add_node(&mut self, path: &[u8], kind: TreeEntry, attributes: Vec<NamedAttribute>) -> u32 {
        let number = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(TreeNode {
            children: BTreeMap::new(),
            attributes,
            kind,
        });
        self.paths.insert(path.into(), number);
        if !path.is_empty() {
            let (above, name) = split_path(path);
            let above = self.find_or_add_group(above);
            if let Some(above) = self.nodes.get_mut(above as usize) {
                above.children.insert(name.into(), number);
            }
        }
        number
    }

    fn add_kind(&mut self, part: JoinedSubtree) {
        let within = |path: &Path| path_in_group(&part.group, path);
        for (path, attributes) in part.groups {
            let path = within(&path);
            let is_new = !self.paths.contains_key(&path) || path.is_empty() && !self.has_root;
            self.has_root |= path.is_empty();
            let number = self.find_or_add_group(&path);
            let Some(node) = self.nodes.get_mut(number as usize) else {
                continue;
            };
            if is_new {
                node.attributes = attributes;
            } else {
                node.attributes.retain(|own| attributes.contains(own));
            }
        }
        for (path, TreeScalar(scalar)) in part.scalars {
            if !self.paths.contains_key(&within(&path)) {
                self.add_node(&within(&path), TreeEntry::Scalar(scalar), Vec::new());
            }
        }
        for mut made in part.arrays {
            if self.paths.contains_key(&within(&made.path)) {
                continue;
            }
            made.path = within(&made.path);
            for dim in &mut made.dims {
                dim.key = within(&dim.key);
            }
            for (_, path) in &mut made.reference_attributes {
                *path = within(path);
            }
            let path = Path::clone(&made.path);
            let attributes = std::mem::take(&mut made.attributes);
            self.add_node(&path, TreeEntry::Array(Box::new(made)), attributes);
        }
        for path in part.omitted_paths {
            self.record_omission(&within(&path));
        }
    }

    /// Records that the object at `path` is absent from its group.
    fn record_omission(&mut self, path: &Path) {
        let (group, name) = split_path(path);
        self.find_or_add_group(group);
        let names = self.omitted_names.entry(group.into()).or_default();
        if !names.iter().any(|own| own == name) {
            names.push(name.to_vec());
        }
    }

    /// Adds an attribute to each group that lists the names of the group's absent objects.
    fn describe_omissions(&mut self) {
        for (group, mut names) in std::mem::take(&mut self.omitted_names) {
            names.sort_unstable();
            names.dedup();
            let number = self.find_or_add_group(&group);
            if let Some(node) = self.nodes.get_mut(number as usize) {
                let own = (b"_h5fs_absent".to_vec(), text_list_attribute(&names));
                node.attributes.push(own);
            }
        }
    }

    /// Adds the attributes that refer to dimension scales and to other objects.
    fn add_references(&mut self) {
        let scales: HashMap<Path, u32> = self
            .paths
            .iter()
            .filter(|(_, number)| {
                let node = self.nodes.get(**number as usize);
                node.is_some_and(
                    |node| matches!(&node.kind, TreeEntry::Array(made) if made.is_scale),
                )
            })
            .map(|(path, number)| (Path::clone(path), *number))
            .collect();
        for node in &mut self.nodes {
            if let TreeEntry::Array(made) = &node.kind {
                node.attributes.extend(dimension_attributes(made, &scales));
                let found = made.reference_attributes.iter();
                let found = found.filter_map(|(name, path)| {
                    Some((name.clone(), reference_attribute(*self.paths.get(path)?)))
                });
                node.attributes.extend(found);
            }
        }
    }

    pub(super) fn weight(&self) -> u64 {
        let node = |node: &TreeNode| {
            let attributes = node.attributes.iter();
            let attributes =
                attributes.map(|(name, value)| name.len() + value.elements.len() + 150);
            let kind = match &node.kind {
                TreeEntry::Array(made) => made.weight(),
                _ => 0,
            };
            kind.plus(to_u64(200 + attributes.sum::<usize>()))
        };
        u64::sum(self.nodes.iter().map(node))
            .plus(to_u64(self.file_list.len()))
            .plus(self.placement_bytes)
    }
}

/// Returns the path of an object in the joined file. `path` is the object's path relative to
/// `group`.
fn path_in_group(group: &Path, path: &Path) -> Path {
    match (group.is_empty(), path.is_empty()) {
        (true, _) => Path::clone(path),
        (false, true) => Path::clone(group),
        _ => child_path(group, path),
    }
}

impl JoinedSubtree {
    /// Joins the members of one kind.
    ///
    /// # Errors
    /// Fails if the coordinate of a joined dimension cannot be shown.
    fn join(
        members: &Members,
        kind: &MemberKind,
        placement: Placement,
        omissions: &mut Vec<Omission>,
    ) -> OmissionResult<Self> {
        let placed = Arc::new(PlacedMembers {
            members: kind.members.clone(),
            placement,
        });
        let compared = MemberComparison::new(members, &placed);
        let common = compared.scalars();
        let reason = "it differs between files";
        omissions.extend(common.differing_scalars.iter().map(|path| Omission {
            subject: format!("/{}", path.escape_ascii()),
            reason: reason.to_owned(),
        }));
        let groups = compared.groups().into_iter();
        let mut part = JoinedSubtree {
            group: Path::default(),
            groups: groups
                .map(|path| (Path::clone(&path), compared.attributes(&path)))
                .collect(),
            arrays: Vec::new(),
            scalars: common.scalars,
            omitted_paths: common.differing_scalars.into_iter().collect(),
            placed_members: Arc::clone(&placed),
        };
        for axis in &placed.placement.axes {
            if let Some(new) = &axis.new_dimension {
                part.arrays
                    .push(new_coordinate_array(&compared, axis, new)?);
            }
        }
        let refused = compared.refusals();
        for path in compared.variables() {
            // If a member cannot show a group, all objects in the group are refused too.
            let above = std::iter::successors(Some(&*path), |path| Some(split_path(path).0));
            let mut above = above.take_while(|path| !path.is_empty());
            let made = match above.find_map(|path| refused.get(path)) {
                Some(reason) => Err(reason.clone()),
                None => join_variable(&compared, &path, omissions),
            };
            match made {
                Ok(made) => part.arrays.extend(made),
                // Without this coordinate, the order of the other arrays would be unknown.
                Err(reason) if placed.placement.find_dimension(&path).is_some() => {
                    return Err(format!("{}: {reason}", path.escape_ascii()));
                }
                Err(reason) => {
                    let path = reported_path(&compared, path);
                    // All arrays of a refused whole have the same path, which is reported once.
                    if part.omitted_paths.last() != Some(&path) {
                        part.omit_object(path, reason, omissions);
                    }
                }
            }
        }
        for (path, reason) in refused {
            part.scalars.remove(&path);
            if !part.omitted_paths.contains(&path) {
                part.omit_object(path, reason, omissions);
            }
        }
        part.omit_dependent_bounds(&compared, omissions);
        part.omit_group_conflicts(omissions);
        omit_dependents(
            &compared,
            &mut part.arrays,
            &mut part.omitted_paths,
            omissions,
        );
        complete_tables(&compared, &mut part.arrays, &mut part.groups);
        Ok(part)
    }

    /// Omits bounds that have the units of an omitted array, because they have none of their own.
    fn omit_dependent_bounds(
        &mut self,
        compared: &MemberComparison<'_>,
        omissions: &mut Vec<Omission>,
    ) {
        let absent: HashSet<&Path> = self.omitted_paths.iter().collect();
        let mut refused = Vec::new();
        for made in &self.arrays {
            let bounded = compared.array_with_bounds(&made.path);
            if let Some(bounded) = bounded.filter(|bounded| absent.contains(bounded)) {
                let reason = format!(
                    "it contains the bounds of {}, which is absent",
                    bounded.escape_ascii()
                );
                refused.push((Path::clone(&made.path), reason));
            }
        }
        self.arrays
            .retain(|made| refused.iter().all(|(path, _)| *path != made.path));
        for (path, reason) in refused {
            self.omit_object(path, reason, omissions);
        }
    }

    fn omit_object(&mut self, path: Path, reason: String, omissions: &mut Vec<Omission>) {
        let what = format!("/{}", path.escape_ascii());
        omissions.push(Omission {
            subject: what,
            reason,
        });
        self.omitted_paths.push(path);
    }

    /// Omits arrays whose path is the path of a group in other members.
    fn omit_group_conflicts(&mut self, omissions: &mut Vec<Omission>) {
        let groups: HashSet<&Path> = self.groups.iter().map(|(path, _)| path).collect();
        let are_both = |made: &JoinedArray| groups.contains(&made.path);
        let both: Vec<Path> = self
            .arrays
            .iter()
            .filter(|made| are_both(made))
            .map(|made| Path::clone(&made.path))
            .collect();
        self.arrays.retain(|made| !both.contains(&made.path));
        omissions.extend(both.iter().map(|path| Omission {
            subject: format!("/{}", path.escape_ascii()),
            reason: "it is an array in some files, and a group in others".to_owned(),
        }));
        self.omitted_paths.extend(both);
    }

    /// Chooses the group that contains the result of a kind. This is the root group if each array
    /// of the kind that another kind also has in the root group is equal in both, and no other
    /// object or dimension conflicts. Otherwise it is a new group, which is named after the data
    /// variables of the kind. If this name exists, a number is appended.
    fn choose_group(&mut self, kind: &MemberKind, others: &[JoinedSubtree]) {
        let of_root = others.iter().filter(|other| other.group.is_empty());
        let known = of_root.flat_map(|other| other.arrays.iter().map(|made| (&made.path, made)));
        let known: HashMap<&Path, &JoinedArray> = known.collect();
        let of_root = others.iter().filter(|other| other.group.is_empty());
        let groups = of_root.flat_map(|other| other.groups.iter().map(|(path, _)| path));
        let groups: HashSet<&Path> = groups.collect();
        let lengths = known.values().flat_map(|made| named_dimensions(made));
        let lengths: HashMap<&Path, u64> = lengths.collect();
        let is_alike = |made: &JoinedArray| {
            let other = known.get(&made.path);
            // A dimension has one length in the whole tree.
            let mut dims = named_dimensions(made);
            let fits = dims.all(|(key, own)| lengths.get(key).is_none_or(|length| *length == own));
            let is_known = other.is_none_or(|other| is_same_array(other, made));
            is_known && fits && !groups.contains(&made.path)
        };
        let are_arrays = self.groups.iter().any(|(path, _)| known.contains_key(path));
        if self.arrays.iter().all(is_alike) && !are_arrays {
            return;
        }
        let name = kind.name();
        let names = (2..).map(|number: usize| [&name, format!("_{number}").as_bytes()].concat());
        let mut names = std::iter::once(name.clone()).chain(names).map(Path::from);
        let is_free = |name: &Path| {
            let is_other = |other: &JoinedSubtree| other.group == *name;
            !others.iter().any(is_other) && !known.contains_key(name) && !groups.contains(name)
        };
        self.group = names.find(is_free).unwrap_or_default();
    }
}

/// Iterates over the dimensions of an array that have a name. Returns their keys and lengths.
fn named_dimensions(made: &JoinedArray) -> impl Iterator<Item = (&Path, u64)> {
    let named = made.dims.iter().filter(|dim| dim.has_name);
    named.map(|dim| (&dim.key, dim.length))
}

/// Reports the objects of members without data variables that cannot be shown. Skips objects that
/// are already reported as absent. Returns the paths of the reported objects.
fn report_refused_objects(
    members: &Members,
    parts: &[JoinedSubtree],
    omissions: &mut Vec<Omission>,
) -> BTreeSet<Path> {
    let absent: HashSet<&Path> = parts.iter().flat_map(|part| &part.omitted_paths).collect();
    let mut refused = BTreeSet::new();
    for (path, reason) in members_without_data(members).flat_map(member_refusals) {
        if absent.contains(&path) || !refused.insert(Path::clone(&path)) {
            continue;
        }
        let what = format!("/{}", path.escape_ascii());
        omissions.push(Omission {
            subject: what,
            reason,
        });
    }
    refused
}

/// Omits scalars that differ between kinds whose results are in the same group.
fn omit_differing_scalars(parts: &mut [JoinedSubtree], omissions: &mut Vec<Omission>) {
    let absent = parts.iter().flat_map(|part| {
        let paths = part.omitted_paths.iter();
        paths.map(move |path| path_in_group(&part.group, path))
    });
    let absent: HashSet<Path> = absent.collect();
    let mut known: HashMap<Path, TreeScalar> = HashMap::new();
    let mut differing: BTreeSet<Path> = BTreeSet::new();
    for part in parts.iter() {
        for (path, scalar) in &part.scalars {
            let path = path_in_group(&part.group, path);
            let other = known
                .entry(Path::clone(&path))
                .or_insert_with(|| scalar.clone());
            if other != scalar || absent.contains(&path) {
                differing.insert(path);
            }
        }
    }
    for part in parts {
        let group = Path::clone(&part.group);
        let is_differing = |path: &Path| differing.contains(&path_in_group(&group, path));
        let own = part.scalars.keys().filter(|path| is_differing(path));
        part.omitted_paths.extend(own.cloned().collect::<Vec<_>>());
        part.scalars.retain(|path, _| !is_differing(path));
    }
    let news = differing.iter().filter(|path| !absent.contains(*path));
    omissions.extend(news.map(|path| Omission {
        subject: format!("/{}", path.escape_ascii()),
        reason: "it differs between files that have no variable in common".to_owned(),
    }));
}

/// Returns whether two arrays have the same description and the same elements. Elements are
/// compared only if both arrays have them in memory or contain only fill values. Otherwise returns
/// false.
fn is_same_array(a: &JoinedArray, b: &JoinedArray) -> bool {
    let are_same = match (&a.content, &b.content) {
        (ArrayContent::InMemory(a), ArrayContent::InMemory(b)) => a == b,
        (ArrayContent::AllFill, ArrayContent::AllFill) => true,
        _ => false,
    };
    are_same && a.datatype == b.datatype && a.dims == b.dims && a.attributes == b.attributes
}

/// Creates the array with the coordinates of a new dimension.
fn new_coordinate_array(
    compared: &MemberComparison<'_>,
    axis: &JoinAxis,
    new: &NewDimension,
) -> OmissionResult<JoinedArray> {
    let length = axis.dims.first().map_or(0, JoinedDimension::length);
    let mut attributes = Vec::new();
    let (datatype, elements): (_, Arc<[u8]>) = match &new.values {
        NewDimensionValues::Texts(values) => {
            pad_texts(values).map_err(|error| error.to_string())?
        }
        NewDimensionValues::Integers(values) => {
            let farthest = values.iter().map(|value| value.unsigned_abs()).max();
            let integers = IntegerWidth::for_magnitude(farthest.unwrap_or(0).into());
            let numbers = integers.bytes(values.iter().map(|&value| value.into()));
            let numbers = numbers.map_err(|error| error.to_string())?;
            (integers.datatype(), numbers.into())
        }
        NewDimensionValues::Times(values) => {
            let family = compared.time_family(&new.name);
            let unit = family.coarsest_unit();
            attributes = compared.attributes(&new.name);
            // The numbers are converted to another unit, so attributes of the stored numbers no
            // longer apply.
            attributes.retain(|(name, _)| !is_time_attribute(name));
            attributes.push((
                b"units".to_vec(),
                text_attribute(unit.units_text().as_bytes()),
            ));
            let calendar = family.common_calendar().ok_or("calendars differ")?;
            attributes.push((b"calendar".to_vec(), text_attribute(calendar.as_bytes())));
            let numbers = unit.numbers(values).map_err(|error| error.to_string())?;
            (unit.datatype(), numbers.into())
        }
    };
    Ok(JoinedArray {
        path: Path::clone(&new.name),
        datatype,
        dims: vec![OutputDimension {
            key: Path::clone(&new.name),
            has_name: true,
            length,
            is_joined: true,
        }],
        fill: Fill::Zero,
        chunk_shape: None,
        is_scale: true,
        is_scale_without_values: false,
        attributes,
        reference_attributes: Vec::new(),
        content: ArrayContent::InMemory(elements),
    })
}

/// Returns the list of joined files as CSV. A line contains the path of a file, the group of the
/// joined file that contains its data, the name of a joined dimension, and the offset and length of
/// the file's block along this dimension.
fn joined_files_csv(members: &Members, parts: &[JoinedSubtree]) -> Vec<u8> {
    let mut out = b"file,group,dimension,first,length\r\n".to_vec();
    for part in parts {
        let placement = &part.placed_members.placement;
        for (&member, place) in part
            .placed_members
            .members
            .iter()
            .zip(&placement.member_blocks)
        {
            let mut rows = Vec::new();
            for (axis, &block) in placement.axes.iter().zip(place) {
                rows.extend(axis.dims.first().map(|dim| {
                    let first = dim.block_start(block);
                    let length = dim
                        .block_start(block.saturating_add(1))
                        .minus_or_zero(first);
                    (&*dim.key, first, length)
                }));
            }
            if rows.is_empty() {
                rows.push((&b""[..], 0, 0));
            }
            for (key, first, length) in rows {
                let name = if key.contains(&0) { &b""[..] } else { key };
                append_field(&members.list[member].name, &mut out);
                out.push(b',');
                append_field(&[b"/", &*part.group].concat(), &mut out);
                out.push(b',');
                append_field(name, &mut out);
                out.extend_from_slice(format!(",{first},{length}\r\n").as_bytes());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestFile, f64s, i32s, join_files, text};
    use h5fs_reader::model::ScalarValue;

    fn file_with_series(name: &str, first: f64) -> TestFile {
        let values = f64s(&[first, first + 1.0]);
        TestFile::new()
            .with_variable(
                "time",
                &[("time", 2)],
                values.clone(),
                &[("units", text("m"))],
            )
            .with_variable(name, &[("time", 2)], values, &[])
    }

    #[test]
    fn kinds_share_the_root_group_only_with_equal_dimensions() {
        let files = |other| {
            vec![
                ("a.nc", file_with_series("a", 0.0)),
                ("b.nc", file_with_series("b", other)),
            ]
        };
        assert_eq!(join_files(files(0.0)).names(), ["a", "b", "time"]);
        let shown = join_files(files(5.0));
        assert_eq!(shown.names(), ["a", "b", "time"]);
        assert_eq!(shown.numbers("b/b"), [5.0, 6.0]);
        assert_eq!(shown.numbers("time"), [0.0, 1.0]);
    }

    #[test]
    fn a_chain_of_shared_variables_is_one_kind() {
        let both =
            file_with_series("a", 2.0).with_variable("b", &[("time", 2)], f64s(&[2.0, 3.0]), &[]);
        let shown = join_files(vec![
            ("0.nc", file_with_series("a", 0.0)),
            ("1.nc", both),
            ("2.nc", file_with_series("b", 4.0)),
        ]);
        assert_eq!(shown.dims("a"), [6]);
        assert!(shown.numbers("a")[4].is_nan() && shown.numbers("b")[0].is_nan());
    }

    #[test]
    fn a_file_without_arrays_is_reported() {
        let scalar = TestFile::new().with_variable("n", &[], i32s(&[1]), &[]);
        let shown = join_files(vec![("0.nc", file_with_series("a", 0.0)), ("1.nc", scalar)]);
        assert_eq!(shown.omissions(), ["1.nc: has no data to join"]);
    }

    #[test]
    fn an_array_that_is_a_group_in_another_file_is_absent() {
        let one = file_with_series("a", 0.0).with_variable("g", &[], i32s(&[1]), &[]);
        let other = file_with_series("a", 2.0).with_variable("g/n", &[], i32s(&[1]), &[]);
        let shown = join_files(vec![("0.nc", one), ("1.nc", other)]);
        assert!(
            shown
                .reported_reason("g")
                .starts_with("it is an array in some files")
        );
        assert_eq!(shown.texts("", "_h5fs_absent").unwrap(), ["g"]);
    }

    #[test]
    fn attributes_that_differ_are_dropped() {
        let file = |first: f64, own: &str| {
            let marks = [("title", text("all")), ("history", text(own))];
            file_with_series("a", first).with_variable("v", &[("time", 2)], f64s(&[0.0; 2]), &marks)
        };
        let shown = join_files(vec![("0.nc", file(0.0, "x")), ("1.nc", file(2.0, "y"))]);
        assert_eq!(shown.texts("v", "title").unwrap(), ["all"]);
        assert!(!shown.has_attribute("v", "history"));
    }

    /// Checks that bounds without units of their own are omitted if their coordinate is omitted.
    #[test]
    fn bounds_of_an_absent_coordinate_are_absent() {
        let file = |first: f64, units: &str| {
            let marks = [("units", text(units)), ("bounds", text("z_bnds"))];
            file_with_series("a", first)
                .with_variable("z", &[("z", 1)], f64s(&[3.0]), &marks)
                .with_variable("z_bnds", &[("z", 1), ("nv", 2)], f64s(&[2.0, 4.0]), &[])
        };
        let shown = join_files(vec![("0.nc", file(0.0, "m")), ("1.nc", file(2.0, "km"))]);
        assert!(shown.reason("z").starts_with("units differ"));
        assert_eq!(
            shown.reason("z_bnds"),
            "it contains the bounds of z, which is absent"
        );
    }

    fn part(group: &str, scalars: &[(&str, &str)]) -> JoinedSubtree {
        let same = |text: &str| {
            TreeScalar(Scalar {
                text: text.to_owned(),
                value: ScalarValue::String,
            })
        };
        let scalars = scalars.iter();
        let scalars = scalars.map(|(path, text)| (Path::from(path.as_bytes()), same(text)));
        JoinedSubtree {
            group: group.as_bytes().into(),
            groups: Vec::new(),
            arrays: Vec::new(),
            scalars: scalars.collect(),
            omitted_paths: Vec::new(),
            placed_members: Arc::new(PlacedMembers {
                members: Vec::new(),
                placement: Placement::default(),
            }),
        }
    }

    #[test]
    fn differing_scalars_of_kinds_are_omitted() {
        let mut parts = [
            part(
                "",
                &[
                    ("meta/unit", "K"),
                    ("meta/mission", "X"),
                    ("meta/lamp", "on"),
                ],
            ),
            part(
                "",
                &[
                    ("meta/unit", "V"),
                    ("meta/mission", "X"),
                    ("meta/level", "2"),
                ],
            ),
            part("other", &[("meta/unit", "m")]),
        ];
        // The scalar differs within the second kind.
        parts[1].omitted_paths.push(Path::from(&b"meta/lamp"[..]));
        let mut omissions = Vec::new();
        omit_differing_scalars(&mut parts, &mut omissions);
        let names = |part: &JoinedSubtree| {
            let paths = part.scalars.keys();
            let paths = paths.map(|path| String::from_utf8_lossy(path).into_owned());
            paths.collect::<Vec<_>>()
        };
        assert_eq!(names(&parts[0]), ["meta/mission"]);
        assert_eq!(names(&parts[1]), ["meta/level", "meta/mission"]);
        // Another tree has its own scalars.
        assert_eq!(names(&parts[2]), ["meta/unit"]);
        let omissions: Vec<_> = omissions
            .iter()
            .map(|omission| omission.subject.as_str())
            .collect();
        assert_eq!(omissions, ["/meta/unit"]);
        assert_eq!(parts[0].omitted_paths.len(), 2);
    }
}
