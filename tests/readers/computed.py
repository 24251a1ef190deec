"""Computed HDF5 and netCDF files of mounted files, read with the tools of both formats. Each tool reads
the source and the computed file, and must print the same. A tool that is not installed, or that does
not read the source, is left out."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import xarray
from documents import failure
from mounted import Mount

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures"))
import hdf5_file  # noqa: E402

R_SCRIPT = "library(ncdf4); n <- nc_open('FILE'); for (v in names(n$var)) print(ncvar_get(n, v))"

# Commands that print the content of a file. FILE stands for its path.
COMMANDS = {
    "ncdump": ["ncdump", "FILE"],
    "NCO": ["ncks", "--json", "FILE"],
    "CDO": ["cdo", "-s", "infon", "FILE"],
    "GDAL": ["gdalinfo", "-nogeo", "FILE"],
    "Octave": ["octave", "-qf", "--eval", "x = load('-hdf5', 'FILE'); disp(x)"],
    "R ncdf4": ["Rscript", "-e", R_SCRIPT],
    "GDL": ["gdl", "-quiet", "-e", "help, h5_parse('FILE', /read_data), /structure"],
}

# Lines about the file itself: which library wrote it, where it is, and how it is stored.
ABOUT_THE_FILE = re.compile(r"_NCProperties|_h5fs_absent|^Files:|history|_Format|chunk|deflate")

TIME_LIMIT = 120


def printed(command, path):
    """Returns the lines that a command prints about a file, or None if it fails."""
    arguments = [argument.replace("FILE", path) for argument in command]
    ended = subprocess.run(arguments, capture_output=True, timeout=TIME_LIMIT)
    if ended.returncode:
        return None
    text = ended.stdout.decode("utf-8", "replace").replace(os.path.dirname(path), "")
    return [line for line in text.splitlines() if not ABOUT_THE_FILE.search(line)]


def command_rows(source, computed):
    """Compares what each command prints. Both files have the same name, because some print it."""
    with tempfile.TemporaryDirectory() as directory:
        places = []
        for place, path in (("source", source), ("computed", computed)):
            os.mkdir(os.path.join(directory, place))
            places.append(os.path.join(directory, place, "file.nc"))
            os.symlink(path, places[-1])
        for tool, command in COMMANDS.items():
            if shutil.which(command[0]):
                expected = printed(command, places[0])
                if expected:
                    yield tool, failure(same_lines, expected, command, places[1])


def same_lines(expected, command, path):
    found = printed(command, path)
    assert found is not None, "refused"
    lines = [line for line in expected if line not in found]
    assert expected == found, f"{len(lines)} lines differ, first {lines[:1]}"


def same_in_h5py(source, computed):
    with h5py.File(source) as one, h5py.File(computed) as other:
        comparison = hdf5_file.Comparison(one, other)
        comparison.object(b"", one["/"], other["/"])
        assert not comparison.differences, comparison.differences[0]
        assert comparison.count


def same_in_xarray(expected, computed, engine):
    with xarray.open_dataset(computed, engine=engine) as found:
        found.attrs.pop("_h5fs_absent", None)
        xarray.testing.assert_identical(expected, without_references(found.load()))


def opened(source, engine):
    """Returns the dataset that xarray reads from the source, or None if it cannot."""
    try:
        with xarray.open_dataset(source, engine=engine) as dataset:
            return without_references(dataset.load())
    except Exception:
        return None


def without_references(dataset):
    """Leaves out references, which are addresses in a file. h5py compares what they lead to."""
    names = [name for name, array in dataset.variables.items() if is_reference(array.values)]
    return dataset.drop_vars(names)


def is_reference(values):
    return values.dtype.kind == "O" and any(isinstance(v, h5py.Reference) for v in values.flat)


def rows(source, views):
    """Yields a row (view, tool, difference or None) for each tool."""
    computed = os.path.join(views, "file.h5")
    yield "file.h5", "h5py", failure(same_in_h5py, source, computed)
    for engine in ("netcdf4", "h5netcdf"):
        expected = opened(source, engine)
        if expected is not None:
            wrong = failure(same_in_xarray, expected, computed, engine)
            yield "file.h5", f"xarray {engine}", wrong
    for tool, wrong in command_rows(source, computed):
        yield "file.h5", tool, wrong


# ---------------------------------------------------------------- many files as one


def write_days(directory, months=3, days=10):
    """Writes a netCDF file for each month, each with the temperature of some days."""
    import netCDF4

    os.mkdir(directory)
    chance = np.random.default_rng(7)
    paths = []
    for month in range(months):
        path = os.path.join(directory, f"month{month + 1}.nc")
        with netCDF4.Dataset(path, "w") as file:
            for name, length in (("time", None), ("lat", 4), ("lon", 6)):
                file.createDimension(name, length)
            time = file.createVariable("time", "f8", ("time",))
            time.units, time.calendar = "days since 2001-01-01 00:00:00", "standard"
            time[:] = np.arange(days) + 31 * month
            for name, meaning, unit, values in (
                ("lat", "latitude", "degrees_north", np.linspace(-60, 60, 4)),
                ("lon", "longitude", "degrees_east", np.arange(6) * 60.0),
            ):
                coordinate = file.createVariable(name, "f8", (name,))
                coordinate.units, coordinate.standard_name = unit, meaning
                coordinate[:] = values
            temperature = file.createVariable("t", "f4", ("time", "lat", "lon"), zlib=True)
            temperature.units = "K"
            temperature[:] = chance.normal(280, 10, (days, 4, 6))
        paths.append(path)
    return paths


def run(*command):
    subprocess.run(command, check=True, capture_output=True, timeout=TIME_LIMIT)


def values_of(path):
    with xarray.open_dataset(path, engine="netcdf4") as dataset:
        return dataset["t"].load()


def same_mean(command, joined, directory):
    """Compares the result of a command for the joined file with its result for the merged members."""
    own, merged = (os.path.join(directory, f"{name}.nc") for name in ("own", "merged"))
    for result in (own, merged):
        if os.path.exists(result):
            os.remove(result)
    run(*command, joined, own)
    run(*command, os.path.join(directory, "all.nc"), merged)
    expected, found = values_of(merged), values_of(own)
    assert expected.shape == found.shape, (expected.shape, found.shape)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-6)


GRADS_SCRIPT = """
'sdfopen FILE'
'set gxout print'
'set x 1 6'
'set y 1 4'
step = 1
while (step <= STEPS)
  'set t 'step
  'd t'
  say result
  step = step + 1
