#!/usr/bin/env python3
"""instrument.py URL FILE: checks the values, axes and states that interactive pages show.

The expected values are those that h5py reads from FILE (of tests/fixtures/instrument.py), decoded
here by the CF conventions, or are calculated by hand."""

import datetime
import random
import re
import sys
import time

import chromium
import h5py
import numpy as np
from worked import Worked

READOUT = "document.querySelector('output.value').value"


def shortest(number):
    """Returns the shortest decimal that restores a number of 32 or 64 bits, without an exponent."""
    return np.format_float_positional(number, trim="-")


def written(number):
    """Returns a number as in a table: the shortest decimal with at least one digit after the point."""
    return np.format_float_positional(number, trim="0")


def air_temperature(f):
    """Returns the packed temperatures as CF decodes them. The missing one is NaN."""
    data = f["packed/t2m"]
    stored = data[()]
    decoded = stored * data.attrs["scale_factor"] + data.attrs["add_offset"]
    assert decoded.dtype == np.float32
    return np.where(stored == data.attrs["_FillValue"], np.float32(np.nan), decoded)


def coordinates(f, time_, row, column):
    """Returns the texts of the coordinate values of an element of the packed temperatures."""
    hours = datetime.timedelta(hours=float(f["packed/time"][time_]))
    y = f["packed/y"]
    angle = y[row] * y.attrs["scale_factor"] + y.attrs["add_offset"]
    longitude = f["packed/lon"][column]
    letter = "W" if longitude < 0 else "E"
    when = datetime.datetime(2001, 7, 16) + hours
    return [when.isoformat().removesuffix("T00:00:00"), f"{shortest(angle)} rad", f"{shortest(abs(longitude))}° {letter}"]


def ends(page, side):
    return page.get(f"[...document.querySelectorAll('.picture > .{side} > span')].map(s => s.innerText)")


def decoded_axes(browser, base, f):
    """The ends of the axes are decoded, and the pointer names the coordinate values."""
    values = air_temperature(f)
    with Worked(browser, base, "packed/t2m") as page:
        for side, axis, unit in (("down", 1, " rad"), ("along", 2, "")):
            first, name, last = ends(page, side)
            scale = "y" if axis == 1 else "lon"
            assert name == f"{scale} [{f[f'packed/{scale}'].attrs['units']}]", name
            texts = [coordinates(f, 0, *place)[axis] for place in ((0, 0), (29, 39))]
            wanted = [text.removesuffix(" rad") for text in texts] if axis == 1 else ["-100.0", "95.0"]
            found = [first, last]
            assert sorted(found) == sorted(wanted), (side, found, wanted)
        is_flipped = float(ends(page, "down")[0]) < float(ends(page, "down")[2])
        rand = random.Random(5)
        for _ in range(100):
            frame, row, column = rand.randrange(6), rand.randrange(30), rand.randrange(40)
            page.fill("input.frame", str(frame), "input")
            down = 29 - row if is_flipped else row
            page.hover("canvas", (column + 0.5) / 40, (down + 0.5) / 30)
            value = values[frame, row, column]
            shown = "missing" if np.isnan(value) else f"{shortest(value)} K"
            where = ", ".join(coordinates(f, frame, row, column))
            page.comes(READOUT, f"[{frame}, {row}, {column}] = {shown} at {where}")
            frames = page.get("document.querySelector('.frames output').value")
            assert frames == f"{frame} of 6: {coordinates(f, frame, 0, 0)[0]}", frames


