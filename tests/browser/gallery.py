#!/usr/bin/env python3
"""gallery.py MOUNT DIRECTORY H5FS FILE: makes the pictures of README.md and docs from the example
file, as mounted and as served by h5fs."""

import os
import signal
import subprocess
import sys
import time
import urllib.parse

import chromium

# Name of the picture, page, width of the window, and part of the page (a CSS selector).
PICTURES = (
    ("page.png", "html/index.html", 720, "body"),
    ("plot.png", "html/surface/north.html", 560, "figure"),
    ("stack.png", "html/surface/temperature.html", 760, ".picture"),
)
WORKED = ("worked.png", "html/surface/temperature.html", 760, ".picture")
# Select July, zoom in, and hover over a position.
STEPS = (
    "(s => { s.value = 196; s.dispatchEvent(new Event('input')); })(document.querySelector('.frame'))",
    "document.querySelector('[aria-label=\"zoom in\"]').click()",
    """(c => { const b = c.getBoundingClientRect(); c.dispatchEvent(new PointerEvent('pointermove',
       {clientX: b.left + 200, clientY: b.top + 60})); })(document.querySelector('canvas'))""",
)


def mounted(browser, mount, directory):
    base = "file://" + urllib.parse.quote(os.path.abspath(mount)) + "/.h5fs/"
    for name, path, width, part in PICTURES:
        page = browser.open(base + path, width, 700)
        page.screenshot(os.path.join(directory, name), part=part)
        page.close()


def served(browser, program, file, directory):
    name, path, width, part = WORKED
    server = subprocess.Popen([program, "serve", file], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        browser.open(url).close()
        page = browser.open(f"{url.split('?')[0]}.h5fs/{path}", width, 900)
        for step in STEPS:
            page.evaluate(step)
            time.sleep(1)
        page.screenshot(os.path.join(directory, name), part=part)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def main():
    mount, directory, program, file = sys.argv[1:]
    with chromium.Browser() as browser:
        mounted(browser, mount, directory)
        served(browser, program, file, directory)


if __name__ == "__main__":
    main()
