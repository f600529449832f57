"""The alarm of the build, tested on the real book: `make html` and `make pdf` in a copy of the project.

Each case starts from a copy that passes, and must produce exactly the warnings that it names,
so that it cannot fail for another reason. A second `make html` and then `make pdf` must fail
with the same warnings, although Sphinx has saved by then what it read; when the change is
undone, both must pass.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
HAS_TEX = bool(shutil.which("latexmk") and shutil.which("xelatex"))
ATTENTION, PROJECT = "book/attention.md", "book/project.md"
LEDGER = {ATTENTION: "book/ledger/attention.toml", PROJECT: "book/ledger/project.toml"}


class Result(NamedTuple):
    """How one command ended, and what it said."""

    status: int
    stdout: str
    stderr: str

    @property
    def warnings(self) -> list[str]:
        """The first line of each warning."""
        return sorted(line for line in self.stderr.splitlines() if "WARNING: " in line)

    @property
    def executed(self) -> set[str]:
        """The chapters whose cells were run."""
        return set(re.findall(r"(\w+)\.md: Executing notebook using", self.stdout))


class Book:
    """A copy of the project, and a copy of that copy in the state in which it passed."""

    def __init__(self, folder: Path):
        self.folder, self.saved = folder / "book", folder / "saved"
        self.originals: dict[Path, str] = {}

    def make(self, *arguments: str) -> Result:
        done = subprocess.run(
            ["make", *arguments], cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def environment(self) -> dict[str, str]:
        """Ours, without what a `make test` around this test has set."""
        ours = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GNUMAKEFLAGS", "CHAPTER"}
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        if not HAS_TEX:  # then commands that do nothing: what must fail, fails before TeX
            environment["PATH"] = f"{self.folder / 'no-tex'}:{environment['PATH']}"
        return environment

    def restore(self) -> None:
        """The passing state again: same path, same times of modification."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.saved, self.folder, symlinks=True)
        self.originals = {}

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} must stand once in {file}"
        self.originals.setdefault(path, text)
        path.write_text(text.replace(old, new), encoding="utf-8")
        (self.folder / ".venv/installed").touch()  # never install anything from here

    def cell_of(self, record: str) -> list[str]:
        """The lines of the cell that verifies the record."""
        lines = (self.folder / ATTENTION).read_text(encoding="utf-8").splitlines()
        call = next(i for i, line in enumerate(lines) if f'verify("{record}"' in line)
        start = max(i for i in range(call) if lines[i].startswith("```{code-cell}"))
        return lines[start + 1 : lines.index("```", call)]

    def undo(self) -> None:
        for path, text in self.originals.items():
            path.write_text(text, encoding="utf-8")
        self.originals = {}

    def place(self, file: str, needle: str) -> str:
        """file:line, as messages write it."""
        lines = (self.folder / file).read_text(encoding="utf-8").splitlines()
        (number,) = (i for i, line in enumerate(lines, start=1) if needle in line)
        return f"{self.folder / file}:{number}"


@pytest.fixture(scope="module")
def passing_book(tmp_path_factory) -> Book:
    """A copy of what git has or would add, built as HTML and PDF."""
    book = Book(tmp_path_factory.mktemp("alarm"))
    listed = subprocess.check_output(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, text=True)
    for name in listed.split("\0"):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (book.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, book.folder / name)
    link_environment(book.folder / ".venv")
    stubs = book.folder / "no-tex"
    stubs.mkdir()
    for name in ("latexmk", "xelatex"):
        (stubs / name).write_text("#!/bin/sh\n")
        (stubs / name).chmod(0o755)
    html, pdf = book.make("html"), book.make("pdf")
    assert (html.status, html.warnings) == (0, []), html.stderr
    assert html.executed == {"attention", "project"}
    assert (pdf.status, pdf.warnings) == (0, []), pdf.stderr
    assert pdf.executed == set()  # the PDF shows what make html has executed
    shutil.copytree(book.folder, book.saved, symlinks=True)
    return book


