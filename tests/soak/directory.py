#!/usr/bin/env python3
"""directory.py H5FS SECONDS [LEAST]: readdir, telldir and seekdir in a directory of a million
entries. Each seek must return to its position."""

import ctypes
import os
import random

import h5py

import mounted

ENTRIES = int(os.environ.get("SOAK_ENTRIES", 1_000_000))
NAME = 19  # offset of the name in a struct dirent of glibc on 64 bits

LIBC = ctypes.CDLL(None, use_errno=True)
for function, answer, arguments in (
    ("opendir", ctypes.c_void_p, [ctypes.c_char_p]),
    ("readdir", ctypes.c_void_p, [ctypes.c_void_p]),
    ("telldir", ctypes.c_long, [ctypes.c_void_p]),
    ("seekdir", None, [ctypes.c_void_p, ctypes.c_long]),
    ("rewinddir", None, [ctypes.c_void_p]),
    ("closedir", ctypes.c_int, [ctypes.c_void_p]),
):
    getattr(LIBC, function).restype = answer
    getattr(LIBC, function).argtypes = arguments


def following(directory):
    """Returns the next name, or None after the last one."""
    entry = LIBC.readdir(directory)
    return entry and ctypes.string_at(entry + NAME)


def write(path, bound):
    with h5py.File(path, "w", libver=bound) as f:
        group = f.create_group("many")
        target = h5py.h5d.create(
            f.id, b"target", h5py.h5t.STD_I32LE, h5py.h5s.create(h5py.h5s.SCALAR)
        )
        for i in range(ENTRIES):
            h5py.h5o.link(target, group.id, b"entry-%07d" % i)


def listing(opened):
    """Returns all names, some of them with the position before each, and the position at the end.
    """
    names, places = set(), []
    place, name = LIBC.telldir(opened), following(opened)
    while name:
        assert name not in names, f"{name} twice"
        names.add(name)
        if random.randrange(max(1, ENTRIES // 5000)) == 0:
            places.append((place, name))
        place, name = LIBC.telldir(opened), following(opened)
    return names, places, place


def one(h5fs, path, seconds, least):
    with mounted.Mount(h5fs, path, cache=8 * mounted.MIB) as mount:
        opened = LIBC.opendir(os.fsencode(mount.at("many")))
        names, places, end = listing(opened)
        assert names == {b".", b"..", *(b"entry-%07d" % i for i in range(ENTRIES))}
        mounted.say(f"{path}: {len(names)} names, each once")
        LIBC.seekdir(opened, end)
        assert following(opened) is None, "a seek to the end"
        for done in mounted.rounds(seconds, least):
            place, name = random.choice(places)
            LIBC.seekdir(opened, place)
            found = following(opened)
            assert found == name, f"{done}: {found} instead of {name}"
        mounted.say(f"{path}: {done + 1} seeks, each to where it was")
        LIBC.rewinddir(opened)
        assert following(opened) in (b".", b"..")
        LIBC.closedir(opened)
        # and with a lookup of each name
        seen = sum(
            entry.stat(follow_symlinks=False).st_size == 4 for entry in os.scandir(mount.at("many"))
        )
        assert seen == ENTRIES, seen
        mount.check_memory()


def directory(h5fs, seconds, least):
    for bound in ("latest", "earliest"):
        path = f"million.{bound}.h5"
        write(path, bound)
        one(h5fs, path, seconds / 2, least)


if __name__ == "__main__":
    mounted.run(directory, 500)
