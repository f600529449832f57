"""Two builds of the same sources, in two folders, are equal, file by file: HTML, and what the PDF is made of."""

import filecmp
import os
import re
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from book_paths import ROOT


def sphinx(builder: str, folder: Path, doctrees: Path, output: Path, date: str) -> None:
    """The book of a folder, built as the Makefile does."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "SOURCE_DATE_EPOCH": date}
    options = ["-q", "-n", "-W", "-j", "8", "-c", ".", "-d", str(doctrees), "-b", builder]
    subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "book", str(output)], cwd=folder, env=environment, check=True
    )


def date_of_the_build(html_folder: Path) -> str:
    """The commit's date at that time: it stands in the figures. A chapter built after a newer commit has another."""
    drawings = [path.read_text("utf-8") for path in (html_folder / "_images").glob("*.svg")]
    dates = {date for drawing in drawings for date in re.findall("<dc:date>(.*?)</dc:date>", drawing)}
    if len(dates) != 1:
        pytest.skip(f"the book was not built in one go, but at {sorted(dates)}: run make clean, then make test-slow")
    return str(int(datetime.fromisoformat(dates.pop()).timestamp()))


@pytest.fixture(scope="module")
def two_builds(html_folder, tmp_path_factory) -> tuple[Path, Path]:
    """What `make html` has built, with LaTeX made from it; and a copy of the sources, executed anew elsewhere."""
    first = tmp_path_factory.mktemp("first")
    date = date_of_the_build(html_folder)
    shutil.copytree(html_folder, first / "html")
    shutil.copytree(ROOT / "_build/doctrees", first / "doctrees")
    sphinx("latex", ROOT, first / "doctrees", first / "latex", date)

    second = tmp_path_factory.mktemp("second") / "another" / "and-deeper"
    ignored = shutil.ignore_patterns("_build", ".venv", ".git", "tests", "__pycache__", ".*cache", ".hypothesis")
    shutil.copytree(ROOT, second, ignore=ignored)
    for builder in ("html", "latex"):
        sphinx(builder, second, second / "_build/doctrees", second / "_build" / builder, date)
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
