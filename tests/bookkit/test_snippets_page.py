"""Programs in a tiny book: the buttons, the files, and the gate that runs every program alone."""

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from bs4 import BeautifulSoup

from bookkit.__main__ import main
from bookkit.snippets.gate import check_programs, without_line

CONF = """
project = "Tiny"
extensions = ["myst_nb", "bookkit.extension"]
exclude_patterns = ["ledger"]
nb_execution_mode = "force"
nb_merge_streams = True
html_theme = "basic"
html_math_renderer = "mathml"
bookkit_package = "demo"
bookkit_usual_libraries = ["matplotlib"]
"""
HEADER = "---\njupytext:\n  text_representation:\n    format_name: myst\nkernelspec:\n  name: python3\n---\n"
LEDGER = """
[half]
title = "One half"
verdict = "measured"
value = 0.50
decimals = 2
"""
SUMS = '''"""Sums."""


def half(x: float) -> float:
    """Half of x."""
    return x / 2
'''
PAGES = {
    "index": "# Tiny\n\n```{programs}\n```\n\n```{toctree}\ndeep/one\nhidden\nwrong\n```\n",
    "deep/one": """
# One <page>

```{code-cell} ipython3
from bookkit import verify
from demo.sums import half

x = 1
print("x is", x)
```

```{code-cell} ipython3
verify("half", half(x))
```

```{code-cell} ipython3
---
mystnb:
  figure:
    name: fig-line
---
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
plt.close(figure)
axes.plot([0, half(x)])
figure
```
""",
    "hidden": """
# Hidden

```{code-cell} ipython3
import math
import sys
vars(sys.modules["math"])["secret"] = 5
```

```{code-cell} ipython3
print(getattr(math, "secret", 0))
```

```{code-cell} ipython3
:tags: [whole-page]

print(getattr(math, "secret", 0))
```

```{code-cell} ipython3
:tags: [whole-page]

print("needs nothing")
```

```{code-cell} ipython3
import sys
print("shown", file=sys.stderr)
```

```{code-cell} ipython3
print(1 if "demo" in sys.modules or __import__("demo") else 2)
```
""",
    "wrong": """
# Wrong

```{code-cell} ipython3
import demo.sums as sums

sums.half(1)
```
""",
}


