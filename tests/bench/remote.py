"""Measures h5fs and its peers on an object server that is far away.

Each task is one line: medians of several cold runs, in turn, on the same server behind the same
proxy; the mount counts. The sums of the data have to be the same. The proxy, the tasks of the peers
and the files come from the directory of tools that --tools names.
"""

import argparse
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

KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "testtest",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}

# The task, the file, and what h5fs may take beside the best peer: a share of its seconds, requests,
# and MiB; None where nothing is asked.
TASKS = [
    ("list", "default.h5", 0.5, 300, None),
    ("list", "paged.h5", 0.7, None, None),
    ("small", "default.h5", 1.0, 8, 2),
    ("big", "default.h5", 0.6, 45, None),
    ("random", "default.h5", 0.8, None, None),
]


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
    """The proxy in front of the server, and what it counts."""

    def __init__(self, program, upstream):
        self.port = free_port()
        self.process = subprocess.Popen(
            [program, f"127.0.0.1:{self.port}", f"127.0.0.1:{upstream}",
             "--rate", "100", "--flow", "50"])
        wait_for(self.port)
        self.url = f"http://127.0.0.1:{self.port}"

    def ask(self, path):
        with urllib.request.urlopen(f"{self.url}{path}") as answer:
            return json.load(answer)


class Mounted:
    """A mount that a command makes, and the seconds that took; it ends with its `with`."""

    def __init__(self, command):
        self.point = tempfile.mkdtemp(prefix="h5fs-bench-")
        self.command = [*command, self.point]

    def __enter__(self):
        began = time.perf_counter()
        subprocess.run(self.command, check=True, env={**os.environ, **KEYS})
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


class LocalFile:
    """h5fs on the file itself."""

    name = "local file"

    def __init__(self, options):
        self.options = options

    def run(self, proxy, name, task):
        file = os.path.join(self.options.data, "bucket", name)
        with Mounted([self.options.binary, file]) as mount:
            seconds, result = peer(self.options, "tree", proxy, name, task, MNT=mount.point)
        return mount.seconds + seconds, result


class S3fsFuse:
    """h5py on the file of a mounted bucket."""

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


class Peer:
    def __init__(self, options, name):
        self.options, self.name = options, name

    def run(self, proxy, name, task):
        return peer(self.options, self.name, proxy, name, task)


def peer(options, method, proxy, name, task, **more):
    """The seconds that a task takes a fresh process, and its result."""
    script = os.path.join(options.tools, "peer.py")
    environment = {**os.environ, **KEYS, "EP": proxy.url, "WEB": proxy.url, **more}
    done = subprocess.run([sys.executable, script, method, name, task], check=True,
                          env=environment, capture_output=True, text=True)
    line = json.loads(done.stdout.splitlines()[-1])
    return line["s"], line["r"]


MANY = 10_000


def make_many(directory):
    """Small files, of which each has one dataset."""
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


def measure(methods, proxy, runs, name, task):
    """The median of the seconds of each method, and what its last run cost."""
    found = {}
    for _ in range(runs):
        for method in methods:
            proxy.ask("/__reset")
            try:
                seconds, result = method.run(proxy, name, task)
            except subprocess.CalledProcessError as error:
                print(f"{method.name}: {error}", file=sys.stderr)
                continue
            counts = proxy.ask("/__stats")
            entry = found.setdefault(method.name, {"seconds": []})
            entry["seconds"].append(seconds)
            entry.update(requests=counts["gets"] + counts["heads"] + counts["lists"],
                         mib=counts["bytes"] / 2**20, result=result)
    for entry in found.values():
        entry["seconds"] = statistics.median(entry["seconds"])
    return found


def judge(task, name, share, requests, mib, found):
    """A line for each method; whether h5fs keeps its floors."""
    own = found["h5fs"]
    others = [entry for method, entry in found.items() if method != "h5fs"]
    for method, entry in found.items():
        print(f"{task:7} {name:11} {method:13} {entry['seconds']:7.2f} s "
              f"{entry['requests']:5} requests {entry['mib']:8.1f} MiB")
    kept = True
    if task != "list" and others:
        kept &= all(entry["result"] == own["result"] for entry in others)
    if others:
        kept &= own["seconds"] <= share * min(entry["seconds"] for entry in others)
    kept &= requests is None or own["requests"] <= requests
    kept &= mib is None or own["mib"] <= mib
    print(f"{task:7} {name:11} {'kept' if kept else 'MISSED'}")
    return kept


def cached(options, proxy, runs):
    """Later mounts of an object whose bytes are in the cache on disk."""
    with tempfile.TemporaryDirectory(prefix="h5fs-bench-") as cache:
        own, local = H5fs(options, "--disk-cache", cache), LocalFile(options)
        own.run(proxy, "default.h5", "big")
        found = measure([own, local], proxy, runs, "default.h5", "big")
    for method, entry in found.items():
        print(f"cached  default.h5  {method:13} {entry['seconds']:7.2f} s "
              f"{entry['requests']:5} requests {entry['mib']:8.1f} MiB")
    later, near = found[own.name], found[local.name]
    kept = later["requests"] <= 1 and later["mib"] < 0.01
    kept &= later["seconds"] <= 1.5 * near["seconds"]
    kept &= later["result"] == near["result"]
    print(f"cached  default.h5  {'kept' if kept else 'MISSED'}")
    return kept


def many(options, proxy, runs):
    """A prefix of many files: its listing, and one value of each of a hundred."""
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
            proxy.ask("/__reset")
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
    parser.add_argument("--peers", default="s3fs-block4M,s3fs-fuse",
                        help="methods of peer.py, or s3fs-fuse")
    parser.add_argument("--tasks", default="", help="only these, separated by commas")
    options = parser.parse_args()
    if not os.path.isdir(options.tools):
        raise SystemExit(f"skipped: no tools in {options.tools}")
    make_files(options)
    proxy_program = os.path.join(options.data, "slowproxy")
    subprocess.run(["rustc", "-O", "-o", proxy_program,
                    os.path.join(options.tools, "slowproxy.rs")], check=True)
    port = free_port()
    hadro = shutil.which("hadro", path=os.path.dirname(sys.executable))
    server = subprocess.Popen(
        [hadro, options.data, "--host", "127.0.0.1", "--port", str(port),
         "--access-key", "test", "--secret-key", "testtest", "--region", "us-east-1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(port)
    proxy = Proxy(proxy_program, port)
    kept = True
    try:
        peers = [S3fsFuse(options) if name == "s3fs-fuse" else Peer(options, name)
                 for name in options.peers.split(",") if name]

        def is_asked_for(task):
            return not options.tasks or task in options.tasks.split(",")

        for latency in options.latency.split(","):
            proxy.ask(f"/__set?latency={latency}&connect={latency}")
            print(f"latency {latency} ms")
            for task, name, share, requests, mib in TASKS:
                if not is_asked_for(task):
                    continue
                found = measure([H5fs(options), *peers], proxy, options.runs, name, task)
                kept &= judge(task, name, share, requests, mib, found)
            kept &= not is_asked_for("cached") or cached(options, proxy, options.runs)
            kept &= not is_asked_for("many") or many(options, proxy, options.runs)
    finally:
        proxy.process.terminate()
        server.terminate()
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
