#!/usr/bin/env python3
"""readers.py H5FS SECONDS [LEAST]: 64 readers at once, each with different access patterns. Every
byte is compared with what h5py reads."""

import collections
import mmap
import os
import random
import threading
import time

import mounted
import source

PROCESSES, THREADS = 8, 8
LARGEST = 1 << 20


def pread(descriptor, at, length):
    return os.pread(descriptor, length, at)


def mapped(descriptor, at, length):
    start = at - at % mmap.ALLOCATIONGRANULARITY
    with mmap.mmap(
        descriptor, at + length - start, mmap.MAP_SHARED, mmap.PROT_READ, offset=start
    ) as view:
        return view[at - start :]


def direct(descriptor, at, length):
    own = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_DIRECT)
    try:
        return os.pread(own, length, at)
    finally:
        os.close(own)


def sendfile(descriptor, at, length):
    place = os.memfd_create("place")
    try:
        sent = 0
        while sent < length and (count := os.sendfile(place, descriptor, at + sent, length - sent)):
            sent += count
        return os.pread(place, length, 0)
    finally:
        os.close(place)


def splice(descriptor, at, length):
    reader, writer = os.pipe()
    try:
        got = b""
        while len(got) < length and (
            count := os.splice(
                descriptor, writer, min(length - len(got), 1 << 16), offset_src=at + len(got)
            )
        ):
            while count:
                part = os.read(reader, count)
                got, count = got + part, count - len(part)
        return got
    finally:
        os.close(reader)
        os.close(writer)


WAYS = [pread, mapped, direct, sendfile, splice]


def reader(mount, contents, end, least, figures, seed):
    """Runs one reader with its own descriptors and access patterns."""
    chance = random.Random(seed)
    descriptors = {name: os.open(mount.at(name), os.O_RDONLY) for name in contents}
    done = 0
    while done < least or time.monotonic() < end:
        name, way = chance.choice(list(contents)), chance.choice(WAYS)
        size = len(contents[name])
        at = chance.randrange(size)
        length = min(size - at, int(LARGEST ** chance.random()) + chance.randrange(3))
        got = way(descriptors[name], at, length)
        wanted = contents[name][at : at + length]
        assert got == wanted, (
            f"{way.__name__} of {length} bytes of {name} at {at}: {len(got)} bytes, or others"
        )
        if chance.randrange(20) == 0:  # otherwise the page cache soon contains everything
            os.posix_fadvise(descriptors[name], 0, 0, os.POSIX_FADV_DONTNEED)
        if chance.randrange(100) == 0:
            os.close(descriptors[name])
            descriptors[name] = os.open(mount.at(name), os.O_RDONLY)
        figures[way.__name__, "reads"] += 1
        figures[way.__name__, "bytes"] += length
        done += 1


def process(mount, contents, end, least, number):
    """Runs the readers of one process. Returns its figures as text, or raises an error."""
    figures, wrong = [collections.Counter() for _ in range(THREADS)], []

    def guarded(i):
        try:
            reader(mount, contents, end, least, figures[i], number * THREADS + i)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    total = sum(figures, collections.Counter())
    return "\n".join(f"{way} {what} {count}" for (way, what), count in total.items())


def fork(mount, contents, end, least, number):
    """Starts a process of readers. Returns its number, and the descriptor from which to read its
    figures."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    code = 1
    try:
        os.write(writing, process(mount, contents, end, least, number).encode())
        code = 0
    except BaseException as error:
        mounted.say(f"{type(error).__name__}: {error}")
    os._exit(code)


def session(h5fs, path, contents, seconds, least, **options):
    total = collections.Counter()
    with mounted.Mount(h5fs, path, **options) as mount:
        end = time.monotonic() + seconds
        children = [fork(mount, contents, end, least, number) for number in range(PROCESSES)]
        failed = 0
        for child, reading in children:
            with os.fdopen(reading) as lines:
                for way, what, count in map(str.split, lines):
                    total[way, what] += int(count)
            failed += os.waitpid(child, 0)[1] != 0
        for way in WAYS:
            reads, count = total[way.__name__, "reads"], total[way.__name__, "bytes"]
            mounted.say(
                f"{way.__name__}: {reads} reads, {count / mounted.MIB:.0f} MiB, all as h5py reads them"
            )
        mount.check_memory(source.largest_chunk(), source.largest_chunk())
    assert not failed, f"{failed} processes of {PROCESSES} failed"


def readers(h5fs, seconds, least):
    path, contents = source.write()
    session(h5fs, path, contents, seconds / 2, least)
    mounted.say("the same with a small cache, past the page cache")
    session(
        h5fs,
        path,
        contents,
        seconds / 2,
        least,
        cache=2 * mounted.MIB,
        threads=4,
        options=["direct_io"],
    )


if __name__ == "__main__":
    mounted.run(readers, 20)
