//! Reads an object's bytes from the disk cache. Finds the bytes that are not cached and must come
//! from the server.

use std::ops::Range;

use h5fs_reader::source::remote::segment::{ObjectKey, PAGE, Segment};
use h5fs_reader::source::remote::state::ObjectState;
use h5fs_reader::wire::to_u64;

use crate::disk_cache::{DiskCache, page_length};
use crate::fetch_error::FetchError;
use crate::transfer::ByteSink;

/// Minimum number of consecutive cached pages for which the parsing process receives the cache file
/// itself. Fewer pages are copied to the stage, because they usually contain metadata, which is
/// read repeatedly in small ranges.
const MIN_SEGMENT_PAGES: u64 = 9;

/// The cached pages of one object.
pub(super) struct CachedObject<'a> {
    /// The cache and the object's key in it. `None` without a disk cache, or if the object has no
    /// strong entity tag and so cannot be cached.
    cache: Option<(&'a DiskCache, ObjectKey)>,
    length: u64,
    /// The bytes that have arrived of the page that the server is currently sending.
    page: Vec<u8>,
}

/// Where the next bytes of a requested range are.
pub(super) enum NextLocation {
    /// In this segment of the cache, which contains many consecutive pages from the start of the
    /// range on. The pages end at this offset in the object.
    Segment(Segment, u64),
    /// On the server, in this range. The preceding bytes were read from the cache.
    Server(Range<u64>),
}

impl<'a> CachedObject<'a> {
    /// Gives access to the cached pages of an object. `place` is the location of the object, and
    /// `state` is its current state.
    pub(super) fn new(cache: Option<&'a DiskCache>, place: &str, state: &ObjectState) -> Self {
        CachedObject {
            cache: cache.and_then(|cache| Some((cache, cache.key(place, state)?))),
            length: state.length,
            page: Vec::new(),
        }
    }

    /// Passes the cached bytes at the start of `range` to the sink, and returns the range of the
    /// uncached bytes after them. If `hands_over` is set and the range starts with many cached
    /// pages, returns the segment file that contains these pages instead.
    pub(super) fn next_location(
        &self,
        range: &Range<u64>,
        hands_over: bool,
        sink: &mut ByteSink<'_>,
    ) -> Result<NextLocation, FetchError> {
        if hands_over && let Some((segment, end)) = self.find_segment(range) {
            return Ok(NextLocation::Segment(segment, end));
        }
        let start = self.read(range, sink)?;
        Ok(NextLocation::Server(
            start..self.uncached_end(&(start..range.end)),
        ))
    }

    /// Passes cached bytes at the start of `range` to the sink. Returns the offset in the object
    /// after these bytes, which is the start of `range` if its first page is not cached.
    pub(super) fn read(
        &self,
        range: &Range<u64>,
        sink: &mut ByteSink<'_>,
    ) -> Result<u64, FetchError> {
        let mut at = range.start;
        while at < range.end
            && let Some(page) = self.cached_page(at / PAGE)
        {
            let first = at - at % PAGE;
            let end = (first + to_u64(page.len())).min(range.end);
            let part = |place: u64| usize::try_from(place - first).unwrap_or(0);
            sink(at, &page[part(at)..part(end)])?;
            at = end;
        }
        Ok(at)
    }

    fn cached_page(&self, number: u64) -> Option<Vec<u8>> {
        let (cache, key) = self.cache.as_ref()?;
        let mut page = vec![0; page_length(number, self.length)];
        cache.read_page(key, number, &mut page).then_some(page)
    }

    /// Returns the segment that contains many consecutive pages from the start of `range`, and the
    /// offset after these pages. Returns `None` if the segment contains fewer than
    /// [`MIN_SEGMENT_PAGES`] of them.
    fn find_segment(&self, range: &Range<u64>) -> Option<(Segment, u64)> {
        let (cache, key) = self.cache.as_ref()?;
        let numbers = range.start / PAGE..range.end.div_ceil(PAGE);
        if !range.start.is_multiple_of(PAGE) || numbers.end - numbers.start < MIN_SEGMENT_PAGES {
            return None;
        }
        let (segment, written) = cache.find_segment(key, &numbers)?;
        let end = (numbers.start + written) * PAGE;
        (written >= MIN_SEGMENT_PAGES).then(|| (segment, end.min(range.end)))
    }

