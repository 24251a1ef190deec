"""`h5fs.open`: reads, errors, and the life of its server."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import h5fs
import numpy
import pytest
import xarray
from h5fs.program import find_program, option_arguments

PATIENCE = 60  # seconds until an awaited state counts as absent


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_version_is_that_of_the_program():
    printed = subprocess.check_output([find_program(), "--version"], text=True)
    assert printed == f"h5fs {h5fs.__version__}\n"


def test_a_program_of_another_version_is_refused(tmp_path, monkeypatch, own_file):
    other = tmp_path / "h5fs"
    other.write_text("#!/bin/sh\necho h5fs 0.0.1\n")
    other.chmod(0o755)
    monkeypatch.setenv("H5FS_PROGRAM", str(other))
    with pytest.raises(h5fs.Error, match="version 0.0.1, but the Python package has version"):
        h5fs.open(own_file)


def test_module_runs_the_program():
    command = [sys.executable, "-m", "h5fs", "--version"]
    assert subprocess.check_output(command, text=True) == f"h5fs {h5fs.__version__}\n"


def test_reads(opened):
    values = numpy.arange(120_000, dtype="<f4")
    assert opened.read("g/values") == values.tobytes()
    assert opened.read("g/values", 4, 12) == values[1:3].tobytes()
    assert opened.read("g/values", 479_996) == values[-1:].tobytes()
    assert opened.read("g/values", 480_000) == opened.read("g/values", 5, 5) == b""
    assert opened.read("g/values[0,1,:2]") == values[40:42].tobytes()
    assert opened.read("odd%252Fname") == numpy.arange(3).tobytes()
    assert opened.read(".h5fs/csv/table.csv") == b"number,level,name\n1,2.5,a\n2,3.5,b\n"


def test_lists(opened):
    names = {entry.name: entry for entry in opened.list()}
    assert names.keys() == {"g", "table", "link", "odd%252Fname", "back\\slash"}
    assert names["g"].is_directory and names["link"].size == 480_000
    assert opened.info("g") == h5fs.Entry("g", True)
    assert opened.info("g/values") == h5fs.Entry("values", False, 480_000)
    assert "npy" in [entry.name for entry in opened.list(".h5fs")]
    with pytest.raises(NotADirectoryError):
        opened.list("table")


@pytest.mark.parametrize(
    ("name", "options", "error", "line"),
    [
        ("none.h5", {}, FileNotFoundError, "none.h5: No such file or directory"),
        ("notes.txt", {}, h5fs.Error, "notes.txt: neither an HDF5 nor an ASDF file"),
        ("x.h5", {"colour": "red"}, h5fs.Error, "unexpected argument '--colour' found"),
        ("x.h5", {"cache_size": "big"}, h5fs.Error, "--cache-size <SIZE>: `big` is not a size"),
        ("x.h5", {"listen": "0.0.0.0:1"}, h5fs.Error, "the option listen is not available"),
    ],
)
def test_an_open_fails_with_the_line_of_the_program(directory, name, options, error, line):
    (directory / "notes.txt").write_text("two runs\n")
    with pytest.raises(error) as raised:
        h5fs.open(directory / name, **options)
    assert line in str(raised.value) and "\n" not in str(raised.value)
    assert not str(raised.value).startswith("h5fs: ")


def test_a_read_fails_with_the_line_of_the_server(opened):
    with pytest.raises(h5fs.NotFoundError, match="^g/none: no such file or directory$"):
        opened.read("g/none")


def test_a_damaged_chunk_is_an_error(directory, tmp_path):
    content = bytearray((directory / "x.h5").read_bytes())
    # The first two bytes of a zlib stream with h5py's level.
    position = content.index(b"\x78\x5e")
    content[position + 50 : position + 58] = b"damaged!"
    (tmp_path / "damaged.h5").write_bytes(content)
    with h5fs.open(tmp_path / "damaged.h5") as source:
        with pytest.raises(h5fs.Error, match="g/values: .*chunk .*deflate: damaged"):
            source.read("g/values")
        dataset = xarray.open_dataset(source, engine="h5fs", group="g")
        with pytest.raises(OSError, match="chunk .*deflate: damaged"):
            dataset["values"].load()


def test_options_are_the_long_options():
    options = {"cache_size": "64M", "anonymous": True, "force": False, "verify": True}
    options.update(redirect_ports=[80, 81], sandbox=False, timeout=None)
    assert option_arguments(options) == [
        *["--anonymous", "--cache-size=64M", "--redirect-ports=80,81", "--sandbox=off"],
        "--verify=on",
    ]


def test_opens_share_a_server(own_file, children):
    with h5fs.open(own_file) as first, h5fs.open(str(own_file)) as second:
        assert first.server is second.server
        with h5fs.open(own_file, threads=2) as third:
            assert third.server is not first.server
            assert len(children.processes()) == 2
        first.close()
        assert second.read("g/values", 0, 4)
    assert not children.processes()


def test_a_closed_source_is_an_error(own_file):
    source = h5fs.open(own_file)
    source.close()
    source.close()
    with pytest.raises(h5fs.Error, match="closed"):
        source.read("g/values")


def test_a_collected_source_ends_its_server(own_file, children):
    source = h5fs.open(own_file)
    assert len(children.processes()) == 1
    del source
    gc.collect()
    assert not children.processes()


def test_200_opens_leave_nothing(own_file, children):
    h5fs.open(own_file).close()
    descriptors = children.descriptors()
    for _ in range(200):
        with h5fs.open(own_file) as source:
            source.read("g/values", 0, 4)
    assert children.descriptors() == descriptors
    assert not children.processes() and not children.files()


def test_threads_read_at_the_same_time(opened):
    expected = opened.read("g/values")
    found = []
    work = lambda: found.append(opened.read("g/values") == expected)  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20


def test_a_killed_server_is_an_error_and_the_next_open_works(own_file, children):
    with h5fs.open(own_file) as source:
        (process,) = children.processes()
        os.kill(process, signal.SIGKILL)
        source.server.child.wait()
        with pytest.raises(h5fs.ServerEndedError, match="x.h5: the server has ended"):
            source.read("g/values")
        with h5fs.open(own_file) as other:
            assert len(other.read("g/values")) == 480_000
    assert not children.processes() and not children.files()


@pytest.mark.parametrize("ending", ["os.kill(os.getpid(), 9)", "sys.exit()", "os.kill(0, 2)"])
def test_the_server_ends_with_the_process(directory, children, ending):
    program = f"""
