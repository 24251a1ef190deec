//! Whole texts, and any part of them.

use super::*;
use crate::model::datatype::ByteOrder;
use crate::model::value::tests::{int, member, type_of};
use crate::view::text::Text;

fn csv(datatype: &Datatype, dims: Option<&[u64]>, bytes: &[u8]) -> Csv {
    let elements = Elements {
        datatype: datatype.clone(),
        dims: dims.map(<[u64]>::to_vec),
        content: Box::new(Text::new(bytes.to_vec())),
    };
    Csv::new(elements).unwrap().unwrap()
}

fn all(csv: &Csv) -> String {
    let length = usize::try_from(csv.length().unwrap()).unwrap();
    let text = csv.read_at(0, length + 9).unwrap().to_vec();
    assert_eq!(text.len(), length);
    String::from_utf8(text).unwrap()
}

#[test]
fn rows_by_dimensions() {
    let bytes = [1, 2, 3, 4, 5, 0x80];
    assert_eq!(all(&csv(&int(1), Some(&[]), &bytes[..1])), "   1\n");
    assert_eq!(all(&csv(&int(1), Some(&[2]), &bytes[..2])), "   1\n   2\n");
    let expected = "   1,   2,   3\n   4,   5,-128\n";
    assert_eq!(all(&csv(&int(1), Some(&[2, 3]), &bytes)), expected);
    assert_eq!(all(&csv(&int(1), Some(&[1, 2, 3]), &bytes)), expected);
    assert_eq!(all(&csv(&int(1), Some(&[3, 0]), &[])), "");
    assert_eq!(all(&csv(&int(1), None, &[])), "");
    let single = Box::new(Datatype::ieee(4, ByteOrder::Little));
    let complex = type_of(8, Class::Complex(single));
    let bytes: Vec<u8> = [1.0_f32, -0.5]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let expected = "            1.0,           -0.5\n";
    assert_eq!(all(&csv(&complex, Some(&[1]), &bytes)), expected);
}

#[test]
fn any_part_is_that_of_the_whole() {
    let members = vec![member("name", 1, int(1)), member("b", 0, int(2))];
    let record = type_of(3, Class::Compound(members));
    let bytes = [1, 0, 9, 0xFF, 0xFF, 9, 0, 1, 9];
    let csv = csv(&record, Some(&[3, 1]), &bytes);
    let whole = all(&csv);
    assert_eq!(
        whole,
        "name,     b\n   0,     1\n  -1,    -1\n   1,   256\n"
    );
    for start in 0..whole.len() + 2 {
        for length in 0..whole.len() {
            let part = csv.read_at(start as u64, length).unwrap();
            let from = start.min(whole.len());
            let to = (start + length).min(whole.len());
            assert_eq!(&part[..], &whole.as_bytes()[from..to], "{start} {length}");
        }
    }
}
