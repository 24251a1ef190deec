#!/usr/bin/env python3
"""mounts.py H5FS SECONDS [LEAST]: mounts and unmounts at least 1000 times, every fourth time by
killing a process. No mount or process may remain."""

import collections
import os
import random
import signal
import subprocess
import time

import h5py

import mounted

# seconds until a mount is gone after its worker was killed; more on a busy machine
AT_ONCE = float(os.environ.get("SOAK_AT_ONCE", 2))


WAYS = {
    "fusermount3 -u": 15,
    "SIGTERM": 2,
    "SIGKILL of the worker": 2,
    "fusermount3 -u without a supervisor": 1,
}


def unmount(mount):
    """Ends a mount in one of several ways. Returns the way and the seconds."""
    way = random.choices(list(WAYS), WAYS.values())[0]
    if way == "fusermount3 -u without a supervisor":
        # the worker continues to serve
        os.kill(mount.supervisor, signal.SIGKILL)
        assert os.listdir(mount.path) == ["numbers"]
    pid = mount.supervisor if way == "SIGTERM" else mount.worker
    start = time.monotonic()
    if way.startswith("fusermount3 -u"):
        # a file that was just read may not have been released yet
        if not mounted.wait_until(
            lambda: not subprocess.run(["fusermount3", "-u", mount.path]).returncode, 100
        ):
            raise AssertionError("fusermount3 -u: busy")
    else:
        os.kill(pid, signal.SIGTERM if way == "SIGTERM" else signal.SIGKILL)
    assert mounted.wait_until(lambda: not mounted.is_mounted(mount.path), 100), (
        f"still mounted after {way}"
    )
    gone = time.monotonic() - start
    assert mounted.wait_until(lambda: not mounted.processes(mount.path), 100), (
        f"a process is left after {way}"
    )
    return way, gone


def mounts(h5fs, seconds, least):
    with h5py.File("small.h5", "w") as f:
        f["numbers"] = list(range(1000))
        wanted = f["numbers"][...].tobytes()
    os.mkdir("tmp")
    environment = dict(os.environ, TMPDIR=os.path.abspath("tmp"))
    ways, slowest = collections.Counter(), collections.Counter()
    for _ in mounted.rounds(seconds, least):
        with mounted.Mount(h5fs, "small.h5", environment=environment) as mount:
            with open(mount.at("numbers"), "rb") as f:
                assert f.read() == wanted
            way, gone = unmount(mount)
        ways[way] += 1
        slowest[way] = max(slowest[way], gone)
    for way, count in ways.most_common():
        mounted.say(f"{way}: {count} times, unmounted within {slowest[way]:.2f} s")
        assert slowest[way] < AT_ONCE or way.startswith("fusermount3"), "too slow"
    assert not os.listdir("tmp"), f"left behind: {os.listdir('tmp')}"


if __name__ == "__main__":
    mounted.run(mounts, 1000)
