//! The members of a group and of its subgroups, up to the limits of a page.

use std::collections::VecDeque;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::link_order;
use h5fs_reader::model::ndl::ndl_type;
use h5fs_reader::model::{Link, Node, NodeId, NodeKind};
use h5fs_reader::wire::to_u64;

use crate::documents::attributes::shape_text;
use crate::documents::html::markup::Html;
use crate::documents::html::object::PageObject;
use crate::documents::html::page_draft::{PageDraft, format_size};
use crate::documents::html::page_site::{LinkedMember, MemberTarget};
use crate::documents::html::summary;
use crate::limits;

/// Maximum number of members of a subgroup on the page of another group.
const MAX_SUBMEMBERS: u64 = 20;

/// Maximum depth of nested groups on one page.
const MAX_LEVELS: u32 = 6;

/// A member in the list of a page, and those of its own members that the page shows below it.
struct MemberRow {
    name: Vec<u8>,
    member: LinkedMember,
    submembers: ListedMembers,
}

/// The members of one group that a page shows.
#[derive(Default)]
struct ListedMembers {
    /// The indices of the members in `PageMembers::rows`.
    rows: Vec<usize>,
    has_more: bool,
    /// Whether the members are in the order of the file's index, because there are too many to
    /// sort.
    is_unsorted: bool,
    error: Option<Error>,
}

/// The members that the page of a group shows: its own members, and members of its subgroups.
#[derive(Default)]
pub(super) struct PageMembers {
    rows: Vec<MemberRow>,
    own: ListedMembers,
}

impl PageMembers {
    /// Collects the members of the object if it is a group: first its own, then those of its
    /// subgroups, level by level, up to the limit of a page.
    pub(super) fn collect(object: &PageObject<'_>) -> Self {
        match object.node.kind {
            NodeKind::Group => {
                let mut rows = Vec::new();
                let own = collect_members(object, &mut rows);
                PageMembers { rows, own }
            }
            _ => PageMembers::default(),
        }
    }

    /// Returns whether the group has more members than one page shows.
    pub(super) fn has_more_pages(&self, object: &PageObject<'_>) -> bool {
        self.own.has_more || object.first_member > 0
    }

    /// Writes the list of members.
    pub(super) fn write(&self, object: &PageObject<'_>, draft: &mut PageDraft) {
        let own = &self.own;
        if own.rows.is_empty() && own.error.is_none() && object.first_member == 0 {
            draft.body.markup("<p class=\"note\">an empty group</p>\n");
            return;
        }
        write_list(object, &self.rows, own, draft);
        write_pager(object, own, &mut draft.body);
    }
}

fn collect_members(object: &PageObject<'_>, rows: &mut Vec<MemberRow>) -> ListedMembers {
    let group = object.node.id;
    let mut sorted = limits::ORDERED_MEMBERS;
    let from = (group, object.first_member, limits::HTML_ROWS);
    let own = append_members(object, from, &mut sorted, rows);
    let below = |rows: &[usize], level| rows.iter().map(move |&row| (row, level)).collect();
    let mut groups: VecDeque<(usize, u32)> = below(&own.rows, 1);
    while let Some((number, level)) = groups.pop_front() {
        let room = limits::HTML_ROWS.saturating_sub(to_u64(rows.len()));
        let Some(group) = rows.get(number).and_then(|row| group_node(&row.member)) else {
            continue;
        };
        if room == 0 || level == MAX_LEVELS {
            rows[number].submembers.has_more = true;
            continue;
        }
        let inner = append_members(
            object,
            (group, 0, room.min(MAX_SUBMEMBERS)),
            &mut sorted,
            rows,
        );
        groups.append(&mut below(&inner.rows, level + 1));
        rows[number].submembers = inner;
    }
    own
}

/// Returns the node of a member if it is a group; `None` for any other member.
fn group_node(member: &LinkedMember) -> Option<NodeId> {
    match &member.target {
        MemberTarget::Object(node) if matches!(node.kind, NodeKind::Group) => Some(node.id),
        _ => None,
    }
}

/// Appends at most `most` members of `group` to `rows`, starting with member number `first`.
/// `sorted` is the number of members that may still be sorted for this page. Returns the appended
/// members, with the error that ended the list.
fn append_members(
    object: &PageObject<'_>,
    (group, first, most): (NodeId, u64, u64),
    sorted: &mut u64,
    rows: &mut Vec<MemberRow>,
) -> ListedMembers {
    let mut listed = ListedMembers::default();
    let mut is_unsorted = false;
    let mut visit = |link: Option<Link>| match link {
        Some(_) if to_u64(listed.rows.len()) == most => {
            listed.has_more = true;
            false
        }
        Some(link) => {
            listed.rows.push(rows.len());
            rows.push(MemberRow {
                member: object.site.linked_member(group, &link),
                name: link.name,
                submembers: ListedMembers::default(),
            });
            true
        }
        None => false,
    };
    let mut visited = || -> Result<()> {
        let ordered = link_order::links_in_display_order(&**object.container, group, sorted)?;
        is_unsorted = !ordered.is_ordered;
        let mut links = ordered.links;
        links.seek(first)?;
        while visit(links.next()?) {}
        Ok(())
    };
    listed.error = visited().err();
    listed.is_unsorted = is_unsorted;
    listed
}

