//! The options of a mount: one table, whose rows define both a flag and a word of `-o`.
//!
//! The words of mount(8) that any line of /etc/fstab may contain are accepted and change nothing:
//! the mount is always read-only, nosuid and nodev.

mod option;
mod remote;
mod settings;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use h5fs_fetcher::RemoteSettings;
use h5fs_reader::array::CacheSize;

use crate::cli::machine::usable_memory;
use crate::limits;
use option::{MountOption, OptionValue};
pub(crate) use settings::Settings;
use values::{
    parse_external, parse_group, parse_open_files, parse_threads, parse_umask, parse_user,
    refuse_value, required_value,
};
pub(crate) use values::{parse_jobs, parse_size, parse_switch};

/// The heading of the options in [`remote`].
pub(crate) const REMOTE_HEADING: &str = "For a source by URL";

/// The options of a mount that apply to any source. Options that apply only to a source by URL are
/// in [`remote`].
const OPTIONS: &[MountOption] = &[
    MountOption {
        flag: "allow-other",
        word: "allow_other",
        help: "Let other users read the mount, as the permission bits allow",
        default: None,
        value: OptionValue::Nothing(|to| to.allow_other = true),
    },
    MountOption {
        flag: "uid",
        word: "uid",
        help: "Show this user as the owner instead of the source's",
        default: None,
        value: OptionValue::Text("USER", |to, text| {
            parse_user(text).map(|id| to.uid = Some(id))
        }),
    },
    MountOption {
        flag: "gid",
        word: "gid",
        help: "Show this group instead of the source's",
        default: None,
        value: OptionValue::Text("GROUP", |to, text| {
            parse_group(text).map(|id| to.gid = Some(id))
        }),
    },
    MountOption {
        flag: "umask",
        word: "umask",
        help: "Permission bits to remove",
        default: None,
        value: OptionValue::Text("OCTAL", |to, text| {
            parse_umask(text).map(|bits| to.umask = Some(bits))
        }),
    },
    MountOption {
        flag: "cache-size",
        word: "cache_size",
        help: "Memory for decoded chunks: bytes, or a number and K, M, G",
        default: Some("8M, growing up to a quarter of memory, 64M to 1G"),
        value: OptionValue::Text("SIZE", |to, text| {
            parse_size(text).map(|bytes| to.cache_size = Some(bytes))
        }),
    },
    MountOption {
        flag: "threads",
        word: "threads",
        help: "Requests served at the same time",
        default: Some("the number of cores, at least 2"),
        value: OptionValue::Text("N", |to, text| {
            parse_threads(text).map(|count| to.threads = Some(count))
        }),
    },
    MountOption {
        flag: "open-files",
        word: "open_files",
        help: "Data files of a directory that are kept open",
        default: Some("the 64 most recently used"),
        value: OptionValue::Text("N", |to, text| {
            parse_open_files(text).map(|count| to.open_files = Some(count))
        }),
    },
    MountOption {
        flag: "direct-io",
        word: "direct_io",
        help: "Bypass the kernel's page cache",
        default: None,
        value: OptionValue::Nothing(|to| to.direct_io = true),
    },
    MountOption {
        flag: "external",
        word: "external",
        help: "Which other files the source may include: none, within (its own directory), any",
        default: Some("within"),
        value: OptionValue::Choice("POLICY", &["none", "within", "any"], |to, text| {
            parse_external(text).map(|policy| to.external = policy)
        }),
    },
    MountOption {
        flag: "verify",
        word: "verify",
        help: "Check the checksum of an ASDF block before its first byte is served: on, off",
        default: Some("off"),
        value: OptionValue::Choice("SWITCH", &["on", "off"], |to, text| {
            parse_switch(text).map(|on| to.verify = on)
        }),
    },
    MountOption {
        flag: "sandbox",
        word: "sandbox",
        help: "Sandbox the serving process with Landlock and seccomp: on, off",
        default: Some("on"),
        value: OptionValue::Choice("SWITCH", &["on", "off"], |to, text| {
            parse_switch(text).map(|on| to.no_sandbox = !on)
        }),
    },
    MountOption {
        flag: "force",
        word: "force",
        help: "Mount an HDF5 file that is marked as open for writing",
        default: None,
        value: OptionValue::Nothing(|to| to.force = true),
    },
    MountOption {
        flag: "strict",
        word: "strict",
        help: "Return an error, not the fill value, if a source of a virtual dataset is missing",
        default: None,
        value: OptionValue::Nothing(|to| to.strict = true),
    },
    MountOption {
        flag: "partial",
        word: "partial",
        help: "Leave files that cannot be read at the moment out of `.h5fs/joined`; otherwise they \
               are an error",
        default: None,
        value: OptionValue::Nothing(|to| to.partial = true),
    },
    MountOption {
        flag: "noviews",
        word: "noviews",
        help: "Leave out the directory `.h5fs`",
        default: None,
        value: OptionValue::Nothing(|to| to.no_views = true),
    },
    MountOption {
        flag: "noforget",
        word: "noforget",
        help: "Keep inodes that the kernel has forgotten, for the file handles of an NFS server",
        default: None,
        value: OptionValue::Nothing(|to| to.no_forget = true),
    },
    MountOption {
        flag: "run-as",
        word: "run_as",
        help: "Read the source as this user (name or number), if root mounts",
        default: Some("the source's owner"),
        value: OptionValue::Text("USER", |to, text| {
            parse_user(text).map(|user| to.run_as = Some(user))
        }),
    },
    MountOption {
        flag: "log-file",
        word: "log_file",
        help: "Append the log to this file",
        default: None,
        value: OptionValue::Path("FILE", |to, path| to.log_file = Some(path.to_owned())),
    },
];

