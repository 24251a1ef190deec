"""HDF5 files of every type, written and read by h5py."""

from dataclasses import replace

import h5py
import numpy as np
from kit import array_table, compound_table, csv, fixture, simple
from table import Table

HARD = [
    'a "quoted" word', "a, b, c", "two\nlines", "a carriage\rreturn", "both\r\nof them", "", '"',
    " blanks ", "drei – ☃ 漢字", "it's", "semi;colon", "tab\there", "back\\slash", "#no comment",
    "last",
]  # fmt: skip
STRING = h5py.string_dtype()
COLOURS = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, "<i2")


def every_number():
    """Returns the extremes of each type, and some numbers between them."""
    kinds = [
        order + kind
        for order in "<>"
        for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
    ]
    rows = np.zeros(
        9, [(f"{'little' if kind[0] == '<' else 'big'} {kind[1:]}", kind) for kind in kinds]
    )
    chance = np.random.default_rng(7)
    for name, kind in zip(rows.dtype.names, kinds):
        about = np.finfo(kind) if kind[1] == "f" else np.iinfo(kind)
        rows[name][:2] = about.min, about.max
        if kind[1] == "f":
            rows[name][2:] = chance.normal(size=7) * 10.0 ** chance.integers(-3, 3, 7)
        else:
            rows[name][2:] = chance.integers(max(about.min, -(2**40)), min(about.max, 2**40), 7)
    return rows


def special_numbers():
    rows = np.zeros(6, [("number", "<i4"), ("f8", "<f8"), ("f4", ">f4"), ("f2", "<f2")])
    rows["number"] = np.arange(6)
    for name in ("f8", "f4", "f2"):
        least = np.finfo(rows[name].dtype).smallest_subnormal
        rows[name] = [np.nan, np.inf, -np.inf, -0.0, 0.1, least]
    rows["f4"] = np.roll(rows["f4"], -1)
    return rows


def not_a_number():
    rows = np.zeros(3, [("id", "<i4"), ("x", "<f8"), ("y", "<f4")])
    rows["id"], rows["x"], rows["y"] = range(3), [1.5, np.nan, -2], [np.nan, np.nan, 0.1]
    return rows


def texts():
    rows = np.empty(
        len(HARD), [("id", "<i4"), ("fixed", "S24"), ("variable", STRING), ("last", "?")]
    )
    rows["id"], rows["last"] = range(len(HARD)), np.arange(len(HARD)) % 2
    rows["fixed"] = [text.encode() for text in HARD]
    rows["variable"] = HARD[::-1]
    return rows


def formulas():
    rows = np.empty(4, [("id", "<i4"), ("text", STRING)])
    rows["id"], rows["text"] = range(4), ["=1+1", "-x", "@SUM(1)", "+"]
    return rows


def flags():
    rows = np.zeros(4, [("good", "?"), ("colour", COLOURS), ("count", "u1")])
    rows["good"], rows["colour"], rows["count"] = [1, 0, 0, 1], [2, 0, 1, 1], range(4)
    return rows


def nested():
    place = [("lat", "<f4"), ("lon", ">f8")]
    kinds = [("id", "<i8"), ("at", place), ("matrix", "<i2", (2, 3)), ("z", "<c16"),
             ("way", place, (2,)), ("name", [("first", "S8"), ("family", STRING)])]  # fmt: skip
    rows = np.zeros(5, kinds)
    chance = np.random.default_rng(3)
    rows["id"] = range(5)
    rows["at"]["lat"], rows["at"]["lon"] = chance.normal(size=(2, 5))
    rows["way"]["lat"], rows["way"]["lon"] = chance.normal(size=(2, 5, 2))
    rows["matrix"] = chance.integers(-(2**15), 2**15, (5, 2, 3))
    rows["z"] = chance.normal(size=5) + 1j * chance.normal(size=5)
    rows["name"]["first"] = [b"Ada", b"Grace, Rear Adm.", b"", b"Mary", b"Kurt"]
    rows["name"]["family"] = ["Lovelace", "Hopper", "Noether", 'Some"ville', "Gödel"]
    return rows


