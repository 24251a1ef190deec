//! A relay between the kernel and fuser that handles interrupted requests. fuser does not support
//! them.
//!
//! If a signal interrupts a process that waits for a reply of this filesystem, the process keeps
//! waiting until the reply arrives. Over a network, that may take long. The kernel asks for an
//! early reply by `FUSE_INTERRUPT`. fuser rejects that request, and the kernel does not repeat it.
//!
//! So fuser gets a socket in place of `/dev/fuse`, and the relay forwards every message between the
//! two. A signal does not always end its process, and programs do not expect `EINTR` from `stat`. So
//! an interrupted request completes like any other, as on a local filesystem. Only if the thread was
//! killed does the relay itself reply `EINTR`, and drops the late reply.
//!
//! The bytes of a read bypass fuser and the socket: each copy is expensive, and a packet is short.
//!
//! The structures are from `linux/fuse.h`, 7.40, in native byte order.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::packets;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

/// Maximum bytes of one read. The kernel uses the same maximum without a relay.
pub(super) const MAX_READ: u32 = 1 << 20;

/// Maximum bytes of one socket packet, in addition to the headers. A packet must fit into the
/// smallest socket buffer that an operating system may have.
const MAX_PAYLOAD: u32 = 128 << 10;

/// Maximum bytes of the headers of one message between the kernel and fuser.
const MAX_HEADERS: usize = 8192;

/// Length in bytes of `struct fuse_in_header`: length, opcode, unique, node, user, group, process,
/// padding.
const IN_HEADER: usize = 40;

/// Length in bytes of `struct fuse_out_header`: length, error, unique.
const OUT_HEADER: usize = 16;

/// Length in bytes of `struct fuse_entry_out`, whose first field is the inode number.
const ENTRY: usize = 128;

/// Length in bytes of `struct fuse_dirent` without the name: inode, offset, length of the name,
/// type.
const DIRENT: usize = 24;

/// The file type of a socket in `struct fuse_dirent`. fuser cannot send `DT_UNKNOWN`, the value for
/// an unknown type. So listings mark names of unknown type as sockets, which this filesystem never
/// has, and the relay replaces the type.
const DT_SOCK: u32 = 12;
const DT_UNKNOWN: u32 = 0;

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const OPEN: u32 = 14;
const RELEASE: u32 = 18;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;
const READDIRPLUS: u32 = 44;

/// A relay between `/dev/fuse` and fuser.
pub(super) struct Relay {
    device: OwnedFd,
    /// The relay's end of the socket; fuser has the other end.
    socket: OwnedFd,
    requests: Mutex<HashMap<u64, UnansweredRequest>>,
}

/// The queue of packets from one relay thread to fuser. The packets keep their order.
#[derive(Clone)]
struct PacketQueue {
    /// Channel to the thread that sends packets when the socket has no room.
    sender: Sender<Vec<u8>>,
    /// Number of packets in the channel that were not sent yet.
    waiting: Arc<AtomicUsize>,
}

/// A request that was sent to fuser and has no reply yet.
struct UnansweredRequest {
    opcode: u32,
    node: u64,
    /// The thread that waits for the reply, or 0 if it is unknown.
    thread: u32,
    /// Whether a signal has interrupted the thread.
    is_interrupted: bool,
    /// Whether the relay has already replied `EINTR`, so that fuser's reply must be dropped.
    has_interrupt_reply: bool,
}

impl Relay {
    /// Creates a relay for the FUSE device `device`. Returns the relay, and the end of its socket
    /// for fuser. The first request of a session (`FUSE_INIT`) is already queued in the socket; the
    /// caller must [read](Self::receive_reply) its reply.
    ///
    /// # Errors
    /// Fails if the system cannot create more sockets.
    pub(super) fn new(device: OwnedFd) -> io::Result<(Self, OwnedFd)> {
        let (socket, other) = packets::socket_pair()?;
        rustix::io::write(&socket, &build_init_request())?;
        let relay = Relay {
            device,
            socket,
            requests: Mutex::default(),
        };
        Ok((relay, other))
    }

    /// Reads and drops fuser's reply to the first request. The kernel received a reply when the
    /// filesystem was mounted.
    ///
    /// # Errors
    /// Fails if the socket fails.
    pub(super) fn receive_reply(&self) -> io::Result<()> {
        rustix::io::read(&self.socket, &mut [0; 256])?;
        Ok(())
    }

