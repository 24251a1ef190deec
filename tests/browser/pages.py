#!/usr/bin/env python3
"""Opens pages in headless Chromium, from the mount and from an HTTP server.

     pages.py fixture MOUNT      checks the pages of the file of tests/fixtures/pages.py
     pages.py example MOUNT      checks the pages of the file of scripts/example.py
     pages.py any MOUNT…         checks the first page of any file, and some other pages
     pages.py shots OUT MOUNT    saves pictures of some pages for a person to look at"""

import functools
import http.server
import os
import sys
import threading
import urllib.parse

import chromium

WIDTHS = (400, 800, 1600)
NARROW = WIDTHS[0]
# The layout shift of a page after its first display.
SHIFTS = """new Promise(tell => {
  let sum = 0;
  const add = list => list.getEntries().forEach(entry => { sum += entry.value; });
  const observer = new PerformanceObserver(add);
  observer.observe({type: 'layout-shift', buffered: true});
  requestAnimationFrame(() => requestAnimationFrame(() => {
    add({getEntries: () => observer.takeRecords()});
    tell(sum);
  }));
})"""


# Pages of the fixture of all kinds: trees, a line, a picture, a stack, tables, attributes.
LAYOUTS = (
    "index", "signal/line", "lines/decades", "lines/over_hours", "nexus/histogram", "map/tas",
    "pictures/stack", "values/wide", "references/list", "attributes",
)  # fmt: skip


def pages(mount, most=None):
    """Returns the paths of pages, the first page first."""
    top = os.path.join(mount, ".h5fs/html")
    found = [os.path.join(top, "index.html")]
    for directory, directories, files in os.walk(top):
        directories.sort()
        files = [os.path.join(directory, name) for name in sorted(files) if name.endswith(".html")]
        found += [path for path in files if not os.path.islink(path) and path not in found]
        if most and len(found) >= most:
            break
    return found[:most]


