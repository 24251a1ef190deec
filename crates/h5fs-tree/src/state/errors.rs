//! The list of objects that could not be read, for `.h5fs/errors`. Each line has the time, the
//! object and the reason.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use h5fs_reader::error::Error;
use h5fs_reader::error::line::escape_to_one_line;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::wire::Count;

use crate::limits;

/// The most recent errors of a mounted file. Clones share the list.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentErrors {
    log: Arc<Mutex<ErrorLog>>,
    /// For a data file of a mounted directory: the list of errors of all data files, and the path
    /// of this file.
    directory_errors: Option<(Arc<RecentErrors>, String)>,
}

#[derive(Debug, Default)]
struct ErrorLog {
    lines: VecDeque<String>,
    /// Number of errors of each kind since the mount, in the order of [`ErrorKind`].
    counts: [u64; ErrorKind::ALL.len()],
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The file violates its format.
    Corrupt,
    /// The file uses a feature that is not implemented.
    Unsupported,
    /// The file exceeds a limit.
    Limit,
    /// A file that the file references is missing.
    Missing,
    /// The operating system, a device or a server failed, or access was denied.
    Io,
    /// The request was refused, for example because a writer has marked the file.
    Refused,
}

impl ErrorKind {
    const ALL: [ErrorKind; 6] = [
        ErrorKind::Corrupt,
        ErrorKind::Unsupported,
        ErrorKind::Limit,
        ErrorKind::Missing,
        ErrorKind::Io,
        ErrorKind::Refused,
    ];

    /// Returns the kind of the error `error`.
    pub(crate) fn from_error(error: &Error) -> Self {
        match error {
            Error::Corrupt { .. } => ErrorKind::Corrupt,
            Error::Unsupported { .. } => ErrorKind::Unsupported,
            Error::Limit { .. } | Error::BudgetExceeded { .. } => ErrorKind::Limit,
            Error::NotFound => ErrorKind::Missing,
            Error::Io { .. } => ErrorKind::Io,
            Error::Usage(_) => ErrorKind::Refused,
        }
    }

    /// Returns the kind's name in lowercase.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ErrorKind::Corrupt => "corrupt",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Limit => "limit",
            ErrorKind::Missing => "missing",
            ErrorKind::Io => "io",
            ErrorKind::Refused => "refused",
        }
    }
}

impl RecentErrors {
    /// Returns the list of errors of the data file at `path`. Its errors are also added to this
    /// list, which is the list of all data files.
    pub(crate) fn for_file(self: &Arc<Self>, path: &Path) -> Self {
        let path = escape_to_one_line(&path.display().to_string());
        RecentErrors {
            log: Arc::default(),
            directory_errors: Some((Arc::clone(self), path)),
        }
    }

    /// Returns the name of `object` for the list of errors of all data files: the path of the
    /// object's data file, followed by `object`.
    pub(crate) fn name(&self, object: &str) -> String {
        match &self.directory_errors {
            Some((_, path)) => format!("{path}:{object}"),
            None => object.to_owned(),
        }
    }

    /// Adds an error of the object called `object` to the list. `object` must not contain line
    /// breaks.
    pub(crate) fn add(&self, kind: ErrorKind, object: &str, reason: &str) {
        if let Some((all, _)) = &self.directory_errors {
            all.add(kind, &self.name(object), reason);
        }
        let time = timestamp_of(SystemTime::now());
        let mut line = format!("{time} {object}: {}", escape_to_one_line(reason));
        let fits = |end: &usize| *end <= limits::ERROR_LINE && line.is_char_boundary(*end);
        if let Some(end) = (0..=line.len()).rev().find(fits) {
            line.truncate(end);
        }
        line.push('\n');
        let mut last = lock(&self.log);
        let count = &mut last.counts[kind as usize];
        *count = count.plus_one();
        if last.lines.len() == limits::LAST_ERRORS {
            last.lines.pop_front();
        }
        last.lines.push_back(line);
    }

    /// Returns the number of errors of each kind since the mount, including errors that the list no
    /// longer contains.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (ErrorKind, u64)> {
        let counts = lock(&self.log).counts;
        ErrorKind::ALL.into_iter().zip(counts)
    }

    /// Returns the lines of `.h5fs/errors`.
    pub(crate) fn text(&self) -> Vec<u8> {
        let last = lock(&self.log);
        let bytes = last.lines.iter().flat_map(|line| line.bytes());
        bytes.collect()
    }
}

/// Formats the time as in RFC 3339.
pub fn timestamp_of(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH);
    timestamp(since.map_or(0, |since| since.as_secs()))
}

/// Formats seconds since 1970 as in RFC 3339. Years are counted from March, so that the leap day is
/// the last day of a year.
fn timestamp(seconds: u64) -> String {
    const FROM_MARCH_OF_YEAR_0_TO_1970: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = seconds / 86_400 + FROM_MARCH_OF_YEAR_0_TO_1970;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year + u64::from(month >= 10);
    let month = if month < 10 { month + 3 } else { month - 9 };
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_by_date() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_825_600, "2000-02-29T12:00:00Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(timestamp(seconds), text);
        }
    }

    #[test]
    fn the_newest_errors_are_kept_and_all_are_counted() {
        let errors = RecentErrors::default();
        for number in 0..limits::LAST_ERRORS + 3 {
            errors.add(ErrorKind::Io, "/x", &format!("reason {number}"));
        }
        errors.add(ErrorKind::Corrupt, "/long", &"ü".repeat(limits::ERROR_LINE));
        let text = String::from_utf8(errors.text()).unwrap();
        assert_eq!(text.lines().count(), limits::LAST_ERRORS);
        assert!(text.lines().next().unwrap().ends_with(" /x: reason 4"));
        assert!(text.lines().all(|line| line.len() <= limits::ERROR_LINE));
        let counts = errors.counts().filter(|(_, count)| *count > 0);
        let counts: Vec<_> = counts.collect();
        assert_eq!(counts, [(ErrorKind::Corrupt, 1), (ErrorKind::Io, 1003)]);
    }
}
