//! Maps the elements of arrays in members to the elements of one joined array.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use h5fs_conventions::packing::Packing;
use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::memory::allocation_size;
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::array::{
    ElementRecoder, Mapping, Mappings, MemberSource, OpenVirtualSource, VirtualSource,
};
use h5fs_reader::model::region::{Region, RegionAxis};
use h5fs_reader::wire::{Count, to_u64};

use crate::element_recoding::{
    CopiedSpan, FieldCopy, FileRenumberings, Recoding, Renumbering, file_prefix,
    renumberings_weight,
};
use crate::limits;
use crate::members::links::OpenFile;
use crate::members::skeleton::Variable;
use crate::members::{Member, MemberVariable, Members};
use crate::placing::placement::Placement;

/// The members of one kind, and their placement in the joined arrays.
#[derive(Debug)]
pub(super) struct PlacedMembers {
    /// Positions of the members in [`Members::list`].
    pub(super) members: Vec<usize>,
    pub(super) placement: Placement,
}

/// A joined array whose elements are read from arrays of members.
#[derive(Debug)]
pub(super) struct MappedArray {
    pub(super) placed_members: Arc<PlacedMembers>,
    /// For each dimension of the array, the index of the axis along which members are joined, and
    /// the dimension's index among the dimensions of this axis. `None` if the dimension is not
    /// joined.
    pub(super) dimension_axes: Vec<Option<(usize, usize)>>,
    /// Number of new dimensions before the dimensions that the members have.
    pub(super) new_dimension_count: usize,
    /// Contributions by the index of the member's skeleton. A member whose skeleton is not in the
    /// map does not contribute to the array.
    pub(super) parts_by_skeleton: HashMap<usize, MappedPart>,
}

/// The contribution of all members with the same skeleton to a joined array: the index of the
/// variable in the skeleton, and the conversion of its elements.
#[derive(Debug, Clone)]
pub(super) struct MappedPart {
    pub(super) variable_index: usize,
    pub(super) recoding_plan: RecodingPlan,
}

/// A conversion of stored elements to elements of the joined array.
#[derive(Debug, Clone)]
pub(super) enum RecodingPlan {
    /// The stored elements are used as they are, or converted to another type of numbers.
    Unchanged,
    /// Packed numbers become floats of this size in bytes.
    Unpack(Arc<Packing>, usize),
    /// Texts are padded to a greater length with this byte.
    PadText(u8),
    /// The elements contain pointers, which receive a prefix.
    PrefixPointers(Arc<[CopiedSpan]>),
    /// The numbers in some fields are renumbered, differently for each file.
    RenumberFields(Arc<[FieldRenumbering]>),
}

/// The renumbering of one field of an element.
#[derive(Debug)]
pub(super) struct FieldRenumbering {
    pub(super) field: FieldCopy,
    /// The renumbering for each file. The recoding plans of all skeletons share one map.
    pub(super) by_file: Arc<FileRenumberings>,
}

impl RecodingPlan {
    /// Returns the conversion for the elements of the file with this number, or `None` if its
    /// elements need none.
    pub(super) fn recoding(&self, file: usize) -> Option<Arc<dyn ElementRecoder>> {
        let recoding = match self {
            RecodingPlan::Unchanged => return None,
            RecodingPlan::Unpack(packing, size) => Recoding::Unpack(Arc::clone(packing), *size),
            RecodingPlan::PadText(byte) => Recoding::PadText(*byte),
            RecodingPlan::PrefixPointers(spans) => Recoding::PrefixPointers {
                spans: Arc::clone(spans),
                prefix: file_prefix(file),
            },
            RecodingPlan::RenumberFields(fields) => {
                let fields = fields.iter().map(|own| {
                    let numbering = own.by_file.get(&file).cloned();
                    (
                        own.field.clone(),
                        numbering.unwrap_or(Renumbering::Unchanged),
                    )
                });
                Recoding::RecodeFields(fields.collect())
            }
        };
        Some(Arc::new(recoding))
    }
}

/// Returns the approximate memory of the recoding plans in bytes. Data that several plans share are
/// counted once.
pub(super) fn recoding_plans_weight<'r>(recipes: impl Iterator<Item = &'r RecodingPlan>) -> u64 {
    let mut shared: HashMap<usize, u64> = HashMap::new();
    for recipe in recipes {
        match recipe {
            RecodingPlan::Unchanged | RecodingPlan::PadText(_) => {}
            RecodingPlan::Unpack(packing, _) => {
                shared.insert(
                    Arc::as_ptr(packing).addr(),
                    allocation_size(size_of::<Packing>()),
                );
            }
            RecodingPlan::PrefixPointers(spans) => {
                shared.insert(
                    spans.as_ptr().addr(),
                    allocation_size(size_of_val(&**spans)),
                );
            }
            RecodingPlan::RenumberFields(fields) => {
                let types = fields
                    .iter()
                    .filter_map(|own| own.field.integer_types.as_ref());
                let types = types.map(|(from, to)| from.weight().plus(to.weight()));
                let own = allocation_size(size_of_val(&**fields)).plus(u64::sum(types));
                shared.insert(fields.as_ptr().addr(), own);
                let files = fields.iter().map(|own| &own.by_file);
                shared.extend(files.map(|own| (Arc::as_ptr(own).addr(), renumberings_weight(own))));
            }
        }
    }
    u64::sum(shared.into_values())
}

