"""Groups that the library of a convention writes and reads as a table."""

import datetime
import warnings

import anndata
import asdf
import astropy.table
import astropy.units
import mudata
import netCDF4
import numpy as np
import pandas
import pynwb
import xarray
from kit import csv, fixture, plain
from table import Column, Table

CHANCE = np.random.default_rng(11)


def column(name, values):
    """Returns a column of a pandas frame. A missing value of any kind becomes None."""
    if isinstance(values.dtype, pandas.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    parts = values.tolist()
    kind = values.dtype.kind if values.dtype.kind in "iufb" else "O"
    if kind == "f":
        return Column(name, "real", parts, precision=getattr(values.dtype, "type", np.float64))
    if values.dtype.kind == "M":
        times = [None if pandas.isna(value) else value.to_pydatetime() for value in values]
        return Column(name, "time", times)
    parts = [plain(part) if isinstance(part, (np.ndarray, np.generic)) else part for part in parts]
    parts = [None if not isinstance(part, list) and pandas.isna(part) else part for part in parts]
    if kind == "O":
        types = {type(part) for part in parts if part is not None}
        return Column(
            name, "list" if types == {list} else "boolean" if types == {bool} else "text", parts
        )
    return Column(name, {"i": "integer", "u": "integer", "b": "boolean"}[kind], parts)


def table_of(view, frame, index, is_frame=True):
    """Returns a frame with its index as the first column."""
    rest = [column(name, frame[name]) for name in frame.columns]
    columns = [column(index, frame.index.to_series()), *rest]
    return Table(csv(view), columns, is_frame=is_frame)


# ---------------------------------------------------------------- AnnData


@fixture("cells.h5ad")
def write_anndata(path):
    cells, genes = 40, 12
    obs = pandas.DataFrame(
        {
            "cell_type": pandas.Categorical(
                CHANCE.choice(["T cell", "B cell", 'the "other"'], cells)
            ),
            "n_counts": CHANCE.integers(0, 10**6, cells),
            "fraction": CHANCE.random(cells).astype("f4"),
            "doublet": CHANCE.random(cells) < 0.1,
            "batch": pandas.Categorical(
                [None if n % 9 == 0 else f"b{n % 3}" for n in range(cells)]
            ),
            "age": pandas.array([None if n % 7 == 0 else n for n in range(cells)], dtype="Int32"),
            "smoker": pandas.array(
                [None if n % 5 == 0 else n % 2 == 0 for n in range(cells)], dtype="boolean"
            ),
            "note": [f"cell {n}, of {cells}" for n in range(cells)],
        },
        index=[f"AAACCTG{n:04}-1" for n in range(cells)],
    )
    var = pandas.DataFrame(
        {"gene name": [f"GENE{n}" for n in range(genes)], "mean": CHANCE.random(genes)},
        index=pandas.Index([f"ENSG{n:08}" for n in range(genes)], name="gene_id"),
    )
    counts = CHANCE.poisson(2, (cells, genes)).astype("f4")
    anndata.AnnData(counts, obs, var).write_h5ad(path)


@write_anndata.tables
def anndata_tables(path):
    read = anndata.read_h5ad(path)
    for name, frame in (("obs", read.obs), ("var", read.var)):
        yield table_of(name, frame, frame.index.name or "_index")


def texts(values):
    """Returns strings of pandas 3, some of which may be missing."""
    return pandas.array(values, dtype="string")


def cells_of_texts(cells=30):
    """Returns a frame as pandas 3 creates it: its index and its strings are string arrays."""
    return pandas.DataFrame(
        {
            "cell_type": pandas.Categorical(texts(CHANCE.choice(["T cell", "B cell"], cells))),
            "note": texts([None if n % 4 == 0 else f"cell {n}" for n in range(cells)]),
            "fraction": np.where(np.arange(cells) % 5 == 0, np.nan, CHANCE.random(cells)),
            "age": pandas.array([None if n % 7 == 0 else n for n in range(cells)], dtype="Int32"),
        },
        index=pandas.Index(texts([f"AAACCTG{n:04}-1" for n in range(cells)]), name="barcode"),
    )


@fixture("texts.h5ad")
def write_texts(path):
    # Before version 0.13, this must be permitted explicitly.
    with anndata.settings.override(allow_write_nullable_strings=True):
        anndata.AnnData(np.eye(30, 2), cells_of_texts()).write_h5ad(path)


@write_texts.tables
def text_tables(path):
    yield table_of("obs", anndata.read_h5ad(path).obs, "barcode")


@fixture("texts.h5mu")
def write_mudata(path):
    with anndata.settings.override(allow_write_nullable_strings=True):
        parts = {name: anndata.AnnData(np.eye(30, 2), cells_of_texts()) for name in ("rna", "atac")}
        mudata.MuData(parts).write_h5mu(path)


@write_mudata.tables
def mudata_tables(path):
    for name in ("rna", "atac"):
        read = mudata.read_h5ad(path, name)
        yield table_of(f"mod/{name}/obs", read.obs, "barcode")


# ---------------------------------------------------------------- Neurodata Without Borders


@fixture("session.nwb")
def write_nwb(path):
    start = datetime.datetime(2024, 5, 1, 10, 30, tzinfo=datetime.timezone.utc)
    session = pynwb.NWBFile("a session", "readers", start)
    device = session.create_device("probe")
    shanks = [
        session.create_electrode_group(f"shank{n}", "four wires", "CA1, left", device)
        for n in range(2)
    ]
    session.add_electrode_column("label", "the name of the wire")
    for n in range(8):
        session.add_electrode(
            x=n * 20.0, y=0.5, z=-n / 3, imp=np.nan, location="CA1, left", filtering="300 Hz, high",
            group=shanks[n // 4], label=f"wire {n}",
        )  # fmt: skip
    session.add_trial_column("choice", 'what the mouse did: "left" or "right"')
    for n in range(5):
        session.add_trial(
            start_time=n * 2.0, stop_time=n * 2.0 + 1.25, choice=["left", "right, late"][n % 2]
        )
    session.add_unit_column("quality", "by hand")
    for n in range(4):
        session.add_unit(
            spike_times=np.sort(CHANCE.random(n * 2)) * 60, quality=["good", "noise"][n % 2]
        )
    with pynwb.NWBHDF5IO(path, "w") as io:
        io.write(session)


@write_nwb.tables
def nwb_tables(path):
    with pynwb.NWBHDF5IO(path, "r") as io:
        session = io.read()
        groups = {
            group.object_id: f"/general/extracellular_ephys/{name}"
            for name, group in session.electrode_groups.items()
        }
        for view, read in (
            ("general/extracellular_ephys/electrodes", session.electrodes),
            ("intervals/trials", session.trials),
            ("units", session.units),
        ):
            frame = read.to_dataframe()
            if "group" in frame:
                frame["group"] = [groups[group.object_id] for group in frame["group"]]
            yield table_of(view, frame, "id")


# ---------------------------------------------------------------- pandas' HDFStore


def weather():
    return pandas.DataFrame(
        {
            "temperature": [1.5, np.nan, -3.25, 20.0],
            "rain": [0.0, 1.0, 2.5, 0.1],
            "count": np.arange(4),
            "wet": [False, True, True, False],
            "place": ["Oslo", "Bergen, west", 'the "north"', "Ås"],
        }
    )


def dated():
    """Returns a frame with an index of times, a missing time, and categories."""
    days = pandas.date_range("2024-02-28T06:00", periods=4, freq="12h", name="when")
    return pandas.DataFrame(
        {
            "sun": [1.25, 2.5, 0.0, np.nan],
            "seen": pandas.to_datetime(["2024-03-01T12:30", None, "1999-12-31T23:59", None]),
            "sky": pandas.Categorical(["clear", "grey", "clear", "low, grey"]),
        },
        index=days,
    )


def levels():
    """Returns a frame with an index of two levels."""
    index = pandas.MultiIndex.from_product([["north", "south"], [1, 2, 3]], names=["side", "mast"])
    return pandas.DataFrame({"wind": np.arange(6) / 4}, index=index)


def wide():
    """500 data columns, each a field of the records and a few attributes."""
    numbers = np.arange(3 * 500).reshape(3, 500)
    columns = {f"c{n:03}": numbers[:, n] if n % 2 else numbers[:, n] / 4 for n in range(500)}
    return pandas.DataFrame(columns)


@fixture("weather.h5")
def write_store(path):
    warnings.simplefilter("ignore")
    frame = weather()
    with pandas.HDFStore(path, "w") as store:
        store.put("fixed", frame.drop(columns="place"), format="fixed")
        store.put("table", frame, format="table")
        store.put("queried", frame, format="table", data_columns=True)
        store.put("dated", dated(), format="table")
        for format in ("table", "fixed"):
            store.put(f"levels_{format}", levels(), format=format)


@write_store.tables
def store_tables(path):
    with pandas.HDFStore(path, "r") as store:
        for name in ("fixed", "table", "queried"):
            yield table_of(name, store[name], "index")
        for name in ("dated", "levels_table", "levels_fixed"):
            frame = store[name].reset_index()
            columns = [column(part, frame[part]) for part in frame.columns]
            yield Table(csv(name), columns, is_frame=True)


@fixture("wide.h5", is_large=True)
def write_wide(path):
    warnings.simplefilter("ignore")
    wide().to_hdf(path, key="wide", format="table", data_columns=True)


@write_wide.tables
def wide_tables(path):
    yield table_of("wide", pandas.read_hdf(path, "wide"), "index")


# ---------------------------------------------------------------- netCDF


@fixture("stations.nc")
def write_netcdf(path):
    with netCDF4.Dataset(path, "w") as f:
        f.Conventions = "CF-1.10"
        f.createDimension("time", 6)
        f.createDimension("site", 3)
        f.createDimension("letters", 8)
        time = f.createVariable("time", "f8", ("time",))
        time.units, time.calendar, time[:] = "hours since 2024-02-28", "standard", np.arange(6) * 6
        for name, kind, values in (
            ("temperature", "f4", 280 + CHANCE.normal(size=6)),
            ("quality", "i1", [0, 1, 2, 1, 0, 0]),
            ("observer", str, np.array(["Ann", "Bo, jr.", "", 'C"C', "Dée", "E"], object)),
        ):
            f.createVariable(name, kind, ("time",))[:] = values
        packed = f.createVariable("rain", "i2", ("time", "site"), fill_value=-999)
        packed.scale_factor, packed.add_offset = 0.1, 5.0
        packed.set_auto_maskandscale(False)
        packed[:] = np.arange(18).reshape(6, 3)
        packed[2, 1] = -999
        f.createVariable("site", "i4", ("site",))[:] = [10, 20, 30]
        name = f.createVariable("site_name", "S1", ("site", "letters"))
        name[:] = netCDF4.stringtochar(np.array(["Oslo", "Bergen", "Paris"], "S8"))


@write_netcdf.tables
def netcdf_tables(path):
    with xarray.open_dataset(path, decode_cf=False) as read:
        along = [name for name in read.variables if read[name].dims == ("time",)]
        yield table_of("%", read[along].to_dataframe(), "time", is_frame=False)


# ---------------------------------------------------------------- astropy in ASDF


@fixture("sources.asdf")
def write_astropy(path):
    table = astropy.table.QTable()
    table["id"] = np.arange(5)
    table["name"] = ["M 31", "M 33, Triangulum", 'the "Bulge"', "α Cen", "x"]
    table["flux"] = np.array([1.5, 2.5e-7, np.nan, 0.1, -3]) * astropy.units.Jy
    table["count"] = astropy.table.MaskedColumn([1, 2, 3, 4, 5], mask=[0, 1, 0, 0, 1])
    table["seen"] = [True, False, True, True, False]
    table["place"] = np.arange(10.0).reshape(5, 2)
    asdf.AsdfFile(
        {"sources": table, "answer": 42, "nested": {"list": [1, None, True, "x"]}}
    ).write_to(path)


@write_astropy.tables
def astropy_tables(path):
    with asdf.open(path) as f:
        read = f["sources"]
        columns = []
        for name in read.colnames:
            values = np.ma.asarray(getattr(read[name], "value", read[name]))
            parts = (
                [(name, values)]
                if values.ndim == 1
                else [(f"{name}[{n}]", values[:, n]) for n in range(values.shape[1])]
            )
            for part, array in parts:
                kind = {"i": "integer", "f": "real", "b": "boolean", "U": "text"}[array.dtype.kind]
                columns.append(Column(part, kind, array.tolist()))
        yield Table(csv("sources"), columns)


@fixture("catalogue.h5")
def write_astropy_hdf5(path):
    table = astropy.table.Table(
        {"id": np.arange(4), "name": ["a", "b, c", "", "d"], "ra": CHANCE.random(4) * 360}
    )
    table.write(path, path="catalogue", format="hdf5", serialize_meta=True, overwrite=True)


@write_astropy_hdf5.tables
def astropy_hdf5_tables(path):
    read = astropy.table.Table.read(path, path="catalogue")
    kinds = {"i": "integer", "f": "real", "U": "text", "S": "text", "O": "text"}
    yield Table(csv("catalogue"), [
        Column(name, kinds[read[name].dtype.kind], [plain(value) for value in read[name].tolist()])
        for name in read.colnames
    ])  # fmt: skip
