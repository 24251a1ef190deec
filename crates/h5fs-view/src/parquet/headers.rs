//! The headers of pages (`PageHeader` of parquet.thrift).

use h5fs_reader::wire::to_u64;

use crate::parquet::field::LeafColumn;
use crate::parquet::leaf::{Dictionary, PageLayout};
use crate::parquet::thrift::StructWriter;

/// The numbers of the encodings PLAIN, RLE and RLE_DICTIONARY in parquet.thrift (`Encoding`).
pub(super) const PLAIN: i32 = 0;
pub(super) const RLE: i32 = 3;
pub(super) const RLE_DICTIONARY: i32 = 8;

/// Returns the header of a dictionary page.
pub(super) fn dictionary_header(dictionary: &Dictionary) -> Vec<u8> {
    let bytes = as_i32(to_u64(dictionary.values.len()));
    let page = StructWriter::default()
        .i32(1, as_i32(dictionary.count))
        .i32(2, PLAIN);
    StructWriter::default()
        .i32(1, 2)
        .i32(2, bytes)
        .i32(3, bytes)
        .struct_field(7, page)
        .finish()
}

/// Returns the header of a data page. `entries` is its number of values, including missing ones,
/// and `bytes` its length without the header.
pub(super) fn page_header(column: &LeafColumn, entries: u64, bytes: u64) -> Vec<u8> {
    let encoding = match column.leaf.body {
        PageLayout::Indices(_) => RLE_DICTIONARY,
        _ => PLAIN,
    };
    let page = StructWriter::default()
        .i32(1, as_i32(entries))
        .i32(2, encoding)
        .i32(3, RLE)
        .i32(4, RLE);
    let bytes = as_i32(bytes);
    StructWriter::default()
        .i32(1, 0)
        .i32(2, bytes)
        .i32(3, bytes)
        .struct_field(5, page)
        .finish()
}

fn as_i32(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
