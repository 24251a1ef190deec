"""A page of `h5fs serve` in a browser, with methods for mouse, keyboard and fingers."""

import time

LIMIT = 60
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "End": 35, "Home": 36, "Escape": 27}
SHIFT = 8


class Worked:
    """A page with methods for mouse and keyboard."""

    def __init__(self, browser, base, name, width=1200, link=None):
        self.page = browser.open(link or f"{base}.h5fs/html/{name}.html", width)
        self.base = base

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            page = self.page
            # The test's own reads of colours cause this warning.
            complaints = [text for text in page.complaints if "willReadFrequently" not in text]
            assert not complaints and not page.failures, (complaints, page.failures)
            strangers = [u for u in page.requests if not u.startswith((self.base, "data:"))]
            assert not strangers, strangers
            assert page.evaluate("document.querySelector('.error:not([hidden])')?.textContent ?? ''") == ""
        self.page.close()

    def get(self, expression):
        return self.page.evaluate(expression)

    def text(self, selector):
        return self.get(f"(e => e?.value ?? e?.textContent)(document.querySelector({selector!r}))")

    def comes(self, expression, wanted):
        """Waits until the expression has the wanted value."""
        end = time.monotonic() + LIMIT
        while (found := self.get(expression)) != wanted:
            assert time.monotonic() < end, f"{expression}: {found!r}, not {wanted!r}"
            time.sleep(0.02)

    def shows(self, selector, wanted):
        self.comes(f"(e => e?.value ?? e?.textContent)(document.querySelector({selector!r}))", wanted)

    def key(self, name, modifiers=0):
        text = {"text": name} if len(name) == 1 else {}
        common = {"key": name, "code": name, "windowsVirtualKeyCode": KEYS.get(name, 0), "modifiers": modifiers}
        self.page.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.page.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def place(self, selector, across, down):
        """Returns the position in the window of a relative position in an element's box."""
        box = self.get(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
            f" return [b.x, b.y, b.width, b.height]; }})(document.querySelector({selector!r}))"
        )
        return {"x": box[0] + across * box[2], "y": box[1] + down * box[3]}

    def hover(self, selector, across, down):
        self.page.call("Input.dispatchMouseEvent", type="mouseMoved", **self.place(selector, across, down))

    def click(self, selector, across=0.5, down=0.5, count=1):
        where = self.place(selector, across, down)
        for kind in ("mousePressed", "mouseReleased"):
            self.page.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=count, **where)

    def drag(self, selector, first, last):
        first, last = self.place(selector, *first), self.place(selector, *last)
        call = self.page.call
        call("Input.dispatchMouseEvent", type="mousePressed", button="left", buttons=1, clickCount=1, **first)
        call("Input.dispatchMouseEvent", type="mouseMoved", button="left", buttons=1, **last)
        call("Input.dispatchMouseEvent", type="mouseReleased", button="left", clickCount=1, **last)

    def fill(self, selector, value, event="change"):
        self.get(
            f"(e => {{ e.value = {value!r}; e.dispatchEvent(new Event({event!r})); }})"
            f"(document.querySelector({selector!r}))"
        )

    def pixel(self, across, down):
        """Returns the colour and opacity at a relative position on the canvas."""
        return self.get(
            "(c => [...c.getContext('2d').getImageData("
            f"Math.floor({across} * c.width), Math.floor({down} * c.height), 1, 1).data])"
            "(document.querySelector('.overlaid > canvas'))"
        )

    def tap(self, selector, across, down):
        """Touches an element for a moment."""
        point = self.place(selector, across, down)
        self.page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[point])
        self.page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def swipe(self, fingers):
        """Moves fingers over the screen. Each is a list of positions in the window."""
        for step, points in enumerate(zip(*fingers)):
            kind = "touchStart" if step == 0 else "touchMove"
            points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
            self.page.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
            time.sleep(0.02)
        self.page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
