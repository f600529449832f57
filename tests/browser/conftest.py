"""Chromium, and the book as `make html` built it, served to it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from browsing import ARGUMENTS, find_chromium, serve


# Playwright keeps an event loop running in this thread. Its end with each module lets other tests run loops of theirs.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def book(html_folder) -> Iterator[str]:
    """The address of the built book."""
    with serve(html_folder) as address:
        yield address
