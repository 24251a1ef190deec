//! What stands beneath `.h5fs` in the trees of views, and parts of arrays: lookup, stat, open, listing.

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use nix::errno::Errno;

use crate::error::{Error, Result, if_lasting};
use crate::fs::errno::refusal;
use crate::fs::handle::Listing;
use crate::fs::inode::{self, Tree, What};
use crate::fs::listing::{DOTS, Listed};
use crate::fs::live::Live;
use crate::fs::mirror::{Mirror, Shown};
use crate::fs::trees::{self, Size, Subject, ViewTree};
use crate::fs::{Entry, Filesystem, Ino, Kind, kind_of, name};
use crate::limits;
use crate::memory;
use crate::memory::distinct::keep_first_of_each;
use crate::model::selection::{Selector, split};
use crate::model::{Attribute, Node, NodeId};
use crate::view::View;
use crate::view::attribute_file;
use crate::wire::to_u64;

impl Filesystem {
    /// Gives the roots of the trees, and what stands beside them, their numbers.
    pub(super) fn pin_views(&self, generation: u32, root: NodeId) {
        let pin = |tree, what, name: &[u8]| {
            if inode::is_object(tree, root) {
                let entry = inode::Entry {
                    what,
                    generation,
                    tree,
                    node: root,
                    parent: inode::of_generation(generation, inode::VIEWS),
                    name: name.into(),
                };
                self.inodes
                    .pin(inode::of_node(generation, tree, root), &entry);
            }
        };
        for (number, tree) in trees::all() {
            pin(number, What::Mirror, tree.name);
        }
        if let Some(documents) = ViewTree::documents() {
            pin(documents, What::View, trees::DOCUMENT);
        }
    }

    /// The trees, and what stands beside them, by name.
    pub(super) fn trees(&self, live: &Live) -> Vec<(&'static [u8], Ino)> {
        let root = live.container.root();
        let ino = |number| inode::of_node(live.generation, number, root);
        let roots = trees::all().map(|(number, tree)| (tree.name, number));
        let documents = ViewTree::documents().map(|number| (trees::DOCUMENT, number));
        let trees = roots.chain(documents);
        let trees = trees.filter(|(_, number)| inode::is_object(*number, root));
        trees.map(|(name, number)| (name, ino(number))).collect()
    }

