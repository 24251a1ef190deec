//! Selectors that name dimensions, converted to selectors of positions: with the coordinates of
//! `time` and `lat`, `[time=2020-03,lat=~60]` becomes `[59:90,30]`.
//!
//! The positions are those of xarray's `.sel`. The coordinate of a dimension is the one that the
//! tables in `cf` show.

mod label;
mod rules;
mod scan;

use h5fs_conventions::dimension_names::{dimension_scales_and_labels, store_dimension_names};
use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::selector::labels::{DimensionPart, LabelSelector};
use h5fs_reader::model::value::TextContext;
use h5fs_reader::model::{Array, Node};
use h5fs_reader::wire::to_u64;

use crate::cf::coordinates::CoordinateFinder;
use crate::cf::decoding::Decoding;
use crate::cf::labels::label::{CoordinateValue, LabelKind};
use crate::cf::labels::rules::{LabelledPositions, Refusal};
use crate::cf::labels::scan::{CoordinateScan, LabelMatches, NearestValue};
use crate::cf::siblings::GroupVariableCache;
use crate::cf::table::VariableContext;
use crate::cf::variable::Variable;
use crate::elements::Elements;
use crate::limits;

/// Why a selector has no positions: a reason for the user who wrote it, or an error.
enum LabelFault {
    Reason(String),
    Error(Error),
}

type LabelResult<T> = std::result::Result<T, LabelFault>;

impl From<Error> for LabelFault {
    fn from(error: Error) -> Self {
        LabelFault::Error(error)
    }
}

fn refuse<T>(reason: impl Into<String>) -> LabelResult<T> {
    Err(LabelFault::Reason(reason.into()))
}

/// The array whose dimensions a selector names.
struct LabelledArray<'a> {
    node: &'a Node,
    array: &'a Array,
    path: &'a [u8],
    around: &'a VariableContext<'a>,
    cancel: &'a CancelToken,
}

/// The values of a coordinate.
struct CoordinateReader<'a> {
    name: &'a str,
    elements: Elements,
    decoding: Decoding,
    around: &'a VariableContext<'a>,
    cancel: &'a CancelToken,
}

/// Converts `selector`, for the array of `node` at `path`, to a selector without names of
/// dimensions. Returns the reason as an error in the result if the selector has no such part.
///
/// # Errors
/// Fails if a coordinate cannot be read.
pub fn positional_selector(
    selector: &LabelSelector<'_>,
    node: &Node,
    path: &[u8],
    around: &VariableContext<'_>,
    cancel: &CancelToken,
) -> Result<std::result::Result<Vec<u8>, String>> {
    let array = node.array().ok_or(Error::NotFound)?;
    let labelled = LabelledArray {
        node,
        array,
        path,
        around,
        cancel,
    };
    match labelled.positional_selector(selector) {
        Ok(text) => Ok(Ok(text)),
        Err(LabelFault::Reason(reason)) => Ok(Err(reason)),
        Err(LabelFault::Error(error)) => Err(error),
    }
}

