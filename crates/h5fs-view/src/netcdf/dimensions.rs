//! The dimensions of a computed netCDF file.
//!
//! A dimension is described by a dimension scale, or has no scale. Dimensions without a scale are
//! found as in netCDF's library: a variable shares a dimension of the same length, or gets a new one
//! called `phony_dim_N`, where N is the number of dimensions before it.

use std::collections::HashMap;

use h5fs_conventions::dimensions::last_name;
use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::attribute_value::attribute_integers;
use h5fs_reader::model::{NodeId, Shape};
use h5fs_reader::wire::to_u64;

use crate::limits;
use crate::netcdf::source::NetcdfSource;

/// A dimension of the source, which becomes a dimension of the netCDF file.
#[derive(Debug, Clone)]
pub(super) struct SourceDimension {
    pub(super) name: Vec<u8>,
    pub(super) length: u64,
    pub(super) is_unlimited: bool,
}

/// A dimension scale, and its name in its group.
pub(super) type NamedScale = (NodeId, Vec<u8>);

/// The dimensions of a netCDF file, in the order of its header. Variables refer to a dimension by its
/// index in this order.
#[derive(Default)]
pub(super) struct DimensionTable {
    dimensions: Vec<SourceDimension>,
    /// The index of the dimension of each scale that was looked up; `None` for a scale that describes
    /// no dimension.
    by_scale: HashMap<NodeId, Option<usize>>,
    /// The indices of the dimensions of each length. The flag is set for unlimited dimensions.
    by_length: HashMap<(u64, bool), Vec<usize>>,
    /// The index of the dimension for the characters of texts of each length.
    by_text_length: HashMap<u64, usize>,
}

impl DimensionTable {
    pub(super) fn all(&self) -> &[SourceDimension] {
        &self.dimensions
    }

    /// Adds the dimensions that the scales of a group describe, in the order of their
    /// `_Netcdf4Dimid`. Scales without this number follow.
    ///
    /// # Errors
    /// `Limit` for too many dimensions; fails if a scale cannot be read.
    pub(super) fn add_scales(
        &mut self,
        source: &NetcdfSource<'_>,
        scales: &[NamedScale],
    ) -> Result<()> {
        let mut numbered = Vec::new();
        for (scale, name) in scales {
            let number = attribute_integers(&*source.container, *scale, b"_Netcdf4Dimid");
            let number = ignore_permanent(number)?.flatten();
            let number = number.and_then(|numbers| numbers.first().copied());
            numbered.push((number.is_none(), number, *scale, name));
        }
        numbered.sort_by_key(|(is_last, number, ..)| (*is_last, *number));
        for (_, _, scale, name) in numbered {
            if !self.by_scale.contains_key(&scale) {
                self.add_scale(source, scale, name)?;
            }
        }
        Ok(())
    }

    fn add_scale(
        &mut self,
        source: &NetcdfSource<'_>,
        scale: NodeId,
        name: &[u8],
    ) -> Result<Option<usize>> {
        let node = source.container.node(scale)?;
        let length = node.array().and_then(|array| array.shape.dims().first());
        let number = match length {
            Some(&length) => Some(self.add(SourceDimension {
                name: name.to_vec(),
                length,
                is_unlimited: is_unlimited(source, scale, 0)?,
            })?),
            None => None,
        };
        self.by_scale.insert(scale, number);
        Ok(number)
    }

    fn add(&mut self, dimension: SourceDimension) -> Result<usize> {
        let number = self.dimensions.len();
        Error::check_room(
            number,
            limits::NETCDF_DIMENSIONS,
            "dimensions of a netCDF file",
        )?;
        let key = (dimension.length, dimension.is_unlimited);
        self.by_length.entry(key).or_default().push(number);
        self.dimensions.push(dimension);
        Ok(number)
    }