    /// Starts the threads that forward messages until the filesystem is unmounted. `threads` is the
    /// number of threads with which fuser receives requests.
    pub(super) fn start(relay: &Arc<Self>, threads: usize) {
        let (sender, to_feed) = channel();
        let waiting = Arc::<AtomicUsize>::default();
        let packets = PacketQueue {
            sender,
            waiting: Arc::clone(&waiting),
        };
        let run = |work: Box<dyn FnOnce(&Relay) + Send>| {
            let relay = Arc::clone(relay);
            thread::spawn(move || work(&relay));
        };
        let undone = packets.clone();
        run(Box::new(move |relay| relay.send_queued(&to_feed, &waiting)));
        run(Box::new(move |relay| relay.forward_replies(&undone)));
        run(Box::new(move |relay| {
            relay.forward_requests(&packets);
            // Each thread of the session ends after one of these requests.
            for _ in 0..threads {
                relay.send_packet(&packets, &build_request(DESTROY, 1, 0, &[]));
            }
        }));
    }

    /// Forwards the kernel's requests to fuser until the filesystem is unmounted. The calling thread
    /// never waits for fuser, so that it receives interrupts at once.
    fn forward_requests(&self, packets: &PacketQueue) {
        // The kernel requires room for a write of the same length as a read.
        let mut buffer = vec![0; MAX_READ as usize + MAX_HEADERS];
        loop {
            let packet = match rustix::io::read(&self.device, &mut buffer) {
                Ok(length) => buffer.get_mut(..length).unwrap_or_default(),
                Err(error) if should_read_again(error) => continue,
                Err(_) => return,
            };
            let (Some(opcode), Some(unique)) = (u32_at(packet, 4), u64_at(packet, 8)) else {
                return;
            };
            match opcode {
                INTERRUPT => {
                    let unique = u64_at(packet, IN_HEADER).unwrap_or_default();
                    if let Some(asked) = lock(&self.requests).get_mut(&unique) {
                        asked.is_interrupted = true;
                    }
                    continue;
                }
                FORGET | BATCH_FORGET => {}
                _ => self.record_request(unique, opcode, packet),
            }
            if matches!(opcode, READDIR | READDIRPLUS) {
                limit_listing_size(packet);
            }
            self.send_packet(packets, packet);
        }
    }

    fn record_request(&self, unique: u64, opcode: u32, packet: &[u8]) {
        let asked = UnansweredRequest {
            opcode,
            node: u64_at(packet, 16).unwrap_or_default(),
            thread: u32_at(packet, 32).unwrap_or_default(),
            is_interrupted: false,
            has_interrupt_reply: false,
        };
        lock(&self.requests).insert(unique, asked);
    }

    /// Sends a packet to fuser. If the socket has no room, queues the packet for another thread.
    fn send_packet(&self, packets: &PacketQueue, packet: &[u8]) {
        let is_first = packets.waiting.load(Ordering::Acquire) == 0;
        if is_first && send(&self.socket, packet, SendFlags::DONTWAIT) == Ok(packet.len()) {
            return;
        }
        packets.waiting.fetch_add(1, Ordering::Relaxed);
        let _ = packets.sender.send(packet.to_vec());
    }

    /// Sends the queued packets to fuser, waiting until the socket has room.
    fn send_queued(&self, packets: &Receiver<Vec<u8>>, waiting: &AtomicUsize) {
        for packet in packets {
            while rustix::io::write(&self.socket, &packet) == Err(Errno::INTR) {}
            waiting.fetch_sub(1, Ordering::Release);
        }
    }

    /// Returns the threads that a signal has interrupted while they wait for a reply.
    pub(super) fn interrupted_threads(&self) -> BTreeSet<u32> {
        let requests = lock(&self.requests);
        let interrupted = requests
            .values()
            .filter(|asked| asked.is_interrupted && !asked.has_interrupt_reply);
        let threads = interrupted.map(|asked| asked.thread);
        threads.filter(|thread| *thread != 0).collect()
    }

    /// Replies `EINTR` to all requests of these threads, which were killed.
    pub(super) fn reply_to_killed(&self, threads: &[u32]) {
        let mut requests = lock(&self.requests);
        for (unique, asked) in requests.iter_mut() {
            if threads.contains(&asked.thread) && !asked.has_interrupt_reply {
                asked.has_interrupt_reply = true;
                let reply = out_header(OUT_HEADER, -Errno::INTR.raw_os_error(), *unique);
                // A request that ended with the mount needs no reply.
                let _ = rustix::io::write(&self.device, &reply);
            }
        }
    }

