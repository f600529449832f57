"""The lesson's sixty slides: what kind each is, where the book teaches it, and which record holds its table."""

import re

import pytest
from bs4 import Tag

from book_paths import ROOT
from bookkit.ledger import load_ledger

KINDS = {
    "text": [1, 2, 4, 11, 12, 23, 26, 32, 41, 49, 50],
    "table": [5, 7, 9, 15, 18, 24, 27, 33, 35, 38, 52, 53, 54, 56, 60],
    "discuss": [3, 10, 13, 17, 22, 40, 42, 51, 58],
    "fill-table": [6, 8, 36, 55, 57],
    "predict": [14, 20, 29, 34, 37, 45],
    "step": [16, 39],
    "sort": [19, 25, 28, 31],
    "trap": [21, 30],
    "eliminate": [43, 47],
    "check": [44, 46, 48],
    "draw": [59],
}
KIND_OF = {slide: kind for kind, slides in KINDS.items() for slide in slides}
# How the title of such an activity begins. A trap is told in the text, beside what is run.
TITLES = {
    "discuss": "Discuss",
    "fill-table": "Fill in",
    "predict": "Predict",
    "step": "Step",
    "sort": "Sort",
    "eliminate": "Eliminate",
    "check": "Check",
    "draw": "Draw",
}


@pytest.fixture(scope="module")
def places(pages) -> dict[int, tuple[str, Tag]]:
    """For each slide the page and the element that carries its target; a target stands once in the book."""
    found: dict[int, tuple[str, Tag]] = {}
    for name, page in pages.items():
        for element in page.find_all(id=re.compile(r"^slide-\d+$")):
            slide = int(element["id"].removeprefix("slide-"))
            assert slide not in found, f"slide {slide} is on {found[slide][0]} and on {name}"
            found[slide] = (name, element)
    return found


def test_sixty_slides_have_their_place(places, capsys):
    with capsys.disabled():
        print(f"\n{'slide':>5}  {'kind':<10}  page")
        for slide in sorted(KIND_OF):
            print(f"{slide:>5}  {KIND_OF[slide]:<10}  {places.get(slide, ('nowhere',))[0]}")
    assert sorted(KIND_OF) == list(range(1, 61))
    assert sorted(places) == list(range(1, 61))


def test_a_slide_is_taught_by_a_paragraph_of_its_own(places):
    for slide, (_, element) in places.items():
        assert element.name == "p", f"slide-{slide} stands on a <{element.name}>"
        assert not element.find(id=re.compile("^slide-")), f"slide-{slide} shares its paragraph with another slide"
        assert len(element.get_text(" ", strip=True)) >= 20, f"the paragraph of slide {slide} says nothing"


@pytest.mark.parametrize("slide", [slide for slide, kind in KIND_OF.items() if kind in TITLES])
def test_a_slide_of_an_activity_kind_is_that_activity(places, slide):
    _, element = places[slide]
    title = element.find_next("div", class_="activity").find(class_="admonition-title").get_text()
    assert title.startswith(TITLES[KIND_OF[slide]]), f"after slide {slide} comes {title!r}"


def test_every_table_of_the_lesson_is_a_record_that_is_verified():
    verified = {entry.record.source for entry in load_ledger(ROOT / "book/ledger").to_verify()}
    assert {f"slide-{slide}" for slide in KINDS["table"]} <= verified
