#!/usr/bin/env python3
"""exploring.py URL FILE: chooses axes, clicks on pictures, and opens copied links.

The expected values are those that h5py and numpy read from FILE (of tests/fixtures/instrument.py)."""

import random
import sys

import chromium
import h5py
import numpy as np
from instrument import READOUT, air_temperature, shortest
from worked import Worked

PICTURE = "document.querySelector('canvas').toDataURL()"
PROFILES = "[...document.querySelectorAll('.profile output')].map(output => output.value)"


def select(page, name, axis):
    page.fill(f"select.{name}", str(axis))


def all_axes(browser, base, f):
    """Any two of six axes are the sides of the picture, and the others have a slider each."""
    values = f["six"][()]
    rand = random.Random(6)
    with Worked(browser, base, "six") as page:
        for _ in range(60):
            down, across = rand.sample(range(6), 2)
            select(page, "rows", down)
            select(page, "columns", across)
            # The choice of an axis that was the other side exchanges both.
            select(page, "rows", down)
            at = [rand.randrange(length) for length in values.shape]
            for axis in set(range(6)) - {down, across}:
                page.fill(f"input.frame[data-axis='{axis}']", str(at[axis]), "input")
            flips = [rand.random() < 0.5, rand.random() < 0.5]
            for is_flipped, name in zip(flips, ("upside down", "from left to right")):
                if is_flipped:
                    page.click(f"button[aria-label='flip the picture {name}']")
            turned = np.moveaxis(values, (down, across), (-2, -1))
            order = [axis for axis in range(6) if axis not in (down, across)]
            picture = turned[tuple(at[axis] for axis in order)]
            for axis, is_flipped in enumerate(flips):
                picture = np.flip(picture, axis) if is_flipped else picture
            place = rand.randrange(picture.shape[0]), rand.randrange(picture.shape[1])
            page.hover("canvas", (place[1] + 0.5) / picture.shape[1], (place[0] + 0.5) / picture.shape[0])
            indices = np.argwhere(values == picture[place])[0].tolist()
            page.comes(READOUT, f"[{', '.join(map(str, indices))}] = {picture[place]}")
            for is_flipped, name in zip(flips, ("upside down", "from left to right")):
                if is_flipped:
                    page.click(f"button[aria-label='flip the picture {name}']")


def profiles(browser, base, f):
    """A click draws the row, the column and the series through an element."""
    values = air_temperature(f)
    k, i, j = 4, 7, 21
    with Worked(browser, base, "packed/t2m") as page:
        page.fill("input.frame", str(k), "input")
        page.comes("document.querySelector('.frames output').value.startsWith('4 of 6')", True)
        first, _, last = page.get("[...document.querySelectorAll('.picture > .down > span')].map(s => Number(s.innerText))")
        is_flipped = first < last
        page.click("canvas", (j + 0.5) / 40, ((29 - i if is_flipped else i) + 0.5) / 30)
        page.comes(f"{PROFILES}.length", 3)
        text = f"[{k}, {i}, {j}] = {shortest(values[k, i, j])} K"
        page.comes(f"{PROFILES}.every(text => text.startsWith({text!r}))", True)
        for number, expected in enumerate((values[k, i, :], values[k, :, j], values[:, i, j])):
            box = f"document.querySelectorAll('.profile .overlaid')[{number}]"
            page.get(f"{box}.focus()")
            page.key("Home")
            found = []
            for _ in expected:
                found.append(page.get(f"{PROFILES}[{number}]").split(" = ")[1].split(" at ")[0])
                page.key("ArrowRight")
            wanted = ["missing" if np.isnan(value) else f"{shortest(value)} K" for value in expected]
            assert [text.replace("NaN", "missing").removesuffix(" K") for text in found] == [
                text.removesuffix(" K") for text in wanted
            ], (number, found, wanted)
        counts = page.get("document.querySelector('.histogram').dataset.counts")
        frame = values[k][np.isfinite(values[k])]
        low, high = (float(page.get(f"document.querySelector('.picture').dataset.{end}")) for end in ("least", "most"))
        begin = [float(page.get(f"document.querySelector('.picture').dataset.{end}")) for end in ("low", "high")]
        reach = min(low, begin[0]), max(high, begin[1])
        wanted = np.histogram(frame.astype("f8"), bins=64, range=reach)[0]
        assert list(map(int, counts.split())) == wanted.tolist(), (counts, wanted)
        # A click on the series shows that picture.
        page.click(".profile:nth-of-type(3) svg", 0.99, 0.5)
        page.comes("document.querySelector('.frames output').value.startsWith('5 of 6')", True)


