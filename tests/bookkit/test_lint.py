"""What a chapter's cells may not do, and the honest code beside it that must pass."""

import pytest

from bookkit.__main__ import main
from bookkit.lint import CONVERSIONS, lint_chapter

LEDGER = """
[losses]
title = "Losses"
verdict = "measured"
columns = { epoch = "computed", loss = "computed" }
decimals = 4
rows = [[0, 0.7904], [9, -0.5772], [19, 0.5000], [29, 0.1200], [39, 0.3450]]

[count]
title = "Parameters"
verdict = "measured"
value = 28994

[half]
title = "One half"
verdict = "erratum"
source = "slide-17"
says = "it is less."
why = "It is not."
value = 0.50
mistaken = 0.05
decimals = 2

[learns]
title = "Training lowers the loss"
verdict = "measured"
less = "after"
than = "before"
margin = 0.4

[elsewhere]
title = "Verified on another page"
verdict = "measured"
value = 108495360
"""
PAGE = """---
file_format: mystnb
---

```{{code-cell}}
{options}from bookkit import verify
{code}
```
"""
FIRST_LINE = 7  # on which the code begins


@pytest.fixture
def faults_of(ledger_of):
    """The faults of a page with this code, as (line of the code, message)."""
    ledger = ledger_of(LEDGER)

    def lint(code: str, options: str = "") -> list[tuple[int, str]]:
        faults = lint_chapter(PAGE.format(code=code, options=options), ledger)
        return [(line - FIRST_LINE + 1 - options.count("\n"), message) for line, message in faults]

    return lint


# -- Typed values -------------------------------------------------------------------------

TYPED = {
    "a number": 'verify("half", 0.5)',
    "an int": 'verify("count", 4)',
    "with a sign": 'verify("half", -0.5)',
    "a text": 'verify("half", "half")',
    "a boolean": 'verify("half", True)',
    "a text that computes nothing": 'verify("half", f"half")',
    "a number in a text": 'verify("half", f"{0.5}")',
    "a converted number": 'verify("half", float("0.5"))',
    "a tensor": 'verify("losses", torch.tensor([[0, 0.79], [9, 0.58]]))',
    "an array": 'verify("losses", np.array([[0, 0.79], [9, 0.58]]))',
    "a list": 'verify("losses", [[0, 0.79], [9, 0.58]])',
    "rows with labels": 'verify("losses", [("first", 0.79), ("last", 0.58)])',
    "one typed row": 'verify("losses", [("first", losses[0]), ("last", 0.58)])',
    "one typed cell": 'verify("losses", [(0, losses[0]), (9, 0.58)])',
    "one typed boolean": 'verify("losses", [("first", True), ("last", all(losses))])',
    "arithmetic": 'verify("half", 1 / 2)',
    "a choice of numbers": 'verify("half", 0.5 if losses else 0.25)',
    "one side of a claim": 'verify("learns", {"after": losses[-1], "before": 0.9})',
    "the mistake": 'verify("half", half(), mistaken=0.05)',
    "a name": 'value = 0.5\nverify("half", value)',
    "a name of a name": 'value = 0.5\nother = value\nverify("half", other)',
    "an annotated name": 'value: float = 0.5\nverify("half", value)',
    "a walrus": 'verify("half", (value := 0.5))',
    "an unpacked name": 'value, other = 0.5, half()\nverify("half", value)',
    "a name with two values": 'value = 0.5\nvalue = 0.6\nverify("half", value)',
    "in a function": 'def check():\n    verify("half", 0.5)',
    "beside a magic": '%matplotlib inline\nverify("half", 0.5)',
}


@pytest.mark.parametrize("code", TYPED.values(), ids=TYPED)
def test_what_is_typed_is_no_result(faults_of, code):
    line = next(i for i, text in enumerate(code.splitlines(), 1) if "verify(" in text)
    ((found, message),) = faults_of(code)
    assert found == line
    assert message.startswith("verify is given a typed value (")
    assert message.endswith("): compute it in the chapter")


@pytest.mark.parametrize("function", sorted(CONVERSIONS))
def test_a_conversion_computes_nothing(faults_of, function):
    assert len(faults_of(f'verify("half", {function}(0.5))\nverify("half", torch.{function}(losses))')) == 1


def test_a_value_may_not_come_from_another_cell_either(faults_of):
    code = 'value = 0.5\n```\n\nWords.\n\n```{code-cell}\nverify("half", value)'
    assert faults_of(code) == [(7, "verify is given a typed value (value): compute it in the chapter")]


