//! An array that is assembled from parts of other arrays. Elements that no part covers, or whose
//! source is missing, have the fill value.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::array::bytes::Bytes;
use crate::array::kinds::convert::Conversion;
use crate::array::kinds::fill_value::FillValue;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory;
use crate::memory::cancel::CancelToken;
use crate::memory::shared_lru::{FileLru, SharedLru};
use crate::model::Array;
use crate::model::array::{Mapping, Mappings, OpenVirtualSource, Storage, VirtualSource};
use crate::model::region::RegionRuns;
use crate::source::local::descriptors::weight_per_open_file;
use crate::wire::Count;

/// A reader of an array that is a source of a virtual array.
pub(in crate::array) trait SourceReader: Send + Sync {
    /// Returns the description of the source array.
    fn array(&self) -> &Arc<Array>;

    /// Reads the `length` bytes at `offset` of the source array, all within the array.
    ///
    /// # Errors
    /// Fails if a part of the bytes cannot be read or decoded. [`Error::cancelled`] once the
    /// request is cancelled.
    fn read(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes>;
}

/// A function that creates the reader of a source array.
pub(in crate::array) type ReaderFactory =
    dyn Fn(Arc<Array>) -> Result<Box<dyn SourceReader>> + Send + Sync;

/// A virtual array: the parts that sources fill, and the fill value for the rest.
pub(in crate::array) struct VirtualArray {
    array: Arc<Array>,
    fill: FillValue,
    parts: Vec<SourcePart>,
    /// The most recently used source arrays, by the number of the part that each source fills.
    sources: FileLru<usize, Arc<PartSource>>,
    open_reader: Box<ReaderFactory>,
}

/// The range of the virtual array that one source fills.
struct SourcePart {
    /// The number of the part, which is the index of its mapping.
    number: usize,
    /// Whether opening the source takes requests to a server.
    is_remote: bool,
    runs: RegionRuns,
    first_element: u64,
    end_element: u64,
}

/// The state of one read request.
struct ReadRequest<'a> {
    cancel: &'a CancelToken,
    /// The source that the request opened last, with the open source, or with `None` if the source
    /// is missing. The next part may have the same source.
    opened: Option<(Arc<dyn VirtualSource>, Option<OpenVirtualSource>)>,
}

/// The source array that a part's elements come from.
pub(in crate::array) struct PartSource {
    reader: Box<dyn SourceReader>,
    runs: RegionRuns,
    conversion: Conversion,
    weight: u64,
    _file: Option<Arc<dyn Any + Send + Sync>>,
}

impl VirtualArray {
    /// Returns the array that `mappings` describe. `depth` is the number of virtual arrays that
    /// this array is nested in as a source. All virtual arrays share the cache `sources`.
    ///
    /// # Errors
    /// `Corrupt` if a part lies outside the array. `Limit` for virtual arrays that are nested too
    /// deeply, for example as each other's sources.
    pub(in crate::array) fn new(
        array: &Arc<Array>,
        mappings: &Mappings,
        depth: usize,
        sources: &Arc<SharedLru<usize, Arc<PartSource>>>,
        open_reader: Box<ReaderFactory>,
    ) -> Result<Self> {
        if depth >= limits::VIRTUAL_DEPTH {
            let most = limits::VIRTUAL_DEPTH as u64;
            return Err(Error::limit(
                "virtual datasets within virtual datasets",
                most,
            ));
        }
        // The outer arrays of the nesting are in memory as well.
        let most = limits::VIRTUAL_BYTES >> depth;
        if depth > 0 && array.weight() > most {
            return Err(Error::limit("bytes of a source that is virtual", most));
        }
        Ok(VirtualArray {
            fill: FillValue::from_array(array)?,
            array: Arc::clone(array),
            parts: non_empty_parts(mappings, array.shape.dims(), depth)?,
            sources: FileLru::new(sources),
            open_reader,
        })
    }

    /// Returns the approximate memory in bytes of the list of parts, in addition to the array's
    /// description.
    pub(in crate::array) fn weight(&self) -> u64 {
        let part = |part: &SourcePart| {
            memory::allocation_size(size_of::<SourcePart>() + part.runs.heap_bytes())
        };
        self.parts.iter().map(part).sum()
    }

    fn mapping(&self, number: usize) -> Option<Mapping> {
        match &self.array.storage {
            Ok(Storage::Virtual(mappings)) => mappings.get(number),
            _ => None,
        }
    }

