//! The links of a group in the order in which people are shown them.
//!
//! HDF5: as they were made, where the group tracks that, as netCDF-4 has it; else by name. So
//! h5py lists them. ASDF: as the text has them. The index of a group with many links has them in
//! the order of their names' hashes, which means nothing to anybody.

use crate::error::{Error, Result};
use crate::limits;
use crate::model::{Container, Link, LinkStream, NodeId};
use crate::wire::{Count, to_u64, to_usize};

/// The links of a group.
pub struct Ordered {
    /// In order, unless they are too many.
    pub links: Box<dyn LinkStream>,
    /// Whether they are in order.
    pub is_ordered: bool,
}

/// The links of `group` in order, or in index order where they are more than are sorted at a time,
/// or more than `room`, from which those that were looked at are taken.
///
/// # Errors
/// Fails if the index cannot be read at all. Damage of a part of it is an error of the stream.
pub fn links(container: &dyn Container, group: NodeId, room: &mut u64) -> Result<Ordered> {
    let mut stream = container.links(group)?;
    if stream.is_in_order() {
        return Ok(Ordered {
            links: stream,
            is_ordered: true,
        });
    }
    match Sorted::read(&mut *stream, room) {
        Some(sorted) => Ok(Ordered {
            links: Box::new(sorted),
            is_ordered: true,
        }),
        None => {
            stream.seek(0)?;
            Ok(Ordered {
                links: stream,
                is_ordered: false,
            })
        }
    }
}

/// Links that are in memory.
struct Sorted {
    links: Vec<Link>,
    weight: u64,
    position: u64,
    /// Why some are not there.
    failure: Option<Error>,
}

impl Sorted {
    /// All links of `stream`, sorted; `None` where they are too many.
    fn read(stream: &mut dyn LinkStream, room: &mut u64) -> Option<Self> {
        let mut sorted = Sorted {
            links: Vec::new(),
            weight: 0,
            position: 0,
            failure: None,
        };
        let most = limits::ORDERED_MEMBERS.min(*room);
        loop {
            match stream.next() {
                Ok(Some(link)) => {
                    sorted.weight = sorted.weight.with_more(link.weight());
                    sorted.links.push(link);
                }
                Ok(None) => break,
                Err(error) => {
                    sorted.failure = Some(error);
                    break;
                }
            }
            if to_u64(sorted.links.len()) > most || sorted.weight > limits::ORDERED_BYTES {
                *room = room.left_after(to_u64(sorted.links.len()));
                return None;
            }
        }
        *room = room.left_after(to_u64(sorted.links.len()));
        sorted.sort();
        Some(sorted)
    }

    fn sort(&mut self) {
        if self.links.iter().all(|link| link.order.is_some()) {
            self.links.sort_by_key(|link| link.order);
        } else {
            self.links.sort_by(|one, other| one.name.cmp(&other.name));
        }
    }
}

impl LinkStream for Sorted {
    fn position(&self) -> u64 {
        self.position
    }

    fn seek(&mut self, position: u64) -> Result<()> {
        self.position = position.min(to_u64(self.links.len()));
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Link>> {
        let link = self.links.get(to_usize(self.position)?).cloned();
        if link.is_some() {
            self.position = self.position.one_more();
            return Ok(link);
        }
        self.failure.clone().map_or(Ok(None), Err)
    }

    fn is_in_order(&self) -> bool {
        true
    }

    fn weight(&self) -> u64 {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LinkTarget;

    /// Links in this order, of names and places in the order of their making.
    struct Given(Vec<Link>, u64);

    impl LinkStream for Given {
        fn position(&self) -> u64 {
            self.1
        }

        fn seek(&mut self, position: u64) -> Result<()> {
            self.1 = position;
            Ok(())
        }

        fn next(&mut self) -> Result<Option<Link>> {
            let link = self.0.get(to_usize(self.1)?).cloned();
            self.1 += 1;
            Ok(link)
        }
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
        let given = links.iter().map(|&(name, order)| link(name, order));
        let mut room = u64::MAX;
        let sorted = Sorted::read(&mut Given(given.collect(), 0), &mut room).unwrap();
        assert_eq!(room, u64::MAX - to_u64(links.len()));
        let name = |link: &Link| String::from_utf8(link.name.clone()).unwrap();
        sorted.links.iter().map(name).collect()
    }

    #[test]
    fn as_they_were_made_or_by_name() {
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
            let sorted = Sorted::read(&mut Given(links, 0), &mut room);
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
