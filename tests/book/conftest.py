"""The book as `make html` built it."""

import pytest
from bs4 import BeautifulSoup


@pytest.fixture(scope="session")
def pages(html_folder) -> dict[str, BeautifulSoup]:
    """Every page of the book by its path below the output folder."""
    return {
        path.relative_to(html_folder).as_posix(): BeautifulSoup(path.read_text("utf-8"), "html.parser")
        for path in sorted(html_folder.rglob("*.html"))
        if "_static" not in path.parts
    }
