//! Arrays as bytes: turns the description of an array into the bytes of its elements, C order, in the
//! stored datatype. Alone here filters are undone and fill values put in.
//!
//! A read goes from a byte range to boxes and chunks (`grid`), gets each chunk from the cache, from whoever
//! is decoding it, or decodes it (`engine`, `cache`, `flight`, `chunks`), and copies what it needs
//! into the reply (`gather`). One chunk that holds the whole answer is handed out without a copy.
//!
//! Memory: the cache's capacity, and for each decode under way the stored and twice the decoded bytes of its
//! chunk (`decode_memory`), of which chunks that are too large for the cache are kept, too. No lock is held while
//! bytes are read or decoded.

mod allocation;
mod bytes;
mod cache;
mod chunks;
mod convert;
mod decode_memory;
mod engine;
mod flight;
mod gather;
mod grid;
mod held;
mod prefetch;
mod strided;
mod turns;
mod virtual_array;
pub mod vlen;
mod wish;

use std::sync::{Arc, OnceLock};

pub use allocation::Allocation;
pub use bytes::Bytes;
pub use cache::CacheSize;
pub use engine::{Engine, Statistics};
pub use held::Held;
pub use prefetch::Stream;
pub use wish::{Wish, Wishes};

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::model::Array;
use crate::model::array::{Fill, Storage};
use crate::model::storage::Extent;
use chunks::Chunks;
use engine::{Found, Shared};
use gather::Plan;
use grid::Slab;
use strided::Strided;
use virtual_array::VirtualArray;

/// The bytes of one array; shared by all who have it open.
#[derive(Debug)]
pub struct Reader {
    engine: Arc<Engine>,
    array: Arc<Array>,
    length: u64,
    /// One element of the fill value, where that is not zero.
    fill: Option<Arc<[u8]>>,
    bytes: Place,
    allocation: OnceLock<Allocation>,
    /// What the description takes; none for a source of another, which counts as one of those that are kept.
    _held: Option<Held>,
}

/// Where the bytes are.
#[derive(Debug)]
enum Place {
    Nowhere,
    Memory(Arc<[u8]>),
    /// Each extent with the offset of its first byte in the array.
    Extents(Vec<(u64, Extent)>),
    Chunks(Arc<Chunks>),
    Strided(Box<Strided>),
    Virtual(Box<VirtualArray>),
}

impl Reader {
    /// The bytes of `array`.
    ///
    /// # Errors
    /// Why the storage is not readable, as the description says; `Unsupported` for a filter that cannot
    /// be undone; `Corrupt` where the description contradicts itself; `Limit` for pieces of a block
    /// over the limit; `Io` (`ENOMEM`) where the descriptions of all that is open take too much.
    pub fn new(engine: &Arc<Engine>, array: Arc<Array>) -> Result<Reader> {
        Self::at_depth(engine, array, 0)
    }

    /// The bytes of an array that is a source of `depth` virtual arrays, one for the other.
    fn at_depth(engine: &Arc<Engine>, array: Arc<Array>, depth: usize) -> Result<Reader> {
        let length = array.bytes()?;
        let storage = array.storage.as_ref().map_err(Clone::clone)?;
        let bytes = Place::new(engine, &array, storage, length, depth)?;
        let weight = array.weight().saturating_add(bytes.weight());
        let held = match depth {
            0 => Some(engine.hold(weight)?),
            _ => None,
        };
        Ok(Reader {
            engine: Arc::clone(engine),
            length,
            fill: fill_element(&array, storage)?,
            bytes,
            allocation: OnceLock::new(),
            _held: held,
            array,
        })
    }

