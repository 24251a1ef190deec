//! Transfers a range of an object from the server to a sink. After a failure, another request
//! continues the transfer where it stopped.
//!
//! Most servers ignore `If-Match`, and some answer a range request with 200. So every response is
//! compared in three ways:
//!
//! - its entity tag and the object's length with the state that was opened
//! - its `Content-Range` with the requested range
//! - the length of its body with its `Content-Range`

use std::ops::Range;
use std::time::Duration;

use h5fs_reader::error::io_error_message;
use h5fs_reader::source::remote::message::FailureKind;
use h5fs_reader::source::remote::state::ObjectState;
use h5fs_reader::wire::{to_u64, to_usize};
use http::{HeaderMap, HeaderValue, header};
use jiff::fmt::rfc2822;

use crate::client::{HttpResponse, RequestHeader};
use crate::exchange::{ConnectionCounters, RequestSender, TargetBuilder};
use crate::fetch_error::{FetchError, RetryAction};
use crate::limits;
use crate::page_budget::PageReservation;
use crate::retries::{AbortReason, BodyRate, RetryBudget};

/// Number of bytes read from a connection at a time.
const READ_SIZE: usize = 64 << 10;

/// A function that receives bytes of an object and their offset.
pub(super) type ByteSink<'a> = dyn FnMut(u64, &[u8]) -> Result<(), FetchError> + 'a;

/// The reason why a transfer ended early.
#[derive(Debug)]
pub(super) enum TransferStop {
    Failed(FetchError),
    /// No program waits for the transfer any longer.
    Cancelled,
}

impl From<FetchError> for TransferStop {
    fn from(trouble: FetchError) -> Self {
        TransferStop::Failed(trouble)
    }
}

impl From<AbortReason> for TransferStop {
    fn from(end: AbortReason) -> Self {
        match end {
            AbortReason::Cancelled => TransferStop::Cancelled,
            AbortReason::TimedOut => TransferStop::Failed(FetchError {
                retry_action: RetryAction::None,
                ..FetchError::timed_out()
            }),
        }
    }
}

/// The transfer of one object or one listing, with its retries.
pub(super) struct Transfer<'a> {
    pub(super) exchange: &'a RequestSender,
    pub(super) target_builder: &'a TargetBuilder<'a>,
    pub(super) retry_budget: RetryBudget<'a>,
    /// Whether the destination of an earlier redirect has been given up during this transfer.
    has_dropped_redirect: bool,
    /// Whether the login has been read again during this transfer.
    is_renewed: bool,
    /// The failure of the previous attempt, if there was one.
    last_failure: Option<FetchError>,
}

impl<'a> Transfer<'a> {
    pub(super) fn new(
        exchange: &'a RequestSender,
        wanted: &'a TargetBuilder<'a>,
        patience: RetryBudget<'a>,
    ) -> Self {
        Transfer {
            exchange,
            target_builder: wanted,
            retry_budget: patience,
            has_dropped_redirect: false,
            is_renewed: false,
            last_failure: None,
        }
    }

    /// Opens an object. Requests its first bytes, at most `most`, and passes them to the sink.
    /// Returns the object's state.
    pub(super) fn open(
        &mut self,
        most: u64,
        sink: &mut ByteSink<'_>,
    ) -> Result<ObjectState, TransferStop> {
        let mut state = None;
        let mut at = 0;
        loop {
            let end = state
                .as_ref()
                .map_or(most, |state: &ObjectState| state.length.min(most));
            if let Some(state) = state.take_if(|_| at >= end) {
                return Ok(state);
            }
            match self.request_range(&(at..end), &mut state, &mut at, sink) {
                Ok(()) => {}
                Err(stop) => self.wait_to_retry(stop)?,
            }
        }
    }

    /// Passes a range of an object to the sink. `state` is the state in which the object was
    /// opened.
    pub(super) fn fetch(
        &mut self,
        range: Range<u64>,
        state: &ObjectState,
        sink: &mut ByteSink<'_>,
    ) -> Result<(), TransferStop> {
        let mut expected = Some(state.clone());
        let mut at = range.start;
        while at < range.end {
            match self.request_range(&(at..range.end), &mut expected, &mut at, sink) {
                Ok(()) => {}
                Err(stop) => self.wait_to_retry(stop)?,
            }
        }
        Ok(())
    }

