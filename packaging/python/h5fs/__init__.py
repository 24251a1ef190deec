"""Reads HDF5 and ASDF files with the program h5fs, which pip installs with this package.

- `h5fs.open` opens a file, a directory or a URL, and reads all paths that a mount would show.
- `h5fs.mount` mounts a source for the time of a `with` block.
- `xarray.open_dataset(source, engine="h5fs")` and `xarray.open_datatree` read variables.
- The fsspec filesystem `h5fs` gives the same paths to pandas, polars, pyarrow and DuckDB.

The program parses the files in its own sandboxed process, never in the process of Python."""

from __future__ import annotations

from .errors import AccessError, Error, NotDirectoryError, NotFoundError, ServerEndedError
from .mounting import mount
from .program import package_version
from .source import Entry, Source, open

__all__ = [
    "AccessError",
    "Entry",
    "Error",
    "NotDirectoryError",
    "NotFoundError",
    "ServerEndedError",
    "Source",
    "__version__",
    "mount",
    "open",
]


def __getattr__(name: str) -> str:
    # Computed at the first use, because a source tree without metadata must run the program.
    if name == "__version__":
        globals()[name] = package_version()
        return package_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
