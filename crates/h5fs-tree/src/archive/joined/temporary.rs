//! Recognizes names of temporary files, which are not joined. A program that replaces a file writes
//! the new file under such a name first, and both files would have the same coordinates in the
//! joined file.

use std::collections::HashSet;
use std::sync::Arc;

use h5fs_reader::detect;

/// Suffixes of names that programs use for incomplete files, downloads and backups.
const TEMPORARY_SUFFIXES: [&[u8]; 11] = [
    b".tmp",
    b".temp",
    b".part",
    b".partial",
    b".filepart",
    b".crdownload",
    b".download",
    b".incomplete",
    b".swp",
    b".bak",
    b"~",
];

/// Returns for each of the file names `names` the reason why the file is omitted as a temporary
/// file, or `None` if it is not omitted.
pub(super) fn omission_reasons(names: &[&Arc<[u8]>]) -> Vec<Option<String>> {
    let all: HashSet<&[u8]> = names.iter().map(|name| &***name).collect();
    let are_all_temporary = names.iter().all(|name| is_temporary(name));
    let reason = |name: &[u8]| {
        if let Some(other) = original_name(name, &all) {
            let other = other.escape_ascii();
            return Some(format!(
                "a temporary file: its name is {other} with one more ending"
            ));
        }
        let is_left_out = is_temporary(name) && !are_all_temporary;
        is_left_out.then(|| "its name ends like the name of a temporary file".to_owned())
    };
    names.iter().map(|name| reason(name)).collect()
}

fn is_temporary(name: &[u8]) -> bool {
    TEMPORARY_SUFFIXES.iter().any(|ending| {
        let own = name.len().checked_sub(ending.len());
        let own = own.and_then(|at| name.get(at..));
        own.is_some_and(|own| own.eq_ignore_ascii_case(ending))
    })
}

/// Returns the name in `all` that is the original of the file name `name`, such as `x.h5` for
/// `x.h5.old`: a data file's whole name that `name` starts with. Returns `None` if there is no such
/// name, or if `name` itself has the suffix of a data file.
fn original_name<'n>(name: &'n [u8], all: &HashSet<&[u8]>) -> Option<&'n [u8]> {
    if detect::has_data_file_extension(name) {
        return None;
    }
    let ends = name.iter().enumerate().skip(1);
    let ends = ends.filter(|(_, byte)| !byte.is_ascii_alphanumeric() && **byte != b'/');
    let mut begins = ends.filter_map(|(at, _)| name.get(..at));
    begins.find(|begin| detect::has_data_file_extension(begin) && all.contains(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names that are not omitted.
    fn remaining<'n>(names: &[&'n str]) -> Vec<&'n str> {
        let own: Vec<Arc<[u8]>> = names.iter().map(|name| name.as_bytes().into()).collect();
        let reasons = omission_reasons(&own.iter().collect::<Vec<_>>());
        let all = names.iter().zip(reasons);
        all.filter_map(|(name, reason)| reason.is_none().then_some(*name))
            .collect()
    }

    #[test]
    fn a_name_beside_its_original_is_temporary() {
        assert_eq!(remaining(&["x.h5", "x.h5.tmp"]), ["x.h5"]);
        assert_eq!(
            remaining(&["x.h5", "x.h5.0k3a", "x.h5_old", "x.h5~"]),
            ["x.h5"]
        );
        assert_eq!(
            remaining(&["r/x.nc", "r/x.nc.1", "x.nc.1"]),
            ["r/x.nc", "x.nc.1"]
        );
    }

    #[test]
    fn temporary_endings_are_omitted_unless_all_names_have_one() {
        assert_eq!(remaining(&["a.nc", "b.nc.PART", "c~"]), ["a.nc"]);
        assert_eq!(
            remaining(&["b.nc.part", "c.nc.tmp"]),
            ["b.nc.part", "c.nc.tmp"]
        );
    }

    #[test]
    fn names_with_data_file_endings_are_not_temporary() {
        for names in [
            &["x.h5", "x.h5.2.h5"][..],
            &["a.nc", "a.nc4"],
            &["scan.1", "scan.10", "scan.1.2"],
            &["tmp.h5", "part.nc"],
        ] {
            assert_eq!(remaining(names), names);
        }
    }
}
