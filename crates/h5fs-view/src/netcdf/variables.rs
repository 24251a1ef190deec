//! The variables of a file: arrays of the source whose elements netCDF can have.

use std::sync::Arc;

use h5fs_conventions::dimensions::{is_scale, scales};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::shape::product;
use h5fs_reader::model::{Array, Datatype, Node, NodeId};

use crate::elements::converted::ConvertedElements;
use crate::elements::strings::StringStorage;
use crate::elements::{Elements, element_type};
use crate::netcdf::absent::{AbsentParts, Converted, Omission};
use crate::netcdf::attributes::NetcdfAttributes;
use crate::netcdf::dimensions::DimensionTable;
use crate::netcdf::source::NetcdfSource;
use crate::netcdf::texts::{self, TextConversion};
use crate::netcdf::types::{NetcdfType, NumberConversion, datatype_words};
use crate::text_files::text::InMemoryContent;
use crate::view::View;
use crate::zarr::chunk::UnreadableChunk;

/// An array of the source that becomes a variable of the netCDF file.
pub(super) struct SourceVariable {
    /// The name in the source.
    pub(super) name: Vec<u8>,
    node: NodeId,
    array: Arc<Array>,
    /// The number of elements of the array.
    count: u64,
    /// The indices of the dimensions, slowest first.
    pub(super) dimensions: Vec<usize>,
    pub(super) attributes: NetcdfAttributes,
    values: VariableValues,
}

/// The conversion of an array's elements to the values of a netCDF variable.
enum VariableValues {
    Numbers(NumberConversion),
    /// Characters of one byte each, unchanged.
    Characters,
    /// Texts, as rows of this many characters.
    Texts(u64),
}

/// Returns whether the elements of an array can be values of a netCDF variable. Of its dimensions,
/// only an unlimited first one can have length 0, because it can be the record dimension.
///
/// # Errors
/// `Limit` for an array that is longer than any file can be.
pub(super) fn has_values(array: &Array) -> Result<bool> {
    let (datatype, dims) = element_type(&array.datatype, &array.shape)?;
    let records = usize::from(array.shape.max().first() == Some(&None));
    let has_dims = dims.is_some_and(|dims| dims.iter().skip(records).all(|dim| *dim > 0));
    let is_text = || StringStorage::from_field_type(&datatype).is_some();
    Ok(has_dims && (is_text() || NumberConversion::from_datatype(&datatype).is_some()))
}

impl SourceVariable {
    /// Converts the array `node`, called `name`, to a variable. Adds its dimensions to `table`.
    ///
    /// # Errors
    /// `Absent` if netCDF does not have such values, or if an attribute is damaged that readers need
    /// for the values or their dimensions.
    pub(super) fn read(
        source: &NetcdfSource<'_>,
        (name, node): (&[u8], &Node),
        table: &mut DimensionTable,
        absent: &mut AbsentParts,
    ) -> Converted<Self> {
        let array = node
            .array()
            .ok_or_else(|| Omission::absent("not an array"))?;
        let (datatype, dims) = element_type(&array.datatype, &array.shape)?;
        let dims = dims.ok_or_else(|| Omission::absent("a null dataspace"))?;
        let container = &*source.container;
        let mut attributes = NetcdfAttributes::read_variable(container, node.id, name, absent)?;
        let values = VariableValues::new(source, node.id, array, &datatype)?;
        values.describe(&datatype, name, &mut attributes, absent);
        let path = || Ok((source.paths)(node.id)?.unwrap_or_default());
        let rank = array.shape.dims().len();
        let scales = scales(
            container,
            node.id,
            rank,
            &path,
            is_scale(container, node.id)?,
        )?;
        let mut dimensions =
            table.dimensions_of_array(source, (node.id, &array.shape), &scales, &dims)?;
        if let VariableValues::Texts(width) = values {
            dimensions.push(table.character_dimension(width)?);
        }
        Ok(SourceVariable {
            name: name.to_vec(),
            node: node.id,
            array: Arc::clone(array),
            count: product(&dims)?,
            dimensions,
            attributes,
            values,
        })
    }

    pub(super) fn netcdf_type(&self) -> NetcdfType {
        self.values.netcdf_type()
    }