impl MappedArray {
    /// Returns the approximate memory of the mapping in bytes.
    pub(super) fn weight(&self) -> u64 {
        let parts = self
            .parts_by_skeleton
            .len()
            .times(size_of::<(usize, MappedPart)>());
        let recipes = self
            .parts_by_skeleton
            .values()
            .map(|part| &part.recoding_plan);
        to_u64(parts).plus(recoding_plans_weight(recipes))
    }

    /// Iterates over the members that contribute elements to the array. Returns the position in
    /// [`Members::list`], the member's block on each join axis, and the contribution. Members with
    /// the same block on each axis of the array have equal elements, so only the first of them is
    /// returned.
    pub(super) fn placed_parts<'m>(
        &'m self,
        members: &'m Members,
    ) -> impl Iterator<Item = (usize, &'m [usize], &'m MappedPart)> + 'm {
        let all = self
            .placed_members
            .members
            .iter()
            .zip(&self.placed_members.placement.member_blocks);
        let all = all.map(|(&member, place)| (member, &**place));
        let mut taken = HashSet::new();
        all.filter_map(|(member, place)| {
            let skeleton = members.list[member].skeleton;
            Some((member, place, self.parts_by_skeleton.get(&skeleton)?))
        })
        .filter(move |(_, place, _)| taken.insert(self.axis_blocks(place)))
    }

    /// Returns the block of a member on each axis of the array. `place` contains the member's block
    /// on every join axis.
    pub(super) fn axis_blocks(&self, place: &[usize]) -> Vec<usize> {
        let axes = self.dimension_axes.iter().flatten();
        axes.filter_map(|(axis, _)| place.get(*axis).copied())
            .collect()
    }

    /// Returns the offset of a member's first element in the joined array, for each dimension.
    /// `place` contains the member's block on every join axis.
    pub(super) fn start_offsets(&self, place: &[usize]) -> Vec<u64> {
        let axes = self.dimension_axes.iter().map(|axis| {
            let at = *axis;
            let dim = at.and_then(|at| self.placed_members.placement.joined_dimension(at));
            let block = at.and_then(|(axis, _)| place.get(axis).copied());
            dim.zip(block)
                .map_or(0, |(dim, block)| dim.block_start(block))
        });
        axes.collect()
    }

    /// Returns the number of a member's leading elements that the joined array omits, for each
    /// dimension.
    fn omitted_counts(&self, place: &[usize]) -> Vec<u64> {
        let axes = self.dimension_axes.iter().map(|axis| {
            let at = *axis;
            let dim = at.and_then(|at| self.placed_members.placement.joined_dimension(at));
            let block = at.and_then(|(axis, _)| place.get(axis).copied());
            dim.zip(block)
                .map_or(0, |(dim, block)| dim.omitted_count(block))
        });
        axes.collect()
    }

    /// Returns the mappings from the members to the array, in the order of the members.
    ///
    /// # Errors
    /// `Limit` if there are too many mappings.
    pub(super) fn mappings(&self, members: &Arc<Members>) -> Result<Mappings> {
        /// Approximate memory in bytes of one mapping, except its axes.
        const PART: usize = 200;
        let each = PART.plus(self.dimension_axes.len().times(size_of::<RegionAxis>()));
        let count = self.placed_parts(members).count();
        Error::check_limit(
            to_u64(count.times(each)),
            limits::VIRTUAL_BYTES,
            "bytes of the parts of a joined array",
        )?;
        let parts = self
            .placed_parts(members)
            .filter_map(|(place_in_list, place, part)| {
                let member = &members.list[place_in_list];
                let dims = &members.member_skeleton(member).variables[part.variable_index].dims;
                let own = dims.iter().map(|&dim| member.lengths[dim]);
                let stored: Vec<u64> = own.collect();
                let lengths =
                    std::iter::repeat_n(1, self.new_dimension_count).chain(stored.iter().copied());
                let cuts = self.omitted_counts(place);
                let mut rest = stored
                    .iter()
                    .zip(cuts.iter().skip(self.new_dimension_count));
                // The omitted elements may be all elements of the member.
                if rest.any(|(&length, &cut)| cut > 0 && length <= cut) {
                    return None;
                }
                let steps = self
                    .start_offsets(place)
                    .into_iter()
                    .zip(lengths)
                    .zip(&cuts);
                let axis = |((start, length), cut): ((u64, u64), &u64)| RegionAxis {
                    start,
                    ..RegionAxis::all_indices(length.minus_or_zero(*cut))
                };
                Some(Mapping {
                    region: Region::Regular(steps.map(axis).collect()),
                    source_region: region_after_cuts(
                        &stored,
                        cuts.get(self.new_dimension_count..).unwrap_or_default(),
                    ),
                    source: Arc::new(MemberArray {
                        members: Arc::clone(members),
                        member_index: place_in_list,
                        variable_index: part.variable_index,
                        recoding_plan: part.recoding_plan.clone(),
                    }),
                })
            });
        Ok(parts.collect())
    }
}

