//! Joins variables whose elements depend on other arrays: numbers of categories, numbers of rows,
//! and ends of lists.

use std::collections::HashMap;
use std::sync::Arc;

use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{Class, Member, StringPadding};
use h5fs_reader::wire::to_usize;

use crate::element_recoding::{FieldCopy, FileRenumberings, Renumbering};
use crate::joined_array::ArrayContent;
use crate::member_mapping::{FieldRenumbering, MappedPart, RecodingPlan, recoding_plans_weight};
use crate::members::convention::{CodedField, ElementRelation, FirstDimensionMeaning};
use crate::paths::{OmissionResult, Path};
use crate::placing::placement::JoinedDimension;
use crate::variable::common_type::common_datatype;
use crate::variable::names::MergedNames;
use crate::variable::{VariableJoin, VariablePlacement};

/// The datatype of a joined array whose elements are converted differently for each file.
/// `recoding_plans` contains the conversion for each skeleton index.
pub(super) struct RecodedType {
    pub(super) datatype: Datatype,
    recoding_plans: HashMap<usize, RecodingPlan>,
}

/// Elements, or a field of each element, that contain numbers of names in another array.
struct CodedElements<'a> {
    /// The name of the field. `None` if the whole element is a number.
    field: Option<&'a [u8]>,
    names: &'a Path,
    is_ordered: bool,
}

impl<'a> From<&'a CodedField> for CodedElements<'a> {
    fn from(own: &'a CodedField) -> Self {
        CodedElements {
            field: Some(&own.name),
            names: &own.names,
            is_ordered: own.is_ordered,
        }
    }
}

impl CodedElements<'_> {
    /// Returns the reason why different lists of ordered categories are not joined: they have no
    /// common order. pandas and AnnData also reject such categories, or discard the order.
    fn refusal(&self) -> String {
        let what = "its ordered categories differ between files";
        match self.field {
            None => what.to_owned(),
            Some(_) => format!("{what}: /{}", self.names.escape_ascii()),
        }
    }
}

impl VariableJoin<'_, '_> {
    /// Returns the conversion of elements that depend on other arrays. Returns `None` if the
    /// elements stay unchanged.
    pub(super) fn recoded_type(
        &self,
        arrangement: &VariablePlacement,
    ) -> OmissionResult<Option<RecodedType>> {
        if self.shared_variable.comparison.placed_members.members.len() < 2 {
            return Ok(None);
        }
        match &self.shared_variable.first_variable().convention.relation {
            ElementRelation::Codes { names, is_ordered } => {
                let whole = [CodedElements {
                    field: None,
                    names,
                    is_ordered: *is_ordered,
                }];
                self.merged_codes_type(&whole, arrangement)
            }
            ElementRelation::Fields(fields) => {
                let fields: Vec<_> = fields.iter().map(CodedElements::from).collect();
                self.merged_codes_type(&fields, arrangement)
            }
            ElementRelation::RowsOf(rows) => self.offset_type(rows, true),
            ElementRelation::ListEndsIn(entries)
            | ElementRelation::SparseRowEnds { entries, .. } => self.offset_type(entries, false),
            ElementRelation::None if self.has_differing_records() => {
                self.merged_codes_type(&[], arrangement)
            }
            _ => Ok(None),
        }
    }

    /// Returns whether the variable contains rows of a table that are records of different types in
    /// different members.
    fn has_differing_records(&self) -> bool {
        let first = self.shared_variable.first_variable();
        let differ = self
            .shared_variable
            .variables()
            .any(|own| own.datatype != first.datatype);
        let are_records = matches!(first.datatype.class, Class::Compound(_));
        differ && are_records && first.convention.rows == FirstDimensionMeaning::TableRows
    }

