//! The transfer of packets by the two threads of a connection.

use std::os::fd::{AsFd, OwnedFd};

use crate::error::line::escape_to_one_line;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::lock::wait;
use crate::source::local::rights;
use crate::source::remote::connection::{ConnectionState, PendingCall, SharedConnection};
use crate::source::remote::failure::{fetcher_failure_error, object_changed_error};
use crate::source::remote::message::{FailureKind, ListedName, PACKET, Reply, Request};
use crate::source::remote::page_location::PageLocation;
use crate::source::remote::staging::StagedObject;
use crate::wire::Count;

impl SharedConnection {
    /// Sends packets until the connection ends.
    pub(super) fn send_all(&self) {
        let mut state = self.state();
        loop {
            let Some(packet) = state.packets.pop_front() else {
                if state.has_ended {
                    return;
                }
                state = wait(&self.packet_queued, state);
                continue;
            };
            drop(state);
            let sent = rustix::io::retry_on_intr(|| rustix::io::write(&self.socket, &packet));
            if sent != Ok(packet.len()) {
                return self.end();
            }
            state = self.state();
        }
    }

    /// Receives replies until the connection ends.
    pub(super) fn receive_all(&self) {
        let mut packet = vec![0; PACKET.plus_one()];
        loop {
            let (reply, files) = match rights::receive_with_files(self.socket.as_fd(), &mut packet)
            {
                Ok((0, _)) | Err(_) => return self.end(),
                Ok((length, _)) if length > PACKET => {
                    (Err(Error::corrupt("the reply is too long", None)), vec![])
                }
                Ok((length, files)) => {
                    let packet = packet.get(..length).unwrap_or_default();
                    (Reply::decode(packet), files)
                }
            };
            if let Err(error) = reply.and_then(|reply| self.process_reply(reply, files)) {
                log::error!("the connection to the fetcher failed: {error}");
                return self.end();
            }
            self.reply_arrived.notify_all();
        }
    }

    fn process_reply(&self, reply: Reply, files: Vec<OwnedFd>) -> Result<()> {
        let mut state = self.state();
        state.record_responsiveness(&reply);
        if let Reply::Warning { text, .. } = reply {
            state
                .warnings
                .truncate(limits::EARLY_LINES.minus_or_zero(1));
            state.warnings.push(escape_to_one_line(&text));
            return Ok(());
        }
        let id = reply.id();
        if let Some((length, place)) = state.record_arrival(&reply, files)? {
            if let Some(object) = state.pages.record_staged(id, length, &place)? {
                object.confirm();
            }
            drop(place);
            state.close_segments();
        } else if let Some(call) = state.calls.get_mut(&id) {
            match call {
                PendingCall::AwaitingReply(answer) => {
                    *answer = Some(prepend_names(answer.take(), reply)?);
                }
                PendingCall::StateCheck(object) => {
                    object.record_check(check_result(object, &reply));
                    state.calls.remove(&id);
                }
            }
        } else if let Reply::Failed { failure, text, .. } = reply {
            let over = failure_error(failure, &text);
            let error = over
                .clone()
                .unwrap_or_else(|| fetcher_failure_error(failure, &text));
            if let (Some(object), Some(over)) = (state.pages.record_failed(id, &error), over) {
                object.end_state(over);
            }
        } else if let Reply::Opened { object, .. } = reply {
            // The caller who opened the object no longer waits.
            state.send(&Request::Close { object });
        }
        self.send_due_packets(state);
        Ok(())
    }
}

impl ConnectionState {
    /// Returns how many bytes of a run have arrived according to a reply, and where these bytes are
    /// stored. Returns `None` for a reply of another type.
    ///
    /// # Errors
    /// `Corrupt` if the number of files does not match the type of the reply, or a file is not a
    /// regular file.
    fn record_arrival(
        &mut self,
        reply: &Reply,
        files: Vec<OwnedFd>,
    ) -> Result<Option<(u64, PageLocation)>> {
        let mut files = files.into_iter();
        match (reply, files.next(), files.next()) {
            (Reply::InSegment { length, key, .. }, Some(file), None) => {
                let segment = self.segments.insert(file, *key)?;
                Ok(Some((*length, PageLocation::Segment(segment))))
            }
            (Reply::Staged { length, .. }, None, None) => Ok(Some((*length, PageLocation::Stage))),
            (Reply::InSegment { .. }, ..) | (_, Some(_), _) => Err(Error::corrupt(
                "reply of the fetcher: wrong number of files",
                None,
            )),
            _ => Ok(None),
        }
    }

    /// Closes segments above the limit, except those that are being read.
    fn close_segments(&mut self) {
        for segment in self.segments.segments_above_limit() {
            self.pages.drop_segment_pages(&segment);
        }
    }
}

/// Prepends the names of the replies `before` to a reply.
///
/// # Errors
/// `Corrupt` if there are more names than one page of a listing may have.
fn prepend_names(before: Option<Reply>, mut reply: Reply) -> Result<Reply> {
    let Reply::Listed { entries, .. } = &mut reply else {
        return Ok(reply);
    };
    if let Some(Reply::Listed {
        entries: mut all, ..
    }) = before
    {
        all.append(entries);
        *entries = all;
    }
    let bytes = usize::sum(entries.iter().map(ListedName::bytes));
    if entries.len() > limits::LISTING_NAMES || bytes > limits::LISTING_BYTES {
        let what = "reply of the fetcher: a page is too long";
        return Err(Error::corrupt(what, None));
    }
    Ok(reply)
}

/// Returns the result of a check: `Ok` if the reply confirms the object's state, or the error if
/// the object was replaced or deleted. Returns `None` if the reply is inconclusive.
fn check_result(object: &StagedObject, reply: &Reply) -> Option<Result<()>> {
    match reply {
        Reply::Opened { state, .. } if state.is_same(object.state()) => Some(Ok(())),
        Reply::Opened { .. } => Some(Err(object_changed_error())),
        Reply::Failed { failure, text, .. } => failure_error(*failure, text).map(Err),
        _ => None,
    }
}

/// Returns the error for later reads of the object if the failure shows that the object was
/// replaced or deleted. Returns `None` for any other failure.
fn failure_error(failure: FailureKind, text: &str) -> Option<Error> {
    match failure {
        FailureKind::Changed => Some(fetcher_failure_error(failure, text)),
        FailureKind::NotFound => Some(object_changed_error()),
        _ => None,
    }
}
