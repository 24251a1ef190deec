"""Zarr stores of mounted files, read with Zarr libraries, and compared with what h5py reads."""

import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import warnings

import fsspec
import h5py
import netCDF4
import numpy as np
import xarray
import zarr
from documents import failure
from fsspec.implementations import asyn_wrapper
from kit import fixture

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures"))
import zarr_arrays  # noqa: E402

# tensorstore does not support these types, or reads them with an additional axis.
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
    """Returns the installed readers of stores, by name."""
    readers = {"zarr-python": zarr_python}
    others = {"zarrs": zarrs, "tensorstore": tensorstore, "dask": dask}
    readers.update({name: of for name, of in others.items() if importlib.util.find_spec(name)})
    return readers


# ---------------------------------------------------------------- comparing


NO_COORDINATE = "_nc4_non_coord_"
NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"


def shown(file, name):
    """Returns the path of a dataset in a store. Returns None for a dimension without values whose
    name belongs to a variable without this dimension."""
    group, _, own = name.rpartition("/")
    sibling = lambda other: f"{group}/{other}".lstrip("/")  # noqa: E731
    is_dimension = lambda at: file[at].attrs.get("NAME", b"").startswith(NO_VARIABLE)  # noqa: E731
    if sibling(NO_COORDINATE + own) in file and is_dimension(name):
        return None
    variable = sibling(own.removeprefix(NO_COORDINATE))
    has_name = variable != name and variable in file and is_dimension(variable)
    return zarr_arrays.shown(variable if has_name else name)


def arrays(path, store):
    """Yields the arrays of a file that are in its store, by their paths there."""
    with h5py.File(path) as file:
        names = []
        file.visititems(lambda name, node: names.append(name))
        for name in names:
            if not isinstance(file[name], h5py.Dataset) or file[name].size in (None, 10**6):
                continue
            at = shown(file, name)
            if at is None or not os.path.exists(os.path.join(store, at)):
                continue
            for part, values in zarr_arrays.expected(file[name]):
                if os.path.exists(os.path.join(store, at + part)):
                    yield at + part, values


def text(value):
    """Converts a string to text. h5py reads strings within records as bytes."""
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
    """Asserts that readers do not warn about files in a group that are not part of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(node for _, node in zarr.open_group(store, mode="r").members(max_depth=None))


def nodes(store, is_consolidated):
    """Returns zarr-python's metadata of each node, by path."""
    # zarr-python warns about types and codecs that the specification does not contain yet.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(store, mode="r", use_consolidated=is_consolidated)
        assert (group.metadata.consolidated_metadata is not None) == is_consolidated
        found = dict(group.members(max_depth=None))
    known = {path: node.metadata.to_dict() for path, node in found.items()}
    for about in known.values():
        about.pop("consolidated_metadata", None)
    # NaN equals itself only as text.
    return {path: repr(about) for path, about in known.items()} | {"": repr(dict(group.attrs))}


def same_tree(store):
    """Compares the tree from the consolidated document with the tree from the single documents."""
    by_one, by_each = nodes(store, True), nodes(store, False)
    assert by_each.keys() == by_one.keys(), by_each.keys() ^ by_one.keys()
    assert by_each == by_one


class References:
    """Reads arrays through the references of kerchunk.json, from the bytes of the file itself."""

    def __init__(self, path, views):
        with open(os.path.join(views, "kerchunk.json")) as text:
            self.document = json.load(text)
        # A reference has the name of the file, which is relative to its directory.
        directory = fsspec.filesystem("dir", path=os.path.dirname(path), fs=fsspec.filesystem("file"))
        directory = asyn_wrapper.AsyncFileSystemWrapper(directory, asynchronous=True)
        how = {"fo": self.document, "fs": directory, "asynchronous": True}
        references = fsspec.filesystem("reference", skip_instance_cache=True, **how)
        self.store = zarr.storage.FsspecStore(references, read_only=True)

    def __contains__(self, name):
        return f"{name}/.zarray" in self.document["refs"]

    def read(self, _, name):
        read = np.asarray(zarr.open_array(self.store, path=name, mode="r")[...])
        # References keep the byte order of the file.
        is_number = read.dtype.kind in "iufc"
        return read.astype(read.dtype.newbyteorder("=")) if is_number else read


def rows(path, views):
    """Yields rows of (view, tool, difference or None)."""
    references = References(path, views)
    for name, values in arrays(path, os.path.join(views, "file.zarr")):
        if name in references:
            yield "kerchunk.json", "fsspec", failure(agrees, references.read, "", name, values)
    for tree in ("file.zarr", "stored.zarr"):
        store = os.path.join(views, tree)
        if tree == "file.zarr":
            yield tree, "zarr-python", failure(members, store)
        yield tree, "zarr-python", failure(same_tree, store)
        for name, values in arrays(path, store):
            for tool, read in present().items():
                suits = tree == "file.zarr" and values.dtype.kind not in WITHOUT_TENSORSTORE
                if tool != "tensorstore" or suits:
                    yield tree, tool, failure(agrees, read, store, name, values)


