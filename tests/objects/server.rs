//! An object server on the loopback interface, which is slow and faulty on demand. It uses only the
//! standard library.
//!
//! The server supports HTTP/1.1 and the reading part of the S3 protocol: ranges, entity tags,
//! `If-Match`, `If-None-Match`, `ListObjectsV2`, and signatures of version 4. It stops when its
//! value is dropped.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::sigv4::{self, Keys};

/// An object of the server.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) bytes: Arc<Vec<u8>>,
    /// Entity tag with its quotes, or empty for none.
    pub(crate) etag: String,
    /// Value of `Last-Modified`, or empty for none.
    pub(crate) modified: String,
}

/// Bytes that the server sends before or instead of a response.
#[derive(Clone)]
pub(crate) struct Raw {
    /// Number of requests that receive these bytes.
    pub(crate) left: u32,
    /// Only requests whose path and query contain this text receive them.
    pub(crate) of: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) then: Then,
}

/// The action after the raw bytes.
#[derive(Clone)]
pub(crate) enum Then {
    /// Send the response.
    Answer,
    /// Handle the next request: the bytes were a complete response.
    Next,
    /// Close the connection.
    End,
    /// Send these bytes repeatedly, each time after this pause, until the client hangs up.
    Forever(Vec<u8>, Duration),
}

/// The faults of the server.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    /// Delay before the first byte of each response.
    pub(crate) latency: Duration,
    /// Number of the next GET requests that receive 503.
    pub(crate) fail: u32,
    /// One in this number of GET requests receives 503. 0 means none.
    pub(crate) fail_one_in: u64,
    /// Maximum number of GET requests per second. Further ones receive 503. 0 means no limit.
    pub(crate) per_second: u32,
    /// Number of the next GET requests that receive no response.
    pub(crate) hang: u32,
    /// Number of the next bodies that end after half of their bytes.
    pub(crate) cut: u32,
    /// One in this number of bodies ends early. 0 means none.
    pub(crate) cut_one_in: u64,
    /// Number of the next responses that declare fewer bytes than their range has.
    pub(crate) short: u32,
    /// Whether a range request receives 200 and the whole object.
    pub(crate) no_ranges: bool,
    /// Whether a range request receives 200, a `Content-Range` and the range.
    pub(crate) ok_for_range: bool,
    /// Whether `If-Match` is ignored.
    pub(crate) no_conditions: bool,
    /// Pause after each byte, if all bodies are sent one byte at a time.
    pub(crate) drip: Option<Duration>,
    /// Whether the header of a response never ends.
    pub(crate) endless_header: bool,
    /// Whether a listing never ends.
    pub(crate) endless_list: bool,
    /// Status of all GET requests.
    pub(crate) status: Option<u16>,
    /// Function that answers some GET requests instead of the objects.
    pub(crate) portal: Option<Portal>,
    /// Destination of a redirect for all GET requests. `{path}` is replaced by the path of
    /// the request.
    pub(crate) redirect: Option<String>,
    /// Number of names in one page of a listing. 0 means 1000.
    pub(crate) page: usize,
    /// Credentials that a request must be signed with. `None` means that every client may read.
    pub(crate) keys: Option<Keys>,
    /// Number of signed requests that receive 403.
    pub(crate) refuse: u32,
    /// Raw bytes for some requests.
    pub(crate) raw: Option<Raw>,
}

/// Pseudo header name for the body of a portal's response.
pub(crate) const BODY: &str = "";

