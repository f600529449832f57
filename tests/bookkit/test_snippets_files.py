"""Files of the book that programs read: found in their code, in the archives, and beside them when they run alone."""

import ast
import json
import textwrap
from zipfile import ZipFile

import pytest

from bookkit.snippets.edit import ProgramError
from bookkit.snippets.files import Shelf
from bookkit.snippets.gate import check_programs
from bookkit.snippets.package import Package
from tiny_book import Project, line_of
from tiny_programs import page_of, program

# -- Which files --------------------------------------------------------------------------


@pytest.fixture
def shelf(tmp_path) -> Shelf:
    files = {
        "results/sums.json": "{}",
        "results/model/weights": "1",
        "results/model/deep/more": "2",
        "results/model/.hidden": "3",
        "results/model/__pycache__/left": "4",
        "other.txt": "5",
    }
    Project(tmp_path / "book", files)
    return Shelf(tmp_path / "book", ("results",))


def named(shelf: Shelf, code: str) -> set[str]:
    return shelf.named_in(ast.parse(code), lambda node: f"line {node.lineno}")


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ('open("results/sums.json")', {"results/sums.json"}),
        ('x = ["results/model/", {"a": "results" "//sums.json"}]', {"results/model", "results/sums.json"}),
        ('Path("results/model") / name', {"results/model"}),
        ('def f(path="results/model"):\n    "results/ is a folder"', {"results/model"}),
        ('x = "my results/sums.json", "results", "other.txt", b"results/x", 1', set()),
    ],
)
def test_a_text_that_begins_with_the_folder_names_a_file(shelf, code, names):
    assert named(shelf, code) == names


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('x = 1\ny = "results/gone.json"', r"line 2: there is no 'results/gone\.json' in the book's folder, .*book$"),
        (
            'x = "results/" + name',
            "line 1: a program must say which files of results/ it reads.* as one text; found: 'res",
        ),
        ('f"results/model/{name}"', "write the whole path, as one text; found: 'results/model/'"),
        ('f"{root}results/model"', "write the whole path"),
        ('open("results/../other.txt")', r"'results/\.\./other\.txt' is not in results/"),
        ('open("results/model/..")', "write the whole path"),
    ],
)
def test_a_file_that_is_not_there_or_not_named_in_full_is_an_error(shelf, code, words):
    with pytest.raises(ProgramError, match=words):
        named(shelf, code)


def test_a_folder_is_all_its_files_without_what_tools_leave(shelf):
    files = shelf.files(["results/sums.json", "results/model", "results/model/weights"])
    assert list(files) == ["results/model/deep/more", "results/model/weights", "results/sums.json"]
    assert files["results/model/weights"].read_text() == "1"


def test_a_program_says_what_it_reads_also_in_code_of_the_package(tmp_path, shelf):
    code = """
        def load(path="results/model/weights"):
            return open(path).read()


        def gone(path="results/gone"):
            return path
    """
    code = textwrap.dedent(code).lstrip()
    Project(tmp_path / "src", {"demo/__init__.py": "", "demo/loading.py": code})
    package = Package(tmp_path / "src", "demo")
    page = page_of("from demo.loading import load\n\nprint(load())", 'load("results/model")', "print(1)")
    first, second, third = (program(package, page, i, shelf) for i in range(3))
    assert [found.reads for found in (first, second, third)] == [("results/model/weights",), ("results/model",), ()]
    assert first.text.splitlines()[2:6] == [
        "# It reads what the archive of this page's programs, one.zip, holds beside them:",
        "#     results/model/weights",
        "# Unpack the archive, and in the folder where you did so:",
        "#     python chapter/one/01-one.py",
    ]
    assert "archive" not in third.text
    with pytest.raises(ProgramError, match=r"loading\.py:5: there is no 'results/gone'"):
        program(package, page_of("from demo.loading import gone\n\ngone()"), 0, shelf)


# -- In a book ----------------------------------------------------------------------------

