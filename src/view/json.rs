//! An array as JSON: lists within lists as its dimensions are, a scalar plain, `null` for a null
//! dataspace. What elements look like, [`value`](crate::model::value) says.
//!
//! The text is written while it is read, some elements at a time. A vector along the last dimension stands on
//! one line, but where elements are compounds or sequences, each has its own.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits;
use crate::model::datatype::{Class, Datatype};
use crate::model::shape::product;
use crate::model::value::{Context, ValueWriter};
use crate::model::{Container, NodeId};
use crate::view::elements::Elements;
use crate::view::piped::{Piped, Sink};
use crate::wire::to_usize;

/// Finds a node's path, bytes as in the file, `None` where it has none; for as long as it is kept.
pub type SharedPaths = Arc<dyn Fn(NodeId) -> Option<Vec<u8>> + Send + Sync>;

/// The text of `elements`, whose pointers `container` follows and whose references are shown as `paths`
/// has them.
///
/// # Errors
/// `Limit` for elements that are too long or too many.
pub fn view(
    elements: Elements,
    container: Arc<dyn Container>,
    paths: SharedPaths,
) -> Result<Piped> {
    let json = Json::new(elements)?;
    let write = move |sink: &mut dyn Sink| json.write(&*container, &paths, sink);
    Ok(Piped::new(write))
}

struct Json {
    elements: Elements,
    writer: ValueWriter,
    lists: Lists,
    /// What stands between two elements of a list.
    separator: &'static [u8],
}

/// Lists within lists of elements or, where a dimension is zero, of empty lists.
#[derive(Debug, PartialEq, Eq)]
struct Lists {
    /// Leaves in a list, in a list of lists …, in all.
    runs: Vec<u64>,
    count: u64,
    of_elements: bool,
}

impl Lists {
    fn new(dims: &[u64]) -> Result<Self> {
        let zero = dims.iter().position(|&dim| dim == 0);
        let dims = dims.get(..zero.unwrap_or(dims.len())).unwrap_or_default();
        let inner = (0..dims.len()).rev().filter_map(|axis| dims.get(axis..));
        Ok(Lists {
            runs: inner.map(product).collect::<Result<_>>()?,
            count: product(dims)?,
            of_elements: zero.is_none(),
        })
    }

    /// The number of lists that begin or end where `count` leaves are before.
    fn brackets(&self, count: u64) -> usize {
        let ends = self.runs.iter().filter(|&&run| count.is_multiple_of(run));
        ends.count()
    }
}

impl Json {
    fn new(elements: Elements) -> Result<Self> {
        let most = limits::TEXT_ELEMENT_BYTES;
        if u64::from(elements.datatype.size) > most {
            return Err(Error::limit("size of an element as JSON", most));
        }
        Ok(Json {
            writer: ValueWriter::new(&elements.datatype)?,
            lists: Lists::new(elements.dims.as_deref().unwrap_or_default())?,
            separator: match is_nested(&elements.datatype) {
                true => b",\n",
                false => b", ",
            },
            elements,
        })
    }

    fn write(
        &self,
        container: &dyn Container,
        paths: &SharedPaths,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if self.elements.dims.is_none() {
            return sink.put(b"null\n");
        }
        if !self.lists.of_elements {
            for number in 0..self.lists.count {
                self.put(number, b"[]", sink)?;
            }
            return sink.put(b"\n");
        }
        let size = self.writer.size();
        let limit = to_usize(limits::TEXT_ELEMENT_BYTES)?;
        let mut text = Vec::new();
        let mut first = 0;
        while first < self.lists.count {
            let count = self.elements.batch().min(self.lists.count - first);
            let bytes = self.elements.read(first, count)?;
            for number in 0..count {
                let start = to_usize(number)? * size;
                // A new one each time: it counts the bytes that pointers led to.
                let context = Context::new(container, &**paths, limit);
                text.clear();
                self.writer
                    .json(&bytes[start..start + size], &context, &mut text)?;
                self.put(first + number, &text, sink)?;
            }
            first += count;
        }
        sink.put(b"\n")
    }

    /// Hands on leaf `number` with what stands before and behind it.
    fn put(&self, number: u64, leaf: &[u8], sink: &mut dyn Sink) -> Result<()> {
        let lists = &self.lists;
        let begins = lists.brackets(number);
        if number > 0 && begins > 0 {
            sink.put(b",\n")?;
            for _ in begins..lists.runs.len() {
                sink.put(b" ")?;
            }
        } else if number > 0 {
            sink.put(self.separator)?;
            if self.separator.ends_with(b"\n") {
                lists.runs.iter().try_for_each(|_| sink.put(b" "))?;
            }
        }
        for _ in 0..begins {
            sink.put(b"[")?;
        }
        sink.put(leaf)?;
        for _ in 0..lists.brackets(number + 1) {
            sink.put(b"]")?;
        }
        Ok(())
    }
}

/// Whether an element's text has parts.
fn is_nested(datatype: &Datatype) -> bool {
    matches!(
        datatype.class,
        Class::Compound(_) | Class::VariableLength(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::tests::{Heap, int, member, type_of};
    use crate::view::View;
    use crate::view::text::Text;

    fn json(datatype: &Datatype, dims: Option<&[u64]>, bytes: &[u8]) -> String {
        let elements = Elements {
            datatype: datatype.clone(),
            dims: dims.map(<[u64]>::to_vec),
            content: Box::new(Text::new(bytes.to_vec())),
        };
        let heap = Heap(vec![vec![7, 8]]);
        let view = view(elements, Arc::new(heap), Arc::new(|_| None)).unwrap();
        String::from_utf8(view.read_at(0, 1000).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn lists_as_the_dimensions_are() {
        assert_eq!(json(&int(1), None, &[]), "null\n");
        assert_eq!(json(&int(1), Some(&[]), &[5]), "5\n");
        assert_eq!(json(&int(1), Some(&[3]), &[1, 2, 3]), "[1, 2, 3]\n");
        let expected = "[[[1, 2],\n  [3, 4]],\n [[5, 6],\n  [7, 8]]]\n";
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(json(&int(1), Some(&[2, 2, 2]), &bytes), expected);
        assert_eq!(json(&int(1), Some(&[0]), &[]), "[]\n");
        assert_eq!(json(&int(1), Some(&[2, 0, 3]), &[]), "[[], []]\n");
    }

    #[test]
    fn an_element_with_parts_has_a_line() {
        let sequence = type_of(1, Class::VariableLength(Box::new(int(1))));
        let record = type_of(1, Class::Compound(vec![member("v", 0, sequence)]));
        let expected = "[{\"v\": [7, 8]},\n {\"v\": []}]\n";
        assert_eq!(json(&record, Some(&[2]), &[0, 255]), expected);
    }
}
