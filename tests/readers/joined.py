"""Directories of files as in archives, shown as joined files. xarray, anndata and h5py read the
files one by one. xarray, zarr, tensorstore, pyarrow and DuckDB must read the same from the joined
file."""

import glob
import os
import pathlib
import warnings

import anndata
import duckdb
import h5py
import netCDF4
import numpy as np
import pandas
import pyarrow.parquet
import tensorstore
import xarray
import zarr
from documents import failure
from mounted import Mount

warnings.simplefilter("ignore")
SETS = {}


def archive(write):
    SETS[write.__name__] = write
    return write


def path_of(directory, *names):
    path = os.path.join(directory, *names)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def grid(ny=6, nx=8):
    return {"lat": np.linspace(-75, 75, ny), "lon": np.arange(nx) * 45.0}


def opened(directory, pattern="*.nc", **how):
    files = sorted(glob.glob(os.path.join(directory, "**", pattern), recursive=True))
    return xarray.open_mfdataset(files, engine="netcdf4", **how).load()


@archive
def cmip6(directory):
    """CMIP6: a file for each variable, member and decade, with months of 30 days and bounds."""
    chance = np.random.default_rng(6)
    for member in ("r1i1p1f1", "r2i1p1f1"):
        for variable in ("tas", "pr"):
            for decade in (1850, 1860):
                months = xarray.date_range(
                    f"{decade}-01-16", periods=12, freq="MS", calendar="360_day", use_cftime=True
                )
                values = chance.random((12, 6, 8)).astype("f4")
                made = xarray.Dataset(
                    {variable: (("time", "lat", "lon"), values, {"units": "K"})},
                    {"time": months, **grid()},
                    {"source_id": "MODEL", "tracking_id": f"{member}{variable}{decade}"},
                )
                name = f"{variable}_Amon_{member}_{decade}.nc"
                encoding = {"time": {"units": f"days since {decade}-01-01"}}
                path = path_of(directory, f"variant_label={member}", name)
                made.to_netcdf(path, encoding=encoding)
    members = []
    for member in ("r1i1p1f1", "r2i1p1f1"):
        members.append(opened(os.path.join(directory, f"variant_label={member}")))
    return xarray.concat(members, pandas.Index(["r1i1p1f1", "r2i1p1f1"], name="variant_label"))


@archive
def era5(directory):
    """ERA5: a file for each month, packed with its own scale and offset."""
    chance = np.random.default_rng(5)
    for month, days in ((1, 31), (2, 28), (3, 31)):
        values = chance.normal(280, 2 + month, (days, 6, 8))
        values[0, 0, month] = np.nan
        scale = float(np.nanmax(values) - np.nanmin(values)) / 65530
        encoding = {
            "t2m": {
                "dtype": "i2",
                "scale_factor": scale,
                "add_offset": float(np.nanmean(values)),
                "_FillValue": -32767,
            },
            "time": {"units": "hours since 1900-01-01", "dtype": "i4"},
        }
        times = pandas.date_range(f"2019-{month:02}-01", periods=days)
        made = xarray.Dataset({"t2m": (("time", "lat", "lon"), values)}, {"time": times, **grid()})
        made.to_netcdf(path_of(directory, f"era5_{month}.nc"), encoding=encoding)
    return opened(directory)


@archive
def modis(directory):
    """MODIS: tiles of a grid at several times."""
    chance = np.random.default_rng(4)
    for day in range(2):
        for row in range(2):
            for column in range(2):
                made = xarray.Dataset(
                    {"ndvi": (("time", "y", "x"), chance.integers(-2000, 10000, (1, 4, 4), "i2"))},
                    {
                        "time": pandas.DatetimeIndex([f"2020-01-{1 + 16 * day:02}"]),
                        "y": 80.0 - np.arange(4) * 10 - 40 * row,
                        "x": np.arange(4) * 10.0 + 40 * column,
                    },
                )
                made.to_netcdf(path_of(directory, f"h{column}v{row}.A2020{day}.nc"))
    return opened(directory)


@archive
def goes(directory):
    """GOES-R ABI: a file for each scan, with a scalar time."""
    chance = np.random.default_rng(16)
    for scan in range(4):
        with netCDF4.Dataset(path_of(directory, f"OR_ABI-L2_s2024{scan:03}.nc"), "w") as made:
            made.createDimension("y", 5)
            made.createDimension("x", 6)
            for name, length in (("y", 5), ("x", 6)):
                made.createVariable(name, "f4", (name,))[:] = np.arange(length) / 8
            time = made.createVariable("t", "f8", ())
            time.units, time.standard_name = "seconds since 2000-01-01 12:00:00", "time"
            time[...] = 7.6e8 + 300.5 * scan
            cmi = made.createVariable("CMI", "f4", ("y", "x"), fill_value=-1.0)
            cmi[:] = chance.random((5, 6))
            made.createVariable("band", "i4", ())[...] = 13
    ready = lambda one: one.set_coords("t").expand_dims("t").drop_vars("band")  # noqa: E731
    made = opened(directory, combine="nested", concat_dim="t", data_vars="all", preprocess=ready)
    return made.assign(band=((), np.int32(13)))