    /// Reads bytes `offset..end` of the array. A read that has to open remote sources is a heavy
    /// request. If all sources are open, the read is heavy if a read of one of them is.
    ///
    /// # Errors
    /// Fails if an existing source cannot be read. `Limit` if too many parts overlap.
    /// [`Error::cancelled`] once the request is cancelled.
    pub(in crate::array) fn read(
        &self,
        offset: u64,
        end: u64,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        let mut reply = self.fill.filled_bytes(offset, end);
        let size = u64::from(self.array.datatype.size);
        let wanted = offset / size..end.div_ceil(size);
        let mut left = (wanted.end - wanted.start).times(limits::VIRTUAL_OVERLAPS);
        let mut request = ReadRequest {
            cancel,
            opened: None,
        };
        let is_touched =
            |part: &&SourcePart| part.first_element < wanted.end && wanted.start < part.end_element;
        self.open_remote_sources(
            &self.parts.iter().filter(is_touched).collect::<Vec<_>>(),
            cancel,
        )?;
        for part in self.parts.iter().filter(is_touched) {
            cancel.check_cancelled()?;
            let read = self.read_part(part, offset, &mut reply, &mut left, &mut request);
            if matches!(&read, Err(error) if error.is_stale()) {
                // The next reader opens the changed source again.
                self.sources.clear();
            }
            read?;
        }
        Ok(reply.into())
    }

    /// Opens the remote sources of several parts at the same time, because each of them waits for
    /// its server. Errors of a source are reported when the source is read.
    ///
    /// # Errors
    /// [`Error::cancelled`] if a source has to be opened and the request is cancelled or postponed.
    fn open_remote_sources(&self, parts: &[&SourcePart], cancel: &CancelToken) -> Result<()> {
        // Only as many sources as the cache keeps until they are read.
        let parts = parts.get(..limits::VIRTUAL_FAR).unwrap_or(parts);
        let is_closed =
            |part: &&SourcePart| part.is_remote && self.sources.get(part.number).is_none();
        if parts.iter().any(is_closed) {
            cancel.require_heavy_slot()?;
        }
        if parts.len() < 2 || !parts.iter().all(|part| part.is_remote) {
            return Ok(());
        }
        let next = AtomicUsize::new(0);
        let open = || {
            while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut request = ReadRequest {
                    cancel,
                    opened: None,
                };
                if self.sources.get(part.number).is_none()
                    && let Ok(Some(source)) = self.open_part_source(part, &mut request)
                {
                    let weight = source.weight;
                    self.sources.put(part.number, source, weight);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..parts.len().min(limits::VIRTUAL_FAR_THREADS) {
                let thread = thread::Builder::new().name("open".to_owned());
                // If a thread cannot be started, the remaining threads take longer.
                let _ = thread.spawn_scoped(scope, open);
            }
            open();
        });
        cancel.check_cancelled()
    }

    /// Copies the elements of `part` that overlap `reply` into `reply`, which begins at byte
    /// `offset` of the array. Subtracts their number from `left`, and fails with `Limit` if fewer
    /// are left.
    fn read_part(
        &self,
        part: &SourcePart,
        offset: u64,
        reply: &mut [u8],
        left: &mut u64,
        request: &mut ReadRequest<'_>,
    ) -> Result<()> {
        let size = u64::from(self.array.datatype.size);
        let end = offset + reply.len() as u64;
        let last = end.div_ceil(size);
        let run_at = |ordinal| {
            let run = part.runs.run_at(ordinal);
            run.filter(|run| run.element < last)
        };
        let mut ordinal = part.runs.count_selected_before(offset / size);
        if run_at(ordinal).is_none() {
            return Ok(());
        }
        let Some(source) = self.open_part_source(part, request)? else {
            return Ok(());
        };
        while let Some(run) = run_at(ordinal) {
            let length = run.length.min(last - run.element);
            *left = left.checked_sub(length).ok_or_else(|| {
                let most = limits::VIRTUAL_OVERLAPS;
                Error::limit("overlapping parts of a virtual dataset", most)
            })?;
            let bytes = run.element * size..(run.element + length) * size;
            let there = bytes.start.max(offset)..bytes.end.min(end);
            let skipped = there.start - bytes.start;
            let target = &mut reply[(there.start - offset) as usize..(there.end - offset) as usize];
            source.read((run.ordinal, skipped), size, target, request.cancel)?;
            ordinal += length;
        }
        // The source is cached after its own sources, so that they do not evict it.
        let weight = source.weight;
        self.sources.put(part.number, source, weight);
        Ok(())
    }

    /// Returns the source array of `part`, opened if necessary, or `None` if the source is missing.
    /// Neither a missing source nor an error is remembered, because sources may appear and
    /// disappear.
    fn open_part_source(
        &self,
        part: &SourcePart,
        request: &mut ReadRequest<'_>,
    ) -> Result<Option<Arc<PartSource>>> {
        if let Some(source) = self.sources.get(part.number) {
            return Ok(Some(source));
        }
        let Some(mapping) = self.mapping(part.number) else {
            return Ok(None);
        };
        let Some(OpenVirtualSource {
            array,
            file,
            recode,
        }) = request.open(&mapping.source)?
        else {
            return Ok(None);
        };
        if mapping.source.is_in_other_file() && array.datatype.has_pointers() {
            let what =
                "a virtual dataset with references or variable-length elements in another file";
            return Err(Error::unsupported(what, None));
        }
        let runs = RegionRuns::new(&mapping.source_region, array.shape.dims())?;
        if runs.selected_count() != part.runs.selected_count() {
            return Err(Error::corrupt(
                "virtual dataset: selections of different sizes",
                None,
            ));
        }
        let (from, to) = (&array.datatype, &self.array.datatype);
        let conversion = match recode {
            Some(by) => Conversion::recoded(by, from, to),
            None => Conversion::new(from, to)?,
        };
        let reader = (self.open_reader)(array)?;
        let weight = reader.array().weight().plus(runs.listed_bytes());
        let least = weight_per_open_file(limits::VIRTUAL_SOURCES, limits::OPEN_VIRTUAL_SOURCES);
        Ok(Some(Arc::new(PartSource {
            reader,
            runs,
            conversion,
            weight: weight.max(least),
            _file: file,
        })))
    }
}

