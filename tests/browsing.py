"""For tests in a browser: the system's Chromium, a folder served to it, and a tab that notes what goes wrong."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Request, Response

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
MISSING = "Chromium is missing, so nothing was tested in a browser. On Debian or Ubuntu: apt-get install chromium"
# A page that asks another host for something fails the tests; it must not reach that host either.
ARGUMENTS = ("--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
# All rules of axe-core, best practices too, on the whole page. Code has thousands of coloured tokens, and axe-core
# takes milliseconds for each. So contrast is measured on three elements of a look, that is of the same colours, size
# and weight; and tokens of a look beyond these become plain text of their line.
# Not `preload`: it requests style sheets a second time, from addresses that do not exist.
FIND_BARRIERS = """async () => {
    const painted = new Map([[null, ""]]);
    const paint = (element) => {  // what lies below the element's text, from the page's ground up
        if (!painted.has(element)) {
            const {backgroundColor, backgroundImage, opacity} = getComputedStyle(element);
            const layer = `${backgroundColor} ${backgroundImage} ${opacity}/`;
            const plain = layer === "rgba(0, 0, 0, 0) none 1/";
            painted.set(element, paint(element.parentElement) + (plain ? "" : layer));
        }
        return painted.get(element);
    };
    const looks = new Map();
    const repeated = [];
    for (const element of document.body.querySelectorAll("*")) {
        const words = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
        if (!words || !element.checkVisibility() || element.offsetWidth <= 1) continue;
        const {color, fontSize, fontWeight} = getComputedStyle(element);
        const look = [color, fontSize, fontWeight, paint(element)].join();
        const samples = looks.get(look) ?? [];
        if (samples.length < 3) looks.set(look, [...samples, element]);
        else if (element.matches(".highlight pre span, .sig span")) repeated.push(element);
    }
    for (const token of repeated) token.replaceWith(...token.childNodes);
    const options = {preload: false, resultTypes: ["violations"]};
    const all = await axe.run(document, {...options, rules: {"color-contrast": {enabled: false}}});
    const contrast = await axe.run({include: [...looks.values()].flat()}, {...options, runOnly: ["color-contrast"]});
    return [...all.violations, ...contrast.violations].flatMap((rule) => rule.nodes.map(
        (node) => `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary}`));
}"""


def find_chromium() -> str:
    """The system's Chromium; without one the test is skipped, or fails where `BROWSER_TESTS=required` says so."""
    for program in PROGRAMS:
        if path := shutil.which(program):
            return path
    if os.environ.get("BROWSER_TESTS") == "required":
        pytest.fail(MISSING)
    pytest.skip(MISSING)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a line on the terminal for each."""

    def log_message(self, *args) -> None:
        pass


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """The folder's address on this machine, as long as the block runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class Tab:
    """A tab on one site. `complaints` holds what its console said and what it requested in vain or elsewhere."""

    def __init__(self, browser: Browser, site: str, **options):
        self.site = site
        self.page = browser.new_context(**options).new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("request", self._asked)
        self.page.on("response", self._answered)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.site, "data:", "blob:")):
            self.complaints.append(f"another host: {request.url}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.status}: {response.url}")

    def visit(self, path: str) -> None:
        """Open a page of the site, with no complaints yet."""
        self.complaints.clear()
        self.page.goto(self.site + path)

    def barriers(self) -> list[str]:
        """What axe-core finds on the whole page: the rule, the element, and what to do."""
        self.page.evaluate(AXE)
        return self.page.evaluate(FIND_BARRIERS)

    def overflow(self, width: int) -> int:
        """By how many pixels the page is wider than a window of this width."""
        before = self.page.viewport_size
        self.page.set_viewport_size({"width": width, "height": before["height"]})
        content = self.page.evaluate("document.documentElement.scrollWidth")
        self.page.set_viewport_size(before)
        return max(0, content - width)
