//! Virtual datasets: the list of parts of other datasets, and the extent that follows from it.
//!
//! HDF5 3.0, IV.A.2.i "Virtual storage layout", and III.F "Global Heap Block for Virtual Datasets".
//! Version 1 of the block is from HDF5 2.0.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::context::Context;
use crate::hdf5::file::metadata::{Metadata, verify_checksum};
use crate::hdf5::file::number_form::Address;
use crate::hdf5::file::opening::OpeningBudget;
use crate::hdf5::file::other_files::SourceDataset;
use crate::hdf5::selection;
use crate::limits;
use crate::memory;
use crate::model::Shape;
use crate::model::array::{Mapping, Mappings};
use crate::model::region::{Region, RegionAxis};
use crate::model::regions::{RegionList, RegionPosition};
use crate::wire::{Count, Cursor, to_u64};

/// An entry of the list of a virtual dataset's parts. `R` is the type of its selections: a region,
/// or the position of a region in a compact list.
#[derive(Debug)]
struct VirtualEntry<R> {
    file: Arc<[u8]>,
    dataset: Arc<[u8]>,
    source: R,
    target: R,
}

/// Reads the list of a virtual dataset's parts from object `index` of the global heap collection at
/// absolute offset `at`. Returns the extent of the dataset, which may differ from the stored extent
/// `shape`, and its mappings. If mappings overlap, the last one is used.
///
/// # Errors
/// Fails if the list is missing, or if a source that determines the extent cannot be opened.
/// `Corrupt` for a damaged list, `Limit` for one that is too long.
pub(crate) fn read(
    context: &Context,
    shape: &Shape,
    at: Address,
    index: u32,
) -> Result<(Shape, Mappings)> {
    let mut opening = context.opening.nested_description();
    let heap = &context.heap;
    opening.lock_if_large(heap.object_length(at, index)?);
    let block = heap.read_whole_object(at, index, limits::VIRTUAL_LIST)?;
    let (entries, regions) = read_entries(&context.metadata, &block, at, &mut opening)?;
    drop(block);
    let (Shape::Simple { dims, max }, false) = (shape, entries.is_empty()) else {
        return Ok((shape.clone(), Mappings::default()));
    };
    let mut layout = VirtualLayoutBuilder {
        context,
        opening,
        at,
        dims: dims.clone(),
        mappings: Mappings::with_regions(regions),
        last_source: None,
        last_opened: None,
        missing: Vec::new(),
    };
    layout.reset_unlimited_dims(&entries);
    for entry in entries {
        layout.add_entry(entry)?;
    }
    layout.add_missing()?;
    let max = layout
        .dims
        .iter()
        .zip(max)
        .map(|(dim, max)| max.map(|max| max.max(*dim)));
    let shape = Shape::Simple {
        max: max.collect(),
        dims: layout.dims,
    };
    layout.mappings.shrink();
    Ok((shape, layout.mappings))
}

fn read_entries(
    metadata: &Metadata,
    block: &[u8],
    at: Address,
    opening: &mut OpeningBudget,
) -> Result<(Vec<VirtualEntry<RegionPosition>>, RegionList)> {
    const WHAT: &str = "virtual dataset block";
    const CHECKSUM: usize = 4;
    verify_checksum(block, at, WHAT)?;
    let mut cursor = Cursor::new(block, at, WHAT);
    let version = cursor.read_version(0..=1)?;
    let count = metadata.read_length(&mut cursor)?;
    if count > to_u64(limits::VIRTUAL_MAPPINGS) {
        return Err(too_many_mappings_error());
    }
    let (mut entries, mut regions) = (Vec::new(), RegionList::default());
    for _ in 0..count {
        let entry = read_entry(metadata, version, &entries, &mut cursor, opening)?;
        let weights = [&entry.source, &entry.target].map(Region::weight);
        opening.charge_memory(to_u64(size_of::<VirtualEntry<RegionPosition>>()))?;
        weights
            .into_iter()
            .try_for_each(|bytes| opening.charge_memory(bytes))?;
        entries.push(VirtualEntry {
            source: regions.store(&entry.source),
            target: regions.store(&entry.target),
            file: entry.file,
            dataset: entry.dataset,
        });
    }
    match cursor.remaining() {
        CHECKSUM => Ok((entries, regions)),
        _ => Err(cursor.corrupt("more than its entries")),
    }
}