impl LabelledArray<'_> {
    fn positional_selector(&self, selector: &LabelSelector<'_>) -> LabelResult<Vec<u8>> {
        let names = self.dimension_names()?;
        let mut plain = vec![":".to_owned(); names.len()];
        let mut text = selector.before.to_vec();
        for choice in &selector.choices {
            let found = names.iter().position(|name| *name == choice.dimension);
            let Some(dimension) = found else {
                return refuse(unknown_dimension(&choice.dimension, &names));
            };
            let index = self.index(dimension, &names[dimension], &choice.part)?;
            if index.starts_with('[') {
                // NumPy moves the dimension of a list to the front if integers and slices are in
                // the same bracket, so each list has a bracket of its own.
                let whole = ":,".repeat(dimension);
                text.extend_from_slice(format!("[{whole}{index}]").as_bytes());
            } else {
                plain[dimension] = index;
            }
        }
        text.extend_from_slice(format!("[{}]", plain.join(",")).as_bytes());
        text.extend_from_slice(selector.after);
        Ok(text)
    }

    /// Returns the names of the dimensions, as in the Zarr store of the file.
    fn dimension_names(&self) -> Result<Vec<Vec<u8>>> {
        let (container, dims) = (&*self.around.container, self.array.shape.dims());
        store_dimension_names(
            container,
            self.node.id,
            dims.len(),
            dims,
            &*self.around.paths,
        )
    }

    /// Returns the index that `part` picks along a dimension called `name`.
    fn index(&self, dimension: usize, name: &[u8], part: &DimensionPart) -> LabelResult<String> {
        let name = String::from_utf8_lossy(name);
        if let DimensionPart::Index(index) = part {
            return Ok(index.clone());
        }
        let coordinate = self.coordinate(dimension, &name)?;
        let Some(kind) = LabelKind::new(&coordinate.decoding) else {
            return refuse(format!("{name}: the coordinate has booleans, not labels"));
        };
        let parse = |text: &Vec<u8>| {
            let label = kind.parse_label(text);
            label.map_err(|reason| LabelFault::Reason(format!("{name}: {reason}")))
        };
        let bound = |text: &Vec<u8>| parse(text).map(LabelMatches::new);
        let positions = match part {
            DimensionPart::Index(index) => return Ok(index.clone()),
            DimensionPart::Value(value) => coordinate.value(&kind, bound(value)?)?,
            DimensionPart::Nearest(value) => {
                let nearest = NearestValue::new(parse(value)?, kind.is_single());
                coordinate.nearest(&kind, nearest)?
            }
            DimensionPart::Range(first, last) => {
                let first = first.as_ref().map(bound).transpose()?;
                let last = last.as_ref().map(bound).transpose()?;
                coordinate.range(&kind, first, last)?
            }
        };
        Ok(positions.to_index())
    }

    /// Returns the coordinate of a dimension called `name`.
    fn coordinate<'b>(
        &'b self,
        dimension: usize,
        name: &'b str,
    ) -> LabelResult<CoordinateReader<'b>> {
        let Some(variable) = self.coordinate_variable(dimension)? else {
            return refuse(format!(
                "{name}: the dimension has no coordinate with one dimension; \
                 {name}@0 selects by position"
            ));
        };
        let (length, values) = (self.array.shape.dims()[dimension], variable.dims());
        if values != [length] {
            return refuse(format!(
                "{name}: the coordinate has {} values, and the dimension has length {length}",
                values.first().copied().unwrap_or(1)
            ));
        }
        if length > limits::LABELS {
            return Err(
                Error::limit(format!("values of the coordinate {name}"), limits::LABELS).into(),
            );
        }
        let stored = (self.around.open)(variable.node, &variable.array)?;
        let elements = variable.decoding.join_characters(stored)?;
        Ok(CoordinateReader {
            name,
            elements,
            decoding: variable.decoding,
            around: self.around,
            cancel: self.cancel,
        })
    }

    /// Returns the coordinate variable of a dimension: a scale can be its own.
    fn coordinate_variable(&self, dimension: usize) -> Result<Option<Variable>> {
        let (container, dims) = (&*self.around.container, self.array.shape.dims());
        let paths = &*self.around.paths;
        let rank = dims.len();
        let (scales, _) = dimension_scales_and_labels(container, self.node.id, rank, paths)?;
        let siblings = GroupVariableCache::default();
        if scales.get(dimension) == Some(&Some(self.node.id)) {
            let path = || Ok(self.path.to_vec());
            return Variable::from_reference(container, self.node, &path, &siblings);
        }
        let finder = CoordinateFinder {
            container,
            paths: &self.around.paths,
            node: self.node.id,
            scales: &scales,
            dims,
            path: self.path,
            siblings: &siblings,
        };
        let found = finder.dimension_coordinate(dimension)?;
        Ok(found.map(|found| found.variable))
    }
}

