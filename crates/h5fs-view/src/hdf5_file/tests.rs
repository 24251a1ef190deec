//! The computed file is read by the reader again, and must say what its source says.

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use h5fs_reader::array::{Engine, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::file::{Dataset, File, Group, Object, Values};
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::datatype::ReferenceKind;
use h5fs_reader::model::{
    Attribute, Container, Link, LinkStream, LinkTarget, LinksInMemory, Node, NodeId, NodeKind,
    Reference,
};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::hdf5_file::{Hdf5File, Hdf5Plan, Hdf5Source, RootGroup};
use crate::limits;
use crate::view::View;

const CLIMATE: &str = "../../src/cli/text/climate.h5";

fn source_of(container: &Arc<dyn Container>) -> Hdf5Source {
    let engine = Engine::new(8 << 20, 2);
    Hdf5Source {
        container: Arc::clone(container),
        open_array: Arc::new(move |_, array| {
            Ok(Arc::new(Reader::new(&engine, Arc::clone(array))?))
        }),
    }
}

/// Computes the file of the whole file at `path`.
fn computed(path: &Path) -> Hdf5File {
    let file = File::open(path).unwrap();
    let source = source_of(file.container());
    let root = RootGroup::Group(source.container.root());
    let plan = Hdf5Plan::new(&source, &root, &RequestBudget::default()).unwrap();
    Hdf5File::new(Arc::new(plan), source)
}

fn whole(file: &Hdf5File) -> Vec<u8> {
    let length = to_usize(file.length()).unwrap();
    file.read_at(0, length).unwrap().to_vec()
}

fn names(group: &Group) -> Vec<Vec<u8>> {
    let links = group.links().unwrap();
    let mut names: Vec<Vec<u8>> = links.map(|link| link.unwrap().name).collect();
    names.sort();
    names
}

fn assert_same_group(source: &Group, copy: &Group) {
    assert_eq!(names(source), names(copy));
    for name in names(source) {
        match (source.get(&name).unwrap(), copy.get(&name).unwrap()) {
            (Object::Group(source), Object::Group(copy)) => assert_same_group(&source, &copy),
            (Object::Dataset(source), Object::Dataset(copy)) => {
                assert_eq!(source.shape(), copy.shape());
                assert_same_elements(&source.read().unwrap(), &copy.read().unwrap());
                let units = |dataset: &Dataset| {
                    let units = dataset.attribute("units").unwrap();
                    units.map(|units| units.texts().unwrap())
                };
                assert_eq!(units(&source), units(&copy));
            }
            _ => panic!("{}: another kind of object", name.escape_ascii()),
        }
    }
}

fn assert_same_elements(source: &Values, copy: &Values) {
    assert_eq!(source.datatype, copy.datatype);
    match source.texts() {
        Ok(texts) => assert_eq!(texts, copy.texts().unwrap()),
        Err(_) => assert_eq!(source.bytes, copy.bytes),
    }
}

#[test]
fn the_computed_file_has_what_the_source_has() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.h5");
    std::fs::write(&copy, whole(&computed(CLIMATE.as_ref()))).unwrap();
    let (source, copied) = (File::open(CLIMATE).unwrap(), File::open(&copy).unwrap());
    assert_same_group(&source.root().unwrap(), &copied.root().unwrap());
    // The computed file of a computed file is the same file.
    assert_eq!(whole(&computed(&copy)), std::fs::read(&copy).unwrap());
}

#[test]
fn any_range_is_that_of_the_whole() {
    let file = computed(CLIMATE.as_ref());
    let all = whole(&file);
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    for _ in 0..200 {
        let start = random(file.length() + 10);
        let length = to_usize(random(70_000)).unwrap();
        let read = file.read_at(start, length).unwrap();
        let start = to_usize(start).unwrap().min(all.len());
        let end = (start + length).min(all.len());
        assert!(read[..] == all[start..end], "{start}..{end}");
    }
}

/// The number of the group of [`ManyGroups`] whose links cannot be read.
const DAMAGED: u32 = 7;