    fn mirror<'a>(
        &'a self,
        live: &'a Arc<Live>,
        number: Tree,
        object: NodeId,
    ) -> Result<Mirror<'a>> {
        Mirror::new(self.space(live), live, number, object).ok_or(Error::NotFound)
    }

    /// Counts a lookup of `name` in a directory of a tree of views.
    pub(super) fn enter_view(
        &self,
        live: &Arc<Live>,
        directory: &inode::Entry,
        name: &[u8],
    ) -> Result<Entry> {
        let mirror = self.mirror(live, directory.tree, directory.node)?;
        let shown = match name {
            [b'@', ..] if mirror.tree.of_attributes => {
                self.attribute(live, mirror.object, name)?;
                attribute_entry(&mirror, name)
            }
            _ => match mirror.find(name) {
                Err(Error::NotFound) if mirror.tree.has_selections() => {
                    return self.enter_selection(live, mirror.number, mirror.object, name);
                }
                found => found?,
            },
        };
        self.enter_shown(live, &shown)
    }

    fn enter_shown(&self, live: &Arc<Live>, shown: &Shown) -> Result<Entry> {
        let ino = self.inodes.enter(shown.ino, &shown.entry);
        match &shown.text {
            Some(text) => Ok(self.stat_view(live, ino, None, to_u64(text.len()), Kind::Symlink)),
            None => {
                let described = self.describe_view(live, ino, &shown.entry);
                // The kernel is not told of it, so that it cannot forget it.
                described.inspect_err(|_| self.forget(ino, 1))
            }
        }
    }

    /// Counts a lookup of `name`, a dataset's with a selector behind it, in the directory of `group`.
    ///
    /// # Errors
    /// `NotFound` where it is no such name, or the dataset has no such part.
    pub(super) fn enter_selection(
        &self,
        live: &Arc<Live>,
        tree: Tree,
        group: NodeId,
        name: &[u8],
    ) -> Result<Entry> {
        if !self.options.views {
            return Err(Error::NotFound);
        }
        let (view, _) = self.selection(live, tree, group, name)?;
        let numbers = match tree {
            inode::SOURCE => inode::SELECTIONS,
            other => other,
        };
        let parent = match tree {
            inode::SOURCE => self.space(live).ino(group),
            other => inode::of_node(live.generation, other, group),
        };
        let entry = inode::Entry {
            what: What::Selection,
            generation: live.generation,
            tree,
            node: group,
            parent,
            name: name.into(),
        };
        let ino = inode::of_link(live.generation, numbers, group, name);
        let ino = self.inodes.enter(ino, &entry);
        let length = view.length().unwrap_or(0);
        Ok(self.stat_view(live, ino, None, length, Kind::File))
    }

    /// The part of a dataset in `group` that `shown` names, and the dataset.
    fn selection(
        &self,
        live: &Arc<Live>,
        tree: Tree,
        group: NodeId,
        shown: &[u8],
    ) -> Result<(Box<dyn View>, Arc<Node>)> {
        if shown.len() > limits::NAME_BYTES {
            return Err(refusal(Errno::ENAMETOOLONG, "name"));
        }
        let mirror = Mirror::new(self.space(live), live, tree, group);
        let named = match &mirror {
            Some(mirror) => mirror.object_name(shown).ok_or(Error::NotFound)?,
            None => shown.to_vec(),
        };
        let directory = self.space(live).directory(group);
        for (dataset, selector) in split(&named) {
            // The names of fields are escaped as names are.
            let selector = name::unescape(selector, false);
            let Some(selector) = selector.and_then(|text| Selector::parse(&text)) else {
                continue;
            };
            let found = match directory.find(dataset) {
                Err(Error::NotFound) => continue,
                found => found?,
            };
            let node = match found.object {
                Some(Ok(node)) => node,
                Some(Err(error)) if error.is_passing() => return Err(error),
                _ => continue,
            };
            match trees::select(live, &node, &selector) {
                Err(Error::NotFound) => {}
                Err(error) => return Err(error),
                Ok(elements) if mirror.is_some() => {
                    return Ok((trees::selected_npy(elements)?, node));
                }
                Ok(elements) => return Ok((elements.content, node)),
            }
        }
        Err(Error::NotFound)
    }

    /// What `stat` tells of what stands in a tree of views, whatever it costs.
    pub(super) fn describe_view(
        &self,
        live: &Arc<Live>,
        ino: Ino,
        entry: &inode::Entry,
    ) -> Result<Entry> {
        let kind = kind_of(entry.what);
        let node = || live.container.node(entry.node);
        match entry.what {
            What::MirrorLink => {
                let length = to_u64(self.mirror_text(live, entry)?.len());
                Ok(self.stat_view(live, ino, None, length, kind))
            }
            What::View => {
                let node = node()?;
                let tree = ViewTree::of_number(entry.tree).ok_or(Error::NotFound)?;
                let (size, is_known) = match tree.size(live, &node)? {
                    Some(Size::Exact(length)) => (length, true),
                    Some(_) => (0, true),
                    None => (0, false),
                };
                let entry = self.stat_view(live, ino, Some(&node), size, kind);
                Ok(entry.kept_if(is_known && !node.is_partial()))
            }
            What::Attribute | What::Selection => {
                // What is wrong with it, opening it will tell; of what may be read then, no size is made up.
                let view = if_lasting(self.open_view(live, entry))?;
                let length = view.as_ref().and_then(|view| view.length()).unwrap_or(0);
                let entry = self.stat_view(live, ino, None, length, kind);
                Ok(entry.kept_if(view.is_some()))
            }
            _ => {
                let node = if_lasting(node())?;
                let entry = self.stat_view(live, ino, node.as_deref(), 0, kind);
                Ok(entry.kept_if(node.is_some()))
            }
        }
    }

    fn stat_view(
        &self,
        live: &Live,
        ino: Ino,
        node: Option<&Node>,
        size: u64,
        kind: Kind,
    ) -> Entry {
        let mut stat = self.bare(live, ino, kind);
        let modified = node.and_then(|node| node.modified);
        stat.modified = modified.map_or(stat.modified, |seconds| (seconds, 0));
        let stored = (kind == Kind::File).then_some(size);
        Entry {
            ino,
            generation: live.generation,
            attributes: stat.sized(size, stored),
            cacheable: live.is_settled(),
        }
    }

    /// The text of a symbolic link in a tree of views.
    ///
    /// # Errors
    /// `ENAMETOOLONG` over 4095 bytes.
    pub(super) fn mirror_text(&self, live: &Arc<Live>, entry: &inode::Entry) -> Result<Vec<u8>> {
        let mirror = self.mirror(live, entry.tree, entry.node)?;
        let text = mirror.find(&entry.name)?.text.ok_or(Error::NotFound)?;
        match text.len() <= limits::SYMLINK_BYTES {
            true => Ok(text),
            false => Err(refusal(Errno::ENAMETOOLONG, "text of a symbolic link")),
        }
    }

    /// Opens a view, an attribute, or a part of an array.
    pub(super) fn open_view(
        &self,
        live: &Arc<Live>,
        entry: &inode::Entry,
    ) -> Result<Box<dyn View>> {
        match entry.what {
            What::Attribute => {
                let attribute = self.attribute(live, entry.node, &entry.name)?;
                let paths = |node| live.index().known_path(node);
                let view = attribute_file::view(&*live.container, &paths, &attribute.content?)?;
                Ok(Box::new(view))
            }
            What::Selection => {
                let (view, _) = self.selection(live, entry.tree, entry.node, &entry.name)?;
                Ok(view)
            }
            _ => {
                let node = live.container.node(entry.node)?;
                let tree = ViewTree::of_number(entry.tree).ok_or(Error::NotFound)?;
                let path = self.viewed_path(live, entry, &node)?;
                tree.open(&Subject {
                    live,
                    node: &node,
                    path,
                    verify: &|node| self.verify(live, node),
                })
            }
        }
    }

    /// Opens a part of an array.
    pub(super) fn open_selection(
        &self,
        live: &Arc<Live>,
        entry: &inode::Entry,
    ) -> Result<Box<dyn View>> {
        let (view, node) = self.selection(live, entry.tree, entry.node, &entry.name)?;
        self.verify(live, node.id)?;
        Ok(view)
    }

    /// The path of the object that a view is of, names as in the file.
    fn viewed_path(&self, live: &Arc<Live>, entry: &inode::Entry, node: &Node) -> Result<Vec<u8>> {
        if node.id == live.container.root() {
            return Ok(b"/".to_vec());
        }
        let group = inode::node_of(live.generation, entry.parent);
        let found = self.mirror(live, entry.tree, group)?.found(&entry.name)?;
        match self.space(live).file_path(&found.entry, node.link_count) {
            Some(path) => Ok(path),
            // A deep one has none; any may lack it that could not be found.
            None if node.link_count > 1 => live.index().check().map(|()| Vec::new()),
            None => Ok(Vec::new()),
        }
    }

    /// The attribute of `node` whose file is shown as `shown`.
    fn attribute(&self, live: &Live, node: NodeId, shown: &[u8]) -> Result<Attribute> {
        let container = &*live.container;
        if let Some(name) = name::unescape(shown, false) {
            let name = name.strip_prefix(b"@").ok_or(Error::NotFound)?;
            return container.attribute(node, name)?.ok_or(Error::NotFound);
        }
        let mut found = None;
        if name::is_cut(shown) {
            container.attributes(node, &mut |attribute| {
                if Mirror::attribute_name(&attribute.name) != shown {
                    return ControlFlow::Continue(());
                }
                found = Some(attribute);
                ControlFlow::Break(())
            })?;
        }
        found.ok_or(Error::NotFound)
    }

    /// Hands the entries of a directory of a tree of views, from `first` on, to `visit`: attributes, then
    /// what is in the group, two places for each of its links.
    ///
    /// Where many links in a row have nothing to show, the answer is one more `.`, which every program passes over:
    /// the listing goes on behind it, while an empty answer would be the end of the directory.
    pub(super) fn list_view(
        &self,
        live: &Arc<Live>,
        (ino, directory): (Ino, &inode::Entry),
        listing: &mut Listing,
        first: u64,
        visit: &mut dyn FnMut(&Listed<'_>, u64) -> bool,
    ) -> Result<()> {
        let mirror = self.mirror(live, directory.tree, directory.node)?;
        let attributes = listing.attributes(first == DOTS, || attribute_names(live, &mirror));
        if attributes.is_passing() {
            self.mark_unsure(ino, listing);
        }
        let count = to_u64(attributes.names.len());
        let mut at = first - DOTS;
        while at < count {
            let name = usize::try_from(at).ok();
            let Some(name) = name.and_then(|at| attributes.names.get(at)) else {
                break;
            };
            at += 1;
            let shown = attribute_entry(&mirror, name);
            if visit(&Listed::View(&shown), at + DOTS) {
                return Ok(());
            }
        }
        let damaged = attributes.damaged.clone();
        let mut is_any = at + DOTS > first;
        let is_of_group = match mirror.is_of_group() {
            Err(_) if is_any => return Ok(()),
            found => found?,
        };
        let started = Instant::now();
        loop {
            if started.elapsed() > limits::LISTING_TIME {
                if !is_any {
                    visit(&Listed::Fixed { name: b".", ino }, at + DOTS);
                }
                return Ok(());
            }
            live.effort.renew();
            let (position, form) = ((at - count) / 2, (at - count) % 2);
            let fetched = match is_of_group {
                true => self.fetch(live, mirror.object, &mut listing.cursor, position),
                false => Ok(None),
            };
            let (link, behind) = match fetched {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(_) if is_any => return Ok(()),
                Err(error) => return Err(error),
            };
            let found = self.space(live).directory(mirror.object).show(link);
            let forms = mirror.forms(&found).unwrap_or_else(|_| {
                self.mark_unsure(ino, listing);
                vec![mirror.unread(&found)]
            });
            let ahead = forms.len();
            for (place, shown) in forms.iter().enumerate().skip(usize::from(form > 0)) {
                at = match place + 1 < ahead {
                    true => at + 1,
                    false => count + 2 * behind,
                };
                if visit(&Listed::View(shown), at + DOTS) {
                    return Ok(());
                }
                is_any = true;
            }
            at = count + 2 * behind;
        }
        // What came before it is handed out first; the next call comes back here.
        match damaged {
            Some(error) if at + DOTS == first => Err(error),
            _ => Ok(()),
        }
    }

    /// Counts and describes an entry of such a listing; `None` for what is costly.
    pub(super) fn enter_listed(&self, live: &Arc<Live>, shown: &Shown) -> Option<Entry> {
        match shown.entry.what {
            What::Attribute | What::Unread => None,
            _ => self.enter_shown(live, shown).ok(),
        }
    }
}

