//! The second thread of a reader. It stays as long as the reader does: to start one takes as long as to decode
//! a good part of a round, and where it runs then is left to chance.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::ROOM;
use crate::filter::inflate::ahead::{self, Part};
use crate::filter::inflate::bits;

/// The second thread.
pub(super) enum Second {
    /// None is allowed, or none could be had.
    None,
    NotYet,
    Thread(Sender<Job>),
}

/// What the thread is to do: search for a block from a bit of the input on, and decode what begins there.
pub(super) struct Job {
    input: Arc<Vec<u8>>,
    from: i64,
    is_wanted: Arc<AtomicBool>,
    found: Sender<i64>,
    done: Sender<Option<Part>>,
}

/// A part that is being decoded.
pub(super) struct Begun {
    from: i64,
    is_wanted: Arc<AtomicBool>,
    found: Receiver<i64>,
    part: Receiver<Option<Part>>,
}

impl Second {
    pub(super) fn new(threads: usize) -> Self {
        match threads {
            0 | 1 => Second::None,
            _ => Second::NotYet,
        }
    }

    /// Begins with what stands behind `reach` bytes of the input; `None` where there is no thread.
    pub(super) fn begin(&mut self, input: &Arc<Vec<u8>>, reach: usize) -> Option<Begun> {
        if let Second::NotYet = self {
            *self = start().map_or(Second::None, Second::Thread);
        }
        let Second::Thread(jobs) = self else {
            return None;
        };
        let (done, part) = channel();
        let (finds, found) = channel();
        let is_wanted = Arc::new(AtomicBool::new(true));
        let job = Job {
            input: Arc::clone(input),
            from: bits(reach),
            is_wanted: Arc::clone(&is_wanted),
            found: finds,
            done,
        };
        jobs.send(job).ok()?;
        Some(Begun {
            from: bits(reach),
            is_wanted,
            found,
            part,
        })
    }
}

fn start() -> io::Result<Sender<Job>> {
    let (sender, jobs) = channel::<Job>();
    let work = move || jobs.into_iter().for_each(Job::work);
    thread::Builder::new().name("inflate".into()).spawn(work)?;
    Ok(sender)
}

impl Job {
    fn work(self) {
        let part = ahead::decode(&self.input, self.from, ROOM, &self.is_wanted, &self.found);
        // No more is found. The reader changes the input once it has the part.
        drop((self.found, self.input));
        let _ = self.done.send(part);
    }
}

impl Begun {
    /// The bit from which on the part is searched for.
    pub(super) fn from(&self) -> i64 {
        self.from
    }

    /// The bit with which the part begins, if that is found within `patience`.
    pub(super) fn found(&self, patience: Duration) -> Option<i64> {
        self.found.recv_timeout(patience).ok()
    }

    /// The part, once it is decoded, if it is wanted and there is one.
    pub(super) fn end(self, is_wanted: bool) -> Option<Part> {
        self.is_wanted.store(is_wanted, Ordering::Relaxed);
        // Waits in any case: the thread has the input until then.
        let part = self.part.recv().ok().flatten();
        part.filter(|_| is_wanted)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::Relaxed);
    }
}
