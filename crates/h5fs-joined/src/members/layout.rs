//! Determines the dimensions of a member's variables: which variables share a dimension, which are
//! coordinates or bounds, and which are shorter than their dimensions.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use h5fs_conventions::dimension_names::dimension_scales_and_labels;
use h5fs_conventions::dimensions as scales;
use h5fs_conventions::padded::pad_array;
use h5fs_reader::error::Result;
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::model::{Array, Container, NodeId};

use crate::members::convention::{ConventionRules, FirstDimensionMeaning};
use crate::members::links::OpenFile;
use crate::members::skeleton::{Dimension, NumberMeaning, Variable, VariableRole};
use crate::members::walk::{FoundArray, WalkedObjects};
use crate::paths::{Path, child_path, split_path};

/// The variables of a member, and the dimensions that they share.
pub(super) struct VariableLayout {
    pub(super) variables: Vec<Variable>,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) lengths: Vec<u64>,
    /// The stored shapes of variables that are shorter than their dimensions, by variable index.
    pub(super) stored_lengths: Vec<(usize, Box<[u64]>)>,
    /// The index of each dimension in `dimensions`, by its key.
    dimension_indices: HashMap<Path, usize>,
}

impl VariableLayout {
    pub(super) fn scan(objects: &WalkedObjects) -> Result<Self> {
        let own = choose_array_paths(&objects.arrays)?;
        let mut layout = VariableLayout {
            variables: Vec::new(),
            dimensions: Vec::new(),
            lengths: Vec::new(),
            stored_lengths: Vec::new(),
            dimension_indices: HashMap::new(),
        };
        for (number, found) in objects.arrays.iter().enumerate() {
            let (container, path, array) = (found.container(), &found.path, &found.array);
            let number_of = |node: NodeId| own.get(&(Arc::as_ptr(&found.file), node)).copied();
            let path_of = |node: NodeId| Some(&objects.arrays.get(number_of(node)?)?.path);
            let has_own_name = number_of(found.node) == Some(number);
            let find = |node| Ok(path_of(node).map(|path| path.to_vec()));
            let dims = array.shape.dims();
            let (scales, labels) =
                dimension_scales_and_labels(container, found.node, dims.len(), &find)?;
            let mut keys = Vec::new();
            for axis in 0..dims.len() {
                let scale = scales.get(axis).copied().flatten();
                let label = labels.get(axis).filter(|label| !label.is_empty()).cloned();
                keys.push(match scale {
                    Some(scale) => match path_of(scale) {
                        Some(path) => Some(Path::clone(path)),
                        // The scale is in another file, so its name is used like a label.
                        None => scale_name(container, scale)?
                            .or(label)
                            .map(sibling_path(path)),
                    },
                    None => label.map(sibling_path(path)),
                });
            }
            let own = layout.find_or_add_dimensions(path, array, keys);
            let is_scale = scales::is_scale(container, found.node)?;
            let has_no_values = is_scale && scales::is_only_dimension(container, found.node)?;
            layout.variables.push(Variable {
                path: Path::clone(path),
                datatype: array.datatype.clone(),
                dims: own,
                chunk_shape: array.chunk_shape.clone(),
                fill: array.fill.clone(),
                role: if has_no_values {
                    VariableRole::Dimension
                } else {
                    VariableRole::Data
                },
                is_scale: is_scale && has_own_name,
                marks: Vec::new(),
                meaning: NumberMeaning::default(),
                convention: ConventionRules::default(),
            });
        }
        layout.classify_variables(&objects.arrays);
        Ok(layout)
    }

    /// Returns the index of each dimension of an array in `dimensions`. Adds dimensions that are
    /// not in the list.
    fn find_or_add_dimensions(
        &mut self,
        path: &[u8],
        array: &Array,
        keys: Vec<Option<Path>>,
    ) -> Vec<usize> {
        let max = array.shape.max();
        let mut own = Vec::new();
        for ((axis, key), &length) in keys.into_iter().enumerate().zip(array.shape.dims()) {
            let is_unlimited = max.get(axis) == Some(&None);
            let known = key
                .as_ref()
                .and_then(|key| self.dimension_indices.get(key).copied());
            // If an array uses a dimension twice, the second use is a separate dimension.
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
            let key = key.filter(|key| !self.dimension_indices.contains_key(key));
            if let Some(key) = &key {
                self.dimension_indices.insert(Path::clone(key), number);
            }
            self.dimensions.push(Dimension {
                has_name: key.is_some(),
                key: key.unwrap_or_else(|| unnamed_dimension_key(path, axis)),
                is_unlimited,
                rows: FirstDimensionMeaning::Unknown,
                coordinate: None,
            });
            self.lengths.push(length);
            own.push(number);
        }
        own
    }

    /// Finds the coordinates, and the variables that are shorter than their dimensions.
    fn classify_variables(&mut self, arrays: &[FoundArray]) {
        for (number, (variable, found)) in self.variables.iter_mut().zip(arrays).enumerate() {
            let array = &found.array;
            let mut lengths = variable.dims.iter().map(|&dim| self.lengths[dim]);
            if !lengths.by_ref().eq(array.shape.dims().iter().copied()) {
                self.stored_lengths
                    .push((number, array.shape.dims().into()));
            }
            if let [dim] = variable.dims[..]
                && self.dimensions[dim].key == variable.path
                && variable.role != VariableRole::Dimension
            {
                variable.role = VariableRole::Coordinate;
                self.dimensions[dim].coordinate = Some(number);
            }
        }
    }

