//! The messages between the process that parses and the fetcher.
//!
//! Each is one packet on a pair of `SOCK_SEQPACKET` sockets. Numbers are little-endian; a text is
//! its length in 4 bytes, then its bytes. Both ends take the other for hostile: a packet that
//! cannot be decoded ends the connection, and no length in it is believed beyond the packet.
//!
//! A request has a number, its `id`, which its replies repeat. The fetcher works on many at a time
//! and replies in any order, but does [`Drop`](Request::Drop), [`Cancel`](Request::Cancel) and
//! [`Close`](Request::Close) in their turn, before it looks at the next packet.

use crate::error::{Error, Result};
use crate::source::remote::segment::Key;
use crate::source::remote::state::ObjectState;
use crate::wire::{Cursor, to_u64};

/// Bytes of one packet at most.
pub const PACKET: usize = 64 << 10;

/// Bytes of an object that are staged at most when it is opened.
pub const FIRST: u64 = 256 << 10;

/// From the process that parses to the fetcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Finds an object: replies [`Opened`](Reply::Opened) or [`Failed`](Reply::Failed). The first
    /// bytes of the object, [`FIRST`] at most, may be staged on the way.
    Open {
        /// Number of the request.
        id: u64,
        /// Path of the object relative to the source's prefix, `/` between its parts; empty for
        /// the object that the source's URL names.
        name: Vec<u8>,
        /// Where the object's region begins in the stage.
        region: u64,
    },
    /// Brings bytes of an object in the state in which it was opened: replies
    /// [`Staged`](Reply::Staged) and [`Kept`](Reply::Kept), maybe several times, or `Failed`.
    Fetch {
        /// Number of the request.
        id: u64,
        /// The object, from `Opened`.
        object: u32,
        /// Where they begin in the object.
        offset: u64,
        /// How many bytes, not 0.
        length: u64,
        /// Whether somebody waits for them.
        is_needed: bool,
    },
    /// Asks whether an object is still in the state in which it was opened: replies `Opened`, with
    /// the state that it is in now, or `Failed`.
    Check {
        /// Number of the request.
        id: u64,
        /// The object.
        object: u32,
    },
    /// Lists the names in a directory, a part of a page of them: replies [`Listed`](Reply::Listed)
    /// or `Failed`.
    List {
        /// Number of the request.
        id: u64,
        /// Relative to the source's prefix: the directory, with a `/` at its end unless it is the
        /// prefix itself, and then what the names begin with.
        prefix: Vec<u8>,
        /// Where the part begins: empty, or `next` of the part before.
        after: Vec<u8>,
    },
    /// Asks for the counters: replies [`Counted`](Reply::Counted).
    Count {
        /// Number of the request.
        id: u64,
    },
    /// Nobody waits for a request any more; it is not replied to, or was already.
    Cancel {
        /// Number of that request.
        id: u64,
    },
    /// Bytes of the stage are needed no more. No reply.
    Drop {
        /// Where they begin in the stage.
        place: u64,
        /// How many bytes.
        length: u64,
    },
    /// The object is used no more. No reply.
    Close {
        /// The object.
        object: u32,
    },
    /// A page that was [`Kept`](Reply::Kept) is wrong: it is not handed over again. No reply.
    Forget {
        /// The object.
        object: u32,
        /// Where the page begins in the object.
        offset: u64,
    },
}

/// From the fetcher to the process that parses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The object is there.
    Opened {
        /// Number of the request.
        id: u64,
        /// Names the object from now on.
        object: u32,
        /// The state that it is in.
        state: ObjectState,
        /// Bytes from the object's first on that are staged already.
        staged: u64,
    },
    /// Bytes of a `Fetch` have come: so many from its offset on, all of them in the last reply.
    /// Those that had not come before are staged.
    Staged {
        /// Number of the request.
        id: u64,
        /// How many bytes.
        length: u64,
    },
    /// The same, but those that had not come before are in a [segment](super::segment::Segment).
    /// Its file comes with the packet, open for reading. Whoever reads a page looks whether it is
    /// right.
    Kept {
        /// Number of the request.
        id: u64,
        /// How many bytes.
        length: u64,
        /// By which the pages are known in the segment.
        key: Key,
    },
    /// A part of a page of names.
    Listed {
        /// Number of the request.
        id: u64,
        /// The names, sorted by their bytes.
        entries: Vec<ListedName>,
        /// Asks for the next part; empty at the end. It begins with an `r` within a page of the
        /// server, and is good for one request then.
        next: Vec<u8>,
    },
    /// The counters since the mount.
    Counted {
        /// Number of the request.
        id: u64,
        /// The counters.
        counters: Counters,
    },
    /// Something that whoever mounts has to know. No request is replied to.
    Warned {
        /// For people.
        text: String,
    },
    /// The request failed.
    Failed {
        /// Number of the request.
        id: u64,
        /// In which way.
        failure: Failure,
        /// For people: names the object, and no secret.
        text: String,
    },
}

