//! The trees of views beneath `.h5fs`: which objects have a file in them, and what it holds.

use std::sync::Arc;

use crate::array::Reader;
use crate::array::vlen::VariableLength;
use crate::error::{Error, Result, if_lasting};
use crate::fs::inode::{FIRST_VIEW, Tree};
use crate::fs::live::Live;
use crate::model::extras::Mask;
use crate::model::selection::Selector;
use crate::model::{Array, Node, NodeId, NodeKind};
use crate::view::View;
use crate::view::chunks::ChunkLines;
use crate::view::csv::{self, Csv};
use crate::view::elements::Elements;
use crate::view::json::{Json, SharedPaths};
use crate::view::ndl::{self, Description};
use crate::view::npy::{self, Npy};
use crate::view::raw::Raw;
use crate::view::streamed::{ResumableText, Streamed};
use crate::view::text::Text;
use crate::view::variable_length::Offsets;
use crate::wire::to_u64;

/// A tree of views. It has the directories of the source's tree, and files for some of the objects.
pub(super) struct ViewTree {
    /// Its name beneath `.h5fs`.
    pub(super) name: &'static [u8],
    /// What an object's name has added to it.
    pub(super) suffix: &'static [u8],
    /// Whether an object has a directory, with a file for each of its attributes, instead of a file.
    pub(super) of_attributes: bool,
    /// The size of an object's file; `None` where it has none.
    size: fn(&Live, &Node) -> Result<Option<Size>>,
    open: fn(&Subject<'_>) -> Result<Box<dyn View>>,
}

/// How long a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// That many bytes.
    Exact(u64),
    /// Only its end tells.
    Streamed,
}

/// What a file is a view of.
pub(super) struct Subject<'a> {
    pub(super) live: &'a Arc<Live>,
    pub(super) node: &'a Node,
    /// The object's path, names as in the file.
    pub(super) path: Vec<u8>,
    /// Checks what holds an object's elements, where that is wanted before they are served.
    pub(super) verify: &'a dyn Fn(NodeId) -> Result<()>,
}

/// All trees, in the order in which they are listed.
pub(super) const TREES: &[ViewTree] = &[
    ViewTree {
        name: b"assembled",
        suffix: b"",
        of_attributes: false,
        size: |_, node| match &node.assembled {
            Some(array) => array.bytes().map(|bytes| Some(Size::Exact(bytes))),
            None => node.passing().cloned().map_or(Ok(None), Err),
        },
        open: |subject| {
            let array = subject.array()?;
            match array.bytes()? {
                0 => shown(Some(Text::new(Vec::new()))),
                _ => shown(Some(Raw::new(
                    subject.live.reader(subject.node.id, &array)?,
                ))),
            }
        },
    },
    ViewTree {
        name: b"attrs",
        suffix: b"",
        of_attributes: true,
        size: |_, _| Ok(None),
        open: |_| Err(Error::NotFound),
    },
    ViewTree {
        name: b"chunks",
        suffix: b".tsv",
        of_attributes: false,
        size: |_, node| {
            Ok(node
                .array()
                .and_then(|array| array.chunk_shape.as_ref().map(|_| Size::Streamed)))
        },
        open: |subject| streamed(ChunkLines::new(subject.array()?)?),
    },
    ViewTree {
        name: b"csv",
        suffix: b".csv",
        of_attributes: false,
        size: |_, node| exact(node, csv::length),
        open: |subject| shown(Csv::new(subject.elements()?)?),
    },
    ViewTree {
        name: b"json",
        suffix: b".json",
        of_attributes: false,
        size: |_, node| Ok(node.array().map(|_| Size::Streamed)),
        open: |subject| {
            let container = Arc::clone(&subject.live.container);
            let engine = Arc::clone(&subject.live.engine);
            let json = Json::new(subject.elements()?, engine, container, subject.paths())?;
            streamed(Some(json))
        },
    },
    ViewTree {
        name: b"mask",
        suffix: b"",
        of_attributes: false,
        size: |live, node| {
            Ok(match mask_of(live, node)? {
                Some(Masked::Number(text)) => Some(Size::Exact(to_u64(text.len()))),
                Some(Masked::Array(array)) => {
                    if_known(&array)?;
                    Some(Size::Exact(array.bytes()?))
                }
                None => None,
            })
        },
        open: |subject| match subject.mask()? {
            Some(Masked::Number(text)) => shown(Some(Text::new(text))),
            Some(Masked::Array(array)) if array.bytes()? == 0 => shown(Some(Text::new(Vec::new()))),
            Some(Masked::Array(array)) => {
                let reader = Reader::new(&subject.live.engine, array)?;
                shown(Some(Raw::new(Arc::new(reader))))
            }
            None => Err(Error::NotFound),
        },
    },
    ViewTree {
        name: NDL,
        suffix: b".yaml",
        of_attributes: false,
        size: |_, node| {
            let described = matches!(node.kind, NodeKind::Array(_) | NodeKind::Group);
            Ok(described.then_some(Size::Streamed))
        },
        open: |subject| {
            let source = ndl::Source {
                container: Arc::clone(&subject.live.container),
                engine: Arc::clone(&subject.live.engine),
                paths: subject.paths(),
            };
            streamed(Some(Description {
                source,
                node: subject.node.id,
                path: subject.path.clone(),
                options: ndl::Options::default(),
            }))
        },
    },
    ViewTree {
        name: NPY,
        suffix: b".npy",
        of_attributes: false,
        size: |_, node| exact(node, npy::length),
        open: |subject| shown(Npy::new(subject.elements()?)?),
    },
    ViewTree {
        name: b"offsets",
        suffix: b"",
        of_attributes: false,
        size: |live, node| match node.array() {
            Some(array) if VariableLength::is_made_of(array) => {
                let array = live.variable_length(node.id, array)?;
                Ok(Some(Size::Exact(Offsets::size(&array))))
            }
            _ => Ok(None),
        },
        open: |subject| {
            let array = subject.array()?;
            let array = subject.live.variable_length(subject.node.id, &array)?;
            shown(Some(Offsets::new(array)))
        },
    },
];

