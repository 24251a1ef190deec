//! The links of a group in display order.
//!
//! HDF5: creation order if the group tracks it, as in netCDF-4, otherwise by name. h5py lists links
//! in the same way. ASDF: the order in the text. The index of a group with many links is sorted by
//! hashes of the names, and this order is meaningless to users.

use crate::error::Result;
use crate::limits;
use crate::model::{Container, Link, LinkStream, LinksInMemory, NodeId};
use crate::wire::{Count, to_u64};

/// The links of a group, in display order if possible.
pub struct SortedLinks {
    /// The links in display order, or in index order if there are too many.
    pub links: Box<dyn LinkStream>,
    /// Whether the links are in display order.
    pub is_ordered: bool,
}

/// Returns the links of `group` in display order. Returns them in index order if there are more
/// than [`limits::ORDERED_MEMBERS`] links, or more than `room`, the number of links that the caller
/// may still sort. Subtracts the number of examined links from `room`.
///
/// # Errors
/// Fails if the group's index cannot be read at all. Partial damage is an error of the stream.
pub fn links_in_display_order(
    container: &dyn Container,
    group: NodeId,
    room: &mut u64,
) -> Result<SortedLinks> {
    let mut stream = container.links(group)?;
    if stream.is_in_order() {
        return Ok(SortedLinks {
            links: stream,
            is_ordered: true,
        });
    }
    match read_sorted(&mut *stream, room) {
        Some(sorted) => Ok(SortedLinks {
            links: Box::new(sorted),
            is_ordered: true,
        }),
        None => {
            stream.seek(0)?;
            Ok(SortedLinks {
                links: stream,
                is_ordered: false,
            })
        }
    }
}

/// Returns all links of `stream` in display order, or `None` if there are too many.
fn read_sorted(stream: &mut dyn LinkStream, room: &mut u64) -> Option<LinksInMemory> {
    let (mut links, mut weight) = (Vec::<Link>::new(), 0_u64);
    let most = limits::ORDERED_MEMBERS.min(*room);
    let failure = loop {
        match stream.next() {
            Ok(Some(link)) => {
                weight = weight.plus(link.weight());
                links.push(link);
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
        if to_u64(links.len()) > most || weight > limits::ORDERED_BYTES {
            *room = room.minus_or_zero(to_u64(links.len()));
            return None;
        }
    };
    *room = room.minus_or_zero(to_u64(links.len()));
    if links.iter().all(|link| link.order.is_some()) {
        links.sort_by_key(|link| link.order);
    } else {
        links.sort_by(|one, other| one.name.cmp(&other.name));
    }
    Some(LinksInMemory::in_display_order(links, failure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::model::LinkTarget;

    fn links_in_memory(links: Vec<Link>) -> LinksInMemory {
        LinksInMemory::new(Arc::new(links), None)
    }

    fn link(name: &str, order: Option<u64>) -> Link {
        Link {
            name: name.into(),
            target: LinkTarget::Soft(Vec::new()),
            order,
            is_to_group: false,
        }
    }

    fn names(links: &[(&str, Option<u64>)]) -> Vec<String> {
        let all = links.iter().map(|&(name, order)| link(name, order));
        let mut room = u64::MAX;
        let mut sorted = read_sorted(&mut links_in_memory(all.collect()), &mut room).unwrap();
        assert_eq!(room, u64::MAX - to_u64(links.len()));
        let names = std::iter::from_fn(|| sorted.next().unwrap());
        names
            .map(|link| String::from_utf8(link.name).unwrap())
            .collect()
    }

    #[test]
    fn links_are_in_creation_order_or_by_name() {
        let made = [("b", Some(1)), ("c", Some(2)), ("a", Some(0))];
        assert_eq!(names(&made), ["a", "b", "c"]);
        let made = [("b", Some(0)), ("c", Some(7)), ("a", Some(2))];
        assert_eq!(names(&made), ["b", "a", "c"]);
        let made = [("b", Some(0)), ("c", None), ("a", Some(2)), ("B", None)];
        assert_eq!(names(&made), ["B", "a", "b", "c"]);
    }

    #[test]
    fn links_and_their_bytes_are_bounded() {
        let read = |links: Vec<Link>, mut room: u64| {
            let before = room;
            let sorted = read_sorted(&mut links_in_memory(links), &mut room);
            (sorted.is_some(), before - room)
        };
        let many = |count: u64| (0..count).map(|n| link(&n.to_string(), None)).collect();
        let most = limits::ORDERED_MEMBERS;
        assert_eq!(read(many(most), u64::MAX), (true, most));
        assert_eq!(read(many(most + 2), u64::MAX), (false, most + 1));
        assert_eq!(read(many(20), 20), (true, 20));
        assert_eq!(read(many(20), 19), (false, 19));
        let wide: Vec<Link> = (0..3)
            .map(|n| {
                link(
                    &n.to_string().repeat(limits::ORDERED_BYTES as usize / 2),
                    None,
                )
            })
            .collect();
        assert_eq!(read(wide, u64::MAX), (false, 2));
    }
}