/// A name in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedName {
    /// The last part of its path, without a `/`.
    pub name: Vec<u8>,
    /// The state of an object; `None` for a prefix, beneath which there are more.
    pub state: Option<ObjectState>,
}

/// In which way a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// There is no such object: 404.
    NotFound,
    /// The server does not let these credentials read it: 401, 403.
    Denied,
    /// The object is no longer in the state in which it was opened.
    Changed,
    /// The server serves no ranges.
    NoRanges,
    /// No answer came in time, or none but errors.
    TimedOut,
    /// The stage or another resource of this machine has no room.
    NoRoom,
    /// Anything else: the text says what.
    Other,
}

/// Counters of what the network took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// HTTP requests sent, the repeated ones included.
    pub requests: u64,
    /// Bytes of bodies received.
    pub bytes: u64,
    /// Requests sent again.
    pub retries: u64,
    /// Milliseconds that requests waited for their answers, all together.
    pub waited: u64,
    /// Bytes that came from the cache on disk.
    pub disk_bytes: u64,
}

impl Request {
    /// The request as a packet.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Request::Open { id, name, region } => {
                begin(&mut out, 1, *id);
                text(&mut out, name);
                number(&mut out, *region);
            }
            Request::Fetch {
                id,
                object,
                offset,
                length,
                is_needed,
            } => {
                begin(&mut out, 2, *id);
                number(&mut out, u64::from(*object));
                number(&mut out, *offset);
                number(&mut out, *length);
                out.push(u8::from(*is_needed));
            }
            Request::Check { id, object } => {
                begin(&mut out, 3, *id);
                number(&mut out, u64::from(*object));
            }
            Request::List { id, prefix, after } => {
                begin(&mut out, 4, *id);
                text(&mut out, prefix);
                text(&mut out, after);
            }
            Request::Count { id } => begin(&mut out, 5, *id),
            Request::Cancel { id } => begin(&mut out, 6, *id),
            Request::Drop { place, length } => {
                begin(&mut out, 7, *place);
                number(&mut out, *length);
            }
            Request::Close { object } => begin(&mut out, 8, u64::from(*object)),
            Request::Forget { object, offset } => {
                begin(&mut out, 9, u64::from(*object));
                number(&mut out, *offset);
            }
        }
        out
    }

    /// The request in a packet.
    ///
    /// # Errors
    /// `Corrupt` for a packet that [`encode`](Self::encode) does not make.
    pub fn decode(packet: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(packet, None, "request to the fetcher");
        let (kind, first) = (cursor.u8()?, cursor.u64()?);
        let request = match kind {
            1 => Request::Open {
                id: first,
                name: taken(&mut cursor)?,
                region: cursor.u64()?,
            },
            2 => Request::Fetch {
                id: first,
                object: object(cursor.u64()?, &cursor)?,
                offset: cursor.u64()?,
                length: cursor.u64()?,
                is_needed: cursor.u8()? != 0,
            },
            3 => Request::Check {
                id: first,
                object: object(cursor.u64()?, &cursor)?,
            },
            4 => Request::List {
                id: first,
                prefix: taken(&mut cursor)?,
                after: taken(&mut cursor)?,
            },
            5 => Request::Count { id: first },
            6 => Request::Cancel { id: first },
            7 => Request::Drop {
                place: first,
                length: cursor.u64()?,
            },
            8 => Request::Close {
                object: object(first, &cursor)?,
            },
            9 => Request::Forget {
                object: object(first, &cursor)?,
                offset: cursor.u64()?,
            },
            _ => return Err(cursor.corrupt("unknown kind")),
        };
        ended(&cursor, request)
    }
}

impl Reply {
    /// The number of the request that this replies to.
    pub fn id(&self) -> u64 {
        match self {
            Reply::Opened { id, .. }
            | Reply::Staged { id, .. }
            | Reply::Kept { id, .. }
            | Reply::Listed { id, .. }
            | Reply::Counted { id, .. }
            | Reply::Failed { id, .. } => *id,
            Reply::Warned { .. } => 0,
        }
    }