    /// Sends `bytes` to the kernel as the reply to the read `unique`. The reply that fuser sends
    /// for this read is then dropped.
    pub(super) fn answer_read(&self, unique: u64, bytes: &[u8]) {
        let asked = lock(&self.requests).remove(&unique);
        if asked.is_some_and(|asked| !asked.has_interrupt_reply) {
            let header = out_header(OUT_HEADER + bytes.len(), 0, unique);
            let whole = [IoSlice::new(&header), IoSlice::new(bytes)];
            // A request that ended with the mount needs no reply.
            let _ = rustix::io::writev(&self.device, &whole);
        }
    }

    /// Forwards fuser's replies and notifications to the kernel. `undone` receives requests to
    /// fuser that undo replies which the kernel does not get.
    fn forward_replies(&self, undone: &PacketQueue) {
        let mut buffer = vec![0; MAX_PAYLOAD as usize + MAX_HEADERS];
        loop {
            let packet = match rustix::io::read(&self.socket, &mut buffer) {
                Ok(0) => return,
                Ok(length) => buffer.get_mut(..length).unwrap_or_default(),
                Err(error) if should_read_again(error) => continue,
                Err(_) => return,
            };
            let unique = u64_at(packet, 8).unwrap_or_default();
            let asked = lock(&self.requests).remove(&unique);
            match asked.as_ref().map_or(0, |asked| asked.opcode) {
                READDIR => replace_socket_types(packet, 0),
                READDIRPLUS => replace_socket_types(packet, ENTRY),
                _ => {}
            }
            match asked {
                Some(asked) if asked.has_interrupt_reply => {
                    for packet in build_undo_requests(&asked, unique, packet) {
                        self.send_packet(undone, &packet);
                    }
                }
                // Notifications are not replies, and their number is 0.
                None if unique != 0 => {}
                _ => {
                    // The kernel rejects notifications about objects that it has dropped.
                    let _ = rustix::io::write(&self.device, packet);
                }
            }
        }
    }
}

/// Returns a descriptor of the device `/dev/fuse` of a fuser session.
pub(super) fn fuse_device(session: &impl AsFd) -> io::Result<OwnedFd> {
    session.as_fd().try_clone_to_owned()
}

/// Returns whether reading a request from the device must be repeated, for example because the
/// kernel withdrew the request.
fn should_read_again(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::INTR | Errno::AGAIN)
}

/// Limits the buffer size in a request to list a directory, so that the reply fits into one packet.
/// In `struct fuse_read_in`, the buffer size follows a handle and an offset.
fn limit_listing_size(request: &mut [u8]) {
    let room = request.get_mut(IN_HEADER + 16..).unwrap_or_default();
    if let Some(room) = room.first_chunk_mut() {
        *room = u32::from_ne_bytes(*room).min(MAX_PAYLOAD).to_ne_bytes();
    }
}

/// Returns requests to fuser that undo the successful `reply` to the interrupted request `asked`,
/// because the kernel does not get this reply. Lookups must be forgotten, and an opened file must
/// be closed.
fn build_undo_requests(asked: &UnansweredRequest, unique: u64, reply: &[u8]) -> Vec<Vec<u8>> {
    let body = match u32_at(reply, 4) {
        Some(0) => reply.get(OUT_HEADER..).unwrap_or_default(),
        _ => return Vec::new(),
    };
    match asked.opcode {
        LOOKUP => build_forget_request(body).into_iter().collect(),
        READDIRPLUS => listed_entries(body)
            .filter_map(build_forget_request)
            .collect(),
        OPEN => build_release_request(RELEASE, asked, unique, body)
            .into_iter()
            .collect(),
        OPENDIR => build_release_request(RELEASEDIR, asked, unique, body)
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns a request to fuser that releases one lookup of an inode. `entry` is fuser's reply, a
/// `struct fuse_entry_out`. Returns `None` if `entry` contains no inode, because the name does not
/// exist or was not looked up.
fn build_forget_request(entry: &[u8]) -> Option<Vec<u8>> {
    let node = u64_at(entry, 0).filter(|node| *node != 0)?;
    Some(build_request(FORGET, 0, node, &1_u64.to_ne_bytes()))
}

/// Returns a request to fuser that closes the handle in `opened`, the content of the reply to an
/// open. The request has an odd number. The kernel's request numbers are even, so fuser's reply
/// matches no request of the kernel.
fn build_release_request(
    opcode: u32,
    asked: &UnansweredRequest,
    unique: u64,
    opened: &[u8],
) -> Option<Vec<u8>> {
    let handle = opened.get(..8)?;
    let body = [handle, &[0; 16]].concat();
    Some(build_request(opcode, unique | 1, asked.node, &body))
}

/// Iterates over the entries of `body`, the content of a `FUSE_READDIRPLUS` reply. Each entry is
/// padded to a multiple of 8 bytes.
fn listed_entries(mut body: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let entry = body;
        let name = u32_at(entry, ENTRY + 16)?;
        let length = ENTRY + DIRENT + usize::try_from(name).ok()?.next_multiple_of(8);
        body = entry.get(length..)?;
        Some(entry)
    })
}

