"""Comparisons of two ways to read the same bytes: a library, and the mount."""

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import joined
import parts
import random_reads
import peers
import queries
import stores
from mount import Mount
from process import alone, cat, cat_again, forget, there, timed

MODES = {"cached": (), "direct_io": ("-o", "direct_io")}


# ---------------------------------------------------------------- h5fs: (file of the mount, source)


def first(path, source):
    return cat(path)


def second(path, source):
    return cat_again(path)


def random(path, source):
    return random_reads.replay(path, peers.places(source), readers=2)


def query(path, source):
    return alone(queries.seconds, path)


def listing(path, source):
    return timed("env", "LC_ALL=C", "ls", "-l", path)


def find(path, source):
    return timed("sh", "-c", 'find "$0" | wc -l', path)


def grep(path, source):
    return timed("grep", "-rl", peers.WANTED, path)


# ---------------------------------------------------------------- the peer: (source, same bytes
# without a format)


def h5py(source, plain):
    return (peers.h5py_slabs, source), (peers.h5py_whole, source)


def asdf(source, plain):
    return ((peers.asdf_whole, source),)


def plain_file(source, plain):
    return ((cat, plain),)


def plain_file_again(source, plain):
    return ((cat_again, plain),)


def h5dump(source, plain):
    return ((peers.h5dump, source),)


def pandas_to_csv(source, plain):
    return ((peers.pandas_to_csv, source),)


def csv_to_duckdb(source, plain):
    return ((queries.converted, source),)


def h5py_reading(source, plain):
    return ((peers.h5py_random, source, peers.places(source)),)


def h5py_opening(source, plain):
    return ((peers.h5py_open_each, source),)


def h5py_walk(source, plain):
    return ((peers.h5py_walk, source),)


def h5py_search(source, plain):
    return ((peers.h5py_search, source),)


def h5dump_each(source, plain):
    return ((peers.h5dump_names, source),)


def h5repack(source, plain):
    return ((peers.h5repack, source),)


def ncdump(source, plain):
    return ((peers.ncdump, source),)


def h5py_array(source, plain):
    return ((stores.h5py_array, source),)


def h5netcdf(source, plain):
    return ((stores.h5netcdf, source),)


@dataclass
class Pair:
    """A comparison of h5fs with a peer.

    `peer` returns the possible calls of the peer; the fastest one counts. `floors` are the minimum
    ratios, through the page cache and with direct_io. A mode without an entry is not run. `share`:
    a slow codec reads only the fraction 1/share of the data. `count`: the file contains this number
    of datasets. `entry` is the path in the mount that is read."""

    name: str
    what: str
    source: str
    floors: tuple = (None, None)
    peer: Callable = h5py
    ours: Callable = first
    share: int = 1
    count: int = 0
    needs: str = "cat"
    entry: str = "d"
    cache: str = "/dev/null"

    def run(self, h5fs, store, rounds):
        """Runs the peer, and then each mode on a separate mount, in several rounds. Returns the
        floors, the median seconds and the ratios by mode, or None if a command is not installed."""
        if not there(self.needs):
            return None
        source, plain = self.files(store)
        way = self.warm(h5fs, source, plain)
        floors = dict(zip(MODES, self.floors))
        seconds = {side: [] for side in ("peer", *floors)}
        for _ in range(rounds):
            seconds["peer"].append(alone(*way))
            for mode in floors:
                with Mount(h5fs, source, *MODES[mode], cache=self.cache) as mount:
                    seconds[mode].append(self.ours(mount.at(self.entry), source))
        ratios = {
            mode: [theirs / ours for theirs, ours in zip(seconds["peer"], seconds[mode])]
            for mode in floors
        }
        return floors, {side: statistics.median(times) for side, times in seconds.items()}, ratios

    def beside(self):
        """Returns the peer's name."""
        return self.peer.__name__.replace("_", " ")

    def files(self, store):
        if self.count:
            return store.made(self.source, store.count(self.count)), None
        plain = (
            store.array("raw.bin", self.share)
            if self.peer in (plain_file, plain_file_again)
            else None
        )
        return store.array(self.source, self.share), plain

    def warm(self, h5fs, source, plain):
        """Loads the files into the page cache, compares the bytes once, and returns the peer's
        fastest call."""
        for path in filter(None, (source, plain)):
            forget(path)
            cat(path)
        with Mount(h5fs, source) as mount:
            same = (
                peers.same_names
                if self.count
                else peers.same_numbers
                if self.entry.endswith(".csv")
                else peers.same_bytes
            )
            alone(same, source, mount.at(self.entry))
        ways = self.peer(source, plain)
        return min(ways, key=lambda way: alone(*way)) if len(ways) > 1 else ways[0]