    /// Returns the conversion of numbers of names to numbers in the merged list of names. Either
    /// the whole element or some of its fields are such numbers.
    fn merged_codes_type(
        &self,
        coded: &[CodedElements<'_>],
        arrangement: &VariablePlacement,
    ) -> OmissionResult<Option<RecodedType>> {
        let mut lists = Vec::new();
        for own in coded {
            let names = MergedNames::merge(&self.shared_variable.comparison.variable(own.names))?;
            if own.is_ordered && !names.are_equal {
                return Err(own.refusal());
            }
            lists.push((own.field, names));
        }
        let types: Vec<&Datatype> = self
            .shared_variable
            .variables()
            .map(|own| &own.datatype)
            .collect();
        let first = types.first().copied().ok_or_else(String::new)?;
        let are_records = matches!(first.class, Class::Compound(_));
        let are_plain = !are_records || types.iter().all(|own| *own == first);
        if lists.iter().all(|(_, names)| names.are_equal) && are_plain {
            return Ok(None);
        }
        if matches!(
            arrangement,
            VariablePlacement::FirstMemberOnly | VariablePlacement::RepeatedScalar
        ) {
            return Err("the names of its numbers differ between files".to_owned());
        }
        let none = || {
            if are_records {
                "its records have several types".to_owned()
            } else {
                "its integer type is too small for the merged categories".to_owned()
            }
        };
        let datatype = if are_records {
            merged_record_type(&types, &lists).ok_or_else(none)?
        } else {
            let common = common_datatype(&types).ok_or_else(none)?;
            let most = lists.iter().map(|(_, names)| names.name_count()).max();
            integer_type_for(&common, most.unwrap_or(0)).ok_or_else(none)?
        };
        let recipe = |own: &Datatype| {
            let fields = match &own.class {
                Class::Compound(members) => record_renumberings(members, &datatype, &lists)?,
                _ => {
                    let (_, names) = lists.first()?;
                    vec![FieldRenumbering {
                        field: whole_field(own, &datatype)?,
                        by_file: Arc::clone(&names.renumberings),
                    }]
                }
            };
            Some(RecodingPlan::RenumberFields(fields.into()))
        };
        let recipes = self.plan_recodings(recipe)?.ok_or_else(none)?;
        Ok(Some(RecodedType {
            datatype,
            recoding_plans: recipes,
        }))
    }

    /// Creates the recoding plan for each skeleton by calling `recipe` with its datatype. Skeletons
    /// with the same datatype share a plan. Returns `None` if `recipe` returns `None` for a
    /// datatype.
    fn plan_recodings(
        &self,
        recipe: impl Fn(&Datatype) -> Option<RecodingPlan>,
    ) -> OmissionResult<Option<HashMap<usize, RecodingPlan>>> {
        let mut known: HashMap<&Datatype, RecodingPlan> = HashMap::new();
        let mut recipes = HashMap::new();
        for own in &self.shared_variable.skeleton_variables {
            let datatype = &own.variable.datatype;
            let made = known.get(datatype).cloned();
            let Some(made) = made.or_else(|| recipe(datatype)) else {
                return Ok(None);
            };
            known.insert(datatype, made.clone());
            recipes.insert(own.skeleton_index, made);
        }
        let weight = recoding_plans_weight(known.values());
        if !self
            .shared_variable
            .comparison
            .members
            .reserve_inline(weight)
        {
            return Err("how its numbers become others takes too many bytes in memory".to_owned());
        }
        Ok(Some(recipes))
    }

    /// Returns the conversion of numbers that refer to elements of the array `target`. The
    /// conversion adds the number of elements in the preceding files to each number. With
    /// `are_rows`, the numbers are indices of rows; otherwise they are ends of lists.
    fn offset_type(&self, target: &Path, are_rows: bool) -> OmissionResult<Option<RecodedType>> {
        let placement = &self.shared_variable.comparison.placed_members.placement;
        let target = self.shared_variable.comparison.variable(target);
        let dim = if target.member_count() > 0 && target.is_in_all_members() {
            target.dims().next()
        } else {
            return Err("some files do not have the array that it refers to".to_owned());
        };
        let at = dim.and_then(|dim| placement.find_dimension(&dim.key));
        let Some((at, dim)) = at.and_then(|at| Some((at, placement.joined_dimension(at)?))) else {
            return if placement
                .axes
                .iter()
                .any(|axis| axis.new_dimension.is_none())
                && self.is_joined()
            {
                Err("the array that it refers to is not joined".to_owned())
            } else {
                Ok(None)
            };
        };
        if !self.is_joined() {
            return Err("it is not joined, but the array that it refers to is".to_owned());
        }
        let none = || "its integer type is too small for the joined numbers".to_owned();
        let types: Vec<&Datatype> = self
            .shared_variable
            .variables()
            .map(|own| &own.datatype)
            .collect();
        let common = common_datatype(&types).ok_or_else(none)?;
        let datatype = integer_type_for(&common, dim.length()).ok_or_else(none)?;
        let files = self
            .shared_variable
            .occurrences()
            .map(|(member, place, _)| {
                let block = place.get(at.0).copied().unwrap_or(0);
                (member.number, offset_renumbering(dim, block, are_rows))
            });
        let files: Arc<FileRenumberings> = Arc::new(files.collect());
        let recipe = |own: &Datatype| {
            let field = whole_field(own, &datatype)?;
            let files = Arc::clone(&files);
            Some(RecodingPlan::RenumberFields(
                [FieldRenumbering {
                    field,
                    by_file: files,
                }]
                .into(),
            ))
        };
        let recipes = self.plan_recodings(recipe)?.ok_or_else(none)?;
        Ok(Some(RecodedType {
            datatype,
            recoding_plans: recipes,
        }))
    }

    /// Returns the content of the joined array: the elements of the members, converted as `related`
    /// describes.
    pub(super) fn map_dependent(
        &self,
        related: &RecodedType,
        arrangement: &VariablePlacement,
    ) -> ArrayContent {
        let parts = self.shared_variable.skeleton_variables.iter().map(|own| {
            let recipe = related.recoding_plans.get(&own.skeleton_index);
            let recipe = recipe.cloned().unwrap_or(RecodingPlan::Unchanged);
            let variable = own.variable_index;
            (
                own.skeleton_index,
                MappedPart {
                    variable_index: variable,
                    recoding_plan: recipe,
                },
            )
        });
        let added = usize::from(matches!(
            arrangement,
            VariablePlacement::AlongAxes { is_new: true }
        ));
        ArrayContent::Mapped(self.map_members(added, parts.collect()))
    }
}

/// Returns how the numbers in one file are converted, if the file has this block. With `are_rows`,
/// the numbers are indices below the length of the block. Otherwise, they are ends of lists, at
/// most this length.
fn offset_renumbering(dim: &JoinedDimension, block: usize, are_rows: bool) -> Renumbering {
    let by = dim.block_start(block);
    let length = dim.block_start(block.saturating_add(1)).saturating_sub(by);
    let most = length.checked_sub(u64::from(are_rows));
    match most {
        Some(most) => Renumbering::Offset { by, most },
        // In a file without rows, every number is invalid.
        None => Renumbering::CodeTable(Arc::default()),
    }
}

/// Returns a field that covers the whole element, which is a number.
fn whole_field(from: &Datatype, to: &Datatype) -> Option<FieldCopy> {
    Some(FieldCopy {
        source_bytes: 0..to_usize(from.size.into()).ok()?,
        target_bytes: 0..to_usize(to.size.into()).ok()?,
        value_count: 1,
        integer_types: Some((from.clone(), to.clone())),
    })
}

/// Returns an integer type with the signedness of `datatype` that represents the numbers up to
/// `most`. This is `datatype` itself or a larger type.
fn integer_type_for(datatype: &Datatype, most: u64) -> Option<Datatype> {
    let Class::Integer { order, signed, .. } = datatype.class else {
        return None;
    };
    let size = u16::try_from(datatype.size).ok()?;
    let sizes = [1_u16, 2, 4, 8].into_iter().filter(|&own| own >= size);
    let mut fitting = sizes.filter(|&size| {
        let bits = u32::from(size) * 8 - u32::from(signed);
        bits >= u64::BITS || most < 1 << bits
    });
    let size = fitting.next()?;
    let is_own = u32::from(size) == datatype.size;
    Some(if is_own {
        datatype.clone()
    } else {
        Datatype::integer(size, signed, order)
    })
}

/// Returns the number of values in a field of this type.
fn value_count(datatype: &Datatype) -> usize {
    match &datatype.class {
        Class::Array { base, .. } => (datatype.size / base.size.max(1)) as usize,
        _ => 1,
    }
}

/// Returns the integer type of a field, which is one integer or an array of integers.
fn integer_type(datatype: &Datatype) -> &Datatype {
    match &datatype.class {
        Class::Array { base, .. } => base,
        _ => datatype,
    }
}

/// Returns a record type that represents the texts and renumbered fields of all files. Returns
/// `None` if there is none.
fn merged_record_type(
    types: &[&Datatype],
    lists: &[(Option<&[u8]>, MergedNames)],
) -> Option<Datatype> {
    let all: Option<Vec<&[Member]>> = types.iter().map(|own| compound_members(own)).collect();
    let all = all?;
    let (first, others) = all.split_first()?;
    if others.iter().any(|other| other.len() != first.len()) {
        return None;
    }
    let mut offset = 0_u32;
    let mut own = Vec::new();
    for (place, member) in first.iter().enumerate() {
        let fields: Vec<&Member> = all
            .iter()
            .filter_map(|members| members.get(place))
            .collect();
        if fields.iter().any(|field| field.name != member.name) {
            return None;
        }
        let types: Vec<&Datatype> = fields.iter().map(|field| &field.datatype).collect();
        let datatype = field_type(&types)?;
        let datatype = match field_names(lists, member) {
            Some(names) => widen_integer_type(&datatype, names.name_count())?,
            None => datatype,
        };
        let end = offset.checked_add(datatype.size)?;
        own.push(Member {
            name: member.name.clone(),
            offset,
            datatype,
        });
        offset = end;
    }
    let has_pointers = types.iter().any(|own| own.has_pointers());
    (!has_pointers).then_some(Datatype {
        size: offset,
        class: Class::Compound(own),
    })
}

fn compound_members(datatype: &Datatype) -> Option<&[Member]> {
    match &datatype.class {
        Class::Compound(members) => Some(members),
        _ => None,
    }
}

/// Returns the common type of a field: the type that all files have, or the longest of several text
/// types.
fn field_type(types: &[&Datatype]) -> Option<Datatype> {
    let (first, others) = types.split_first()?;
    if others.iter().all(|other| other == first) {
        return Some((*first).clone());
    }
    match &first.class {
        Class::Array { base, dims } => {
            let bases = types.iter().map(|own| match &own.class {
                Class::Array { base, dims: own } if own == dims => Some(&**base),
                _ => None,
            });
            let longest = field_type(&bases.collect::<Option<Vec<_>>>()?)?;
            let size = (first.size / base.size.max(1)).checked_mul(longest.size)?;
            let class = Class::Array {
                base: Box::new(longest),
                dims: dims.clone(),
            };
            Some(Datatype { size, class })
        }
        Class::String { padding, .. } => {
            let are_alike = others.iter().all(|other| other.class == first.class);
            let is_filled = are_alike && *padding != StringPadding::SpacePadded;
            let longest = types.iter().max_by_key(|own| own.size)?;
            is_filled.then(|| (*longest).clone())
        }
        _ => None,
    }
}

fn field_names<'l>(
    lists: &'l [(Option<&[u8]>, MergedNames)],
    member: &Member,
) -> Option<&'l MergedNames> {
    let mut lists = lists.iter();
    let found = lists.find(|(field, _)| *field == Some(&member.name[..]));
    found.map(|(_, names)| names)
}

