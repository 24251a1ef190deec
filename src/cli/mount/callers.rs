//! Finds out whether the threads that wait for answers of the mount still exist.
//!
//! A process that is killed while it waits for a FUSE answer stays until the answer arrives. The
//! kernel does not report the kill to the FUSE server. `/proc` shows the kill, but the sandboxed
//! worker cannot see `/proc`.
//!
//! So the worker asks the supervisor over the supervision socket. A request contains the number of
//! threads, followed by their thread IDs. The answer has the same form and lists the threads that
//! have ended. The supervisor also sends a reopened log file over this socket, because the worker
//! cannot open one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::local::rights;
use h5fs_tree::fuse::EndedThreadFinder;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::cli::text::log_file::LogFile;

/// Maximum number of threads in one request.
const MAX_THREADS: usize = 1024;

/// Time limit for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Value in place of the number of threads, in a message that carries a reopened log file.
const LOG_FILE_MARKER: u32 = u32::MAX;

/// The supervisor's end of the supervision socket. Several threads write to it.
pub(in crate::cli) struct SupervisionSocket {
    socket: UnixStream,
    writing: Mutex<()>,
}

impl SupervisionSocket {
    pub(in crate::cli) fn new(socket: UnixStream) -> Self {
        let writing = Mutex::new(());
        SupervisionSocket { socket, writing }
    }

    /// Answers the worker's requests until the worker has ended or sends an invalid request.
    pub(in crate::cli) fn answer_queries(&self) {
        while let Ok(mut threads) = receive(&mut &self.socket) {
            threads.retain(|thread| has_ended(*thread));
            let _writing = lock(&self.writing);
            if send(&mut &self.socket, &threads).is_err() {
                return;
            }
        }
    }

    /// Sends the worker an open file in which it writes all later log lines.
    pub(in crate::cli) fn send_log_file(&self, file: &File) -> io::Result<()> {
        let _writing = lock(&self.writing);
        rights::send_with_files(
            self.socket.as_fd(),
            &LOG_FILE_MARKER.to_ne_bytes(),
            &[file.as_fd()],
        )
    }
}

/// Returns a function that the worker calls to find out which threads have ended. Also returns the
/// sender through which the supervisor's answers reach this function.
pub(in crate::cli) fn ended_thread_finder() -> (EndedThreadFinder, Sender<Vec<u32>>) {
    let (sender, answers) = channel();
    let find = move |threads: &[u32]| {
        let parts = threads.chunks(MAX_THREADS);
        parts
            .map_while(|part| query_ended(part, &answers))
            .flatten()
            .collect()
    };
    (Box::new(find), sender)
}

/// Asks the supervisor which of these threads have ended. Returns `None` if no answer arrives in
/// time.
fn query_ended(threads: &[u32], answers: &Receiver<Vec<u32>>) -> Option<Vec<u32>> {
    // Drops late answers, which belong to earlier requests.
    while answers.try_recv().is_ok() {}
    send(&mut WorkerSupervisionSocket, threads).ok()?;
    answers.recv_timeout(ANSWER_TIMEOUT).ok()
}

/// The worker's end of the supervision socket, which is the worker's standard input. End of file
/// means that the supervisor has died.
struct WorkerSupervisionSocket;

impl Write for WorkerSupervisionSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(io::stdin(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Receives the supervisor's messages in the worker until the supervisor has died. Passes answers
/// to `answers`, and new log files to `log`.
pub(in crate::cli) fn receive_answers(answers: &Sender<Vec<u32>>, log: Option<&LogFile>) {
    let mut leash = DescriptorReader::new(io::stdin());
    while let Ok(count) = receive_number(&mut leash) {
        if count == LOG_FILE_MARKER {
            if let (Some(file), Some(log)) = (leash.files.pop(), log) {
                log.replace(File::from(file));
            }
            continue;
        }
        let Ok(gone) = receive_numbers(&mut leash, count) else {
            return;
        };
        // The receiver is dropped when the mount has ended.
        let _ = answers.send(gone);
    }
}

/// A socket, and the file descriptors that were received with its bytes.
struct DescriptorReader<S> {
    socket: S,
    files: Vec<OwnedFd>,
}

impl<S: AsFd> DescriptorReader<S> {
    fn new(socket: S) -> Self {
        let files = Vec::new();
        DescriptorReader { socket, files }
    }
}

impl<S: AsFd> Read for DescriptorReader<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (length, files) = rights::receive_with_files(self.socket.as_fd(), buffer)?;
        if !files.is_empty() {
            self.files = files;
        }
        Ok(length)
    }
}

fn send(leash: &mut impl Write, threads: &[u32]) -> io::Result<()> {
    let count = u32::try_from(threads.len()).map_err(io::Error::other)?;
    let numbers = std::iter::once(&count).chain(threads);
    let message: Vec<u8> = numbers.flat_map(|number| number.to_ne_bytes()).collect();
    leash.write_all(&message)
}

