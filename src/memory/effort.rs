//! How much metadata one request looks at.
//!
//! A structure has its own bounds, but a file can be made so that a request meets thousands of the largest: an index
//! whose records lead to one damaged block, links to headers of megabytes. What reads such says so here, and what
//! answers a request grants so much; work that no request waits for has no bound.

use std::cell::Cell;

use crate::error::{Error, Result};
use crate::limits;

thread_local! {
    /// Bytes that this thread may still look at.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };

    /// How much was granted, where that is all that what it was granted for may ever look at.
    static ALL: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A grant to this thread for as long as this lives, in the place of an earlier one.
#[derive(Debug)]
pub struct Effort {
    before: Option<u64>,
    /// What of that was granted on.
    of_before: u64,
    all_before: Option<u64>,
}

impl Effort {
    /// What one request may look at.
    pub fn of_a_request() -> Self {
        Self::of(limits::REQUEST_METADATA)
    }

    /// So many bytes.
    pub fn of(bytes: u64) -> Self {
        let before = LEFT.replace(Some(bytes));
        Effort {
            before,
            of_before: 0,
            all_before: ALL.replace(None),
        }
    }

    /// So many bytes at most, of those that are left of the earlier grant.
    pub fn within(bytes: u64) -> Self {
        let before = LEFT.get();
        let of_before = before.map_or(bytes, |left| left.min(bytes));
        LEFT.set(Some(of_before));
        let all_before = ALL.get();
        if of_before == bytes {
            ALL.set(Some(bytes));
        }
        Effort {
            before,
            of_before,
            all_before,
        }
    }
}

impl Drop for Effort {
    fn drop(&mut self) {
        let spent = self.of_before.saturating_sub(LEFT.get().unwrap_or(0));
        LEFT.set(self.before.map(|left| left.saturating_sub(spent)));
        ALL.set(self.all_before);
    }
}

/// Whether nothing is left of what this thread was granted.
pub fn is_spent() -> bool {
    LEFT.get() == Some(0)
}

/// Takes so many bytes from what this thread was granted.
///
/// # Errors
/// `Effort` where that is less; `Limit` where it is, or is part of, what was granted in full
/// [`within`](Effort::within) another, so that it is less the next time as well.
pub fn spend(bytes: u64) -> Result<()> {
    let Some(left) = LEFT.get() else {
        return Ok(());
    };
    LEFT.set(Some(left.saturating_sub(bytes)));
    if bytes <= left {
        return Ok(());
    }
    let of_one = |all| Error::limit("metadata that is looked at for one object", all);
    Err(ALL.get().map_or(Error::Effort { max: left }, of_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_lasts_until_it_is_spent() {
        const ALL: u64 = limits::REQUEST_METADATA;
        spend(2 * ALL).expect("without a request there is no bound");
        let request = Effort::of_a_request();
        spend(ALL - 1).expect("within it");
        {
            let _part = Effort::of_a_request();
            spend(ALL).expect("a grant of its own");
        }
        {
            let _long = Effort::of(2 * ALL);
            spend(ALL + 1).expect("more in between");
        }
        spend(1).expect("all of it");
        assert!(is_spent());
        spend(1).expect_err("more than that");
        drop(request);
        assert!(!is_spent());
        spend(ALL + 1).expect("no bound again");
    }

    #[test]
    fn a_part_is_taken_from_the_whole() {
        {
            let _part = Effort::within(10);
            let lasting = spend(11).expect_err("bounded without a whole, too");
            assert!(!lasting.is_passing());
        }
        spend(limits::REQUEST_METADATA).expect("no bound again");
        let _whole = Effort::of(15);
        {
            let _part = Effort::within(10);
            spend(9).expect("most of the part");
            let _of_the_part = Effort::within(10);
            let lasting = spend(2).expect_err("bounded by the part");
            assert!(!lasting.is_passing());
        }
        assert!(!is_spent());
        {
            let _part = Effort::within(10);
            let passing = spend(6).expect_err("more than was left");
            assert!(passing.is_passing());
        }
        assert!(is_spent());
    }
}