    /// Removes the page at an offset from the cache, because its content was wrong.
    pub(super) fn remove_page(&self, offset: u64) {
        if let Some((cache, key)) = &self.cache {
            cache.remove_page(key, offset / PAGE);
        }
    }

    /// Returns the end of the uncached bytes at the start of `range`. The first page of the range
    /// is not cached.
    fn uncached_end(&self, range: &Range<u64>) -> u64 {
        let mut behind = range.start / PAGE + 1..range.end.div_ceil(PAGE);
        let next = behind.find(|number| self.cached_page(*number).is_some());
        next.map_or(range.end, |number| number * PAGE)
    }

    /// Stores in the cache the state of an opened object, its first bytes, and the URL that `h5fs
    /// cache list` shows.
    pub(super) fn store_opened(
        &mut self,
        (place, shown): (&str, &str),
        state: &ObjectState,
        first: &[u8],
    ) {
        self.store(0, first);
        if let Some((cache, key)) = &self.cache {
            cache.store_state(place, state);
            cache.set_name(key, shown);
        }
    }

    /// Stores consecutive bytes from the server in the cache. Only complete pages are stored.
    pub(super) fn store(&mut self, mut at: u64, mut bytes: &[u8]) {
        let Some((cache, key)) = &self.cache else {
            return;
        };
        while !bytes.is_empty() {
            let number = at / PAGE;
            let place = usize::try_from(at % PAGE).unwrap_or(0);
            if place != self.page.len() {
                // A page whose start was not received is not stored.
                self.page.clear();
            }
            let left = page_length(number, self.length).saturating_sub(place);
            let (own, more) = bytes.split_at(left.min(bytes.len()));
            if place == self.page.len() {
                self.page.extend_from_slice(own);
            }
            if own.len() == left {
                if place + left == self.page.len() {
                    cache.write_page(key, number, &self.page);
                }
                self.page.clear();
            }
            if own.is_empty() {
                return;
            }
            at += to_u64(own.len());
            bytes = more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_pages_are_cached() {
        let directory = tempfile::tempdir().unwrap();
        let cache = DiskCache::open(directory.path(), 1 << 30).unwrap();
        let length = 3 * PAGE + 100;
        let bytes: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
        let state = ObjectState {
            length,
            etag: b"\"1\"".to_vec(),
            modified: 0,
        };
        let mut cached = CachedObject::new(Some(&cache), "http://h/a", &state);
        let part = |range: Range<u64>| &bytes[range.start as usize..range.end as usize];
        // The second half of page 0, all of page 1 in odd pieces, and the last page.
        cached.store(PAGE / 2, part(PAGE / 2..PAGE));
        for at in (PAGE..2 * PAGE).step_by(1000) {
            cached.store(at, part(at..(at + 1000).min(2 * PAGE)));
        }
        cached.store(3 * PAGE, part(3 * PAGE..length));
        let mut seen = Vec::new();
        let mut read = |range: Range<u64>| {
            seen.clear();
            let end = cached.read(&range, &mut |_, piece| {
                seen.extend_from_slice(piece);
                Ok(())
            });
            assert_eq!(seen, part(range.start..end.clone().unwrap()));
            end.unwrap()
        };
        assert_eq!(read(0..PAGE), 0);
        assert_eq!(read(PAGE + 10..length), 2 * PAGE);
        assert_eq!(read(3 * PAGE..length), length);
        assert_eq!(cached.uncached_end(&(2 * PAGE..length)), 3 * PAGE);
        assert_eq!(cached.uncached_end(&(0..length)), PAGE);
    }
}