/// Reads one entry of the list. In version 1, an entry may contain the number of an entry in
/// `earlier` instead of repeating its name.
fn read_entry(
    metadata: &Metadata,
    version: u8,
    earlier: &[VirtualEntry<RegionPosition>],
    cursor: &mut Cursor<'_>,
    opening: &mut OpeningBudget,
) -> Result<VirtualEntry<Region>> {
    const SHARED_FILE: u8 = 1;
    const SHARED_DATASET: u8 = 2;
    const SAME_FILE: u8 = 4;
    let flags = if version == 0 { 0 } else { cursor.u8()? };
    let shared = |cursor: &mut Cursor<'_>| {
        let index = metadata.read_length(cursor)?;
        let entry = usize::try_from(index)
            .ok()
            .and_then(|index| earlier.get(index));
        entry.ok_or_else(|| cursor.corrupt("a name is shared with an entry that is not earlier"))
    };
    let last = earlier.last();
    let last_file = last.map(|entry| &entry.file);
    let file = match flags {
        flags if flags & SAME_FILE != 0 => share_name(b".", last_file, opening)?,
        flags if flags & SHARED_FILE != 0 => Arc::clone(&shared(cursor)?.file),
        _ => share_name(cursor.read_text()?, last_file, opening)?,
    };
    let dataset = match flags & SHARED_DATASET {
        0 => {
            let last = last.map(|entry| &entry.dataset);
            share_name(cursor.read_text()?, last, opening)?
        }
        _ => Arc::clone(&shared(cursor)?.dataset),
    };
    Ok(VirtualEntry {
        file,
        dataset,
        source: selection::read(cursor)?,
        target: selection::read(cursor)?,
    })
}

/// Returns `name` in memory that entries share. If `last`, the name of the previous entry, is
/// equal, both entries share it. Otherwise, charges the new memory to `opening`.
fn share_name(
    name: &[u8],
    last: Option<&Arc<[u8]>>,
    opening: &mut OpeningBudget,
) -> Result<Arc<[u8]>> {
    if let Some(last) = last.filter(|last| ***last == *name) {
        return Ok(Arc::clone(last));
    }
    Error::check_limit(
        name.len(),
        limits::VIRTUAL_NAME,
        "bytes of a virtual dataset's source's name",
    )?;
    opening.charge_memory(memory::allocation_size(name.len()))?;
    Ok(name.into())
}

fn too_many_mappings_error() -> Error {
    Error::limit(
        "mappings of a virtual dataset",
        to_u64(limits::VIRTUAL_MAPPINGS),
    )
}

/// The state while the mappings of a virtual dataset are processed.
struct VirtualLayoutBuilder<'a> {
    context: &'a Context,
    opening: OpeningBudget,
    at: Address,
    dims: Vec<u64>,
    mappings: Mappings,
    /// The source of the previous entry, because consecutive entries often have the same source.
    last_source: Option<Arc<SourceDataset>>,
    /// The source that was opened last, and its extent, or `None` if that source is missing.
    last_opened: Option<(Arc<SourceDataset>, Option<Vec<u64>>)>,
    /// Parts with an unlimited selection whose sources are missing.
    missing: Vec<GrowingPart>,
}

/// A part with an unlimited selection, which grows when its source grows.
struct GrowingPart {
    source: Arc<SourceDataset>,
    source_region: RegionPosition,
    region: RegionPosition,
}

