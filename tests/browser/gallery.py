#!/usr/bin/env python3
"""gallery.py MOUNT DIRECTORY: the pictures in README.md and docs/views.md, of the mounted example."""

import os
import sys
import urllib.parse

import chromium

# The file, the page, the width of the window, the part of the page (a CSS selector).
PICTURES = (
    ("page.png", "html/index.html", 720, "body"),
    ("plot.png", "html/surface/north.html", 560, "figure"),
    ("stack.png", "html/surface/temperature.html", 760, ".picture"),
)


def main():
    mount, directory = sys.argv[1:]
    base = "file://" + urllib.parse.quote(os.path.abspath(mount)) + "/.h5fs/"
    with chromium.Browser() as browser:
        for name, path, width, part in PICTURES:
            page = browser.open(base + path, width, 700)
            page.screenshot(os.path.join(directory, name), part=part)
            page.close()


if __name__ == "__main__":
    main()
