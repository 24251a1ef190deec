#!/usr/bin/env python3
"""served.py URL FILE: uses the interactive pages of `h5fs serve` with mouse and keyboard.

The expected values are the values that h5py reads from FILE (of tests/fixtures/interactive.py)."""

import sys
import time

import chromium
import h5py
import numpy as np
from worked import LIMIT, SHIFT, Worked


def pictures(browser, base, f):
    with Worked(browser, base, "pictures/stack") as stack:
        values = f["pictures/stack"][()]
        stack.hover("canvas", 20.5 / 40, 10.5 / 30)
        stack.shows("output.value", f"[0, 10, 20] = {values[0, 10, 20]}")
        stack.fill("input.frame", "7", "input")
        stack.shows("output.value", f"[7, 10, 20] = {values[7, 10, 20]}")
        assert stack.get("document.querySelector('.overlaid a').href").endswith("/000007.png")
        stack.key("ArrowRight")
        stack.shows("output.value", f"[8, 10, 20] = {values[8, 10, 20]}")
        stack.key("ArrowLeft")
        stack.key("ArrowLeft")
        stack.shows("output.value", f"[6, 10, 20] = {values[6, 10, 20]}")
        stack.get("document.querySelector('.strip a:last-child').click()")
        stack.shows("output.value", f"[19, 10, 20] = {values[19, 10, 20]}")
        # With the keyboard only.
        stack.get("document.querySelector('canvas').focus()")
        for _ in range(3):
            stack.key("ArrowRight", SHIFT)
        stack.key("ArrowDown", SHIFT)
        place = stack.text("output.value")
        row, column = (int(text) for text in place[1 : place.index("]")].split(", ")[1:])
        assert place == f"[19, {row}, {column}] = {values[19, row, column]}" and (row, column) == (16, 22), place
    with Worked(browser, base, "pictures/stacks") as stacks:
        stacks.hover("canvas", 0.99, 0.01)
        stacks.fill("input.frame[data-axis='0']", "1", "input")
        stacks.fill("input.frame[data-axis='1']", "1", "input")
        stacks.shows("output.value", f"[1, 1, 0, 5] = {f['pictures/stacks'][1, 1, 0, 5]}")
        frames = "[...document.querySelectorAll('.frames label')].map(l => l.innerText.replace('\\n', ' '))"
        assert stacks.get(frames) == ["axis 0 1 of 2", "axis 1 1 of 3"], stacks.get(frames)
        # The next picture of the stack.
        stacks.key("ArrowRight")
        stacks.shows("output.value", f"[1, 2, 0, 5] = {f['pictures/stacks'][1, 2, 0, 5]}")
    with Worked(browser, base, "pictures/exact") as exact:
        exact.hover("canvas", 0.99, 0.99)
        exact.shows("output.value", f"[5, 7] = {2**60 + 48}")
    with Worked(browser, base, "pictures/half") as half:
        half.hover("canvas", 0.99, 0.99)
        half.shows("output.value", f"[5, 7] = {float(f['pictures/half'][5, 7])}")
    with Worked(browser, base, "pictures/holes") as holes:
        holes.hover("canvas", 3.5 / 8, 2.5 / 6)
        holes.shows("output.value", "[2, 3] = missing")
        assert holes.pixel(3.5 / 8, 2.5 / 6)[3] == 0 and holes.pixel(4.5 / 8, 2.5 / 6)[3] == 255
    with Worked(browser, base, "pictures/colour") as colour:
        colour.hover("canvas", 2.5 / 8, 3.5 / 9)
        first, second, third = expected = f["pictures/colour"][3, 2].tolist()
        colour.shows("output.value", f"[3, 2] = {first}, {second}, {third}")
        assert colour.pixel(2.5 / 8, 3.5 / 9)[:3] == expected
    with Worked(browser, base, "map/north") as north:
        # The last row is at the top.
        north.hover("canvas", 2.5 / 8, 0.5 / 6)
        north.shows("output.value", f"[5, 2] = {f['map/north'][5, 2]:.0f} at 50° N, {f['map/lon'][2]:.0f}")


def zoom(browser, base, f):
    values = f["pictures/large"]
    with Worked(browser, base, "pictures/large") as large:
        large.hover("canvas", 0.5, 0.5)
        # Every third number in each direction is loaded.
        large.comes("document.querySelector('output.value').value.length > 0", True)
        row, column, _ = shown(large)
        assert row % 3 == 0 and column % 3 == 0 and abs(row - 1500) < 3 and abs(column - 1000) < 3
        box = large.get("(b => b.height / b.width)(document.querySelector('img').getBoundingClientRect())")
        assert abs(box - 1.5) < 0.01, f"{box}: the picture is stretched"
        sides = "[...document.querySelectorAll('.picture > .down > span')].map(s => s.textContent)"
        assert large.get(sides) == ["0", "", "2999"]
        large.click("canvas", 0.25, 0.25, count=2)
        for _ in range(7):
            large.click("button[aria-label='zoom in']")
        large.hover("canvas", 0.5, 0.5)
        large.comes("document.querySelector('output.value').value.startsWith('[')", True)
        end = time.monotonic() + LIMIT
        # Until every number is loaded.
        while not (row % 3 or column % 3) and time.monotonic() < end:
            large.hover("canvas", 0.6, 0.6)
            row, column, value = shown(large)
            large.hover("canvas", 0.62, 0.65)
        assert value == str(values[row, column]), (row, column, value)
        before = (row, column)
        large.drag("canvas", (0.3, 0.3), (0.9, 0.9))
        large.hover("canvas", 0.6, 0.6)
        large.comes("document.querySelector('output.value').value.startsWith('[')", True)
        row, column, _ = shown(large)
        assert row < before[0] and column < before[1], (before, row, column)
        first, _, last = large.get(sides)
        assert int(first[1:-1]) <= row <= int(last[1:-1]) < 2999, (first, row, last)
        large.key("0")
        large.comes(sides, ["0", "", "2999"])


