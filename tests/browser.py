"""A browser without a window, driven over a pipe: no package, no driver and no port is needed, Chromium alone."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
PATIENCE = 60
# What is clicked and smaller than 24 px on a page.
SMALL = (
    "[...document.querySelectorAll('a[href], button, summary, select, input')].filter((each) =>"
    " each.checkVisibility({contentVisibilityAuto: true}) && !each.matches('[type=checkbox], .skip')).map((each) =>"
    " [each.getBoundingClientRect(), each]).filter(([box]) => box.width && (box.height < 24 || box.width < 24))"
    ".map(([box, each]) => `${each.tagName} ${each.innerText} ${box.width} x ${box.height}`)"
)


def found() -> str | None:
    """The path of a browser; None where there is none."""
    return os.environ.get("GROUPGT_BROWSER") or next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserError(AssertionError):
    """What the page, or the browser, did not do."""


class Tab:
    """One page: opened, looked at, typed and clicked into."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session
        self.requests: list[str] = []
        self.errors: list[str] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command of the DevTools protocol."""
        return self.browser.call(method, params, self.session)

    def heard(self, event: dict[str, Any]) -> None:
        """An event of this page."""
        method, params = event["method"], event["params"]
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(" ".join(str(each.get("value", each.get("description"))) for each in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])

    def run(self, script: str) -> Any:
        """The value of an expression; what it promises is waited for."""
        params = {"awaitPromise": True, "returnByValue": True, "allowUnsafeEvalBlockedByCSP": False}
        done = self.call("Runtime.evaluate", expression=script, **params)
        if "exceptionDetails" in done:
            details = done["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description") or details["text"])
        return done["result"].get("value")

    def wait(self, script: str, seconds: float = 20) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script)
            if value:
                return value
            if time.monotonic() > end:
                raise BrowserError(f"never true: {script}; errors: {self.errors}")
            time.sleep(0.03)

    def open(self, path: Path, address: str = "") -> None:
        """Opens a file, and waits for its first view."""
        self.call("Page.navigate", url="about:blank")
        self.requests.clear()
        self.errors.clear()
        self.call("Page.navigate", url=path.resolve().as_uri() + address)
        self.wait("document.readyState === 'complete' && document.querySelector('header.top, #figure') !== null")

    def view(self, address: str) -> None:
        """Goes to a view by its address."""
        self.run(f"location.hash = {json.dumps(address)}")
        self.settled()

    def settled(self) -> None:
        """Waits until the view asked for is there, and every figure drawn."""
        self.wait("document.getElementById('app').dataset.shown === location.hash")
        self.wait("[...document.querySelectorAll('.plot')].every((plot) => plot.dataset.drawn)")

    def text(self, selector: str) -> str:
        """The text of an element."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def texts(self, selector: str) -> list[str]:
        """The text of every such element."""
        return list(self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.innerText)"))

    def count(self, selector: str) -> int:
        """How many such elements there are."""
        return int(self.run(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def click(self, selector: str) -> None:
        """Clicks in the middle of an element, as a mouse would."""
        quoted = json.dumps(selector)
        box = self.wait(
            f"(() => {{ const each = document.querySelector({quoted}); if (!each) return null;"
            "each.scrollIntoView({block: 'center'}); const box = each.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        self.click_at(*box)

    def click_at(self, x: float, y: float) -> None:
        """Clicks at a point."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, *, shift: bool = False) -> None:
        """Presses a key."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowDown": 40, "ArrowUp": 38}
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        params = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **params)
        self.call("Input.dispatchKeyEvent", type="keyUp", **params)

    def type(self, text: str) -> None:
        """Types into what has the focus."""
        for letter in text:
            self.call("Input.dispatchKeyEvent", type="char", text=letter)

    def choose(self, selector: str, value: str) -> None:
        """Chooses an option of a select."""
        self.run(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}); box.value = {json.dumps(value)};"
            "box.dispatchEvent(new Event('change')); })()"
        )
        self.settled()

    def size(self, width: int, height: int = 900, *, dark: bool = False, media: str = "") -> None:
        """The window, the scheme of colors, and the medium."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def picture(self, path: Path, *, whole: bool = True, height: int = 8000) -> None:
        """Take a picture of the page, down to a height, or of what the window shows of it."""
        params: dict[str, Any] = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            params = {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height), "scale": 1},
            }
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **params)["data"]))

    def pdf(self, path: Path) -> None:
        """The page as it prints."""
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"]))


class Browser:
    """A browser of one's own, with an empty profile."""

    def __init__(self, path: str, profile: str) -> None:
        ours, self._writing = os.pipe()
        self._reading, theirs = os.pipe()
        flags = [*FLAGS, f"--user-data-dir={profile}", "about:blank"]
        # The browser reads from descriptor 3 and writes to 4.
        script = f'exec "$@" 3<&{ours} 4>&{theirs}'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", script, "sh", path, *flags],
            pass_fds=(ours, theirs),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(ours)
        os.close(theirs)
        self._rest = b""
        self._number = 0
        self._tabs: dict[str, Tab] = {}

    def tab(self) -> Tab:
        """A new page."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        tab = Tab(self, session)
        self._tabs[session] = tab
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.call(f"{domain}.enable")
        tab.size(1280)
        return tab

    def call(self, method: str, params: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        """A command and its answer; events on the way are heard by their pages."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            tab = self._tabs.get(answer.get("sessionId", ""))
            if tab is not None and "method" in answer:
                tab.heard(answer)

    def _next(self) -> dict[str, Any]:
        import select

        while b"\0" not in self._rest:
            if not select.select([self._reading], [], [], PATIENCE)[0]:
                raise BrowserError(f"the browser says nothing for {PATIENCE} s")
            data = os.read(self._reading, 1 << 16)
            if not data:
                raise BrowserError("the browser has ended")
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def close(self) -> None:
        """Ends it."""
        try:
            self.call("Browser.close", {})
        except (BrowserError, OSError):
            self.process.kill()
        self.process.wait(10)
        os.close(self._reading)
        os.close(self._writing)


@contextmanager
def running(path: str | None = None) -> Iterator[Browser]:
    """A browser while it is needed."""
    chosen = path or found()
    if chosen is None:
        raise BrowserError("there is no browser on this machine")
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile:
        browser = Browser(chosen, profile)
        try:
            yield browser
        finally:
            browser.close()
