"""The programs made of the book's cells, as files and on the pages. tests/slow runs them."""

import ast
import json
import re
import sys

import pytest

from bertbook.experiments.results import RESULTS, load_result
from book_paths import CHAPTERS, ROOT
from bookkit.cells import read_cells

LISTING = ROOT / "_build/programs.json"
FEW_BYTES = 6_000
# Libraries that few programs need, and how a cell asks for them.
ASKED_FOR = {
    "safetensors": r"\.(from|save)_pretrained\(",
    "tokenizers": r"\b(Tokenizer|bert_tokenizer|train_tokenizer|load_tokenizer|fill_mask)\b",
}


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


def test_no_program_speaks_of_the_packages_it_replaces(programs):
    for program in programs:
        for node in ast.walk(ast.parse((LISTING.parent / program["file"]).read_text("utf-8"))):
            names = imported_modules(node) if isinstance(node, ast.Import | ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"bertbook", "bookkit"}, program["file"]


def test_what_needs_more_than_the_usual_libraries_says_so(programs):
    """The Flax chapter's, and those whose cells read or write weights, or a tokenizer."""
    usual = {"torch", "numpy", "matplotlib"} | set(sys.stdlib_module_names)
    for program in programs:
        text = (LISTING.parent / program["file"]).read_text("utf-8")
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
        cells = text.partition("\n# -- Cell ")[2]
        more = {"jax", "flax"} if "/flax/" in program["file"] else set()
        more |= {library for library, asked_for in ASKED_FOR.items() if re.search(asked_for, cells)}
        assert {name.partition(".")[0] for node in nodes for name in imported_modules(node)} - usual == more, program
        install = next((line for line in text.splitlines() if "python -m pip install" in line), "")
        assert {word.partition("==")[0] for word in install.split() if "==" in word} >= more, program["file"]
        assert bool(install) == bool(more), program["file"]


def imported_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]


def test_recorded_results_are_where_the_configuration_says():
    """The name in conf.py is that of the function which loads them, and of the folder in which it looks."""
    entry = f'"{load_result.__module__}.{load_result.__name__}": "{RESULTS.relative_to(ROOT).as_posix()}"'
    assert f"bookkit_recorded = {{{entry}}}\n" in (ROOT / "conf.py").read_text("utf-8")


def test_script_and_sheet_are_small():
    assert sum(file.stat().st_size for file in (ROOT / "src/bookkit/snippets/static").iterdir()) <= FEW_BYTES
