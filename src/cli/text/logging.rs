//! Writes log lines to standard error in the foreground, otherwise to a log file or syslog. Without
//! syslog, lines logged before the mount is ready are kept and reported to the user who mounts.
//!
//! The environment variable H5FS_LOG contains the level, in env_logger's syntax. A damaged file
//! that is read repeatedly must not fill a disk. So the number of lines is limited, and the number
//! of dropped lines is logged.

use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use env_logger::{Builder, Env, Target, WriteStyle};
use h5fs_reader::error::Result;
use h5fs_reader::memory::lock::lock;
use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::cli::text::log_file::LogFile;
use crate::cli::text::printable::printable;
use crate::limits;

/// The destination of log lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogDestination {
    /// Standard error.
    Terminal,
    /// Standard error, for warnings of a command. Each line names the source.
    Warnings { source: PathBuf },
    /// The file at `path`, to which lines are appended. Each line names the mount.
    File { path: PathBuf, mount: PathBuf },
    /// The socket of the system log. Each line names the mount.
    System { mount: PathBuf },
}

/// The lines that are logged before the mount is ready, if there is no syslog. They are stored and
/// reported to the user who mounts. `None` means that lines are no longer stored.
#[derive(Clone)]
pub(crate) struct EarlyLog(Arc<Mutex<Option<Vec<String>>>>);

impl EarlyLog {
    /// Creates a store for log lines. Lines are stored only if `destination` is syslog and syslog
    /// is missing.
    fn for_destination(destination: &LogDestination) -> Self {
        let is_system = matches!(destination, LogDestination::System { .. });
        let is_lost = is_system && Syslog::connect().is_err();
        EarlyLog(Arc::new(Mutex::new(is_lost.then(Vec::new))))
    }

    /// Removes and returns the stored lines. Later lines are not stored.
    pub(crate) fn take(&self) -> Vec<String> {
        lock(&self.0).take().unwrap_or_default()
    }

    /// Stores a line, unless the limit is reached.
    fn record(&self, record: &Record<'_>) {
        if let Some(lines) = lock(&self.0).as_mut()
            && lines.len() < limits::EARLY_LINES
        {
            let text = printable(&record.args().to_string());
            lines.push(format!("{}: {text}", level_name(record.level())));
        }
    }
}

/// The result of starting the log.
pub(crate) struct StartedLog {
    /// The lines that are stored because syslog is missing.
    pub(crate) early: EarlyLog,
    /// The log file, if the destination is a file.
    pub(crate) file: Option<LogFile>,
}

/// Starts logging, including panics.
///
/// # Errors
/// `Io` if the log file cannot be opened.
pub(crate) fn start(destination: &LogDestination) -> Result<StartedLog> {
    // fuser warns about each mount that another program unmounts first, although this is the usual
    // way to unmount.
    let usual = match destination {
        LogDestination::Warnings { .. } => "off,h5fs::lacks=warn",
        _ => "warn,fuser::mnt=off,fuser::session=error",
    };
    let mut builder = Builder::from_env(Env::new().filter_or("H5FS_LOG", usual));
    builder.write_style(WriteStyle::Never);
    let mut file = None;
    match destination {
        LogDestination::Terminal => {
            builder.target(Target::Stderr).format(format_plain);
        }
        LogDestination::Warnings { source } => {
            let source = source.clone();
            builder.target(Target::Stderr).format(move |out, record| {
                let text = text_about(&source, level_name(record.level()), record);
                writeln!(out, "h5fs: {text}")
            });
        }
        LogDestination::File { path, mount } => {
            let mount = mount.clone();
            let opened = LogFile::open(path)?;
            file = Some(opened.clone());
            builder
                .target(Target::Pipe(Box::new(opened)))
                .format(move |out, record| format_dated(out, record, &mount));
        }
        LogDestination::System { mount } => {
            let mount = mount.clone();
            builder
                .target(Target::Pipe(Box::new(Syslog::new())))
                .format(move |out, record| format_syslog(out, record, &mount));
        }
    }
    let early = EarlyLog::for_destination(destination);
    install(builder.build(), early.clone());
    std::panic::set_hook(Box::new(|panic| log::error!("{panic}")));
    Ok(StartedLog { early, file })
}

