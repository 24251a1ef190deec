#!/usr/bin/env python3
"""stage.py URL FILE: the picture, its colour bar, its sliders and its value fit into the window.

FILE is that of tests/fixtures/instrument.py. The first line of a page is compared with h5py."""

import sys

import chromium
import h5py
from worked import Worked

WINDOWS = ((1280, 720), (1920, 1080), (400, 800), (800, 600))
PAGES = (
    "packed/t2m", "six", "shapes/wide", "shapes/tall", "shapes/column", "shapes/row", "shapes/stack",
    "shapes/colour", "shapes/square",
)  # fmt: skip
PARTS = (".picture .overlaid canvas", ".picture .bar", ".frames .frame", "output.value")
SHIFTS = """new Promise(done => {
    let sum = 0;
    new PerformanceObserver(list => list.getEntries().forEach(entry => (sum += entry.value)))
        .observe({type: 'layout-shift', buffered: true});
    setTimeout(() => done(sum), 300);
})"""


def size_text(bytes_):
    return f"{bytes_} bytes" if bytes_ < 1024 else f"{bytes_ / 1024:.{1 if bytes_ < 10240 else 0}f} KiB"


def first_line(browser, base, f):
    with Worked(browser, base, "packed/t2m") as page:
        data = f["packed/t2m"]
        names = [data.dims[axis][0].name.split("/")[-1] for axis in range(3)]
        dims = ", ".join(f"{name} {length}" for name, length in zip(names, data.shape))
        size = size_text(data.id.get_storage_size())
        wanted = f"{data.attrs['long_name']} [{data.attrs['units']}] · {data.dtype} [{dims}] · {size}"
        assert page.text(".head .facts") == wanted, (page.text(".head .facts"), wanted)
        # The formats are one click away.
        assert not page.get("document.querySelector('.files a').checkVisibility()")
        page.click(".download > summary")
        assert page.get("document.querySelector('.files a').checkVisibility()")


def fits(browser, base, _):
    for name in PAGES:
        for width, height in WINDOWS:
            with Worked(browser, base, name) as page:
                page.page.resize(width, height)
                page.page.go(f"{base}.h5fs/html/{name}.html")
                page.get("document.querySelector('canvas').focus({preventScroll: true})")
                page.comes("document.querySelector('.drawn') !== null", True)
                assert page.get("scrollY") == 0
                for part in PARTS:
                    box = page.get(
                        f"(b => b && [b.left, b.top, b.right, b.bottom, b.width, b.height])"
                        f"(document.querySelector({part!r})?.getBoundingClientRect())"
                    )
                    if box is None:
                        # A picture of colours has no bar, and one without other axes has no slider.
                        assert part in (".picture .bar", ".frames .frame"), (name, part)
                        continue
                    left, top, right, bottom, *_ = box
                    assert 0 <= left <= right <= width and 0 <= top <= bottom <= height, (name, (width, height), part, box)
                _, _, across, down = page.get("(b => [b.x, b.y, b.width, b.height])(document.querySelector('canvas').getBoundingClientRect())")
                # A narrow picture is at least 24 pixels wide.
                assert across >= 24 and down >= 5, (name, across, down)
                assert page.get("document.documentElement.scrollWidth") <= width, (name, width)
                shift = page.get(SHIFTS)
                assert shift < 0.01, (name, (width, height), shift)


def main():
    url, file = sys.argv[1:]
    if not chromium.program():
        sys.exit("skipped: there is no Chromium")
    base = url.split("?")[0]
    with chromium.Browser() as browser, h5py.File(file) as f:
        browser.open(url).close()
        for part in (first_line, fits):
            part(browser, base, f)
            print(part.__name__, "passed", flush=True)


if __name__ == "__main__":
    main()
