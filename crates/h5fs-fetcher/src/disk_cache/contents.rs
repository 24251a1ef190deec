//! Lists the sources whose pages are in a disk cache, and deletes the least recently used files.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::disk_cache::{DiskCache, NAME_SUFFIX, STATE_SUFFIX, open_cache_file};
use crate::limits;

/// The cached pages of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedSource {
    /// The source's URL without secrets. `None` if the cache does not contain the URL.
    pub source: Option<String>,
    /// Size on disk of the source's segments, in bytes.
    pub bytes: u64,
    /// Time of the most recent use of any of the source's segments.
    pub last_used: SystemTime,
}

/// A file of a cache.
#[derive(Debug)]
struct CacheFile {
    kind: CacheFileKind,
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

#[derive(Debug, PartialEq, Eq)]
enum CacheFileKind {
    /// A segment with pages of an object. The text is the object's key in hexadecimal digits.
    Segment(String),
    /// The URL of an object, for listings of the cache. The text is the object's key in hexadecimal
    /// digits.
    Name(String),
    State,
    /// The lock file, or a file that does not belong to the cache.
    Other,
}

impl CacheFileKind {
    fn parse(name: &str) -> Self {
        let is_key =
            |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some(key) = name.strip_suffix(NAME_SUFFIX).filter(|key| is_key(key)) {
            return CacheFileKind::Name(key.to_owned());
        }
        if name.strip_suffix(STATE_SUFFIX).is_some_and(is_key) {
            return CacheFileKind::State;
        }
        match name.split_once('-') {
            Some((key, number)) if is_key(key) && u64::from_str_radix(number, 16).is_ok() => {
                CacheFileKind::Segment(key.to_owned())
            }
            _ => CacheFileKind::Other,
        }
    }
}

impl DiskCache {
    /// Returns the cached sources. The most recently used source is the first one.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    pub fn cached_sources(&self) -> io::Result<Vec<CachedSource>> {
        let files = self.files()?;
        let names: HashMap<&str, String> = files
            .iter()
            .filter_map(|file| match &file.kind {
                CacheFileKind::Name(key) => Some((key.as_str(), read_name(&file.path)?)),
                _ => None,
            })
            .collect();
        let mut shares: HashMap<Option<&String>, CachedSource> = HashMap::new();
        for file in &files {
            let CacheFileKind::Segment(key) = &file.kind else {
                continue;
            };
            let source = names.get(key.as_str());
            let share = shares.entry(source).or_insert_with(|| CachedSource {
                source: source.cloned(),
                bytes: 0,
                last_used: SystemTime::UNIX_EPOCH,
            });
            share.bytes = share.bytes.saturating_add(file.bytes);
            share.last_used = share.last_used.max(file.used);
        }
        let mut shares: Vec<CachedSource> = shares.into_values().collect();
        shares.sort_by(|a, b| (b.last_used, &a.source).cmp(&(a.last_used, &b.source)));
        Ok(shares)
    }

    /// Deletes the least recently used files until at most `most` bytes remain. Returns the size of
    /// the cache in bytes, before and after the deletion.
    ///
    /// # Errors
    /// Fails if the directory cannot be read, or if a file cannot be deleted.
    pub fn trim(&self, most: u64) -> io::Result<(u64, u64)> {
        self.with_lock(true, || {
            let there = self.delete_beyond(most, most)?;
            Ok(there)
        })
    }

    /// If the cache has more than `most` bytes, deletes files until at most `left` bytes remain.
    /// Returns the size of the cache in bytes, before and after the deletion.
    pub(super) fn delete_beyond(&self, most: u64, left: u64) -> io::Result<(u64, u64)> {
        let mut files = self.files()?;
        let before: u64 = files.iter().map(|file| file.bytes).sum();
        if before <= most {
            return Ok((before, before));
        }
        files.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
        let mut there = before;
        let mut stays = HashSet::new();
        for file in &files {
            let is_pages = matches!(file.kind, CacheFileKind::Segment(_));
            if there > left && (is_pages || file.kind == CacheFileKind::State) {
                delete(&file.path)?;
                there = there.saturating_sub(file.bytes);
            } else if let CacheFileKind::Segment(key) = &file.kind {
                stays.insert(key.as_str());
            }
        }
        for file in &files {
            if let CacheFileKind::Name(key) = &file.kind
                && !stays.contains(key.as_str())
            {
                delete(&file.path)?;
                there = there.saturating_sub(file.bytes);
            }
        }
        Ok((before, there))
    }

