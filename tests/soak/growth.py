#!/usr/bin/env python3
"""growth.py H5FS SECONDS [LEAST]: mounts a file to which h5py appends 100 times a second, for at
least 60 seconds. Every read must return what was written, and see new data within a second of its
flush if the part runs for 60 seconds."""

import os
import subprocess
import sys

import mounted

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures/swmr.py")
PROMISED = 1  # seconds from a flush until its data is visible
PATIENT = 50  # the same on a busy machine
STARTING = 600  # extra seconds for which the writer runs after the checker


def growth(h5fs, seconds, least):
    seconds = max(seconds, least)
    limit = PROMISED if seconds >= 60 else PATIENT
    command = [sys.executable, "-B", PROGRAM]
    writer = subprocess.Popen(
        [*command, "write", "growing.h5", str(seconds + STARTING)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert writer.stdout.readline() == "ready\n", "the writer does not begin"
        with mounted.Mount(h5fs, "growing.h5") as mount:
            checked = subprocess.run(
                [*command, "check", mount.path, "growing.h5", str(seconds), str(limit)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for line in checked.stdout.splitlines():
                mounted.say(line)
            assert not checked.returncode, "see above"
            mount.check_memory()
    finally:
        writer.terminate()
        writer.wait()


if __name__ == "__main__":
    mounted.run(growth, 60)