# ---------------------------------------------------------------- comparison with h5netcdf

# For each variable: the type, `_FillValue`, further attributes, values. Variables without a fill
# value that xarray can read from a store are not masked there.
FILLS = {
    "same": ("i2", np.int16(-1), {}, [1, -1, 3]),
    "floats": ("f4", np.float32(1e20), {}, [1, 1e20, np.nan]),
    "double_of_single": ("f4", 0.1, {}, [0.1, 1, 2]),
    "whole": ("f8", np.int32(-9), {}, [1, -9, 3]),
    "real": ("i4", -9.0, {}, [1, -9, 3]),
    "between": ("i4", 0.5, {}, [1, 2, 3]),
    "beyond": ("i1", np.int32(300), {}, [45, 1, 2]),
    "unsigned": ("i2", np.uint16(65535), {"_Unsigned": "true"}, [1, -1, 3]),
    "unsigned_same": ("i2", np.int16(-2), {"_Unsigned": "true"}, [1, -2, 3]),
    "signed": ("u1", np.uint8(254), {"_Unsigned": "false"}, [1, 254, 3]),
    "long": ("i8", np.int64(2**62 + 1), {}, [2**62 + 1, 1, 2]),
    "text": ("f4", "none", {}, [1, 2, 3]),
    "packed": ("i2", np.int16(-1), {"scale_factor": 0.5, "add_offset": 10.0}, [2, -1, 4]),
    "missing": ("f8", np.nan, {"missing_value": np.nan}, [1, np.nan, 3]),
    "missing_too": ("i4", np.int32(-1), {"missing_value": np.int32(-1)}, [1, -1, 3]),
    "dated": ("i4", np.int32(-1), {"units": "days since 2000-01-01"}, [1, -1, 3]),
    "empty": ("i4", None, {"units": "", "long_name": ""}, [1, 2, 3]),
}


@fixture("fills.nc")
def write_fills(path):
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("x", 3), ("y", 4)):
            file.createDimension(name, size)
        file.title = ""
        # A variable with the name of a dimension that is not its own dimension.
        file.createVariable("y", "f4", ("x",))[:] = [1, 2, 3]
        for name, (kind, _, attributes, values) in FILLS.items():
            made = file.createVariable(name, kind, ("x",))
            made.set_auto_maskandscale(False)
            made[:] = np.array(values, kind)
            made.setncatts(attributes)
    # netCDF rejects a fill value of another type.
    with h5py.File(path, "r+") as file:
        for name, (_, fill, _, _) in FILLS.items():
            if fill is not None:
                file[name].attrs["_FillValue"] = fill
        text = file.create_dataset("letters", data=np.array([b"ab", b"cd", b"ef"]))
        text.dims[0].attach_scale(file["x"])
        text.attrs["_FillValue"] = np.bytes_(b"none")


def dataset_agrees(path, store, is_consolidated):
    """Compares the coordinates, dimensions, values and attributes that xarray reads through
    h5netcdf and from the store, and what it writes from them."""
    with (
        xarray.open_dataset(path, engine="h5netcdf") as known,
        xarray.open_zarr(store, consolidated=is_consolidated, chunks=None) as found,
    ):
        agree(known.load(), found.load())
        encodings = {name: of.encoding for name, of in known.variables.items()}
        # xarray cannot write these variables of any file.
        texts = [name for name, of in encodings.items() if isinstance(of.get("_FillValue"), str)]
        agree(written(known.drop_vars(texts)), written(found.drop_vars(texts)))


def written(dataset):
    for variable in dataset.variables.values():
        for name in ("compressors", "filters", "serializer", "shards", "chunks"):
            variable.encoding.pop(name, None)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "written.nc")
        dataset.to_netcdf(path, engine="h5netcdf")
        return xarray.load_dataset(path, engine="h5netcdf")


def agree(known, found):
    assert set(found.coords) == set(known.coords), (found.coords, known.coords)
    assert set(found.variables) == set(known.variables)
    told = lambda node: {  # noqa: E731
        name: np.ravel(value).tolist()
        for name, value in node.attrs.items()
        if name != "_h5fs_absent"
    }
    assert told(found) == told(known)
    for name, variable in known.variables.items():
        assert found[name].dims == variable.dims, name
        if variable.dtype.kind in "SO":
            assert list(map(text, found[name].values)) == list(map(text, variable.values)), name
        else:
            xarray.testing.assert_allclose(found[name].variable, variable)
        assert told(found[name]) == told(variable), name


@write_fills.others
def netcdf_rows(path, views):
    store = os.path.join(views, "file.zarr")
    for is_consolidated in (None, True, False):
        yield "file.zarr", "xarray", failure(dataset_agrees, path, store, is_consolidated)
    yield "file.zarr", "zarr-python", failure(same_tree, store)
