"""The sources that callers name: a file, a directory, a URL, or a list of files."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import List, NamedTuple, Sequence, Union

from .errors import Error, NotFoundError

# A source as the callers of this package name it.
SourceName = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


class Location(NamedTuple):
    """A source of the program, and the path of the data file in it: empty for a file, and
    `.h5fs/joined/` or `.h5fs/joined[PATTERN]/` for many files."""

    source: str
    data_file: str


def locate(name: SourceName) -> Location:
    """Returns the location of a source. A local path becomes absolute."""
    if isinstance(name, (str, os.PathLike)):
        return locate_one(os.fspath(name))
    names = [os.path.abspath(os.path.expanduser(os.fspath(each))) for each in name]
    if not names:
        raise Error("the list of files is empty")
    directories = {os.path.dirname(each) for each in names}
    if len(directories) > 1:
        raise Error("the files of a list must be in one directory")
    pattern = common_pattern([os.path.basename(each) for each in names], directories.pop())
    return Location(os.path.dirname(names[0]), joined_path(pattern))


def locate_one(name: str) -> Location:
    if "://" in name:
        return Location(name, ".h5fs/joined/" if name.endswith("/") else "")
    path = os.path.abspath(os.path.expanduser(name))
    if os.path.isdir(path):
        return Location(path, ".h5fs/joined/")
    if not os.path.exists(path) and path.endswith("]"):
        # The pattern begins at the last bracket before which a directory is named.
        for start in range(len(path) - 1, 0, -1):
            if path[start] == "[" and os.path.isdir(path[:start]):
                return Location(path[:start], joined_path(path[start + 1 : -1]))
    return Location(path, "")


def joined_path(pattern: str) -> str:
    return f".h5fs/joined[{pattern.replace('/', '%2F')}]/"


def common_pattern(names: List[str], directory: str) -> str:
    """Returns a pattern of `*` and `?` that matches these names, and no other name in the
    directory."""
    wanted = set(names)
    try:
        present = {entry.name for entry in Path(directory).iterdir()}
    except OSError as error:
        raise Error(f"{directory}: {error.strerror}") from error
    for name in sorted(wanted - present):
        raise NotFoundError(f"{os.path.join(directory, name)}: No such file or directory")
    prefix = os.path.commonprefix(names)
    suffix = os.path.commonprefix([name[len(prefix) :][::-1] for name in names])[::-1]
    columns = [set(column) for column in zip(*names)]
    same_length = "".join(column.pop() if len(column) == 1 else "?" for column in columns)
    for pattern in [same_length, f"{prefix}*{suffix}"]:
        # A bracket has no meaning in a pattern of the program, but it has one in fnmatch.
        shell = pattern.replace("[", "[[]")
        if set(fnmatch.filter(present, shell)) == wanted:
            return pattern
    raise Error(
        f"{directory}: no pattern of `*` and `?` matches only the {len(wanted)} files of the list;"
        " use xarray.open_mfdataset, or a directory that has only these files"
    )
