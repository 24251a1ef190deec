#!/usr/bin/env python3
"""stage.py BINARY DIRECTORY: writes the Python package, its metadata and the program to a directory
for PYTHONPATH, as `pip install --target` of the wheel would."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "packaging/python"


def entry_points(project):
    """Returns the entry points of pyproject.toml in the form of entry_points.txt. Python 3.10 has
    no parser for TOML."""
    sections = re.findall(r'^\[project\.entry-points\."(.+)"\]\n((?:.+\n)*)', project, re.MULTILINE)
    assert sections, "no entry points"
    return "\n".join(f"[{name}]\n{lines}".replace('"', "") for name, lines in sections)


def main(binary, directory):
    target = Path(directory)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(PACKAGE / "h5fs", target / "h5fs", ignore=shutil.ignore_patterns("__pycache__"))
    (target / "bin").mkdir()
    shutil.copy2(binary, target / "bin/h5fs")
    version = subprocess.check_output([binary, "--version"], text=True).split()[-1]
    metadata = target / f"h5fs-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: h5fs\nVersion: {version}\n")
    project = (PACKAGE / "pyproject.toml").read_text()
    (metadata / "entry_points.txt").write_text(entry_points(project))


if __name__ == "__main__":
    main(*sys.argv[1:])