impl CoordinateReader<'_> {
    /// Passes all values that are not missing to `visit`, with their positions.
    fn scan(
        &self,
        kind: &LabelKind<'_>,
        mut visit: impl FnMut(u64, &CoordinateValue),
    ) -> Result<CoordinateScan> {
        let count = self.elements.dims.iter().flatten().product::<u64>();
        if count > limits::QUICK_VALUES {
            self.cancel.require_heavy_slot()?;
        }
        let size = usize::try_from(self.elements.datatype.size).unwrap_or(usize::MAX);
        let mut scan = CoordinateScan::default();
        while scan.count < count {
            let batch = self.elements.batch_elements().min(count - scan.count);
            let bytes = self.elements.read(scan.count, batch, self.cancel)?;
            for element in bytes.chunks_exact(size.max(1)) {
                let value = kind.decode(element, &self.text_context())?;
                if let Some(value) = &value {
                    visit(scan.count, value);
                }
                scan.add(value);
            }
        }
        Ok(scan)
    }

    fn text_context(&self) -> TextContext<'_> {
        let around = self.around;
        let most = usize::try_from(limits::TEXT_ELEMENT_BYTES).unwrap_or(usize::MAX);
        TextContext::new(&*around.container, &*around.paths, most)
    }

    /// Returns the positions of the values that the label matches.
    fn value(
        &self,
        kind: &LabelKind<'_>,
        mut matches: LabelMatches,
    ) -> LabelResult<LabelledPositions> {
        let scan = self.scan(kind, |position, value| matches.add(position, value))?;
        let found = rules::value_positions(&scan, &matches, kind.has_only_periods());
        self.explain_refusal(&scan, found)
    }

    /// Returns the position of the value that is nearest to the label.
    fn nearest(
        &self,
        kind: &LabelKind<'_>,
        mut nearest: NearestValue,
    ) -> LabelResult<LabelledPositions> {
        if matches!(kind, LabelKind::Texts(_)) {
            return refuse(format!("{}: no text is nearest to another", self.name));
        }
        let scan = self.scan(kind, |position, value| nearest.add(position, value))?;
        self.explain_refusal(&scan, rules::nearest_position(&scan, &nearest))
    }

    /// Returns the positions from the first label to the last one.
    fn range(
        &self,
        kind: &LabelKind<'_>,
        mut first: Option<LabelMatches>,
        mut last: Option<LabelMatches>,
    ) -> LabelResult<LabelledPositions> {
        let scan = self.scan(kind, |position, value| {
            for label in [&mut first, &mut last].into_iter().flatten() {
                label.add(position, value);
            }
        })?;
        let found = rules::range_positions(&scan, first.as_ref(), last.as_ref());
        self.explain_refusal(&scan, found)
    }

    /// Converts a refusal to the reason that the user is told.
    fn explain_refusal(
        &self,
        scan: &CoordinateScan,
        found: std::result::Result<LabelledPositions, Refusal>,
    ) -> LabelResult<LabelledPositions> {
        let name = self.name;
        match found {
            Ok(positions) => Ok(positions),
            Err(Refusal::Absent) => self.refuse_absent(scan.count),
            Err(Refusal::TooManyPlaces) => {
                let what = format!("separate values of the coordinate {name} that match");
                Err(Error::limit(what, to_u64(limits::SELECTED_PLACES)).into())
            }
            Err(Refusal::RangeWithoutOrder) => refuse(format!(
                "{name}: the coordinate neither ascends nor descends, or has missing values, so a \
                 range needs bounds that are in it in one place"
            )),
            Err(Refusal::NearestWithoutOrder) => refuse(format!(
                "{name}: a nearest value needs a coordinate that ascends or descends without \
                 repeated or missing values"
            )),
        }
    }

    /// Refuses a label that no value matches. The reason names the first and the last value.
    fn refuse_absent<T>(&self, count: u64) -> LabelResult<T> {
        let name = self.name;
        let Some(last) = count.checked_sub(1) else {
            return refuse(format!("{name}: the coordinate has no values"));
        };
        let text = |position: u64| -> Result<String> {
            let element = self.elements.read(position, 1, self.cancel)?;
            let mut text = Vec::new();
            let context = self.text_context();
            self.decoding.write_text(&element, &context, &mut text)?;
            text.truncate(limits::NAMED_FIELDS);
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        refuse(format!(
            "{name}: no such value; the coordinate has {count} values from {} to {}",
            text(0)?,
            text(last)?
        ))
    }
}

impl LabelledPositions {
    /// Returns the index that selects the positions in a selector without names.
    fn to_index(&self) -> String {
        match self {
            LabelledPositions::Single(position) => position.to_string(),
            LabelledPositions::Slice(start, stop) => format!("{start}:{stop}"),
            LabelledPositions::List(positions) => {
                let positions: Vec<String> = positions.iter().map(u64::to_string).collect();
                format!("[{}]", positions.join(","))
            }
        }
    }
}

/// Returns the reason why a dimension is unknown, with the names of those that exist.
fn unknown_dimension(name: &[u8], names: &[Vec<u8>]) -> String {
    let name = String::from_utf8_lossy(name);
    let names: Vec<_> = names
        .iter()
        .map(|name| String::from_utf8_lossy(name))
        .collect();
    match &*names.join(", ") {
        "" => format!("no dimension \"{name}\": the array is a scalar"),
        names => {
            let names: String = names.chars().take(limits::NAMED_FIELDS).collect();
            format!("no dimension \"{name}\" (dimensions: {names})")
        }
    }
}