    /// Requests the current state of the object, with retries.
    pub(super) fn object_state(&mut self) -> Result<ObjectState, TransferStop> {
        loop {
            match self.request_state() {
                Ok(now) => return Ok(now),
                Err(trouble) => self.wait_to_retry(TransferStop::Failed(trouble))?,
            }
        }
    }

    /// Requests the current state of the object, without retries.
    ///
    /// # Errors
    /// Fails with the meaning of the response, or with the reason why no response arrived.
    pub(super) fn request_state(&self) -> Result<ObjectState, FetchError> {
        // The request is not conditional: a response 304 may lack the date, and always lacks the
        // length.
        let mut answer =
            self.request(&[range_header(&(0..1))?], self.exchange.client.step_timeout)?;
        let now = match answer.status.as_u16() {
            416 => state_without_bytes(&answer, 0),
            _ => parse_part(&answer, &(0..1)).map(|part| part.state),
        };
        let _ = answer.read_body_within(READ_SIZE, limits::ERROR_TIME);
        now.map(|state| self.exchange.comparable_state(state))
    }

    /// Requests one page of names. Returns its bytes and the response headers. An incomplete page
    /// is discarded. This attempt may use only half of the remaining time, so that another attempt
    /// is possible. `room` reserves the memory for the page.
    ///
    /// # Errors
    /// Fails if no complete page arrives, or if it arrives too slowly.
    pub(super) fn request_page(
        &self,
        room: &PageReservation<'_>,
    ) -> Result<(Vec<u8>, HeaderMap), FetchError> {
        let allowed = self
            .retry_budget
            .attempt_limit(self.retry_budget.remaining() / 2);
        let mut answer = self.exchange.request(self.target_builder, &[], &allowed)?;
        let mut pace = BodyRate::new(self.exchange.client.step_timeout);
        let body = answer.read_body(limits::LISTING_BYTES, |length| {
            let held = room.reserve(length, &allowed);
            if held.map_err(|_| FetchError::temporary("no memory for another large listing"))? {
                // This thread read nothing from the server while it waited for memory.
                pace = BodyRate::new(self.exchange.client.step_timeout);
            }
            pace.count_received(length)
        })?;
        ConnectionCounters::add(&self.exchange.counters.bytes, to_u64(body.len()));
        Ok((body, answer.headers))
    }

    /// Sends a request with these headers. The whole response must arrive within the time `within`.
    fn request(
        &self,
        headers: &[RequestHeader],
        within: Duration,
    ) -> Result<HttpResponse, FetchError> {
        let allowed = self.retry_budget.attempt_limit(within);
        self.exchange
            .request(self.target_builder, headers, &allowed)
    }

    /// Waits before another attempt. Fails if another attempt cannot help.
    pub(super) fn wait_to_retry(&mut self, stop: TransferStop) -> Result<(), TransferStop> {
        let TransferStop::Failed(mut trouble) = stop else {
            return Err(stop);
        };
        if trouble.is_timeout()
            && let Some(before) = &self.last_failure
        {
            trouble.text.clone_from(&before.text);
        }
        self.last_failure = Some(trouble.clone());
        // The destination of a redirect may be wrong in ways that no status shows.
        if self.exchange.forget_redirect(self.target_builder) && !self.has_dropped_redirect {
            self.has_dropped_redirect = true;
            return Ok(());
        }
        let is_of_login = trouble.retry_action == RetryAction::Login && !self.is_renewed;
        if is_of_login && self.exchange.login.renew() {
            self.is_renewed = true;
            return Ok(());
        }
        let RetryAction::Retry(wish) = trouble.retry_action else {
            return Err(TransferStop::Failed(trouble.permanent_after_login()));
        };
        log::debug!("retrying: {}", trouble.text);
        match self.retry_budget.pause(wish) {
            Ok(()) => {
                ConnectionCounters::add(&self.exchange.counters.retries, 1);
                Ok(())
            }
            Err(AbortReason::Cancelled) => Err(TransferStop::Cancelled),
            Err(AbortReason::TimedOut) => Err(TransferStop::Failed(trouble)),
        }
    }

