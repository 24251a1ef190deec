//! The composition of YAML text into a [`Document`]. Only this file runs the YAML parser, which
//! returns events. Nodes, aliases and limits are handled here.

use std::borrow::Cow;
use std::num::NonZero;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};

use crate::asdf::yaml::anchors::{self, AnchorNameEnd};
use crate::asdf::yaml::resolve::{self, CoreTag};
use crate::asdf::yaml::separators::{NormalizedText, SEPARATORS, Scalar, Style};
use crate::asdf::yaml::tags::Tags;
use crate::asdf::yaml::{self, Document, NodeIndex, YamlKind, keys};
use crate::error::{Error, Result};
use crate::limits;
use crate::wire::{Count, Extent, to_u64};

/// Composes the first document of `text`, which is at absolute offset `start` of the file. More
/// text after the document is a [separate error](Document::end_error), because damage may have
/// ended the document early.
///
/// # Errors
/// `Corrupt` if the text is not YAML or refers to a missing anchor. `Limit` if the tree is too deep
/// or has too many nodes.
pub(crate) fn compose(text: &[u8], start: u64) -> Result<Document> {
    let text = decode_printable(text, start)?;
    // In YAML 1.1, U+0085 is also a line break. The parser knows only the line breaks of YAML 1.2.
    let mut text = if text.contains(NEXT_LINE) {
        Cow::Owned(text.replace(NEXT_LINE, "\n"))
    } else {
        Cow::Borrowed(text)
    };
    if text.contains(SEPARATORS) {
        text = Cow::Owned(without_separators(&text, start)?);
    }
    let mut left = limits::TREE_BYTES;
    loop {
        let colon = match compose_once(&text, start)? {
            CompositionResult::Document(document) => return Ok(*document),
            CompositionResult::Colon(colon) => colon,
        };
        left = left.checked_sub(to_u64(text.len())).ok_or_else(|| {
            let what = "bytes read again for colons directly after anchors";
            Error::limit(what, limits::TREE_BYTES)
        })?;
        text.to_mut().insert(colon, ' ');
    }
}

/// Rewrites the text so that the parser treats U+2028 and U+2029 as in YAML 1.1.
fn without_separators(text: &str, start: u64) -> Result<String> {
    let some = NormalizedText::new(text, false);
    if let Ok((scalars, true)) = replaced_scalars(&some, start) {
        return Ok(some.with_escapes(&scalars));
    }
    let all = NormalizedText::new(text, true);
    let (scalars, _) = replaced_scalars(&all, start)?;
    Ok(all.with_escapes(&scalars))
}

/// Returns the scalars that contain a replaced separator. Also returns whether all separators that
/// were not replaced are within quoted scalars.
fn replaced_scalars(replaced: &NormalizedText, start: u64) -> Result<(Vec<Scalar>, bool)> {
    let composer = Composer::new(&replaced.text, start);
    let mut scalars = Vec::new();
    let mut quoted = 0_usize;
    for event in Parser::new_from_str_with_options(&replaced.text, options()) {
        let (event, span) = event.map_err(|error| composer.syntax(&error))?;
        let Event::Scalar(_, style, ..) = event else {
            continue;
        };
        let place = span.start.byte_offset().zip(span.end.byte_offset());
        let range = place.map_or(0..0, |(start, end)| start..end);
        if matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted) {
            let text = replaced.text.get(range.clone()).unwrap_or_default();
            quoted = quoted.plus(text.matches(SEPARATORS).count());
        }
        if !replaced.has_replaced_separator(&range) {
            continue;
        }
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted => Style::Single,
            ScalarStyle::DoubleQuoted => Style::Double,
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let place = to_u64(span.start.byte_offset().unwrap_or(0));
                let at = Extent::saturating(start, place).end();
                return Err(Error::unsupported(IN_BLOCK, at));
            }
        };
        scalars.push(Scalar { range, style });
    }
    let others = replaced.text.matches(SEPARATORS).count();
    Ok((scalars, quoted == others))
}

fn options() -> granit_parser::Options {
    granit_parser::options! {
        emit_comments: false,
        emit_anchor_events: true,
        flow_nesting_limit: limits::TREE_LEVELS,
        block_nesting_limit: limits::TREE_LEVELS,
    }
}

