"""coverage.py SRC MISSED: reads an lcov report of SRC. Prints the share of covered lines for each
layer, and the files with less than 90 %. Writes the lines that are not covered to MISSED."""

import os
import re
import sys

FLOORS = {
    0: ("limits",),
    1: ("error",),
    2: ("wire",),
    3: ("memory",),
    4: ("source",),
    5: ("model",),
    6: ("filter",),
    7: ("hdf5", "asdf"),
    8: ("detect",),
}


def end_of_code(path):
    """Returns the number of the line where the tests of a file begin."""
    with open(path) as f:
        text = f.read()
    found = re.search(r"^#\[cfg\(test\)\]\nmod \w+ \{", text, re.M)
    return text.count("\n", 0, found.start()) + 1 if found else 1 << 30


def reached(report, src):
    """Returns a mapping from files under `src` to lines, and from lines to execution counts."""
    files, lines = {}, None
    for record in report:
        kind, _, rest = record.strip().partition(":")
        if kind == "SF":
            path = os.path.relpath(rest, src)
            lines = None if path.startswith("..") or re.search(r"(^|/)tests(\.rs|/)", path) else {}
            if lines is not None:
                files[path], end = lines, end_of_code(rest)
        elif kind == "DA" and lines is not None:
            line, times = (int(n) for n in rest.split(",")[:2])
            if line < end:
                lines[line] = max(lines.get(line, 0), times)
    return files


def main():
    src, missed = sys.argv[1:]
    files = {path: lines for path, lines in reached(sys.stdin, src).items() if lines}
    share = {path: sum(map(bool, lines.values())) / len(lines) for path, lines in files.items()}
    with open(missed, "w") as out:
        for path, lines in sorted(files.items()):
            with open(os.path.join(src, path)) as f:
                text = f.read().splitlines()
            out.writelines(f"{path}:{n}: {text[n - 1]}\n" for n in sorted(lines) if not lines[n])
    for floor, modules in FLOORS.items():
        here = [path for path in files if re.split(r"[/.]", path)[0] in modules]
        total = sum(len(files[path]) for path in here)
        covered = sum(sum(map(bool, files[path].values())) for path in here)
        print(
            f"layer {floor} ({', '.join(modules)}): {covered} of {total} lines, {100 * covered / total:.1f} %"
        )
        for path in sorted(here, key=share.get):
            if share[path] < 0.9:
                print(f"    {path}: {100 * share[path]:.1f} %")


if __name__ == "__main__":
    main()
