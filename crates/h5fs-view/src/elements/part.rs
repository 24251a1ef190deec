//! A part of an array, which a selector picks.

use std::sync::Arc;

use h5fs_reader::array::kinds::vlen::VariableLengthContent;
use h5fs_reader::array::{CancelToken, Reader, SelectedElements};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::selection::Selection;
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::shape::product;
use h5fs_reader::model::{Array, Container, Datatype};

use crate::elements::Elements;
use crate::elements::variable_length::VariableLengthFile;
use crate::view::View;

/// The part of an array that a selector such as `[0:10,3]` picks.
pub struct ArrayPart {
    reader: Arc<Reader>,
    selection: Selection,
}

impl ArrayPart {
    /// Selects the part of the array of `reader` that `selector` picks.
    ///
    /// # Errors
    /// `NotFound` if the part is not in the array; `Limit` for an array that is longer than any
    /// file can be.
    pub fn new(reader: Arc<Reader>, selector: &Selector) -> Result<Self> {
        let array = reader.array();
        let selection = selector.select(&array.datatype, &array.shape)?;
        Ok(ArrayPart { reader, selection })
    }

    /// Returns the array that contains the part.
    pub fn array(&self) -> &Array {
        self.reader.array()
    }

    /// Returns whether the selected elements are of variable length.
    pub fn has_variable_length(&self) -> bool {
        VariableLengthContent::is_variable_length(&self.selection.datatype)
    }

    /// Returns the values of the part's variable-length elements, one after another.
    ///
    /// # Errors
    /// `NotFound` if the elements have a fixed length; `Limit` if there are too many elements.
    pub fn variable_length_values(
        &self,
        container: Arc<dyn Container>,
    ) -> Result<VariableLengthContent> {
        let stored = Arc::new(self.selected_elements()?);
        let elements = product(&self.selection.dims())?;
        let array = VariableLengthContent::from_elements(
            stored,
            &self.selection.datatype,
            elements,
            container,
        )?;
        array.ok_or(Error::NotFound)
    }

    /// Returns the part as bytes, in the same form as the file of a whole array. If the part is one
    /// variable-length element, the bytes are the value of this element. `array` has the values of
    /// the part's variable-length elements; `None` if the elements have a fixed length. The lengths
    /// of the values are computed if necessary, until `cancel` ends the request.
    ///
    /// # Errors
    /// Fails if an element of variable length cannot be read.
    pub fn into_content(
        self,
        array: Option<Arc<VariableLengthContent>>,
        cancel: &CancelToken,
    ) -> Result<Box<dyn View>> {
        Ok(match array {
            None => Box::new(self.selected_elements()?),
            Some(array) if self.is_element() => Box::new(VariableLengthFile::from_element(array)?),
            Some(array) => Box::new(VariableLengthFile::new(array, cancel)?),
        })
    }

    /// Returns the elements of the part as an array. If the part is one variable-length sequence,
    /// the array has the items of the sequence.
    ///
    /// # Errors
    /// Fails as [`into_content`](Self::into_content) does.
    pub fn into_elements(self, array: Option<Arc<VariableLengthContent>>) -> Result<Elements> {
        if let (Class::VariableLength(base), Some(array)) = (&self.selection.datatype.class, array)
            && self.is_element()
        {
            return sequence_elements(base, VariableLengthFile::from_element(array)?);
        }
        Ok(Elements {
            datatype: self.selection.datatype.clone(),
            dims: Some(self.selection.dims()),
            content: Box::new(self.selected_elements()?),
        })
    }

    /// Returns whether the part is a single element, and not an array of one element.
    fn is_element(&self) -> bool {
        self.selection.axes.is_empty()
    }

    fn selected_elements(&self) -> Result<SelectedElements> {
        let reader = Arc::clone(&self.reader);
        SelectedElements::new(reader, &self.selection)
    }
}

