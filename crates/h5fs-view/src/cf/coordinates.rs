//! The coordinates of a variable, as xarray finds them. A variable that is named like a dimension
//! is the coordinate of that dimension. Another variable of the group is a coordinate if the
//! attribute `coordinates` of any variable or of the group names it. Each dimension of a coordinate
//! must be a dimension of the variable.

use std::collections::HashSet;

use h5fs_conventions::dimensions::{ancestor_groups, last_name, parent_path};
use h5fs_reader::error::{Result, ignore_permanent};
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::model::{Container, LinkTarget, NodeId};

use crate::cf::siblings::GroupVariableCache;
use crate::cf::variable::Variable;
use crate::json::SharedPaths;
use crate::limits;

/// A coordinate of a variable.
pub(super) struct Coordinate {
    pub(super) name: Vec<u8>,
    pub(super) variable: Variable,
    /// For each dimension of the coordinate, the index of the same dimension in the variable.
    pub(super) dimensions: Vec<usize>,
}

/// A search for the coordinates of one array, which is a variable or has dimension scales.
pub(super) struct CoordinateFinder<'a> {
    pub(super) container: &'a dyn Container,
    pub(super) paths: &'a SharedPaths,
    /// The array whose coordinates are searched.
    pub(super) node: NodeId,
    /// The dimension scale of each dimension of the array, if it has one.
    pub(super) scales: &'a [Option<NodeId>],
    pub(super) dims: &'a [u64],
    /// The path of the array.
    pub(super) path: &'a [u8],
    pub(super) siblings: &'a GroupVariableCache,
}

/// A member of the variable's group, which may be a coordinate.
struct GroupMember {
    name: Vec<u8>,
    node: NodeId,
}

