//! The attributes of a computed netCDF file: those of a group, and those of its variables.
//!
//! | attribute in the source | attribute in the netCDF file |
//! |---|---|
//! | one text | `char` |
//! | numbers, booleans, enumerations, in one dimension | the same number type as for variables |
//! | several texts; numbers in several dimensions; any other value | absent |
//!
//! CDF-1 and CDF-2 lack some types of integers. In these versions, attributes of such types have the
//! next wider type that the versions have, at most `int`.

use std::ops::ControlFlow;

use h5fs_reader::error::Result;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::attribute_value::{attribute_texts, decode_strings, with_attribute_name};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::{Container, Datatype, NodeId, Scalar, ScalarValue};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::converted::Conversion;
use crate::limits;
use crate::netcdf::absent::{AbsentParts, Converted, Omission};
use crate::netcdf::names::NameSpace;
use crate::netcdf::types::{NetcdfType, NumberConversion, datatype_words};
use crate::zarr::attributes::{ABSENT_ATTRIBUTE, DECODING_ATTRIBUTES, HIDDEN_ATTRIBUTES};

/// An attribute in a computed netCDF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NetcdfAttribute {
    pub(super) name: Vec<u8>,
    pub(super) netcdf_type: NetcdfType,
    /// The values, big-endian.
    pub(super) values: Vec<u8>,
}

/// The attributes of one variable, or the global attributes of a netCDF file.
#[derive(Default)]
pub(super) struct NetcdfAttributes {
    pub(super) list: Vec<NetcdfAttribute>,
    names: NameSpace,
    /// Number of bytes of all names and values.
    pub(super) bytes: usize,
}

impl NetcdfAttribute {
    pub(super) fn from_text(name: Vec<u8>, text: Vec<u8>) -> Self {
        NetcdfAttribute {
            name,
            netcdf_type: NetcdfType::Char,
            values: text,
        }
    }

    /// Returns the number of values.
    pub(super) fn count(&self) -> u64 {
        to_u64(self.values.len()) / self.netcdf_type.size()
    }

    fn from_content(
        container: &dyn Container,
        name: &[u8],
        content: &AttributeContent,
    ) -> Converted<Self> {
        let datatype = &content.datatype;
        if matches!(
            datatype.class,
            Class::String { .. } | Class::VariableString { .. } | Class::Ucs4(_)
        ) {
            return Self::from_texts(container, name, content);
        }
        let Some(conversion) = NumberConversion::from_datatype(datatype) else {
            return Err(Omission::absent(datatype_words(datatype)));
        };
        let long_dims = content.shape.dims().iter().filter(|dim| **dim > 1);
        if long_dims.count() > 1 {
            return Err(Omission::absent("values in several dimensions"));
        }
        let mut values = Vec::new();
        let size = to_usize(datatype.size.into())?;
        conversion.convert_all(&content.elements, size, &mut values)?;
        Ok(NetcdfAttribute {
            name: name.to_vec(),
            netcdf_type: conversion.netcdf_type,
            values,
        })
    }

    fn from_texts(
        container: &dyn Container,
        name: &[u8],
        content: &AttributeContent,
    ) -> Converted<Self> {
        let size = to_usize(content.datatype.size.into())?.max(1);
        if content.elements.len() / size > 1 {
            return Err(Omission::absent("several texts"));
        }
        let mut texts = decode_strings(container, &content.datatype, &content.elements)?;
        let text = texts.pop().unwrap_or_default();
        Ok(Self::from_text(name.to_vec(), text))
    }

    fn from_scalar(name: &[u8], scalar: &Scalar) -> Converted<Self> {
        let (netcdf_type, values) = match &scalar.value {
            ScalarValue::Bool(value) => (NetcdfType::Byte, vec![u8::from(*value)]),
            ScalarValue::Float(value) => (NetcdfType::Double, value.to_be_bytes().to_vec()),
            ScalarValue::Int(digits) => {
                let number = digits.parse().ok();
                let types = [
                    NetcdfType::Int,
                    NetcdfType::Int64,
                    NetcdfType::UnsignedInt64,
                ];
                let mut fitting = types.into_iter().filter_map(|netcdf_type| {
                    Some((netcdf_type, encode_integers(netcdf_type, &[number?])?))
                });
                let found = fitting.next();
                found.ok_or_else(|| Omission::absent("an integer of more than 64 bits"))?
            }
            ScalarValue::String | ScalarValue::Timestamp => {
                return Ok(Self::from_text(
                    name.to_vec(),
                    scalar.text.clone().into_bytes(),
                ));
            }
            ScalarValue::Null => return Err(Omission::absent("null")),
            ScalarValue::Complex(..) => return Err(Omission::absent("complex numbers")),
            ScalarValue::Binary => return Err(Omission::absent("bytes")),
        };
        Ok(NetcdfAttribute {
            name: name.to_vec(),
            netcdf_type,
            values,
        })
    }

