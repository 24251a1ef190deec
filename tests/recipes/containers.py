#!/usr/bin/env python3
"""containers.py H5FS: runs the commands of docs/directories.md that mount in a container, with the
program H5FS: as root, and as another user. Without root, runs them only as the caller.

A command is skipped if the machine does not allow its namespaces. Exit status 0 means that all
commands list the mounted directory, and that no process of a mount remains."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs/directories.md"
LIMIT = 120  # seconds for a command
USER = "daemon"

# A command that succeeds if the namespaces of the program are allowed.
NAMESPACES = {
    "unshare": "unshare --user --map-root-user --mount --pid --fork true",
    "bwrap": "bwrap --unshare-user --unshare-pid --uid 0 --ro-bind / / true",
    "setpriv": "setpriv --version",
}

# Other users may open the device only with a rule of udev, which a container lacks.
WITH_DEVICE = (
    "mkdir -p devices; mount -t tmpfs tmpfs devices; mknod -m 666 devices/fuse c 10 229;"
    " mount --bind devices/fuse /dev/fuse;"
    f" exec setpriv --reuid {USER} --regid {USER} --clear-groups bash -c \"$0\""
)


def documented_commands():
    """Returns the commands by the names of their programs."""
    text = DOCUMENT.read_text().replace("\\\n", "")
    lines = re.findall(rf"^    \$ ((?:{'|'.join(NAMESPACES)}) .*)$", text, re.M)
    commands = {line.split()[0]: line for line in lines}
    assert commands.keys() == NAMESPACES.keys(), f"{DOCUMENT} has only {list(commands)}"
    return commands


def run(command, directory, user):
    """Runs a command of the shell, as the caller if `user` is None. Its output goes to a file,
    because a mount that remains would keep a pipe open."""
    words = ["bash", "-c", command]
    if user:
        words = ["unshare", "--mount", "bash", "-e", "-c", WITH_DEVICE, command]
    with tempfile.TemporaryFile("w+") as lines:
        ended = subprocess.run(words, cwd=directory, stdin=subprocess.DEVNULL, stdout=lines,
                               stderr=lines, timeout=LIMIT)
        lines.seek(0)
        return ended.returncode, lines.read().strip()


def remaining_processes(directory):
    """Returns the processes of mounts of the directory that do not end."""
    for _ in range(100):
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if words.startswith(b"h5fs: ") and os.fsencode(directory) in words:
                found.append(words.replace(b"\0", b" ").decode())
        if not found:
            break
        time.sleep(0.05)
    return found


def result(program, command, directory, user):
    """Returns why the command is skipped, or how its output is wrong."""
    if not shutil.which(program) or run(NAMESPACES[program], directory, user)[0]:
        return f"skipped: {program} is missing, or its namespaces are not allowed"
    command = command.replace("/data/2026", str(directory / "2026"))
    if program == "setpriv":
        command += "; ls mnt; fusermount3 -u mnt"
    printed = run(command, directory, user)
    if printed != (0, "t.h5"):
        return f"failed: {command}\n  prints {printed}"
    remaining = remaining_processes(directory)
    return f"failed: {command}\n  leaves {remaining}" if remaining else "passed"


def main(program):
    import h5py

    failures = 0
    for user in [None, USER] if os.geteuid() == 0 else [None]:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            for path in (directory, directory / "2026", directory / "mnt"):
                path.mkdir(exist_ok=True)
                path.chmod(0o755)
            shutil.copy(program, directory / "h5fs")
            with h5py.File(directory / "2026/t.h5", "w") as file:
                file["t"] = [1, 2, 3]
            if user:
                shutil.chown(directory / "mnt", user)
            os.environ["PATH"] = f"{directory}{os.pathsep}{os.environ['PATH']}"
            for tool, command in documented_commands().items():
                said = result(tool, command, directory, user)
                failures += said.startswith("failed")
                print(f"{tool} as {user or 'the caller'}: {said}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
