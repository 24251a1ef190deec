#!/usr/bin/env python3
"""joined.py H5FS SECONDS [LEAST]: mounts a directory whose files are added after, before and
between the others, replaced, truncated and removed, while 16 processes read them as joined files.
Each result must be one state of the directory, or ESTALE or EIO, and never the fill value."""

import errno
import multiprocessing
import os
import queue
import random
import time

import h5py
import mounted
import numpy as np

READERS = 16
DAYS = 12
WIDTH = 4
LAG = float(os.environ.get("SOAK_LAG", 3))
"""Seconds for which a state may still be shown that is over: the directory is looked at again after
one."""
PASSING = (errno.ESTALE, errno.EIO, errno.ENOENT)


def write(day, stamp):
    """Writes the file of one day. Each number in it encodes its day and its state."""
    name = f"day_{day:02}.nc"
    with h5py.File(f".{name}", "w") as f:
        f["time"] = [float(day)]
        f["time"].attrs["units"] = "days since 2000-01-01"
        f["time"].make_scale("time")
        values = np.full((1, WIDTH), day * 100_000 + stamp, "<i8")
        made = f.create_dataset("a", data=values, chunks=(1, WIDTH), compression="gzip")
        made.dims[0].attach_scale(f["time"])
    os.rename(f".{name}", name)


class History:
    """The states of the directory: the start of each, and the numbers of its files."""

    def __init__(self):
        self.files = {}
        self.states = []

    def set(self, day, stamp):
        if stamp is None:
            self.files.pop(day, None)
        else:
            self.files[day] = day * 100_000 + stamp
        self.states.append((time.monotonic(), tuple(self.files[d] for d in sorted(self.files))))

    def change(self, stamp):
        day = random.randrange(1, DAYS)
        act = random.choice(("write", "write", "remove", "cut"))
        if day not in self.files or len(self.files) < 4 or act == "write":
            # the file appears at some time between these two states
            self.set(day, None)
            write(day, stamp)
            self.set(day, stamp)
        elif act == "remove":
            os.remove(f"day_{day:02}.nc")
            self.set(day, None)
        else:
            os.truncate(f"day_{day:02}.nc", 700)
            self.set(day, None)

    def had(self, begin, end):
        """Yields the states that may be shown during this time. A file that is being replaced may
        be missing."""
        for (start, rows), (over, _) in zip(self.states, [*self.states[1:], (float("inf"), ())]):
            if start <= end and over >= begin - LAG:
                yield rows


def rows_of(found):
    """Returns the number of each row, whose elements must all be equal."""
    rows = found.reshape(-1, WIDTH)
    assert (rows == rows[:, :1]).all(), rows
    return tuple(int(n) for n in rows[:, 0])


def look(joined, way):
    if way == "npy":
        return rows_of(np.load(os.path.join(joined, ".h5fs/npy/a.npy")))
    if way == "raw":
        with open(os.path.join(joined, "a"), "rb", 0) as f:
            return rows_of(np.frombuffer(f.read(), "<i8"))
    with open(os.path.join(joined, ".h5fs/file.zarr/a/c/0/0"), "rb", 0) as f:
        rows = rows_of(np.frombuffer(f.read(), "<i8"))
    # elements outside the array are zero
    return tuple(n for n in rows if n)


def reader(mount, seed, seen, is_over):
    chance = random.Random(seed)
    joined = os.path.join(mount, ".h5fs/joined")
    while not is_over.is_set():
        way = chance.choice(("npy", "raw", "zarr"))
        begin = time.monotonic()
        try:
            found = look(joined, way)
        except OSError as error:
            assert error.errno in PASSING, error
            found = None
        except ValueError:
            # the length that NumPy was given differs from the length that it read
            found = None
        seen.put((begin, time.monotonic(), way, found))
        time.sleep(chance.uniform(0, 0.05))


def check(history, observation):
    begin, end, way, found = observation
    if found is None:
        return 0
    states = set(history.had(begin, end))
    assert found in states, f"{way}: {found}, none of {sorted(states)}"
    return 1


def joined(h5fs, seconds, least):
    os.mkdir("data")
    os.chdir("data")
    history = History()
    for day in range(3, 8):
        write(day, 0)
        history.set(day, 0)
    seen, is_over = multiprocessing.Queue(), multiprocessing.Event()
    with mounted.Mount(h5fs, ".") as mount:
        idle = mounted.descriptors(mount.worker)
        processes = [
            multiprocessing.Process(target=reader, args=(mount.path, seed, seen, is_over))
            for seed in range(READERS)
        ]
        for process in processes:
            process.start()
        right, waiting = 0, []
        try:
            for changes in mounted.rounds(seconds, least):
                history.change(changes + 1)
                time.sleep(random.uniform(0, 1.5))
                try:
                    while True:
                        waiting.append(seen.get_nowait())
                except queue.Empty:
                    pass
                right += sum(check(history, observation) for observation in waiting)
                looks = len(waiting)
                waiting = []
                assert all(process.is_alive() for process in processes), "a reader has failed"
        finally:
            is_over.set()
            while any(process.is_alive() for process in processes):
                try:
                    seen.get(timeout=0.1)
                except queue.Empty:
                    pass
        mounted.say(f"{changes + 1} changes, {right} answers of {READERS} readers, each of one state")
        assert right > changes, f"of the last {looks} looks none had an answer"
        after = mounted.descriptors(mount.worker)
        assert after <= idle + 200, f"{after - idle} descriptors more"
        mount.check_memory()


if __name__ == "__main__":
    mounted.run(joined, 60)