def link_environment(venv: Path) -> None:
    """A virtual environment that is this one, but whose stamp and font cache are its own."""
    venv.mkdir()
    for entry in Path(sys.prefix).iterdir():
        if entry.name not in ("installed", "matplotlib"):
            (venv / entry.name).symlink_to(entry)
    if (cache := Path(sys.prefix, "matplotlib")).is_dir():
        shutil.copytree(cache, venv / "matplotlib")
    (venv / "installed").touch()


@pytest.fixture
def book(passing_book) -> Book:
    passing_book.restore()
    return passing_book


class Warned(NamedTuple):
    """A warning: where, how it begins, and what must stand below it."""

    file: str
    needle: str  # text of the line that the warning names; "" if it names only the file
    message: str
    below: tuple[str, ...] = ()  # regular expressions

    def first_line(self, book: Book) -> str:
        place = book.place(self.file, self.needle) if self.needle else str(book.folder / self.file)
        return f"{place}: WARNING: {self.message}"


class Drift(NamedTuple):
    """A drift warning: it names the chapter's line, the record's line, and both values of each cell."""

    file: str
    record: str
    below: tuple[str, ...]

    def first_line(self, book: Book) -> str:
        chapter = book.place(self.file, f'verify("{self.record}"')
        record = book.place(LEDGER[self.file], f"[{self.record}]")
        return f"{chapter}: WARNING: drift in record '{self.record}' ({record})"


def cell(row: str, column: str, recorded: str, computed: str) -> str:
    """The line of one cell that drifted; the last digits of what was computed belong to the machine."""
    values = f"row {row!r}, column {column!r}: the record has {recorded}, the chapter computed {computed}"
    return re.escape(values) + r"\d*(, difference \d\.\de[+-]\d+)?\n"


def assert_alarm(book: Book, result: Result, expected: list[Warned | Drift]) -> None:
    """The build failed, with these warnings and no other."""
    first_lines = sorted(warning.first_line(book) for warning in expected)
    assert len(result.warnings) == len(first_lines), result.stderr
    for found, wanted in zip(result.warnings, first_lines, strict=True):
        assert found.startswith(wanted)
    for warning in expected:
        for line in warning.below:
            assert re.search(line, result.stderr), result.stderr
    assert result.status != 0


def assert_lasting_alarm(book: Book, expected: list[Warned | Drift]) -> None:
    """The alarm is raised, is raised again, is raised by the PDF too, and ends with its cause."""
    assert_alarm(book, book.make("html"), expected)
    assert_alarm(book, book.make("html"), expected)
    assert_alarm(book, book.make("pdf"), expected)
    assert_repaired(book)


def assert_repaired(book: Book) -> None:
    book.undo()
    html, pdf = book.make("html"), book.make("pdf")
    assert (html.status, html.warnings) == (0, [])
    assert (pdf.status, pdf.warnings, pdf.executed) == (0, [], set())


# -- Drift -----------------------------------------------------------------------------

RIGHT, WRONG = "bidirectional.tril()", "bidirectional.triu()"
WRONG_TRIANGLE = Drift(ATTENTION, "masked-too-late", (cell("pos 1", "row sum", "0.4939", "0.764"),))


def test_a_changed_ledger_cell(book):
    book.edit(LEDGER[ATTENTION], "[0.4777, 0.5223,", "[0.4787, 0.5223,")
    changed = cell("pos 1", "pos 0", "0.4787", "0.477")
    assert_lasting_alarm(book, [Drift(ATTENTION, "attention-causal", (changed,))])


def test_a_changed_line_of_the_code(book):
    book.edit("src/bertbook/attention.py", "nn.init.normal_(key_map.weight, std=0.1)", "pass")
    expected = [
        Drift(ATTENTION, "attention-scores", (cell("pos 0", "pos 0", "−0.0285", "-0."),)),
        Drift(ATTENTION, "attention-bidirectional", (cell("pos 0", "pos 0", "0.2442", "0."),)),
        Drift(ATTENTION, "attention-fifth-key", (cell("pos 0", "pos 0", "0.1951", "0."),)),
        Drift(ATTENTION, "attention-causal", (cell("pos 1", "pos 0", "0.4777", "0."),)),
        Drift(ATTENTION, "masked-too-late", (cell("pos 0", "row sum", "0.2442", "0."),)),
    ]
    assert_lasting_alarm(book, expected)


