//! Tests of the lengths of dimensions, in a file that contains only scales and variables.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

use h5fs_reader::error::Error;
use h5fs_reader::model::array::{Fill, Layout};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::{Charset, Datatype, StringPadding};
use h5fs_reader::model::{Attribute, Link, LinkStream};
use h5fs_reader::testing::{int, member, type_of};

use super::*;
use crate::limits;

const SCALE: u8 = 2;

/// A reference to a deleted object. In these tests, a reference is one byte: a node's number, or 0
/// for null.
const DANGLING: u8 = 0xFF;
const UNREADABLE: u8 = 0xFE;

/// A container of arrays with attributes. Nodes that are not in `nodes` are damaged.
#[derive(Default)]
struct File {
    nodes: HashMap<NodeId, Arc<Node>>,
    attributes: HashMap<(NodeId, Vec<u8>), AttributeContent>,
    looks: AtomicUsize,
}

fn array(dims: &[u64]) -> Array {
    let max = vec![None; dims.len()];
    let dims = dims.to_vec();
    Array {
        datatype: int(1),
        shape: Shape::Simple { dims, max },
        fill: Fill::Zero,
        layout: Layout::Chunked,
        chunk_shape: None,
        pipeline: Pipeline::default(),
        storage: Ok(Storage::Fill),
    }
}

fn reference() -> Datatype {
    type_of(1, Class::Reference(ReferenceKind::Object))
}

fn node(id: u8, kind: NodeKind) -> Arc<Node> {
    Arc::new(Node {
        kind,
        error: None,
        ..Node::damaged(NodeId::for_test(id.into()), Error::NotFound)
    })
}

impl File {
    /// Creates a file with the scale of a dimension of length two. `users` is the scale's
    /// `REFERENCE_LIST`: pairs of a variable and the index of its dimension.
    fn with_users(users: &[[u8; 2]]) -> Self {
        let mut file = File::default();
        file.variable(SCALE, &[2], &[]);
        let (padding, charset) = (StringPadding::NullPadded, Charset::Ascii);
        let class = type_of(15, Class::String { padding, charset });
        file.add_attribute(SCALE, "CLASS", class, b"DIMENSION_SCALE");
        let members = vec![
            member("dataset", 0, reference()),
            member("dimension", 1, int(1)),
        ];
        let list = type_of(2, Class::Compound(members));
        file.add_attribute(SCALE, "REFERENCE_LIST", list, &users.concat());
        file
    }

    /// Adds a variable with the dimensions `dims`, whose `DIMENSION_LIST` has the scales `scales`.
    fn variable(&mut self, id: u8, dims: &[u64], scales: &[u8]) {
        let kind = NodeKind::Array(Arc::new(array(dims)));
        self.nodes
            .insert(NodeId::for_test(id.into()), node(id, kind));
        if !scales.is_empty() {
            self.add_attribute(id, "DIMENSION_LIST", reference(), scales);
        }
    }

    fn add_attribute(&mut self, id: u8, name: &str, datatype: Datatype, elements: &[u8]) {
        let shape = Shape::fixed(vec![elements.len() as u64 / u64::from(datatype.size)]);
        let elements = elements.into();
        let content = AttributeContent {
            datatype,
            shape,
            elements,
        };
        let id = NodeId::for_test(id.into());
        self.attributes.insert((id, name.into()), content);
    }

    /// Wraps the file in [`PaddedContainer`]. Links lead to all nodes except those in `deleted`.
    fn padded(self, deleted: &'static [u8]) -> (Arc<File>, PaddedContainer) {
        let file = Arc::new(self);
        let lengths = Arc::new(DimensionLengths::new(1 << 10));
        let is_deleted = |node| {
            deleted
                .iter()
                .any(|&id| NodeId::for_test(id.into()) == node)
        };
        let is_linked = Arc::new(move |node| Ok(!is_deleted(node)));
        let inner: Arc<dyn Container> = file.clone();
        let budget = RequestBudget::default();
        (
            file,
            PaddedContainer::new(inner, Engine::new(0, 1), budget, lengths, is_linked),
        )
    }

    /// Returns the length of the first dimension of the variable `id` after it was extended.
    fn length(self, id: u8, deleted: &'static [u8]) -> Result<u64> {
        let node = self.padded(deleted).1.node(NodeId::for_test(id.into()))?;
        Ok(node.array().unwrap().shape.dims()[0])
    }
}

impl Container for File {
    fn for_request(self: Arc<Self>, _: &RequestBudget) -> Arc<dyn Container> {
        self
    }
    fn root(&self) -> NodeId {
        NodeId::for_test(1)
    }
    fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let node = self.nodes.get(&id).cloned();
        node.ok_or_else(|| Error::corrupt("object header", id.number()))
    }
    fn link(&self, _: NodeId, _: &[u8]) -> Result<Option<Link>> {
        Ok(None)
    }
    fn links(&self, _: NodeId) -> Result<Box<dyn LinkStream>> {
        Err(Error::NotFound)
    }
    fn attributes(&self, _: NodeId, _: &mut dyn FnMut(Attribute) -> ControlFlow<()>) -> Result<()> {
        Ok(())
    }
    fn attribute(&self, id: NodeId, name: &[u8]) -> Result<Option<Attribute>> {
        let content = self.attributes.get(&(id, name.to_vec())).cloned();
        Ok(content.map(|content| Attribute {
            name: name.to_vec(),
            content: Ok(content),
        }))
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
    fn reference(&self, _: ReferenceKind, element: &[u8]) -> Result<Reference> {
        match element[0] {
            0 => Ok(Reference::Null),
            DANGLING => Ok(Reference::Dangling(255)),
            UNREADABLE => Err(Error::corrupt("a reference", None)),
            number => Ok(Reference::Object(NodeId::for_test(number.into()))),
        }
    }
}