    /// The description.
    pub fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// Bytes of all elements.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The `length` bytes at `offset`; fewer only where the array ends.
    ///
    /// # Errors
    /// As a part of them cannot be read or decoded; never zeros in its stead.
    pub fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        self.read_for(offset, length, &Wish::default())
    }

    /// As `read`, for somebody who may go away: what is decoded for nobody else is given up then.
    ///
    /// # Errors
    /// As `read`; [`Error::unwanted`] once the wish does not hold any more.
    pub fn read_for(&self, offset: u64, length: usize, wish: &Wish) -> Result<Bytes> {
        let end = offset.saturating_add(length as u64).min(self.length);
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        match &self.bytes {
            Place::Nowhere => Ok(self.read_fill(offset, end).into()),
            Place::Memory(bytes) => Ok(bytes[offset as usize..end as usize].to_vec().into()),
            Place::Extents(extents) => Ok(read_extents(extents, offset, end)?.into()),
            Place::Chunks(chunks) => self.read_chunks(chunks, offset, end, wish),
            Place::Strided(strided) => strided.read(offset, end, wish),
            Place::Virtual(parts) => self.read_virtual(parts, offset, end),
        }
    }

    /// The same bytes, if they are to be had without decoding, waiting or searching an index: those of one chunk that is
    /// decoded already, or that stand in the file as they are.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_now(&self, offset: u64, length: usize) -> Result<Option<Bytes>> {
        match &self.bytes {
            Place::Nowhere | Place::Memory(_) | Place::Extents(_) => {
                self.read(offset, length).map(Some)
            }
            Place::Chunks(chunks) => Ok(self.read_ready(chunks, offset, length)),
            Place::Strided(strided) => match strided.packed() {
                Some((base, start)) => base.read_now(start.saturating_add(offset), length),
                None => Ok(None),
            },
            Place::Virtual(_) => Ok(None),
        }
    }

    /// The bytes, if they are a run in one chunk that is decoded.
    fn read_ready(&self, chunks: &Arc<Chunks>, offset: u64, length: usize) -> Option<Bytes> {
        let end = offset.saturating_add(length as u64).min(self.length);
        if offset >= end || !chunks.is_encoded() {
            return None;
        }
        let grid = &chunks.grid;
        let slabs = grid.slabs(offset, end);
        let [slab] = slabs.as_slice() else {
            return None;
        };
        let places = grid.places(slab);
        let place = places.only()?;
        let chunk = self.shared().ready(chunks.key(grid.number(place)))?;
        let length = (end - offset) as usize;
        let start = gather::one_run(&[Plan::new(grid, slab, place)], length)?;
        Some(Bytes::shared(chunk, start..start + length))
    }

    /// Whether reading it may take long for each byte: it is decoded.
    pub fn is_encoded(&self) -> bool {
        match &self.bytes {
            Place::Chunks(chunks) => chunks.is_encoded(),
            Place::Strided(_) | Place::Virtual(_) => true,
            Place::Nowhere | Place::Memory(_) | Place::Extents(_) => false,
        }
    }

    /// Hands over all bytes in order; those of an encoded block so that each piece is decoded once.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_all(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        const PART: u64 = 1 << 20;
        let piece = self.chunks().map_or(1, |chunks| chunks.grid.chunk_bytes());
        let part = piece * (PART / piece).max(1);
        for offset in (0..self.length).step_by(part as usize) {
            visit(&self.read(offset, part as usize)?);
        }
        Ok(())
    }

    /// What of the array is stored; found once, by a walk over the chunk index within limits.
    ///
    /// # Errors
    /// As the chunk index is damaged.
    pub fn allocation(&self) -> Result<Allocation> {
        if let Some(known) = self.allocation.get() {
            return Ok(known.clone());
        }
        let found = self.find_allocation()?;
        Ok(self.allocation.get_or_init(|| found).clone())
    }

    fn find_allocation(&self) -> Result<Allocation> {
        let zero_fill = self.fill.is_none();
        Ok(match &self.bytes {
            Place::Nowhere => Allocation::nothing(zero_fill, self.length),
            Place::Memory(_) | Place::Extents(_) | Place::Virtual(_) => {
                Allocation::dense(self.length, self.length)
            }
            Place::Chunks(chunks) => match chunks.chunked() {
                Some(chunked) => {
                    Allocation::of_chunks(&chunks.grid, chunked, zero_fill, self.length)?
                }
                None => Allocation::dense(chunks.stored_bytes().unwrap_or(0), self.length),
            },
            Place::Strided(strided) => {
                Allocation::dense(strided.stored_bytes(self.length)?, self.length)
            }
        })
    }

    fn read_fill(&self, offset: u64, end: u64) -> Vec<u8> {
        let mut reply = vec![0; (end - offset) as usize];
        if let Some(element) = &self.fill {
            gather::fill(element, offset % element.len() as u64, &mut reply);
        }
        reply
    }

    fn read_virtual(&self, parts: &VirtualArray, offset: u64, end: u64) -> Result<Bytes> {
        let mut reply = self.read_fill(offset, end);
        parts.read(offset, &mut reply)?;
        Ok(reply.into())
    }

    fn read_chunks(
        &self,
        chunks: &Arc<Chunks>,
        offset: u64,
        end: u64,
        wish: &Wish,
    ) -> Result<Bytes> {
        let grid = &chunks.grid;
        let slabs = grid.slabs(offset, end);
        let length = (end - offset) as usize;
        let _helped = self.spread(chunks, &slabs);
        let mut reply = Buffer::default();
        for (i, slab) in slabs.iter().enumerate() {
            let (earlier, rest) = slabs.split_at(i);
            for place in grid.places(slab) {
                if earlier.iter().any(|earlier| grid.meets(earlier, &place)) {
                    continue;
                }
                let found = self.shared().chunk(chunks, grid.number(&place), wish)?;
                let met = rest.iter().filter(|slab| grid.meets(slab, &place));
                let plans: Vec<Plan> = met.map(|slab| Plan::new(grid, slab, &place)).collect();
                if let (Found::Decoded(chunk), Some(start)) =
                    (&found, gather::one_run(&plans, length))
                {
                    return Ok(Bytes::shared(Arc::clone(chunk), start..start + length));
                }
                if reply.is_empty() {
                    // Not before: the usual read is answered without a buffer.
                    reply = Buffer::new(length);
                }
                for plan in &plans {
                    self.gather(&found, plan, offset, &mut reply)?;
                }
            }
        }
        Ok(reply.into())
    }

    /// Puts the part of a chunk into the reply, which begins at byte `offset` of the array.
    fn gather(&self, found: &Found, plan: &Plan, offset: u64, reply: &mut [u8]) -> Result<()> {
        match found {
            Found::Decoded(chunk) => plan.copy(chunk, reply),
            Found::Raw(source, base) => plan.read(&**source, *base, reply)?,
            Found::Absent => plan.fill(self.fill.as_deref().unwrap_or(&[0]), offset, reply),
        }
        Ok(())
    }

    /// Lets the decode threads help with a read of several chunks, until what is returned is dropped.
    fn spread(&self, chunks: &Arc<Chunks>, slabs: &[Slab]) -> Option<Wishes> {
        let grid = &chunks.grid;
        let depth = self.shared().depth(chunks) as usize;
        let several = slabs.len() > 1 || grid.places(&slabs[0]).only().is_none();
        if depth < 2 || !several {
            return None;
        }
        let places = slabs.iter().flat_map(|slab| grid.places(slab));
        let mut numbers: Vec<u64> = Vec::new();
        for number in places
            .map(|place| grid.number(&place))
            .take(limits::PREFETCH_CHUNKS)
        {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        numbers.retain(|&number| !self.shared().has(chunks, number));
        numbers.truncate(depth);
        // The first is for the reader itself.
        let others = numbers.get(1..).filter(|others| !others.is_empty())?;
        let wishes = Wishes::default();
        self.shared().queue.push_urgent(chunks, others, &wishes);
        Some(wishes)
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.engine.shared
    }

    /// The block and the array's offset in it, where the array is a part of one as it stands there.
    fn packed(&self) -> Option<(&Reader, u64)> {
        match &self.bytes {
            Place::Strided(strided) => strided.packed(),
            _ => None,
        }
    }

    /// The chunks, where there are any.
    fn chunks(&self) -> Option<&Arc<Chunks>> {
        match &self.bytes {
            Place::Chunks(chunks) => Some(chunks),
            _ => None,
        }
    }
}

