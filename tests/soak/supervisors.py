#!/usr/bin/env python3
"""supervisors.py H5FS SECONDS [LEAST]: two mounts at one path, supervisors that are killed while
they start, and a worker that is stopped."""

import collections
import os
import random
import signal
import subprocess
import time

import h5py

import mounted

UNANSWERED = (
    60 + 10
)  # seconds until an unresponsive mount is ended, plus the interval between two probes


def start(h5fs, mount):
    return subprocess.Popen([h5fs, mount.source, mount.path], stderr=subprocess.PIPE, text=True)


def must_be_gone(mount, what, seconds=100):
    gone = mounted.wait_until(
        lambda: not mounted.is_mounted(mount.path) and not mounted.processes(mount.path), seconds
    )
    assert gone, f"left behind after {what}: {mounted.processes(mount.path)}"


def must_be_served(mount, what):
    assert os.listdir(mount.path) == ["numbers"], f"not served after {what}"


def two_at_once(h5fs, mount):
    both = [start(h5fs, mount) for _ in range(2)]
    said = [one.communicate(timeout=600)[1] for one in both]
    assert sorted(one.returncode for one in both) == [0, 1], f"not one of two: {said}"
    assert any("already a mount point" in text for text in said), said
    must_be_served(mount, "two at once")
    os.kill(mount.supervisor, signal.SIGTERM)
    must_be_gone(mount, "two at once")
    return "of two at one place, one"


def killed_while_it_starts(h5fs, mount):
    launcher = start(h5fs, mount)
    supervisors = lambda: [
        pid for pid, title in mounted.processes(mount.path) if "supervisor" in title
    ]
    mounted.wait_until(supervisors, 100)
    time.sleep(random.random() * 0.05)
    for pid in supervisors():
        os.kill(pid, signal.SIGKILL)
    launcher.communicate(timeout=600)
    if launcher.returncode:
        must_be_gone(mount, "a failure")
        return "supervisor killed: failed, and not mounted"
    must_be_served(mount, "success")
    assert mounted.wait_until(
        lambda: not subprocess.run(["fusermount3", "-u", mount.path]).returncode, 100
    ), "fusermount3 -u"
    must_be_gone(mount, "fusermount3 -u")
    return "supervisor killed: succeeded, and served"


def stopped(h5fs, mount):
    """Checks that the mount of a stopped worker is ended."""
    with mounted.Mount(h5fs, mount.source) as frozen:
        os.kill(frozen.worker, signal.SIGSTOP)
        begun = time.monotonic()
        must_be_gone(frozen, "SIGSTOP", UNANSWERED + 20)
        mounted.say(f"a stopped worker's mount was gone after {time.monotonic() - begun:.0f} s")


def supervisors(h5fs, seconds, least):
    with h5py.File("small.h5", "w") as f:
        f["numbers"] = list(range(1000))
    mount = mounted.Mount(h5fs, "small.h5")
    outcomes = collections.Counter()
    try:
        for done in mounted.rounds(seconds, least):
            outcomes[(two_at_once, killed_while_it_starts)[done % 2](h5fs, mount)] += 1
    finally:
        while mounted.is_mounted(mount.path):
            subprocess.run(["fusermount3", "-u", "-z", mount.path], check=True)
        os.rmdir(mount.path)
    for outcome, count in outcomes.most_common():
        mounted.say(f"{outcome}: {count} times")
    if seconds:
        stopped(h5fs, mount)


if __name__ == "__main__":
    mounted.run(supervisors, 60)