/// Returns the first word of H5FS_LOG that is not a valid level, or `None` if all are valid.
/// `MODULE=LEVEL` is valid, and so is the name of a module of this program or of a library.
pub(crate) fn unknown_level() -> Option<String> {
    let value = std::env::var("H5FS_LOG").ok()?;
    unknown_level_in(&value)
}

fn unknown_level_in(value: &str) -> Option<String> {
    let (filters, _) = value.split_once('/').unwrap_or((value, ""));
    let mut words = filters.split(',').map(str::trim);
    let is_known = |word: &str| {
        let level = word.rsplit_once('=').map_or(word, |(_, level)| level);
        let is_module = word.starts_with("h5fs") || word.contains("::");
        word.is_empty() || level.parse::<LevelFilter>().is_ok() || is_module
    };
    words.find(|word| !is_known(word)).map(str::to_owned)
}

fn install(inner: env_logger::Logger, early: EarlyLog) {
    let level = inner.filter();
    let rationed = RateLimitedLogger {
        inner,
        early,
        ration: Mutex::new(LineBudget::new(Instant::now())),
    };
    // Fails only if a logger is already set. Then that logger remains.
    if log::set_boxed_logger(Box::new(rationed)).is_ok() {
        log::set_max_level(level);
    }
}

fn format_plain(out: &mut env_logger::fmt::Formatter, record: &Record<'_>) -> io::Result<()> {
    let text = printable(&record.args().to_string());
    writeln!(out, "h5fs: {}: {text}", level_name(record.level()))
}

fn format_dated(
    out: &mut env_logger::fmt::Formatter,
    record: &Record<'_>,
    mount: &Path,
) -> io::Result<()> {
    let text = text_about(mount, level_name(record.level()), record);
    let (time, process) = (out.timestamp(), std::process::id());
    writeln!(out, "{time} h5fs[{process}]: {text}")
}

/// Formats a log line: the path `about` of the mount or source, the text `word` unless it is empty,
/// and the message.
fn text_about(about: &Path, word: &str, record: &Record<'_>) -> String {
    let (about, text) = (about.display().to_string(), record.args().to_string());
    let about = format!("{about}: ");
    // Some texts already start with the path.
    let text = text.strip_prefix(&about).unwrap_or(&text);
    let word = if word.is_empty() {
        String::new()
    } else {
        format!("{word}: ")
    };
    printable(&format!("{about}{word}{text}"))
}

/// Formats a line of RFC 3164 without the date. The receiver adds the date (section 4.3.2), because
/// it knows the time zone.
fn format_syslog(
    out: &mut env_logger::fmt::Formatter,
    record: &Record<'_>,
    mount: &Path,
) -> io::Result<()> {
    const FACILITY_DAEMON: u8 = 3;
    let severity = match record.level() {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    };
    let text = text_about(mount, "", record);
    let priority = FACILITY_DAEMON * 8 + severity;
    write!(out, "<{priority}>h5fs[{}]: {text}", std::process::id())
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warning",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    }
}

/// The connection to /dev/log. Each `write` sends one datagram, and drops it if syslog does not
/// listen.
///
/// The connection is opened at once, because a sandboxed process cannot connect later. If a
/// restarted syslog creates a new socket, a sandboxed process can no longer reach it. systemd keeps
/// its socket across restarts.
struct Syslog(Option<UnixDatagram>);

impl Syslog {
    fn new() -> Self {
        Syslog(Self::connect().ok())
    }

    fn connect() -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::unbound()?;
        socket.connect("/dev/log")?;
        // A blocked syslog must not block the filesystem.
        socket.set_nonblocking(true)?;
        Ok(socket)
    }
}

