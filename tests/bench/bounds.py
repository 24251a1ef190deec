"""Measurements that are compared with a fixed bound: each returns (measured, bound, unit)."""

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import random_reads
import h5py
import peers
from mount import Mount
from process import alone, cat, there, timed

MILLION = 1_000_000
THREADS = 4
CACHE = 64


@dataclass
class Bound:
    name: str
    what: str
    most: str
    measure: Callable
    needs: str = "cat"

    def run(self, h5fs, store, rounds):
        """Returns the measured values as text, or None if a command is not installed."""
        return self.measure(h5fs, store, rounds) if there(self.needs) else None


def mount_and_stat(source, entry):
    """Returns a function that measures the mount, `stat` of the root and `stat` of a name. The
    results are medians in milliseconds."""

    def measure(h5fs, store, rounds):
        path = source(store)
        all_times = []
        for _ in range(rounds + 1):
            times = [perf_counter()]
            with Mount(h5fs, path) as mount:
                times.append(perf_counter())
                for name in ("", entry):
                    os.stat(mount.at(name))
                    times.append(perf_counter())
            all_times.append([1000 * (after - before) for before, after in zip(times, times[1:])])
        # the first run loads the file's own metadata into the page cache
        return "mount {:.0f} ms, root {:.1f} ms, name {:.1f} ms".format(
            *map(statistics.median, zip(*all_times[1:]))
        )

    return measure


def many(name):
    return lambda store: store.made(name, store.count(MILLION))


def list_all(name):
    def measure(h5fs, store, rounds):
        times = []
        for _ in range(rounds):
            with Mount(h5fs, many(name)(store)) as mount:
                times.append(timed("ls", "-f", mount.at("g")))
        return f"{statistics.median(times):.2f} s"

    return measure


def decoded(name):
    """Returns a function that counts how often a chunk is decoded while the whole dataset is read
    in order."""

    def measure(h5fs, store, rounds):
        source = store.array(name, 4)
        with Mount(h5fs, source) as mount:
            cat(mount.at("d"))
            seen = mount.status("chunks decoded")
        return f"{seen} of {int(alone(chunk_count, source))} chunks"

    return measure


def chunk_count(source):
    with h5py.File(source) as f:
        return f["d"].id.get_num_chunks()


def largest_stored(source):
    sizes = [0]
    with h5py.File(source) as f:
        if f["d"].chunks:
            f["d"].id.chunk_iter(lambda chunk: sizes.append(chunk.size))
    return max(sizes)


def memory(name, share, entry):
    def measure(h5fs, store, rounds):
        source = store.array(name, share)
        bound = CACHE + 64 + THREADS * (alone(largest_stored, source) / 2**20 + 2)
        options = (f"--cache-size={CACHE}M", f"--threads={THREADS}")
        with Mount(h5fs, source, *options) as mount:
            random_reads.storm(mount.at(entry), readers=64, reads=max(100, store.size // 2**20))
            most = mount.worker("status", "VmHWM") / 1024
        return f"{most:.0f} MiB of {bound:.0f} MiB"

    return measure


def count_rows(h5fs, store, rounds):
    """Returns the processor time in seconds of the first `stat` of the CSV of 10 000 000 float64.
    """
    source, seconds = store.array("doubles.h5", 13), []
    for _ in range(rounds):
        with Mount(h5fs, source) as mount:
            before = mount.processor()
            os.stat(mount.at(".h5fs/csv/d.csv"))
            seconds.append(mount.processor() - before)
    return f"{statistics.median(seconds):.2f} s"


def last_rows(h5fs, store, rounds):
    """Returns the time in milliseconds of `tail -n 3` of the CSV of 100 000 000 numbers."""
    source, seconds = store.made("sparse.h5", 400 * MILLION), []
    for _ in range(rounds):
        with Mount(h5fs, source) as mount:
            seconds.append(timed("tail", "-n", "3", mount.at(".h5fs/csv/d.csv")))
    return f"{1000 * statistics.median(seconds):.0f} ms"


BOUNDS = [
    *(
        Bound(
            f"mount-{name}",
            f"mount, `stat` of the root, of a name: {what}",
            "100 ms each",
            mount_and_stat(source, entry),
        )
        for name, what, source, entry in (
            ("links-old", "1 000 000 links, old group", many("links-old.h5"), "g/link 0000500"),
            ("links-new", "1 000 000 links, new group", many("links-new.h5"), "g/link 0000500"),
            ("chunks", "1 000 000 chunks", many("chunks-btree1.h5"), "d"),
            ("sparse", "100 GiB", lambda store: store.made("sparse.h5", 100 * 2**30), "d"),
        )
    ),
    Bound("list-old", "`ls -f` of 1 000 000 links, old group", "3 s", list_all("links-old.h5")),
    Bound("list-new", "`ls -f` of 1 000 000 links, new group", "3 s", list_all("links-new.h5")),
    Bound(
        "decoded-rows",
        "chunks that `cat` of a dataset decodes, if each chunk has whole rows",
        "each once",
        decoded("rows.h5"),
    ),
    Bound(
        "decoded-columns",
        "chunks that `cat` of a dataset decodes, if each chunk has whole columns",
        "each once",
        decoded("columns.h5"),
    ),
    Bound(
        "decoded-cubes",
        "chunks that `cat` of a dataset decodes, if chunks are cubes of 3 dimensions",
        "each once",
        decoded("cubes.h5"),
    ),
    Bound(
        "memory",
        f"memory under 64 random readers, cache_size={CACHE}M, threads={THREADS}",
        "promised",
        memory("gzip-shuffle.h5", 1, "d"),
        "fio",
    ),
    Bound(
        "memory-csv",
        "memory while 64 readers read at random positions of the CSV of 10 000 000 float64, "
        "with `cache_size=64M` and `threads=4`",
        "promised",
        memory("doubles.h5", 13, ".h5fs/csv/d.csv"),
        "fio",
    ),
    Bound(
        "csv-stat",
        "processor time of the first `stat` of the CSV of 10 000 000 float64",
        "1 s of a processor",
        count_rows,
    ),
    Bound("csv-tail", "`tail -n 3` of the CSV of 100 000 000 float32", "50 ms", last_rows),
]
