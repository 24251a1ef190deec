#!/usr/bin/env python3
"""archive.py H5FS SECONDS [LEAST]: a directory whose files are created, replaced, truncated,
removed and appended to while sixteen readers read them. Each result must be a recent state: without
a wrong byte, and without a name that is stale for more than 1.5 s. The worker must release its
descriptors and its memory."""

import contextlib
import errno
import multiprocessing
import os
import queue
import random
import subprocess
import sys
import time
from bisect import bisect_left

import h5py
import numpy as np

import mounted

NAMES = [f"{number:02}.{kind}" for number in range(60) for kind in ("h5", "bin")]
GROWING = "growing.h5"
WORDS = 1000
READERS = 16
# seconds for which a name may be stale; more on a busy machine
LAG = float(os.environ.get("SOAK_LAG", 1.5))
OPEN_FILES = 16
# Parts of observations that wait for their check. Readers wait for room, so that the checks keep up
# with sixteen readers on two processors.
WAITING_PARTS = 32

ABSENT, DAMAGED = "absent", "damaged"

WRITER = """
import sys, time, h5py, numpy as np
with h5py.File(sys.argv[1], "w", libver="latest") as f:
    x = f.create_dataset("x", (0,), "<i8", maxshape=(None,), chunks=(512,))
    f.swmr_mode = True
    while True:
        count = x.shape[0]
        x.resize((count + 100,))
        x[count:] = np.arange(count, count + 100)
        x.flush()
        print(count + 100, time.monotonic(), flush=True)
        time.sleep(0.05)
"""


def content(stamp, words=WORDS):
    return np.full(words, stamp, "<i8").tobytes()


class History:
    """The successive states of each name as `(begin, end, state)`, with the times of the call that
    caused the state."""

    def __init__(self):
        self.of = {name: [(0.0, 0.0, ABSENT)] for name in NAMES}

    def note(self, name, state, change):
        begin = time.monotonic()
        change()
        self.of[name].append((begin, time.monotonic(), state))

    def now(self, name):
        return self.of[name][-1][2]

    def between(self, name, begin, end):
        """Returns the states that a reader may see between these times."""
        states = self.of[name]
        last = bisect_left(states, (end,)) - 1
        seen = [states[last][2]]
        while last and states[last][1] + LAG >= begin:
            last -= 1
            seen.append(states[last][2])
        return seen


