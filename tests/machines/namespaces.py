"""Network namespaces that stand for machines, on a bridge that stands for their network."""

import contextlib
import socket
import subprocess
import time

BRIDGE = "h5fs-br"
NETWORK = "10.213.77"


def run(*words):
    subprocess.run(words, check=True)


@contextlib.contextmanager
def network(machines):
    """Creates a bridge at address 1 of the network, and a network namespace at each of the next
    addresses."""
    names = [f"h5fs-m{number}" for number in range(1, machines + 1)]
    try:
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "address", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        for number, name in enumerate(names, 1):
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"{name}-out", "type", "veth",
                "peer", "name", "in", "netns", name)
            run("ip", "link", "set", f"{name}-out", "master", BRIDGE, "up")
            inside = ["ip", "-n", name]
            run(*inside, "address", "add", f"{NETWORK}.{number + 1}/24", "dev", "in")
            run(*inside, "link", "set", "in", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)
        subprocess.run(["ip", "link", "del", BRIDGE], check=False)


@contextlib.contextmanager
def running(*words, **how):
    """Runs a program until the end of the `with` block."""
    process = subprocess.Popen(words, **how)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def wait_for(port, host=1):
    """Waits until the host with this number accepts connections at the port."""
    for _ in range(200):
        try:
            return socket.create_connection((f"{NETWORK}.{host}", port), 1).close()
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"host {host} does not answer at port {port}")