fn receive(leash: &mut impl Read) -> io::Result<Vec<u32>> {
    let count = receive_number(leash)?;
    receive_numbers(leash, count)
}

fn receive_number(leash: &mut impl Read) -> io::Result<u32> {
    let mut number = [0; 4];
    leash.read_exact(&mut number)?;
    Ok(u32::from_ne_bytes(number))
}

fn receive_numbers(leash: &mut impl Read, count: u32) -> io::Result<Vec<u32>> {
    let count = usize::try_from(count).map_err(io::Error::other)?;
    if count > MAX_THREADS {
        return Err(io::ErrorKind::InvalidData.into());
    }
    std::iter::repeat_with(|| receive_number(leash))
        .take(count)
        .collect()
}

/// Returns whether a thread has ended, or will end as soon as it receives its answer. In the second
/// case, a `SIGKILL` is pending for the thread's process, or the thread closes its files because it
/// exits; see proc(5), /proc/PID/status and /proc/PID/stat.
fn has_ended(thread: u32) -> bool {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{thread}/{name}"));
    match read("status") {
        Ok(status) => is_killed(&status) || read("stat").is_ok_and(|stat| is_exiting(&stat)),
        // `/proc` may hide the processes of other users.
        Err(_) => {
            let there = i32::try_from(thread).map(|thread| kill(Pid::from_raw(thread), None));
            !matches!(there, Ok(Ok(()) | Err(Errno::EPERM)))
        }
    }
}

fn is_killed(status: &str) -> bool {
    const SIGKILL: u64 = 1 << (nix::libc::SIGKILL - 1);
    let pending = |line: &str| {
        let signals = line
            .strip_prefix("SigPnd:")
            .or_else(|| line.strip_prefix("ShdPnd:"))?;
        u64::from_str_radix(signals.trim(), 16).ok()
    };
    let all = status.lines().filter_map(pending);
    all.fold(0, |all, signals| all | signals) & SIGKILL != 0
}

/// Returns whether the flags in a text of /proc/PID/stat say that the thread exits. The flags are
/// the seventh field after the name, which is in parentheses and may contain any character.
fn is_exiting(stat: &str) -> bool {
    const PF_EXITING: u64 = 4;
    let flags = stat.rsplit_once(')').and_then(|(_, rest)| {
        let flags = rest.split_whitespace().nth(6)?;
        flags.parse::<u64>().ok()
    });
    flags.is_some_and(|flags| flags & PF_EXITING != 0)
}

#[cfg(test)]
mod tests {
    use std::io::Seek;
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn an_exiting_thread_counts_as_ended() {
        let stat = |flags: u64| format!("7 (a) b) R 1 7 7 0 -1 {flags} 94 0 0 0");
        assert!(is_exiting(&stat(0x40_0104)) && !is_exiting(&stat(0x40_0100)));
        assert!(!is_exiting("7 (a") && !is_exiting(""));
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert!(!is_exiting(&own));
    }

    #[test]
    fn a_killed_thread_counts_as_ended() {
        let of = |own: &str, shared: &str| format!("Name:\tx\nSigPnd:\t{own}\nShdPnd:\t{shared}\n");
        let none = "0000000000000000";
        assert!(!is_killed(&of(none, none)));
        assert!(!is_killed(&of("0000000000004002", none)));
        assert!(is_killed(&of("0000000000000100", none)));
        assert!(is_killed(&of(none, "0000000000004100")));
        assert!(!has_ended(std::process::id()));
        assert!(has_ended(u32::MAX));
    }

    #[test]
    fn invalid_queries_end_the_supervision() {
        let (mut worker, supervisor) = UnixStream::pair().unwrap();
        let leash = Arc::new(SupervisionSocket::new(supervisor));
        let other = Arc::clone(&leash);
        let answering = thread::spawn(move || other.answer_queries());
        let own = std::process::id();
        for _ in 0..2 {
            send(&mut worker, &[own, u32::MAX, own]).unwrap();
            assert_eq!(receive(&mut worker).unwrap(), [u32::MAX]);
        }
        let mut log = tempfile::tempfile().unwrap();
        leash.send_log_file(&log).unwrap();
        let mut leash = DescriptorReader::new(worker.as_fd());
        assert_eq!(receive_number(&mut leash).unwrap(), LOG_FILE_MARKER);
        let mut handed = File::from(leash.files.pop().unwrap());
        handed.write_all(b"line").unwrap();
        log.rewind().unwrap();
        assert_eq!(io::read_to_string(&log).unwrap(), "line");
        worker.write_all(&[255; 4]).unwrap();
        answering.join().unwrap();
    }
}