fn all_options() -> impl Iterator<Item = &'static MountOption> {
    OPTIONS.iter().chain(remote::OPTIONS)
}

/// Words of mount(8) without a value that h5fs accepts and ignores.
const IGNORED_WORDS: &[&str] = &[
    "rw",
    "ro",
    "dev",
    "nodev",
    "suid",
    "nosuid",
    "atime",
    "noatime",
    "diratime",
    "nodiratime",
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "lazytime",
    "nolazytime",
    "sync",
    "async",
    "dirsync",
    "silent",
    "loud",
    "mand",
    "nomand",
    "iversion",
    "noiversion",
    "auto",
    "noauto",
    "nouser",
    "users",
    "nousers",
    "owner",
    "noowner",
    "group",
    "nogroup",
    "nofail",
    "_netdev",
    "defaults",
    "private",
    "rprivate",
    "shared",
    "rshared",
    "slave",
    "rslave",
    "unbindable",
    "runbindable",
    "auto_unmount",
    // Words from fstab lines of other FUSE filesystems. Their effect is always on, or has no
    // meaning here.
    "async_read",
    "atomic_o_trunc",
    "auto_cache",
    "big_writes",
    "default_permissions",
    "hard_remove",
    "intr",
    "kernel_cache",
    "large_read",
    "no_remote_lock",
    "nonempty",
    "readdir_ino",
    "sync_read",
    "use_ino",
];

/// Words of mount(8) and FUSE with a value that h5fs accepts and ignores.
const IGNORED_WORDS_WITH_VALUE: &[&str] = &[
    "helper",
    "uhelper",
    "ac_attr_timeout",
    "attr_timeout",
    "blksize",
    "congestion_threshold",
    "entry_timeout",
    "group_id",
    "max_background",
    "max_read",
    "max_readahead",
    "max_write",
    "negative_timeout",
    "rootmode",
    "subtype",
    "user_id",
];

/// The words of one `-o a,b=c`, which are all valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OptionWords(Vec<String>);