CONF = """
project = "Tiny"
extensions = ["myst_nb", "bookkit.extension"]
exclude_patterns = ["ledger", "results"]
nb_execution_mode = "force"
nb_merge_streams = True
html_theme = "basic"
html_math_renderer = "mathml"
bookkit_package = "demo"
bookkit_beside = ["results"]
bookkit_recorded = {"demo.results.load": "book/results"}
"""
HEADER = "---\njupytext:\n  text_representation:\n    format_name: myst\nkernelspec:\n  name: python3\n---\n"
LOADING = """
import json
from pathlib import Path
from types import SimpleNamespace

RESULTS = Path(__file__).parents[2] / "book" / "results"


def load(name):
    return SimpleNamespace(values=json.loads((RESULTS / f"{name}.json").read_text())["values"])
"""
READING = """
# Reading

```{code-cell} ipython3
from pathlib import Path

print(Path("results/model/weights.txt").read_text())
```

```{code-cell} ipython3
from demo.results import load

total = load("sums").values["total"]
print(len(list(Path("results/model").iterdir())), total)
```

```{code-cell} ipython3
folder = Path("results")
print((folder / "model" / "weights.txt").exists())
```
"""
WRONG = """
# Wrong

```{code-cell} ipython3
print(1)
path = "results/gone.txt"
```
"""
FILES = {
    "conf.py": CONF,
    "src/demo/__init__.py": "",
    "src/demo/results.py": LOADING,
    "book/index.md": "# Tiny\n\n```{programs}\n```\n\n```{toctree}\ndeep/reading\nwrong\n```\n",
    "book/deep/reading.md": HEADER + READING,
    "book/wrong.md": HEADER + WRONG,
    "book/ledger/empty.toml": "",
    "book/results/sums.json": json.dumps({"command": "python -m demo sums", "values": {"total": 5}}),
    "book/results/model/weights.txt": "the weights",
    "book/results/model/config.json": "{}",
    "book/results/other.txt": "not named",
}
NAMED = ["results/model/config.json", "results/model/weights.txt"]


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    return Project(tmp_path_factory.mktemp("tiny"), FILES)


@pytest.fixture(scope="module")
def warnings(project) -> str:
    return project.build("html")[1]


def test_a_file_that_does_not_exist_is_a_warning_with_file_and_line(warnings):
    cell, line = (line_of(HEADER + WRONG, words) for words in ("print(1)", "gone"))
    assert (
        f"wrong.md:{cell}: WARNING: no program can be made of this cell: line {line}: there is no 'results/g"
        in warnings
    )
    assert warnings.count("WARNING") == 1


@pytest.mark.usefixtures("warnings")
def test_archives_hold_the_files_once_where_programs_look_for_them(project):
    folder = project.root / "_build/html/_downloads/programs"
    for file in ("deep/reading.zip", "all.zip"):
        archive = ZipFile(folder / file)
        names = archive.namelist()
        assert [name for name in names if not name.endswith(".py")] == NAMED
        assert [name for name in names if name.endswith(".py")] == [
            "deep/reading/01-reading.py",
            "deep/reading/02-reading.py",
            "deep/reading/03-reading.py",
        ]
        assert archive.read(NAMED[1]) == b"the weights"
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_pages_say_what_comes_with_the_programs(project, warnings):
    page, index = project.page("deep/reading"), project.page("index")
    assert page.select_one(".snippet-downloads").text == (
        "The 3 cells of this page as programs that run alone, and what some of them read: results/model (1 kB): "
        "reading.zip"
    )
    assert "and what some of them read: results/model (1 kB): all.zip" in index.select_one(".snippet-downloads").text
    reads = [bar.get("data-reads") for bar in page.select(".snippet")]
    assert reads == ["results/model/weights.txt", "results/model", None]


@pytest.mark.usefixtures("warnings")
def test_the_gate_gives_a_program_what_it_names_and_no_more(project):
    """Pages run in the book's folder: the page, which lies in a folder below, has found its files there."""
    outcome = check_programs(project.root / "_build/programs.json")
    assert outcome.programs == 3
    (fault,) = outcome.faults
    assert "03-reading.py is not right" in fault
    assert "the page shows\nTrue\nbut the program prints\nFalse\n" in fault
    assert check_programs(project.root / "_build/programs.json", fresh=True, only="02-").faults == []


@pytest.mark.usefixtures("warnings")
def test_a_program_holds_the_recorded_value(project):
    text = (project.root / "_build/html/_downloads/programs/deep/reading/02-reading.py").read_text("utf-8")
    assert "# Recorded by: python -m demo sums\ntotal = 5\n" in text


def test_the_pdf_is_made_in_the_same_folder(project):
    project.build("latex", "_pdf")
    tex = next((project.root / "_pdf/latex").glob("*.tex")).read_text("utf-8")
    assert "the weights" in tex
    assert "run alone" not in tex


@pytest.mark.usefixtures("warnings")
def test_two_builds_are_equal(project):
    project.build("html", "_again", jobs=2)
    first, second = (project.root / folder / "html" for folder in ("_build", "_again"))
    names = sorted(
        path.relative_to(first) for path in first.rglob("*") if path.suffix in (".zip", ".html", ".js", ".py")
    )
    assert {"all.zip", "reading.zip"} <= {name.name for name in names}
    assert [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()] == []
    lists = [(project.root / folder / "programs.json").read_text("utf-8") for folder in ("_build", "_again")]
    assert lists[0] == lists[1]


def test_a_loader_that_does_not_exist_is_told(project):
    files = {**FILES, "conf.py": CONF.replace("demo.results.load", "demo.results.lead")}
    other = Project(project.root / "other", files)
    _, warnings = other.build("html")
    assert "bookkit_recorded in conf.py names demo.results.lead: demo.results has no lead" in warnings
