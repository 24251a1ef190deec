//! What is read of one member: its groups, variables, dimensions and attributes, and the elements of
//! what is small.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::array::Engine;
use crate::error::{Error, Result};
use crate::joined::members::content::{self, Known, hashes};
use crate::joined::members::skeleton::{
    Dimension, Meaning, Named, Role, Skeleton, Variable, is_mark,
};
use crate::joined::paths::{Path, beneath, split};
use crate::limits;
use crate::model::{Array, Container, LinkTarget, NodeId, NodeKind, Scalar};
use crate::view::cf::packing::Packing;
use crate::view::cf::stored::Stored;
use crate::view::cf::{attributes, time::TimeUnits};
use crate::view::elements::dimensions as scales;
use crate::view::zarr::dimensions::named;
use crate::wire::{Count, to_u64};

/// All that is kept of a member.
pub(in crate::joined) struct Scan {
    pub(in crate::joined) skeleton: Arc<Skeleton>,
    pub(in crate::joined) common: Common,
    /// The length of each dimension.
    pub(in crate::joined) lengths: Box<[u64]>,
    /// The dimensions of variables that are shorter than these.
    pub(in crate::joined) short: Vec<(usize, Box<[u64]>)>,
    /// What is known of the elements of each variable.
    pub(in crate::joined) values: Box<[Known]>,
}

/// The attributes of an object.
pub(in crate::joined) type Attributes = Arc<Vec<Named>>;

/// What members of one skeleton have alike, beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::joined) struct Common {
    /// Of the groups, then of the variables.
    pub(in crate::joined) attributes: Vec<Attributes>,
    /// ASDF: the scalars of the tree, by their paths.
    pub(in crate::joined) scalars: BTreeMap<Path, Same>,
}

/// A scalar of the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::joined) struct Same(pub(in crate::joined) Scalar);

impl Eq for Same {}

impl Common {
    /// Leaves what the other members have as well.
    pub(in crate::joined) fn keep(&mut self, other: &Self) {
        for (own, other) in self.attributes.iter_mut().zip(&other.attributes) {
            if own == other {
                continue;
            }
            let other: HashMap<_, _> = other.iter().map(|(name, value)| (name, value)).collect();
            Arc::make_mut(own).retain(|(name, value)| other.get(name) == Some(&value));
        }
        self.scalars
            .retain(|path, scalar| other.scalars.get(path) == Some(scalar));
    }
}

/// The objects of a file.
#[derive(Default)]
struct Objects {
    groups: Vec<(NodeId, Path)>,
    arrays: Vec<(NodeId, Path, Arc<Array>)>,
    scalars: BTreeMap<Path, Same>,
}

/// Scans a member; with `verify` the checksums of what is read are compared first.
///
/// # Errors
/// Fails if an object of it cannot be read; `Limit` if it has too many.
pub(in crate::joined) fn scan(
    engine: &Arc<Engine>,
    container: &Arc<dyn Container>,
    verify: bool,
) -> Result<Scan> {
    let objects = walk(&**container)?;
    let mut layout = Layout::of(&**container, &objects)?;
    let mut common = Common {
        attributes: Vec::new(),
        scalars: objects.scalars,
    };
    let mut left = limits::JOINED_ATTRIBUTES;
    for (group, _) in &objects.groups {
        let (_, attributes) = attributes_of(&**container, *group, &mut left)?;
        common.attributes.push(Arc::new(attributes));
    }
    for ((node, ..), variable) in objects.arrays.iter().zip(&mut layout.variables) {
        let (marks, attributes) = attributes_of(&**container, *node, &mut left)?;
        variable.marks = marks;
        common.attributes.push(Arc::new(attributes));
    }
    layout.find_bounds();
    let groups = objects.groups.iter().map(|(_, path)| Path::clone(path));
    let mut skeleton = Skeleton {
        groups: groups.collect(),
        variables: layout.variables,
        dimensions: layout.dimensions,
    };
    find_meanings(&mut skeleton, &**container, &objects.arrays)?;
    let mut scan = Scan {
        skeleton: Arc::new(skeleton),
        common,
        lengths: layout.lengths.into(),
        short: layout.short,
        values: Box::default(),
    };
    scan.read((engine, verify), &**container, &objects.arrays)?;
    Ok(scan)
}

