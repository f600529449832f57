"""A checked record as text and as HTML."""

import pytest
from bs4 import BeautifulSoup

from bookkit.compare import Comparison, compare
from bookkit.show import as_html, as_text, grid_of, mark_of

TABLE = """
title = "Shares & counts"
verdict = "reproduces"
source = "slide-15"
columns = { "<name>" = "label", share = "computed", count = "computed", how = "computed" }
decimals = 2
rows = [["left", -0.25, 28994, "a < b"], ["right", 10.75, 3, "same"]]
"""
ROWS = [(-0.25, 28994, "a < b"), (10.75, 3, "same")]
MATRIX = """
title = "Weights"
verdict = "measured"
matrix = "pos"
corner = "query \\\\ key"
decimals = 1
rows = [[0.5, 1.0]]
"""
VALUE = """
title = "One half"
verdict = "measured"
value = 0.50
decimals = 2
"""
ERRATUM = """
title = "One half"
verdict = "erratum"
source = "slide-17"
says = "it is less."
why = "It is not."
value = 0.50
mistaken = 0.05
decimals = 2
"""
CLAIM = """
title = "Training lowers the loss"
verdict = "measured"
less = "after"
than = "before"
margin = 0.4
"""


@pytest.fixture(scope="session")
def shown(record_of):
    """A record compared with values, as one of the functions shows it."""

    def build(show, text: str, computed, mistaken=None):
        record = record_of(text)
        return show(record, record, compare(record, computed, mistaken))

    return build


def test_a_table_as_text(shown):
    assert shown(as_text, TABLE, ROWS).splitlines() == [
        "Shares & counts",
        "<name>  share   count  how",
        "left    −0.25  28,994  a < b",
        "right   10.75       3  same",
        "6 values computed here; all agree with slide 15, to two decimals.",
    ]


def test_a_matrix_as_text(shown):
    assert shown(as_text, MATRIX, [[0.5, 1.0]]).splitlines() == [
        "Weights",
        r"query \ key  pos 0  pos 1",
        "pos 0          0.5    1.0",
        "2 values computed here; all agree with the book's ledger, to one decimal.",
    ]


def test_drift_in_a_table_shows_both_values(shown):
    lines = shown(as_text, TABLE, [(-0.25, 28995, "a > b"), (10.75, 3, "same")]).splitlines()
    assert "28,994 ≠ 28995 (int) (computed)" in lines[2]
    assert "a < b ≠ 'a > b' (str) (computed)" in lines[2]
    assert lines[4:] == [
        "DRIFT: 2 differences between the values computed here and slide 15.",
        "row 'left', column 'count': the record has 28994 (int), the chapter computed 28995 (int)",
        "row 'left', column 'how': the record has 'a < b' (str), the chapter computed 'a > b' (str)",
    ]


@pytest.mark.parametrize("show", [as_text, as_html])
def test_another_shape_is_shown_too(shown, show):
    """No cell can hold this difference, so the line under the table does."""
    text = shown(show, TABLE, [0.5, 1.0])
    line = "DRIFT: 1 difference between the values computed here and slide 15. "
    line += "shape (rows, columns): the record has (2, 3), the chapter computed (2,)."
    assert text.count(line) == text.count("shape") == 1


SENTENCES = {
    "a value": (VALUE, 0.5, None, "One half: 0.50"),
    "drift of a value": (VALUE, 0.4, None, "One half: 0.50 ≠ 0.4 (computed)"),
    "a mistake": (ERRATUM, 0.5, 0.05, "One half: 0.50; the source's mistake gives 0.05"),
    "drift of a mistake": (ERRATUM, 0.5, 0.06, "One half: 0.50; the source's mistake gives 0.05 ≠ 0.06 (computed)"),
    "a claim": (
        CLAIM,
        {"after": 0.1, "before": 0.55},
        None,
        "Training lowers the loss: after (0.10) is less than before (0.55) by at least 0.4",
    ),
    "a broken claim": (
        CLAIM,
        {"after": 0.1, "before": 0.35},
        None,
        "Training lowers the loss: after (0.10) is less than before (0.35) by at least 0.4 ≠ 0.2500 (computed)",
    ),
    "an unmeasured claim": (
        CLAIM,
        {"after": float("nan"), "before": 0.35},
        None,
        "Training lowers the loss: after (not measured) is less than before (not measured) by at least 0.4 ≠ nan "
        "(float) (computed)",
    ),
}