HONEST = {
    "a function's result": 'verify("half", half())',
    "literal arguments": 'verify("losses", causal_mask(4))',
    "a method's result": 'verify("count", model.count(trainable=True))',
    "a tensor": 'scores = torch.randn(2, 2)\nverify("losses", scores)',
    "an operator": 'verify("losses", scores @ scores.T)',
    "arithmetic with results": 'verify("half", 1 - 2 * losses[0] / 100)',
    "the last loss": 'verify("half", losses[-1])',
    "a slice": 'verify("losses", losses[:3])',
    "an attribute": 'verify("count", model.hidden_size)',
    "a comparison": 'verify("half", losses[-1] < 0.3)',
    "a truth of results": 'verify("half", all(a > b for a, b in zip(losses, losses[1:])))',
    "both": 'verify("half", losses[0] > 0 and losses[-1] < 0.3)',
    "a list comprehension": 'verify("losses", [(epoch, losses[epoch]) for epoch in (0, 9, 19)])',
    "a dict comprehension": 'verify("losses", {k: v for k, v in losses.items()})',
    "a computed text": 'verify("half", f"{losses[0]:.2f}")',
    "a computed label": 'verify("losses", [(f"pos {i}", total) for i, total in enumerate(losses)])',
    "labels": 'verify("losses", [("first", losses[0]), ("last", losses[-1])])',
    "a choice of words": 'verify("half", "same" if losses else "changes")',
    "a row with a choice of words": 'verify("losses", [("first", "same" if a == b else "changes")])',
    "a rounded result": 'verify("half", round(losses[0], 2))',
    "a converted result": 'verify("half", float(losses[0]))',
    "a tensor of results": 'verify("losses", torch.tensor([losses[0], losses[1]]))',
    "both sides of a claim": 'verify("learns", {"after": losses[-1], "before": losses[0]})',
    "the mistake": 'verify("half", half(), mistaken=half(forgotten=True))',
    "a sum": 'total = 0\nfor loss in losses:\n    total += loss\nverify("half", total)',
    "a count": 'steps = 0\nwhile next(losses):\n    steps += 1\nverify("count", steps)',
    "the best": 'best = 9.0\nfor loss in losses:\n    best = min(best, loss)\nverify("half", best)',
    "appended rows": 'rows = []\nfor epoch in range(3):\n    rows.append((epoch, train()))\nverify("losses", rows)',
    "a filled table": 'rows = [[0, 0], [0, 0]]\nrows[0][1] = half()\nverify("losses", rows)',
    "counted words": 'seen = {"a": 0}\nfor word in words:\n    seen[word] += 1\nverify("learns", seen)',
    "an updated dict": 'sides = {"after": 0}\nsides.update(measure())\nverify("learns", sides)',
    "a loop variable": 'value = 1\nfor value in losses:\n    pass\nverify("half", value)',
    "a context": 'value = None\nwith measured() as value:\n    pass\nverify("half", value)',
    "unpacked results": 'before, after = 0.9, train()\nverify("half", after)',
    "a starred rest": 'first, *rest = losses\nverify("losses", rest)',
    "typed inputs": 'ids = torch.tensor([[1, 1, 0]])\nseed = 42\nverify("losses", padding_mask(ids, seed))',
    "short numbers that a record has too": 'shift(0.5, 0.12, 29)\nverify("losses", losses)',
    "another page's value": 'print(108495360)\nverify("half", half())',
    "words about it": 'print("the ledger agrees")\nverify("half", half())',
    "another verify": 'result = model.verify(0.5)\nverify("half", half())',
}


@pytest.mark.parametrize("code", HONEST.values(), ids=HONEST)
def test_honest_code_passes(faults_of, code):
    assert faults_of(code) == []


# -- Copied values ------------------------------------------------------------------------


@pytest.mark.parametrize("copied", ["0.7904", "0.79040", "-0.5772", "7.904e-1", "0.345"])
def test_a_value_of_a_record_is_not_copied(faults_of, copied):
    ((line, message),) = faults_of(f'\nshift = {copied}\nverify("losses", losses + shift)')
    assert line == 2
    assert message.endswith("is a value of record 'losses': compute it instead of typing it")


def test_a_count_is_not_copied_into_an_argument(faults_of):
    assert faults_of('verify("count", count(expected=28_994))') == [
        (1, "28994 is a value of record 'count': compute it instead of typing it")
    ]


# -- The record's id ----------------------------------------------------------------------


@pytest.mark.parametrize("call", ["verify(name, half())", "verify()", "verify(5, half())", 'verify(f"{name}", half())'])
def test_the_id_is_written_out(faults_of, call):
    assert (1, "write the id of the record into the verify call, as a literal string") in faults_of(call)


def test_an_unknown_id(faults_of):
    assert faults_of('verify("hafl", half())') == [(1, "the ledger has no record 'hafl'. Did you mean 'half'?")]


# -- Hidden checks ------------------------------------------------------------------------

CHECK = '\nverify("half", half())'


@pytest.mark.parametrize(
    "tag", ["hide-output", "hide-cell", "remove-output", "remove-cell", "remove_output", "remove_cell"]
)
def test_a_check_is_not_hidden_by_a_tag(faults_of, tag):
    assert faults_of(CHECK, f":tags: [{tag}]\n") == [
        (2, f"the tag '{tag}' hides the output of a cell that verifies: remove the tag")
    ]
    assert faults_of("half()", f":tags: [{tag}]\n") == []


