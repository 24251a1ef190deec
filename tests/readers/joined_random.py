#!/usr/bin/env python3
"""joined_random.py H5FS [SETS] [SEED] [KIND]: writes random sets of files of five kinds. Compares
the joined files of each set with what the library of the kind reads from the files one by one.

| kind | oracle |
|---|---|
| netCDF | xarray, file by file, each value located by its coordinates |
| AnnData | anndata.concat |
| HDFStore | pandas.concat, the categories of all files in one list |
| NWB | pynwb, file by file, the rows one after another |
| ASDF | asdf, file by file |

Every omission must be listed in `_h5fs_absent` and in `errors`. A set depends only on its kind, its
number and the seed, so KIND and the printed numbers reproduce it. Prints a table. Ends with 0 if
there is no difference."""

import collections
import datetime
import json
import os
import sys
import tempfile
import traceback
import warnings

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../soak"))
warnings.simplefilter("ignore")

import anndata  # noqa: E402
import asdf  # noqa: E402
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import pandas  # noqa: E402
import pyarrow.parquet  # noqa: E402
import pynwb  # noqa: E402
import scipy.sparse  # noqa: E402
import xarray  # noqa: E402
from mounted import Mount  # noqa: E402

anndata.settings.allow_write_nullable_strings = True
CODER = xarray.coders.CFDatetimeCoder(time_unit="us")
# Number of sets of each kind in a hundred sets.
KINDS = {"netcdf": 48, "anndata": 20, "hdfstore": 16, "nwb": 6, "asdf": 10}
ORACLES = {
    "netcdf": "xarray",
    "anndata": "anndata",
    "hdfstore": "pandas",
    "nwb": "pynwb",
    "asdf": "asdf",
}
# Number of sets in one mount.
TOGETHER = 20


class Wrong(Exception):
    pass


class Tally:
    """The results for the sets of a kind."""

    def __init__(self):
        self.sets = self.values = self.absent = 0
        self.wrong = []


class Shown:
    """A set as joined files."""

    def __init__(self, mount, pattern):
        self.path = os.path.join(mount, ".h5fs", f"joined[{pattern.replace('/', '%2F')}]")
        self.absent = {}
        with open(os.path.join(self.path, ".h5fs/errors")) as file:
            self.errors = file.read().splitlines()
        for directory, groups, _ in os.walk(self.path):
            groups[:] = [name for name in groups if name != ".h5fs"]
            group = os.path.relpath(directory, self.path)
            group = "" if group == "." else group
            names = self.attributes(group).get("_h5fs_absent", [])
            self.absent |= {os.path.join(group, name): group for name in names}

    def attributes(self, path=""):
        with open(os.path.join(self.path, ".h5fs/file.zarr", path, "zarr.json")) as file:
            return json.load(file)["attributes"]

    def has(self, path):
        return os.path.exists(os.path.join(self.path, path))

    def is_reported(self, path):
        """Returns whether the path is reported as absent, or belongs to files that are not joined.
        """
        if any("its files are not joined" in line for line in self.errors):
            return True
        named = path in self.absent or any(own.startswith(path + "/") for own in self.absent)
        parts = path.split("/")
        above = any("/".join(parts[:end]) in self.absent for end in range(1, len(parts)))
        return named or above

    def unexplained(self):
        """Returns names in `_h5fs_absent` without a line in `errors`. One line may name all
        variables of a kind whose files are not joined: `/a+b: its files are not joined: …`."""
        text = "\n".join(self.errors)
        refused = [line.partition(": its files are not joined")[0] for line in self.errors if "its files are not joined" in line]
        together = {name for kind in refused for name in kind.rpartition("/")[2].split("+")}
        return [path for path in self.absent if f"/{path}: " not in text and path.rpartition("/")[2] not in together]

    def npy(self, path):
        return np.load(os.path.join(self.path, ".h5fs/npy", path + ".npy"))

    def json(self, path):
        with open(os.path.join(self.path, ".h5fs/json", path + ".json")) as file:
            return json.load(file)

    def text(self, path):
        with open(os.path.join(self.path, path)) as file:
            return file.read().strip()

    def parquet(self, path):
        return pyarrow.parquet.read_table(
            os.path.join(self.path, ".h5fs/parquet", path + ".parquet")
        )


