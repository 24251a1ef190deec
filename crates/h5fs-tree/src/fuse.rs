//! Mounts a tree with FUSE and serves the kernel's requests. Only this module and its submodules
//! use the crate fuser.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use fuser::{BackgroundSession, Config, INodeNo, MountOption, Notifier, Session, SessionACL};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::local::changes::ChangeWatcher;
use h5fs_reader::source::mounts::device::Device;
use h5fs_reader::source::mounts::mount_id::read_fdinfo_field;

use crate::data_files::mount::InodeInvalidator;
use crate::fuse::adapter::{Adapter, ServedTreeCell};
use crate::fuse::relay::Relay;
use crate::fuse::released_lookups::ReleasedLookups;
use crate::served_tree::ServedTree;
use crate::workers::{WaitingCallers, Workers};

mod adapter;
mod readers;
mod relay;
mod released_lookups;
mod reply;
#[cfg(test)]
mod tests;

/// Interval at which an idle mount checks its source for changes, if the operating system cannot
/// report them.
const SOURCE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Pause of the thread that watches the source, after each change. It limits the work if a writer
/// writes continuously.
const CHANGE_PAUSE: Duration = Duration::from_millis(50);

/// Interval at which the mount checks whether the threads that wait for replies still exist. Only
/// threads that have waited for at least this time are checked.
const CALLER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which an interruptible mount checks whether interrupted threads were killed.
const INTERRUPT_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A function that receives the IDs of threads which wait for replies. It returns the threads that
/// have ended, or will end as soon as they receive a reply.
pub type EndedThreadFinder = Box<dyn Fn(&[u32]) -> Vec<u32> + Send>;

/// Options of the mount.
#[derive(Debug, Clone, Default)]
pub struct MountOptions {
    /// Whether other users may access the mount. The kernel then checks permission bits.
    pub allow_other: bool,
    /// Name of the source that the operating system shows in its list of mounts.
    pub fsname: OsString,
    /// Whether no file of the mount can be executed.
    pub no_exec: bool,
    /// Further mount options, passed to the kernel unchanged (`context=…`).
    pub kernel_options: Vec<String>,
    /// Whether inodes remain available after the kernel has forgotten them, as an NFS server needs.
    pub no_forget: bool,
    /// Maximum number of requests handled concurrently, at least one. Slow requests do not count.
    pub threads: usize,
    /// Whether a signal can interrupt a process that waits for a reply from a slow source.
    /// Interruption costs one more copy of each request and reply, except the bytes of reads.
    pub interruptible: bool,
}

/// A mount without a tree: requests of the kernel wait until [`serve`](Self::serve) is called.
/// Dropping the value unmounts.
pub struct UnservedMount {
    session: Session<Adapter>,
    relayed: Option<RelaySession>,
    filesystem: Arc<ServedTreeCell>,
    callers: WaitingCallers,
    /// Number of threads that receive requests.
    threads: usize,
}

/// The relay of an interruptible mount. fuser reads requests from a socket of the relay in place of
/// `/dev/fuse`.
struct RelaySession {
    /// The fuser session that owns the mount and `/dev/fuse`. It receives no requests itself.
    owner_session: Session<Adapter>,
    relay: Arc<Relay>,
}

/// A mounted and served filesystem. Dropping the value unmounts.
pub struct ServedMount {
    session: BackgroundSession,
    /// The fuser session that owns the mount, if the requests pass through a relay.
    owner_session: Option<Session<Adapter>>,
}

/// Mounts at `mountpoint` without serving yet. No thread is started, so the process may drop its
/// privileges before it reads the source.
///
/// # Errors
/// `Io` if the operating system refuses to mount, `Usage` if the mount helper (`fusermount3`) does.
pub fn mount(mountpoint: &Path, options: &MountOptions) -> Result<UnservedMount> {
    if !options.interruptible {
        return without_relay(options, |adapter, config| {
            Session::new(adapter, mountpoint, config)
        });
    }
    let filesystem = Arc::new(ServedTreeCell::default());
    let workers = Workers::new(options.threads);
    let callers = workers.waiting_callers();
    let adapter = |workers, relay| adapter(&filesystem, options, workers, relay);
    let config = config(options);
    let threads = config.n_threads.unwrap_or(1);
    let unasked = adapter(Workers::new(options.threads), None);
    let outer = Session::new(unasked, mountpoint, &config).map_err(|e| mount_error(&e))?;
    let relayed = || {
        let (relay, socket) = Relay::new(relay::fuse_device(&outer)?)?;
        let relay = Arc::new(relay);
        let adapter = adapter(workers, Some(Arc::clone(&relay)));
        let inner = Session::from_fd(adapter, socket, config.acl, config.clone())?;
        relay.receive_reply()?;
        std::io::Result::Ok((inner, relay))
    };
    let (session, relay) = relayed().map_err(|error| mount_error(&error))?;
    Ok(UnservedMount {
        session,
        relayed: Some(RelaySession {
            owner_session: outer,
            relay,
        }),
        filesystem,
        callers,
        threads,
    })
}