def test_a_nan(book):
    book.edit(ATTENTION, 'verify("attention-scores", scores)', 'verify("attention-scores", scores.log())')
    changed = cell("pos 0", "pos 0", "−0.0285 (float)", "nan (float)")
    assert_lasting_alarm(book, [Drift(ATTENTION, "attention-scores", (changed,))])


def test_two_chapters_drift_in_one_build(book):
    """A changed seed in one, the wrong triangle in the other."""
    seeded = "torch.manual_seed({})\nmodel = TinyBertForClassification()\ninput_ids, labels = random_task(50)\nlosses"
    book.edit(PROJECT, seeded.format(99), seeded.format(98))
    book.edit(ATTENTION, RIGHT, WRONG)
    changed = cell("first", "loss", "0.8597", "0.")
    assert_lasting_alarm(book, [Drift(PROJECT, "full-program", (changed,)), WRONG_TRIANGLE])


def test_drift_in_a_result_that_is_not_shown(book):
    """Assigned, not last in its cell, or with a semicolon: verify reports when it is called."""
    book.edit(ATTENTION, 'verify("attention-scores", scores)', 'shown = verify("attention-scores", scores + 1)')
    book.edit(
        ATTENTION,
        'verify("attention-bidirectional", bidirectional)',
        'verify("attention-bidirectional", bidirectional + 1)\nNone',
    )
    book.edit(ATTENTION, 'verify("attention-causal", causal)', 'verify("attention-causal", causal + 1);')
    expected = [
        Drift(ATTENTION, "attention-scores", (cell("pos 0", "pos 0", "−0.0285", "0.971"),)),
        Drift(ATTENTION, "attention-bidirectional", (cell("pos 0", "pos 0", "0.2442", "1.244"),)),
        Drift(ATTENTION, "attention-causal", (cell("pos 0", "pos 0", "1.0000", "2.0"),)),
    ]
    assert_lasting_alarm(book, expected)


# -- Chapters that do not run ----------------------------------------------------------


SAVED = Warned(ATTENTION, "", "Notebook exception traceback saved in: ")


def test_a_killed_kernel_is_one_failing_chapter(book):
    """The line is readable, the other chapter's drift is reported too, and nothing is 'never verified'."""
    call = 'verify("milestone-2", milestone_2(TinyBertForClassification))'
    book.edit(PROJECT, call, f"import os\n\nos._exit(9)\n{call}")
    book.edit(ATTENTION, RIGHT, WRONG)
    died = (
        "The kernel died while it ran this chapter: out of memory, a crash in compiled code, or os._exit. "
        "The last cell that is known to have started begins with: (from torch|from bertbook.milestones) import"
    )
    expected = [
        Warned(PROJECT, "", "Executing notebook failed: DeadKernelError", (died,)),
        SAVED._replace(file=PROJECT),
        WRONG_TRIANGLE,
        # The chapter speaks of tables that it did not come to.
        *(Warned(PROJECT, line, "undefined label") for line in book.lines_with(PROJECT, "{numref}`", after=call)),
    ]
    assert_lasting_alarm(book, expected)


def test_an_unknown_record(book):
    call = 'verify("replace-last-token", ['
    book.edit(ATTENTION, call, f'verify("atention-scores", scores)\n{call}')
    says = "the ledger has no record 'atention-scores'. Did you mean 'attention-scores'"
    expected = [
        Warned(ATTENTION, 'verify("atention-scores"', says),
        Warned(ATTENTION, "", "Executing notebook failed: CellExecutionError", ("LookupError.*: the ledger has no",)),
        SAVED,
    ]
    assert_lasting_alarm(book, expected)


# -- Coverage --------------------------------------------------------------------------


