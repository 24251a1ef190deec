//! Tests of whole CSV texts, and of ranges of them.

use h5fs_reader::array::{CancelToken, Engine};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{ByteOrder, Charset, Class, StringPadding};
use h5fs_reader::testing::{Heap, int, member, type_of};

use super::*;
use crate::elements::Elements;
use crate::text_files::counted_text::CountedFile;
use crate::text_files::text::InMemoryContent;
use crate::view::View;

fn table(datatype: &Datatype, dims: Option<&[u64]>, bytes: &[u8]) -> CsvTable {
    let elements = Elements {
        datatype: datatype.clone(),
        dims: dims.map(<[u64]>::to_vec),
        content: Box::new(InMemoryContent::new(bytes.to_vec())),
    };
    let heap = Heap(vec![vec![7, 8], b"a \"b\"\nc".to_vec()]);
    let engine = Engine::new(0, 1);
    let table = array::table(
        elements,
        None,
        engine,
        Arc::new(heap),
        Arc::new(|_| Ok(None)),
    );
    table.unwrap().unwrap()
}

fn csv(datatype: &Datatype, dims: Option<&[u64]>, bytes: &[u8]) -> String {
    let view = CountedFile::from_units(table(datatype, dims, bytes));
    let length = usize::try_from(view.length()).unwrap();
    let text = view.read_at(0, length + 9).unwrap().to_vec();
    assert_eq!(text.len(), length);
    String::from_utf8(text).unwrap()
}

fn string(size: u32) -> Datatype {
    let padding = StringPadding::NullPadded;
    let charset = Charset::Ascii;
    type_of(size, Class::String { padding, charset })
}

#[test]
fn the_last_dimension_is_a_row() {
    let bytes = [1, 2, 3, 4, 5, 0x80];
    assert_eq!(csv(&int(1), Some(&[]), &bytes[..1]), "1\n");
    assert_eq!(csv(&int(1), Some(&[2]), &bytes[..2]), "1\n2\n");
    let expected = "1,2,3\n4,5,-128\n";
    assert_eq!(csv(&int(1), Some(&[2, 3]), &bytes), expected);
    assert_eq!(csv(&int(1), Some(&[1, 2, 3]), &bytes), expected);
    assert_eq!(csv(&int(1), Some(&[3, 0]), &[]), "");
    assert_eq!(csv(&int(1), None, &[]), "");
    let single = Box::new(Datatype::ieee(4, ByteOrder::Little));
    let complex = type_of(8, Class::Complex(single));
    let numbers = [1.0_f32, f32::NAN].map(f32::to_le_bytes);
    assert_eq!(
        csv(&complex, Some(&[1]), numbers.as_flattened()),
        "1.0,NaN\n"
    );
}

#[test]
fn cells_are_quoted_only_if_necessary() {
    let cells = |text: &[u8]| csv(&string(3), Some(&[text.len() as u64 / 3]), text);
    assert_eq!(
        cells(b"ab\0a,b\"\"\"a\nb\0\0\0 a\0a b"),
        concat!(
            "ab\n",
            "\"a,b\"\n",
            "\"\"\"\"\"\"\"\"\n",
            "\"a\nb\"\n",
            "\"\"\n",
            "\" a\"\n",
            "a b\n",
        )
    );
    let names = vec![member("x, \"y\"", 0, int(1)), member("", 1, int(1))];
    let record = type_of(2, Class::Compound(names));
    let expected = "\"x, \"\"y\"\"\",\"\"\n1,2\n";
    assert_eq!(csv(&record, Some(&[1]), &[1, 2]), expected);
}

#[test]
fn pointers_are_followed() {
    let sequence = type_of(1, Class::VariableLength(Box::new(int(1))));
    let padding = StringPadding::NullTerminated;
    let charset = Charset::Utf8;
    let text = type_of(1, Class::VariableString { padding, charset });
    let record = vec![member("v", 0, sequence), member("s", 1, text)];
    let record = type_of(2, Class::Compound(record));
    let expected = "v,s\n\"[7, 8]\",\"a \"\"b\"\"\nc\"\n[],\"\"\n";
    assert_eq!(csv(&record, Some(&[2]), &[0, 1, 255, 255]), expected);
}