class Set:
    """A set of files, the parts that are compared, and its directory."""

    def __init__(self, top, kind, number, seed):
        self.kind, self.number = kind, number
        self.name = f"{kind}{number}"
        self.directory = os.path.join(top, self.name)
        self.chance = np.random.default_rng([seed, number, sum(map(ord, kind))])
        os.makedirs(self.directory)

    def path(self, *names):
        path = os.path.join(self.directory, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def one(self, *choices):
        return choices[self.chance.integers(len(choices))]

    def often(self, share=0.5):
        return self.chance.random() < share


class Check:
    """Compares values of one set."""

    def __init__(self, tally, shown):
        self.tally, self.shown = tally, shown

    def holds(self, path, expected, found, exact=True):
        """Compares flat lists. Calls `found` if the path is shown."""
        if self.is_gone(path):
            return
        found = found()
        if len(found) != len(expected):
            raise Wrong(f"{path}: {len(found)} values for {len(expected)}: {found} {expected}"[:500])
        for place, (own, wanted) in enumerate(zip(found, expected)):
            if not same(own, wanted, exact):
                raise Wrong(f"{path}[{place}]: {own!r} for {wanted!r}: {found} {expected}"[:500])
        self.tally.values += len(expected)

    def is_gone(self, path):
        """Returns whether the path is absent. Raises an error if this is not reported."""
        if self.shown.has(path):
            return False
        if not self.shown.is_reported(path):
            raise Wrong(f"{path} is absent and not reported: {self.shown.absent}")
        self.tally.absent += 1
        return True


def unfilled(value):
    """Returns a text without its padding."""
    value = value.decode() if isinstance(value, bytes) else value
    return value.rstrip("\0 ") if isinstance(value, str) else value


def is_missing(value):
    if value is None or value is pandas.NaT or value is pandas.NA:
        return True
    return isinstance(value, (float, np.floating)) and np.isnan(value)


def same(own, wanted, exact=True):
    if is_missing(own) or is_missing(wanted):
        return is_missing(own) and is_missing(wanted)
    if isinstance(own, (list, np.ndarray)) and isinstance(wanted, (list, np.ndarray)):
        return len(own) == len(wanted) and all(map(same, list(own), list(wanted)))
    if isinstance(own, bytes):
        own = own.decode()
    if isinstance(own, str) or isinstance(wanted, str):
        return str(own) == str(wanted)
    if exact or not isinstance(wanted, (float, np.floating)):
        return own == wanted
    return bool(np.isclose(float(own), float(wanted), rtol=1e-6, atol=1e-6))


# ---------------------------------------------------------------- netCDF


class NetCDF:
    """Files of a model or an instrument: times, tiles, members of an ensemble."""

    def __init__(self, own):
        self.own = own
        one, often = own.one, own.often
        self.layout = one("times", "times", "tiles", "members", "scalar")
        self.pattern = "*/*" if self.layout == "members" else "*"
        self.calendar = one("standard", "standard", "noleap", "360_day")
        self.files = int(own.chance.integers(2, 4))
        self.has_bounds, self.is_packed = often(), often(0.4)
        self.is_packed_alike = often()
        self.own_units = one("days since 2000-01-01", "hours since 1999-06-01 12:00", None)
        self.is_mask_same, self.is_area_same = often(0.7), often(0.7)
        self.is_code_same, self.has_texts = often(), often(0.6)
        self.noon = one(0.0, 0.5)
        self.lacking = one(None, None, "extra", "count", "texts")
        self.linked = one(None, None, "soft", "hard", "external")
        self.is_short = often(0.15)
        self.paths = []

    def write(self):
        tiles = 2 if self.layout == "tiles" else 1
        members = ["member=r1", "member=r2"] if self.layout == "members" else [""]
        start, lengths = 0, self.own.chance.integers(1, 4, self.files)
        for number, days in enumerate(lengths):
            for tile in range(tiles):
                for member in members:
                    name = f"f{number}t{tile}.nc"
                    path = self.own.path(*([member] if member else []), name)
                    self.paths.append(path)
                    self.write_one(path, (number, start, int(days)), tile, members.index(member))
            start += int(days)

    def write_one(self, path, place, tile, member):
        number, start, days = place
        own, chance = self.own, self.own.chance
        with h5py.File(path, "w") as f:
            self.f = f
            self.time(number, start, days)
            self.dim("y", np.arange(3.0))
            self.dim("x", np.arange(2.0) + 2 * tile)
            outer = () if self.layout == "scalar" else ("time",)
            shape = tuple(len(f[name]) for name in outer) + (3, 2)
            self.field("tas", outer, shape, number)
            if not (self.lacking == "extra" and number == 1):
                kind = own.one("f4", "f8")
                self.var("extra", (*outer, "y", "x"), chance.integers(0, 99, shape).astype(kind))
            if outer and not (self.lacking == "count" and number == 1):
                kind = own.one("i2", "i4", "u1")
                self.var("count", outer, chance.integers(0, 99, shape[:1]).astype(kind))
            steady = np.random.default_rng(tile)
            mask = steady.integers(0, 9, (3, 2)).astype("i2")
            self.var("mask", ("y", "x"), mask + (0 if self.is_mask_same else 10 * number + member))
            area = steady.random((3, 2))
            self.var("area", ("y", "x"), area + (0 if self.is_area_same else number))
            self.var("code", (), np.int32(7 if self.is_code_same else number))
            if outer and self.has_texts and not (self.lacking == "texts" and number == 1):
                self.texts(days)
            if self.linked and outer:
                self.link(path, number, chance.random(days))
            if self.is_short and outer:
                values = np.arange(days - (number == 0), dtype=own.one("i2", "i4"))
                self.var("short", outer, values, maxshape=(None,), chunks=(4,))

    def time(self, number, start, days):
        own = self.own
        units = self.own_units or f"{own.one('days', 'hours')} since 200{number}-01-01"
        kind = own.one("i4", "i8", "f4", "f8", "f8")
        noon = self.noon if kind[0] == "f" or "hours" in units else 0.0
        factor = 24 if units.startswith("hours") else 1
        # The number of days since the very first day, for every reference time. Files whose times
        # overlap would have two rows for one time, and the comparison could not tell them apart.
        year = 360 if self.calendar == "360_day" else 365
        begin = 0 if self.own_units else -year * number
        values = (2 * 365 + 100 + begin + start + np.arange(days) + noon) * factor
        marks = {"units": units, "calendar": self.calendar}
        if self.layout == "scalar":
            self.f["time"] = values[0].astype(kind)
            self.f["time"].attrs.update(marks)
            return
        if self.has_bounds:
            marks["bounds"] = "time_bnds"
        self.dim("time", values.astype(kind), marks, is_unlimited=True)
        if self.has_bounds:
            bounds = values[:, None] + np.array([-0.5, 0.5]) * factor
            self.f.create_dataset("nv", shape=(2,), dtype=">f4")
            self.f["nv"].make_scale("This is a netCDF dimension but not a netCDF variable.         2")
            kind = own.one("f4", "f8", "f8")
            marks = own.one({}, {}, {"units": units, "calendar": self.calendar})
            self.var("time_bnds", ("time", "nv"), bounds.astype(kind), marks)

    def dim(self, name, values, marks=(), is_unlimited=False):
        grows = {"maxshape": (None,), "chunks": (512,)} if is_unlimited else {}
        self.f.create_dataset(name, data=values, **grows)
        self.f[name].make_scale(name)
        self.f[name].attrs.update(dict(marks))

    def var(self, name, dims, values, marks=(), **how):
        made = self.f.create_dataset(name, data=values, **how)
        for axis, dim in enumerate(dims):
            made.dims[axis].attach_scale(self.f[dim])
        made.attrs.update(dict(marks))

    def field(self, name, outer, shape, number):
        own = self.own
        values = own.chance.normal(280, 5, shape)
        if not self.is_packed:
            self.var(name, (*outer, "y", "x"), values.astype(own.one("f4", "f8")), {"units": "K"})
            return
        step = number if not self.is_packed_alike else 0
        scale, offset = 0.01 + 0.005 * step, 280.0 + step
        stored = np.round((values - offset) / scale).clip(-30000, 30000).astype("i2")
        stored.flat[0] = -32767
        marks = {"scale_factor": scale, "add_offset": offset, "_FillValue": np.int16(-32767)}
        self.var(name, (*outer, "y", "x"), stored, {**marks, "units": "K"})

    def texts(self, days):
        own = self.own
        words = [own.one("a", "bb", "ccc ", "düö") for _ in range(days)]
        if own.often():
            charset = "ascii" if all(map(str.isascii, words)) and own.often() else "utf-8"
            self.var("texts", ("time",), words, dtype=h5py.string_dtype(charset))
            return
        kind = h5py.h5t.C_S1.copy()
        size = int(own.chance.integers(6, 9))
        padding = own.one(h5py.h5t.STR_NULLPAD, h5py.h5t.STR_NULLPAD, h5py.h5t.STR_SPACEPAD)
        kind.set_size(size)
        kind.set_cset(h5py.h5t.CSET_UTF8)
        kind.set_strpad(padding)
        space = h5py.h5s.create_simple((days,))
        made = h5py.Dataset(h5py.h5d.create(self.f.id, b"texts", kind, space))
        filling = b" " if padding == h5py.h5t.STR_SPACEPAD else b"\0"
        stored = [word.encode().ljust(size, filling) for word in words]
        made.id.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array(stored, f"S{size}"), kind)
        made.dims[0].attach_scale(self.f["time"])

    def link(self, path, number, values):
        if number != 1:
            self.var("linked", ("time",), values)
        elif self.linked == "external":
            beside = os.path.join(os.path.dirname(self.own.directory), "beside")
            os.makedirs(beside, exist_ok=True)
            other = os.path.join(beside, f"{self.own.name}-{os.path.basename(path)}.h5")
            with h5py.File(other, "w") as file:
                file["values"] = values
            self.f["linked"] = h5py.ExternalLink(os.path.relpath(other, os.path.dirname(path)), "/values")
        else:
            self.f.create_group("hidden")
            self.var("hidden/linked", ("time",), values)
            self.f["linked"] = (
                h5py.SoftLink("/hidden/linked") if self.linked == "soft" else self.f["hidden/linked"]
            )

    # the values that are shown

    def check(self, check):
        store = os.path.join(check.shown.path, ".h5fs/file.zarr")
        refused = any("its files are not joined" in line for line in check.shown.errors)
        with xarray.open_zarr(store, decode_times=CODER) as joined:
            joined = joined.load()
        for path in self.paths:
            with xarray.open_dataset(path, engine="netcdf4", decode_times=CODER) as member:
                member = member.load()
            with h5py.File(path) as file:
                links = {"linked": file["linked"][:]} if "linked" in file and file["linked"].shape else {}
            for name in member.variables:
                if name != "linked":
                    self.compare(check, joined, member, name, member[name], path, refused)
            for name, values in links.items():
                own = xarray.DataArray(values, dims=("time",))
                self.compare(check, joined, member, name, own, path, refused)
            for name in set(joined.variables) - set(member.variables) - {"linked", "member"}:
                self.is_fill(check, joined, member, name, path)

    def compare(self, check, joined, member, name, own, path, refused):
        if name not in joined.variables:
            if not refused and not check.shown.is_reported(name):
                raise Wrong(f"{name} is absent and not reported ({path})")
            check.tally.absent += 1
            return
        found = self.part(joined, member, joined[name], path)
        wanted = own
        if found.ndim != wanted.ndim:
            # A scalar that is repeated along the time dimension.
            wanted = wanted.broadcast_like(found)
        if found.shape != wanted.shape:
            raise Wrong(f"{name}: {found.dims} {found.shape} for {wanted.shape} ({path})")
        pairs = zip(found.values.ravel().tolist(), wanted.transpose(*found.dims).values.ravel().tolist())
        for one, other in pairs:
            one, other = unfilled(one), unfilled(other)
            if not same(one, other, exact=False):
                raise Wrong(f"{name}: {one!r} for {other!r} ({path})")
        check.tally.values += found.size

    def part(self, joined, member, array, path):
        """Returns the part of an array that belongs to one member, located by its coordinates."""
        own = {}
        for dim in array.dims:
            values = joined[dim].values if dim in joined.coords else None
            if dim == "member":
                r = os.path.basename(os.path.dirname(path)).partition("=")[2]
                texts = [t.decode() if isinstance(t, bytes) else t for t in values]
                own[dim] = texts.index(r)
            elif dim == "time" and member[dim].ndim == 0:
                own[dim] = self.places(values, [member[dim].values[()]], path)[0]
            elif values is not None and dim in member.coords:
                own[dim] = self.places(values, member[dim].values, path)
        return array.isel(own)

    def places(self, values, wanted, path):
        known = {value: place for place, value in enumerate(values.tolist())}
        try:
            return [known[value] for value in np.asarray(wanted).tolist()]
        except KeyError as error:
            raise Wrong(f"no coordinate {error} in {list(known)} ({path})") from None

    def is_fill(self, check, joined, member, name, path):
        array = joined[name]
        if not any(dim in member.coords or dim == "member" for dim in array.dims):
            return
        found = self.part(joined, member, array, path)
        if found.dtype.kind != "f" or not np.isnan(found.values).all():
            raise Wrong(f"{name}: data where the file has none ({path})")
        check.tally.values += found.size


