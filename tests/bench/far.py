"""far.py METHOD TASK: runs a task on remote files in a new process. Prints one line of JSON with
the seconds, without the imports, and with the result.

METHOD is `tree` (a mount of h5fs at MNT), `file` (a mount at MNT that shows the original files), or
a library: `s3fs` (EP), `remfile`, `fsspec`, or `kerchunk` (WEB), whose index is written in advance.
`far.py make DIRECTORY` writes the files.

| task | content |
|---|---|
| `mean` | field.nc with xarray: the mean of a variable of 128 MiB, 66 MiB stored; for h5fs through its Zarr store |
| `runs` | 300 of 2000 files of 66 KiB, 16 at a time |
| `table` | two of eight columns of four million rows, 16 MiB stored each; for h5fs a query of its Parquet file |
| `fifty` | 50 small datasets of an object of 3.8 MiB |
| `point` | one location at all times of 365 daily files; for h5fs through the Zarr store of the joined files, for kerchunk through an index of all files |
"""

import json
import os
import pathlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

COLUMNS, ROWS = "abcdefgh", 4 << 20
RUNS, ASKED = 2000, 300
DAYS, PLACE = 365, (7, 9)


def make_field(path):
    import h5py

    with h5py.File(path, "w") as file:
        shape = {"time": 256, "lat": 256, "lon": 512}
        for name, length in shape.items():
            file[name] = np.arange(length, dtype="<f8")
            file[name].make_scale(name)
        u = file.create_dataset("u", shape=tuple(shape.values()), dtype="<f4", chunks=(8, 128, 256),
                                compression="gzip", compression_opts=1, shuffle=True)
        for axis, name in enumerate(shape):
            u.dims[axis].attach_scale(file[name])
        for start in range(0, 256, 8):
            random = np.random.default_rng(start)
            u[start : start + 8] = random.integers(1, 1 << 14, (8, 256, 512)) / 64


def make_table(path):
    import h5py

    with h5py.File(path, "w") as file:
        for number, name in enumerate(COLUMNS):
            random = np.random.default_rng(number)
            # The sum is exact in any order of addition.
            column = random.integers(0, 1 << 30, ROWS).astype("<f8")
            file.create_dataset(f"t/{name}", data=column, chunks=(1 << 17,), compression="gzip",
                                compression_opts=1, shuffle=True)


def make_fifty(path):
    import h5py

    random = np.random.default_rng(2)
    with h5py.File(path, "w") as file:
        for number in range(50):
            data = random.integers(0, 1 << 31, (4, 4980), "<i4")
            file.create_dataset(f"d{number:02}", data=data, chunks=(1, 4980))


def make_runs(directory):
    import h5py

    os.makedirs(f"{directory}.part", exist_ok=True)
    for number in range(RUNS):
        with h5py.File(f"{directory}.part/run_{number:04}.h5", "w") as file:
            file["x"] = np.random.default_rng(number).integers(0, 1 << 31, 16 << 10, "<i4")
    os.rename(f"{directory}.part", directory)


def day(number):
    return f"day_{number:03}.nc"


def make_days(directory):
    import h5py

    os.makedirs(f"{directory}.part", exist_ok=True)
    for number in range(DAYS):
        with h5py.File(f"{directory}.part/{day(number)}", "w") as file:
            file.create_dataset("time", data=[float(number)], chunks=(512,), maxshape=(None,))
            file["time"].attrs["units"] = "days since 2025-01-01"
            file["lat"], file["lon"] = np.arange(180.0) - 89.5, np.arange(360.0)
            for name in ("time", "lat", "lon"):
                file[name].make_scale(name)
            values = np.random.default_rng(number).integers(1, 1 << 14, (1, 180, 360)) / 64
            t = file.create_dataset("t", data=values.astype("<f4"), chunks=(1, 180, 360),
                                    maxshape=(None, 180, 360), compression="gzip", shuffle=True)
            for axis, name in enumerate(("time", "lat", "lon")):
                t.dims[axis].attach_scale(file[name])
    os.rename(f"{directory}.part", directory)


def index_of(file):
    """Returns the index that kerchunk reads instead of the file."""
    from kerchunk.hdf import SingleHdf5ToZarr

    with open(file, "rb") as opened:
        return SingleHdf5ToZarr(opened, file).translate()


def keep_index(path, index):
    """Stores an index of files next to them. The placeholder for their URL is replaced at each
    start."""
    text = json.dumps(index).replace(f'"{os.path.dirname(path)}/', '"URL/')
    with open(path, "w") as written:
        written.write(text)


def make_index(path, file):
    keep_index(path, index_of(file))


def make_index_of_days(path, directory):
    from kerchunk.combine import MultiZarrToZarr

    all_days = [index_of(os.path.join(directory, day(number))) for number in range(DAYS)]
    combined = MultiZarrToZarr(all_days, concat_dims=["time"], identical_dims=["lat", "lon"])
    keep_index(path, combined.translate())


