//! Parsers of option values.

use h5fs_tree::External;

use crate::limits;

pub(super) fn required_value(value: Option<&str>) -> Result<&str, String> {
    let value = value.filter(|value| !value.is_empty());
    value.ok_or_else(|| "a value is missing".to_owned())
}

pub(super) fn refuse_value(value: Option<&str>) -> Result<(), String> {
    match value {
        None => Ok(()),
        Some(_) => Err("takes no value".to_owned()),
    }
}

/// Parses a user ID or group ID.
fn id(text: &str) -> Result<u32, String> {
    // The kernel uses the largest number for "no user".
    match text.parse() {
        Ok(u32::MAX) | Err(_) => Err(format!("`{text}` is not the number of a user or group")),
        Ok(id) => Ok(id),
    }
}

/// Parses the ID or the name of a user. Returns the user ID.
pub(super) fn parse_user(text: &str) -> Result<u32, String> {
    id(text).or_else(|_| {
        let found = nix::unistd::User::from_name(text).ok().flatten();
        let found = found.map(|user| user.uid.as_raw());
        found.ok_or_else(|| format!("no user is named `{text}`"))
    })
}

/// Parses the ID or the name of a group. Returns the group ID.
pub(super) fn parse_group(text: &str) -> Result<u32, String> {
    id(text).or_else(|_| {
        let found = nix::unistd::Group::from_name(text).ok().flatten();
        let found = found.map(|group| group.gid.as_raw());
        found.ok_or_else(|| format!("no group is named `{text}`"))
    })
}

/// Parses the octal permission bits that a umask removes.
pub(super) fn parse_umask(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(bits) if bits <= 0o777 && !text.starts_with('+') => Ok(bits),
        _ => Err(format!("`{text}` is not an octal number up to 777")),
    }
}

/// Parses a number of bytes. The suffixes K, M and G are powers of 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "`{text}` is not a size (bytes, or a number and K, M or G)"
        ));
    }
    let count: Option<u64> = digits.parse().ok();
    count
        .and_then(|count| count.checked_mul(unit))
        .ok_or_else(|| format!("`{text}` is too large"))
}

pub(super) fn parse_threads(text: &str) -> Result<usize, String> {
    parse_count(text, limits::THREADS)
}

/// Parses the number of sources that are read at a time.
pub(crate) fn parse_jobs(text: &str) -> Result<usize, String> {
    parse_count(text, limits::THREADS)
}

/// Parses the maximum number of open data files.
pub(super) fn parse_open_files(text: &str) -> Result<usize, String> {
    parse_count(text, limits::MOST_OPEN_MEMBERS)
}

/// Parses a number from 1 to `most`.
pub(super) fn parse_count(text: &str, most: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=most).contains(&count) => Ok(count),
        _ => Err(format!("`{text}` is not a number between 1 and {most}")),
    }
}

/// Parses `none`, `within` or `any`.
pub(super) fn parse_external(text: &str) -> Result<External, String> {
    match text {
        "none" => Ok(External::None),
        "within" => Ok(External::WithinDirectory),
        "any" => Ok(External::Any),
        _ => Err(format!("`{text}` is not one of none, within, any")),
    }
}

/// Parses `on` or `off`.
pub(crate) fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is neither on nor off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("0"), Ok(0));
        assert_eq!(parse_size("1024"), Ok(1024));
        assert_eq!(parse_size("64k"), Ok(65_536));
        assert_eq!(parse_size("1G"), Ok(1 << 30));
        for wrong in ["", "K", "-1", "+1", "1.5G", "1KB", "ü", "99999999999G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