# ---------------------------------------------------------------- AnnData


class AnnData:
    def __init__(self, own):
        self.own = own
        self.files = int(own.chance.integers(2, 5))
        self.rows = own.chance.integers(0, 5, self.files)
        if own.often(0.4):
            self.rows[:] = 3
        self.matrix = own.one("dense", "csr", "csr", "csc", "none", "mixed")
        self.has_other_genes, self.is_ordered = own.often(0.15), own.often(0.2)
        self.lacking = own.one(None, None, "real", "type", "note")
        self.parts = []

    def column(self, name, rows, number):
        own, chance = self.own, self.own.chance
        if name == "type":
            lists = (["T", "B"], ["NK", "T"], ["B", "T", "NK"], [f"c{n}" for n in range(130)])
            names = lists[0] if own.often(0.3) else own.one(*lists)
            codes = chance.integers(-1, len(names), rows)
            return pandas.Categorical.from_codes(codes, names, ordered=self.is_ordered)
        if name == "years":
            return pandas.Categorical.from_codes(chance.integers(-1, 2, rows), [2000 + number, 1990])
        if name == "age":
            values = chance.integers(0, 99, rows)
            return pandas.arrays.IntegerArray(values, chance.random(rows) < 0.3)
        if name == "smoker":
            return pandas.arrays.BooleanArray(chance.random(rows) < 0.5, chance.random(rows) < 0.3)
        if name == "note":
            return [f"n{number}" * int(chance.integers(0, 3)) for _ in range(rows)]
        if name == "count":
            return chance.integers(0, 9, rows).astype(own.one("i4", "i8"))
        return chance.random(rows).astype(own.one("f4", "f8"))

    def write(self):
        own, chance = self.own, self.own.chance
        for number, rows in enumerate(self.rows):
            names = ["type", "years", "age", "smoker", "note", "count", "real"]
            if number == 1 and self.lacking:
                names.remove(self.lacking)
            if own.often(0.2):
                names = list(chance.permutation(names))
            index = [f"cell{number}_{row}" for row in range(rows)]
            obs = pandas.DataFrame({n: self.column(n, rows, number) for n in names}, index=index)
            genes = ["g0", "g1", "g2"]
            if self.has_other_genes and number == 1:
                genes = genes[::-1]
            var = pandas.DataFrame({"mean": [1.0, 2.0, 3.0], "own": number}, index=genes)
            dense = chance.poisson(1, (rows, 3)).astype("f4")
            matrix = own.one("dense", "csr") if self.matrix == "mixed" else self.matrix
            made = {"dense": dense, "csr": scipy.sparse.csr_matrix(dense),
                    "csc": scipy.sparse.csc_matrix(dense), "none": None}[matrix]  # fmt: skip
            part = anndata.AnnData(made, obs, var, obsm={"pca": chance.random((rows, 2))})
            part.layers["raw"] = scipy.sparse.csr_matrix(dense * 2)
            part.uns["same"], part.uns["other"] = np.arange(3), np.arange(3) + number
            part.obsp["near"] = scipy.sparse.csr_matrix(np.ones((rows, rows)))
            part.write_h5ad(self.own.path(f"part{number}.h5ad"))
            self.parts.append(part)

    def check(self, check):
        whole = anndata.concat(self.parts, join="outer", merge="same", uns_merge="same")
        shown = check.shown
        table, names = shown.parquet("obs"), shown.attributes("obs")
        column = lambda name: table[name].to_pylist()  # noqa: E731
        check.holds("obs/_index", whole.obs_names.tolist(), lambda: column("_index"))
        for name in whole.obs:
            is_without_order = self.is_ordered and name == "type" and whole.obs[name].dtype == object
            if is_without_order and name in table.column_names:
                raise Wrong("ordered categories that differ are joined")
            if name in table.column_names:
                check.holds("obs", whole.obs[name].tolist(), lambda name=name: column(name))
            else:
                check.is_gone(f"obs/{name}") or self.must_be_gone(f"obs/{name}")
        files = [f"{self.own.name}/part{n}.h5ad" for n, rows in enumerate(self.rows) for _ in range(rows)]
        check.holds("obs", files, lambda: column("file"))
        assert names["encoding-type"] == "dataframe"
        check.holds("obsm/pca", whole.obsm["pca"].ravel().tolist(), lambda: shown.npy("obsm/pca").ravel())
        self.matrix_holds(check, "X", whole.X)
        self.matrix_holds(check, "layers/raw", whole.layers["raw"])
        check.holds("uns/same", [0, 1, 2], lambda: shown.npy("uns/same"))
        for name in ("uns/other", "obsp/near"):
            check.is_gone(name) or self.must_be_gone(name)
        labels = [part.var_names.tolist() for part in self.parts]
        if all(own == labels[0] for own in labels):
            check.holds("var/_index", labels[0], lambda: shown.json("var/_index"))
            check.holds("var/mean", [1.0, 2.0, 3.0], lambda: shown.npy("var/mean"))
        else:
            check.is_gone("var/_index") or self.must_be_gone("var/_index")
        check.is_gone("var/own") or self.must_be_gone("var/own")

    def must_be_gone(self, name):
        # A group without arrays may remain.
        path = os.path.join(self.shown_path, name)
        if not os.path.isdir(path) or any(files for _, _, files in os.walk(path)):
            raise Wrong(f"{name} is shown")

    def matrix_holds(self, check, name, wanted):
        shown = check.shown
        if wanted is None:
            return
        wanted = np.asarray(wanted.todense() if scipy.sparse.issparse(wanted) else wanted)
        path = os.path.join(shown.path, name)
        if not os.path.isdir(path):
            check.holds(name, wanted.ravel().tolist(), lambda: shown.npy(name).ravel())
            return
        if check.is_gone(f"{name}/indptr"):
            if any(shown.has(f"{name}/{part}") for part in ("data", "indices")):
                raise Wrong(f"{name} is shown in part")
            return

        def found():
            parts = tuple(shown.npy(f"{name}/{part}") for part in ("data", "indices", "indptr"))
            shape = tuple(shown.attributes(name)["shape"])
            return np.asarray(scipy.sparse.csr_matrix(parts, shape).todense()).ravel()

        check.holds(f"{name}/data", wanted.ravel().tolist(), found)