impl VirtualLayoutBuilder<'_> {
    /// Sets each unlimited dimension to the end of all limited parts. The stored extent of such a
    /// dimension is only the last known value.
    fn reset_unlimited_dims(&mut self, entries: &[VirtualEntry<RegionPosition>]) {
        let mut ends = vec![0; self.dims.len()];
        let mut are_unlimited = vec![false; self.dims.len()];
        for entry in entries {
            let target = self.mappings.regions().get(entry.target);
            if let Some((dimension, _)) = unlimited_axis(&target) {
                if let Some(is_unlimited) = are_unlimited.get_mut(dimension) {
                    *is_unlimited = true;
                }
                continue;
            }
            for (dimension, end) in ends.iter_mut().enumerate() {
                *end = fixed_end(&target, dimension).max(*end);
            }
        }
        let unlimited = are_unlimited.into_iter().zip(ends);
        for (dim, (_, end)) in self
            .dims
            .iter_mut()
            .zip(unlimited)
            .filter(|(_, (is, _))| *is)
        {
            *dim = end;
        }
    }

    fn add_entry(&mut self, kept: VirtualEntry<RegionPosition>) -> Result<()> {
        let regions = self.mappings.regions();
        let entry = VirtualEntry {
            source: regions.get(kept.source),
            target: regions.get(kept.target),
            file: kept.file,
            dataset: kept.dataset,
        };
        match (unlimited_axis(&entry.target), unlimited_axis(&entry.source)) {
            (None, None) => {
                let source = self.literal_source(&entry)?;
                self.check_sizes(&entry.source, &entry.target)?;
                self.push(source, kept.source, kept.target)
            }
            (Some(target), Some(source)) => {
                let regions = (kept.source, kept.target);
                self.add_growing(&entry, regions, target, source)
            }
            (Some(target), None) => self.add_printf_parts(&entry, target),
            (None, Some(_)) => {
                let what = "virtual dataset: an unlimited source for a limited part";
                Err(Error::corrupt(what, self.at))
            }
        }
    }

    /// Adds a part that grows with its source. The part ends where the source's current extent
    /// ends.
    fn add_growing(
        &mut self,
        entry: &VirtualEntry<Region>,
        (source_region, region): (RegionPosition, RegionPosition),
        (target_dimension, target_axis): (usize, RegionAxis),
        (source_dimension, source_axis): (usize, RegionAxis),
    ) -> Result<()> {
        let source = self.literal_source(entry)?;
        let dims = self.source_extent(&source)?;
        if dims.is_none() {
            self.opening
                .charge_memory(to_u64(size_of::<GrowingPart>()))?;
            self.missing.push(GrowingPart {
                source: Arc::clone(&source),
                source_region,
                region,
            });
        }
        let dims = dims.unwrap_or_default();
        let extent = dims.get(source_dimension).copied().unwrap_or(0);
        let one_step = |region, dimension, axis| {
            let length = Some(1);
            with_axis(region, dimension, RegionAxis { length, ..axis })
        };
        self.check_sizes(
            &one_step(&entry.source, source_dimension, source_axis),
            &one_step(&entry.target, target_dimension, target_axis),
        )?;
        let length = Some(source_axis.count_selected_before(extent));
        let target_axis = RegionAxis {
            length,
            ..target_axis
        };
        self.extend_dim(target_dimension, target_axis.end());
        if length == Some(0) {
            return Ok(());
        }
        let source_region = with_axis(
            &entry.source,
            source_dimension,
            RegionAxis {
                length,
                ..source_axis
            },
        );
        let target = with_axis(&entry.target, target_dimension, target_axis);
        self.push_with_regions(source, &source_region, &target)
    }

    /// Adds the parts whose sources are missing, up to the extent that other sources determine.
    /// Their elements exist, but their data are missing.
    fn add_missing(&mut self) -> Result<()> {
        for part in std::mem::take(&mut self.missing) {
            let regions = self.mappings.regions();
            let (source_region, region) =
                (regions.get(part.source_region), regions.get(part.region));
            let (Some((dimension, axis)), Some((source_dimension, source_axis))) =
                (unlimited_axis(&region), unlimited_axis(&source_region))
            else {
                continue;
            };
            let extent = self.dims.get(dimension).copied().unwrap_or(0);
            let length = Some(axis.count_selected_before(extent));
            if length == Some(0) {
                continue;
            }
            let source_axis = RegionAxis {
                length,
                ..source_axis
            };
            let source_region = with_axis(&source_region, source_dimension, source_axis);
            let region = with_axis(&region, dimension, RegionAxis { length, ..axis });
            self.push_with_regions(part.source, &source_region, &region)?;
        }
        Ok(())
    }

    /// Adds the parts of an entry with `printf` names: one part for each block of the entry's
    /// selection, from a source whose name contains the number of the block. Stops at the first
    /// missing source.
    fn add_printf_parts(
        &mut self,
        entry: &VirtualEntry<Region>,
        (dimension, axis): (usize, RegionAxis),
    ) -> Result<()> {
        if axis.block == u64::MAX {
            let what = "virtual dataset: a numbered source for one block without end";
            return Err(Error::corrupt(what, self.at));
        }
        let holds_number = has_block_number(&entry.file) || has_block_number(&entry.dataset);
        for number in 0..=to_u64(limits::VIRTUAL_MAPPINGS) {
            let digits = number.to_string();
            let file = self.format_source_name(&entry.file, digits.as_bytes())?;
            let dataset = self.format_source_name(&entry.dataset, digits.as_bytes())?;
            let source = self.source(file, dataset)?;
            if self.source_extent(&source)?.is_none() {
                return Ok(());
            }
            let start = number
                .checked_mul(axis.stride)
                .and_then(|offset| offset.checked_add(axis.start))
                .ok_or_else(too_many_mappings_error)?;
            let stride = axis.block;
            let block = RegionAxis {
                start,
                stride,
                block: axis.block,
                length: Some(axis.block),
            };
            self.extend_dim(dimension, block.end());
            let regions = [&entry.source, &entry.target].map(Region::weight);
            let mut regions = regions.into_iter();
            regions.try_for_each(|bytes| self.opening.charge_memory(bytes))?;
            let target = with_axis(&entry.target, dimension, block);
            self.push_with_regions(source, &entry.source, &target)?;
            if !holds_number {
                return Ok(());
            }
        }
        Err(too_many_mappings_error())
    }

    fn extend_dim(&mut self, dimension: usize, end: u64) {
        if let Some(dim) = self.dims.get_mut(dimension) {
            *dim = (*dim).max(end);
        }
    }

    /// Returns the source of an entry whose names are literal, except that `%%` means `%`.
    fn literal_source(&mut self, entry: &VirtualEntry<Region>) -> Result<Arc<SourceDataset>> {
        let file = self.format_source_name(&entry.file, b"%b")?;
        let dataset = self.format_source_name(&entry.dataset, b"%b")?;
        self.source(file, dataset)
    }

    /// Replaces `%b` in a source's name by the text `block`, and `%%` by `%`. Returns `name` itself
    /// if it contains neither.
    fn format_source_name(&mut self, name: &Arc<[u8]>, block: &[u8]) -> Result<Arc<[u8]>> {
        if name.contains(&b'%') {
            share_name(&format_name(name, block), None, &mut self.opening)
        } else {
            Ok(Arc::clone(name))
        }
    }

    fn source(&mut self, file: Arc<[u8]>, path: Arc<[u8]>) -> Result<Arc<SourceDataset>> {
        if let Some(last) = &self.last_source
            && (&last.file, &last.path) == (&file, &path)
        {
            return Ok(Arc::clone(last));
        }
        self.opening
            .charge_memory(to_u64(size_of::<SourceDataset>()))?;
        let files = Arc::clone(&self.context.other_files);
        let source = Arc::new(SourceDataset { files, file, path });
        self.last_source = Some(Arc::clone(&source));
        Ok(source)
    }

    /// Returns the extent of a source, or `None` if the source is missing.
    fn source_extent(&mut self, source: &Arc<SourceDataset>) -> Result<Option<Vec<u64>>> {
        match &self.last_opened {
            Some((last, extent)) if Arc::ptr_eq(last, source) => Ok(extent.clone()),
            _ => {
                let budget = self.context.metadata.budget();
                let found = source.open_with_budget(budget, &self.opening)?;
                let extent = found.map(|found| found.array.shape.dims().to_vec());
                self.last_opened = Some((Arc::clone(source), extent.clone()));
                Ok(extent)
            }
        }
    }

    /// Checks that source and target have the same number of elements, whether or not the source
    /// exists.
    fn check_sizes(&self, source: &Region, target: &Region) -> Result<()> {
        match (selected_elements(source), selected_elements(target)) {
            (Some(source), Some(target)) if source != target => {
                let what = format!("virtual dataset: {source} elements for a part of {target}");
                Err(Error::corrupt(what, self.at))
            }
            _ => Ok(()),
        }
    }

    /// Adds a part with regions that are not in the compact list yet.
    fn push_with_regions(
        &mut self,
        source: Arc<SourceDataset>,
        source_region: &Region,
        region: &Region,
    ) -> Result<()> {
        self.check_sizes(source_region, region)?;
        let regions = self.mappings.regions();
        let (source_region, region) = (regions.store(source_region), regions.store(region));
        self.push(source, source_region, region)
    }

    fn push(
        &mut self,
        source: Arc<SourceDataset>,
        source_region: RegionPosition,
        region: RegionPosition,
    ) -> Result<()> {
        if self.mappings.len() >= limits::VIRTUAL_MAPPINGS {
            return Err(too_many_mappings_error());
        }
        self.opening.charge_memory(to_u64(size_of::<Mapping>()))?;
        self.mappings.push(region, source_region, source);
        Ok(())
    }
}

