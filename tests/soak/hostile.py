#!/usr/bin/env python3
"""hostile.py H5FS SECONDS [LEAST]: readers of objects that take seconds to decode, in one file and
in eight files of a directory. Measures how long other requests wait meanwhile."""

import os
import random
import shutil
import signal
import sys
import time

import mounted

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures"))
import stalls

PROMISED = 0.1  # seconds, for 99 of 100 requests
FILES = [f"slow{i}.h5" for i in range(8)]
EACH = 4  # objects of each file


def read_hostile(path, size, seed):
    """Starts a process that reads single bytes at random offsets for ever. Returns its number."""
    child = os.fork()
    if child:
        return child
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    chance = random.Random(seed)
    descriptor = os.open(path, os.O_RDONLY)
    while True:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.pread(descriptor, 1, size - 1 - chance.randrange(size // 4))


def operations(at, chance):
    """Returns the other requests by name. Each of them reaches the program."""
    size = os.stat(at("contiguous")).st_size

    def read(name):
        with open(at(name), "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert len(os.pread(file.fileno(), 4096, chance.randrange(size - 4096))) == 4096

    def absent():
        try:
            os.stat(at(f"names/{chance.random()}"))
        except FileNotFoundError:
            pass

    return {
        "stat": absent,
        "listing": lambda: os.listdir(at("names")),
        "contiguous": lambda: read("contiguous"),
        "deflate": lambda: read("deflate"),
        "open": lambda: open(at(f"names/{chance.randrange(200)}"), "rb").read(),
    }


def session(h5fs, path, seconds, least, slow, own=""):
    """Runs the readers of the objects in `slow`, and measures requests for the file `own`."""
    chance = random.Random(7)
    with mounted.Mount(h5fs, path) as mount:
        others = operations(lambda name: mount.at(os.path.join(own, name)), chance)
        size = os.stat(mount.at(slow[0])).st_size
        readers = [read_hostile(mount.at(name), size, i) for i, name in enumerate(slow)]
        try:
            time.sleep(0.5)
            took = {name: [] for name in others}
            end = time.monotonic() + seconds
            while time.monotonic() < end or sum(map(len, took.values())) < least:
                name = chance.choice(list(others))
                start = time.monotonic()
                others[name]()
                took[name].append(time.monotonic() - start)
                time.sleep(0.01)
        finally:
            for reader in readers:
                os.kill(reader, 9)
            for reader in readers:
                os.waitpid(reader, 0)
        every = []
        for name, times in took.items():
            every += times
            mounted.say(f"{name}: {figures(times)}")
        mounted.say(f"all: {figures(every)}, promised {PROMISED * 1000:.0f} ms")
        return percentile(every, 99)


def percentile(times, percent):
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)]


def figures(times):
    return f"{len(times)}, p50 {percentile(times, 50) * 1000:.1f} ms, p99 {percentile(times, 99) * 1000:.1f} ms, most {max(times) * 1000:.0f} ms"


def hostile(h5fs, seconds, least):
    worst = 0
    for write, name in ((stalls.write_hdf5, "stalls.h5"), (stalls.write_asdf, "stalls.asdf")):
        write(name)
        mounted.say(
            f"{name}: eight objects that are slow to decode, in {os.stat(name).st_size / mounted.MIB:.1f} MiB"
        )
        slow = [f"hostile{i}" for i in range(stalls.HOSTILE)]
        worst = max(worst, session(h5fs, name, seconds / 3, least, slow))
    # more objects than requests may be slow at a time
    os.mkdir("files")
    for name in (*FILES, "own.h5"):
        shutil.copy("stalls.h5", os.path.join("files", name))
    mounted.say(f"{len(FILES)} files with {EACH} such objects each, and one that others look at")
    slow = [f"{name}/hostile{i}" for name in FILES for i in range(EACH)]
    worst = max(worst, session(h5fs, "files", seconds / 3, least, slow, "own.h5"))
    assert worst <= PROMISED, "others waited longer than promised"


if __name__ == "__main__":
    mounted.run(hostile, 200)