    /// Returns the dimensions of an array. `shape` is its shape, and `scales` has the scale of each
    /// dimension. Further dimensions in `dims` belong to the array's elements.
    ///
    /// # Errors
    /// `Limit` for too many dimensions; fails if a scale cannot be read.
    pub(super) fn dimensions_of_array(
        &mut self,
        source: &NetcdfSource<'_>,
        (node, shape): (NodeId, &Shape),
        scales: &[Option<NodeId>],
        dims: &[u64],
    ) -> Result<Vec<usize>> {
        let mut found = Vec::new();
        for (axis, &length) in dims.iter().enumerate() {
            let scale = scales.get(axis).copied().flatten();
            let described = scale
                .map(|scale| self.dimension_of_scale(source, scale))
                .transpose()?;
            let described = described.flatten().filter(|&number| {
                let dimension = self.dimensions.get(number);
                dimension.is_some_and(|dimension| dimension.length == length)
            });
            let number = match described {
                Some(number) => number,
                None => {
                    let is_own = axis < shape.dims().len();
                    let is_unlimited = is_own && is_unlimited(source, node, axis)?;
                    self.dimension_without_scale(length, is_unlimited, &found)?
                }
            };
            found.push(number);
        }
        Ok(found)
    }

    /// Returns the dimension that a scale describes. Adds the dimension if the scale is in another
    /// group. Returns `None` if the scale describes none, or has no path and so no name.
    fn dimension_of_scale(
        &mut self,
        source: &NetcdfSource<'_>,
        scale: NodeId,
    ) -> Result<Option<usize>> {
        if let Some(known) = self.by_scale.get(&scale) {
            return Ok(*known);
        }
        match (source.paths)(scale)? {
            Some(path) => self.add_scale(source, scale, last_name(&path)),
            None => Ok(None),
        }
    }

    /// Returns a dimension of this length that is not in `used`, the other dimensions of the
    /// variable. Adds one if none exists.
    fn dimension_without_scale(
        &mut self,
        length: u64,
        is_unlimited: bool,
        used: &[usize],
    ) -> Result<usize> {
        let same = self.by_length.get(&(length, is_unlimited));
        let mut same = same.into_iter().flatten();
        if let Some(&number) = same.find(|number| !used.contains(number)) {
            return Ok(number);
        }
        self.add(SourceDimension {
            name: format!("phony_dim_{}", self.dimensions.len()).into_bytes(),
            length,
            is_unlimited,
        })
    }

    /// Returns the dimension for the characters of texts that are `width` bytes long.
    ///
    /// # Errors
    /// `Limit` for too many dimensions.
    pub(super) fn character_dimension(&mut self, width: u64) -> Result<usize> {
        if let Some(&number) = self.by_text_length.get(&width) {
            return Ok(number);
        }
        let number = self.add(SourceDimension {
            name: format!("string{width}").into_bytes(),
            length: width,
            is_unlimited: false,
        })?;
        // Only texts have this dimension.
        self.by_length
            .entry((width, false))
            .or_default()
            .retain(|other| *other != number);
        self.by_text_length.insert(width, number);
        Ok(number)
    }

    /// Returns the scales that were looked up, in the order of their dimensions.
    pub(super) fn scales(&self) -> Vec<NodeId> {
        let found = self.by_scale.iter();
        let mut found: Vec<(usize, NodeId)> = found
            .filter_map(|(scale, number)| Some(((*number)?, *scale)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, scale)| scale).collect()
    }
}

/// Returns whether a dimension of the stored array is unlimited. Padded arrays do not have this
/// information.
fn is_unlimited(source: &NetcdfSource<'_>, node: NodeId, axis: usize) -> Result<bool> {
    let node = source.stored.node(node)?;
    let max = node
        .array()
        .and_then(|array| array.shape.max().get(axis).copied());
    Ok(max == Some(None))
}

