"""Parquet views, read by common programs and libraries, and compared with the columns that the
format's own library reads."""

import json
import os
import shutil

import datafusion
import duckdb
import numpy as np
import pandas
import polars
import pyarrow.parquet
from table import same_number

try:
    import pyspark.sql
except ImportError:
    pyspark = None

ROWS = 20_000
"""Of larger tables, so many rows are looked at."""


def of_pandas(path):
    frame = pandas.read_parquet(path, dtype_backend="pyarrow")
    return pyarrow.Table.from_pandas(frame, preserve_index=False)


def of_datafusion(path):
    # With one partition, the rows keep their order.
    config = datafusion.SessionConfig().with_target_partitions(1)
    context = datafusion.SessionContext(config)
    return context.read_parquet(path).to_arrow_table()


def of_duckdb(path):
    return duckdb.read_parquet(path).to_arrow_table()


def of_spark(path):
    session = pyspark.sql.SparkSession.builder.master("local[1]")
    # Spark has no type for nanoseconds.
    session = session.config("spark.sql.legacy.parquet.nanosAsLong", "true")
    return session.getOrCreate().read.parquet(path).toArrow()


ENGINES = {
    "pyarrow": pyarrow.parquet.read_table,
    "pandas": of_pandas,
    "polars": lambda path: polars.read_parquet(path).to_arrow(),
    "polars, streaming": lambda path: (
        polars.scan_parquet(path).collect(engine="streaming").to_arrow()
    ),
    "DuckDB": of_duckdb,
    "DataFusion": of_datafusion,
}
if pyspark and shutil.which("java"):
    ENGINES["Spark"] = of_spark
else:
    print("not run: Spark (it needs pyspark and java)")


def flat(name, values, wanted):
    """Yields a column, or the columns for the parts of its values, as in a CSV."""
    first = next((value for value in values if value is not None), None)
    if name in wanted or not isinstance(first, (dict, list)):
        yield name, values
    elif isinstance(first, dict):
        for key in first:
            inner = f"{name}.{key}" if name else key
            yield from flat(inner, [value[key] for value in values], wanted)
    else:
        for place in range(len(first)):
            yield from flat(f"{name}[{place}]", [value[place] for value in values], wanted)


def columns(table, wanted):
    found = {}
    for name, column in zip(table.column_names, table.columns):
        if pyarrow.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = column.cast(pyarrow.timestamp("us", column.type.tz), safe=False)
        values = column.slice(0, ROWS).to_pylist()
        if isinstance(values[:1], list) and values and isinstance(values[0], list):
            values = [value and [plain(part) for part in value] for value in values]
        found.update(flat(name, values, wanted))
    return found


def plain(value):
    return value.item() if isinstance(value, np.generic) else value


def is_same(column, wanted, got):
    if wanted is None or got is None:
        return wanted is got
    kind = column.stands_for()
    if kind == "real" and not isinstance(wanted, str):
        return isinstance(got, float) and same_number(column, wanted, got)
    if kind == "list" and isinstance(got, str):
        got = json.loads(got)
    if kind == "boolean":
        return got is bool(wanted)
    if kind == "time" and isinstance(got, int):
        # Spark reads nanoseconds as integers.
        return got == round(wanted.timestamp() * 1e6) * 1000 or wanted.tzinfo is None
    if kind == "time" and isinstance(got, str):
        # A time in a non-standard calendar.
        return str(wanted).replace(" ", "T") == got
    if kind == "time":
        return got.replace(tzinfo=None) == wanted.replace(tzinfo=None)
    return wanted == got


def difference(table, read):
    names = {column.name for column in table.columns if column.name is not None}
    found = columns(read, names)
    # As `DataFrame.to_parquet` writes it, and as the text of a variable shows it.
    is_nan_null = table.is_frame or table.view.startswith("cf/")
    if table.has_header():
        absent = names - found.keys()
        if absent:
            return f"without {sorted(absent)[:4]} among {list(found)[:8]}"
        pairs = [(column, found[column.name]) for column in table.columns]
    else:
        if len(found) != len(table.columns):
            return f"{len(found)} columns, not {len(table.columns)}"
        pairs = list(zip(table.columns, found.values()))
    for column, values in pairs:
        wanted = column.values[:ROWS]
        if is_nan_null:
            wanted = [None if isinstance(one, float) and np.isnan(one) else one for one in wanted]
        if len(values) < len(wanted):
            return f"column {column.name!r}: {len(values)} rows, not {len(wanted)}"
        for row, (one, other) in enumerate(zip(wanted, values)):
            if not is_same(column, one, other):
                return f"column {column.name!r}, row {row}: {other!r}, not {one!r}"
    return None


def view_of(table):
    """Returns the Parquet file of the data in a CSV."""
    tree, _, path = table.view.partition("/")
    tree = {"csv": "parquet"}.get(tree, tree)
    return f"{tree}/{path.removesuffix('.csv')}.parquet"


def rows(tables, views):
    """Yields the results for each engine and each Parquet file that corresponds to one of these CSV
    files."""
    for table in tables:
        view = view_of(table)
        path = os.path.join(views, view)
        if not table.view.endswith(".csv") or not (table.has_header() or os.path.exists(path)):
            continue
        for name, read in ENGINES.items():
            try:
                wrong = difference(table, read(path))
            except Exception as error:  # noqa: BLE001  (an engine may raise any error)
                wrong = f"{type(error).__name__}: {error}"[:300]
            yield view, name, wrong