impl Place {
    /// Bytes of memory that it takes beside the description.
    fn weight(&self) -> u64 {
        match self {
            Place::Virtual(parts) => parts.weight(),
            _ => 0,
        }
    }

    fn new(
        engine: &Arc<Engine>,
        array: &Arc<Array>,
        storage: &Storage,
        length: u64,
        depth: usize,
    ) -> Result<Self> {
        if length == 0 {
            return Ok(Place::Nowhere);
        }
        match storage {
            Storage::Empty => Err(Error::corrupt("storage of an array: none", None)),
            Storage::Fill => Ok(Place::Nowhere),
            Storage::Inline(bytes) if (bytes.len() as u64) < length => Err(Error::corrupt(
                format!("array of {length} bytes in storage of {}", bytes.len()),
                None,
            )),
            Storage::Inline(bytes) => Ok(Place::Memory(Arc::clone(bytes))),
            Storage::Extents(extents) => Ok(Place::Extents(with_starts(extents))),
            Storage::Chunked(chunked) => {
                let chunks = Chunks::of_grid(engine.number(array), array, chunked)?;
                Ok(Place::Chunks(Arc::new(chunks)))
            }
            Storage::Encoded(pieces) => {
                let chunks = Chunks::of_block(engine.number(array), pieces, length)?;
                Ok(Place::Chunks(Arc::new(chunks)))
            }
            Storage::Strided(strided) => {
                let strided = Strided::new(engine, array, strided)?;
                Ok(Place::Strided(Box::new(strided)))
            }
            Storage::Virtual(mappings) => {
                let parts = VirtualArray::new(engine, array, mappings, depth)?;
                Ok(Place::Virtual(Box::new(parts)))
            }
        }
    }
}