/// Chooses the record dimension. `dimensions` are all dimensions, and `variables` has the
/// dimensions of each variable. The record dimension is unlimited, and the first dimension of each
/// variable that has it. If several dimensions are, the one of most variables is chosen.
pub(super) fn record_dimension(
    dimensions: &[SourceDimension],
    variables: &[&[usize]],
) -> Option<usize> {
    let mut uses: Vec<(bool, u64)> = vec![(true, 0); dimensions.len()];
    for variable in variables {
        for (axis, &number) in variable.iter().enumerate() {
            if let Some((is_first, count)) = uses.get_mut(number) {
                *is_first &= axis == 0;
                *count += to_u64(1);
            }
        }
    }
    let possible = dimensions.iter().zip(&uses).enumerate();
    let possible =
        possible.filter(|(_, (dimension, (is_first, _)))| dimension.is_unlimited && *is_first);
    // `max_by_key` returns the last of several maxima, so the order is reversed.
    let chosen = possible.rev().max_by_key(|(_, (_, (_, count)))| *count);
    chosen.map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(length: u64, is_unlimited: bool) -> SourceDimension {
        let name = Vec::new();
        SourceDimension {
            name,
            length,
            is_unlimited,
        }
    }

    fn names(table: &DimensionTable) -> Vec<String> {
        let names = table.all().iter().map(|dimension| dimension.name.clone());
        names.map(|name| String::from_utf8(name).unwrap()).collect()
    }

    /// Expected: `create_phony_dims` in netCDF's library.
    #[test]
    fn dimensions_without_a_scale() {
        let mut table = DimensionTable::default();
        let mut dims = |lengths: &[u64]| {
            let mut found = Vec::new();
            for &length in lengths {
                found.push(
                    table
                        .dimension_without_scale(length, false, &found)
                        .unwrap(),
                );
            }
            found
        };
        assert_eq!(dims(&[3, 3]), [0, 1]);
        assert_eq!(dims(&[4, 3]), [2, 0]);
        assert_eq!(dims(&[3, 3, 3]), [0, 1, 3]);
        assert_eq!(table.dimension_without_scale(3, true, &[]), Ok(4));
        assert_eq!(table.character_dimension(4), Ok(5));
        assert_eq!(table.character_dimension(4), Ok(5));
        assert_eq!(table.character_dimension(7), Ok(6));
        // Only texts have the dimensions of characters.
        assert_eq!(table.dimension_without_scale(7, false, &[]), Ok(7));
        let expected = [
            "phony_dim_0",
            "phony_dim_1",
            "phony_dim_2",
            "phony_dim_3",
            "phony_dim_4",
        ];
        assert_eq!(names(&table)[..5], expected);
        assert_eq!(names(&table)[5..], ["string4", "string7", "phony_dim_7"]);
    }

    #[test]
    fn dimensions_have_a_limit() {
        let mut table = DimensionTable::default();
        for length in 0..to_u64(limits::NETCDF_DIMENSIONS) {
            table.dimension_without_scale(length, false, &[]).unwrap();
        }
        let most = to_u64(limits::NETCDF_DIMENSIONS);
        assert!(matches!(
            table.dimension_without_scale(most, false, &[]),
            Err(Error::Limit { .. })
        ));
    }

    #[test]
    fn the_record_dimension_comes_first_in_every_variable() {
        let dimensions = [
            dimension(3, false),
            dimension(4, true),
            dimension(5, true),
            dimension(6, true),
        ];
        let of = |variables: &[&[usize]]| record_dimension(&dimensions, variables);
        assert_eq!(of(&[&[1, 0], &[2, 0], &[2]]), Some(2));
        assert_eq!(of(&[&[1, 0], &[2, 0]]), Some(1));
        assert_eq!(of(&[&[1, 2], &[2], &[2]]), Some(1));
        assert_eq!(of(&[&[3, 1], &[1, 3], &[2, 2]]), None);
        assert_eq!(of(&[&[0]]), Some(1));
        assert_eq!(record_dimension(&dimensions[..1], &[&[0]]), None);
    }
}
