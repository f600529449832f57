"""The built HTML: what a reader finds on the pages."""

import json
import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import Tag

from book_paths import CHAPTERS, ROOT

ACTIVITY = "section.activity"
HINT, ANSWER, FEEDBACK = (f"details.activity-{role}" for role in ("hint", "answer", "feedback"))
# What an activity of each kind has below its prompt, as CSS selectors.
NEEDS = {
    "discuss": [HINT, ANSWER],
    "predict": [HINT, ANSWER],
    "fill-table": [HINT, "table [data-answer]", ANSWER],
    "step": [HINT, "table", ".activity-list > li[data-row]", ANSWER],
    "sort": [HINT, ".activity-list > li select[data-answer]", FEEDBACK, ANSWER],
    "eliminate": [".activity-list > li button[data-action=strike]", FEEDBACK],
    "check": [".activity-list > li input[type=radio]", FEEDBACK],
    "trap": [".activity-claim", ANSWER],
    "draw": [HINT, ".activity-list > li input[type=checkbox]", "figure img[alt]", ANSWER],
    "exercise": [HINT, ANSWER],
}
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_code_cell_was_executed_without_an_error(chapter):
    notebook = json.loads((ROOT / f"_build/jupyter_execute/{chapter}.ipynb").read_text("utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not [out for cell in cells for out in cell["outputs"] if out["output_type"] == "error"]


def test_every_image_says_what_it_shows(pages):
    """Without an alternative text of its own, the theme uses the file's name, which is a hash."""
    images = [(name, image) for name, page in pages.items() for image in page.select("article img")]
    assert images
    for name, image in images:
        alt = image.get("alt", "")
        assert len(alt) > 40, f"{name}: {alt!r} is too short to say what the figure shows"
        assert " " in alt
        assert not re.search(r"[0-9a-f]{16}|\.(svg|png|pdf)$", alt), f"{name}: {alt!r} is a file name"


def test_no_internal_link_is_broken(pages):
    ids = {name: {element["id"] for element in page.find_all(id=True)} for name, page in pages.items()}
    broken = []
    for name, page in pages.items():
        for link in page.find_all("a", href=True):
            target = urlsplit(link["href"])
            if target.scheme or target.netloc or link["href"] in ("#", ""):
                continue
            path = target.path or name
            file = ROOT / "_build/html" / unquote(path)
            known = path in ids and (not target.fragment or unquote(target.fragment) in ids[path])
            if not known and not (file.is_file() and not target.fragment):
                broken.append((name, link["href"]))
    assert not broken


def test_no_id_is_used_twice_on_a_page(pages):
    for name, page in pages.items():
        ids = [element["id"] for element in page.find_all(id=True)]
        assert len(ids) == len(set(ids)), (name, sorted({i for i in ids if ids.count(i) > 1}))


def test_no_page_loads_anything_from_another_host(pages, html_folder):
    loaded = []
    for name, page in pages.items():
        for tag, attribute in LOADED.items():
            loaded += [(name, element[attribute]) for element in page.find_all(tag, **{attribute: True})]
        # Links of these kinds are fetched by the browser; "canonical" and the like are not.
        for element in page.find_all("link", href=True):
            if set(element.get("rel", [])) & {"stylesheet", "icon", "preload", "modulepreload", "preconnect"}:
                loaded.append((name, element["href"]))
    for sheet in html_folder.rglob("*.css"):
        for url in re.findall(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", sheet.read_text("utf-8")):
            loaded.append((sheet.name, "".join(url)))
    assert loaded
    assert not [(where, url) for where, url in loaded if urlsplit(url).netloc]


def test_formulas_are_mathml_not_scripts(pages):
    assert pages["attention.html"].find("math")
    for name, page in pages.items():
        assert not page.find("script", src=re.compile("mathjax|katex", re.IGNORECASE)), name


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_has_at_least_three_activities(pages, chapter):
    assert len(pages[f"{chapter}.html"].select(ACTIVITY)) >= 3


def activities_of(pages, but: tuple[str, ...] = ()):
    """Every activity but those of some kinds, with the words by which a failing test names it."""
    for name, page in pages.items():
        for activity in page.select(ACTIVITY):
            if activity["data-kind"] not in but:
                yield f"{name}: {activity.find(class_='activity-title').get_text()}", activity


def test_every_kind_of_activity_is_used(pages):
    assert {activity["data-kind"] for _, activity in activities_of(pages)} == set(NEEDS)


def test_every_activity_has_what_its_kind_needs(pages):
    missing = [
        (where, needed)
        for where, activity in activities_of(pages)
        for needed in NEEDS[activity["data-kind"]]
        if not activity.select(needed)
    ]
    assert not missing


def test_every_activity_asks_something(pages):
    """A question, in the title or below it; traps show a claim, exercises say what to write."""
    silent = []
    for where, activity in activities_of(pages, but=("trap", "exercise")):
        said = (child for child in activity.find_all(recursive=False) if child.name != "details")
        if "?" not in " ".join(child.get_text() for child in said):
            silent.append(where)
    assert not silent


def test_hints_answers_and_reasons_are_closed(pages):
    assert not [where for where, activity in activities_of(pages) if activity.select("details[open]")]


def test_a_common_wrong_answer_is_explained(pages):
    """Where there are options, each has its reason; in a trap, the claim is the wrong answer; code has its checker."""
    for where, activity in activities_of(pages, but=("check", "eliminate", "trap", "exercise")):
        answers = " ".join(answer.get_text() for answer in activity.select(ANSWER))
        assert "common wrong answer" in answers, where


def test_every_option_item_row_and_arrow_says_why(pages):
    for where, activity in activities_of(pages):
        items = activity.select(".activity-list > li")
        assert all(len(reason_of(item)) >= 15 for item in items), (where, [reason_of(item) for item in items])


def reason_of(item: Tag) -> str:
    """What is said of an option, item, row or arrow, beside its label and its bucket."""
    told = (item.select_one(FEEDBACK) or item).find_all(recursive=False)
    headings = [part for part in told if part.name in ("label", "summary") or part.get_text() == bold_in(part)]
    return " ".join(part.get_text(" ", strip=True) for part in told if part not in headings)


def bold_in(part: Tag) -> str | None:
    return part.strong.get_text() if part.strong else None


def test_one_option_is_right(pages):
    for where, activity in activities_of(pages):
        expected = activity["data-kind"] in ("check", "eliminate")
        assert len(activity.select("[data-right]")) == expected, where


def test_a_heading_is_never_skipped(pages):
    for chapter in CHAPTERS:
        levels = [int(h.name[1]) for h in pages[f"{chapter}.html"].select("article :is(h1, h2, h3, h4)")]
        assert levels[0] == 1
        assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


def test_tables_have_captions_numbers_and_row_headers(pages):
    tables = pages["attention.html"].select("div.record table")
    assert len(tables) >= 5
    for table in tables:
        assert re.match(r"Table \d+", table.find("caption").get_text(strip=True))
        assert table.find("thead").find("th")
    assert pages["attention.html"].find(id="attention-causal").find("tbody").find("th")


def test_what_was_checked_stands_under_every_record(pages):
    marks = [mark.get_text() for name in CHAPTERS for mark in pages[f"{name}.html"].select(".record-mark")]
    report = json.loads((ROOT / "_build/report.json").read_text("utf-8"))
    assert len(marks) == len(report["records"])
    assert all("agree" in mark for mark in marks)


def test_no_page_names_a_path_of_the_machine(pages):
    for name, page in pages.items():
        assert str(ROOT) not in str(page), name
        assert str(Path.home()) not in page.get_text(), name
        assert not re.search(r"/tmp/|/home/|localhost", page.get_text()), name
