"""The book as `make html` built it."""

from pathlib import Path

import pytest

from book_paths import ROOT


@pytest.fixture(scope="session")
def html_folder() -> Path:
    folder = ROOT / "_build" / "html"
    if not (folder / "index.html").exists():
        pytest.fail("the book is not built: run `make test`, or `make html` first")
    return folder
