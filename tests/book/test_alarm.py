"""The alarm of the build: `make html` and `make pdf` of a small book, with something wrong in it.

Each case starts from a copy that passes, and must produce exactly the warnings that it names,
so that it cannot fail for another reason. A second `make html`, and then `make pdf`, must fail
with the same warnings, although Sphinx has saved by then what it read. When the change is
undone, `make html` must pass (and in one case, `make pdf` too).

The book is this project with two chapters of its own in place of the real ones: they run in a second or
two, and their text is known here. All else is the project's: Makefile, conf.py, packages, generated pages.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest

from bookkit import alarm

ROOT = Path(__file__).parents[2]
HAS_TEX = bool(shutil.which("latexmk") and shutil.which("xelatex"))
TRIAL, WEIGHTS = "book/trial.md", "book/weights.md"
LEDGER = {TRIAL: "book/ledger/trial.toml", WEIGHTS: "book/ledger/weights.toml"}
KEPT = {"errata.md", "checked.md", "bibliography.md", "references.bib"}  # of the real book: the generated pages
INDEX = "# A small book\n\n```{toctree}\ntrial\nweights\nerrata\nchecked\nbibliography\n```\n"

HEADER = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
  language: python
---
"""
TRIAL_CHAPTER = (
    HEADER
    + """
# A trial

The root of three is {val}`trial-roots[3, root]`.

Euler's number is {val}`trial-e`.

```{verdict} trial-statement
```

```{code-cell} ipython3
import math
import random
from bookkit import verify

verify("trial-roots", [(n, math.sqrt(n)) for n in (2, 3)])
```

```{code-cell} ipython3
verify("trial-random", random.Random(7).random())
```

```{code-cell} ipython3
verify("trial-pi", math.pi)
```

```{code-cell} ipython3
verify("trial-e", math.e)
```

```{code-cell} ipython3
verify("trial-tau", math.tau)
```
"""
)
TRIAL_RECORDS = """\
[trial-roots]
title = "Roots"
verdict = "measured"
columns = { number = "computed", root = "computed" }
decimals = 4
rows = [
    [2, 1.4142],
    [3, 1.7321],
]

[trial-random]
title = "A random number"
verdict = "measured"
value = 0.3238
decimals = 4

[trial-pi]
title = "Pi"
verdict = "measured"
value = 3.1416
decimals = 4

[trial-e]
title = "Euler's number"
verdict = "measured"
value = 2.7183
decimals = 4

[trial-tau]
title = "Tau"
verdict = "measured"
value = 6.2832
decimals = 4

[trial-statement]
title = "A statement"
source = "slide-12"
verdict = "qualified"
says = "something."
why = "It depends."
shown_by = ["trial-roots"]
"""

WEIGHTS_CHAPTER = (
    HEADER
    + """
# Weights

```{code-cell} ipython3
from bertbook.attention import attention_weights, toy_scores
from bookkit import verify

weights = attention_weights(toy_scores())
verify("trial-weights", weights)
```

```{code-cell} ipython3
row_sums = weights.tril().sum(dim=1).tolist()
verify("trial-row-sums", [(f"pos {i}", total) for i, total in enumerate(row_sums)])
```
"""
)
WEIGHTS_RECORDS = r"""
[trial-weights]
title = "Attention weights"
source = "slide-15"
verdict = "reproduces"
matrix = "pos"
corner = "query \\ key"
decimals = 4
rows = [
    [0.2442, 0.2573, 0.2261, 0.2724],
    [0.2360, 0.2580, 0.2568, 0.2492],
    [0.2167, 0.2684, 0.2686, 0.2463],
    [0.2472, 0.2479, 0.2559, 0.2489],
]

[trial-row-sums]
title = "Row sums below the diagonal"
verdict = "measured"
columns = { query = "computed", "row sum" = "computed" }
decimals = 4
rows = [
    ["pos 0", 0.2442],
    ["pos 1", 0.4939],
    ["pos 2", 0.7537],
    ["pos 3", 1.0000],
]
"""


