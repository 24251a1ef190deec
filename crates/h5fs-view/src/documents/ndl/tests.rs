//! Tests of NDL documents. They describe a small file with two groups, a scale, arrays over the
//! scale, and several kinds of links.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use h5fs_reader::array::Engine;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::array::{Fill, Layout, Storage};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::{Charset, Class, ReferenceKind, StringPadding};
use h5fs_reader::model::ndl::Syntax;
use h5fs_reader::model::storage::{Filter, Pipeline};
use h5fs_reader::model::{
    Array, Attribute, Container, Link, LinkStream, LinkTarget, Node, NodeKind, Reference, Shape,
};
use h5fs_reader::testing::{int, type_of};

use super::*;
use crate::text_files::streamed::StreamedText;
use crate::view::View;

/// A file whose nodes are identified by numbers. A variable-length element is one byte; a reference
/// is the number of its node.
struct NdlTestFile;

const ROOT: NodeId = NodeId::for_test(2);
const TIME: NodeId = NodeId::for_test(3);
const GROUP: NodeId = NodeId::for_test(4);
const FLUX: NodeId = NodeId::for_test(5);
const EMPTY: NodeId = NodeId::for_test(6);

fn links(group: NodeId) -> Vec<(&'static str, LinkTarget)> {
    match group {
        ROOT => vec![
            ("a: b", LinkTarget::Soft(b"/x".to_vec())),
            ("run", LinkTarget::Hard(GROUP)),
            ("time", LinkTarget::Hard(TIME)),
        ],
        GROUP => vec![
            ("flux", LinkTarget::Hard(FLUX)),
            ("up", LinkTarget::Hard(ROOT)),
            ("void", LinkTarget::Hard(EMPTY)),
        ],
        _ => vec![],
    }
}

fn string(text: &str) -> AttributeContent {
    let class = Class::String {
        padding: StringPadding::NullPadded,
        charset: Charset::Ascii,
    };
    AttributeContent {
        datatype: type_of(text.len() as u32, class),
        shape: Shape::fixed(vec![]),
        elements: text.as_bytes().into(),
    }
}

fn attributes(node: NodeId) -> Vec<(&'static str, AttributeContent)> {
    let reference = type_of(1, Class::Reference(ReferenceKind::Object));
    match node {
        ROOT => vec![("title", string("No")), ("count", numbers(&[-1], vec![]))],
        TIME => vec![("CLASS", string("DIMENSION_SCALE"))],
        FLUX => {
            let list = AttributeContent {
                datatype: type_of(1, Class::VariableLength(Box::new(reference))),
                shape: Shape::fixed(vec![2]),
                elements: [3, 0].as_slice().into(),
            };
            vec![("DIMENSION_LIST", list)]
        }
        _ => vec![],
    }
}

fn numbers(elements: &[i16], dims: Vec<u64>) -> AttributeContent {
    let bytes: Vec<u8> = elements.iter().flat_map(|e| e.to_le_bytes()).collect();
    AttributeContent {
        datatype: int(2),
        shape: Shape::fixed(dims),
        elements: bytes.into(),
    }
}

fn array(shape: Shape, elements: &[u8]) -> NodeKind {
    NodeKind::Array(Arc::new(Array {
        datatype: int(2),
        shape,
        fill: Fill::Value([5, 0].as_slice().into()),
        layout: Layout::Chunked,
        chunk_shape: None,
        pipeline: Pipeline(vec![Filter {
            id: 1,
            name: None,
            parameters: vec![4],
        }]),
        storage: Ok(Storage::Inline(elements.into())),
    }))
}

fn kind(id: NodeId) -> NodeKind {
    match id {
        TIME => {
            let (dims, max) = (vec![2], vec![None]);
            array(Shape::Simple { dims, max }, &[7, 0, 8, 0])
        }
        FLUX => array(Shape::fixed(vec![2, 3]), &[1; 12]),
        EMPTY => array(Shape::Null, &[]),
        _ => NodeKind::Group,
    }
}

