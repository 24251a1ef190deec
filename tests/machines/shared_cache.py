"""Tries the recipe for many nodes and one cache: a network namespace stands for the head, and two
for nodes.

A slow server outside of them has a file. The head serves the file with `h5fs serve` and nginx, as
docs/remote.md says, and the nodes mount what the head serves. The server counts the requests and
the bytes that it sends to each machine. --help lists the flags.
"""

import argparse
import contextlib
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

from namespaces import NETWORK, network, running, wait_for

FAR_PORT = 9000
HEAD_PORT = 8000
DELAY = 0.05
SIZE = 16 << 20
# The bytes that tell a client that its copy is current: listings, headers, the beginning of a file.
CHECK_BYTES = 1 << 19

# Seconds for which a listing, and the state of an object, count as current.
CURRENT = 30

# A node: mounts, reads a variable in two halves, and waits for a line between the halves.
NODE = """
set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/data
"$H5FS" --disk-cache "$CACHE" "$URL" /mnt/data
trap 'fusermount3 -u /mnt/data' EXIT
half=$(($(stat -c %s /mnt/data/t2m) / 2))
head -c $half /mnt/data/t2m > "$CACHE-read"
echo half
read -r _
tail -c +$((half + 1)) /mnt/data/t2m >> "$CACHE-read"
"""


class FarServer(http.server.ThreadingHTTPServer):
    """A server with one file and a strong entity tag, which answers after a delay."""

    daemon_threads = True

    def __init__(self):
        self.content = b""
        self.log = []
        super().__init__((f"{NETWORK}.1", FAR_PORT), FarRequest)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def traffic(self):
        """Returns the number of requests and the bytes since the last call. All requests must come
        from the head."""
        log, self.log = self.log, []
        clients = {client for client, _ in log}
        assert clients <= {f"{NETWORK}.2"}, f"{clients} sent requests to the far server"
        return len(log), sum(sent for _, sent in log)