PRELOAD = 'bookkit_preload = ["torch._dynamo", "matplotlib.pyplot"]'


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
        self.with_tex = HAS_TEX

    def make(self, *arguments: str) -> Result:
        done = subprocess.run(
            ["make", *arguments], cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def environment(self) -> dict[str, str]:
        """Ours, without what a `make test` around this test has set, and without colours in messages."""
        ours = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GNUMAKEFLAGS", "CHAPTER", "FORCE_COLOR"}
        environment = {name: value for name, value in os.environ.items() if name not in ours} | {"NO_COLOR": "1"}
        if not self.with_tex:  # then commands that do nothing: what must fail, fails before TeX
            environment["PATH"] = f"{self.folder / 'no-tex'}:{environment['PATH']}"
        return environment

    @property
    def chapters(self) -> set[str]:
        return {path.stem for path in (self.folder / "book").glob("*.md") if "{code-cell}" in path.read_text("utf-8")}

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

    def undo(self) -> None:
        for path, text in self.originals.items():
            path.write_text(text, encoding="utf-8")
        self.originals = {}

    def place(self, file: str, needle: str) -> str:
        """file:line, as messages write it; without a needle only the file."""
        if not needle:
            return str(self.folder / file)
        lines = (self.folder / file).read_text(encoding="utf-8").splitlines()
        (number,) = (i for i, line in enumerate(lines, start=1) if needle in line)
        return f"{self.folder / file}:{number}"


@pytest.fixture(scope="module")
def passing_book(tmp_path_factory) -> Book:
    """A copy of what git has or would add, with the small book's pages, built as HTML and PDF."""
    book = Book(tmp_path_factory.mktemp("alarm"))
    listed = subprocess.check_output(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, text=True)
    for name in listed.split("\0"):
        if (ROOT / name).is_file() and not is_replaced(name):
            (book.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, book.folder / name)
    link_environment(book.folder / ".venv")
    book.edit("conf.py", PRELOAD, 'bookkit_preload = ["torch"]')  # all that these chapters import
    book.originals = {}
    (book.folder / "book/ledger").mkdir()
    (book.folder / "book/index.md").write_text(INDEX)
    for chapter, text, records in ((TRIAL, TRIAL_CHAPTER, TRIAL_RECORDS), (WEIGHTS, WEIGHTS_CHAPTER, WEIGHTS_RECORDS)):
        (book.folder / chapter).write_text(text)
        (book.folder / LEDGER[chapter]).write_text(records)
    stand_in(book.folder / "no-tex/latexmk")
    stand_in(book.folder / "no-tex/xelatex")
    html, pdf = book.make("html"), book.make("pdf")
    assert (html.status, html.warnings, html.executed) == (0, [], book.chapters), html.stderr
    assert (pdf.status, pdf.warnings, pdf.executed) == (0, [], set()), pdf.stderr  # it shows what html has executed
    shutil.copytree(book.folder, book.saved, symlinks=True)
    book.with_tex = False  # it takes its time, and comes after all that can fail here
    return book


def is_replaced(name: str) -> bool:
    """Tests are not part of the copy; of the book only the generated pages and what all pages share are."""
    folder, _, rest = name.partition("/")
    kept = rest in KEPT or rest.startswith(("_static/", "_templates/"))
    return folder == "tests" or (folder == "book" and not kept)


def stand_in(command: Path) -> None:
    command.parent.mkdir(exist_ok=True)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)


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
    """A warning: the file and line that it names (by the line's text), how it begins, what stands in or below it."""

    file: str
    needle: str
    message: str
    pattern: str = ""

    def first_line(self, book: Book) -> str:
        return f"{book.place(self.file, self.needle)}: WARNING: {self.message}"


class Drift(NamedTuple):
    """A drift warning: it names the chapter's line, the record's line, and both values of each cell."""

    file: str
    record: str
    where: str
    recorded: str
    computed: str  # how it begins: the last digits belong to the machine

    def first_line(self, book: Book) -> str:
        chapter = book.place(self.file, f'verify("{self.record}"')
        return f"{chapter}: WARNING: drift in record '{self.record}' ({book.place(LEDGER[self.file], self.header)})"

    @property
    def header(self) -> str:
        return f"[{self.record}]"

    @property
    def pattern(self) -> str:
        values = f"{self.where}: the record has {self.recorded}, the chapter computed {self.computed}"
        return re.escape(values) + r"(\d*, difference \d\.\de[+-]\d+)?\n"


Expected = list[Warned | Drift]


def assert_alarm(book: Book, result: Result, expected: Expected) -> None:
    """The build failed, with these warnings and no other."""
    wanted = sorted(warning.first_line(book) for warning in expected)
    pairs = zip_longest(result.warnings, wanted, fillvalue="")
    assert [found[: len(start) or None] for found, start in pairs] == wanted
    for warning in expected:
        assert re.search(warning.pattern, result.stderr), result.stderr
    assert result.status != 0


