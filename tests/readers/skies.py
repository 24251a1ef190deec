"""FITS files, read with astronomers' tools, and compared with what h5py and asdf read."""

import os
import shutil
import sys
import warnings

import asdf
import astropy.table
import astropy.units
import fitsio
import h5py
import numpy as np
from astropy.io import fits
from documents import failure
from images import absent, refused
from kit import fixture
from tools import said

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures"))
import pictures as arrays  # noqa: E402


@fixture("sky.h5", is_large=True)
def write(path):
    arrays.write(path)


@write.others
def others(path, views):
    def rows(name, readers, expected):
        found = os.path.join(views, "fits", name + ".fits")
        for tool, read in readers.items():
            # fitsio cannot read images of unsigned 64-bit integers.
            if tool != "fitsio" or getattr(expected, "dtype", None) not in ("<u8", ">u8"):
                yield "fits", tool, failure(read, found, expected)
        if shutil.which("fitsverify"):
            yield "fits", "fitsverify", failure(verified, found)

    with h5py.File(path) as file:
        for name, _ in arrays.arrays():
            values = file[name][()]
            if values.ndim:
                yield from rows(name, IMAGES, values)
            else:
                yield "fits", "cat", failure(absent, os.path.join(views, "fits", name + ".fits"))
        yield from rows("records", RECORDS, file["records"][()])
    yield from rows("group", GROUPS, arrays.columns())
    yield from rows("attributes", CARDS, arrays.CARDS)
    yield "fits", "cat", failure(refused, os.path.join(views, "fits/damaged.fits"))


@fixture("sky.asdf", is_large=True)
def write_asdf(path):
    sci = np.arange(12, dtype=">f4").reshape(3, 4)
    inner = {"meta": {"gain": 2.5, "target": "M 31", "nested": {"x": 1}}, "data": sci}
    tree = {"meta": {"telescop": "ROMAN", "exptime": 120}, "roman": inner, "mask": sci > 5}
    asdf.AsdfFile(tree).write_to(path)


@write_asdf.others
def others_of_asdf(path, views):
    cases = {
        "mask": {"TELESCOP": "ROMAN", "EXPTIME": 120},
        "roman/data": {"GAIN": 2.5, "TARGET": "M 31"},
    }
    for name, expected in cases.items():
        found = os.path.join(views, "fits", name + ".fits")
        with asdf.open(path, memmap=False) as tree:
            values = tree["mask"] if name == "mask" else np.array(tree["roman"]["data"])
            for tool, read in {**IMAGES, "fitsverify": verified}.items():
                if tool != "fitsverify":
                    yield "fits", tool, failure(read, found, np.asarray(values))
                elif shutil.which(tool):
                    yield "fits", tool, failure(read, found)
        yield "fits", "astropy", failure(meta_agrees, found, expected)


@fixture("catalogue.asdf", is_large=True)
def write_catalogue(path):
    table = astropy.table.QTable()
    table["id"] = np.arange(5)
    table["flux"] = np.array([1.5, 2.5e-7, np.nan, 0.1, -3]) * astropy.units.Jy
    table["seen"] = [True, False, True, True, False]
    table["level"] = astropy.table.MaskedColumn(np.arange(5.0), mask=[0, 1, 0, 0, 1])
    table["count"] = astropy.table.MaskedColumn([1, 2, 3, 4, 5], mask=[0, 1, 0, 0, 1])
    table["place"] = np.arange(10.0).reshape(5, 2)
    asdf.AsdfFile({"catalogue": table}).write_to(path)


@write_catalogue.others
def others_of_catalogue(path, views):
    found = os.path.join(views, "fits/catalogue.fits")
    with asdf.open(path) as file:
        expected = file["catalogue"].copy()
    for tool, read in {"astropy": read_by_astropy, "fitsio": read_by_fitsio}.items():
        yield "fits", tool, failure(lambda: catalogue_agrees(read(found), expected))
    if shutil.which("fitsverify"):
        yield "fits", "fitsverify", failure(verified, found)


def catalogue_agrees(read, expected):
    for name in ("id", "seen"):
        assert (np.asarray(read[name]) == np.asarray(expected[name])).all(), name
    assert np.array_equal(read["flux"], expected["flux"].value, equal_nan=True)
    assert np.array_equal(read["level"], expected["level"].filled(np.nan), equal_nan=True)
    # A masked integer has no number, so the column contains the text of the CSV.
    texts = ["" if value is np.ma.masked else str(value) for value in expected["count"]]
    assert [str(text).strip() for text in read["count"]] == texts, read["count"]
    places = np.array(expected["place"])
    for number in range(2):
        assert (np.asarray(read[f"place[{number}]"]) == places[:, number]).all()


def read_by_astropy(path):
    return fits.getdata(path)


def read_by_fitsio(path):
    return fitsio.read(path)


