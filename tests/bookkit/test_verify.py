"""What verify raises, publishes and returns, in plain Python, in a notebook, and in a build."""

import re
import sys
import tomllib
from decimal import Decimal
from pathlib import Path
from types import ModuleType, SimpleNamespace

import IPython
import IPython.display
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bookkit.compare import compare
from bookkit.record import MOST_DECIMALS
from bookkit.verify import BUILD_VARIABLE, MIME, DriftError, line_in_cell, verify

LEDGER = """
[shares]
title = "Two shares"
verdict = "measured"
columns = { name = "label", share = "computed", count = "computed" }
decimals = 2
rows = [["left", 0.25, 1], ["right", 0.75, 3]]

[shares-again]
title = "The same"
verdict = "reproduces"
source = "slide-54"
same_as = "shares"

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

[stated]
title = "What the source says"
verdict = "qualified"
source = "slide-12"
says = "so."
why = "Only if."
shown_by = ["shares"]
"""
SHARES = [(0.25, 1), (0.75, 3)]


@pytest.fixture(autouse=True)
def ledger(ledger_of):
    return ledger_of(LEDGER)


@pytest.fixture
def kernel(monkeypatch) -> list[dict]:
    """As in a live kernel; holds what is published."""
    published = []
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(IPython.display, "publish_display_data", published.append)
    return published


# -- Without a kernel: drift always raises -----------------------------------------------------


@pytest.mark.parametrize(
    ("record_id", "computed", "options", "compared"),
    [
        ("shares", SHARES, {}, 4),
        ("shares", [("left", 0.25, 1), ("right", 0.75, 3)], {}, 4),
        ("shares-again", np.array(SHARES, dtype=object), {}, 4),
        ("half", 1 / 2, {"mistaken": 1 / 20}, 2),
        ("learns", {"before": 0.5, "after": 0.1}, {}, 1),
    ],
)
def test_what_agrees_is_returned(record_id, computed, options, compared):
    verified = verify(record_id, computed, **options)
    assert verified.entry.id == record_id
    assert verified.comparison.compared == compared
    assert verified.comparison.differences == []


@pytest.mark.parametrize("build", [None, "1"])
@pytest.mark.parametrize(
    "shell", [None, SimpleNamespace(), SimpleNamespace(kernel=None)], ids=["none", "ipython", "no"]
)
def test_drift_raises_where_no_kernel_is_alive(monkeypatch, build, shell):
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    if build:
        monkeypatch.setenv(BUILD_VARIABLE, build)
    with pytest.raises(DriftError, match="drift in record 'shares'"):
        verify("shares", [(0.25, 1), (0.75, 4)])


def test_drift_raises_where_ipython_was_never_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython")
    monkeypatch.setenv(BUILD_VARIABLE, "1")
    with pytest.raises(DriftError, match="drift in record 'half'"):
        verify("half", 0.4, mistaken=0.05)


def test_the_message_says_what_drifted_and_what_to_do(ledger):
    with pytest.raises(DriftError) as caught:
        verify("shares", [(0.24, 1), (0.75, 4)])
    assert str(caught.value).splitlines() == [
        f"drift in record 'shares' ({ledger['shares'].file}:2)",
        "  row 'left', column 'share': the record has 0.25, the chapter computed 0.24, difference 1.0e-2",
        "  row 'right', column 'count': the record has 3 (int), the chapter computed 4 (int)",
        "  If the record is right, look for what changed in the code; if the code is right, correct the record.",
    ]


def test_the_drift_of_an_alias_names_both_records(ledger):
    file = ledger["shares"].file
    with pytest.raises(DriftError) as caught:
        verify("shares-again", [(0.25, 1), (0.75, 4)])
    first, *_ = str(caught.value).splitlines()
    assert first == f"drift in record 'shares-again' ({file}:9, the same as 'shares' at {file}:2)"


@pytest.mark.parametrize("record_id", [None, 5, b"shares", ("shares",), Path("shares")])
def test_an_id_that_is_no_string(record_id):
    with pytest.raises(TypeError, match=re.escape(f"record_id must be a string, got {record_id!r}")):
        verify(record_id, SHARES)


