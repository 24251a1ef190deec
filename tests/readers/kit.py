"""Fixtures: files that a library writes, with the tables that the library reads from them."""

from dataclasses import dataclass

import h5py
import numpy as np
from table import Column, Table

FIXTURES = []


@dataclass
class Fixture:
    """`write` creates the file `path`. `tables` reads its tables with its library. `others`
    compares further views of the convention: it takes the file and the directory of its views, and
    yields rows of (view, tool, difference or None)."""

    file: str
    write: object
    tables: object = lambda path: []
    others: object = lambda path, views: []
    is_large: bool = False


def part_of(made, part):
    def register(read):
        setattr(made, part, read)
        return read

    return register


def fixture(file, is_large=False):
    """Registers a writer `f(path)`. `@WRITER.tables` and `@WRITER.others` register the other
    functions. For a large file, only the tables are compared."""

    def register(write):
        made = Fixture(file, write, is_large=is_large)
        FIXTURES.append(made)
        for part in ("tables", "others"):
            setattr(write, part, part_of(made, part))
        return write

    return register


# ---------------------------------------------------------------- values as Python has them


def plain(value):
    """Converts a NumPy value to a Python value that prints the same."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray):
        return [plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


KINDS = {"i": "integer", "u": "integer", "f": "real", "b": "boolean", "S": "text", "O": "text"}


def simple(name, values):
    """Returns the column of a NumPy array of numbers or strings."""
    kind = KINDS[values.dtype.kind]
    precision = values.dtype.type if kind == "real" else np.float64
    return Column(name, kind, [plain(value) for value in values], precision=precision)


def columns(name, dtype, values, file):
    """Yields the columns of one part of an HDF5 dataset: of its fields, of the elements of its
    arrays, and of the two parts of its complex numbers."""
    dot = name + "." if name else ""
    if dtype.names:
        for part in dtype.names:
            yield from columns(dot + part, dtype[part], values[part], file)
    elif values.ndim > 1:
        for place in np.ndindex(values.shape[1:]):
            index = "".join(f"[{i}]" for i in place)
            yield from columns(name + index, dtype.base, values[(slice(None), *place)], file)
    elif dtype.kind == "c":
        yield simple(dot + "r", values.real)
        yield simple(dot + "i", values.imag)
    elif labels := h5py.check_enum_dtype(dtype):
        texts = {number: label for label, number in labels.items()}
        yield Column(name, "text", [texts[value] for value in values.tolist()])
    elif h5py.check_vlen_dtype(dtype) and not h5py.check_string_dtype(dtype):
        yield Column(name, "list", [plain(value) for value in values])
    elif h5py.check_ref_dtype(dtype):
        yield Column(name, "text", [file[reference].name for reference in values])
    else:
        yield simple(name, values)


def csv(name):
    """Returns the path of a table's CSV view in `.h5fs`."""
    return f"csv/{name}.csv"


def compound_table(file, path):
    dataset = file[path]
    values = dataset[()]
    return Table(csv(path), list(columns("", dataset.dtype, values, file)))


def array_table(file, path):
    """Returns a table with a row for each element, or for each vector along the last axis. Its
    columns have no names."""
    values = file[path][()]
    flat = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values.reshape(-1, 1)
    return Table(csv(path), [simple(None, part) for part in flat.T])
