//! A fetcher for tests: a thread that serves objects from memory, and does what a test has it do.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::memory::lock::lock;
use crate::source::packets;
use crate::source::remote::connection::{Connection, Terms};
use crate::source::remote::message::{Counters, Failure, PACKET, Reply, Request};
use crate::source::remote::object::RemoteObject;
use crate::source::remote::state::ObjectState;

const MIB: u64 = 1 << 20;

/// Byte `n` of an object without content of its own.
fn byte(n: u64) -> u8 {
    (n.wrapping_mul(2_654_435_761) >> 13) as u8
}

/// The bytes of such an object.
pub(crate) fn bytes(at: u64, length: u64) -> Vec<u8> {
    (at..at + length).map(byte).collect()
}

/// A fetcher: the objects that there are, and what it was asked.
pub(crate) struct Fetcher {
    pub(crate) socket: OwnedFd,
    stage: File,
    objects: Mutex<HashMap<Vec<u8>, Object>>,
    /// The names and regions of those that are open, by their numbers.
    pub(crate) open: Mutex<Vec<(Vec<u8>, u64)>>,
    pub(crate) asked: Mutex<Vec<Request>>,
}

/// An object: its state, and its bytes unless they are those of [`bytes`].
#[derive(Clone)]
struct Object {
    state: ObjectState,
    content: Option<Arc<[u8]>>,
}

/// What a fetcher does with a request.
pub(crate) type Habit = dyn Fn(&Fetcher, &Request) + Send;

impl Fetcher {
    pub(crate) fn say(&self, reply: &Reply) {
        self.say_bytes(&reply.encode());
    }

    pub(crate) fn say_bytes(&self, packet: &[u8]) {
        let _gone = rustix::io::write(&self.socket, packet);
    }

    pub(crate) fn fail(&self, id: u64, failure: Failure) {
        let text = "run.h5: as the test says".to_owned();
        self.say(&Reply::Failed { id, failure, text });
    }

    pub(crate) fn write(&self, object: u32, offset: u64, length: u64) {
        let (name, region) = lock(&self.open)[object as usize].clone();
        let content = lock(&self.objects)
            .get(&name)
            .and_then(|object| object.content.clone());
        let bytes = match content {
            Some(content) => content[offset as usize..(offset + length) as usize].to_vec(),
            None => bytes(offset, length),
        };
        self.stage.write_all_at(&bytes, region + offset).unwrap();
    }

    /// Does as it is asked.
    pub(crate) fn serve(&self, request: &Request) {
        match request {
            Request::Open { id, name, region } => match lock(&self.objects).get(name) {
                Some(Object { state, .. }) => {
                    let mut open = lock(&self.open);
                    open.push((name.clone(), *region));
                    self.say(&Reply::Opened {
                        id: *id,
                        object: open.len() as u32 - 1,
                        state: state.clone(),
                        staged: 0,
                    });
                }
                None => self.fail(*id, Failure::NotFound),
            },
            Request::Fetch {
                id,
                object,
                offset,
                length,
                ..
            } => {
                self.write(*object, *offset, *length);
                let (id, length) = (*id, *length);
                self.say(&Reply::Staged { id, length });
            }
            Request::Check { id, object } => {
                let name = lock(&self.open)[*object as usize].0.clone();
                self.say(&Reply::Opened {
                    id: *id,
                    object: *object,
                    state: lock(&self.objects)[&name].state.clone(),
                    staged: 0,
                });
            }
            Request::Count { id } => self.say(&Reply::Counted {
                id: *id,
                counters: Counters {
                    requests: lock(&self.asked).len() as u64,
                    ..Counters::default()
                },
            }),
            // What is dropped is gone: a page that is read afterwards is not the object's.
            Request::Drop { place, length } if *length <= 64 * MIB => {
                let gone = vec![0xee; *length as usize];
                self.stage.write_all_at(&gone, *place).unwrap();
            }
            _ => {}
        }
    }
}

