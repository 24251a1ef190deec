//! Maps the elements of arrays in members to the elements of one joined array.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::memory::allocation_size;
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::effort::Effort;
use h5fs_reader::model::array::{Mapping, Mappings, OpenSource, Recode, VirtualSource};
use h5fs_reader::model::region::{Region, RegionAxis};
use h5fs_reader::wire::{Count, to_u64};

use crate::joined::element_recoding::{
    FieldCopy, Numbering, Numberings, Recoding, Span, prefix, weight_of,
};
use crate::joined::members::skeleton::Variable;
use crate::joined::members::{Member, Members};
use crate::joined::placing::placement::Placement;
use crate::limits;
use crate::view::cf::packing::Packing;

/// The members of one kind, and their places in the joined arrays.
#[derive(Debug)]
pub(super) struct PlacedMembers {
    /// Positions of the members in [`Members::list`].
    pub(super) members: Vec<usize>,
    pub(super) placement: Placement,
}

/// A joined array whose elements are read from arrays of members.
#[derive(Debug)]
pub(super) struct MappedArray {
    pub(super) placed: Arc<PlacedMembers>,
    /// For each dimension of the array, the index of its join axis and its index in the axis.
    /// `None` if the dimension is not joined.
    pub(super) axes: Vec<Option<(usize, usize)>>,
    /// Number of new dimensions before the dimensions that the members have.
    pub(super) added: usize,
    /// Contributions by the index of the member's skeleton. A member whose skeleton is not in the
    /// map does not contribute to the array.
    pub(super) parts: HashMap<usize, MappedPart>,
}

/// The contribution of all members with the same skeleton to a joined array: the index of the
/// variable in the skeleton, and the conversion of its elements.
#[derive(Debug, Clone)]
pub(super) struct MappedPart {
    pub(super) variable: usize,
    pub(super) recipe: Recipe,
}

/// A conversion of stored elements to elements of the joined array.
#[derive(Debug, Clone)]
pub(super) enum Recipe {
    /// The stored elements are used as they are, or converted to another type of numbers.
    Plain,
    /// Packed numbers become floats of this size in bytes.
    Unpacked(Arc<Packing>, usize),
    /// Texts are padded to a greater length with this byte.
    Padded(u8),
    /// The elements contain pointers, which receive a prefix.
    Pointers(Arc<[Span]>),
    /// The numbers in some fields are renumbered, differently for each file.
    Numbered(Arc<[FieldNumbering]>),
}

/// The renumbering of one field of an element.
#[derive(Debug)]
pub(super) struct FieldNumbering {
    pub(super) field: FieldCopy,
    /// The renumbering for each file. The recipes of all skeletons share one map.
    pub(super) files: Arc<Numberings>,
}

impl Recipe {
    /// Returns the conversion for the elements of the file with this number, or `None` if its
    /// elements need none.
    pub(super) fn recoding(&self, file: usize) -> Option<Arc<dyn Recode>> {
        let recoding = match self {
            Recipe::Plain => return None,
            Recipe::Unpacked(packing, size) => Recoding::Unpacked(Arc::clone(packing), *size),
            Recipe::Padded(byte) => Recoding::Padded(*byte),
            Recipe::Pointers(spans) => Recoding::Pointers {
                spans: Arc::clone(spans),
                prefix: prefix(file),
            },
            Recipe::Numbered(fields) => {
                let fields = fields.iter().map(|own| {
                    let numbering = own.files.get(&file).cloned();
                    (own.field.clone(), numbering.unwrap_or(Numbering::Same))
                });
                Recoding::Fields(fields.collect())
            }
        };
        Some(Arc::new(recoding))
    }
}

