"""Tests how programs react if a read fails in the middle of a file. They report the error, die of a
signal (if the file is mapped), or ignore the error. docs/faq.md names the programs that ignore it.
"""

import io
import json
import os
import pathlib
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import tifffile
from astropy.io import fits
from mounted import Mount
from PIL import Image

ROWS = 300_000
CHUNK = 1 << 16
FAQ = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/faq.md")

# Possible reactions of a program.
REPORTED, KILLED, IGNORED = "reported", "killed by SIGBUS", "ignored"

# Python expressions by name. `m` is the directory with the files.
PYTHON = {
    "numpy.fromfile": ("import numpy", "numpy.fromfile(m + 'raw', '<i8')", IGNORED),
    "numpy.load": ("import numpy", "numpy.load(m + 'npy')", REPORTED),
    "numpy.load, mmap_mode": ("import numpy", "numpy.load(m + 'npy', mmap_mode='r').sum()", KILLED),
    "numpy.memmap": ("import numpy", "numpy.memmap(m + 'raw', '<i8', 'r').sum()", KILLED),
    "numpy.frombuffer": ("import numpy", "numpy.frombuffer(open(m + 'raw', 'rb').read(), '<i8')", REPORTED),
    "numpy.loadtxt": ("import numpy", "numpy.loadtxt(m + 'txt')", REPORTED),
    "pandas.read_csv": ("import pandas", "pandas.read_csv(m + 'csv')", REPORTED),
    "pandas.read_csv, memory_map": ("import pandas", "pandas.read_csv(m + 'csv', memory_map=True)", KILLED),
    "pandas.read_parquet": ("import pandas", "pandas.read_parquet(m + 'parquet')", REPORTED),
    "polars.read_csv": ("import polars", "polars.read_csv(m + 'csv')", REPORTED),
    "polars.read_parquet": ("import polars", "polars.read_parquet(m + 'parquet')", REPORTED),
    "polars.read_ndjson": ("import polars", "polars.read_ndjson(m + 'jsonl')", KILLED),
    "DuckDB, csv": ("import duckdb", "duckdb.read_csv(m + 'csv').fetchall()", REPORTED),
    "DuckDB, parquet": ("import duckdb", "duckdb.read_parquet(m + 'parquet').fetchall()", REPORTED),
    "pyarrow.parquet": ("import pyarrow.parquet as p", "p.read_table(m + 'parquet')", REPORTED),
    "pyarrow, memory_map": ("import pyarrow.parquet as p", "p.read_table(m + 'parquet', memory_map=True)", KILLED),
    "datafusion": ("import datafusion as d", "d.SessionContext().read_parquet(m + 'parquet').to_pandas()", REPORTED),
    "tifffile": ("import tifffile", "tifffile.imread(m + 'tif')", REPORTED),
    "fitsio": ("import fitsio", "fitsio.read(m + 'fits')", REPORTED),
    "astropy": ("from astropy.io import fits", "fits.open(m + 'fits')[0].data.sum()", KILLED),
    "astropy, memmap=False": ("from astropy.io import fits", "fits.open(m + 'fits', memmap=False)[0].data", REPORTED),
    "Pillow, png": ("from PIL import Image", "Image.open(m + 'png').load()", REPORTED),
    "Pillow, tif": ("from PIL import Image", "Image.open(m + 'tif').tobytes()", KILLED),
    "rasterio, tif": ("import rasterio", "rasterio.open(m + 'tif').read()", REPORTED),
    "rasterio, png": ("import rasterio", "rasterio.open(m + 'png').read()", IGNORED),
}