def make(directory):
    directory = os.path.abspath(directory)

    def missing(name):
        return not os.path.exists(os.path.join(directory, name))

    for name, maker in [("field.nc", make_field), ("table.h5", make_table), ("fifty.h5", make_fifty),
                        ("runs", make_runs), ("days", make_days)]:
        if missing(name):
            maker(os.path.join(directory, name))
    if missing("field.json"):
        make_index(os.path.join(directory, "field.json"), os.path.join(directory, "field.nc"))
    if missing("days.json"):
        make_index_of_days(os.path.join(directory, "days.json"), os.path.join(directory, "days"))


def opened(method):
    """Returns a function that opens one of the files as an object that h5py can read."""
    if method == "file":
        return lambda name: open(os.path.join(os.environ["MNT"], name), "rb", buffering=0)
    if method == "remfile":
        import remfile

        return lambda name: remfile.File(f"{os.environ['WEB']}/bucket/{name}")
    if method == "s3fs":
        import s3fs

        store = s3fs.S3FileSystem(endpoint_url=os.environ["EP"],
                                  config_kwargs={"s3": {"addressing_style": "path"}})
        return lambda name: store.open(f"bucket/{name}", "rb", cache_type="blockcache",
                                       block_size=4 << 20)
    import fsspec

    web = fsspec.filesystem("http")
    return lambda name: web.open(f"{os.environ['WEB']}/bucket/{name}", cache_type="blockcache",
                                 block_size=4 << 20)


def of_kerchunk(name):
    import xarray

    with open(os.path.join(os.environ["INDEX"], name)) as file:
        index = json.loads(file.read().replace('"URL/', f'"{os.environ["WEB"]}/bucket/'))
    options = {"fo": index, "remote_protocol": "http", "asynchronous": True,
               "remote_options": {"asynchronous": True}}
    return xarray.open_dataset("reference://", engine="zarr", chunks={}, backend_kwargs={
        "consolidated": False, "storage_options": options})


def mean(method):
    import xarray

    if method == "kerchunk":
        return lambda: float(of_kerchunk("field.json")["u"].mean(dtype="f8"))
    if method == "tree":
        def store():
            return xarray.open_zarr(os.path.join(os.environ["MNT"], ".h5fs/file.zarr"))
    else:
        file = opened(method)

        def store():
            return xarray.open_dataset(file("field.nc"), engine="h5netcdf", chunks={})
    return lambda: float(store()["u"].mean(dtype="f8"))


def runs(method):
    names = [f"run_{number:04}.h5" for number in np.random.default_rng(3).permutation(RUNS)[:ASKED]]
    if method == "tree":
        def value(name):
            data = np.frombuffer(pathlib.Path(os.environ["MNT"], name, "x").read_bytes(), "<i4")
            return int(data.sum(dtype="i8"))
    else:
        import h5py

        file = opened(method)

        def value(name):
            with h5py.File(file(f"runs/{name}"), "r") as one:
                return int(one["x"][:].sum(dtype="i8"))

    def act():
        with ThreadPoolExecutor(16) as readers:
            return sum(readers.map(value, names))

    return act


def table(method):
    if method == "tree":
        import duckdb

        path = os.path.join(os.environ["MNT"], ".h5fs/parquet/t.parquet")
        query = f"SELECT sum(a), max(b) FROM read_parquet('{path}') WHERE b > a"
        return lambda: list(duckdb.sql(query).fetchall()[0])
    import h5py

    file = opened(method)

    def act():
        with h5py.File(file("table.h5"), "r") as one:
            a, b = one["t/a"][:], one["t/b"][:]
        return [float(a[b > a].sum()), float(b[b > a].max())]

    return act


def fifty(method):
    names = [f"d{number:02}" for number in range(50)]
    if method == "tree":
        def one(name):
            data = np.frombuffer(pathlib.Path(os.environ["MNT"], name).read_bytes(), "<i4")
            return int(data.sum(dtype="i8"))

        return lambda: sum(map(one, names))
    import h5py

    file = opened(method)

    def act():
        with h5py.File(file("fifty.h5"), "r") as far:
            return sum(int(far[name][:].sum(dtype="i8")) for name in names)

    return act


def point(method):
    import xarray

    if method in ("tree", "kerchunk"):
        def store():
            if method == "kerchunk":
                return of_kerchunk("days.json")
            return xarray.open_zarr(os.path.join(os.environ["MNT"], ".h5fs/joined.zarr"))

        return lambda: float(store()["t"][(slice(None), *PLACE)].sum(dtype="f8"))
    import h5py

    file = opened(method)

    def value(number):
        with h5py.File(file(f"days/{day(number)}"), "r") as one:
            return float(one["t"][(0, *PLACE)])

    def act():
        with ThreadPoolExecutor(16) as readers:
            return sum(readers.map(value, range(DAYS)))

    return act


def main():
    method, task = sys.argv[1:]
    if method == "make":
        return make(task)
    tasks = {"mean": mean, "runs": runs, "table": table, "fifty": fifty, "point": point}
    act = tasks[task](method)
    # The modules are already imported in a program that has opened a file before.
    for module in ["h5py", "dask.array", "h5netcdf", "zarr"] if task in ("mean", "point") else []:
        __import__(module)
    began = time.perf_counter()
    result = act()
    print(json.dumps({"s": time.perf_counter() - began, "r": result}), flush=True)
    os._exit(0)


main()
