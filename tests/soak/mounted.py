"""Shared code of the soak tests: a mount, its worker, and measurements.

A part is a program `PART.py H5FS SECONDS [LEAST]`. It runs for at least SECONDS and for at least
LEAST rounds, prints its results, and ends with 0 on success."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
BASE = 64 * MIB  # memory of the program in addition to its cache and the chunks being decoded


class Mount:
    """A mounted file, until the block ends."""

    def __init__(self, h5fs, source, cache=64 * MIB, threads=2, options=(), environment=None):
        self.source, self.cache, self.threads = os.path.abspath(source), cache, threads
        self.command = [
            h5fs,
            "-o",
            ",".join([f"cache_size={cache}", f"threads={threads}", *options]),
            self.source,
        ]
        self.environment = environment
        self.path = tempfile.mkdtemp(prefix="h5fs-soak-mnt-")

    def __enter__(self):
        done = subprocess.run(
            [*self.command, self.path],
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            timeout=600,
        )
        if done.returncode:
            raise SystemExit(f"{self.source} does not mount: {done.stderr}")
        return self

    def __exit__(self, *_):
        for command in (["fusermount3", "-u"], ["fusermount3", "-u", "-z"]):
            if (
                not is_mounted(self.path)
                or not subprocess.run([*command, self.path], stderr=subprocess.DEVNULL).returncode
            ):
                break
        gone = wait_until(lambda: not is_mounted(self.path) and not processes(self.path), 100)
        with contextlib.suppress(OSError):
            os.rmdir(self.path)
        assert gone, f"left behind: {self.path} {processes(self.path)}"

    def at(self, path):
        return os.path.join(self.path, path)

    @property
    def worker(self):
        """Returns the number of the process that reads the source."""
        found = [pid for pid, title in processes(self.path) if "worker" in title]
        assert len(found) == 1, processes(self.path)
        return found[0]

    @property
    def supervisor(self):
        found = [pid for pid, title in processes(self.path) if "supervisor" in title]
        assert len(found) == 1, processes(self.path)
        return found[0]

    def memory(self, figure="VmRSS"):
        return memory(self.worker, figure)

    def check_memory(self, stored=0, decoded=0):
        """Checks the worker's peak memory against the promised limit. `stored` and `decoded` are
        the bytes of the largest chunk."""
        peak = self.memory("VmHWM")
        promised = self.cache + BASE + self.threads * (stored + 2 * decoded)
        say(f"peak memory {peak / MIB:.1f} MiB, promised {promised / MIB:.1f} MiB")
        assert peak <= promised, "more memory than promised"


def memory(pid, figure):
    """Returns a memory figure of a process, in bytes."""
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith(figure + ":"))
    return int(line.split()[1]) << 10


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def processes(mountpoint):
    """Returns the processes of the program that serve this mount, as number and title."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as cmdline:
            title = cmdline.read().replace(b"\0", b" ").decode(errors="replace").strip()
            if title.startswith("h5fs: ") and mountpoint in title:
                found.append((int(pid), title))
    return found


def is_mounted(path):
    """Returns whether the mount table lists this path. A request to the mount itself could hang."""
    with open("/proc/self/mountinfo") as mounts:
        return any(line.split(" ")[4] == path for line in mounts)


def wait_until(true, seconds):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def rounds(seconds, least):
    """Counts rounds, for at least this time and at least this number of rounds."""
    end = time.monotonic() + seconds
    done = 0
    while done < least or time.monotonic() < end:
        yield done
        done += 1


def say(text):
    print(f"{os.path.splitext(os.path.basename(sys.argv[0]))[0]}: {text}", flush=True)


def run(part, least):
    """Runs a part's function with the program, the seconds and the minimum number of rounds, in a
    temporary directory."""
    h5fs, seconds = os.path.abspath(sys.argv[1]), float(sys.argv[2])
    least = int(sys.argv[3]) if len(sys.argv) > 3 else least
    # a terminated part must remove its mounts
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    home = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="h5fs-soak-") as directory:
        os.chdir(directory)
        start = time.monotonic()
        try:
            part(h5fs, seconds, least)
        finally:
            os.chdir(home)
        say(f"done in {time.monotonic() - start:.0f} s")
