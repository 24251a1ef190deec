//! A container with a small graph of groups and datasets in memory, for tests without a file
//! format.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::array::{Fill, Layout, Storage};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::{ByteOrder, Charset, Class, ReferenceKind, StringPadding};
use h5fs_reader::model::storage::Pipeline;
use h5fs_reader::model::{
    Array, Attribute, Container, Datatype, Link, LinkStream, LinkTarget, Node, NodeId, NodeKind,
    Reference, Shape,
};
use h5fs_reader::source::read_block;

use crate::data_files::opening::open_source;
use crate::data_files::other_files::{ContainerOpener, OtherFiles};
use crate::data_files::watch::SourceWatch;
use crate::limits;
use crate::{Filesystem, Options, SourceAttributes};

/// Node ID of the root group in every fake container.
pub(super) const ROOT: u64 = 96;

/// A container with a graph that a test builds.
#[derive(Clone, Default)]
pub(super) struct FakeContainer {
    objects: Arc<BTreeMap<u64, Object>>,
    /// Whether the disk fails: while true, objects in `failing`, `costly` and `slow` cannot be
    /// read.
    pub(super) is_failing: Arc<AtomicBool>,
    /// Number of times that attributes were read.
    pub(super) attribute_reads: Arc<AtomicUsize>,
    /// Objects on a disk that fails while `is_failing` is true.
    failing: Vec<u64>,
    /// Objects that exceed the budget of a request while `is_failing` is true.
    costly: Vec<u64>,
    /// Objects that can only be read by a request in a heavy slot.
    pub(super) heavy: Vec<u64>,
    /// Objects whose reads block while `is_failing` is true.
    slow: Vec<u64>,
    /// Whether the container is remote, so that reading objects may take long.
    pub(super) is_remote: bool,
    /// Objects that a non-blocking read never finds in memory.
    absent: Vec<u64>,
    /// Number of times that objects were read.
    pub(super) looks: Arc<AtomicUsize>,
    budget: RequestBudget,
}

#[derive(Clone)]
struct Object {
    node: Result<Arc<Node>>,
    links: Vec<Link>,
    attributes: Vec<Attribute>,
    /// Position of the first link after which the group's index is damaged.
    torn: Option<usize>,
    /// Position of a link that cannot be read.
    lost: Option<usize>,
}

impl FakeContainer {
    /// Creates a graph with an empty root group.
    pub(super) fn new() -> Self {
        let mut fake = FakeContainer::default();
        fake.add_group(ROOT, 1);
        fake
    }

    pub(super) fn add_group(&mut self, id: u64, link_count: u32) {
        self.object(id, link_count, NodeKind::Group);
    }

    /// Adds a dataset with the elements `bytes`.
    pub(super) fn add_bytes(&mut self, id: u64, link_count: u32, bytes: &[u8]) {
        let storage = Ok(Storage::Inline(bytes.into()));
        let length = bytes.len() as u64;
        self.add_array(id, link_count, byte_type(), length, storage);
    }

    pub(super) fn add_array(
        &mut self,
        id: u64,
        link_count: u32,
        datatype: Datatype,
        length: u64,
        storage: Result<Storage>,
    ) {
        let array = Array {
            datatype,
            shape: Shape::fixed(vec![length]),
            fill: Fill::Zero,
            layout: Layout::Compact,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage,
        };
        self.object(id, link_count, NodeKind::Array(Arc::new(array)));
    }

    /// Adds a dataset of object references. A target of 0 is a null reference.
    pub(super) fn add_references(&mut self, id: u64, link_count: u32, targets: &[u64]) {
        let datatype = Datatype {
            size: 8,
            class: Class::Reference(ReferenceKind::Object),
        };
        let bytes: Vec<u8> = targets
            .iter()
            .flat_map(|target| target.to_le_bytes())
            .collect();
        let storage = Ok(Storage::Inline(bytes.into()));
        self.add_array(id, link_count, datatype, targets.len() as u64, storage);
    }

    /// Adds an object whose header is damaged.
    pub(super) fn add_broken(&mut self, id: u64) {
        self.add_group(id, 1);
        let object = Arc::make_mut(&mut self.objects).get_mut(&id).unwrap();
        object.node = Err(Error::corrupt("object header: bad signature", id));
    }

