//! The mount in the kernel. Only the files of this folder know fuser.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use fuser::{BackgroundSession, Config, INodeNo, MountOption, Notifier, Session, SessionACL};

use crate::error::{Error, Result};
use crate::fs::forest::mount::Outdate;
use crate::fs::forest::served::Served;
use crate::fs::fuse::adapter::{Adapter, Late};
use crate::fs::fuse::forgotten::Forgotten;
use crate::fs::fuse::relay::Relay;
use crate::fs::workers::{Askers, Workers};
use crate::source::local::changes::Changes;
use crate::source::mounts::device::Device;
use crate::source::mounts::mount_id::told_of;

mod adapter;
mod forgotten;
mod readers;
mod relay;
mod reply;
#[cfg(test)]
mod tests;

/// How often an idle mount looks whether its source has changed where nothing tells of that.
const WATCH: Duration = Duration::from_secs(1);

/// How long the thread that watches the source sleeps after a change: a writer may go on and on.
const PAUSE: Duration = Duration::from_millis(50);

/// How often it is looked whether those who wait for answers still do, and how long they have to
/// have waited.
const ASKERS: Duration = Duration::from_secs(1);

/// Finds those of the threads that have gone, or end as soon as they are answered.
pub type FindGone = Box<dyn Fn(&[u32]) -> Vec<u32> + Send>;

/// How to mount.
#[derive(Debug, Clone, Default)]
pub struct MountOptions {
    /// Whether other users may enter; the kernel then checks permission bits.
    pub allow_other: bool,
    /// The source's name in the table of mounts.
    pub fsname: OsString,
    /// Options that go to the kernel as they are (`context=…`).
    pub kernel: Vec<String>,
    /// Whether inodes are kept that the kernel has forgotten, for an NFS server.
    pub no_forget: bool,
    /// Requests that are answered at a time, at least one, unless they take long.
    pub threads: usize,
    /// Whether a process that waits for an answer can be interrupted: for a source that may take
    /// long. Each request and answer is copied once more, the bytes of reads apart.
    pub interruptible: bool,
}

/// A mount that is not served yet: requests wait. Dropping it unmounts.
pub struct Unserved {
    session: Session<Adapter>,
    relayed: Option<Relayed>,
    filesystem: Arc<Late>,
    askers: Askers,
    /// Threads of the session.
    threads: usize,
}

/// The session of an interruptible mount has a socket in place of `/dev/fuse`.
struct Relayed {
    /// The session that has `/dev/fuse`: it is mounted, and takes no requests.
    outer: Session<Adapter>,
    relay: Arc<Relay>,
}

/// A mounted filesystem; dropping it unmounts.
pub struct Mounted {
    session: BackgroundSession,
    /// The session that is mounted, if it is another one.
    outer: Option<Session<Adapter>>,
}

/// Mounts at `mountpoint` what is to be served later. No thread is started yet: the process may
/// give up its rights in between, and read the source without them.
///
/// # Errors
/// `Io` if the system refuses to mount, `Usage` if the helper does.
pub fn mount(mountpoint: &Path, options: &MountOptions) -> Result<Unserved> {
    let filesystem = Arc::new(Late::default());
    let workers = Workers::new(options.threads);
    let askers = workers.askers();
    let adapter = |workers, relay: Option<Arc<Relay>>| Adapter {
        filesystem: Arc::clone(&filesystem),
        workers,
        readers: Arc::default(),
        longest_read: options.interruptible.then_some(relay::READ),
        relay,
        forgotten: options.no_forget.then(|| Arc::new(Forgotten::new())),
    };
    let config = config(options);
    let threads = config.n_threads.unwrap_or(1);
    if !options.interruptible {
        let adapter = adapter(workers, None);
        let session = Session::new(adapter, mountpoint, &config).map_err(|e| failed(&e))?;
        return Ok(Unserved {
            session,
            relayed: None,
            filesystem,
            askers,
            threads,
        });
    }
    let unasked = adapter(Workers::new(options.threads), None);
    let outer = Session::new(unasked, mountpoint, &config).map_err(|e| failed(&e))?;
    let relayed = || {
        let (relay, socket) = Relay::new(relay::device_of(&outer)?)?;
        let relay = Arc::new(relay);
        let adapter = adapter(workers, Some(Arc::clone(&relay)));
        let inner = Session::from_fd(adapter, socket, config.acl, config.clone())?;
        relay.take_reply()?;
        std::io::Result::Ok((inner, relay))
    };
    let (session, relay) = relayed().map_err(|error| failed(&error))?;
    Ok(Unserved {
        session,
        relayed: Some(Relayed { outer, relay }),
        filesystem,
        askers,
        threads,
    })
}

/// Without an errno the error is the text of the helper that mounts for users, or that of fuser
/// with all that it gave to the kernel.
fn failed(error: &std::io::Error) -> Error {
    if error.raw_os_error().is_some() {
        return Error::io(error, "mounting");
    }
    let text = error.to_string();
    let reason = text.strip_prefix("Error calling mount()");
    let reason = reason.and_then(|text| text.rsplit_once(": "));
    Error::Usage(match reason {
        Some((_, reason)) => format!("the kernel refuses to mount: {reason}"),
        None => text,
    })
}

