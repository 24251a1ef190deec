#!/usr/bin/env python3
"""changed.py URL DIRECTORY: changes the files of a server while their pages are open.

The expected values are calculated from the numbers that this script writes into the files
`changed.h5` and `growing.h5` of DIRECTORY. The URL is that of a server of both files."""

import os
import sys
import time

import chromium
import h5py
import numpy as np
from worked import Worked

READOUT = "document.querySelector('output.value').value"
NOTICE = "document.querySelector('.changed')"


def numbers(shape, first):
    return first + np.arange(np.prod(shape), dtype="<f8").reshape(shape)


def replace(directory, stack, line):
    """Replaces the file by another one, as programs do that write a new file and rename it."""
    path = os.path.join(directory, "changed.h5")
    with h5py.File(f"{path}.next", "w", libver="latest") as f:
        f.create_dataset("stack", data=stack)
        f.create_dataset("line", data=line)
        f.create_dataset("table", data=np.stack([line[:500]] * 30, axis=1))
    os.rename(f"{path}.next", path)


def write(directory):
    replace(directory, numbers((5, 4, 4), 1000.25), numbers(1000, 0.5))
    with h5py.File(os.path.join(directory, "growing.h5"), "w", libver="latest") as f:
        f.create_dataset("stack", data=numbers((5, 4, 4), 0.25), maxshape=(None, 4, 4), chunks=(1, 4, 4))


def is_noticed(page, can_follow=False):
    page.comes(f"{NOTICE}.hidden", False)
    page.comes(f"{NOTICE}.innerText.startsWith('The file has changed.')", True)
    page.comes("document.querySelector('.follow').closest('label').hidden", not can_follow)


class Open(Worked):
    """A page whose file changes: the browser reports refused requests, and responses that end because
    the file has changed."""

    def __exit__(self, kind, *rest):
        page = self.page
        cut = "ERR_CONTENT_LENGTH_MISMATCH"
        page.complaints = [text for text in page.complaints if not any(word in text for word in ("412", "404", cut))]
        page.failures = [text for text in page.failures if cut not in text]
        self.get("document.querySelectorAll('.error').forEach(e => e.remove())")
        super().__exit__(kind, *rest)


def replaced(browser, base, directory):
    """A file of another shape and other numbers takes the place of the file."""
    write(directory)
    old, new = numbers((5, 4, 4), 1000.25), numbers((4, 3, 5), 7000.25)
    with Open(browser, base, "stack") as page:
        page.hover("canvas", 0.5 / 4, 0.5 / 4)
        page.comes(READOUT, f"[0, 0, 0] = {old[0, 0, 0]}")
        replace(directory, new, numbers(1000, 0.5))
        page.fill("input.frame", "3", "input")
        is_noticed(page)
        # What the pointer names is a number of the earlier state, with its own indices.
        assert page.get(READOUT) == f"[0, 0, 0] = {old[0, 0, 0]}", page.get(READOUT)
        assert page.text(".frames output") == "0 of 5"
        page.page.is_loaded = False
        page.click(".changed button")
        # The page keeps the number of the picture that could not be loaded.
        page.comes("document.querySelector('.frames output')?.value", "3 of 4")
        page.hover("canvas", 4.5 / 5, 2.5 / 3)
        page.comes(READOUT, f"[3, 2, 4] = {new[3, 2, 4]}")
        page.fill("input.frame", "0", "input")
        page.comes(READOUT, f"[0, 2, 4] = {new[0, 2, 4]}")


def changed_before_the_first_request(browser, base, directory):
    """The file changes after the page was loaded, and before its script has requested a number."""
    write(directory)
    with Open(browser, base, "stack") as page:
        replace(directory, numbers((5, 4, 4), 7000.25), numbers(1000, 0.5))
        page.hover("canvas", 0.5 / 4, 0.5 / 4)
        is_noticed(page)
        assert page.get(READOUT) == "", page.get(READOUT)