/// What is known of a directory's attributes.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    /// The names of their files.
    names: Vec<Vec<u8>>,
    bytes: u64,
    /// Why there may be more.
    damaged: Option<Error>,
}

impl Attributes {
    /// Bytes of memory that they take.
    pub(super) fn own_bytes(&self) -> u64 {
        self.bytes
    }

    fn measured(self) -> Self {
        let list = memory::piece(size_of_val(&*self.names));
        let names = self.names.iter();
        let names = names.map(|name| memory::piece(name.capacity()));
        let bytes = names.fold(list, u64::saturating_add);
        Attributes { bytes, ..self }
    }

    /// Whether more of them may be found the next time.
    pub(super) fn is_passing(&self) -> bool {
        self.damaged.as_ref().is_some_and(Error::is_passing)
    }
}

fn attribute_names(live: &Live, mirror: &Mirror<'_>) -> Attributes {
    let mut found = Attributes::default();
    if mirror.tree.of_attributes {
        let names = &mut found.names;
        let listed = live.container.attributes(mirror.object, &mut |attribute| {
            names.push(Mirror::attribute_name(&attribute.name));
            ControlFlow::Continue(())
        });
        keep_first_of_each(names, |name| name);
        found.damaged = listed.err();
    }
    found.measured()
}

fn attribute_entry(mirror: &Mirror<'_>, shown: &[u8]) -> Shown {
    Shown {
        ino: mirror.link_number(shown),
        entry: mirror.entry(What::Attribute, mirror.object, shown.to_vec()),
        text: None,
    }
}