/// A writer appends to one variable after another. An empty variable, or a variable that is more
/// than one record short, does not count as incomplete.
#[test]
fn an_incomplete_record_is_not_shown() {
    assert_eq!(complete_record_count(Some(vec![5, 6, 6, 0])), Some(5));
    assert_eq!(complete_record_count(Some(vec![6, 6])), Some(6));
    assert_eq!(complete_record_count(Some(vec![3, 6])), Some(6));
    assert_eq!(complete_record_count(Some(vec![0, 1])), Some(1));
    assert_eq!(complete_record_count(Some(Vec::new())), Some(0));
    assert_eq!(complete_record_count(None), None);
    assert!(
        have_equal_lengths(&[4, 0, 4]) && have_equal_lengths(&[]) && !have_equal_lengths(&[4, 5])
    );
}

#[test]
fn an_unreadable_variable_is_an_error() {
    let damaged = || {
        let mut file = File::with_users(&[[3, 0], [4, 0]]);
        file.variable(4, &[5], &[SCALE]);
        file
    };
    assert!(matches!(
        damaged().length(4, &[]),
        Err(Error::Corrupt { .. })
    ));
    // The variable was deleted, and its address holds something else.
    assert_eq!(damaged().length(4, &[3]), Ok(5));
    let mut file = damaged();
    file.variable(3, &[9], &[UNREADABLE]);
    assert!(matches!(file.length(4, &[]), Err(Error::Corrupt { .. })));
    let mut file = File::with_users(&[[UNREADABLE, 0], [4, 0]]);
    file.variable(4, &[5], &[SCALE]);
    assert!(matches!(file.length(4, &[]), Err(Error::Corrupt { .. })));
}

#[test]
fn objects_that_do_not_use_the_scale_are_skipped() {
    let mut file = File::with_users(&[[0, 0], [DANGLING, 0], [3, 0], [4, 0], [5, 0], [6, 2]]);
    file.nodes
        .insert(NodeId::for_test(3), node(3, NodeKind::Group));
    file.variable(4, &[5], &[SCALE]);
    file.variable(5, &[9], &[6]);
    file.variable(6, &[9], &[SCALE]);
    assert_eq!(file.length(4, &[]), Ok(5));
    let mut file = File::with_users(&[[3, 0], [4, 0]]);
    file.variable(3, &[9], &[SCALE]);
    file.variable(4, &[5], &[SCALE]);
    assert_eq!(file.length(4, &[]), Ok(9));
}

#[test]
fn each_variable_is_examined_once_in_one_dimension() {
    let mut file = File::with_users(&[[3, 1]; 1000]);
    // The scale of the other dimension cannot be read.
    file.variable(3, &[9, 5], &[UNREADABLE, SCALE]);
    let (file, padded) = file.padded(&[]);
    let scale = padded.node(NodeId::for_test(SCALE.into())).unwrap();
    assert_eq!(scale.array().unwrap().shape.dims(), [5]);
    assert_eq!(file.looks.load(Ordering::Relaxed), 3);
}

#[test]
fn the_number_of_listed_variables_is_limited() {
    let listed = |count| File::with_users(&vec![[0, 0]; count]).length(SCALE, &[]);
    assert_eq!(listed(limits::MARKS), Ok(2));
    assert!(matches!(
        listed(limits::MARKS + 1),
        Err(Error::Limit { .. })
    ));
}

#[test]
fn examined_variables_are_charged_to_the_request() {
    let mut file = File::with_users(&[[3, 0]]);
    file.variable(3, &[9], &[SCALE]);
    let (_, padded) = file.padded(&[]);
    let padded: Arc<dyn Container> = Arc::new(padded);
    let request = padded.for_request(&RequestBudget::new(VARIABLE_COST - 1));
    let spent = request.node(NodeId::for_test(SCALE.into()));
    assert!(matches!(spent, Err(Error::BudgetExceeded { .. })));
}

/// Expected: the values that netCDF4-python reads after the two stored numbers of a variable of
/// each type, in a file without fill values.
#[test]
fn a_missing_fill_value_is_replaced_by_the_netcdf_default() {
    use h5fs_reader::model::datatype::ByteOrder;
    let of = |datatype: Datatype| {
        let array = Array {
            datatype,
            ..array(&[0])
        };
        match pad_array(&Arc::new(array), vec![1]).fill {
            Fill::Value(bytes) => bytes.to_vec(),
            Fill::Zero => Vec::new(),
        }
    };
    let integer = |size, signed| of(Datatype::integer(size, signed, ByteOrder::Big));
    assert_eq!(integer(1, true), (-127_i8).to_be_bytes());
    assert_eq!(integer(2, true), (-32_767_i16).to_be_bytes());
    assert_eq!(integer(4, true), (-2_147_483_647_i32).to_be_bytes());
    assert_eq!(
        integer(8, true),
        (-9_223_372_036_854_775_806_i64).to_be_bytes()
    );
    assert_eq!(integer(1, false), [255]);
    assert_eq!(integer(2, false), 65_535_u16.to_be_bytes());
    assert_eq!(integer(4, false), u32::MAX.to_be_bytes());
    assert_eq!(
        integer(8, false),
        18_446_744_073_709_551_614_u64.to_be_bytes()
    );
    let single = of(Datatype::ieee(4, ByteOrder::Little));
    assert_eq!(single, 9.969_21e36_f32.to_le_bytes());
    let double = of(Datatype::ieee(8, ByteOrder::Little));
    assert_eq!(double, 9.969_209_968_386_869e36_f64.to_le_bytes());
    assert!(of(reference()).is_empty());
}
