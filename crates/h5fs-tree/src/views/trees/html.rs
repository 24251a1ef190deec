//! `.h5fs/html`: a page about each object for a browser, and the pictures on pages.

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::{NodeId, NodeKind};
use h5fs_reader::wire::to_usize;
use h5fs_view::documents::html::object::{PageObject, PageTableRows};
use h5fs_view::documents::html::{RenderedPage, parse_first_member, render};
use h5fs_view::elements::Elements;
use h5fs_view::elements::missing::MissingValues;
use h5fs_view::elements::part::ArrayPart;
use h5fs_view::pictures::picture_style::{PictureStyle, read_image};
use h5fs_view::pictures::png;
use h5fs_view::pictures::shaded::sample::{self, PixelMeaning};
use h5fs_view::pictures::shaded::statistics::Shading;
use h5fs_view::pictures::shaded::{self, DrawnArray, north};
use h5fs_view::table::column::ColumnSource;
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::limits;
use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewSubject, ViewTree, boxed_view,
};
use crate::views::trees::{csv, mask};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"html",
    number: 40,
    root_name: Some(b"index"),
    forms: &[
        ViewForm {
            number: 41,
            suffix: b".html",
            size: |_, _| Ok(Some(FileSize::Counted)),
            open: open_page,
            has_pages: true,
            shows_intended_array: true,
            ..EMPTY_FORM
        },
        ViewForm {
            number: 47,
            suffix: b".png",
            size: |file, node| {
                let image = read_image(&*file.container, node)?.filter(png::is_picture);
                let drawn = image.zip(node.array());
                let drawn = drawn.filter(|(image, array)| shaded::can_draw(array, image));
                Ok(drawn.map(|_| FileSize::Counted))
            },
            open_elements: Some(open_picture),
            ..EMPTY_FORM
        },
    ],
    ..EMPTY_TREE
};

/// Renders the page about an object. For a group, a selector may name a further page of its
/// members.
fn open_page(subject: &ViewSubject<'_>) -> Result<Box<dyn View>> {
    let first = match subject.selector {
        b"" => 0,
        selected if matches!(subject.node.kind, NodeKind::Group) => parse_first_member(selected)?,
        _ => return Err(Error::NotFound),
    };
    let name = [b".html", subject.selector].concat();
    let mut unkept = None;
    let kept = subject.file.cached_text(subject.node.id, &name, || {
        let page = render_page(subject, first)?;
        let text = InMemoryContent::new(page.text);
        if page.is_partial {
            // A page with a temporary error is not cached.
            Err(Error::cancelled()).inspect_err(|_| unkept = Some(text))
        } else {
            Ok(text)
        }
    });
    boxed_view(Some(unkept.map_or(kept, Ok)?))
}

fn render_page(subject: &ViewSubject<'_>, first: u64) -> Result<RenderedPage> {
    let mut page = None;
    with_object(subject, first, None, &mut |object| {
        page = Some(render(object));
    })?;
    page.ok_or(Error::NotFound)
}