enum CompositionResult {
    Document(Box<Document>),
    /// The byte offset of a colon that the parser treats as a part of an anchor's name.
    Colon(usize),
}

fn compose_once(text: &str, start: u64) -> Result<CompositionResult> {
    let mut composer = Composer::new(text, start);
    let mut events = Parser::new_from_str_with_options(text, options());
    for event in &mut events {
        match anchor_offset(&event).map_or(AnchorNameEnd::Whole, |place| {
            anchors::find_name_end(text, place)
        }) {
            AnchorNameEnd::Whole => {}
            AnchorNameEnd::Colon(colon) => return Ok(CompositionResult::Colon(colon)),
            AnchorNameEnd::Ambiguous(place) => return Err(composer.ambiguous(place)),
        }
        let (event, span) = event.map_err(|error| composer.syntax(&error))?;
        if composer.process_event(event, &span)? == ComposeStatus::Done {
            break;
        }
    }
    composer.document.trailing_error = match events.next() {
        None | Some(Ok((Event::StreamEnd, _))) => None,
        Some(Ok((_, span))) => Some(composer.corrupt("text after its end", &span)),
        Some(Err(error)) => Some(composer.syntax(&error)),
    };
    let document = composer.finish()?;
    Ok(CompositionResult::Document(Box::new(document)))
}

/// Returns the byte offset in the text if the event is an anchor or an alias, or a syntax error,
/// which an anchor may have caused.
fn anchor_offset(event: &std::result::Result<(Event<'_>, Span), ScanError>) -> Option<usize> {
    match event {
        Ok((Event::Anchor(..) | Event::Alias(_), span)) => span.start.byte_offset(),
        Ok(_) => None,
        Err(error) => error.marker().byte_offset(),
    }
}

const NEXT_LINE: char = '\u{85}';

/// Decodes UTF-8 text. Fails if the text contains a character that YAML 1.1 does not allow.
fn decode_printable(text: &[u8], start: u64) -> Result<&str> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let at = Extent::saturating(start, to_u64(error.valid_up_to())).end();
        Error::corrupt("tree: not UTF-8", at)
    })?;
    let forbidden = |character: &char| {
        !matches!(character,
            '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}'
            | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
            || *character == '\u{feff}'
    };
    match text
        .char_indices()
        .find(|(_, character)| forbidden(character))
    {
        None => Ok(text),
        Some((place, character)) => Err(Error::corrupt(
            format!("tree: character {character:?} is not allowed in YAML"),
            Extent::saturating(start, to_u64(place)).end(),
        )),
    }
}

const IN_BLOCK: &str = "tree: U+2028 or U+2029 in a block scalar";

#[derive(PartialEq, Eq)]
enum ComposeStatus {
    More,
    Done,
}

/// A sequence or mapping whose end was not reached yet.
struct OpenCollection {
    node: NodeIndex,
    kind: YamlKind,
    /// Whether the collection is in flow style, that is, in brackets or braces.
    is_flow: bool,
    start: usize,
    /// The index of the collection's first child in [`Composer::children`].
    children: usize,
}

struct Composer<'a> {
    text: &'a str,
    start: u64,
    document: Document,
    tags: Tags,
    /// The node of each anchor, by the number that the parser gave the anchor.
    anchors: Vec<Option<NodeIndex>>,
    open: Vec<OpenCollection>,
    /// The children so far of all open collections, the outermost collection first. The children of
    /// a mapping are its keys and values, alternately.
    children: Vec<NodeIndex>,
    /// The nodes that are keys of mappings, each node once.
    keys: Vec<NodeIndex>,
    /// Number of nodes and aliases of the document so far.
    count: usize,
}

impl<'a> Composer<'a> {
    fn new(text: &'a str, start: u64) -> Self {
        let document = Document {
            texts: String::with_capacity(text.len()),
            start,
            ..Document::default()
        };
        Composer {
            text,
            start,
            document,
            tags: Tags::new(),
            anchors: Vec::new(),
            open: Vec::new(),
            children: Vec::new(),
            keys: Vec::new(),
            count: 0,
        }
    }

