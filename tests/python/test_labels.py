"""Selectors by value, such as `temp[time=2020-03,lat=~60].npy`, compared with xarray's `.sel`."""

import os
import random

import cftime
import h5fs
import netCDF4
import numpy
import pandas
import pytest
import xarray

needs_fuse = pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="there is no /dev/fuse")

SEED = 20261129
SELECTIONS = 800

# For each coordinate: its netCDF type, its stored values and its attributes.
CHANCE = numpy.random.default_rng(SEED)
STEPS = numpy.cumsum(CHANCE.integers(1, 50, 60))
COORDINATES = {
    "day": ("i4", numpy.arange(100), {"units": "days since 2020-01-15"}),
    "hour": ("f8", numpy.arange(80) * 6.0, {"units": "hours since 2020-02-20"}),
    "second": ("i8", STEPS, {"units": "seconds since 2020-02-28T23:50:00"}),
    "gap": ("i4", [0, 1, 2, 40, 41, 90, 400], {"units": "days since 2020-01-30"}),
    "noleap": ("i4", numpy.arange(90), {"units": "days since 2020-02-01", "calendar": "noleap"}),
    "d360": ("f8", numpy.arange(60) * 2.5, {"units": "days since 2020-01-01", "calendar": "360_day"}),
    "back": ("i4", numpy.arange(90)[::-1], {"units": "days since 2001-01-01", "calendar": "360_day"}),
    "once": ("i4", [15], {"units": "days since 2020-01-01"}),
    "shuffled": ("i4", CHANCE.permutation(60), {"units": "days since 2020-01-01"}),
    "lat": ("f4", numpy.linspace(90, -90, 73), {}),
    "lon": ("f8", numpy.arange(0, 360, 2.5), {}),
    "tenth": ("f4", numpy.arange(30) * numpy.float32(0.1), {}),
    "level": ("i2", [1000, 925, 850, 700, 500, 300, 100, 10], {}),
    "number": ("i8", STEPS, {}),
    "unsigned": ("u1", [3, 7, 8, 200, 255], {}),
    "packed": ("i2", numpy.arange(50) * 3, {"scale_factor": 0.25, "add_offset": 100.0}),
    "single": ("i2", numpy.arange(50), {"scale_factor": numpy.float32(0.1)}),
    "descending": ("i2", numpy.arange(40)[::-1], {"scale_factor": 0.5, "add_offset": -3.0}),
    "repeated": ("i4", [1, 2, 2, 2, 5, 9, 9, 12], {}),
    "mixed": ("f8", [3.5, 1.0, 7.25, -2.0, 10.0, 4.0], {}),
    "scattered": ("i4", [4, 1, 4, 4, 9, 1, 7], {}),
    "holes": ("f8", [1.0, 2.0, numpy.nan, 4.0, numpy.nan, 6.0], {}),
    "filled": ("i4", [1, 2, -9, 4], {"_FillValue": -9}),
    "station": (str, ["Bern", "Oslo", "A/B", "São Paulo", "New York, NY", "x]y", "it's"], {}),
    "sorted_text": (str, ["Alpha", "Beta", "Beta", "Gamma", "Ä", "é"], {}),
}


def write(path, coordinates=None):
    with netCDF4.Dataset(path, "w") as file:
        for name, (kind, values, attributes) in (coordinates or COORDINATES).items():
            file.createDimension(name, len(values))
            fill = attributes.get("_FillValue")
            variable = file.createVariable(name, kind, (name,), fill_value=fill)
            variable.set_auto_maskandscale(False)
            variable[:] = numpy.array(values, object if kind is str else kind)
            variable.setncatts({k: v for k, v in attributes.items() if k != "_FillValue"})
            data = file.createVariable(f"v_{name}", "i4", (name,))
            data[:] = numpy.arange(len(values)) * 7
        for number, dims in enumerate([("day", "lat", "lon"), ("scattered", "station", "holes")]):
            shape = [len(file.dimensions[name]) for name in dims]
            cube = file.createVariable(f"cube{number}", "i4", dims)
            cube[:] = numpy.arange(numpy.prod(shape)).reshape(shape)
        file.createDimension("letters", 4)
        code = file.createVariable("code", "S1", ("unsigned", "letters"))
        code[:] = netCDF4.stringtochar(numpy.array(["ab", "cde", "f", "", "ghij"], "S4"))
        file.createDimension("bare", 5)
        file.createVariable("v_bare", "i4", ("bare",))[:] = numpy.arange(5)