def shortened(browser, base, directory):
    write(directory)
    with Open(browser, base, "line") as page:
        replace(directory, numbers((5, 4, 4), 1000.25), numbers(600, 0.5))
        page.get("document.querySelector('.plot .overlaid').focus()")
        page.key("End")
        is_noticed(page)
        assert page.get(READOUT) == "", page.get(READOUT)
        page.click(".changed button")
        page.comes(f"{NOTICE}?.hidden", True)
        page.get("document.querySelector('.plot .overlaid').focus()")
        page.key("End")
        page.comes(READOUT, "[599] = 599.5")
    with Open(browser, base, "table") as page:
        page.comes("document.querySelector('.held tbody td').innerText", "0.5")
        replace(directory, numbers((5, 4, 4), 1000.25), numbers(300, 0.5))
        page.fill("input.row-number", "450")
        is_noticed(page)
        assert "undefined" not in page.get("document.body.innerText")


def followed(browser, base, directory):
    """Only the first axis is longer, so the page can follow."""
    write(directory)
    with Open(browser, base, "stack") as page:
        page.hover("canvas", 0.5 / 4, 0.5 / 4)
        page.comes(READOUT, "[0, 0, 0] = 1000.25")
        replace(directory, numbers((6, 4, 4), 1000.25), numbers(1000, 0.5))
        page.fill("input.frame", "4", "input")
        is_noticed(page, can_follow=True)
        page.click(".follow")
        page.comes("document.querySelector('.frames output').value", "4 of 6")
        for count in (7, 9):
            replace(directory, numbers((count, 4, 4), 1000.25), numbers(1000, 0.5))
            begin = time.monotonic()
            page.comes("document.querySelector('.frames output').value", f"4 of {count}")
            took = time.monotonic() - begin
            print(f"{count} pictures after {took:.2f} s", flush=True)
        page.fill("input.frame", "8", "input")
        page.click("canvas", 0.5 / 4, 0.5 / 4)
        page.comes(READOUT, f"[8, 0, 0] = {1000.25 + 8 * 16}")
        # Another axis has changed, so the page stops following.
        replace(directory, numbers((9, 4, 5), 1000.25), numbers(1000, 0.5))
        is_noticed(page)
        assert not page.get("document.querySelector('.follow').checked")


def growing(browser, base, directory):
    """A program appends to the file and lets others read it (SWMR)."""
    write(directory)
    with h5py.File(os.path.join(directory, "growing.h5"), "r+", libver="latest") as f:
        f.swmr_mode = True
        with Open(browser, base.replace("changed.h5", "growing.h5"), "stack") as page:
            assert not page.get(f"{NOTICE}.hidden")
            page.click("canvas", 0.5 / 4, 0.5 / 4)
            page.comes(READOUT, "[0, 0, 0] = 0.25")
            page.click(".follow")
            for count in (6, 7, 8):
                stack = f["stack"]
                stack.resize(count, axis=0)
                stack[count - 1] = numbers((count, 4, 4), 0.25)[count - 1]
                stack.flush()
                begin = time.monotonic()
                page.comes("document.querySelector('.frames output').value", f"0 of {count}")
                print(f"{count} pictures after {time.monotonic() - begin:.2f} s", flush=True)
            page.fill("input.frame", "7", "input")
            page.comes(READOUT, f"[7, 0, 0] = {0.25 + 7 * 16}")


def main():
    if sys.argv[1] == "write":
        return write(sys.argv[2])
    url, directory = sys.argv[1:]
    if not chromium.program():
        sys.exit("skipped: there is no Chromium")
    base = url.split("?")[0]
    with chromium.Browser() as browser:
        browser.open(url).close()
        for part in (replaced, changed_before_the_first_request, shortened, followed, growing):
            part(browser, f"{base}changed.h5/", directory)
            print(part.__name__, "passed", flush=True)


if __name__ == "__main__":
    main()
