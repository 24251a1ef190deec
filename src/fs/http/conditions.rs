//! Entity tags, and requests that depend on them; RFC 9110, sections 8.8 and 13.
//!
//! No date is sent, and conditions with dates are left out of account, as section 13.1 asks where
//! there is none: a file that takes the place of another may have its date, and a view of the same
//! file may be another text when another version of this program makes it.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::header::{IF_MATCH, IF_NONE_MATCH, IF_RANGE};
use http::{HeaderMap, HeaderName};

use crate::fs::requests::Version;

/// What a client may compare its copy of a content with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Validators {
    /// The entity tag, in quotes: strong.
    pub(super) tag: Option<String>,
}

/// Whether a request is to be answered with the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Send,
    /// 304: the client has it.
    Unchanged,
    /// 412: it is not what the client asks for.
    Failed,
}

impl Validators {
    /// Those of what stands at `path`; none where nobody can tell one state of it from another.
    /// `seed` is this server's own: what it shows may differ from what another version of it does.
    pub(super) fn of(path: &[u8], version: &Version, seed: u64) -> Self {
        if version.identity.is_none() {
            return Validators::default();
        }
        let half = |number: u64| {
            let mut hasher = DefaultHasher::new();
            (number, seed, path, version).hash(&mut hasher);
            hasher.finish()
        };
        let tag = format!("{:016x}{:016x}", half(0), half(1));
        Validators {
            tag: Some(format!("\"{tag}\"")),
        }
    }

    /// Those of the same content, compressed: other bytes have another tag.
    pub(super) fn packed(&self) -> Self {
        let tag = self.tag.as_deref().map(|tag| tag.trim_matches('"'));
        Validators {
            tag: tag.map(|tag| format!("\"{tag}-gzip\"")),
        }
    }

    /// What the conditions of a request say, in the order of RFC 9110, section 13.2.2.
    pub(super) fn verdict(&self, headers: &HeaderMap) -> Verdict {
        let is_among = |name, weakly| {
            let tags = listed(headers, name)?;
            Some(self.is_among(&tags, weakly))
        };
        if is_among(&IF_MATCH, false) == Some(false) {
            Verdict::Failed
        } else if is_among(&IF_NONE_MATCH, true) == Some(true) {
            Verdict::Unchanged
        } else {
            Verdict::Send
        }
    }

    /// Whether a range that is asked for may be sent: the client has a part of the same content. A
    /// date is no proof.
    pub(super) fn allow_ranges(&self, headers: &HeaderMap) -> bool {
        match headers.get(&IF_RANGE) {
            Some(field) => self.tag.as_deref().is_some_and(|tag| *tag == *field),
            None => true,
        }
    }

    /// Whether one of the tags is that of the bytes to be sent, weakly compared or strongly.
    fn is_among(&self, tags: &[&str], weakly: bool) -> bool {
        tags.iter().any(|&tag| {
            let strong = tag.strip_prefix("W/").filter(|_| weakly).unwrap_or(tag);
            tag == "*" || self.tag.as_deref() == Some(strong)
        })
    }
}

/// The members of a list of tags; no tag of ours holds a comma.
fn listed<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Vec<&'h str>> {
    headers.get(name)?;
    let fields = headers.get_all(name).into_iter();
    let texts = fields.filter_map(|field| field.to_str().ok());
    Some(
        texts
            .flat_map(|text| text.split(',').map(str::trim))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::identity::{Fingerprint, Identity};

    fn version(generation: u32) -> Version {
        let metadata = std::fs::metadata("/usr").unwrap();
        Version {
            length: 8,
            identity: Some(Identity::File(Fingerprint::of(&metadata))),
            generation,
        }
    }

    fn asked(fields: &[(HeaderName, &str)]) -> HeaderMap {
        let fields = fields.iter();
        fields
            .map(|(name, text)| (name.clone(), text.parse().unwrap()))
            .collect()
    }

    #[test]
    fn a_tag_tells_states_apart() {
        let tag = |path: &[u8], generation| {
            let own = Validators::of(path, &version(generation), 7);
            own.tag.expect("a tag")
        };
        assert_eq!(tag(b"a", 0), tag(b"a", 0));
        assert_ne!(tag(b"a", 0), tag(b"a", 1));
        assert_ne!(tag(b"a", 0), tag(b"b", 0));
        let unknown = Version {
            identity: None,
            ..version(0)
        };
        assert_eq!(Validators::of(b"a", &unknown, 7), Validators::default());
    }

    #[test]
    fn conditions_are_those_of_the_rfc() {
        let own = Validators::of(b"a", &version(0), 7);
        let tag = own.tag.clone().unwrap();
        let weak = format!("W/{tag}");
        let gzip = own.packed().tag.unwrap();
        let list = format!("\"x\", {tag}");
        use Verdict::{Failed, Send, Unchanged};
        for (fields, expected) in [
            (&[][..], Send),
            (&[(IF_NONE_MATCH, &*tag)], Unchanged),
            (&[(IF_NONE_MATCH, &*weak)], Unchanged),
            // Those of other bytes.
            (&[(IF_NONE_MATCH, &*gzip)], Send),
            (&[(IF_MATCH, &*gzip)], Failed),
            (&[(IF_NONE_MATCH, &*list)], Unchanged),
            (&[(IF_NONE_MATCH, "*")], Unchanged),
            (&[(IF_NONE_MATCH, "\"x\"")], Send),
            (&[(IF_MATCH, &*tag)], Send),
            (&[(IF_MATCH, "*")], Send),
            (&[(IF_MATCH, &*weak)], Failed),
            (&[(IF_MATCH, "\"x\"")], Failed),
            (&[(IF_MATCH, &*tag), (IF_NONE_MATCH, &*tag)], Unchanged),
        ] {
            assert_eq!(own.verdict(&asked(fields)), expected, "{fields:?}");
        }
        let packed = own.packed();
        for (fields, expected) in [
            ((IF_NONE_MATCH, &*gzip), Unchanged),
            ((IF_NONE_MATCH, &*tag), Send),
            ((IF_MATCH, &*gzip), Send),
            ((IF_MATCH, &*tag), Failed),
        ] {
            let verdict = packed.verdict(&asked(std::slice::from_ref(&fields)));
            assert_eq!(verdict, expected, "{fields:?}");
        }
        let nothing = Validators::default();
        assert_eq!(nothing.packed(), nothing);
        assert_eq!(nothing.verdict(&asked(&[(IF_NONE_MATCH, &tag)])), Send);
        assert_eq!(nothing.verdict(&asked(&[(IF_MATCH, &tag)])), Failed);
    }

    #[test]
    fn a_range_goes_on_in_the_same_content_alone() {
        let own = Validators::of(b"a", &version(0), 7);
        let tag = own.tag.clone().unwrap();
        let allows = |text: &str| own.allow_ranges(&asked(&[(IF_RANGE, text)]));
        assert!(allows(&tag) && own.allow_ranges(&HeaderMap::new()));
        assert!(!allows("\"x\"") && !allows(&format!("W/{tag}")));
        assert!(!allows("Sun, 06 Nov 1994 08:49:37 GMT"));
    }
}
