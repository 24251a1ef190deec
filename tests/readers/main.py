#!/usr/bin/env python3
"""Mounts files that the libraries of many conventions write, reads their views with the tools that
people use, and compares values and types with what the library reads from the file itself.

It prints which tool reads which view, and ends with 0 only if nothing differs. `scripts/readers`
prepares what it needs and calls it."""

import argparse
import fnmatch
import itertools
import os
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor

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


def main():
    parser = argparse.ArgumentParser(prog="scripts/readers", description=__doc__)
    parser.add_argument("--binary", metavar="PATH", required=True, help="the h5fs to try")
    parser.add_argument("--pandas", metavar="PYTHON", action="append", default=[],
                        help="a Python with another version of pandas")  # fmt: skip
    parser.add_argument("--only", default="*", help="fixtures whose file's name matches")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables there, too")
    given = parser.parse_args()
    cells = []
    with tempfile.TemporaryDirectory(prefix="h5fs-readers-") as directory:
        tempfile.tempdir = directory
        with ThreadPoolExecutor(2) as pool:
            for fixture in FIXTURES:
                if fnmatch.fnmatch(fixture.file, given.only):
                    print(f"== {fixture.file}", flush=True)
                    cells += cells_of(fixture, os.path.abspath(given.binary), directory, pool)
            if fnmatch.fnmatch("hostile", given.only):
                print("== hostile", flush=True)
                for view, tool, wrong in hostile.rows(os.path.abspath(given.binary), directory):
                    cells.append(Cell("hostile", view, tool, wrong))
            if fnmatch.fnmatch("damage", given.only):
                print("== damage", flush=True)
                for name, tool, wrong in damage.rows(os.path.abspath(given.binary), directory):
                    cells.append(Cell("damage", name, tool, wrong))
            if fnmatch.fnmatch("joined", given.only):
                print("== joined", flush=True)
                for view, tool, wrong in joined.rows(os.path.abspath(given.binary), directory):
                    cells.append(Cell("joined", view, tool, wrong))
            if fnmatch.fnmatch("joined-random", given.only):
                print("== joined-random", flush=True)
                for view, tool, wrong in joined_random.rows(os.path.abspath(given.binary)):
                    cells.append(Cell("joined-random", view, tool, wrong))
            if fnmatch.fnmatch("computed", given.only):
                print("== computed", flush=True)
                for view, tool, wrong in computed.joined_rows(os.path.abspath(given.binary), directory):
                    cells.append(Cell("computed", view, tool, wrong))
            if fnmatch.fnmatch("served", given.only):
                print("== served", flush=True)
                for view, tool, wrong in served.rows(os.path.abspath(given.binary), directory):
                    cells.append(Cell("served", view, tool, wrong))
            for python in (sys.executable, *given.pandas):
                cell = frames_of(python, os.path.abspath(given.binary), directory)
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
