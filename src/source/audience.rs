//! Who but its owner may read a file, by its group and permission bits.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Group and permission bits of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audience {
    group: u32,
    mode: u32,
}

/// What is done with a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Its content is read.
    Read,
    /// A file beneath it is looked up.
    Search,
}

impl Audience {
    /// As the file has it.
    pub fn of(metadata: &Metadata) -> Self {
        Audience {
            group: metadata.gid(),
            mode: metadata.mode(),
        }
    }

    /// Whether all who may read the file, but for its owner, may do so much with `other`.
    pub fn may(&self, act: Act, other: &Self) -> bool {
        let (group_reads, others_read) = (self.mode & 0o040 != 0, self.mode & 0o004 != 0);
        let bit = match act {
            Act::Read => 0o4,
            Act::Search => 0o1,
        };
        let (group_may, others_may) = (other.mode & (bit << 3) != 0, other.mode & bit != 0);
        let same_group = self.group == other.group;
        match (group_reads, others_read) {
            (_, true) => others_may && (group_may || same_group && !group_reads),
            (true, false) => group_may && (same_group || others_may),
            (false, false) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrower_file_is_told() {
        let file = |group, mode| Audience { group, mode };
        let cases = [
            ((1, 0o644), (1, 0o644), true),
            ((1, 0o644), (2, 0o444), true),
            ((1, 0o644), (1, 0o640), false),
            ((1, 0o644), (1, 0o600), false),
            ((1, 0o644), (1, 0o604), false),
            ((1, 0o604), (1, 0o604), true),
            ((1, 0o604), (2, 0o604), false),
            ((1, 0o640), (1, 0o640), true),
            ((1, 0o640), (2, 0o640), false),
            ((1, 0o640), (2, 0o644), true),
            ((1, 0o640), (1, 0o600), false),
            ((1, 0o600), (2, 0o600), true),
        ];
        for ((group, mode), (other_group, other_mode), wanted) in cases {
            let (own, other) = (file(group, mode), file(other_group, other_mode));
            assert_eq!(own.may(Act::Read, &other), wanted, "{own:?} {other:?}");
        }
        assert!(file(1, 0o644).may(Act::Search, &file(1, 0o711)));
        assert!(!file(1, 0o644).may(Act::Search, &file(1, 0o744)));
    }
}
