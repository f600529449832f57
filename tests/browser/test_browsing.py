"""The tools of these tests: what is wrong with a page must be found, and a missing browser must be said."""

import os
import subprocess
import sys

import pytest

from book_paths import ROOT
from browsing import MISSING, Tab, serve

SOUND = """<!doctype html><html lang="en"><head><title>Sound</title><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"></head><body><main><h1>Sound</h1>%s</main></body></html>"""
TOKEN = '<div class="highlight"><pre>%s</pre></div>' % ('<span style="color: #111">x</span> ' * 9 + "%s")
FAULTS = {
    "<p>Nothing is wrong.</p>": None,
    "<img src='data:,'>": "image-alt",
    "<p style='color: #ccc; background: #fff'>pale</p>": "color-contrast",
    TOKEN % "<span style='color: #ccc'>pale</span>": "color-contrast",
    TOKEN % "<span style='color: #111; background: #222'>dark</span>": "color-contrast",
    "<h4>A heading is skipped.</h4>": "heading-order",
    "</main><p>Outside</p><main>": "region",
    "<script>console.warn('careful')</script>": "warning: careful",
    "<script>missing()</script>": "uncaught: missing is not defined",
    "<script src='missing.js'></script>": "404: ",
    "<script src='http://example.org/it.js'></script>": "another host: http://example.org/it.js",
    "<div style='width: 330px'>wide</div>": "too wide: ",
}


@pytest.fixture(scope="module")
def tab(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    for i, body in enumerate(FAULTS):
        (folder / f"{i}.html").write_text(SOUND % body, encoding="utf-8")
    with serve(folder) as site:
        yield Tab(browser, site, viewport={"width": 600, "height": 400})


@pytest.mark.parametrize("body", FAULTS)
def test_what_is_wrong_is_found(tab, body):
    tab.visit(f"{list(FAULTS).index(body)}.html")
    wide = tab.overflow(320)
    found = tab.barriers() + tab.complaints + ([f"too wide: {wide}"] if wide else [])
    assert any(fault.startswith(FAULTS[body]) for fault in found) if FAULTS[body] else not found


@pytest.mark.parametrize(("variables", "status"), [({}, 0), ({"BROWSER_TESTS": "required"}, 1)])
def test_a_missing_browser_is_said_and_fails_where_it_is_required(tmp_path, variables, status):
    environment = {name: value for name, value in os.environ.items() if name != "BROWSER_TESTS"}
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", f"{__file__}::test_what_is_wrong_is_found", "-p", "no:cacheprovider"],
        cwd=ROOT, env=environment | variables | {"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tests.returncode == status, tests.stdout
    assert MISSING in tests.stdout
