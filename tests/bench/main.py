#!/usr/bin/env python3
"""Measures h5fs and the libraries side by side, round by round in turn, and prints medians and
ratios.

It measures and never fails on a time: it ends with 0 unless the bytes are wrong or something does
not run. Only ratios mean something on a machine that has other work to do. `scripts/bench` prepares
what it needs and calls it. """

import argparse
import fnmatch
import shutil
import signal
import sys

sys.dont_write_bytecode = True

import machine  # noqa: E402
import report  # noqa: E402
import scale  # noqa: E402
from bounds import BOUNDS, MILLION  # noqa: E402
from data import Store  # noqa: E402
from pairs import PAIRS  # noqa: E402


def size(text):
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    return int(number) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[unit]


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--size",
        type=size,
        default=2**30,
        help="bytes of the reference data, with K, M or G (1G); slow codecs take a part of it; below 256M there are fewer links, chunks and datasets too",
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run (5)")
    parser.add_argument(
        "--only", default="*", help="cases, with commas; * and ? match as in a shell"
    )
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    parser.add_argument(
        "--scale",
        action="store_true",
        help="print how the cost grows with ten times the chunks and links instead (1 000 000 at most, whatever --size)",
    )
    parser.add_argument("--markdown", metavar="FILE", help="write the tables there too")
    parser.add_argument("--chart", metavar="FILE.svg", help="draw the ratios there")
    parser.add_argument(
        "--binary", metavar="PATH", required=True, help="the h5fs to measure (built from this tree)"
    )
    parser.add_argument(
        "--data",
        metavar="DIRECTORY",
        required=True,
        help="where the files are made and kept (bench, beside the build)",
    )
    parser.add_argument("--clean", action="store_true", help="remove the files afterwards")
    given = parser.parse_args()
    if not shutil.which(given.binary):
        parser.error(f"{given.binary} is not a program")
    if given.size < 2**21:
        parser.error("two readers need two chunks: --size is at least 2M")
    return given


def end(*_):
    """Ignores further signals, so that each `with` block can unmount undisturbed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(1)


def note(text):
    print(text, file=sys.stderr, flush=True)


def measured(cases, given, store):
    wanted = given.only.split(",")
    for case in cases:
        if any(fnmatch.fnmatch(case.name, pattern) for pattern in wanted):
            note(case.name)
            yield case, case.run(given.binary, store, given.rounds)


def main():
    given = arguments()
    if given.list:
        print(
            *(f"{case.name:16} {case.what.replace('`', '')}" for case in (*PAIRS, *BOUNDS)),
            sep="\n",
        )
        return
    store = Store(given.data, given.size)
    load = machine.load()
    tables, pairs = [], []
    if given.scale:
        tables.append(scale.growth(given.binary, store, given.rounds, note))
    else:
        pairs = list(measured(PAIRS, given, store))
        tables.append((report.PAIRS, [report.pair_row(*outcome) for outcome in pairs]))
        tables.append(
            (
                report.BOUNDS,
                [report.bound_row(*outcome) for outcome in measured(BOUNDS, given, store)],
            )
        )
    tables = [table for table in tables if table[1]]
    load = f"Load {load} before, {machine.load()} after"
    data = (
        "" if given.scale else f"{given.size >> 20} MiB, {store.count(MILLION)} links and chunks, "
    )
    conditions = f"{data}{given.rounds} rounds. {machine.facts(given.binary, given.data)}. {load}."
    print(conditions, *(report.text(*table) for table in tables), sep="\n\n")
    if given.markdown:
        with open(given.markdown, "w") as f:
            print(*(report.markdown(*table) for table in tables), conditions, sep="\n\n", file=f)
    if given.chart:
        with open(given.chart, "w") as f:
            f.write(report.chart(pairs))
    if given.clean:
        shutil.rmtree(given.data)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    main()
