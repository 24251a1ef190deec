"""netCDF files as climate scientists write them, compared with xarray: packed numbers, fill values,
times."""

import os
from datetime import datetime

import cftime
import numpy as np
import pandas
import xarray
from documents import failure
from kit import fixture
from stores import netcdf_rows
from table import Column, Table

ENCODING = {
    "t2m": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32767},
    "rain": {"dtype": "f4", "_FillValue": -9999.0, "zlib": True},
    "time": {"units": "hours since 1900-01-01", "dtype": "i4", "calendar": "gregorian"},
}
UNSIGNED = {"_Unsigned": "true", "_FillValue": np.int8(-1)}


@fixture("climate.nc")
def write(path):
    chance = np.random.default_rng(5)
    t2m = chance.normal(15, 10, (4, 3, 2)) + 273.15
    t2m[1, 2, 0] = np.nan
    rain = chance.random((4, 3, 2)).astype("f4")
    rain[:, 0, 1] = np.nan
    axes = ("time", "latitude", "longitude")
    xarray.Dataset(
        {
            "t2m": (axes, t2m, {"units": "K", "long_name": "air temperature"}),
            "rain": (axes, rain, {"units": "mm"}),
            "land": (axes[1:], chance.integers(0, 9, (3, 2), "i1")),
        },
        {
            "time": pandas.date_range("2024-02-28", periods=4, freq="12h"),
            "latitude": np.array([60.0, 59.5, 59.0], "f4"),
            "longitude": np.array([10.0, 10.25], "f4"),
        },
    ).to_netcdf(path, encoding=ENCODING)


@fixture("noleap.nc")
def write_noleap(path):
    days = xarray.date_range(
        "2000-02-27", periods=4, freq="36h", calendar="noleap", use_cftime=True
    )
    xarray.Dataset(
        {
            "v": (("time",), np.array([1, 2, 255, 4], "u1").view("i1"), UNSIGNED),
            "s": (("time",), np.array(["a", "b, c", "", "d"])),
        },
        {"time": days, "height": 2.0, "station": (("time",), ["one", "two", "three", "four"])},
    ).to_netcdf(path)


def column(name, values):
    if values.dtype == object and isinstance(values.iloc[0], cftime.datetime):
        return Column(name, "time", [datetime.fromisoformat(v.isoformat()) for v in values])
    if values.dtype == object:
        return Column(name, "text", values.tolist())
    if values.dtype.kind == "M":
        return Column(name, "time", [value.to_pydatetime() for value in values])
    if values.dtype.kind == "f":
        # NaN counts as a missing value
        read = [None if pandas.isna(value) else value for value in values.tolist()]
        return Column(name, "real", read, precision=values.dtype.type)
    return Column(name, "integer", values.tolist())


@write.tables
@write_noleap.tables
def tables(path):
    with xarray.open_dataset(path) as read:
        for name in read.data_vars:
            frame = read[name].to_dataframe().reset_index()
            yield Table(f"cf/{name}.csv", [column(part, frame[part]) for part in frame.columns])


@write.others
def others(path, views):
    with xarray.open_dataset(path) as read:
        for name in read.data_vars:
            npy = os.path.join(views, "cf", name + ".npy")
            yield "cf (.npy)", "NumPy", failure(same_array, npy, read[name].values)
    yield from netcdf_rows(path, views)


@write_noleap.others
def others_of_noleap(path, views):
    return netcdf_rows(path, views)


def same_array(npy, wanted):
    np.testing.assert_array_equal(np.load(npy), wanted)
