"""A file that `h5fs serve` serves, read by HTTP clients. Their results must equal what h5py reads
from the file itself. Each reader yields (view, tool, difference or None)."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import urllib.parse

import h5py
import numpy as np
import pyarrow.parquet
import xarray
import zarr

GRID = "run/temperature"


def write(path):
    axis = np.arange(300_000)
    with h5py.File(path, "w") as file:
        shape, chunks = (40, 300, 50), (10, 100, 50)
        grid = np.sin(np.arange(np.prod(shape))).astype("f4").reshape(shape)
        made = file.create_dataset(GRID, data=grid, chunks=chunks, compression="gzip", shuffle=True)
        for number, name in enumerate(("time", "lat", "lon")):
            file[f"run/{name}"] = np.arange(shape[number], dtype="f8")
            file[f"run/{name}"].make_scale(name)
            made.dims[number].attach_scale(file[f"run/{name}"])
        sparse = file.create_dataset("sparse", (64, 64), "i2", chunks=(8, 8), fillvalue=-7)
        sparse[8:16, 8:16] = 3
        kind = [("number", "<i8"), ("value", "<f8")]
        table = np.rec.fromarrays([axis, np.sqrt(axis)], dtype=kind)
        file.create_dataset("table", data=table, chunks=(10_000,), compression="gzip")


@contextlib.contextmanager
def server(binary, path):
    """Starts a server. Yields its URL, which ends with a slash, and the header that authorizes a
    client. Some programs cannot resolve names below localhost, so the URL contains the address."""
    process = subprocess.Popen([binary, "serve", path], stdout=subprocess.PIPE, text=True)
    try:
        url, _, token = process.stdout.readline().strip().partition("?token=")
        assert token, "no server"
        port = urllib.parse.urlsplit(url).port
        yield f"http://127.0.0.1:{port}/", {"Authorization": f"Bearer {token}"}
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0


def array(content):
    return np.load(io.BytesIO(content))


def command(words, **how):
    return subprocess.run(words, check=True, capture_output=True, **how).stdout


def field(fields):
    return [f"{name}: {text}" for name, text in fields.items()]


def by_curl(url, fields, directory):
    words = ["curl", "-sSf", "-H", *field(fields), f"{url}.h5fs/npy/{GRID}.npy"]
    return array(command(words))


def by_curl_in_parts(url, fields, directory):
    words = ["curl", "-sSf", "-H", *field(fields), f"{url}.h5fs/npy/{GRID}.npy"]
    path = os.path.join(directory, "parts.npy")
    command([*words, "-r", "0-99999", "-o", path])
    command([*words, "-C", "-", "-o", path])
    return np.load(path)


def by_wget(url, fields, directory):
    path = os.path.join(directory, "wget.npy")
    header = f"--header={field(fields)[0]}"
    command(["wget", "-q", header, "-O", path, f"{url}.h5fs/npy/{GRID}.npy"])
    return np.load(path)


def opened(url, fields, view):
    import fsspec

    files = fsspec.filesystem("http", client_kwargs={"headers": fields})
    return files.open(f"{url}.h5fs/{view}", block_size=1 << 16)


def by_fsspec(url, fields, directory):
    with opened(url, fields, f"npy/{GRID}.npy") as file:
        return array(file.read())


def by_zarr(url, fields, directory):
    how = {"client_kwargs": {"headers": fields}}
    store = zarr.storage.FsspecStore.from_url(f"{url}.h5fs/file.zarr", storage_options=how)
    group = zarr.open_group(store, mode="r")
    # A chunk that the file does not contain is 404, and reads as the fill value.
    assert int(group["sparse"][...].sum()) == 64 * 3 - (64 * 64 - 64) * 7
    return group[GRID][...]


def by_xarray(url, fields, directory):
    how = {"storage_options": {"headers": fields}}
    return xarray.open_zarr(f"{url}.h5fs/file.zarr", group="run", **how).temperature.values


def by_gdal(url, fields, directory):
    import rasterio

    how = {"GDAL_HTTP_HEADERS": field(fields)[0], "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR"}
    place = f"/vsicurl/{url}.h5fs/tiff/{GRID}.tif"
    with rasterio.Env(**how), rasterio.open(place) as first:
        # Sorted by their numbers rather than as texts.
        pages = sorted(first.subdatasets, key=lambda page: int(page.split(":")[1]))
    with rasterio.Env(**how):
        return np.stack([rasterio.open(page).read(1) for page in pages])


READERS = {
    "curl": by_curl,
    "curl -C": by_curl_in_parts,
    "wget": by_wget,
    "fsspec": by_fsspec,
    "zarr-python": by_zarr,
    "xarray": by_xarray,
    "GDAL": by_gdal,
}


def by_pyarrow(url, fields, table):
    with opened(url, fields, "parquet/table.parquet") as file:
        read = pyarrow.parquet.read_table(file)
    for name in table.dtype.names:
        assert np.array_equal(read[name].to_numpy(), table[name]), name


def by_node(url, fields, modules, directory, grid, table):
    """Reads with zarrita and hyparquet, and the computed HDF5 file with jsfive and h5wasm."""
    with open(os.path.join(os.path.dirname(__file__), "served.mjs")) as script:
        words = ["node", "--input-type=module", "-", url, fields["Authorization"], directory]
        read = json.loads(command(words, cwd=modules, stdin=script))
    for tool, key in (("zarrita", "grid"), ("jsfive", "jsfive"), ("h5wasm", "h5wasm")):
        values = np.array(read[key], "f4").reshape(read["shape"])
        assert np.array_equal(values, grid), f"{tool}: other values"
    assert read["sparse"] == 64 * 3 - (64 * 64 - 64) * 7, "zarrita: other fill values"
    expected = [list(row) for row in table[123456:123460].tolist()]
    assert read["rows"] == expected, "hyparquet: other rows"


def rows(binary, directory):
    from documents import failure

    path = os.path.join(directory, "served.h5")
    write(path)
    with h5py.File(path) as file:
        expected, table = file[GRID][...], file["table"][...]

    def agrees(read, *arguments):
        assert np.array_equal(read(*arguments), expected), "other values"

    with server(binary, path) as (url, fields):
        for tool, read in READERS.items():
            if tool.split()[0] not in ("curl", "wget") or shutil.which(tool.split()[0]):
                yield "http", tool, failure(agrees, read, url, fields, directory)
        yield "http", "pyarrow", failure(by_pyarrow, url, fields, table)
        modules = os.environ.get("H5FS_NODE_MODULES", "")
        if os.path.isdir(modules) and shutil.which("node"):
            how = (url, fields, os.path.dirname(modules), directory, expected, table)
            yield "http", "zarrita, hyparquet, jsfive, h5wasm", failure(by_node, *how)
