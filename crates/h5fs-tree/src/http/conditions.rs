//! Entity tags and conditional requests; RFC 9110, sections 8.8 and 13.
//!
//! Responses contain no dates, and conditions with dates are ignored, as section 13.1 requires in
//! that case. Dates would not be reliable: a file that replaces another may have the same date, and
//! another version of this program may show another text for the same file.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::header::{IF_MATCH, IF_NONE_MATCH, IF_RANGE};
use http::{HeaderMap, HeaderName};

use crate::requests::Version;

/// The validators of a response's content, which a client sends back to revalidate its copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Validators {
    /// Strong entity tag, with quotes.
    pub(super) tag: Option<String>,
    /// The tag of the data file's state, with quotes. The script of a page sends the tag in
    /// `If-Match`, because a page and its many requests must show the same state of the file.
    state: Option<String>,
}

/// The result of evaluating the conditions of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionResult {
    Proceed,
    /// 304: the client has a current copy.
    NotModified,
    /// 412: the content is not in the state that the request requires (`If-Match`).
    PreconditionFailed,
}

impl Validators {
    /// Returns the validators of the content at `path`. The validators are empty if two states of
    /// the content cannot be distinguished. `seed` identifies this server process. The tag of a
    /// content that this program computes depends on `seed`, because another version of this
    /// program, or other options, may show another content. The tag of stored bytes does not
    /// depend on `seed`, so that the caches of clients outlast this process.
    pub(super) fn for_version(path: &[u8], version: &Version, seed: u64) -> Self {
        if version.identity.is_none() {
            return Validators::without_tag(version);
        }
        let run = Some(seed).filter(|_| version.stored_in.is_none());
        // The keys of this hasher are fixed. If another version of Rust has another algorithm, clients
        // only lose their caches.
        let half = |number: u64| {
            let mut hasher = DefaultHasher::new();
            (number, run, path, version).hash(&mut hasher);
            hasher.finish()
        };
        let tag = format!("{:016x}{:016x}", half(0), half(1));
        Validators {
            tag: Some(format!("\"{tag}\"")),
            ..Validators::without_tag(version)
        }
    }

    /// Returns the validators of a content that must not be cached. Only the state of its data file
    /// may be known.
    pub(super) fn without_tag(version: &Version) -> Self {
        let state = version.state_tag.as_ref();
        Validators {
            tag: None,
            state: state.map(|tag| format!("\"{tag}\"")),
        }
    }

    /// Returns the validators of the gzip-compressed content. A strong entity tag identifies bytes,
    /// so the compressed content has a tag of its own.
    pub(super) fn for_gzip(&self) -> Self {
        let tag = self.tag.as_deref().map(|tag| tag.trim_matches('"'));
        Validators {
            tag: tag.map(|tag| format!("\"{tag}-gzip\"")),
            state: self.state.clone(),
        }
    }

    /// Evaluates the conditions of a request, in the order of RFC 9110, section 13.2.2. `If-Match`
    /// also accepts the tag of the data file's state.
    pub(super) fn evaluate_conditions(&self, headers: &HeaderMap) -> ConditionResult {
        let is_among = |name, weakly| {
            let tags = entity_tags(headers, name)?;
            Some(self.matches_any(&tags, weakly))
        };
        let is_in_state = || {
            let tags = entity_tags(headers, &IF_MATCH).unwrap_or_default();
            self.state
                .as_deref()
                .is_some_and(|state| tags.contains(&state))
        };
        if is_among(&IF_MATCH, false) == Some(false) && !is_in_state() {
            ConditionResult::PreconditionFailed
        } else if is_among(&IF_NONE_MATCH, true) == Some(true) {
            ConditionResult::NotModified
        } else {
            ConditionResult::Proceed
        }
    }

    /// Returns whether a request for ranges may be answered with ranges (`If-Range`): the client's
    /// earlier bytes must be of the same content. A date in `If-Range` never matches.
    pub(super) fn allows_ranges(&self, headers: &HeaderMap) -> bool {
        match headers.get(&IF_RANGE) {
            Some(field) => self.tag.as_deref().is_some_and(|tag| *tag == *field),
            None => true,
        }
    }

    /// Returns whether one of the entity tags `tags` matches the content. If `weakly` is true, uses
    /// the weak comparison of RFC 9110, section 8.8.3.2, else the strong one.
    fn matches_any(&self, tags: &[&str], weakly: bool) -> bool {
        tags.iter().any(|&tag| {
            let strong = tag.strip_prefix("W/").filter(|_| weakly).unwrap_or(tag);
            tag == "*" || self.tag.as_deref() == Some(strong)
        })
    }
}

