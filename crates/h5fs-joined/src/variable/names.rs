//! Merges the lists of names in several files. Other arrays refer to the names by number.

use std::collections::HashMap;
use std::sync::Arc;

use h5fs_reader::model::Datatype;
use h5fs_reader::model::array::Fill;
use h5fs_reader::model::datatype::{Class, Member, StringPadding};
use h5fs_reader::model::shape::product;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::element_recoding::{FileRenumberings, Renumbering, write_integer};
use crate::joined_array::{ArrayContent, JoinedArray, OutputDimension};
use crate::members::content::{ElementSummary, pad_texts};
use crate::paths::{OmissionResult, Path};
use crate::variable::comparison::SharedVariable;

/// The names of all files in one list. Each name occurs once, in the order of first occurrence.
pub(super) struct MergedNames {
    names: Vec<Vec<u8>>,
    /// The datatype of the merged list's elements. Texts have the datatype of the first file's
    /// list.
    datatype: Datatype,
    /// Whether all files have the same list.
    pub(super) are_equal: bool,
    /// For each file, the conversion of its numbers of names to numbers in the merged list.
    pub(super) renumberings: Arc<FileRenumberings>,
}

impl MergedNames {
    /// Merges the lists of all members that have the array of names.
    ///
    /// # Errors
    /// Fails with the reason if the lists cannot be merged.
    pub(super) fn merge(alike: &SharedVariable<'_>) -> OmissionResult<Self> {
        let path = alike.path.escape_ascii();
        if alike.member_count() == 0 || !alike.is_in_all_members() {
            return Err(format!("some files do not have its names: /{path}"));
        }
        let datatype = alike.first_variable().datatype.clone();
        let mut merged = NumberedNames::default();
        let mut lists: Vec<(usize, Arc<[u64]>)> = Vec::new();
        // Files with equal lists share the elements, and therefore the numbers.
        let mut taken: HashMap<(*const u8, usize), Arc<[u64]>> = HashMap::new();
        for (member, _, own) in alike.occurrences() {
            let count = product(&member.variable_lengths(own));
            let count = count
                .and_then(to_usize)
                .map_err(|error| error.to_string())?;
            let Some(ElementSummary::Elements(elements)) = member.summaries.get(own.variable_index)
            else {
                return Err(format!("it has too many names to compare: /{path}"));
            };
            if !can_share_list(&datatype, &own.variable.datatype) {
                return Err(format!("its names have several types: /{path}"));
            }
            let list = taken.entry((elements.as_ptr(), count)).or_insert_with(|| {
                merged.add_names(split_names(&own.variable.datatype, elements, count))
            });
            let list = Arc::clone(list);
            lists.push((member.number, list));
        }
        let are_equal = lists
            .iter()
            .all(|(_, own)| Some(own) == lists.first().map(|first| &first.1));
        let numbers = lists.into_iter();
        let numbers = numbers.map(|(file, own)| (file, Renumbering::CodeTable(own)));
        Ok(MergedNames {
            names: merged.names,
            datatype,
            are_equal,
            renumberings: Arc::new(numbers.collect()),
        })
    }

    pub(super) fn name_count(&self) -> u64 {
        to_u64(self.names.len())
    }

    /// Returns the joined array that contains the merged list.
    pub(super) fn build_array(&self, alike: &SharedVariable<'_>) -> OmissionResult<JoinedArray> {
        let (datatype, elements) = self.elements()?;
        let members = alike.comparison.members;
        if !members.reserve_inline(to_u64(elements.len())) {
            return Err("its names need too much memory".to_owned());
        }
        let dims = alike.dims().map(|dim| OutputDimension {
            key: Path::clone(&dim.key),
            has_name: dim.has_name,
            length: self.name_count(),
            is_joined: false,
        });
        Ok(JoinedArray {
            path: Path::clone(&alike.path),
            datatype,
            dims: dims.collect(),
            fill: Fill::Zero,
            chunk_shape: None,
            is_scale: false,
            is_scale_without_values: false,
            attributes: alike.comparison.attributes(&alike.path),
            reference_attributes: Vec::new(),
            content: ArrayContent::InMemory(elements),
        })
    }

    fn elements(&self) -> OmissionResult<(Datatype, Arc<[u8]>)> {
        match &self.datatype.class {
            Class::Compound(members) => self.records(members),
            class if is_text(class) => pad_texts(&self.names).map_err(|error| error.to_string()),
            _ => Ok((self.datatype.clone(), self.names.concat().into())),
        }
    }

    /// Returns the merged list as records of a number and a name, as pandas stores categories.
    fn records(&self, members: &[Member]) -> OmissionResult<(Datatype, Arc<[u8]>)> {
        let refused = || "its names are records of an unknown type".to_owned();
        let [index, value] = members else {
            return Err(refused());
        };
        let longest = self.names.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let size = if is_text(&value.datatype.class) {
            longest
        } else {
            value.datatype.size as usize
        };
        let index_size = index.datatype.size as usize;
        let mut elements = Vec::new();
        for (number, name) in self.names.iter().enumerate() {
            let start = elements.len();
            elements.resize(start + index_size + size, 0);
            let (own, text) = elements[start..].split_at_mut(index_size);
            write_integer(to_u64(number).into(), &index.datatype, own);
            text[..name.len()].copy_from_slice(name);
        }
        let size_of = |size: usize| u32::try_from(size).map_err(|_| refused());
        let fields = vec![
            Member {
                offset: 0,
                ..index.clone()
            },
            Member {
                name: value.name.clone(),
                offset: size_of(index_size)?,
                datatype: Datatype {
                    size: size_of(size)?,
                    class: value.datatype.class.clone(),
                },
            },
        ];
        let datatype = Datatype {
            size: size_of(index_size + size)?,
            class: Class::Compound(fields),
        };
        Ok((datatype, elements.into()))
    }
}