# Commands by name, run in the directory with the files. OUT is a path in another directory.
COMMANDS = {
    "cat": ("cat raw", REPORTED),
    "cp": ("cp raw \"$OUT\"", REPORTED),
    "dd": ("dd if=raw", REPORTED),
    "tar": ("tar -cf - raw | cat; exit ${PIPESTATUS[0]}", REPORTED),
    "rsync": ("rsync raw \"$OUT\"", REPORTED),
    "awk": ("awk '{n++} END {print n}' txt", REPORTED),
    "sed": ("sed p txt", REPORTED),
    "sed, `$`": ("sed -n '$p' txt", IGNORED),
    "grep": ("grep -c 9 txt", REPORTED),
    "sort": ("sort txt", REPORTED),
    "od": ("od raw", REPORTED),
    "sha256sum": ("sha256sum raw", REPORTED),
    "mlr": ("mlr --icsv --ojson count csv", REPORTED),
    "jq": ("jq .a jsonl", REPORTED),
    "node": ("node -e \"require('fs').readFileSync('raw')\"", REPORTED),
    "hexdump": ("hexdump raw", IGNORED),
    "strings": ("strings txt", IGNORED),
    "zip": ("zip -q - raw | cat; exit ${PIPESTATUS[0]}", IGNORED),
    "mapfile": ("mapfile lines < txt", IGNORED),
    "perl": ("perl -ne '$n++' txt", IGNORED),
    "sqlite3": ("sqlite3 \"$OUT.db\" '.mode csv' '.import csv t'", IGNORED),
    "Rscript readBin": ("Rscript -e 'x <- readBin(\"raw\", \"integer\", 600000)'", IGNORED),
    "Rscript read.csv": ("Rscript -e 'x <- read.csv(\"csv\")'", IGNORED),
}


def contents():
    """Returns the bytes of each file, by name."""
    number = np.arange(ROWS)
    value = np.random.default_rng(1).random(ROWS)
    picture = np.random.default_rng(2).integers(0, 255, (2000, 2000), dtype="u1")

    def written(write):
        stream = io.BytesIO()
        write(stream)
        return stream.getvalue()

    table = pyarrow.table({"a": number, "b": value})
    return {
        "raw": number.astype("<i8").tobytes(),
        "npy": written(lambda s: np.save(s, number)),
        "txt": b"".join(b"%d\n" % n for n in number),
        "csv": b"a,b\n" + b"".join(b"%d,%.12f\n" % row for row in zip(number, value)),
        "jsonl": b"".join(json.dumps({"a": n, "b": v}).encode() + b"\n" for n, v in zip(number.tolist(), value)),
        "parquet": written(lambda s: pyarrow.parquet.write_table(table, s, row_group_size=50_000)),
        "png": written(lambda s: Image.fromarray(picture).save(s, "PNG")),
        "tif": written(lambda s: tifffile.imwrite(s, picture)),
        "fits": written(fits.PrimaryHDU(picture.astype("i4")).writeto),
    }


def write(path):
    """Writes each content as an array of bytes with one damaged compressed chunk."""
    chunks = []
    with h5py.File(path, "w", libver="latest") as file:
        for name, content in contents().items():
            array = np.frombuffer(content, "u1")
            made = file.create_dataset(name, data=array, chunks=(CHUNK,), compression="gzip")
            chunks.append(made.id.get_chunk_info(made.id.get_num_chunks() * 6 // 10))
    with open(path, "r+b") as file:
        for chunk in chunks:
            file.seek(chunk.byte_offset + chunk.size // 2)
            file.write(b"\xff" * 64)


def outcome(words, **how):
    ended = subprocess.run(words, capture_output=True, timeout=600, **how)
    return {0: IGNORED, -7: KILLED, 128 + 7: KILLED}.get(ended.returncode, REPORTED)


def difference(found, expected):
    return None if found == expected else f"a failed read is {found}, not {expected}"


def named(tool):
    """Returns whether docs/faq.md names a tool that ignores errors."""
    document = pathlib.Path(FAQ).read_text()
    section = document.split("## Which programs ignore an I/O error?")[1].split("\n## ")[0]
    words = tool.removeprefix("Rscript ").split(",")[0]
    return words.lower() in section.lower()


def rows(binary, directory):
    path, out = os.path.join(directory, "damage.h5"), os.path.join(directory, "copy")
    write(path)
    with Mount(binary, path) as mount:
        for name, (imports, expression, expected) in PYTHON.items():
            code = f"{imports}\nm = {mount.path!r} + '/'\n{expression}"
            yield name, "Python", difference(outcome([sys.executable, "-W", "ignore", "-c", code]), expected)
        for name, (command, expected) in COMMANDS.items():
            if name == "mapfile" or shutil.which(name.split()[0]):
                found = outcome(["bash", "-c", command], cwd=mount.path, env={**os.environ, "OUT": out})
                yield name, "bash", difference(found, expected)
    for name, (*_, expected) in {**PYTHON, **COMMANDS}.items():
        if expected == IGNORED:
            yield name, "docs/faq.md", None if named(name) else "not named there"
