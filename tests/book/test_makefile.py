"""The Makefile's recipes: each command of each, and what make says when it fails.

The commands are replaced by scripts that only note how they were called.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What each target calls, in order.
RECIPES = {
    "html": ["-b html book"],
    "pdf": ["-b latex book", "latexmk"],
    "test": ["-b html book", "-m pytest"],
    "test-slow": ["-b html book", "-m pytest"],
    "lint": ["-m ruff check", "-m ruff format --check", "-m bookkit lint"],
    "experiments": ["-m bertbook.experiments"],
    "lock": ["-m venv", "-m pip install", "pip-compile", "sed"],
    ".venv/installed": ["sys.version_info", "-m venv", "--requirement", "--editable", "font_manager"],
}
NOTE = """#!/bin/sh
call="$(basename "$0") $*"
echo "$call" >> calls
case "$call" in *"$FAILING"*) exit 3;; esac
"""


class Project:
    """A folder with our Makefile, in which nothing is real but make and the shell."""

    def __init__(self, folder: Path):
        self.folder = folder
        shutil.copy(ROOT / "Makefile", folder)
        for name in ("requirements.txt", "pyproject.toml", ".venv/installed"):
            self.write(name, "")
        self.write("_build/latex/Makefile", "all:\n\tcd ../..; latexmk\n")
        for name in (
            "bin/python3",
            "bin/sed",
            "bin/latexmk",
            "bin/xelatex",
            ".venv/bin/python",
            "_build/lock/bin/python",
            "_build/lock/bin/pip-compile",
        ):
            self.write(name, NOTE)
            (folder / name).chmod(0o755)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def make(self, target: str, failing: str = "no such call") -> tuple[int, list[str]]:
        """The exit status, and what was called."""
        if target == ".venv/installed":
            (self.folder / target).unlink()
        if target == "lock":
            self.write("requirements.txt.old", "")  # what the real sed leaves
        ours = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GNUMAKEFLAGS", "CHAPTER"}
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        environment |= {"PATH": f"{self.folder / 'bin'}:{environment['PATH']}", "FAILING": failing}
        done = subprocess.run(
            ["make", target], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("target", RECIPES)
def test_a_recipe_calls_what_it_should(project, target):
    """So that the test below misses no command."""
    status, calls = project.make(target)
    assert status == 0
    assert len(calls) == len(RECIPES[target]), calls
    for call, part in zip(calls, RECIPES[target], strict=True):
        assert part in call


@pytest.mark.parametrize(("target", "failing"), [(target, part) for target, parts in RECIPES.items() for part in parts])
def test_a_failing_command_fails_its_recipe(project, target, failing):
    status, calls = project.make(target, failing)
    assert status != 0
    assert failing in calls[-1]  # nothing is called after it


def test_an_installation_that_failed_is_not_taken_for_finished(project):
    project.make(".venv/installed", "--editable")
    assert not (project.folder / ".venv/installed").exists()


def test_the_pdf_without_tex_names_the_packages(project):
    for name in ("latexmk", "xelatex"):
        (project.folder / "bin" / name).unlink()
    (project.folder / "bin/sh").symlink_to(shutil.which("sh"))
    make = shutil.which("make")
    done = subprocess.run(
        [make, "pdf"],
        cwd=project.folder,
        env={"PATH": str(project.folder / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "make pdf needs XeLaTeX and latexmk" in done.stdout
    assert "texlive-xetex" in done.stdout
    assert not (project.folder / "calls").exists()  # no chapter is run for nothing