impl ReadRequest<'_> {
    fn open(&mut self, source: &Arc<dyn VirtualSource>) -> Result<Option<OpenVirtualSource>> {
        if let Some((last, found)) = &self.opened
            && Arc::ptr_eq(last, source)
        {
            return Ok(found.clone());
        }
        let found = source.open(self.cancel)?;
        self.opened = Some((Arc::clone(source), found.clone()));
        Ok(found)
    }
}

/// Returns the parts of a virtual array that have elements. The limit on the bytes of their runs is
/// halved for each level of nesting, because nested arrays are in memory at the same time.
fn non_empty_parts(mappings: &Mappings, dims: &[u64], depth: usize) -> Result<Vec<SourcePart>> {
    let most = limits::VIRTUAL_RUNS >> depth;
    let mut left = most;
    let mut parts = Vec::new();
    for (number, mapping) in mappings.iter().enumerate() {
        let Some(part) = SourcePart::new(number, &mapping, dims)? else {
            continue;
        };
        left = left
            .checked_sub(part.runs.listed_bytes())
            .ok_or_else(|| Error::limit("bytes of the runs of a virtual dataset's parts", most))?;
        parts.push(part);
    }
    Ok(parts)
}

impl SourcePart {
    /// Returns the part that `mapping` describes, or `None` if the mapping selects no elements.
    fn new(number: usize, mapping: &Mapping, dims: &[u64]) -> Result<Option<Self>> {
        let runs = RegionRuns::new(&mapping.region, dims)?;
        let elements = runs.selected_count();
        let Some(first) = runs.run_at(0) else {
            return Ok(None);
        };
        let last = runs
            .run_at(elements - 1)
            .map_or(first.element, |run| run.element);
        Ok(Some(SourcePart {
            number,
            is_remote: mapping.source.is_remote(),
            runs,
            first_element: first.element,
            end_element: last + 1,
        }))
    }
}

impl PartSource {
    /// Reads the elements of the source's selection from number `ordinal` on into `target`,
    /// converted to the virtual array's type of `size` bytes. Omits the first `skipped` bytes.
    /// Reads no more of long elements than `target` needs.
    fn read(
        &self,
        (ordinal, skipped): (u64, u64),
        size: u64,
        target: &mut [u8],
        cancel: &CancelToken,
    ) -> Result<()> {
        let (mut next, end) = (skipped, skipped + target.len() as u64);
        while next < end {
            let Some(run) = self.runs.run_at(ordinal + next / size) else {
                break;
            };
            let within = next % size;
            let length = (run.length.times(size) - within).min(end - next);
            let start = (next - skipped) as usize;
            let target = &mut target[start..start + length as usize];
            if self.conversion.is_identity() {
                self.read_unconverted(run.element * size + within, target, cancel)?;
            } else {
                let within = within as usize;
                self.convert((run.element, within), size as usize, target, cancel)?;
            }
            next += length;
        }
        Ok(())
    }

    fn read_unconverted(&self, offset: u64, target: &mut [u8], cancel: &CancelToken) -> Result<()> {
        let bytes = self.reader.read(offset, target.len(), cancel)?;
        target.copy_from_slice(&bytes);
        Ok(())
    }

    /// Reads the source's elements from element `first` on and converts them into `target`. Omits
    /// the first `within` bytes of the first element, and the last element may be incomplete.
    fn convert(
        &self,
        (first, within): (u64, usize),
        size: usize,
        target: &mut [u8],
        cancel: &CancelToken,
    ) -> Result<()> {
        let own_size = self.reader.array().datatype.size as usize;
        let elements = (within + target.len()).div_ceil(size);
        let bytes = self
            .reader
            .read(first * own_size as u64, elements * own_size, cancel)?;
        if target.len() == elements * size {
            return self.conversion.apply(&bytes, target);
        }
        let mut converted = vec![0; elements * size];
        self.conversion.apply(&bytes, &mut converted)?;
        target.copy_from_slice(&converted[within..within + target.len()]);
        Ok(())
    }
}

impl fmt::Debug for VirtualArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualArray")
            .field("parts", &self.parts.len())
            .finish_non_exhaustive()
    }
}
