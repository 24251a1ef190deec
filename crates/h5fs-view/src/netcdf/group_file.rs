//! The plan of a netCDF file: the variables, dimensions and attributes that a group or an array
//! becomes.

use std::collections::HashSet;
use std::sync::Arc;

use h5fs_conventions::dimensions::{NON_COORDINATE_PREFIX, is_only_dimension, is_scale, last_name};
use h5fs_conventions::table_budget::TableBudget;
use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::link_order::links_in_display_order;
use h5fs_reader::model::{Array, Container, Link, Node, NodeId, NodeKind};
use h5fs_reader::wire::to_u64;

use crate::limits;
use crate::netcdf::absent::{AbsentParts, Converted, Omission};
use crate::netcdf::attributes::{NetcdfAttribute, NetcdfAttributes};
use crate::netcdf::dimensions::{DimensionTable, NamedScale, record_dimension};
use crate::netcdf::file::NetcdfFile;
use crate::netcdf::header::{FileDimension, FormatVersion, Header, VariableHeader};
use crate::netcdf::layout::{DataShape, Layout};
use crate::netcdf::names::NameSpace;
use crate::netcdf::source::NetcdfSource;
use crate::netcdf::variables::{self, SourceVariable};
use crate::table::group::Group;
use crate::view::View;
use crate::zarr::attributes::ABSENT_ATTRIBUTE;

/// Returns whether the array `array` of `node` is a variable, so that the array has a file.
///
/// # Errors
/// `Limit` for an array that is longer than any file can be. Fails if the attributes that mark a
/// dimension without values cannot be read.
pub fn is_variable(container: &dyn Container, node: NodeId, array: &Array) -> Result<bool> {
    Ok(variables::has_values(array)?
        && !(is_scale(container, node)? && is_only_dimension(container, node)?))
}

/// Creates the file of a group: its variables, and the coordinate variables of dimensions that other
/// groups define.
///
/// # Errors
/// `Limit` for too many variables, a header that is too long, or a file that is longer than any file
/// can be. Fails if a part of the group cannot be read at the moment.
pub fn group_file(source: &NetcdfSource<'_>, group: NodeId) -> Result<NetcdfFile> {
    let mut plan = FilePlan::new(source);
    plan.attributes = NetcdfAttributes::read_group(&*source.container, group, &mut plan.absent)?;
    let members = plan.read_members(group)?;
    let (scales, members) = plan.split_scales(members)?;
    plan.dimensions.add_scales(source, &scales)?;
    for (name, node) in &members {
        plan.add_variable(name, node)?;
    }
    plan.add_coordinates()?;
    plan.finish()
}

/// Creates the file of the array `node` at `path`: the array, the coordinate variables of its
/// dimensions, those of `scales` that have one value, and the variables `named`.
///
/// # Errors
/// `Unsupported` if netCDF does not have such an array. Otherwise fails as [`group_file`] does.
pub fn array_file(
    source: &NetcdfSource<'_>,
    node: &Node,
    path: &[u8],
    scales: &[NodeId],
    named: &[NodeId],
) -> Result<NetcdfFile> {
    let mut plan = FilePlan::new(source);
    plan.done.insert(node.id);
    plan.add_variable(last_name(path), node)?;
    if plan.variables.is_empty() {
        return Err(plan.absent.into_error());
    }
    plan.add_coordinates()?;
    for &scale in scales {
        plan.add_single_value(scale)?;
    }
    for &variable in named {
        let node = ignore_permanent(source.container.node(variable))?;
        if let Some(node) = node.filter(|_| plan.done.insert(variable)) {
            plan.add_coordinate(&node)?;
        }
    }
    plan.add_coordinates()?;
    plan.finish()
}

/// The name of a member of a group, and the member.
type Member = (Vec<u8>, Arc<Node>);

/// The plan of a netCDF file while its variables, dimensions and attributes are collected.
struct FilePlan<'a> {
    source: &'a NetcdfSource<'a>,
    dimensions: DimensionTable,
    variables: Vec<SourceVariable>,
    attributes: NetcdfAttributes,
    absent: AbsentParts,
    /// The arrays that were examined.
    done: HashSet<NodeId>,
    /// Bytes of the attributes of all variables.
    attribute_bytes: usize,
}

