"""Zarr stores of mounted files, read with libraries of Zarr, beside what h5py reads."""

import importlib.util
import os
import pathlib
import sys
import warnings

import h5py
import numpy as np
import xarray
import zarr
from documents import failure
from kit import fixture

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures"))
import zarr_arrays  # noqa: E402

# tensorstore has no type for these; of bytes it makes one more axis.
WITHOUT_TENSORSTORE = ("O", "S", "V")


@fixture("arrays.h5", is_large=True)
def write(path):
    zarr_arrays.write(path)


@write.others
def others(path, views):
    return rows(path, views)


# ---------------------------------------------------------------- readers


def zarr_python(store, path):
    return zarr.open_array(pathlib.Path(store, path), mode="r")[...]


def zarrs(store, path):
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        return zarr_python(store, path)


def tensorstore(store, path):
    import tensorstore as library

    where = {"driver": "file", "path": os.path.join(store, path) + "/"}
    return library.open({"driver": "zarr3", "kvstore": where}, open=True).result().read().result()


def dask(store, path):
    import dask.array

    return dask.array.from_zarr(zarr.open_array(pathlib.Path(store, path), mode="r")).compute()


def present():
    """The readers of stores that are installed, by name."""
    readers = {"zarr-python": zarr_python}
    others = {"zarrs": zarrs, "tensorstore": tensorstore, "dask": dask}
    readers.update({name: of for name, of in others.items() if importlib.util.find_spec(name)})
    return readers


# ---------------------------------------------------------------- comparing


def arrays(path, store):
    """The arrays of a file that are in its store, by their paths there."""
    with h5py.File(path) as file:
        names = []
        file.visititems(lambda name, node: names.append(name))
        for name in names:
            if not isinstance(file[name], h5py.Dataset) or file[name].size in (None, 10**6):
                continue
            shown = zarr_arrays.shown(name)
            if not os.path.exists(os.path.join(store, shown)):
                continue
            for part, values in zarr_arrays.expected(file[name]):
                if os.path.exists(os.path.join(store, shown + part)):
                    yield shown + part, values


def text(value):
    """A string as text: h5py reads those within records as bytes."""
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


def agrees(read, store, name, values):
    found = np.asarray(read(store, name))
    assert found.shape == values.shape, (found.shape, values.shape)
    if values.dtype.kind in "OS":
        assert list(map(text, found.ravel())) == list(map(text, values.ravel())), name
    elif values.dtype.kind == "V":
        assert found.tobytes() == values.tobytes(), name
    else:
        assert found.dtype == values.dtype.newbyteorder("="), (found.dtype, values.dtype)
        assert np.array_equal(found, values, equal_nan=values.dtype.kind in "fc"), name


def members(store):
    """Readers warn of what stands in a group and is no part of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(node for _, node in zarr.open_group(store, mode="r").members(max_depth=None))


def rows(path, views):
    """Rows of (view, tool, difference or None)."""
    for tree in ("file.zarr", "stored.zarr"):
        store = os.path.join(views, tree)
        if tree == "file.zarr":
            yield tree, "zarr-python", failure(members, store)
        for name, values in arrays(path, store):
            for tool, read in present().items():
                suits = tree == "file.zarr" and values.dtype.kind not in WITHOUT_TENSORSTORE
                if tool != "tensorstore" or suits:
                    yield tree, tool, failure(agrees, read, store, name, values)


def dataset_agrees(path, store):
    """The coordinates, dimensions and values that xarray finds by way of h5netcdf."""
    with (
        xarray.open_dataset(path, engine="h5netcdf") as known,
        xarray.open_zarr(store, consolidated=False, chunks=None) as found,
    ):
        assert set(found.coords) == set(known.coords), (found.coords, known.coords)
        for name, variable in known.variables.items():
            assert found[name].dims == variable.dims, name
            xarray.testing.assert_allclose(found[name].variable, variable)


def netcdf_rows(path, views):
    store = os.path.join(views, "file.zarr")
    yield "file.zarr", "xarray", failure(dataset_agrees, path, store)
