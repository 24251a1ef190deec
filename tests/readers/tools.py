"""The tools that read CSV, without options, and the behaviour of each with any file.

An array's CSV has no header line. A tool that always takes the first line as a header gets an
option for this. It is the only option used here."""

import csv
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import duckdb
import numpy as np
import pandas
import polars
import rules
from table import Column, Table

SECONDS = 600
# csvkit's commands are in the directory of the interpreter
PATHS = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])


def said(*command):
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        timeout=SECONDS,
        env={**os.environ, "PATH": PATHS, "LC_ALL": "C.UTF-8"},
    ).stdout


@dataclass(frozen=True)
class Tool:
    """A tool. `read` takes a path and whether there is a header line, and returns columns. `suits`
    selects the tables that the tool can read. `headless` is the option for a file without a header.
    """

    name: str
    command: str
    release: Callable
    read: Callable
    rules: tuple
    headless: str = ""
    suits: Callable = lambda table: True


def column(kind, values, name=None):
    return Column(name, kind, values)


# ---------------------------------------------------------------- Python's libraries


def pandas_columns(path, header):
    frame = pandas.read_csv(path) if header else pandas.read_csv(path, header=None)
    kinds = {"i": "integer", "u": "integer", "f": "real", "b": "boolean"}
    for name in frame:
        read = [None if pandas.isna(value) else value for value in frame[name].tolist()]
        kind = kinds.get(frame[name].dtype.kind, "text")
        if kind == "text" and {type(value) for value in read if value is not None} == {bool}:
            kind = "boolean"
        yield column(kind, read, name)


def polars_kind(kind):
    if kind.is_temporal():
        return "time"
    if kind == polars.Boolean:
        return "boolean"
    return "integer" if kind.is_integer() else "real" if kind.is_float() else "text"


def polars_columns(path, header):
    frame = polars.read_csv(path) if header else polars.read_csv(path, has_header=False)
    for read in frame:
        yield column(polars_kind(read.dtype), read.to_list(), read.name)


def duckdb_kind(name):
    if "INT" in name:
        return "integer"
    if name.startswith(("TIMESTAMP", "DATE")):
        return "time"
    return {"DOUBLE": "real", "BOOLEAN": "boolean"}.get(name, "text")


def duckdb_columns(path, header):
    relation = duckdb.sql(f"SELECT * FROM '{path}'")
    rows = relation.fetchall()
    for place, (name, kind) in enumerate(zip(relation.columns, map(str, relation.types))):
        yield column(duckdb_kind(kind), [row[place] for row in rows], name)


def csv_columns(path, header):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, strict=True))
    names = rows.pop(0) if header else [None] * len(rows[0])
    assert all(len(row) == len(names) for row in rows), "rows of different lengths"
    for place, name in enumerate(names):
        yield column("text", [row[place] for row in rows], name)


def numpy_columns(path, header):
    read = np.loadtxt(path, delimiter=",", ndmin=2)
    for part in read.T:
        yield column("real", part.tolist())


# ---------------------------------------------------------------- commands


def sqlite_columns(path, header):
    rows = json.loads(
        said(
            "sqlite3",
            ":memory:",
            ".mode csv",
            f".import '{path}' t",
            ".mode json",
            "SELECT * FROM t",
        )
    )
    for name in rows[0]:
        yield column("text", [row[name] for row in rows], name)


def kind_of(read):
    """Returns the kind of a column for a tool with typed values but untyped columns."""
    types = {type(value) for value in read if value is not None and value != ""}
    if types <= {int}:
        return "integer"
    if types <= {int, float}:
        return "real"
    return "boolean" if types == {bool} else "text" if types == {str} else "mixed"


def flat(value, name=""):
    """Flattens nested objects, joining their names with dots. An empty list becomes the text `[]`.
    """
    if not isinstance(value, dict):
        return {name: "[]" if value == [] else value}
    dot = name + "." if name else ""
    return {key: one for part in value for key, one in flat(value[part], dot + part).items()}


