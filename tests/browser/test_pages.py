"""Every page of the book in the browser: barriers, messages, requests, width. In light, in dark, and on a phone."""

from itertools import product

import pytest

from book_paths import ROOT
from browsing import Tab

PAGES = sorted(path.stem for path in (ROOT / "book").iterdir() if path.suffix in (".md", ".rst"))
PAGES += ["genindex", "search"]  # these Sphinx writes of itself
MODES = {
    "light": {"viewport": {"width": 1300, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1300, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "is_mobile": True},
}


@pytest.fixture(scope="module")
def tabs(browser, book) -> dict[str, Tab]:
    return {mode: Tab(browser, book, **options) for mode, options in MODES.items()}


@pytest.fixture(scope="module", params=product(MODES, PAGES), ids="-".join)
def visited(request, tabs) -> Tab:
    """A page of the book in a mode: loaded once for all tests."""
    mode, page = request.param
    tabs[mode].visit(f"{page}.html")
    return tabs[mode]


def test_no_page_is_forgotten(html_folder):
    assert sorted(path.stem for path in html_folder.glob("*.html")) == sorted(PAGES)


def test_axe_finds_no_barrier(visited):
    barriers = visited.barriers()
    assert not barriers, "\n".join(barriers)


def test_the_console_is_silent_and_every_request_is_answered_by_the_book(visited):
    assert not visited.complaints


@pytest.mark.parametrize("width", [320, 390, 768, 1300])  # the first is also a zoom of 400 % on a small screen
def test_no_page_is_wider_than_the_window(visited, width):
    assert visited.overflow(width) == 0


@pytest.mark.parametrize("width", [1100, 1200, 1319, 1320])  # around the widths at which the theme adds a side bar
def test_a_line_of_88_characters_fits_beside_the_side_bars(tabs, width):
    page = tabs["light"].page
    tabs["light"].visit("attention.html")
    page.set_viewport_size({"width": width, "height": 900})
    code = page.locator("div.cell_input pre").first
    code.evaluate("(code) => { code.textContent = 'x'.repeat(88); }")
    assert code.evaluate("(code) => code.scrollWidth - code.clientWidth") == 0
    page.set_viewport_size(MODES["light"]["viewport"])
