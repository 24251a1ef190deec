//! `h5fs cache`: lists, trims or clears the directory of `disk_cache`.

use std::io::Write;
use std::path::Path;

use h5fs_fetcher::{CachedSource, DiskCache};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::text::JsonObject;
use h5fs_tree::timestamp_of;

use crate::cli::args::CacheAction;
use crate::cli::inspect::command_source::{self, CommandResult};
use crate::cli::text::printable::printable;
use crate::cli::text::progress::format_bytes;

/// Text that is shown for a source whose URL the cache does not contain.
const UNKNOWN: &str = "(unknown)";

/// Rejects a size for other actions than `trim`, and `trim` without a size.
///
/// # Errors
/// `Usage` in both cases.
pub(in crate::cli) fn check_size_option(act: CacheAction, size: Option<u64>) -> Result<()> {
    let text = match (act, size) {
        (CacheAction::Trim, None) => {
            "cache: trim: --size, the maximum size after trimming, is missing"
        }
        (CacheAction::List | CacheAction::Clear, Some(_)) => "cache: --size is only for `trim`",
        _ => return Ok(()),
    };
    Err(Error::Usage(text.to_owned()))
}

/// Runs the command on the cache in a directory.
///
/// # Errors
/// Fails if the directory contains no cache, or if the cache cannot be read or trimmed.
pub(in crate::cli) fn run(
    act: CacheAction,
    directory: &Path,
    size: Option<u64>,
    json: bool,
) -> CommandResult<()> {
    let failed = |error| Error::from_io(&error, directory.display().to_string());
    let cache = DiskCache::open_to_manage(directory).map_err(failed)?;
    let text = match act {
        CacheAction::List => {
            let shares = cache.cached_sources().map_err(failed)?;
            if json {
                as_json(&shares)
            } else {
                as_table(&shares)
            }
        }
        CacheAction::Trim | CacheAction::Clear => {
            let most = size.filter(|_| act == CacheAction::Trim).unwrap_or(0);
            let (before, left) = cache.trim(most).map_err(failed)?;
            format_deletion(before.saturating_sub(left), left, json)
        }
    };
    command_source::stdout_file()?.write_all(text.as_bytes())?;
    Ok(())
}

/// Formats a line for each cached source: its bytes, its last use and its URL. The last line is the
/// total.
fn as_table(shares: &[CachedSource]) -> String {
    let mut text = String::new();
    for share in shares {
        let source = share.source.as_deref().map(printable);
        let source = source.unwrap_or_else(|| UNKNOWN.to_owned());
        text += &line(share.bytes, &format_last_use(share), &source);
    }
    text + &line(
        total_bytes(shares),
        "",
        &format!("{} sources", shares.len()),
    )
}

fn line(bytes: u64, used: &str, source: &str) -> String {
    format!("{:>10}  {used:20}  {source}\n", format_bytes(bytes as f64))
}

fn as_json(shares: &[CachedSource]) -> String {
    let object = |share: &CachedSource| {
        let mut object = JsonObject::default();
        match &share.source {
            Some(source) => object.add_text("source", source),
            None => object.add_json("source", "null"),
        }
        object.add_json("bytes", share.bytes);
        object.add_text("used", format_last_use(share));
        object.finish()
    };
    let sources: Vec<String> = shares.iter().map(object).collect();
    let mut all = JsonObject::default();
    all.add_json("bytes", total_bytes(shares));
    all.add_json("sources", format!("[{}]", sources.join(",\n ")));
    all.finish() + "\n"
}

fn format_deletion(bytes: u64, left: u64, json: bool) -> String {
    if json {
        let mut object = JsonObject::default();
        object.add_json("deleted", bytes);
        object.add_json("left", left);
        object.finish() + "\n"
    } else {
        let (bytes, left) = (format_bytes(bytes as f64), format_bytes(left as f64));
        format!("{bytes} deleted, {left} left\n")
    }
}

fn total_bytes(shares: &[CachedSource]) -> u64 {
    shares.iter().map(|share| share.bytes).sum()
}

/// Formats the time at which the source was last used, in UTC to the second.
fn format_last_use(share: &CachedSource) -> String {
    timestamp_of(share.last_used)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn shares() -> [CachedSource; 2] {
        // Output of `date -u -d @784111777`.
        let used = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let share = |source: Option<&str>, bytes| CachedSource {
            source: source.map(str::to_owned),
            bytes,
            last_used: used,
        };
        [share(Some("s3://b/\u{1b}a.h5"), 3 << 29), share(None, 4096)]
    }

    #[test]
    fn the_table_is_formatted() {
        let expected = "   1.5 GiB  1994-11-06T08:49:37Z  s3://b/\\u{1b}a.h5\n\
                        \u{20}  4.0 KiB  1994-11-06T08:49:37Z  (unknown)\n\
                        \u{20}  1.5 GiB                        2 sources\n";
        assert_eq!(as_table(&shares()), expected);
        assert_eq!(
            format_deletion(4096, 0, false),
            "4.0 KiB deleted, 0 B left\n"
        );
    }

    #[test]
    fn json_has_bytes_and_times() {
        let text = as_json(&shares());
        assert!(
            text.starts_with("{\"bytes\": 1610616832, \"sources\": [{"),
            "{text}"
        );
        assert!(text.contains("\"source\": null, \"bytes\": 4096"), "{text}");
        assert!(
            text.contains("\"used\": \"1994-11-06T08:49:37Z\""),
            "{text}"
        );
        assert!(text.contains("s3://b/\\u001ba.h5"), "{text}");
        assert_eq!(
            format_deletion(4096, 7, true),
            "{\"deleted\": 4096, \"left\": 7}\n"
        );
    }
}
