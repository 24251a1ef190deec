//! Relative URLs from the page about an object to other files of the mount.
//!
//! A browser resolves references relative to the directory of the path by which it opened the page.
//! So every URL is relative, and leads to a file without passing a symbolic link.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use h5fs_reader::error::Result;
use h5fs_reader::model::{Link, LinkTarget, Node, NodeId, NodeKind};
use h5fs_view::documents::html::markup::Url;
use h5fs_view::documents::html::page_site::{
    Breadcrumb, LinkedMember, MemberTarget, NamedObject, PageLinks, PictureFiles, SiblingFile,
};
use h5fs_view::pictures::frames::PictureStack;

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;
use crate::limits;
use crate::name;
use crate::names::link_resolution::resolve_link_target;
use crate::names::namespace::Namespace;
use crate::names::symlink;
use crate::nodes::object::{self, StoredSize};
use crate::state::inode::NodeType;
use crate::views::trees::view_tree::{FileSize, ViewForm, ViewTree};
use crate::views::trees::{TREES, tree_named};

/// A path as shown names, from the root of a mount or of a tree.
type ShownNames = Vec<Box<[u8]>>;

/// Name of the tree of pages.
const PAGES: &[u8] = b"html";

/// Name of the tree of tables as comma-separated values.
const TABLES: &[u8] = b"csv";

/// Names of the trees in which a group has a file if it is a table.
const TABLE_TREES: [&[u8]; 4] = [TABLES, b"cf", b"parquet", b"fits"];

/// Name of the tree of pictures.
const PICTURES: &[u8] = b"png";

/// The location of the page about an object, from which it links to other files.
pub(crate) struct HtmlPageLocation<'a> {
    mount: &'a Mount,
    file: &'a Arc<FileState>,
    node: &'a Node,
    /// The group and the shown name by which the object was found.
    location: Option<(NodeId, Box<[u8]>)>,
    names: OnceCell<Option<ShownNames>>,
    /// Path of the directory of the page, if `node` is shown on the page about another object.
    /// `None` if the page is about `node` itself.
    directory: Option<ShownNames>,
    /// Number of links into other files that the page may still follow.
    remaining_other_links: Cell<u64>,
}

impl<'a> HtmlPageLocation<'a> {
    /// Creates the location of the page about `node`. `met` is the group and the name by which the
    /// node was found.
    pub(crate) fn new(
        mount: &'a Mount,
        file: &'a Arc<FileState>,
        node: &'a Node,
        met: Option<(NodeId, &[u8])>,
    ) -> Self {
        HtmlPageLocation {
            mount,
            file,
            node,
            location: met.map(|(group, name)| (group, name.into())),
            names: OnceCell::new(),
            directory: None,
            remaining_other_links: Cell::new(limits::HTML_OTHER_LINKS),
        }
    }