def ragged():
    kind = [("id", "<i4"), ("samples", h5py.vlen_dtype("<f8")), ("to", h5py.ref_dtype)]
    return np.zeros(4, kind)


TABLES = {
    "numbers": every_number, "special": special_numbers, "nan": not_a_number, "texts": texts,
    "formulas": formulas,
    "flags": flags, "nested": nested,
}  # fmt: skip
# compound datasets whose fields fit into any reader of lists of objects
FLAT = [csv(name) for name in ("flags", "texts", "formulas")]
ARRAYS = {
    "arrays/line": np.linspace(-1, 1, 50),
    "arrays/integers": np.arange(-20, 20, dtype=">i2"),
    "arrays/plane": np.linspace(0, 300, 42, dtype="<f4").reshape(6, 7),
    "arrays/cube": np.arange(60, dtype="<i8").reshape(3, 4, 5) * 10**9,
}
GROUP = {
    "time": np.arange(6) / 4,
    "count": np.arange(6, dtype="<u2"),
    "good": np.arange(6) % 2 == 0,
    "name": np.array(["a", "b, c", 'd "e"', "", "f", "ü"], object),
    "code": np.array([b"x", b"yy", b"z z", b"", b"-", b"long"], "S4"),
}


@fixture("values.h5")
def write(path):
    with h5py.File(path, "w", track_order=True) as f:
        for name, values in {**{name: make() for name, make in TABLES.items()}, **ARRAYS}.items():
            f[name] = values
        rows = ragged()
        rows["id"] = range(4)
        for row in range(4):
            rows["samples"][row] = np.arange(row) / 8
            rows["to"][row] = f[list(ARRAYS)[row]].ref
        f["ragged"] = rows
        f["strings/variable"] = np.array(HARD, object)
        f["strings/fixed"] = np.array([text.encode() for text in HARD], "S24")
        f["strings/barcodes"] = np.array([f"AAAC{n:05}-1".encode() for n in range(3000)], "S16")
        f["colours"] = np.array([2, 0, 1], COLOURS)
        f["empty/none"] = h5py.Empty("<f4")
        f["empty/rows"] = np.empty((0, 3), "<f4")
        group = f.create_group("group", track_order=True)
        for name, values in GROUP.items():
            group[name] = values
        group["other"] = np.arange(3)
        group["scalar"] = 1.5


@write.tables
def tables(path):
    with h5py.File(path) as f:
        for name in (*TABLES, "ragged"):
            yield compound_table(f, name)
        for name in ARRAYS:
            yield array_table(f, name)
        yield Table(csv("group"), [simple(name, f["group"][name][()]) for name in GROUP])


ROWS, SHOWN = 10_000_000, 500


@fixture("large.h5", is_large=True)
def write_large(path):
    """Writes more values than are compared, nearly all of them the fill value."""
    chance = np.random.default_rng(9)
    rows = np.zeros(SHOWN, [("id", "<i4"), ("x", "<f8"), ("y", ">f4")])
    rows["id"] = chance.integers(-(10**9), 10**9, SHOWN)
    rows["x"], rows["y"] = chance.normal(size=(2, SHOWN)) * 10.0 ** chance.integers(-9, 9, SHOWN)
    with h5py.File(path, "w") as f:
        large = f.create_dataset("d", (ROWS,), rows.dtype, chunks=(SHOWN,), compression="gzip")
        large[:SHOWN] = rows


@write_large.tables
def large_tables(path):
    with h5py.File(path) as f:
        rows = f["d"][:SHOWN]
    columns = [replace(simple(name, rows[name]), padded=True) for name in rows.dtype.names]
    yield Table(csv("d"), columns, SHOWN + 1)
