"""Measures h5fs and its peers on an object server that is far away.

Each task is one line: medians of several cold runs, in turn, on the same server behind the same
proxy; the mount counts. A peer that cannot sign its requests gets the same files from nginx, behind
a proxy of its own. The sums of the data have to be the same. The proxy, the tasks of the peers and
the files come from the directory of tools that --tools names.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass

KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "testtest",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}

# MiB per second through the proxy, in total and on one connection.
RATE, FLOW = 100, 50

# Round trips for one chunk: connection, superblock, group, index of the group, header, index,
# chunk.
DEEP = 8


@dataclass
class Floor:
    """The limits of h5fs for a task. None means that there is no limit."""

    task: str
    file: str
    # As a fraction of the seconds of the best peer, or of this peer.
    share: float
    peer: str | None = None
    requests: int | None = None
    mib: float | None = None
    # As a fraction of the seconds for transferring the stored bytes, and of these bytes.
    ideal: float | None = None
    stored: float | None = None


FLOORS = [
    Floor("list", "default.h5", 0.42, requests=300),
    Floor("list", "paged.h5", 0.7, requests=1 + 3),
    Floor("small", "default.h5", 0.85, requests=8, mib=2),
    Floor("big", "default.h5", 0.45, requests=45, ideal=1.5, stored=1.05),
    Floor("random", "default.h5", 0.8),
    Floor("fifty", "fifty.h5", 0.3, "remfile", requests=3),
    Floor("mean", "field.nc", 0.85),
    Floor("table", "table.h5", 0.85),
    Floor("runs", "runs/", 0.85),
    # Compared with an index that was written in advance. h5fs must read the files first.
    Floor("point", "days/", 2.0, "kerchunk"),
]

# The tasks of far.py. All others are tasks of peer.py.
FAR = ["fifty", "mean", "table", "runs", "point"]

# The names of peer.py's methods in far.py, and the methods that only far.py has.
FAR_METHODS = {"s3fs-block4M": "s3fs", "h5py-file": "file", "tree": "tree", "remfile": "remfile",
               "fsspec": "fsspec", "kerchunk": "kerchunk"}
OF_FAR = ["fsspec", "kerchunk"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nobody answers at port {port}")


class Proxy:
    """The proxy in front of the server, with its counters."""

    def __init__(self, program, upstream):
        self.port = free_port()
        self.process = subprocess.Popen(
            [program, f"127.0.0.1:{self.port}", f"127.0.0.1:{upstream}",
             "--rate", str(RATE), "--flow", str(FLOW)])
        wait_for(self.port)
        self.url = f"http://127.0.0.1:{self.port}"

    def ask(self, path):
        with urllib.request.urlopen(f"{self.url}{path}") as answer:
            return json.load(answer)

    def reset(self):
        """Resets the counters, once a program that has just ended sends no more requests."""
        before = None
        while (counts := self.ask("/__stats")) != before:
            before = counts
            time.sleep(0.5)
        self.ask("/__reset")


class Mounted:
    """A mount that a command creates, and the seconds that this takes. It ends with its `with`
    block."""

    def __init__(self, command, cache="/dev/null"):
        self.point = tempfile.mkdtemp(prefix="h5fs-bench-")
        self.command = [*command, self.point]
        self.more = {"XDG_CACHE_HOME": cache}

    def __enter__(self):
        began = time.perf_counter()
        subprocess.run(self.command, check=True, env={**os.environ, **KEYS, **self.more})
        self.seconds = time.perf_counter() - began
        return self

    def __exit__(self, *_):
        for _ in range(50):
            if not subprocess.run(["fusermount3", "-u", self.point]).returncode:
                break
            time.sleep(0.1)
        os.rmdir(self.point)


class H5fs:
    name = "h5fs"

    def __init__(self, options, *more):
        self.options, self.more = options, more

    def mounted(self, proxy, name):
        source = f"s3://bucket/{name}"
        return Mounted([self.options.binary, *self.more, "--endpoint", proxy.url, source])

    def run(self, proxy, name, task):
        with self.mounted(proxy, name) as mount:
            seconds, result = peer(self.options, "tree", proxy, name, task, MNT=mount.point)
        return mount.seconds + seconds, result


class Known(H5fs):
    """A mount that knows the content of a prefix's files from another mount."""

    name = "h5fs-known"

    def mounted(self, proxy, name):
        cache = os.path.join(os.path.abspath(self.options.data), "known")
        command = [self.options.binary, "--endpoint", proxy.url, f"s3://bucket/{name}"]
        if not os.path.isdir(cache):
            with Mounted(command, cache) as mount:
                os.stat(os.path.join(mount.point, ".h5fs/joined/t"))
        return Mounted(command, cache)