def miller_columns(path, header):
    options = () if header else ("--implicit-csv-header",)
    rows = [
        flat(row) for row in json.loads(said("mlr", "--icsv", "--ojson", *options, "cat", path))
    ]
    for name in rows[0]:
        read = [row[name] for row in rows]
        yield column(kind_of(read), read, name)


def csvkit_columns(path, header):
    options = () if header else ("--no-header-row",)
    kinds = {"Number": "real", "Boolean": "boolean", "Date": "time", "DateTime": "time"}
    types = said("csvstat", "--type", *options, path).rstrip("\n")
    rows = json.loads(said("csvjson", *options, path))
    for name, line in zip(rows[0], re.split(r"\n(?= *\d+\. )", types), strict=True):
        kind = kinds.get(line.rpartition(": ")[2], "text")
        read = [row[name] for row in rows]
        if kind == "time":
            read = [value and datetime.datetime.fromisoformat(value) for value in read]
        yield column(kind, read, name)


R_PROGRAM = """
given <- commandArgs(TRUE)
table <- if (given[2] == "yes") read.csv(given[1]) else read.csv(given[1], header = FALSE)
hex <- function(text) paste(as.character(charToRaw(enc2utf8(text))), collapse = "")
for (name in names(table)) {
  value <- table[[name]]
  text <- if (is.character(value)) sapply(value, hex) else if (is.logical(value))
    ifelse(value, "true", "false") else sprintf("%.17g", value)
  text[is.na(value) & !is.nan(value)] <- "NA"
  cat(hex(name), class(value), text, "\\n")
}
"""


def r_columns(path, header):
    kinds = {"integer": "integer", "numeric": "real", "logical": "boolean", "character": "text"}
    # an empty text is an empty word here, so words are not split at runs of spaces
    for line in said(
        "Rscript", "--vanilla", "-e", R_PROGRAM, path, "yes" if header else "no"
    ).splitlines():
        name, kind, *words = line.removesuffix(" ").split(" ")
        kind = kinds[kind]
        convert = {
            "integer": int,
            "real": float,
            "boolean": "true".__eq__,
            "text": lambda word: bytes.fromhex(word).decode(),
        }[kind]
        yield column(
            kind,
            [None if word == "NA" else convert(word) for word in words],
            bytes.fromhex(name).decode(),
        )


AWK_PROGRAM = '{ for (i = 1; i <= NF; i++) printf "%.17g ", $i; print "" }'


def awk_columns(path, header):
    lines = said("awk", "-F,", ("NR > 1 " if header else "") + AWK_PROGRAM, path).splitlines()
    names = said("awk", "-F,", "NR == 1", path).rstrip("\n").split(",") if header else None
    rows = [list(map(float, line.split())) for line in lines]
    for place in range(len(rows[0])):
        yield column("real", [row[place] for row in rows], names[place] if names else None)


def plain_numbers(table):
    """Returns whether all fields are plain numbers. awk does not parse quotes."""
    return all(
        c.kind in ("integer", "real") and not any(map(rules.is_unbounded, c.values))
        for c in table.columns
    )


OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
CELLS = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"


def office_text(part):
    """Returns the text of a paragraph, in which runs of spaces and tabs are elements."""
    inner = "".join(map(office_text, part))
    if part.tag == TEXT + "s":
        inner = " " * int(part.get(TEXT + "c", 1))
    elif part.tag == TEXT + "tab":
        inner = "\t"
    own = part.text or "" if part.tag in (TEXT + "p", TEXT + "span", TEXT + "a") else ""
    return own + inner + (part.tail or "" if part.tag != TEXT + "p" else "")


def office_cell(cell):
    kind = cell.get(OFFICE + "value-type")
    if kind is None:
        return None
    if kind == "float":
        return float(cell.get(OFFICE + "value"))
    if kind == "boolean":
        return cell.get(OFFICE + "boolean-value") == "true"
    if kind == "date":
        return datetime.datetime.fromisoformat(cell.get(OFFICE + "date-value"))
    return "\n".join(map(office_text, cell.iter(TEXT + "p")))


