"""Recorded results: what is written, and when it is refused."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from bertbook.experiments.results import Result, StaleResult, load_result, refuse_unfit, write_result
from bertbook.experiments.sources import SOURCE, code_hashes

CODE = {
    "__init__.py": '"""A package."""\n',
    "experiments/__init__.py": "",
    "experiments/sums.py": '''"""An experiment."""

from bertbook.adding import add as plus
from bertbook import limits


def find() -> int:
    """What it finds."""
    return plus(1, limits.MOST)  # one and the most
''',
    "adding.py": '''"""Sums."""

import math
from functools import reduce

from bertbook.deep import change

WORDS = "words.txt"


def add(a, b):
    """A sum."""
    # Twice.
    return change(a) + twice(b) + len(WORDS)


def twice(a):
    return math.prod([2, a])


def unused(a):
    return reduce(add, a)
''',
    "limits.py": "MOST = 3\nLEAST = 1\n",
    "deep.py": "import random\n\n\ndef change(a):\n    return -a\n",
    "words.txt": "one two",
    "strange.py": "def never_imported():\n    pass\n",
}


@pytest.fixture
def source(tmp_path) -> Path:
    for name, text in CODE.items():
        path = tmp_path / "src/bertbook" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "src"


@pytest.fixture
def folder(tmp_path, source) -> Path:
    """The folder of results, with a result and its weights."""
    folder = tmp_path / "results"
    (folder / "sums").mkdir(parents=True)
    (folder / "sums/weights.bin").write_bytes(b"123")
    result = Result("sums", values={"sum": 2.5, "curve": [3.0, 2.5]}, seeds=[0, 1], seconds=12.0)
    write_result(result, files=["sums/weights.bin"], folder=folder, source=source)
    return folder


def edit(source: Path, name: str, old: str, new: str) -> None:
    path = source / "bertbook" / name
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_what_was_written_is_read(folder, source):
    result = load_result("sums", folder=folder, source=source)
    assert result.values == {"sum": 2.5, "curve": [3.0, 2.5]}
    assert (result.seeds, result.seconds) == ([0, 1], 12.0)
    assert result.versions["torch"].startswith("2.")
    assert json.loads((folder / "sums.json").read_text())["command"] == "python -m bertbook.experiments sums"


def test_what_counts_is_what_can_be_reached(source):
    assert list(code_hashes("bertbook.experiments.sums", source=source)) == [
        "bertbook.adding",  # its import of math
        "bertbook.adding.WORDS",
        "bertbook.adding.add",
        "bertbook.adding.twice",
        "bertbook.deep.change",
        "bertbook.experiments.sums.find",
        "bertbook.limits.MOST",
        "bertbook/words.txt",
    ]


CHANGES = {
    "the experiment": ("experiments/sums.py", "plus(1,", "plus(2,", "bertbook.experiments.sums.find has changed"),
    "what it imports": ("adding.py", "+ twice", "- twice", "bertbook.adding.add has changed"),
    "a constant": ("limits.py", "MOST = 3", "MOST = 4", "bertbook.limits.MOST has changed"),
    "what that calls": ("adding.py", "[2, a]", "[3, a]", "bertbook.adding.twice has changed"),
    "two imports away": ("deep.py", "-a", "+a", "bertbook.deep.change has changed"),
    "a library": ("adding.py", "import math", "import cmath as math", "bertbook.adding has changed"),
    "data": ("words.txt", "two", "three", "bertbook/words.txt has changed"),
    "a name": ("deep.py", "def change", "def alter", "bertbook.deep.change is gone"),
    "code at the top": ("deep.py", "import random", "print(1)", "bertbook.deep is new"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_result_of_other_code_is_refused(folder, source, change):
    name, old, new, said = CHANGES[change]
    edit(source, name, old, new)
    with pytest.raises(StaleResult) as error:
        load_result("sums", folder=folder, source=source)
    assert str(error.value) == (
        f"the result 'sums' is not what this code gives: {said}. To make it anew: python -m bertbook.experiments sums"
    )


def test_of_many_changes_the_first_are_named_and_the_others_counted(folder, source):
    path = folder / "sums.json"
    found = json.loads(path.read_text())
    found["code"] |= {f"bertbook.gone.part_{i}": "0" for i in range(9)}
    path.write_text(json.dumps(found))
    with pytest.raises(StaleResult, match=r"part_0 is gone; .*part_5 is gone; and 3 more\. To make it anew"):
        load_result("sums", folder=folder, source=source)


HARMLESS = {
    "a comment": ("adding.py", "# Twice.", "# Two times: nothing to compute."),
    "a comment at the end of a line": ("experiments/sums.py", "  # one and the most", ""),
    "a docstring": ("adding.py", "A sum.", "The sum of two numbers.\n\n    >>> add(1, 2)\n    3\n"),
    "the module's docstring": ("adding.py", '"""Sums."""', '"""Sums,\n\nand more."""'),
    "empty lines": ("adding.py", "import math\n", "import math\n\n\n"),
    "what is not reached": ("adding.py", "reduce(add, a)", "reduce(twice, a)"),
    "an import that is not used": ("deep.py", "import random", "import math"),
    "another constant": ("limits.py", "LEAST = 1", "LEAST = 2"),
    "what is not imported": ("strange.py", "pass", "return 1"),
}


@pytest.mark.parametrize("change", HARMLESS)
def test_words_about_the_code_and_other_code_may_change(folder, source, change):
    edit(source, *HARMLESS[change])
    assert load_result("sums", folder=folder, source=source).values["sum"] == 2.5


def test_an_empty_line_and_a_number_sign_in_a_text_are_code(source):
    edit(source, "limits.py", "MOST = 3", 'MOST = """a\n\nb # c"""')
    hashes = [code_hashes("bertbook.experiments.sums", source=source)]
    for old, new in [("a\n\nb", "a\nb"), (" # c", "")]:
        edit(source, "limits.py", old, new)
        hashes.append(code_hashes("bertbook.experiments.sums", source=source))
    assert len({found["bertbook.limits.MOST"] for found in hashes}) == 3