def is_time(name):
    return "units" in COORDINATES[name][2]


def iso(chance, time):
    """Returns a text of the time, or the beginning of such a text."""
    text = time.isoformat() if isinstance(time, cftime.datetime) else str(time)[:19]
    return text[: chance.choice([4, 7, 7, 7, 10, 10, 10, 13, 16, 19])]


def random_label(chance, name, values):
    """Returns a label as text, and as xarray takes it. Some labels are not in the coordinate."""
    value = values[chance.randrange(len(values))]
    if is_time(name):
        text = iso(chance, value)
        if chance.random() < 0.15:
            text = text.replace("2020", chance.choice(["2019", "2021"]), 1)
        return text, text
    if COORDINATES[name][0] is str:
        text = chance.choice([value, value, value, "Basel", value[:1]])
        quoted = text.replace("\\", "\\\\").replace("'", "\\'").replace("/", "%2F")
        return f"'{quoted}'", text
    value = value.item()
    if value != value:
        # xarray finds NaN, which a selector never matches.
        value = 3.0
    if chance.random() < 0.3:
        value += chance.choice([0.5, -1, 1.25, 1000, -1000])
    if float(value).is_integer() and chance.random() < 0.5:
        value = int(value)
    text = repr(value)
    if COORDINATES[name][0] == "f4" or name == "single":
        text = str(numpy.float32(value))
    return text, float(text) if "." in text or "e" in text else int(text)


def exact_time(values, text):
    """Returns the beginning of the period as an element of the coordinate's index, which must
    have the date."""
    padded = text + "0000-01-01T00:00:00"[len(text) :]
    if isinstance(values[0], cftime.datetime):
        numbers = [int(part) for part in padded.replace("T", "-").replace(":", "-").split("-")]
        return type(values[0])(*numbers, has_year_zero=values[0].has_year_zero)
    return numpy.datetime64(padded)


def random_choice(chance, name, values):
    """Returns the text of a choice, the arguments of `.sel` and of `.isel`."""
    kind = chance.choice(["value", "value", "value", "nearest", "range", "range", "index"])
    if kind == "index":
        count = len(values)
        start, step = chance.randint(-count, count), chance.choice([1, 2, -1])
        if chance.random() < 0.5:
            at = chance.randrange(-count, count)
            return f"{name}@{at}", {}, {name: at}, None
        return f"{name}@{start}::{step}", {}, {name: slice(start, None, step)}, None
    text, label = random_label(chance, name, values)
    if kind == "value":
        return f"{name}={text}", {name: label}, {}, None
    if kind == "nearest":
        if is_time(name):
            try:
                label = exact_time(values, text)
            except ValueError:
                label = None
        return f"{name}=~{text}", {name: label}, {}, "nearest"
    other, last = random_label(chance, name, values)
    which = chance.randrange(4)
    bounds = slice(label if which != 1 else None, last if which != 2 else None)
    return f"{name}={text if which != 1 else ''}:{other if which != 2 else ''}", {name: bounds}, {}, None


def expected(array, labels, positions, method):
    """Returns what xarray selects, or `None` if it refuses. A label that no coordinate can have is
    `None`."""
    if None in labels.values():
        return None
    try:
        return array.isel(positions).sel(labels, method=method)
    except (KeyError, ValueError, TypeError, IndexError, pandas.errors.InvalidIndexError):
        return None