/// Returns a variable-length sequence as an array of its items, which have the datatype `base`.
fn sequence_elements(base: &Datatype, content: VariableLengthFile) -> Result<Elements> {
    let bytes = content.length();
    let count = bytes.checked_div(base.size.into()).unwrap_or(0);
    let whole = Selection::all_elements(base, &[count])?;
    Ok(Elements {
        dims: Some(whole.dims()),
        datatype: whole.datatype,
        content: Box::new(content),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::array::Engine;
    use h5fs_reader::model::Shape;
    use h5fs_reader::model::array::{Fill, Layout, Storage};
    use h5fs_reader::model::datatype::{Charset, StringPadding};
    use h5fs_reader::model::storage::Pipeline;
    use h5fs_reader::testing::{Heap, int, member, type_of};

    const TEXTS: [&str; 3] = ["zero", "a\nb", ""];

    /// Returns a part of an array of `datatype`. Each pointer in the array is the index of a text
    /// in `TEXTS`.
    fn part(datatype: Datatype, elements: &[u8], text: &str) -> ArrayPart {
        let count = elements.len() as u64 / u64::from(datatype.size);
        let array = Array {
            datatype,
            shape: Shape::fixed(vec![count]),
            fill: Fill::Zero,
            layout: Layout::Compact,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(Storage::Inline(elements.into())),
        };
        let reader = Reader::new(&Engine::new(0, 1), Arc::new(array)).unwrap();
        let selector = Selector::parse(text.as_bytes()).unwrap();
        ArrayPart::new(Arc::new(reader), &selector).unwrap()
    }

    fn strings() -> Datatype {
        let padding = StringPadding::NullTerminated;
        let charset = Charset::Utf8;
        type_of(1, Class::VariableString { padding, charset })
    }

    fn sequences(base: Datatype) -> Datatype {
        type_of(1, Class::VariableLength(Box::new(base)))
    }

    fn bytes(part: ArrayPart) -> Vec<u8> {
        let texts = TEXTS.map(|text| text.as_bytes().to_vec());
        let array = part
            .variable_length_values(Arc::new(Heap(texts.to_vec())))
            .ok();
        let content = {
            let array = array.map(Arc::new);
            part.into_content(array, &CancelToken::default()).unwrap()
        };
        let read = content.read_at(0, 100).unwrap();
        assert_eq!(read.len() as u64, content.length());
        assert!(content.read_at(read.len() as u64, 1).unwrap().is_empty());
        read.to_vec()
    }

    #[test]
    fn strings_of_variable_length() {
        let of = |text| bytes(part(strings(), &[0, 1, 2, 0], text));
        assert_eq!(of("[0]"), b"zero");
        assert_eq!(of("[1]"), b"a\nb");
        assert_eq!(of("[2]"), b"");
        assert_eq!(of("[1:2]"), b"a\nb\n");
        assert_eq!(of("[::-1]"), b"zero\n\na\nb\nzero\n");
        assert_eq!(of("[[2,0,0]]"), b"\nzero\nzero\n");
        assert_eq!(of("[4:]"), b"");
    }

    #[test]
    fn a_field_of_variable_length() {
        let members = vec![member("n", 0, int(2)), member("name", 2, strings())];
        let record = type_of(3, Class::Compound(members));
        let of = |text| bytes(part(record.clone(), &[7, 0, 1, 8, 0, 0], text));
        assert_eq!(of("[name]"), b"a\nb\nzero\n");
        assert_eq!(of("[1][name]"), b"zero");
        assert_eq!(of("[n]"), [7, 0, 8, 0]);
    }

    #[test]
    fn a_single_selected_sequence_is_an_array() {
        let heap = Arc::new(Heap(vec![b"zero".to_vec()]));
        let of = |text| {
            let part = part(sequences(int(2)), &[0, 0], text);
            let array = Arc::new(part.variable_length_values(Arc::clone(&heap) as _).unwrap());
            part.into_elements(Some(array)).unwrap()
        };
        let one = of("[1]");
        assert_eq!(
            (one.datatype.clone(), one.dims.clone()),
            (int(2), Some(vec![2]))
        );
        assert_eq!(&one.content.read_at(0, 9).unwrap()[..], b"zero");
        let all = of("[:]");
        assert_eq!((all.datatype, all.dims), (sequences(int(2)), Some(vec![2])));
    }
}
