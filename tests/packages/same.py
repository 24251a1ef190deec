#!/usr/bin/env python3
"""same.py NATIVE DIRECTORY PROGRAM ...: compares h5fs for another machine with NATIVE, the program
for this machine. Compares the output of `ls`, `ndl`, `cat` of every file, and `check`, for each
file of a directory. PROGRAM may be a command with arguments, such as an emulator."""

import os
import subprocess
import sys


def said(program, *arguments):
    """Returns the exit status and the output."""
    done = subprocess.run([*program, *arguments], capture_output=True, timeout=600)
    written = done.stdout
    if arguments[0] == "check":
        # Its threads report errors in any order.
        written = b"".join(sorted(written.splitlines(keepends=True)))
    return done.returncode, written, done.stderr


def paths(listing):
    """Returns the files in the output of `ls -R`: names in the list of a group that have no list
    themselves."""
    names, groups, group = [], set(), ""
    for line in listing.decode(errors="surrogateescape").splitlines():
        if line.startswith("/") and line.endswith(":"):
            group = line[:-1].rstrip("/")
            groups.add(group)
        elif line:
            names.append(f"{group}/{line}")
    return [name[1:] for name in names if name not in groups]


def main(native, directory, *program):
    native = [native]
    different, compared, read = [], 0, 0
    for name in sorted(os.listdir(directory)):
        file = os.path.join(directory, name)
        if not os.path.isfile(file):
            continue
        files = paths(said(native, "ls", "-R", file)[1])
        commands = [["ls", "-lR", file], ["ndl", file], ["check", "--data", file]]
        # Not more than fit on a command line.
        for first in range(0, len(files), 500):
            commands.append(["cat", "--one", file, *files[first : first + 500]])
        for command in commands:
            expected = said(native, *command)
            compared += 1
            read += len(expected[1])
            if said(program, *command) != expected:
                different.append(f"{name}: {command[0]}")
    assert read > 100_000, f"only {read} bytes were written"
    print(f"{compared} commands compared, {len(different)} differ")
    sys.exit("\n".join(different) or None)


if __name__ == "__main__":
    main(*sys.argv[1:])
