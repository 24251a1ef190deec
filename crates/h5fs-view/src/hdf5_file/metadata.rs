//! The object headers of the computed file.

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::hdf5::encode::attribute::{self, AttributeMessage};
use h5fs_reader::hdf5::encode::fill_value::{self, FillValue};
use h5fs_reader::hdf5::encode::link::{self, LinkInformation, LinkMessage};
use h5fs_reader::hdf5::encode::object_header::ObjectHeader;
use h5fs_reader::hdf5::encode::{Message, data_layout, dataspace, datatype, reference_count};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::Charset;
use h5fs_reader::model::{Attribute, Datatype, NodeId, Shape};
use h5fs_reader::wire::to_u64;

use crate::hdf5_file::absences::{self, Absences};
use crate::hdf5_file::attribute_values::{ConvertedValue, ValueConverter};
use crate::hdf5_file::dataset::Dataset;
use crate::hdf5_file::elements::OrAbsent;
use crate::hdf5_file::metadata_heap::MetadataHeap;
use crate::hdf5_file::objects::{
    ObjectContent, PlannedLink, PlannedObject, PlannedObjects, PlannedTarget,
};
use crate::hdf5_file::scalar::text_datatype;
use crate::hdf5_file::source::Hdf5Source;
use crate::limits;

/// The addresses of the structures in the computed file. They are 0 while the sizes are computed.
#[derive(Default)]
pub(super) struct Addresses {
    /// The header of each object.
    pub(super) headers: Vec<u64>,
    /// The elements of each object that has elements.
    pub(super) elements: Vec<Option<u64>>,
    /// The root of the chunk index of each object that has chunks.
    pub(super) chunk_indexes: Vec<Option<u64>>,
    /// The first collection of the heap for attributes.
    pub(super) heap: u64,
}

/// Writes object headers.
pub(super) struct HeaderWriter<'a> {
    source: &'a Hdf5Source,
    planned: &'a PlannedObjects,
    addresses: &'a Addresses,
    /// The value of the root attribute that lists what is absent.
    absent: Option<&'a str>,
    pub(super) heap: MetadataHeap,
    /// Attributes that the computed file does not have.
    pub(super) absences: Absences,
    remaining_bytes: u64,
}

impl<'a> HeaderWriter<'a> {
    pub(super) fn new(
        source: &'a Hdf5Source,
        planned: &'a PlannedObjects,
        addresses: &'a Addresses,
        absent: Option<&'a str>,
    ) -> Self {
        HeaderWriter {
            source,
            planned,
            addresses,
            absent,
            heap: MetadataHeap::at(addresses.heap),
            absences: Absences::default(),
            remaining_bytes: limits::HDF5_FILE_METADATA,
        }
    }

    /// Returns the headers of all objects, in the order of their numbers.
    ///
    /// # Errors
    /// `Limit` if the headers and the heap take too many bytes. Fails if an attribute cannot be
    /// read now.
    pub(super) fn headers(&mut self, cancel: &CancelToken) -> Result<Vec<ObjectHeader>> {
        let mut bytes = 0_u64;
        let mut headers = Vec::with_capacity(self.planned.objects.len());
        for number in 0..self.planned.objects.len() {
            cancel.check_cancelled()?;
            let header = self.header(number)?;
            bytes = bytes.saturating_add(header.length());
            Error::check_limit(
                bytes,
                limits::HDF5_FILE_METADATA,
                "bytes of the metadata of a computed HDF5 file",
            )?;
            headers.push(header);
        }
        Ok(headers)
    }

    /// Returns the header of the object with this number.
    ///
    /// # Errors
    /// Fails if an attribute cannot be read now.
    pub(super) fn header(&mut self, number: usize) -> Result<ObjectHeader> {
        let planned = self.planned;
        let object = &planned.objects[number];
        let mut header = match object.modified {
            Some(seconds) => ObjectHeader::new().with_modification_time(seconds),
            None => ObjectHeader::new(),
        };
        match &object.content {
            ObjectContent::Group(links) => self.add_links(links, &mut header)?,
            ObjectContent::Dataset(dataset) => self.add_dataset(number, dataset, &mut header)?,
            ObjectContent::Scalar(scalar) => {
                let elements = self.elements_address(number);
                add_array(&mut header, &scalar.shape, &scalar.datatype, None)?;
                let length = to_u64(scalar.element.len());
                header.add(&data_layout::encode_contiguous(elements, length))?;
            }
            ObjectContent::CommittedDatatype(datatype) => {
                header.add(&datatype::encode(datatype)?)?;
            }
        }
        if object.link_count > 1 {
            header.add(&reference_count::encode(object.link_count))?;
        }
        self.add_attributes(number, object, &mut header)?;
        Ok(header)
    }

    fn elements_address(&self, number: usize) -> Option<u64> {
        self.addresses.elements.get(number).copied().flatten()
    }

    fn header_address(&self, number: usize) -> u64 {
        self.addresses.headers.get(number).copied().unwrap_or(0)
    }

