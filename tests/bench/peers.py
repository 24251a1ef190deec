"""The same work by the libraries. Each function returns the seconds for reading. Opening the file,
starting an interpreter and importing are not included."""

import os
import subprocess
from time import perf_counter

import asdf
import h5py
import hdf5plugin  # noqa: F401: registers its filters with h5py
import numpy as np

from data import CHUNK
from process import timed

SLAB = 16 * 2**20
WANTED = b"run 00021"


def slabs(dataset, most):
    """Yields the dataset as arrays of about `most` bytes, in whole rows of chunks, and in the
    file's own type, so that no element is converted."""
    deep = dataset.chunks[0] if dataset.chunks else 1
    row = dataset.dtype.itemsize * int(np.prod(dataset.shape[1:]))
    many = min(max(most // (row * deep), 1) * deep, dataset.shape[0])
    kind, space = dataset.id.get_type(), dataset.id.get_space()
    buffer = np.empty((many, *dataset.shape[1:]), dataset.dtype)
    for start in range(0, dataset.shape[0], many):
        part = buffer[: dataset.shape[0] - start]
        space.select_hyperslab((start, *[0] * (dataset.ndim - 1)), part.shape)
        dataset.id.read(h5py.h5s.create_simple(part.shape), space, part, kind)
        yield part


def h5py_slabs(path, most=SLAB):
    with h5py.File(path) as f, open("/dev/null", "wb", 0) as sink:
        dataset = f["d"]
        began = perf_counter()
        for part in slabs(dataset, most):
            sink.write(part)
        return perf_counter() - began


def h5py_whole(path):
    return h5py_slabs(path, 2**62)


def asdf_whole(path):
    with asdf.open(path) as f, open("/dev/null", "wb", 0) as sink:
        began = perf_counter()
        sink.write(np.ascontiguousarray(f["d"]))
        return perf_counter() - began


def h5py_random(path, places):
    with h5py.File(path) as f:
        dataset = f["d"]
        began = perf_counter()
        for at in places:
            dataset[at // 4 : at // 4 + 1024]
        return perf_counter() - began


def h5py_open_each(path):
    with h5py.File(path) as f:
        began = perf_counter()
        for name in f:
            f[name].shape
        return perf_counter() - began


def objects(directory):
    """Yields each object of each file of a directory, with its path."""
    for name in sorted(os.listdir(directory)):
        with h5py.File(os.path.join(directory, name)) as f:
            found = []
            f.visititems(lambda path, member: found.append((f"{name}/{path}", member)))
            yield f"{name}", f
            yield from found


def h5py_walk(path):
    began = perf_counter()
    for _ in objects(path):
        pass
    return perf_counter() - began


def holding(directory, text):
    """Yields the datasets of a directory's files that contain `text`."""
    for path, member in objects(directory):
        if isinstance(member, h5py.Dataset) and text in member[()].tobytes():
            yield path


def h5py_search(path):
    began = perf_counter()
    for _ in holding(path, WANTED):
        pass
    return perf_counter() - began


def h5dump_names(path):
    """Returns the seconds for a process of h5dump for each file."""
    files = sorted(os.path.join(path, name) for name in os.listdir(path))
    return timed("sh", "-c", 'for file; do h5dump -n "$file"; done', "sh", *files)


def pandas_to_csv(path):
    import pandas

    with h5py.File(path) as f:
        began = perf_counter()
        pandas.DataFrame({"d": f["d"][()]}).to_csv("/dev/null", index=False, header=False)
        return perf_counter() - began


def h5repack(path):
    """Returns the seconds for a copy without filters."""
    copy = f"{path}.repacked"
    try:
        return timed("h5repack", "-f", "NONE", path, copy)
    finally:
        os.remove(copy)


def ncdump(path):
    return timed("ncdump", "-h", path)


def h5dump(path):
    return timed("h5dump", "-d", "/d", "-b", "LE", "-o", "/dev/null", path)


def places(path, most=1024):
    """Returns offsets for reads of 4 KiB, each in another chunk and in random order."""
    random = np.random.default_rng(1)
    with h5py.File(path) as f:
        chunks = random.permutation(f["d"].size // CHUNK)[:most]
    return [
        int(chunk) * CHUNK * 4 + int(page) * 4096
        for chunk, page in zip(chunks, random.integers(0, 256, chunks.size))
    ]


# ---------------------------------------------------------------- comparison of the bytes


def same_bytes(source, served):
    """Compares a file of the mount with the data that the library reads."""
    with open(served, "rb") as ours:
        if source.endswith(".asdf"):
            with asdf.open(source) as f:
                agree = ours.read() == np.ascontiguousarray(f["d"]).tobytes()
        else:
            with h5py.File(source) as f:
                agree = all(
                    ours.read(part.nbytes) == part.tobytes() for part in slabs(f["d"], SLAB)
                ) and not ours.read(1)
    if not agree:
        raise ValueError(f"{served} is not what the library reads from {source}")


def same_datasets(source, computed):
    """Compares the datasets of two HDF5 files."""
    with h5py.File(source) as f, h5py.File(computed) as found:
        if set(f) != set(found):
            raise ValueError(f"{computed} has other names than {source}")
        for name in f:
            for ours, theirs in zip(slabs(found[name], SLAB), slabs(f[name], SLAB), strict=True):
                if ours.tobytes() != theirs.tobytes():
                    raise ValueError(f"{computed}: {name} is not what h5py reads from {source}")


def same_numbers(source, served):
    """Compares a CSV file of one column with the numbers that h5py reads."""
    with h5py.File(source) as f, open(served) as ours:
        if not np.array_equal(np.fromiter(map(float, ours), f["d"].dtype), f["d"][()]):
            raise ValueError(f"{served} has other numbers than {source}")


def same_walk(source, directory):
    walked = {
        os.path.relpath(os.path.join(place, name), directory)
        for place, groups, datasets in os.walk(directory)
        for name in groups + datasets
    }
    if walked != {path for path, _ in objects(source)}:
        raise ValueError(f"{directory} has other names than the files of {source}")
    found = subprocess.run(
        ["grep", "-rl", WANTED, "."], cwd=directory, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split("\n")[:-1]
    if sorted(found) != sorted(f"./{path}" for path in holding(source, WANTED)):
        raise ValueError(f"{directory}: grep finds {found}")


def same_names(source, directory):
    with h5py.File(source) as f:
        if set(f) != set(os.listdir(directory)):
            raise ValueError(f"{directory} does not list the names of {source}")