@pytest.mark.parametrize(("change", "said"), [(b"124", "has changed"), (None, "is missing")])
def test_a_result_without_its_weights_is_refused(folder, source, change, said):
    path = folder / "sums/weights.bin"
    path.unlink() if change is None else path.write_bytes(change)
    with pytest.raises(StaleResult, match=f"sums/weights.bin {said}"):
        load_result("sums", folder=folder, source=source)


def test_equal_results_give_equal_files_without_a_trace_of_the_machine(folder, source, tmp_path):
    result = Result("sums", values={"curve": [3.0, 2.5], "sum": 2.5}, seeds=[0, 1], seconds=12.0)
    (tmp_path / "again/sums").mkdir(parents=True)
    (tmp_path / "again/sums/weights.bin").write_bytes(b"123")
    again = write_result(result, files=["sums/weights.bin"], folder=tmp_path / "again", source=source)
    assert again.read_bytes() == (folder / "sums.json").read_bytes()
    for trace in (str(tmp_path), os.getcwd(), str(Path.home()), platform.node()):
        assert f'"{trace}' not in again.read_text()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "/somewhere/else", "C:\\else", [{"a": [-float("inf")]}]])
def test_what_does_not_belong_into_the_book_is_not_written(source, tmp_path, value):
    with pytest.raises(ValueError, match=r"sums\.values\.bad"):
        write_result(
            Result("sums", values={"bad": value}, seeds=[], seconds=0.0), folder=tmp_path / "new", source=source
        )
    assert not (tmp_path / "new").exists()
    refuse_unfit({"fine": ["a/relative/path", 1, True, None, 2.0]}, "sums")


def test_a_result_that_is_not_there_says_how_to_make_it(folder, source):
    with pytest.raises(StaleResult, match=r"no result 'other'; to make it: python -m bertbook.experiments other"):
        load_result("other", folder=folder, source=source)


def test_an_unknown_module_is_an_error(source):
    with pytest.raises(ValueError, match=r"got 'bertbook\.nothing'"):
        code_hashes("bertbook.nothing", source=source)


def test_hashing_imports_nothing_heavy():
    """Chapters that only show a result do not pay for torch."""
    program = (
        "import sys; from bertbook.experiments.results import load_result\nprint({'torch', 'numpy'} & set(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
