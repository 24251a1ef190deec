"""Joined files: their store is compared with xarray's `open_mfdataset`, and with h5py file by file.
"""

import glob
import os
from time import perf_counter

import h5py
import numpy as np


def days(path, count):
    """Writes daily files with four packed variables over a grid of 90 x 180, like OISST."""
    os.mkdir(path)
    chance = np.random.default_rng(3)
    base = chance.integers(-300, 3000, (1, 90, 180)).astype("<i2")
    for number in range(count):
        with h5py.File(os.path.join(path, f"sst.{number:05}.nc"), "w") as f:
            time = np.array([14975 + number], "<f4")
            f.create_dataset("time", data=time, chunks=(512,), maxshape=(None,))
            f["time"].attrs["units"] = "days since 1978-01-01 12:00:00"
            f["lat"] = np.arange(90, dtype="<f4") * 2 - 89
            f["lon"] = np.arange(180, dtype="<f4") * 2 + 1
            for name in ("time", "lat", "lon"):
                f[name].make_scale(name)
            for name in ("sst", "anom", "err", "ice"):
                values = np.roll(base, number, 2)
                how = {"chunks": (1, 90, 180), "compression": "gzip", "compression_opts": 1}
                made = f.create_dataset(name, data=values, maxshape=(None, 90, 180), **how)
                made.attrs["scale_factor"] = np.float32(0.01)
                made.attrs["_FillValue"] = np.int16(-999)
                for axis, dim in enumerate(("time", "lat", "lon")):
                    made.dims[axis].attach_scale(f[dim])
            f.attrs["day"] = number


def files(source):
    return sorted(glob.glob(os.path.join(source, "*.nc")))


def opened(store):
    """Returns the seconds in which xarray opens the store before any read."""
    import xarray

    began = perf_counter()
    xarray.open_zarr(store, chunks=None).close()
    return perf_counter() - began


def many_opened(source):
    """Returns the seconds in which xarray opens all files in its fastest way."""
    import dask  # noqa: F401: what xarray would import
    import h5netcdf  # noqa: F401
    import xarray

    began = perf_counter()
    how = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override"}
    xarray.open_mfdataset(
        files(source), engine="h5netcdf", combine="nested", concat_dim="time", **how
    ).close()
    return perf_counter() - began


def array(store):
    """Opens the array, after the locations of the chunks in all files have been read once."""
    import zarr

    return zarr.open_array(os.path.join(store, "sst"), mode="r")


def whole(store):
    """Returns the seconds in which zarr reads a variable of an open store."""
    read = array(store)
    began = perf_counter()
    read[...]
    return perf_counter() - began


def point(store):
    """Returns the seconds in which zarr reads one location at all times."""
    read = array(store)
    began = perf_counter()
    read[:, 40, 90]
    return perf_counter() - began


def each_whole(source):
    """Returns the seconds in which h5py reads the variable file by file."""
    began = perf_counter()
    np.concatenate([of(path, ...) for path in files(source)])
    return perf_counter() - began


def each_point(source):
    began = perf_counter()
    np.concatenate([of(path, np.s_[:, 40, 90]) for path in files(source)])
    return perf_counter() - began


def of(path, where):
    with h5py.File(path) as f:
        return f["sst"][where]


def same(source, store):
    """Raises an error if the store and the files have different numbers."""
    found = array(store)[...]
    wanted = np.concatenate([of(path, ...) for path in files(source)])
    np.testing.assert_array_equal(found, wanted, strict=True)
