"""The built HTML: what a reader finds on the pages."""

import json
import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from book_paths import CHAPTERS, ROOT

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
def test_every_activity_has_a_question_a_hint_and_an_explained_answer(pages, chapter):
    activities = pages[f"{chapter}.html"].select("div.admonition.activity")
    assert len(activities) >= 3
    for activity in activities:
        title = activity.find(class_="admonition-title").get_text()
        hint, answer = activity.find("details", class_="hint"), activity.find("details", class_="answer")
        assert hint, title
        assert answer, title
        assert "?" in activity.get_text(), title
        assert "common wrong answer" in answer.get_text(), title
        assert not hint.has_attr("open"), title
        assert not answer.has_attr("open"), title


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