#[test]
fn the_number_of_columns_is_limited() {
    let members = |count: u32| {
        let member = |number: u32| member(&format!("m{number}"), number, int(1));
        type_of(count, Class::Compound((0..count).map(member).collect()))
    };
    let most = u32::try_from(limits::CSV_COLUMNS).unwrap();
    let bytes = vec![0x85; 2 * most as usize];
    let text = csv(&members(most), Some(&[2]), &bytes);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines[0]
            .iter()
            .zip(0..)
            .all(|(name, number)| *name == format!("m{number}"))
    );
    for line in &lines[1..] {
        assert_eq!(line.len(), limits::CSV_COLUMNS);
        assert!(line.iter().all(|cell| *cell == "-123"));
    }
    let refused = column::DatatypeColumns::from_datatype(&members(most + 1), b"");
    assert!(matches!(refused, Err(Error::Limit { .. })));
}

#[test]
fn any_part_equals_its_range_of_the_whole() {
    let members = vec![member("name", 1, int(1)), member("b", 0, int(2))];
    let record = type_of(3, Class::Compound(members));
    let bytes = [1, 0, 9, 0xFF, 0xFF, 9, 0, 1, 9];
    let table = || table(&record, Some(&[3, 1]), &bytes);
    let (view, whole) = (
        CountedFile::from_units(table()),
        "name,b\n0,1\n-1,-1\n1,256\n",
    );
    for start in 0..whole.len() + 2 {
        for length in 0..whole.len() {
            let part = view.read_at(start as u64, length).unwrap();
            let from = start.min(whole.len());
            let to = (start + length).min(whole.len());
            assert_eq!(&part[..], &whole.as_bytes()[from..to], "{start} {length}");
        }
    }
    let mut even = table();
    even.row_width = Some(6);
    assert_eq!(
        even.uniform_units(),
        Some(UniformUnits {
            first_length: 7,
            unit_length: 6
        })
    );
}

/// `measure` returns the length of the text that `write` writes, and both stop at the same row.
#[test]
fn measured_lengths_equal_written_lengths() {
    let double = Datatype::ieee(8, ByteOrder::Little);
    let members = vec![
        member("a", 0, int(2)),
        member("b", 2, double),
        member("c", 10, type_of(1, Class::Bool)),
    ];
    let record = type_of(11, Class::Compound(members));
    let row = |number: i16| {
        let float = [0.1, f64::NAN, 1e300, -5.0][usize::from(number.unsigned_abs()) % 4];
        let parts = (
            number.to_le_bytes(),
            f64::to_le_bytes(float * f64::from(number)),
        );
        [&parts.0[..], &parts.1, &[u8::from(number % 3 == 0)]].concat()
    };
    let bytes: Vec<u8> = (-500..500).flat_map(|number| row(number * 37)).collect();
    let table = table(&record, Some(&[1000]), &bytes);
    let (mut at, cancel) = (0, &CancelToken::default());
    while at < table.count() {
        let (mut written, mut scratch) = (Vec::new(), Vec::new());
        let next = table
            .write(at..table.count(), 300, cancel, &mut written)
            .unwrap();
        let measured = table.measure(at..table.count(), 300, cancel, &mut scratch);
        assert_eq!(measured, Ok((next, to_u64(written.len()))));
        assert!(scratch.len() < 40, "nothing but a number is written");
        at = next;
    }
}

/// Each chunk must be looked up, even if it has only one value. Ten million chunks of one value are
/// too many to count their text.
#[test]
fn chunks_of_few_values_cost_more() {
    let of = |chunk: u64, filters: usize| {
        let filter = h5fs_reader::model::storage::Filter {
            id: 1,
            name: None,
            parameters: Vec::new(),
        };
        let array = h5fs_reader::model::Array {
            datatype: int(4),
            shape: h5fs_reader::model::Shape::fixed(vec![10_000_000]),
            fill: h5fs_reader::model::array::Fill::Zero,
            layout: h5fs_reader::model::array::Layout::Chunked,
            chunk_shape: Some(vec![chunk]),
            pipeline: h5fs_reader::model::storage::Pipeline(vec![filter; filters]),
            storage: Ok(h5fs_reader::model::array::Storage::Fill),
        };
        crate::elements::raw::chunk_values(&array)
    };
    assert_eq!((of(1, 0), of(1000, 0)), (240_000_000, 240_000));
    assert_eq!((of(1, 1), of(20_000_000, 1)), (480_000_000, 48));
}