/// Replaces the file type `DT_SOCK`, which marks names of unknown type, by `DT_UNKNOWN` in the
/// reply to a listing. In a `FUSE_READDIRPLUS` reply, `attributes` bytes of attributes precede each
/// entry; otherwise `attributes` is 0. For names of unknown type, the inode number in the
/// attributes is cleared, so that the kernel looks the name up.
fn replace_socket_types(reply: &mut [u8], attributes: usize) {
    let mut rest = reply.get_mut(OUT_HEADER..).unwrap_or_default();
    while let Some(name) = u32_at(rest, attributes + 16) {
        let length = usize::try_from(name).unwrap_or(usize::MAX);
        let length = length.saturating_add(7) / 8 * 8;
        let length = length.saturating_add(attributes + DIRENT);
        if u32_at(rest, attributes + 20) == Some(DT_SOCK) {
            let place = attributes + 20..attributes + DIRENT;
            copy_into(rest, place, &DT_UNKNOWN.to_ne_bytes());
            copy_into(rest, 0..attributes.min(8), &[0; 8]);
        }
        rest = rest.get_mut(length..).unwrap_or_default();
    }
}

/// Copies `from` to the range `place` of `to`.
fn copy_into(to: &mut [u8], place: std::ops::Range<usize>, from: &[u8]) {
    let place = to.get_mut(place).unwrap_or_default();
    place
        .iter_mut()
        .zip(from)
        .for_each(|(to, from)| *to = *from);
}

/// Returns a `FUSE_INIT` request, the first request of a session, with version 7.40 and every
/// capability. The kernel learns which capabilities fuser uses when fuser mounts.
fn build_init_request() -> Vec<u8> {
    let fields = [7, 40, MAX_PAYLOAD, u32::MAX, u32::MAX];
    let mut body: Vec<u8> = fields.into_iter().flat_map(u32::to_ne_bytes).collect();
    body.resize(64, 0);
    build_request(INIT, 1, 0, &body)
}

fn build_request(opcode: u32, unique: u64, node: u64, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(IN_HEADER + body.len()).unwrap_or(u32::MAX);
    let mut packet = Vec::with_capacity(IN_HEADER + body.len());
    packet.extend_from_slice(&length.to_ne_bytes());
    packet.extend_from_slice(&opcode.to_ne_bytes());
    packet.extend_from_slice(&unique.to_ne_bytes());
    packet.extend_from_slice(&node.to_ne_bytes());
    packet.resize(IN_HEADER, 0);
    packet.extend_from_slice(body);
    packet
}

/// Returns the `struct fuse_out_header` of a reply of `length` bytes to the request `unique`.
fn out_header(length: usize, error: i32, unique: u64) -> Vec<u8> {
    let mut packet = u32::try_from(length)
        .unwrap_or_default()
        .to_ne_bytes()
        .to_vec();
    packet.extend_from_slice(&error.to_ne_bytes());
    packet.extend_from_slice(&unique.to_ne_bytes());
    packet
}

