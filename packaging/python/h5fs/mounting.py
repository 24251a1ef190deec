"""Mounts that end with a `with` block."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Optional, Union

from .child import end_child, start_child
from .errors import program_error
from .location import locate_one
from .program import checked_program, option_arguments

# Seconds between two looks at the mount point.
INTERVAL = 0.005


@contextmanager
def mount(
    source: Union[str, os.PathLike[str]],
    mount_point: Optional[Union[str, os.PathLike[str]]] = None,
    **options: object,
) -> Iterator[Path]:
    """Mounts a source, yields the mount point, and unmounts at the end of the block or of this
    process. Without `mount_point`, makes a temporary directory and removes it afterwards.
    `options` are the long options of the program: `h5fs.mount("run.h5", cache_size="256M")`."""
    location, data_file = locate_one(os.fspath(source))
    program = checked_program()
    made = tempfile.mkdtemp(prefix="h5fs-") if mount_point is None else None
    point = os.path.abspath(made or os.fspath(mount_point or ""))
    command = [program, "--foreground", *option_arguments(options), "--", location, point]
    before = device(point)
    try:
        with tempfile.TemporaryFile() as standard_error:
            child = start_child(command, standard_error)
            try:
                while device(point) in (before, None):
                    if child.poll() is not None:
                        text = f"{location}: the mount has ended"
                        raise program_error(standard_error, text)
                    time.sleep(INTERVAL)
                # The joined file, if the source is a directory and a pattern.
                yield Path(point, data_file) if data_file.endswith("]/") else Path(point)
            finally:
                end_child(child)
    finally:
        if made:
            os.rmdir(made)


def device(path: str) -> Optional[int]:
    """Returns the number of the filesystem at a path, or `None` if the path cannot be read, for
    example because a mount is not complete."""
    try:
        return os.stat(path).st_dev
    except OSError:
        return None
