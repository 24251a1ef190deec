"""The program h5fs: its path, its version, and its command-line options."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sysconfig
from importlib import metadata
from typing import List, Mapping

from .errors import Error

# An environment variable with the path of another program, for tests of this package.
OVERRIDE = "H5FS_PROGRAM"

# Options whose value is `on` or `off`. Other options that are booleans have no value.
SWITCHES = {"sandbox", "verify"}

# Options that this package sets. A caller could only break the connection with them.
RESERVED = {"foreground", "listen", "no_token", "o"}


def find_program() -> str:
    """Returns the path of the program: the value of `H5FS_PROGRAM`, or the program that pip
    installed with this package (with `--target`, in the environment, or for the user), or the
    program on the PATH."""
    override = os.environ.get(OVERRIDE)
    if override:
        return override
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    directories = [
        os.path.join(packages, "bin"),
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", f"{os.name}_user"),
    ]
    for directory in directories:
        path = os.path.join(directory, "h5fs")
        if os.path.isfile(path):
            return path
    on_path = shutil.which("h5fs")
    if on_path:
        return on_path
    raise Error(f"the program is in none of {', '.join(directories)}: install the package again")


@functools.lru_cache(maxsize=8)
def program_version(program: str) -> str:
    """Returns the version that the program prints."""
    try:
        printed = subprocess.run([program, "--version"], stdout=subprocess.PIPE, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Error(f"{program}: cannot be run: {error}") from error
    return printed.stdout.decode().split()[-1]


def package_version() -> str:
    """Returns the version of the installed package. Without an installation (a source tree on
    `PYTHONPATH`), returns the version of the program."""
    try:
        return metadata.version("h5fs")
    except metadata.PackageNotFoundError:
        return program_version(find_program())


def checked_program() -> str:
    """Returns the path of the program. Fails if the program has another version than this
    package."""
    program = find_program()
    found, expected = program_version(program), package_version()
    if found != expected:
        raise Error(f"{program}: version {found}, but the Python package has version {expected}")
    return program


def option_arguments(options: Mapping[str, object]) -> List[str]:
    """Returns command-line arguments for keyword arguments: `cache_size="64M"` becomes
    `--cache-size=64M`, and `anonymous=True` becomes `--anonymous`. The program checks names and
    values."""
    arguments = []
    for name, value in sorted(options.items()):
        if name in RESERVED:
            raise Error(f"the option {name} is not available in Python")
        option = "--" + name.replace("_", "-")
        if isinstance(value, bool) and name in SWITCHES:
            value = "on" if value else "off"
        if value is True:
            arguments.append(option)
        elif isinstance(value, (list, tuple)):
            arguments.append(f"{option}={','.join(map(str, value))}")
        elif isinstance(value, os.PathLike):
            arguments.append(f"{option}={os.fspath(value)}")
        elif value is not None and value is not False:
            arguments.append(f"{option}={value}")
    return arguments
