"""Files that try to break a reader of their views. Whatever they contain, a view is either
well-formed or an error, and the worker stays within its promised limits."""

import csv
import errno
import json
import os
import pathlib
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import h5py
import numpy as np
from documents import strict
from mounted import MIB, Mount

CACHE, THREADS = 32 * MIB, 2
SECONDS = 600
GIB = 1 << 30
WIDE = 65_536
STRING = h5py.string_dtype()
# permitted errors of a read: too large, not representable, missing
REFUSALS = {
    errno.EIO,
    errno.EFBIG,
    errno.EOVERFLOW,
    errno.ENOENT,
    errno.EOPNOTSUPP,
    errno.ENAMETOOLONG,
    errno.ENOMEM,
}


@dataclass
class Case:
    name: str
    file: str
    write: object
    check: object


CASES = []


def case(name, file, write):
    def register(check):
        CASES.append(Case(name, file, write, check))
        return check

    return register


def rows(h5fs, directory):
    """Yields (name, tool, difference or None) for each case."""
    for one in CASES:
        path = os.path.join(directory, one.file)
        one.write(path)
        yield one.name, "Python", outcome(h5fs, one, path)
        os.remove(path)


def outcome(h5fs, one, path):
    began = time.monotonic()
    try:
        with Mount(h5fs, path, cache=CACHE, threads=THREADS) as mount:
            one.check(mount)
            mount.check_memory()
            with open(mount.at(".h5fs/status")) as status:
                assert status.read(), "no status"
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"[:400]
    spent = time.monotonic() - began
    return None if spent < SECONDS else f"took {spent:.0f} s"


# ---------------------------------------------------------------- reading


def refused(read, *arguments):
    """Returns the error number, or None if the read succeeds."""
    try:
        read(*arguments)
    except OSError as error:
        assert error.errno in REFUSALS, error
        return error.errno
    return None


def csv_rows(path, columns=None):
    """Returns the rows of a CSV file, which must all have the same length. Bytes that are not UTF-8
    are preserved."""
    csv.field_size_limit(2**31 - 1)
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        read = list(csv.reader(file, strict=True))
    lengths = set(map(len, read))
    assert len(lengths) <= 1, f"{path}: rows of {sorted(lengths)[:5]} fields"
    assert columns is None or lengths == {columns}, f"{path}: {lengths} fields, not {columns}"
    return read


def json_value(path):
    with open(path, encoding="utf-8") as file:
        return strict(file.read())


def first_bytes(path, count=MIB):
    with open(path, "rb") as file:
        return file.read(count)


def every_file(directory):
    for place, _, names in os.walk(directory):
        for name in names:
            yield os.path.join(place, name)


# ---------------------------------------------------------------- names and values

CONTROL = "".join(map(chr, range(1, 32))) + "\x7f"
NASTY = [
    CONTROL, '"', '""', '","', "a,b", "\n", "\r", "\r\n", "\\", '\\"', "'", "\u2028\u2029", "a\tb",
    "\x1b[31m", "=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1", "null", "true", "NaN", "{}", "[]",
    "</script>", "\ud7ff\ue000", "\U0001f600", "..", ".", "%", "%2F", "x" * 300, " ", "",
    "\u202eabc", "\ufeffbom",
]  # fmt: skip


def write_names(path):
    with h5py.File(path, "w", track_order=True) as f:
        kinds = [
            (f"{n} {text}" if text in ("", ".", "..") else text, "<i4")
            for n, text in enumerate(NASTY)
        ]
        f["fields"] = np.zeros(3, kinds)
        values = np.empty(len(NASTY), [("id", "<i4"), ("fixed", "S400"), ("variable", STRING)])
        values["id"] = range(len(NASTY))
        values["fixed"] = [text.encode() for text in NASTY]
        for row, text in enumerate(NASTY):
            values["variable"][row] = text
        f["values"] = values
        f["strings"] = np.array(NASTY, object)
        f["bytes"] = np.array(
            [bytes(range(1, 256)), b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"a\0b"], "S256"
        )
        f["labels"] = np.arange(
            len(NASTY),
            dtype=h5py.enum_dtype({text + str(n): n for n, text in enumerate(NASTY)}, "i4"),
        )
        group = f.create_group("group", track_order=True)
        for n, text in enumerate(NASTY):
            if text and text != "." and "/" not in text:
                group[text] = np.arange(4)
            group.attrs[text or "empty"] = text
            f["fields"].attrs[f"a{n}"] = [text, text]


