"""Two builds of the same sources, in two folders, are equal: HTML file by file, PDF page by page."""

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from book_paths import ROOT

HAS_TEX = bool(shutil.which("latexmk") and shutil.which("xelatex") and shutil.which("pdftoppm"))


def build(folder: Path) -> Path:
    """The book, built from a copy of the sources as `make html` and `make pdf` do."""
    ignored = shutil.ignore_patterns("_build", ".venv", ".git", "tests", "__pycache__", ".*cache", ".hypothesis")
    shutil.copytree(ROOT, folder, ignore=ignored)
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "SOURCE_DATE_EPOCH": "1767225600"}
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "-j", "4", "-c", ".", "-d", "_build/doctrees"]
    for builder in ("html", "latex"):
        command = [*sphinx, "-b", builder, "book", f"_build/{builder}"]
        subprocess.run(command, cwd=folder, env=environment, check=True)
    if HAS_TEX:
        options = "LATEXMKOPTS=-silent -interaction=nonstopmode"
        environment |= {"FORCE_SOURCE_DATE": "1"}
        latex = folder / "_build/latex"
        subprocess.run(["make", options], cwd=latex, env=environment, check=True, capture_output=True)
        subprocess.run(["pdftoppm", "-r", "40", "-gray", "bert-recomputed.pdf", "page"], cwd=latex, check=True)
    return folder / "_build"


@pytest.fixture(scope="module")
def two_builds(tmp_path_factory) -> tuple[Path, Path]:
    first = tmp_path_factory.mktemp("first") / "book"
    second = tmp_path_factory.mktemp("second") / "another" / "and-deeper"
    return build(first), build(second)


def files_of(folder: Path, pattern: str) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob(pattern) if path.is_file())


def assert_equal(first: Path, second: Path, pattern: str) -> None:
    names = files_of(first, pattern)
    assert names
    assert names == files_of(second, pattern)
    _, different, unreadable = filecmp.cmpfiles(first, second, names, shallow=False)
    assert (different, unreadable) == ([], [])


def test_html_is_equal(two_builds):
    first, second = two_builds
    assert_equal(first / "html", second / "html", "*")


def test_latex_is_equal(two_builds):
    first, second = two_builds
    assert_equal(first / "latex", second / "latex", "*.tex")


def test_every_page_of_the_pdf_is_equal(two_builds):
    if not HAS_TEX:
        pytest.skip("latexmk, xelatex or pdftoppm is not installed: only the LaTeX sources were compared")
    first, second = two_builds
    assert_equal(first / "latex", second / "latex", "page-*.pgm")