def decoded_table(browser, base, f):
    """The table has the values that CF defines, and shows the stored integers on request."""
    values, stored = air_temperature(f), f["packed/t2m"][()]
    with Worked(browser, base, "packed/t2m") as page:
        row = "[...document.querySelectorAll('.held tbody tr')][0]?.innerText.split('\\t').map(t => t.trim())"
        decoded = [written(value) for value in values[0, 0, :20]]
        page.comes(row, ["0,0", *decoded])
        page.click("input.as-stored")
        page.comes(row, ["0,0", *map(str, stored[0, 0, :20])])
        page.click("input.as-stored")
        page.comes(row, ["0,0", *decoded])
        # A missing value has an empty cell.
        page.fill("input.index", "2")
        page.fill("input.row-number", "3")
        page.comes(row, ["2,3", *("" if np.isnan(value) else written(value) for value in values[2, 3, :20])])
        # An empty field is no number.
        page.fill("input.index", "")
        page.fill("input.row-number", "")
        assert page.text("input.index") == "2" and page.text("input.row-number") == "3"
    # Without a script, both tables are on the page.
    page = browser.open("about:blank")
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.go(f"{base}.h5fs/html/packed/t2m.html")
    cells = "[...document.querySelectorAll({!r})].slice(0, 12).map(cell => cell.textContent)"
    both = [page.evaluate(cells.format(f"{part} tbody td")) for part in ("h2 ~ .wide", ".stored")]
    page.close()
    assert both == [decoded[:12], [str(value) for value in stored[0, 0, :12]]], both


def honest_line(browser, base, f):
    """Where no chunk was read, the line has a gap, and the texts say that a part was read."""
    with Worked(browser, base, "long") as page:
        caption = page.text("figure.plot figcaption")
        read, every = map(int, re.search(r"of what was read: (\d+) evenly spaced pieces of (\d+) read", caption).groups())
        assert every == 100 and 1 < read < 100, caption
        label = page.get("document.querySelector('figure.plot svg').getAttribute('aria-label')")
        assert "those of them that were read," in label, label
        path = page.get("document.querySelector('figure.plot path.line').getAttribute('d')")
        strokes = [[tuple(map(float, point.split())) for point in part.split("L")] for part in path.split("M")[1:]]
        # The chunks are 6.4 units wide. Each stroke stays within one chunk, so it is flat.
        assert len(strokes) == read, (len(strokes), read)
        for stroke in strokes:
            (first, height), (last, _) = stroke[0], stroke[-1]
            assert last - first <= 6.4 and all(y == height for _, y in stroke), stroke