import os, sys, threading, h5fs
opened = []
# The thread that opens the source ends before the process.
thread = threading.Thread(target=lambda: opened.append(h5fs.open({str(directory / "x.h5")!r})))
thread.start()
thread.join()
assert opened[0].read("g/values", 0, 4)
print(opened[0].server.child.pid, flush=True)
sys.stdin.readline()
{ending}
"""
    command = [sys.executable, "-c", program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        server = int(process.stdout.readline())
        assert os.path.exists(f"/proc/{server}") and children.files()
        process.stdin.close()
        process.wait(PATIENCE)
    # A container without an init process keeps the zombie.
    wait_until(lambda: not is_running(server) and not children.files())


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def read_in_child(source):
    return source.read("g/values", 0, 8), source.server.owner == os.getpid()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_another_process_starts_its_own_server(opened, children, method):
    expected = opened.read("g/values", 0, 8)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(read_in_child, [opened] * 4) == [(expected, True)] * 4
    assert opened.read("g/values", 0, 8) == expected


def test_a_forked_source_starts_its_own_server(opened):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        content, owns = read_in_child(opened)
        os.write(write, b"yes" if owns and len(content) == 8 else b"no")
        opened.close()
        os._exit(0)
    assert os.read(read, 3) == b"yes"
    os.waitpid(child, 0)
    assert opened.read("g/values", 0, 4)


def test_a_source_can_be_pickled(opened):
    copy = pickle.loads(pickle.dumps(opened))
    assert copy.read("g/values", 0, 8) == opened.read("g/values", 0, 8)


def test_a_list_of_files_is_one_file(directory):
    months = directory / "months"
    names = [months / f"2025-{month:02}.nc" for month in (10, 11, 12)]
    with h5fs.open(names) as source:
        assert source.data_file == ".h5fs/joined[2025-1?.nc]/"
        assert source.info(source.data_file + "v").size == 3 * 28 * 4 * 4
    with pytest.raises(FileNotFoundError, match="none.nc"):
        h5fs.open([months / "none.nc"])
    with pytest.raises(h5fs.Error, match="no pattern"):
        h5fs.open([months / "2025-01.nc", months / "2025-12.nc"])
    with pytest.raises(h5fs.Error, match="one directory"):
        h5fs.open([months / "2025-01.nc", directory / "t.nc"])