def test_an_unknown_id():
    with pytest.raises(LookupError, match=r"the ledger has no record 'share'\. Did you mean 'shares'"):
        verify("share", SHARES)


def test_a_statement_cannot_be_verified():
    with pytest.raises(TypeError, match="a statement has no values to compare"):
        verify("stated", True)


def test_the_computed_value_is_not_changed():
    computed = np.array([[0.25, 1], [0.75, 3]], dtype=object)
    verify("shares", computed)
    assert computed.tolist() == [[0.25, 1], [0.75, 3]]


# -- In a kernel: published when called -----------------------------------------------------------


def test_a_notebook_shows_the_table_and_raises(kernel):
    with pytest.raises(DriftError, match="drift in record 'half'"):
        verify("half", 0.4, mistaken=0.05)
    (bundle,) = kernel
    assert "0.50 ≠ 0.4 (computed)" in bundle["text/plain"]
    assert "0.50 ≠ 0.4 (computed)" in bundle["text/html"]


def test_a_build_gets_the_report_and_the_chapter_goes_on(kernel, monkeypatch):
    monkeypatch.setenv(BUILD_VARIABLE, "1")
    verified = verify("shares", [(0.24, 1), (0.75, 3)])
    assert "DRIFT" in repr(verified)
    (bundle,) = kernel
    assert set(bundle) == {MIME, "text/plain", "text/html"}  # other builders warn of a bundle without plain text
    assert bundle[MIME]["id"] == "shares"
    assert bundle[MIME]["compared"] == 4
    (difference,) = bundle[MIME]["differences"]
    assert difference == {
        "where": "row 'left', column 'share'",
        "recorded": "0.25",
        "computed": "0.24",
        "gap": "1.0e-2",
        "cell": (0, 1),
    }


def test_a_claim_publishes_what_it_measured(kernel):
    verify("learns", {"after": 0.1, "before": 0.55})
    assert kernel[0][MIME]["measured"] == ["0.10", "0.55"]
    assert kernel[0][MIME]["differences"] == []


def test_showing_the_result_publishes_nothing_more(kernel):
    verified = verify("learns", {"after": 0.1, "before": 0.55})
    assert verified._ipython_display_() is None
    assert len(kernel) == 1


def test_an_error_is_no_report(kernel):
    with pytest.raises(LookupError):
        verify("share", SHARES)
    assert kernel == []


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (["\n\nfound = line_in_cell()"], 3),
        (["def f():\n    return line_in_cell()\n\nfound = f()"], 2),
        (["def f():\n    return line_in_cell()", "1\n2\n3\n4\nfound = f()"], 5),
        (["found = (lambda: [line_in_cell()\n for _ in range(1)])()[0]"], 1),
    ],
    ids=["in the cell", "in a function of the cell", "in a function of an earlier cell", "in a comprehension"],
)
def test_the_line_is_one_of_the_running_cell(monkeypatch, cells, line):
    user = ModuleType("__main__")
    user.line_in_cell = line_in_cell
    monkeypatch.setitem(sys.modules, "__main__", user)
    for number, source in enumerate(cells):
        exec(compile(source, f"cell-{number}", "exec"), vars(user))
    assert user.found == line


def test_no_cell_has_line_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    assert line_in_cell() == 1


# -- Every number is guarded --------------------------------------------------------------------

DISPUTED = 'verdict = "erratum"\nsource = "slide-17"\nsays = "otherwise."\nwhy = "Not so."\ncites = ["a"]\n'


def numbers(places: int):
    """A decimal number (none if it has no places: then a count), as it is written in TOML."""
    units = st.integers(-(10**6), 10**6)
    return units.map(lambda n: f"{Decimal(n).scaleb(-places):.{places}f}") if places else units.map(str)