/// Returns the approximate memory of the recipes in bytes. Data that several recipes share are
/// counted once.
pub(super) fn weight_of_recipes<'r>(recipes: impl Iterator<Item = &'r Recipe>) -> u64 {
    let mut shared: HashMap<usize, u64> = HashMap::new();
    for recipe in recipes {
        match recipe {
            Recipe::Plain | Recipe::Padded(_) => {}
            Recipe::Unpacked(packing, _) => {
                shared.insert(
                    Arc::as_ptr(packing).addr(),
                    allocation_size(size_of::<Packing>()),
                );
            }
            Recipe::Pointers(spans) => {
                shared.insert(
                    spans.as_ptr().addr(),
                    allocation_size(size_of_val(&**spans)),
                );
            }
            Recipe::Numbered(fields) => {
                let types = fields.iter().filter_map(|own| own.field.numbers.as_ref());
                let types = types.map(|(from, to)| from.weight().with_more(to.weight()));
                let own = allocation_size(size_of_val(&**fields)).with_more(u64::sum(types));
                shared.insert(fields.as_ptr().addr(), own);
                let files = fields.iter().map(|own| &own.files);
                shared.extend(files.map(|own| (Arc::as_ptr(own).addr(), weight_of(own))));
            }
        }
    }
    u64::sum(shared.into_values())
}

impl MappedArray {
    /// Returns the approximate memory of the mapping in bytes.
    pub(super) fn weight(&self) -> u64 {
        let parts = self.parts.len().times(size_of::<(usize, MappedPart)>());
        let recipes = self.parts.values().map(|part| &part.recipe);
        to_u64(parts).with_more(weight_of_recipes(recipes))
    }