# ---------------------------------------------------------------- HDFStore


class HDFStore:
    def __init__(self, own):
        self.own = own
        self.format = own.one("table", "table", "fixed")
        self.files = int(own.chance.integers(2, 5))
        self.rows = own.chance.integers(1, 5, self.files)
        if own.often(0.4):
            self.rows[:] = 3
        self.index = own.one("integer", "time", "text")
        self.is_data_column, self.is_ordered = own.often(0.3), own.often(0.3)
        self.odd = own.one(None, None, None, "order", "column", "ordered")
        self.frames = []

    def write(self):
        own, chance = self.own, self.own.chance
        for number, rows in enumerate(self.rows):
            columns = {"real": chance.random(rows), "count": chance.integers(0, 9, rows)}
            if own.often(0.9):
                columns["flag"] = chance.random(rows) < 0.5
            if self.format == "table":
                lists = (["a", "b"], ["x", "yy", "z"], ["b", "a", "ccc"])
                names = lists[0] if own.often(0.3) else own.one(*lists)
                codes = chance.integers(-1, len(names), rows)
                is_ordered = self.is_ordered != (self.odd == "ordered" and number == 1)
                columns["kind"] = pandas.Categorical.from_codes(codes, names, ordered=is_ordered)
                columns["note"] = [own.one("a", "bb", "cccc") for _ in range(rows)]
                columns["when"] = pandas.date_range(f"200{number}-01-01", periods=rows)
            if self.odd == "column" and number == 1:
                columns["more"] = np.arange(rows)
            index = {
                "integer": pandas.RangeIndex(number * 10, number * 10 + rows),
                "time": pandas.date_range(f"201{number}-03-01", periods=rows, freq=None),
                "text": pandas.Index([f"i{number}{row}" for row in range(rows)]),
            }[self.index]
            frame = pandas.DataFrame(columns)
            if self.odd == "order" and number == 1:
                frame = frame[list(frame.columns)[::-1]]
            frame.index = index._with_freq(None) if self.index == "time" else index
            columns = ["count"] if self.is_data_column and self.format == "table" else None
            frame.to_hdf(own.path(f"s{number}.h5"), key="df", format=self.format, data_columns=columns)
            self.frames.append(frame)

    def check(self, check):
        frames = [frame.copy() for frame in self.frames]
        path = "df/table" if self.format == "table" else "df/axis1"
        if self.has_other_order():
            if not check.is_gone(path):
                raise Wrong("ordered categories that differ are joined")
            return
        if all("kind" in frame for frame in frames):
            union = pandas.api.types.union_categoricals([frame["kind"] for frame in frames])
            for frame in frames:
                frame["kind"] = frame["kind"].cat.set_categories(union.categories)
        whole = pandas.concat(frames)
        if check.is_gone(path):
            return
        table = check.shown.parquet("df")
        for name in whole:
            wanted = [plain(value) for value in whole[name]]
            check.holds("df", wanted, lambda name=name: table[name].to_pylist())
        wanted = [plain(value) for value in whole.index]
        check.holds("df", wanted, lambda: table[table.column_names[0]].to_pylist())
        files = [f"{self.own.name}/s{n}.h5" for n, rows in enumerate(self.rows) for _ in range(rows)]
        check.holds("df/file", files, lambda: check.shown.json("df/file"))


    def has_other_order(self):
        """Whether pandas refuses the union of the categories: some have an order, and not all are the
        same."""
        if not all("kind" in frame for frame in self.frames):
            return False
        types = [frame["kind"].dtype for frame in self.frames]
        return any(own.ordered for own in types) and any(own != types[0] for own in types)


