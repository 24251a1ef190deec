//! The default plot of a NeXus file, which the group attributes `default` (from group to group) and
//! `signal` name (NeXus manual, "Find the plottable data"). The page of each group on that path
//! shows the plot.

use h5fs_reader::error::Result;
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::model::{Link, LinkTarget, NodeId, NodeKind};

use crate::documents::html::object::{MemberObject, PageObject};
use crate::documents::html::page_draft::PageDraft;
use crate::documents::html::{picture, plot};

/// Maximum number of groups from the page's group to the group with the plotted data.
const MAX_GROUPS: usize = 8;

/// The array to plot: its group, the names of the links from the page's group to the array, and the
/// last of these links.
struct NexusSignal {
    group: NodeId,
    names: Vec<Vec<u8>>,
    link: Link,
}

/// Writes the default plot or picture of the group, and a link to the page of the plotted array.
pub(super) fn write(object: &PageObject<'_>, draft: &mut PageDraft) {
    let signal = match find_signal(object) {
        Ok(Some(signal)) => signal,
        Ok(None) => return,
        Err(error) => return draft.write_error(&error),
    };
    if let Some(page) = object.site.linked_member(signal.group, &signal.link).page {
        draft.body.markup("<p>Default plot: ");
        draft.body.link(&page, signal.names.join(&b'/'));
        draft.body.markup("</p>\n");
    }
    if let Err(error) = write_figure(object, &signal, draft) {
        draft.write_error(&error);
    }
}

/// Writes the plot or picture of the array, as on the array's own page.
fn write_figure(
    object: &PageObject<'_>,
    signal: &NexusSignal,
    draft: &mut PageDraft,
) -> Result<()> {
    let Some(place) = object.site.link_target(signal.group, &signal.link)? else {
        return Ok(());
    };
    let node = object.container.node(place.node)?;
    if let Some(error) = &node.error {
        return Err(error.clone());
    }
    // If the data has other links, its canonical path must be looked up.
    let is_here = matches!(signal.link.target, LinkTarget::Hard(_)) && node.link_count < 2;
    let mut path = object
        .path
        .strip_suffix(b"/")
        .unwrap_or(object.path)
        .to_vec();
    for name in &signal.names {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    let other = MemberObject {
        node: &node,
        place,
        path: if is_here { path } else { Vec::new() },
        group: signal.group,
    };
    (object.draw_member)(&other, &mut |data| {
        picture::write(data, draft);
        plot::write(data, draft);
    })
}

/// Finds the array to plot; `None` if the attributes do not name one. The search starts at the
/// page's group, and follows the attribute `default` from group to group to the attribute `signal`.
fn find_signal(object: &PageObject<'_>) -> Result<Option<NexusSignal>> {
    let container = &**object.container;
    let (mut group, mut names) = (object.node.id, Vec::new());
    for _ in 0..MAX_GROUPS {
        let (name, is_signal) = match attribute_text(container, group, b"signal")? {
            Some(signal) => (signal, true),
            None => match attribute_text(container, group, b"default")? {
                Some(name) => (name, false),
                None => return Ok(None),
            },
        };
        let Some(link) = container.link(group, &name)? else {
            return Ok(None);
        };
        names.push(name);
        if is_signal {
            return Ok(Some(NexusSignal { group, names, link }));
        }
        match link.target {
            LinkTarget::Hard(node) => group = node,
            _ => return Ok(None),
        }
        if !matches!(container.node(group)?.kind, NodeKind::Group) {
            return Ok(None);
        }
    }
    Ok(None)
}
