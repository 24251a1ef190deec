//! Reads the example of the documents. The expected values come from h5py.

use super::*;
use crate::source::memory::MemorySource;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/cli/text/climate.h5");

fn example() -> File {
    File::open(EXAMPLE).unwrap()
}

fn dataset(path: &str) -> Dataset {
    example().get(path).unwrap().into_dataset().unwrap()
}

#[test]
fn a_group_lists_its_links() {
    let root = example().root().unwrap();
    let names = root.links().unwrap().map(|link| link.unwrap().name);
    let mut names: Vec<_> = names.map(|name| String::from_utf8(name).unwrap()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "day",
            "latest",
            "latitude",
            "longitude",
            "stations",
            "surface"
        ]
    );
    assert!(root.get("surface").unwrap().into_group().is_some());
}

/// Expected: `f["surface/temperature"][…]` and `f["stations/position"]["lat"]`.
#[test]
fn selections_equal_numpy() {
    let temperature = dataset("surface/temperature");
    let part = temperature.select("[0, 10:12, 5]").unwrap();
    assert_eq!(part.shape, [2]);
    assert_eq!(part.numbers().unwrap(), [291.1875, 293.875]);
    let latitudes = dataset("stations/position").select(r#"["lat"]"#).unwrap();
    assert_eq!(
        latitudes.numbers().unwrap(),
        [
            67.370_002_746_582_03,
            60.810_001_373_291_016,
            59.779_998_779_296_875
        ]
    );
    let absent = temperature.select("[365]").unwrap_err();
    assert!(matches!(absent, Error::NotFound), "{absent:?}");
    let text = temperature.select("first").unwrap_err();
    assert!(matches!(text, Error::Usage(_)), "{text:?}");
}

#[test]
fn a_whole_dataset_is_read() {
    let land = dataset("/surface/land").read().unwrap();
    assert_eq!(land.shape, [36, 72]);
    assert_eq!(land.bytes.len(), 36 * 72);
    let count: f64 = land.numbers().unwrap().iter().sum();
    assert_eq!(count, 300.0);
    let names = dataset("stations/name").read().unwrap();
    assert_eq!(names.texts().unwrap(), ["Sodankylä", "Jokioinen", "Utö"]);
    assert!(matches!(names.numbers(), Err(Error::Unsupported { .. })));
    assert!(matches!(land.texts(), Err(Error::Unsupported { .. })));
}

#[test]
fn attributes_have_texts_and_numbers() {
    let temperature = dataset("surface/temperature");
    let range = temperature.attribute("valid_range").unwrap().unwrap();
    assert_eq!(range.numbers().unwrap(), [180.0, 340.0]);
    assert!(temperature.attribute("absent").unwrap().is_none());
    let attributes = temperature.attributes().unwrap();
    let mut names: Vec<_> = attributes.iter().map(|(name, _)| &**name).collect();
    names.sort();
    assert_eq!(
        names,
        [
            &b"DIMENSION_LIST"[..],
            b"long_name",
            b"units",
            b"valid_range"
        ]
    );
    let root = example().root().unwrap();
    let conventions = root.attribute("Conventions").unwrap().unwrap();
    assert_eq!(conventions.texts().unwrap(), ["CF-1.10"]);
}

#[test]
fn a_soft_link_is_followed() {
    assert_eq!(
        dataset("latest").shape(),
        dataset("surface/temperature").shape()
    );
    let absent = example().get("/surface/absent").err();
    assert!(matches!(absent, Some(Error::NotFound)), "{absent:?}");
}

#[test]
fn a_read_has_a_limit() {
    let file = File::options().read_bytes(4 * 365).open(EXAMPLE).unwrap();
    let read = |path: &str| file.get(path).unwrap().into_dataset().unwrap().read();
    assert_eq!(read("day").unwrap().shape, [365]);
    let refused = read("surface/temperature").unwrap_err();
    assert!(matches!(refused, Error::Limit { .. }), "{refused:?}");
}

/// The text is that of the ASDF standard 1.5.0, section "Low-level file layout".
#[test]
fn an_asdf_file_in_memory_is_read() {
    let text = b"#ASDF 1.0.0\n#ASDF_STANDARD 1.5.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0\n\
                 run: {counts: !core/ndarray-1.0.0 {data: [[1, 2], [3, 4]], datatype: int16, byteorder: little}}\n...\n";
    let source = Arc::new(MemorySource::new(text.to_vec()));
    let file = File::options().open_source(source).unwrap();
    let counts = file.get("run/counts").unwrap().into_dataset().unwrap();
    let column = counts.select("[:, 1]").unwrap();
    assert_eq!(column.numbers().unwrap(), [2.0, 4.0]);
}