def shown(worked):
    """Returns the position and the value in the output."""
    place, value = worked.text("output.value").split(" = ")
    return *(int(part) for part in place.strip("[]").split(", ")), value


def ranges(browser, base, f):
    with Worked(browser, base, "pictures/holes") as holes:
        holes.hover("canvas", 0.5, 0.5)
        holes.comes("document.querySelector('.drawn') !== null", True)
        holes.fill("input.low[type=number]", "40")
        holes.fill("input.high[type=number]", "47")
        # Smaller numbers have the first colour of the bar, and larger numbers have the last colour.
        stops = holes.get(
            "[...document.querySelectorAll('.bar stop')].map(s => s.getAttribute('stop-color'))"
        )
        bytes_of = lambda stop: list(bytes.fromhex(stop[1:]))  # noqa: E731
        assert holes.pixel(0.5 / 8, 0.5 / 6)[:3] == bytes_of(stops[0])
        assert holes.pixel(7.5 / 8, 5.5 / 6)[:3] == bytes_of(stops[-1])
        assert holes.pixel(3.5 / 8, 5.5 / 6)[:3] != bytes_of(stops[0])
        assert holes.text(".bar .along span") == "40"
        assert not holes.get("document.querySelector('.controls .note').hidden")
        holes.click("button[aria-label^='the range']")
        assert holes.get("document.querySelector('.controls .note').hidden")
        holes.get("document.querySelector('input.high[type=range]').focus()")
        holes.key("ArrowLeft")
        assert float(holes.text("input.high[type=number]")) < 47
    with Worked(browser, base, "pictures/wide") as wide:
        wide.hover("canvas", 0.5, 0.5)
        wide.comes("document.querySelector('.drawn') !== null", True)
        assert wide.get("document.querySelector('input.log').checked")
        dark = wide.pixel(0.01, 0.5)
        wide.click("input.log")
        assert not wide.get("document.querySelector('input.log').checked")
        middle = wide.pixel(0.01, 0.5)
        assert sum(middle[:3]) < sum(dark[:3]), (dark, middle)


def lines(browser, base, f):
    values = f["line"][()]
    with Worked(browser, base, "line") as line:
        line.hover(".plot .overlaid svg", 0.25, 0.5)
        line.comes("document.querySelector('output.value').value.length > 0", True)
        text = line.text("output.value")
        index = int(text[1 : text.index("]")])
        assert abs(index - 50_000) < 400 and float(text.split(" = ")[1]) == values[index], text
        line.get("document.querySelector('.plot .overlaid').focus()")
        line.key("End")
        line.shows("output.value", f"[199999] = {values[-1]}")
        line.key("ArrowLeft")
        line.shows("output.value", f"[199998] = {values[-2]}")


def curves(browser, base, f):
    for name in ("few", "many"):
        along, values = f[f"curves/{name}_x"][()], f[f"curves/{name}"]
        with Worked(browser, base, f"curves/{name}") as line:
            line.hover(".plot .overlaid > svg", 0.25, 0.5)
            line.comes("document.querySelector('output.value').value.length > 0", True)
            text = line.text("output.value")
            index = int(text[1 : text.index("]")])
            wanted = along.min() + 0.25 * (along.max() - along.min())
            best = int(np.argmin(np.abs(along - wanted)))
            # The cursor is on whole pixels.
            assert abs(along[index] - along[best]) < (along.max() - along.min()) / 500, (index, best)
            value, where = text.split(" = ")[1].split(" at ")
            assert int(value) == values[index] and float(where) == along[index], text
    # The page of the group shows the group's default plot.
    for page in ("histogram/counts", "histogram"):
        with Worked(browser, base, page) as line:
            line.hover(".plot .overlaid > svg", 0.45, 0.5)
            line.shows("output.value", "[2] = 6 from 2 to 4")


def times(browser, base):
    with Worked(browser, base, "map/time") as line:
        line.get("document.querySelector('.plot .overlaid').focus()")
        line.key("End")
        # 39 times 90 minutes are 58.5 hours.
        line.shows("output.value", "[39] = 2001-02-05T14:35:06.75")


