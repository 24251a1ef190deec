"""Controls headless Chromium through the pipe of its DevTools protocol, with only Python's
standard library.

     with Browser() as browser:
         page = browser.open("file:///…", width=400, dark=True)
         page.evaluate("document.title"), page.requests, page.complaints
         page.screenshot("page.png")"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

LIMIT = 300  # maximum seconds for one response
MARGIN = 8  # pixels around a part of a page
BOX = ("x", "y", "width", "height")


def program():
    """Returns the path of the browser, or None if there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Browser:
    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="h5fs-browser-")
        command_end, self.commands = os.pipe()
        self.answers, answer_end = os.pipe()
        command = [
            program(), "--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={self.profile.name}",
        ]  # fmt: skip
        if os.geteuid() == 0:
            command.append("--no-sandbox")

        def place_pipes():
            # Chromium reads from descriptor 3 and writes to descriptor 4.
            read, write = os.dup(command_end), os.dup(answer_end)
            os.dup2(read, 3)
            os.dup2(write, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=place_pipes,
        )  # fmt: skip
        os.close(command_end)
        os.close(answer_end)
        self.buffer = b""
        self.number = 0
        self.pages = {}
        return self

    def __exit__(self, *_):
        os.close(self.commands)
        os.close(self.answers)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # Its child processes may still write while they exit.
        shutil.rmtree(self.profile.name, ignore_errors=True)
        self.profile._finalizer.detach()

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        wanted = self.number
        while True:
            answer = self.message()
            if answer.get("id") == wanted:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def message(self):
        """Returns the next message. Passes events to their page."""
        end = time.monotonic() + LIMIT
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            assert left > 0, "the browser does not answer"
            if select.select([self.answers], [], [], left)[0]:
                piece = os.read(self.answers, 1 << 16)
                assert piece, "the browser has ended"
                self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        page = self.pages.get(message.get("sessionId"))
        if page and "method" in message:
            page.hear(message["method"], message["params"])
        return message

    def open(self, url, width=1200, height=900, dark=False):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        page = Page(self, attached["sessionId"])
        self.pages[page.session] = page
        for domain in ("Page", "Network", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        page.go(url)
        return page


class Page:
    def __init__(self, browser, session):
        self.browser = browser
        self.session = session
        self.requests = []
        self.failures = []
        self.complaints = []
        self.aborted = 0
        self.is_loaded = False

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def hear(self, method, parameters):
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Network.loadingFailed":
            if parameters.get("canceled"):
                self.aborted += 1
            else:
                self.failures.append(parameters["errorText"])
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console: {parameters}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {parameters}")
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {parameters}")
        elif method == "Page.loadEventFired":
            self.is_loaded = True

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def go(self, url):
        self.is_loaded = False
        error = self.call("Page.navigate", url=url).get("errorText")
        assert not error, f"{url}: {error}"
        while not self.is_loaded:
            self.browser.message()

    def evaluate(self, expression):
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, f"{expression}: {answer}"
        return answer["result"].get("value")

    def screenshot(self, path, whole=False, part=None):
        """Saves the window, the whole page, or the element with a CSS selector, as a PNG file."""
        options = {"captureBeyondViewport": whole or bool(part)}
        if whole or part:
            box = f"document.querySelector({part or 'html'!r}).getBoundingClientRect()"
            x, y, width, height = (self.evaluate(f"{box}.{side}") for side in BOX)
            edge = MARGIN if part else 0
            options["clip"] = {
                "x": x - edge, "y": y - edge, "width": width + 2 * edge,
                "height": height + 2 * edge, "scale": 1,
            }  # fmt: skip
        picture = self.call("Page.captureScreenshot", **options)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def close(self):
        self.call("Page.close")