def is_deliberately_other(name, labels, wanted):
    """Returns whether h5fs selects on purpose other elements than xarray: none for ranges of times
    without order, and none for periods before or after such times."""
    is_range = isinstance(labels.get(name), slice)
    return name == "shuffled" and (is_range or wanted is not None and wanted.size == 0)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "labels.nc"
    write(path)
    return path


def compare(root, variable, text, wanted):
    """Compares the file of a selection with the selected values; `None` means no such file."""
    name = f"{variable}[{text}]"
    raw, npy = root / name, root / f".h5fs/npy/{name}.npy"
    if wanted is None:
        assert not os.path.lexists(raw) and not os.path.lexists(npy), name
        return False
    assert raw.read_bytes() == wanted.values.tobytes(), name
    found = numpy.load(npy)
    assert found.shape == wanted.shape and (found == wanted.values).all(), (name, found, wanted)
    return True


@needs_fuse
def test_random_selections_equal_those_of_xarray(labelled):
    chance = random.Random(SEED)
    counts = {True: 0, False: 0}
    with xarray.open_dataset(labelled, engine="netcdf4") as dataset, h5fs.mount(labelled) as root:
        for turn in range(SELECTIONS):
            name = list(COORDINATES)[turn % len(COORDINATES)]
            values = dataset[name].values
            text, labels, positions, method = random_choice(chance, name, values)
            wanted = expected(dataset[f"v_{name}"], labels, positions, method)
            if is_deliberately_other(name, labels, wanted):
                continue
            counts[compare(root, f"v_{name}", text, wanted)] += 1
    assert counts[True] > 400 and counts[False] > 50, counts


@needs_fuse
def test_selections_of_several_dimensions_equal_those_of_xarray(labelled):
    chance = random.Random(SEED)
    count = 0
    with xarray.open_dataset(labelled, engine="netcdf4") as dataset, h5fs.mount(labelled) as root:
        for turn in range(200):
            array = dataset[f"cube{turn % 2}"]
            names = chance.sample(array.dims, chance.randint(1, 3))
            texts, wanted = [], array
            for name in names:
                text, labels, positions, method = random_choice(chance, name, dataset[name].values)
                texts.append(text)
                if wanted is not None:
                    wanted = expected(wanted, labels, positions, method)
            count += compare(root, array.name, ",".join(texts), wanted)
    assert count > 60, count


def random_day(chance):
    """Returns a month of 2025, or a day that may not exist."""
    return f"2025-{chance.randint(1, 7):02}" + chance.choice(["", f"-{chance.randint(1, 31):02}"])


@needs_fuse
def test_selections_of_joined_files_equal_those_of_xarray(tmp_path):
    chance = random.Random(SEED)
    for month in range(1, 7):
        with netCDF4.Dataset(tmp_path / f"2025-{month:02}.nc", "w") as file:
            file.createDimension("time", None)
            file.createDimension("x", 4)
            time = file.createVariable("time", "f8", ("time",))
            time.units = f"days since 2025-{month:02}-01"
            time[:] = numpy.arange(28)
            file.createVariable("x", "f4", ("x",))[:] = [0, 1, 2, 4]
            file.createVariable("v", "i4", ("time", "x"))[:] = numpy.arange(112).reshape(28, 4) * month
    paths = sorted(tmp_path.glob("*.nc"))
    datasets = [xarray.open_dataset(path, engine="netcdf4") for path in paths]
    joined = xarray.concat(datasets, "time", data_vars="all").load()
    count = 0
    with h5fs.mount(tmp_path) as root:
        for _ in range(60):
            first, last = random_day(chance), random_day(chance)
            text, labels = chance.choice([
                (f"time={first}", {"time": first}),
                (f"time={first}:{last}", {"time": slice(first, last)}),
                (f"time={first}:,x=1", {"time": slice(first, None), "x": 1}),
            ])
            wanted = expected(joined.v, labels, {}, None)
            count += compare(root / ".h5fs/joined", "v", text, wanted)
    assert count > 30, count