def plain(value):
    if isinstance(value, pandas.Timestamp):
        return value.to_pydatetime()
    return value


# ---------------------------------------------------------------- NWB


class NWB:
    def __init__(self, own):
        self.own = own
        self.files = int(own.chance.integers(2, 4))
        self.wires = own.chance.integers(1, 5, self.files)
        self.units = own.chance.integers(1, 4, self.files)
        if own.often(0.4):
            self.wires[:], self.units[:] = 4, 2
        self.has_choice = own.often()

    def write(self):
        chance, utc = self.own.chance, datetime.timezone.utc
        for number in range(self.files):
            start = datetime.datetime(2024, 5, 1 + number, 10, tzinfo=utc)
            session = pynwb.NWBFile(f"session {number}", f"id{number}", start)
            device = session.create_device("probe")
            shank = session.create_electrode_group("shank", "wires", "CA1", device)
            for wire in range(self.wires[number]):
                session.add_electrode(x=wire + 10.0 * number, location="CA1", group=shank)
            session.add_unit_column("quality", "by hand")
            for _ in range(self.units[number]):
                wires = chance.integers(0, self.wires[number], chance.integers(1, 3))
                session.add_unit(
                    spike_times=np.sort(chance.random(chance.integers(0, 5))) * 60,
                    electrodes=sorted(set(wires.tolist())), quality=self.own.one("good", "noise"),
                )  # fmt: skip
            if self.has_choice:
                session.add_trial_column("choice", "what the mouse did")
            for trial in range(int(chance.integers(1, 4))):
                choice = {"choice": self.own.one("left", "right")} if self.has_choice else {}
                session.add_trial(start_time=trial * 2.0, stop_time=trial * 2.0 + 1, **choice)
            with pynwb.NWBHDF5IO(self.own.path(f"n{number}.nwb"), "w") as io:
                io.write(session)

    def check(self, check):
        rows = collections.defaultdict(lambda: collections.defaultdict(list))
        first = 0
        for number in range(self.files):
            with pynwb.NWBHDF5IO(self.own.path(f"n{number}.nwb"), "r") as io:
                session = io.read()
                for path, read in (
                    ("intervals/trials", session.trials),
                    ("units", session.units),
                    ("general/extracellular_ephys/electrodes", session.electrodes),
                ):
                    self.take(rows[path], read, first)
                    rows[path]["file"] += [f"{self.own.name}/n{number}.nwb"] * len(read)
                first += len(session.electrodes)
        for path, columns in rows.items():
            table = check.shown.parquet(path)
            for name, wanted in columns.items():
                if name not in table.column_names:
                    check.is_gone(f"{path}/{name}")
                    continue
                check.holds(path, wanted, lambda name=name: self.found(table[name].to_pylist(), wanted))

    def take(self, rows, read, first):
        rows["id"] += read.id[:].tolist()
        for name in read.colnames:
            column = read[name]
            if name == "group":
                rows[name] += [None] * len(read)
                continue
            for row in range(len(read)):
                if name == "electrodes":
                    target, ends = column.target.data, [0, *column.data[:].tolist()]
                    values = target[ends[row] : ends[row + 1]].tolist()
                    rows[name].append([value + first for value in values])
                else:
                    value = column[row]
                    rows[name].append(value.tolist() if hasattr(value, "tolist") else value)

    def found(self, values, wanted):
        """Decodes lists, which are strings in Parquet."""
        is_list = any(isinstance(value, list) for value in wanted)
        return [json.loads(value) if is_list and isinstance(value, str) else value for value in values]