/// Returns the number of elements of a selection. Returns `None` if the number depends on the
/// extent, or is not computed for this kind of selection.
fn selected_elements(region: &Region) -> Option<u64> {
    match region {
        Region::Nothing => Some(0),
        Region::Regular(axes) => axes
            .iter()
            .try_fold(1, |product: u64, axis| product.checked_mul(axis.length?)),
        _ => None,
    }
}

/// Returns the first unlimited dimension of a selection and its pattern, or `None` if no dimension
/// is unlimited.
fn unlimited_axis(region: &Region) -> Option<(usize, RegionAxis)> {
    let Region::Regular(axes) = region else {
        return None;
    };
    let found = axes
        .iter()
        .enumerate()
        .find(|(_, axis)| axis.length.is_none());
    found.map(|(dimension, axis)| (dimension, *axis))
}

/// Returns the index after the last selected one in `dimension`. Returns 0 if the selection is
/// unlimited, or if its end depends on the extent.
fn fixed_end(region: &Region, dimension: usize) -> u64 {
    match region {
        Region::Regular(axes) if unlimited_axis(region).is_none() => {
            axes.get(dimension).map_or(0, RegionAxis::end)
        }
        Region::Blocks(blocks) => {
            let ends = blocks.iter().filter_map(|(_, last)| last.get(dimension));
            ends.max().map_or(0, |last| last.plus_one())
        }
        _ => 0,
    }
}

fn with_axis(region: &Region, dimension: usize, axis: RegionAxis) -> Region {
    let Region::Regular(axes) = region else {
        return region.clone();
    };
    let replaced = axes
        .iter()
        .enumerate()
        .map(|(other, kept)| if other == dimension { axis } else { *kept });
    Region::Regular(replaced.collect())
}

fn has_block_number(name: &[u8]) -> bool {
    format_name(name, b"0") != format_name(name, b"1")
}

fn format_name(name: &[u8], block: &[u8]) -> Vec<u8> {
    let mut formatted = Vec::with_capacity(name.len());
    let mut rest = name;
    loop {
        rest = match rest {
            [b'%', b'%', after @ ..] => {
                formatted.push(b'%');
                after
            }
            [b'%', b'b', after @ ..] => {
                formatted.extend_from_slice(block);
                after
            }
            [byte, after @ ..] => {
                formatted.push(*byte);
                after
            }
            [] => return formatted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_names_contain_the_block_number() {
        assert_eq!(format_name(b"run_%b.h5", b"12"), b"run_12.h5");
        assert_eq!(format_name(b"100%%b", b"12"), b"100%b");
        assert_eq!(format_name(b"100%% of %b", b"%b"), b"100% of %b");
    }
}
