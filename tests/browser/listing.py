#!/usr/bin/env python3
"""listing.py URL DIRECTORY: reaches the page about all files of a directory by clicking.

The expected values are those that h5py reads from the files of DIRECTORY, which this script writes
with `listing.py write DIRECTORY`."""

import os
import sys

import chromium
import h5py
import numpy as np
from worked import Worked

READOUT = "document.querySelector('output.value').value"
FILES = 3


def write(directory):
    for month in range(FILES):
        with h5py.File(os.path.join(directory, f"month {month}.h5"), "w") as f:
            f["temperature"] = (month * 192 + np.arange(4 * 6 * 8, dtype="<f4")).reshape(4, 6, 8)
            f["time"], f["lat"], f["lon"] = np.arange(4.0) + 4 * month, np.linspace(-50, 50, 6), np.linspace(0, 70, 8)
            f["time"].attrs["units"], f["lat"].attrs["units"] = "days since 2001-01-01", "degrees_north"
            for axis, name in enumerate(("time", "lat", "lon")):
                f[name].make_scale(name)
                f["temperature"].dims[axis].attach_scale(f[name])


def click(page, text):
    page.comes(f"[...document.querySelectorAll('a')].some(a => a.innerText === {text!r})", True)
    page.get(f"[...document.querySelectorAll('a')].find(a => a.innerText === {text!r}).click()")


def main():
    if sys.argv[1] == "write":
        return write(sys.argv[2])
    url, directory = sys.argv[1:]
    if not chromium.program():
        sys.exit("skipped: there is no Chromium")
    base = url.split("?")[0]
    files = [h5py.File(os.path.join(directory, f"month {month}.h5")) for month in range(FILES)]
    values = np.concatenate([f["temperature"][()] for f in files])
    with chromium.Browser() as browser:
        browser.open(url).close()
        with Worked(browser, base, "", link=base) as page:
            click(page, "all files as one")
            click(page, "temperature")
            page.comes("document.querySelector('h1')?.innerText", "temperature")
            page.comes("document.querySelector('.frames output')?.value.startsWith('0 of 12')", True)
            page.fill("input.frame", "9", "input")
            page.comes("document.querySelector('.frames output').value", "9 of 12: 2001-01-10")
            page.click("canvas", 2.5 / 8, 0.5 / 6)
            # The north is at the top.
            page.comes(f"{READOUT}.split(' at ')[0]", f"[9, 5, 2] = {values[9, 5, 2]:.0f}")
        # The page of a single file leads back to the listing, and the listing to the joined file.
        with Worked(browser, base, "", link=base) as page:
            click(page, "month 1.h5/")
            page.comes("document.querySelector('h1')?.innerText", "month 1.h5")
            page.get("history.back()")
            click(page, ".h5fs/")
            click(page, "joined/")
            page.comes("document.querySelector('h1')?.innerText", "joined")
    print("passed")


if __name__ == "__main__":
    main()