# ---------------------------------------------------------------- ASDF


class ASDF:
    def __init__(self, own):
        self.own = own
        self.files = int(own.chance.integers(2, 5))
        self.is_of_one_length, self.has_kinds = own.often(0.6), own.often(0.3)
        self.is_unit_same, self.lacking = own.often(0.6), own.often(0.2)
        self.trees = []

    def write(self):
        own, chance = self.own, self.own.chance
        for number in range(self.files):
            rows = 3 if self.is_of_one_length else int(chance.integers(1, 5))
            name = "image" if not self.has_kinds or number < self.files // 2 else "spectrum"
            tree = {
                name: chance.random((rows, 2)).astype(own.one("f4", "f8")),
                "meta": {
                    "unit": "K" if self.is_unit_same else ("K", "Pa", "m", "s")[number],
                    "telescope": "JWST",
                    "exposure": number,
                },
            }
            if not (self.lacking and number == 1):
                tree["counts"] = chance.integers(0, 9, rows)
            asdf.AsdfFile(tree).write_to(own.path(f"a{number}.asdf"))
            self.trees.append(tree)

    def check(self, check):
        shown = check.shown
        for name in ("image", "spectrum", "counts"):
            own = [tree[name] for tree in self.trees if name in tree]
            if not own or check.is_gone_anywhere(name):
                continue
            found = shown.npy(check.place(name)).ravel()
            wanted = np.concatenate([part.ravel() for part in own])
            if found.dtype.kind == "f" and len(found) != len(wanted):
                found = found[~np.isnan(found)]
            check.holds(check.place(name), wanted.tolist(), lambda: found.tolist())
        for name in ("unit", "telescope", "exposure"):
            values = {tree["meta"][name] for tree in self.trees}
            if len(values) > 1:
                if shown.has(f"meta/{name}") or not shown.is_reported(f"meta/{name}"):
                    raise Wrong(f"meta/{name} differs, and is shown or not reported")
                check.tally.absent += 1
            else:
                (value,) = values
                check.holds(f"meta/{name}", [str(value)], lambda name=name: [shown.text(f"meta/{name}")])


