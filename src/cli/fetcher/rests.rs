//! Pages of names in parts that fit in a packet.
//!
//! A page of a server holds a thousand names, a packet maybe less. The rest of a page is kept until
//! it is asked for.

use std::collections::VecDeque;

use crate::cli::fetcher::listing::Page;
use crate::cli::fetcher::trouble::Trouble;
use crate::limits;
use crate::source::remote::message::{ListedName, PACKET};

/// What is still to be asked for of pages.
#[derive(Debug, Default)]
pub(super) struct Rests {
    kept: VecDeque<(u64, Page)>,
    last: u64,
}

/// Where a part of a listing begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At a page of the server, which this token asks for.
    Page(String),
    /// At the rest of a page.
    Rest(u64),
}

impl Place {
    /// # Errors
    /// `Other` for what [`split`](Rests::split) did not say.
    pub(super) fn parse(after: &[u8]) -> Result<Self, Trouble> {
        let wrong = || Trouble::other("a listing from nowhere");
        let text = std::str::from_utf8(after).map_err(|_| wrong())?;
        match text.split_at_checked(1) {
            None => Ok(Place::Page(String::new())),
            Some(("p", token)) => Ok(Place::Page(token.to_owned())),
            Some(("r", number)) => Ok(Place::Rest(number.parse().map_err(|_| wrong())?)),
            Some(_) => Err(wrong()),
        }
    }
}

impl Rests {
    /// The rest of a page.
    pub(super) fn take(&mut self, number: u64) -> Option<Page> {
        let place = self.kept.iter().position(|(own, _)| *own == number)?;
        self.kept.remove(place).map(|(_, page)| page)
    }

    /// As many names as fit in a packet, and the place of those behind them.
    pub(super) fn split(&mut self, mut page: Page) -> (Vec<ListedName>, Vec<u8>) {
        /// Beside the names: the kind, the number, and the place of the rest.
        const AROUND: usize = 2048;
        let mut room = PACKET - AROUND;
        let fits = |name: &&ListedName| {
            let tag = name.state.as_ref().map_or(0, |state| state.etag.len());
            let taken = room.checked_sub(name.name.len() + tag + 32);
            room = taken.unwrap_or(0);
            taken.is_some()
        };
        let count = page.names.iter().take_while(fits).count();
        // One name alone always fits: a server's keys have at most 1024 bytes.
        let rest = page.names.split_off(count.max(1).min(page.names.len()));
        let names = std::mem::replace(&mut page.names, rest);
        if page.names.is_empty() {
            let token = page.next;
            let after = if token.is_empty() {
                Vec::new()
            } else {
                format!("p{token}").into_bytes()
            };
            return (names, after);
        }
        self.last += 1;
        if self.kept.len() >= limits::LISTING_RESTS {
            self.kept.pop_front();
        }
        self.kept.push_back((self.last, page));
        (names, format!("r{}", self.last).into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::remote::message::Reply;
    use crate::source::remote::state::ObjectState;

    fn page(names: usize) -> Page {
        let name = |number| ListedName {
            name: format!("{number:0200}").into_bytes(),
            state: Some(ObjectState {
                length: 1,
                etag: vec![b'x'; 34],
                modified: 0,
            }),
        };
        Page {
            names: (0..names).map(name).collect(),
            next: "token".to_owned(),
        }
    }

    #[test]
    fn a_page_comes_in_packets() {
        let mut rests = Rests::default();
        let (mut names, mut after) = rests.split(page(1000));
        let mut all = 0;
        loop {
            all += names.len();
            let reply = Reply::Listed {
                id: 1,
                entries: names,
                next: after.clone(),
            };
            assert!(reply.encode().len() <= PACKET);
            let Ok(Place::Rest(number)) = Place::parse(&after) else {
                break;
            };
            let rest = rests.take(number).unwrap();
            (names, after) = rests.split(rest);
        }
        assert_eq!(all, 1000);
        assert_eq!(Place::parse(&after), Ok(Place::Page("token".to_owned())));
        assert!(rests.kept.is_empty());
    }

    #[test]
    fn rests_that_nobody_asks_for_are_forgotten() {
        let mut rests = Rests::default();
        for _ in 0..=limits::LISTING_RESTS {
            rests.split(page(1000));
        }
        assert_eq!(rests.kept.len(), limits::LISTING_RESTS);
        assert!(rests.take(1).is_none() && rests.take(2).is_some());
    }

    #[test]
    fn a_place_that_was_never_told_is_refused() {
        assert_eq!(Place::parse(b""), Ok(Place::Page(String::new())));
        for wrong in [&b"x"[..], b"r", b"rx", b"\xff"] {
            assert!(Place::parse(wrong).is_err());
        }
    }
}
