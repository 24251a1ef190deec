//! `.h5fs/html`: a page about each object, for a browser.

use crate::error::{Error, Result};
use crate::fs::views::trees::mask;
use crate::fs::views::trees::view_tree::{
    Form, OF_NOTHING, Size, Subject, ViewTree, WITHOUT_FILES, shown,
};
use crate::model::NodeKind;
use crate::model::selector::Selector;
use crate::view::View;
use crate::view::elements::Elements;
use crate::view::elements::missing::Missing;
use crate::view::elements::part::Part;
use crate::view::texts::html::object::Object;
use crate::view::texts::html::{Rendered, first_of, render};
use crate::view::texts::text::Text;

pub(super) const TREE: ViewTree = ViewTree {
    name: b"html",
    number: 40,
    root_name: Some(b"index"),
    forms: &[Form {
        number: 41,
        suffix: b".html",
        size: |_, _| Ok(Some(Size::Counted)),
        open: page,
        has_pages: true,
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};

/// The page of an object, or a further page of a group.
fn page(subject: &Subject<'_>) -> Result<Box<dyn View>> {
    let first = match subject.selected {
        b"" => 0,
        selected if matches!(subject.node.kind, NodeKind::Group) => first_of(selected)?,
        _ => return Err(Error::NotFound),
    };
    let name = [b".html", subject.selected].concat();
    let mut unkept = None;
    let kept = subject.file.kept_text(subject.node.id, &name, || {
        let page = rendered(subject, first)?;
        let text = Text::new(page.text);
        if page.is_partial {
            Err(Error::NotFound).inspect_err(|_| unkept = Some(text))
        } else {
            Ok(text)
        }
    });
    shown(Some(unkept.map_or(kept, Ok)?))
}

fn rendered(subject: &Subject<'_>, first: u64) -> Result<Rendered> {
    let page = render(&Object {
        container: &subject.file.container,
        engine: &subject.file.engine,
        node: subject.node,
        path: &subject.path,
        paths: subject.paths(),
        site: subject.site.ok_or(Error::NotFound)?,
        part: &|selector| part(subject, selector.as_bytes()),
        first,
    });
    Ok(page)
}

/// The elements of the object's array that `selector` picks, and which of them are missing.
fn part(subject: &Subject<'_>, selector: &[u8]) -> Result<(Elements, Option<Missing>)> {
    let array = subject.array()?;
    let reader = subject.file.reader(subject.node.id, &array)?;
    let elements = match selector {
        b"" => Elements::whole(reader)?,
        text => {
            let selector = Selector::parse(text).ok_or(Error::NotFound)?;
            Part::new(reader, &selector)?.elements(None)?
        }
    };
    let selected = Subject {
        file: subject.file,
        node: subject.node,
        form: subject.form,
        selected: selector,
        path: Vec::new(),
        verify: subject.verify,
        site: subject.site,
    };
    let missing = mask::missing(&selected, &elements)?;
    Ok((elements, missing))
}