/// Finds all objects that hard links lead to, each under the first name by which it is met.
fn walk(container: &dyn Container) -> Result<Objects> {
    let root = container.root();
    let mut objects = Objects::default();
    let mut met = HashSet::from([root]);
    let mut left = limits::JOINED_OBJECTS;
    let mut pending = VecDeque::from([(root, Path::default())]);
    while let Some((group, path)) = pending.pop_front() {
        let mut links = container.links(group)?;
        while let Some(link) = links.next()? {
            left = left.checked_sub(1).ok_or_else(|| {
                let most = to_u64(limits::JOINED_OBJECTS);
                Error::limit("joined: links of a file", most)
            })?;
            let LinkTarget::Hard(node) = link.target else {
                continue;
            };
            if link.name.contains(&b'/') || link.name.is_empty() {
                return Err(Error::unsupported(
                    "joined: a name with a slash, or none",
                    None,
                ));
            }
            if !met.insert(node) {
                continue;
            }
            let place = beneath(&path, &link.name);
            let found = container.node(node)?;
            if let Some(error) = &found.error {
                return Err(error.clone());
            }
            match &found.kind {
                NodeKind::Group => pending.push_back((node, place)),
                NodeKind::Array(array) => objects.arrays.push((node, place, Arc::clone(array))),
                NodeKind::Scalar(scalar) => {
                    objects.scalars.insert(place, Same(scalar.clone()));
                }
                NodeKind::CommittedDatatype(_) => {}
            }
        }
        objects.groups.push((group, path));
    }
    Ok(objects)
}

/// Attributes that are made anew for the joined file, or mean nothing there.
const OWN: [&[u8]; 8] = [
    b"CLASS",
    b"NAME",
    b"DIMENSION_LIST",
    b"DIMENSION_LABELS",
    b"REFERENCE_LIST",
    b"_Netcdf4Coordinates",
    b"_Netcdf4Dimid",
    b"_nc3_strict",
];

