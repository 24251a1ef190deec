//! The elements of members as those of one array.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::error::{Cause, Error, Result};
use crate::joined::members::skeleton::Variable;
use crate::joined::members::{Member, Members};
use crate::joined::place::placement::Placement;
use crate::joined::recoding::{Field, Numbering, Recoding, Span, prefix};
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::memory::effort::Effort;
use crate::model::array::{Mapping, Mappings, OpenSource, Recode, VirtualSource};
use crate::model::region::{Axis, Region};
use crate::view::cf::packing::Packing;
use crate::wire::{Count, to_u64};

/// Members, and where they lie.
#[derive(Debug)]
pub(super) struct Placed {
    /// Their places in the list of members.
    pub(super) members: Vec<usize>,
    pub(super) placement: Placement,
}

/// An array that is made of those of members.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) placed: Arc<Placed>,
    /// The axis of each dimension, and its place there; `None` for one that is not joined.
    pub(super) axes: Vec<Option<(usize, usize)>>,
    /// How many of the first dimensions no member has.
    pub(super) added: usize,
    /// By the numbers of the members' skeletons: the number of the variable there, and how its
    /// elements become those of the array. A member with another one has no part in it.
    pub(super) parts: HashMap<usize, Part>,
}

/// What the members of one skeleton are in an array.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) variable: usize,
    pub(super) recipe: Recipe,
}

/// How elements of a member become those of the array.
#[derive(Debug, Clone)]
pub(super) enum Recipe {
    /// They are the same, or numbers of another type.
    Plain,
    /// They are unpacked into numbers of so many bytes.
    Unpacked(Arc<Packing>, usize),
    /// They are texts of another length, filled up with this byte.
    Padded(u8),
    /// They have pointers.
    Pointers(Arc<[Span]>),
    /// Their numbers, or those of their fields, become others; of each file in its own way.
    Numbered(Arc<[Numbered]>),
}

/// How the numbers of a field become others.
#[derive(Debug)]
pub(super) struct Numbered {
    pub(super) field: Field,
    /// By the numbers of the files.
    pub(super) files: HashMap<usize, Numbering>,
}

impl Recipe {
    /// For the elements of a file.
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

impl Mapped {
    /// The members that have a part in it, by their places in the list, with the place of each: of
    /// several at one place along the array's axes the first, as all have the same elements there.
    pub(super) fn parts<'m>(
        &'m self,
        members: &'m Members,
    ) -> impl Iterator<Item = (usize, &'m [usize], &'m Part)> + 'm {
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

    /// The blocks of a place along the axes of the array.
    pub(super) fn blocks(&self, place: &[usize]) -> Vec<usize> {
        let axes = self.axes.iter().flatten();
        axes.filter_map(|(axis, _)| place.get(*axis).copied())
            .collect()
    }

    /// Where a member's elements begin along each dimension.
    pub(super) fn start(&self, place: &[usize]) -> Vec<u64> {
        let axes = self.axes.iter().map(|axis| {
            let at = *axis;
            let dim = at.and_then(|at| self.placed.placement.dim(at));
            let block = at.and_then(|(axis, _)| place.get(axis).copied());
            dim.zip(block).map_or(0, |(dim, block)| dim.start(block))
        });
        axes.collect()
    }

    /// Elements of a member that are left out at the beginning of each dimension.
    fn cuts(&self, place: &[usize]) -> Vec<u64> {
        let axes = self.axes.iter().map(|axis| {
            let at = *axis;
            let dim = at.and_then(|at| self.placed.placement.dim(at));
            let block = at.and_then(|(axis, _)| place.get(axis).copied());
            dim.zip(block).map_or(0, |(dim, block)| dim.cut(block))
        });
        axes.collect()
    }

    /// The parts of the array, in the order of the members.
    ///
    /// # Errors
    /// `Limit` for too many of them.
    pub(super) fn mappings(&self, members: &Arc<Members>) -> Result<Mappings> {
        /// Bytes that a part takes beside its axes, about.
        const PART: usize = 200;
        let each = PART.with_more(self.axes.len().times(size_of::<Axis>()));
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
                let cuts = self.cuts(place);
                let mut rest = stored.iter().zip(cuts.iter().skip(self.added));
                // What is left out may be all that a member has.
                if rest.any(|(&length, &cut)| cut > 0 && length <= cut) {
                    return None;
                }
                let steps = self.start(place).into_iter().zip(lengths).zip(&cuts);
                let axis = |((start, length), cut): ((u64, u64), &u64)| Axis {
                    start,
                    ..Axis::whole(length.left_after(*cut))
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

/// An array without so many elements at the beginning of each dimension.
fn rest_of(lengths: &[u64], cuts: &[u64]) -> Region {
    if cuts.iter().all(|&cut| cut == 0) {
        return Region::All;
    }
    let axes = lengths.iter().zip(cuts).map(|(length, &cut)| Axis {
        start: cut,
        ..Axis::whole(length.left_after(cut))
    });
    Region::Regular(axes.collect())
}

/// An array of a member.
struct MemberArray {
    members: Arc<Members>,
    /// Its place in the list of members.
    member: usize,
    /// The number of the variable in its skeleton.
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

    /// What it was when the member was scanned.
    fn scanned(&self) -> &Variable {
        &self.members.skeleton(self.member()).variables[self.variable]
    }

    fn find(&self, cancel: &CancelToken) -> Result<OpenSource> {
        let member = self.members.open_for(self.member().number, cancel)?;
        let (effort, _granted) = Effort::until(cancel);
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
    /// There is always one: a member that has gone is an error, never fill.
    fn open(&self, cancel: &CancelToken) -> Result<Option<OpenSource>> {
        match self.find(cancel) {
            Ok(found) => Ok(Some(found)),
            Err(Error::NotFound) => Err(Error::caused(Cause::Stale, self.name())),
            Err(error) if error.is_unwanted() => Err(error),
            Err(error) => Err(error.of(self.name())),
        }
    }

    fn name(&self) -> String {
        let (file, path) = (&self.member().name, &self.scanned().path);
        format!("{}:/{}", file.escape_ascii(), path.escape_ascii())
    }

    fn is_elsewhere(&self) -> bool {
        // Pointers say which member they are of.
        false
    }

    fn is_far(&self) -> bool {
        self.members.is_far()
    }

    fn weight(&self) -> u64 {
        to_u64(size_of::<Self>())
    }
}
