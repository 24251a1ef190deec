#!/usr/bin/env python3
"""wheel.py WHEEL ARCH: checks that pip accepts the wheel on its target systems, and checks the
content of the wheel.

If the wheel is for this processor, installs it in an empty environment. Then reads an h5py file
with `h5fs ls`, `h5fs cat`, `python -m h5fs`, `h5fs.open` and a mount."""

import os
import platform
import subprocess
import sys
import tempfile
import venv
import zipfile

import h5py
import numpy

SYSTEMS = ["manylinux2014", "manylinux_2_17", "musllinux_1_2"]


def said(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=300).stdout


def pip(*arguments):
    said(sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments)


def look_inside(wheel):
    """Checks that the required files exist, and that no path of the build machine occurs."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        files = {name.split("/", 1)[1]: archive.read(name) for name in names}
    for name in ["licenses/LICENSE", "licenses/THIRD-PARTY.txt", "sboms/h5fs.cdx.json"]:
        assert files[name], name
    program = files["scripts/h5fs"]
    homes = [os.getcwd(), os.path.expanduser("~"), os.environ.get("CARGO_HOME", "/.cargo/registry")]
    for home in homes:
        assert home.encode() not in program, f"{home} is in the program"
    for name in ["h5fs/py.typed", "h5fs/xarray_backend.py", "h5fs/filesystem.py"]:
        assert name in names, name
    assert b"h5fs.filesystem:H5fsFileSystem" in files["entry_points.txt"]
    metadata = files["METADATA"].decode()
    assert "\nLicense-Expression: MIT\n" in metadata, metadata[:2000]


def use(wheel, directory):
    venv.create(f"{directory}/venv", with_pip=False)
    # Equals `pip install` in the environment, but needs no pip there.
    pip("--python", f"{directory}/venv/bin/python", "install", "--quiet", "--no-index", wheel)
    h5fs = f"{directory}/venv/bin/h5fs"
    module = [f"{directory}/venv/bin/python", "-m", "h5fs"]
    values = numpy.arange(1000, dtype="<i4") ** 2
    source, point = f"{directory}/squares.h5", f"{directory}/mnt"
    with h5py.File(source, "w") as file:
        file.create_dataset("group/squares", data=values, chunks=(64,), compression="gzip")
    assert said(h5fs, "ls", source) == b"group\n"
    assert said(h5fs, "cat", source, "group/squares") == values.tobytes()
    assert said(*module, "cat", source, "group/squares") == values.tobytes()
    assert said(*module, "--version") == said(h5fs, "--version")
    # The package itself needs no other package.
    program = f"import h5fs; print(h5fs.open({source!r}).read('group/squares').hex())"
    assert said(module[0], "-c", program) == values.tobytes().hex().encode() + b"\n"
    misused = subprocess.run([*module, "ls", "--none"], stderr=subprocess.PIPE)
    assert misused.returncode == 2, misused
    if not os.path.exists("/dev/fuse"):
        print("wheel::a_mount: skipped, there is no /dev/fuse")
        return
    os.mkdir(point)
    said(h5fs, source, point)
    try:
        with open(f"{point}/group/squares", "rb") as file:
            assert file.read() == values.tobytes()
    finally:
        said(*(["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]), point)


def main(wheel, processor):
    look_inside(wheel)
    with tempfile.TemporaryDirectory() as directory:
        for system in SYSTEMS:
            pip(
                *"download --quiet --no-index --no-deps --only-binary :all: --implementation py".split(),
                *["--find-links", os.path.dirname(wheel), "--dest", directory],
                *["--platform", f"{system}_{processor}", "h5fs"],
            )
        if processor == platform.machine():
            use(wheel, directory)
    print(f"{os.path.basename(wheel)}: works")


if __name__ == "__main__":
    main(*sys.argv[1:])