def is_gone_anywhere(check, name):
    if check.place(name):
        return False
    return check.is_gone(name)


def place(check, name):
    """Returns the path of an array, in the root or in the group of a kind."""
    for group in ("", *sorted(os.listdir(check.shown.path))):
        path = os.path.join(group, name) if group else name
        if os.path.isfile(os.path.join(check.shown.path, path)):
            return path
    return None


Check.is_gone_anywhere, Check.place = is_gone_anywhere, place
CLASSES = {"netcdf": NetCDF, "anndata": AnnData, "hdfstore": HDFStore, "nwb": NWB, "asdf": ASDF}


# ---------------------------------------------------------------- all sets


def write(top, kind, number, seed):
    own = Set(top, kind, number, seed)
    made = CLASSES[kind](own)
    made.write()
    return own, made


def compare(mount, own, made, tally):
    tally.sets += 1
    try:
        shown = Shown(mount.path, f"{own.name}/{getattr(made, 'pattern', '*')}")
        made.shown_path = shown.path
        if unexplained := shown.unexplained():
            raise Wrong(f"absent without a reason: {unexplained}")
        made.check(Check(tally, shown))
    except Wrong as error:
        tally.wrong.append((own.name, str(error)))
    except Exception:
        lines = traceback.format_exc().strip().splitlines()
        tally.wrong.append((own.name, " | ".join(lines[-3:])))