class LocalFile:
    """h5fs on the local file."""

    name = "local file"

    def __init__(self, options):
        self.options = options

    def run(self, proxy, name, task):
        file = os.path.join(self.options.data, "bucket", name)
        with Mounted([self.options.binary, file]) as mount:
            seconds, result = peer(self.options, "tree", proxy, name, task, MNT=mount.point)
        return mount.seconds + seconds, result


class S3fsFuse:
    """h5py on a file of a bucket that s3fs-fuse mounts."""

    name = "s3fs-fuse"

    def __init__(self, options):
        self.options = options

    def run(self, proxy, name, task):
        with tempfile.NamedTemporaryFile("w") as keys:
            keys.write("test:testtest\n")
            keys.flush()
            how = f"url={proxy.url},endpoint=us-east-1,use_path_request_style,passwd_file={keys.name}"
            mount = Mounted(["s3fs", "-o", how, "bucket"])
            with mount:
                seconds, result = peer(
                    self.options, "h5py-file", proxy, name, task, MNT=mount.point)
        return mount.seconds + seconds, result


class Rclone:
    """h5py on a file of a bucket that rclone mounts, with its file cache."""

    name = "rclone"

    def __init__(self, options):
        self.options = options

    def run(self, proxy, name, task):
        remote = (":s3,provider=Other,access_key_id=test,secret_access_key=testtest,"
                  f"endpoint='{proxy.url}':bucket")
        with tempfile.TemporaryDirectory(prefix="h5fs-bench-") as cache:
            command = ["rclone", "mount", "--read-only", "--daemon", "--config", "/dev/null",
                       "--vfs-cache-mode", "full", "--cache-dir", cache, remote]
            with Mounted(command) as mount:
                seconds, result = peer(
                    self.options, "h5py-file", proxy, name, task, MNT=mount.point)
        return mount.seconds + seconds, result


class MountpointS3:
    """h5py on a file of a bucket that mountpoint-s3 mounts.

    mountpoint-s3 rejects a bucket of hadro 0.7.1, which marks an empty listing (`max-keys=0`) as
    truncated."""

    name = "mount-s3"

    def __init__(self, options):
        self.options = options

    def run(self, proxy, name, task):
        command = ["mount-s3", "--endpoint-url", proxy.url, "--force-path-style",
                   "--region", "us-east-1", "--read-only", "bucket"]
        with Mounted(command) as mount:
            seconds, result = peer(
                self.options, "h5py-file", proxy, name, task, MNT=mount.point)
        return mount.seconds + seconds, result


class Peer:
    def __init__(self, options, name):
        self.options, self.name = options, name

    def run(self, proxy, name, task):
        return peer(self.options, self.name, proxy, name, task)


class Unsigned(Peer):
    """A peer that does not sign requests, and has a separate server and proxy."""

    def __init__(self, options, name, proxy):
        super().__init__(options, name)
        self.proxy = proxy


