"""The chapters' sources, and how the two packages keep apart."""

import ast
import re
import subprocess
import sys

import pytest

from book_paths import CHAPTERS, ROOT
from bookkit.cells import read_cells
from bookkit.ledger import load_ledger
from bookkit.lint import lint_chapter

LISTING = re.compile(r"^```\{listing\} (\S+)$", re.MULTILINE)


def chapter_text(name: str) -> str:
    return (ROOT / "book" / f"{name}.md").read_text("utf-8")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_cells_do_nothing_that_a_chapter_may_not_do(chapter):
    assert lint_chapter(chapter_text(chapter), load_ledger(ROOT / "book/ledger")) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_code_fits_the_page(chapter):
    lines = [line for cell in read_cells(chapter_text(chapter)) for line in cell.source.splitlines()]
    assert max(map(len, lines)) <= 88


def test_code_is_shown_once_and_exists():
    shown = [name for chapter in CHAPTERS for name in LISTING.findall(chapter_text(chapter))]
    assert len(shown) == len(set(shown))
    for name in shown:
        module, _, wanted = name.rpartition(".")
        tree = ast.parse((ROOT / "src" / f"{module.replace('.', '/')}.py").read_text("utf-8"))
        assert wanted in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_what_a_chapter_calls_for_its_mechanism_is_shown():
    """The code of attention and of the toy stands on the page where it is taught."""
    shown = {chapter: set(LISTING.findall(chapter_text(chapter))) for chapter in CHAPTERS}
    assert {
        "bertbook.attention.toy_scores",
        "bertbook.attention.causal_mask",
        "bertbook.attention.padding_mask",
        "bertbook.attention.attention_weights",
        "bertbook.attention.attention",
    } <= shown["attention"]
    assert {
        "bertbook.heads.BertForSequenceClassification",
        "bertbook.heads.BertForTokenClassification",
        "bertbook.heads.BertForQuestionAnswering",
        "bertbook.tiny.TinyBertForClassification",
        "bertbook.training.train",
    } <= shown["finetuning"]
    assert {
        "bertbook.tiny.TinySelfAttn",
        "bertbook.tiny.TinyLayer",
    } <= shown["project"]


def imported_by(package: str) -> set[str]:
    names = set()
    for path in (ROOT / "src" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.split(".")[0])
    return names


def test_the_packages_do_not_import_each_other():
    assert not imported_by("bertbook") & {"bookkit", "sphinx", "docutils", "myst_nb", "IPython"}
    assert not imported_by("bookkit") & {"bertbook", "torch", "jax", "numpy", "matplotlib"}


def test_public_names_of_bertbook_are_unique():
    names = [
        node.name
        for path in sorted((ROOT / "src/bertbook").rglob("*.py"))
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    assert len(names) == len(set(names))


def test_everything_public_has_a_docstring_with_an_example():
    """A doctest for each public function and class of bertbook; methods say what they map."""
    for path in sorted((ROOT / "src/bertbook").rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                doc = ast.get_docstring(node) or ""
                assert doc, f"{path.name}: {node.name} has no docstring"
                drawing = path.parent.name == "figures" and node.name in ("write_cells", "draw_mask")
                assert ">>>" in doc or drawing, f"{path.name}: {node.name} has no example"


def test_sphinx_itself_imports_neither_torch_nor_jax(tmp_path):
    """It forks to read in parallel, which such libraries do not survive."""
    program = (
        "import sys\n"
        "from sphinx.cmd.build import main\n"
        "main(sys.argv[1:])\n"
        "print(sorted({'torch', 'jax', 'numpy', 'matplotlib'} & set(sys.modules)))\n"
    )
    arguments = ["-q", "-Q", "-b", "dummy", "-c", ".", "-D", "nb_execution_mode=off", "-d", str(tmp_path / "doctrees")]
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments, "book", str(tmp_path / "out")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[]"


def test_the_lock_is_complete_and_names_no_index():
    lock = (ROOT / "requirements.txt").read_text("utf-8")
    pins = [line for line in lock.splitlines() if line and not line.lstrip().startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]*==[0-9][\w.]*( ;.*)?", pin) for pin in pins)
    assert "torch==2.13.0" in pins
    assert "://" not in lock