class FarRequest(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(DELAY)
        content, status, more = self.server.content, 200, {}
        if self.path == "/data/":
            body = b"<title>Index of /data/</title><a href='run.h5'>run.h5</a></html>"
            more["Content-Type"] = "text/html"
        elif self.path == "/data/run.h5":
            more["ETag"] = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            begin, end = 0, len(content)
            if wanted := re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
                begin, end = int(wanted[1]), min(int(wanted[2]) + 1, end)
                more["Content-Range"] = f"bytes {begin}-{end - 1}/{len(content)}"
                status = 206
            body = content[begin:end]
        else:
            body, status = b"", 404
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        sent = len(body) if self.command == "GET" else 0
        self.server.log.append((self.client_address[0], sent))
        if sent:
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


class Node:
    """A mount of a node, which has read the first half of the variable."""

    def __init__(self, name, top, binary, url):
        self.name, self.cache = name, os.path.join(top, name)
        self.before = self.received_now()
        environment = {**os.environ, "H5FS": binary, "CACHE": self.cache, "URL": url}
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", name, "bash", "-c", NODE], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "half\n", f"{name} cannot read"

    def finish(self):
        """Reads the second half and unmounts. Returns the variable's bytes, and the number of bytes
        that the node received."""
        self.process.communicate("\n", timeout=120)
        assert self.process.returncode == 0, f"{self.name} cannot read the second half"
        with open(f"{self.cache}-read", "rb") as file:
            return file.read(), self.received_now() - self.before

    def received_now(self):
        with open(f"/sys/class/net/{self.name}-out/statistics/tx_bytes") as file:
            return int(file.read())


def make_file(path, seed):
    """Writes a variable. Returns the bytes of the file and of the variable."""
    import h5py
    import numpy

    data = numpy.random.default_rng(seed).integers(0, 1000, SIZE // 4).astype("<f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("t2m", data=data, chunks=(1 << 18,))
    with open(path, "rb") as file:
        return file.read(), data.tobytes()


def documented_configuration(top):
    """Returns the path of nginx's configuration in docs/remote.md, with the addresses and the paths
    of this test."""
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(os.path.dirname(tests), "docs", "remote.md")) as file:
        block = file.read().split("```nginx\n")[1].split("```")[0]
    replacements = {"10.0.0.0/8": f"{NETWORK}.0/24", "listen 8000": f"listen {HEAD_PORT}",
                    "/run/h5fs/serve.sock": f"{top}/head/serve.sock"}
    for documented, own in replacements.items():
        assert documented in block, f"docs/remote.md does not contain {documented}"
        block = block.replace(documented, own)
    path = os.path.join(top, "nginx.conf")
    with open(path, "w") as file:
        file.write(f"pid {top}/nginx.pid;\n{block}")
    return path


class Head:
    """The machine that runs `h5fs serve` and nginx."""

    def __init__(self, name, top, binary):
        self.inside = ["ip", "netns", "exec", name]
        self.directory = os.path.join(top, "head")
        self.binary = binary
        os.mkdir(self.directory)
        shutil.chown(self.directory, "www-data", "www-data")
        self.configuration = documented_configuration(top)

    def nginx(self):
        return running(*self.inside, "nginx", "-c", self.configuration, "-g", "daemon off;",
                       stderr=subprocess.DEVNULL)

    @contextlib.contextmanager
    def serve(self):
        """Runs `h5fs serve` as the user of nginx."""
        user = ["setpriv", "--reuid", "www-data", "--regid", "www-data", "--clear-groups"]
        words = ["--listen", f"unix:{self.directory}/serve.sock", "--no-token", "--disk-cache",
                 f"{self.directory}/cache", f"http://{NETWORK}.1:{FAR_PORT}/data/"]
        with running(*self.inside, *user, self.binary, "serve", *words,
                     stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline().startswith("http://"), "the head does not serve"
            yield


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="the program")
    binary = parser.parse_args().binary
    top = tempfile.mkdtemp(prefix="h5fs-shared-cache-")
    url = f"http://{NETWORK}.2:{HEAD_PORT}/.h5fs/original/run.h5"
    counts = {}
    with contextlib.ExitStack() as all_of_it:
        all_of_it.callback(shutil.rmtree, top, ignore_errors=True)
        os.chmod(top, 0o755)
        head_name, *names = all_of_it.enter_context(network(3))
        far = FarServer()
        far.content, expected = make_file(os.path.join(top, "run.h5"), 1)
        head = Head(head_name, top, binary)

        def read(name, between=lambda: None):
            """Reads on a node. Returns the requests and bytes of the far server, and the bytes that
            the node received."""
            node = Node(name, top, binary, url)
            between()
            values, received = node.finish()
            assert values == expected, f"{name} read wrong values"
            return (*far.traffic(), received)

        all_of_it.enter_context(head.nginx())
        wait_for(HEAD_PORT, 2)
        with contextlib.ExitStack() as run:
            run.enter_context(head.serve())
            counts["node 1, all caches empty"] = requests, sent, received = read(names[0])
            assert SIZE < sent < 1.05 * SIZE and SIZE < received < 1.1 * SIZE, counts
            counts["node 2, its cache empty"] = requests, sent, received = read(names[1])
            assert requests <= 3 and sent < CHECK_BYTES and received > SIZE, counts
            counts["node 1 again"] = requests, sent, received = read(names[0])
            assert requests <= 3 and sent < CHECK_BYTES and received < CHECK_BYTES, counts

            def restart():
                run.close()
                run.enter_context(head.serve())

            # The entity tag of the file is the same in all runs of the head.
            restart()
            counts["node 1, after a restart of the head"] = requests, sent, received = read(
                names[0])
            assert requests <= 6 and sent < CHECK_BYTES and received < CHECK_BYTES, counts
            shutil.rmtree(os.path.join(top, names[1]))
            counts["node 2, its cache empty, during a restart"] = requests, sent, received = read(
                names[1], restart)
            assert requests <= 6 and sent < CHECK_BYTES and received < 1.1 * SIZE, counts
            # The bytes of another state of the file are never taken from a cache.
            far.content, expected = make_file(os.path.join(top, "run.h5"), 2)
            time.sleep(CURRENT + 1)
            counts["node 1, the file has changed"] = requests, sent, received = read(names[0])
            assert sent > SIZE and received > SIZE, counts
    for event, (requests, sent, received) in counts.items():
        print(f"{event}: {requests} requests and {sent >> 10} KiB from the far server, "
              f"{received >> 10} KiB to the node")


if __name__ == "__main__":
    main()
