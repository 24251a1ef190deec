//! Access to single elements of an array of references, and to the objects that they reference.
//!
//! An element is identified by its number in C order, and by a name made of its indices: `3`, or
//! `1,3` in an array of two dimensions. The name of the one element of a scalar is `0`.

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::Result;
use h5fs_reader::model::datatype::{Class, ReferenceKind};
use h5fs_reader::model::shape::product;
use h5fs_reader::model::{Array, Container, Reference};
use h5fs_reader::wire::to_usize;

use crate::elements::Elements;
use crate::elements::innermost_type;

/// Number of references to read at a time when a directory of references is listed.
const BLOCK_ELEMENTS: u64 = 1024;

/// The elements of an array of references.
pub struct References {
    elements: Elements,
    kind: ReferenceKind,
    count: u64,
}

/// Consecutive elements of an array of references, read at once.
#[derive(Default)]
pub struct ReferenceBlock {
    first: u64,
    bytes: Vec<u8>,
    size: usize,
}

impl References {
    /// Returns whether each element of an array is a reference. Records with a field of references
    /// do not count.
    pub fn is_reference_array(array: &Array) -> bool {
        matches!(innermost_type(&array.datatype).class, Class::Reference(_))
    }

    /// Creates the list of references in `elements`; `None` if the elements are not references.
    ///
    /// # Errors
    /// `Limit` if the number of elements overflows.
    pub fn new(elements: Elements) -> Result<Option<Self>> {
        let Class::Reference(kind) = elements.datatype.class else {
            return Ok(None);
        };
        let count = elements.dims.as_deref().map_or(Ok(0), product)?;
        Ok(Some(References {
            elements,
            kind,
            count,
        }))
    }

    fn dims(&self) -> &[u64] {
        self.elements.dims.as_deref().unwrap_or_default()
    }

    /// Returns the name of element `number`, which consists of its indices.
    pub fn element_name(&self, number: u64) -> Vec<u8> {
        let mut rest = number;
        let along = self.dims().iter().rev().map(|&dim| {
            let index = rest % dim.max(1);
            rest /= dim.max(1);
            index.to_string()
        });
        let mut indices: Vec<String> = along.collect();
        indices.reverse();
        if indices.is_empty() {
            b"0".to_vec()
        } else {
            indices.join(",").into_bytes()
        }
    }

    /// Returns the number of the element called `name`, as [`element_name`](Self::element_name)
    /// returns it. Returns `None` if no element has this name.
    pub fn element_number(&self, name: &[u8]) -> Option<u64> {
        let indices = std::str::from_utf8(name).ok()?.split(',');
        let indices: Vec<u64> = indices
            .map(|index| index.parse().ok())
            .collect::<Option<_>>()?;
        let number =
            indices
                .iter()
                .zip(self.dims())
                .try_fold(0_u64, |number, (&index, &dim)| {
                    let is_in = index < dim;
                    is_in.then(|| number.checked_mul(dim)?.checked_add(index))?
                })?;
        (number < self.count && self.element_name(number) == name).then_some(number)
    }

    /// Returns the object that element `number` references.
    ///
    /// # Errors
    /// Fails if the element or its target cannot be read.
    pub fn read_target(
        &self,
        container: &dyn Container,
        number: u64,
        cancel: &CancelToken,
    ) -> Result<Reference> {
        let element = self.elements.read(number, 1, cancel)?;
        container.reference(self.kind, &element)
    }

    /// Reads the next block of elements at or after element `first`. Elements in a hole of the
    /// array are skipped, because they are null. Returns `None` after the last element.
    ///
    /// # Errors
    /// Fails if the elements cannot be read.
    pub fn read_block(&self, first: u64, cancel: &CancelToken) -> Result<Option<ReferenceBlock>> {
        let size = u64::from(self.elements.datatype.size).max(1);
        let start = first.saturating_mul(size);
        // Elements that are not stored are zero, and therefore null.
        let Some(data) = self.elements.content.data_at(start)? else {
            return Ok(None);
        };
        let first = data / size;
        let count = self.count.saturating_sub(first).min(BLOCK_ELEMENTS);
        if count == 0 {
            return Ok(None);
        }
        Ok(Some(ReferenceBlock {
            first,
            bytes: self.elements.read(first, count, cancel)?.into_vec(),
            size: to_usize(size)?,
        }))
    }

    /// Returns whether `element` references an object, in this file or in another. Also returns
    /// true if the reference cannot be read, so that a lookup of the element reports the error.
    pub fn is_object_reference(&self, container: &dyn Container, element: &[u8]) -> bool {
        let target = container.reference(self.kind, element);
        target.as_ref().map_or(true, is_object)
    }
}

impl ReferenceBlock {
    /// Returns the first element of the block whose number is at least `at`: its number and its
    /// bytes. Returns `None` if the block ends before `at`.
    pub fn next_element(&self, at: u64) -> Option<(u64, &[u8])> {
        let number = at.max(self.first);
        let place = to_usize(number - self.first).ok()?;
        let mut elements = self.bytes.chunks_exact(self.size.max(1));
        Some((number, elements.nth(place)?))
    }
}

