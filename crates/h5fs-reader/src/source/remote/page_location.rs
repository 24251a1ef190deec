//! Where the bytes of a page are stored, and how they are read from there.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::source::remote::segment::{PAGE, Segment};
use crate::source::remote::staging::{StagedObject, length};
use crate::wire::{Count, Extent, to_u64, to_usize};

/// Where the bytes of a page are stored.
#[derive(Debug, Clone)]
pub(super) enum PageLocation {
    /// The page is in the stage.
    Stage,
    /// The page is in a file of the fetcher's disk cache.
    Segment(Arc<Segment>),
}

impl PageLocation {
    fn is_stage(&self) -> bool {
        matches!(self, PageLocation::Stage)
    }
}

/// Fills `buffer` with the object's bytes at offset `at`. `places` contains the location of each
/// page that contains these bytes. Returns the numbers of pages in segments that failed
/// verification.
///
/// # Errors
/// `Io` if the stage cannot be read.
pub(super) fn read_pages(
    buffer: &mut [u8],
    object: &StagedObject,
    mut at: u64,
    places: &[PageLocation],
    stage: &File,
) -> Result<Vec<u64>> {
    let mut wrong = Vec::new();
    let mut left = buffer;
    let mut number = object.pages_of(at, to_u64(left.len())).start;
    for group in places.chunk_by(|one, next| one.is_stage() && next.is_stage()) {
        let pages = Extent::saturating(number, to_u64(group.len())).range();
        let bytes = object.bytes_of(&pages).end.minus_or_zero(at);
        let count = left.len().min(to_usize(bytes)?);
        let (part, more) = left.split_at_mut(count);
        match group.first() {
            Some(PageLocation::Segment(segment))
                if !read_page(part, object, at, number, segment) =>
            {
                wrong.push(number);
            }
            Some(PageLocation::Segment(_)) => {}
            _ => {
                let read = stage.read_exact_at(part, Extent::saturating(object.region, at).end());
                read.map_err(|error| {
                    Error::from_io(&error, format!("stage, {count} bytes at {at}"))
                })?;
            }
        }
        (left, number) = (more, pages.end);
        at = Extent::saturating(at, to_u64(count)).end();
    }
    Ok(wrong)
}

/// Reads the object's bytes at offset `at`, which are a part of the page `number`, into `part`.
/// Returns whether the whole page matches its checksum.
fn read_page(
    part: &mut [u8],
    object: &StagedObject,
    at: u64,
    number: u64,
    segment: &Segment,
) -> bool {
    let bytes = object.bytes_of(&(number..number.plus_one()));
    let number = bytes.start / PAGE;
    let Ok(whole) = to_usize(length(&bytes)) else {
        return false;
    };
    if part.len() == whole {
        return segment.read(number, part).unwrap_or(false);
    }
    let mut page = vec![0; whole];
    let from = to_usize(at.minus_or_zero(bytes.start)).unwrap_or(whole);
    let own = from..from.plus(part.len());
    let is_right = segment.read(number, &mut page).unwrap_or(false);
    if let Some(own) = page.get(own)
        && is_right
    {
        part.copy_from_slice(own);
        return true;
    }
    false
}