    /// Sends one request for the rest of the range, and passes the bytes of the response to the
    /// sink. `at` is the offset of the next byte and advances with the bytes.
    fn request_range(
        &mut self,
        range: &Range<u64>,
        expected: &mut Option<ObjectState>,
        at: &mut u64,
        sink: &mut ByteSink<'_>,
    ) -> Result<(), TransferStop> {
        self.retry_budget.check()?;
        let mut headers = vec![range_header(range)?];
        if let Some(tag) = expected.as_ref().and_then(strong_tag) {
            headers.push((header::IF_MATCH, tag));
        }
        // The part of a long range that does not arrive in time is requested again.
        let mut answer = self.request(&headers, self.exchange.client.step_timeout * 2)?;
        if answer.status == 416 {
            let state = self
                .exchange
                .comparable_state(state_without_bytes(&answer, range.start)?);
            compare(expected.get_or_insert(state.clone()), &state)
                .map_err(|changed| self.login_error_or(changed, &answer))?;
            return Ok(());
        }
        let part = parse_part(&answer, range)?;
        let state = self.exchange.comparable_state(part.state);
        compare(expected.get_or_insert(state.clone()), &state)
            .map_err(|changed| self.login_error_or(changed, &answer))?;
        self.copy_body(&mut answer, part.end, at, sink)?;
        answer.read_end();
        Ok(())
    }

    /// Returns the reason why a response is not about the opened object. The reason is an expired
    /// login if the request was redirected to a login page, otherwise `changed`.
    fn login_error_or(&self, changed: FetchError, answer: &HttpResponse) -> FetchError {
        if answer.is_redirected && answer.is_html() && self.exchange.login.is_configured() {
            let text = "the server sends a page instead of the object: the login may have expired";
            FetchError::login_needed(text)
        } else {
            changed
        }
    }

    /// Reads the body of a response, and passes its bytes to the sink. The body ends at the offset
    /// `end` of the object.
    fn copy_body(
        &mut self,
        answer: &mut HttpResponse,
        end: u64,
        at: &mut u64,
        sink: &mut ByteSink<'_>,
    ) -> Result<(), TransferStop> {
        let mut buffer = vec![0; READ_SIZE];
        let mut pace = BodyRate::new(self.exchange.client.step_timeout);
        while *at < end {
            let most = to_usize(end - *at).unwrap_or(READ_SIZE).min(READ_SIZE);
            let read = answer.body.read(&mut buffer[..most]);
            let length = read.map_err(|error| FetchError::temporary(io_error_message(&error)))?;
            if length == 0 {
                return Err(FetchError::temporary("a response was truncated").into());
            }
            ConnectionCounters::add(&self.exchange.counters.bytes, to_u64(length));
            sink(*at, &buffer[..length])?;
            *at += to_u64(length);
            self.retry_budget.count_received(length)?;
            if *at < end {
                pace.count_received(length)?;
            }
        }
        Ok(())
    }
}

/// The range of an object that a response contains, according to its headers.
struct ResponsePart {
    /// Offset in the object after the last byte of the response.
    end: u64,
    state: ObjectState,
}