class Files(Pair):
    """A comparison on a directory with this number of files."""

    def files(self, store):
        return store.made(self.source, min(self.count, store.size // 2**16)), None

    def warm(self, h5fs, source, plain):
        with Mount(h5fs, source) as mount:
            alone(peers.same_walk, source, mount.path)
        (way,) = self.peer(source, plain)
        return way


class Store(Pair):
    """A comparison with a Zarr reader, which opens the array and reads it completely, on a new
    mount."""

    def __init__(self, name, reader, floor, needs, **data):
        what = data.pop("what", "shuffle and gzip")
        data = data or {"source": "gzip-shuffle.h5", "share": 2}
        super().__init__(
            f"zarr-{name}",
            f"`file.zarr` with {reader.__name__.replace('_', '-')}, {what}",
            floors=(floor,),
            peer=h5py_array,
            ours=lambda path, source: alone(stores.seconds, reader, path),
            needs=needs,
            entry=".h5fs/file.zarr/d",
            **data,
        )
        self.reader = reader

    def warm(self, h5fs, source, plain):
        forget(source)
        cat(source)
        with Mount(h5fs, source) as mount:
            alone(stores.same, self.reader, source, mount.at(self.entry))
        (way,) = self.peer(source, plain)
        return way


class Opening(Pair):
    """A comparison of opening a store of many arrays, on a new mount."""

    def warm(self, h5fs, source, plain):
        with Mount(h5fs, source) as mount:
            alone(stores.same_dataset, source, mount.at(self.entry))
        (way,) = self.peer(source, plain)
        return way


class Computed(Pair):
    """A comparison of the computed HDF5 file with its source, on a new mount."""

    def warm(self, h5fs, source, plain):
        forget(source)
        cat(source)
        with Mount(h5fs, source) as mount:
            alone(peers.same_datasets, source, mount.at(self.entry))
        (way,) = self.peer(source, plain)
        return way


class Query(Pair):
    """A comparison of a query of two of eight columns with pandas on the data that h5py reads from
    `name`."""

    def __init__(self, name, words):
        super().__init__(
            f"parquet-{name}",
            f"avg(x) where y > 0.5 by DuckDB, of {words}, as Parquet",
            "records.h5",
            (2,),
            ours=lambda path, source: alone(queries.selected, path),
            needs="pandas",
            entry=f".h5fs/parquet/{name}.parquet",
        )
        self.name_in_file = name

    def beside(self):
        return "pandas"

    def warm(self, h5fs, source, plain):
        forget(source)
        cat(source)
        with Mount(h5fs, source) as mount:
            alone(queries.same, source, self.name_in_file, mount.at(self.entry))
        return (queries.framed, source, self.name_in_file)


class Joined(Pair):
    """A comparison on a thousand joined files, on a new mount. With `knows`, another mount has read
    the files before."""

    def __init__(self, name, what, floor, peer, ours, needs="zarr", knows=False):
        super().__init__(
            f"joined-{name}",
            what,
            "days",
            (floor,),
            lambda source, plain: ((peer, source),),
            lambda path, source: alone(ours, path),
            count=1000,
            needs=needs,
            entry=".h5fs/joined.zarr",
        )
        self.knows = knows
        self.peer_name = peer.__name__

    def beside(self):
        return "xarray" if self.peer_name == "many_opened" else "h5py"

    def warm(self, h5fs, source, plain):
        if self.knows:
            self.cache = os.path.abspath(f"{source}.known")
        with Mount(h5fs, source, cache=self.cache) as mount:
            alone(joined.same, source, mount.at(self.entry))
        (way,) = self.peer(source, plain)
        return way


class Part(Pair):
    """A comparison of reading a part of an array, on a new mount."""

    def __init__(self, choose, kind, reader):
        way = reader.__name__.replace("_", " ")
        super().__init__(
            f"{choose.__name__}-{kind}-{way.split()[-1]}",
            f"{PARTS[choose]} {KINDS[kind]}, {way}",
            f"{kind}.h5",
            (None,),
            lambda source, plain: ((parts.h5py_part, source, choose),),
            lambda path, source: alone(parts.seconds, reader, path, parts.index(choose, source)),
            share=4,
            needs="numpy",
            entry=".h5fs/npy",
        )
        self.choose, self.reader = choose, reader

    def beside(self):
        return "h5py"

    def warm(self, h5fs, source, plain):
        forget(source)
        cat(source)
        with Mount(h5fs, source) as mount:
            alone(parts.same, self.reader, source, mount.at(self.entry), self.choose)
        (way,) = self.peer(source, plain)
        return way


# Arrays of small chunks, many of which the store combines to one.
SINGLE = dict(what="7200 chunks of one element", source="single.h5", count=7200)
SMALL = dict(what="10 000 chunks of 8 KiB, gzip", source="small.h5", count=10_000)

PARTS = {
    parts.pixel: "one pixel over time of",
    parts.stride: "`[::8, ::4, ::4]` of",
}
KINDS = {"stack": "64 planes, contiguous", "cubes": "cubes, shuffle and gzip"}

PAIRS = [
    Pair("gzip-shuffle", "`cat`, shuffle and gzip", "gzip-shuffle.h5", (3, 4.5)),
    Pair("gzip", "`cat`, gzip", "gzip.h5", (2.2, 2.5)),
    Pair("zstd-shuffle", "`cat`, shuffle and zstd", "zstd-shuffle.h5", (1.5, 2)),
    Pair("bitshuffle-lz4", "`cat`, bitshuffle and lz4", "bitshuffle-lz4.h5", (0.8, 1)),
    Pair("blosc-lz4", "`cat`, blosc with lz4", "blosc-lz4.h5", (0.6, 0.9)),
    Pair("lzf", "`cat`, shuffle and LZF", "lzf.h5", (2, 2)),
    Pair("nbit", "`cat`, nbit, 20 bits of 32", "nbit.h5", (2, 2)),
    Pair("scaleoffset", "`cat`, scaleoffset", "scaleoffset.h5", (2, 2)),
    Pair("szip", "`cat`, szip", "szip.h5", (1.5, 1.5), share=4),
    Pair("bzip2", "`cat`, bzip2", "bzip2.h5", (1.6, 1.6), share=8),
    Pair(
        "h5dump", "`cat`, shuffle and gzip", "gzip-shuffle.h5", peer=h5dump, share=4, needs="h5dump"
    ),
    Pair("rows", "`cat`, shuffle and gzip, each chunk has whole rows", "rows.h5", share=4),
    Pair("columns", "`cat`, shuffle and gzip, each chunk has whole columns", "columns.h5", share=4),
    Pair("cubes", "`cat`, shuffle and gzip, chunks are cubes", "cubes.h5", share=4),
    Pair("contiguous", "`cat`, contiguous dataset", "contiguous.h5", (0.2, 0.4), plain_file),
    Pair("unfiltered", "`cat`, chunks without a filter", "unfiltered.h5", (0.2, 0.4), plain_file),
    Pair(
        "second",
        "second `cat` of the same dataset, shuffle and gzip",
        "gzip-shuffle.h5",
        (0.85,),
        plain_file_again,
        second,
    ),
    Pair(
        "random",
        "4 KiB at random, shuffle and gzip, 2 readers",
        "gzip-shuffle.h5",
        (4, None),
        h5py_reading,
        random,
        needs="fio",
    ),
    Pair("asdf-zlib", "`cat`, ASDF, zlib", "zlib.asdf", (1.5, 1.5), asdf, share=4),
    Pair("asdf-lz4", "`cat`, ASDF, lz4", "lz4.asdf", (4, 4), asdf, share=4),
    Pair("asdf-bzp2", "`cat`, ASDF, bzp2", "bzp2.asdf", (1.6, 1.6), asdf, share=8),
    Pair(
        "ls",
        "first `ls -l` of 100 000 datasets",
        "datasets.h5",
        (4,),
        h5py_opening,
        listing,
        count=100_000,
        entry="",
    ),
    Files(
        "find",
        "`find` in 5000 files of 20 datasets",
        "runs",
        (5,),
        h5py_walk,
        find,
        count=5000,
        entry="",
    ),
    Files(
        "grep",
        "`grep -rl` in 5000 files of 20 datasets",
        "runs",
        (5,),
        h5py_search,
        grep,
        count=5000,
        entry="",
    ),
    Files(
        "find-h5dump",
        "`find` in 1000 files of 20 datasets",
        "runs",
        (5,),
        h5dump_each,
        find,
        count=1000,
        needs="h5dump",
        entry="",
    ),
    Store("tensorstore", stores.tensorstore, 2, "tensorstore"),
    Store("zarrs", stores.zarrs, 1.7, "zarrs"),
    Store("python", stores.zarr_python, 1.5, "zarr"),
    Store("xarray", stores.xarray, 1.4, "xarray"),
    Store("single-python", stores.zarr_python, None, "zarr", **SINGLE),
    Store("single-tensorstore", stores.tensorstore, None, "tensorstore", **SINGLE),
    Store("small-python", stores.zarr_python, None, "zarr", **SMALL),
    Store("small-tensorstore", stores.tensorstore, None, "tensorstore", **SMALL),
    Opening(
        "zarr-open",
        "`xarray.open_zarr` of 2000 arrays",
        "variables.h5",
        (1.25,),
        h5netcdf,
        lambda path, source: alone(stores.opened_zarr, path),
        count=2000,
        needs="h5netcdf",
        entry=".h5fs/file.zarr",
    ),
    Joined(
        "open",
        "`xarray.open_zarr` of a joined file of 1000 files",
        15,
        joined.many_opened,
        joined.opened,
        "h5netcdf",
    ),
    Joined(
        "again",
        "`xarray.open_zarr` of 1000 files as one, by the second mount",
        15,
        joined.many_opened,
        joined.opened,
        "h5netcdf",
        knows=True,
    ),
    Joined(
        "whole",
        "one variable of a joined file of 1000 files, when the files are already joined",
        2,
        joined.each_whole,
        joined.whole,
    ),
    Joined(
        "point",
        "one grid point at all times of a joined file of 1000 files, when the files are already joined",
        2,
        joined.each_point,
        joined.point,
    ),
    *(
        Part(choose, kind, reader)
        for kind in KINDS
        for choose in PARTS
        for reader in (parts.by_memmap, parts.by_selector)
    ),
    Pair(
        "csv",
        "`cat` of the CSV of 10 000 000 float64",
        "doubles.h5",
        (2,),
        pandas_to_csv,
        share=13,
        needs="pandas",
        entry=".h5fs/csv/d.csv",
    ),
    Pair(
        "duckdb",
        "the mean of 10 000 000 float64, by DuckDB from their CSV",
        "doubles.h5",
        (2,),
        csv_to_duckdb,
        query,
        share=13,
        needs="pandas",
        entry=".h5fs/csv/d.csv",
    ),
    Computed(
        "hdf5-copy",
        "`cp` of `file.h5`, shuffle and gzip",
        "gzip-shuffle.h5",
        (1,),
        h5repack,
        lambda path, source: timed("cp", path, "/dev/null"),
        needs="h5repack",
        entry=".h5fs/file.h5",
    ),
    Computed(
        "hdf5-open",
        "`ncdump -h` of `file.h5` with 2000 variables",
        "variables.h5",
        (0.67,),
        ncdump,
        lambda path, source: peers.ncdump(path),
        count=2000,
        needs="ncdump",
        entry=".h5fs/file.h5",
    ),
    Query("rec", "records of 8 float64"),
    Query("cols", "8 columns of float64"),
]
