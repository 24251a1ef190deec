"""Mounts that end with a `with` block."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Iterator, Optional, Union

from .child import end_child, start_child
from .errors import Error, program_error
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
    location = locate_one(os.fspath(source)).source
    program = checked_program()
    made = tempfile.mkdtemp(prefix="h5fs-") if mount_point is None else None
    point = os.path.abspath(made or os.fspath(mount_point or ""))
    command = [program, "--foreground", *option_arguments(options), "--", location, point]
    try:
        with tempfile.TemporaryFile() as standard_error:
            child = start_child(command, standard_error)
            try:
                wait_for_mount(child, location, point, standard_error)
                yield Path(point)
            finally:
                end_child(child)
    finally:
        if made:
            os.rmdir(made)


def wait_for_mount(
    child: subprocess.Popen[bytes], location: str, point: str, standard_error: IO[bytes]
) -> None:
    """Waits until the mount point is mounted. Fails if the program ends."""
    device = os.stat(os.path.dirname(point)).st_dev
    while True:
        try:
            if os.stat(point).st_dev != device:
                return
        except OSError as error:
            # An unfinished mount may refuse the request.
            failure: Optional[OSError] = error
        else:
            failure = None
        if child.poll() is not None:
            raise program_error(standard_error, f"{location}: the mount has ended") from failure
        time.sleep(INTERVAL)


__all__ = ["Error", "mount"]
