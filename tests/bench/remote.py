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


class H5fs:
    name = "h5fs"

    def __init__(self, options):
        self.options = options

    def run(self, proxy, name, task):
        point = tempfile.mkdtemp(prefix="h5fs-bench-")
        began = time.perf_counter()
        subprocess.run(
            [self.options.binary, "--endpoint", proxy.url, f"s3://bucket/{name}", point],
            check=True, env={**os.environ, **KEYS})
        mounted = time.perf_counter() - began
        try:
            seconds, result = peer(self.options, "tree", proxy, name, task, MNT=point)
        finally:
            subprocess.run(["fusermount3", "-u", point], check=True)
            os.rmdir(point)
        return mounted + seconds, result


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


def make_files(options):
    bucket = os.path.join(options.data, "bucket")
    os.makedirs(bucket, exist_ok=True)
    make = os.path.join(options.tools, "make_data.py")
    for which, more in [("default", []), ("paged", ["4"])]:
        path = os.path.join(bucket, f"{which}.h5")
        if not os.path.exists(path):
            subprocess.run([sys.executable, make, which, path, *more], check=True)


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    repository = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    tools = os.path.join(os.path.dirname(repository), "shared", "tools", "remote")
    parser.add_argument("--binary", required=True, help="the program")
    parser.add_argument("--data", required=True, help="directory of the files")
    parser.add_argument("--tools", default=tools, help="directory of the proxy and the peers")
    parser.add_argument("--latency", default="30,100", help="milliseconds, separated by commas")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peers", default="s3fs-block4M", help="methods of peer.py")
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
        peers = [Peer(options, name) for name in options.peers.split(",") if name]
        for latency in options.latency.split(","):
            proxy.ask(f"/__set?latency={latency}&connect={latency}")
            print(f"latency {latency} ms")
            for task, name, share, requests, mib in TASKS:
                found = measure([H5fs(options), *peers], proxy, options.runs, name, task)
                kept &= judge(task, name, share, requests, mib, found)
    finally:
        proxy.process.terminate()
        server.terminate()
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