def build(root: Path, builder: str, output: str, *options: str) -> str:
    """The warnings of a build."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(root / "src")])}
    environment |= {"SOURCE_DATE_EPOCH": "1767225600"}
    warnings = root / "warnings.txt"
    command = [sys.executable, "-m", "sphinx", "-q", "-w", str(warnings), "-b", builder, *options]
    command += ["-c", ".", "-d", f"{output}/doctrees", "book", f"{output}/{builder}"]
    subprocess.run(command, cwd=root, env=environment, capture_output=True)
    return warnings.read_text("utf-8")


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("tiny")
    files = {"conf.py": CONF, "src/demo/__init__.py": "", "src/demo/sums.py": SUMS, "book/ledger/tiny.toml": LEDGER}
    files |= {f"book/{name}.md": (text if name == "index" else HEADER + text) for name, text in PAGES.items()}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


@pytest.fixture(scope="module")
def warnings(root) -> str:
    return build(root, "html", "_build")


@pytest.fixture(scope="module")
def output(root, warnings) -> Path:
    return root / "_build/html"


def soup(file: Path) -> BeautifulSoup:
    return BeautifulSoup(file.read_text("utf-8"), "html.parser")


def test_a_cell_of_which_no_program_can_be_made_is_a_warning_with_its_line(warnings):
    line = (HEADER + PAGES["wrong"]).splitlines().index("import demo.sums as sums") + 1
    assert f"wrong.md:{line}: WARNING: no program can be made of this cell: line {line}: programs copy" in warnings
    assert warnings.count("WARNING") == 1


def test_every_cell_has_two_buttons_that_wait_for_the_script(output):
    bars = soup(output / "deep/one.html").select(".cell > .snippet")
    assert [[button.text for button in bar.select("button")] for bar in bars] == [["Copy program", "Copy cell"]] * 3
    assert all(bar.has_attr("hidden") and bar.find(role="status") for bar in bars)
    assert all(button["type"] == "button" for bar in bars for button in bar.select("button"))
    assert [button.text for button in soup(output / "wrong.html").select(".snippet button")] == ["Copy cell"]


def test_the_script_of_a_page_holds_the_programs_that_the_buttons_ask_for(output):
    page = soup(output / "deep/one.html")
    script = (output / "deep" / page.select_one(".snippet-downloads")["data-script"]).read_text("utf-8")
    programs = json.loads(script.removeprefix("window.bookPrograms = ").removesuffix(";\n"))
    texts = [
        "".join(programs["pieces"][i] for i in programs["cells"][bar["data-cell"]]) for bar in page.select(".snippet")
    ]
    folder = output / "_downloads/programs/deep/one"
    assert texts == [path.read_text("utf-8") for path in sorted(folder.iterdir())]
    assert [path.name for path in sorted(folder.iterdir())] == ["01-one.py", "02-half.py", "03-fig-line.py"]
    assert texts[1].splitlines() == [
        '# Cell 2 of the page "One <page>" of Tiny, as a program that runs alone:',
        "# what it needs of the page's earlier cells and of the book's own package is copied into it.",
        "",
        "",
        *SUMS.splitlines()[3:],
        "",
        "",
        f"# -- Cell 1 {'-' * 60}",
        "",
        "x = 1",
        'print("x is", x)',
        "",
        "",
        f"# -- Cell 2 {'-' * 60}",
        "",
        "print(half(x))",
    ]


def test_the_archives_hold_the_files_and_are_linked(output):
    for page, words in (("deep/one", "The 3 cells of this page"), ("index", "Every cell of this book")):
        place = output / f"{page}.html"
        paragraph = soup(place).select_one(".snippet-downloads")
        assert paragraph.text.startswith(words)
        archive = ZipFile(place.parent / paragraph.a["href"])
        folder = output / "_downloads/programs"
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.py")}
        wanted = {name: text for name, text in files.items() if page == "index" or name.startswith(page)}
        assert {name: archive.read(name) for name in archive.namelist()} == wanted
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_other_formats_have_no_buttons(root, output):
    build(root, "latex", "_build")
    tex = next((root / "_build/latex").glob("*.tex")).read_text("utf-8")
    assert r"\PYG{n}{half}" in tex
    assert "as a program" not in tex
    assert "Copy" not in tex


def test_a_page_that_did_not_run_has_only_its_cells_to_copy(root, output):
    build(root, "html", "_off", "-D", "nb_execution_mode=off")
    page = soup(root / "_off/html/deep/one.html")
    assert [button.text for button in page.select(".snippet button")] == ["Copy cell"] * 3
    assert not page.select(".snippet-downloads")


def test_two_builds_are_equal(root, output):
    build(root, "html", "_again", "-j", "3")
    names = [path.relative_to(output) for path in output.rglob("*") if path.is_file()]
    pairs = [(output / name, root / "_again/html" / name) for name in names if name.name != "environment.pickle"]
    assert [first for first, second in pairs if first.read_bytes() != second.read_bytes()] == []


def test_the_gate_finds_the_programs_that_are_not_right(root, output):
    outcome = check_programs(root / "_build/programs.json")
    assert outcome.programs == 9
    by_line = {fault.splitlines()[0]: fault for fault in outcome.faults}

    def fault_at(words: str, count: int = 0) -> str:
        lines = (HEADER + PAGES["hidden"]).splitlines()
        number = [i for i, line in enumerate(lines, start=1) if words in line][count]
        return next((fault for first, fault in by_line.items() if first.startswith(f"hidden.md:{number}: ")), "")

    assert len(outcome.faults) == 4
    hidden = fault_at("getattr")
    assert "the page shows\n5\nbut the program prints\n0\n" in hidden
    assert "give it the tag 'whole-page'" in hidden
    assert fault_at("getattr", 1) == ""
    assert fault_at("needs nothing").endswith("the tag 'whole-page' is not needed: remove it")
    assert "it writes to the error stream:\nshown\n" in fault_at("import sys", 1)
    assert "ModuleNotFoundError: a program of the book may not import demo" in fault_at("__import__")
    assert str(outcome).endswith("\n5 of 9 programs run alone")


def test_a_new_interpreter_gives_the_same(root, output, capsys):
    arguments = ["programs", "--list", str(root / "_build/programs.json"), "--fresh", "--only", "deep/one"]
    assert main(arguments) == 0
    assert capsys.readouterr().out == "3 of 3 programs run alone\n"


def test_the_line_of_an_error_is_not_compared():
    there, here = "ValueError, in line 5 of your\ncell: x", "ValueError, in line 812 of\n02-x.py: x"
    assert without_line(there) == without_line(here)
    assert without_line("a  b") == "a  b"