    fn namespace(&self) -> Namespace<'a> {
        self.mount.namespace(self.file)
    }

    /// Returns the path of the object from the root of its file.
    fn names(&self) -> Option<&[Box<[u8]>]> {
        let names = self.names.get_or_init(|| {
            let (space, id) = (self.namespace(), self.node.id);
            if matches!(self.node.kind, NodeKind::Group) {
                return space.path(id);
            }
            let several = self.node.link_count > 1;
            let (group, name) = match several.then(|| space.indexed_parent_and_name(id)).flatten() {
                Some(home) => home,
                None => self.location.clone()?,
            };
            let mut names = space.path(group)?;
            names.push(name);
            Some(names)
        });
        names.as_deref()
    }

    /// Returns the path of the directory of the page from the root of the mount.
    fn directory(&self) -> Option<ShownNames> {
        if self.directory.is_some() {
            return self.directory.clone();
        }
        let tree = tree_named(PAGES)?;
        let names = self.names()?;
        let above = names.split_last().map_or(&[][..], |(_, above)| above);
        let mut directory =
            self.tree_path(self.mount.other_files.file_location_path(self.file), tree);
        directory.extend(directory_names(tree, above));
        Some(directory)
    }

    /// Returns the path of the root of `tree` in the file whose directory has the path `way`. Both
    /// paths start at the root of the mount.
    fn tree_path(&self, mut way: ShownNames, tree: &ViewTree) -> ShownNames {
        way.extend([name::VIEWS, tree.name].map(Into::into));
        way
    }

    /// Returns the relative URL from the page to the entry with the path `names` from the root of
    /// the mount.
    fn url(&self, names: &[Box<[u8]>]) -> Option<Url> {
        let path = symlink::relative_link_text(&self.directory()?, names);
        symlink::check_length(Some(path))
            .ok()
            .map(|path| Url::from_path(&path))
    }

    /// Returns the relative URL of a view of an object. The object has the path `names` in the file
    /// at `way`. The view has the form `form` of `tree`, and shows the part that `selector`
    /// selects.
    fn view_url(
        &self,
        way: ShownNames,
        tree: &ViewTree,
        form: &ViewForm,
        names: &[Box<[u8]>],
        selector: &str,
    ) -> Option<Url> {
        self.url(&self.view_path(way, tree, form, names, selector)?)
    }

    /// Returns the path of the view that [`view_url`](Self::view_url) links to, from the root of
    /// the mount.
    fn view_path(
        &self,
        way: ShownNames,
        tree: &ViewTree,
        form: &ViewForm,
        names: &[Box<[u8]>],
        selector: &str,
    ) -> Option<ShownNames> {
        let mut way = self.tree_path(way, tree);
        let shown = match names.split_last() {
            None => [tree.root_name?, selector.as_bytes(), form.suffix].concat(),
            Some((last, groups)) => {
                way.extend(directory_names(tree, groups));
                let shown = tree.file_name(form, last, groups.is_empty());
                let stem = shown.strip_suffix(form.suffix)?;
                [stem, selector.as_bytes(), form.suffix].concat()
            }
        };
        name::check_name_length(&shown).ok()?;
        way.push(shown.into());
        Some(way)
    }

    /// Returns the relative URL of the page about the object with the path `names` in the file at
    /// `way`.
    fn page_url(&self, way: ShownNames, names: &[Box<[u8]>]) -> Option<Url> {
        let tree = tree_named(PAGES)?;
        self.view_url(way, tree, tree.forms.first()?, names, "")
    }

    /// Returns the relative URL of the page about another object, which has the path `names` in the
    /// same data file.
    fn page_url_in_file(&self, names: &[Box<[u8]>]) -> Option<Url> {
        self.page_url(self.mount.other_files.file_location_path(self.file), names)
    }

    /// Returns the relative URL of the view, in the tree called `tree`, of the part of the object
    /// that `selector` selects. Returns `None` if the object has no file in that tree, or if its
    /// path is unknown or too long.
    fn part_url(&self, tree: &[u8], selector: &str) -> Option<Url> {
        let tree = tree_named(tree)?;
        let form = tree.forms.first()?;
        let is_there = form.size(self.file, self.node).ok()?.is_some();
        let way = self.mount.other_files.file_location_path(self.file);
        let names = self.names().filter(|_| is_there)?;
        self.view_url(way, tree, form, names, selector)
    }

    /// Returns the pictures of the object as the tree of PNG files shows them. Returns `None` if
    /// the object is not an image stack.
    fn picture_stack(&self) -> Option<PictureStack> {
        let form = tree_named(PICTURES)?.forms.first()?;
        PictureStack::from_node(&*self.file.container, self.node, form.suffix).ok()?
    }

    /// Returns the relative URL of the page about the target of a link other than a hard link.
    /// Returns `None` if the link leads nowhere, or leads into another file when the limit of such
    /// links is reached.
    fn link_target_page_url(&self, group: NodeId, target: &LinkTarget) -> Option<Url> {
        if target.other_file_name().is_some() {
            let left = self.remaining_other_links.get().checked_sub(1)?;
            self.remaining_other_links.set(left);
        }
        let others = &self.mount.other_files;
        let place = resolve_link_target(self.mount, self.file, group, target).ok()??;
        let space = self.mount.namespace(&place.file);
        let names = match place.node.kind {
            NodeKind::Group => space.path(place.node.id)?,
            _ => {
                let (group, name) = place.link?;
                let mut names = space.path(group)?;
                names.push(name::escape(&name, group == space.root()).into());
                names
            }
        };
        self.page_url(others.file_location_path(&place.file), &names)
    }
}

