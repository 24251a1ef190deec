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