struct Links(Vec<(&'static str, LinkTarget)>, usize);

impl LinkStream for Links {
    fn position(&self) -> u64 {
        self.1 as u64
    }
    fn seek(&mut self, position: u64) -> Result<()> {
        self.1 = position as usize;
        Ok(())
    }
    fn next(&mut self) -> Result<Option<Link>> {
        self.1 += 1;
        let link = self.0.get(self.1 - 1).cloned();
        Ok(link.map(|(name, target)| Link {
            name: name.as_bytes().to_vec(),
            target,
            order: None,
            is_to_group: false,
        }))
    }
}

impl Container for NdlTestFile {
    fn for_request(self: Arc<Self>, _: &RequestBudget) -> Arc<dyn Container> {
        self
    }
    fn root(&self) -> NodeId {
        ROOT
    }
    fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        Ok(Arc::new(Node {
            id,
            kind: kind(id),
            link_count: if id == ROOT { 2 } else { 1 },
            modified: None,
            comment: None,
            tag: None,
            assembled_array: None,
            error: None,
        }))
    }
    fn link(&self, group: NodeId, name: &[u8]) -> Result<Option<Link>> {
        let found = links(group).into_iter();
        let mut found = found.filter(|(own, _)| own.as_bytes() == name);
        Ok(found.next().map(|(_, target)| Link {
            name: name.to_vec(),
            target,
            order: None,
            is_to_group: false,
        }))
    }
    fn links(&self, group: NodeId) -> Result<Box<dyn LinkStream>> {
        Ok(Box::new(Links(links(group), 0)))
    }
    fn attributes(
        &self,
        id: NodeId,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        for (name, content) in attributes(id) {
            let name = name.as_bytes().to_vec();
            let content = Ok(content);
            if visit(Attribute { name, content }).is_break() {
                break;
            }
        }
        Ok(())
    }
    fn attribute(&self, id: NodeId, name: &[u8]) -> Result<Option<Attribute>> {
        let found = attributes(id).into_iter();
        let mut found = found.filter(|(own, _)| own.as_bytes() == name);
        Ok(found.next().map(|(_, content)| Attribute {
            name: name.to_vec(),
            content: Ok(content),
        }))
    }
    fn variable_length_bytes(&self, element: &[u8], _: u64) -> Result<Option<u64>> {
        Ok(Some(u64::from(element[0] != 0)))
    }
    fn read_variable_length(
        &self,
        element: &[u8],
        _: u64,
        _: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        Ok((element[0] != 0).then(|| element.to_vec()))
    }
    fn text_length(&self, element: &[u8]) -> Result<u64> {
        Ok(u64::from(element[0] != 0))
    }
    fn reference(&self, _: ReferenceKind, element: &[u8]) -> Result<Reference> {
        Ok(Reference::Object(NodeId::for_test(element[0].into())))
    }
}

fn document(node: NodeId, path: &str, values: u64) -> String {
    write_document(node, path, values, Syntax::Yaml)
}

fn write_document(node: NodeId, path: &str, values: u64, syntax: Syntax) -> String {
    let paths = |node| {
        Ok(match node {
            ROOT => Some(b"/".to_vec()),
            TIME => Some(b"/time".to_vec()),
            _ => None,
        })
    };
    let source = NdlSource {
        container: Arc::new(NdlTestFile),
        engine: Engine::new(0, 1),
        paths: Arc::new(paths),
    };
    let description = NdlDescription {
        source,
        node,
        path: path.as_bytes().to_vec(),
        options: NdlOptions { values, syntax },
    };
    let document = StreamedText::from_parts(description);
    let whole = document.read_at(0, 1 << 20).unwrap();
    document.forget();
    // Reading single bytes stops the writer after each line.
    for (at, byte) in (0..).zip(whole.iter()) {
        assert_eq!(document.read_at(at, 1).unwrap()[..], [*byte], "{at}");
    }
    assert!(document.read_at(whole.len() as u64, 1).unwrap().is_empty());
    String::from_utf8(whole.to_vec()).unwrap()
}

const TIME_TEXT: &str = "  dimcoords:
    time:
      size: null
      type: int16
      value: [7, 8]
      storage:
        size: 2
        filter: [{deflate: {level: 4}}]
        endian: little
        fillvalue: 5
      attributes:
        CLASS: DIMENSION_SCALE
";

/// The first dimension of the array is named by an unlimited coordinate, so `storage` includes its
/// length.
const FLUX_TEXT: &str = "    flux:
      shape: [/time, 3]
      type: int16
      storage:
        shape: [2, 3]
        filter: [{deflate: {level: 4}}]
        endian: little
        fillvalue: 5
      attributes:
        DIMENSION_LIST:
          shape: [2]
          type: {vlen: {base: objref}}
          value: [[/time], []]
";

#[test]
fn a_file_is_described_as_yaml() {
    let expected = format!(
        "/:
  # \"a: b\": soft link to /x
  attributes:
    title: \"No\"
    count:
      shape: []
      type: int16
      value: -1
      storage: {{endian: little}}
{TIME_TEXT}/run:
  # up: also /
  ndarrays:
{FLUX_TEXT}    void:
      # null dataspace
      shape: [0]
      type: int16
      storage:
        filter: [{{deflate: {{level: 4}}}}]
        endian: little
        fillvalue: 5
"
    );
    assert_eq!(document(ROOT, "/", 0), expected);
}

#[test]
fn an_object_is_described_with_its_coordinates() {
    let expected = format!("/run:\n  ndarrays:\n{FLUX_TEXT}/:\n{TIME_TEXT}");
    assert_eq!(document(FLUX, "/run/flux", 0), expected);
    let text = document(GROUP, "/run", 6);
    assert!(text.ends_with(TIME_TEXT));
    assert!(text.contains("      value: [[257, 257, 257], [257, 257, 257]]\n"));
}

#[test]
fn a_file_is_described_as_json() {
    let time = r#""dimcoords": {
      "time": {
        "size": null,
        "type": "int16",
        "value": [7, 8],
        "storage": {
          "size": 2,
          "filter": [{"deflate": {"level": 4}}],
          "endian": "little",
          "fillvalue": 5
        },
        "attributes": {
          "CLASS": "DIMENSION_SCALE"
        }
      }
    }"#;
    let flux = r#""flux": {
        "shape": ["/time", 3],
        "type": "int16",
        "storage": {
          "shape": [2, 3],
          "filter": [{"deflate": {"level": 4}}],
          "endian": "little",
          "fillvalue": 5
        },
        "attributes": {
          "DIMENSION_LIST": {
            "shape": [2],
            "type": {"vlen": {"base": "objref"}},
            "value": [["/time"], []]
          }
        }
      }"#;
    let expected = format!(
        r#"{{
  "/": {{
    "attributes": {{
      "title": "No",
      "count": {{
        "shape": [],
        "type": "int16",
        "value": -1,
        "storage": {{"endian": "little"}}
      }}
    }},
    {time}
  }},
  "/run": {{
    "ndarrays": {{
      {flux},
      "void": {{
        "shape": [0],
        "type": "int16",
        "storage": {{
          "filter": [{{"deflate": {{"level": 4}}}}],
          "endian": "little",
          "fillvalue": 5
        }}
      }}
    }}
  }}
}}
"#
    );
    assert_eq!(write_document(ROOT, "/", 0, Syntax::Json), expected);
    let alone = format!(
        "{{\n  \"/run\": {{\n    \"ndarrays\": {{\n      {flux}\n    }}\n  }},\n  \"/\": {{\n    {time}\n  }}\n}}\n"
    );
    assert_eq!(write_document(FLUX, "/run/flux", 0, Syntax::Json), alone);
}
