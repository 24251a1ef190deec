#!/usr/bin/env python3
"""Mounts files that the libraries of many conventions write, reads their views with the tools that
people use, and compares values and types with what the library reads from the file itself.

It prints which tool reads which view, and ends with 0 only if nothing differs. `scripts/readers`
prepares what it needs and calls it."""

import argparse
import fnmatch
import itertools
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../soak"))
warnings.simplefilter("ignore")

import computed  # noqa: E402
import conventions  # noqa: E402,F401  (each module registers its fixtures)
import copies  # noqa: E402
import damage  # noqa: E402
import documents  # noqa: E402
import frames  # noqa: E402
import grids  # noqa: E402,F401
import h5py  # noqa: E402
import hostile  # noqa: E402
import joined  # noqa: E402
import joined_random  # noqa: E402
import images  # noqa: E402,F401
import report  # noqa: E402
import stores  # noqa: E402
import tools  # noqa: E402
import climate  # noqa: E402,F401
import netcdf  # noqa: E402,F401
import skies  # noqa: E402,F401
import mappings  # noqa: E402,F401
import matlab  # noqa: E402,F401
import parquet  # noqa: E402
import served  # noqa: E402
import values  # noqa: E402
from kit import FIXTURES  # noqa: E402
from mounted import Mount  # noqa: E402
from report import Cell  # noqa: E402
from table import difference, under  # noqa: E402


def csv_cell(tool, table, path):
    if not tool.suits(table):
        return None
    columns, notes = under(tool.rules, table.columns)
    if not table.has_header() and tool.headless:
        notes = [tool.headless, *notes]
    wrong = documents.failure(csv_agrees, tool, path, columns, table.has_header())
    return wrong, [note for note in notes if note]


def first_lines(path, count):
    """Writes a file with the first `count` lines of a large file. Returns its path."""
    made = os.path.join(tempfile.mkdtemp(), os.path.basename(path))
    with open(path, "rb") as source, open(made, "wb") as target:
        target.writelines(itertools.islice(source, count))
    return made


def csv_agrees(tool, path, columns, header):
    wrong = difference(columns, list(tool.read(path, header)))
    assert wrong is None, wrong


def csv_cells(fixture, read, views, pool):
    jobs = []
    for table in read:
        path = os.path.join(views, table.view)
        if table.lines:
            path = first_lines(path, table.lines)
        for tool in tools.present():
            jobs.append((table, tool, pool.submit(csv_cell, tool, table, path)))
    for table, tool, job in jobs:
        if outcome := job.result():
            yield Cell(fixture.file, table.view, tool.name, *outcome)


def hdf5_cells(fixture, path, views, tables):
    with h5py.File(path) as file:
        flat = [table for table in tables if table.view in values.FLAT]
        rows = [
            *documents.json_rows(file, views),
            *documents.table_rows(flat, views),
            *documents.text_rows(file, views),
            *documents.npy_rows(file, views),
        ]
        empty = {
            name for name, made in documents.datasets(file) if made.shape is None or not made.size
        }
    for view, tool, wrong in rows:
        yield Cell(fixture.file, view, tool, wrong)
    for tree, tool, wrong in copies.rows(views, lambda path: os.path.splitext(path)[0] in empty):
        yield Cell(fixture.file, f"copy of {tree}", tool, wrong)


def cells_of(fixture, h5fs, directory, pool):
    path = os.path.join(directory, fixture.file)
    fixture.write(path)
    read = list(fixture.tables(path))
    with Mount(h5fs, path) as mount:
        views = mount.at(".h5fs")
        yield from csv_cells(fixture, read, views, pool)
        for view, tool, wrong in parquet.rows(read, views):
            yield Cell(fixture.file, view, tool, wrong)
        if h5py.is_hdf5(path) and not fixture.is_large:
            yield from hdf5_cells(fixture, path, views, read)
            for view, tool, wrong in (*stores.rows(path, views), *computed.rows(path, views)):
                yield Cell(fixture.file, view, tool, wrong)
        for view, tool, wrong in (*documents.tree_rows(views), *fixture.others(path, views)):
            yield Cell(fixture.file, view, tool, wrong)


def frames_of(python, binary, directory):
    """Compares the frames that the pandas of another Python stores, and reads from the same file.
    """
    script, ask = frames.__file__, "import pandas; print(pandas.__version__)"
    version = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True)
    name = f"frames-{version.stdout.strip()}.h5"
    path = os.path.join(directory, name)
    subprocess.run([python, script, "write", path], check=True)
    with Mount(binary, path) as mount:
        command = [python, "-W", "ignore", script, "check", path, mount.path]
        checked = subprocess.run(command, capture_output=True, text=True)
    wrong = checked.stderr.strip().rpartition("\n")[2] if checked.returncode else None
    return Cell(name, "csv", "pandas", wrong)


# Further parts, which make their own sources: they take the program and a directory for them.
PARTS = {
    "hostile": hostile.rows,
    "damage": damage.rows,
    "joined": joined.rows,
    "joined-random": lambda binary, _: joined_random.rows(binary),
    "computed": computed.joined_rows,
    "served": served.rows,
}


def names(pattern):
    """Returns the names of the files of fixtures and of the parts that match."""
    known = [*PARTS, *(fixture.file for fixture in FIXTURES)]
    return [name for name in known if fnmatch.fnmatch(name, pattern)]


def cells_named(name, binary):
    """Returns the results of one fixture or part. Uses a directory of its own for all files."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="h5fs-readers-") as directory:
        tempfile.tempdir = directory
        if name in PARTS:
            cells = [Cell(name, *row) for row in PARTS[name](binary, directory)]
        else:
            fixture = next(fixture for fixture in FIXTURES if fixture.file == name)
            with ThreadPoolExecutor(2) as pool:
                cells = list(cells_of(fixture, binary, directory, pool))
        tempfile.tempdir = None
    print(f"== {name}: {time.monotonic() - begun:.0f} s", flush=True)
    return cells


def all_cells(pattern, binary):
    """Compares all that matches, in a process for each processor. Most tools use one. Processes are
    spawned, because libraries with threads do not survive a fork."""
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for cells in pool.map(cells_named, names(pattern), itertools.repeat(binary)):
            yield from cells


def main():
    parser = argparse.ArgumentParser(prog="scripts/readers", description=__doc__)
    parser.add_argument("--binary", metavar="PATH", required=True, help="the h5fs to try")
    parser.add_argument("--pandas", metavar="PYTHON", action="append", default=[],
                        help="a Python with another version of pandas")  # fmt: skip
    parser.add_argument("--only", default="*", help="fixtures whose file's name matches")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables there, too")
    given = parser.parse_args()
    binary = os.path.abspath(given.binary)
    cells = list(all_cells(given.only, binary))
    with tempfile.TemporaryDirectory(prefix="h5fs-readers-") as directory:
        for python in (sys.executable, *given.pandas):
            cell = frames_of(python, binary, directory)
            cells += [cell] if fnmatch.fnmatch(cell.fixture, given.only) else []
    print(report.text(cells))
    if given.markdown:
        with open(given.markdown, "w") as file:
            commands = {tool.name: tool.command for tool in tools.present()}
            file.write(report.markdown(cells, commands))
    wrong = [cell for cell in cells if cell.wrong]
    for cell in wrong:
        print(f"{cell.fixture}: {cell.view}: {cell.tool}: {cell.wrong}")
    print(f"{len(cells)} readings, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
