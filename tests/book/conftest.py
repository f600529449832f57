"""The book as `make html` built it."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from book_paths import ROOT


@pytest.fixture(scope="session")
def html_folder() -> Path:
    folder = ROOT / "_build" / "html"
    if not (folder / "index.html").exists():
        pytest.fail("the book is not built: run `make test`, or `make html` first")
    return folder


@pytest.fixture(scope="session")
def pages(html_folder) -> dict[str, BeautifulSoup]:
    """Every page of the book by its path below the output folder."""
    return {
        path.relative_to(html_folder).as_posix(): BeautifulSoup(path.read_text("utf-8"), "html.parser")
        for path in sorted(html_folder.rglob("*.html"))
        if "_static" not in path.parts
    }
