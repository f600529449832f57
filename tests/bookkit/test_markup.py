"""Markup that breaks no rule: on a tiny page, built by Sphinx."""

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx

PAGE = """
Page
====

.. py:function:: long(first: int = 1, *, second: str = "<dd>") -> None

.. py:function:: short(first)

A claim [One]_ and another [Two]_.

.. [One] The first work.
.. [Two] The second work.
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> BeautifulSoup:
    folder = tmp_path_factory.mktemp("book")
    (folder / "index.rst").write_text(PAGE, encoding="utf-8")
    options = {"extensions": ["bookkit.markup"], "html_theme": "basic", "python_maximum_signature_line_length": 20}
    places = (folder / "out", folder / "doctrees")
    Sphinx(folder, None, *places, "html", options, status=None, warningiserror=True).build()
    return BeautifulSoup((folder / "out/index.html").read_text("utf-8"), "html.parser")


def test_each_parameter_of_a_long_signature_is_a_line_and_no_list_of_definitions(page):
    long, short = page.select("dt.sig")
    assert [line.get_text() for line in long.select(".sig-lines > div")] == [
        "first: int = 1,",
        "*,",
        "second: str = '<dd>',",
    ]
    assert not long.find(["dl", "dd"])
    assert not short.select(".sig-lines")


def test_references_are_items_of_their_list(page):
    works = page.find(role="list").find_all("div", recursive=False)
    assert [work["role"] for work in works] == ["listitem", "listitem"]
