use super::*;
use crate::netcdf::types::NetcdfType;
use crate::text_files::text::InMemoryContent;

fn variable(name: &str, dimensions: &[usize], netcdf_type: NetcdfType) -> VariableHeader {
    VariableHeader {
        name: name.into(),
        dimensions: dimensions.to_vec(),
        attributes: Vec::new(),
        netcdf_type,
    }
}

fn header(lengths: &[u64], variables: Vec<VariableHeader>) -> Header {
    let dimensions = lengths
        .iter()
        .enumerate()
        .map(|(number, &length)| FileDimension {
            name: format!("d{number}").into_bytes(),
            length,
        });
    Header {
        record_count: 0,
        dimensions: dimensions.collect(),
        attributes: Vec::new(),
        variables,
    }
}

fn shape(dims: &[u64], value_bytes: u64) -> DataShape {
    DataShape {
        dims: dims.to_vec(),
        is_record: false,
        value_bytes,
    }
}

fn version(mut header: Header, shapes: &[DataShape]) -> FormatVersion {
    choose_version(&mut header, shapes).unwrap()
}

#[test]
fn types_choose_the_version() {
    let of_type = |netcdf_type| {
        let header = header(&[3], vec![variable("v", &[0], netcdf_type)]);
        version(header, &[shape(&[3], netcdf_type.size())])
    };
    assert_eq!(of_type(NetcdfType::Double), FormatVersion::Classic);
    assert_eq!(of_type(NetcdfType::UnsignedByte), FormatVersion::Data64);
    assert_eq!(of_type(NetcdfType::Int64), FormatVersion::Data64);
}

#[test]
fn sizes_choose_the_version() {
    let of_dims = |dims: &[u64]| {
        let numbers: Vec<usize> = (0..dims.len()).collect();
        let header = header(dims, vec![variable("v", &numbers, NetcdfType::Byte)]);
        version(header, &[shape(dims, 1)])
    };
    let most = 1 << 31;
    assert_eq!(of_dims(&[most - 1000]), FormatVersion::Classic);
    assert_eq!(of_dims(&[most - 1]), FormatVersion::Offsets64);
    assert_eq!(of_dims(&[most]), FormatVersion::Data64);
    // The greatest size of a variable is 4 GiB minus 4 bytes.
    assert_eq!(of_dims(&[1 << 30, 3]), FormatVersion::Offsets64);
    assert_eq!(of_dims(&[(1 << 30) - 1, 4]), FormatVersion::Offsets64);
    assert_eq!(of_dims(&[1 << 30, 4]), FormatVersion::Data64);
    let mut many = header(&[0], Vec::new());
    many.record_count = most;
    assert_eq!(version(many, &[]), FormatVersion::Data64);
}

#[test]
fn attributes_change_their_type_only_in_old_versions() {
    let attribute = |values: u64| NetcdfAttribute {
        name: b"a".to_vec(),
        netcdf_type: NetcdfType::Int64,
        values: values.to_be_bytes().to_vec(),
    };
    let with = |values, netcdf_type| {
        let mut header = header(&[], vec![variable("v", &[], netcdf_type)]);
        header.attributes.push(attribute(7));
        header.variables[0].attributes.push(attribute(values));
        let version = choose_version(&mut header, &[shape(&[], 4)]).unwrap();
        (version, header.attributes[0].netcdf_type)
    };
    let (old, new) = (FormatVersion::Classic, FormatVersion::Data64);
    assert_eq!(with(9, NetcdfType::Int), (old, NetcdfType::Int));
    assert_eq!(with(1 << 40, NetcdfType::Int), (new, NetcdfType::Int64));
    assert_eq!(with(9, NetcdfType::UnsignedInt), (new, NetcdfType::Int64));
}

/// Expected: written by hand from the grammar of CDF-1.
#[test]
fn the_bytes_of_a_whole_file() {
    let variables = vec![
        variable("b", &[0], NetcdfType::Byte),
        variable("i", &[], NetcdfType::Int),
    ];
    let shapes = [shape(&[3], 1), shape(&[], 4)];
    let content = |bytes: &[u8]| Box::new(InMemoryContent::new(bytes.to_vec())) as Box<dyn View>;
    let contents = vec![content(&[1, 2, 3]), content(&[0, 0, 1, 0])];
    let file = assemble(header(&[3], variables), &shapes, contents).unwrap();
    let expected: &[&[u8]] = &[
        b"CDF\x01\0\0\0\0",
        b"\0\0\0\x0A\0\0\0\x01\0\0\0\x02d0\0\0\0\0\0\x03",
        b"\0\0\0\0\0\0\0\0",
        b"\0\0\0\x0B\0\0\0\x02",
        b"\0\0\0\x01b\0\0\0\0\0\0\x01\0\0\0\0",
        b"\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x04\0\0\0\x70",
        b"\0\0\0\x01i\0\0\0\0\0\0\0",
        b"\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\x04\0\0\0\x74",
        // The padding is netCDF's default fill value.
        b"\x01\x02\x03\x81",
        b"\0\0\x01\0",
    ];
    let whole = expected.concat();
    assert_eq!(file.length(), whole.len() as u64);
    assert_eq!(&file.read_at(0, 1000).unwrap()[..], whole);
}

#[test]
fn a_header_and_its_variables_are_bounded() {
    assert!(check_header_length(limits::NETCDF_HEADER).is_ok());
    assert!(check_header_length(limits::NETCDF_HEADER + 1).is_err());
    assert!(check_variable_count(limits::NETCDF_VARIABLES - 1).is_ok());
    assert!(check_variable_count(limits::NETCDF_VARIABLES).is_err());
}