    /// Makes reads of the object fail while `is_failing` is true.
    pub(super) fn fail_reads(&mut self, id: u64) {
        self.failing.push(id);
    }

    /// Makes reads of the object exceed the budget of a request while `is_failing` is true.
    pub(super) fn exceed_budget(&mut self, id: u64) {
        self.costly.push(id);
    }

    /// Makes reads of the object block while `is_failing` is true.
    pub(super) fn block_reads(&mut self, id: u64) {
        self.slow.push(id);
    }

    /// Makes non-blocking reads never find the object in memory.
    pub(super) fn make_absent(&mut self, id: u64) {
        self.absent.push(id);
    }

    fn object(&mut self, id: u64, link_count: u32, kind: NodeKind) {
        let node = Node {
            id: NodeId::for_test(id),
            kind,
            link_count,
            modified: None,
            comment: None,
            tag: None,
            assembled_array: None,
            error: None,
        };
        let object = Object {
            node: Ok(Arc::new(node)),
            links: Vec::new(),
            attributes: Vec::new(),
            torn: None,
            lost: None,
        };
        Arc::make_mut(&mut self.objects).insert(id, object);
    }

    pub(super) fn add_hard_link(&mut self, group: u64, name: impl AsRef<[u8]>, node: u64) {
        self.add_link(group, name, LinkTarget::Hard(NodeId::for_test(node)));
    }

    pub(super) fn add_soft_link(&mut self, group: u64, name: &str, path: &str) {
        self.add_link(group, name, LinkTarget::Soft(path.into()));
    }

    pub(super) fn add_link(&mut self, group: u64, name: impl AsRef<[u8]>, target: LinkTarget) {
        let name = name.as_ref().to_vec();
        let links = &mut Arc::make_mut(&mut self.objects)
            .get_mut(&group)
            .unwrap()
            .links;
        links.push(Link {
            name,
            target,
            order: None,
            is_to_group: false,
        });
    }

    pub(super) fn add_external_link(&mut self, group: u64, name: &str, file: &str, path: &str) {
        let (file, path) = (file.into(), path.into());
        self.add_link(group, name, LinkTarget::External { file, path });
    }

    pub(super) fn damage_index(&mut self, group: u64, before: usize) {
        Arc::make_mut(&mut self.objects)
            .get_mut(&group)
            .unwrap()
            .torn = Some(before);
    }

    pub(super) fn remove_link(&mut self, group: u64, link: usize) {
        Arc::make_mut(&mut self.objects)
            .get_mut(&group)
            .unwrap()
            .lost = Some(link);
    }

    pub(super) fn add_attribute(&mut self, node: u64, name: &[u8], text: &[u8]) {
        let content = AttributeContent {
            datatype: Datatype {
                size: text.len() as u32,
                class: Class::String {
                    padding: StringPadding::NullPadded,
                    charset: Charset::Utf8,
                },
            },
            shape: Shape::fixed(vec![]),
            elements: text.into(),
        };
        let name = name.to_vec();
        let content = Ok(content);
        let attributes = &mut Arc::make_mut(&mut self.objects)
            .get_mut(&node)
            .unwrap()
            .attributes;
        attributes.push(Attribute { name, content });
    }

    /// Converts the graph to a filesystem with owner 1000:100 and mode 0640.
    pub(super) fn into_filesystem(self) -> Filesystem {
        self.mounted_with(&Options::default())
    }

    pub(super) fn mounted_with(self, options: &Options) -> Filesystem {
        let origin = SourceAttributes {
            path: PathBuf::from("fake.h5"),
            size: 4096,
            uid: 1000,
            gid: 100,
            mode: 0o100_640,
            modified: (1_000_000_000, 5),
        };
        Filesystem::new(Arc::new(self), origin, options)
    }

    /// Mounts the first of `files`, which finds the others at their paths in `directory`. A file of
    /// the same path is created there, whose only content is its path.
    pub(super) fn mounted_among(directory: &Path, files: Vec<(&str, FakeContainer)>) -> Filesystem {
        let directory = directory.canonicalize().unwrap();
        let source = directory.join(files[0].0);
        let mut fakes = BTreeMap::new();
        for (path, fake) in files {
            let place = directory.join(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, path).unwrap();
            fakes.insert(path.as_bytes().to_vec(), Arc::new(fake));
        }
        let open: ContainerOpener = Box::new(move |source, _, _| {
            let content = read_block(&*source, 0, source.length(), "fake")?;
            let fake = fakes.get(&content).cloned();
            let fake = fake.ok_or_else(|| Error::Usage("no fake".to_owned()))?;
            Ok(fake)
        });
        let options = Options::default();
        let others = OtherFiles::new(&source, open);
        let watch = SourceWatch::new(&source).unwrap();
        let opened = open_source(
            watch.file(),
            &watch,
            &others,
            &options,
            &CancelToken::default(),
        )
        .unwrap();
        Filesystem::build(opened, &options, others, Some(watch))
    }