@pytest.mark.parametrize(("text", "computed", "mistaken", "line"), SENTENCES.values(), ids=SENTENCES)
def test_values_and_claims_are_one_line(shown, text, computed, mistaken, line):
    first, mark = shown(as_text, text, computed, mistaken).splitlines()
    assert first == line
    html = BeautifulSoup(shown(as_html, text, computed, mistaken), "html.parser")
    assert [p.text for p in html.find_all("p")] == [line, mark]


MARKS = {
    "one value": (VALUE, Comparison(1, []), "Computed here; it agrees with the book's ledger, to two decimals."),
    "many values": (TABLE, Comparison(6, []), "6 values computed here; all agree with slide 15, to two decimals."),
    "a claim": (CLAIM, Comparison(1, []), "Computed here; it agrees with the book's ledger."),
    "an erratum": (ERRATUM, Comparison(2, []), "2 values computed here; all agree with the book's ledger, to two"),
}


@pytest.mark.parametrize(("text", "comparison", "mark"), MARKS.values(), ids=MARKS)
def test_the_mark_says_what_was_compared_with_what(record_of, text, comparison, mark):
    """A slide that is wrong is nothing that a value could agree with."""
    record = record_of(text)
    assert mark_of(record, record, comparison).startswith(mark)


@pytest.mark.parametrize(
    ("decimals", "words"),
    [(1, "one decimal"), (3, "three decimals"), (4, "four decimals"), (5, "five decimals"), (6, "six decimals")],
)
def test_decimals_are_spelled_out(shown, decimals, words):
    text = VALUE.replace("0.50", f"{0.5:.{decimals}f}").replace("decimals = 2", f"decimals = {decimals}")
    assert shown(as_text, text, 0.5).endswith(f"it agrees with the book's ledger, to {words}.")


def test_an_alias_has_its_own_caption_and_source(record_of):
    values = record_of(TABLE)
    alias = record_of('title = "Again"\nverdict = "reproduces"\nsource = "slide-54"\nsame_as = "shares"')
    lines = as_text(alias, values, compare(values, ROWS)).splitlines()
    assert lines[0] == "Again"
    assert lines[-1] == "6 values computed here; all agree with slide 54, to two decimals."
    assert "slide 54" in as_html(alias, values, compare(values, ROWS))


def test_a_table_as_html(shown):
    html = shown(as_html, TABLE, ROWS)
    table = BeautifulSoup(html, "html.parser")
    assert table.caption.text == "Shares & counts"
    assert [th.text for th in table.thead.find_all("th", scope="col")] == ["<name>", "share", "count", "how"]
    assert [th.text for th in table.tbody.find_all("th", scope="row")] == ["left", "right"]
    assert [td.text for td in table.find_all("td")] == ["−0.25", "28,994", "a < b", "10.75", "3", "same"]
    assert table.small.text == "6 values computed here; all agree with slide 15, to two decimals."


EVIL = "<script>alert('&')</script>"


@pytest.mark.parametrize(
    ("text", "title", "computed"),
    [
        (TABLE, "Shares & counts", [(-0.25, 28994, EVIL), (10.75, 3, "same")]),
        (VALUE, "One half", EVIL),
        (CLAIM, "Training lowers the loss", {"after": EVIL, "before": 1.0}),
    ],
    ids=["table", "value", "claim"],
)
def test_html_is_escaped(shown, text, title, computed):
    html = shown(as_html, text.replace(title, EVIL), computed)
    assert "<script" not in html
    assert BeautifulSoup(html, "html.parser").text.count(EVIL) >= 2  # the title and the computed text


def test_numbers_and_labels_are_told_apart(record_of):
    grid = grid_of(record_of(TABLE), [])
    assert (grid.label_columns, grid.numeric) == (1, [False, True, True, False])
    grid = grid_of(record_of(TABLE.replace('"label"', '"computed"')), [])
    assert grid.label_columns == 0
    grid = grid_of(record_of(MATRIX), [])
    assert (grid.label_columns, grid.numeric) == (1, [False, True, True])
