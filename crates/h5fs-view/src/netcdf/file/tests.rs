use super::*;
use crate::netcdf::layout::DataShape;
use crate::text_files::text::InMemoryContent;

use proptest::prelude::*;

const HEADER: &[u8] = b"header of 20 bytes..";

/// A variable of a test: the shape of its data, and its values.
fn variable(dims: &[u64], is_record: bool, value_bytes: u64, records: u64) -> (DataShape, Vec<u8>) {
    let count: u64 = dims.iter().product::<u64>() * if is_record { records } else { 1 };
    let values = (0..count * value_bytes).map(|number| (number % 100 + 1) as u8);
    let dims = dims.to_vec();
    (
        DataShape {
            dims,
            is_record,
            value_bytes,
        },
        values.collect(),
    )
}

fn file(variables: &[(DataShape, Vec<u8>)], records: u64) -> NetcdfFile {
    let shapes: Vec<DataShape> = variables.iter().map(|(shape, _)| shape.clone()).collect();
    let layout = Layout::new(to_u64(HEADER.len()), &shapes, records).unwrap();
    let contents = variables.iter().map(|(_, values)| {
        let content: Box<dyn View> = Box::new(InMemoryContent::new(values.clone()));
        (content, &b"\xfe\xff"[..])
    });
    NetcdfFile::new(HEADER.to_vec(), layout, contents.collect())
}

/// Writes the file from front to back, by the rules of the format.
fn write_file(variables: &[(DataShape, Vec<u8>)], records: u64) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    let pad = |out: &mut Vec<u8>| {
        let mut padding = b"\xfe\xff".iter().cycle();
        while !out.len().is_multiple_of(4) {
            out.push(*padding.next().unwrap());
        }
    };
    for (_, values) in variables.iter().filter(|(shape, _)| !shape.is_record) {
        out.extend_from_slice(values);
        pad(&mut out);
    }
    let recorded: Vec<_> = variables
        .iter()
        .filter(|(shape, _)| shape.is_record)
        .collect();
    for record in 0..records as usize {
        for (_, values) in &recorded {
            let bytes = values.len() / records as usize;
            out.extend_from_slice(&values[record * bytes..][..bytes]);
            if recorded.len() > 1 {
                pad(&mut out);
            }
        }
    }
    out
}

#[test]
fn the_whole_file() {
    let variables = [
        variable(&[3], true, 1, 2),
        variable(&[], false, 2, 2),
        variable(&[], true, 4, 2),
    ];
    let expected: &[&[u8]] = &[
        HEADER,
        b"\x01\x02\xfe\xff",
        b"\x01\x02\x03\xfe\x01\x02\x03\x04",
        b"\x04\x05\x06\xfe\x05\x06\x07\x08",
    ];
    let file = file(&variables, 2);
    assert_eq!(&file.read_at(0, 1000).unwrap()[..], expected.concat());
    assert_eq!(file.length(), 40);
    assert_eq!(write_file(&variables, 2), expected.concat());
}

#[test]
fn bytes_in_memory_are_read_at_once() {
    let file = file(&[variable(&[5], false, 1, 0)], 0);
    assert_eq!(&file.read_now(21, 3).unwrap().unwrap()[..], [2, 3, 4]);
    assert!(file.read_now(22, 4).unwrap().is_none());
    assert!(file.read_now(19, 2).unwrap().is_none());
    assert!(file.read_now(27, 1).unwrap().is_none());
}

/// Values that can be read up to a byte, after which they are damaged.
struct DamagedFrom(u64);

impl View for DamagedFrom {
    fn length(&self) -> u64 {
        u64::MAX
    }

    fn read_for(&self, offset: u64, length: usize, _: &CancelToken) -> Result<Bytes> {
        if offset + to_u64(length) > self.0 {
            return Err(Error::corrupt("chunk", None));
        }
        Ok(vec![7; length].into())
    }
}

#[test]
fn a_damaged_part_is_an_error_of_its_bytes() {
    let shapes = [variable(&[4], true, 1, 3).0, variable(&[4], true, 1, 3).0];
    let layout = Layout::new(to_u64(HEADER.len()), &shapes, 3).unwrap();
    let contents: Vec<(Box<dyn View>, &'static [u8])> = vec![
        (Box::new(DamagedFrom(6)), &[0]),
        (Box::new(DamagedFrom(100)), &[0]),
    ];
    let file = NetcdfFile::new(HEADER.to_vec(), layout, contents);
    // The second record of the first variable has two good bytes.
    assert_eq!(&file.read_at(20, 10).unwrap()[..], [7; 10]);
    assert!(file.read_at(20, 11).is_err());
    assert_eq!(&file.read_at(32, 4).unwrap()[..], [7; 4]);
    assert!(file.read_at(32, 5).is_err());
    assert_eq!(&file.read_at(40, 9).unwrap()[..], [7; 4]);
}

proptest! {
    #[test]
    fn any_range_is_that_of_the_whole(
        shapes in prop::collection::vec(
            (prop::collection::vec(1_u64..4, 0..3), any::<bool>(), 0_u32..4),
            0..6,
        ),
        records in 0_u64..5,
        ranges in prop::collection::vec((0_u64..400, 0_usize..400), 20),
    ) {
        let variables: Vec<_> = shapes
            .iter()
            .map(|(dims, is_record, power)| variable(dims, *is_record, 1 << power, records))
            .collect();
        let (file, whole) = (file(&variables, records), write_file(&variables, records));
        prop_assert_eq!(file.length(), to_u64(whole.len()));
        prop_assert_eq!(&file.read_at(0, whole.len() + 9).unwrap()[..], &whole[..]);
        for (start, length) in ranges {
            let read = file.read_at(start, length).unwrap();
            let start = (start as usize).min(whole.len());
            prop_assert_eq!(&read[..], &whole[start..(start + length).min(whole.len())]);
        }
    }
}