endwhile
'quit'
"""


def same_in_grads(joined, directory):
    """Compares the values that GrADS prints with those of the merged members."""
    expected = values_of(os.path.join(directory, "all.nc")).values
    script = os.path.join(directory, "print.gs")
    with open(script, "w") as file:
        file.write(GRADS_SCRIPT.replace("FILE", joined).replace("STEPS", str(len(expected))))
    words = ["grads", "-blc", f"run {script}"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT, stdin=subprocess.DEVNULL)
    rows = re.findall(r"^(?:-?[0-9][0-9.e+-]* )+$", ended.stdout, re.MULTILINE)
    found = np.array(" ".join(rows).split(), "f4")
    assert found.size == expected.size, (found.size, expected.size)
    np.testing.assert_allclose(found, expected.ravel(), rtol=1e-5)


def joined_rows(binary, directory):
    """Compares monthly and total means of joined files with those of the merged members."""
    top = os.path.join(directory, "months")
    members = write_days(top)
    merge = [["cdo", "-s", "mergetime"], ["ncrcat", "-O"]]
    merge = next((command for command in merge if shutil.which(command[0])), None)
    if merge is None:
        print("== computed: skipped: neither CDO nor NCO is installed", flush=True)
        return
    run(*merge, *members, os.path.join(directory, "all.nc"))
    means = {"CDO": ["cdo", "-s", "monmean"], "NCO": ["ncra", "-O"]}
    with Mount(binary, top) as mount:
        for tool, command in means.items():
            if shutil.which(command[0]):
                for name in ("file.h5", "file.nc"):
                    view = f"joined/.h5fs/{name}"
                    joined = mount.at(f".h5fs/{view}")
                    yield view, tool, failure(same_mean, command, joined, directory)
        if shutil.which("grads"):
            joined = mount.at(".h5fs/joined/.h5fs/file.nc")
            yield "joined/.h5fs/file.nc", "GrADS", failure(same_in_grads, joined, directory)
