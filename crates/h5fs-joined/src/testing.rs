//! HDF5-like files in memory for the tests of this crate, and the files joined from them.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use h5fs_conventions::stored_type::StoredType;
use h5fs_reader::array::{CacheSize, Engine, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::array::{Array, Fill, Layout, Storage};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::attribute_value::decode_strings;
use h5fs_reader::model::datatype::{ByteOrder, ReferenceKind};
use h5fs_reader::model::link::LinksInMemory;
use h5fs_reader::model::region::Region;
use h5fs_reader::model::storage::Pipeline;
use h5fs_reader::model::{
    Attribute, Container, Datatype, Link, LinkStream, LinkTarget, Node, NodeId, NodeKind,
    Reference, Shape, paths,
};
use h5fs_reader::source::neighbours::Neighbours;

use crate::choice::JoinChoice;
use crate::container::JoinedContainer;
use crate::joined_array::JoinedArray;
use crate::members::content::{text_attribute, text_list_attribute};
use crate::members::{MemberFiles, MemberKey, OpenedMember};
use crate::paths::{Omission, Path, split_path};
use crate::{ScanOptions, join};

/// The datatype and the bytes of an array's elements.
#[derive(Clone)]
pub(crate) struct TestElements {
    pub(crate) datatype: Datatype,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn i16s(values: &[i16]) -> TestElements {
    TestElements {
        datatype: Datatype::integer(2, true, ByteOrder::Little),
        bytes: values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
    }
}

pub(crate) fn i32s(values: &[i32]) -> TestElements {
    TestElements {
        datatype: Datatype::integer(4, true, ByteOrder::Little),
        bytes: values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
    }
}

pub(crate) fn f64s(values: &[f64]) -> TestElements {
    TestElements {
        datatype: Datatype::ieee(8, ByteOrder::Little),
        bytes: values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
    }
}

/// A list of attributes: names and values.
pub(crate) type TestAttributes<'a> = &'a [(&'a str, AttributeContent)];

pub(crate) fn text(text: &str) -> AttributeContent {
    text_attribute(text.as_bytes())
}

pub(crate) fn number(elements: TestElements) -> AttributeContent {
    AttributeContent {
        datatype: elements.datatype,
        shape: Shape::fixed(Vec::new()),
        elements: elements.bytes.into(),
    }
}

/// Returns a list of attributes: `units` with a unit of days, then the attributes `others`.
pub(crate) fn days<'a>(others: &[(&'a str, AttributeContent)]) -> Vec<(&'a str, AttributeContent)> {
    let units = [("units", text("days since 2000-01-01"))];
    units.into_iter().chain(others.iter().cloned()).collect()
}

#[derive(Clone)]
enum TestObject {
    Group,
    Array(Arc<Array>),
}

/// A file in memory. Its first object is the root group.
#[derive(Clone)]
pub(crate) struct TestFile {
    objects: Vec<(TestObject, Vec<Attribute>)>,
    links: BTreeMap<(u32, Vec<u8>), LinkTarget>,
}

impl TestFile {
    pub(crate) fn new() -> Self {
        TestFile {
            objects: vec![(TestObject::Group, Vec::new())],
            links: BTreeMap::new(),
        }
    }

    /// Adds a variable at `path`. `dims` contains the name and the length of each dimension.
    pub(crate) fn with_variable(
        self,
        path: &str,
        dims: &[(&str, u64)],
        elements: TestElements,
        marks: TestAttributes<'_>,
    ) -> Self {
        let max = dims.iter().map(|(_, length)| Some(*length)).collect();
        self.array(path, (dims, max), elements, marks)
    }

    /// Adds a variable at `path` whose dimensions are unlimited.
    pub(crate) fn with_unlimited_variable(
        self,
        path: &str,
        dims: &[(&str, u64)],
        elements: TestElements,
        marks: TestAttributes<'_>,
    ) -> Self {
        let max = vec![None; dims.len()];
        self.array(path, (dims, max), elements, marks)
    }

    fn array(
        mut self,
        path: &str,
        (dims, max): (&[(&str, u64)], Vec<Option<u64>>),
        elements: TestElements,
        marks: TestAttributes<'_>,
    ) -> Self {
        let array = Array {
            datatype: elements.datatype,
            shape: Shape::Simple {
                dims: dims.iter().map(|(_, length)| *length).collect(),
                max,
            },
            fill: Fill::Zero,
            layout: Layout::Compact,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(Storage::Inline(elements.bytes.into())),
        };
        let names: Vec<Vec<u8>> = dims
            .iter()
            .map(|(name, _)| name.as_bytes().to_vec())
            .collect();
        let labels = names.iter().any(|name| !name.is_empty());
        let labels = labels.then(|| ("DIMENSION_LABELS", text_list_attribute(&names)));
        let attributes = marks.iter().cloned().chain(labels);
        let attributes = attributes.map(|(name, content)| Attribute {
            name: name.as_bytes().to_vec(),
            content: Ok(content),
        });
        let number = u32::try_from(self.objects.len()).unwrap();
        let object = TestObject::Array(Arc::new(array));
        self.objects.push((object, attributes.collect()));
        self.link(path, LinkTarget::Hard(NodeId::from_index(number)))
    }

    /// Adds attributes to the group at `path`. Creates the group if it does not exist.
    pub(crate) fn with_group_attributes(mut self, path: &str, marks: TestAttributes<'_>) -> Self {
        let group = self.group(path.as_bytes()) as usize;
        let marks = marks.iter().cloned();
        self.objects[group]
            .1
            .extend(marks.map(|(name, content)| Attribute {
                name: name.as_bytes().to_vec(),
                content: Ok(content),
            }));
        self
    }

    /// Adds a link at `path`. Creates the groups of the path that do not exist.
    pub(crate) fn link(mut self, path: &str, target: LinkTarget) -> Self {
        let (group, name) = split_path(path.as_bytes());
        let group = self.group(group);
        self.links.insert((group, name.to_vec()), target);
        self
    }

    /// Returns the object at a path.
    pub(crate) fn node(&self, path: &str) -> NodeId {
        paths::resolve_path(self, self.root(), path.as_bytes())
            .unwrap()
            .unwrap()
    }

    fn group(&mut self, path: &[u8]) -> u32 {
        if path.is_empty() {
            return 0;
        }
        let (above, name) = split_path(path);
        let above = self.group(above);
        // Not by its whole path: a path may have more links than are followed.
        if let Some(LinkTarget::Hard(node)) = self.links.get(&(above, name.to_vec())) {
            return u32::try_from(node.index()).unwrap();
        }
        let number = u32::try_from(self.objects.len()).unwrap();
        self.objects.push((TestObject::Group, Vec::new()));
        let target = LinkTarget::Hard(NodeId::from_index(number));
        self.links.insert((above, name.to_vec()), target);
        number
    }

    fn object(&self, id: NodeId) -> Result<&(TestObject, Vec<Attribute>)> {
        let object = usize::try_from(id.index())
            .ok()
            .and_then(|at| self.objects.get(at));
        object.ok_or(Error::NotFound)
    }
}

impl Container for TestFile {
    fn for_request(self: Arc<Self>, _budget: &RequestBudget) -> Arc<dyn Container> {
        self
    }

    fn root(&self) -> NodeId {
        NodeId::from_index(0)
    }

    fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        Ok(Arc::new(Node {
            kind: match &self.object(id)?.0 {
                TestObject::Group => NodeKind::Group,
                TestObject::Array(array) => NodeKind::Array(Arc::clone(array)),
            },
            error: None,
            ..Node::damaged(id, Error::NotFound)
        }))
    }

    fn link(&self, group: NodeId, name: &[u8]) -> Result<Option<Link>> {
        let group = u32::try_from(group.index()).unwrap();
        let target = self.links.get(&(group, name.to_vec()));
        Ok(target.map(|target| link(name, target)))
    }

    fn links(&self, group: NodeId) -> Result<Box<dyn LinkStream>> {
        let own = self
            .links
            .iter()
            .filter(|((of, _), _)| u64::from(*of) == group.index());
        let links = own.map(|((_, name), target)| link(name, target)).collect();
        Ok(Box::new(LinksInMemory::in_display_order(links, None)))
    }

    fn attributes(
        &self,
        id: NodeId,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        for attribute in &self.object(id)?.1 {
            if visit(attribute.clone()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn attribute(&self, id: NodeId, name: &[u8]) -> Result<Option<Attribute>> {
        let mut attributes = self.object(id)?.1.iter();
        Ok(attributes.find(|own| own.name == name).cloned())
    }

    fn variable_length_bytes(&self, _element: &[u8], _base_size: u64) -> Result<Option<u64>> {
        Ok(None)
    }

    fn read_variable_length(
        &self,
        _element: &[u8],
        _base_size: u64,
        _part: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn text_length(&self, _element: &[u8]) -> Result<u64> {
        Ok(0)
    }

    fn reference(&self, _kind: ReferenceKind, _element: &[u8]) -> Result<Reference> {
        Ok(Reference::Null)
    }

    fn region(&self, _element: &[u8]) -> Result<Option<Region>> {
        Ok(None)
    }
}

fn link(name: &[u8], target: &LinkTarget) -> Link {
    Link {
        name: name.to_vec(),
        target: target.clone(),
        order: None,
        is_to_group: false,
    }
}

struct TestFiles {
    names: Vec<Path>,
    files: Vec<TestFile>,
    others: Vec<(&'static str, TestFile)>,
}

impl MemberFiles for TestFiles {
    fn member_paths(&self) -> &[Path] {
        &self.names
    }

    fn open(&self, number: usize, _: &CancelToken) -> Result<OpenedMember> {
        Ok(opened_member(&self.files[number]))
    }

    fn reopen(&self, number: usize) -> Result<OpenedMember> {
        self.open(number, &CancelToken::default())
    }

    fn weight(&self) -> u64 {
        0
    }

    fn can_omit_unreadable(&self) -> bool {
        false
    }

    fn open_linked(
        &self,
        _from: &OpenedMember,
        name: &[u8],
        _: &CancelToken,
    ) -> Result<Option<OpenedMember>> {
        let mut others = self.others.iter();
        let found = others.find(|(own, _)| own.as_bytes() == name);
        Ok(found.map(|(_, file)| opened_member(file)))
    }

    fn cache_key(&self, _number: usize) -> Option<MemberKey> {
        None
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn should_verify(&self) -> bool {
        false
    }

    fn report_start(&self) {}

    fn report_scanned(&self, _was_known: bool) {}
}

fn opened_member(file: &TestFile) -> OpenedMember {
    OpenedMember {
        container: Arc::new(file.clone()),
        neighbours: Arc::new(Neighbours::unavailable()),
    }
}

/// A joined file, with the list of omissions that the join reported.
pub(crate) struct JoinedTest {
    joined: Arc<JoinedContainer>,
    engine: Arc<Engine>,
    omissions: Vec<Omission>,
}

/// Joins files with these names by their coordinates.
pub(crate) fn join_files(files: Vec<(&str, TestFile)>) -> JoinedTest {
    joined_array(b"joined", files, Vec::new())
}

/// Joins files as the name of a joined directory says, for example `joined[*,join=file]`.
pub(crate) fn join_as_named(choice: &str, files: Vec<(&str, TestFile)>) -> JoinedTest {
    joined_array(choice.as_bytes(), files, Vec::new())
}

/// Joins `files`, whose links may lead to the files `others`.
pub(crate) fn join_with_link_targets(
    files: Vec<(&str, TestFile)>,
    others: Vec<(&'static str, TestFile)>,
) -> JoinedTest {
    joined_array(b"joined", files, others)
}

fn joined_array(
    choice: &[u8],
    files: Vec<(&str, TestFile)>,
    others: Vec<(&'static str, TestFile)>,
) -> JoinedTest {
    let (names, files) = files.into_iter().unzip::<_, _, Vec<&str>, Vec<TestFile>>();
    let names = names
        .into_iter()
        .map(|name| name.as_bytes().into())
        .collect();
    let engine = Engine::new(CacheSize::from(1 << 20), 1);
    let files = TestFiles {
        names,
        files,
        others,
    };
    let choice = JoinChoice::parse(choice).unwrap();
    let scanning = ScanOptions {
        threads: 1,
        cache_file: None,
        cancel: &CancelToken::default(),
    };
    let (joined, omissions) = join(&engine, Box::new(files), &choice, &scanning).unwrap();
    JoinedTest {
        joined,
        engine,
        omissions,
    }
}

impl JoinedTest {
    fn node(&self, path: &str) -> Option<Arc<Node>> {
        let id =
            paths::resolve_path(&*self.joined, self.joined.root(), path.as_bytes()).unwrap()?;
        Some(self.joined.node(id).unwrap())
    }

    fn array(&self, path: &str) -> Arc<Array> {
        let node = self.node(path);
        let array = node.as_ref().and_then(|node| node.array());
        Arc::clone(array.unwrap_or_else(|| panic!("no {path}: {:?}", self.omissions)))
    }

    /// Returns the names of the objects in the root group.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut links = self.joined.links(self.joined.root()).unwrap();
        let links = std::iter::from_fn(|| links.next().unwrap());
        links
            .map(|link| String::from_utf8(link.name).unwrap())
            .collect()
    }

    /// Returns the joined array at `path`.
    pub(crate) fn joined_array(&self, path: &str) -> &JoinedArray {
        let node = self
            .node(path)
            .unwrap_or_else(|| panic!("no {path}: {:?}", self.omissions));
        self.joined.joined_array(node.id).unwrap()
    }

    pub(crate) fn dims(&self, path: &str) -> Vec<u64> {
        self.array(path).shape.dims().to_vec()
    }

    pub(crate) fn datatype(&self, path: &str) -> Datatype {
        self.array(path).datatype.clone()
    }

    /// Returns all elements of a numeric array as floats.
    pub(crate) fn numbers(&self, path: &str) -> Vec<f64> {
        let array = self.array(path);
        let (size, length) = (array.datatype.size as usize, array.byte_length().unwrap());
        let stored = StoredType::new(&array.datatype).unwrap();
        let reader = Reader::new(&self.engine, array).unwrap();
        let bytes = reader.read(0, usize::try_from(length).unwrap()).unwrap();
        let elements = bytes.chunks_exact(size);
        elements
            .map(|element| stored.read_number(element).as_f64())
            .collect()
    }

    /// Returns the texts of the attribute `name`, or `None` if the attribute is missing.
    pub(crate) fn texts(&self, path: &str, name: &str) -> Option<Vec<String>> {
        let id = self.node(path)?.id;
        let content = self
            .joined
            .attribute(id, name.as_bytes())
            .unwrap()?
            .content
            .unwrap();
        let texts = decode_strings(&*self.joined, &content.datatype, &content.elements).unwrap();
        let texts = texts.into_iter().map(|text| {
            let text = String::from_utf8(text).unwrap();
            text.trim_end_matches(['\0', ' ']).to_owned()
        });
        Some(texts.collect())
    }

    pub(crate) fn has_attribute(&self, path: &str, name: &str) -> bool {
        let id = self.node(path).unwrap().id;
        self.joined
            .attribute(id, name.as_bytes())
            .unwrap()
            .is_some()
    }

    /// Returns the reason why the object at `path` is omitted. Checks that an attribute of its
    /// group lists the object as absent.
    pub(crate) fn reason(&self, path: &str) -> String {
        let (group, name) = split_path(path.as_bytes());
        let group = String::from_utf8(group.to_vec()).unwrap();
        let absent = self.texts(&group, "_h5fs_absent").unwrap_or_default();
        let name = String::from_utf8(name.to_vec()).unwrap();
        assert!(
            absent.contains(&name),
            "{path}: {absent:?}, {:?}",
            self.omissions
        );
        assert!(self.node(path).is_none(), "{path}");
        self.reported_reason(path)
    }

    /// Returns the reported reason for an object, which need not be absent.
    pub(crate) fn reported_reason(&self, path: &str) -> String {
        let what = format!("/{path}");
        let omission = self
            .omissions
            .iter()
            .find(|omission| omission.subject == what);
        omission
            .unwrap_or_else(|| panic!("{path}: {:?}", self.omissions))
            .reason
            .clone()
    }

    /// Returns all reported omissions as text.
    pub(crate) fn omissions(&self) -> Vec<String> {
        let lines = self.omissions.iter();
        lines
            .map(|omissions| format!("{}: {}", omissions.subject, omissions.reason))
            .collect()
    }
}