def never_verified(record: str) -> Warned:
    return Warned(LEDGER[ATTENTION], f"[{record}]", f"record '{record}' was never verified")


def test_a_record_that_is_never_verified(book):
    book.edit(ATTENTION, 'verify("attention-fifth-key", wider)', "wider")
    assert_lasting_alarm(book, [never_verified("attention-fifth-key")])


def test_a_record_that_is_verified_twice(book):
    call = 'verify("attention-fifth-key", wider)'
    line = book.place(ATTENTION, call).rpartition(":")[2]
    book.edit(ATTENTION, call, f'{call}\nverify("attention-fifth-key", wider + 0)')
    says = f"record 'attention-fifth-key' is verified a second time; the first is in attention, line {line}"
    expected = [
        Warned(ATTENTION, "wider + 0", says),
        Warned(ATTENTION, "wider + 0", "Duplicate explicit target name"),
    ]
    assert_lasting_alarm(book, expected)


def test_captured_output(book):
    book.edit(ATTENTION, "import torch\n\nfifth_key", "%%capture\nimport torch\n\nfifth_key")
    assert_lasting_alarm(book, [never_verified("attention-fifth-key")])


def test_a_statement_whose_directive_is_removed(book):
    book.edit(ATTENTION, "```{verdict} sees-itself\n```\n", "")
    says = "statement 'sees-itself' must be shown once, with the directive `verdict`; it is in: nowhere"
    assert_lasting_alarm(book, [Warned(LEDGER[ATTENTION], "[sees-itself]", says)])


# -- What a chapter and the ledger may not say -----------------------------------------


def test_hidden_output(book):
    """Four cells, each with one of the tags. A removed output is not even a report."""
    tags = {
        "attention-scores": "hide-output",
        "attention-bidirectional": "hide-cell",
        "attention-fifth-key": "remove-output",
        "replace-last-token": "remove-cell",
    }
    for record, tag in tags.items():
        first_line = book.cell_of(record)[0]
        book.edit(ATTENTION, first_line, f":tags: [{tag}]\n\n{first_line}")
    hidden = "the tag '{}' hides the output of a cell that verifies: remove the tag"
    expected = [
        Warned(ATTENTION, 'verify("attention-scores"', hidden.format("hide-output")),
        Warned(ATTENTION, 'verify("attention-bidirectional"', hidden.format("hide-cell")),
        Warned(ATTENTION, 'verify("attention-fifth-key"', hidden.format("remove-output")),
        Warned(ATTENTION, 'verify("replace-last-token"', hidden.format("remove-cell")),
        never_verified("attention-fifth-key"),
        never_verified("replace-last-token"),
    ]
    assert_lasting_alarm(book, expected)


def test_a_typed_value(book):
    """True, and typed all the same."""
    book.edit(ATTENTION, "none_smaller),", "True),")
    says = "verify is given a typed value"
    assert_lasting_alarm(book, [Warned(ATTENTION, 'verify("causal-properties"', says)])


def test_a_reference_to_a_value_that_is_not_there(book):
    book.edit(
        ATTENTION, "{val}`attention-causal[pos 0, pos 0]`, whatever", "{val}`attention-causal[pos 9, pos 0]`, whatever"
    )
    book.edit(ATTENTION, "{val}`attention-scores[pos 0, pos 3]`", "{val}`attention-score[pos 0, pos 3]`")
    expected = [
        Warned(
            ATTENTION, "attention-causal[pos 9", "val: no row 'pos 9'; there are 'pos 0', 'pos 1', 'pos 2', 'pos 3'"
        ),
        Warned(ATTENTION, "attention-score[", "val: the ledger has no record 'attention-score'. Did you mean"),
    ]
    assert_lasting_alarm(book, expected)


