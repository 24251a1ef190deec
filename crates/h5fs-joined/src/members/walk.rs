//! Finds the objects of a member. A walk over the hard links finds the first name of each object.
//! All other names, by links of every kind, are found afterwards, as in h5py.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::model::{Array, Container, LinkTarget, NodeId, NodeKind};
use h5fs_reader::wire::to_u64;

use crate::limits;
use crate::members::content::TreeScalar;
use crate::members::links::{ObjectLocation, OpenFile};
use crate::members::opener::{MemberFiles, is_permanently_omitted};
use crate::paths::{Path, child_path};

/// The objects of a member: its groups, arrays and scalars.
#[derive(Default)]
pub(super) struct WalkedObjects {
    pub(super) groups: Vec<(ObjectLocation, Path)>,
    pub(super) arrays: Vec<FoundArray>,
    pub(super) scalars: BTreeMap<Path, TreeScalar>,
    /// Paths of links that cannot be followed, with reasons.
    pub(super) refusals: Vec<(Path, String)>,
}

/// An array of a member.
pub(super) struct FoundArray {
    pub(super) file: Arc<OpenFile>,
    pub(super) node: NodeId,
    pub(super) path: Path,
    pub(super) array: Arc<Array>,
}

impl FoundArray {
    pub(super) fn container(&self) -> &dyn Container {
        &**self.file.container()
    }
}

/// Finds all objects of a member.
///
/// # Errors
/// Fails if an object cannot be read. `Limit` if there are too many.
pub(super) fn walk_member(
    opener: &dyn MemberFiles,
    member: &Arc<OpenFile>,
) -> Result<WalkedObjects> {
    let mut walk = MemberWalk {
        opener,
        member,
        objects: WalkedObjects::default(),
        remaining_links: limits::JOINED_OBJECTS,
        visited: HashSet::from([member.container().root()]),
        links: VecDeque::new(),
    };
    let root = (Arc::clone(member), member.container().root());
    walk.walk_hard_links(root, Path::default(), None)?;
    walk.remaining_links = limits::JOINED_OBJECTS;
    while let Some(link) = walk.links.pop_front() {
        walk.follow(link)?;
    }
    Ok(walk.objects)
}

/// A group on the walked path, with the chain of groups above it up to the root.
struct GroupTrail {
    location: ObjectLocation,
    parent: Option<Arc<GroupTrail>>,
}

impl GroupTrail {
    fn is_ancestor(&self, (file, node): &ObjectLocation) -> bool {
        let ways = std::iter::successors(Some(self), |way| way.parent.as_deref());
        let mut places = ways.map(|way| &way.location);
        places.any(|place| place.1 == *node && place.0.is_same_file(file))
    }
}

/// A link to follow later: a further name of an object, or a link to another file.
struct DeferredLink {
    path: Path,
    target: LinkTarget,
    /// The group that contains the link.
    group: Arc<GroupTrail>,
}

struct MemberWalk<'w> {
    opener: &'w dyn MemberFiles,
    member: &'w Arc<OpenFile>,
    objects: WalkedObjects,
    /// Number of links that may still be read.
    remaining_links: usize,
    /// Objects of the member that the walk over hard links has visited.
    visited: HashSet<NodeId>,
    links: VecDeque<DeferredLink>,
}

