"""SQL on a table: on the file of the mount, or on one that is written beforehand."""

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
    """The seconds of the query, without those of the import."""
    import duckdb  # noqa: F401

    began = perf_counter()
    mean(path)
    return perf_counter() - began


def selected(path):
    """The seconds of a query of two columns of eight of a Parquet file, without the import."""
    import duckdb

    began = perf_counter()
    sql = f"select avg(x), count(*) from '{path}' where y > 0.5"
    duckdb.sql(sql).fetchall()
    return perf_counter() - began


def framed(source, name):
    """The seconds of the same query by pandas, of what h5py reads."""
    import pandas

    with h5py.File(source) as f:
        began = perf_counter()
        if isinstance(f[name], h5py.Dataset):
            frame = pandas.DataFrame(f[name][:])
        else:
            frame = pandas.DataFrame({column: f[name][column][:] for column in "xy"})
        chosen = frame.x[frame.y > 0.5]
        chosen.mean(), len(chosen)
        return perf_counter() - began


def converted(source):
    """The seconds in which pandas writes the table and DuckDB queries it."""
    import duckdb  # noqa: F401
    import pandas

    with tempfile.TemporaryDirectory() as directory, h5py.File(source) as f:
        path = os.path.join(directory, "d.csv")
        began = perf_counter()
        pandas.DataFrame({"d": f["d"][()]}).to_csv(path, index=False, header=False)
        mean(path)
        return perf_counter() - began