def numbers(sets):
    """Yields the kind and the number of each set."""
    share = sum(KINDS.values())
    for kind, part in KINDS.items():
        for number in range(-(-sets * part // share)):
            yield kind, number


def tallies(binary, chosen, seed):
    found = {kind: Tally() for kind in KINDS}
    chosen = list(chosen)
    for start in range(0, len(chosen), TOGETHER):
        with tempfile.TemporaryDirectory(prefix="h5fs-joined-") as top:
            sets = [write(top, kind, number, seed) for kind, number in chosen[start : start + TOGETHER]]
            with Mount(binary, top) as mount:
                for own, made in sets:
                    compare(mount, own, made, found[own.kind])
    return {kind: tally for kind, tally in found.items() if tally.sets}


def table(found):
    lines = [f"{'kind':10}{'sets':>6}{'values':>9}{'absent, reported':>18}{'wrong':>7}"]
    for kind, own in found.items():
        lines.append(f"{kind:10}{own.sets:6}{own.values:9}{own.absent:18}{len(own.wrong):7}")
    return "\n".join(lines)


def rows(binary, sets=500, seed=1):
    """Yields (kind, tool, difference or None) for each kind, and prints the table."""
    found = tallies(binary, numbers(sets), seed)
    print(table(found))
    for kind, own in found.items():
        yield kind, ORACLES[kind], "; ".join(f"{name}: {why}" for name, why in own.wrong) or None


def main():
    binary, sets, seed, *kind = [*sys.argv[1:], *("500", "1")[len(sys.argv) - 2 :]]
    chosen = list(numbers(int(sets)))
    if kind:
        name, _, number = kind[0].partition(":")
        chosen = [own for own in chosen if own[0] == name and number in ("", str(own[1]))]
    found = tallies(os.path.abspath(binary), chosen, int(seed))
    print(table(found))
    wrong = [line for own in found.values() for line in own.wrong]
    for name, reason in wrong:
        print(f"seed {seed}, {name}: {reason}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
