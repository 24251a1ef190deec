"""Copies view trees with tools that rely on `stat`. The copies must be identical, and a file with
content must not be empty."""

import os
import subprocess
import tempfile

TREES = ("csv", "json", "text", "npy", "cf")


def rsync(source, target):
    subprocess.run(["rsync", "-a", source + "/", target], check=True)


def cp(source, target):
    subprocess.run(["cp", "-r", source, target], check=True)


def tar(source, target):
    os.mkdir(target)
    packed = subprocess.Popen(["tar", "-C", source, "-cf", "-", "."], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-C", target, "-xf", "-"], stdin=packed.stdout, check=True)
    packed.stdout.close()
    if packed.wait():
        raise subprocess.CalledProcessError(packed.returncode, "tar")


def rows(views, may_be_empty):
    """Yields (tree, tool, difference or None) for each tree and each tool. `may_be_empty` returns
    whether the object of a path in a tree has an empty content."""
    for tree in TREES:
        source = os.path.join(views, tree)
        for copy in (rsync, cp, tar):
            with tempfile.TemporaryDirectory(prefix="h5fs-readers-") as directory:
                target = os.path.join(directory, tree)
                yield tree, copy.__name__, difference(copy, source, target, may_be_empty)


def difference(copy, source, target, may_be_empty):
    try:
        copy(source, target)
    except subprocess.CalledProcessError as error:
        return str(error)
    compared = subprocess.run(["diff", "-r", source, target], stdout=subprocess.PIPE, text=True)
    if compared.returncode:
        return compared.stdout[:300]
    for directory, _, files in os.walk(target):
        for name in files:
            path = os.path.join(directory, name)
            if not os.path.islink(path) and not os.path.getsize(path):
                inner = os.path.relpath(path, target)
                if not may_be_empty(inner):
                    return f"{inner} is empty"
    return None