    fn get(&self, id: NodeId) -> Result<&Object> {
        let object = self.objects.get(&id.number());
        object.ok_or_else(|| Error::corrupt("object header: absent", id.number()))
    }
}

pub(super) fn byte_type() -> Datatype {
    Datatype::integer(1, false, ByteOrder::Little)
}

impl Container for FakeContainer {
    fn for_request(self: Arc<Self>, budget: &RequestBudget) -> Arc<dyn Container> {
        let budget = budget.clone();
        Arc::new(FakeContainer {
            budget,
            ..FakeContainer::clone(&self)
        })
    }

    fn root(&self) -> NodeId {
        NodeId::for_test(ROOT)
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        if self.absent.contains(&id.number()) && self.budget.is_non_blocking() {
            return Err(self.budget.fail_with_wait(Box::new(|| {})));
        }
        if self.heavy.contains(&id.number()) {
            self.budget.cancel_token().require_heavy_slot()?;
        }
        while self.slow.contains(&id.number()) && self.is_failing.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        if self.is_failing.load(Ordering::SeqCst) {
            if self.failing.contains(&id.number()) {
                let error = std::io::Error::from_raw_os_error(5);
                return Err(Error::from_io(&error, "a bad disk"));
            }
            if self.costly.contains(&id.number()) {
                self.budget.spend(limits::REQUEST_METADATA + 1)?;
            }
        }
        self.get(id)?.node.clone()
    }

    fn link(&self, group: NodeId, name: &[u8]) -> Result<Option<Link>> {
        let links = &self.get(group)?.links;
        Ok(links.iter().find(|link| link.name == name).cloned())
    }

    fn links(&self, group: NodeId) -> Result<Box<dyn LinkStream>> {
        let object = self.get(group)?;
        Ok(Box::new(Listing {
            links: object.links.clone(),
            torn: object.torn,
            lost: object.lost,
            position: 0,
        }))
    }

    fn attributes(
        &self,
        id: NodeId,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut attributes = self.get(id)?.attributes.iter().cloned();
        let _ = attributes.try_for_each(visit);
        Ok(())
    }

    fn attribute(&self, id: NodeId, name: &[u8]) -> Result<Option<Attribute>> {
        self.attribute_reads.fetch_add(1, Ordering::SeqCst);
        let attributes = &self.get(id)?.attributes;
        let found = attributes.iter().find(|attribute| attribute.name == name);
        Ok(found.cloned())
    }

    fn variable_length_bytes(&self, _: &[u8], _: u64) -> Result<Option<u64>> {
        Ok(None)
    }

    fn read_variable_length(&self, _: &[u8], _: u64, _: Range<u64>) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn text_length(&self, _: &[u8]) -> Result<u64> {
        Ok(0)
    }

    /// Decodes a reference: the node ID of its object in eight bytes, or 0 for a null reference.
    fn reference(&self, _: ReferenceKind, element: &[u8]) -> Result<Reference> {
        let number = element.try_into().map_or(0, u64::from_le_bytes);
        Ok(match number {
            0 => Reference::Null,
            number => Reference::Object(NodeId::for_test(number)),
        })
    }
}

struct Listing {
    links: Vec<Link>,
    torn: Option<usize>,
    lost: Option<usize>,
    position: usize,
}

impl LinkStream for Listing {
    fn position(&self) -> u64 {
        self.position as u64
    }

    fn seek(&mut self, position: u64) -> Result<()> {
        self.position = position as usize;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Link>> {
        if self.torn == Some(self.position) {
            return Err(Error::corrupt("symbol table node: bad signature", 2048));
        }
        self.position += usize::from(self.lost == Some(self.position));
        let link = self.links.get(self.position).cloned();
        self.position += usize::from(link.is_some());
        Ok(link)
    }
}