fn widen_integer_type(datatype: &Datatype, most: u64) -> Option<Datatype> {
    let Class::Array { base, dims } = &datatype.class else {
        return integer_type_for(datatype, most);
    };
    let wide = integer_type_for(base, most)?;
    let size = datatype.size / base.size.max(1) * wide.size;
    let class = Class::Array {
        base: Box::new(wide),
        dims: dims.clone(),
    };
    Some(Datatype { size, class })
}

/// Returns the conversion of each field of a file's records, whose fields are `members`, to the
/// joined record type `to`. Returns `None` if `to` is not a record type.
fn record_renumberings(
    members: &[Member],
    to: &Datatype,
    lists: &[(Option<&[u8]>, MergedNames)],
) -> Option<Vec<FieldRenumbering>> {
    let Class::Compound(others) = &to.class else {
        return None;
    };
    let range = |member: &Member| {
        let start = to_usize(member.offset.into()).ok()?;
        Some(start..start + to_usize(member.datatype.size.into()).ok()?)
    };
    let pairs = members.iter().zip(others);
    let fields = pairs.map(|(member, other)| {
        let names = field_names(lists, member);
        let types = || {
            let [from, to] = [member, other].map(|own| integer_type(&own.datatype).clone());
            (from, to)
        };
        Some(FieldRenumbering {
            field: FieldCopy {
                source_bytes: range(member)?,
                target_bytes: range(other)?,
                value_count: value_count(&member.datatype),
                integer_types: names.map(|_| types()),
            },
            by_file: names.map_or_else(Arc::default, |names| Arc::clone(&names.renumberings)),
        })
    });
    fields.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::members::content::text_type;
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::testing::{int, member, type_of};

    use crate::joined_array::JoinedArray;
    use crate::testing::{JoinedTest, TestFile, i16s, i32s, join_files, text};
    /// Joins files of one row. File i has the categories `i` and `i + 1`, and an attribute with the
    /// text `mark(i)`. Different texts give the files different structures.
    fn join_cells(mark: impl Fn(i32) -> String) -> JoinedTest {
        let names: Vec<String> = (0..40).map(|number| format!("{number:02}.h5ad")).collect();
        let files = names.iter().zip(0..).map(|(name, number)| {
            let file = TestFile::new()
                .with_group_attributes("", &[("encoding-type", text("anndata"))])
                .with_group_attributes("obs", &[("encoding-type", text("dataframe"))])
                .with_group_attributes("obs/ct", &[("encoding-type", text("categorical"))])
                .with_variable("obs/_index", &[("", 1)], i32s(&[number]), &[])
                .with_variable(
                    "obs/ct/categories",
                    &[("", 2)],
                    i32s(&[number, number + 1]),
                    &[],
                );
            let mark = [("ancillary_variables", text(&mark(number)))];
            let file = file.with_variable("obs/ct/codes", &[("", 1)], i16s(&[0]), &mark);
            (&name[..], file)
        });
        join_files(files.collect())
    }

    fn numberings(made: &JoinedArray) -> Vec<&Arc<FileRenumberings>> {
        let ArrayContent::Mapped(mapped) = &made.content else {
            panic!("{made:?}");
        };
        let fields = mapped
            .parts_by_skeleton
            .values()
            .flat_map(|part| match &part.recoding_plan {
                RecodingPlan::RenumberFields(fields) => fields.iter(),
                other => panic!("{other:?}"),
            });
        fields.map(|own| &own.by_file).collect()
    }

    /// Checks that 40 files with 40 different structures have 40 renumberings in memory, not 1600.
    #[test]
    fn renumberings_are_shared_between_skeletons() {
        let (one, many) = (
            join_cells(|_| "n".to_owned()),
            join_cells(|number| format!("n{number}")),
        );
        let [one, many] = [&one, &many].map(|shown| {
            let codes: Vec<f64> = (0..40).map(f64::from).collect();
            assert_eq!(
                shown.numbers("obs/ct/codes"),
                codes,
                "{:?}",
                shown.omissions()
            );
            shown.joined_array("obs/ct/codes")
        });
        assert_eq!((numberings(one).len(), numberings(many).len()), (1, 40));
        let shared: HashSet<_> = numberings(many).into_iter().map(Arc::as_ptr).collect();
        assert_eq!(shared.len(), 1);
        assert_eq!(numberings(many)[0].len(), 40);
        // The weight counts the entries, and grows by no more than a part for each structure.
        let entries = 40 * size_of::<(usize, Renumbering)>() as u64;
        assert!(one.weight() > entries, "{}", one.weight());
        let parts = 40 * size_of::<(usize, MappedPart)>() as u64;
        assert!(
            many.weight() - one.weight() <= parts,
            "{} {}",
            one.weight(),
            many.weight()
        );
    }

    /// Checks that a signed byte holds codes up to 127, and an unsigned byte offsets up to 255.
    #[test]
    fn the_integer_type_holds_all_joined_numbers() {
        let int = |size, signed| Datatype::integer(size, signed, ByteOrder::Big);
        assert_eq!(integer_type_for(&int(1, true), 127), Some(int(1, true)));
        assert_eq!(integer_type_for(&int(1, true), 128), Some(int(2, true)));
        assert_eq!(integer_type_for(&int(1, false), 255), Some(int(1, false)));
        assert_eq!(
            integer_type_for(&int(1, false), 70_000),
            Some(int(4, false))
        );
        assert_eq!(
            integer_type_for(&int(8, false), u64::MAX),
            Some(int(8, false))
        );
        assert_eq!(integer_type_for(&int(8, true), u64::MAX), None);
        assert_eq!(
            integer_type_for(&Datatype::ieee(8, ByteOrder::Big), 1),
            None
        );
    }

    /// The expected type is the record type that `numpy.concatenate` returns for fields `S2` and
    /// `S5`.
    #[test]
    fn texts_of_records_have_the_longest_type() {
        let record = |size, dims: Vec<u32>| {
            let count: u32 = dims.iter().product();
            let class = Class::Array {
                base: Box::new(text_type(size)),
                dims,
            };
            let texts = type_of(count * size as u32, class);
            let end = 4 + texts.size;
            let fields = vec![member("index", 0, int(4)), member("s", 4, texts)];
            type_of(end, Class::Compound(fields))
        };
        let [short, long] = [2, 5].map(|size| record(size, vec![3]));
        assert_eq!(
            merged_record_type(&[&short, &long], &[]),
            Some(long.clone())
        );
        assert_eq!(merged_record_type(&[&long, &record(5, vec![2])], &[]), None);
        assert_eq!(merged_record_type(&[&long, &text_type(19)], &[]), None);
        let fields = record_renumberings(compound_members(&short).unwrap(), &long, &[]).unwrap();
        let last = &fields[1].field;
        assert_eq!(
            (
                last.source_bytes.clone(),
                last.target_bytes.clone(),
                last.value_count
            ),
            (4..10, 4..19, 3)
        );
    }

    #[test]
    fn numbers_are_moved_by_the_rows_of_earlier_files() {
        let dim = JoinedDimension::new(&Path::from(&b"id"[..]), &[3, 0, 2]);
        assert!(matches!(
            offset_renumbering(&dim, 2, true),
            Renumbering::Offset { by: 3, most: 1 }
        ));
        assert!(matches!(
            offset_renumbering(&dim, 2, false),
            Renumbering::Offset { by: 3, most: 2 }
        ));
        // The second file lacks rows, so all its numbers are invalid.
        assert!(
            matches!(offset_renumbering(&dim, 1, true), Renumbering::CodeTable(none) if none.is_empty())
        );
    }
}