class Server:
    """Context manager that runs `python3 -m http.server` in the root of the mount."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    def __init__(self, mount):
        handler = functools.partial(self.Handler, directory=mount)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}/"

    def __enter__(self):
        return self.base

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def url_of(base, mount, path):
    return base + urllib.parse.quote(os.fsencode(os.path.relpath(path, mount)))


def quiet(page, base):
    """Checks that the page requested nothing outside the mount, ran no script and logged no
    error."""
    assert not page.complaints and not page.failures, (page.complaints, page.failures)
    strangers = [u for u in page.requests if not u.startswith((base, "data:"))]
    assert not strangers, strangers
    assert page.evaluate("document.scripts.length") == 0
    assert page.evaluate("document.styleSheets.length") == 1
    assert page.evaluate("getComputedStyle(document.body).maxWidth") == "1280px", "no style"


def fits(page, width):
    """Checks that no element extends beyond the window. Wider elements must be in a box that
    scrolls."""
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, (page.evaluate("location.href"), wide)


def stays(page):
    """Checks that no element moves after its display, and that pictures declare their sizes."""
    page.evaluate("Promise.all([...document.images].map(i => i.decode()))")
    sizes = "[...document.images].every(i => i.getAttribute('width') > 0 && i.getAttribute('height') > 0)"
    assert page.evaluate(sizes), page.evaluate("location.href")
    shifts = page.evaluate(SHIFTS)
    # A smaller shift comes from fractions of a pixel.
    assert shifts < 0.005, (page.evaluate("location.href"), shifts)


def layout(browser, url, base):
    """Checks the layout of a page at each width, in the light and the dark scheme."""
    for width in WIDTHS:
        for dark in (False, True):
            page = browser.open(url, width, 900, dark)
            quiet(page, base)
            fits(page, width)
            stays(page)
            page.close()


def images(page):
    """Returns the files and natural sizes of the pictures."""
    page.evaluate("Promise.all([...document.images].map(i => i.decode()))")
    script = """[...document.images].map(i => [decodeURI(i.getAttribute('src')).split('/').pop(),
                i.naturalWidth, i.naturalHeight])"""
    return [tuple(image) for image in page.evaluate(script)]


def colours(page):
    return page.evaluate(
        "['backgroundColor', 'color'].map(c => getComputedStyle(document.body)[c])"
    )


def is_unknown(base, url):
    """Returns whether the server cannot find the URL, because Python's server decodes names as
    UTF-8."""
    return base.startswith("http") and "\ufffd" in urllib.parse.unquote(url)


def visit(browser, mount, base, most=None):
    for number, path in enumerate(pages(mount, most)):
        if is_unknown(base, url_of(base, mount, path)):
            continue
        page = browser.open(url_of(base, mount, path), NARROW, 800, dark=number % 2 == 1)
        quiet(page, base)
        fits(page, NARROW)
        stays(page)
        for width in WIDTHS[1:]:
            page.resize(width, 800)
            fits(page, width)
        page.close()


def both(mount):
    """Yields the base URLs of the mount: on disk, and on a server."""
    yield "file://" + urllib.parse.quote(mount) + "/"
    with Server(mount) as base:
        yield base


def fixture(browser, mount):
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../fixtures"))
    from pages import HOSTILE, shown

    for base in both(mount):
        html = base + ".h5fs/html/"
        # The pages are equal in both cases. A few show whether the server finds the targets of
        # links.
        visit(browser, mount, base, most=20 if base.startswith("http") else None)
        hostile = browser.open(html + "hostile.html")
        quiet(hostile, base)
        text = hostile.evaluate("document.body.innerText")
        links = "[...document.querySelectorAll('.name a')].map(a => a.href)"
        for name in HOSTILE:
            # A browser shows any sequence of white space as one blank.
            assert " ".join(shown(name).split()) in " ".join(text.split()), (name, text)
        for url in hostile.evaluate(links):
            assert url.startswith(html), url
            if is_unknown(base, url):
                continue
            inner = browser.open(url)
            quiet(inner, base)
            inner.close()
        for name in LAYOUTS:
            layout(browser, html + name + ".html", base)
        line = browser.open(html + "signal/line.html")
        # A bin is drawn in the middle of its numbers.
        assert 638 < line.evaluate("document.querySelector('.line').getBBox().width") <= 640
        assert line.evaluate("document.querySelector('table').rows.length") == 21
        pictures = browser.open(html + "pictures/grey.html")
        assert images(pictures) == [("grey.png", 60, 40)], images(pictures)
        quiet(pictures, base)
        colour = browser.open(html + "pictures/colour.html")
        assert images(colour) == [("colour.png", 9, 8)], images(colour)
        stack = browser.open(html + "pictures/stack.html")
        names = [f"stack[{n}].png" for n in (0, 0, 2, 5, 8, 10, 13, 16, 19)]
        assert images(stack) == [(name, 24, 16) for name in names], images(stack)


def example(browser, mount):
    for base in both(mount):
        html = base + ".h5fs/html/"
        visit(browser, mount, base)
        index = browser.open(html + "index.html")
        assert index.evaluate("document.title") == "climate.h5"
        text = index.evaluate("document.body.innerText").split("\n")
        for words in ("temperature", "float32", "[365, 36, 72]", "gzip level 9, shuffled", "CF-1.10"):
            # A long name and a unit may follow.
            assert any(f"{line} ".startswith(words + " ") for line in text), (words, text)
        index.evaluate("document.querySelector('a[href=\"surface/temperature.html\"]').click()")
        land = browser.open(html + "surface/land.html")
        assert images(land) == [("land.png", 72, 36)], images(land)
        light, dark = (browser.open(html + "index.html", dark=d) for d in (False, True))
        assert colours(light) == ["rgb(252, 252, 251)", "rgb(33, 37, 43)"], colours(light)
        assert colours(dark) == ["rgb(22, 24, 27)", "rgb(228, 229, 231)"], colours(dark)


def any_of(browser, mounts):
    for mount in mounts:
        for base in both(mount):
            visit(browser, mount, base, most=12)


def shots(browser, out, mount, names):
    base = "file://" + urllib.parse.quote(os.path.abspath(mount)) + "/.h5fs/html/"
    for name in names:
        for width in (NARROW, 1200):
            for dark in (False, True):
                page = browser.open(base + urllib.parse.quote(name), width, 900, dark)
                shade = "dark" if dark else "light"
                stem = name.removesuffix(".html").replace("/", "-")
                page.screenshot(f"{out}/{stem}-{width}-{shade}.png", whole=True)
                page.close()


def main():
    command, *arguments = sys.argv[1:]
    if not chromium.program():
        sys.exit("skipped: there is no Chromium")
    with chromium.Browser() as browser:
        if command == "any":
            any_of(browser, arguments)
        elif command == "shots":
            shots(browser, arguments[0], arguments[1], arguments[2:])
        else:
            {"fixture": fixture, "example": example}[command](browser, *arguments)


if __name__ == "__main__":
    main()