    /// Iterates over the members that contribute to the array: the position in [`Members::list`],
    /// the place, and the contribution. If several members have the same block on each axis of the
    /// array, their elements are equal, so only the first of these members is returned.
    pub(super) fn parts<'m>(
        &'m self,
        members: &'m Members,
    ) -> impl Iterator<Item = (usize, &'m [usize], &'m MappedPart)> + 'm {
        let all = self
            .placed
            .members
            .iter()
            .zip(&self.placed.placement.places);
        let all = all.map(|(&member, place)| (member, &**place));
        let mut taken = HashSet::new();
        all.filter_map(|(member, place)| {
            let skeleton = members.list[member].skeleton;
            Some((member, place, self.parts.get(&skeleton)?))
        })
        .filter(move |(_, place, _)| taken.insert(self.blocks(place)))
    }

    /// Returns the block of a member on each axis of the array. `place` contains the member's block
    /// on every join axis.
    pub(super) fn blocks(&self, place: &[usize]) -> Vec<usize> {
        let axes = self.axes.iter().flatten();
        axes.filter_map(|(axis, _)| place.get(*axis).copied())
            .collect()
    }

    /// Returns the offset of a member's first element in the joined array, for each dimension.
    /// `place` contains the member's block on every join axis.
    pub(super) fn start(&self, place: &[usize]) -> Vec<u64> {
        let axes = self.axes.iter().map(|axis| {
            let at = *axis;
            let dim = at.and_then(|at| self.placed.placement.dim(at));
            let block = at.and_then(|(axis, _)| place.get(axis).copied());
            dim.zip(block).map_or(0, |(dim, block)| dim.start(block))
        });
        axes.collect()
    }

    /// Returns the number of a member's leading elements that the joined array omits, for each
    /// dimension.
    fn leading_cuts(&self, place: &[usize]) -> Vec<u64> {
        let axes = self.axes.iter().map(|axis| {
            let at = *axis;
            let dim = at.and_then(|at| self.placed.placement.dim(at));
            let block = at.and_then(|(axis, _)| place.get(axis).copied());
            dim.zip(block).map_or(0, |(dim, block)| dim.cut(block))
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
        let each = PART.with_more(self.axes.len().times(size_of::<RegionAxis>()));
        let count = self.parts(members).count();
        if to_u64(count.times(each)) > limits::VIRTUAL_BYTES {
            return Err(Error::limit(
                "bytes of the parts of a joined array",
                limits::VIRTUAL_BYTES,
            ));
        }
        let parts = self
            .parts(members)
            .filter_map(|(place_in_list, place, part)| {
                let member = &members.list[place_in_list];
                let dims = &members.skeleton(member).variables[part.variable].dims;
                let own = dims.iter().map(|&dim| member.lengths[dim]);
                let stored: Vec<u64> = own.collect();
                let lengths = std::iter::repeat_n(1, self.added).chain(stored.iter().copied());
                let cuts = self.leading_cuts(place);
                let mut rest = stored.iter().zip(cuts.iter().skip(self.added));
                // The omitted elements may be all elements of the member.
                if rest.any(|(&length, &cut)| cut > 0 && length <= cut) {
                    return None;
                }
                let steps = self.start(place).into_iter().zip(lengths).zip(&cuts);
                let axis = |((start, length), cut): ((u64, u64), &u64)| RegionAxis {
                    start,
                    ..RegionAxis::all_steps(length.left_after(*cut))
                };
                Some(Mapping {
                    region: Region::Regular(steps.map(axis).collect()),
                    source_region: rest_of(&stored, cuts.get(self.added..).unwrap_or_default()),
                    source: Arc::new(MemberArray {
                        members: Arc::clone(members),
                        member: place_in_list,
                        variable: part.variable,
                        recipe: part.recipe.clone(),
                    }),
                })
            });
        Ok(parts.collect())
    }
}

/// Returns the region of an array without the first `cuts` elements of each dimension.
fn rest_of(lengths: &[u64], cuts: &[u64]) -> Region {
    if cuts.iter().all(|&cut| cut == 0) {
        return Region::All;
    }
    let axes = lengths.iter().zip(cuts).map(|(length, &cut)| RegionAxis {
        start: cut,
        ..RegionAxis::all_steps(length.left_after(cut))
    });
    Region::Regular(axes.collect())
}

/// A virtual source that reads one variable of a member.
struct MemberArray {
    members: Arc<Members>,
    /// The position of the member in [`Members::list`].
    member: usize,
    /// The index of the variable in the member's skeleton.
    variable: usize,
    recipe: Recipe,
}

impl fmt::Debug for MemberArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl MemberArray {
    fn member(&self) -> &Member {
        &self.members.list[self.member]
    }

    /// Returns the variable as the scan of the member found it.
    fn scanned(&self) -> &Variable {
        &self.members.skeleton(self.member()).variables[self.variable]
    }

    fn find(&self, cancel: &CancelToken) -> Result<OpenSource> {
        let member = self.members.open_for(self.member().number, cancel)?;
        let (effort, _granted) = Effort::cancelled_by(cancel);
        let found = self
            .members
            .variable(&member, self.member(), self.variable, &effort)?;
        found.array.storage.as_ref().map_err(Clone::clone)?;
        self.members.verify(&**found.file.container(), found.node)?;
        Ok(OpenSource {
            array: found.array,
            file: Some(found.file),
            recode: self.recipe.recoding(self.member().number),
        })
    }
}

impl VirtualSource for MemberArray {
    /// Opens the member's array. Never returns `None`: if the member no longer exists, the read
    /// fails, because `None` would read as fill values.
    fn open(&self, cancel: &CancelToken) -> Result<Option<OpenSource>> {
        match self.find(cancel) {
            Ok(found) => Ok(Some(found)),
            Err(Error::NotFound) => Err(Error::caused(Cause::Stale, self.name())),
            Err(error) if error.is_unwanted() => Err(error),
            Err(error) => Err(error.within(self.name())),
        }
    }

    fn name(&self) -> String {
        let (file, path) = (&self.member().name, &self.scanned().path);
        format!("{}:/{}", file.escape_ascii(), path.escape_ascii())
    }

    fn is_elsewhere(&self) -> bool {
        // Pointers contain the number of their member.
        false
    }

    fn is_far(&self) -> bool {
        self.members.is_far()
    }

    fn weight(&self) -> u64 {
        to_u64(size_of::<Self>())
    }
}