/// Determines which range of the object a response contains. Fails unless the range answers the
/// request for `range`.
fn parse_part(answer: &HttpResponse, range: &Range<u64>) -> Result<ResponsePart, FetchError> {
    let Some(content) = answer.header("content-range") else {
        // Some servers send an empty object as a whole instead of a range.
        if range.start == 0 && answer.status == 200 && answer.header("content-length") == Some("0")
        {
            let state = parse_state(answer, 0)?;
            return Ok(ResponsePart { end: 0, state });
        }
        let text = "the server supports no ranges";
        return Err(FetchError::new(FailureKind::NoRanges, text));
    };
    if is_encoded(answer) {
        return Err(FetchError::permanent("the server encodes the response"));
    }
    let wrong = || FetchError::temporary("a response has another range than requested");
    let (first, last, length) = parse_content_range(content).ok_or_else(wrong)?;
    let is_asked_for = first == range.start && last >= first && last < length;
    // A response may be longer than requested, if it starts at the right offset.
    let end = last.checked_add(1).ok_or_else(wrong)?;
    let bytes = answer
        .header("content-length")
        .and_then(|text| text.parse::<u64>().ok());
    if !is_asked_for || bytes.is_some_and(|bytes| bytes != end - first) {
        return Err(wrong());
    }
    Ok(ResponsePart {
        end: end.min(range.end),
        state: parse_state(answer, length)?,
    })
}

/// Returns whether the body of a response is compressed or encoded in another way.
pub(super) fn is_encoded(answer: &HttpResponse) -> bool {
    let names = [
        (header::CONTENT_ENCODING, "identity"),
        (header::TRANSFER_ENCODING, "chunked"),
    ];
    names.iter().any(|(name, plain)| {
        let mut codings = answer.headers.get_all(name).iter();
        codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(plain.as_bytes()))
    })
}

/// Returns the state of an object from a response with status 416, which means that the object has
/// no byte at the offset `at`. Fails with a temporary failure if the response says that the object
/// is longer.
fn state_without_bytes(answer: &HttpResponse, at: u64) -> Result<ObjectState, FetchError> {
    let length = answer.header("content-range");
    let length = length.and_then(|text| text.strip_prefix("bytes */")?.parse().ok());
    match length {
        Some(length) if length > at => {
            Err(FetchError::temporary("the server refuses a valid range"))
        }
        Some(length) => parse_state(answer, length),
        None => Err(FetchError::permanent("the server refuses the range")),
    }
}

pub(super) fn parse_state(answer: &HttpResponse, length: u64) -> Result<ObjectState, FetchError> {
    let tag = answer
        .headers
        .get(header::ETAG)
        .map_or(&b""[..], HeaderValue::as_bytes);
    if tag.len() > limits::ETAG_BYTES {
        return Err(FetchError::permanent("the entity tag is too long"));
    }
    let modified = answer.header("last-modified").and_then(parse_date);
    Ok(ObjectState {
        length,
        etag: ObjectState::parse_entity_tag(tag),
        modified: modified.unwrap_or(0),
    })
}

/// Parses the header `Content-Range`: `bytes FIRST-LAST/LENGTH`; RFC 9110, section 14.4.
fn parse_content_range(text: &str) -> Option<(u64, u64, u64)> {
    let (range, length) = text.strip_prefix("bytes ")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((
        first.parse().ok()?,
        last.parse().ok()?,
        length.parse().ok()?,
    ))
}

/// Parses the date in a header. Returns seconds since 1970, or `None` if the text is not a date.
pub(super) fn parse_date(date: &str) -> Option<i64> {
    let date = rfc2822::parse(date.trim()).ok()?;
    Some(date.timestamp().as_second())
}

/// Fails if the state in a response differs from the state in which the object was opened. If the
/// entity tag is a hash of samples, only the length is compared.
fn compare(expected: &ObjectState, now: &ObjectState) -> Result<(), FetchError> {
    let is_same = if expected.is_sampled() {
        expected.length == now.length && !now.has_validator()
    } else {
        expected.is_same(now)
    };
    if is_same {
        Ok(())
    } else if expected.differs_only_in_tag(now) {
        Err(FetchError::entity_tag_changed())
    } else {
        Err(FetchError::object_changed())
    }
}

fn range_header(range: &Range<u64>) -> Result<RequestHeader, FetchError> {
    let last = range.end.saturating_sub(1);
    let value = HeaderValue::try_from(format!("bytes={}-{last}", range.start));
    let no_value = |_| FetchError::permanent("no such range");
    Ok((header::RANGE, value.map_err(no_value)?))
}