    /// Returns the values if they are integers.
    fn integers(&self) -> Option<Vec<i128>> {
        let range = self.netcdf_type.integer_range()?;
        let size = usize::try_from(self.netcdf_type.size()).ok()?;
        let is_signed = *range.start() < 0;
        let each = self.values.chunks_exact(size);
        let numbers = each.map(|value| {
            let is_negative = is_signed && value.first().is_some_and(|first| first & 0x80 != 0);
            let begin: i128 = if is_negative { -1 } else { 0 };
            value
                .iter()
                .fold(begin, |number, &byte| number << 8 | i128::from(byte))
        });
        Some(numbers.collect())
    }

    /// Converts the integers to a type that CDF-1 and CDF-2 have. Returns false if no such type has
    /// all values; the attribute is then unchanged.
    pub(super) fn make_classic(&mut self) -> bool {
        let wider = match self.netcdf_type {
            NetcdfType::UnsignedByte => NetcdfType::Short,
            NetcdfType::UnsignedShort
            | NetcdfType::UnsignedInt
            | NetcdfType::Int64
            | NetcdfType::UnsignedInt64 => NetcdfType::Int,
            _ => return true,
        };
        self.convert_to(wider)
    }

    /// Converts numbers to the type `wanted`. Returns false if the type does not have all values; the
    /// attribute is then unchanged.
    fn convert_to(&mut self, wanted: NetcdfType) -> bool {
        let values = match (self.netcdf_type, wanted) {
            (NetcdfType::Float, NetcdfType::Double) => Some(self.to_doubles()),
            (NetcdfType::Double, NetcdfType::Float) => self.to_singles(),
            _ => self
                .integers()
                .and_then(|values| encode_integers(wanted, &values)),
        };
        let is_converted = values.is_some();
        if let Some(values) = values {
            self.values = values;
            self.netcdf_type = wanted;
        }
        is_converted
    }
}

impl NetcdfAttribute {
    fn to_doubles(&self) -> Vec<u8> {
        let singles = self.values.as_chunks().0.iter();
        let doubles =
            singles.flat_map(|&single| f64::from(f32::from_be_bytes(single)).to_be_bytes());
        doubles.collect()
    }

    /// Returns the values as single floats; `None` if a value has more digits.
    fn to_singles(&self) -> Option<Vec<u8>> {
        let mut singles = Vec::new();
        for &double in self.values.as_chunks().0 {
            let double = f64::from_be_bytes(double);
            let single = double as f32;
            let is_equal = f64::from(single) == double || double.is_nan();
            singles.extend(is_equal.then(|| single.to_be_bytes())?);
        }
        Some(singles)
    }
}

/// Returns integers as big-endian values of a type; `None` if the type does not have all of them.
fn encode_integers(netcdf_type: NetcdfType, numbers: &[i128]) -> Option<Vec<u8>> {
    let range = netcdf_type.integer_range()?;
    let size = usize::try_from(netcdf_type.size()).ok()?;
    let mut values = Vec::new();
    for number in numbers {
        let bytes = number.to_be_bytes();
        let first = bytes.len().checked_sub(size)?;
        let low = bytes.get(first..).filter(|_| range.contains(number))?;
        values.extend_from_slice(low);
    }
    Some(values)
}

impl NetcdfAttributes {
    /// Reads the attributes of a group.
    ///
    /// # Errors
    /// Fails if an attribute cannot be read at the moment.
    pub(super) fn read_group(
        container: &dyn Container,
        group: NodeId,
        absent: &mut AbsentParts,
    ) -> Result<Self> {
        if container.members_csv().is_some() {
            // In a joined container, attributes that differ between the files are also absent.
            let names = attribute_texts(container, group, ABSENT_ATTRIBUTE)?;
            for name in names.unwrap_or_default() {
                absent.add(&name, "not in the joined file");
            }
        }
        let mut all = NetcdfAttributes::default();
        match all.read(container, group, None, absent) {
            Err(Omission::Temporary(error)) => return Err(error),
            Err(Omission::Absent(reason)) => absent.add(b"@", reason),
            Ok(()) => {}
        }
        Ok(all)
    }

    /// Reads the attributes of the variable `name`.
    ///
    /// # Errors
    /// `Absent` if an attribute is damaged that readers need to decode the values.
    pub(super) fn read_variable(
        container: &dyn Container,
        node: NodeId,
        name: &[u8],
        absent: &mut AbsentParts,
    ) -> Converted<Self> {
        let mut all = NetcdfAttributes::default();
        all.read(container, node, Some(name), absent)?;
        Ok(all)
    }

