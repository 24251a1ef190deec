//! The messages between the worker, which parses, and the fetcher.
//!
//! Each message is one packet on a pair of `SOCK_SEQPACKET` sockets, encoded by the crate
//! `postcard`. Each end treats the other as hostile: a packet that cannot be decoded ends the
//! connection, and lengths are checked against the packet.
//!
//! Each request has a number, its `id`, which its replies repeat. The fetcher handles many requests
//! concurrently and replies in any order. But it handles [`FreeStage`](Request::FreeStage),
//! [`Cancel`](Request::Cancel) and [`Close`](Request::Close) in sequence, before it reads the next
//! packet.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::source::remote::segment::ObjectKey;
use crate::source::remote::state::ObjectState;
use crate::wire::Count;

/// Maximum number of bytes of one packet.
pub const PACKET: usize = 64 << 10;

/// Maximum number of bytes of an object that are staged when the object is opened.
pub const OPEN_STAGED_BYTES: u64 = 256 << 10;

/// A message from the worker to the fetcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Opens an object. The reply is [`Opened`](Reply::Opened) or [`Failed`](Reply::Failed). Up to
    /// [`OPEN_STAGED_BYTES`] bytes of the object may be staged in advance.
    Open {
        /// Number of the request.
        id: u64,
        /// Path of the object relative to the source's prefix, with `/` between components. Empty
        /// for the object that the source's URL names.
        name: Vec<u8>,
        /// Offset in the stage where the object's region starts.
        region: u64,
    },
    /// Fetches bytes of an object in the state in which it was opened. The replies are
    /// [`Staged`](Reply::Staged) and [`InSegment`](Reply::InSegment), possibly several, or
    /// `Failed`.
    Fetch {
        /// Number of the request.
        id: u64,
        /// Number of the object, from `Opened`.
        object: u32,
        /// Offset of the bytes in the object.
        offset: u64,
        /// Number of bytes, not 0.
        length: u64,
        /// Whether a reader waits for the bytes.
        is_needed: bool,
    },
    /// Checks whether an object is still in the state in which it was opened. The reply is
    /// `Opened`, with the current state, or `Failed`.
    Check {
        /// Number of the request.
        id: u64,
        /// Number of the object.
        object: u32,
    },
    /// Lists a page of the names in a directory. The replies are [`Listed`](Reply::Listed),
    /// possibly several, or `Failed`. For a prefix that does not end in `/`, the fetcher may return
    /// the state of that name only.
    List {
        /// Number of the request.
        id: u64,
        /// Prefix of the names, relative to the source's prefix: a directory ending in `/`, or
        /// empty for the source's prefix itself, followed by the start of the names.
        prefix: Vec<u8>,
        /// Start of the page: empty, or `next` of the previous page.
        after: Vec<u8>,
    },
    /// Requests the counters. The reply is [`Counted`](Reply::Counted).
    GetCounters {
        /// Number of the request.
        id: u64,
    },
    /// Cancels a request because its caller no longer waits. The request gets no further reply.
    Cancel {
        /// Number of the cancelled request.
        id: u64,
    },
    /// Frees bytes of the stage. There is no reply.
    FreeStage {
        /// Offset of the bytes in the stage.
        stage_offset: u64,
        /// Number of bytes to free.
        length: u64,
    },
    /// Closes an object. There is no reply.
    Close {
        /// Number of the object.
        object: u32,
    },
    /// Removes a corrupt page that was [`InSegment`](Reply::InSegment), so that the fetcher does
    /// not send it again. There is no reply.
    DiscardCorruptPage {
        /// Number of the object.
        object: u32,
        /// Offset of the page in the object.
        offset: u64,
    },
}

/// A message from the fetcher to the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The object exists. This is the reply to `Open` and `Check`.
    Opened {
        /// Number of the request.
        id: u64,
        /// Number of the object in later messages.
        object: u32,
        /// State of the object.
        state: ObjectState,
        /// Number of bytes, from the object's first, that are already staged.
        staged: u64,
    },
    /// Bytes of a `Fetch` have arrived: the first `length` bytes from its offset, or all bytes in
    /// the last reply. Bytes that are new since the previous reply are staged.
    Staged {
        /// Number of the request.
        id: u64,
        /// Number of bytes of the `Fetch` that have arrived so far.
        length: u64,
    },
    /// Bytes of a `Fetch` have arrived, as for `Staged`, but the new bytes are in a
    /// [segment](super::segment::Segment). The packet carries the segment's file, open for reading.
    /// The reader of a page verifies its checksum.
    InSegment {
        /// Number of the request.
        id: u64,
        /// Number of bytes of the `Fetch` that have arrived so far.
        length: u64,
        /// Key of the object, which is part of the checksum of each page in the segment.
        key: ObjectKey,
    },
    /// Names of one page of a directory listing.
    Listed {
        /// Number of the request.
        id: u64,
        /// Whether this reply ends the page.
        is_last: bool,
        /// The names in byte order, after the names of the previous replies.
        entries: Vec<ListedName>,
        /// Token of the next page, empty at the end.
        next: Vec<u8>,
    },
    /// The counters since the mount.
    Counted {
        /// Number of the request.
        id: u64,
        /// The counters.
        counters: Counters,
    },
    /// A warning for the user who mounts. The message is not a reply to any request.
    Warning {
        /// Always 0, which is not the number of any request.
        id: u64,
        /// Text for the user.
        text: String,
    },
    /// The request failed.
    Failed {
        /// Number of the request.
        id: u64,
        /// Category of the failure.
        failure: FailureKind,
        /// Text for the user, which names the object and contains no secret.
        text: String,
    },
}

