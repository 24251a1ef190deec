"""Runs the program h5fs that was installed with this package, for `python -m h5fs`."""

import os
import sys
import sysconfig


def program():
    """Returns the path where pip installed the program: in the environment, for the user, or with
    `--target`."""
    places = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places.append(os.path.join(packages, "bin"))
    for place in places:
        path = os.path.join(place, "h5fs")
        if os.path.isfile(path):
            return path
    sys.exit(f"h5fs: the program is in none of {', '.join(places)}: install the package again")


if __name__ == "__main__":
    path = program()
    os.execv(path, [path, *sys.argv[1:]])
