"""prefix.py METHOD: lists a prefix of many files, and then reads one value of each of a hundred
files, 16 at a time. METHOD is a mount (MNT) or h5py over s3fs (EP). Prints one line of JSON: the
seconds of both, the sum of the values, and the requests of the listing."""

import json
import os
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np

endpoint = os.environ["EP"]


def in_mount():
    root = os.environ["MNT"]

    def value(name):
        with open(os.path.join(root, name, "x"), "rb", buffering=0) as file:
            return int(np.frombuffer(file.read(4), "<i4")[0])

    return lambda: os.listdir(root), value


def with_h5py():
    import h5py
    import s3fs

    store = s3fs.S3FileSystem(
        endpoint_url=endpoint, config_kwargs={"s3": {"addressing_style": "path"}}
    )

    def value(name):
        path = f"bucket/many/{name}"
        with store.open(path, "rb", cache_type="blockcache", block_size=4 << 20) as file:
            with h5py.File(file, "r") as opened:
                return int(opened["x"][0])

    return lambda: [os.path.basename(path) for path in store.ls("bucket/many")], value


names, value = {"tree": in_mount, "s3fs": with_h5py}[sys.argv[1]]()
began = time.perf_counter()
listed = sorted(names())
ls = time.perf_counter() - began
with urllib.request.urlopen(f"{endpoint}/__stats") as answer:
    counts = json.load(answer)
began = time.perf_counter()
with ThreadPoolExecutor(16) as readers:
    total = sum(readers.map(value, listed[::100]))
values = time.perf_counter() - began
print(json.dumps({"s": values, "r": total, "ls": ls, "count": len(listed), "counts": counts}))
