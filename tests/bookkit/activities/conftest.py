"""The tiny book with every kind of activity, built once for all tests."""

import re

import pytest

from activity_book import activity_book
from tiny_book import Project


@pytest.fixture(scope="session")
def book(tmp_path_factory) -> Project:
    return activity_book(tmp_path_factory.mktemp("activities"))


@pytest.fixture(scope="session")
def builds(book) -> dict[str, tuple[int, str]]:
    """HTML first: it executes the page with a cell, and the other builders find it executed."""
    return {builder: book.build(builder) for builder in ("html", "latex", "text", "singlehtml", "epub")}


@pytest.fixture(scope="session")
def built(book, builds) -> Project:
    assert builds["html"] == (0, "")
    return book


@pytest.fixture(scope="session")
def kinds(built):
    """The page of all kinds in HTML."""
    return built.page("kinds")


@pytest.fixture(scope="session")
def printed(built) -> dict[str, str]:
    """The page of all kinds, and the appendix, as text."""
    return {name: (built.root / f"_build/text/{name}.txt").read_text("utf-8") for name in ("kinds", "answers")}


@pytest.fixture(scope="session")
def latex(built) -> dict[str, str]:
    """The box of each activity of the page of all kinds."""
    tex = (built.root / "_build/latex/tiny.tex").read_text("utf-8")
    found = re.findall(
        r"kinds:([\w-]+--[\w-]+)\}\}\n(\\begin\{sphinxadmonition\}.*?\\end\{sphinxadmonition\})", tex, re.DOTALL
    )
    return dict(found)