impl CoordinateFinder<'_> {
    /// Returns the name of a dimension of the variable: the name of its dimension scale, or
    /// `dim_0`, `dim_1` and so on if it has no scale with a path.
    pub(super) fn dimension_name(&self, dimension: usize) -> Result<Vec<u8>> {
        let path = match self.scale(dimension) {
            Some(scale) => (self.paths)(scale)?,
            None => None,
        };
        let name = path.map(|path| last_name(&path).to_vec());
        Ok(name.unwrap_or_else(|| format!("dim_{dimension}").into_bytes()))
    }

    /// Finds the coordinate variable of a dimension, which has the name of the dimension. The
    /// search begins in the variable's own group and ends in the group of the dimension, and the
    /// first match is returned. Returns `None` if there is no match, or if the match is the
    /// variable itself.
    pub(super) fn dimension_coordinate(&self, dimension: usize) -> Result<Option<Coordinate>> {
        let Some(scale) = self.scale(dimension) else {
            return Ok(None);
        };
        let name = self.dimension_name(dimension)?;
        for &group in ancestor_groups(self.container, parent_path(self.path))?
            .iter()
            .rev()
        {
            let link = self.container.link(group, &name)?;
            let Some(LinkTarget::Hard(node)) = link.map(|link| link.target) else {
                continue;
            };
            if node == scale {
                break;
            }
            let found = ignore_permanent(self.coordinate_from_node(name.clone(), node))?.flatten();
            if let Some(found) = found.filter(|found| found.dimensions == [dimension]) {
                return Ok(Some(found));
            }
        }
        let found = self.coordinate_from_node(name, scale)?;
        Ok(found.filter(|found| found.dimensions == [dimension]))
    }

    /// Returns all coordinates except those of the table's row dimensions, which are the nodes
    /// `taken`. First come the coordinates of the dimensions `dropped`, for which the selection has
    /// a single index. Then come the coordinates that the variable's attribute `coordinates` names,
    /// then all others. The others are sorted by name, because a file need not store the creation
    /// order of links.
    pub(super) fn other_coordinates(
        &self,
        dropped: &[usize],
        taken: &[NodeId],
    ) -> Result<Vec<Coordinate>> {
        let mut found = Vec::new();
        for &dimension in dropped {
            found.extend(self.dimension_coordinate(dimension)?);
        }
        let of_dropped = found.iter().map(|found: &Coordinate| found.variable.node);
        let others: Vec<NodeId> = of_dropped.chain(taken.iter().copied()).collect();
        let (mut members, named) = self.group_members()?;
        members.retain(|member| {
            let is_of_dimension = self.scales.contains(&Some(member.node));
            named.contains(&member.name) && !is_of_dimension && !others.contains(&member.node)
        });
        let own = attribute_text(self.container, self.node, b"coordinates")?;
        let own = own.unwrap_or_default();
        let own: Vec<&[u8]> = split_names(&own).take(limits::COORDINATES).collect();
        members.sort_by_cached_key(|member| {
            let place = own.iter().position(|name| *name == member.name);
            (place.unwrap_or(usize::MAX), member.name.clone())
        });
        for member in members {
            if found.len() >= limits::COORDINATES {
                break;
            }
            found.extend(self.coordinate_from_node(member.name, member.node)?);
        }
        Ok(found)
    }

    fn scale(&self, dimension: usize) -> Option<NodeId> {
        self.scales.get(dimension).copied().flatten()
    }

    /// Returns the array at `node` as a coordinate called `name`. Returns `None` if a dimension of
    /// the array is not a dimension of the variable.
    fn coordinate_from_node(&self, name: Vec<u8>, node: NodeId) -> Result<Option<Coordinate>> {
        if node == self.node {
            return Ok(None);
        }
        let found = self.container.node(node)?;
        let path = || Ok([parent_path(self.path), &name].concat());
        let Some(variable) =
            Variable::from_reference(self.container, &found, &path, self.siblings)?
        else {
            return Ok(None);
        };
        let scales = variable.scales.iter();
        let all = scales.map(|scale| {
            let mut of_variable = self.scales.iter();
            of_variable.position(|own| own == scale && own.is_some())
        });
        let Some(dimensions) = all.collect::<Option<Vec<usize>>>() else {
            return Ok(None);
        };
        let extents = dimensions.iter().map(|&dimension| self.dims[dimension]);
        // A coordinate with one dimension may be shorter than the variable's dimension.
        let fits = dimensions.len() == 1 || extents.eq(variable.dims());
        Ok(fits.then_some(Coordinate {
            name,
            variable,
            dimensions,
        }))
    }

    /// Returns the arrays among the first `limits::COORDINATE_LINKS` links of the variable's group,
    /// and all names in the attributes `coordinates` of these arrays and of the group. Later links
    /// are ignored, and so are all links after `limits::COORDINATE_NAMES` bytes of names.
    fn group_members(&self) -> Result<(Vec<GroupMember>, HashSet<Vec<u8>>)> {
        let mut members = Vec::new();
        let mut named = HashSet::new();
        let groups = ancestor_groups(self.container, parent_path(self.path))?;
        let Some(&group) = groups.last() else {
            return Ok((members, named));
        };
        let mut bytes = self.read_names(group, &mut named)?;
        let mut links = self.container.links(group)?;
        for _ in 0..limits::COORDINATE_LINKS {
            let Some(link) = links.next()? else {
                break;
            };
            let LinkTarget::Hard(node) = link.target else {
                continue;
            };
            // A damaged member fails only if it is named.
            if let Some(found) = ignore_permanent(self.container.node(node))? {
                if found.array().is_none() {
                    continue;
                }
                bytes += self.read_names(node, &mut named)?;
            }
            bytes += link.name.len();
            if bytes > limits::COORDINATE_NAMES {
                break;
            }
            let name = link.name;
            members.push(GroupMember { name, node });
        }
        Ok((members, named))
    }

    /// Adds the names in an object's attribute `coordinates` to `named`. Returns the length of the
    /// attribute's text in bytes.
    fn read_names(&self, node: NodeId, named: &mut HashSet<Vec<u8>>) -> Result<usize> {
        let text = attribute_text(self.container, node, b"coordinates")?.unwrap_or_default();
        if text.len() <= limits::COORDINATE_NAMES {
            named.extend(split_names(&text).map(<[u8]>::to_vec));
        }
        Ok(text.len())
    }
}

/// Returns the names in a text, separated by white space.
pub(super) fn split_names(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let names = text.split(u8::is_ascii_whitespace);
    names.filter(|name| !name.is_empty())
}