def office_columns(path, header):
    with tempfile.TemporaryDirectory(prefix="h5fs-readers-") as directory:
        said(
            "soffice", f"-env:UserInstallation=file://{directory}/profile", "--headless",
            "--infilter=CSV:44,34,UTF8", "--convert-to", "fods", "--outdir", directory, path,
        )  # fmt: skip
        sheet = xml.parse(Path(directory, Path(path).stem + ".fods"))
    rows = []
    for row in sheet.iter(CELLS + "table-row"):
        cells = []
        for cell in row.iter(CELLS + "table-cell"):
            cells += [office_cell(cell)] * int(cell.get(CELLS + "number-columns-repeated", 1))
        rows += [cells] * int(row.get(CELLS + "number-rows-repeated", 1))
    width = max(len(row) for row in rows)
    names = rows.pop(0) if header else [None] * width
    for place, name in enumerate(names):
        read = [row[place] if place < len(row) else None for row in rows]
        types = {type(value) for value in read if value is not None}
        kinds = {float: "real", bool: "boolean", datetime.datetime: "time", str: "text"}
        yield column(kinds[types.pop()] if len(types) == 1 else "mixed", read, name)


# ---------------------------------------------------------------- the tools


def release(*command):
    return lambda: re.search(r"\d+(\.\d+)+", said(*command))[0]


def package(name):
    return lambda: version(name)


def numbers_without_names(table):
    return not table.has_header() and all(c.kind in ("integer", "real") for c in table.columns)


TOOLS = [
    Tool(
        "Python csv",
        "csv.reader(f, strict=True)",
        platform.python_version,
        csv_columns,
        rules=(rules.LISTS, rules.ALL_TEXT, rules.MISSING_IS_EMPTY),
    ),
    Tool(
        "pandas",
        "pandas.read_csv(path)",
        package("pandas"),
        pandas_columns,
        rules=rules.PANDAS,
        headless="needs `header=None` for an array",
    ),
    Tool(
        "polars",
        "polars.read_csv(path)",
        package("polars"),
        polars_columns,
        rules=(rules.LISTS, rules.TIMES_ARE_TEXT),
        headless="needs `has_header=False` for an array",
    ),
    Tool("DuckDB", "FROM 'path'", package("duckdb"), duckdb_columns, rules=rules.DUCKDB),
    Tool(
        "SQLite",
        ".mode csv, .import path t",
        release("sqlite3", "--version"),
        sqlite_columns,
        rules=(rules.LISTS, rules.ALL_TEXT, rules.MISSING_IS_EMPTY),
        suits=Table.has_header,
    ),
    Tool(
        "Miller",
        "mlr --icsv --ojson cat path",
        release("mlr", "--version"),
        miller_columns,
        rules=rules.MILLER,
        headless="needs `--implicit-csv-header` for an array",
    ),
    Tool(
        "csvkit",
        "csvjson path, csvstat --type path",
        package("csvkit"),
        csvkit_columns,
        rules=rules.CSVKIT,
        headless="needs `--no-header-row` for an array",
    ),
    Tool(
        "R",
        "read.csv(path)",
        release("R", "--version"),
        r_columns,
        rules=rules.R,
        headless="needs `header=FALSE` for an array",
    ),
    Tool(
        "LibreOffice",
        "soffice --infilter=CSV:44,34,UTF8 --convert-to fods path",
        release("soffice", "--version"),
        office_columns,
        rules=rules.OFFICE,
        suits=lambda table: not table.lines,  # a sheet is limited to a million rows
    ),
    Tool(
        "awk",
        "awk -F, PROGRAM path",
        lambda: "",
        awk_columns,
        rules=(rules.doubles(16, 1e-15),),
        suits=plain_numbers,
    ),
    Tool(
        "NumPy",
        "numpy.loadtxt(path, delimiter=',')",
        package("numpy"),
        numpy_columns,
        rules=(rules.doubles(16, 1e-15),),
        suits=numbers_without_names,
    ),
]


def present():
    """Returns the installed tools. LibreOffice is large and optional."""
    return [tool for tool in TOOLS if tool.name != "LibreOffice" or shutil.which("soffice")]