/// Returns the entity tag for the header `If-Match`, or `None` for a weak tag, which never matches
/// (RFC 9110, section 13.1.1).
fn strong_tag(state: &ObjectState) -> Option<HeaderValue> {
    let is_strong = state.etag.starts_with(b"\"");
    HeaderValue::from_bytes(&state.etag)
        .ok()
        .filter(|_| is_strong)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, StatusCode};

    use super::*;

    fn answer(headers: &[(&'static str, &'static str)]) -> HttpResponse {
        let pairs = headers.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        HttpResponse {
            status: StatusCode::PARTIAL_CONTENT,
            headers: pairs.fold(HeaderMap::new(), |mut map, (name, value)| {
                map.append(name, value);
                map
            }),
            body: Box::new(&b""[..]),
            is_redirected: false,
        }
    }

    #[test]
    fn a_response_must_match_the_requested_range() {
        let found = |headers: &[(&'static str, &'static str)]| {
            parse_part(&answer(headers), &(100..200)).map(|part| (part.end, part.state.length))
        };
        let right = ("content-range", "bytes 100-199/1000");
        assert_eq!(found(&[right]), Ok((200, 1000)));
        assert_eq!(found(&[right, ("content-length", "100")]), Ok((200, 1000)));
        assert_eq!(
            found(&[("content-range", "bytes 100-149/1000")]),
            Ok((150, 1000))
        );
        assert_eq!(
            found(&[("content-range", "bytes 100-999/1000")]),
            Ok((200, 1000))
        );
        for wrong in [
            vec![("content-range", "bytes 0-99/1000")],
            vec![("content-range", "bytes 100-99/1000")],
            vec![("content-range", "bytes 100-199/150")],
            vec![("content-range", "bytes 100-199/*")],
            vec![(
                "content-range",
                "bytes 100-18446744073709551615/18446744073709551615",
            )],
            vec![right, ("content-length", "99")],
        ] {
            let trouble = found(&wrong).unwrap_err();
            assert_eq!(trouble.retry_action, RetryAction::Retry(None), "{wrong:?}");
        }
        assert_eq!(found(&[]).unwrap_err().failure, FailureKind::NoRanges);
        for coding in [
            vec![right, ("content-encoding", "gzip")],
            // The length is the length of the encoded body.
            vec![
                right,
                ("content-encoding", "gzip"),
                ("content-length", "33"),
            ],
            vec![
                right,
                ("content-encoding", "gzip"),
                ("content-encoding", "identity"),
            ],
            vec![right, ("transfer-encoding", "gzip, chunked")],
        ] {
            let packed = found(&coding).unwrap_err();
            assert_eq!(
                (packed.failure, packed.retry_action),
                (FailureKind::Other, RetryAction::None)
            );
        }
        assert_eq!(
            found(&[right, ("transfer-encoding", "chunked")]),
            Ok((200, 1000))
        );
    }

    #[test]
    fn the_state_is_tag_length_and_date() {
        let headers = [
            ("etag", "\"0a1b\""),
            ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ];
        let found = parse_state(&answer(&headers), 5).unwrap();
        let wanted = ObjectState {
            length: 5,
            etag: b"\"0a1b\"".to_vec(),
            // RFC 9110, section 5.6.7. Output of `date -u -d @784111777`.
            modified: 784_111_777,
        };
        assert_eq!(found, wanted);
        assert_eq!(strong_tag(&found).unwrap(), "\"0a1b\"");
        let weak = ObjectState {
            etag: b"W/\"0a1b\"".to_vec(),
            ..wanted.clone()
        };
        assert!(strong_tag(&weak).is_none() && compare(&wanted, &weak).is_err());
        let empty = parse_state(&answer(&[("etag", "\"\"")]), 5).unwrap();
        assert!(!empty.has_validator());
        let mut sampled = empty.clone();
        sampled.set_sample(b"hash");
        assert!(strong_tag(&sampled).is_none());
        assert!(compare(&sampled, &empty).is_ok() && compare(&sampled, &wanted).is_err());
    }
}