    fn process_event(&mut self, event: Event<'a>, span: &Span) -> Result<ComposeStatus> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = matches!(style, ScalarStyle::Plain);
                let is_flow = self.open.last().is_some_and(|open| open.is_flow);
                if is_plain && is_flow && text.starts_with('?') {
                    // In YAML 1.1, the question mark declares that a key follows.
                    return Err(self.corrupt("a question mark within brackets", span));
                }
                let node = self.scalar(&text, is_plain, anchor, tag.as_deref(), span)?;
                self.attach(node);
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.begin(YamlKind::Sequence, style, anchor, tag.as_deref(), span)?;
            }
            Event::MappingStart(style, anchor, tag) => {
                self.begin(YamlKind::Mapping, style, anchor, tag.as_deref(), span)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span)?,
            Event::Alias(anchor) => {
                self.count_node()?;
                let Some(node) = self.anchors.get(anchor).copied().flatten() else {
                    return Err(self.corrupt("unknown anchor", span));
                };
                let alias = span.start.byte_offset().zip(span.end.byte_offset());
                let (start, end) = alias.unwrap_or((0, 0));
                self.name_collection(node, start..end)?;
                self.attach(node);
            }
            Event::UnresolvedAlias(_) => return Err(self.corrupt("unknown anchor", span)),
            Event::DocumentEnd => return Ok(ComposeStatus::Done),
            _ => {}
        }
        Ok(ComposeStatus::More)
    }

    fn scalar(
        &mut self,
        text: &str,
        is_plain: bool,
        anchor: usize,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<NodeIndex> {
        let tag = self.tag(tag)?;
        let core = match tag.and_then(|tag| self.tags.text(tag)) {
            Some(tag) => CoreTag::from_tag(tag),
            None if is_plain => Some(resolve::plain_scalar_tag(text)),
            None => Some(CoreTag::Str),
        };
        let held = self.store_text(text)?;
        self.add(YamlKind::Scalar(core), held, anchor, tag, span)
    }

    /// Appends a text to the texts of the document. Returns its span there.
    fn store_text(&mut self, text: &str) -> Result<yaml::Span> {
        let texts = &mut self.document.texts;
        let start = texts.len();
        texts.push_str(text);
        if to_u64(texts.len()) <= limits::TREE_BYTES {
            yaml::Span::new(start..texts.len()).ok_or_else(too_many)
        } else {
            Err(Error::limit(
                "bytes of the tree's texts",
                limits::TREE_BYTES,
            ))
        }
    }

    fn begin(
        &mut self,
        kind: YamlKind,
        style: StructureStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<()> {
        if self.open.len() >= limits::TREE_LEVELS {
            return Err(too_deep());
        }
        let tag = self.tag(tag)?;
        let node = self.add(kind, yaml::Span::default(), anchor, tag, span)?;
        self.open.push(OpenCollection {
            node,
            kind,
            is_flow: style == StructureStyle::Flow,
            start: span.start.byte_offset().unwrap_or(0),
            children: self.children.len(),
        });
        Ok(())
    }

    fn end(&mut self, span: &Span) -> Result<()> {
        let Some(ended) = self.open.pop() else {
            return Err(self.corrupt("the end of a collection without a beginning", span));
        };
        let held = self.collect(&ended).ok_or_else(too_many)?;
        if let Some(node) = self.document.nodes.get_mut(ended.node.slot()) {
            node.span = held;
        }
        let end = span.end.byte_offset().unwrap_or(0);
        self.name_collection(ended.node, ended.start..end)?;
        self.attach(ended.node);
        Ok(())
    }

    /// If the collection `node` is about to become a key, and was not a key before, stores its
    /// text, the byte range `place`, as its name.
    fn name_collection(&mut self, node: NodeIndex, place: Range<usize>) -> Result<()> {
        let known = self.document.nodes.get(node.slot());
        let is_new = known.is_some_and(|node| {
            node.name_number == yaml::NO_NAME && !matches!(node.kind, YamlKind::Scalar(_))
        });
        if is_new && self.is_key_next() {
            let text = self.text.get(place).unwrap_or_default();
            let held = self.store_text(text.trim())?;
            self.document.collection_keys.push((node, held));
        }
        Ok(())
    }

    /// Moves the children of a collection to the document's list of items or pairs. Returns their
    /// range in that list.
    fn collect(&mut self, ended: &OpenCollection) -> Option<yaml::Span> {
        let Document { items, pairs, .. } = &mut self.document;
        let children = self.children.drain(ended.children..);
        if ended.kind == YamlKind::Sequence {
            let start = items.len();
            items.extend(children);
            return yaml::Span::new(start..items.len());
        }
        let start = pairs.len();
        let children = children.as_slice().chunks_exact(2);
        pairs.extend(children.filter_map(|pair| match pair {
            &[key, value] => Some((key, value)),
            _ => None,
        }));
        yaml::Span::new(start..pairs.len())
    }

    /// Returns whether the next node will be a key of the innermost open mapping.
    fn is_key_next(&self) -> bool {
        self.open.last().is_some_and(|open| {
            let children = self.children.len().minus_or_zero(open.children);
            open.kind == YamlKind::Mapping && children.is_multiple_of(2)
        })
    }

    /// Adds a node that begins at `span` to the document, and records its anchor.
    fn add(
        &mut self,
        kind: YamlKind,
        held: yaml::Span,
        anchor: usize,
        tag: Option<NonZero<u16>>,
        span: &Span,
    ) -> Result<NodeIndex> {
        self.count_node()?;
        let at = span.start.byte_offset().unwrap_or(0);
        let at = u32::try_from(to_u64(at)).unwrap_or(u32::MAX);
        let node = self.document.push(kind, held, tag, at);
        let node = node.ok_or_else(too_many)?;
        Error::check_limit(anchor, limits::TREE_ANCHORS, "number of the tree's anchors")?;
        if anchor != 0 {
            let known = self.anchors.len().max(anchor.plus_one());
            self.anchors.resize(known, None);
            if let Some(place) = self.anchors.get_mut(anchor) {
                *place = Some(node);
            }
        }
        Ok(node)
    }

    /// Counts a node or an alias. Fails if the document has too many of them.
    fn count_node(&mut self) -> Result<()> {
        self.count = self.count.plus_one();
        if self.count > limits::TREE_NODES {
            return Err(too_many());
        }
        Ok(())
    }

    /// Adds a complete node, or the node of an alias, to the children of the innermost open
    /// collection.
    fn attach(&mut self, node: NodeIndex) {
        if self.is_key_next()
            && let Some(key) = self.document.nodes.get_mut(node.slot())
            && key.name_number == yaml::NO_NAME
        {
            key.name_number = 0;
            self.keys.push(node);
        }
        if !self.open.is_empty() {
            self.children.push(node);
        }
    }

    fn tag(&mut self, tag: Option<&Tag>) -> Result<Option<NonZero<u16>>> {
        tag.map_or(Ok(None), |tag| self.tags.number(tag))
    }

    fn finish(self) -> Result<Document> {
        if !self.open.is_empty() {
            return Err(Error::corrupt("tree: ends within a collection", self.start));
        }
        let mut document = self.document;
        document.tags = self.tags.into_texts();
        if document.nodes.is_empty() {
            let null = YamlKind::Scalar(Some(CoreTag::Null));
            document.push(null, yaml::Span::default(), None, 0);
        }
        document
            .collection_keys
            .sort_unstable_by_key(|&(key, _)| key);
        keys::assign_name_numbers(&mut document, &self.keys);
        document.shrink();
        Ok(document)
    }

    fn corrupt(&self, what: &str, span: &Span) -> Error {
        let marker = &span.start;
        let place = to_u64(marker.byte_offset().unwrap_or(0));
        Error::corrupt(
            format!(
                "tree: line {}, column {}: {what}",
                marker.line(),
                marker.col().plus_one()
            ),
            Extent::saturating(self.start, place).end(),
        )
    }

    fn ambiguous(&self, place: usize) -> Error {
        let what = "tree: a colon or question mark in the name of an anchor";
        Error::corrupt(what, Extent::saturating(self.start, to_u64(place)).end())
    }

    fn syntax(&self, error: &ScanError) -> Error {
        if matches!(
            error.kind(),
            granit_parser::ErrorKind::RecursionLimitExceeded
        ) {
            return too_deep();
        }
        self.corrupt(&error.info(), &Span::empty(*error.marker()))
    }
}

fn too_deep() -> Error {
    Error::limit("depth of the tree", to_u64(limits::TREE_LEVELS))
}

fn too_many() -> Error {
    Error::limit("number of the tree's nodes", to_u64(limits::TREE_NODES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        compose(text.as_bytes(), 0).unwrap()
    }

    /// Checks the limit on anchors, because the parser keeps all of them.
    #[test]
    fn anchors_are_bounded() {
        let error = document_of_anchors(limits::TREE_ANCHORS.saturating_add(1)).unwrap_err();
        assert!(matches!(error, Error::Limit { .. }), "{error}");
        document_of_anchors(1000).unwrap();
    }

    fn document_of_anchors(count: usize) -> Result<Document> {
        let items: String = (0..count).map(|i| format!("- &a{i} 1\n")).collect();
        compose(items.as_bytes(), 0)
    }

    #[test]
    fn keys_within_keys_are_bounded() {
        let key = |levels, length| {
            let (open, close) = ("{? ".repeat(levels), " : 1}".repeat(levels));
            let text = format!("{open}'{}'{close}", "x".repeat(length));
            compose(text.as_bytes(), 0)
        };
        let document = key(3, 1).unwrap();
        let &[(outer, _)] = document.pairs(NodeIndex::ROOT).unwrap() else {
            panic!("one pair");
        };
        assert_eq!(document.key_text(outer), "{? {? 'x' : 1} : 1}");
        let error = key(900, 100_000).unwrap_err();
        assert!(matches!(error, Error::Limit { .. }), "{error}");
    }

    #[test]
    fn an_alias_is_the_same_node() {
        let document = document("[&a [1, *a], *a]");
        let items = document.items(NodeIndex::ROOT).unwrap();
        assert_eq!(items[0], items[1]);
        assert_eq!(document.items(items[0]).unwrap()[1], items[0]);
    }

    /// Expected: the keys and values of PyYAML.
    #[test]
    fn a_colon_ends_the_name_of_an_anchor() {
        let pairs = |text: &str| -> Vec<String> {
            let document = document(text);
            let pairs = document.pairs(NodeIndex::ROOT).unwrap().iter();
            let pairs = pairs.map(|&(key, value)| {
                format!("{}={}", document.key_text(key), document.key_text(value))
            });
            pairs.collect()
        };
        for text in [
            "a: &id k\n*id: x\nb: '*id: y'\n",
            "a: &id k\n*id : x\nb: '*id: y'\n",
            "{a: &id k, *id: x, b: '*id: y'}",
            "{a: &id k, *id : x, b: '*id: y'}",
        ] {
            assert_eq!(pairs(text), ["a=k", "k=x", "b=*id: y"], "{text}");
        }
        let both = "{a: &id k, &l m: &n 1, *l: 2, *id: [*n,*id], *id: {*l: *n}}";
        let document = document(both);
        let pairs = document.pairs(NodeIndex::ROOT).unwrap();
        assert_eq!(pairs.len(), 5);
        assert_eq!((pairs[2].0, pairs[3].0), (pairs[1].0, pairs[0].1));
        let &[(key, value)] = document.pairs(pairs[4].1).unwrap() else {
            panic!("one pair");
        };
        assert_eq!((key, value), (pairs[1].0, pairs[1].1));
        // In PyYAML, an anchor at a key without text, and the text `:d k`.
        let nothing = compose(b"{&id: x, b: 1}", 0).unwrap();
        assert_eq!(
            nothing.core_tag(nothing.pairs(NodeIndex::ROOT).unwrap()[0].0),
            Some(CoreTag::Null)
        );
        assert!(compose(b"a: &i:d k", 0).is_err());
    }

    /// In PyYAML, `{?b: 1}` has the key `b`.
    #[test]
    fn a_question_mark_in_brackets_is_rejected() {
        for text in ["{?b: 1}", "[1, ?2]", "[?]", "a:\n- {b: &c ?d}"] {
            assert!(compose(text.as_bytes(), 0).is_err(), "{text}");
        }
        let texts = document("[{? b : 1}, '?b', b?]");
        assert_eq!(
            texts.text(texts.items(NodeIndex::ROOT).unwrap()[1]),
            Some("?b")
        );
        let block = document("?b: ?c\nd:\n- ?e");
        assert_eq!(
            block.text(block.value(NodeIndex::ROOT, "?b").unwrap()),
            Some("?c")
        );
    }

    #[test]
    fn colons_after_anchors_are_limited() {
        let text = |count| format!("{{a: &id k{}}}", ", *id: 1".repeat(count));
        assert_eq!(
            document(&text(100)).pairs(NodeIndex::ROOT).unwrap().len(),
            101
        );
        let error = compose(text(10_000).as_bytes(), 0).unwrap_err();
        assert!(matches!(error, Error::Limit { .. }), "{error}");
    }

    #[test]
    fn errors_state_the_position_of_damage() {
        let error = compose(b"a: 1\nb: [1, 2\nc: 3\n", 100).unwrap_err();
        assert!(error.to_string().contains("line"), "{error}");
        assert!(compose(b"a: *nowhere", 0).is_err());
        let nul = compose(b"a: \0", 100).unwrap_err();
        assert!(matches!(nul, Error::Corrupt { at: Some(103), .. }));
        assert!(compose(b"a: \xff", 0).is_err());
    }

    /// Expected: the result of PyYAML, which also refuses the last cases except the blocks.
    #[test]
    fn line_breaks_of_yaml_1_1() {
        let text = |yaml: &str| {
            let document = compose(yaml.as_bytes(), 0)?;
            let value = document.value(NodeIndex::ROOT, "a").unwrap();
            Ok(document.text(value).unwrap().to_owned())
        };
        assert_eq!(text("a: x\u{85}  y"), Ok("x y".to_owned()));
        assert_eq!(text("a: \"x\u{85} y\""), Ok("x y".to_owned()));
        assert_eq!(text("a: |\n  x\u{85}  y\n"), Ok("x\ny\n".to_owned()));
        assert_eq!(text("b: 2\u{85}a: 1"), Ok("1".to_owned()));
        for (yaml, value) in [
            ("a: \"x\u{2028}y\"", "x\u{2028}y"),
            ("a: 'x\u{2029}\u{2029}y'", "x\u{2029}\u{2029}y"),
            ("a: \"x\\L y\"", "x\u{2028} y"),
            ("a: 'x \t\u{2028}  y'", "x\u{2028}y"),
            ("a: '\u{2028}  x\u{2029}  '", "\u{2028}x\u{2029}"),
            ("a: 'x\n\n\u{2028}  y'", "x\n\u{2028}y"),
            ("a: 'x\n\u{2028}  y'", "x\u{2028}y"),
            ("a: 'x\u{2028}\n  y'", "x\u{2028}\ny"),
            ("a: 'x\u{2028}\r\n\r\n  y'", "x\u{2028}\n\ny"),
            ("a: 'it''s\u{2028}  \"\\L'\nb: ''", "it's\u{2028}\"\\L"),
            ("a: \"x\\\u{2028}  y\"", "xy"),
            ("a: \"x\\\u{2028}\u{2029}  y\"", "x\u{2029}y"),
            (
                "a: \"x \\\"\\\\\u{2028} y\\ \u{2028} \"",
                "x \"\\\u{2028}y \u{2028}",
            ),
            ("a: x \u{2028}  y", "x\u{2028}y"),
            ("a: 1\u{2028} 2 # c\u{2028}b: 3", "1\u{2028}2"),
            ("b: 2\u{2028}a: 1", "1"),
            ("# b\u{2028}a: 1", "1"),
            (
                "? 'k\u{2028}    l'\n: 1\na: é\u{2028}  'y'\u{2028}c: d",
                "é\u{2028}'y'",
            ),
        ] {
            assert_eq!(text(yaml).as_deref(), Ok(value), "{yaml:?}");
        }
        for other in ["a: x\u{2028}y", "a: 'x\u{2028}"] {
            let refused: Result<String> = text(other);
            assert!(matches!(refused, Err(Error::Corrupt { .. })), "{other}");
        }
        for block in ["a: >\n  x\u{2028}  y\n", "a: |\n  x\u{2028}"] {
            let refused: Result<String> = text(block);
            assert!(matches!(refused, Err(Error::Unsupported { .. })), "{block}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = "[".repeat(100_000);
        let error = compose(deep.as_bytes(), 0).unwrap_err();
        assert!(matches!(error, Error::Limit { .. }), "{error}");
        let block: String = (0..1500)
            .map(|level| "- ".repeat(level.min(1)) + "")
            .collect();
        assert!(compose(("- ".repeat(1500) + &block).as_bytes(), 0).is_err());
    }
}