@fixture("wide.h5", is_large=True)
def write_wide(path):
    with h5py.File(path, "w") as file:
        huge = file.create_dataset("huge", (3, 40_000, 40_000), "<u1", chunks=(1, 1000, 1000))
        huge[2, -1000:, -1000:] = 7


@write_wide.others
def others_of_wide(path, views):
    for tool, read in {"astropy": huge_by_astropy, "fitsio": huge_by_fitsio}.items():
        yield "fits", tool, failure(read, os.path.join(views, "fits/huge.fits"))


def verified(path):
    """fitsverify only warns about a dot in a column name."""
    said_of_it = said("fitsverify", "-e", "-q", path)
    assert said_of_it.startswith("verification OK"), said_of_it


# ---------------------------------------------------------------- images


def as_fits(values):
    kinds = {"b": np.uint8, "f2": np.float32}
    kind = values.dtype.kind
    wider = kinds.get(kind) or kinds.get(kind + str(values.dtype.itemsize))
    return values.astype(wider) if wider else values


def image_by_astropy(path, values):
    with fits.open(path) as units:
        [unit] = units
        same(np.empty(unit.shape, ">f8") if unit.data is None else unit.data, as_fits(values))


def image_by_fitsio(path, values):
    with fitsio.FITS(path) as units:
        [unit] = units
        if values.size:
            same(unit.read(), as_fits(values))
        else:
            assert tuple(unit.get_dims()) == values.shape


def same(read, values):
    assert read.shape == values.shape, (read.shape, values.shape)
    assert read.dtype.newbyteorder("=") == values.dtype.newbyteorder("="), read.dtype
    assert np.array_equal(read, values, equal_nan=values.dtype.kind == "f")


IMAGES = {"astropy": image_by_astropy, "fitsio": image_by_fitsio}


def huge_by_astropy(path):
    assert os.stat(path).st_size > 4 << 30
    with fits.open(path, memmap=True) as units:
        data = units[0].data
        assert data.shape == (3, 40_000, 40_000) and data[2, -1, -1] == 7
        assert (data[2, -1001:-999, -1] == [0, 7]).all()


def huge_by_fitsio(path):
    with fitsio.FITS(path) as units:
        read = units[0][2:3, 38_998:39_002, 38_998:39_002]
        assert (read == [[[0, 0, 0, 0]] * 2 + [[0, 0, 7, 7]] * 2]).all(), read


# ---------------------------------------------------------------- tables


def flat(values):
    columns = {name: values[name] for name in values.dtype.names if name != "inner"}
    return columns | {f"inner.{name}": values["inner"][name] for name in "xy"}


def columns_agree(read, expected):
    for name, values in expected.items():
        column = np.asarray(read[name])
        assert column.shape == values.shape, (name, column.shape, values.shape)
        if values.dtype.kind == "S":
            assert (column.astype("S") == values).all(), name
        else:
            assert ((column == values) | (values != values)).all(), name


def records_by_astropy(path, values):
    with fits.open(path) as units:
        columns_agree(units[1].data, flat(values))


def records_by_fitsio(path, values):
    with fitsio.FITS(path) as units:
        columns_agree(units[1].read(), flat(values))


def group_agrees(read, expected):
    assert (np.asarray(read["count"]) == expected["count"]).all()
    assert (np.asarray(read["level"]) == expected["level"]).all()
    assert [str(name) for name in read["name"]] == list(expected["name"])
    accents = [bytes(row).rstrip(b"\0").decode() for row in read["accent"]]
    assert accents == list(expected["accent"])


def group_by_astropy(path, expected):
    with fits.open(path) as units:
        group_agrees(units[1].data, expected)


def group_by_fitsio(path, expected):
    with fitsio.FITS(path) as units:
        group_agrees(units[1].read(), expected)


RECORDS = {"astropy": records_by_astropy, "fitsio": records_by_fitsio}
GROUPS = {"astropy": group_by_astropy, "fitsio": group_by_fitsio}

# ---------------------------------------------------------------- cards


def one(value):
    value = np.asarray(value).reshape(-1)[0]
    return value.item() if isinstance(value, np.generic) else value


def cards_by_astropy(path, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        header = fits.getheader(path)
    cards_agree(header, expected)
    assert not {"END", "NAN", "SEVERAL", "ACCENT"} & set(header), header


def cards_by_fitsio(path, expected):
    cards_agree(fitsio.read_header(path), expected)


def cards_agree(header, expected):
    for name, value in expected.items():
        read, wanted = header[name.upper()], one(value)
        if isinstance(value, np.float32):
            read = np.float32(read).item()
        if isinstance(value, np.uint64):
            # fitsio returns a text for a number of more than 63 bits.
            read = int(read)
        assert read == wanted, (name, read, wanted)


def meta_agrees(path, expected):
    header = fits.getheader(path)
    assert {key: header[key] for key in expected} == expected
    assert "NESTED" not in header


CARDS = {"astropy": cards_by_astropy, "fitsio": cards_by_fitsio}