/// A name in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedName {
    /// Last component of the path, without a `/`.
    pub name: Vec<u8>,
    /// Type of the entry.
    pub entry_type: ListedType,
}

/// The type of an entry in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListedType {
    /// A prefix with further names beneath it.
    Prefix,
    /// An object in this state.
    Object(ObjectState),
    /// Probably an object, but the listing has no metadata: a request is needed.
    ObjectWithoutMetadata,
}

impl ListedName {
    /// Returns the number of bytes of the name and of the object's entity tag.
    pub(super) fn bytes(&self) -> usize {
        self.name.len().plus(self.entry_type.tag_bytes())
    }
}

impl ListedType {
    /// Returns the number of bytes of the object's entity tag, or 0 if the listing has none.
    pub(super) fn tag_bytes(&self) -> usize {
        match self {
            ListedType::Object(state) => state.etag.len(),
            ListedType::Prefix | ListedType::ObjectWithoutMetadata => 0,
        }
    }
}

/// The category of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// The object does not exist: 404.
    NotFound,
    /// The server denies access with these credentials: 401, 403.
    Denied,
    /// The object has changed since it was opened.
    Changed,
    /// The server does not support range requests.
    NoRanges,
    /// No response arrived in time, or only error responses arrived.
    TimedOut,
    /// The stage or another local resource is full.
    NoRoom,
    /// Any other failure, described by the text.
    Other,
}

/// Network counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Number of HTTP requests sent, including retries.
    pub requests: u64,
    /// Number of bytes of response bodies received.
    pub bytes: u64,
    /// Number of HTTP requests that were retries.
    pub retries: u64,
    /// Total milliseconds that requests waited for responses.
    pub waited: u64,
    /// Number of bytes read from the disk cache.
    pub disk_bytes: u64,
}

impl Request {
    /// Encodes the request as a packet.
    pub fn encode(&self) -> Vec<u8> {
        encode_packet(self)
    }

    /// Decodes the request in a packet.
    ///
    /// # Errors
    /// `Corrupt` if the packet is not an encoded request.
    pub fn decode(packet: &[u8]) -> Result<Self> {
        decode_packet(packet, "request to the fetcher")
    }
}

impl Reply {
    /// Returns the number of the request.
    pub fn id(&self) -> u64 {
        match self {
            Reply::Opened { id, .. }
            | Reply::Staged { id, .. }
            | Reply::InSegment { id, .. }
            | Reply::Listed { id, .. }
            | Reply::Counted { id, .. }
            | Reply::Warning { id, .. }
            | Reply::Failed { id, .. } => *id,
        }
    }

    /// Encodes the reply as a packet.
    pub fn encode(&self) -> Vec<u8> {
        encode_packet(self)
    }

    /// Decodes the reply in a packet.
    ///
    /// # Errors
    /// `Corrupt` if the packet is not an encoded reply.
    pub fn decode(packet: &[u8]) -> Result<Self> {
        decode_packet(packet, "reply of the fetcher")
    }
}

fn encode_packet(message: &impl Serialize) -> Vec<u8> {
    // Encoding fails only for sequences of unknown length, which messages do not contain.
    postcard::to_allocvec(message).unwrap_or_default()
}

/// Decodes the message in a packet. `what` describes the message.
///
/// # Errors
/// `Corrupt` if the packet was not made by [`encode_packet`].
fn decode_packet<T: DeserializeOwned>(packet: &[u8], what: &'static str) -> Result<T> {
    match postcard::take_from_bytes(packet) {
        Ok((message, [])) => Ok(message),
        _ => Err(Error::corrupt(what, None)),
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
            Request::GetCounters { id: 5 },
            Request::Cancel { id: 6 },
            Request::FreeStage {
                stage_offset: 7,
                length: 65536,
            },
            Request::Close { object: u32::MAX },
            Request::DiscardCorruptPage {
                object: 10,
                offset: 11,
            },
        ]
    }

    fn replies() -> Vec<Reply> {
        let entry = |name: &[u8], named| ListedName {
            name: name.to_vec(),
            entry_type: named,
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
                    entry(b"run.h5", ListedType::Object(a_state())),
                    entry(b"more", ListedType::Prefix),
                    entry(b"a.h5", ListedType::ObjectWithoutMetadata),
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
                failure: FailureKind::TimedOut,
                text: "run.h5: no answer in 60 s".to_owned(),
            },
            Reply::InSegment {
                id: 6,
                length: 1 << 20,
                key: ObjectKey([7; 32]),
            },
            Reply::Warning {
                id: 0,
                text: "nothing is cached".to_owned(),
            },
        ]
    }

    #[test]
    fn messages_are_decoded_unchanged() {
        for request in requests() {
            assert_eq!(Request::decode(&request.encode()), Ok(request));
        }
        for reply in replies() {
            assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
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
        for packet in replies().iter().map(Reply::encode) {
            for end in 0..packet.len() {
                assert!(Reply::decode(&packet[..end]).is_err());
            }
            assert!(Reply::decode(&[&packet[..], b"x"].concat()).is_err());
        }
        assert!(Request::decode(&[10; 9]).is_err() && Reply::decode(&[10; 9]).is_err());
    }

    /// The length of a list is not trusted before its entries are decoded.
    #[test]
    fn a_list_longer_than_its_packet_is_rejected() {
        let listed = Reply::Listed {
            id: 1,
            is_last: true,
            entries: Vec::new(),
            next: Vec::new(),
        };
        let mut packet = listed.encode();
        let count = packet.len() - 2;
        packet.splice(count..=count, [0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert!(Reply::decode(&packet).is_err());
    }
}
