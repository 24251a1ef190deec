//! The objects of the computed file, collected from the container: each group, dataset and committed
//! datatype once, in the order in which links lead to them.

use std::collections::HashMap;
use std::ops::ControlFlow;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::hdf5::encode::datatype;
use h5fs_reader::memory::allocation_size;
use h5fs_reader::model::{
    Attribute, Container, Datatype, Link, LinkTarget, Node, NodeId, NodeKind,
};
use h5fs_reader::wire::to_u64;

use crate::hdf5_file::absences::Absences;
use crate::hdf5_file::asdf_attributes;
use crate::hdf5_file::dataset::{Dataset, UNKNOWN_TYPE};
use crate::hdf5_file::elements::computed_datatype;
use crate::hdf5_file::scalar::ScalarDataset;
use crate::hdf5_file::source::Hdf5Source;
use crate::limits;

/// The group at the root of the computed file.
pub enum RootGroup {
    /// A group of the source.
    Group(NodeId),
    /// A group with these objects under these names.
    Named(Vec<(Vec<u8>, NodeId)>),
}

/// An object of the computed file.
pub(super) struct PlannedObject {
    pub(super) path: Vec<u8>,
    pub(super) content: ObjectContent,
    pub(super) attributes: Vec<Attribute>,
    /// Time of the last modification in seconds since 1970, if the source has it.
    pub(super) modified: Option<u32>,
    /// Number of hard links to the object.
    pub(super) link_count: u32,
}

pub(super) enum ObjectContent {
    Group(Vec<PlannedLink>),
    Dataset(Box<Dataset>),
    Scalar(ScalarDataset),
    CommittedDatatype(Datatype),
}

/// A link of the computed file.
pub(super) struct PlannedLink {
    pub(super) name: Vec<u8>,
    pub(super) target: PlannedTarget,
}

pub(super) enum PlannedTarget {
    /// The object with this number.
    Object(usize),
    /// A soft link with this path.
    Soft(Vec<u8>),
}

/// All objects of the computed file. The root is the first one.
#[derive(Default)]
pub(super) struct PlannedObjects {
    pub(super) objects: Vec<PlannedObject>,
    /// The number of the object that shows a node of the source.
    pub(super) numbers: HashMap<NodeId, usize>,
    pub(super) absences: Absences,
}

/// Number of objects that are read without a slot for heavy work.
const QUICKLY_READ: usize = 64;

/// Collects the objects below the root.
pub(super) struct ObjectCollector<'a> {
    source: &'a Hdf5Source,
    cancel: &'a CancelToken,
    found: PlannedObjects,
    /// The groups whose links have not been read yet: the number of the object, and the node.
    pending: Vec<(usize, NodeId)>,
    /// Memory in bytes of all objects found so far.
    bytes: u64,
}

impl<'a> ObjectCollector<'a> {
    /// Collects the objects of the computed file with the root `root`.
    ///
    /// # Errors
    /// `Limit` for too many objects or attributes. Fails if an object cannot be read now, or if the request is
    /// cancelled.
    pub(super) fn collect(
        source: &'a Hdf5Source,
        root: &RootGroup,
        cancel: &'a CancelToken,
    ) -> Result<PlannedObjects> {
        let mut collector = ObjectCollector {
            source,
            cancel,
            found: PlannedObjects::default(),
            pending: Vec::new(),
            bytes: 0,
        };
        match root {
            RootGroup::Group(group) => {
                let mut attributes = collector.attributes(*group)?;
                if *group == source.container.root() {
                    attributes.extend(asdf_attributes::tree_attribute(&*source.container)?);
                }
                collector.add_group(*group, attributes, b"")?;
            }
            RootGroup::Named(objects) => collector.add_named(objects)?,
        }
        while let Some((number, group)) = collector.pending.pop() {
            collector.cancel.check_cancelled()?;
            collector.read_links(number, group)?;
        }
        Ok(collector.found)
    }

    fn container(&self) -> &dyn Container {
        &*self.source.container
    }

    fn add_named(&mut self, objects: &[(Vec<u8>, NodeId)]) -> Result<()> {
        self.add(b"", ObjectContent::Group(Vec::new()), Vec::new())?;
        for (name, node) in objects {
            let path = [b"/", &name[..]].concat();
            if let Some(number) = self.object_number(*node, &path)? {
                let target = PlannedTarget::Object(number);
                let name = name.clone();
                self.add_link(0, PlannedLink { name, target });
            }
        }
        Ok(())
    }

