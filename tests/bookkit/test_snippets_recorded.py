"""Recorded results in programs: the values as Python code, where a cell loads them."""

import json

import pytest

from bookkit.snippets.edit import ProgramError
from bookkit.snippets.package import Package
from bookkit.snippets.program import Program
from bookkit.snippets.recorded import literal
from tiny_programs import page_of, program, run

RESULTS = """
from pathlib import Path

FOLDER = Path(__file__).parent


def load(name):
    return FOLDER / name


def found():
    return load("sums").values
"""
VALUES = {
    "curve": {"step": list(range(0, 5000, 50)), "loss": [1 / (i + 1) for i in range(100)]},
    "final": -0.25,
    "steps": 7,
    "said": 'it\'s "done"',
    "none": None,
    "rows": [{"model": "small", "right": [True, False]}, {"model": "large", "right": []}],
}
IMPORT = "from demo.results import load\n\n"


@pytest.fixture
def package(tmp_path) -> Package:
    files = {"src/demo/__init__.py": "", "src/demo/results.py": RESULTS}
    files["book/results/sums.json"] = json.dumps(
        {"command": "python -m demo sums", "values": VALUES, "seconds": 90.0, "seeds": [0]}
    )
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return Package(tmp_path / "src", "demo", {"demo.results.load": tmp_path / "book/results"})


def program_with(package: Package, *cells: str, **options) -> Program:
    return program(package, page_of(IMPORT + cells[0], *cells[1:], **options))


def body(found: Program) -> str:
    """The text of the last cell."""
    return found.text.rpartition("-" * 60 + "\n\n")[2]


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ('x = load("sums").values["steps"]', "x = 7"),
        ('x = load("sums").values["final"] ** 2', "x = (-0.25) ** 2"),
        ('x = load("sums").values["steps"].real', "x = (7).real"),
        ('x = load("sums").values["said"]', 'x = "it\'s \\"done\\""'),
        ('x = load("sums").values["none"] or -load("sums").values["final"]', "x = None or --0.25"),
        ('x = load("sums").values["rows"][1]', 'x = {"model": "large", "right": []}'),
        ('x = load("sums").values["rows"][-1]["model"]', None),
        ('x = load("sums").values["curve"]["loss"][3]', "x = 0.25"),
        ('key = "steps"\nx = load("sums").values[key]', None),
        ('x = len(\n    load(\n        "sums"\n    ).values["curve"]["step"]\n)', None),
        ('x = {k: v for k, v in load("sums").values.items() if k != "curve"}', None),
        ('if True:\n    x = (lambda: load("sums").values["rows"])()', None),
    ],
)
def test_what_is_loaded_is_written_out(package, cell, code):
    found = program_with(package, cell)
    there = {}
    exec(cell, there | {"load": lambda name: type("Result", (), {"values": VALUES})}, there)
    run(found.text, here := {})
    assert here["x"] == there["x"]
    assert "load" not in found.text
    comment = "# Recorded by: python -m demo sums\n"
    assert found.text.count(comment) == 1
    if code:
        assert body(found) == f"{comment}{code}\n"


def test_long_values_are_wrapped_and_a_comment_has_the_place_of_its_statement(package):
    found = program_with(package, 'for _ in range(1):\n    curve = load("sums").values["curve"]\nprint(len(curve))')
    lines = body(found).splitlines()
    assert max(map(len, lines)) <= 88
    assert lines[:6] == [
        "for _ in range(1):",
        "    # Recorded by: python -m demo sums",
        "    curve = {",
        '        "step": [',
        "            0, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700, 750,",
        "            800, 850, 900, 950, 1000, 1050, 1100, 1150, 1200, 1250, 1300, 1350, 1400,",
    ]
    assert lines[-3:] == ["        ],", "    }", "print(len(curve))"]
    assert run(found.text, {}) == "2\n"


def test_how_long_it_took_is_a_part_of_a_result_too(package):
    found = program_with(package, 'minutes = load("sums").seconds / 60\nprint(minutes)')
    assert body(found) == "# Recorded by: python -m demo sums\nminutes = (90.0) / 60\nprint(minutes)\n"
    assert run(found.text, {}) == "1.5\n"


def test_only_the_part_that_is_named_is_written(package):
    part, whole = (program_with(package, f'x = load("sums").values{key}').text for key in ('["curve"]["step"]', ""))
    assert ("4950" in part, "0.25" in part) == (True, False)
    assert ("4950" in whole, "0.25" in whole, "large" in whole) == (True, True, True)


def test_values_stand_where_a_cell_verifies_prints_and_shows_them(package):
    head = "from bookkit import verify\n"
    found = program_with(package, head + 'verify("a", load("sums").values["steps"])')
    assert body(found) == "# Recorded by: python -m demo sums\nprint(7)\n"
    found = program_with(package, 'load("sums").values["steps"]', shown=("value",))
    assert body(found) == "# Recorded by: python -m demo sums\nprint(7)\n"
    found = program_with(package, 'a = load("sums").values["steps"]', "print(a)")
    assert run(found.text, {}) == "7\n"


def test_a_name_of_the_pages_own_is_not_the_loader(package):
    found = program_with(
        package, 'def f(load):\n    return load("sums").values\n\nx = 1\nprint(load("sums").values["steps"])'
    )
    assert "def f(load):\n    return load(" in found.text
    assert run(found.text, {}) == "7\n"


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ('x = load("sums")', r'line 14: .*write `load\("its name"\).values` \(or `.seconds`\); found: load\(.sums.\)'),
        ('x = load("sums").seeds', r"found: load\(.sums.\)\.seeds"),
        ('name = "sums"\nx = load(name).values', r"line 15: .*found: load\(name\)\.values"),
        ('x = load("sums", 1).values', "found: load"),
        ('x = load(name="sums").values', "found: load"),
        ("x = load", "found: load$"),
        ("x = print(list(map(load, [1])))", r"found: print\(list\(map\(load"),
        ("x = f\"{load('sums').values}\"", "take load out of the f-string"),
        ('x = load("none").values', r"line 14: there is no recorded result .*none\.json"),
        ('x = load("sums").values["curvy"]', r"sums\.json must have a command, and values\['curvy'\]"),
        ('x = 1; y = load("sums").values["steps"]', "give this statement a line of its own: y = load"),
    ],
)
def test_any_other_use_is_an_error_that_says_what_to_write(package, cell, words):
    with pytest.raises(ProgramError, match=words):
        program_with(package, cell)


def test_code_of_the_package_may_not_load_results(package):
    words = (
        r'results\.py:11: found cannot go into a program: it uses load. Write `load\("name of the result"\)\.values`'
    )
    with pytest.raises(ProgramError, match=words):
        program(package, page_of("from demo.results import found\n\nfound()"))


@pytest.mark.parametrize("value", [VALUES, [[1, 2.5], [-3, 1e-9]] * 30, [], {}, "x" * 200, ["long" * 30, 1], -1.5e300])
@pytest.mark.parametrize("indent", ["", " " * 60])
def test_a_literal_is_the_value(value, indent):
    code = literal(value, indent)
    assert eval(code) == value
    assert json.loads(json.dumps(value)) == value
    long_items = [line for line in code.splitlines()[1:] if len(line) > 88 and ", " in line.strip(", ")]
    assert not long_items