/// A file whose root has this many empty groups, each with an attribute of this many bytes.
struct ManyGroups {
    groups: u32,
    attribute_bytes: usize,
}

impl Container for ManyGroups {
    fn for_request(self: Arc<Self>, _: &RequestBudget) -> Arc<dyn Container> {
        self
    }

    fn root(&self) -> NodeId {
        NodeId::from_index(0)
    }

    fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        Ok(Arc::new(Node {
            kind: NodeKind::Group,
            error: None,
            ..Node::damaged(id, Error::NotFound)
        }))
    }

    fn link(&self, _: NodeId, _: &[u8]) -> Result<Option<Link>> {
        Ok(None)
    }

    fn links(&self, group: NodeId) -> Result<Box<dyn LinkStream>> {
        if group == NodeId::from_index(DAMAGED) {
            return Err(Error::corrupt("symbol table", None));
        }
        let count = if group == self.root() { self.groups } else { 0 };
        let links = (1..=count).map(|number| Link {
            name: number.to_string().into_bytes(),
            target: LinkTarget::Hard(NodeId::from_index(number)),
            order: None,
            is_to_group: true,
        });
        Ok(Box::new(LinksInMemory::new(
            Arc::new(links.collect()),
            None,
        )))
    }

    fn attributes(
        &self,
        _: NodeId,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        if self.attribute_bytes > 0 {
            let name = vec![b'a'; self.attribute_bytes];
            let content = Err(Error::NotFound);
            let _ = visit(Attribute { name, content });
        }
        Ok(())
    }

    fn attribute(&self, _: NodeId, _: &[u8]) -> Result<Option<Attribute>> {
        Ok(None)
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

    fn reference(&self, _: ReferenceKind, _: &[u8]) -> Result<Reference> {
        Ok(Reference::Null)
    }
}

fn plan_of_many(groups: u32, attribute_bytes: usize) -> Result<Hdf5Plan> {
    let many = ManyGroups {
        groups,
        attribute_bytes,
    };
    let container: Arc<dyn Container> = Arc::new(many);
    let source = source_of(&container);
    let root = RootGroup::Group(container.root());
    Hdf5Plan::new(&source, &root, &RequestBudget::default())
}

fn exceeded(plan: &Result<Hdf5Plan>) -> Option<u64> {
    match plan {
        Err(Error::Limit { max, .. }) => Some(*max),
        _ => None,
    }
}

#[test]
fn a_file_of_too_much_metadata_is_refused() {
    const MOST: u64 = limits::HDF5_FILE_METADATA;
    let bytes = to_usize(MOST / 64).unwrap();
    assert!(plan_of_many(16, bytes).is_ok());
    assert_eq!(exceeded(&plan_of_many(128, bytes)), Some(MOST));
    assert!(plan_of_many(1000, 0).is_ok());
    assert_eq!(exceeded(&plan_of_many(100_000, 0)), Some(MOST));
}

#[test]
fn a_damaged_group_is_told_and_the_others_are_found() {
    let groups = 300;
    let container: Arc<dyn Container> = Arc::new(ManyGroups {
        groups,
        attribute_bytes: 0,
    });
    let source = source_of(&container);
    let root = RootGroup::Group(container.root());
    let plan = Hdf5Plan::new(&source, &root, &RequestBudget::default()).unwrap();
    let file = Hdf5File::new(Arc::new(plan), source);
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.h5");
    std::fs::write(&copy, whole(&file)).unwrap();
    assert_eq!(to_u64(std::fs::read(&copy).unwrap().len()), file.length());
    let copied = File::open(&copy).unwrap();
    assert_eq!(names(&copied.root().unwrap()).len(), groups as usize);
    assert!(matches!(copied.get("/299").unwrap(), Object::Group(_)));
    let absent = copied.root().unwrap().attribute("_h5fs_absent").unwrap();
    assert_eq!(
        absent.unwrap().texts().unwrap(),
        ["/7: symbol table (corrupt)"]
    );
}
