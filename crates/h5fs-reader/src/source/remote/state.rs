//! The state of an object, as its server reports it.

use serde::{Deserialize, Serialize};

/// The facts that distinguish one state of an object from another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObjectState {
    /// Length in bytes.
    pub length: u64,
    /// Entity tag as the server sends it, including quotes and `W/`, or empty if there is none. If
    /// the server sends neither a tag nor a date, this is a sample: a hash of the first and last
    /// page of the content.
    pub etag: Vec<u8>,
    /// `Last-Modified` in seconds since 1970, or 0 if absent.
    pub modified: i64,
}

impl ObjectState {
    /// First byte of a sample that replaces the tag. No server's tag can contain this byte.
    const SAMPLE: u8 = 0;

    /// Parses an entity tag from a server. An empty tag does not distinguish states and counts as
    /// absent.
    pub fn parse_entity_tag(text: &[u8]) -> Vec<u8> {
        let opaque = text.strip_prefix(b"W/").unwrap_or(text);
        match opaque {
            b"" | b"\"\"" => Vec::new(),
            _ => text.to_vec(),
        }
    }

    /// Returns whether the tag changes whenever a byte changes.
    pub fn has_strong_tag(&self) -> bool {
        self.etag.starts_with(b"\"")
    }

    /// Returns whether the tag or the date distinguishes states of the object.
    pub fn has_validator(&self) -> bool {
        !self.etag.is_empty() || self.modified != 0
    }

    /// Replaces the absent tag by `hash`, a hash of the first and last page of the content.
    pub fn set_sample(&mut self, hash: &[u8]) {
        self.etag = [&[Self::SAMPLE], hash].concat();
    }

    /// Removes the tag if the date distinguishes states as well.
    #[must_use]
    pub fn without_tag(mut self) -> Self {
        if self.modified != 0 {
            self.etag.clear();
        }
        self
    }

    /// Returns whether the two states differ only in their tags, with equal dates.
    pub fn differs_only_in_tag(&self, other: &Self) -> bool {
        let is_dated = self.modified != 0 && self.modified == other.modified;
        is_dated && self.length == other.length && self.etag != other.etag
    }

    /// Returns whether a sample of the content replaces the tag.
    pub fn is_sampled(&self) -> bool {
        self.etag.first() == Some(&Self::SAMPLE)
    }

    /// Converts the facts to a form that listings and responses have in common. A listing may omit
    /// the quotes of a tag, and only one of the two may have fractions of seconds. If there is a
    /// tag, the date is ignored.
    #[must_use]
    pub(crate) fn to_comparable_form(&self) -> Self {
        let tag = self.etag.as_slice();
        let tag = tag.strip_prefix(b"W/").unwrap_or(tag);
        let tag = tag.strip_prefix(b"\"").unwrap_or(tag);
        let tag = tag.strip_suffix(b"\"").unwrap_or(tag);
        ObjectState {
            length: self.length,
            etag: tag.to_vec(),
            modified: if tag.is_empty() { self.modified } else { 0 },
        }
    }

    /// Returns whether no known fact distinguishes the two states. A listing may contain fewer
    /// facts than a response.
    pub fn is_consistent_with(&self, other: &Self) -> bool {
        let (one, two) = (self.to_comparable_form(), other.to_comparable_form());
        let are_tagged = !one.etag.is_empty() && !two.etag.is_empty();
        let are_dated = self.modified != 0 && other.modified != 0;
        self.length == other.length
            && if are_tagged {
                one.etag == two.etag
            } else {
                !are_dated || self.modified == other.modified
            }
    }

    /// Returns whether the two are the same state, according to tag, length and date. A response
    /// with a tag may omit the date.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_dated = self.modified != 0 && other.modified != 0;
        let may_differ = !self.etag.is_empty() && !is_dated;
        self.length == other.length
            && self.etag == other.etag
            && (self.modified == other.modified || may_differ)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_compared_by_tag_length_and_date() {
        for (text, tag) in [
            (&b"\"1\""[..], &b"\"1\""[..]),
            (b"W/\"1\"", b"W/\"1\""),
            (b"\"\"", b""),
            (b"W/\"\"", b""),
            (b"", b""),
        ] {
            assert_eq!(ObjectState::parse_entity_tag(text), tag);
        }
        let state = |etag: &[u8], modified| ObjectState {
            length: 5,
            etag: etag.to_vec(),
            modified,
        };
        let one = state(b"\"1\"", 7);
        assert!(one.is_same(&one) && !one.is_same(&state(b"\"1\"", 8)));
        assert!(one.is_same(&state(b"\"1\"", 0)) && state(b"\"1\"", 0).is_same(&one));
        assert!(!one.is_same(&state(b"W/\"1\"", 7)) && !one.is_same(&state(b"", 7)));
        assert!(state(b"", 7).is_same(&state(b"", 7)));
        assert!(!state(b"", 7).is_same(&state(b"", 0)));
        assert!(one.has_strong_tag() && !state(b"W/\"1\"", 7).has_strong_tag());
        assert!(!one.is_same(&ObjectState {
            length: 6,
            ..one.clone()
        }));
        assert!(one.differs_only_in_tag(&state(b"\"2\"", 7)) && !one.differs_only_in_tag(&one));
        assert!(
            !one.differs_only_in_tag(&state(b"\"2\"", 8))
                && !one.differs_only_in_tag(&state(b"\"2\"", 0))
        );
        assert_eq!(one.clone().without_tag(), state(b"", 7));
        assert_eq!(state(b"\"1\"", 0).without_tag(), state(b"\"1\"", 0));
        let mut sampled = state(b"", 0);
        assert!(!sampled.has_validator() && !sampled.is_sampled());
        sampled.set_sample(b"hash");
        assert!(sampled.has_validator() && sampled.is_sampled() && !one.is_sampled());
        assert!(!sampled.has_strong_tag());
    }

    #[test]
    fn a_listing_may_contain_fewer_facts_about_a_state() {
        let state = |etag: &[u8], modified| ObjectState {
            length: 5,
            etag: etag.to_vec(),
            modified,
        };
        let answer = state(b"\"1\"", 7);
        for listed in [
            state(b"1", 0),
            state(b"W/\"1\"", 8),
            state(b"", 7),
            state(b"", 0),
        ] {
            assert!(
                answer.is_consistent_with(&listed) && listed.is_consistent_with(&answer),
                "{listed:?}"
            );
        }
        let longer = ObjectState {
            length: 6,
            ..answer.clone()
        };
        for other in [state(b"2", 7), state(b"", 8), longer] {
            assert!(
                !answer.is_consistent_with(&other) && !other.is_consistent_with(&answer),
                "{other:?}"
            );
        }
    }
}