/// The attributes of an object by themselves, of no more bytes than are `left`: those that the rules
/// look at, and all of them.
fn attributes_of(
    container: &dyn Container,
    node: NodeId,
    left: &mut usize,
) -> Result<(Vec<Named>, Vec<Named>)> {
    let (mut marks, mut all) = (Vec::new(), Vec::new());
    let mut failed = None;
    container.attributes(node, &mut |attribute| {
        if OWN.contains(&&*attribute.name) {
            return ControlFlow::Continue(());
        }
        let own = attribute
            .content
            .and_then(|own| content::attribute(container, own));
        match own {
            Ok(Some(own)) => {
                /// What each takes beside its name and its elements.
                const OWN: usize = 150;
                let bytes = attribute.name.len().saturating_add(own.elements.len());
                let bytes = bytes.saturating_add(OWN);
                let Some(rest) = left.checked_sub(bytes) else {
                    let most = to_u64(limits::JOINED_ATTRIBUTES);
                    failed = Some(Error::limit("joined: bytes of attributes of a file", most));
                    return ControlFlow::Break(());
                };
                *left = rest;
                if is_mark(&attribute.name) {
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

/// The variables over their dimensions.
struct Layout {
    variables: Vec<Variable>,
    dimensions: Vec<Dimension>,
    lengths: Vec<u64>,
    short: Vec<(usize, Box<[u64]>)>,
    known: HashMap<Path, usize>,
}

impl Layout {
    fn of(container: &dyn Container, objects: &Objects) -> Result<Self> {
        let arrays = &objects.arrays;
        let paths: HashMap<NodeId, &Path> =
            arrays.iter().map(|(node, path, _)| (*node, path)).collect();
        let mut layout = Layout {
            variables: Vec::new(),
            dimensions: Vec::new(),
            lengths: Vec::new(),
            short: Vec::new(),
            known: HashMap::new(),
        };
        let find = |node| Ok(paths.get(&node).map(|path| path.to_vec()));
        for (node, path, array) in arrays {
            let dims = array.shape.dims();
            let (scales, labels) = named(container, *node, dims.len(), &find)?;
            let keys = (0..dims.len()).map(|axis| {
                let scale = scales.get(axis).copied().flatten();
                let label = labels.get(axis).filter(|label| !label.is_empty());
                let of_scale =
                    scale.and_then(|scale| paths.get(&scale).map(|path| Path::clone(path)));
                of_scale.or_else(|| label.map(|label| beneath(split(path).0, label)))
            });
            let own = layout.dims(path, array, keys.collect());
            let is_scale = scales::is_scale(container, *node)?;
            let has_no_values = is_scale && scales::has_no_values(container, *node)?;
            layout.variables.push(Variable {
                path: Path::clone(path),
                datatype: array.datatype.clone(),
                dims: own,
                chunk_shape: array.chunk_shape.clone(),
                fill: array.fill.clone(),
                role: if has_no_values {
                    Role::Dimension
                } else {
                    Role::Data
                },
                is_scale,
                marks: Vec::new(),
                meaning: Meaning::default(),
            });
        }
        layout.settle(arrays);
        Ok(layout)
    }

    /// The numbers of the dimensions of an array.
    fn dims(&mut self, path: &[u8], array: &Array, keys: Vec<Option<Path>>) -> Vec<usize> {
        let max = array.shape.max();
        let mut own = Vec::new();
        for ((axis, key), &length) in keys.into_iter().enumerate().zip(array.shape.dims()) {
            let is_unlimited = max.get(axis) == Some(&None);
            let known = key.as_ref().and_then(|key| self.known.get(key).copied());
            // No array has one dimension twice in the sense of what follows.
            let known = known.filter(|number| !own.contains(number));
            let is_right = |&number: &usize| {
                self.lengths[number] == length
                    || self.dimensions[number].is_unlimited && is_unlimited
            };
            if let Some(number) = known.filter(is_right) {
                self.lengths[number] = self.lengths[number].max(length);
                own.push(number);
                continue;
            }
            let number = self.dimensions.len();
            let key = key.filter(|key| !self.known.contains_key(key));
            if let Some(key) = &key {
                self.known.insert(Path::clone(key), number);
            }
            self.dimensions.push(Dimension {
                has_name: key.is_some(),
                key: key.unwrap_or_else(|| unnamed(path, axis)),
                is_unlimited,
                coordinate: None,
            });
            self.lengths.push(length);
            own.push(number);
        }
        own
    }

    /// Finds the coordinates, and the variables that are shorter than their dimensions.
    fn settle(&mut self, arrays: &[(NodeId, Path, Arc<Array>)]) {
        for (number, (variable, (_, _, array))) in self.variables.iter_mut().zip(arrays).enumerate()
        {
            let mut lengths = variable.dims.iter().map(|&dim| self.lengths[dim]);
            if !lengths.by_ref().eq(array.shape.dims().iter().copied()) {
                self.short.push((number, array.shape.dims().into()));
            }
            if let [dim] = variable.dims[..]
                && self.dimensions[dim].key == variable.path
                && variable.role != Role::Dimension
            {
                variable.role = Role::Coordinate;
                self.dimensions[dim].coordinate = Some(number);
            }
        }
    }

    /// Finds the variables that are bounds of others (CF 1.12, 7.1).
    fn find_bounds(&mut self) {
        let numbers = self.variables.iter().enumerate();
        let numbers = numbers.map(|(number, variable)| (Path::clone(&variable.path), number));
        let numbers: HashMap<Path, usize> = numbers.collect();
        for of in 0..self.variables.len() {
            let variable = &self.variables[of];
            let name = variable
                .text(b"bounds")
                .or_else(|| variable.text(b"climatology"));
            let path = name.map(|name| beneath(split(&variable.path).0, name));
            if let Some(&number) = path
                .and_then(|path| numbers.get(&path))
                .filter(|&&number| number != of)
                && self.variables[number].role == Role::Data
            {
                self.variables[number].role = Role::Bounds(of);
            }
        }
    }
}

/// The key of a dimension without a name.
fn unnamed(path: &[u8], axis: usize) -> Path {
    [path, b"\0", axis.to_string().as_bytes()].concat().into()
}

/// Finds what the numbers of each variable mean. Bounds have the units of what they bound.
fn find_meanings(
    skeleton: &mut Skeleton,
    container: &dyn Container,
    arrays: &[(NodeId, Path, Arc<Array>)],
) -> Result<()> {
    let times = |variable: &Variable| {
        let calendar = variable.text(b"calendar");
        TimeUnits::parse(variable.text(b"units")?, calendar)
    };
    let own: Vec<_> = skeleton.variables.iter().map(times).collect();
    for (number, (variable, (node, ..))) in skeleton.variables.iter_mut().zip(arrays).enumerate() {
        let Some(stored) = Stored::new(&variable.datatype) else {
            continue;
        };
        let of_bounded = match variable.role {
            Role::Bounds(of) if variable.mark(b"units").is_none() => own[of],
            _ => None,
        };
        let packing = match attributes::packing(container, *node) {
            Err(error) if !error.is_passing() => {
                variable.meaning.refusal = Some(error.to_string());
                continue;
            }
            packing => packing?,
        };
        variable.meaning = Meaning {
            packing: Some(Packing::new(stored, &packing)),
            time: own[number].or(of_bounded),
            refusal: None,
        };
    }
    Ok(())
}

impl Scan {
    /// Bytes of memory of what belongs to the member alone, about; without the elements, which may be
    /// those of others.
    pub(in crate::joined) fn weight(&self) -> u64 {
        const EACH: usize = 64;
        let short = self
            .short
            .iter()
            .map(|(_, dims)| EACH + size_of_val(&**dims));
        let ends = self
            .values
            .iter()
            .filter(|known| matches!(known, Known::Ends(..)));
        let own = size_of_val(&*self.lengths) + size_of_val(&*self.values);
        to_u64(own + short.sum::<usize>() + EACH * ends.count().one_more())
    }

    /// Reads what is small.
    fn read(
        &mut self,
        (engine, verify): (&Arc<Engine>, bool),
        container: &dyn Container,
        arrays: &[(NodeId, Path, Arc<Array>)],
    ) -> Result<()> {
        let mut values = Vec::with_capacity(arrays.len());
        let (mut kept, mut compared) = (limits::JOINED_VALUES, limits::JOINED_VALUES);
        for (variable, (node, path, array)) in self.skeleton.variables.iter().zip(arrays) {
            let read = || content::elements(engine, container, array);
            let wanted = self.wanted(variable, array)?;
            let left = match wanted {
                Wanted::Hash => &mut compared,
                _ => &mut kept,
            };
            let wanted = match (left.checked_sub(array.bytes()?), wanted) {
                (_, Wanted::Nothing | Wanted::Ends) => wanted,
                (Some(rest), wanted) => {
                    *left = rest;
                    wanted
                }
                (None, Wanted::Hash) => Wanted::Nothing,
                (None, Wanted::Elements) => {
                    let most = limits::JOINED_VALUES;
                    return Err(Error::limit("joined: bytes of coordinates of a file", most));
                }
            };
            if verify && !matches!(wanted, Wanted::Nothing) {
                content::verify(engine, container, *node)?;
            }
            let known = match wanted {
                Wanted::Nothing => Ok(Known::Nothing),
                Wanted::Hash => read()
                    .map(|read| read.map_or(Known::Nothing, |read| Known::Hash(hashes(&read)))),
                Wanted::Ends => content::ends(engine, array),
                Wanted::Elements => read().map(|read| read.map_or(Known::Nothing, Known::Elements)),
            };
            let name = path.escape_ascii().to_string();
            values.push(known.map_err(|error| error.of(name))?);
        }
        self.values = values.into();
        Ok(())
    }

    /// How much of a variable is to be known: all of what the place of the member follows from, and
    /// whether it is that of others where it is the same for all steps of what may be joined.
    fn wanted(&self, variable: &Variable, array: &Array) -> Result<Wanted> {
        let bytes = array.bytes()?;
        if variable.role == Role::Dimension {
            return Ok(Wanted::Nothing);
        }
        let is_placed = variable.role != Role::Data || array.shape.dims().is_empty();
        if is_placed && bytes <= limits::JOINED_COORDINATE {
            return Ok(Wanted::Elements);
        }
        if variable.role == Role::Coordinate {
            // Of a series at kilohertz, its ends say where it lies.
            return Ok(Wanted::Ends);
        }
        let may_be_joined = self.skeleton.dims(variable).any(|dim| dim.is_unlimited);
        Ok(if may_be_joined || bytes > limits::JOINED_COMPARED {
            Wanted::Nothing
        } else {
            Wanted::Hash
        })
    }
}

#[derive(Clone, Copy)]
enum Wanted {
    Nothing,
    Hash,
    Ends,
    Elements,
}
