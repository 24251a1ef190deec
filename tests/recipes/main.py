#!/usr/bin/env python3
"""main.py H5FS: runs the recipes of docs/recipes.md unchanged, with the program H5FS, on the files
of files.py. Compares their output with the document.

A recipe is skipped if one of its tools is missing, but bash still checks the syntax of its
commands. Exit status 0 means that all recipes agree."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import files

DOCUMENT = Path(__file__).parents[2] / "docs/recipes.md"
LIMIT = 300  # seconds for a command


class Recipe:
    """A section: the programs in its text, the tools that it needs, and its commands with their
    output."""

    def __init__(self, title, text):
        self.title = title
        self.programs = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", text, re.M | re.S))
        needs = re.search(r"<!-- needs: (.*) -->", text)
        self.needs = needs[1].split() if needs else []
        self.commands = []
        for line in re.findall(r"^    (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
            if line.startswith("$ "):
                self.commands.append((line[2:], []))
            else:
                self.commands[-1][1].append(line)

    def lacks(self):
        """Returns the first program or Python module that is missing or does not work."""
        for tool in self.needs:
            if not shutil.which(tool) and not importlib.util.find_spec(tool):
                return tool
            # the client alone is useless
            if tool == "docker" and subprocess.run([tool, "info"], capture_output=True).returncode:
                return "the engine of docker"
        return None

    def run(self, directory):
        """Returns the differences from the document."""
        for name, program in self.programs.items():
            (directory / name).write_text(program)
        try:
            for command, expected in self.commands:
                printed = output(["bash", "-c", command], directory)
                if printed != expected:
                    return f"{command}\n  prints {printed}\n  and not {expected}"
        finally:
            subprocess.run(["fusermount3", "-u", directory / "mnt"], stderr=subprocess.DEVNULL)
        return None

    def faults(self):
        """Returns the syntax errors that bash finds in the commands."""
        commands = "\n".join(command for command, _ in self.commands)
        return subprocess.run(["bash", "-n"], input=commands, text=True, capture_output=True).stderr


def output(command, directory):
    """Returns the lines of output. The output goes to a file, so that the test does not wait for a
    mount that keeps a pipe open."""
    with tempfile.TemporaryFile("w+") as lines:
        subprocess.run(command, cwd=directory, stdout=lines, stderr=lines, timeout=LIMIT)
        lines.seek(0)
        # gnuplot pads its plots with blanks.
        return "\n".join(line.rstrip() for line in lines).strip("\n").splitlines()


def main(program):
    text = DOCUMENT.read_text()
    recipes = [Recipe(*section.split("\n", 1)) for section in re.split(r"^## ", text, flags=re.M)[1:]]
    assert len(recipes) > 9, f"{len(recipes)} recipes"
    os.environ["PATH"] = os.pathsep.join(
        [os.path.dirname(os.path.abspath(program)), os.path.dirname(sys.executable), os.environ["PATH"]]
    )
    os.environ.update(TZ="UTC", LC_ALL="C.UTF-8")
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for recipe in recipes:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            files.main(directory)
            (directory / "mnt").mkdir()
            lack = recipe.lacks()
            wrong = recipe.faults() if lack else recipe.run(directory)
        said = "failed" if wrong else "skipped" if lack else "passed"
        counts[said] += 1
        print(f"{recipe.title}: {said}{f', for want of {lack}' if lack else ''}")
        if wrong:
            print(f"  {wrong}")
    print(", ".join(f"{count} {said}" for said, count in counts.items()))
    sys.exit(counts["failed"] > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
