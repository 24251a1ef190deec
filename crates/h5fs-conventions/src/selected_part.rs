//! The part of an array that a selector picks, as a container. The values of its dimension scales,
//! and of other arrays along its dimensions, are selected at the same positions.

use std::collections::HashMap;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::array::{Array, Fill, SelectedLayout, Storage};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::overlay::ContainerOverlay;
use h5fs_reader::model::selection::{DimensionPositions, Selection};
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::storage::Pipeline;
use h5fs_reader::model::{Attribute, Container, Node, NodeId, Shape};
use h5fs_reader::wire::to_usize;

/// A container in which one array has only the elements that a selector picks. The dimension scales
/// of the array have the values at the selected positions.
pub struct SelectedPart {
    inner: Arc<dyn Container>,
    arrays: Arc<HashMap<NodeId, SelectedArray>>,
}

/// An array, reduced to its selected elements.
struct SelectedArray {
    node: Arc<Node>,
    /// Number of dimensions of the whole array.
    rank: usize,
    /// The numbers of the dimensions that remain, in order.
    dimensions: Vec<usize>,
}

impl SelectedPart {
    /// Selects the part of the array of `node` that `selector` picks. `scales` has the dimension
    /// scale of each of its dimensions. `others` are further arrays whose first dimension is the
    /// dimension of the array with this number.
    ///
    /// # Errors
    /// `NotFound` if the array does not have the part. `Unsupported` if a scale describes two
    /// dimensions of which different positions are selected. Fails if a scale cannot be read.
    pub fn new(
        inner: Arc<dyn Container>,
        node: &Node,
        selector: &Selector,
        scales: &[Option<NodeId>],
        others: &[(NodeId, usize)],
    ) -> Result<Self> {
        let array = node.array().ok_or(Error::NotFound)?;
        let selection = selector.select(&array.datatype, &array.shape)?;
        let dims = array.shape.dims();
        // The dimensions of a member of a record can be those of its own array.
        let dimensions = selector.dimensions(dims.len()).unwrap_or_default();
        let mut positions: HashMap<NodeId, (u64, DimensionPositions)> = HashMap::new();
        let numbered = scales.iter().enumerate().take(dims.len());
        let along = numbered.filter_map(|(dimension, scale)| Some(((*scale)?, dimension)));
        for (scale, dimension) in along.chain(others.iter().copied()) {
            let (Some(&length), Ok(selected)) =
                (dims.get(dimension), selector.positions(dims, dimension))
            else {
                continue;
            };
            let selected = (length, selected);
            let earlier = positions.insert(scale, selected.clone());
            if earlier.is_some_and(|earlier| earlier != selected) {
                let what = "a part in which two dimensions with one scale have different positions";
                return Err(Error::unsupported(what, None));
            }
        }
        let mut arrays = HashMap::new();
        for (scale, (length, positions)) in positions {
            let scale = inner.node(scale)?;
            if let Some(selected) = SelectedArray::scale(&scale, length, &positions)? {
                arrays.insert(scale.id, selected);
            }
        }
        let selected = SelectedArray::new(node, array, selection, dimensions);
        arrays.insert(node.id, selected);
        Ok(SelectedPart {
            inner,
            arrays: Arc::new(arrays),
        })
    }

    /// Returns whether elements of the array of this node are selected.
    pub fn is_selected(&self, node: NodeId) -> bool {
        self.arrays.contains_key(&node)
    }
}

impl SelectedArray {
    fn new(node: &Node, base: &Arc<Array>, selection: Selection, dimensions: Vec<usize>) -> Self {
        let dims = selection.dims();
        let is_growing = |at: usize| {
            let dimension = dimensions
                .get(at)
                .filter(|_| dims.len() == dimensions.len());
            dimension.and_then(|dimension| base.shape.max().get(*dimension)) == Some(&None)
        };
        let max = dims.iter().enumerate();
        let array = Array {
            datatype: selection.datatype.clone(),
            shape: Shape::Simple {
                max: max
                    .map(|(at, &dim)| (!is_growing(at)).then_some(dim))
                    .collect(),
                dims: dims.clone(),
            },
            fill: match &base.fill {
                Fill::Value(_) if selection.datatype != base.datatype => Fill::Zero,
                fill => fill.clone(),
            },
            layout: base.layout,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: match &base.storage {
                Ok(_) => Ok(Storage::Selected(SelectedLayout {
                    base: Arc::clone(base),
                    selection,
                })),
                Err(error) => Err(error.clone()),
            },
        };
        SelectedArray {
            node: Arc::new(node.with_array(Arc::new(array))),
            rank: base.shape.dims().len(),
            dimensions,
        }
    }

    /// Selects the values of the scale of a dimension of this length. Returns `None` for a scale of
    /// another length, which stays whole.
    fn scale(scale: &Node, length: u64, positions: &DimensionPositions) -> Result<Option<Self>> {
        let Some(array) = scale.array() else {
            return Ok(None);
        };
        let dims = array.shape.dims();
        if dims.first() != Some(&length) {
            return Ok(None);
        }
        let selection = positions.rows(&array.datatype, dims)?;
        let first = usize::from(positions.axis.is_none());
        let dimensions = (first..dims.len()).collect();
        Ok(Some(Self::new(scale, array, selection, dimensions)))
    }