fn write_list(
    object: &PageObject<'_>,
    rows: &[MemberRow],
    listed: &ListedMembers,
    draft: &mut PageDraft,
) {
    draft.body.markup("<ul>\n");
    for row in listed.rows.iter().filter_map(|&number| rows.get(number)) {
        draft.body.markup("<li>");
        write_row(object, row, draft);
        if !row.submembers.rows.is_empty() || row.submembers.error.is_some() {
            write_list(object, rows, &row.submembers, draft);
        }
        if row.submembers.has_more
            && let Some(page) = &row.member.page
        {
            draft.body.markup("<p class=\"more\">").link(page, "more …");
            draft.body.markup("</p>");
        }
        draft.body.markup("</li>\n");
    }
    draft.body.markup("</ul>\n");
    if let Some(error) = &listed.error {
        draft.write_error(error);
    }
}

fn write_row(object: &PageObject<'_>, row: &MemberRow, draft: &mut PageDraft) {
    let html = &mut draft.body;
    html.markup("<div class=\"row\"><span class=\"name\">");
    match &row.member.page {
        Some(page) => html.link(page, &row.name),
        None => html.text(&row.name),
    };
    match &row.member.target {
        MemberTarget::Object(node) => {
            if matches!(node.kind, NodeKind::Group) {
                html.markup("/");
            }
            match summary::kind_label(object, node) {
                Ok(Some(label)) => drop(html.markup(" <small>").text(label).markup("</small>")),
                Ok(None) => {}
                // The object's own page reports the error.
                Err(error) => draft.is_partial |= error.is_transient(),
            }
            html.markup("</span>");
            let value = node
                .array()
                .map(|array| summary::single_value(object, array));
            let (value, unread) = match value.unwrap_or(Ok(None)) {
                Ok(value) => (value, None),
                Err(error) => (None, Some(error)),
            };
            write_summary(object, node, value, html);
            html.markup("</div>");
            if let Some(error) = &node.error {
                draft.write_error(error);
            } else if let Some(Err(error)) = node.array().map(|array| &array.storage) {
                draft.write_error(error);
            } else if let Some(error) = &unread {
                draft.write_error(error);
            }
        }
        MemberTarget::Elsewhere(text) => {
            html.markup("</span><span class=\"link\">→ ").text(text);
            html.markup("</span></div>");
        }
        MemberTarget::Unreadable(error) => {
            html.markup("</span></div>");
            draft.write_error(error);
        }
    }
}

/// Writes a summary of an object. For a single element, the summary is the datatype and the value.
/// For any other array, it is the datatype, shape, filters and stored size.
fn write_summary(
    object: &PageObject<'_>,
    node: &Arc<Node>,
    value: Option<Vec<u8>>,
    html: &mut Html,
) {
    let mut fact = |text: &[u8]| {
        html.markup("<span>").text(text).markup("</span>");
    };
    match &node.kind {
        NodeKind::Scalar(scalar) => {
            fact(scalar.value.type_name().as_bytes());
            html.markup("<span class=\"value\">").text(&scalar.text);
            html.markup("</span>");
            return;
        }
        NodeKind::CommittedDatatype(datatype) => return fact(ndl_type(datatype).as_bytes()),
        NodeKind::Group if node.array().is_none() => return,
        NodeKind::Group | NodeKind::Array(_) => {}
    }
    if let Some(array) = node.array() {
        fact(ndl_type(&array.datatype).as_bytes());
        if let Some(value) = value {
            html.markup("<span class=\"value\">")
                .text(value)
                .markup("</span>");
            return;
        }
        fact(shape_text(&array.shape).as_bytes());
        fact(summary::describe_filters(&array.pipeline).as_bytes());
        let stored = object.site.stored_bytes(node);
        fact(stored.map(format_size).unwrap_or_default().as_bytes());
    }
}

/// Writes links to the previous and the next page of the group's members.
fn write_pager(object: &PageObject<'_>, listed: &ListedMembers, html: &mut Html) {
    let first = object.first_member;
    if first == 0 && !listed.has_more {
        return;
    }
    let count = to_u64(listed.rows.len());
    html.markup("<p class=\"pager\">");
    let mut link = |to: Option<u64>, text: &'static str| {
        if let Some(url) = to.and_then(|first| object.site.members_url(first)) {
            html.link(&url, text).markup(" ");
        }
    };
    let before = first.checked_sub(limits::HTML_ROWS);
    let behind = listed
        .has_more
        .then(|| first.saturating_add(limits::HTML_ROWS));
    link(before.map(|_| 0), "first");
    link(before, "previous");
    link(behind, "next");
    html.markup("<span class=\"note\">members ")
        .number(first.saturating_add(1));
    html.markup(" to ").number(first.saturating_add(count));
    if listed.is_unsorted {
        html.markup(", in the order of the file’s index");
    }
    html.markup("</span></p>\n");
}
