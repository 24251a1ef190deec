//! Answers to queries of the protocol h5grove: descriptions, attributes, paths, elements and
//! statistics of the objects of a data file.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::shape::product;
use h5fs_reader::model::storage::Filter;
use h5fs_reader::model::text::{JsonObject, json_text, write_json_list, write_json_text};
use h5fs_reader::model::value::TextContext;
use h5fs_reader::model::{Array, Attribute, Link, LinkTarget, Node, NodeKind, Shape};
use h5fs_reader::wire::to_usize;
use h5fs_view::documents::h5grove::datatypes::type_metadata;
use h5fs_view::documents::h5grove::statistics::statistics;
use h5fs_view::documents::h5grove::values::{GroveCsv, GroveJson, GroveWriter};
use h5fs_view::documents::h5grove::{is_numeric, to_numpy, to_safe};
use h5fs_view::elements::part::ArrayPart;
use h5fs_view::elements::{Elements, element_type};
use h5fs_view::npy;
use h5fs_view::pictures::picture_style::PictureStyle;
use h5fs_view::pictures::tiff;
use h5fs_view::text_files::counted_text::{CountedFile, TextUnits};
use h5fs_view::text_files::text::InMemoryContent;

use crate::data_files::file_state::FileState;
use crate::limits;
use crate::names::link_resolution::{is_link_loop, resolve_link_target};
use crate::nodes::node::TargetInode;
use crate::nodes::object;
use crate::requests::{DataFormat, FollowedLinks, ObjectAnswer, ObjectQuery, ObjectQuestion};
use crate::state::counts::count_units;

/// An object to which a path leads, or a link that is not followed.
enum FoundObject {
    Object(Arc<FileState>, Arc<Node>),
    Link(Link),
}

/// The state of the answer to one query.
struct GroveQuery<'a> {
    target: &'a TargetInode<'a>,
    /// Number of links and attributes that may still be read before the limit is exceeded.
    remaining_reads: usize,
    /// Number of bytes that the text may still grow by.
    remaining_bytes: usize,
}

/// Returns the answer to `query` about the data file that contains `target`.
///
/// # Errors
/// Fails if an object cannot be read. `Limit` if the answer is too long.
pub(crate) fn answer(target: &TargetInode<'_>, query: &ObjectQuery) -> Result<ObjectAnswer> {
    let mut grove = GroveQuery {
        target,
        remaining_reads: limits::H5GROVE_OBJECTS,
        remaining_bytes: limits::H5GROVE_BYTES,
    };
    let path = String::from_utf8_lossy(&query.path).into_owned();
    let found = match grove.find(&query.path, query.links)? {
        Ok(found) => found,
        Err(reason) => return Ok(ObjectAnswer::Missing(reason)),
    };
    let (file, node) = match (found, &query.question) {
        (FoundObject::Link(link), ObjectQuestion::Metadata) => {
            return grove.text(link_metadata(&link, &query.path).finish());
        }
        (FoundObject::Link(_), _) => {
            return Ok(ObjectAnswer::Refused(format!(
                "{path} is not a resolved entity"
            )));
        }
        (FoundObject::Object(file, node), _) => (file, node),
    };
    match &query.question {
        ObjectQuestion::Metadata => {
            let about = grove.metadata((&file, &node), &query.path, true)?;
            grove.text(about.finish())
        }
        ObjectQuestion::Attributes(names) => grove.attributes(&file, &node, names.as_deref()),
        ObjectQuestion::Paths if matches!(node.kind, NodeKind::Group) => {
            grove.paths((&file, &node), query)
        }
        ObjectQuestion::Paths => Ok(ObjectAnswer::Refused(format!("{path} is not a group"))),
        ObjectQuestion::Data { .. } | ObjectQuestion::Statistics(_) if node.array().is_none() => {
            Ok(ObjectAnswer::Refused(format!("{path} is not a dataset")))
        }
        ObjectQuestion::Data {
            selector,
            format,
            is_flat,
            is_safe,
        } => grove.data((&file, &node), selector, *format, (*is_flat, *is_safe)),
        ObjectQuestion::Statistics(selector) => grove.statistics(&file, &node, selector),
    }
}