/// One element of the fill value, `None` for zero.
fn fill_element(array: &Array, storage: &Storage) -> Result<Option<Arc<[u8]>>> {
    let size = array.datatype.size;
    match (&array.fill, storage) {
        (Fill::Value(element), Storage::Fill | Storage::Chunked(_) | Storage::Virtual(_)) => {
            if element.len() as u64 != u64::from(size) {
                let what = format!("fill value of {} bytes, elements of {size}", element.len());
                return Err(Error::corrupt(what, None));
            }
            Ok((!array.fill.is_zero()).then(|| Arc::clone(element)))
        }
        _ => Ok(None),
    }
}

fn with_starts(extents: &[Extent]) -> Vec<(u64, Extent)> {
    let mut next = 0_u64;
    let place = |extent: &Extent| {
        let start = next;
        next = next.saturating_add(extent.length);
        (start, extent.clone())
    };
    extents.iter().map(place).collect()
}

fn read_extents(extents: &[(u64, Extent)], offset: u64, end: u64) -> Result<Buffer> {
    let mut reply = Buffer::new((end - offset) as usize);
    let mut next = offset;
    let first =
        extents.partition_point(|(start, extent)| start.saturating_add(extent.length) <= offset);
    for (start, extent) in &extents[first..] {
        let stop = start.saturating_add(extent.length).min(end);
        if next >= stop {
            continue;
        }
        let target = &mut reply[(next - offset) as usize..(stop - offset) as usize];
        let at = extent.offset.checked_add(next - start);
        let at = at.ok_or_else(|| Error::corrupt("address of an array", extent.offset))?;
        extent.source.read_at(at, target)?;
        next = stop;
    }
    if next < end {
        let what = format!("array's storage ends at its byte {next}");
        return Err(Error::corrupt(what, None));
    }
    Ok(reply)
}

#[cfg(test)]
mod tests;