/// Parses the words of one `-o a,b=c`.
///
/// # Errors
/// Names a word that is unknown, or whose value is missing, unexpected or invalid.
pub(crate) fn parse_words(text: &str) -> Result<OptionWords, String> {
    let words = OptionWords(split_words(text));
    words.apply(&mut Settings::default())?;
    Ok(words)
}

impl OptionWords {
    /// Applies the words to the settings `to`. If two words set the same option, the later word
    /// applies.
    ///
    /// # Errors
    /// Fails as [`parse_words`] does.
    pub(crate) fn apply(&self, to: &mut Settings) -> Result<(), String> {
        const BY_MOUNT_FUSE: [&str; 4] = ["dev", "nodev", "suid", "nosuid"];
        let has = |word: &str| self.0.iter().any(|own| own == word);
        to.asks_to_write |= has("rw") && !BY_MOUNT_FUSE.into_iter().any(has);
        let mut words = self.0.iter().filter(|word| !word.is_empty());
        words.try_for_each(|word| {
            // The value of a URL may contain a password.
            let is_url = |(_, value): &(&str, &str)| value.contains("://");
            let name = word.split_once('=').filter(is_url);
            let shown = name.map_or(word.as_str(), |(name, _)| name);
            set_word(to, word).map_err(|reason| format!("`{shown}`: {reason}"))
        })
    }
}

/// Splits a text at its commas. A comma within double quotes (`context="a:s0:c0,c1"`) or after a
/// backslash does not split. The backslash is removed.
fn split_words(text: &str) -> Vec<String> {
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

fn set_word(to: &mut Settings, word: &str) -> Result<(), String> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    if let Some(option) = all_options().find(|option| option.word == name) {
        return option.apply(to, value);
    }
    match name {
        "fsname" => to.fsname = Some(required_value(value)?.to_owned()),
        "context" | "fscontext" | "defcontext" | "rootcontext" => {
            required_value(value)?;
            to.kernel.push(word.to_owned());
        }
        // mount(8) passes `user` on to a helper as `user=NAME`.
        "comment" | "user" => {}
        "exec" | "noexec" => {
            refuse_value(value)?;
            to.no_exec = name == "noexec";
        }
        "symfollow" | "nosymfollow" => {
            refuse_value(value)?;
            to.no_symlinks = name == "nosymfollow";
        }
        "remount" => {
            refuse_value(value)?;
            to.remount = true;
        }
        _ if name.starts_with("x-") || name.starts_with("X-") => {}
        _ if IGNORED_WORDS.contains(&name) => refuse_value(value)?,
        _ if IGNORED_WORDS_WITH_VALUE.contains(&name) => {
            required_value(value)?;
        }
        _ => return Err("no such option".to_owned()),
    }
    Ok(())
}

/// Returns all options as the help lists them under `-o`.
pub(crate) fn synopsis() -> String {
    let options: Vec<_> = all_options().map(MountOption::synopsis).collect();
    options.join(", ")
}

/// Returns each word of `-o` with its explanation.
pub(crate) fn words_with_help() -> impl Iterator<Item = (String, String)> {
    all_options().map(|option| (option.synopsis(), option.explanation()))
}

/// Returns the permitted values of the option with this flag or word. Returns an empty slice if any
/// value is permitted.
pub(crate) fn choices(name: &str) -> &'static [&'static str] {
    let option = all_options().find(|option| option.flag == name || option.word == name);
    match option.map(|option| &option.value) {
        Some(OptionValue::Choice(_, choices, _)) => choices,
        _ => &[],
    }
}

/// The options of a mount that the command line gives as flags.
#[derive(Debug)]
pub(crate) struct Flags(ArgMatches);

