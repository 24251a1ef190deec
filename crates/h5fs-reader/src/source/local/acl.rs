//! POSIX access control lists (acl(5)): access rights that permission bits cannot express.
//!
//! The kernel stores a list in the extended attribute `system.posix_acl_access`. The value is a
//! version, followed by entries of a tag, permission bits and a number; all are little-endian. The
//! group bits of a file with a list contain the list's mask.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{fgetxattr, getxattr};
use rustix::io::Errno;

const ATTRIBUTE: &str = "system.posix_acl_access";

/// Maximum length in bytes of an access control list that is read: some 500 entries.
const MAX_ATTRIBUTE_BYTES: usize = 4096;

const VERSION: u32 = 2;

/// Tags of the entries of an access control list.
mod tag {
    pub(in crate::source) const USER: u16 = 0x02;
    pub(in crate::source) const GROUP_OF_FILE: u16 = 0x04;
    pub(in crate::source) const GROUP: u16 = 0x08;
    pub(in crate::source) const MASK: u16 = 0x10;
    pub(in crate::source) const OTHERS: u16 = 0x20;
}

/// The permission bits that an access control list grants: three bits each, with the mask applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acl {
    /// Permission bits granted to the file's group.
    group: u32,
    /// Permission bits granted to every user without an entry of their own.
    others: u32,
    /// Permission bits that the list grants to all named users and groups.
    all_named: u32,
    /// Permission bits that the list grants to at least one named user or group.
    any_named: u32,
}

impl Acl {
    /// Returns the access control list of an open file, or `None` if the file has no list. A list
    /// that cannot be read grants no rights.
    pub fn from_file(file: impl AsFd) -> Option<Self> {
        let mut value = [0; MAX_ATTRIBUTE_BYTES];
        let length = fgetxattr(file, ATTRIBUTE, &mut value[..]);
        Self::from_attribute(length, &value)
    }

    /// Returns the list of the file or directory at `path`, like [`from_file`](Self::from_file).
    pub fn from_path(path: &Path) -> Option<Self> {
        let mut value = [0; MAX_ATTRIBUTE_BYTES];
        let length = getxattr(path, ATTRIBUTE, &mut value[..]);
        Self::from_attribute(length, &value)
    }

    fn from_attribute(length: Result<usize, Errno>, value: &[u8]) -> Option<Self> {
        match length {
            Ok(length) => {
                let list = value.get(..length).and_then(Self::parse);
                Some(list.unwrap_or_default())
            }
            Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => None,
            Err(_) => Some(Acl::default()),
        }
    }

    fn parse(value: &[u8]) -> Option<Self> {
        let (version, entries) = value.split_first_chunk()?;
        if u32::from_le_bytes(*version) != VERSION {
            return None;
        }
        let (mut group, mut others, mut mask, mut named) = (0, 0, 0o7, Vec::new());
        for entry in entries.chunks(8) {
            let [low, high, bits, _, _, _, _, _] = *entry else {
                return None;
            };
            let bits = u32::from(bits) & 0o7;
            match u16::from_le_bytes([low, high]) {
                tag::USER | tag::GROUP => named.push(bits),
                tag::GROUP_OF_FILE => group = bits,
                tag::MASK => mask = bits,
                tag::OTHERS => others = bits,
                _ => {}
            }
        }
        Some(Acl {
            group: group & mask,
            others,
            all_named: named.iter().fold(0o7, |all, bits| all & bits & mask),
            any_named: named.iter().fold(0, |any, bits| any | bits & mask),
        })
    }

    /// Returns `mode` with narrower bits for the group and others: the bits grant no user more than
    /// the list does.
    pub(crate) fn restrict_mode(&self, mode: u32) -> u32 {
        let group = self.group & self.all_named;
        let others = self.others & self.all_named;
        mode & !0o077 | group << 3 | others
    }

    /// Returns whether the list lets a user read the file to whom the bits of
    /// `restrict_mode` deny reading. Users whose class `umask` excludes from
    /// reading are ignored.
    pub fn grants_more_than_mode(&self, umask: u32) -> bool {
        const READ: u32 = 0o4;
        let bits = self.restrict_mode(0);
        let (group, others) = (bits >> 3 & READ, bits & READ);
        let lacks = |given: u32, bits: u32| given & READ != 0 && bits == 0;
        let is_shown = |class: u32| umask & class == 0;
        is_shown(0o040) && lacks(self.group, group)
            || is_shown(0o004) && lacks(self.others, others)
            || is_shown(0o040) && is_shown(0o004) && lacks(self.any_named, group & others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u8)]) -> Acl {
        let entries = entries.iter();
        let entries = entries.flat_map(|(tag, bits)| {
            let [low, high] = tag.to_le_bytes();
            [low, high, *bits, 0, 1, 0, 0, 0]
        });
        let value: Vec<u8> = VERSION.to_le_bytes().into_iter().chain(entries).collect();
        Acl::parse(&value).unwrap()
    }

    #[test]
    fn restricted_mode_grants_no_more_than_the_list() {
        use tag::*;
        let owner = (1, 6);
        for (entries, mode, is_finer) in [
            (&[(GROUP_OF_FILE, 4), (OTHERS, 4)][..], 0o644, false),
            (
                &[(USER, 0), (GROUP_OF_FILE, 4), (MASK, 4), (OTHERS, 4)],
                0o600,
                true,
            ),
            (
                &[(USER, 4), (GROUP_OF_FILE, 4), (MASK, 4), (OTHERS, 4)],
                0o644,
                false,
            ),
            (
                &[(USER, 4), (GROUP_OF_FILE, 4), (MASK, 0), (OTHERS, 4)],
                0o600,
                true,
            ),
            (
                &[(GROUP, 4), (GROUP_OF_FILE, 0), (MASK, 4), (OTHERS, 0)],
                0o600,
                true,
            ),
            (
                &[(USER, 4), (GROUP_OF_FILE, 0), (MASK, 4), (OTHERS, 4)],
                0o604,
                true,
            ),
            (
                &[(USER, 0), (GROUP_OF_FILE, 0), (MASK, 0), (OTHERS, 0)],
                0o600,
                false,
            ),
        ] {
            let acl = list(&[&[owner], entries].concat());
            assert_eq!(acl.restrict_mode(0o664), mode, "{entries:?}");
            assert_eq!(acl.grants_more_than_mode(0), is_finer, "{entries:?}");
            assert!(!acl.grants_more_than_mode(0o077), "{entries:?}");
        }
    }

    #[test]
    fn an_unreadable_list_grants_nothing() {
        let closed = Some(Acl::default());
        for value in [&b""[..], &[1, 0, 0, 0], &[2, 0, 0, 0, 4]] {
            assert_eq!(
                Acl::from_attribute(Ok(value.len()), value),
                closed,
                "{value:?}"
            );
        }
        assert_eq!(Acl::from_attribute(Err(Errno::RANGE), &[]), closed);
        assert_eq!(Acl::from_attribute(Err(Errno::NODATA), &[]), None);
        assert_eq!(Acl::default().restrict_mode(0o755), 0o700);
    }
}