    fn add_links(&self, links: &[PlannedLink], header: &mut ObjectHeader) -> Result<()> {
        header.add(&link::encode_info(to_u64(links.len())))?;
        header.add(&link::encode_group_info())?;
        for (order, planned) in (0..).zip(links) {
            header.add(&link::encode(&LinkMessage {
                name: &planned.name,
                charset: charset_of(&planned.name),
                creation_order: order,
                target: match &planned.target {
                    PlannedTarget::Object(number) => {
                        LinkInformation::Hard(self.header_address(*number))
                    }
                    PlannedTarget::Soft(path) => LinkInformation::Soft(path),
                },
            })?)?;
        }
        Ok(())
    }

    fn add_dataset(
        &mut self,
        number: usize,
        dataset: &Dataset,
        header: &mut ObjectHeader,
    ) -> Result<()> {
        // A fill value that the computed file cannot have is the default.
        let fill = match &dataset.fill {
            Some(fill) => self.convert(fill)?.ok().map(|value| value.elements),
            None => None,
        };
        add_array(header, &dataset.shape, &dataset.datatype, fill.as_deref())?;
        let layout = match dataset.chunks {
            Some(chunks) => {
                let index = self.addresses.chunk_indexes.get(number).copied().flatten();
                let shape = chunks.shape(dataset.shape.dims());
                data_layout::encode_chunked(index, &shape, dataset.datatype.size)?
            }
            None => {
                let elements = self.elements_address(number);
                data_layout::encode_contiguous(elements, dataset.element_bytes)
            }
        };
        header.add(&layout)
    }

    /// Adds the attributes of an object that the computed file can have.
    fn add_attributes(
        &mut self,
        number: usize,
        object: &PlannedObject,
        header: &mut ObjectHeader,
    ) -> Result<()> {
        let mut encoded = Vec::new();
        for attribute in &object.attributes {
            if let Some(attribute) = self.encode_attribute(object, attribute)? {
                encoded.push(attribute);
            }
        }
        if let Some(text) = self.absent.filter(|_| number == 0) {
            let content = AttributeContent {
                datatype: text_datatype(text.len()),
                shape: Shape::fixed(Vec::new()),
                elements: text.as_bytes().into(),
            };
            let attribute = Attribute {
                name: absences::ATTRIBUTE_NAME.to_vec(),
                content: Ok(content),
            };
            encoded.extend(self.encode_attribute(object, &attribute)?);
        }
        if !encoded.is_empty() {
            let count = u16::try_from(encoded.len()).unwrap_or(u16::MAX);
            header.add(&attribute::encode_info(count))?;
        }
        for attribute in encoded {
            header.add(&attribute)?;
        }
        Ok(())
    }

    /// Converts a value to the computed file. Returns the reason if the computed file cannot have
    /// it.
    fn convert(&mut self, content: &AttributeContent) -> Result<OrAbsent<ConvertedValue>> {
        let (planned, addresses) = (self.planned, self.addresses);
        let address_of = |node: NodeId| {
            let number = planned.numbers.get(&node)?;
            addresses.headers.get(*number).copied()
        };
        let mut converter = ValueConverter {
            container: &*self.source.container,
            address_of: &address_of,
            heap: &mut self.heap,
            remaining_bytes: &mut self.remaining_bytes,
        };
        converter.convert(content)
    }

    /// Returns the attribute message, or `None` if the computed file cannot have the attribute.
    fn encode_attribute(
        &mut self,
        object: &PlannedObject,
        attribute: &Attribute,
    ) -> Result<Option<Message>> {
        let path = &object.path;
        let content = match &attribute.content {
            Ok(content) => content,
            Err(error) if error.is_transient() => return Err(error.clone()),
            Err(error) => {
                let reason = error.to_string();
                self.absences.add_attribute(path, &attribute.name, &reason);
                return Ok(None);
            }
        };
        let value = match self.convert(content)? {
            Ok(value) => value,
            Err(reason) => {
                self.absences.add_attribute(path, &attribute.name, reason);
                return Ok(None);
            }
        };
        match encoded_attribute(&attribute.name, &value, &content.shape) {
            Ok(encoded) => Ok(Some(encoded)),
            Err(error) => {
                let reason = error.to_string();
                self.absences.add_attribute(path, &attribute.name, &reason);
                Ok(None)
            }
        }
    }
}

fn encoded_attribute(name: &[u8], value: &ConvertedValue, shape: &Shape) -> Result<Message> {
    attribute::encode(&AttributeMessage {
        name,
        charset: charset_of(name),
        datatype: &datatype::encode(&value.datatype)?,
        dataspace: &dataspace::encode(shape)?,
        elements: &value.elements,
    })
}

/// Adds the messages about the shape, the type and the fill value of an array.
fn add_array(
    header: &mut ObjectHeader,
    shape: &Shape,
    element: &Datatype,
    fill: Option<&[u8]>,
) -> Result<()> {
    header.add(&dataspace::encode(shape)?)?;
    header.add(&datatype::encode(element)?)?;
    header.add(&fill_value::encode(
        fill.map_or(FillValue::Default, FillValue::Value),
    )?)
}

/// Returns the character set of a name: ASCII if it has only such characters.
fn charset_of(name: &[u8]) -> Charset {
    if name.is_ascii() {
        Charset::Ascii
    } else {
        Charset::Utf8
    }
}