def matrices(browser, base, f):
    with Worked(browser, base, "complex") as page:
        count = "document.querySelectorAll('.held thead th').length"
        page.comes(count, 41)
        heads = page.get("[...document.querySelectorAll('.held thead th')].slice(1, 5).map(th => th.innerText)")
        assert [head.split()[0] for head in heads] == ["0", "0", "1", "1"] and heads[0] != heads[1], heads
        row = page.get("[...document.querySelectorAll('.held tbody tr')[1].cells].slice(1).map(c => Number(c.innerText))")
        values = f["complex"][1, :20]
        assert row == np.stack([values.real, values.imag], 1).ravel().tolist(), row
        # Each head is over its cell.
        sides = (
            "(row => [...document.querySelector(row).cells].map(c => [c.getBoundingClientRect().left,"
            " c.getBoundingClientRect().right].map(Math.round)))"
        )
        assert page.get(f"{sides}('.held thead tr')") == page.get(f"{sides}('.held tbody tr')")
    with Worked(browser, base, "years", width=500) as page:
        page.comes("document.querySelectorAll('.held tbody td').length > 100", True)
        box = "document.querySelector('.scrolled')"
        most = page.get(f"{box}.scrollWidth - {box}.clientWidth")
        assert most > 200, most
        for left in range(0, most, 7):
            page.get(f"{box}.scrollLeft = {left}; new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            # All visible numbers begin to the right of the fixed column.
            covered = page.get(
                "[...document.querySelectorAll('.held tbody tr')].flatMap(row => [...row.cells].slice(1).filter(cell =>"
                " getComputedStyle(cell).visibility === 'visible' && cell.getBoundingClientRect().left <"
                " row.cells[0].getBoundingClientRect().right - 1)).length"
            )
            assert covered == 0, (left, covered)
        hidden = page.get("document.querySelectorAll('.held td.covered').length")
        shown = page.get("document.querySelectorAll('.held td:not(.covered)').length")
        assert hidden > 0 and shown > 0, (hidden, shown)


def slow(browser, base, f):
    """On a slow connection, the number and the picture change together, and old requests end."""
    values = air_temperature(f)
    with Worked(browser, base, "packed/t2m") as page:
        page.hover("canvas", 0.5 / 40, 0.5 / 30)
        page.comes("document.querySelector('.drawn') !== null", True)
        page.comes(f"{READOUT}.endsWith('° W')", True)
        row = int(page.get(READOUT).split(", ")[1])
        before = page.get(READOUT), page.text(".frames output"), page.pixel(0.5 / 40, 0.5 / 30)
        conditions = {"offline": False, "latency": 1500, "downloadThroughput": -1, "uploadThroughput": -1}
        page.page.call("Network.emulateNetworkConditions", **conditions)
        for frame in range(1, 6):
            page.fill("input.frame", str(frame), "input")
            time.sleep(0.1)
        page.comes("document.querySelector('.picture').getAttribute('aria-busy')", "true")
        now = page.get(READOUT), page.text(".frames output"), page.pixel(0.5 / 40, 0.5 / 30)
        assert now == before, (now, before)
        where = ", ".join(coordinates(f, 5, row, 0))
        page.comes(READOUT, f"[5, {row}, 0] = {shortest(values[5, row, 0])} K at {where}")
        assert page.text(".frames output").startswith("5 of 6"), page.text(".frames output")
        assert page.pixel(0.5 / 40, 0.5 / 30) != before[2]
        page.comes("document.querySelector('.picture').getAttribute('aria-busy')", None)
        # The request for the first frame was aborted by a later one; no frame between was requested.
        assert page.page.aborted >= 1, page.page.aborted
        asked = [url for url in page.page.requests if re.search(r"t2m%5B[1-5]%2C", url)]
        assert len(asked) < 5, asked
        conditions["latency"] = 0
        page.page.call("Network.emulateNetworkConditions", **conditions)


def touched(browser, base, f):
    """A tap reads a value, one finger scrolls, and two fingers zoom."""
    with Worked(browser, base, "packed/t2m", width=400) as page:
        page.page.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=5)
        page.tap("canvas", 20.5 / 40, 10.5 / 30)
        page.comes(f"{READOUT}.startsWith('[0, ') && {READOUT}.includes(', 20] = ')", True)
        page.get("scrollTo(0, 0)")
        start = page.get("(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector('canvas').getBoundingClientRect())")
        before = page.get("scrollY")
        x, y = min(start[0], 380), min(start[1], 850)
        page.swipe([[(x, y - 20 * step) for step in range(12)]])
        page.comes(f"scrollY > {before + 100}", True)
        # The page may scroll for a moment after the finger has gone.
        page.comes("new Promise(done => { const y = scrollY; setTimeout(() => done(y === scrollY), 200); })", True)
        whole = ends(page, "along")
        page.get("document.querySelector('canvas').scrollIntoView({block: 'center'})")
        x, y = page.get("(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector('canvas').getBoundingClientRect())")
        before = page.get("scrollY")
        page.swipe([[(x - 10 - 8 * step, y) for step in range(8)], [(x + 10 + 8 * step, y) for step in range(8)]])
        page.comes("[...document.querySelectorAll('.picture > .along > span')][0].innerText !== " + repr(whole[0]), True)
        assert page.get("scrollY") == before


def empty_fields(browser, base, f):
    with Worked(browser, base, "packed/t2m") as page:
        for end in ("low", "high"):
            before = page.text(f"input.{end}[type=number]")
            page.fill(f"input.{end}[type=number]", "")
            assert page.text(f"input.{end}[type=number]") == before
        assert page.get("document.querySelector('.controls .note').hidden")


def main():
    url, file = sys.argv[1:]
    if not chromium.program():
        sys.exit("skipped: there is no Chromium")
    base = url.split("?")[0]
    with chromium.Browser() as browser, h5py.File(file) as f:
        browser.open(url).close()
        for part in (decoded_axes, decoded_table, honest_line, matrices, empty_fields, slow, touched):
            part(browser, base, f)
            print(part.__name__, "passed", flush=True)


if __name__ == "__main__":
    main()