impl<'a> FilePlan<'a> {
    fn new(source: &'a NetcdfSource<'a>) -> Self {
        FilePlan {
            source,
            dimensions: DimensionTable::default(),
            variables: Vec::new(),
            attributes: NetcdfAttributes::default(),
            absent: AbsentParts::default(),
            done: HashSet::new(),
            attribute_bytes: 0,
        }
    }

    /// Returns the arrays of a group. Adds ASDF's scalars to the attributes, and records the other
    /// members as absent.
    fn read_members(&mut self, id: NodeId) -> Result<Vec<Member>> {
        let budget = TableBudget::default();
        let source = self.source;
        let group = Group {
            container: &*source.container,
            engine: source.engine,
            budget: &budget,
            id,
        };
        let mut members = Vec::new();
        let mut links = links_in_display_order(group.container, id, &mut { u64::MAX })?.links;
        loop {
            let link = match links.next() {
                Ok(Some(link)) => link,
                Ok(None) => break,
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => {
                    self.absent.add(b"", error);
                    break;
                }
            };
            let member = self.member(&group, &link);
            if let Some(Some(node)) = self.absent.keep(&link.name, member)? {
                check_variable_count(members.len())?;
                members.push((link.name, node));
            }
        }
        Ok(members)
    }

    /// Returns the array to which a link of a group leads. Returns `None` for a scalar, which
    /// becomes an attribute.
    fn member(&mut self, group: &Group<'_>, link: &Link) -> Converted<Option<Arc<Node>>> {
        let node = group.follow_link(link)?;
        let node = node.ok_or_else(|| Omission::absent("a link to another file, or to nothing"))?;
        match &node.kind {
            _ if node.array().is_some() => Ok(Some(node)),
            NodeKind::Scalar(scalar) => {
                self.attributes.add_scalar(&link.name, scalar)?;
                Ok(None)
            }
            NodeKind::Group => Err(Omission::absent("a group, which has a file of its own")),
            _ => Err(Omission::absent("a named datatype")),
        }
    }

    /// Splits the members of a group: returns those that describe a dimension, and those that are
    /// variables. Most dimension scales are both.
    fn split_scales(&mut self, members: Vec<Member>) -> Result<(Vec<NamedScale>, Vec<Member>)> {
        let container = &*self.source.container;
        let (mut scales, mut variables) = (Vec::new(), Vec::new());
        for (name, node) in members {
            self.done.insert(node.id);
            // If this attribute is damaged, the variable is absent, and reported later.
            if ignore_permanent(is_scale(container, node.id))?.unwrap_or(false) {
                scales.push((node.id, name.clone()));
                if ignore_permanent(is_only_dimension(container, node.id))?.unwrap_or(false) {
                    continue;
                }
            }
            variables.push((name, node));
        }
        Ok((scales, variables))
    }

    fn add_variable(&mut self, name: &[u8], node: &Node) -> Result<()> {
        let (table, absent) = (&mut self.dimensions, &mut self.absent);
        let variable = SourceVariable::read(self.source, (name, node), table, absent);
        if let Some(variable) = self.absent.keep(name, variable)? {
            check_variable_count(self.variables.len())?;
            self.attribute_bytes += variable.attributes.bytes;
            check_header_length(self.attribute_bytes)?;
            self.variables.push(variable);
        }
        Ok(())
    }

    /// Adds the coordinate variables of dimensions that other groups define. A variable of the group
    /// hides one with the same name.
    fn add_coordinates(&mut self) -> Result<()> {
        let container = Arc::clone(&self.source.container);
        while let Some(scale) = self.next_scale() {
            self.done.insert(scale);
            if let Some(node) = ignore_permanent(container.node(scale))? {
                self.add_coordinate(&node)?;
            }
        }
        Ok(())
    }

    fn add_coordinate(&mut self, node: &Node) -> Result<()> {
        let container = &*self.source.container;
        if ignore_permanent(is_only_dimension(container, node.id))?.unwrap_or(true) {
            return Ok(());
        }
        let path = (self.source.paths)(node.id)?.unwrap_or_default();
        let name = last_name(&path);
        if self.variables.iter().all(|variable| variable.name != name) {
            self.add_variable(name, node)?;
        }
        Ok(())
    }