def change(history, stamp):
    """Makes one change of one name."""
    name = random.choice(NAMES)
    before = history.now(name)
    if before not in (ABSENT, DAMAGED) and random.random() < 0.2:
        words = random.randrange(before[1] // 2 + 1)
        size = words * 8 if name.endswith(".bin") else random.randrange(8, 1500)
        state = (before[0], words) if name.endswith(".bin") else DAMAGED
        history.note(name, state, lambda: os.truncate(name, size))
    elif before != ABSENT and random.random() < 0.3:
        history.note(name, ABSENT, lambda: os.unlink(name))
    else:
        # written next to the mounted directory, so that no reader sees it half written
        new = os.path.join("..", "new")
        if name.endswith(".bin"):
            with open(new, "wb") as f:
                f.write(content(stamp))
        else:
            with h5py.File(new, "w") as f:
                f["x"] = np.full(WORDS, stamp, "<i8")
        history.note(name, (stamp, WORDS), lambda: os.replace(new, name))


def read(path):
    """Returns what a reader sees of a file: its stamp and length, a description of wrong numbers,
    or an errno."""
    try:
        with open(path, "rb") as f:
            found = f.read()
    except OSError as error:
        return error.errno
    words = np.frombuffer(found[: len(found) // 8 * 8], "<i8")
    if len(found) % 8 or len(set(words)) > 1:
        return f"{len(found)} bytes of {sorted(set(words))[:5]}"
    return (int(words[0]) if len(words) else None, len(words))


def grown(path):
    """Returns how many numbers a reader sees in the growing file."""
    try:
        with open(path, "rb") as f:
            found = np.frombuffer(f.read(), "<i8")
    except OSError as error:
        return -error.errno
    wrong = np.flatnonzero(found != np.arange(len(found)))
    return f"{found[wrong[0]]} at {wrong[0]}" if len(wrong) else len(found)


def reader(mount, seed, seen, is_over):
    random.seed(seed)
    while not is_over.is_set():
        part = []
        for _ in range(50):
            begin, kind = time.monotonic(), random.random()
            if kind < 0.05:
                what, found = "names", os.listdir(mount)
            elif kind < 0.1:
                what, found = GROWING, grown(os.path.join(mount, GROWING, "x"))
            else:
                what = random.choice(NAMES)
                inside = what if what.endswith(".bin") else os.path.join(what, "x")
                found = read(os.path.join(mount, inside))
            part.append((begin, time.monotonic(), what, found))
        seen.put(part)


CHANGED = (errno.ENOENT, errno.ESTALE, errno.EIO, errno.ENOTDIR, errno.EISDIR)


def is_right(history, begin, end, name, found):
    states = history.between(name, begin, end)
    if isinstance(found, int):
        # While the file changes, each of these errors is permitted. Otherwise only for a file that
        # cannot be read.
        return found in CHANGED and (len(states) > 1 or states[0] in (ABSENT, DAMAGED))
    if isinstance(found, str):
        return False
    stamp, words = found
    kept = [state for state in states if state not in (ABSENT, DAMAGED)]
    return any(words == most and stamp in (own, None) for own, most in kept)


def check(history, lengths, observation):
    begin, end, what, found = observation
    if what == "names":
        for name in NAMES:
            states = history.between(name, begin, end)
            is_listed = name in found
            if len({state == ABSENT for state in states}) == 1:
                assert is_listed == (states[0] != ABSENT), f"{name} listed: {is_listed}, {states}"
    elif what == GROWING:
        least = length_before(lengths, begin - LAG)
        most = length_before(lengths, end + LAG)
        assert isinstance(found, int) and least <= found <= most + 100, (
            f"{found} of {least} to {most} numbers"
        )
    else:
        states = history.between(what, begin, end)
        assert is_right(history, begin, end, what, found), f"{what}: {found}, {states}"


def length_before(lengths, time):
    """Returns the last length that the writer reported before this time. The lengths grow."""
    place = bisect_left(lengths, time, key=lambda report: report[1])
    return lengths[place - 1][0] if place else 0


class Figures:
    """The worker's memory and descriptors over time."""

    def __init__(self, mount):
        self.mount, self.memory, self.descriptors = mount, [], []

    def take(self):
        self.memory.append(self.mount.memory())
        self.descriptors.append(mounted.descriptors(self.mount.worker))

    def check(self):
        if len(self.memory) < 2:
            return
        half = len(self.memory) // 2
        before, after = max(self.memory[:half]), max(self.memory[half:])
        mounted.say(
            f"memory {before / mounted.MIB:.1f} MiB at most in the first half, "
            f"{after / mounted.MIB:.1f} MiB in the second; "
            f"descriptors {min(self.descriptors)} to {max(self.descriptors)}"
        )
        # the caches fill in the first minutes
        is_long = len(self.memory) >= 50
        assert not is_long or after <= before + 8 * mounted.MIB, "memory that is not given back"


def archive(h5fs, seconds, least):
    os.mkdir("data")
    os.chdir("data")
    history, figures = History(), None
    for stamp in range(len(NAMES)):
        change(history, stamp)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, GROWING], stdout=subprocess.PIPE
    )
    os.set_blocking(writer.stdout.fileno(), False)
    told, lengths, is_over = b"", [], multiprocessing.Event()
    seen = multiprocessing.Queue(WAITING_PARTS)
    started = mounted.wait_until(lambda: os.path.exists(GROWING), 600)
    assert started, "no file that grows"
    time.sleep(1)
    with mounted.Mount(h5fs, ".", options=[f"open_files={OPEN_FILES}"]) as mount:
        idle = mounted.descriptors(mount.worker)
        figures = Figures(mount)
        readers = [
            multiprocessing.Process(target=reader, args=(mount.path, seed, seen, is_over))
            for seed in range(READERS)
        ]
        for process in readers:
            process.start()
        looks, waiting, next_figures = 0, [], 0
        try:
            for changes in mounted.rounds(seconds, least):
                change(history, stamp + changes + 1)
                with contextlib.suppress(BlockingIOError):
                    told += os.read(writer.stdout.fileno(), 1 << 16)
                *lines, told = told.split(b"\n")
                lengths += [
                    (int(length), float(when)) for length, when in map(bytes.split, lines)
                ]
                try:
                    while True:
                        waiting += seen.get_nowait()
                except queue.Empty:
                    pass
                # the writer has already reported all states for an observation that is this old
                over = time.monotonic() - LAG
                for observation in waiting:
                    if observation[1] < over:
                        check(history, lengths, observation)
                        looks += 1
                waiting = [observation for observation in waiting if observation[1] >= over]
                if time.monotonic() > next_figures:
                    next_figures = time.monotonic() + max(seconds / 100, 5)
                    figures.take()
                time.sleep(random.uniform(0, 0.04))
        finally:
            is_over.set()
            writer.kill()
            # a full queue prevents its process from ending
            while any(process.is_alive() for process in readers):
                try:
                    seen.get(timeout=0.1)
                except queue.Empty:
                    pass
        mounted.say(f"{changes + 1} changes, {looks} looks by {READERS} readers, each right")
        figures.check()
        mount.check_memory()
        # each open file has one or two descriptors
        settled = lambda: mounted.descriptors(mount.worker) <= idle + 3 * OPEN_FILES
        assert mounted.wait_until(settled, 100), f"{mounted.descriptors(mount.worker)} descriptors"
    os.chdir("..")


if __name__ == "__main__":
    mounted.run(archive, 500)