def zarr_agrees(expected, store):
    with xarray.open_zarr(store, decode_times=xarray.coders.CFDatetimeCoder(time_unit="us")) as found:
        assert set(found.variables) == set(expected.variables), set(found.variables)
        for name, wanted in expected.variables.items():
            own = found[name].transpose(*wanted.dims)
            assert own.shape == wanted.shape, (name, own.dims, own.shape, wanted.shape)
            assert same(own.values, wanted.values), name


def same(found, wanted):
    if wanted.dtype.kind == "M":
        return np.array_equal(found.astype("M8[us]"), wanted.astype("M8[us]"))
    if wanted.dtype.kind == "f":
        return found.dtype == wanted.dtype and np.array_equal(found, wanted, equal_nan=True)
    if found.dtype.kind == "S":
        return np.char.decode(found).tolist() == wanted.astype(str).tolist()
    return np.array_equal(found, wanted)


def tensorstore_agrees(expected, store):
    group = zarr.open_group(store, mode="r")
    for name in expected.data_vars:
        own = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/{name}/"}}
        read = tensorstore.open(own, open=True).result().read().result()
        assert np.array_equal(read, group[name][...], equal_nan=read.dtype.kind == "f"), name


def cf_agrees(expected, views):
    """Compares the long tables of the CF conventions, read by DuckDB."""
    for name in expected.data_vars:
        if expected[name].ndim == 0:
            continue
        path = os.path.join(views, "cf", f"{name}.parquet")
        query = f"select count(*), avg({name}) from '{path}' where not isnan({name}::double)"
        ((count, mean),) = duckdb.sql(query).fetchall()
        values = expected[name].values.astype("f8")
        assert count == np.isfinite(values).sum(), (name, count)
        assert np.isclose(mean, np.nanmean(values), rtol=1e-6), name


def rows_of_stores(binary, top):
    for name, write in SETS.items():
        directory = os.path.join(top, name)
        expected = write(directory)
        with Mount(binary, directory) as mount:
            store = os.path.join(mount.at(".h5fs"), "joined.zarr")
            views = os.path.join(mount.at(".h5fs"), "joined/.h5fs")
            yield f"{name}/joined.zarr", "xarray", failure(zarr_agrees, expected, store)
            yield f"{name}/joined.zarr", "tensorstore", failure(tensorstore_agrees, expected, store)
            yield f"{name}/joined/cf", "DuckDB", failure(cf_agrees, expected, views)


def scans(directory):
    """NeXus: a file for each scan, with different lengths."""
    chance = np.random.default_rng(9)
    parts = []
    for scan, length in enumerate((5, 3, 8)):
        with h5py.File(path_of(directory, f"scan_{scan:04}.nxs"), "w") as made:
            counts = chance.integers(0, 99, (length, 4, 3), dtype="u4")
            parts.append(counts)
            made.create_dataset("entry/detector/counts", data=counts, chunks=(1, 4, 3))
            made["entry/sample/angle"] = np.arange(length) * 0.5 + scan
            made["entry/title"] = f"scan {scan}"
            made["entry"].attrs["NX_class"] = "NXentry"
    return np.concatenate(parts)


def batches(directory):
    """AnnData: a file for each batch. The rows of `obs` are concatenated."""
    frames = []
    for batch in range(3):
        index = [f"cell{batch}_{number}" for number in range(4 + batch)]
        frame = pandas.DataFrame({"depth": np.arange(4 + batch) + 0.5 * batch}, index=index)
        made = anndata.AnnData(np.zeros((4 + batch, 2), "f4"), obs=frame)
        made.write_h5ad(path_of(directory, f"batch_{batch}.h5ad"))
        frames.append(frame)
    return pandas.concat(frames)


def scans_agree(expected, joined):
    read = np.load(os.path.join(joined, ".h5fs/npy/entry/detector/counts.npy"), mmap_mode="r")
    assert np.array_equal(read, expected)
    angles = np.frombuffer(pathlib.Path(joined, "entry/sample/angle").read_bytes(), "f8")
    assert angles.tolist() == [n * 0.5 + s for s, k in enumerate((5, 3, 8)) for n in range(k)]


def batches_agree(expected, joined):
    table = pyarrow.parquet.read_table(os.path.join(joined, ".h5fs/parquet/obs.parquet"))
    assert table["depth"].to_pylist() == expected["depth"].tolist(), table
    assert table["_index"].to_pylist() == expected.index.tolist(), table.schema


def rows(binary, top):
    """Yields (name, tool, difference or None)."""
    yield from rows_of_stores(binary, top)
    for name, tool, write, agree in (
        ("scans", "numpy", scans, scans_agree),
        ("batches", "pyarrow", batches, batches_agree),
    ):
        directory = os.path.join(top, name)
        expected = write(directory)
        with Mount(binary, directory) as mount:
            joined = os.path.join(mount.at(".h5fs"), "joined")
            yield f"{name}/joined", tool, failure(agree, expected, joined)