/// Takes over a mount that another program has made with `device`, an open `/dev/fuse`. That program
/// decides who may use the mount, so every user is served. Signals interrupt no call, because the
/// threads that wait may be in another PID namespace.
///
/// # Errors
/// `Io` if the kernel does not begin to use the mount.
pub fn attach(device: OwnedFd, options: &MountOptions) -> Result<UnservedMount> {
    let options = MountOptions {
        allow_other: true,
        interruptible: false,
        ..options.clone()
    };
    without_relay(&options, |adapter, config| {
        Session::from_fd(adapter, device, config.acl, config.clone())
    })
}

/// Creates a mount whose requests fuser reads from the kernel itself.
fn without_relay(
    options: &MountOptions,
    open: impl FnOnce(Adapter, &Config) -> std::io::Result<Session<Adapter>>,
) -> Result<UnservedMount> {
    let filesystem = Arc::new(ServedTreeCell::default());
    let workers = Workers::new(options.threads);
    let callers = workers.waiting_callers();
    let config = config(options);
    let adapter = adapter(&filesystem, options, workers, None);
    let session = open(adapter, &config).map_err(|error| mount_error(&error))?;
    Ok(UnservedMount {
        session,
        relayed: None,
        filesystem,
        callers,
        threads: config.n_threads.unwrap_or(1),
    })
}

fn adapter(
    filesystem: &Arc<ServedTreeCell>,
    options: &MountOptions,
    workers: Workers,
    relay: Option<Arc<Relay>>,
) -> Adapter {
    Adapter {
        filesystem: Arc::clone(filesystem),
        workers,
        readers: Arc::default(),
        max_read: options.interruptible.then_some(relay::MAX_READ),
        relay,
        released_lookups: options.no_forget.then(|| Arc::new(ReleasedLookups::new())),
    }
}

/// Converts an error of mounting. An error without an errno contains a text of the mount helper, or
/// a text of fuser that lists all mount options.
fn mount_error(error: &std::io::Error) -> Error {
    if error.raw_os_error().is_some() {
        return Error::from_io(error, "mounting");
    }
    let text = error.to_string();
    let reason = text.strip_prefix("Error calling mount()");
    let reason = reason.and_then(|text| text.rsplit_once(": "));
    Error::Usage(match reason {
        Some((_, reason)) => format!("the kernel refuses to mount: {reason}"),
        None => text,
    })
}

impl UnservedMount {
    /// Returns the device number (`st_dev`) of the mount, or `None` if the kernel does not report
    /// it (before 6.17).
    pub fn device(&self) -> Option<Device> {
        let relayed = self.relayed.as_ref();
        let mounted = relayed.map_or(&self.session, |relayed| &relayed.owner_session);
        let number = read_fdinfo_field(mounted.as_fd(), "fuse_connection").ok()?;
        format!("0:{number}").parse().ok()
    }

    /// Serves the tree `what`. The mount responds to requests when this function returns. Cancels
    /// work for the threads that `find_gone` reports as ended.
    ///
    /// # Errors
    /// `Io` if a thread cannot be started.
    pub fn serve(
        self,
        what: ServedTree,
        find_gone: Option<EndedThreadFinder>,
    ) -> Result<ServedMount> {
        let served = self.filesystem.0.set(what);
        debug_assert!(served.is_ok());
        let watched = Arc::downgrade(&self.filesystem);
        let threads = self.threads;
        let session = self.session.spawn().map_err(|error| mount_error(&error))?;
        let relayed = self
            .relayed
            .map(|relayed| (relayed.owner_session, relayed.relay));
        let (outer, relay) = relayed.unzip();
        if let Some(relay) = &relay {
            Relay::start(relay, threads);
        }
        if let Some(find_gone) = find_gone {
            thread::spawn(move || watch_callers(&self.callers, relay.as_deref(), &find_gone));
        }
        let notifier = session.notifier();
        // An archive's replies are cached only briefly, so they need no invalidation.
        if let Some(ServedTree::File(filesystem)) = self.filesystem.0.get() {
            let changes = filesystem.mount.change_watcher().cloned();
            let outdate = attribute_invalidator(notifier.clone());
            filesystem.mount.set_invalidator(outdate);
            thread::spawn(move || watch_source(&watched, changes.as_deref(), &notifier));
        }
        Ok(ServedMount {
            session,
            owner_session: outer,
        })
    }
}