const NDL: &[u8] = b"ndl";
const NPY: &[u8] = b"npy";

/// The name of the document that describes the whole file.
pub(super) const DOCUMENT: &[u8] = b"ndl.yaml";

impl ViewTree {
    /// The tree with this name.
    fn named(name: &[u8]) -> Option<(Tree, &'static ViewTree)> {
        all().find(|(_, tree)| tree.name == name)
    }

    /// The tree whose directories or files have numbers of `number`.
    pub(super) fn of_number(number: Tree) -> Option<&'static ViewTree> {
        let place = number.checked_sub(FIRST_VIEW)? / 2;
        TREES.get(usize::from(place))
    }

    /// The number, as a tree, of the documents that describe objects.
    pub(super) fn documents() -> Option<Tree> {
        Self::named(NDL).map(|(number, _)| files(number))
    }

    /// Whether it has files of selections, too.
    pub(super) fn has_selections(&self) -> bool {
        self.name == NPY
    }

    /// The size of the object's file; `None` where it has none.
    ///
    /// # Errors
    /// As that cannot be found out now.
    pub(super) fn size(&self, live: &Live, node: &Node) -> Result<Option<Size>> {
        if_lasting((self.size)(live, node)).map(Option::flatten)
    }

    /// The object's file, opened.
    pub(super) fn open(&self, subject: &Subject<'_>) -> Result<Box<dyn View>> {
        (self.open)(subject)
    }
}

/// Fails where the array cannot be read now: its block may say how long it is.
fn if_known(array: &Array) -> Result<()> {
    match &array.storage {
        Err(error) if error.is_passing() => Err(error.clone()),
        _ => Ok(()),
    }
}

/// All trees, each with the number of its directories.
pub(super) fn all() -> impl Iterator<Item = (Tree, &'static ViewTree)> {
    (FIRST_VIEW..).step_by(2).zip(TREES)
}

/// The number of the files in the tree whose directories have `number`.
pub(super) fn files(number: Tree) -> Tree {
    number + 1
}

/// The part that `selector` names of an array as a NumPy file.
///
/// # Errors
/// `NotFound` where there is none.
pub(super) fn selected_npy(elements: Elements) -> Result<Box<dyn View>> {
    shown(Npy::new(elements)?)
}

/// The part that `selector` names of an array of fixed-size elements.
///
/// # Errors
/// `NotFound` where there is none.
pub(super) fn select(live: &Live, node: &Node, selector: &Selector) -> Result<Elements> {
    let array = node
        .array()
        .filter(|array| !VariableLength::is_made_of(array));
    let array = array.ok_or(Error::NotFound)?;
    if_known(array)?;
    // Before anything is read: what is not there must not look damaged.
    selector.select(&array.datatype, &array.shape)?;
    Elements::selected(live.reader(node.id, array)?, selector)
}

/// What marks the missing elements of an ndarray, as a file shows it.
enum Masked {
    /// The text of the number that they are equal to.
    Number(Vec<u8>),
    /// An array that is not zero where they are.
    Array(Arc<Array>),
}

fn mask_of(live: &Live, node: &Node) -> Result<Option<Masked>> {
    let Some(extras) = live.container.extras() else {
        return Ok(None);
    };
    Ok(match extras.mask(node.id)? {
        Some(Mask::Number(text)) => Some(Masked::Number(text)),
        Some(Mask::Node(mask)) => live
            .container
            .node(mask)?
            .array()
            .map(|array| Masked::Array(Arc::clone(array))),
        Some(Mask::Array(mask)) => Some(Masked::Array(mask)),
        None => None,
    })
}

fn exact(node: &Node, length: fn(&Array) -> Result<Option<u64>>) -> Result<Option<Size>> {
    let length = node.array().map_or(Ok(None), |array| length(array))?;
    Ok(length.map(Size::Exact))
}

fn shown(view: Option<impl View + 'static>) -> Result<Box<dyn View>> {
    let view = view.ok_or(Error::NotFound)?;
    Ok(Box::new(view))
}

fn streamed(text: Option<impl ResumableText + 'static>) -> Result<Box<dyn View>> {
    shown(text.map(Streamed::new))
}

impl Subject<'_> {
    fn array(&self) -> Result<Arc<Array>> {
        let array = self.node.array().ok_or(Error::NotFound)?;
        if let Err(error) = &array.storage {
            return Err(error.clone());
        }
        (self.verify)(self.node.id)?;
        Ok(Arc::clone(array))
    }

    fn mask(&self) -> Result<Option<Masked>> {
        let extras = self.live.container.extras();
        let mask = extras.map(|extras| extras.mask(self.node.id)).transpose()?;
        if let Some(Some(Mask::Node(mask))) = mask {
            (self.verify)(mask)?;
        }
        mask_of(self.live, self.node)
    }

    fn elements(&self) -> Result<Elements> {
        Elements::whole(self.live.reader(self.node.id, &self.array()?)?)
    }

    fn paths(&self) -> SharedPaths {
        let live = Arc::clone(self.live);
        Arc::new(move |node: NodeId| live.index().known_path(node))
    }
}
