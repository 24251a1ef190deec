#!/usr/bin/env python3
"""notices.py TRIPLE DIRECTORY: writes the legal files for a program for that target into the
directory: THIRD-PARTY.txt, the licences of all linked code, and h5fs.cdx.json, the bill of
materials in CycloneDX. Both are the same on every machine."""

import html
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

# Licence texts that no crate contains are files next to this script. Their first line names the
# component.
HERE = Path(__file__).resolve().parent
NAMES = re.compile(r"(LICEN[SC]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)", re.IGNORECASE)
# Directories in crates that are not built.
UNUSED = {"tests", "programs", "examples", "contrib"}
# The crates of Rust's standard library on Linux.
STANDARD = {"cfg-if", "foldhash", "gimli", "hashbrown", "libc", "rustc-demangle"}


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(triple):
    """Returns the packages that are linked into the program, and the dependencies of each."""
    # `cargo tree` uses the features of the build. `cargo metadata` would add those of tests and
    # build scripts.
    tree = output(
        *"cargo tree --locked --edges normal,no-proc-macro --prefix none --format {p}".split(),
        f"--target={triple}",
    )
    there = {tuple(line.split()[:2]) for line in tree.splitlines()}
    metadata = json.loads(
        output(*"cargo metadata --locked --format-version 1 --filter-platform".split(), triple)
    )
    packages = {
        package["id"]: package
        for package in metadata["packages"]
        if (package["name"], "v" + package["version"]) in there
    }
    needs = {
        node["id"]: sorted(
            need["pkg"]
            for need in node["deps"]
            if need["pkg"] in packages and any(kind["kind"] is None for kind in need["dep_kinds"])
        )
        for node in metadata["resolve"]["nodes"]
    }
    return [(packages[package], needs[package]) for package in sorted(packages)]


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version'].replace('+', '%2B')}"


def licence(package):
    # Older crates use a slash, as was usual before SPDX.
    return package["license"].replace("/", " OR ")


def texts(package):
    """Yields the licence texts of a crate, including those of a bundled C library."""
    top = Path(package["manifest_path"]).parent
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(set(folders) - UNUSED)
        for name in sorted(files):
            text = Path(folder, name).read_text() if NAMES.match(name) else ""
            # zstd has two licences, and the program uses the other one.
            if text and "GNU GENERAL PUBLIC LICENSE" not in text[:200]:
                yield text


def standard_texts():
    """Yields the licence texts of the standard library and its crates, which Rust includes."""
    sysroot = Path(output("rustc", "--print", "sysroot").strip())
    page = sysroot / "share/doc/rust/COPYRIGHT-library.html"
    if not page.exists():
        sys.exit(f"{page} is absent: take the Rust of rustup")
    for part in re.split("<h3>", page.read_text())[1:]:
        name, version = re.match(r"\S+ (.+?)-(\d.*?)</h3>", part).groups()
        if name in STANDARD:
            for text in re.findall(r"<pre>(.*?)</pre>", part, re.DOTALL):
                yield f"{name} {version} (in Rust's standard library)", html.unescape(text)
    for file in sorted(HERE.glob("*.txt")):
        yield file.read_text().split("\n", 1)


def third_party(packages):
    """Returns each text once, after the names of the components that use it, sorted by name."""
    users = {}
    found = [(f"{p['name']} {p['version']} ({licence(p)})", text) for p in packages for text in texts(p)]
    for user, text in [*found, *standard_texts()]:
        # Copies of a licence differ in their line breaks.
        known = users.setdefault(" ".join(text.split()).casefold(), (text, []))[1]
        if user not in known:
            known.append(user)
    silent = {p["name"] for p in packages} - {user.split()[0] for _, names in users.values() for user in names}
    if silent:
        sys.exit(f"no text of a licence: {', '.join(sorted(silent))}")
    yield "What is linked into h5fs, and the licences of each.\n"
    for text, names in sorted(users.values(), key=lambda user: user[1]):
        rule = "=" * 80
        yield f"\n{rule}\n" + "\n".join(names) + f"\n{rule}\n\n{text.strip()}\n"


def component(package, kind, checksums):
    described = {
        "type": kind,
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "licenses": [{"expression": licence(package)}],
        "purl": purl(package),
    }
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return described


def bill(packages, root):
    lock = tomllib.loads(Path("Cargo.lock").read_text())
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}
    names = {package["id"]: purl(package) for package, _ in packages}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(root, "application", checksums)},
        "components": [component(p, "library", checksums) for p, _ in packages if p is not root],
        "dependencies": [
            {"ref": purl(package), "dependsOn": [names[needed] for needed in needs]}
            for package, needs in packages
        ],
    }


def main(triple, directory):
    packages = linked(triple)
    root = next(package for package, _ in packages if package["name"] == "h5fs")
    # The crates of this repository have no source but their directory.
    others = [package for package, _ in packages if package["source"]]
    os.makedirs(directory, exist_ok=True)
    Path(directory, "THIRD-PARTY.txt").write_text("".join(third_party(others)))
    Path(directory, "h5fs.cdx.json").write_text(json.dumps(bill(packages, root), indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
