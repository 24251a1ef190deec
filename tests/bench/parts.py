"""Reads a part of a three-dimensional array: by h5py, by numpy.memmap of the array's .npy file, and
by the .npy file of a selector."""

from time import perf_counter

import h5py
import numpy as np


def pixel(shape):
    return np.s_[:, shape[1] // 2, shape[2] // 2]


def stride(shape):
    return np.s_[::8, ::4, ::4]


def index(choose, source):
    with h5py.File(source) as f:
        return choose(f["d"].shape)


def selector(picked):
    """Returns the index as the text of a selector."""
    texts = (f"::{i.step or 1}" if isinstance(i, slice) else str(i) for i in picked)
    return f"[{','.join(texts)}]"


def by_memmap(directory, picked):
    return np.array(np.load(f"{directory}/d.npy", mmap_mode="r")[picked])


def by_selector(directory, picked):
    return np.load(f"{directory}/d{selector(picked)}.npy")


def seconds(reader, directory, picked):
    began = perf_counter()
    reader(directory, picked)
    return perf_counter() - began


def h5py_part(source, choose):
    with h5py.File(source) as f:
        dataset = f["d"]
        began = perf_counter()
        dataset[choose(dataset.shape)]
        return perf_counter() - began


def same(reader, source, directory, choose):
    """Raises an error if a reader's part differs from h5py's."""
    picked = index(choose, source)
    with h5py.File(source) as f:
        np.testing.assert_array_equal(reader(directory, picked), f["d"][picked], strict=True)
