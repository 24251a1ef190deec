//! The users other than the owner who may read a file, by its group, permission bits and access
//! control list.

use crate::error::Result;
use crate::source::attributes::FileAttributes;
use crate::source::local::acl::Acl;

/// The users other than the owner who may read a file or directory, as its group and its permission
/// bits. For a file with an access control list, the bits grant no user more rights than the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audience {
    group: u32,
    mode: u32,
    /// Permission bits that the umask removes from the mode of everything shown.
    umask: u32,
}

/// The users to whom a mount shows the content of a file. Every function that opens another file
/// takes this argument. No file is thus shown to users who may not read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The user who mounts. The system itself refuses files that this user may not read.
    Owner,
    /// All users of this audience. A file is opened only if each of them may read it.
    All(Audience),
}

impl Readers {
    /// Returns the audience, or `None` if only the owner has access.
    pub fn audience(&self) -> Option<Audience> {
        match self {
            Readers::Owner => None,
            Readers::All(audience) => Some(*audience),
        }
    }

    /// Returns whether all these users may read the file `other` and search each directory in
    /// `way`, the directories on the path to the file.
    ///
    /// # Errors
    /// Fails if the permissions of `other` cannot be read.
    pub fn may_read(
        &self,
        way: impl IntoIterator<Item = Audience>,
        other: impl FnOnce() -> Result<Audience>,
    ) -> Result<bool> {
        let Readers::All(own) = self else {
            return Ok(true);
        };
        let may_come = way
            .into_iter()
            .all(|way| own.is_allowed(AccessKind::Search, &way));
        Ok(may_come && own.is_allowed(AccessKind::Read, &other()?))
    }

    /// Returns the users to whom the file `other`, the target of a link, may be shown: the users
    /// who may read the file and search each directory in `way`, the directories on the path to the
    /// file.
    ///
    /// # Errors
    /// Fails if the permissions of `other` cannot be read.
    pub(crate) fn for_link_target(
        &self,
        way: impl IntoIterator<Item = Audience>,
        other: impl FnOnce() -> Result<Audience>,
    ) -> Result<Self> {
        let Readers::All(own) = self else {
            return Ok(Readers::Owner);
        };
        let shown = own.with_same_umask(other()?);
        let way = way.into_iter();
        let shown = way.fold(shown, |shown, way| {
            shown.restricted_by(AccessKind::Search, &way)
        });
        Ok(Readers::All(shown))
    }
}

/// A kind of access to a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// Reading the content.
    Read,
    /// Looking up a file below the directory.
    Search,
}

impl Audience {
    /// Returns the audience of a file with these attributes and this access control list.
    pub fn new(attributes: impl Into<FileAttributes>, acl: Option<Acl>) -> Self {
        let FileAttributes { gid, mode, .. } = attributes.into();
        Audience {
            group: gid,
            mode: acl.map_or(mode, |acl| acl.restrict_mode(mode)),
            umask: 0,
        }
    }

    /// Returns the audience of a file that every user may read.
    pub fn all_users() -> Self {
        Audience {
            group: u32::MAX,
            mode: 0o444,
            umask: 0,
        }
    }

    /// Returns the audience of a file that only its owner may use.
    pub(crate) fn only_owner() -> Self {
        Audience {
            group: u32::MAX,
            mode: 0,
            umask: 0,
        }
    }

    /// Returns the audience without the users whom `umask` excludes.
    #[must_use]
    pub fn apply_umask(self, umask: u32) -> Self {
        Audience {
            mode: self.mode & !umask,
            umask,
            ..self
        }
    }

    /// Returns `other`, the audience of another file of the same mount, without the users whom the
    /// umask of this audience excludes.
    #[must_use]
    pub(crate) fn with_same_umask(&self, other: Self) -> Self {
        other.apply_umask(self.umask)
    }

    /// Returns the mode: permission bits and file type.
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// Removes the group's bits if a member of the group may not `act` on the file `other`, and the
    /// bits of others if one of the other users may not.
    #[must_use]
    pub(crate) fn restricted_by(self, act: AccessKind, other: &Self) -> Self {
        let bit = match act {
            AccessKind::Read => 0o4,
            AccessKind::Search => 0o1,
        };
        let (group_may, others_may) = (other.mode & (bit << 3) != 0, other.mode & bit != 0);
        let same_group = self.group == other.group;
        let mut mode = self.mode;
        if !(group_may && (same_group || others_may)) {
            mode &= !0o070;
        }
        if !(others_may && (same_group || group_may)) {
            mode &= !0o007;
        }
        Audience { mode, ..self }
    }

    /// Returns whether all users who may read the file with this audience, except its owner, may
    /// `act` on the file with the audience `other`.
    pub fn is_allowed(&self, act: AccessKind, other: &Self) -> bool {
        const READERS: u32 = 0o044;
        self.restricted_by(act, other).mode & READERS == self.mode & READERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrower_permissions_are_detected() {
        let file = |group, mode| Audience {
            group,
            mode,
            umask: 0,
        };
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
            assert_eq!(
                own.is_allowed(AccessKind::Read, &other),
                wanted,
                "{own:?} {other:?}"
            );
        }
        assert!(file(1, 0o644).is_allowed(AccessKind::Search, &file(1, 0o711)));
        assert!(!file(1, 0o644).is_allowed(AccessKind::Search, &file(1, 0o744)));
        assert!(
            file(1, 0o644)
                .apply_umask(0o077)
                .is_allowed(AccessKind::Read, &file(2, 0o600))
        );
    }
}