/// Returns the region of an array without the first `cuts[i]` elements of each dimension i.
fn region_after_cuts(lengths: &[u64], cuts: &[u64]) -> Region {
    if cuts.iter().all(|&cut| cut == 0) {
        return Region::All;
    }
    let axes = lengths.iter().zip(cuts).map(|(length, &cut)| RegionAxis {
        start: cut,
        ..RegionAxis::all_indices(length.minus_or_zero(cut))
    });
    Region::Regular(axes.collect())
}

/// A virtual source that reads one variable of a member.
struct MemberArray {
    members: Arc<Members>,
    /// The position of the member in [`Members::list`].
    member_index: usize,
    /// The index of the variable in the member's skeleton.
    variable_index: usize,
    recoding_plan: RecodingPlan,
}

impl fmt::Debug for MemberArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl MemberArray {
    fn member(&self) -> &Member {
        &self.members.list[self.member_index]
    }

    /// Returns the variable as the scan of the member found it.
    fn scanned_variable(&self) -> &Variable {
        &self.members.member_skeleton(self.member()).variables[self.variable_index]
    }

    /// Returns the member's open file and the array. The array is in another file if a link of the
    /// member leads there.
    fn open_variable(&self, cancel: &CancelToken) -> Result<(Arc<OpenFile>, MemberVariable)> {
        let member = self
            .members
            .open_cancellable(self.member().number, cancel)?;
        let (budget, _granted) = RequestBudget::unlimited_until_cancelled(cancel);
        let found =
            self.members
                .open_variable(&member, self.member(), self.variable_index, &budget)?;
        Ok((member, found))
    }

    fn open_source(&self, cancel: &CancelToken) -> Result<OpenVirtualSource> {
        let (_member, found) = self.open_variable(cancel)?;
        found.array.storage.as_ref().map_err(Clone::clone)?;
        self.members.verify(&**found.file.container(), found.node)?;
        Ok(OpenVirtualSource {
            array: found.array,
            file: Some(found.file),
            recode: self.recoding_plan.recoding(self.member().number),
        })
    }

    /// Returns the error of opening the array with the name of the array. A member that no longer
    /// exists has changed.
    fn opening_error(&self, error: Error) -> Error {
        match error {
            Error::NotFound => Error::from_cause(Cause::Stale, self.name()),
            error if error.is_cancelled() => error,
            error => error.with_context(self.name()),
        }
    }
}

impl VirtualSource for MemberArray {
    /// Opens the member's array. Never returns `None`: if the member no longer exists, the read
    /// fails, because `None` would read as fill values.
    fn open(&self, cancel: &CancelToken) -> Result<Option<OpenVirtualSource>> {
        let opened = self.open_source(cancel);
        opened.map(Some).map_err(|error| self.opening_error(error))
    }

    fn open_in_member(&self, cancel: &CancelToken) -> Result<Option<MemberSource>> {
        if !matches!(self.recoding_plan, RecodingPlan::Unchanged) {
            return Ok(None);
        }
        let opened = self.open_variable(cancel);
        let (member, found) = opened.map_err(|error| self.opening_error(error))?;
        let is_in_member = Arc::ptr_eq(&found.file, &member);
        Ok(is_in_member.then(|| MemberSource {
            array: found.array,
            container: Arc::clone(member.container()),
            path: self.member().name.to_vec(),
        }))
    }

    fn name(&self) -> String {
        let (file, path) = (&self.member().name, &self.scanned_variable().path);
        format!("{}:/{}", file.escape_ascii(), path.escape_ascii())
    }

    fn is_in_other_file(&self) -> bool {
        // Pointers contain the number of their member.
        false
    }

    fn is_remote(&self) -> bool {
        self.members.is_remote()
    }

    fn weight(&self) -> u64 {
        to_u64(size_of::<Self>())
    }
}
