//! The messages between the process that parses and the fetcher.
//!
//! Each is one packet on a pair of `SOCK_SEQPACKET` sockets. Numbers are little-endian; a text is
//! its length in 4 bytes, then its bytes. Both ends take the other for hostile: a packet that
//! cannot be decoded ends the connection, and no length in it is believed beyond the packet.
//!
//! A request has a number, its `id`, which its replies repeat. The fetcher works on many at a time
//! and replies in any order, but does [`Drop`](Request::Drop), [`Cancel`](Request::Cancel) and
//! [`Close`](Request::Close) in their turn, before it looks at the next packet.

mod field;

use crate::error::Result;
use crate::source::remote::message::field::{Field, fields, packed, unpacked};
use crate::source::remote::segment::Key;
use crate::source::remote::state::ObjectState;
use crate::wire::{Count, Cursor};

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
    /// Lists the names in a directory, a page of them: replies [`Listed`](Reply::Listed), maybe
    /// several times, or `Failed`. What is named without a `/` at its end, the fetcher may answer
    /// by the state of that name alone.
    List {
        /// Number of the request.
        id: u64,
        /// Relative to the source's prefix: the directory, with a `/` at its end unless it is the
        /// prefix itself, and then what the names begin with.
        prefix: Vec<u8>,
        /// Where the page begins: empty, or `next` of the page before.
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
    /// Names of a page.
    Listed {
        /// Number of the request.
        id: u64,
        /// Whether they are the last of the page.
        is_last: bool,
        /// The names, sorted by their bytes; they follow those of the replies before.
        entries: Vec<ListedName>,
        /// Asks for the next page; empty at the end.
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
        /// 0, the number of none.
        id: u64,
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
    /// What stands there.
    pub named: Named,
}

/// What a listing says of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// A prefix, beneath which there are more.
    Prefix,
    /// An object in this state.
    Object(ObjectState),
    /// An object, or so it seems, of which nothing else is said: only a look tells.
    Unseen,
}

impl ListedName {
    /// Bytes of the name and of the object's tag.
    pub(super) fn bytes(&self) -> usize {
        self.name.len().with_more(self.named.tag_bytes())
    }
}

impl Named {
    /// Bytes of the object's tag.
    pub(super) fn tag_bytes(&self) -> usize {
        match self {
            Named::Object(state) => state.etag.len(),
            Named::Prefix | Named::Unseen => 0,
        }
    }
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

fields!(enum Request {
    1 Open { id name region }
    2 Fetch { id object offset length is_needed }
    3 Check { id object }
    4 List { id prefix after }
    5 Count { id }
    6 Cancel { id }
    7 Drop { place length }
    8 Close { object }
    9 Forget { object offset }
});

fields!(enum Reply {
    1 Opened { id object state staged }
    2 Staged { id length }
    3 Listed { id is_last next entries }
    4 Counted { id counters }
    5 Failed { id failure text }
    6 Kept { id length key }
    7 Warned { id text }
});

fields!(enum Failure {
    0 NotFound {}
    1 Denied {}
    2 Changed {}
    3 NoRanges {}
    4 TimedOut {}
    5 NoRoom {}
    6 Other {}
});

fields!(struct Key { 0 });
fields!(struct ObjectState { length modified etag });
fields!(struct Counters { requests bytes retries waited disk_bytes });

impl Request {
    /// The request as a packet.
    pub fn encode(&self) -> Vec<u8> {
        packed(self)
    }

    /// The request in a packet.
    ///
    /// # Errors
    /// `Corrupt` for a packet that [`encode`](Self::encode) does not make.
    pub fn decode(packet: &[u8]) -> Result<Self> {
        unpacked(packet, "request to the fetcher")
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
            | Reply::Warned { id, .. }
            | Reply::Failed { id, .. } => *id,
        }
    }

    /// The reply as a packet.
    pub fn encode(&self) -> Vec<u8> {
        packed(self)
    }

    /// The reply in a packet.
    ///
    /// # Errors
    /// `Corrupt` for a packet that [`encode`](Self::encode) does not make.
    pub fn decode(packet: &[u8]) -> Result<Self> {
        unpacked(packet, "reply of the fetcher")
    }
}

impl Field for Named {
    fn put(&self, packet: &mut Vec<u8>) {
        match self {
            Named::Prefix => packet.push(0),
            Named::Object(state) => {
                packet.push(1);
                state.put(packet);
            }
            Named::Unseen => packet.push(2),
        }
    }

    fn take(packet: &mut Cursor<'_>) -> Result<Self> {
        match packet.u8()? {
            0 => Ok(Named::Prefix),
            1 => Field::take(packet).map(Named::Object),
            2 => Ok(Named::Unseen),
            _ => Err(packet.corrupt("unknown kind")),
        }
    }
}

/// The names up to the end of the packet.
impl Field for Vec<ListedName> {
    fn put(&self, packet: &mut Vec<u8>) {
        for entry in self {
            entry.name.put(packet);
            entry.named.put(packet);
        }
    }

    fn take(packet: &mut Cursor<'_>) -> Result<Self> {
        let mut entries = Vec::new();
        while packet.remaining() > 0 {
            let name = Field::take(packet)?;
            let named = Field::take(packet)?;
            entries.push(ListedName { name, named });
        }
        Ok(entries)
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
        let entry = |name: &[u8], named| ListedName {
            name: name.to_vec(),
            named,
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
                is_last: false,
                entries: vec![
                    entry(b"run.h5", Named::Object(a_state())),
                    entry(b"more", Named::Prefix),
                    entry(b"a.h5", Named::Unseen),
                ],
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
                id: 0,
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
    }

    #[test]
    fn a_packet_has_the_number_of_its_kind_and_then_its_fields() {
        let close = Request::Close { object: 258 };
        assert_eq!(close.encode(), b"\x08\x02\x01\0\0\0\0\0\0");
        let failed = Reply::Failed {
            id: 1,
            failure: Failure::NoRoom,
            text: "no".to_owned(),
        };
        let packet = b"\x05\x01\0\0\0\0\0\0\0\x05\x02\0\0\0no";
        assert_eq!(failed.encode(), packet);
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
