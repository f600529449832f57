"""The lesson's sixty slides: what kind each is, where the book teaches it, and which record holds its table."""

import re
from collections import Counter

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
# The activities that follow a slide's paragraph. The project's tables are what the milestones' checks print.
FOLLOWS = {slide: [kind] for slide, kind in KIND_OF.items() if kind not in ("text", "table")} | {
    8: ["fill-table", "discuss"],
    52: ["exercise"],
    53: ["exercise"],
    54: ["exercise", "predict"],
    55: ["fill-table", "discuss"],
    58: ["discuss", "discuss", "discuss"],
}
FROM_A_RECORD = ("fill-table", "step", "trap")


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


@pytest.fixture(scope="module")
def records() -> dict[int, list[str]]:
    """For each slide the records that its table, or another value of it, is verified with."""
    found: dict[int, list[str]] = {}
    for entry in load_ledger(ROOT / "book/ledger").to_verify():
        if entry.record.source and entry.record.source.startswith("slide-"):
            found.setdefault(int(entry.record.source.removeprefix("slide-")), []).append(entry.id)
    return found


def activities_after(element: Tag, count: int) -> list[Tag]:
    return element.find_all_next("section", class_="activity", limit=count)


def test_sixty_slides_have_their_place(places, records, record_property):
    rows = [f"{'slide':>5}  {'kind':<10}  {'page':<20}  record"]
    for slide, kind in sorted(KIND_OF.items()):
        page, element = places.get(slide, ("nowhere", None))
        rows.append(f"{slide:>5}  {kind:<10}  {page:<20}  {record_of(kind, element, records.get(slide, []))}")
    record_property("summary", "\n".join(rows))
    assert sorted(KIND_OF) == list(range(1, 61))
    assert sorted(places) == list(range(1, 61))


def record_of(kind: str, element: Tag | None, verified: list[str]) -> str:
    """What a row of the list says: the records of a table, or those that an activity takes its answers from."""
    if kind == "table":
        return ", ".join(verified)
    activity = element.find_next("section", class_="activity") if element and kind != "text" else None
    return activity.get("data-record", "") if activity else ""


def test_a_slide_is_taught_by_a_paragraph_of_its_own(places):
    for slide, (_, element) in places.items():
        assert element.name == "p", f"slide-{slide} stands on a <{element.name}>"
        assert not element.find(id=re.compile("^slide-")), f"slide-{slide} shares its paragraph with another slide"
        assert len(element.get_text(" ", strip=True)) >= 20, f"the paragraph of slide {slide} says nothing"


@pytest.mark.parametrize("slide", sorted(FOLLOWS))
def test_a_slide_of_an_activity_kind_is_that_activity(places, slide):
    activities = activities_after(places[slide][1], len(FOLLOWS[slide]))
    assert [activity["data-kind"] for activity in activities] == FOLLOWS[slide]


def test_no_two_slides_share_an_activity(places):
    named = [
        (places[slide][0], activity["id"])
        for slide, kinds in FOLLOWS.items()
        for activity in activities_after(places[slide][1], len(kinds))
    ]
    assert len(named) == len(set(named)), sorted(name for name in named if named.count(name) > 1)


def test_the_lesson_has_its_checks_eliminations_sortings_and_tables(places):
    first = (activities_after(element, 1) for slide, (_, element) in places.items() if slide in FOLLOWS)
    counts = Counter(activity["data-kind"] for found in first for activity in found)
    demanded = {"check": 3, "eliminate": 2, "sort": 4, "fill-table": 5, "step": 2}
    assert {kind: counts[kind] for kind in demanded} == demanded


@pytest.mark.parametrize("slide", sorted(slide for kind in FROM_A_RECORD for slide in KINDS[kind]))
def test_what_a_record_can_answer_is_answered_by_it(places, slide):
    (activity,) = activities_after(places[slide][1], 1)
    ledger = load_ledger(ROOT / "book/ledger")
    assert activity.get("data-record"), f"the activity after slide {slide} names no record"
    assert all(record_id in ledger for record_id in activity["data-record"].split())


def test_every_table_of_the_lesson_is_a_record_that_is_verified(records):
    assert set(KINDS["table"]) <= set(records)
