"""The form that activities take in each builder, what the page around them gets, and what the browser is given."""

import inspect
import re
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from activity_book import KINDS as EXAMPLES
from activity_book import LEDGER, SUMS, activity_book
from bookkit.activities.forms import STATIC
from bookkit.activities.kinds import KINDS
from tiny_book import text_of

HIDDEN = sorted(set(re.findall(r"Hidden [a-z-]+\b", "".join(EXAMPLES.values()))))
FAMILIES = {
    "choice": ["check", "eliminate"],
    "details": ["discuss", "trap", "draw"],
    "exercise": ["exercise"],
    "predict": ["predict"],
    "sort": ["sort"],
    "tables": ["fill-table", "step"],
}


@pytest.mark.parametrize("builder", ["html", "latex", "text", "singlehtml", "epub"])
def test_no_builder_warns(builds, builder):
    assert builds[builder] == (0, "")


def test_the_book_has_every_kind(kinds):
    assert {section["data-kind"] for section in kinds.select("section.activity")} == set(KINDS)
    assert len(HIDDEN) == 28


def files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_parallel_build_is_the_same_byte_for_byte(built):
    assert built.build("html", output="_parallel", jobs=2) == (0, "")
    first, second = files(built.root / "_build/html"), files(built.root / "_parallel/html")
    assert first.keys() == second.keys()
    assert [str(name) for name in first if first[name] != second[name]] == []


# -- On screen -----------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["kinds", "answers", "part/more"])
def test_every_id_is_there_once_and_every_link_has_a_target(built, page):
    soup = built.page(page)
    ids = [element["id"] for element in soup.find_all(id=True)]
    assert len(ids) == len(set(ids))
    folder = built.root / "_build/html"
    for link in soup.select("[role=main] a[href*='#']"):
        name, _, anchor = link["href"].partition("#")
        target = (folder / page).parent / name if name else folder / f"{page}.html"
        assert BeautifulSoup(target.read_text("utf-8"), "html.parser").find(id=anchor), link


def test_an_activity_is_a_section_named_by_its_title(kinds):
    sections = kinds.select("section.activity")
    for section in sections:
        title = kinds.find(id=section["aria-labelledby"])
        assert title.parent is section
        assert section.select_one("[role=status].activity-status")
    titles = [text_of(section.select_one(".activity-title")) for section in sections]
    assert titles[:3] == ["Discuss: Is it half of n ?", "Predict: How much?", "Fill in: The sizes"]


def test_an_activity_and_a_heading_of_the_same_words(built):
    page = built.page("part/more")
    assert page.find(id="discuss-on-another-page").name == "section"
    assert page.find(id="discuss--on-another-page")["data-kind"] == "discuss"


def test_every_control_has_a_name(kinds):
    for control in kinds.select("section.activity :is(input, select, textarea)"):
        named = (
            control.get("aria-label")
            or control.find_parent("label")
            or kinds.find("label", attrs={"for": control["id"]})
        )
        assert named, control
        assert control["autocomplete"] == "off"  # what a browser restores by itself would be a second memory


def test_what_needs_a_script_is_not_shown_without_one(kinds):
    assert all("needs-script" in button["class"] for button in kinds.select("section.activity button"))
    style = (STATIC / "activity.css").read_text("utf-8")
    assert ".needs-script:not(.scripted, .scripted *) { display: none; }" in style
    assert not kinds.select(".scripted")


@pytest.mark.parametrize("page", ["kinds", "part/more"])
def test_progress_stands_under_the_title(built, page):
    (progress,) = built.page(page).select(".activity-progress")
    assert progress.find_previous_sibling().name == "h1"
    assert progress.select_one("[role=status]").text == ""
    assert "needs-script" in progress["class"]


def scripts_of(soup: BeautifulSoup) -> list[str]:
    names = [Path(script["src"].partition("?")[0]).name for script in soup.find_all("script", src=True)]
    return [name for name in names if (STATIC / name).exists()]


def test_a_page_has_the_scripts_of_its_kinds(built):
    assert scripts_of(built.page("kinds")) == ["activity.js", *(f"{family}.js" for family in FAMILIES)]
    assert scripts_of(built.page("part/more")) == ["activity.js", "details.js"]
    for page in ("run", "answers", "index"):
        assert scripts_of(built.page(page)) == []
        assert not built.page(page).select(".activity-progress")


def test_a_book_on_one_page_has_controls(built):
    soup = BeautifulSoup((built.root / "_build/singlehtml/index.html").read_text("utf-8"), "html.parser")
    assert len(soup.select("section.activity")) == len(EXAMPLES) + 1
    assert len(soup.select(".activity-progress")) == 1
    assert "details.js" in scripts_of(soup)


# -- On paper ------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", HIDDEN)
def test_no_answer_stands_outside_of_the_appendix(built, printed, hidden):
    """Once in the appendix of each form, and nowhere else."""
    words = re.compile(rf"{hidden}\b(?!-)")
    assert len(words.findall(printed["answers"])) == 1
    assert not words.search(printed["kinds"])
    tex = (built.root / "_build/latex/tiny.tex").read_text("utf-8").replace(r"\sphinxhyphen{}", "-")
    before, after = re.split(r"\\chapter\{Answers\}", tex)
    assert len(words.findall(after)) == 1
    assert not words.search(before)