fn u32_at(packet: &[u8], at: usize) -> Option<u32> {
    let bytes = packet.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn u64_at(packet: &[u8], at: usize) -> Option<u64> {
    let bytes = packet.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_reply(error: i32, body: &[u8]) -> Vec<u8> {
        [out_header(OUT_HEADER + body.len(), error, 8), body.to_vec()].concat()
    }

    fn unanswered_request(opcode: u32) -> UnansweredRequest {
        UnansweredRequest {
            opcode,
            node: 5,
            thread: 3,
            is_interrupted: true,
            has_interrupt_reply: true,
        }
    }

    /// Returns an entry of a listing: the node, the rest of `fuse_entry_out`, and the name.
    fn entry(node: u64, name: &[u8]) -> Vec<u8> {
        let mut entry = node.to_ne_bytes().to_vec();
        entry.resize(ENTRY + 16, 0);
        entry.extend_from_slice(&u32::try_from(name.len()).unwrap().to_ne_bytes());
        entry.extend_from_slice(&[0; 4]);
        entry.extend_from_slice(name);
        entry.resize(entry.len().next_multiple_of(8), 0);
        entry
    }

    #[test]
    fn a_late_reply_is_undone() {
        let forgotten = |node: u64| build_request(FORGET, 0, node, &1_u64.to_ne_bytes());
        let found = build_reply(0, &entry(77, b"")[..ENTRY]);
        assert_eq!(
            build_undo_requests(&unanswered_request(LOOKUP), 8, &found),
            [forgotten(77)]
        );
        let absent = build_reply(0, &entry(0, b"")[..ENTRY]);
        assert!(build_undo_requests(&unanswered_request(LOOKUP), 8, &absent).is_empty());
        assert!(
            build_undo_requests(&unanswered_request(LOOKUP), 8, &build_reply(-2, b"")).is_empty()
        );

        let names = [entry(0, b"."), entry(7, b"a long name"), entry(9, b"b")].concat();
        let undone =
            build_undo_requests(&unanswered_request(READDIRPLUS), 8, &build_reply(0, &names));
        assert_eq!(undone, [forgotten(7), forgotten(9)]);

        let opened = build_reply(0, &[&3_u64.to_ne_bytes()[..], &[0; 8]].concat());
        let body = [&3_u64.to_ne_bytes()[..], &[0; 16]].concat();
        let closed = |opcode| build_request(opcode, 9, 5, &body);
        assert_eq!(
            build_undo_requests(&unanswered_request(OPEN), 8, &opened),
            [closed(RELEASE)]
        );
        assert_eq!(
            build_undo_requests(&unanswered_request(OPENDIR), 8, &opened),
            [closed(RELEASEDIR)]
        );
        assert!(build_undo_requests(&unanswered_request(15), 8, &opened).is_empty());
    }

    #[test]
    fn unknown_entries_have_no_type_and_no_attributes() {
        let typed = |node: u64, name: &[u8], kind: u32| {
            let mut entry = entry(node, name);
            entry[ENTRY..ENTRY + 8].copy_from_slice(&9_u64.to_ne_bytes());
            entry[ENTRY + 20..ENTRY + 24].copy_from_slice(&kind.to_ne_bytes());
            entry
        };
        let listing = |kind: u32, node: u64| {
            [
                typed(7, b"a long name", 4),
                typed(node, b"b", kind),
                typed(3, b"c", 8),
            ]
            .concat()
        };
        let mut plus = build_reply(0, &listing(DT_SOCK, 5));
        replace_socket_types(&mut plus, ENTRY);
        assert_eq!(plus, build_reply(0, &listing(DT_UNKNOWN, 0)));
        // The same names without attributes.
        let names = |kind| {
            let all = listing(kind, 5);
            let (first, rest) = all.split_at(ENTRY + DIRENT + 16);
            let (second, third) = rest.split_at(ENTRY + DIRENT + 8);
            [&first[ENTRY..], &second[ENTRY..], &third[ENTRY..]].concat()
        };
        let mut plain = build_reply(0, &names(DT_SOCK));
        replace_socket_types(&mut plain, 0);
        assert_eq!(plain, build_reply(0, &names(DT_UNKNOWN)));
        for end in 0..plus.len() {
            replace_socket_types(&mut plus[..end], ENTRY);
        }
    }

    #[test]
    fn a_part_of_a_listing_fits_into_a_packet() {
        // Handle, offset, buffer size, and the remaining fields.
        let readdirplus_request = |room: u32| {
            let body = [&[7; 16][..], &room.to_ne_bytes(), &[9; 20]].concat();
            build_request(READDIRPLUS, 8, 1, &body)
        };
        for (room, left) in [
            (4096, 4096),
            (MAX_PAYLOAD, MAX_PAYLOAD),
            (MAX_READ, MAX_PAYLOAD),
        ] {
            let mut packet = readdirplus_request(room);
            limit_listing_size(&mut packet);
            assert_eq!(packet, readdirplus_request(left));
        }
        limit_listing_size(&mut readdirplus_request(MAX_READ)[..IN_HEADER + 18]);
    }

    #[test]
    fn a_truncated_listing_ends() {
        let whole = [entry(7, b"one"), entry(9, b"two")].concat();
        for end in 0..whole.len() {
            assert!(listed_entries(&whole[..end]).count() < 2);
        }
        assert_eq!(listed_entries(&whole).count(), 2);
    }
}