    /// The reply as a packet.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Reply::Opened {
                id,
                object,
                state,
                staged,
            } => {
                begin(&mut out, 1, *id);
                number(&mut out, u64::from(*object));
                put_state(&mut out, state);
                number(&mut out, *staged);
            }
            Reply::Staged { id, length } => {
                begin(&mut out, 2, *id);
                number(&mut out, *length);
            }
            Reply::Listed { id, entries, next } => {
                begin(&mut out, 3, *id);
                text(&mut out, next);
                for entry in entries {
                    out.push(u8::from(entry.state.is_some()));
                    text(&mut out, &entry.name);
                    if let Some(state) = &entry.state {
                        put_state(&mut out, state);
                    }
                }
            }
            Reply::Counted { id, counters } => {
                begin(&mut out, 4, *id);
                for count in counters.all() {
                    number(&mut out, count);
                }
            }
            Reply::Failed {
                id,
                failure,
                text: why,
            } => {
                begin(&mut out, 5, *id);
                out.push(failure.code());
                text(&mut out, why.as_bytes());
            }
            Reply::Kept { id, length, key } => {
                begin(&mut out, 6, *id);
                number(&mut out, *length);
                out.extend_from_slice(&key.0);
            }
            Reply::Warned { text: why } => {
                begin(&mut out, 7, 0);
                text(&mut out, why.as_bytes());
            }
        }
        out
    }

    /// The reply in a packet.
    ///
    /// # Errors
    /// `Corrupt` for a packet that [`encode`](Self::encode) does not make.
    pub fn decode(packet: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(packet, None, "reply of the fetcher");
        let (kind, id) = (cursor.u8()?, cursor.u64()?);
        let reply = match kind {
            1 => Reply::Opened {
                id,
                object: object(cursor.u64()?, &cursor)?,
                state: state(&mut cursor)?,
                staged: cursor.u64()?,
            },
            2 => Reply::Staged {
                id,
                length: cursor.u64()?,
            },
            3 => {
                let next = taken(&mut cursor)?;
                let mut entries = Vec::new();
                while cursor.remaining() > 0 {
                    entries.push(listed_name(&mut cursor)?);
                }
                Reply::Listed { id, entries, next }
            }
            4 => Reply::Counted {
                id,
                counters: Counters {
                    requests: cursor.u64()?,
                    bytes: cursor.u64()?,
                    retries: cursor.u64()?,
                    waited: cursor.u64()?,
                    disk_bytes: cursor.u64()?,
                },
            },
            5 => Reply::Failed {
                id,
                failure: Failure::of_code(cursor.u8()?)
                    .ok_or_else(|| cursor.corrupt("unknown failure"))?,
                text: String::from_utf8_lossy(&taken(&mut cursor)?).into_owned(),
            },
            6 => Reply::Kept {
                id,
                length: cursor.u64()?,
                key: Key(cursor.array()?),
            },
            7 => Reply::Warned {
                text: String::from_utf8_lossy(&taken(&mut cursor)?).into_owned(),
            },
            _ => return Err(cursor.corrupt("unknown kind")),
        };
        ended(&cursor, reply)
    }
}

impl Counters {
    /// In the order of a packet.
    fn all(&self) -> [u64; 5] {
        [
            self.requests,
            self.bytes,
            self.retries,
            self.waited,
            self.disk_bytes,
        ]
    }
}

impl Failure {
    const ALL: [Failure; 7] = [
        Failure::NotFound,
        Failure::Denied,
        Failure::Changed,
        Failure::NoRanges,
        Failure::TimedOut,
        Failure::NoRoom,
        Failure::Other,
    ];

    fn code(self) -> u8 {
        let place = Self::ALL.iter().position(|failure| *failure == self);
        place
            .and_then(|place| u8::try_from(place).ok())
            .unwrap_or(u8::MAX)
    }

    fn of_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

fn begin(out: &mut Vec<u8>, kind: u8, first: u64) {
    out.push(kind);
    number(out, first);
}

fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// A text whose length fits in 4 bytes, as everything that fits in a packet does.
fn text(out: &mut Vec<u8>, text: &[u8]) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text);
}

fn put_state(out: &mut Vec<u8>, state: &ObjectState) {
    number(out, state.length);
    out.extend_from_slice(&state.modified.to_le_bytes());
    text(out, &state.etag);
}