    fn read(
        &mut self,
        container: &dyn Container,
        node: NodeId,
        variable: Option<&[u8]>,
        absent: &mut AbsentParts,
    ) -> Converted<()> {
        let mut failure = Ok(());
        let listed = container.attributes(node, &mut |attribute| {
            let name = &*attribute.name;
            if HIDDEN_ATTRIBUTES.contains(&name) {
                return ControlFlow::Continue(());
            }
            let is_needed = variable.is_some() && DECODING_ATTRIBUTES.contains(&name);
            let added = match attribute.content {
                Err(error) if error.is_transient() || is_needed => {
                    failure = Err(with_attribute_name(error, name));
                    return ControlFlow::Break(());
                }
                Err(error) => Err(error.into()),
                Ok(content) => self.add_content(container, name, &content),
            };
            match added {
                Ok(()) => {}
                Err(Omission::Temporary(error)) => {
                    failure = Err(error);
                    return ControlFlow::Break(());
                }
                Err(Omission::Absent(reason)) => {
                    absent.add(&[variable.unwrap_or_default(), b"@", name].concat(), reason);
                }
            }
            ControlFlow::Continue(())
        });
        failure.and(listed).map_err(Omission::from)
    }

    fn add_content(
        &mut self,
        container: &dyn Container,
        name: &[u8],
        content: &AttributeContent,
    ) -> Converted<()> {
        self.add(NetcdfAttribute::from_content(container, name, content)?)
    }

    /// Adds an ASDF scalar as an attribute of its group.
    ///
    /// # Errors
    /// `Absent` if netCDF does not have such a value.
    pub(super) fn add_scalar(&mut self, name: &[u8], scalar: &Scalar) -> Converted<()> {
        self.add(NetcdfAttribute::from_scalar(name, scalar)?)
    }

    fn add(&mut self, mut attribute: NetcdfAttribute) -> Converted<()> {
        let bytes = attribute.name.len() + attribute.values.len();
        if bytes > limits::NETCDF_HEADER.saturating_sub(self.bytes) {
            return Err(Omission::absent("too long for the header"));
        }
        self.bytes += bytes;
        attribute.name = self.names.add(&attribute.name)?;
        self.list.push(attribute);
        Ok(())
    }

    fn find(&mut self, name: &[u8]) -> Option<&mut NetcdfAttribute> {
        self.list
            .iter_mut()
            .find(|attribute| attribute.name == name)
    }

    /// Adds a text, unless an attribute has this name.
    pub(super) fn add_text_if_missing(&mut self, name: &[u8], text: &[u8]) {
        if self.find(name).is_none() {
            let attribute = NetcdfAttribute::from_text(name.to_vec(), text.to_vec());
            self.list.push(attribute);
        }
    }

    /// Gives `_FillValue` the type of its variable, as netCDF requires. Returns false if the
    /// variable cannot have this value; the attribute is then removed.
    pub(super) fn fit_fill_value(&mut self, netcdf_type: NetcdfType) -> bool {
        const NAME: &[u8] = b"_FillValue";
        let Some(fill) = self.find(NAME) else {
            return true;
        };
        let has_type = fill.netcdf_type == netcdf_type || fill.convert_to(netcdf_type);
        let fits = has_type && fill.count() == 1;
        if !fits {
            self.list.retain(|attribute| attribute.name != NAME);
        }
        fits
    }

    /// Adds the names of an enumeration's values as `flag_values` and `flag_meanings` (CF 1.12,
    /// 3.5). Returns false if a name is not one word of the characters that CF allows.
    pub(super) fn add_flags(&mut self, datatype: &Datatype) -> bool {
        const VALUES: &[u8] = b"flag_values";
        const MEANINGS: &[u8] = b"flag_meanings";
        let Class::Enumeration { base, members } = &datatype.class else {
            return true;
        };
        if self.find(VALUES).is_some() || self.find(MEANINGS).is_some() {
            return true;
        }
        let is_word = |name: &[u8]| {
            let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.+@".contains(byte);
            !name.is_empty() && name.iter().all(allowed)
        };
        let (conversion, bytes) = (NumberConversion::from_datatype(base), base.size);
        let Some(conversion) = conversion.filter(|_| members.iter().all(|(name, _)| is_word(name)))
        else {
            return false;
        };
        let numbers: Vec<&[u8]> = members.iter().map(|(_, number)| &**number).collect();
        let names: Vec<&[u8]> = members.iter().map(|(name, _)| &**name).collect();
        let mut values = Vec::new();
        let size = usize::try_from(bytes).unwrap_or_default();
        let is_converted = conversion.convert_all(&numbers.concat(), size, &mut values);
        if is_converted.is_err() {
            return false;
        }
        self.list.push(NetcdfAttribute {
            name: VALUES.to_vec(),
            netcdf_type: conversion.netcdf_type,
            values,
        });
        self.add_text_if_missing(MEANINGS, &names.join(&b' '));
        true
    }
}

#[cfg(test)]
mod tests;
