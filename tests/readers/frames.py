"""Frames that pandas' HDFStore stores in each format, and their text from `reset_index().to_csv()`.

frames.py write FILE; frames.py check FILE MOUNTPOINT: runs with any version of pandas. The readers
call it for other versions than their own."""

import csv
import io
import os
import sys
import warnings

import numpy as np
import pandas

DAYS = ["2024-02-28", "2024-02-29"]
NOONS = [f"{day}T12:00:00" for day in DAYS]


def named():
    """Yields frames and series, by name, that both formats support."""
    days, noons = pandas.to_datetime(DAYS), pandas.to_datetime(NOONS)
    lengths = pandas.to_timedelta([36, 60], "h")
    numbers = np.arange(4.0).reshape(2, 2)
    index = pandas.MultiIndex.from_product(
        [noons, lengths, ["n", "s"]], names=["when", None, "side"]
    )
    texts = ["a", None, "N.", "nan", ""]
    if pandas.__version__ < "3.1":
        texts[3] = "none"  # earlier versions read "nan" as a missing text
    yield "texts", pandas.DataFrame({"t": texts, "u": ["N.", "b", "c", "d", "e"]})
    yield "levels", pandas.DataFrame({"w": np.arange(8)}, index=index)
    yield "series_of_levels", pandas.Series(np.arange(8), index=index, name="w")
    for length in ("Y", "Q", "M", "W", "W-WED", "D", "h", "min", "s"):
        periods = pandas.period_range("2024-01-30", periods=2, freq=length)
        yield f"periods_{length.replace('-', '_')}", pandas.DataFrame({"p": [1, 2]}, index=periods)
    for name, columns in (
        ("days", days), ("noons", noons), ("lengths", pandas.to_timedelta([1, 2], "D")),
        ("months", pandas.period_range("2024-01", periods=2, freq="M")), ("halves", [0.5, 2.0]),
        ("numbers", [5, 7]),
    ):  # fmt: skip
        yield f"columns_of_{name}", pandas.DataFrame(numbers, columns=columns)
    yield "columns_index", pandas.DataFrame({"index": [1, 2], "x": [0.5, 1.5]})
    yield "times", pandas.DataFrame({"at": noons, "long": lengths}, index=days)
    yield "flags", pandas.DataFrame({"a": [1, 2]}, index=[True, False])


def fixed():
    """Yields series that only the format `fixed` supports."""
    yield "series_seven", pandas.Series([1.5, 2.5], name=7)
    yield "series_day", pandas.Series([1.5, 2.5], name=pandas.Timestamp(DAYS[0]))


def tables():
    """Yields frames that only the format `table` supports."""
    days, lengths = pandas.to_datetime([*DAYS, None]), pandas.to_timedelta([36, 60, 36], "h")
    yield "categories", pandas.DataFrame({
        "day": pandas.Categorical(days), "length": pandas.Categorical(lengths),
        "half": pandas.Categorical([0.5, 1.5, 0.5]), "text": pandas.Categorical(["a", None, "b"]),
    })  # fmt: skip


def write(path):
    warnings.simplefilter("ignore")
    with pandas.HDFStore(path, "w") as store:
        for format, own in (("fixed", fixed()), ("table", tables())):
            for name, frame in [*named(), *own]:
                store.put(f"{format}_{name}", frame, format=format)
        many = pandas.DataFrame(np.zeros((2, 1000)), columns=[f"c{n}" for n in range(1000)])
        store.put("many", many, format="table", data_columns=True)


def rows(text):
    return list(csv.reader(io.StringIO(text), strict=True))


def expected(frame):
    """Returns the rows of the file that pandas writes."""
    if isinstance(frame, pandas.Series):
        frame = frame.to_frame()
    # The names of columns that are times depend on the frame having no other columns.
    (names,) = rows(frame.head(0).to_csv(index=False))
    made = rows(frame.reset_index().to_csv(index=False))
    made[0][frame.index.nlevels :] = names
    return made


def agrees(cell, value):
    """Returns whether a cell equals pandas' value. Timestamps are in ISO 8601 with a time."""
    if value in ("True", "False"):
        return cell == value.lower()
    if cell[10:11] == "T":
        return pandas.Timestamp(cell) == pandas.Timestamp(value)
    if " days " in cell:
        return pandas.Timedelta(cell) == pandas.Timedelta(value)
    return cell == value


def check(path, mountpoint):
    with pandas.HDFStore(path, "r") as store:
        keys = [key.removeprefix("/") for key in store.keys() if not key.endswith("/meta")]
        assert len(keys) > 40, keys
        for key in keys:
            with open(os.path.join(mountpoint, f".h5fs/csv/{key}.csv"), newline="") as file:
                found = rows(file.read())
            wanted = expected(store[key])
            assert found[0] == wanted[0] and len(found) == len(wanted), (key, found[0], wanted[0])
            for row, values in zip(found, wanted):
                wrong = [pair for pair in zip(row, values) if not agrees(*pair)]
                assert len(row) == len(values) and not wrong, (key, wrong)


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
