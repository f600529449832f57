"""The guide's examples of activities are built as they stand there, with the guide's own records."""

import re

import pytest

from activity_book import PAGES, activity_book
from book_paths import ROOT
from bookkit.activities.kinds import KINDS

GUIDE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
EXAMPLES = [example for _, example in re.findall(r"^(`{4,})md\n(.*?)^\1$", GUIDE, re.MULTILINE | re.DOTALL)]
RECORDS = [
    records for records in re.findall(r"^```toml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL) if "[" in records
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    ledger = "\n".join(RECORDS).partition("[sees-itself]")[0]  # which needs records that the guide does not show
    figure = "```{figure} map.png\n:name: fig-map\n:alt: Two boxes.\n\nA drawing.\n```\n"
    pages = {
        "index": "# Tiny\n\n```{toctree}\nguide\nanswers\n```\n",
        "guide": "\n".join(["# Guide\n", *EXAMPLES, figure]),
        "answers": PAGES["answers"],
    }
    project = activity_book(tmp_path_factory.mktemp("guide"), pages, ledger, settings='bookkit_chapter = "guide"\n')
    assert project.build("html") == (0, "")
    return project.page("guide")


def test_the_examples_can_be_built(page):
    sections = page.select("section.activity")
    assert [section["data-kind"] for section in sections] == list(KINDS)
    assert all(section.select("details") or section["data-kind"] == "step" for section in sections)


def test_each_example_is_introduced_by_its_name():
    assert re.findall(r"^`([\w-]+)`: ", GUIDE, re.MULTILINE) == list(KINDS)