/// Calls `use_it` with the object, prepared for its page. `first` is the first member that the page
/// of a group lists. For an object that is part of another page, `group` is the group of that page.
fn with_object(
    subject: &ViewSubject<'_>,
    first: u64,
    group: Option<NodeId>,
    use_it: &mut dyn FnMut(&PageObject<'_>),
) -> Result<()> {
    let site = subject.site.ok_or(Error::NotFound)?;
    let path = match group {
        Some(_) => &subject.known_path()?,
        None => &subject.path,
    };
    use_it(&PageObject {
        container: &subject.file.container,
        engine: &subject.file.engine,
        node: subject.node,
        path,
        paths: subject.path_finder(),
        site,
        read_part: &|selector| selected_elements(subject, selector.as_bytes()),
        shading: &|| shading(subject),
        group_rows: &|| group_rows(subject),
        first_member: first,
        group,
        draw_member: &|other, use_it| {
            let site = site.for_object(other.node, &other.place);
            let drawn = ViewSubject {
                file: subject.file,
                node: other.node,
                form_number: subject.form_number,
                selector: b"",
                path: other.path.clone(),
                verify: subject.verify,
                site: Some(&*site),
            };
            with_object(&drawn, 0, Some(other.group), use_it)
        },
        cancel: subject.file.budget.cancel_token(),
    });
    Ok(())
}

/// Returns the first rows and columns of the table that the page shows. Returns `None` if the
/// object is not a table.
fn group_rows(subject: &ViewSubject<'_>) -> Result<Option<PageTableRows>> {
    let (file, node) = (subject.file, subject.node);
    if !csv::is_plain_group(node) || csv::convention(file, node)?.is_none() {
        return Ok(None);
    }
    let mut table = csv::group_columns(subject)?;
    let (rows, columns) = (table.rows, table.columns.len());
    table
        .columns
        .truncate(to_usize(limits::HTML_TABLE_COLUMNS)?);
    let decoded = table
        .columns
        .iter()
        .map(|column| decoded_bytes(&column.source));
    Error::check_limit(
        decoded.fold(0, u64::saturating_add),
        limits::HTML_DECODED,
        "bytes to decode for a page",
    )?;
    let fields = csv::open_group_rows(subject, table)?;
    Ok(Some(PageTableRows {
        fields: Box::new(fields),
        rows,
        columns,
    }))
}

/// Returns the number of bytes that must be decoded for the first rows of a column.
fn decoded_bytes(source: &ColumnSource) -> u64 {
    let part = match source {
        ColumnSource::Values(part)
        | ColumnSource::Masked { values: part, .. }
        | ColumnSource::BoundedIndices { values: part, .. }
        | ColumnSource::Categories { codes: part, .. }
        | ColumnSource::Lists { values: part, .. }
        | ColumnSource::Runs { ends: part, .. }
        | ColumnSource::Times { values: part, .. } => part,
        ColumnSource::Texts(_) => return 0,
    };
    part.array.filtered_chunk().map_or(0, |(_, bytes)| bytes)
}

/// Draws the picture of an array, or one picture of an image stack, as the object's page shows it.
fn open_picture(subject: &ViewSubject<'_>, _: Elements) -> Result<Option<Box<dyn View>>> {
    let file = subject.file;
    let name = [b".shaded", subject.selector].concat();
    let text = file.cached_text(subject.node.id, &name, || {
        let cancel = file.budget.cancel_token();
        cancel.require_heavy_slot()?;
        draw_picture(subject, &cancel)
    })?;
    Ok(Some(Box::new(text)))
}

fn draw_picture(subject: &ViewSubject<'_>, cancel: &CancelToken) -> Result<InMemoryContent> {
    let (file, node) = (subject.file, subject.node);
    let container = &*file.container;
    let too_large = || Error::limit("bytes to decode for a picture", limits::HTML_PICTURE);
    let appearance =
        north::page_appearance(container, &file.engine, node, &|| subject.known_path())?;
    let image = read_image(container, node)?.ok_or(Error::NotFound)?;
    // Any other part may touch all chunks.
    if !appearance.has_axes(subject.selector, image.dims.len()) {
        return Err(Error::NotFound);
    }
    if !shaded::can_draw(&*subject.array()?, &image) {
        return Err(too_large());
    }
    let shading = shading(subject)?.ok_or_else(too_large)?;
    let whole = (container, &file.engine);
    let look = PictureStyle::read_part(whole, node, appearance, subject.selector, cancel)?;
    let selector = str::from_utf8(subject.selector).map_err(|_| Error::NotFound)?;
    let memory = file.engine.reserve_memory(0)?;
    with_drawable_array(subject, |drawn| {
        let file = shaded::draw_png(drawn, selector, look, &shading, (&memory, cancel))?;
        file.ok_or(Error::NotFound)
    })
}

/// Returns the properties of the array's values that determine the shades of the picture. They come
/// from the cache or from a sample of the values.
fn shading(subject: &ViewSubject<'_>) -> Result<Option<Shading>> {
    let file = subject.file;
    let Some(image) = read_image(&*file.container, subject.node)? else {
        return Ok(None);
    };
    let kept = file.cached_text(subject.node.id, b".shading", || {
        let _memory = file
            .engine
            .reserve_memory(8 * limits::HTML_SAMPLED_VALUES)?;
        with_drawable_array(subject, |drawn| {
            let nature = PixelMeaning::read(drawn, &image)?;
            let shading = sample::sample_shading(drawn, &image, nature)?.ok_or(Error::NotFound)?;
            Ok(InMemoryContent::new(shading.to_bytes()))
        })
    });
    match kept {
        Ok(text) => Shading::from_bytes(&text.read_at(0, usize::MAX)?).map(Some),
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Calls `use_it` with the object's array, prepared for drawing.
fn with_drawable_array<T>(
    subject: &ViewSubject<'_>,
    use_it: impl FnOnce(&DrawnArray<'_>) -> Result<T>,
) -> Result<T> {
    use_it(&DrawnArray {
        container: &*subject.file.container,
        node: subject.node,
        path: &|| subject.known_path(),
        read_part: &|selector| selected_elements(subject, selector.as_bytes()),
        cancel: subject.file.budget.cancel_token(),
    })
}

/// Returns the elements of the object's array that `selector` selects, and which of these elements
/// are missing.
fn selected_elements(
    subject: &ViewSubject<'_>,
    selector: &[u8],
) -> Result<(Elements, Option<MissingValues>)> {
    let array = subject.array()?;
    let reader = subject.file.reader(subject.node.id, &array)?;
    let elements = match selector {
        b"" => Elements::from_reader(reader)?,
        text => {
            let selector = Selector::parse(text).ok_or(Error::NotFound)?;
            ArrayPart::new(reader, &selector)?.into_elements(None)?
        }
    };
    let selected = ViewSubject {
        file: subject.file,
        node: subject.node,
        form_number: subject.form_number,
        selector,
        path: Vec::new(),
        verify: subject.verify,
        site: subject.site,
    };
    let missing = mask::masked_elements(&selected, &elements)?;
    Ok((elements, missing))
}