impl Flags {
    /// Applies the flags to the settings `to`.
    ///
    /// # Errors
    /// Does not fail for flags that clap has accepted.
    pub(crate) fn apply(&self, to: &mut Settings) -> Result<(), String> {
        all_options().try_for_each(|option| option.apply_flag(to, &self.0))
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command
            .args(OPTIONS.iter().map(MountOption::argument))
            .next_help_heading(REMOTE_HEADING)
            .args(remote::OPTIONS.iter().map(MountOption::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(given: &ArgMatches) -> clap::error::Result<Self> {
        Ok(Flags(given.clone()))
    }

    fn update_from_arg_matches(&mut self, given: &ArgMatches) -> clap::error::Result<()> {
        self.0 = given.clone();
        Ok(())
    }
}

/// The flags of a command that serves without a mount. The command's help hides options that only
/// affect a mount.
#[derive(Debug)]
pub(crate) struct ServeFlags(Flags);

/// The flags that do not apply to a command without a mount.
const MOUNT_ONLY_FLAGS: &[&str] = &[
    "allow-other",
    "uid",
    "gid",
    "umask",
    "direct-io",
    "noforget",
    "log-file",
];

impl std::ops::Deref for ServeFlags {
    type Target = Flags;

    fn deref(&self) -> &Flags {
        &self.0
    }
}

impl Args for ServeFlags {
    fn augment_args(command: Command) -> Command {
        let hide = |command: Command, flag: &&'static str| {
            command.mut_arg(flag, |argument| argument.hide(true))
        };
        MOUNT_ONLY_FLAGS
            .iter()
            .fold(Flags::augment_args(command), hide)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServeFlags {
    fn from_arg_matches(given: &ArgMatches) -> clap::error::Result<Self> {
        Flags::from_arg_matches(given).map(ServeFlags)
    }

    fn update_from_arg_matches(&mut self, given: &ArgMatches) -> clap::error::Result<()> {
        self.0.update_from_arg_matches(given)
    }
}

/// The options of a source by URL that were given as flags.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RemoteFlags {
    /// The settings that the flags define. Boxed because most command lines set none of these
    /// flags.
    pub(crate) settings: Box<RemoteSettings>,
    /// The flags as the user wrote them, for the command line of another process.
    pub(crate) given: Vec<OsString>,
}

impl Args for RemoteFlags {
    fn augment_args(command: Command) -> Command {
        command
            .next_help_heading(REMOTE_HEADING)
            .args(remote::OPTIONS.iter().map(MountOption::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RemoteFlags {
    fn from_arg_matches(given: &ArgMatches) -> clap::error::Result<Self> {
        let mut settings = Settings::default();
        let mut options = remote::OPTIONS.iter();
        // Each value was validated before, so this does not fail.
        options
            .try_for_each(|option| option.apply_flag(&mut settings, given))
            .map_err(|reason| clap::Error::raw(ErrorKind::ValueValidation, reason))?;
        let mut words = Vec::new();
        for option in remote::OPTIONS {
            option.repeat_flag(given, &mut words);
        }
        Ok(RemoteFlags {
            settings: Box::new(settings.remote),
            given: words,
        })
    }

    fn update_from_arg_matches(&mut self, given: &ArgMatches) -> clap::error::Result<()> {
        *self = Self::from_arg_matches(given)?;
        Ok(())
    }
}

/// Returns the default cache size. The cache starts with [`limits::CACHE_LEAST`]. The cache may
/// grow to a quarter of the memory that this process may use, within [`limits::CACHE_MOST`], if more
/// reads are then answered from it.
pub(crate) fn default_cache_size() -> CacheSize {
    let memory = usable_memory().unwrap_or(0);
    let most = (memory / 4).clamp(*limits::CACHE_MOST.start(), *limits::CACHE_MOST.end());
    CacheSize {
        initial_bytes: limits::CACHE_LEAST.min(most),
        max_bytes: most,
    }
}

/// Returns the number of cores that this process may use, but at least two, so that one slow request does not block all
/// others.
pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism()
        .map_or(2, std::num::NonZero::get)
        .clamp(2, limits::THREADS)
}