impl PageLinks for HtmlPageLocation<'_> {
    fn source_name(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt;
        let path = &self.file.origin.path;
        path.file_name().unwrap_or_default().as_bytes().to_vec()
    }

    fn breadcrumbs(&self) -> Option<Vec<Breadcrumb>> {
        let names = self.names()?;
        let step = |length: usize| {
            let shown = names[..length].last().map_or(&b""[..], |name| name);
            let name = match shown {
                b"" => None,
                shown => name::unescape(shown, length == 1),
            };
            Breadcrumb {
                name: name.unwrap_or_else(|| shown.to_vec()),
                url: self.page_url_in_file(&names[..length]),
            }
        };
        let first = (names.len() + 1).saturating_sub(limits::HTML_TRAIL);
        Some((first..=names.len()).map(step).collect())
    }

    fn sibling_files(&self, with_table: bool) -> Result<Vec<SiblingFile>> {
        let Some(names) = self.names() else {
            return Ok(Vec::new());
        };
        let way = || self.mount.other_files.file_location_path(self.file);
        let own = [way(), names.to_vec()].concat();
        let own = self.url(&own).map(|url| SiblingFile {
            tree: b"",
            suffix: b"",
            url,
            path: own.join(&b'/'),
            bytes: object::measure(self.file, self.node, false)
                .ok()
                .map(|(size, _)| size)
                .filter(|size| *size > 0),
        });
        let mut files: Vec<SiblingFile> = own.into_iter().collect();
        let trees = TREES.iter().filter(|tree| tree.name != PAGES);
        for tree in trees.filter(|tree| with_table || !TABLE_TREES.contains(&tree.name)) {
            for form in tree.forms {
                let Some(size) = form.shown_size(self.file, self.node)? else {
                    continue;
                };
                let Some(path) = self.view_path(way(), tree, form, names, "") else {
                    continue;
                };
                files.extend(self.url(&path).map(|url| SiblingFile {
                    tree: tree.name,
                    suffix: form.suffix,
                    url,
                    path: path.join(&b'/'),
                    bytes: match size {
                        FileSize::Exact(bytes) => Some(bytes),
                        FileSize::Counted => None,
                    },
                }));
            }
        }
        Ok(files)
    }

    fn is_root(&self) -> bool {
        let is_mount = self
            .mount
            .other_files
            .file_location_path(self.file)
            .is_empty();
        is_mount && self.names().is_some_and(<[_]>::is_empty)
    }

    fn attribute_url(&self, name: &[u8]) -> Option<Url> {
        let tree = tree_named(b"attrs")?;
        let mut way = self.tree_path(self.mount.other_files.file_location_path(self.file), tree);
        way.extend(directory_names(tree, self.names()?));
        way.push(name::escape(&[b"@", name].concat(), false).into());
        self.url(&way)
    }

    fn part_table_url(&self, selector: &str) -> Option<Url> {
        self.part_url(TABLES, selector)
    }

    fn npy_url(&self, as_meant: bool) -> Option<Url> {
        let files = as_meant.then_some(&b"cf"[..]).into_iter();
        let mut files = files.chain([&b"npy"[..]]);
        files.find_map(|tree| self.part_url(tree, ""))
    }

    fn npy_url_of(&self, node: NodeId, as_meant: bool) -> Option<Url> {
        let (group, name) = self.namespace().indexed_parent_and_name(node)?;
        let node = self.file.container.node(node).ok()?;
        let site = HtmlPageLocation {
            directory: self.directory(),
            ..HtmlPageLocation::new(self.mount, self.file, &node, Some((group, &name)))
        };
        site.npy_url(as_meant)
    }

    fn script_url(&self) -> Option<Url> {
        if !self.mount.options.scripts {
            return None;
        }
        let tree = tree_named(PAGES)?;
        let way = self.mount.other_files.file_location_path(self.file);
        let names = self.tree_path(way, tree);
        Some(self.url(&names)?.with_trailing_slash())
    }

    fn state_tag(&self) -> Option<String> {
        self.file.state_tag()
    }

    fn members_url(&self, first: u64) -> Option<Url> {
        let selector = match first {
            0 => String::new(),
            first => format!("[{first}:{}]", first.saturating_add(limits::HTML_ROWS)),
        };
        self.part_url(PAGES, &selector)
    }

    fn picture_files(&self) -> PictureFiles {
        if object::content_fault(self.file, self.node).is_some() {
            return PictureFiles::None;
        }
        match (self.part_url(PICTURES, ""), self.picture_stack()) {
            (Some(url), _) => PictureFiles::One(url),
            (None, Some(frames)) => PictureFiles::Stack(frames.count),
            (None, None) => PictureFiles::None,
        }
    }

    fn frame_url(&self, number: u64) -> Option<Url> {
        let tree = tree_named(PICTURES)?;
        let mut way = self.tree_path(self.mount.other_files.file_location_path(self.file), tree);
        way.extend(directory_names(tree, self.names()?));
        way.push(self.picture_stack()?.name(number).into());
        self.url(&way)
    }

    fn drawn_picture_url(&self, number: Option<u64>) -> Option<Url> {
        let tree = tree_named(PAGES)?;
        let form = tree.forms.iter().find(|form| form.suffix == b".png")?;
        let selector = match number {
            Some(number) => String::from_utf8(self.picture_stack()?.selector(number)).ok()?,
            None => String::new(),
        };
        let way = self.mount.other_files.file_location_path(self.file);
        self.view_url(way, tree, form, self.names()?, &selector)
    }

    fn linked_member(&self, group: NodeId, link: &Link) -> LinkedMember {
        let directory = self.namespace().directory(group);
        let found = directory.link_entry(link.clone());
        let is_here = matches!(found.inode.node_type, NodeType::Group | NodeType::Object);
        let page = || {
            let mut names = directory.path().filter(|_| is_here)?.to_vec();
            names.push(found.inode.name.clone());
            self.page_url_in_file(&names)
        };
        let (target, page) = match (&found.object, &found.target) {
            (Some(Ok(node)), _) if is_here => (MemberTarget::Object(Arc::clone(node)), page()),
            (Some(Err(error)), _) | (_, LinkTarget::Damaged(error)) => {
                (MemberTarget::Unreadable(error.clone()), page())
            }
            (_, LinkTarget::Soft(path)) => (
                MemberTarget::Elsewhere(path.clone()),
                self.link_target_page_url(group, &found.target),
            ),
            (_, LinkTarget::External { file, path }) => {
                let text = [file, &b":"[..], path].concat();
                (
                    MemberTarget::Elsewhere(text),
                    self.link_target_page_url(group, &found.target),
                )
            }
            (_, LinkTarget::Hard(node)) => {
                let names = self.namespace().path(*node);
                let page = names.and_then(|names| self.page_url_in_file(&names));
                let text = directory.link_text(&found.target);
                (
                    text.map_or_else(MemberTarget::Unreadable, MemberTarget::Elsewhere),
                    page,
                )
            }
            (_, target) => {
                let text = directory.link_text(target);
                let page = self.link_target_page_url(group, target);
                (
                    text.map_or_else(MemberTarget::Unreadable, MemberTarget::Elsewhere),
                    page,
                )
            }
        };
        LinkedMember { target, page }
    }

    fn link_target(&self, group: NodeId, link: &Link) -> Result<Option<NamedObject>> {
        match &link.target {
            LinkTarget::Hard(node) => Ok(Some(NamedObject {
                node: *node,
                group,
                name: link.name.clone(),
            })),
            LinkTarget::Damaged(error) => Err(error.clone()),
            target if target.other_file_name().is_some() => Ok(None),
            target => {
                let found = resolve_link_target(self.mount, self.file, group, target)?;
                let found = found.filter(|found| Arc::ptr_eq(&found.file, self.file));
                Ok(found.and_then(|found| {
                    let (group, name) = found.link?;
                    Some(NamedObject {
                        node: found.node.id,
                        group,
                        name,
                    })
                }))
            }
        }
    }

    fn object_page_url(&self, node: NodeId) -> Option<Url> {
        let space = self.namespace();
        if matches!(self.file.container.node(node).ok()?.kind, NodeKind::Group) {
            return self.page_url_in_file(&space.path(node)?);
        }
        let (group, name) = space.indexed_parent_and_name(node)?;
        let mut names = space.path(group)?;
        names.push(name);
        self.page_url_in_file(&names)
    }

    fn for_object<'s>(&'s self, node: &'s Node, place: &NamedObject) -> Box<dyn PageLinks + 's> {
        let is_root = place.group == self.namespace().root();
        let name = name::escape(&place.name, is_root);
        Box::new(HtmlPageLocation {
            directory: self.directory(),
            ..HtmlPageLocation::new(self.mount, self.file, node, Some((place.group, &name)))
        })
    }

    fn stored_bytes(&self, node: &Node) -> Option<u64> {
        match object::measure(self.file, node, false) {
            Ok((_, StoredSize::Known(stored))) => Some(stored.unwrap_or(0)),
            _ => None,
        }
    }
}

/// Converts `names`, a path of directories in the file's own tree, to the names that `tree` shows.
fn directory_names(tree: &ViewTree, names: &[Box<[u8]>]) -> impl Iterator<Item = Box<[u8]>> {
    names.iter().map(|name| tree.directory_name(name).into())
}
