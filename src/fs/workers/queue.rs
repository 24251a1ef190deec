//! The requests that wait: those of one object in the order of their coming, and objects in turn.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::memory::cancel::Ticket;

/// The object of a request: requests of one object wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::fs) enum Object {
    /// The bytes of a file, which have to be decoded.
    Content(u64),
    /// Any other question about an inode, or a name. It has places of its own beside contents.
    Description(u64),
    /// The values of attributes, of all objects: they may take megabytes, so that few are to be in
    /// memory at a time.
    Values,
}

impl Object {
    pub(super) fn is_content(self) -> bool {
        matches!(self, Object::Content(_))
    }
}

/// The file of a directory of files that an object is of, by any number; `None` in the tree of one
/// file.
pub(in crate::fs) type File = Option<u64>;

/// What a request is about.
pub(in crate::fs) type Of = (Object, File);

/// Who waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fs) struct Asker {
    /// The number of the request.
    pub(in crate::fs) unique: u64,
    /// The thread that asks; 0 where it is not known.
    pub(in crate::fs) thread: u32,
}

/// A request.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) of: Of,
    pub(super) asker: Asker,
    pub(super) ticket: Arc<Ticket>,
    /// When it came or, where it is under way, when it was begun.
    pub(super) since: Instant,
}

/// How an attempt to answer a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fs) enum Attempt {
    /// It has its answer.
    Answered,
    /// It is to be tried once more, in a heavy place.
    PutOff,
}

/// A request that waits.
pub(super) struct Waiting {
    pub(super) request: Request,
    /// Tries to answer it.
    pub(super) job: Box<dyn FnMut() -> Attempt + Send>,
}

/// Requests that wait.
#[derive(Default)]
pub(super) struct Queue {
    turns: VecDeque<Of>,
    waiting: HashMap<Of, VecDeque<Waiting>>,
}

impl Queue {
    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// How many wait.
    pub(super) fn count(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// All of them, in no order.
    pub(super) fn requests(&self) -> impl Iterator<Item = &Request> {
        let waiting = self.waiting.values().flatten();
        waiting.map(|waiting| &waiting.request)
    }

    /// Adds a request, as the last one of its object.
    pub(super) fn push(&mut self, waiting: Waiting) {
        let of = waiting.request.of;
        let requests = self.waiting.entry(of).or_default();
        requests.push_back(waiting);
        if requests.len() == 1 {
            self.turns.push_back(of);
        }
    }

    /// Takes the first request of the first object in turn that is such a one.
    pub(super) fn take(&mut self, is_one: impl Fn(Of) -> bool) -> Option<Waiting> {
        let place = self.turns.iter().position(|&of| is_one(of))?;
        let of = self.turns.remove(place)?;
        let requests = self.waiting.get_mut(&of)?;
        let first = requests.pop_front();
        if requests.is_empty() {
            self.waiting.remove(&of);
        } else {
            self.turns.push_back(of);
        }
        first
    }

    /// Takes the requests of those that have gone.
    pub(super) fn take_left(&mut self, has_gone: &impl Fn(Asker) -> bool) -> Vec<Waiting> {
        let mut left = Vec::new();
        for requests in self.waiting.values_mut() {
            let gone = |waiting: &Waiting| has_gone(waiting.request.asker);
            let (of_gone, others): (Vec<_>, _) = requests.drain(..).partition(gone);
            *requests = others.into();
            left.extend(of_gone);
        }
        self.waiting.retain(|_, requests| !requests.is_empty());
        self.turns.retain(|of| self.waiting.contains_key(of));
        left
    }
}