/// The distinct names that have been found, with the number of each name.
#[derive(Default)]
struct NumberedNames {
    names: Vec<Vec<u8>>,
    known: HashMap<Vec<u8>, u64>,
}

impl NumberedNames {
    /// Adds the names of one file's list. For each name of the list, returns its number in the
    /// merged list.
    fn add_names(&mut self, list: Vec<&[u8]>) -> Arc<[u64]> {
        let numbers = list.into_iter().map(|name| {
            if let Some(&number) = self.known.get(name) {
                return number;
            }
            let number = to_u64(self.names.len());
            self.names.push(name.to_vec());
            self.known.insert(name.to_vec(), number);
            number
        });
        numbers.collect()
    }
}

fn is_text(class: &Class) -> bool {
    matches!(class, Class::String { .. } | Class::VariableString { .. })
}

/// Returns whether one list can contain names of both datatypes: any two text types, or two equal
/// types.
fn can_share_list(a: &Datatype, b: &Datatype) -> bool {
    match (&a.class, &b.class) {
        (Class::Compound(a), Class::Compound(b)) => match (&a[..], &b[..]) {
            ([a_index, a], [b_index, b]) => {
                a_index == b_index && a.name == b.name && can_share_list(&a.datatype, &b.datatype)
            }
            _ => false,
        },
        (own, other) if is_text(own) && is_text(other) => true,
        _ => a == b,
    }
}

/// Splits the elements of a list into names, without the padding of texts.
fn split_names<'e>(datatype: &Datatype, elements: &'e [u8], count: usize) -> Vec<&'e [u8]> {
    let size = elements.len() / count.max(1);
    let (range, datatype) = match &datatype.class {
        Class::Compound(members) => match &members[..] {
            [_, value] => {
                let start = value.offset as usize;
                (start..start + value.datatype.size as usize, &value.datatype)
            }
            _ => (0..size, datatype),
        },
        _ => (0..size, datatype),
    };
    let values = elements.chunks_exact(size.max(1));
    let values = values.map(|element| element.get(range.clone()).unwrap_or_default());
    values
        .map(|value| trim_padding(&datatype.class, value))
        .collect()
}

fn trim_padding<'e>(class: &Class, value: &'e [u8]) -> &'e [u8] {
    let filling = match class {
        Class::String {
            padding: StringPadding::SpacePadded,
            ..
        } => b' ',
        Class::String { .. } | Class::VariableString { .. } => 0,
        _ => return value,
    };
    let end = value.iter().rposition(|&byte| byte != filling);
    &value[..end.map_or(0, |end| end + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::content::text_type;
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::testing::{int, member, type_of};

    /// The expected list is the result of `pandas.api.types.union_categoricals` for `a b` and `x b
    /// z`.
    #[test]
    fn categories_are_merged_in_order_of_first_occurrence() {
        let mut merged = NumberedNames::default();
        assert_eq!(merged.add_names(vec![b"a", b"b"])[..], [0, 1]);
        assert_eq!(merged.add_names(vec![b"x", b"b", b"z"])[..], [2, 1, 3]);
        assert_eq!(merged.names, [b"a", b"b", b"x", b"z"]);
    }

    #[test]
    fn names_are_split_without_padding() {
        let texts = text_type(3);
        assert_eq!(split_names(&texts, b"a\0\0b c", 2), [&b"a"[..], b"b c"]);
        let record = Class::Compound(vec![
            member("index", 0, int(4)),
            member("values", 4, text_type(2)),
        ]);
        let record = type_of(6, record);
        assert_eq!(
            split_names(&record, b"\0\0\0\0a\0\x01\0\0\0bb", 2),
            [&b"a"[..], b"bb"]
        );
        let numbers = Datatype::integer(2, true, ByteOrder::Little);
        assert_eq!(split_names(&numbers, &[1, 0, 0, 1], 2), [[1, 0], [0, 1]]);
    }

    #[test]
    fn records_of_names_have_room_for_the_longest() {
        let class = Class::Compound(vec![
            member("index", 0, int(4)),
            member("values", 4, text_type(1)),
        ]);
        let names = MergedNames {
            names: vec![b"a".to_vec(), b"xyz".to_vec()],
            datatype: type_of(5, class),
            are_equal: false,
            renumberings: Arc::default(),
        };
        let (datatype, elements) = names.elements().unwrap();
        assert_eq!(datatype.size, 7);
        assert_eq!(elements[..], *b"\0\0\0\0a\0\0\x01\0\0\0xyz");
    }

    #[test]
    fn texts_and_numbers_are_not_in_one_list() {
        let number = Datatype::integer(8, true, ByteOrder::Little);
        assert!(can_share_list(&text_type(1), &text_type(4)) && can_share_list(&number, &number));
        assert!(!can_share_list(&number, &text_type(8)));
        assert!(!can_share_list(
            &number,
            &Datatype::integer(4, true, ByteOrder::Little)
        ));
    }
}