    /// Returns an attribute of the whole array as an attribute of the selected elements, or `None`
    /// if it does not hold for them.
    fn attribute(&self, attribute: Attribute) -> Option<Attribute> {
        let is_whole = self.dimensions.iter().copied().eq(0..self.rank);
        match &*attribute.name {
            // Names arrays and the numbers of their dimensions, which have changed.
            b"REFERENCE_LIST" => None,
            b"CLASS" | b"_Netcdf4Dimid" if self.dimensions.is_empty() => None,
            b"DIMENSION_LIST" | b"DIMENSION_LABELS" | b"_Netcdf4Coordinates" if !is_whole => {
                let content = attribute.content.ok()?;
                let content = self.remaining_elements(&content)?;
                let content = Ok(content);
                Some(Attribute {
                    content,
                    ..attribute
                })
            }
            _ => Some(attribute),
        }
    }

    /// Returns the value of an attribute that has one element for each dimension, reduced to the
    /// dimensions that remain. Returns `None` for any other attribute, and if no dimension remains.
    fn remaining_elements(&self, content: &AttributeContent) -> Option<AttributeContent> {
        let size = to_usize(content.datatype.size.into()).ok()?.max(1);
        let all: Vec<&[u8]> = content.elements.chunks_exact(size).collect();
        if self.dimensions.is_empty() || all.len() != self.rank {
            return None;
        }
        let kept = self
            .dimensions
            .iter()
            .filter_map(|&dimension| all.get(dimension));
        let kept: Vec<&[u8]> = kept.copied().collect();
        Some(AttributeContent {
            datatype: content.datatype.clone(),
            shape: Shape::fixed(vec![kept.len() as u64]),
            elements: kept.concat().into(),
        })
    }
}

impl ContainerOverlay for SelectedPart {
    fn inner(&self) -> &Arc<dyn Container> {
        &self.inner
    }

    fn with_inner(&self, inner: Arc<dyn Container>, _: &RequestBudget) -> Arc<dyn Container> {
        Arc::new(SelectedPart {
            inner,
            arrays: Arc::clone(&self.arrays),
        })
    }

    fn overlay_node(&self, id: NodeId) -> Result<Arc<Node>> {
        match self.arrays.get(&id) {
            Some(selected) => Ok(Arc::clone(&selected.node)),
            None => self.inner.node(id),
        }
    }

    fn overlay_attribute(&self, id: NodeId, attribute: Attribute) -> Option<Attribute> {
        match self.arrays.get(&id) {
            Some(selected) => selected.attribute(attribute),
            None => Some(attribute),
        }
    }
}

#[cfg(test)]
mod tests {
    use h5fs_reader::model::array::Layout;
    use h5fs_reader::testing::int;

    use super::*;

    /// Returns the part of an array with the dimensions 9, 4 and 7, of which the first is unlimited.
    fn part(selector: &str) -> SelectedArray {
        let base = Arc::new(Array {
            datatype: int(2),
            shape: Shape::Simple {
                dims: vec![9, 4, 7],
                max: vec![None, Some(4), Some(7)],
            },
            fill: Fill::Zero,
            layout: Layout::Contiguous,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(Storage::Fill),
        });
        let selector = Selector::parse(selector.as_bytes()).unwrap();
        let selection = selector.select(&base.datatype, &base.shape).unwrap();
        let dimensions = selector.dimensions(3).unwrap();
        let node = Node::damaged(NodeId::for_test(1), Error::NotFound);
        SelectedArray::new(&node, &base, selection, dimensions)
    }

    fn attribute(name: &str, values: &[u8]) -> Attribute {
        Attribute {
            name: name.as_bytes().to_vec(),
            content: Ok(AttributeContent {
                datatype: int(1),
                shape: Shape::fixed(vec![values.len() as u64]),
                elements: values.into(),
            }),
        }
    }

    fn elements(part: &SelectedArray, name: &str) -> Option<Vec<u8>> {
        let shown = part.attribute(attribute(name, &[10, 11, 12]))?;
        Some(shown.content.unwrap().elements.to_vec())
    }

    #[test]
    fn a_remaining_first_dimension_stays_unlimited() {
        let max = |selector| part(selector).node.array().unwrap().shape.max().to_vec();
        assert_eq!(max("[2:5]"), [None, Some(4), Some(7)]);
        assert_eq!(max("[3]"), [Some(4), Some(7)]);
        assert_eq!(max("[:,0,1:]"), [None, Some(6)]);
    }

    #[test]
    fn a_scale_of_another_length_is_not_cut() {
        let selector = Selector::parse(b"[-1]").unwrap();
        let positions = selector.positions(&[9, 4, 7], 0).unwrap();
        let whole = part("[:]").node;
        assert!(
            SelectedArray::scale(&whole, 9, &positions)
                .unwrap()
                .is_some()
        );
        assert!(
            SelectedArray::scale(&whole, 10, &positions)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn attributes_keep_elements_of_remaining_dimensions() {
        let list = "_Netcdf4Coordinates";
        assert_eq!(elements(&part("[1:]"), list), Some(vec![10, 11, 12]));
        assert_eq!(elements(&part("[:,2]"), list), Some(vec![10, 12]));
        assert_eq!(elements(&part("[0,0,0]"), list), None);
        assert_eq!(elements(&part("[0]"), "REFERENCE_LIST"), None);
        assert_eq!(elements(&part("[0,0,0]"), "CLASS"), None);
        assert_eq!(elements(&part("[0]"), "units"), Some(vec![10, 11, 12]));
    }
}