def settled(page):
    """Waits until the picture has been the same for half a second."""
    page.comes("document.querySelector('.drawn') !== null && !document.querySelector('[aria-busy]')", True)
    page.comes(f"new Promise(done => {{ const seen = {PICTURE}; setTimeout(() => done(seen === {PICTURE}), 500); }})", True)


def links(browser, base, f):
    """A new tab with the copied link equals the old one by pixels."""
    rand = random.Random(8)
    with Worked(browser, base, "packed/t2m") as page:
        page.hover("canvas", 0.5, 0.5)
        for _ in range(10):
            page.fill("input.frame", str(rand.randrange(6)), "input")
            if rand.random() < 0.7:
                page.click("button[aria-label='zoom in']")
            if rand.random() < 0.5:
                page.drag("canvas", (0.5, 0.5), (0.5 + rand.uniform(-0.3, 0.3), 0.5 + rand.uniform(-0.3, 0.3)))
            if rand.random() < 0.5:
                page.click("canvas", rand.random() * 0.9, rand.random() * 0.9)
            if rand.random() < 0.3:
                select(page, "rows", 0)
            if rand.random() < 0.3:
                page.click("button[aria-label='flip the picture from left to right']")
            low = rand.uniform(180, 250)
            page.fill("input.low[type=number]", f"{low:.3f}")
            page.click("input.log")
            settled(page)
            page.click("button[title='copy a link to this view']")
            link = page.get("location.href")
            assert "#" in link, link
            other = Worked(browser, base, "packed/t2m", link=link)
            with other as copy:
                settled(copy)
                copy.comes("document.querySelector('.frames output').value", page.text(".frames output"))
                copy.comes(PICTURE, page.get(PICTURE))
                for selector in ("input.low[type=number]", "input.high[type=number]", ".picture > .down", ".picture > .along"):
                    assert copy.text(selector) == page.text(selector), (selector, link)
    with Worked(browser, base, "years") as page:
        page.fill("input.row-number", "17")
        page.click("button[aria-label='columns behind']")
        first = "document.querySelector('.held tbody tr')?.innerText.split('\\t').map(t => t.trim()).slice(0, 2)"
        page.comes(first, ["17", "2036.0"])
        page.click("button[title='copy a link to this view']")
        link = page.get("location.href")
    with Worked(browser, base, "years", link=link) as copy:
        copy.comes(first, ["17", "2036.0"])
    # Numbers that no page has written.
    hostile = "#at=1e99,-5,x&window=-1,NaN,0,1e9&range=,&sides=0,9&flips=7&cross=1e9,-3&log=2&row=-1&axes=%3Cscript%3E"
    with Worked(browser, base, "packed/t2m", link=f"{base}.h5fs/html/packed/t2m.html{hostile}") as page:
        page.hover("canvas", 0.5, 0.5)
        page.comes(f"{READOUT}.startsWith('[0, ')", True)


def main():
    url, file = sys.argv[1:]
    if not chromium.program():
        sys.exit("skipped: there is no Chromium")
    base = url.split("?")[0]
    with chromium.Browser() as browser, h5py.File(file) as f:
        browser.open(url).close()
        for part in (all_axes, profiles, links):
            part(browser, base, f)
            print(part.__name__, "passed", flush=True)


if __name__ == "__main__":
    main()