    /// Opens the values as the bytes that the file has. If the array cannot be read, each read of
    /// them fails.
    ///
    /// # Errors
    /// Fails if the array cannot be opened at the moment.
    pub(super) fn open(&self, source: &NetcdfSource<'_>) -> Result<Box<dyn View>> {
        let length = self.count.saturating_mul(self.values.element_bytes());
        if length == 0 {
            return Ok(Box::new(InMemoryContent::new(Vec::new())));
        }
        let storage = self.array.storage.as_ref().map(drop).map_err(Clone::clone);
        let opened = storage
            .and_then(|()| (source.open)(self.node, &self.array))
            .and_then(|elements| self.convert(source, elements));
        match opened {
            Err(error) if !error.is_transient() => Ok(Box::new(UnreadableChunk { length, error })),
            opened => opened,
        }
    }

    fn convert(&self, source: &NetcdfSource<'_>, elements: Elements) -> Result<Box<dyn View>> {
        let (count, stored_size) = (self.count, u64::from(elements.datatype.size));
        let size = self.values.element_bytes();
        Ok(match &self.values {
            VariableValues::Characters => elements.content,
            VariableValues::Numbers(conversion) if conversion.is_unchanged() => elements.content,
            VariableValues::Numbers(_) => Box::new(ConvertedElements {
                conversion: NumberConversion::from_datatype(&elements.datatype)
                    .ok_or(Error::NotFound)?,
                content: elements.content,
                count,
                stored_size,
                size,
            }),
            VariableValues::Texts(width) => Box::new(ConvertedElements {
                conversion: TextConversion::new(
                    &elements.datatype,
                    Arc::clone(&source.container),
                    *width,
                )?,
                content: elements.content,
                count,
                stored_size,
                size,
            }),
        })
    }
}

impl VariableValues {
    fn new(
        source: &NetcdfSource<'_>,
        node: NodeId,
        array: &Arc<Array>,
        datatype: &Datatype,
    ) -> Converted<Self> {
        if StringStorage::from_field_type(datatype).is_some() {
            return Ok(match texts::fixed_width(datatype) {
                Some(1) => VariableValues::Characters,
                Some(width) => VariableValues::Texts(width),
                None => VariableValues::Texts(measured_width(source, node, array)?),
            });
        }
        let conversion = NumberConversion::from_datatype(datatype);
        let conversion = conversion.map(VariableValues::Numbers);
        conversion.ok_or_else(|| Omission::absent(datatype_words(datatype)))
    }

    fn netcdf_type(&self) -> NetcdfType {
        match self {
            VariableValues::Numbers(conversion) => conversion.netcdf_type,
            VariableValues::Characters | VariableValues::Texts(_) => NetcdfType::Char,
        }
    }

    /// Returns the number of bytes of one element of the array in the file.
    fn element_bytes(&self) -> u64 {
        match self {
            VariableValues::Texts(width) => *width,
            _ => self.netcdf_type().size(),
        }
    }

    /// Completes the attributes of the variable `name`: the type of its fill value, the encoding of
    /// its texts, and the names of an enumeration.
    fn describe(
        &self,
        datatype: &Datatype,
        name: &[u8],
        attributes: &mut NetcdfAttributes,
        absent: &mut AbsentParts,
    ) {
        if !attributes.fit_fill_value(self.netcdf_type()) {
            let what = [name, b"@_FillValue"].concat();
            absent.add(&what, "not a value of the variable's type");
        }
        if matches!(self, VariableValues::Texts(_)) && texts::is_utf8(datatype) {
            attributes.add_text_if_missing(b"_Encoding", b"utf-8");
        }
        if !attributes.add_flags(datatype) {
            absent.add(name, "the names of its values, which are not words");
        }
    }
}

/// Returns the length of the longest text of variable length, at least 1.
fn measured_width(source: &NetcdfSource<'_>, node: NodeId, array: &Arc<Array>) -> Converted<u64> {
    array.storage.as_ref().map_err(Clone::clone)?;
    let width = (source.text_width)(node, &|bounds| {
        let elements = (source.open)(node, array)?;
        texts::longest_text(&elements, &*source.container, bounds)
    });
    Ok(width?)
}