impl Unserved {
    /// The number of this filesystem; `None` where the kernel does not tell it (before 6.17).
    pub fn device(&self) -> Option<Device> {
        let relayed = self.relayed.as_ref();
        let mounted = relayed.map_or(&self.session, |relayed| &relayed.outer);
        let number = told_of(mounted.as_fd(), "fuse_connection").ok()?;
        format!("0:{number}").parse().ok()
    }

    /// Serves `what`; the mount answers when this returns. The work for those who have gone is
    /// given up as soon as `find_gone` tells.
    ///
    /// # Errors
    /// `Io` where no thread can be started.
    pub fn serve(self, what: Served, find_gone: Option<FindGone>) -> Result<Mounted> {
        let served = self.filesystem.0.set(what);
        debug_assert!(served.is_ok());
        let watched = Arc::downgrade(&self.filesystem);
        let threads = self.threads;
        let session = self.session.spawn().map_err(|error| failed(&error))?;
        let outer = self.relayed.map(|Relayed { outer, relay }| {
            Relay::start(&relay, threads, self.askers.clone());
            outer
        });
        if let Some(find_gone) = find_gone {
            thread::spawn(move || watch_askers(&self.askers, &find_gone));
        }
        let notifier = session.notifier();
        // What is told of an archive is not kept for long, so that nothing has to be taken back.
        if let Some(Served::File(filesystem)) = self.filesystem.0.get() {
            let changes = filesystem.mount.changes().cloned();
            let outdate = attributes_outdated(notifier.clone());
            filesystem.mount.call_when_outdated(outdate);
            thread::spawn(move || watch(&watched, changes.as_deref(), &notifier));
        }
        Ok(Mounted { session, outer })
    }
}

/// Gives up the work for those who have gone.
fn watch_askers(askers: &Askers, find_gone: &FindGone) {
    while let Some(waiting) = askers.waiting_for(ASKERS) {
        let gone = match &*waiting {
            [] => Vec::new(),
            waiting => find_gone(waiting),
        };
        if !gone.is_empty() {
            askers.leave(|asker| gone.contains(&asker.thread));
        }
        thread::sleep(ASKERS);
    }
}

/// Makes the kernel ask anew for names and attributes. It keeps its pages: for those that are being
/// read it would wait.
fn attributes_outdated(notifier: Notifier) -> Outdate {
    Box::new(move |outdated| {
        for ino in outdated {
            // The kernel may have dropped it by itself, which does as well.
            let _ = notifier.inval_inode(INodeNo(*ino), -1, 0);
        }
    })
}

/// Takes from the kernel all that it was told of a source that has changed since, pages too. A
/// thread of its own does this: a handler would wait for itself if the kernel held a page that is
/// being read.
fn watch(filesystem: &Weak<Late>, changes: Option<&Changes>, notifier: &Notifier) {
    let mut seen = Some(0);
    loop {
        match changes {
            Some(changes) => changes.wait(WATCH),
            None => thread::sleep(WATCH),
        }
        let Some(late) = filesystem.upgrade() else {
            return;
        };
        let Some(Served::File(filesystem)) = late.0.get() else {
            return;
        };
        filesystem.mount.look();
        let now = filesystem.generation();
        if now != seen {
            seen = now;
            for ino in filesystem.mount.outdated() {
                let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
            }
            if let Some(now) = now {
                filesystem.mount.set_relisted(now);
            }
        }
        drop(late);
        thread::sleep(PAUSE);
    }
}

impl Mounted {
    /// Blocks until the mount is unmounted.
    ///
    /// # Errors
    /// `Io` where the connection to the kernel broke.
    pub fn wait(self) -> Result<()> {
        let Mounted { session, outer } = self;
        let (sender, ended) = channel();
        // When fuser's session is dropped, it unmounts the mount point once more, and another
        // filesystem may be mounted there by then. So the session is never dropped.
        thread::spawn(move || {
            let (session, _outer) = (session, outer);
            let _ = sender.send(session.guard.join());
            loop {
                thread::park();
            }
        });
        match ended.recv() {
            Ok(Ok(served)) => served.map_err(|error| Error::io(&error, "serving the mount")),
            _ => Err(Error::Usage("a thread that serves panicked".to_owned())),
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
        // Not `MountOption::Subtype`: fuser keeps that from the kernel where it mounts without a
        // helper.
        MountOption::CUSTOM("subtype=h5fs".to_owned()),
    ];
    if options.allow_other {
        config.acl = SessionACL::All;
        config.mount_options.push(MountOption::DefaultPermissions);
    }
    let kernel = options.kernel.iter().cloned().map(MountOption::CUSTOM);
    config.mount_options.extend(kernel);
    // One is left to take requests when the others answer.
    config.n_threads = Some(options.threads.max(1) + 1);
    config
}

/// The name that the table of mounts shows. The helper that mounts for users splits its options at
/// commas.
fn source_name(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    if nix::unistd::geteuid().is_root() {
        return name.into_owned();
    }
    name.replace('\\', "\\\\").replace(',', "\\,")
}