impl MemberWalk<'_> {
    /// Visits the objects below a group over hard links. Queues all other links, and hard links to
    /// visited objects.
    fn walk_hard_links(
        &mut self,
        group: ObjectLocation,
        path: Path,
        above: Option<Arc<GroupTrail>>,
    ) -> Result<()> {
        let is_linked = above.is_some();
        let mut pending = VecDeque::from([(
            Arc::new(GroupTrail {
                location: group,
                parent: above,
            }),
            path,
        )]);
        while let Some((group, path)) = pending.pop_front() {
            let file = Arc::clone(&group.location.0);
            let mut links = file.container().links(group.location.1)?;
            while let Some(link) = links.next()? {
                self.charge_link()?;
                if link.name.contains(&b'/') || link.name.is_empty() {
                    let what = "joined: a name that is empty or contains a slash";
                    return Err(Error::unsupported(what, None));
                }
                let place = child_path(&path, &link.name);
                Error::check_limit(
                    place.len(),
                    limits::FILE_PATH,
                    "joined: bytes of a path in a file",
                )?;
                if is_too_deep(&place) {
                    let most = limits::PATH_LINKS;
                    self.refuse(&place, &format!("it is in more than {most} groups"));
                    continue;
                }
                let node = match link.target {
                    LinkTarget::Hard(node) if is_linked || self.visited.insert(node) => node,
                    target => {
                        self.links.push_back(DeferredLink {
                            path: place,
                            target,
                            group: Arc::clone(&group),
                        });
                        continue;
                    }
                };
                if self.add_object(&file, node, &place)? {
                    let place_of_group = (Arc::clone(&file), node);
                    if is_linked && group.is_ancestor(&place_of_group) {
                        continue;
                    }
                    let way = GroupTrail {
                        location: place_of_group,
                        parent: Some(Arc::clone(&group)),
                    };
                    pending.push_back((Arc::new(way), place));
                }
            }
            self.objects.groups.push((group.location.clone(), path));
        }
        Ok(())
    }

    fn charge_link(&mut self) -> Result<()> {
        self.remaining_links = self.remaining_links.checked_sub(1).ok_or_else(|| {
            let most = to_u64(limits::JOINED_OBJECTS);
            Error::limit("joined: links of a file", most)
        })?;
        Ok(())
    }

    /// Records an object. Returns whether it is a group.
    fn add_object(&mut self, file: &Arc<OpenFile>, node: NodeId, path: &Path) -> Result<bool> {
        let found = file.container().node(node)?;
        match &found.error {
            None => {}
            Some(error) if is_other_file_error(error) => {
                self.refuse(path, &error.to_string());
                return Ok(false);
            }
            Some(error) => return Err(error.clone()),
        }
        match &found.kind {
            NodeKind::Group => return Ok(true),
            NodeKind::Array(array) => {
                let is_elsewhere = !Arc::ptr_eq(file, self.member);
                if is_elsewhere && array.datatype.has_pointers() {
                    let why = "it is in another file, and contains variable-length strings or \
                               references";
                    self.refuse(path, why);
                    return Ok(false);
                }
                self.objects.arrays.push(FoundArray {
                    file: Arc::clone(file),
                    node,
                    path: Path::clone(path),
                    array: Arc::clone(array),
                });
            }
            NodeKind::Scalar(scalar) => {
                let scalar = TreeScalar(scalar.clone());
                self.objects.scalars.insert(Path::clone(path), scalar);
            }
            NodeKind::CommittedDatatype(_) => {}
        }
        Ok(false)
    }

    fn refuse(&mut self, path: &Path, why: &str) {
        let refused = (Path::clone(path), why.to_owned());
        self.objects.refusals.push(refused);
    }

    /// Records the object to which a link leads, under the path of the link.
    ///
    /// # Errors
    /// Fails if the target cannot be read now, but may be readable later.
    fn follow(&mut self, link: DeferredLink) -> Result<()> {
        let DeferredLink {
            path,
            target,
            group,
        } = link;
        if self.remaining_links == 0 {
            self.refuse(&path, "the path contains too many links");
            return Ok(());
        }
        let (file, here) = &group.location;
        let followed = file.follow(self.opener, *here, &target).and_then(|found| {
            let Some(found) = found else {
                return Ok(None);
            };
            let is_group = self.add_object(&found.0, found.1, &path)?;
            Ok(Some((found, is_group)))
        });
        let beneath = match followed {
            Ok(Some((found, true))) if !group.is_ancestor(&found) => {
                self.walk_hard_links(found, Path::clone(&path), Some(group))
            }
            // A group that contains itself would be endless.
            Ok(Some(_)) => Ok(()),
            Ok(None) => {
                self.refuse(&path, "a dangling link");
                Ok(())
            }
            Err(error) => Err(error),
        };
        match beneath {
            Err(error) if self.is_temporary(&error) => Err(error),
            Err(error) => {
                self.refuse(&path, &format!("a link that cannot be followed: {error}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Returns whether opening the target of a link may succeed later.
    fn is_temporary(&self, error: &Error) -> bool {
        let is_unwanted = matches!(
            error,
            Error::Io {
                cause: Cause::Cancelled | Cause::OutOfMemory,
                ..
            }
        );
        is_unwanted || self.opener.is_remote() && !is_permanently_omitted(error, self.opener)
    }
}

/// Returns whether an error means that the elements of an object are in another file that cannot be
/// shown, such as a block of an exploded ASDF file. The other file is missing, or not every user
/// may read it.
fn is_other_file_error(error: &Error) -> bool {
    matches!(
        error,
        Error::Io {
            cause: Cause::Missing | Cause::Forbidden,
            ..
        }
    )
}

/// Returns whether a path has more names than [`limits::PATH_LINKS`], so that an object at this
/// path could be listed but not opened.
fn is_too_deep(path: &[u8]) -> bool {
    let slashes = path.iter().filter(|&&byte| byte == b'/');
    slashes.count() >= limits::PATH_LINKS
}

#[cfg(test)]
mod tests {
    use super::is_too_deep;
    use crate::testing::{
        JoinedTest, TestElements, TestFile, days, f64s, i32s, join_files, join_with_link_targets,
    };
    use h5fs_reader::model::datatype::{Charset, Class, StringPadding};
    use h5fs_reader::model::{Datatype, LinkTarget};

    fn file(first: i32) -> TestFile {
        let days_of = f64s(&[f64::from(first), f64::from(first) + 1.0]);
        TestFile::new()
            .with_variable("time", &[("time", 2)], days_of, &days(&[]))
            .with_variable("v", &[("time", 2)], i32s(&[first, first + 1]), &[])
    }

    /// Joins two files: `path` is a link in one and an array in the other.
    fn with_link(path: &str, target: LinkTarget) -> JoinedTest {
        let one = file(0).link(path, target);
        let other = file(2).with_variable(path, &[("time", 2)], i32s(&[8, 9]), &[]);
        join_files(vec![("0.nc", one), ("1.nc", other)])
    }

    #[test]
    fn links_are_followed_within_a_file() {
        let v = file(0).node("v");
        for target in [
            LinkTarget::Hard(v),
            LinkTarget::Soft(b"/v".to_vec()),
            LinkTarget::Soft(b"v".to_vec()),
        ] {
            let shown = with_link("w", target);
            assert_eq!(shown.numbers("w"), [0.0, 1.0, 8.0, 9.0]);
            assert_eq!(shown.numbers("v"), [0.0, 1.0, 2.0, 3.0]);
        }
    }

    #[test]
    fn a_link_to_a_group_shows_its_content() {
        let grouped = |first| file(first).with_variable("g/u", &[("", 1)], i32s(&[first]), &[]);
        let one = grouped(0)
            .link("h", LinkTarget::Soft(b"/g".to_vec()))
            .link("g/root", LinkTarget::Soft(b"/".to_vec()))
            .link("g/again", LinkTarget::Soft(b"/g".to_vec()));
        let other = grouped(2).with_variable("h/u", &[("", 1)], i32s(&[5]), &[]);
        let shown = join_files(vec![("0.nc", one), ("1.nc", other)]);
        assert!(shown.reason("h/u").starts_with("it differs between files"));
        assert_eq!(shown.names(), ["g", "h", "time", "v"]);
    }

    #[test]
    fn a_dangling_link_is_omitted() {
        for target in [
            LinkTarget::Soft(b"/none".to_vec()),
            LinkTarget::Soft(b"/w".to_vec()),
            LinkTarget::UserDefined(100),
            LinkTarget::External {
                file: b"none.h5".to_vec(),
                path: b"/v".to_vec(),
            },
        ] {
            let shown = with_link("w", target);
            assert!(
                shown.reason("w").contains("(0.nc)"),
                "{:?}",
                shown.omissions()
            );
            assert_eq!(shown.numbers("v"), [0.0, 1.0, 2.0, 3.0]);
        }
    }

    /// Checks that an object is omitted if its path has more than `PATH_LINKS` names, because it
    /// could be listed but not opened.
    #[test]
    fn the_number_of_names_in_a_path_is_limited() {
        let path = |names: usize| vec!["g"; names].join("/").into_bytes();
        assert!(!is_too_deep(b""));
        assert!(!is_too_deep(&path(256)));
        assert!(is_too_deep(&path(257)));
    }

    fn external(path: &[u8]) -> LinkTarget {
        LinkTarget::External {
            file: b"other.h5".to_vec(),
            path: path.to_vec(),
        }
    }

    #[test]
    fn a_link_into_another_file_is_followed() {
        let other = file(0)
            .with_variable("x", &[("time", 2)], i32s(&[6, 7]), &[])
            .link("inner", LinkTarget::Soft(b"x".to_vec()));
        let files = vec![
            ("0.nc", file(0).link("w", external(b"/inner"))),
            (
                "1.nc",
                file(2).with_variable("w", &[("time", 2)], i32s(&[8, 9]), &[]),
            ),
        ];
        let shown = join_with_link_targets(files, vec![("other.h5", other)]);
        assert_eq!(shown.numbers("w"), [6.0, 7.0, 8.0, 9.0]);
    }

    /// The texts themselves are in another file than the member.
    #[test]
    fn texts_in_another_file_are_omitted() {
        let (padding, charset) = (StringPadding::NullTerminated, Charset::Utf8);
        let texts = TestElements {
            datatype: Datatype {
                size: 16,
                class: Class::VariableString { padding, charset },
            },
            bytes: vec![0; 32],
        };
        let other = TestFile::new().with_variable("x", &[("time", 2)], texts.clone(), &[]);
        let files = vec![
            ("0.nc", file(0).link("w", external(b"/x"))),
            (
                "1.nc",
                file(2).with_variable("w", &[("time", 2)], texts, &[]),
            ),
        ];
        let shown = join_with_link_targets(files, vec![("other.h5", other)]);
        assert!(shown.reason("w").contains("it is in another file"));
    }
}