def test_latex_links_both_ways_with_pages(built):
    tex = (built.root / "_build/latex/tiny.tex").read_text("utf-8")
    references = set(re.findall(r"\\(?:hyperref|ref|pageref)[{\[]\\detokenize\{([^}]*)\}", tex))
    labels = re.findall(r"\\label\{\\detokenize\{([^}]*)\}", tex)
    assert len(labels) == len(set(labels))
    assert references <= set(labels)
    activities = [f"kinds:{name}" for name in re.findall(r"\\detokenize\{kinds:([\w-]+--[\w-]+)\}\}\n", tex)]
    assert len(activities) == len(EXAMPLES)
    pages = re.findall(r"\(page~\\pageref\{\\detokenize\{([^}]*)\}\}\)", tex)
    assert set(pages) == {*activities, *(f"answers:{name.replace(':', '--')}" for name in activities)} | {
        "part/more:discuss--on-another-page",
        "answers:part-more--discuss--on-another-page",
    }


def test_an_e_book_has_exercises_and_no_scripts(built):
    folder = built.root / "_build/epub"
    soup = BeautifulSoup((folder / "kinds.xhtml").read_text("utf-8"), "html.parser")
    boxes = soup.select(".admonition.activity")
    assert len(boxes) == len(EXAMPLES)
    assert not soup.find(["button", "input", "select", "script", "details"])
    answers = BeautifulSoup((folder / "answers.xhtml").read_text("utf-8"), "html.parser")
    for box in boxes:
        link = box.find("a", string="in the appendix")
        page, _, anchor = link["href"].partition("#")
        assert page == "answers.xhtml"
        back = answers.find(id=anchor).find_next("a", string="back to the exercise")
        assert soup.find(id=back["href"].removeprefix("kinds.xhtml#"))


# -- The answers follow the record ---------------------------------------------------------


def changed(text: str) -> str:
    """A ledger, or the code that computes its values, with three other values."""
    for old, new in ("28994", "31415"), ("0.2559, 0.7441", "0.1234, 0.8766"), ('1234, "fast"', '1234, "slow"'):
        assert old in text
        text = text.replace(old, new)
    return text


def test_a_changed_record_changes_the_answer_and_nothing_else_is_edited(tmp_path):
    project = activity_book(tmp_path, ledger=changed(LEDGER), sums=changed(SUMS))
    assert project.build("html") == (0, "")
    assert project.build("text") == (0, "")
    page = project.page("kinds")
    answers = [field["data-answer"] for field in page.find(id="fill-table--the-sizes").find_all("input")]
    assert answers == ["1,234", "31,415", "70,000"]
    assert {choices["data-answer"] for choices in page.find(id="sort--fast-or-slow").find_all("select")} == {"slow"}
    assert "0.8766" in text_of(page.find(id="predict--how-much").select_one(".activity-answer"))
    assert "0.1234" in text_of(page.find(id="step--row-by-row").tbody)
    text = (tmp_path / "_build/text/answers.txt").read_text("utf-8")
    assert "31,415" in text
    assert "**small** (slow)" in text
    assert "Computed in this book: **0.8766**." in text
    assert not re.search(r"28,994|0\.7441|\bfast\b", text)


# -- What the browser is given --------------------------------------------------------------


def test_scripts_and_styles_weigh_at_most_30_kb():
    assert sum(path.stat().st_size for path in STATIC.iterdir()) <= 30_000


def test_every_kind_has_a_script_in_its_familys_file():
    for family, names in FAMILIES.items():
        script = (STATIC / f"{family}.js").read_text("utf-8")
        assert re.findall(r'^bookkit\.define\("([\w-]+)"', script, re.MULTILINE) == names
    assert sorted(path.name for path in STATIC.iterdir()) == sorted(
        ["activity.css", "activity.js", *(f"{family}.js" for family in FAMILIES)]
    )


@pytest.mark.parametrize("script", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_scripts_never_write_markup_and_ask_no_other_host(script):
    dangerous = (
        r"innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|createContextual|\beval\b|Function\(|setTimeout"
    )
    foreign = r"://|fetch\(|XMLHttpRequest|sendBeacon|WebSocket|import\b|document\.cookie"
    assert not re.search(f"{dangerous}|{foreign}", script.read_text("utf-8"))


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_says_what_it_does_for_accessibility_and_what_is_left_without_a_script(family):
    kinds = [KINDS[name] for name in FAMILIES[family]]
    (module,) = {kind.__module__ for kind in kinds}
    assert module == f"bookkit.activities.{family}"
    document = inspect.getdoc(sys.modules[module])
    assert re.search(r"^Accessibility: ", document, re.MULTILINE)
    assert re.search(r"^Fallback: .*On paper", document, re.MULTILINE | re.DOTALL)
