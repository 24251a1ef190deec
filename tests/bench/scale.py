"""Measures how the cost grows with the file. Each step has ten times the chunks or links of the
previous step."""

import itertools
import os
import statistics
from time import perf_counter

from mount import Mount

STEPS = (10_000, 100_000, 1_000_000)
SOURCES = {
    "chunks-btree1.h5": "chunks, version 1 B-tree",
    "chunks-fixed.h5": "chunks, fixed array",
    "chunks-extensible.h5": "chunks, extensible array",
    "chunks-btree2.h5": "chunks, version 2 B-tree",
    "links-old.h5": "links, old group",
    "links-new.h5": "links, new group",
}


def stat_name(mount, count):
    os.stat(mount.at("g/link 0000500"))


def list_some(mount, count):
    with os.scandir(mount.at("g")) as entries:
        for _ in itertools.islice(entries, 100):
            pass


def list_all(mount, count):
    # like `ls -f`: names only
    with os.scandir(mount.at("g")) as entries:
        if sum(1 for _ in entries) != count:
            raise ValueError(f"{mount.path} lists another number of links")


def stat_dataset(mount, count):
    os.stat(mount.at("d"))


def read_some(mount, count):
    with open(mount.at("d"), "rb", 0) as f:
        f.seek(os.fstat(f.fileno()).st_size // 2)
        f.read(64)


def read_all(mount, count):
    with open(mount.at("d"), "rb", 0) as f:
        while f.read(2**20):
            pass


READS = {
    "chunks": {
        "stat": stat_dataset,
        "open, 64 bytes in the middle": read_some,
        "all bytes": read_all,
    },
    "links": {"stat of a name": stat_name, "first 100 names": list_some, "all names": list_all},
}


def cost(h5fs, path, count, what, rounds):
    """Returns the milliseconds of the mount and of one operation on it, and the KiB that the
    process reads from files, as medians."""
    runs = []
    for _ in range(rounds + 1):
        times = [perf_counter()]
        with Mount(h5fs, path) as mount:
            times.append(perf_counter())
            what(mount, count)
            times.append(perf_counter())
            runs.append(
                (
                    *(1000 * (after - before) for before, after in zip(times, times[1:])),
                    mount.worker("io", "rchar") / 1024,
                )
            )
    # the first run loads the file's own metadata into the page cache
    return tuple(map(statistics.median, zip(*runs[1:])))


def growth(h5fs, store, rounds, note):
    """Returns the head and the rows of the table."""
    head = ["file", "what", *(f"{count:,}".replace(",", " ") for count in STEPS), "for ten times"]
    rows = []
    for source, name in SOURCES.items():
        paths = [store.made(source, count) for count in STEPS]
        for index, (read, what) in enumerate(READS[name.split(",")[0]].items()):
            note(f"{source}, {read}")
            costs = [cost(h5fs, path, count, what, rounds) for path, count in zip(paths, STEPS)]
            if index == 0:
                rows.append(row(name, "mount, ms", [mount for mount, _, _ in costs]))
            rows.append(row(name, f"{read}, ms", [spent for _, spent, _ in costs]))
            rows.append(row(name, f"{read}, KiB read", [kib for _, _, kib in costs]))
    return head, rows


def row(name, what, costs):
    growth = (costs[-1] / costs[0]) ** (1 / (len(costs) - 1))
    return [name, what, *(f"{cost:.1f}" for cost in costs), f"{growth:.1f} times"]
