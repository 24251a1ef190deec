"""The files that are measured. Each file is created once, and reused by its name and size. Each
writer takes (path, size or count).

The reference data are float32 values, a smooth curve with noise, in chunks of 1 MiB."""

import os

import asdf
import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5p, h5t, h5z

import joined
from process import alone

CHUNK = 2**18  # elements of 4 bytes


def values(block, count=CHUNK):
    """Returns a part of the curve: temperatures over a day, with the noise of a sensor."""
    at = np.arange(block * count, (block + 1) * count)
    noise = np.random.default_rng(block).normal(0, 0.05, count)
    return (280 + 20 * np.sin(at / 5000) + noise).astype("<f4")


def fill(dataset, chunks, scale=None):
    for block, where in enumerate(chunks):
        part = values(block)
        dataset[where] = (part if scale is None else part * scale).reshape(dataset.chunks or -1)


def line(**options):
    """Returns a writer of a one-dimensional dataset, with the filters that h5py's keywords name."""

    def write(path, size):
        with h5py.File(path, "w") as f:
            dataset = f.create_dataset("d", (size // 4,), "<f4", chunks=(CHUNK,), **options)
            fill(dataset, dataset.iter_chunks())

    return write


def contiguous(path, size):
    with h5py.File(path, "w") as f:
        dataset = f.create_dataset("d", (size // 4,), "<f4")
        fill(dataset, (slice(start, start + CHUNK) for start in range(0, size // 4, CHUNK)))


def stack(path, size):
    """Writes a stack of 64 planes."""
    width = 2 ** ((size // 4 // 64).bit_length() // 2)
    with h5py.File(path, "w") as f:
        whole = np.concatenate([values(block) for block in range(size // 4 // CHUNK)])
        f["d"] = whole.reshape(64, -1, width)


def doubles(path, size):
    """Writes numbers with the maximum number of digits."""
    with h5py.File(path, "w") as f:
        f["d"] = np.random.default_rng(8).normal(0, 1000, size // 8)


def records(path, size):
    """Writes the same numbers as records of eight fields, and as eight columns."""
    chance = np.random.default_rng(9)
    rows = size // 64
    made = np.zeros(rows, [(name, "f8") for name in "xyzuvwab"])
    for name in "xyzuvwab":
        made[name] = np.round(chance.random(rows), 4)
    packing = {"shuffle": True, "compression": "gzip", "compression_opts": 4}
    with h5py.File(path, "w") as f:
        f.create_dataset("rec", data=made, chunks=(min(rows, 16_384),), **packing)
        for name in "xyzuvwab":
            chunks = (min(rows, 131_072),)
            f.create_dataset(f"cols/{name}", data=made[name], chunks=chunks, **packing)


def nbit(path, size):
    """Writes integers of 20 bits in elements of 32 bits."""
    kind = h5t.STD_I32LE.copy()
    kind.set_precision(20)
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((CHUNK,))
    plist.set_filter(h5z.FILTER_NBIT, h5z.FLAG_OPTIONAL, ())
    with h5py.File(path, "w") as f:
        space = h5py.h5s.create_simple((size // 4,))
        dataset = h5py.Dataset(h5d.create(f.id, b"d", kind, space, plist))
        fill(dataset, dataset.iter_chunks(), scale=1000)


def shaped(shape_and_chunk):
    """Returns a writer of a dataset with several dimensions, shuffle and gzip."""

    def write(path, size):
        shape, chunk = shape_and_chunk(size // 4)
        with h5py.File(path, "w") as f:
            dataset = f.create_dataset(
                "d", shape, "<f4", chunks=chunk, compression="gzip", shuffle=True
            )
            fill(dataset, dataset.iter_chunks())

    return write


def rows(elements):
    return (elements // 4096, 4096), (CHUNK // 4096, 4096)


def columns(elements):
    return (CHUNK // 4, elements // (CHUNK // 4)), (CHUNK // 4, 4)


def cubes(elements):
    side = next(side for side in (8, 4, 2, 1) if side**2 <= elements // CHUNK)
    return (elements // CHUNK // side**2 * 64, 64 * side, 64 * side), (64, 64, 64)


def blocks(compression):
    """Returns a writer of an ASDF file with one compressed block."""

    def write(path, size):
        whole = np.concatenate([values(block) for block in range(size // 4 // CHUNK)])
        asdf.AsdfFile({"d": whole}).write_to(path, all_array_compression=compression)

    return write


# ---------------------------------------------------------------- many objects, by count


def datasets(path, count):
    with h5py.File(path, "w") as f:
        space = h5py.h5s.create_simple((4,))
        for number in range(count):
            h5d.create(f.id, b"dataset %07d" % number, h5t.IEEE_F32LE, space)


def runs(path, count):
    """Writes a directory of files with twenty datasets each: a title and nineteen columns."""
    os.mkdir(path)
    for number in range(count):
        with h5py.File(os.path.join(path, f"run {number:05}.h5"), "w") as f:
            entry = f.create_group("entry")
            entry["title"] = np.bytes_(f"run {number:05}")
            for column in range(19):
                entry[f"column {column:02}"] = np.arange(column, column + 100, dtype="f8")


def variables(path, count):
    """Writes variables without dimension scales, with which h5netcdf would take four times as long.
    """
    with h5py.File(path, "w") as f:
        for number in range(count):
            made = f.create_dataset(f"variable {number:04}", data=np.arange(number, number + 10.0))
            made.attrs["units"] = "K"
            made.attrs["long_name"] = f"the variable with the number {number}"


def links(libver):
    """Returns a writer of one group with many links to a thousand datasets."""

    def write(path, count):
        with h5py.File(path, "w", libver=libver) as f:
            group = f.create_group("g").id
            space = h5py.h5s.create_simple((4,))
            for number in range(count):
                name = b"link %07d" % number
                if number < 1000:
                    h5d.create(group, name, h5t.IEEE_F32LE, space)
                else:
                    group.links.create_hard(name, group, b"link %07d" % (number % 1000))

    return write


def chunks(libver, growing=0):
    """Returns a writer of chunks of 64 bytes, and so of `count` entries in the index. The number of
    axes that can grow determines the kind of index."""

    def write(path, count):
        shape, chunk = ((count // 1000, 16000), (1, 16)) if growing == 2 else ((count * 16,), (16,))
        most = tuple(None if axis < growing else extent for axis, extent in enumerate(shape))
        with h5py.File(path, "w", libver=libver) as f:
            dataset = f.create_dataset("d", shape, "<f4", chunks=chunk, maxshape=most)
            many = shape[0] // min(10, shape[0])
            for start in range(0, shape[0], many):
                dataset[start : start + many] = 1

    return write


def small_chunks(length, **options):
    """Returns a writer of `count` chunks of `length` elements."""

    def write(path, count):
        with h5py.File(path, "w") as f:
            shape, chunk = (count * length,), (length,)
            f.create_dataset("d", shape, "<f4", values(0, count * length), chunks=chunk, **options)

    return write


def sparse(path, size):
    """Writes a dataset that is allocated but never written: a sparse file of this length."""
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    plist.set_fill_time(h5d.FILL_TIME_NEVER)
    with h5py.File(path, "w") as f:
        h5d.create(f.id, b"d", h5t.IEEE_F32LE, h5py.h5s.create_simple((size // 4,)), plist)


def raw(path, size):
    """Writes only the reference data, without a file format."""
    with open(path, "wb") as f:
        for block in range(size // 4 // CHUNK):
            f.write(values(block))


WRITERS = {
    "gzip.h5": line(compression="gzip"),
    "gzip-shuffle.h5": line(compression="gzip", shuffle=True),
    "zstd-shuffle.h5": line(compression=hdf5plugin.Zstd(3), shuffle=True),
    "bitshuffle-lz4.h5": line(compression=hdf5plugin.Bitshuffle(0, "lz4")),
    "blosc-lz4.h5": line(compression=hdf5plugin.Blosc("lz4", 5, hdf5plugin.Blosc.SHUFFLE)),
    "lzf.h5": line(compression="lzf", shuffle=True),
    "doubles.h5": doubles,
    "records.h5": records,
    "nbit.h5": nbit,
    "scaleoffset.h5": line(scaleoffset=3),
    "szip.h5": line(compression="szip", compression_opts=("nn", 32)),
    "bzip2.h5": line(compression=hdf5plugin.BZip2(9)),
    "contiguous.h5": contiguous,
    "stack.h5": stack,
    "unfiltered.h5": line(),
    "rows.h5": shaped(rows),
    "columns.h5": shaped(columns),
    "cubes.h5": shaped(cubes),
    "zlib.asdf": blocks("zlib"),
    "lz4.asdf": blocks("lz4"),
    "bzp2.asdf": blocks("bzp2"),
    "raw.bin": raw,
    "datasets.h5": datasets,
    "runs": runs,
    "days": joined.days,
    "variables.h5": variables,
    "single.h5": small_chunks(1),
    "small.h5": small_chunks(2048, compression="gzip"),
    "links-old.h5": links("earliest"),
    "links-new.h5": links("latest"),
    "chunks-btree1.h5": chunks("earliest"),
    "chunks-fixed.h5": chunks("latest"),
    "chunks-extensible.h5": chunks("latest", 1),
    "chunks-btree2.h5": chunks("latest", 2),
    "sparse.h5": sparse,
}


class Store:
    """The directory of the files."""

    def __init__(self, directory, size):
        self.directory = directory
        self.size = size
        os.makedirs(directory, exist_ok=True)

    def count(self, most):
        """Returns the number of links, chunks or datasets for this size. From 256 MiB on, it is the
        full number."""
        return max(1000, min(most, most * self.size // 2**28 // 1000 * 1000))

    def made(self, name, number):
        """Returns the path of a file with this number of bytes of data, or of entries. Writes the
        file if it does not exist."""
        stem, kind = os.path.splitext(name)
        path = os.path.join(self.directory, f"{stem}-{number}{kind}")
        if not os.path.exists(path):
            alone(WRITERS[name], path + ".new", number)
            os.rename(path + ".new", path)
        return path

    def array(self, name, share=1):
        """Returns the path of a file with the fraction 1/share of the data. The fraction is rounded
        down to whole chunks, but to at least one."""
        return self.made(name, max(self.size // share // 2**20, 1) * 2**20)