def assert_lasting_alarm(book: Book, expected: Expected) -> None:
    """The alarm is raised, is raised again, is raised by the PDF too, and ends with its cause."""
    assert_alarm(book, book.make("html"), expected)
    assert_alarm_goes_on(book, expected)


def assert_alarm_goes_on(book: Book, expected: Expected) -> None:
    for target in ("html", "pdf"):
        assert_alarm(book, book.make(target), expected)
    assert_repaired(book)


def assert_repaired(book: Book) -> None:
    book.undo()
    html = book.make("html")
    assert (html.status, html.warnings) == (0, [])


# -- Drift -----------------------------------------------------------------------------

RIGHT, WRONG = "weights.tril()", "weights.triu()"
WRONG_TRIANGLE = Drift(WEIGHTS, "trial-row-sums", "row 'pos 1', column 'row sum'", "0.4939", "0.764")


def test_a_changed_ledger_cell(book):
    """It runs every chapter again, and then only what failed."""
    book.edit(LEDGER[WEIGHTS], "[0.2360, 0.2580,", "[0.2361, 0.2580,")
    expected = [Drift(WEIGHTS, "trial-weights", "row 'pos 1', column 'pos 0'", "0.2361", "0.23")]
    for target, executed in [("html", book.chapters), ("html", {"weights"}), ("pdf", {"weights"})]:
        result = book.make(target)
        assert_alarm(book, result, expected)
        assert result.executed == executed
    assert_repaired(book)
    pdf = book.make("pdf")
    assert (pdf.status, pdf.warnings, pdf.executed) == (0, [], set())


def test_a_changed_line_of_the_code(book):
    book.edit("src/bertbook/attention.py", "nn.init.normal_(key_map.weight, std=0.1)", "pass")
    expected = [
        Drift(WEIGHTS, "trial-weights", "row 'pos 0', column 'pos 0'", "0.2442", "0.283"),
        Drift(WEIGHTS, "trial-row-sums", "row 'pos 0', column 'row sum'", "0.2442", "0.283"),
    ]
    result = book.make("html")
    assert result.executed == book.chapters  # also those that do not use the changed file
    assert_alarm(book, result, expected)
    assert_alarm_goes_on(book, expected)


def test_two_chapters_drift_in_one_build(book):
    """A changed seed in one, the wrong triangle in the other."""
    book.edit(TRIAL, "Random(7)", "Random(8)")
    book.edit(WEIGHTS, RIGHT, WRONG)
    assert_lasting_alarm(book, [Drift(TRIAL, "trial-random", "value", "0.3238", "0.226"), WRONG_TRIANGLE])


def test_a_nan(book):
    book.edit(TRIAL, "math.sqrt(n)", "math.nan")
    nan = Drift(TRIAL, "trial-roots", "row '3', column 'root'", "1.7321 (float)", "nan (float)")
    assert_lasting_alarm(book, [nan])


def test_drift_in_a_result_that_is_not_shown(book):
    """Assigned, not last in its cell, or with a semicolon: verify reports when it is called."""
    book.edit(TRIAL, 'verify("trial-pi", math.pi)', 'assigned = verify("trial-pi", math.pi + 1)')
    book.edit(TRIAL, 'verify("trial-e", math.e)', 'verify("trial-e", math.e + 1)\nNone')
    book.edit(TRIAL, 'verify("trial-tau", math.tau)', 'verify("trial-tau", math.tau + 1);')
    expected = [
        Drift(TRIAL, "trial-pi", "value", "3.1416", "4.141"),
        Drift(TRIAL, "trial-e", "value", "2.7183", "3.718"),
        Drift(TRIAL, "trial-tau", "value", "6.2832", "7.283"),
    ]
    assert_lasting_alarm(book, expected)


# -- Chapters that do not run ----------------------------------------------------------

SAVED = Warned(TRIAL, "", "Notebook exception traceback saved in: ")