def peer(options, method, proxy, name, task, **more):
    """Returns the seconds of a task in a new process, and its result."""
    if task in FAR:
        index = os.path.join(options.data, "bucket")
        words, more = [far_script(), FAR_METHODS[method], task], {"INDEX": index, **more}
    else:
        words = [os.path.join(options.tools, "peer.py"), method, name, task]
    environment = {**os.environ, **KEYS, "EP": proxy.url, "WEB": proxy.url, **more}
    done = subprocess.run([sys.executable, *words], check=True, env=environment,
                          capture_output=True, text=True, timeout=600)
    line = json.loads(done.stdout.splitlines()[-1])
    return line["s"], line["r"]


def far_script():
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "far.py")


def can(method, task):
    """Returns whether a method supports a task."""
    if method.name == "kerchunk":
        return task in ("mean", "point")
    return task in FAR or method.name not in OF_FAR


MANY = 10_000


def make_many(directory):
    """Writes small files with one dataset each."""
    import h5py
    import numpy as np

    if os.path.isdir(directory):
        return
    os.makedirs(f"{directory}.part", exist_ok=True)
    for number in range(MANY):
        with h5py.File(f"{directory}.part/run_{number:05}.h5", "w") as file:
            file["x"] = np.arange(number, number + 256, dtype="<i4")
    os.rename(f"{directory}.part", directory)


def make_files(options):
    bucket = os.path.join(options.data, "bucket")
    os.makedirs(bucket, exist_ok=True)
    make = os.path.join(options.tools, "make_data.py")
    for which, more in [("default", []), ("paged", ["4"])]:
        path = os.path.join(bucket, f"{which}.h5")
        if not os.path.exists(path):
            subprocess.run([sys.executable, make, which, path, *more], check=True)
    make_many(os.path.join(bucket, "many"))
    subprocess.run([sys.executable, far_script(), "make", bucket], check=True)


def measure(methods, proxy, runs, name, task):
    """Returns the median seconds of each method, and the cost of its last run."""
    found = {}
    for _ in range(runs):
        for method in methods:
            own = getattr(method, "proxy", proxy)
            own.reset()
            try:
                seconds, result = method.run(own, name, task)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                print(f"{method.name}: {error} {error.stderr or ''}", file=sys.stderr)
                continue
            counts = own.ask("/__stats")
            entry = found.setdefault(method.name, {"seconds": []})
            entry["seconds"].append(seconds)
            entry.update(requests=counts["gets"] + counts["heads"] + counts["lists"],
                         mib=counts["bytes"] / 2**20, result=result)
    for entry in found.values():
        entry["seconds"] = statistics.median(entry["seconds"])
    return found


def ideal(options, latency):
    """Returns the MiB of the large dataset, and the minimum seconds for their transfer."""
    import h5py

    with h5py.File(os.path.join(options.data, "bucket", "default.h5")) as file:
        stored = file["big"].id.get_storage_size() / 2**20
    return stored, DEEP * latency / 1000 + stored / RATE


def judge(floor, found, stored, shortest):
    """Prints a line for each method. Returns whether h5fs meets its limits."""
    task, name, own = floor.task, floor.file, found.get("h5fs")
    if not own:
        return False
    others = [entry for method, entry in found.items() if method != "h5fs"]
    for method, entry in found.items():
        print(f"{task:7} {name:11} {method:13} {entry['seconds']:7.2f} s "
              f"{entry['requests']:5} requests {entry['mib']:8.1f} MiB")
    kept = True
    if task != "list" and others:
        kept &= all(entry["result"] == own["result"] for entry in others)
    said = ""
    if others:
        best = own["seconds"] / min(entry["seconds"] for entry in others)
        said = f", {best:.2f} of the best peer"
        if floor.peer in found:
            best = own["seconds"] / found[floor.peer]["seconds"]
            said += f", {best:.2f} of {floor.peer}"
        kept &= best <= floor.share
    kept &= floor.requests is None or own["requests"] <= floor.requests
    kept &= floor.mib is None or own["mib"] <= floor.mib
    if floor.ideal is not None:
        seconds, mib = own["seconds"] / shortest, own["mib"] / stored
        said += f", {seconds:.2f} of the ideal {shortest:.2f} s, {mib:.3f} of the bytes"
        kept &= seconds <= floor.ideal and mib <= floor.stored
    print(f"{task:7} {name:11} {'kept' if kept else 'MISSED'}{said}")
    return kept