    /// Adds the coordinate variable of a dimension of which a part of the array has one position.
    fn add_single_value(&mut self, scale: NodeId) -> Result<()> {
        let node = ignore_permanent(self.source.container.node(scale))?;
        let is_single = |node: &Arc<Node>| {
            let array = node.array();
            array.is_some_and(|array| array.shape.dims().is_empty())
        };
        match node.filter(is_single) {
            Some(node) if self.done.insert(scale) => self.add_coordinate(&node),
            _ => Ok(()),
        }
    }

    fn next_scale(&self) -> Option<NodeId> {
        let mut scales = self.dimensions.scales().into_iter();
        scales.find(|scale| !self.done.contains(scale))
    }

    fn finish(mut self) -> Result<NetcdfFile> {
        let axes: Vec<&[usize]> = self
            .variables
            .iter()
            .map(|variable| &*variable.dimensions)
            .collect();
        let record = record_dimension(self.dimensions.all(), &axes);
        self.omit_empty_variables(record);
        let (dimensions, numbers) = self.file_dimensions(record);
        let variables = self.name_variables()?;
        let mut header = Header {
            record_count: self.dimension_length(record).unwrap_or(0),
            dimensions,
            attributes: std::mem::take(&mut self.attributes.list),
            variables: Vec::new(),
        };
        let absent = self.absent.text();
        let absent = absent.map(|text| NetcdfAttribute::from_text(ABSENT_ATTRIBUTE.to_vec(), text));
        header.attributes.extend(absent);
        let (mut contents, mut shapes) = (Vec::new(), Vec::new());
        for (name, variable) in variables {
            contents.push(variable.open(self.source)?);
            shapes.push(self.data_shape(&variable, record));
            let dimensions = variable.dimensions.iter();
            let numbers = dimensions.filter_map(|number| numbers.get(*number).copied().flatten());
            header.variables.push(VariableHeader {
                name,
                dimensions: numbers.collect(),
                netcdf_type: variable.netcdf_type(),
                attributes: variable.attributes.list,
            });
        }
        assemble(header, &shapes, contents)
    }

    fn dimension_length(&self, number: Option<usize>) -> Option<u64> {
        self.dimensions
            .all()
            .get(number?)
            .map(|dimension| dimension.length)
    }

    /// Omits variables with a dimension of length 0, which only the record dimension can have.
    fn omit_empty_variables(&mut self, record: Option<usize>) {
        let dimensions = self.dimensions.all();
        let is_empty = |number: &usize| {
            let dimension = dimensions.get(*number);
            Some(*number) != record && dimension.is_none_or(|dimension| dimension.length == 0)
        };
        let absent = &mut self.absent;
        self.variables.retain(|variable| {
            let is_omitted = variable.dimensions.iter().any(is_empty);
            if is_omitted {
                absent.add(&variable.name, "a dimension of length 0");
            }
            !is_omitted
        });
    }

    /// Returns the dimensions of the file, and for each dimension of the source its index in the
    /// file.
    fn file_dimensions(&self, record: Option<usize>) -> (Vec<FileDimension>, Vec<Option<usize>>) {
        let mut names = NameSpace::default();
        let (mut dimensions, mut numbers) = (Vec::new(), Vec::new());
        for (number, dimension) in self.dimensions.all().iter().enumerate() {
            let is_record = Some(number) == record;
            let is_shown = is_record || dimension.length > 0;
            numbers.push(is_shown.then_some(dimensions.len()));
            if is_shown {
                let name = names.add(&dimension.name);
                let short = format!("dim_{number}").into_bytes();
                dimensions.push(FileDimension {
                    name: name.or_else(|_| names.add(&short)).unwrap_or(short),
                    length: if is_record { 0 } else { dimension.length },
                });
            }
        }
        (dimensions, numbers)
    }