/// A function that answers a request with a status and headers. Returns `None` to let the objects
/// answer.
pub(crate) type Portal =
    Arc<dyn Fn(&Seen) -> Option<(u16, Vec<(&'static str, String)>)> + Send + Sync>;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path with its query.
    pub(crate) path: String,
    /// Headers in the order of arrival, with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) status: u16,
    /// Number of bytes of the body that were sent.
    pub(crate) sent: usize,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut pairs = self.headers.iter();
        let pair = pairs.find(|(own, _)| own == name);
        pair.map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct World {
    objects: BTreeMap<String, Object>,
    faults: Faults,
    seen: Vec<Seen>,
    /// Start of the counted second, and the number of GET requests in it.
    second: Option<(Instant, u32)>,
    open: Vec<TcpStream>,
    /// Number of bytes of [`Then::Forever`] that were sent.
    endless: usize,
}

/// The server.
pub(crate) struct Server {
    address: SocketAddr,
    world: Arc<Mutex<World>>,
    is_over: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let world: Arc<Mutex<World>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let (own, over) = (Arc::clone(&world), Arc::clone(&is_over));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let world = Arc::clone(&own);
                if let Ok(stream) = stream.try_clone() {
                    lock(&world).open.push(stream);
                }
                // A client that hangs up is not a failure.
                thread::spawn(move || drop(serve(&world, &stream)));
            }
        });
        Server {
            address,
            world,
            is_over,
        }
    }

    /// Returns the URL of a path that starts with `/`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Stores an object at a path that starts with `/`. Its entity tag is computed from its
    /// content.
    pub(crate) fn put(&self, path: &str, bytes: Vec<u8>) {
        let etag = format!("\"{}\"", &sigv4::hex(&sigv4::sha256(&bytes))[..32]);
        self.put_tagged(path, bytes, &etag);
    }

    /// Stores an object with this entity tag, including its quotes.
    pub(crate) fn put_tagged(&self, path: &str, bytes: Vec<u8>, etag: &str) {
        self.put_dated(path, bytes, etag, "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    /// Stores an object with this entity tag and this `Last-Modified`.
    pub(crate) fn put_dated(&self, path: &str, bytes: Vec<u8>, etag: &str, modified: &str) {
        let object = Object {
            bytes: Arc::new(bytes),
            etag: etag.to_owned(),
            modified: modified.to_owned(),
        };
        lock(&self.world).objects.insert(path.to_owned(), object);
    }

    pub(crate) fn remove(&self, path: &str) {
        lock(&self.world).objects.remove(path);
    }

    /// Changes the faults of the server.
    pub(crate) fn faults(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut lock(&self.world).faults);
    }

    /// Returns the number of bytes of [`Then::Forever`] that were sent so far.
    pub(crate) fn endless(&self) -> usize {
        lock(&self.world).endless
    }

    /// Returns the requests since the last call.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut lock(&self.world).seen)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for stream in &lock(&self.world).open {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A response before it is sent.
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn of(status: u16, body: &str) -> Self {
        Answer {
            status,
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
        }
    }

    fn error(status: u16, code: &str) -> Self {
        Self::of(
            status,
            &format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>"),
        )
    }
}

fn serve(world: &Arc<Mutex<World>>, stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream.try_clone()?);
    while let Some(mut seen) = read_head(&mut input)? {
        let raw = lock(world).take_raw(&seen);
        if let Some(raw) = raw {
            if !matches!(raw.then, Then::Answer) {
                lock(world).seen.push(seen.clone());
            }
            let mut output = stream;
            output.write_all(&raw.bytes)?;
            match raw.then {
                Then::Answer => {}
                Then::Next => continue,
                Then::End => return stream.shutdown(Shutdown::Both),
                Then::Forever(piece, pause) => loop {
                    thread::sleep(pause);
                    output.write_all(&piece)?;
                    lock(world).endless += piece.len();
                },
            }
        }
        let (answer, fate) = {
            let mut world = lock(world);
            let answer = world.answer(&mut seen);
            (answer, world.take_faults(&seen))
        };
        thread::sleep(fate.latency);
        let Some(answer) = answer else {
            // Sends no response, and waits until the client gives up.
            let _ = input.fill_buf();
            return Ok(());
        };
        seen.status = answer.status;
        seen.sent = fate.body(&answer);
        // The request must be recorded before its response is sent, so that the client's test finds
        // it.
        lock(world).seen.push(seen);
        if !send(stream, &answer, &fate)? {
            stream.shutdown(Shutdown::Both)?;
            return Ok(());
        }
    }
    Ok(())
}

fn read_head(input: &mut impl BufRead) -> io::Result<Option<Seen>> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Ok(None);
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = Vec::new();
    loop {
        line.clear();
        input.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Some(Seen {
        method,
        path,
        headers,
        status: 0,
        sent: 0,
    }))
}

/// The faults of one response.
struct Fate {
    latency: Duration,
    is_cut: bool,
    is_short: bool,
    drip: Option<Duration>,
    endless_header: bool,
    endless_list: bool,
}

impl Fate {
    /// Returns the number of body bytes that are sent.
    fn body(&self, answer: &Answer) -> usize {
        let length = answer.body.len();
        if self.endless_header || self.endless_list {
            0
        } else if self.is_cut || self.is_short {
            length / 2
        } else {
            length
        }
    }
}