/// Repeatedly cancels the work for callers whose threads have ended, according to `find_gone`. The
/// relay of an interruptible mount then replies to killed threads.
fn watch_callers(callers: &WaitingCallers, relay: Option<&Relay>, find_gone: &EndedThreadFinder) {
    let interval = match relay {
        Some(_) => INTERRUPT_CHECK_INTERVAL,
        None => CALLER_CHECK_INTERVAL,
    };
    while let Some(mut waiting) = callers.threads_waiting_for(CALLER_CHECK_INTERVAL) {
        let interrupted = relay.map(Relay::interrupted_threads).unwrap_or_default();
        waiting.extend(interrupted);
        let gone = match &*waiting {
            [] => Vec::new(),
            waiting => find_gone(waiting),
        };
        if !gone.is_empty() {
            callers.cancel_ended(|caller| gone.contains(&caller.thread));
            if let Some(relay) = relay {
                relay.reply_to_killed(&gone);
            }
        }
        thread::sleep(interval);
    }
}

/// Creates a function that makes the kernel drop its cached names and attributes of inodes. Cached
/// pages are kept, because invalidating a page that is being read would block.
fn attribute_invalidator(notifier: Notifier) -> InodeInvalidator {
    Box::new(move |outdated| {
        for ino in outdated {
            // An error means that the kernel has already dropped the inode, which is equally good.
            let _ = notifier.inval_inode(INodeNo(*ino), -1, 0);
        }
    })
}

/// Waits for changes of the source in the calling thread. After a change, makes the kernel drop
/// everything that it has cached about the mount, including pages. A request handler cannot do
/// this: the handler would deadlock if the kernel holds a page that is being read.
fn watch_source(
    filesystem: &Weak<ServedTreeCell>,
    changes: Option<&ChangeWatcher>,
    notifier: &Notifier,
) {
    let mut seen = Some(0);
    loop {
        match changes {
            Some(changes) => changes.wait(SOURCE_CHECK_INTERVAL),
            None => thread::sleep(SOURCE_CHECK_INTERVAL),
        }
        let Some(late) = filesystem.upgrade() else {
            return;
        };
        let Some(ServedTree::File(filesystem)) = late.0.get() else {
            return;
        };
        filesystem.mount.read_notifications();
        let now = filesystem.generation();
        if now != seen {
            seen = now;
            for ino in filesystem.mount.outdated_inodes() {
                let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
            }
            if let Some(now) = now {
                filesystem.mount.set_root_listings_dropped(now);
            }
        }
        drop(late);
        thread::sleep(CHANGE_PAUSE);
    }
}

impl ServedMount {
    /// Blocks until the filesystem is unmounted.
    ///
    /// # Errors
    /// `Io` if the connection to the kernel breaks.
    pub fn wait(self) -> Result<()> {
        let ServedMount {
            session,
            owner_session: outer,
        } = self;
        let (sender, ended) = channel();
        // Dropping fuser's session unmounts the mount point again, where another filesystem may be
        // mounted now. So the session is never dropped.
        thread::spawn(move || {
            let (session, _outer) = (session, outer);
            let _ = sender.send(session.guard.join());
            loop {
                thread::park();
            }
        });
        match ended.recv() {
            Ok(Ok(served)) => served.map_err(|error| Error::from_io(&error, "serving the mount")),
            _ => Err(Error::Usage("a serving thread panicked".to_owned())),
        }
    }
}

fn config(options: &MountOptions) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::RO,
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::FSName(source_name(&options.fsname)),
        // `MountOption::Subtype` does not work here: fuser does not pass it to the kernel if it
        // mounts without a helper.
        MountOption::CUSTOM("subtype=h5fs".to_owned()),
    ];
    if options.allow_other {
        config.acl = SessionACL::All;
        config.mount_options.push(MountOption::DefaultPermissions);
    }
    if options.no_exec {
        config.mount_options.push(MountOption::NoExec);
    }
    let kernel = options
        .kernel_options
        .iter()
        .cloned()
        .map(MountOption::CUSTOM);
    config.mount_options.extend(kernel);
    // One more thread receives requests while the others handle them.
    config.n_threads = Some(options.threads.max(1) + 1);
    config
}

/// Returns the source's name for the list of mounts. For users other than root, commas and
/// backslashes are escaped, because the mount helper splits its options at commas.
fn source_name(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    if nix::unistd::geteuid().is_root() {
        return name.into_owned();
    }
    name.replace('\\', "\\\\").replace(',', "\\,")
}