    /// Pads arrays that are shorter than their dimensions with the fill value, as netCDF does.
    pub(super) fn pad_arrays(&self, arrays: &mut [FoundArray]) {
        for (number, _) in &self.stored_lengths {
            let dims = self.variables[*number].dims.iter();
            let dims = dims.map(|&dim| self.lengths[dim]).collect();
            let array = &mut arrays[*number].array;
            *array = Arc::new(pad_array(array, dims));
        }
    }

    /// Stores the rules of conventions in the variables and dimensions that they apply to.
    /// `conventions` has one item for each variable.
    pub(super) fn apply_conventions(&mut self, conventions: Vec<ConventionRules>) {
        for (variable, convention) in self.variables.iter_mut().zip(conventions) {
            let dim = variable.dims.first().copied();
            if let Some(dim) = dim.and_then(|dim| self.dimensions.get_mut(dim)) {
                dim.rows = convention.rows;
            }
            variable.convention = convention;
        }
        self.share_row_dimensions();
    }

    /// Makes the columns of a table share one dimension, so that the number of rows is known even
    /// if a member lacks a column.
    fn share_row_dimensions(&mut self) {
        let first = |variable: &Variable| variable.dims.first().copied();
        let firsts = self.variables.iter();
        let firsts = firsts.map(|own| (Path::clone(&own.path), first(own)));
        let firsts: HashMap<Path, Option<usize>> = firsts.collect();
        for variable in &mut self.variables {
            let table = variable.convention.table.as_ref();
            let rows = table.and_then(|table| *firsts.get(table)?);
            let (Some(rows), Some(own)) = (rows, variable.dims.first_mut()) else {
                continue;
            };
            let has_name = self.dimensions[*own].has_name || self.dimensions[rows].has_name;
            if *own != rows && !has_name && self.lengths[*own] == self.lengths[rows] {
                self.dimensions[*own].rows = FirstDimensionMeaning::Unknown;
                *own = rows;
            }
        }
    }

    /// Finds the variables that are bounds of other variables (CF 1.12, 7.1).
    pub(super) fn find_bounds(&mut self) {
        let numbers = self.variables.iter().enumerate();
        let numbers = numbers.map(|(number, variable)| (Path::clone(&variable.path), number));
        let numbers: HashMap<Path, usize> = numbers.collect();
        for of in 0..self.variables.len() {
            let variable = &self.variables[of];
            let name = variable
                .attribute_text(b"bounds")
                .or_else(|| variable.attribute_text(b"climatology"));
            let path = name.map(|name| child_path(split_path(&variable.path).0, name));
            if let Some(&number) = path
                .and_then(|path| numbers.get(&path))
                .filter(|&&number| number != of)
                && self.variables[number].role == VariableRole::Data
            {
                self.variables[number].role = VariableRole::Bounds(of);
            }
        }
    }
}

/// Chooses one path for each array that has several paths. For a dimension scale, this is the path
/// whose name is in the attribute `NAME`, if there is one. Otherwise it is the first path. Returns,
/// by file and node, the index in `arrays` of each array's chosen path.
fn choose_array_paths(arrays: &[FoundArray]) -> Result<HashMap<(*const OpenFile, NodeId), usize>> {
    let mut own: HashMap<_, usize> = HashMap::new();
    for (number, found) in arrays.iter().enumerate() {
        match own.entry((Arc::as_ptr(&found.file), found.node)) {
            Entry::Vacant(entry) => _ = entry.insert(number),
            Entry::Occupied(mut entry) => {
                let is_scale = scales::is_scale(found.container(), found.node)?;
                let name = split_path(&found.path).1;
                if is_scale
                    && scale_name(found.container(), found.node)?.as_deref() == Some(name)
                    && arrays
                        .get(*entry.get())
                        .is_some_and(|first| split_path(&first.path).1 != name)
                {
                    entry.insert(number);
                }
            }
        }
    }
    Ok(own)
}

/// Returns a function that converts the name of an object to its path. The object is in the same
/// group as the object at `path`.
fn sibling_path(path: &[u8]) -> impl Fn(Vec<u8>) -> Path {
    let group = split_path(path).0.to_vec();
    move |name| child_path(&group, &name)
}

/// Returns the name of a scale from its attribute `NAME`. Returns `None` for a scale without
/// values, or without a valid name.
fn scale_name(container: &dyn Container, scale: NodeId) -> Result<Option<Vec<u8>>> {
    if scales::is_only_dimension(container, scale)? {
        return Ok(None);
    }
    let name = attribute_text(container, scale, b"NAME")?;
    Ok(name.filter(|name| !name.is_empty() && !name.contains(&b'/')))
}

/// Returns the key of a dimension that has no name: a key that no path equals.
fn unnamed_dimension_key(path: &[u8], axis: usize) -> Path {
    [path, b"\0", axis.to_string().as_bytes()].concat().into()
}
