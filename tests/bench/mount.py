"""A mount that ends with its `with` block, and queries about it."""

import glob
import os
import subprocess
import tempfile
import time


class Mount:
    """A mount. By default its cache directory is unusable, so that no scan results of other mounts
    are known."""

    def __init__(self, h5fs, source, *options, cache="/dev/null"):
        self.path = tempfile.mkdtemp(prefix="h5fs-bench-")
        self.command = [h5fs, *options, source, self.path]
        self.environment = {**os.environ, "XDG_CACHE_HOME": cache}

    def __enter__(self):
        # in a separate session, so that Ctrl-C does not interrupt it
        mounting = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, start_new_session=True, env=self.environment
        )
        try:
            if mounting.wait(60):
                raise RuntimeError(f"{self.command} failed")
        except BaseException:
            mounting.wait(60)
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for _ in range(100):
            if not os.path.ismount(self.path):
                break
            if subprocess.run(
                ["fusermount3", "-u", self.path], stderr=subprocess.DEVNULL
            ).returncode:
                time.sleep(0.1)
        else:
            subprocess.run(["fusermount3", "-uz", self.path])
        os.rmdir(self.path)

    def at(self, name):
        return os.path.join(self.path, name)

    def status(self, key):
        """Returns a number of the status view."""
        with open(self.at(".h5fs/status")) as status:
            return int(dict(line.rstrip("\n").split(": ", 1) for line in status)[key])

    def worker(self, file, key):
        """Returns a number in /proc/PID/FILE of the worker, for example the bytes read (io, rchar)
        or the peak memory in KiB (status, VmHWM)."""
        with open(os.path.join(self.process(), file)) as facts:
            return next(int(line.split()[1]) for line in facts if line.startswith(key + ":"))

    def processor(self):
        """Returns the processor time of the worker in seconds."""
        with open(os.path.join(self.process(), "stat")) as facts:
            user, system = facts.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def process(self):
        """Returns the directory of the worker in /proc."""
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path) as cmdline:
                    words = cmdline.read().split("\0")
            except FileNotFoundError:
                continue  # the process has ended meanwhile
            if words[0] == "h5fs: worker" and self.path in words:
                return os.path.dirname(path)
        raise LookupError(f"no worker for {self.path}")
