"""SQL queries of a table: of the file in the mount, or of a file that is written first."""

import os
import tempfile
from time import perf_counter

import h5py


def mean(path):
    import duckdb

    return duckdb.sql(
        f"select avg(column0), count(*) from read_csv('{path}', header = false) where column0 > 0"
    ).fetchall()


def seconds(path):
    """Returns the seconds of the query, without the import."""
    import duckdb  # noqa: F401

    began = perf_counter()
    mean(path)
    return perf_counter() - began


def selected(path):
    """Returns the seconds of a query of two of eight columns of a Parquet file, without the import.
    """
    import duckdb

    began = perf_counter()
    sql = f"select avg(x), count(*) from '{path}' where y > 0.5"
    duckdb.sql(sql).fetchall()
    return perf_counter() - began


def chosen(file, name):
    """Does the same query in pandas, on the data that h5py reads."""
    import pandas

    if isinstance(file[name], h5py.Dataset):
        frame = pandas.DataFrame(file[name][:])
    else:
        frame = pandas.DataFrame({column: file[name][column][:] for column in "xy"})
    x = frame.x[frame.y > 0.5]
    return x.mean(), len(x)


def framed(source, name):
    """Returns the seconds of the query in pandas."""
    import pandas  # noqa: F401

    with h5py.File(source) as f:
        began = perf_counter()
        chosen(f, name)
        return perf_counter() - began


def same(source, name, path):
    """Compares both results."""
    import duckdb

    sql = f"select avg(x), count(*) from '{path}' where y > 0.5"
    ((mean, count),) = duckdb.sql(sql).fetchall()
    with h5py.File(source) as f:
        wanted, rows = chosen(f, name)
    if count != rows or abs(mean - wanted) > 1e-9:
        raise ValueError(f"{path}: {mean, count}, not {wanted, rows}")


def converted(source):
    """Returns the seconds in which pandas writes the table and DuckDB queries it."""
    import duckdb  # noqa: F401
    import pandas

    with tempfile.TemporaryDirectory() as directory, h5py.File(source) as f:
        path = os.path.join(directory, "d.csv")
        began = perf_counter()
        pandas.DataFrame({"d": f["d"][()]}).to_csv(path, index=False, header=False)
        mean(path)
        return perf_counter() - began
