"""The file that the soak tests read, and what h5py reads from each of its datasets."""

import os

import h5py
import numpy as np


def write(directory="."):
    """Writes `soak.h5`. Returns its path, and the bytes of each of its datasets by name."""
    path = os.path.join(directory, "soak.h5")
    random = np.random.default_rng(20)
    noise = random.integers(0, 256, 32 << 20, "u1")
    slow = np.cumsum(random.integers(-3, 4, 4 << 20)).astype("<i4")
    with h5py.File(path, "w", libver="latest") as f:
        f["contiguous"] = noise
        f.create_dataset(
            "chunked", data=noise[: 24 << 20].view("<u8").reshape(3, -1, 1024), chunks=(1, 100, 300)
        )
        f.create_dataset(
            "deflate",
            data=slow.reshape(2048, -1),
            chunks=(130, 500),
            compression="gzip",
            shuffle=True,
        )
        f.create_dataset(
            "lzf",
            data=slow[: 1 << 20].astype(">f8"),
            chunks=(65_000,),
            compression="lzf",
            fletcher32=True,
        )
        f.create_dataset(
            "growing",
            data=slow[: 1 << 20].reshape(64, -1),
            chunks=(5, 700),
            maxshape=(None, None),
            compression="gzip",
        )
        f.create_dataset("many_chunks", data=noise[: 1 << 20], chunks=(97,))
        sparse = f.create_dataset("sparse", (1 << 22,), "<i8", chunks=(5000,), fillvalue=7)
        for start in (3, 600_000, 2_222_222):
            sparse[start : start + 10_000] = np.arange(10_000)
        f.create_dataset("compact", data=np.arange(100, dtype="<u2"))
        words = [b"word %d" % i * (i % 50) for i in range(20_000)]
        f.create_dataset("strings", data=words, dtype=h5py.string_dtype())
        f.create_group("group").attrs["units"] = "m"
        f["group/inside"] = np.arange(10)
        f["link"] = h5py.SoftLink("group/inside")
    contents = {}
    with h5py.File(path) as f:
        for name, item in f.items():
            if not isinstance(item, h5py.Dataset) or name == "link":
                continue
            content = item[...]
            contents[name] = (
                b"".join(w + b"\n" for w in content) if name == "strings" else content.tobytes()
            )
    return path, contents


def largest_chunk():
    """Returns the decoded size in bytes of the largest chunk of `soak.h5`."""
    return 65_000 * 8