def test_a_typo_in_a_key_of_the_ledger(book):
    """No chapter is run for it."""
    book.edit(
        LEDGER[ATTENTION],
        'corner = "query \\\\ key"\ndecimals = 4\nrows = [\n    [1.0000, 0',
        'corner = "query \\\\ key"\ndecimal = 4\nrows = [\n    [1.0000, 0',
    )
    says = f"{book.place(LEDGER[ATTENTION], 'decimal = 4')}: [attention-causal] unknown key `decimal`: is it a typo?"
    for target in ("html", "html", "pdf"):
        result = book.make(target)
        assert says in result.stderr
        assert "Traceback" not in result.stderr
        assert (result.status != 0, result.executed) == (True, set())
    assert_repaired(book)


# -- Builds that were interrupted ------------------------------------------------------


@pytest.mark.parametrize("moment", ["while a chapter runs", "while pages are written"])
def test_an_interrupted_build(book, moment):
    """Killed with drift in it. When pages are written, Sphinx has saved what it read: the dangerous moment."""
    ran, page = book.folder / "_build/ran", book.folder / "_build/html/attention.html"
    book.edit(ATTENTION, f"row_sums = {RIGHT}", f'open("../_build/ran", "w").close()\nrow_sums = {WRONG}')
    reached = ran if moment == "while a chapter runs" else page
    kill_when_changed(book, reached)
    assert json.loads((book.folder / "_build/doctrees/unfinished.json").read_text()) == ["all"]
    assert_alarm(book, book.make("html"), [WRONG_TRIANGLE])
    assert_repaired(book)


def kill_when_changed(book: Book, file: Path) -> None:
    """Start `make html`, and kill it with all that it started once the file is there, or is newer."""
    before = modified(file)
    with subprocess.Popen(
        ["make", "html"],
        cwd=book.folder,
        env=book.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as build:
        while modified(file) == before:
            assert build.poll() is None, "the build ended before it could be interrupted"
            time.sleep(0.005)
        os.killpg(build.pid, signal.SIGKILL)
    assert build.returncode == -signal.SIGKILL


def modified(file: Path) -> int:
    return file.stat().st_mtime_ns if file.exists() else 0


# -- What is executed again, and what is not -------------------------------------------


def test_prose_runs_its_own_chapter_only(book):
    book.edit(ATTENTION, "One small matrix decides", "A small matrix decides")
    result = book.make("html")
    assert (result.status, result.executed) == (0, {"attention"})


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("src/bertbook/attention.py", "import math\n"),
        (LEDGER[ATTENTION], "[attention-scores]\n"),
        ("requirements.txt", "alabaster=="),
    ],
)
def test_what_chapters_depend_on_runs_all_of_them(book, file, line):
    book.edit(file, line, f"# A remark.\n{line}")
    result = book.make("html")
    assert (result.status, result.executed) == (0, {"attention", "project"})


def test_a_build_without_changes_runs_nothing(book):
    for target in ("html", "pdf", "html"):
        result = book.make(target)
        assert (result.status, result.executed) == (0, set())


# -- One chapter -----------------------------------------------------------------------


def test_one_chapter_says_that_coverage_was_not_checked(book):
    result = book.make("html", "CHAPTER=attention")
    assert (result.status, result.warnings, result.executed) == (0, [], {"attention"})
    assert "only chapter 'attention' was executed: coverage was not checked" in result.stdout


def test_drift_in_one_chapter(book):
    """Neither the other chapter nor the whole book's build is touched by it."""
    book.edit(ATTENTION, RIGHT, WRONG)
    for _ in range(2):
        result = book.make("html", "CHAPTER=attention")
        assert_alarm(book, result, [WRONG_TRIANGLE])
        assert result.executed == {"attention"}


def test_a_chapter_that_does_not_exist(book):
    """Else a typo would pass, with nothing checked."""
    result = book.make("html", "CHAPTER=atention")
    assert result.status != 0
    assert "there is no chapter 'atention'" in result.stderr


# -- Where there is no TeX -------------------------------------------------------------


def test_the_pdf_is_made(passing_book):
    if not HAS_TEX:
        pytest.skip("latexmk and xelatex are not installed: `make pdf` was tested up to the point where TeX begins")
    assert (passing_book.saved / "_build/latex/bert-recomputed.pdf").read_bytes().startswith(b"%PDF")
