//! Writing groups of an NDL document, and the objects that their links lead to.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::ndl::ndl_type;
use h5fs_reader::model::{Array, Link, LinkStream, LinkTarget, Node, NodeId, NodeKind};
use h5fs_reader::wire::to_u64;

use crate::documents::ndl::dimensions;
use crate::documents::ndl::document::{NdlDocument, join_path, split_path};
use crate::documents::ndl::lines::comment_text as text;
use crate::documents::ndl::progress::{
    ArraySection, AttributeQueue, MemberNames, SortedMembers, WriteStep,
};
use crate::limits;

impl NdlDocument<'_> {
    pub(super) fn write_described_object(&mut self, node: NodeId) -> Result<()> {
        let found = self.source.container.node(node);
        let found = found.inspect_err(|_| self.progress.steps.push(WriteStep::Begin))?;
        match &found.kind {
            NodeKind::Group => {
                self.begin();
                self.progress.visited.insert(node);
                self.progress.path = self.top_path.to_vec();
                self.begin_group(node);
            }
            NodeKind::Array(array) => {
                self.begin();
                self.write_single_array(node, array);
            }
            NodeKind::CommittedDatatype(_) | NodeKind::Scalar(_) => {
                return Err(Error::NotFound);
            }
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.lines.begin();
        self.push_step(WriteStep::End);
        self.push_step(WriteStep::NeededElsewhere);
    }

    /// Writes the described object, an array, as a member of its group.
    fn write_single_array(&mut self, node: NodeId, array: &Array) {
        let (group, name) = split_path(self.top_path);
        self.lines.open_map(group);
        self.progress.path = group.to_vec();
        let member = MemberNames::from_iter([(name.to_vec(), node)]);
        self.push_step(WriteStep::Close);
        let is_coordinate = dimensions::is_coordinate(&*self.source.container, node, array);
        if self.value_or_report(name, is_coordinate) {
            self.push_step(WriteStep::Arrays(ArraySection::coordinates(member)));
        } else {
            self.push_step(WriteStep::NeededInGroup);
            self.push_step(WriteStep::Arrays(ArraySection::arrays(member)));
        }
    }

    /// Writes the group with the index `next` in `list`, if the document does not contain the group
    /// yet. `above` is the length of the parent's path in bytes.
    pub(super) fn write_next_group(&mut self, above: usize, list: MemberNames, next: usize) {
        let Some((name, node)) = list.get(next) else {
            return;
        };
        self.progress.names -= name.len();
        let is_new = self.progress.visited.insert(node);
        if is_new {
            self.progress.path.truncate(above);
            self.progress.path = join_path(&self.progress.path, name);
        }
        self.push_step(WriteStep::Groups {
            above,
            list,
            next: next + 1,
        });
        if is_new {
            self.begin_group(node);
        }
    }

    /// Begins the group at the current path. Its subgroups are written after its other members.
    fn begin_group(&mut self, group: NodeId) {
        self.lines.open_map(&self.progress.path);
        self.progress.is_empty = true;
        self.progress.object.clone_from(&self.progress.path);
        match self.source.container.links(group) {
            Ok(links) => self.push_step(WriteStep::Links {
                group,
                links,
                found: SortedMembers::default(),
            }),
            Err(error) => {
                self.report_unreadable_part(b".", &error);
                self.write_members(group, SortedMembers::default());
            }
        }
    }

    /// Sorts the members of a group by their kind in NDL, until the output is full or all links
    /// were read. Links that NDL cannot express become comments.
    pub(super) fn sort_links(
        &mut self,
        group: NodeId,
        mut links: Box<dyn LinkStream>,
        mut found: SortedMembers,
    ) -> Result<()> {
        while !self.is_full() {
            match links.next() {
                Ok(Some(link)) => {
                    self.sort_member(link, &mut found)?;
                    continue;
                }
                Ok(None) => {}
                Err(error) => self.report_unreadable_part(b".", &error),
            }
            self.write_members(group, found);
            return Ok(());
        }
        self.push_step(WriteStep::Links {
            group,
            links,
            found,
        });
        Ok(())
    }

    /// Schedules the steps that write the members in `found`, which belong to the current group.
    fn write_members(&mut self, group: NodeId, found: SortedMembers) {
        let gone = [&found.texts, &found.coordinates, &found.arrays];
        let gone = gone.into_iter().map(|list| list.names.len()).sum();
        self.push_step(WriteStep::Groups {
            above: self.progress.path.len(),
            list: found.groups.shrink_capacity(),
            next: 0,
        });
        self.push_step(WriteStep::GroupEnd(gone));
        self.push_step(WriteStep::Arrays(ArraySection::arrays(
            found.arrays.shrink_capacity(),
        )));
        let coordinates = found.coordinates.shrink_capacity();
        self.push_step(WriteStep::Arrays(ArraySection::coordinates(coordinates)));
        let texts = found.texts.shrink_capacity();
        self.push_step(WriteStep::Attributes(AttributeQueue::new(group, texts)));
    }

    fn sort_member(&mut self, link: Link, found: &mut SortedMembers) -> Result<()> {
        let name = link.name;
        let node = match link.target {
            LinkTarget::Hard(node) => node,
            other => {
                self.comment_on_link(&name, &other);
                return Ok(());
            }
        };
        let path = join_path(&self.progress.path, &name);
        let object = match self.source.container.node(node) {
            Ok(object) => object,
            Err(error) => {
                self.report_unreadable(&name, &error);
                return Ok(());
            }
        };
        let elsewhere = self.canonical_path_elsewhere(&object, &path);
        if let Some(elsewhere) = self.value_or_report(&name, elsewhere) {
            let comment = format!("{}: also {}", text(&name), text(&elsewhere));
            self.lines.write_comment(&comment);
            return Ok(());
        }
        self.progress.entries += 1;
        if self.progress.entries > limits::NDL_LINKS || path.len() > limits::NDL_PATH_BYTES {
            let most = to_u64(limits::NDL_LINKS);
            return Err(Error::limit("objects of a document", most));
        }
        let list = match &object.kind {
            NodeKind::Group => &mut found.groups,
            NodeKind::Scalar(_) => &mut found.texts,
            NodeKind::Array(array) => {
                let is_coordinate = dimensions::is_coordinate(&*self.source.container, node, array);
                if self.value_or_report(&name, is_coordinate) {
                    &mut found.coordinates
                } else {
                    &mut found.arrays
                }
            }
            NodeKind::CommittedDatatype(datatype) => {
                let comment = format!("{}: datatype {}", text(&name), ndl_type(datatype));
                self.lines.write_comment(&comment);
                return Ok(());
            }
        };
        self.progress.names += name.len();
        Error::check_limit(
            self.progress.names,
            limits::NDL_NAMES,
            "names of a document's objects",
        )?;
        list.push(&name, node);
        Ok(())
    }

    /// Returns the canonical path of the object, if the document describes the object there and not
    /// at `path`. For an object without a canonical path that was already described at an earlier
    /// link, returns the word `above`. Returns `None` if the object must be described at `path`.
    fn canonical_path_elsewhere(&mut self, node: &Node, path: &[u8]) -> Result<Option<Vec<u8>>> {
        let visited = &mut self.progress.visited;
        if node.link_count <= 1 && !visited.contains(&node.id) {
            return Ok(None);
        }
        Ok(match (self.source.paths)(node.id)? {
            Some(own) if own == path => None,
            Some(own) => Some(own),
            None if matches!(node.kind, NodeKind::Group) => {
                let known = visited.contains(&node.id);
                known.then(|| b"above".to_vec())
            }
            None => (!visited.insert(node.id)).then(|| b"above".to_vec()),
        })
    }

    fn comment_on_link(&mut self, name: &[u8], target: &LinkTarget) {
        let leads = match target {
            LinkTarget::Hard(_) => return,
            LinkTarget::Soft(path) => format!("soft link to {}", text(path)),
            LinkTarget::External { file, path } => {
                format!("external link to {} in {}", text(path), text(file))
            }
            LinkTarget::Alias(_) | LinkTarget::Reference { .. } => {
                let names = match self.source.container.alias_path(target) {
                    Ok(names) => names,
                    Err(error) => return self.report_unreadable(name, &error),
                };
                let path = names
                    .iter()
                    .flat_map(|name| [b"/", name.as_slice()].concat());
                let path = text(&path.collect::<Vec<u8>>());
                match target.other_file_name() {
                    Some(file) => format!("reference to {path} in {}", text(file)),
                    None => format!("the same as {path}"),
                }
            }
            LinkTarget::UserDefined(class) => format!("user-defined link of class {class}"),
            LinkTarget::Damaged(error) => return self.report_unreadable(name, error),
        };
        self.lines
            .write_comment(&format!("{}: {leads}", text(name)));
    }
}
