//! A text that is written from front to back, of a length that nobody knows before its end.
//!
//! It is written by a thread of its own that is never more than a few pieces ahead of its reader, so
//! that plain code writes it and memory is bounded. Reading on costs what writing costs; to
//! go back is to begin anew. The thread starts with the first read and ends with the view.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::array::Bytes;
use crate::error::{Error, Result};
use crate::view::View;
use crate::wire::{to_u64, to_usize};

/// Takes a text, piece by piece.
pub trait Sink {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// As nobody takes them any more; whoever writes has to end then.
    fn put(&mut self, text: &[u8]) -> Result<()>;
}

impl Sink for Vec<u8> {
    fn put(&mut self, text: &[u8]) -> Result<()> {
        self.extend_from_slice(text);
        Ok(())
    }
}

/// Writes the text, all of it, each time anew.
type Writer = dyn Fn(&mut dyn Sink) -> Result<()> + Send + Sync;

/// A text that is written while it is read.
pub struct Piped {
    writer: Arc<Writer>,
    state: Mutex<State>,
}

/// How far the reader is.
#[derive(Default)]
struct State {
    pieces: Option<Receiver<Piece>>,
    /// Where `piece` begins in the text.
    start: u64,
    piece: Vec<u8>,
    /// What came behind `piece`, if that was the last.
    end: Option<Result<()>>,
}

enum Piece {
    Text(Vec<u8>),
    End(Result<()>),
}

/// The writer's side.
struct Pipe {
    sender: SyncSender<Piece>,
    buffer: Vec<u8>,
}

/// Bytes that are handed over at a time.
const PIECE: usize = 64 << 10;

/// Pieces that wait for their reader.
const WAITING: usize = 2;

impl Piped {
    /// The text that `writer` writes.
    pub fn new(writer: impl Fn(&mut dyn Sink) -> Result<()> + Send + Sync + 'static) -> Self {
        Piped {
            writer: Arc::new(writer),
            state: Mutex::default(),
        }
    }

    fn begin(&self) -> Result<State> {
        let (sender, pieces) = sync_channel(WAITING);
        let writer = Arc::clone(&self.writer);
        let write = move || {
            let buffer = Vec::with_capacity(PIECE);
            let mut pipe = Pipe { sender, buffer };
            let written = writer(&mut pipe);
            let flushed = pipe.flush();
            // Where the reader has gone, nobody asks how it ended.
            let _ended = pipe.sender.send(Piece::End(written.and(flushed)));
        };
        let thread = thread::Builder::new().name("h5fs-text".to_owned());
        thread
            .spawn(write)
            .map_err(|error| Error::io(&error, "a thread for a text"))?;
        Ok(State {
            pieces: Some(pieces),
            ..State::default()
        })
    }
}

impl Pipe {
    fn flush(&mut self) -> Result<()> {
        let next = Vec::with_capacity(PIECE);
        let full = std::mem::replace(&mut self.buffer, next);
        self.send(Piece::Text(full))
    }

    fn send(&self, piece: Piece) -> Result<()> {
        const EPIPE: i32 = 32;
        self.sender.send(piece).map_err(|_| Error::Io {
            errno: EPIPE,
            what: "a text without a reader".into(),
        })
    }
}

impl Sink for Pipe {
    fn put(&mut self, text: &[u8]) -> Result<()> {
        for part in text.chunks(PIECE) {
            if self.buffer.len() + part.len() > PIECE {
                self.flush()?;
            }
            self.buffer.extend_from_slice(part);
        }
        Ok(())
    }
}

impl State {
    /// Makes the next piece the present one; `false` at the end of the text.
    fn advance(&mut self) -> Result<bool> {
        const EIO: i32 = 5;
        if let Some(end) = &self.end {
            return end.clone().map(|()| false);
        }
        let next = self.pieces.as_ref().and_then(|pieces| pieces.recv().ok());
        match next {
            Some(Piece::Text(piece)) => {
                self.start += to_u64(self.piece.len());
                self.piece = piece;
                return Ok(true);
            }
            Some(Piece::End(end)) => self.end = Some(end),
            None => {
                self.end = Some(Err(Error::Io {
                    errno: EIO,
                    what: "the writing of a text broke off".into(),
                }));
            }
        }
        self.advance()
    }

    /// The rest of the present piece from `offset` of the text on; empty where that is not in it.
    fn rest(&self, offset: u64) -> &[u8] {
        let within = offset.checked_sub(self.start).map(to_usize);
        match within {
            Some(Ok(within)) => self.piece.get(within..).unwrap_or_default(),
            _ => &[],
        }
    }
}

impl View for Piped {
    fn length(&self) -> Option<u64> {
        None
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.pieces.is_none() || offset < state.start {
            *state = self.begin()?;
        }
        let mut out = Vec::new();
        while out.len() < length {
            let rest = state.rest(offset + to_u64(out.len()));
            if rest.is_empty() {
                match state.advance() {
                    Ok(true) => continue,
                    Ok(false) => break,
                    // What came before is handed out first.
                    Err(_) if !out.is_empty() => break,
                    Err(error) => return Err(error),
                }
            }
            let taken = rest.len().min(length - out.len());
            out.extend_from_slice(&rest[..taken]);
        }
        Ok(out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Numbers of seven digits and a line break each; how often it was begun.
    fn numbers(count: u32, end: Result<()>) -> (Piped, Arc<AtomicUsize>) {
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&begun);
        let write = move |sink: &mut dyn Sink| {
            counter.fetch_add(1, Ordering::Relaxed);
            for number in 0..count {
                sink.put(format!("{number:07}\n").as_bytes())?;
            }
            end.clone()
        };
        (Piped::new(write), begun)
    }

    #[test]
    fn reading_on_writes_once_and_going_back_begins_anew() {
        let (text, begun) = numbers(100_000, Ok(()));
        for at in (0..800_000).step_by(80_000) {
            let part = text.read_at(at, 80_000).unwrap();
            assert_eq!(part.len(), 80_000);
            assert_eq!(&part[..8], format!("{:07}\n", at / 8).as_bytes());
        }
        assert!(text.read_at(800_000, 10).unwrap().is_empty());
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        assert_eq!(
            &text.read_at(79_992, 16).unwrap()[..],
            b"0009999\n0010000\n"
        );
        assert_eq!(begun.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn an_error_stands_behind_what_was_written() {
        let (text, _) = numbers(2, Err(Error::NotFound));
        assert_eq!(&text.read_at(8, 100).unwrap()[..], b"0000001\n");
        assert!(matches!(text.read_at(16, 100), Err(Error::NotFound)));
        assert!(matches!(text.read_at(16, 100), Err(Error::NotFound)));
    }

    #[test]
    fn a_writer_that_breaks_off_is_no_end() {
        let text = Piped::new(|_: &mut dyn Sink| panic!("on purpose"));
        assert!(text.read_at(0, 1).is_err());
    }

    #[test]
    fn the_writer_ends_with_its_reader() {
        let (text, begun) = numbers(u32::MAX, Ok(()));
        assert_eq!(text.read_at(0, 8).unwrap().len(), 8);
        let written = Arc::downgrade(&begun);
        drop((text, begun));
        while written.upgrade().is_some() {
            thread::yield_now();
        }
    }
}