/// Returns the entity tags in the list header field `name`. Splitting at commas suffices, because
/// the server's own tags contain none.
fn entity_tags<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Vec<&'h str>> {
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
    use h5fs_reader::source::identity::{Fingerprint, Identity};

    fn version(generation: u32) -> Version {
        let metadata = std::fs::metadata("/usr").unwrap();
        Version {
            length: 8,
            identity: Some(Identity::File(Fingerprint::from_metadata(&metadata))),
            generation,
            state_tag: Some(format!("state-{generation}")),
            stored_in: None,
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
            let own = Validators::for_version(path, &version(generation), 7);
            own.tag.expect("a tag")
        };
        assert_eq!(tag(b"a", 0), tag(b"a", 0));
        assert_ne!(tag(b"a", 0), tag(b"a", 1));
        assert_ne!(tag(b"a", 0), tag(b"b", 0));
        let unknown = Version {
            identity: None,
            ..version(0)
        };
        let uncached = Validators::for_version(b"a", &unknown, 7);
        assert_eq!(uncached, Validators::without_tag(&unknown));
        assert_eq!(uncached.tag, None);
    }

    #[test]
    fn only_the_tag_of_stored_bytes_outlasts_a_run() {
        let tag = |stored_in: Option<&str>, seed| {
            let version = Version {
                stored_in: stored_in.map(Into::into),
                ..version(0)
            };
            Validators::for_version(b"a", &version, seed).tag
        };
        assert_ne!(tag(None, 7), tag(None, 8));
        assert_eq!(tag(Some("/data"), 7), tag(Some("/data"), 8));
        // Two servers may give the same tag to different objects.
        assert_ne!(tag(Some("https://one/d"), 7), tag(Some("https://two/d"), 7));
    }

    #[test]
    fn conditions_are_those_of_the_rfc() {
        let own = Validators::for_version(b"a", &version(0), 7);
        let tag = own.tag.clone().unwrap();
        let weak = format!("W/{tag}");
        let gzip = own.for_gzip().tag.unwrap();
        let list = format!("\"x\", {tag}");
        use ConditionResult::{NotModified, PreconditionFailed, Proceed};
        for (fields, expected) in [
            (&[][..], Proceed),
            (&[(IF_NONE_MATCH, &*tag)], NotModified),
            (&[(IF_NONE_MATCH, &*weak)], NotModified),
            // The tag of the compressed bytes does not match.
            (&[(IF_NONE_MATCH, &*gzip)], Proceed),
            (&[(IF_MATCH, &*gzip)], PreconditionFailed),
            (&[(IF_NONE_MATCH, &*list)], NotModified),
            (&[(IF_NONE_MATCH, "*")], NotModified),
            (&[(IF_NONE_MATCH, "\"x\"")], Proceed),
            (&[(IF_MATCH, &*tag)], Proceed),
            (&[(IF_MATCH, "*")], Proceed),
            (&[(IF_MATCH, "\"state-0\"")], Proceed),
            (&[(IF_MATCH, "\"state-1\"")], PreconditionFailed),
            (&[(IF_MATCH, &*weak)], PreconditionFailed),
            (&[(IF_MATCH, "\"x\"")], PreconditionFailed),
            (&[(IF_MATCH, &*tag), (IF_NONE_MATCH, &*tag)], NotModified),
        ] {
            assert_eq!(
                own.evaluate_conditions(&asked(fields)),
                expected,
                "{fields:?}"
            );
        }
        let packed = own.for_gzip();
        for (fields, expected) in [
            ((IF_NONE_MATCH, &*gzip), NotModified),
            ((IF_NONE_MATCH, &*tag), Proceed),
            ((IF_MATCH, &*gzip), Proceed),
            ((IF_MATCH, &*tag), PreconditionFailed),
        ] {
            let verdict = packed.evaluate_conditions(&asked(std::slice::from_ref(&fields)));
            assert_eq!(verdict, expected, "{fields:?}");
        }
        let nothing = Validators::default();
        assert_eq!(nothing.for_gzip(), nothing);
        assert_eq!(
            nothing.evaluate_conditions(&asked(&[(IF_NONE_MATCH, &tag)])),
            Proceed
        );
        assert_eq!(
            nothing.evaluate_conditions(&asked(&[(IF_MATCH, &tag)])),
            PreconditionFailed
        );
    }

    #[test]
    fn a_range_goes_on_in_the_same_content_alone() {
        let own = Validators::for_version(b"a", &version(0), 7);
        let tag = own.tag.clone().unwrap();
        let allows = |text: &str| own.allows_ranges(&asked(&[(IF_RANGE, text)]));
        assert!(allows(&tag) && own.allows_ranges(&HeaderMap::new()));
        assert!(!allows("\"x\"") && !allows(&format!("W/{tag}")));
        assert!(!allows("Sun, 06 Nov 1994 08:49:37 GMT"));
    }
}
