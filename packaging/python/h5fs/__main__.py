"""Runs the program h5fs that was installed with this package, for `python -m h5fs`."""

import os
import sys

from .errors import Error
from .program import find_program

if __name__ == "__main__":
    try:
        path = find_program()
    except Error as error:
        sys.exit(f"h5fs: {error}")
    os.execv(path, [path, *sys.argv[1:]])
