"""Files that the tests of the Python package read, and helpers that count processes."""

import os
import shutil
from pathlib import Path

import h5fs
import h5py
import netCDF4
import numpy
import pytest
from h5fs.program import find_program


def pytest_configure(config):
    config.addinivalue_line("markers", "speed: compares times, for an idle machine only")


@pytest.fixture(scope="session")
def directory(tmp_path_factory):
    """Returns a directory with an HDF5, a netCDF-4 and an ASDF file, and a directory of months."""
    path = tmp_path_factory.mktemp("files")
    write_hdf5(path / "x.h5")
    write_netcdf(path / "t.nc")
    write_asdf(path / "a.asdf")
    (path / "months").mkdir()
    for month in range(1, 13):
        write_month(path / f"months/2025-{month:02}.nc", month)
    return path


def write_hdf5(path):
    with h5py.File(path, "w") as file:
        values = numpy.arange(120_000, dtype="<f4").reshape(100, 30, 40)
        file.create_dataset("g/values", data=values, chunks=(10, 30, 40), compression="gzip")
        table = numpy.array([(1, 2.5, b"a"), (2, 3.5, b"b")], "i4,f8,S1")
        table.dtype.names = ("number", "level", "name")
        file["table"] = table
        file["link"] = h5py.SoftLink("/g/values")
        file["odd%2Fname"] = numpy.arange(3)
        file["back\\slash"] = numpy.arange(2)


def write_netcdf(path):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createDimension("t", None)
        file.createDimension("letters", 5)
        clouds = file.createEnumType("u1", "cloud", {"clear": 0, "cumulus": 1})
        options = {"zlib": True, "complevel": 4, "fill_value": numpy.nan, "chunksizes": (2, 3)}
        v = file.createVariable("v", "f4", ("t", "x"), **options)
        v[0:4] = numpy.arange(12).reshape(4, 3)
        v.setncatts({"missing_value": numpy.float32("nan"), "short": numpy.int16(3), "units": "K"})
        v.setncatts({"array": numpy.array([1.5, numpy.nan, numpy.inf]), "empty": ""})
        v.setncatts({"large": numpy.int64(2**60), "names": ["a", "bé"]})
        file.createVariable("sky", clouds, ("x",))[:] = [0, 1, 0]
        file.createVariable("text", str, ("x",))[:] = numpy.array(["a", "bé", ""], object)
        file.createVariable("letter", "S1", ("x", "letters"))[:] = numpy.full((3, 5), b"q")
        t = file.createVariable("t", "i4", ("t",))
        t[:] = [1, 2, 3, 4]
        t.units = "days since 2000-01-01"
        # No record is written, so the variable is shorter than its dimension.
        file.createVariable("short", "i4", ("t",))
        file.createVariable("scalar", "f8", ()).assignValue(5)
        group = file.createGroup("g/h")
        group.createDimension("y", 2)
        w = group.createVariable("w", "i2", ("y", "x"), fill_value=-9)
        w.scale_factor = 0.1
        w[:] = numpy.arange(6).reshape(2, 3) / 10
        group.title = "a group"


def write_asdf(path):
    import asdf

    tree = {
        "values": numpy.arange(6.0).reshape(2, 3),
        "meta": {"name": "x", "inner": {"b": numpy.array([1, 2], "i2"), "n": 5, "list": [1, 2]}},
        "complex": numpy.ones(4, ">c8") * (1 + 2j),
        "text": numpy.array(["ab", "é"]),
    }
    asdf.AsdfFile(tree).write_to(path, all_array_compression="zlib")


def write_month(path, month):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 4)
        time = file.createVariable("time", "f8", ("time",))
        time.units = f"days since 2025-{month:02}-01"
        time[:] = numpy.arange(28)
        values = numpy.tile(numpy.arange(4), (28, 1)) + month
        file.createVariable("v", "f4", ("time", "x"))[:] = values


class Children:
    """The h5fs processes of a Python process, and the sockets and files of all of them."""

    def __init__(self, temporary):
        self.temporary = temporary
        self.earlier = []
        # Unpickled sources of earlier tests keep their servers.
        self.earlier = self.processes()

    def processes(self):
        """Returns the running programs whose parent is this process, without those of earlier
        tests."""
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                status = (directory / "stat").read_text().rsplit(")", 1)[1].split()
                command = (directory / "cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            is_program = command[0] == os.fsencode(find_program())
            if is_program and int(status[1]) == os.getpid() and status[0] != "Z":
                found.append(int(directory.name))
        return [process for process in found if process not in self.earlier]

    def files(self):
        return sorted(path.name for path in self.temporary.glob("h5fs-*"))

    @staticmethod
    def descriptors():
        return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def children(tmp_path, monkeypatch):
    """Returns what this process leaves: its servers, and its files in a temporary directory."""
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return Children(tmp_path)


@pytest.fixture
def own_file(directory, tmp_path_factory):
    """Returns an HDF5 file that no other test has opened, so that its server is a new one."""
    path = tmp_path_factory.mktemp("own") / "x.h5"
    shutil.copy(directory / "x.h5", path)
    return path


@pytest.fixture
def opened(directory):
    with h5fs.open(directory / "x.h5") as source:
        yield source
