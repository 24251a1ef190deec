"""A table as the format's own library reads it, and the comparison with a tool."""

import datetime
import json
import math
import sys
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Column:
    """A column of a table. `kind` is integer, real, boolean, text, list, time, or mixed. A missing
    value is None. `meaning` is the kind of a text for a tool that reads all fields as text. A
    `padded` number has zeros that do not change its value."""

    name: str | None
    kind: str
    values: list
    meaning: str = ""
    precision: type = np.float64
    tolerance: float = 0.0
    padded: bool = False

    def stands_for(self):
        return self.meaning or self.kind

    def as_text(self):
        return replace(self, kind="text", meaning=self.stands_for())


@dataclass(frozen=True)
class Table:
    """A file in `.h5fs` and its expected content. The columns of an array have no names, because
    its CSV lacks a header line. `lines` is the number of lines that are compared in a large file.
    `is_frame` says that the library is pandas, where NaN is a missing value."""

    view: str
    columns: list[Column]
    lines: int = 0
    is_frame: bool = False

    def has_header(self):
        return self.columns[0].name is not None


@dataclass(frozen=True)
class Rule:
    """A tool's behaviour with any file, in one sentence. `applies` selects the columns, and
    `becomes` converts them."""

    note: str
    applies: object
    becomes: object


def under(rules, columns):
    """Returns the columns as a tool with these rules reads them, and the notes of the rules that
    applied."""
    notes = []
    for rule in rules:
        if any(map(rule.applies, columns)):
            notes.append(rule.note)
        columns = [rule.becomes(c) if rule.applies(c) else c for c in columns]
    return columns, notes


# ---------------------------------------------------------------- comparison

READ = {
    "integer": int,
    "real": float,
    "boolean": {"true": True, "false": False}.__getitem__,
    "list": json.loads,
    "text": str,
    "time": datetime.datetime.fromisoformat,
}


def difference(expected, read):
    """Returns the difference, or None."""
    if len(expected) != len(read):
        return f"{len(read)} columns, not {len(expected)}: {[c.name for c in read]}"
    for wanted, got in zip(expected, read):
        if wanted.name is not None and got.name != wanted.name:
            return f"column {got.name!r}, not {wanted.name!r}"
        if got.kind != wanted.kind and any(v is not None for v in wanted.values):
            return f"column {wanted.name!r} is {got.kind}, not {wanted.kind}: {got.values[:4]}"
        if len(got.values) != len(wanted.values):
            return f"column {wanted.name!r}: {len(got.values)} rows, not {len(wanted.values)}"
        for row, values in enumerate(zip(wanted.values, got.values)):
            if not same(wanted, *values):
                return f"column {wanted.name!r}, row {row}: {values[1]!r}, not {values[0]!r}"
    return None


def same(column, wanted, got):
    if wanted is None or got is None:
        return wanted is got
    meaning = column.stands_for()
    if isinstance(wanted, str) and wanted == "":
        return got == ""
    if isinstance(got, str) and meaning != "text":
        if got != got.strip():
            return False
        try:
            got = READ[meaning](got)
        except (ValueError, KeyError):
            return False
    if meaning == "real":
        return same_number(column, wanted, got)
    if meaning == "boolean":
        return bool(wanted) is got
    return wanted == got


def same_number(column, wanted, got):
    if math.isnan(wanted) or math.isnan(got):
        return math.isnan(wanted) and math.isnan(got)
    with np.errstate(over="ignore"):
        if column.precision(wanted).tobytes() == column.precision(got).tobytes():
            return True
    # a reader that rounds also rounds subnormal numbers to 0
    least = sys.float_info.min if column.tolerance else 0.0
    return math.isclose(wanted, got, rel_tol=column.tolerance, abs_tol=least)