    /// Returns the variables with their names in the file.
    fn name_variables(&mut self) -> Result<Vec<(Vec<u8>, SourceVariable)>> {
        let variables = std::mem::take(&mut self.variables);
        let known: HashSet<Vec<u8>> = variables
            .iter()
            .map(|variable| variable.name.clone())
            .collect();
        let mut names = NameSpace::default();
        let mut named = Vec::new();
        for variable in variables {
            let plain = variable.name.strip_prefix(NON_COORDINATE_PREFIX);
            let plain = plain.filter(|plain| !known.contains(*plain));
            let name = names.add(plain.unwrap_or(&variable.name));
            if let Some(name) = self.absent.keep(&variable.name, name)? {
                named.push((name, variable));
            }
        }
        Ok(named)
    }

    fn data_shape(&self, variable: &SourceVariable, record: Option<usize>) -> DataShape {
        let is_record = record.is_some() && variable.dimensions.first().copied() == record;
        let dims = variable.dimensions.iter().skip(usize::from(is_record));
        DataShape {
            dims: dims
                .filter_map(|number| self.dimension_length(Some(*number)))
                .collect(),
            is_record,
            value_bytes: variable.netcdf_type().size(),
        }
    }
}

/// Assembles the file. `shapes` and `contents` have the data of the variables of `header`.
fn assemble(
    mut header: Header,
    shapes: &[DataShape],
    contents: Vec<Box<dyn View>>,
) -> Result<NetcdfFile> {
    let version = choose_version(&mut header, shapes)?;
    let bytes = header.length(version);
    check_header_length(usize::try_from(bytes).unwrap_or(usize::MAX))?;
    let layout = Layout::new(bytes, shapes, header.record_count)?;
    let types = header
        .variables
        .iter()
        .map(|variable| variable.netcdf_type.padding());
    let contents = contents.into_iter().zip(types).collect();
    Ok(NetcdfFile::new(
        header.write(version, Some(&layout)),
        layout,
        contents,
    ))
}

/// Chooses the version of the format. If it is not CDF-5, gives the attributes types that all
/// versions have.
fn choose_version(header: &mut Header, shapes: &[DataShape]) -> Result<FormatVersion> {
    /// The greatest size of a variable in bytes that CDF-2 can express.
    const MOST_BYTES: u64 = 0xFFFF_FFFC;
    /// The greatest length of a dimension, and of a file with offsets of 32 bits.
    const MOST: u64 = i32::MAX.unsigned_abs() as u64;
    let count = header.record_count;
    let has_types = |header: &Header| {
        let mut variables = header.variables.iter();
        variables.all(|variable| variable.netcdf_type.is_classic())
    };
    let dims = header.dimensions.iter().map(|dimension| dimension.length);
    let is_long = dims.chain([count]).any(|length| length > MOST);
    let is_large = Layout::new(0, shapes, count)?.largest_variable() > MOST_BYTES;
    if is_long || is_large || !has_types(header) || !make_attributes_classic(header) {
        return Ok(FormatVersion::Data64);
    }
    let bytes = header.length(FormatVersion::Classic);
    let length = Layout::new(bytes, shapes, count)?.length;
    Ok(if length <= MOST {
        FormatVersion::Classic
    } else {
        FormatVersion::Offsets64
    })
}

/// Converts all attributes to types of CDF-1. Returns false if that is impossible; no attribute is
/// then changed.
fn make_attributes_classic(header: &mut Header) -> bool {
    let of_variables = header
        .variables
        .iter()
        .flat_map(|variable| &variable.attributes);
    let mut all = header.attributes.iter().chain(of_variables);
    let can_be_classic = all.all(|attribute| attribute.clone().make_classic());
    if can_be_classic {
        let of_variables = header.variables.iter_mut();
        let of_variables = of_variables.flat_map(|variable| &mut variable.attributes);
        let all = header.attributes.iter_mut().chain(of_variables);
        for attribute in all {
            NetcdfAttribute::make_classic(attribute);
        }
    }
    can_be_classic
}

fn check_header_length(bytes: usize) -> Result<()> {
    let most = to_u64(limits::NETCDF_HEADER);
    Error::check_limit(to_u64(bytes), most, "bytes of the header of a netCDF file")
}

/// Checks that a file with `count` variables may have one more.
fn check_variable_count(count: usize) -> Result<()> {
    let most = limits::NETCDF_VARIABLES;
    Error::check_room(count, most, "variables of a netCDF file")
}

#[cfg(test)]
mod tests;