@case("hostile names and values", "names.h5", write_names)
def check_names(mount):
    views = mount.at(".h5fs")
    kinds = [f"{n} {text}" if text in ("", ".", "..") else text for n, text in enumerate(NASTY)]
    assert csv_rows(f"{views}/csv/fields.csv")[0] == kinds
    assert [list(row) for row in json_value(f"{views}/json/fields.json")] == [kinds] * 3
    read = csv_rows(f"{views}/csv/values.csv", 3)
    assert [row[1:] for row in read[1:]] == [[text, text] for text in NASTY]
    assert [row["variable"] for row in json_value(f"{views}/json/values.json")] == NASTY
    assert json_value(f"{views}/json/strings.json") == NASTY
    labels = [text + str(n) for n, text in enumerate(NASTY)]
    assert [row[0] for row in csv_rows(f"{views}/csv/labels.csv", 1)] == labels
    assert json_value(f"{views}/json/labels.json") == labels
    header = csv_rows(f"{views}/csv/group.csv")[0]
    assert len(header) == len(set(header)) == len(os.listdir(mount.at("group"))), header
    json_value(f"{views}/tree.json")
    for path in every_file(f"{views}/csv"):
        csv_rows(path)
    for tree in ("json", "ndl"):
        for path in every_file(f"{views}/{tree}"):
            if path.endswith(".json"):
                json_value(path)
    for n, text in enumerate(NASTY):
        assert strict(os.getxattr(mount.at("fields"), f"user.a{n}").decode()) == [text, text], text


# ---------------------------------------------------------------- very wide, very long


