"""TIFF files of regular grids, read by GDAL: their place on the earth must be the one that GDAL's
driver for netCDF reads from the source itself, or that was calculated by hand."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import rasterio
from documents import failure
from kit import fixture

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures"))
import geotiff  # noqa: E402

# The system of each grid, by its number.
SYSTEMS = {"utm/band": 32633, "transform/band": 32633, "kilometres/band": None}
# Whole grids that GDAL's driver for netCDF places as well.
PLACED_BY_GDAL = {"stack": "lat", "utm/band": "y"}


@fixture("grids.nc", is_large=True)
def write(path):
    geotiff.write(path)


@write.others
def others(path, views):
    for name in geotiff.GRIDS:
        tiff = os.path.join(views, "tiff", name + ".tif")
        yield "tiff", "GDAL, grid", failure(same_grid, tiff, name)
        if name in PLACED_BY_GDAL and shutil.which("gdalinfo"):
            yield "tiff", "GDAL, netCDF", failure(same_as_netcdf, tiff, path, name)


def same_grid(tiff, name):
    matrix, _, missing = geotiff.GRIDS[name]
    with rasterio.open(f"GTIFF_DIR:1:{tiff}") as dataset:
        found = dataset.transform
        expected = (matrix[0], matrix[1], matrix[3], matrix[4], matrix[5], matrix[7])
        np.testing.assert_allclose(tuple(found)[:6], expected, rtol=1e-12)
        number = dataset.crs.to_epsg() if dataset.crs else None
        assert number == SYSTEMS.get(name, 4326), dataset.crs
        assert dataset.nodata == (None if missing is None else float(missing)), dataset.nodata


def transform(name):
    command = ["gdalinfo", "-json", name]
    ended = subprocess.run(command, capture_output=True, check=True, timeout=120)
    return json.loads(ended.stdout)["geoTransform"]


def same_as_netcdf(tiff, path, name):
    expected = transform(f'NETCDF:"{path}":/{name}')
    found = transform(tiff)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
