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
