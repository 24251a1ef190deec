//! What a mount can be told: the words of `-o`, which the long flags share, and what they add up to.
//!
//! The words of mount(8) that every line of /etc/fstab may carry are accepted and change nothing: the
//! mount is read-only, nosuid and nodev whatever they say.

use std::path::PathBuf;

use crate::array::CacheSize;
use crate::fs::External;
use crate::limits;

/// One thing that a mount is told, by a flag or by a word under `-o`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    AllowOther,
    Uid(u32),
    Gid(u32),
    Umask(u32),
    CacheSize(u64),
    Threads(usize),
    DirectIo,
    External(External),
    Verify(bool),
    Sandbox(bool),
    Force,
    NoViews,
    LogFile(PathBuf),
    FsName(String),
    /// Handed to the kernel as it stands: `context=…` and its kin.
    Kernel(String),
    /// A word of mount(8) that changes nothing here.
    Ignored,
}

/// The words of one `-o a,b=c`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words(pub(crate) Vec<Word>);

/// What all words together say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) allow_other: bool,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) umask: Option<u32>,
    /// In bytes; absent: [`default_cache_size`].
    pub(crate) cache_size: Option<u64>,
    /// Absent: [`default_threads`].
    pub(crate) threads: Option<usize>,
    pub(crate) direct_io: bool,
    pub(crate) external: External,
    pub(crate) verify: bool,
    pub(crate) sandbox: bool,
    pub(crate) force: bool,
    pub(crate) views: bool,
    pub(crate) log_file: Option<PathBuf>,
    /// What `mount` shows as the source; absent: the source's path.
    pub(crate) fsname: Option<String>,
    /// Options for the kernel, as they stand.
    pub(crate) kernel: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            allow_other: false,
            uid: None,
            gid: None,
            umask: None,
            cache_size: None,
            threads: None,
            direct_io: false,
            external: External::Within,
            verify: false,
            sandbox: true,
            force: false,
            views: true,
            log_file: None,
            fsname: None,
            kernel: Vec::new(),
        }
    }
}

impl FromIterator<Word> for Settings {
    /// A later word wins over an earlier one.
    fn from_iter<I: IntoIterator<Item = Word>>(words: I) -> Self {
        let mut settings = Settings::default();
        for word in words {
            settings.apply(word);
        }
        settings
    }
}

impl Settings {
    fn apply(&mut self, word: Word) {
        match word {
            Word::AllowOther => self.allow_other = true,
            Word::Uid(uid) => self.uid = Some(uid),
            Word::Gid(gid) => self.gid = Some(gid),
            Word::Umask(umask) => self.umask = Some(umask),
            Word::CacheSize(bytes) => self.cache_size = Some(bytes),
            Word::Threads(count) => self.threads = Some(count),
            Word::DirectIo => self.direct_io = true,
            Word::External(policy) => self.external = policy,
            Word::Verify(on) => self.verify = on,
            Word::Sandbox(on) => self.sandbox = on,
            Word::Force => self.force = true,
            Word::NoViews => self.views = false,
            Word::LogFile(path) => self.log_file = Some(path),
            Word::FsName(name) => self.fsname = Some(name),
            Word::Kernel(option) => self.kernel.push(option),
            Word::Ignored => {}
        }
    }
}

/// Parses one `-o a,b=c`.
///
/// # Errors
/// Names the word that is not known, or whose value is missing, needless or wrong.
pub(crate) fn words(text: &str) -> Result<Words, String> {
    split(text)
        .iter()
        .filter(|word| !word.is_empty())
        .map(|word| parse_word(word).map_err(|reason| format!("`{word}`: {reason}")))
        .collect::<Result<Vec<_>, _>>()
        .map(Words)
}

/// Splits at commas, but not inside double quotes (`context="a:s0:c0,c1"`) nor after a backslash, which
/// is dropped.
fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let taken = match character {
            ',' if !quoted => {
                words.push(String::new());
                continue;
            }
            '\\' => characters.next().unwrap_or('\\'),
            '"' => {
                quoted = !quoted;
                '"'
            }
            other => other,
        };
        if let Some(word) = words.last_mut() {
            word.push(taken);
        }
    }
    words
}

fn parse_word(word: &str) -> Result<Word, String> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let needed = || value.filter(|v| !v.is_empty()).ok_or("a value is missing");
    let parsed = match name {
        "uid" => Word::Uid(id(needed()?)?),
        "gid" => Word::Gid(id(needed()?)?),
        "umask" => Word::Umask(umask(needed()?)?),
        "cache_size" => Word::CacheSize(size(needed()?)?),
        "threads" => Word::Threads(threads(needed()?)?),
        "external" => Word::External(external(needed()?)?),
        "verify" => Word::Verify(switch(needed()?)?),
        "sandbox" => Word::Sandbox(switch(needed()?)?),
        "log_file" => Word::LogFile(needed()?.into()),
        "fsname" => Word::FsName(needed()?.to_owned()),
        "context" | "fscontext" | "defcontext" | "rootcontext" => {
            needed()?;
            Word::Kernel(word.to_owned())
        }
        // `user=NAME` is what mount(8) makes of `user` when it calls a helper.
        "comment" | "user" => Word::Ignored,
        _ if name.starts_with("x-") => Word::Ignored,
        _ => {
            let parsed = flag(name).ok_or("no such option")?;
            if value.is_some() {
                return Err("takes no value".to_owned());
            }
            parsed
        }
    };
    Ok(parsed)
}