/// Sends a response. Returns whether the connection remains open.
fn send(mut stream: &TcpStream, answer: &Answer, fate: &Fate) -> io::Result<bool> {
    let mut head = format!("HTTP/1.1 {} -\r\n", answer.status);
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if fate.endless_header {
        stream.write_all(head.as_bytes())?;
        let line = format!("x-filler: {}\r\n", "x".repeat(1000));
        loop {
            stream.write_all(line.as_bytes())?;
        }
    }
    if fate.endless_list {
        stream.write_all(format!("{head}\r\n<L>").as_bytes())?;
        let entry = "<Contents><Key>k</Key><Size>1</Size></Contents>".repeat(100);
        loop {
            stream.write_all(entry.as_bytes())?;
        }
    }
    let end = fate.body(answer);
    let length = answer.body.len();
    let promised = if fate.is_short { end } else { length };
    head += &format!("content-length: {promised}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    match fate.drip {
        None => stream.write_all(&answer.body[..end])?,
        Some(pause) => {
            for byte in &answer.body[..end] {
                thread::sleep(pause);
                stream.write_all(&[*byte])?;
            }
        }
    }
    Ok(end == length)
}

impl World {
    fn take_raw(&mut self, seen: &Seen) -> Option<Raw> {
        let raw = self.faults.raw.as_mut();
        let raw = raw.filter(|raw| raw.left > 0 && seen.path.contains(raw.of))?;
        raw.left -= 1;
        Some(raw.clone())
    }

    /// Takes the faults for one response, and decrements their counters.
    fn take_faults(&mut self, seen: &Seen) -> Fate {
        let is_list = seen.path.contains("list-type=2");
        let number = self.seen.len() as u64 + 1;
        let faults = &mut self.faults;
        let take = |left: &mut u32| {
            let is_due = *left > 0;
            *left -= u32::from(is_due);
            is_due
        };
        let is_one = |in_so_many: u64| in_so_many > 0 && number.is_multiple_of(in_so_many);
        Fate {
            latency: faults.latency,
            is_cut: take(&mut faults.cut) || is_one(faults.cut_one_in),
            is_short: take(&mut faults.short),
            drip: faults.drip,
            endless_header: faults.endless_header,
            endless_list: faults.endless_list && is_list,
        }
    }

    /// Returns the response to a request, or `None` if the server must hang.
    fn answer(&mut self, seen: &mut Seen) -> Option<Answer> {
        let number = self.seen.len() as u64 + 1;
        let faults = &mut self.faults;
        if faults.hang > 0 {
            faults.hang -= 1;
            return None;
        }
        let is_one = faults.fail_one_in > 0 && number.is_multiple_of(faults.fail_one_in);
        if faults.fail > 0 || is_one {
            faults.fail = faults.fail.saturating_sub(1);
            return Some(Answer::error(503, "SlowDown"));
        }
        if self.is_beyond() {
            return Some(Answer::error(503, "SlowDown"));
        }
        let faults = &mut self.faults;
        if seen.method != "GET" {
            return Some(Answer::of(403, ""));
        }
        if let Some(status) = faults.status {
            return Some(Answer::error(status, "Told"));
        }
        let portal = faults.portal.as_ref().and_then(|portal| portal(seen));
        if let Some((status, headers)) = portal {
            let is_body = |(name, _): &&(&str, String)| *name == BODY;
            let body = headers.iter().find(is_body);
            let mut answer = Answer::of(status, body.map_or("", |(_, text)| text));
            answer.headers = headers;
            answer.headers.retain(|(name, _)| *name != BODY);
            return Some(answer);
        }
        if let Some(place) = &faults.redirect {
            let mut answer = Answer::of(307, "");
            let place = place.replace("{path}", &seen.path);
            answer.headers.push(("location", place));
            return Some(answer);
        }
        if let Some(keys) = &faults.keys {
            if faults.refuse > 0 {
                faults.refuse -= 1;
                return Some(Answer::error(403, "ExpiredToken"));
            }
            if let Err(reason) = sigv4::verify(seen, keys) {
                return Some(Answer::error(403, reason));
            }
        }
        Some(match seen.path.split_once('?') {
            Some((bucket, query)) if query.contains("list-type=2") => self.list(bucket, query),
            _ => self.object(seen),
        })
    }