@st.composite
def tables(draw) -> tuple[str, list]:
    """A table record without its header, and rows that agree with it."""
    kinds = ["computed", *draw(st.lists(st.sampled_from(["computed", "mistaken", "cited"]), max_size=2))]
    decimals = draw(st.integers(1, MOST_DECIMALS))
    places = [draw(st.sampled_from([0, decimals])) for _ in kinds]
    rows = [[draw(numbers(p)) for p in places] for _ in range(draw(st.integers(1, 3)))]
    columns = ", ".join(f'{name} = "{kind}"' for name, kind in zip("abc", kinds, strict=False))
    written = [f'    ["{label}", {", ".join(row)}],' for label, row in zip(("one", "two", "three"), rows, strict=False)]
    again = " ".join(cell for row in rows for cell, kind in zip(row, kinds, strict=True) if kind == "cited")
    text = f'title = "A table"\n{DISPUTED}columns = {{ name = "label", {columns} }}\nagain = "{again}"\n'
    text += f"decimals = {decimals}\n" if any(places) else ""
    parse = {0: int}
    computed = [
        [parse.get(p, float)(cell) for cell, kind, p in zip(row, kinds, places, strict=True) if kind != "cited"]
        for row in rows
    ]
    return text + "rows = [\n" + "\n".join(written) + "\n]\n", [computed]


@st.composite
def values(draw) -> tuple[str, list]:
    """A value with the source's mistake, and what agrees with them."""
    places = draw(st.integers(1, MOST_DECIMALS))
    value, mistaken = draw(numbers(places)), draw(numbers(places))
    text = f'title = "A value"\n{DISPUTED}decimals = {places}\nvalue = {value}\nmistaken = {mistaken}\n'
    return text, [float(value), float(mistaken)]


@st.composite
def claims(draw) -> tuple[str, list]:
    """A claim, and two sides between which the gap is its margin and a bit."""
    digit, exponent = draw(st.integers(1, 9)), draw(st.integers(-4, 1))
    margin = f"{Decimal(digit).scaleb(exponent):f}"
    text = f'title = "A claim"\nverdict = "measured"\nless = "after"\nthan = "before"\nmargin = {margin}\n'
    return text, [{"after": 1.0, "before": 1.0 + (digit + 0.5) * 10**exponent}]


@st.composite
def citations(draw) -> tuple[str, list]:
    value = draw(numbers(0))
    return f'title = "Cited"\nverdict = "cited"\ncites = ["a"]\nvalue = {value}\nagain = "{value}"\n', []


@st.composite
def changed(draw, text: str) -> str:
    """The text with another number in one place."""
    value_lines = re.compile(r"^(rows|    \[|again|decimals|value|mistaken|margin)", re.MULTILINE)
    places = [
        number
        for line in re.finditer(r"^.*$", text, re.MULTILINE)
        if value_lines.match(line[0])
        for number in re.compile(r"-?\d+(\.\d+)?").finditer(text, line.start(), line.end())
    ]
    place = draw(st.sampled_from(places))
    position = draw(st.integers(0, len(place[0]) - 1))
    digit = draw(st.sampled_from("0123456789"))
    new = draw(
        st.sampled_from(
            [
                place[0][:position] + digit + place[0][position + 1 :],
                place[0] + digit,
                place[0][:-1],
                place[0].removeprefix("-"),
                f"-{place[0]}",
            ]
        )
    )
    assume(re.fullmatch(r"-?\d+(\.\d+)?", new))
    assume(Decimal(new) != Decimal(place[0]))
    return text[: place.start()] + new + text[place.end() :]


def objects(record_of, text: str, computed: list) -> bool:
    """Whether TOML, the schema or the comparison refuses the record."""
    try:
        record = record_of(text)
    except (tomllib.TOMLDecodeError, ValueError):
        return True
    return bool(computed and compare(record, *computed).differences)


@given(st.data())
def test_no_number_of_a_record_can_be_changed(record_of, data):
    """Tables with cited and mistaken columns, values, claims and citations; in any place, by any edit."""
    text, computed = data.draw(st.one_of(tables(), values(), claims(), citations()))
    assert not objects(record_of, text, computed)
    assert objects(record_of, data.draw(changed(text)), computed)
