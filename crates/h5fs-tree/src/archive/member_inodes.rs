//! The inodes within data files, by inode number in the mount of the whole directory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use h5fs_reader::memory::lock::lock;

use crate::archive::entries::{member_inode_number, next_candidate_number};
use crate::archive::members::ArchiveMember;
use crate::requests::Ino;

/// The inodes within data files that have lookups which the kernel has not released.
#[derive(Default)]
pub(super) struct MemberInodes {
    known: Mutex<HashMap<Ino, MemberInode>>,
}

struct MemberInode {
    member: Arc<ArchiveMember>,
    /// Inode number in the data file's own tree.
    local_ino: Ino,
    lookups: u64,
}

impl MemberInodes {
    /// Increments the lookup count of the inode that has the number `local` in `member`. Returns
    /// its inode number in the mount, and whether this is its first lookup.
    pub(super) fn add_lookup(&self, member: &Arc<ArchiveMember>, local: Ino) -> (Ino, bool) {
        let mut known = lock(&self.known);
        let mut ino = member_inode_number(member.entry, local);
        loop {
            match known.get_mut(&ino) {
                Some(other) if other.local_ino != local || other.member.entry != member.entry => {
                    ino = next_candidate_number(ino);
                }
                Some(own) => {
                    own.lookups = own.lookups.saturating_add(1);
                    return (ino, false);
                }
                None => {
                    let member = Arc::clone(member);
                    let lookups = 1;
                    known.insert(
                        ino,
                        MemberInode {
                            member,
                            local_ino: local,
                            lookups,
                        },
                    );
                    return (ino, true);
                }
            }
        }
    }

    /// Subtracts `count` from the lookup count of the inode `ino`. Returns the data file, the inode
    /// number in the data file's own tree, and whether no lookup remains.
    pub(super) fn forget(&self, ino: Ino, count: u64) -> Option<(Arc<ArchiveMember>, Ino, bool)> {
        let mut known = lock(&self.known);
        let own = known.get_mut(&ino)?;
        own.lookups = own.lookups.saturating_sub(count);
        let (member, local) = (Arc::clone(&own.member), own.local_ino);
        let is_forgotten = own.lookups == 0;
        if is_forgotten {
            known.remove(&ino);
            if known.len() < known.capacity() / 4 {
                known.shrink_to_fit();
            }
        }
        Some((member, local, is_forgotten))
    }

    /// Returns the data file that contains the inode `ino` of the mount, and the inode number in
    /// the data file's own tree.
    pub(super) fn get(&self, ino: Ino) -> Option<(Arc<ArchiveMember>, Ino)> {
        let known = lock(&self.known);
        let own = known.get(&ino)?;
        Some((Arc::clone(&own.member), own.local_ino))
    }
}
