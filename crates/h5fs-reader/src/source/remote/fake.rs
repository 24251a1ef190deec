//! A fetcher for tests: a thread that serves objects from memory, with behaviour chosen by each
//! test.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a helper of tests may panic"
)]

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::memory::lock::lock;
use crate::source::packets;
use crate::source::remote::connection::{Connection, ConnectionSettings};
use crate::source::remote::message::{Counters, Failure, PACKET, Reply, Request};
use crate::source::remote::object::RemoteObject;
use crate::source::remote::state::ObjectState;

const MIB: u64 = 1 << 20;

/// Returns byte `n` of an object without explicit content.
fn byte(n: u64) -> u8 {
    (n.wrapping_mul(2_654_435_761) >> 13) as u8
}

/// Returns the bytes of an object without explicit content.
pub fn bytes(at: u64, length: u64) -> Vec<u8> {
    (at..at + length).map(byte).collect()
}

/// A fetcher with its objects and the requests that it has received.
pub struct Fetcher {
    /// The fetcher's end of the connection.
    pub socket: OwnedFd,
    stage: File,
    objects: Mutex<HashMap<Vec<u8>, Object>>,
    /// Names and regions of the open objects, by number.
    pub open: Mutex<Vec<(Vec<u8>, u64)>>,
    /// All requests received, oldest first.
    pub asked: Mutex<Vec<Request>>,
}

/// An object: its state, and its bytes unless they are the ones of [`bytes`].
#[derive(Clone)]
struct Object {
    state: ObjectState,
    content: Option<Arc<[u8]>>,
}

/// The behaviour of a fetcher: a function called for each request.
pub type Habit = dyn Fn(&Fetcher, &Request) + Send;

impl Fetcher {
    /// Sends a reply.
    pub fn say(&self, reply: &Reply) {
        self.say_bytes(&reply.encode());
    }

    /// Sends a packet, which need not be a valid reply.
    pub fn say_bytes(&self, packet: &[u8]) {
        let _gone = rustix::io::write(&self.socket, packet);
    }

    /// Replies that the request with this number has failed.
    pub fn fail(&self, id: u64, failure: Failure) {
        let text = "run.h5: as the test says".to_owned();
        self.say(&Reply::Failed { id, failure, text });
    }

    /// Writes a range of an open object to the stage.
    pub fn write(&self, object: u32, offset: u64, length: u64) {
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

    /// Serves the request from the objects in memory, as a real fetcher would from a server.
    pub fn serve(&self, request: &Request) {
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
            Request::GetCounters { id } => self.say(&Reply::Counted {
                id: *id,
                counters: Counters {
                    requests: lock(&self.asked).len() as u64,
                    ..Counters::default()
                },
            }),
            // Dropped bytes are overwritten, so that a later read of the page finds wrong bytes.
            Request::FreeStage {
                stage_offset: place,
                length,
            } if *length <= 64 * MIB => {
                let gone = vec![0xee; *length as usize];
                self.stage.write_all_at(&gone, *place).unwrap();
            }
            _ => {}
        }
    }
}

/// A fetcher, and the connection to it.
pub struct Pair {
    /// The fetcher.
    pub fetcher: Arc<Fetcher>,
    /// The worker's connection to the fetcher.
    pub connection: Arc<Connection>,
}

/// Creates a fetcher with the behaviour `habit`. The connection keeps at most `kept` bytes of
/// staged pages, and waits at most `patience` for a reply.
pub fn pair(kept: u64, patience: Duration, habit: Box<Habit>) -> Pair {
    start(kept, patience, LONG, habit)
}

/// Creates a fetcher that serves every request. The state of its objects is assumed to be current
/// for only `SOON`.
pub fn fetcher_with_checks() -> Pair {
    start(64 * MIB, LONG, SOON, Box::new(Fetcher::serve))
}

const SOON: Duration = Duration::from_secs(5);

/// Creates a fetcher like [`pair`], where the state in a response is assumed to be current for
/// `valid`.
pub fn start(kept: u64, patience: Duration, valid: Duration, habit: Box<Habit>) -> Pair {
    let (own, other) = packets::socket_pair().unwrap();
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
    let terms = ConnectionSettings {
        url: "s3://bucket/run.h5".into(),
        max_staged_bytes: kept,
        reply_timeout: patience,
        validity: valid,
        owner: (1000, 1000),
        is_mounted: true,
    };
    let connection = Connection::start(own, stage, terms).unwrap();
    Pair {
        fetcher,
        connection,
    }
}

/// Creates a fetcher that serves every request.
pub fn normal_fetcher() -> Pair {
    pair(64 * MIB, LONG, Box::new(Fetcher::serve))
}

/// A time limit that no operation should reach.
pub const LONG: Duration = Duration::from_secs(60);

impl Pair {
    /// Adds an object of this length, with the content of [`bytes`].
    pub fn put(&self, name: &str, length: u64, etag: &str) {
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

    /// Adds an object with this content, in the state named by `etag`.
    pub fn put_bytes(&self, name: &str, content: &[u8], etag: &str) {
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

    /// Adds and opens an object of this length, with the content of [`bytes`].
    pub fn open(&self, length: u64) -> RemoteObject {
        self.put("", length, "\"1\"");
        RemoteObject::find(&self.connection, b"", &|| true)
            .unwrap()
            .unwrap()
    }

    /// Returns the offset and length of each `Fetch` request, and whether a reader waits for its
    /// bytes.
    pub fn fetched(&self) -> Vec<(u64, u64, bool)> {
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

    /// Waits until `is_right` returns true for the requests received.
    pub fn wait_until(&self, is_right: impl Fn(&[Request]) -> bool) {
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