/// A fetcher, and the connection to it.
pub(crate) struct Pair {
    pub(crate) fetcher: Arc<Fetcher>,
    pub(crate) connection: Arc<Connection>,
}

/// Keeps so many bytes, and waits so long; the fetcher does as `habit` says.
pub(crate) fn pair(kept: u64, patience: Duration, habit: Box<Habit>) -> Pair {
    start(kept, patience, LONG, habit)
}

/// A fetcher that does as it is asked; an object is looked at again soon.
pub(crate) fn watched() -> Pair {
    start(64 * MIB, LONG, SOON, Box::new(Fetcher::serve))
}

const SOON: Duration = Duration::from_secs(5);

/// The same; what an answer shows of an object is `valid` for so long.
pub(crate) fn start(kept: u64, patience: Duration, valid: Duration, habit: Box<Habit>) -> Pair {
    let (own, other) = packets::pair().unwrap();
    let stage = tempfile::tempfile().unwrap();
    let fetcher = Arc::new(Fetcher {
        socket: other,
        stage: stage.try_clone().unwrap(),
        objects: Mutex::default(),
        open: Mutex::default(),
        asked: Mutex::default(),
    });
    let served = Arc::clone(&fetcher);
    thread::spawn(move || {
        let mut packet = vec![0; PACKET];
        while let Ok(length @ 1..) = rustix::io::read(&served.socket, &mut *packet) {
            let request = Request::decode(&packet[..length]).unwrap();
            lock(&served.asked).push(request.clone());
            habit(&served, &request);
        }
    });
    let terms = Terms {
        url: "s3://bucket/run.h5".into(),
        kept,
        patience,
        valid,
        owner: (1000, 1000),
        is_mounted: true,
    };
    let connection = Connection::start(own, stage, terms).unwrap();
    Pair {
        fetcher,
        connection,
    }
}

/// A fetcher that does as it is asked.
pub(crate) fn good() -> Pair {
    pair(64 * MIB, LONG, Box::new(Fetcher::serve))
}

/// A time that nothing should take.
pub(crate) const LONG: Duration = Duration::from_secs(60);

impl Pair {
    pub(crate) fn put(&self, name: &str, length: u64, etag: &str) {
        let state = ObjectState {
            length,
            etag: etag.as_bytes().to_vec(),
            modified: 1_700_000_000,
        };
        self.insert(
            name,
            Object {
                state,
                content: None,
            },
        );
    }

    /// An object with this content, in the state that `etag` names.
    pub(crate) fn put_bytes(&self, name: &str, content: &[u8], etag: &str) {
        let state = ObjectState {
            length: content.len() as u64,
            etag: etag.as_bytes().to_vec(),
            modified: 1_700_000_000,
        };
        let content = Some(content.into());
        self.insert(name, Object { state, content });
    }

    fn insert(&self, name: &str, object: Object) {
        lock(&self.fetcher.objects).insert(name.as_bytes().to_vec(), object);
    }

    pub(crate) fn open(&self, length: u64) -> RemoteObject {
        self.put("", length, "\"1\"");
        RemoteObject::find(&self.connection, b"").unwrap().unwrap()
    }

    /// The offsets and lengths that were asked for, and whether somebody waits for them.
    pub(crate) fn fetched(&self) -> Vec<(u64, u64, bool)> {
        let asked = lock(&self.fetcher.asked);
        let fetches = asked.iter().filter_map(|request| match request {
            Request::Fetch {
                offset,
                length,
                is_needed,
                ..
            } => Some((*offset, *length, *is_needed)),
            _ => None,
        });
        fetches.collect()
    }

    /// Waits until what was asked is as it should be.
    pub(crate) fn until(&self, is_right: impl Fn(&[Request]) -> bool) {
        let end = Instant::now() + LONG;
        loop {
            let asked = lock(&self.fetcher.asked).clone();
            if is_right(&asked) {
                return;
            }
            assert!(Instant::now() < end, "{asked:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}