def write_wide(path):
    with h5py.File(path, "w") as f:
        f["array"] = np.zeros(3, [("a", "u1", (WIDE,))])
        f["pairs"] = np.zeros(2, [("a", [("x", "u1"), ("y", "<f4")], (WIDE // 2,))])


@case("compound of 65 536 columns", "wide.h5", write_wide)
def check_wide(mount):
    for name in ("array", "pairs"):
        path = mount.at(f".h5fs/csv/{name}.csv")
        if refused(csv_rows, path, WIDE):
            assert refused(os.stat, path) or refused(first_bytes, path)
        json_value(mount.at(f".h5fs/json/{name}.json"))


RECORDS = """#ASDF 1.0.0
#ASDF_STANDARD 1.5.0
%YAML 1.1
%TAG ! tag:stsci.edu:asdf/
--- !core/asdf-1.1.0
d: !core/ndarray-1.0.0 {{source: 0, shape: [2], byteorder: big, datatype: {}}}
...
"""


def write_fields(path):
    kind = [{"name": f"f{n}", "datatype": "uint8", "byteorder": "big"} for n in range(WIDE)]
    data = bytes(2 * WIDE)
    with open(path, "wb") as file:
        file.write(RECORDS.format(json.dumps(kind)).encode())
        file.write(b"\xd3BLK" + (48).to_bytes(2, "big") + bytes(8))
        file.write(len(data).to_bytes(8, "big") * 3 + bytes(16) + data)


@case("ASDF record of 65 536 fields", "wide.asdf", write_fields)
def check_fields(mount):
    path = mount.at(".h5fs/csv/d.csv")
    if refused(csv_rows, path, WIDE) is None:
        assert csv_rows(path)[0] == [f"f{n}" for n in range(WIDE)]


def write_links(path):
    with h5py.File(path, "w", libver="latest") as f:
        group = f.create_group("g").id
        made = h5py.h5d.create(group, b"0", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((4,)))
        for number in range(1, 1_000_000):
            group.links.create_hard(b"%d" % number, group, b"0")
        del made


@case("group of a million columns", "links.h5", write_links)
def check_links(mount):
    path = mount.at(".h5fs/csv/g.csv")
    if refused(os.stat, path) is None and refused(first_bytes, path) is None:
        csv_rows(path, 1_000_000)


def write_long(path):
    with h5py.File(path, "w") as f:
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(GIB)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        kind.set_strpad(h5py.h5t.STR_NULLPAD)
        space = h5py.h5s.create_simple((2,))
        at = h5py.h5d.create(f.id, b"d", kind, space, plist).get_offset()
    with open(path, "r+b") as file:
        file.seek(at + GIB - 1)
        file.write(b"x")


@case("strings of 1 GiB", "long.h5", write_long)
def check_long(mount):
    for tree, suffix in (("csv", "csv"), ("json", "json"), ("text", "txt")):
        path = mount.at(f".h5fs/{tree}/d.{suffix}")
        began = time.monotonic()
        refused(os.stat, path)
        refused(first_bytes, path)
        assert time.monotonic() - began < 300, f"{tree} took {time.monotonic() - began:.0f} s"


# ---------------------------------------------------------------- many readers


def write_many(path):
    chance = np.random.default_rng(4)
    with h5py.File(path, "w") as f:
        f.create_dataset(
            "d", data=chance.normal(size=500_000), chunks=(20_000,), compression="gzip"
        )
        words = [f"cell {n}, " + "x" * int(n % 50) for n in range(100_000)]
        f.create_dataset("words", data=np.array(words, object), dtype=STRING)


@case("64 readers in counted text", "many.h5", write_many)
def check_many(mount):
    paths = [mount.at(f".h5fs/{name}") for name in ("csv/d.csv", "json/d.json", "text/words.txt")]
    wholes = {}
    for path in paths:
        with open(path, "rb") as file:
            wholes[path] = file.read()
        assert len(wholes[path]) == os.stat(path).st_size > 2**20, path

    def reader(number):
        path, chance = paths[number % len(paths)], np.random.default_rng(number)
        with open(path, "rb", 0) as file:
            for at in chance.integers(0, len(wholes[path]), 100).tolist():
                assert os.pread(file.fileno(), 4096, at) == wholes[path][at : at + 4096], (path, at)

    with ThreadPoolExecutor(64) as pool:
        list(pool.map(reader, range(64)))


# ---------------------------------------------------------------- references, selectors


def write_circle(path):
    with h5py.File(path, "w") as f:
        for name in ("a", "b", "c"):
            f.create_dataset(f"{name}/refs", (3,), h5py.ref_dtype)
        for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
            f[name]["refs"][0] = f[other].ref
            f[name]["refs"][1] = f[other]["refs"].ref
            f[name]["refs"][2] = f.ref


@case("references in circles", "circle.h5", write_circle)
def check_circle(mount):
    refs = mount.at(".h5fs/refs")
    assert os.path.samefile(f"{refs}/a/refs/0", mount.at("b"))
    assert os.path.samefile(f"{refs}/a/refs/2", mount.path)
    for tree in ("csv", "json"):
        name = f".h5fs/{tree}/a/refs.{tree}"
        text = first_bytes(mount.at(name)).decode()
        assert "/b" in text and "/b/refs" in text, text
    found = subprocess.run(["find", refs], stdout=subprocess.PIPE, text=True, timeout=SECONDS)
    assert found.returncode == 0 and len(found.stdout.splitlines()) < 100, found


def write_plain(path):
    with h5py.File(path, "w") as f:
        f["d"] = np.arange(2_000_000, dtype="<i4")


@case("selector of 10^6 indices", "plain.h5", write_plain)
def check_selector(mount):
    every_other = np.frombuffer(pathlib.Path(mount.at("d[0:2000000:2]")).read_bytes(), "<i4")
    assert np.array_equal(every_other, np.arange(0, 2_000_000, 2))
    long = ",".join(map(str, range(1_000_000)))
    assert refused(first_bytes, mount.at(f"d[[{long}]]")) == errno.ENAMETOOLONG
    few = ",".join(map(str, range(60)))
    chosen = np.frombuffer(pathlib.Path(mount.at(f"d[[{few}]]")).read_bytes(), "<i4")
    assert np.array_equal(chosen, np.arange(60))
    # an argument on a command line may have 128 KiB
    many = ",".join(map(str, range(20_000)))
    said = subprocess.run(
        [mount.command[0], "cat", mount.source, f"d[[{many}]]"],
        capture_output=True,
        timeout=SECONDS,
    )
    if said.returncode:
        assert said.stderr.count(b"\n") == 1 and b"panicked" not in said.stderr, said.stderr[-300:]
    else:
        assert np.array_equal(np.frombuffer(said.stdout, "<i4"), np.arange(20_000))