def cached(options, proxy, latency, runs):
    """Measures later mounts of an object whose bytes are in the disk cache."""
    with tempfile.TemporaryDirectory(prefix="h5fs-bench-") as cache:
        own, local = H5fs(options, "--disk-cache", cache), LocalFile(options)
        own.run(proxy, "default.h5", "big")
        found = measure([own, local], proxy, runs, "default.h5", "big")
    for method, entry in found.items():
        print(f"cached  default.h5  {method:13} {entry['seconds']:7.2f} s "
              f"{entry['requests']:5} requests {entry['mib']:8.1f} MiB")
    later, near = found[own.name], found[local.name]
    kept = later["requests"] <= 1 and later["mib"] < 0.01
    share = later["seconds"] / near["seconds"]
    kept &= share <= 1.5
    kept &= later["result"] == near["result"]
    # One round trip for the connection, and one to check that the object is unchanged.
    trips = 2 * latency / 1000
    print(f"cached  default.h5  {'kept' if kept else 'MISSED'}, {share:.2f} of a local file, "
          f"{(later['seconds'] - trips) / near['seconds']:.2f} beside two round trips")
    return kept


def many(options, proxy, runs):
    """Measures a prefix of many files: its listing, and one value of each of a hundred files."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prefix.py")

    def child(method, **more):
        environment = {**os.environ, **KEYS, "EP": proxy.url, **more}
        done = subprocess.run([sys.executable, script, method], check=True, env=environment,
                              capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    def mounted():
        with H5fs(options).mounted(proxy, "many/") as mount:
            return child("tree", MNT=mount.point)

    found = {"h5fs": [], "s3fs-block4M": []}
    for _ in range(runs):
        for method, run in [("h5fs", mounted), ("s3fs-block4M", lambda: child("s3fs"))]:
            proxy.reset()
            found[method].append(run())
    seconds = {}
    for method, all_runs in found.items():
        seconds[method] = statistics.median(one["s"] for one in all_runs)
        ls = statistics.median(one["ls"] for one in all_runs)
        counts = all_runs[-1]["counts"]
        print(f"many    ls {ls:6.2f} s {counts['lists']:3} pages {counts['gets']:3} GETs, "
              f"values {seconds[method]:6.2f} s  {method}")
    own, other = found["h5fs"][-1], found["s3fs-block4M"][-1]
    kept = own["counts"]["lists"] == MANY // 1000 and own["counts"]["gets"] == 0
    kept &= own["r"] == other["r"] and own["count"] == MANY
    kept &= seconds["h5fs"] <= 0.3 * seconds["s3fs-block4M"]
    print(f"many    {'kept' if kept else 'MISSED'}")
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    repository = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    tools = os.path.join(os.path.dirname(repository), "shared", "tools", "remote")
    parser.add_argument("--binary", required=True, help="the program")
    parser.add_argument("--data", required=True, help="directory of the files")
    parser.add_argument("--tools", default=tools, help="directory of the proxy and the peers")
    parser.add_argument("--latency", default="30,100", help="milliseconds, separated by commas")
    parser.add_argument("--runs", type=int, default=3)
    mounts = [name for name in ["rclone", "mount-s3"] if shutil.which(name)]
    peers = ",".join(["s3fs-block4M", "s3fs-fuse", "remfile", *OF_FAR, *mounts])
    parser.add_argument("--peers", default=peers,
                        help="methods of peer.py and far.py, s3fs-fuse, rclone or mount-s3; "
                        "without it: %(default)s")
    parser.add_argument("--tasks", default="", help="only these, separated by commas")
    options = parser.parse_args()
    # The servers have plain HTTP without certificates.
    os.environ.pop("AWS_CA_BUNDLE", None)
    if not os.path.isdir(options.tools):
        raise SystemExit(f"skipped: no tools in {options.tools}")
    make_files(options)
    proxy_program = os.path.join(options.data, "slowproxy")
    subprocess.run(["rustc", "-O", "-o", proxy_program,
                    os.path.join(options.tools, "slowproxy.rs")], check=True)
    with contextlib.ExitStack() as servers:
        proxy = Proxy(proxy_program, hadro(options, servers))
        servers.callback(proxy.process.terminate)
        asked_for = [name for name in options.peers.split(",") if name]
        web = None
        if {"remfile", *OF_FAR} & set(asked_for):
            web = Proxy(proxy_program, nginx(options, servers))
            servers.callback(web.process.terminate)

        def method(name):
            match name:
                case "s3fs-fuse":
                    return S3fsFuse(options)
                case "mount-s3":
                    return MountpointS3(options)
                case "rclone":
                    return Rclone(options)
                case "remfile" | "fsspec" | "kerchunk":
                    return Unsigned(options, name, web)
            return Peer(options, name)

        kept = all_tasks(options, [proxy, web], [method(name) for name in asked_for])
    sys.exit(0 if kept else 1)


def hadro(options, servers):
    """Starts an S3 server that verifies signatures. Returns its port."""
    port = free_port()
    program = shutil.which("hadro", path=os.path.dirname(sys.executable))
    started = subprocess.Popen(
        [program, options.data, "--host", "127.0.0.1", "--port", str(port),
         "--access-key", "test", "--secret-key", "testtest", "--region", "us-east-1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    servers.callback(started.terminate)
    wait_for(port)
    return port


def nginx(options, servers):
    """Starts a plain web server. Returns its port."""
    port, own = free_port(), tempfile.mkdtemp(prefix="h5fs-bench-")
    servers.callback(shutil.rmtree, own, ignore_errors=True)
    settings = f"""
        daemon off; pid {own}/pid; error_log {own}/log; worker_processes 1; user root;
        events {{}}
        http {{
            access_log off; client_body_temp_path {own}; proxy_temp_path {own};
            fastcgi_temp_path {own}; uwsgi_temp_path {own}; scgi_temp_path {own};
            keepalive_requests 100000;
            server {{ listen 127.0.0.1:{port}; root {os.path.abspath(options.data)}; }}
        }}"""
    path = os.path.join(own, "nginx.conf")
    with open(path, "w") as file:
        file.write(settings)
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    started = subprocess.Popen([program, "-c", path, "-e", f"{own}/log"])
    servers.callback(started.terminate)
    wait_for(port)
    return port


def all_tasks(options, proxies, peers):
    """Runs all tasks. Returns whether all limits are met."""
    kept, proxy = True, proxies[0]

    def is_asked_for(task):
        return not options.tasks or task in options.tasks.split(",")

    for latency in options.latency.split(","):
        for each in filter(None, proxies):
            each.ask(f"/__set?latency={latency}&connect={latency}")
        print(f"latency {latency} ms")
        least = ideal(options, int(latency))
        for floor in filter(lambda floor: is_asked_for(floor.task), FLOORS):
            methods = [H5fs(options), *(peer for peer in peers if can(peer, floor.task))]
            if floor.task == "point":
                methods.insert(1, Known(options))
            found = measure(methods, proxy, options.runs, floor.file, floor.task)
            kept &= judge(floor, found, *least)
        kept &= not is_asked_for("cached") or cached(
            options, proxy, int(latency), options.runs)
        kept &= not is_asked_for("many") or many(options, proxy, options.runs)
    return kept


if __name__ == "__main__":
    main()