def test_a_killed_kernel_is_one_failing_chapter(book):
    """The line is readable, the other chapter's drift is reported too, and nothing is 'never verified'."""
    book.edit(TRIAL, 'verify("trial-e", math.e)', 'import os\n\nos._exit(9)\nverify("trial-e", math.e)')
    book.edit(WEIGHTS, RIGHT, WRONG)
    died = (
        "The kernel died while it ran this chapter: out of memory, a crash in compiled code, or os._exit. "
        "The last cell that is known to have started begins with: "
    )
    # The dying cell's start may get lost with its kernel: then the message names the cell before.
    died = re.escape(died) + r'(import os|verify\("trial-pi", math\.pi\))'
    failed = Warned(TRIAL, "", "Executing notebook failed: DeadKernelError", died)
    assert_lasting_alarm(book, [failed, SAVED, WRONG_TRIANGLE])


def test_an_unknown_record(book):
    book.edit(TRIAL, 'verify("trial-e", math.e)', 'verify("trial-ee", math.e)\nverify("trial-e", math.e)')
    says = "the ledger has no record 'trial-ee'. Did you mean 'trial-e'"
    expected = [
        Warned(TRIAL, 'verify("trial-ee"', says),
        Warned(TRIAL, "", "Executing notebook failed: CellExecutionError", f"LookupError.*: {says}"),
        SAVED,
    ]
    assert_lasting_alarm(book, expected)


# -- Coverage --------------------------------------------------------------------------


def never_verified(record: str) -> Warned:
    return Warned(LEDGER[TRIAL], f"[{record}]", f"record '{record}' was never verified: call verify(\"{record}\", …)")


def test_a_record_that_is_never_verified(book):
    book.edit(TRIAL, 'verify("trial-e", math.e)', "math.e")
    assert_lasting_alarm(book, [never_verified("trial-e")])


def test_a_record_that_is_verified_twice(book):
    first = book.place(TRIAL, 'verify("trial-e"').rpartition(":")[2]
    book.edit(TRIAL, 'verify("trial-e", math.e)', 'verify("trial-e", math.e)\nverify("trial-e", +math.e)')
    says = f"record 'trial-e' is verified a second time; the first is in trial, line {first}"
    same_name = Warned(TRIAL, "+math.e", 'Duplicate explicit target name: "trial-e"')
    assert_lasting_alarm(book, [Warned(TRIAL, "+math.e", says), same_name])


def test_captured_output(book):
    book.edit(TRIAL, 'verify("trial-e", math.e)', '%%capture\nverify("trial-e", math.e)')
    assert_lasting_alarm(book, [never_verified("trial-e")._replace(pattern="see that its output is not captured")])


def test_a_statement_whose_directive_is_removed(book):
    book.edit(TRIAL, "```{verdict} trial-statement\n```\n", "")
    says = "statement 'trial-statement' must be shown once, with the directive `verdict`; it is in: nowhere"
    assert_lasting_alarm(book, [Warned(LEDGER[TRIAL], "[trial-statement]", says)])


# -- What a chapter and the ledger may not say -----------------------------------------


def test_hidden_output(book):
    """Four cells, each with one of the tags. An output that is removed is no report either."""
    tags = {
        "trial-random": "hide-output",
        "trial-pi": "hide-cell",
        "trial-e": "remove-output",
        "trial-tau": "remove-cell",
    }
    for record, tag in tags.items():
        book.edit(TRIAL, f'verify("{record}"', f':tags: [{tag}]\n\nverify("{record}"')
    expected = [
        Warned(TRIAL, f'verify("{record}"', f"the tag '{tag}' hides the output of a cell that verifies")
        for record, tag in tags.items()
    ]
    assert_lasting_alarm(book, [*expected, never_verified("trial-e"), never_verified("trial-tau")])


def test_a_typed_value(book):
    """It agrees with the record, since it was copied from there."""
    book.edit(TRIAL, "math.e)", "2.7183)")
    expected = [
        Warned(TRIAL, "2.7183", "verify is given a typed value (2.7183): compute it in the chapter"),
        Warned(TRIAL, "2.7183", "2.7183 is a value of record 'trial-e': compute it instead of typing it"),
    ]
    assert_lasting_alarm(book, expected)


def test_a_reference_to_a_value_that_is_not_there(book):
    book.edit(TRIAL, "trial-roots[3, root]", "trial-roots[4, root]")
    book.edit(TRIAL, "{val}`trial-e`", "{val}`trial-ee`")
    expected = [
        Warned(TRIAL, "{val}`trial-roots", "val: no row '4'; there are '2', '3'"),
        Warned(TRIAL, "{val}`trial-ee", "val: the ledger has no record 'trial-ee'. Did you mean 'trial-e'"),
    ]
    assert_lasting_alarm(book, expected)


