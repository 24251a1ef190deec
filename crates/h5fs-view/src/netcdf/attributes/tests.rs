use super::*;
use h5fs_reader::model::Shape;
use h5fs_reader::model::datatype::{ByteOrder, Charset, StringPadding};
use h5fs_reader::testing::{Heap, int, member, type_of};

fn content(datatype: Datatype, dims: &[u64], elements: &[u8]) -> AttributeContent {
    AttributeContent {
        datatype,
        shape: Shape::fixed(dims.to_vec()),
        elements: elements.into(),
    }
}

fn text(size: u32) -> Datatype {
    let (padding, charset) = (StringPadding::NullPadded, Charset::Ascii);
    type_of(size, Class::String { padding, charset })
}

/// Returns the type and the values of the attribute, or why it is absent.
fn convert_attribute(
    datatype: Datatype,
    dims: &[u64],
    elements: &[u8],
) -> std::result::Result<(NetcdfType, Vec<u8>), String> {
    let heap = Heap(vec![b"by pointer".to_vec()]);
    match NetcdfAttribute::from_content(&heap, b"a", &content(datatype, dims, elements)) {
        Ok(attribute) => Ok((attribute.netcdf_type, attribute.values)),
        Err(Omission::Absent(reason)) => Err(reason),
        Err(Omission::Temporary(error)) => panic!("{error}"),
    }
}

#[test]
fn values_that_netcdf_supports() {
    assert_eq!(
        convert_attribute(int(2), &[2], &[1, 2, 3, 4]),
        Ok((NetcdfType::Short, vec![2, 1, 4, 3]))
    );
    assert_eq!(
        convert_attribute(int(2), &[1, 2], &[1, 2, 3, 4]).unwrap().1,
        [2, 1, 4, 3]
    );
    assert_eq!(
        convert_attribute(int(4), &[0], &[]),
        Ok((NetcdfType::Int, vec![]))
    );
    assert_eq!(
        convert_attribute(text(4), &[], b"ab\0\0"),
        Ok((NetcdfType::Char, b"ab".to_vec()))
    );
    assert_eq!(
        convert_attribute(text(4), &[0], b""),
        Ok((NetcdfType::Char, vec![]))
    );
    let (padding, charset) = (StringPadding::NullTerminated, Charset::Utf8);
    let pointer = type_of(1, Class::VariableString { padding, charset });
    assert_eq!(
        convert_attribute(pointer.clone(), &[1], &[0]).unwrap().1,
        b"by pointer"
    );
    assert_eq!(convert_attribute(pointer, &[], &[9]).unwrap().1, b"");
}

#[test]
fn values_that_netcdf_does_not_support() {
    assert_eq!(
        convert_attribute(text(2), &[2], b"abcd"),
        Err("several texts".to_owned())
    );
    let several = Err("values in several dimensions".to_owned());
    assert_eq!(convert_attribute(int(1), &[2, 2], &[1, 2, 3, 4]), several);
    let record = type_of(2, Class::Compound(vec![member("n", 0, int(2))]));
    assert_eq!(
        convert_attribute(record, &[], &[1, 2]),
        Err("compounds".to_owned())
    );
}

fn integers(netcdf_type: NetcdfType, numbers: &[i128]) -> NetcdfAttribute {
    NetcdfAttribute {
        name: b"a".to_vec(),
        netcdf_type,
        values: encode_integers(netcdf_type, numbers).unwrap(),
    }
}

#[test]
fn integers_of_other_versions_become_wider_or_stay() {
    let classic = |netcdf_type, numbers: &[i128]| {
        let mut attribute = integers(netcdf_type, numbers);
        assert_eq!(attribute.integers().unwrap(), numbers);
        let is_classic = attribute.make_classic();
        assert_eq!(attribute.integers().unwrap(), numbers);
        assert_eq!(attribute.count(), numbers.len() as u64);
        is_classic.then_some(attribute.netcdf_type)
    };
    assert_eq!(
        classic(NetcdfType::UnsignedByte, &[0, 255]),
        Some(NetcdfType::Short)
    );
    assert_eq!(
        classic(NetcdfType::UnsignedShort, &[65535]),
        Some(NetcdfType::Int)
    );
    assert_eq!(classic(NetcdfType::Int64, &[-1, 7]), Some(NetcdfType::Int));
    assert_eq!(classic(NetcdfType::Int64, &[1 << 31]), None);
    assert_eq!(classic(NetcdfType::UnsignedInt64, &[u64::MAX.into()]), None);
    assert_eq!(classic(NetcdfType::Byte, &[-128]), Some(NetcdfType::Byte));
}