    fn files(&self) -> io::Result<Vec<CacheFile>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.directory())? {
            let entry = entry?;
            // Another process may have deleted the file.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            files.push(CacheFile {
                kind: CacheFileKind::parse(&entry.file_name().to_string_lossy()),
                path: entry.path(),
                bytes: metadata.blocks().saturating_mul(512),
                used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            });
        }
        Ok(files)
    }
}

/// Reads the URL of an object from its file. Returns `None` if the file cannot be read, is empty,
/// or is not UTF-8.
fn read_name(path: &Path) -> Option<String> {
    let mut name = String::new();
    let file = open_cache_file(path, OpenOptions::new().read(true)).ok()?;
    let most = u64::try_from(limits::CACHED_NAME).ok()?;
    file.take(most).read_to_string(&mut name).ok()?;
    Some(name).filter(|name| !name.is_empty())
}

/// Deletes a file, unless another process has deleted it.
fn delete(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use h5fs_reader::source::remote::segment::PAGE;
    use h5fs_reader::source::remote::state::ObjectState;

    use super::*;

    /// Creates a cache of three objects with different numbers of pages. The first object is the
    /// least recently used, and the name of the last one is not recorded.
    fn cache() -> (tempfile::TempDir, DiskCache) {
        let directory = tempfile::tempdir().unwrap();
        let cache = DiskCache::open(directory.path(), 1 << 30).unwrap();
        let page = vec![7; usize::try_from(PAGE).unwrap()];
        let now = SystemTime::now();
        for (number, pages) in [(0, 4), (1, 2), (2, 1)] {
            let state = ObjectState {
                length: 9 * PAGE,
                etag: format!("\"{number}\"").into_bytes(),
                modified: 7,
            };
            let place = format!("https://h/{number}");
            let key = cache.key(&place, &state).unwrap();
            for page_number in 0..pages {
                cache.write_page(&key, page_number, &page);
            }
            cache.store_state(&place, &state);
            if number < 2 {
                cache.set_name(&key, &format!("s3://b/{number}.h5"));
            }
            let segment = File::open(cache.segment_path(&key, 0)).unwrap();
            let age = Duration::from_secs(1000 - number * 100);
            segment.set_modified(now - age).unwrap();
        }
        (directory, cache)
    }

    fn sources(cache: &DiskCache) -> Vec<(Option<String>, u64)> {
        let shares = cache.cached_sources().unwrap();
        let pages = |bytes: u64| bytes / PAGE;
        let shares = shares.into_iter();
        shares
            .map(|share| (share.source, pages(share.bytes)))
            .collect()
    }

    #[test]
    fn cached_bytes_are_listed_by_source() {
        let (_directory, cache) = cache();
        let name = |number: u32| Some(format!("s3://b/{number}.h5"));
        let all = [(None, 1), (name(1), 2), (name(0), 4)];
        assert_eq!(sources(&cache), all);
        // Other files are ignored, and a name file that is a pipe is not read.
        fs::write(cache.directory().join("other"), [0; 100_000]).unwrap();
        let key = "0".repeat(64);
        let pipe = cache.directory().join(format!("{key}{NAME_SUFFIX}"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(cache.directory().join(format!("{key}-0")), [0; 100]).unwrap();
        assert_eq!(sources(&cache)[1..], all[1..]);
    }

    #[test]
    fn the_least_recently_used_source_is_deleted_with_its_name() {
        let (_directory, cache) = cache();
        let (before, left) = cache.trim(4 * PAGE + (64 << 10)).unwrap();
        assert!(before > 7 * PAGE && left <= 5 * PAGE, "{before} {left}");
        let name = Some("s3://b/1.h5".to_owned());
        assert_eq!(sources(&cache), [(None, 1), (name, 2)]);
        let names = fs::read_dir(cache.directory()).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().ends_with(NAME_SUFFIX)
        });
        assert_eq!(names.count(), 1);
        assert_eq!(cache.trim(1 << 30).unwrap(), (left, left));
        cache.trim(0).unwrap();
        assert_eq!(sources(&cache), []);
        let names = fs::read_dir(cache.directory()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["lock"]);
    }

    #[test]
    fn a_long_name_does_not_exceed_the_limit() {
        let (_directory, cache) = cache();
        let state = ObjectState {
            length: PAGE,
            etag: b"\"long\"".to_vec(),
            modified: 7,
        };
        let key = cache.key("https://h/long", &state).unwrap();
        let page = vec![7; usize::try_from(PAGE).unwrap()];
        cache.write_page(&key, 0, &page);
        cache.set_name(&key, &"n".repeat(2 * limits::CACHED_NAME));
        let first = cache.cached_sources().unwrap().remove(0);
        assert_eq!(first.source.unwrap().len(), limits::CACHED_NAME);
    }
}
