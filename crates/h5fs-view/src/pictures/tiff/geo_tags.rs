//! The tags of GeoTIFF 1.1 (OGC 19-008r4), and GDAL's tag for missing pixels.

use crate::pictures::georeference::{GeoReference, ReferenceSystem};
use crate::pictures::tiff::field::{FieldValue, TiffField};

const MODEL_TRANSFORMATION: u16 = 34264;
const GEO_KEY_DIRECTORY: u16 = 34735;
const GDAL_NODATA: u16 = 42113;

/// Returns the fields of a picture with this grid, in the order of their tags.
pub(super) fn fields(grid: &GeoReference) -> Vec<TiffField> {
    let mut fields = vec![
        TiffField {
            tag: MODEL_TRANSFORMATION,
            value: FieldValue::Doubles(transformation(grid)),
        },
        TiffField::shorts(GEO_KEY_DIRECTORY, geo_keys(grid.system)),
    ];
    let missing = grid.missing.as_deref();
    fields.extend(missing.map(|missing| TiffField::ascii(GDAL_NODATA, missing)));
    fields
}

/// Returns the matrix that gives the position of a corner of a pixel from its column and row.
fn transformation(grid: &GeoReference) -> Vec<f64> {
    let (columns, rows) = (grid.columns, grid.rows);
    let [x, y] = [columns, rows].map(|axis| axis.first - axis.step / 2.0);
    [
        [columns.step, 0.0, 0.0, x],
        [0.0, rows.step, 0.0, y],
        [0.0; 4],
        [0.0, 0.0, 0.0, 1.0],
    ]
    .concat()
}

/// Returns the keys: the type of the model, that pixels are areas, and the number of the coordinate
/// reference system.
fn geo_keys(system: ReferenceSystem) -> Vec<u16> {
    const MODEL_TYPE: u16 = 1024;
    const RASTER_TYPE: u16 = 1025;
    const GEODETIC_SYSTEM: u16 = 2048;
    const PROJECTED_SYSTEM: u16 = 3072;
    let area = (RASTER_TYPE, 1);
    let keys = match system {
        ReferenceSystem::Geographic(number) => {
            vec![(MODEL_TYPE, 2), area, (GEODETIC_SYSTEM, number)]
        }
        ReferenceSystem::Projected(number) => {
            vec![(MODEL_TYPE, 1), area, (PROJECTED_SYSTEM, number)]
        }
        ReferenceSystem::Unknown => vec![area],
    };
    // The version of the directory, the revision of the keys, and the number of keys.
    let mut numbers = vec![1, 1, 0, u16::try_from(keys.len()).unwrap_or(0)];
    for (key, value) in keys {
        // The value is in the directory, and there is one.
        numbers.extend([key, 0, 1, value]);
    }
    numbers
}