/// Returns whether a reference leads to an object, even a missing one. Null references and
/// references to attributes do not.
pub fn is_object(reference: &Reference) -> bool {
    match reference {
        Reference::Object(_)
        | Reference::Region(_)
        | Reference::Dangling(_)
        | Reference::External { .. } => true,
        Reference::Null | Reference::Attribute { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_files::text::InMemoryContent;
    use h5fs_reader::model::{Datatype, NodeId};
    use h5fs_reader::testing::{Heap, type_of};

    fn references(dims: &[u64], bytes: &[u8]) -> References {
        let elements = Elements {
            datatype: type_of(1, Class::Reference(ReferenceKind::Object)),
            dims: Some(dims.to_vec()),
            content: Box::new(InMemoryContent::new(bytes.to_vec())),
        };
        References::new(elements).unwrap().unwrap()
    }

    fn elements(block: &ReferenceBlock) -> impl Iterator<Item = (u64, &[u8])> {
        (block.first..).map_while(|at| block.next_element(at))
    }

    #[test]
    fn elements_are_named_by_their_indices() {
        let matrix = references(&[3, 10], &[0; 30]);
        assert_eq!(matrix.element_name(0), b"0,0");
        assert_eq!(matrix.element_name(29), b"2,9");
        for number in 0..30 {
            assert_eq!(
                matrix.element_number(&matrix.element_name(number)),
                Some(number)
            );
        }
        let outside = [
            "3,0", "0,10", "0", "1,1,1", "01,1", "+1,1", "1,", "", "-1,0", "1, 1",
        ];
        for name in outside {
            assert_eq!(matrix.element_number(name.as_bytes()), None, "{name}");
        }
        let scalar = references(&[], &[0]);
        assert_eq!(
            (scalar.element_name(0), scalar.element_number(b"0")),
            (b"0".to_vec(), Some(0))
        );
        assert_eq!(scalar.element_number(b"1"), None);
        assert_eq!(references(&[2, 0], &[]).element_number(b"0,0"), None);
        let last = references(&[1 << 40, 1 << 22], &[]);
        assert_eq!(
            last.element_number(b"1099511627775,4194303"),
            Some((1 << 62) - 1)
        );
    }

    #[test]
    fn a_target_is_read_alone() {
        let list = references(&[3], &[7, 0, 9]);
        let heap = Heap(vec![]);
        let target = |number| list.read_target(&heap, number, &CancelToken::default());
        assert_eq!(target(0), Ok(Reference::Object(NodeId::for_test(7))));
        assert_eq!(target(1), Ok(Reference::Null));
        assert!(target(3).is_err(), "there is no fourth");
    }

    #[test]
    fn null_and_attribute_references_have_no_object() {
        let heap = Heap(vec![]);
        let named = |kind, bytes: &[u8]| {
            let list = References {
                kind,
                ..references(&[bytes.len() as u64], bytes)
            };
            let block = list
                .read_block(0, &CancelToken::default())
                .unwrap()
                .unwrap();
            let elements = elements(&block);
            let named = elements.filter(|(_, element)| list.is_object_reference(&heap, element));
            named.map(|(number, _)| number).collect::<Vec<_>>()
        };
        assert_eq!(named(ReferenceKind::Object, &[0, 5, 0, 6]), [1, 3]);
        assert_eq!(named(ReferenceKind::Region, &[5, 0]), [0]);
        // In the container of the tests, 1 is a reference to an attribute, and 2 a reference to
        // another file.
        assert_eq!(named(ReferenceKind::Standard, &[0, 1, 2]), [2]);
    }

    #[test]
    fn the_last_block_ends_with_the_elements() {
        let list = references(
            &[2 * BLOCK_ELEMENTS + 1],
            &vec![1; 2 * BLOCK_ELEMENTS as usize + 1],
        );
        let lengths = |first| {
            list.read_block(first, &CancelToken::default())
                .unwrap()
                .map(|block| elements(&block).count())
        };
        assert_eq!(lengths(0), Some(BLOCK_ELEMENTS as usize));
        assert_eq!(lengths(2 * BLOCK_ELEMENTS), Some(1));
        assert_eq!(lengths(2 * BLOCK_ELEMENTS + 1), None);
        assert_eq!(lengths(u64::MAX), None);
    }

    #[test]
    fn only_elements_of_references_are_recognized() {
        let array = |class| {
            let base = Box::new(type_of(8, class));
            let datatype = type_of(
                16,
                Class::Array {
                    base,
                    dims: vec![2],
                },
            );
            is_made_of(&datatype)
        };
        assert!(array(Class::Reference(ReferenceKind::Object)));
        assert!(!array(Class::Bool));
    }

    fn is_made_of(datatype: &Datatype) -> bool {
        use h5fs_reader::model::Shape;
        use h5fs_reader::model::array::{Fill, Layout, Storage};
        use h5fs_reader::model::storage::Pipeline;
        References::is_reference_array(&Array {
            datatype: datatype.clone(),
            shape: Shape::fixed(vec![3]),
            fill: Fill::Zero,
            layout: Layout::Compact,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(Storage::Fill),
        })
    }
}
