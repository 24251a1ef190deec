"""Readers of Zarr. Each returns the array of a store as a NumPy array.

A reader is imported before the time measurement starts."""

from time import perf_counter

import h5py
import numpy as np


def tensorstore(path):
    import tensorstore

    kvstore = {"driver": "file", "path": path + "/"}

    def read():
        array = tensorstore.open({"driver": "zarr3", "kvstore": kvstore}, open=True).result()
        return array.read().result()

    return read


def zarr_python(path):
    import zarr

    return lambda: zarr.open_array(path, mode="r")[...]


def zarrs(path):
    import zarr
    import zarrs  # noqa: F401: the codecs that the next line names

    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    return lambda: zarr.open_array(path, mode="r")[...]


def xarray(path):
    import xarray

    store, name = path.rsplit("/", 1)

    def read():
        return xarray.open_zarr(store, chunks=None)[name].values

    return read


def seconds(reader, path):
    """Returns the seconds in which a reader opens an array and reads it completely."""
    read = reader(path)
    began = perf_counter()
    read()
    return perf_counter() - began


def opened_zarr(path):
    """Returns the seconds in which xarray opens a store."""
    import xarray

    began = perf_counter()
    xarray.open_zarr(path, chunks=None).close()
    return perf_counter() - began


def h5netcdf(path):
    """Returns the seconds in which xarray opens the file with h5netcdf."""
    import h5netcdf  # noqa: F401: what xarray would import
    import xarray

    began = perf_counter()
    xarray.open_dataset(path, engine="h5netcdf", phony_dims="access").close()
    return perf_counter() - began


def same_dataset(source, path):
    """Raises an error if the variables of the store and of the file differ."""
    import xarray

    found = xarray.load_dataset(path, engine="zarr")
    with h5py.File(source) as f:
        assert set(f) == set(found), set(f) ^ set(found)
        for name, variable in found.items():
            np.testing.assert_array_equal(variable.values, f[name][...], strict=True)
            assert variable.attrs == dict(f[name].attrs), name


def same(reader, source, path):
    """Raises an error if a reader's array differs from h5py's."""
    with h5py.File(source) as f:
        np.testing.assert_array_equal(reader(path)(), f["d"][...], strict=True)


def h5py_array(path):
    """Returns the seconds in which h5py opens the array and reads it completely."""
    began = perf_counter()
    with h5py.File(path) as f:
        f["d"][...]
    return perf_counter() - began