fn taken(cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
    let length = cursor.u32()?;
    let length = usize::try_from(length).map_err(|_| cursor.corrupt("text too long"))?;
    Ok(cursor.take(length)?.to_vec())
}

fn object(number: u64, cursor: &Cursor<'_>) -> Result<u32> {
    u32::try_from(number).map_err(|_| cursor.corrupt("no number of an object"))
}

fn state(cursor: &mut Cursor<'_>) -> Result<ObjectState> {
    Ok(ObjectState {
        length: cursor.u64()?,
        modified: i64::from_le_bytes(cursor.array()?),
        etag: taken(cursor)?,
    })
}

fn listed_name(cursor: &mut Cursor<'_>) -> Result<ListedName> {
    let is_object = cursor.u8()? != 0;
    Ok(ListedName {
        name: taken(cursor)?,
        state: is_object.then(|| state(cursor)).transpose()?,
    })
}

fn ended<T>(cursor: &Cursor<'_>, message: T) -> Result<T> {
    match cursor.remaining() {
        0 => Ok(message),
        more => Err(Error::corrupt(
            format!("packet of the fetcher: {more} bytes too many"),
            to_u64(cursor.position()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_state() -> ObjectState {
        ObjectState {
            length: 5 << 40,
            etag: b"\"0a1b\"".to_vec(),
            modified: -1,
        }
    }

    fn requests() -> Vec<Request> {
        vec![
            Request::Open {
                id: 1,
                name: b"a/b c.h5".to_vec(),
                region: 1 << 60,
            },
            Request::Fetch {
                id: u64::MAX,
                object: 7,
                offset: 1 << 50,
                length: 4 << 20,
                is_needed: true,
            },
            Request::Check { id: 3, object: 9 },
            Request::List {
                id: 4,
                prefix: b"2026/".to_vec(),
                after: b"token".to_vec(),
            },
            Request::Count { id: 5 },
            Request::Cancel { id: 6 },
            Request::Drop {
                place: 7,
                length: 65536,
            },
            Request::Close { object: u32::MAX },
            Request::Forget {
                object: 10,
                offset: 11,
            },
        ]
    }

    fn replies() -> Vec<Reply> {
        let entry = |name: &[u8], state| ListedName {
            name: name.to_vec(),
            state,
        };
        vec![
            Reply::Opened {
                id: 1,
                object: 7,
                state: a_state(),
                staged: 262_144,
            },
            Reply::Staged { id: 2, length: 12 },
            Reply::Listed {
                id: 3,
                entries: vec![entry(b"run.h5", Some(a_state())), entry(b"more", None)],
                next: b"run.h5".to_vec(),
            },
            Reply::Counted {
                id: 4,
                counters: Counters {
                    requests: 1,
                    bytes: 2,
                    retries: 3,
                    waited: 4,
                    disk_bytes: 5,
                },
            },
            Reply::Failed {
                id: 5,
                failure: Failure::TimedOut,
                text: "run.h5: no answer in 60 s".to_owned(),
            },
            Reply::Kept {
                id: 6,
                length: 1 << 20,
                key: Key([7; 32]),
            },
            Reply::Warned {
                text: "nothing is cached".to_owned(),
            },
        ]
    }

    #[test]
    fn a_message_is_the_same_at_the_other_end() {
        for request in requests() {
            assert_eq!(Request::decode(&request.encode()), Ok(request));
        }
        for reply in replies() {
            assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
        }
        for failure in Failure::ALL {
            assert_eq!(Failure::of_code(failure.code()), Some(failure));
        }
    }

    #[test]
    fn a_packet_that_is_cut_or_too_long_is_refused() {
        let packets = requests().iter().map(Request::encode).collect::<Vec<_>>();
        for packet in packets {
            for end in 0..packet.len() {
                assert!(Request::decode(&packet[..end]).is_err());
            }
            assert!(Request::decode(&[&packet[..], b"x"].concat()).is_err());
        }
        for packet in [0, 4, 5].map(|which| replies()[which].encode()) {
            for end in 0..packet.len() {
                assert!(Reply::decode(&packet[..end]).is_err());
            }
            assert!(Reply::decode(&[&packet[..], b"x"].concat()).is_err());
        }
        assert!(Request::decode(&[10; 9]).is_err() && Reply::decode(&[10; 9]).is_err());
    }
}
