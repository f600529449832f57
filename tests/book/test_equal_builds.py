"""Two builds of the same sources, in two folders, are equal, file by file: HTML, and what the PDF is made of."""

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from book_paths import ROOT

DATE = "SOURCE_DATE_EPOCH"


def sphinx(builder: str, folder: Path, doctrees: Path, output: Path) -> None:
    """The book of a folder, built as the Makefile does."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), DATE: date_of_the_build()}
    options = ["-q", "-n", "-W", "-j", "6", "-c", ".", "-d", str(doctrees), "-b", builder]
    subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "book", str(output)], cwd=folder, env=environment, check=True
    )


def date_of_the_build() -> str:
    """The Makefile's: of the last commit."""
    last_commit = ["git", "log", "-1", "--format=%ct"]
    return os.environ.get(DATE) or subprocess.check_output(last_commit, cwd=ROOT, text=True).strip()


@pytest.fixture(scope="module")
def two_builds(html_folder, tmp_path_factory) -> tuple[Path, Path]:
    """What `make html` has built, with LaTeX made from it; and a copy of the sources, executed anew elsewhere."""
    first = tmp_path_factory.mktemp("first")
    shutil.copytree(html_folder, first / "html")
    shutil.copytree(ROOT / "_build/doctrees", first / "doctrees")
    sphinx("latex", ROOT, first / "doctrees", first / "latex")

    second = tmp_path_factory.mktemp("second") / "another" / "and-deeper"
    ignored = shutil.ignore_patterns("_build", ".venv", ".git", "tests", "__pycache__", ".*cache", ".hypothesis")
    shutil.copytree(ROOT, second, ignore=ignored)
    for builder in ("html", "latex"):
        sphinx(builder, second, second / "_build/doctrees", second / "_build" / builder)
    return first, second / "_build"


@pytest.mark.parametrize("builder", ["html", "latex"])
def test_every_file_is_equal(two_builds, builder):
    first, second = (build / builder for build in two_builds)
    names = files_of(first)
    assert names == files_of(second)
    assert any(name.endswith((".html", ".tex")) for name in names)
    _, different, unreadable = filecmp.cmpfiles(first, second, names, shallow=False)
    assert (different, unreadable) == ([], [])


def files_of(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
