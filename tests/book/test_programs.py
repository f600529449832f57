"""The programs made of the book's cells: each runs alone, and gives what its page shows."""

import ast
import json

import pytest

from book_paths import CHAPTERS, ROOT
from bookkit.cells import read_cells
from bookkit.snippets.gate import check_programs

LISTING = ROOT / "_build/programs.json"
FEW_BYTES = 6_000


@pytest.fixture(scope="module")
def programs(html_folder) -> list[dict]:
    return json.loads(LISTING.read_text("utf-8"))["programs"]


def cells_of(chapter: str) -> list:
    return read_cells((ROOT / f"book/{chapter}.md").read_text("utf-8"))


def test_every_cell_has_a_program(programs, pages):
    assert len(programs) == sum(len(cells_of(chapter)) for chapter in CHAPTERS)
    for chapter in CHAPTERS:
        bars = [[b.text for b in bar.select("button")] for bar in pages[f"{chapter}.html"].select(".cell > .snippet")]
        assert bars == [["Copy program", "Copy cell"]] * len(cells_of(chapter))


def test_every_program_runs_alone_and_gives_what_its_page_shows(programs, record_property):
    """In a process of its own, where neither package can be imported. Of each page, one in a new interpreter."""
    outcome = check_programs(LISTING)
    record_property("summary", str(outcome).splitlines()[-1])
    assert outcome.faults == [], "\n\n".join(outcome.faults)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_program_runs_in_a_new_interpreter(programs, chapter):
    """The third of each page: the processes of the test above are copies of one that has imported the libraries."""
    outcome = check_programs(LISTING, fresh=True, only=f"/{chapter}/03-")
    assert (outcome.programs, outcome.faults) == (1, [])


def test_no_program_speaks_of_the_packages_it_replaces(programs):
    for program in programs:
        for node in ast.walk(ast.parse((LISTING.parent / program["file"]).read_text("utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {name.partition(".")[0] for name in names} & {"bertbook", "bookkit"}, program["file"]


def test_what_needs_more_than_the_usual_libraries_says_so(programs):
    for program in programs:
        text = (LISTING.parent / program["file"]).read_text("utf-8")
        assert ("python -m pip install" in text) == ("/flax/" in program["file"]), program["file"]


def test_script_and_sheet_are_small():
    assert sum(file.stat().st_size for file in (ROOT / "src/bookkit/snippets/static").iterdir()) <= FEW_BYTES