#[test]
fn a_fill_value_has_the_type_of_its_variable() {
    let fitted = |mut fill: NetcdfAttribute, netcdf_type| {
        fill.name = b"_FillValue".to_vec();
        let mut attributes = NetcdfAttributes::default();
        attributes.list.push(fill);
        let fits = attributes.fit_fill_value(netcdf_type);
        assert_eq!(fits, !attributes.list.is_empty());
        attributes
            .list
            .pop()
            .map(|fill| (fill.netcdf_type, fill.values))
    };
    let wide = || integers(NetcdfType::Int64, &[-9999]);
    let short = Some((NetcdfType::Short, (-9999_i16).to_be_bytes().to_vec()));
    assert_eq!(fitted(wide(), NetcdfType::Short), short);
    assert_eq!(fitted(wide(), NetcdfType::Byte), None);
    let double = |number: f64| NetcdfAttribute {
        name: Vec::new(),
        netcdf_type: NetcdfType::Double,
        values: number.to_be_bytes().to_vec(),
    };
    let single = Some((NetcdfType::Float, (-0.5_f32).to_be_bytes().to_vec()));
    assert_eq!(fitted(double(-0.5), NetcdfType::Float), single);
    assert_eq!(fitted(double(0.1), NetcdfType::Float), None);
    assert!(fitted(double(f64::NAN), NetcdfType::Float).is_some());
    let letters = NetcdfAttribute::from_text(Vec::new(), b"ab".to_vec());
    assert_eq!(fitted(letters, NetcdfType::Char), None);
}

#[test]
fn an_enumeration_has_flags_if_its_names_are_words() {
    let flags = |name: &str| {
        let members = vec![(name.into(), vec![1, 0]), (b"SEA".to_vec(), vec![2, 0])];
        let base = Box::new(int(2));
        let mut attributes = NetcdfAttributes::default();
        let are_added = attributes.add_flags(&type_of(2, Class::Enumeration { base, members }));
        assert_eq!(are_added, attributes.list.len() == 2);
        let values = attributes
            .list
            .into_iter()
            .map(|attribute| attribute.values);
        values.collect::<Vec<_>>()
    };
    assert_eq!(
        flags("LAND"),
        [b"\0\x01\0\x02".to_vec(), b"LAND SEA".to_vec()]
    );
    assert!(flags("dry land").is_empty() && flags("").is_empty());
    assert!(NetcdfAttributes::default().add_flags(&int(2)));
}

#[test]
fn scalars_of_asdf_are_attributes() {
    let of = |value| {
        let text = "text".to_owned();
        let scalar = Scalar { text, value };
        let attribute = NetcdfAttribute::from_scalar(b"a", &scalar).ok();
        attribute.map(|attribute| (attribute.netcdf_type, attribute.values))
    };
    let int = |digits: &str| of(ScalarValue::Int(digits.to_owned()));
    assert_eq!(
        int("-2"),
        Some((NetcdfType::Int, vec![0xff, 0xff, 0xff, 0xfe]))
    );
    assert_eq!(int("4294967296").unwrap().0, NetcdfType::Int64);
    assert_eq!(
        int("18446744073709551615").unwrap().0,
        NetcdfType::UnsignedInt64
    );
    assert_eq!(int("18446744073709551616"), None);
    assert_eq!(
        of(ScalarValue::Float(1.5)).unwrap().1,
        1.5_f64.to_be_bytes()
    );
    assert_eq!(
        of(ScalarValue::Bool(true)),
        Some((NetcdfType::Byte, vec![1]))
    );
    assert_eq!(
        of(ScalarValue::String),
        Some((NetcdfType::Char, b"text".to_vec()))
    );
    assert_eq!(of(ScalarValue::Null), None);
}

#[test]
fn attributes_have_as_many_bytes_as_a_header() {
    let mut attributes = NetcdfAttributes::default();
    let half =
        || NetcdfAttribute::from_text(b"a".to_vec(), vec![b'x'; limits::NETCDF_HEADER / 2 - 1]);
    assert!(attributes.add(half()).is_ok() && attributes.add(half()).is_ok());
    assert_eq!(attributes.bytes, limits::NETCDF_HEADER);
    let short = NetcdfAttribute::from_text(b"b".to_vec(), Vec::new());
    assert!(matches!(attributes.add(short), Err(Omission::Absent(_))));
    assert_eq!(attributes.list[1].name, b"a_1");
}

#[test]
fn big_endian_integers_of_attributes() {
    let big = Datatype::integer(8, false, ByteOrder::Big);
    let value = u64::MAX.to_be_bytes();
    let expected = (NetcdfType::UnsignedInt64, value.to_vec());
    assert_eq!(convert_attribute(big, &[], &value), Ok(expected));
}