/// Returns the part of `path` after its last slash.
fn last_segment(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Returns the path of the member `name` of the group at `path`.
fn member_path(path: &[u8], name: &[u8]) -> Vec<u8> {
    let group = path.strip_suffix(b"/").unwrap_or(path);
    [group, b"/", name].concat()
}

impl GroveQuery<'_> {
    fn cancel(&self) -> CancelToken {
        self.target.file.budget.cancel_token()
    }

    /// Returns a text in memory as the answer.
    fn text(&self, text: String) -> Result<ObjectAnswer> {
        let content = InMemoryContent::new(text.into_bytes());
        let content = content.open_copy(&self.target.file.engine)?;
        Ok(ObjectAnswer::Content(Box::new(content)))
    }

    /// Counts a link or an attribute that is read, and the bytes of its text.
    fn count_read(&mut self, bytes: usize) -> Result<()> {
        let most = u64::try_from(limits::H5GROVE_OBJECTS).unwrap_or(u64::MAX);
        let too_many = || Error::limit("links and attributes of an answer", most);
        self.remaining_reads = self.remaining_reads.checked_sub(1).ok_or_else(too_many)?;
        let most = u64::try_from(limits::H5GROVE_BYTES).unwrap_or(u64::MAX);
        let too_long = || Error::limit("bytes of an answer", most);
        let left = self.remaining_bytes.checked_sub(bytes);
        self.remaining_bytes = left.ok_or_else(too_long)?;
        Ok(())
    }

    /// Finds the object at `path`. The inner error is the reason why it does not exist.
    fn find(
        &self,
        path: &[u8],
        links: FollowedLinks,
    ) -> Result<std::result::Result<FoundObject, String>> {
        let file = self.target.file;
        let shown = String::from_utf8_lossy(path).into_owned();
        let invalid = || format!("{shown} is not a valid path in {}", file_name(file));
        let mut at = (
            Arc::clone(file),
            file.container.node(file.container.root())?,
        );
        let mut names = path
            .split(|&byte| byte == b'/')
            .filter(|name| !name.is_empty() && *name != b".")
            .peekable();
        while let Some(name) = names.next() {
            if !matches!(at.1.kind, NodeKind::Group) {
                return Ok(Err(invalid()));
            }
            let Some(link) = at.0.container.link(at.1.id, name)? else {
                return Ok(Err(invalid()));
            };
            let is_last = names.peek().is_none();
            at = match self.follow((&at.0, &at.1), &link, is_last, links)? {
                Some(next) => next,
                None if is_last && links != FollowedLinks::All => {
                    return Ok(Ok(FoundObject::Link(link)));
                }
                None if is_last => {
                    return Ok(Err(format!("Cannot resolve the link at {shown}")));
                }
                None => return Ok(Err(invalid())),
            };
        }
        Ok(Ok(FoundObject::Object(at.0, at.1)))
    }

    /// Returns the object to which a link leads. Returns `None` if the link has no target or must
    /// not be followed.
    fn follow(
        &self,
        (file, group): (&Arc<FileState>, &Node),
        link: &Link,
        is_last: bool,
        links: FollowedLinks,
    ) -> Result<Option<(Arc<FileState>, Arc<Node>)>> {
        match &link.target {
            LinkTarget::Hard(node) | LinkTarget::Alias(node) => {
                Ok(Some((Arc::clone(file), file.container.node(*node)?)))
            }
            LinkTarget::Damaged(error) => Err(error.clone()),
            _ if is_last && links == FollowedLinks::None => Ok(None),
            target => {
                let found = match resolve_link_target(self.target.mount, file, group.id, target) {
                    Err(error) if is_link_loop(&error) => None,
                    found => ignore_permanent(found)?.flatten(),
                };
                Ok(found.map(|found| (found.file, found.node)))
            }
        }
    }

    /// Returns the description of an object. That of a group includes its members, if
    /// `has_members`.
    fn metadata(
        &mut self,
        (file, node): (&Arc<FileState>, &Arc<Node>),
        path: &[u8],
        has_members: bool,
    ) -> Result<JsonObject> {
        let mut about = JsonObject::default();
        about.add_text("name", last_segment(path));
        let attributes = self.described_attributes(file, node)?;
        about.add_json("attributes", attributes);
        match &node.kind {
            NodeKind::Array(array) => {
                about.add_text("kind", "dataset");
                about.add_json("chunks", chunk_shape(array));
                about.add_json("filters", filters(&array.pipeline.0));
                about.add_json("shape", shape_text(&array.shape));
                about.add_json("type", type_metadata(&array.datatype));
            }
            NodeKind::CommittedDatatype(datatype) => {
                about.add_text("kind", "datatype");
                about.add_json("type", type_metadata(datatype));
            }
            NodeKind::Scalar(_) => about.add_text("kind", "other"),
            NodeKind::Group => {
                about.add_text("kind", "group");
                if has_members {
                    let members = self.members((file, node), path)?;
                    about.add_json("children", format_args!("[{}]", members.join(",")));
                }
            }
        }
        Ok(about)
    }

    fn members(
        &mut self,
        (file, group): (&Arc<FileState>, &Arc<Node>),
        path: &[u8],
    ) -> Result<Vec<String>> {
        let mut members = Vec::new();
        for link in self.sorted_links(file, group)? {
            let path = member_path(path, &link.name);
            let found = self.follow((file, group), &link, true, FollowedLinks::Valid);
            let about = match ignore_permanent(found)? {
                Some(Some((file, node))) => self.metadata((&file, &node), &path, false)?,
                Some(None) => link_metadata(&link, &path),
                None => {
                    let mut about = JsonObject::default();
                    about.add_text("name", &link.name);
                    about.add_text("kind", "other");
                    about
                }
            };
            let about = about.finish();
            self.count_read(about.len())?;
            members.push(about);
        }
        Ok(members)
    }

    /// Returns the links of a group in the order of their names.
    fn sorted_links(&mut self, file: &FileState, group: &Node) -> Result<Vec<Link>> {
        let mut found = Vec::new();
        let mut links = file.container.links(group.id)?;
        while let Some(link) = links.next()? {
            self.count_read(link.name.len())?;
            found.push(link);
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found.dedup_by(|one, other| one.name == other.name);
        Ok(found)
    }

    fn read_attributes(&mut self, file: &FileState, node: &Node) -> Result<Vec<Attribute>> {
        let (mut found, mut failure) = (Vec::new(), Ok(()));
        file.container.attributes(node.id, &mut |attribute| {
            let length = attribute.content.as_ref();
            let length = length.map_or(0, |content| content.elements.len());
            failure = self.count_read(attribute.name.len() + length);
            found.push(attribute);
            match failure {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        failure?;
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    fn described_attributes(&mut self, file: &FileState, node: &Node) -> Result<String> {
        let mut all = Vec::new();
        let attributes = self.read_attributes(file, node)?;
        let readable = attributes
            .iter()
            .filter_map(|attribute| Some((&attribute.name, attribute.content.as_ref().ok()?)));
        write_json_list(readable, &mut all, |(name, content), out| {
            let mut about = JsonObject::default();
            about.add_text("name", name);
            about.add_json("shape", shape_text(&content.shape));
            about.add_json("type", type_metadata(&content.datatype));
            out.extend_from_slice(about.finish().as_bytes());
        });
        Ok(String::from_utf8_lossy(&all).into_owned())
    }

    /// Returns the values of the attributes `names`, or of all.
    fn attributes(
        &mut self,
        file: &Arc<FileState>,
        node: &Node,
        names: Option<&[Vec<u8>]>,
    ) -> Result<ObjectAnswer> {
        let attributes = self.read_attributes(file, node)?;
        let has = |name: &Vec<u8>| attributes.iter().any(|attribute| attribute.name == *name);
        if let Some(missing) = names.unwrap_or_default().iter().find(|name| !has(name)) {
            let name = String::from_utf8_lossy(missing);
            return Ok(ObjectAnswer::Missing(format!("no attribute `{name}`")));
        }
        let mut all = JsonObject::default();
        let is_wanted =
            |attribute: &&Attribute| names.is_none_or(|names| names.contains(&attribute.name));
        for attribute in attributes.iter().filter(is_wanted) {
            let content = attribute.content.clone()?;
            let (datatype, dims) = element_type(&content.datatype, &content.shape)?;
            let mut text = Vec::new();
            match dims {
                None => text.extend_from_slice(b"null"),
                Some(dims) => {
                    let paths = |_| Ok(None);
                    let most = limits::H5GROVE_BYTES;
                    let context = TextContext::new(&*file.container, &paths, most);
                    let writer = GroveWriter::new(&datatype, !dims.is_empty())?;
                    writer.write_list(&content.elements, &dims, &context, &mut text)?;
                }
            }
            self.count_read(text.len())?;
            all.add_key(&attribute.name).extend_from_slice(&text);
        }
        self.text(all.finish())
    }

    /// Returns the paths of the objects below a group. Links are not followed.
    fn paths(
        &mut self,
        (file, group): (&Arc<FileState>, &Arc<Node>),
        query: &ObjectQuery,
    ) -> Result<ObjectAnswer> {
        let mut all = Vec::new();
        // A link that is not followed has no node here.
        let mut open = vec![(query.path.clone(), Some(group.id))];
        let mut visited = HashSet::new();
        while let Some((path, node)) = open.pop() {
            if !all.is_empty() {
                all.push(b',');
            }
            write_json_text(&path, &mut all);
            // Below a second name of a group, its objects are not listed again.
            let node = node.filter(|node| visited.insert(*node));
            let node = node.map(|node| file.container.node(node)).transpose();
            let group = ignore_permanent(node)?.flatten();
            let Some(group) = group.filter(|node| matches!(node.kind, NodeKind::Group)) else {
                continue;
            };
            for link in self.sorted_links(file, &group)?.into_iter().rev() {
                let path = member_path(&path, &link.name);
                self.count_read(path.len())?;
                let node = match link.target {
                    LinkTarget::Hard(node) => Some(node),
                    _ => None,
                };
                open.push((path, node));
            }
        }
        all.insert(0, b'[');
        all.push(b']');
        self.text(String::from_utf8_lossy(&all).into_owned())
    }

    /// Returns the elements of an array, or of the part that `selector` names.
    fn elements(
        &self,
        file: &Arc<FileState>,
        node: &Node,
        selector: &[u8],
    ) -> Result<std::result::Result<Elements, ObjectAnswer>> {
        let array = node.array().ok_or(Error::NotFound)?;
        object::verify_checksum(self.target.mount, file, node.id)?;
        let reader = file.reader(node.id, array)?;
        if selector.is_empty() {
            return Elements::from_reader(reader).map(Ok);
        }
        let refused = || {
            let text = String::from_utf8_lossy(selector);
            ObjectAnswer::Refused(format!("the selection {text} does not fit the dataset"))
        };
        let Some(selector) = Selector::parse(selector) else {
            return Ok(Err(refused()));
        };
        match ArrayPart::new(reader, &selector).and_then(|part| part.into_elements(None)) {
            Err(Error::NotFound | Error::Usage(_)) => Ok(Err(refused())),
            elements => elements.map(Ok),
        }
    }

    fn data(
        &self,
        (file, node): (&Arc<FileState>, &Node),
        selector: &[u8],
        format: DataFormat,
        (is_flat, is_safe): (bool, bool),
    ) -> Result<ObjectAnswer> {
        let refused = |what: &str| Ok(ObjectAnswer::Refused(what.to_owned()));
        let mut elements = match self.elements(file, node, selector)? {
            Ok(elements) => elements,
            Err(refusal) => return Ok(refusal),
        };
        let is_number = elements.dims.is_some() && is_numeric(&elements.datatype);
        if is_safe && !is_number {
            return refused("Unsupported dtype safe for non-numeric data");
        }
        if is_number {
            elements = to_numpy(elements);
        }
        if is_safe {
            elements = to_safe(elements);
        }
        if let Some(dims) = elements
            .dims
            .as_mut()
            .filter(|dims| is_flat && !dims.is_empty())
        {
            *dims = vec![product(dims)?];
        }
        let is_scalar = elements.dims.as_ref().is_none_or(Vec::is_empty);
        let content = match format {
            DataFormat::Json => {
                let container = Arc::clone(&file.container);
                let json = GroveJson::new(elements, container, Arc::new(|_| Ok(None)))?;
                return self.counted(file, json);
            }
            DataFormat::Binary if elements.datatype.has_pointers() || elements.dims.is_none() => {
                return refused("Unsupported encoding bin for elements with pointers");
            }
            DataFormat::Binary => Some(elements.content),
            _ if !is_number => return refused("Unsupported encoding for non-numeric content"),
            DataFormat::Npy => npy::file(elements)?.map(|file| Box::new(file) as _),
            _ if is_scalar => {
                return refused("Unsupported encoding for empty and scalar datasets");
            }
            DataFormat::Csv if is_complex(&elements) => None,
            DataFormat::Csv => match GroveCsv::new(elements)? {
                Some(csv) => return self.counted(file, csv),
                None => None,
            },
            DataFormat::Tiff => {
                let look = PictureStyle::read(
                    &*file.container,
                    &file.engine,
                    node,
                    selector,
                    &self.cancel(),
                )?;
                tiff::file(elements, look)?.map(|file| Box::new(file) as _)
            }
        };
        match content {
            Some(content) => Ok(ObjectAnswer::Content(content)),
            None => refused("Unsupported encoding for elements of this type or shape"),
        }
    }

    /// Returns a text whose bytes are counted.
    fn counted(&self, file: &FileState, units: impl TextUnits + 'static) -> Result<ObjectAnswer> {
        let too_long = || Error::limit("length of the text", limits::COUNTED_BYTES);
        let count = count_units(&units, &file.engine, &self.target.file.budget)?;
        let text = CountedFile::from_count(units, count.ok_or_else(too_long)?);
        Ok(ObjectAnswer::Content(Box::new(text)))
    }

    fn statistics(
        &self,
        file: &Arc<FileState>,
        node: &Node,
        selector: &[u8],
    ) -> Result<ObjectAnswer> {
        let elements = match self.elements(file, node, selector)? {
            Ok(elements) => elements,
            Err(refusal) => return Ok(refusal),
        };
        let cancel = self.cancel();
        if elements.dims.is_none() || !is_numeric(&elements.datatype) || is_complex(&elements) {
            let reason = "statistics need real numbers";
            return Ok(ObjectAnswer::Refused(reason.to_owned()));
        }
        cancel.require_heavy_slot()?;
        self.text(statistics(&elements, &cancel)?)
    }
}

fn is_complex(elements: &Elements) -> bool {
    elements.datatype.complex_part().is_some()
}

/// Returns the name of the source without its directory.
fn file_name(file: &FileState) -> String {
    let name = file.origin.path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn link_metadata(link: &Link, path: &[u8]) -> JsonObject {
    let mut about = JsonObject::default();
    about.add_text("name", last_segment(path));
    match &link.target {
        LinkTarget::Soft(target) => {
            about.add_text("kind", "soft_link");
            about.add_text("target_path", target);
        }
        LinkTarget::External { file, path } => {
            about.add_text("kind", "external_link");
            about.add_text("target_file", file);
            about.add_text("target_path", path);
        }
        _ => about.add_text("kind", "other"),
    }
    about
}

fn chunk_shape(array: &Array) -> String {
    match &array.chunk_shape {
        Some(shape) => format!("{shape:?}"),
        None => "null".to_owned(),
    }
}

fn shape_text(shape: &Shape) -> String {
    match shape {
        Shape::Null => "null".to_owned(),
        shape => format!("{:?}", shape.dims()),
    }
}

/// Returns the filters of a dataset as JSON. A filter of libhdf5 itself has a known name, which a
/// file need not contain.
fn filters(filters: &[Filter]) -> String {
    const NAMES: [&str; 6] = [
        "deflate",
        "shuffle",
        "fletcher32",
        "szip",
        "nbit",
        "scaleoffset",
    ];
    if filters.is_empty() {
        return "null".to_owned();
    }
    let described: Vec<String> = filters
        .iter()
        .map(|filter| {
            let place = to_usize(u64::from(filter.id)).ok();
            let known = place.and_then(|place| NAMES.get(place.checked_sub(1)?));
            let name = filter
                .name
                .as_deref()
                .or(known.copied())
                .unwrap_or_default();
            format!(
                "{{\"id\": {}, \"name\": {}}}",
                filter.id,
                json_text(name.as_bytes())
            )
        })
        .collect();
    format!("[{}]", described.join(", "))
}