/// The words that stand alone.
fn flag(name: &str) -> Option<Word> {
    match name {
        "allow_other" => Some(Word::AllowOther),
        "direct_io" => Some(Word::DirectIo),
        "force" => Some(Word::Force),
        "noviews" => Some(Word::NoViews),
        "rw" | "ro" | "dev" | "nodev" | "suid" | "nosuid" | "exec" | "noexec" | "atime"
        | "noatime" | "relatime" | "auto" | "noauto" | "users" | "owner" | "group" | "nofail"
        | "_netdev" | "defaults" | "auto_unmount" => Some(Word::Ignored),
        _ => None,
    }
}

/// A user's or group's number.
pub(crate) fn id(text: &str) -> Result<u32, String> {
    // The last number means "nobody in particular" to the kernel.
    match text.parse() {
        Ok(u32::MAX) | Err(_) => Err(format!("`{text}` is not a number of a user or group")),
        Ok(id) => Ok(id),
    }
}

/// Permission bits to take away, in octal.
pub(crate) fn umask(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(bits) if bits <= 0o777 && !text.starts_with('+') => Ok(bits),
        _ => Err(format!("`{text}` is not an octal number up to 777")),
    }
}

/// A number of bytes, with K, M or G for the powers of 1024.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "`{text}` is not a size (bytes, or a number and K, M or G)"
        ));
    }
    let count: Option<u64> = digits.parse().ok();
    count
        .and_then(|count| count.checked_mul(unit))
        .ok_or_else(|| format!("`{text}` is too large"))
}

/// A number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=limits::THREADS).contains(&count) => Ok(count),
        _ => Err(format!(
            "`{text}` is not a number between 1 and {}",
            limits::THREADS
        )),
    }
}

/// `none`, `within` or `any`.
pub(crate) fn external(text: &str) -> Result<External, String> {
    match text {
        "none" => Ok(External::None),
        "within" => Ok(External::Within),
        "any" => Ok(External::Any),
        _ => Err(format!("`{text}` is not one of none, within, any")),
    }
}

/// `on` or `off`.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is neither on nor off")),
    }
}

/// At first [`limits::CACHE_LEAST`], and where readers gain by it up to a quarter of the machine's memory,
/// within [`limits::CACHE_MOST`].
pub(crate) fn default_cache_size() -> CacheSize {
    let memory = machine_memory().unwrap_or(0);
    let most = (memory / 4).clamp(*limits::CACHE_MOST.start(), *limits::CACHE_MOST.end());
    CacheSize {
        least: limits::CACHE_LEAST.min(most),
        most,
    }
}

/// Bytes of memory that the machine has.
pub(crate) fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    total_memory(&text)
}

/// Bytes of memory that /proc/meminfo's `MemTotal:  16384 kB` states.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// One for each core, and at least two: one slow request must not stop all others.
pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism()
        .map_or(2, std::num::NonZero::get)
        .clamp(2, limits::THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        words(text).unwrap().0.into_iter().collect()
    }

    #[test]
    fn a_line_of_fstab() {
        let line =
            "defaults,rw,noauto,nofail,user,x-systemd.automount,comment=a b,_netdev,uid=1000";
        let expected = Settings {
            uid: Some(1000),
            ..Settings::default()
        };
        assert_eq!(settings(line), expected);
    }

    #[test]
    fn every_word_of_our_own() {
        let all = "allow_other,uid=1,gid=2,umask=027,cache_size=3M,threads=4,direct_io,external=any,\
                   verify=on,sandbox=off,force,noviews,log_file=/a\\,b,fsname=data,context=\"s:c0,c1\"";
        let expected = Settings {
            allow_other: true,
            uid: Some(1),
            gid: Some(2),
            umask: Some(0o027),
            cache_size: Some(3 << 20),
            threads: Some(4),
            direct_io: true,
            external: External::Any,
            verify: true,
            sandbox: false,
            force: true,
            views: false,
            log_file: Some("/a,b".into()),
            fsname: Some("data".to_owned()),
            kernel: vec!["context=\"s:c0,c1\"".to_owned()],
        };
        assert_eq!(settings(all), expected);
    }

    #[test]
    fn the_last_word_wins() {
        assert_eq!(settings("uid=1,uid=2").uid, Some(2));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("ro,bogus", "bogus"),
            ("context", "context"),
            ("uid=", "uid="),
            ("uid=-1", "uid=-1"),
            ("uid=4294967295", "uid=4294967295"),
            ("umask=8", "umask=8"),
            ("umask=1000", "umask=1000"),
            ("threads=0", "threads=0"),
            ("direct_io=yes", "direct_io=yes"),
            ("cache_size=1T", "cache_size=1T"),
            ("external=all", "external=all"),
            ("verify=1", "verify=1"),
            ("Ro", "Ro"),
        ] {
            let error = words(text).unwrap_err();
            assert!(error.contains(&format!("`{named}`")), "{text}: {error}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("0"), Ok(0));
        assert_eq!(size("1024"), Ok(1024));
        assert_eq!(size("64k"), Ok(65_536));
        assert_eq!(size("1G"), Ok(1 << 30));
        for wrong in ["", "K", "-1", "+1", "1.5G", "1KB", "ü", "99999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn memory_of_the_machine() {
        let text = "MemTotal:       16384 kB\nMemFree:  1 kB\n";
        assert_eq!(total_memory(text), Some(16 << 20));
        assert_eq!(total_memory("MemFree: 1 kB\n"), None);
    }
}
