//! What a file of NeXus says is to be plotted first: the group attributes `default`, from one to the
//! next, and `signal` (NeXus manual, "Find the plottable data").

use crate::error::Result;
use crate::model::attribute_value::text;
use crate::model::{Link, LinkTarget, NodeId, NodeKind};
use crate::view::texts::html::draft::Draft;
use crate::view::texts::html::object::Object;

/// Groups on the way to what is plotted.
const STEPS: usize = 8;

/// What is plotted: its group, the names that lead to it, and its link.
struct Signal {
    group: NodeId,
    names: Vec<Vec<u8>>,
    link: Link,
}

/// Writes a link to the page with the plot that the group has by default.
pub(super) fn write(object: &Object<'_>, draft: &mut Draft) {
    match signal(object) {
        Ok(Some(Signal { group, names, link })) => {
            if let Some(page) = object.site.member(group, &link).page {
                draft.body.markup("<p>Default plot: ");
                draft.body.link(&page, names.join(&b'/')).markup("</p>\n");
            }
        }
        Ok(None) => {}
        Err(error) => draft.fail(&error),
    }
}

/// What is plotted by default, of a group and the groups to which it leads.
fn signal(object: &Object<'_>) -> Result<Option<Signal>> {
    let container = &**object.container;
    let (mut group, mut names) = (object.node.id, Vec::new());
    for _ in 0..STEPS {
        let (name, is_signal) = match text(container, group, b"signal")? {
            Some(signal) => (signal, true),
            None => match text(container, group, b"default")? {
                Some(name) => (name, false),
                None => return Ok(None),
            },
        };
        let Some(link) = container.link(group, &name)? else {
            return Ok(None);
        };
        names.push(name);
        if is_signal {
            return Ok(Some(Signal { group, names, link }));
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
