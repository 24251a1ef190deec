#!/usr/bin/env python3
"""handles.py H5FS SECONDS [LEAST]: opens, reads and closes files at least 10 000 times. The
worker's descriptors and memory must not grow."""

import os
import random

import mounted
import source

GROWTH = 6 * mounted.MIB  # between the end of the warm-up and the end


def once(mount, names, contents, number):
    name = names[number % len(names)]
    descriptor = os.open(mount.at(name), os.O_RDONLY)
    size = len(contents[name])
    at = random.randrange(size)
    assert os.pread(descriptor, 5000, at) == contents[name][at : at + 5000], (name, at)
    os.close(descriptor)
    assert "inside" in os.listdir(mount.at("group"))
    os.getxattr(mount.at(name), "user.h5fs.shape")
    if number % 10 == 0:
        with open(mount.at(f".h5fs/ndl/{name}.yaml"), "rb") as view:
            assert view.read(10)
        with open(mount.at(".h5fs/attrs/group/@units"), "rb") as view:
            assert view.read() == b"m\n"
        with open(
            mount.at(f"{name}[{number % 50}:{number % 50 + 9}]" if name != "strings" else name),
            "rb",
        ) as part:
            part.read(100)


def handles(h5fs, seconds, least):
    path, contents = source.write()
    names = list(contents)
    with mounted.Mount(h5fs, path, cache=8 * mounted.MIB) as mount:
        worker, done = mount.worker, 0
        warm = max(len(names) * 20, least * 2)  # the cache is full after these rounds
        for done in mounted.rounds(seconds, least + warm):
            once(mount, names, contents, done)
            if done == warm:
                before = mounted.descriptors(worker), mount.memory()
        after = mounted.descriptors(worker), mount.memory()
        mounted.say(
            f"{done + 1} times; descriptors {before[0]} to {after[0]}, memory {before[1] >> 10} to {after[1] >> 10} KiB"
        )
        assert after[0] <= before[0] + 1, "descriptors leak"
        assert after[1] <= before[1] + GROWTH, "memory grows"
        mount.check_memory(source.largest_chunk(), source.largest_chunk())


if __name__ == "__main__":
    mounted.run(handles, 10_000)