    /// Adds an object, and returns its number.
    fn add(
        &mut self,
        path: &[u8],
        content: ObjectContent,
        attributes: Vec<Attribute>,
    ) -> Result<usize> {
        let number = self.found.objects.len();
        if number == QUICKLY_READ {
            self.cancel.require_heavy_slot()?;
        }
        let own = size_of::<PlannedObject>().saturating_add(path.len());
        let of_attributes = attributes.iter().map(attribute_bytes);
        self.charge(of_attributes.fold(to_u64(own), u64::saturating_add))?;
        self.found.objects.push(PlannedObject {
            path: path.to_vec(),
            content,
            attributes,
            modified: None,
            link_count: 0,
        });
        Ok(number)
    }

    fn charge(&mut self, bytes: u64) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        Error::check_limit(
            self.bytes,
            limits::HDF5_FILE_METADATA,
            "bytes of the metadata of a computed HDF5 file",
        )
    }

    fn add_group(
        &mut self,
        group: NodeId,
        attributes: Vec<Attribute>,
        path: &[u8],
    ) -> Result<usize> {
        let number = self.add(path, ObjectContent::Group(Vec::new()), attributes)?;
        self.found.numbers.insert(group, number);
        self.pending.push((number, group));
        Ok(number)
    }

    /// Adds the links of the group `group`, which is the object `number`, and their targets.
    fn read_links(&mut self, number: usize, group: NodeId) -> Result<()> {
        let mut links = match self.container().links(group) {
            Ok(links) => links,
            Err(error) => return self.omit(&self.path_of(number), error),
        };
        let mut found = Vec::new();
        loop {
            match links.next() {
                Ok(Some(link)) => {
                    self.charge(link.weight())?;
                    found.push(link);
                }
                Ok(None) => break,
                Err(error) => {
                    self.omit(&self.path_of(number), error)?;
                    break;
                }
            }
        }
        found.sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
        for link in found {
            if let Some(link) = self.planned_link(number, link)? {
                self.add_units(group, &link)?;
                self.add_link(number, link);
            }
        }
        Ok(())
    }

    /// Adds the unit of an ASDF quantity to its ndarray, if `link` leads to the ndarray.
    fn add_units(&mut self, group: NodeId, link: &PlannedLink) -> Result<()> {
        let PlannedTarget::Object(target) = link.target else {
            return Ok(());
        };
        if link.name != b"value" {
            return Ok(());
        }
        let units = asdf_attributes::units_attribute(self.container(), group);
        if let Some(Some(units)) = ignore_permanent(units)?
            && let Some(object) = self.found.objects.get_mut(target)
            && object
                .attributes
                .iter()
                .all(|other| other.name != units.name)
        {
            object.attributes.push(units);
        }
        Ok(())
    }

    /// Records that the object at `path` cannot be read, unless a later attempt may succeed.
    ///
    /// # Errors
    /// Fails with a temporary error.
    fn omit(&mut self, path: &[u8], error: Error) -> Result<()> {
        if error.is_transient() {
            return Err(error);
        }
        self.found.absences.add(path, &error.to_string());
        Ok(())
    }

    fn path_of(&self, number: usize) -> Vec<u8> {
        let object = self.found.objects.get(number);
        object.map(|object| object.path.clone()).unwrap_or_default()
    }

    fn add_link(&mut self, number: usize, link: PlannedLink) {
        if let PlannedTarget::Object(target) = link.target
            && let Some(object) = self.found.objects.get_mut(target)
        {
            object.link_count = object.link_count.saturating_add(1);
        }
        if let Some(object) = self.found.objects.get_mut(number)
            && let ObjectContent::Group(links) = &mut object.content
        {
            links.push(link);
        }
    }

    /// Returns the link of the computed file for `link` in the group with the number `group`, or
    /// `None` if the computed file has none.
    fn planned_link(&mut self, group: usize, link: Link) -> Result<Option<PlannedLink>> {
        let path = [&self.path_of(group), &b"/"[..], &link.name].concat();
        if !is_allowed_name(&link.name) {
            let reason = "a name that HDF5 does not allow";
            self.found.absences.add(&path, reason);
            return Ok(None);
        }
        let target = match link.target {
            LinkTarget::Hard(node) | LinkTarget::Alias(node) => {
                self.object_number(node, &path)?.map(PlannedTarget::Object)
            }
            LinkTarget::Soft(target) if !is_allowed_path(&target) => {
                let reason = "a soft link with a path that HDF5 does not allow";
                self.found.absences.add(&path, reason);
                None
            }
            LinkTarget::Soft(path) => Some(PlannedTarget::Soft(path)),
            LinkTarget::Reference { file: None, .. } => {
                match self.container().alias_path(&link.target) {
                    Ok(names) => {
                        let names = names.iter().flat_map(|name| [b"/", &name[..]].concat());
                        Some(PlannedTarget::Soft(names.collect()))
                    }
                    Err(error) => {
                        self.omit(&path, error)?;
                        None
                    }
                }
            }
            LinkTarget::External { .. } | LinkTarget::Reference { .. } => {
                self.found.absences.add(&path, "a link into another file");
                None
            }
            LinkTarget::UserDefined(class) => {
                let reason = format!("a user-defined link of class {class}");
                self.found.absences.add(&path, &reason);
                None
            }
            LinkTarget::Damaged(error) => {
                self.omit(&path, error)?;
                None
            }
        };
        let name = link.name;
        Ok(target.map(|target| PlannedLink { name, target }))
    }

    /// Returns the number of the object that shows `node`, adding the object if it is new. Returns
    /// `None` if the computed file does not have the object.
    fn object_number(&mut self, node: NodeId, path: &[u8]) -> Result<Option<usize>> {
        if let Some(number) = self.found.numbers.get(&node) {
            return Ok(Some(*number));
        }
        self.cancel.check_cancelled()?;
        let node = match self.container().node(node) {
            Ok(node) => node,
            Err(error) => return self.omit(path, error).map(|()| None),
        };
        if let Some(error) = node.transient_error() {
            return Err(error.clone());
        }
        self.add_node(&node, path)
    }

    fn add_node(&mut self, node: &Node, path: &[u8]) -> Result<Option<usize>> {
        let mut attributes = self.attributes(node.id)?;
        attributes.extend(asdf_attributes::fill_value_attribute(
            self.container(),
            node,
        )?);
        let content = match &node.kind {
            NodeKind::Group => {
                return self.add_group(node.id, attributes, path).map(Some);
            }
            NodeKind::Array(array) => {
                match Dataset::plan(self.source, node.id, array, self.cancel)? {
                    Ok(dataset) => {
                        self.charge(dataset.weight())?;
                        ObjectContent::Dataset(Box::new(dataset))
                    }
                    Err(reason) => {
                        self.found.absences.add(path, reason);
                        return Ok(None);
                    }
                }
            }
            NodeKind::CommittedDatatype(datatype) => match computed_datatype(datatype) {
                Ok(datatype) if datatype::encode(&datatype).is_ok() => {
                    ObjectContent::CommittedDatatype(datatype)
                }
                _ => {
                    self.found.absences.add(path, UNKNOWN_TYPE);
                    return Ok(None);
                }
            },
            NodeKind::Scalar(scalar) => ObjectContent::Scalar(ScalarDataset::from_scalar(scalar)),
        };
        let number = self.add(path, content, attributes)?;
        let modified = node.modified.and_then(|time| u32::try_from(time).ok());
        if let Some(object) = self.found.objects.get_mut(number) {
            object.modified = modified;
        }
        self.found.numbers.insert(node.id, number);
        Ok(Some(number))
    }

    /// Returns the attributes of a node, in the file's order. An attribute that cannot be read is
    /// among them, with its error.
    fn attributes(&mut self, node: NodeId) -> Result<Vec<Attribute>> {
        let mut found = Vec::new();
        let mut bytes = 0_u64;
        let result = self.container().attributes(node, &mut |attribute| {
            bytes = bytes.saturating_add(attribute_bytes(&attribute));
            found.push(attribute);
            if bytes > limits::HDF5_FILE_METADATA {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        match result {
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                let attributes = Attribute {
                    name: b"*".to_vec(),
                    content: Err(error),
                };
                found.push(attributes);
            }
            Ok(()) => {}
        }
        Ok(found)
    }
}

/// Maximum bytes of a name, and of the path in a soft link, so that both fit in one message.
const LONGEST_NAME: usize = 32 << 10;

fn is_allowed_name(name: &[u8]) -> bool {
    let is_text = !name.is_empty() && name.len() <= LONGEST_NAME;
    is_text && name != b"." && !name.contains(&b'/') && !name.contains(&0)
}

fn is_allowed_path(path: &[u8]) -> bool {
    !path.is_empty() && path.len() < LONGEST_NAME && !path.contains(&0)
}

/// Returns the memory in bytes that an attribute takes.
fn attribute_bytes(attribute: &Attribute) -> u64 {
    let content = attribute.content.as_ref();
    let elements = content.map_or(0, |content| content.elements.len());
    let own = size_of::<Attribute>().saturating_add(elements);
    to_u64(own).saturating_add(allocation_size(attribute.name.len()))
}
