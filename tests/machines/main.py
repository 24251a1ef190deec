"""Tries the recipe for many machines: two network namespaces stand for two machines.

The server is outside of both. Each machine mounts the same object at the same path, with a cache of
its own, and has one worker of Dask. The scheduler and the one who asks are outside, too. The sums
have to be those of h5py, both workers have to take part, and the server may send little more than
the object once to each machine. --help lists the flags.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

from namespaces import BRIDGE, NETWORK, network, running, wait_for

PORT = 9000
KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "testtest",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}

# Commands on a machine, in its own mount namespace, so that they have no effect outside.
MACHINE = """
set -e
ip link set lo up
mount -t tmpfs tmpfs /mnt
mkdir /mnt/run
"$H5FS" --disk-cache "$CACHE" --endpoint "$ENDPOINT" s3://data/run.h5 /mnt/run
trap 'kill %1; wait; fusermount3 -u /mnt/run; exit' TERM
"$DASK" worker --nthreads 2 --no-dashboard --no-nanny --name "$MACHINE" \
    --local-directory "$CACHE-dask" "$SCHEDULER" > "$CACHE.log" 2>&1 &
wait
"""


def make_file(path):
    """Writes a variable of 64 MiB. Returns its sum."""
    import h5py
    import numpy

    random = numpy.random.default_rng(1)
    with h5py.File(path, "w") as file:
        data = file.create_dataset("t2m", (64, 256, 1024), "<f4", chunks=(4, 256, 1024))
        total = 0.0
        for start in range(0, 64, 4):
            part = random.integers(0, 1000, (4, 256, 1024)).astype("<f4")
            data[start : start + 4] = part
            total += float(part.sum(dtype="f8"))
    return total


def sent_bytes():
    """Returns the number of bytes sent over the bridge."""
    with open(f"/sys/class/net/{BRIDGE}/statistics/tx_bytes") as file:
        return int(file.read())


def summed(scheduler):
    """Returns the sum over the store in the mount, and the machines that took part."""
    import distributed

    def part(start):
        import zarr

        array = zarr.open_group("/mnt/run/.h5fs/file.zarr", mode="r")["t2m"]
        worker = distributed.get_worker()
        return worker.name, float(array[start : start + 4].sum(dtype="f8"))

    with distributed.Client(scheduler) as client:
        client.wait_for_workers(2, timeout=60)
        found = client.gather(client.map(part, range(0, 64, 4), pure=False))
    return sum(value for _, value in found), {name for name, _ in found}


def documented(machine, scheduler):
    """Returns the number that the lines of docs/remote.md print on a machine, where they run as
    `python3 -c "…"`."""
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(os.path.dirname(tests), "docs", "remote.md")) as file:
        section = file.read().split("## Many machines")[1]
    lines = section.split('python3 -c "\n')[1].split('"\n')[0]
    lines = textwrap.dedent(lines).replace("SCHEDULER", f"{NETWORK}.1")
    inside = ["nsenter", "-t", str(machine.pid), "-n", "-m", sys.executable, "-c", lines]
    return float(subprocess.run(inside, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="the program")
    options = parser.parse_args()
    beside = os.path.dirname(sys.executable)
    top = tempfile.mkdtemp(prefix="h5fs-machines-")
    scheduler = f"tcp://{NETWORK}.1:8786"
    endpoint = f"http://{NETWORK}.1:{PORT}"
    with contextlib.ExitStack() as all_of_it:
        all_of_it.callback(shutil.rmtree, top, ignore_errors=True)
        os.mkdir(os.path.join(top, "data"))
        path = os.path.join(top, "data", "run.h5")
        expected = make_file(path)
        names = all_of_it.enter_context(network(2))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        all_of_it.enter_context(running(
            os.path.join(beside, "hadro"), top, "--host", f"{NETWORK}.1", "--port", str(PORT),
            "--access-key", "test", "--secret-key", "testtest", "--region", "us-east-1", **quiet))
        all_of_it.enter_context(running(
            os.path.join(beside, "dask"), "scheduler", "--host", f"{NETWORK}.1",
            "--no-dashboard", **quiet))
        wait_for(PORT)
        wait_for(8786)
        started = []
        for name in names:
            more = {
                "H5FS": options.binary, "DASK": os.path.join(beside, "dask"), "MACHINE": name,
                "CACHE": os.path.join(top, name), "ENDPOINT": endpoint, "SCHEDULER": scheduler,
            }
            started.append(all_of_it.enter_context(running(
                "ip", "netns", "exec", name, "bash", "-c", MACHINE,
                env={**os.environ, **KEYS, **more})))
        before = sent_bytes()
        began = time.perf_counter()
        total, machines = summed(scheduler)
        first = time.perf_counter() - began
        sent = sent_bytes() - before
        assert total == expected, f"{total}, and not {expected}"
        assert machines == set(names), f"only {machines} took part"
        size = os.path.getsize(path)
        assert sent < 2.3 * size, f"{sent} bytes of {size} were sent to two machines"
        began = time.perf_counter()
        total, machines = summed(scheduler)
        again = time.perf_counter() - began
        assert (total, machines) == (expected, set(names))
        assert documented(started[0], scheduler) == expected
        for name in names:
            pages = os.path.join(top, name, "h5fs-1")
            assert os.listdir(pages), f"{name} has no cache of its own"
        print(f"2 machines, {size >> 20} MiB: {first:.1f} s, {sent / size:.2f} times the object "
              f"was sent; again: {again:.1f} s")


if __name__ == "__main__":
    main()