impl Write for Syslog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let sent = self
            .0
            .as_ref()
            .is_some_and(|socket| socket.send(line).is_ok());
        if !sent {
            // Syslog may have been restarted.
            self.0 = Self::connect().ok();
            if let Some(socket) = &self.0 {
                let _ = socket.send(line);
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A logger that limits the number of lines.
struct RateLimitedLogger {
    inner: env_logger::Logger,
    early: EarlyLog,
    ration: Mutex<LineBudget>,
}

impl Log for RateLimitedLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.inner.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.inner.matches(record) || may_log_secrets(record.target()) {
            return;
        }
        let admitted = lock(&self.ration).admit(Instant::now());
        if let Some(left_out) = admitted {
            self.report_omitted(left_out);
            self.early.record(record);
            self.inner.log(record);
        }
    }

    fn flush(&self) {
        let left_out = std::mem::take(&mut lock(&self.ration).omitted);
        self.report_omitted(left_out);
        self.inner.flush();
    }
}

/// Returns whether log lines with this `target` come from a library that logs the URLs and headers
/// that it sends and receives, which contain secrets.
fn may_log_secrets(target: &str) -> bool {
    let library = target.split("::").next().unwrap_or_default();
    library.starts_with("ureq") || library.starts_with("reqsign") || library.starts_with("rustls")
}

impl RateLimitedLogger {
    fn report_omitted(&self, left_out: u64) {
        if left_out > 0 {
            // Must be one statement: before Rust 1.89, the result of `format_args` does not outlive
            // the statement.
            self.inner.log(
                &Record::builder()
                    .level(Level::Warn)
                    .target("h5fs::log")
                    .args(format_args!("{left_out} lines omitted here"))
                    .build(),
            );
        }
    }
}

/// A token bucket. It admits a number of lines at once, and then a number of lines per second.
#[derive(Debug)]
struct LineBudget {
    tokens: f64,
    refilled: Instant,
    omitted: u64,
}

impl LineBudget {
    const BURST_LINES: f64 = 100.0;
    const LINES_PER_SECOND: f64 = 10.0;

    fn new(now: Instant) -> Self {
        LineBudget {
            tokens: Self::BURST_LINES,
            refilled: now,
            omitted: 0,
        }
    }

    /// Takes a token. Returns the number of lines dropped since the last admitted line, or `None`
    /// if this line must be dropped.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let passed = now.saturating_duration_since(self.refilled).as_secs_f64();
        self.tokens = (self.tokens + passed * Self::LINES_PER_SECOND).min(Self::BURST_LINES);
        self.refilled = now;
        if self.tokens < 1.0 {
            self.omitted += 1;
            return None;
        }
        self.tokens -= 1.0;
        Some(std::mem::take(&mut self.omitted))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn early_lines_are_limited() {
        let early = EarlyLog(Arc::new(Mutex::new(Some(Vec::new()))));
        let keep = || {
            let mut line = Record::builder();
            early.record(&line.level(Level::Warn).args(format_args!("a\nb")).build());
        };
        (0..=limits::EARLY_LINES).for_each(|_| keep());
        let lines = early.take();
        assert_eq!(lines, vec!["warning: a\\nb"; limits::EARLY_LINES]);
        keep();
        assert!(early.take().is_empty());
        let of_terminal = EarlyLog::for_destination(&LogDestination::Terminal);
        assert!(lock(&of_terminal.0).is_none());
    }

    #[test]
    fn invalid_log_levels_are_found() {
        for known in [
            "",
            "off",
            "WARN,h5fs_tree::http=trace",
            "debug/text",
            "h5fs",
            "h5fs_view",
            "fuser::mnt",
        ] {
            assert_eq!(unknown_level_in(known), None, "{known}");
        }
        assert_eq!(unknown_level_in("info,bogus"), Some("bogus".to_owned()));
        assert_eq!(unknown_level_in("m=loud"), Some("m=loud".to_owned()));
    }

    #[test]
    fn lines_are_limited_and_dropped_lines_are_counted() {
        let start = Instant::now();
        let mut ration = LineBudget::new(start);
        let passed = (0..150).filter(|_| ration.admit(start).is_some()).count();
        assert_eq!(passed, 100);
        // 0.15 seconds later, one more line is admitted.
        let later = start + Duration::from_millis(150);
        assert_eq!(ration.admit(later), Some(50));
        assert_eq!(ration.admit(later), None);
    }
}
