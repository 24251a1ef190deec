#!/usr/bin/env python3
"""changes.py H5FS SECONDS [LEAST]: mounted files, and files that contain their elements, are
replaced, removed, truncated and touched 10 times a second, at least 500 times, while others read
them. Each handle reads bytes of one state or fails. At the end all files have their last content,
and the worker's descriptors and memory have not grown."""

import contextlib
import errno
import os
import random
import threading
import time

import asdf
import h5py
import numpy as np

import mounted

BYTES = 300_000
# Growth between the end of the warm-up and the end. Metadata of earlier states is kept while there
# is room.
GROWTH = 28 * mounted.MIB
SOON = 5  # seconds until a change is visible, on a busy machine
# the formats define these values for a missing source, and after the end of a raw file
ABSENT = {"virtual.h5": {255}, "external.h5": {0}}
PASSING = {errno.ESTALE, errno.EIO, errno.ENOENT}


def state(number):
    """Returns the elements of one state, which are all the same."""
    return np.full(BYTES, number % 251, "u1")


def chunked(path, number):
    with h5py.File(path, "w") as f:
        f.create_dataset("values", data=state(number), chunks=(9000,), compression="gzip")


def raw(path, number):
    state(number).tofile(path)


def block(path, number):
    asdf.AsdfFile({"values": state(number)}).write_to(path)


def exploded(path, number):
    """Writes the file that contains the elements of an ASDF file, as the library writes it next to
    that file."""
    asdf.AsdfFile({"values": state(number)}).write_to("written.asdf", all_array_storage="external")
    os.rename("written0000.asdf", path)


def mounted_files():
    """Writes the files that do not change. Returns each mounted file with the file that changes."""
    with h5py.File("virtual.h5", "w") as f:
        layout = h5py.VirtualLayout((BYTES,), "u1", filename="virtual.h5")
        layout[:] = h5py.VirtualSource("part.h5", "values", (BYTES,))
        f.create_virtual_dataset("values", layout, fillvalue=255)
    with h5py.File("external.h5", "w") as f:
        f.create_dataset("values", (BYTES,), "u1", external=[("part.raw", 0, BYTES)])
    asdf.AsdfFile({"values": state(0)}).write_to("exploded.asdf", all_array_storage="external")
    return {
        "own.h5": ("own.h5", chunked),
        "virtual.h5": ("part.h5", chunked),
        "external.h5": ("part.raw", raw),
        "own.asdf": ("own.asdf", block),
        "exploded.asdf": ("exploded0000.asdf", exploded),
    }


def change(path, write, number):
    """Makes one change of a file, after which the file is complete."""
    kind = random.randrange(4)
    if kind == 1:
        os.utime(path)
    if kind == 2:
        os.unlink(path)
        time.sleep(0.02)
    if kind == 3:
        write("next", number)
        os.truncate("next", random.randrange(os.path.getsize("next")))
        os.rename("next", path)
        time.sleep(0.02)
    if kind != 1:
        write("next", number)
        os.rename("next", path)


class Readers:
    """Threads that read until they are stopped."""

    def __init__(self, mounts):
        self.mounts, self.is_over, self.read, self.failed, self.wrong = mounts, False, 0, 0, []
        self.threads = [threading.Thread(target=self.go_on) for _ in range(3)]
        for thread in self.threads:
            thread.start()

    def go_on(self):
        while not self.is_over:
            mount = random.choice(self.mounts)
            try:
                self.look(mount)
                self.read += 1
            except OSError as error:
                self.failed += 1
                if error.errno not in PASSING:
                    self.wrong.append(f"{mount.source}: {error}")
            except AssertionError as error:
                self.wrong.append(str(error))

    def look(self, mount):
        os.listdir(mount.path)
        with open(mount.at("values"), "rb", buffering=0) as file:
            met = set()
            for _ in range(6):
                met.update(os.pread(file.fileno(), 70_000, random.randrange(BYTES)))
            assert len(met - ABSENT.get(os.path.basename(mount.source), set())) <= 1, (
                f"{mount.source}: {sorted(met)} in one state"
            )

    def stop(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def shows(mount, number):
    try:
        with open(mount.at("values"), "rb") as file:
            return file.read() == state(number).tobytes()
    except OSError:
        return False


def settle(mounts, files):
    """Restores the first content of all files, and waits until it is visible."""
    for path, write in files:
        write("next", 0)
        os.rename("next", path)
    for mount in mounts:
        assert mounted.wait_until(lambda: shows(mount, 0), SOON), (
            f"{mount.source} is not as it was written last"
        )


def figures(mounts):
    return [(mounted.descriptors(mount.worker), mount.memory()) for mount in mounts]


def changes(h5fs, seconds, least):
    made = mounted_files()
    files = list(made.values())
    for path, write in files:
        write(path, 0)
    with contextlib.ExitStack() as stack:
        mounts = [
            stack.enter_context(mounted.Mount(h5fs, name, cache=mounted.MIB)) for name in made
        ]
        warm = least // 5
        readers = Readers(mounts)
        try:
            for done in mounted.rounds(seconds, least + warm):
                change(*random.choice(files), done)
                time.sleep(0.1)
                if done == warm:
                    settle(mounts, files)
                    before = figures(mounts)
        finally:
            readers.stop()
        assert readers.read and not readers.wrong, readers.wrong[:9]
        settle(mounts, files)
        mounted.say(
            f"{done + 1} changes; {readers.read} times read, {readers.failed} times refused"
        )
        for mount, (descriptors, memory), after in zip(mounts, before, figures(mounts)):
            mounted.say(
                f"{os.path.basename(mount.source)}: descriptors {descriptors} to {after[0]}, memory {memory >> 10} to {after[1] >> 10} KiB"
            )
            assert after[0] <= descriptors + 4, "descriptors leak"
            assert after[1] <= memory + GROWTH, "memory grows"
            mount.check_memory(BYTES, BYTES)


if __name__ == "__main__":
    mounted.run(changes, 500)
