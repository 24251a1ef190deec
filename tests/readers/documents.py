"""Compares the JSON, text and .npy files of an HDF5 fixture with what h5py reads. Each function
yields rows of (view, tool, difference or None)."""

import json
import math
import os
import subprocess

import duckdb
import h5py
import numpy as np
import pandas
import polars
from tools import said, kind_of
from table import Column, difference
from kit import plain

# ---------------------------------------------------------------- JSON


def no_constant(word):
    raise ValueError(f"{word} is no JSON")


def no_twin(pairs):
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError(f"a name stands twice: {[name for name, _ in pairs]}")
    return made


def strict(text):
    return json.loads(text, parse_constant=no_constant, object_pairs_hook=no_twin)


def whole(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def agree(read, dtype, value, file, exact):
    """Asserts that a JSON value equals the value of the dataset."""
    if isinstance(value, np.ndarray) and value.ndim:
        assert isinstance(read, list) and len(read) == len(value), (read, value)
        for one, other in zip(read, value):
            agree(one, of_elements(dtype, value), other, file, exact)
    elif dtype.names:
        assert list(read) == list(dtype.names), (read, dtype)
        for name in dtype.names:
            agree(read[name], dtype[name], value[name], file, exact)
    else:
        wanted = scalar(dtype, value, file)
        assert same(read, wanted, exact), (read, wanted)


def of_elements(dtype, value):
    """Returns the type of an array's elements. The elements of an array of sequences are sequences
    themselves."""
    inner = h5py.check_vlen_dtype(dtype)
    if isinstance(inner, np.dtype):
        return dtype if value.dtype == object else inner
    return dtype.base


def scalar(dtype, value, file):
    if labels := h5py.check_enum_dtype(dtype):
        return {number: label for label, number in labels.items()}[int(value)]
    if h5py.check_ref_dtype(dtype):
        return file[value].name if value else None
    if dtype.kind == "c":
        return {"r": value.real, "i": value.imag}
    return value


def same(read, wanted, exact):
    if isinstance(wanted, dict):
        return list(read) == list(wanted) and all(same(read[n], wanted[n], exact) for n in wanted)
    if isinstance(wanted, (bytes, str)):
        return read == plain(wanted)
    if isinstance(wanted, (bool, np.bool_)):
        return read is bool(wanted)
    if isinstance(wanted, (float, np.floating)):
        if math.isnan(wanted):
            return read is None
        if math.isinf(wanted):
            return read == ("inf" if wanted > 0 else "-inf")
        near = math.isclose(read, wanted, rel_tol=0 if exact else 1e-15, abs_tol=0)
        return type(wanted)(read).tobytes() == wanted.tobytes() or near
    if isinstance(read, str):
        return int(read, 16) == wanted  # a bit field is hexadecimal in JSON and an integer in h5py
    return type(read) is int and read == wanted or not exact and math.isclose(read, wanted)


JSON_READERS = {
    "Python json": lambda path: (strict(whole(path)), True),
    "jq": lambda path: (strict(said("jq", "-c", ".", path)), False),
}


def json_rows(file, views):
    for name, dataset in datasets(file):
        path = os.path.join(views, "json", escaped(name, ".json"))
        value = None if dataset.shape is None else dataset[()]
        for tool, reader in JSON_READERS.items():
            yield "json", tool, failure(json_agrees, reader, path, dataset, value, file)


def json_agrees(reader, path, dataset, value, file):
    read, exact = reader(path)
    if value is None:
        assert read is None, read
        return
    dtype = dataset.dtype
    if "PYTABLES_FORMAT_VERSION" in file.attrs:
        dtype = with_booleans(dtype, dataset.id.get_type())
        value = value.view(dtype) if dtype != dataset.dtype else value
    agree(read, dtype, value, file, exact)


def with_booleans(dtype, stored):
    """Replaces PyTables' booleans by a boolean type. h5py reads these one-byte bit fields as
    integers."""
    if stored.get_class() == h5py.h5t.BITFIELD and dtype.itemsize == 1:
        return np.dtype(bool)
    if stored.get_class() == h5py.h5t.ARRAY:
        base, shape = dtype.subdtype
        return np.dtype((with_booleans(base, stored.get_super()), shape))
    if dtype.names:
        numbered = enumerate(dtype.names)
        formats = [with_booleans(dtype[name], stored.get_member_type(n)) for n, name in numbered]
        offsets = [dtype.fields[name][1] for name in dtype.names]
        how = {"names": dtype.names, "formats": formats, "offsets": offsets}
        return np.dtype({**how, "itemsize": dtype.itemsize})
    return dtype


# ---------------------------------------------------------------- a table as JSON


def frame_columns(names, lists):
    for name, values in zip(names, lists):
        values = [None if isinstance(v, float) and math.isnan(v) else v for v in values]
        yield Column(name, kind_of(values), values)


def pandas_json(path):
    frame = pandas.read_json(path)
    return frame_columns(frame.columns, [frame[name].tolist() for name in frame])


def polars_json(path):
    frame = polars.read_json(path)
    return frame_columns(frame.columns, [part.to_list() for part in frame])


def duckdb_json(path):
    read = duckdb.sql(f"SELECT * FROM '{path}'")
    return frame_columns(read.columns, zip(*read.fetchall()))


def miller_json(path):
    rows = json.loads(said("mlr", "--json", "cat", path))
    return frame_columns(rows[0], [[row[name] for row in rows] for name in rows[0]])


TABLE_READERS = {
    "pandas": pandas_json, "polars": polars_json, "DuckDB": duckdb_json, "Miller": miller_json,
}  # fmt: skip


def table_rows(tables, views):
    """Yields compound datasets with numbers, booleans and strings as fields, read as lists of
    objects."""
    for table in tables:
        for tool, reader in TABLE_READERS.items():
            yield (
                "json",
                tool,
                failure(table_agrees, reader, os.path.join(views, as_json(table)), table),
            )


def as_json(table):
    return table.view.replace("csv/", "json/").replace(".csv", ".json")


def table_agrees(reader, path, table):
    wrong = difference(table.columns, list(reader(path)))
    assert wrong is None, wrong


# ---------------------------------------------------------------- text


def strings(dataset):
    """Returns the strings of a dataset of strings, or of characters along its last axis. Returns
    None for other datasets."""
    if dataset.shape is None or not h5py.check_string_dtype(dataset.dtype):
        return None
    if dataset.dtype == "S1" and dataset.ndim:
        rows = dataset[()].reshape(-1, dataset.shape[-1])
        return [b"".join(row).decode() for row in rows]
    return [plain(value) for value in np.ravel(dataset[()])]


def text_rows(file, views):
    for name, dataset in datasets(file):
        if (wanted := strings(dataset)) is None:
            continue
        path = os.path.join(views, "text", escaped(name, ".txt"))
        text = "".join(line + "\n" for line in wanted)
        lines = text.count("\n")
        yield "text", "Python", failure(equal, lambda: whole(path), text)
        yield "text", "wc", failure(equal, lambda: int(said("wc", "-l", path).split()[0]), lines)
        yield (
            "text",
            "awk",
            failure(equal, lambda: int(said("awk", "END { print NR }", path)), lines),
        )
        count = "cat(length(readLines(commandArgs(TRUE)[1])))"
        if "\r" not in text:
            yield (
                "text",
                "R",
                failure(equal, lambda: int(said("Rscript", "--vanilla", "-e", count, path)), lines),
            )


def equal(read, wanted):
    got = read()
    assert got == wanted, (got[:200], wanted[:200]) if isinstance(got, str) else (got, wanted)


# ---------------------------------------------------------------- .npy


def npy_rows(file, views):
    for name, dataset in datasets(file):
        path = os.path.join(views, "npy", escaped(name, ".npy"))
        if dataset.shape is None or not os.path.exists(path):
            continue
        yield "npy", "NumPy", failure(array_agrees, np.load, path, dataset)
        if dataset.size:
            yield (
                "npy",
                "NumPy",
                failure(array_agrees, lambda p: np.load(p, mmap_mode="r"), path, dataset),
            )


def array_agrees(load, path, dataset):
    read, wanted = load(path), dataset[()]
    assert read.shape == wanted.shape, (read.shape, wanted.shape)
    assert read.dtype == wanted.dtype, (read.dtype, wanted.dtype)
    assert read.tobytes() == wanted.tobytes(), "other bytes"


# ---------------------------------------------------------------- the description of the file


def tree_rows(views):
    path = os.path.join(views, "tree.json")
    yield "tree.json", "Python json", failure(lambda: strict(whole(path)))
    yield "tree.json", "jq", failure(lambda: said("jq", "-e", "keys", path))


# ---------------------------------------------------------------- all views


def datasets(file):
    found = []
    file.visititems(
        lambda name, made: found.append((name, made)) if isinstance(made, h5py.Dataset) else None
    )
    return found


def escaped(name, suffix):
    """Returns the path in a tree whose files have a suffix. The name of a group that ends with the
    suffix is escaped."""
    *groups, last = name.split("/")
    groups = [g[: -len(suffix)] + "%2E" + suffix[1:] if g.endswith(suffix) else g for g in groups]
    return "/".join([*groups, last + suffix])


def failure(check, *arguments):
    try:
        check(*arguments)
    except subprocess.CalledProcessError as error:
        return f"{error.cmd[0]}: {error.stderr.strip()}"[:300]
    except AssertionError as error:
        return str(error)[:300]
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return None