def cells(worked, row):
    return worked.get(
        f"[...document.querySelectorAll('.held tbody tr')][{row}]"
        "?.innerText.split('\\t').map(text => text.trim())"
    )


def tables(browser, base, f):
    events, rows = f["tables/events"], f["tables/events"].shape[0]
    with Worked(browser, base, "tables/events") as table:

        def row(place):
            time_, event, name = events[place]
            return [str(place), str(time_), str(event), name.decode()]

        first = "document.querySelector('.held tbody tr')?.innerText.split('\\t').map(t => t.trim())"
        table.comes(first, row(0))
        assert table.get("document.querySelector('.held thead').innerText").split() == ["time", "event", "name"]
        table.fill("input.row-number", str(rows // 2))
        table.comes(first, row(rows // 2))
        table.get("document.querySelector('.scrolled').focus()")
        table.key("ArrowDown")
        table.comes(first, row(rows // 2 + 1))
        table.key("End")
        table.comes(first, row(rows - 20))
        assert cells(table, 19) == row(rows - 1)
        # With the scroll bar.
        table.get("document.querySelector('.scrolled').scrollTop = 0")
        table.comes(first, row(0))
        where = table.place(".scrolled", 0.5, 0.5)
        table.page.call("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=100, **where)
        table.comes("Number(document.querySelector('.held tbody th').innerText) > 0", True)
        own = int(table.get("document.querySelector('.held tbody th').innerText"))
        table.comes(first, row(own))
        read = sum("tables/events%5B" in url for url in table.page.requests)
        assert read <= 12, f"{read} parts were asked for"
    with Worked(browser, base, "tables/matrix") as matrix:
        values = f["tables/matrix"]
        first = "document.querySelector('.held tbody tr')?.innerText.split('\\t').map(t => t.trim())"
        matrix.comes(first, ["0,0", *map(str, values[0, 0, :20])])
        matrix.click("button[aria-label='columns behind']")
        matrix.comes(first, ["0,0", *map(str, values[0, 0, 20:40])])
        matrix.fill("input.index", "2")
        matrix.comes(first, ["2,0", *map(str, values[2, 0, 20:40])])
        matrix.fill("input.row-number", "69")
        matrix.comes(first, ["2,50", *map(str, values[2, 50, 20:40])])
    with Worked(browser, base, "tables/few") as few:
        assert few.get("document.querySelector('.scrolled')") is None


def search(browser, base, f):
    with Worked(browser, base, "names/deep/er/Temperature") as page:
        page.key("/")
        for letter in "temperature":
            page.key(letter)
        page.comes("document.querySelector('form output').value.includes(' found in ')", True)
        page.comes("document.querySelector('form output').value.endsWith('objects')", True)
        found = page.get("[...document.querySelectorAll('.found li')].map(li => [li.innerText, li.querySelector('a').href])")
        html = f"{base}.h5fs/html/names/"
        # The group has several names, and its page is at the first of them.
        temperature = f"{html}again/er/Temperature.html"
        assert sorted(found) == [
            ["names/again/er/Temperature", temperature],
            ["names/again/er/Temperature @long_name = Air temperature in Haparanda", temperature],
            ["names/soft temperature", temperature],
        ], found
        page.key("Escape")
        page.comes("document.querySelectorAll('.found li').length", 0)
    with Worked(browser, base, "index") as page:
        for wanted, path in [("<B>", "names/page.html/x <b>&\"'"), ("index", "index")]:
            page.fill("input[type=search]", wanted, "input")
            page.comes("document.querySelectorAll('.found li').length", 1)
            page.comes("document.querySelector('.found li').innerText", path)
            page.get("document.querySelector('.found a').click()")
            page.comes("document.querySelector('h1')?.innerText", path.split("/")[-1])


def entry(url, base):
    """Follows a link on a page of another site, such as a notebook or a terminal in a browser."""
    with chromium.Browser() as browser:
        page = browser.open("about:blank")
        page.go(f"data:text/html,<a href='{url}'>run</a>")
        page.evaluate("document.querySelector('a').click()")
        end = time.monotonic() + LIMIT
        while not page.requests[-1].endswith(".h5fs/html/index.html"):
            assert time.monotonic() < end, page.requests
            browser.call("Target.getTargets")
            time.sleep(0.02)
        page.is_loaded or browser.message()
        with Worked(browser, base, "index") as worked:
            worked.comes("document.querySelectorAll('h1').length", 1)
        kept = page.evaluate("[location.href, document.referrer, ...navigation.entries().map(e => e.url)]")
        assert kept[0] == f"{base}.h5fs/html/index.html", kept
        assert not any("token" in address for address in kept), kept
        assert not page.failures, page.failures


def main():
    url, file = sys.argv[1:]
    if not chromium.program():
        sys.exit("skipped: there is no Chromium")
    base = url.split("?")[0]
    entry(url, base)
    with chromium.Browser() as browser, h5py.File(file) as f:
        browser.open(url).close()
        times(browser, base)
        curves(browser, base, f)
        for part in (pictures, zoom, ranges, lines, tables, search):
            part(browser, base, f)


if __name__ == "__main__":
    main()