def test_a_check_is_not_hidden_by_the_cell_s_settings(faults_of):
    options = "---\nmystnb:\n  remove_code_outputs: {}\n---\n"
    assert faults_of(CHECK, options.format("true")) == [
        (2, "remove_code_outputs hides the output of a cell that verifies")
    ]
    assert faults_of(CHECK, options.format("false")) == []


@pytest.mark.parametrize("tag", ["hide-input", "remove-input", "raises-exception", "scroll-output"])
def test_other_tags_pass(faults_of, tag):
    assert faults_of(CHECK, f":tags: [{tag}]\n") == []


# -- The machinery ------------------------------------------------------------------------

ONLY = "a chapter may only write `from bookkit import verify`"
IMPORT = "a chapter may not import the ledger's machinery"
READ = "a chapter may not read the ledger: the computed value must be computed"
NAME = "the name verify must stay bookkit's"
CALL = "verify may only be called, not passed on or given another name"
MACHINERY = {
    "from bookkit import verify as check": ONLY,
    "from bookkit import verify, DriftError": ONLY,
    "from bookkit import *": ONLY,
    "from bookkit.ledger import load_ledger": ONLY,
    "from bookkit.compare import compare as verify": ONLY,
    "import bookkit": IMPORT,
    "import numpy, bookkit.ledger as b": IMPORT,
    "import tomllib": IMPORT,
    "from tomllib import load": IMPORT,
    "import tomlkit as t": IMPORT,
    'open("book/ledger/tiny.toml")': READ,
    'open(f"ledger/{name}.toml")': READ,
    'path / "ledger"': READ,
    'os.environ["BOOKKIT_LEDGER"]': READ,
    "verify = print": NAME,
    "for verify in checks: pass": NAME,
    "def verify(record_id, value): pass": NAME,
    "class verify: pass": NAME,
    "from bertbook.checks import verify": NAME,
    "import bertbook.checks as verify": NAME,
    "lambda verify: 1": NAME,
    "check = verify": CALL,
    'partial(verify, "half")(0.5)': CALL,
    "list(map(verify, names, values))": CALL,
    "verify.__wrapped__": CALL,
}


@pytest.mark.parametrize(("code", "message"), MACHINERY.items())
def test_a_cell_has_verify_and_nothing_else_of_bookkit(faults_of, code, message):
    assert set(faults_of(f"\n{code}")) == {(2, message)}


@pytest.mark.parametrize("code", ["from bookkitchen import cook", "import bookkits", "from . import verify_all"])
def test_other_imports_pass(faults_of, code):
    assert faults_of(code) == []


# -- All of it ----------------------------------------------------------------------------


# -- Imports ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        ("import math\nmath = 1", 2, "this page imports math (math): give this another name"),
        ("from math import pi as p\nfor p in []: pass", 2, "this page imports p (math.pi): give this another name"),
        ("import math\ndef f():\n    global math\n    math = 1", 4, "this page imports math (math): give"),
        ("import os.path as p\nif p:\n    import math as p", 3, "this page imports p (os.path): give"),
        ("from math import nan as n\nfrom cmath import nan as n", 2, "n as math.nan and as cmath.nan: import one"),
    ],
)
def test_an_imported_name_keeps_its_meaning(faults_of, code, line, message):
    ((found_line, found),) = faults_of(code)
    assert (found_line, message in found) == (line, True)


def test_a_second_import_of_the_same_and_a_local_name_are_no_fault(faults_of):
    assert faults_of("import math\nimport math\ndef f(math):\n    return [math for math in math]") == []


def test_all_faults_are_listed_in_the_order_of_the_lines(faults_of):
    code = 'import tomllib\nverify("half", 0.5)\nverify("hafl", half())\nverify("count", 28994)\nimport bookkit'
    faults = faults_of(code, ":tags: [hide-output]\n")
    assert [line for line, _ in faults] == [1, 2, 2, 3, 4, 4, 5]


def test_the_command_lists_faults_with_their_place_and_fails(ledger_of, tmp_path, capsys):
    ledger_of(LEDGER)
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text(PAGE.format(code='verify("half", half())', options=""))
    bad.write_text(PAGE.format(code='verify("half", 0.5)', options=""))
    assert main(["lint", str(good)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["lint", str(good), str(bad)]) == 1
    assert capsys.readouterr().out == f"{bad}:7: verify is given a typed value (0.5): compute it in the chapter\n"


def test_the_command_lists_the_faults_of_the_ledger(ledger_of, tmp_path, capsys):
    ledger_of(LEDGER)
    file = tmp_path / "ledger-0" / "one.toml"
    file.write_text(LEDGER.replace("title", "tittle"))
    assert main(["lint", str(file)]) == 1
    assert capsys.readouterr().err.count("unknown key `tittle`: is it a typo?") == 5