    /// Counts a request. Returns whether it exceeds the limit per second.
    fn is_beyond(&mut self) -> bool {
        let now = Instant::now();
        let is_new = |begun: &Instant| now.duration_since(*begun) >= Duration::from_secs(1);
        let (_, count) = match &mut self.second {
            Some((begun, _)) if is_new(begun) => self.second.insert((now, 0)),
            Some(second) => second,
            none => none.insert((now, 0)),
        };
        *count += 1;
        self.faults.per_second > 0 && *count > self.faults.per_second
    }

    fn object(&self, seen: &Seen) -> Answer {
        let path = seen.path.split('?').next().unwrap_or_default();
        let path = String::from_utf8_lossy(&sigv4::decoded(path)).into_owned();
        let Some(object) = self.objects.get(&path) else {
            return Answer::error(404, "NoSuchKey");
        };
        let tag = |name| seen.header(name).filter(|_| !self.faults.no_conditions);
        let mut answer = Answer::of(200, "");
        if !object.etag.is_empty() {
            answer.headers.push(("etag", object.etag.clone()));
        }
        if !object.modified.is_empty() {
            answer
                .headers
                .push(("last-modified", object.modified.clone()));
        }
        if tag("if-match").is_some_and(|tag| tag != object.etag) {
            return Answer::error(412, "PreconditionFailed");
        }
        if tag("if-none-match").is_some_and(|tag| tag == object.etag) {
            answer.status = 304;
            return answer;
        }
        let length = object.bytes.len();
        let range = seen
            .header("range")
            .and_then(|range| range.strip_prefix("bytes="));
        let range = range
            .and_then(|range| range.split_once('-'))
            .and_then(|(first, last)| {
                Some((first.parse::<usize>().ok()?, last.parse::<usize>().ok()?))
            });
        match range.filter(|_| !self.faults.no_ranges) {
            None => answer.body = object.bytes.to_vec(),
            Some((first, _)) if first >= length => {
                answer.status = 416;
                answer
                    .headers
                    .push(("content-range", format!("bytes */{length}")));
            }
            Some((first, last)) => {
                let last = last.min(length - 1);
                answer.status = if self.faults.ok_for_range { 200 } else { 206 };
                let range = format!("bytes {first}-{last}/{length}");
                answer.headers.push(("content-range", range));
                answer.body = object.bytes[first..=last].to_vec();
            }
        }
        answer
    }

    /// Returns a page of the names directly below a prefix. The bucket is the first part of the
    /// path.
    fn list(&self, bucket: &str, query: &str) -> Answer {
        let value = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let value = pairs
                .clone()
                .find(|(own, _)| *own == name)
                .map(|(_, value)| value);
            String::from_utf8_lossy(&sigv4::decoded(value.unwrap_or_default())).into_owned()
        };
        let (prefix, after) = (value("prefix"), value("continuation-token"));
        let base = format!("{}/", bucket.trim_end_matches('/'));
        let mut names: BTreeMap<String, Option<&Object>> = BTreeMap::new();
        for (path, object) in &self.objects {
            let Some(rest) = path
                .strip_prefix(&base)
                .and_then(|key| key.strip_prefix(&prefix))
            else {
                continue;
            };
            match rest.split_once('/') {
                Some((directory, _)) => names.insert(format!("{prefix}{directory}/"), None),
                None => names.insert(format!("{prefix}{rest}"), Some(object)),
            };
        }
        let most = if self.faults.page == 0 {
            1000
        } else {
            self.faults.page
        };
        let mut page = names
            .into_iter()
            .filter(|(name, _)| *name > after)
            .peekable();
        let mut text = "<ListBucketResult><EncodingType>url</EncodingType>".to_owned();
        let mut last = String::new();
        for (name, object) in page.by_ref().take(most) {
            let key = sigv4::encoded(&name);
            text += &match object {
                Some(object) => format!(
                    "<Contents><Key>{key}</Key><LastModified>1994-11-06T08:49:37.000Z\
                     </LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
                    object.etag.replace('"', "&quot;"),
                    object.bytes.len()
                ),
                None => format!("<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>"),
            };
            last = name;
        }
        if page.peek().is_some() {
            text += "<IsTruncated>true</IsTruncated>";
            text += &format!("<NextContinuationToken>{last}</NextContinuationToken>");
        }
        Answer::of(200, &(text + "</ListBucketResult>"))
    }
}
