"""Describes the machine and the versions of a measurement in one line."""

import os
import platform
import re
import subprocess
from importlib.metadata import version

import h5py
from process import there


def said(*command):
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ).stdout.strip()


def cpu():
    with open("/proc/cpuinfo") as facts:
        model = re.search(r"^model name\s*: (.*)$", facts.read(), re.M)
    return model[1] if model else platform.machine()


def load():
    """Returns the average number of processes that wanted a processor in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def facts(h5fs, directory):
    tools = [
        said(h5fs, "--version"),
        f"h5py {h5py.__version__} (HDF5 {h5py.version.hdf5_version})",
        *(f"{name} {version(name)}" for name in ("hdf5plugin", "asdf", "numpy")),
        *([said("fio", "--version").replace("-", " ")] if there("fio") else []),
        *([said("h5dump", "--version").replace(": Version", "")] if there("h5dump") else []),
    ]
    place = said("findmnt", "-no", "FSTYPE", "-T", directory)
    cores = len(os.sched_getaffinity(0))
    return f"{cpu()}, {cores} cores, Linux {platform.release()}, {place}; {', '.join(tools)}"