def test_a_link_that_leads_nowhere(book):
    """Sphinx itself warns of it, when it writes the page: after it has saved what it read."""
    book.edit(TRIAL, "Euler's number is", "Euler's number ({numref}`trial-root`) is")
    assert_lasting_alarm(book, [Warned(TRIAL, "{numref}", "undefined label: 'trial-root'")])


def test_a_typo_in_a_key_of_the_ledger(book):
    """The build ends before a chapter is run."""
    book.edit(LEDGER[TRIAL], 'title = "Pi"', 'titel = "Pi"')
    says = f"{book.place(LEDGER[TRIAL], 'titel')}: [trial-pi] unknown key `titel`: is it a typo?"
    for target in ("html", "html", "pdf"):
        result = book.make(target)
        assert says in result.stderr
        assert "Traceback" not in result.stderr
        assert (result.status != 0, result.executed) == (True, set())
    assert_repaired(book)


# -- Builds that were interrupted ------------------------------------------------------


@pytest.mark.parametrize("moment", ["while a chapter runs", "while pages are written"])
def test_a_killed_build(book, moment):
    """With drift in it. When it writes pages, it has saved what it read: the dangerous moment."""
    ran, page = book.folder / "_build/ran", book.folder / "_build/html/trial.html"
    book.edit(TRIAL, "math.e)", 'open("../_build/ran", "w").close() or math.e + 1)')
    kill_when_changed(book, ran if moment == "while a chapter runs" else page)
    assert json.loads((book.folder / "_build/doctrees/unfinished.json").read_text()) == ["all"]
    assert_alarm(book, book.make("html"), [Drift(TRIAL, "trial-e", "value", "2.7183", "3.718")])
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


@pytest.mark.parametrize("written", ["", '["tri'])
def test_a_build_that_was_killed_while_it_noted_what_failed(tmp_path, written):
    """Or whose disk was full: the next one reads everything, instead of failing for ever."""
    note = tmp_path / "unfinished.json"
    note.write_text(written)
    assert alarm.read_memory(note) == [alarm.ALL]


# -- What is executed again, and what is not -------------------------------------------


def test_prose_runs_its_own_chapter_only(book):
    book.edit(TRIAL, "The root of three", "Three's root")
    result = book.make("html")
    assert (result.status, result.executed) == (0, {"trial"})


def test_a_changed_lock_runs_every_chapter(book):
    """As changed code and a changed ledger do, in the cases above."""
    book.edit("requirements.txt", "alabaster==", "# A remark.\nalabaster==")
    result = book.make("html")
    assert (result.status, result.executed) == (0, book.chapters)


def test_a_build_without_changes_runs_nothing(book):
    for target in ("html", "pdf", "html"):
        result = book.make(target)
        assert (result.status, result.executed) == (0, set())


# -- One chapter -----------------------------------------------------------------------


def test_one_chapter_is_built_without_the_coverage_check(book):
    """It says so, it fails on drift again and again, and it leaves the book's build alone."""
    result = book.make("html", "CHAPTER=trial")
    assert (result.status, result.warnings, result.executed) == (0, [], {"trial"}), result.stderr
    assert "only chapter 'trial' was executed: coverage was not checked" in result.stdout
    book.edit(TRIAL, "math.e)", "math.e + 1)")
    for _ in range(2):
        result = book.make("html", "CHAPTER=trial")
        assert_alarm(book, result, [Drift(TRIAL, "trial-e", "value", "2.7183", "3.718")])
        assert result.executed == {"trial"}
    book.undo()
    assert book.make("html").executed == {"trial"}  # since its file is newer now


def test_a_chapter_that_does_not_exist(book):
    """Else a typo would pass, with nothing checked."""
    result = book.make("html", "CHAPTER=trail")
    assert result.status != 0
    assert "there is no chapter 'trail'" in result.stderr


# -- Where there is no TeX -------------------------------------------------------------


def test_the_pdf_is_made(passing_book):
    if not HAS_TEX:
        pytest.skip("latexmk and xelatex are not installed: `make pdf` was tested up to the point where TeX begins")
    assert (passing_book.saved / "_build/latex/bert-recomputed.pdf").read_bytes().startswith(b"%PDF")
