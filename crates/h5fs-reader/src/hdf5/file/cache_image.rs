//! The metadata cache image: metadata structures that a writer left in one block instead of writing
//! each of them to its address. The image exists since HDF5 1.10. The specification does not
//! describe it, so the layout follows the HDF5 library.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::{Metadata, verify_checksum};
use crate::hdf5::file::number_form::Address;
use crate::hdf5::object_header::RawMessage;
use crate::limits;
use crate::memory::cancel::WantedCheck;
use crate::source::overlay::{Overlay, Patch};
use crate::source::{SharedSource, Source, Urgency};
use crate::wire::{Count, Cursor, to_u64, to_usize};

const WHAT: &str = "metadata cache image";

/// A counter of the structures in the cache images of all files of a mount.
#[derive(Debug, Clone, Default)]
pub(crate) struct ImageStructureCounter(Arc<AtomicUsize>);

/// A file with a metadata cache image. The structures of the image count towards the mount's limit
/// until the file is closed.
#[derive(Debug)]
struct CountedImage {
    overlay: Overlay,
    count: usize,
    all: ImageStructureCounter,
}

/// Returns the file with the structures of its cache image at their addresses. `message` points to
/// the image. `all` counts the structures of all images of the mount.
///
/// # Errors
/// `Corrupt` for a wrong checksum, a truncated structure, and a structure outside of the file.
/// `Limit` for too many structures.
pub(crate) fn apply_cache_image(
    metadata: &Metadata,
    message: &RawMessage<'_>,
    all: &ImageStructureCounter,
) -> Result<SharedSource> {
    let mut cursor = Cursor::new(message.data, message.at, "metadata cache image message");
    cursor.read_version(0..=0)?;
    let Some(at) = metadata.read_address(&mut cursor)? else {
        return Ok(Arc::clone(metadata.source()));
    };
    let length = metadata.read_length(&mut cursor)?;
    let patches = read_image(metadata, at, length)?;
    let count = patches.len();
    let overlay = Overlay::new(Arc::clone(metadata.source()), patches)?;
    Ok(Arc::new(CountedImage::new(overlay, count, all.clone())?))
}

fn read_image(metadata: &Metadata, at: Address, length: u64) -> Result<Vec<Patch>> {
    let block =
        metadata.verified_block(at, length, WHAT, |block| verify_checksum(block, at, WHAT))?;
    let mut cursor = Cursor::new(&block, at, WHAT);
    cursor.expect_signature(b"MDCI")?;
    cursor.read_version(0..=0)?;
    cursor.skip(1)?;
    metadata.read_length(&mut cursor)?; // the image's length again
    let entries = to_usize(u64::from(cursor.u32()?))?;
    if entries > limits::CACHE_IMAGE_ENTRIES {
        return Err(too_many_structures_error());
    }
    (0..entries)
        .map(|_| read_entry(metadata, &mut cursor))
        .collect()
}

fn read_entry(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<Patch> {
    cursor.skip(1 + 1 + 1 + 1 + 2 + 2)?; // type, flags, ring, age, children, dirty children
    let parents = usize::from(cursor.u16()?);
    cursor.skip(4)?; // rank in the least recently used list
    let at = metadata.read_defined_address(cursor)?.offset();
    let length = metadata.read_length(cursor)?;
    cursor.skip(metadata.structure_size(parents, 0, 0))?;
    let from = cursor.offset();
    cursor.skip(to_usize(length)?)?;
    Patch::new(at, length, from)
}

fn too_many_structures_error() -> Error {
    let most = to_u64(limits::CACHE_IMAGE_ENTRIES);
    Error::limit("structures in metadata cache images", most)
}

impl CountedImage {
    fn new(overlay: Overlay, count: usize, all: ImageStructureCounter) -> Result<Self> {
        let before = all.0.fetch_add(count, Ordering::Relaxed);
        let counted = CountedImage {
            overlay,
            count,
            all,
        };
        if before.plus(count) <= limits::CACHE_IMAGE_ENTRIES {
            Ok(counted)
        } else {
            Err(too_many_structures_error())
        }
    }
}

impl Drop for CountedImage {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.count, Ordering::Relaxed);
    }
}

impl Source for CountedImage {
    fn length(&self) -> u64 {
        self.overlay.length()
    }

    fn is_composite(&self) -> bool {
        true
    }

    fn contiguous_bytes(&self, at: u64) -> u64 {
        self.overlay.contiguous_bytes(at)
    }

    fn is_remote(&self) -> bool {
        self.overlay.is_remote()
    }

    fn prefetch(&self, ranges: &[(u64, u64)], urgency: Urgency) {
        self.overlay.prefetch(ranges, urgency);
    }

    fn is_available(&self, at: u64, length: u64) -> bool {
        self.overlay.is_available(at, length)
    }

    fn set_metadata_pages(&self, base: u64, length: u64) {
        self.overlay.set_metadata_pages(base, length);
    }

    fn read_cancellable(
        &self,
        at: u64,
        buffer: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        self.overlay.read_cancellable(at, buffer, is_wanted)
    }
}
