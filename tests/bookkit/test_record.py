"""What the schema lets a record say, and with which words it refuses the rest."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bookkit.record import MOST_DECIMALS, Alias, Claim, Statement, Table, Value, numbers_in, printed

TABLE = """
title = "Two shares"
verdict = "measured"
columns = { name = "label", share = "computed" }
decimals = 2
rows = [["left", 0.25], ["right", 0.75]]
"""
MATRIX = """
title = "Weights"
verdict = "reproduces"
source = "slide-15"
matrix = "pos"
corner = "query and key"
rows = [[1, 2, 3], [4, 5, 6]]
"""
CITED_COLUMN = """
title = "Ours and theirs"
verdict = "measured"
cites = ["devlin2019bert"]
columns = { name = "label", ours = "computed", theirs = "cited" }
rows = [["heads", 12, 16], ["epochs", 3, "2-4"]]
again = "16, 2 to 4"
"""
VALUE = """
title = "One half"
verdict = "erratum"
source = "slide-17"
says = "it is less."
why = "It is not."
value = 0.50
mistaken = 0.05
decimals = 2
"""
CITED = """
title = "The batch"
verdict = "cited"
cites = ["devlin2019bert"]
value = 256
again = "256"
"""
CLAIM = """
title = "Training lowers the loss"
verdict = "measured"
less = "loss after"
than = "loss before"
margin = 0.4
"""
STATEMENT = """
title = "A token sees itself"
verdict = "qualified"
source = "slide-60"
says = "it does not."
why = "It does, see {val}`shares[pos 0, pos 1]` and GPT-2."
shown_by = ["shares"]
"""
ALIAS = """
title = "The same again"
verdict = "measured"
same_as = "shares"
"""

KINDS = {
    "table": (TABLE, Table),
    "matrix": (MATRIX, Table),
    "cited column": (CITED_COLUMN, Table),
    "value": (VALUE, Value),
    "cited": (CITED, Value),
    "claim": (CLAIM, Claim),
    "statement": (STATEMENT, Statement),
    "alias": (ALIAS, Alias),
}


@pytest.mark.parametrize(("text", "kind"), KINDS.values(), ids=KINDS)
def test_the_key_that_only_one_kind_has_decides_the_kind(record_of, text, kind):
    assert type(record_of(text)) is kind


# name: (record, what stands in it, what is written instead, words of the message)
FAULTS = {
    "NaN": (TABLE, "0.25", "nan", "a cell cannot be NaN"),
    "infinity": (TABLE, "0.25", "-inf", "a cell cannot be -Infinity"),
    "date": (TABLE, "0.25", "2020-01-01", "a cell is a number, a text or a boolean, not datetime.date"),
    "list in a cell": (TABLE, "0.25", "[0.25]", "a cell is a number, a text or a boolean"),
    "NaN as value": (VALUE, "0.50", "nan", "a cell cannot be NaN"),
    "infinity as mistaken": (VALUE, "0.05", "inf", "a cell cannot be Infinity"),
    "no rows": (TABLE, '[["left", 0.25], ["right", 0.75]]', "[]", "`rows` is empty"),
    "an empty row": (MATRIX, "[[1, 2, 3], [4, 5, 6]]", "[[]]", "`rows` is empty"),
    "short row": (TABLE, '"right", 0.75', '"right"', "row 1 has 1 cells where 2 are expected"),
    "long row": (TABLE, '"right", 0.75', '"right", 0.75, 0.00', "row 1 has 3 cells where 2 are expected"),
    "ragged matrix": (MATRIX, "5, 6", "5", "row 1 has 2 cells where 3 are expected"),
    "two rows of one label": (TABLE, '"right"', '"left"', "two rows have the same label"),
    "number as label": (TABLE, '"left"', "1", "row 0: 1 stands in a label column, where only words may"),
    "number in a label": (TABLE, '"left"', '"row 7"', "the number 7 in words is checked by nobody: spell it out"),
    "number in a title": (TABLE, "Two shares", "The 2 shares", "the number 2 in words .* from a record with {val}`id`"),
    "number in a column": (TABLE, "share =", '"share 1" =', "the number 1 in words is checked by nobody"),
    "number in the matrix's name": (MATRIX, '"pos"', '"layer 3"', "the number 3 in words is checked by nobody"),
    "number in why": (VALUE, "It is not.", "It is .5 in fact.", "the number 0.5 in words is checked by nobody"),
    "number in says": (VALUE, "it is less.", "it is 4-5.", "the number 4 in words is checked by nobody"),
    "number in a note": (TABLE, "decimals", 'note = "−5 too"\ndecimals', "the number 5 in words is checked by nobody"),
    "number in a side": (CLAIM, "loss after", "loss at step 30", "the number 30 in words is checked by nobody"),
    "empty title": (TABLE, "Two shares", " ", "empty text"),
    "decimals forgotten": (TABLE, "decimals = 2", "", "`decimals` is missing: how many are printed of 0.25"),
    "too few decimals": (TABLE, "0.25", "0.2", "0.2 is written with 1 decimals where `decimals` says 2"),
    "too many decimals": (VALUE, "0.05", "0.050", "0.050 is written with 3 decimals where `decimals` says 2"),
    "decimals of counts": (MATRIX, "matrix", "decimals = 2\nmatrix", "`decimals` is given, but no number has any"),
    "decimals of nothing": (VALUE, "decimals = 2", "decimals = -2", "`decimals` is at least 1, not -2"),
    "decimals that no machine has": (VALUE, "decimals = 2", "decimals = 7", f"at most {MOST_DECIMALS} decimals"),
    "bool for an int": (TABLE, "decimals = 2", "decimals = true", "should be a valid integer"),
    "both shapes": (MATRIX, "rows", 'columns = { a = "computed" }\nrows', "either `columns` or `matrix`"),
    "neither shape": (TABLE, 'columns = { name = "label", share = "computed" }', "", "either `columns` or `matrix`"),
    "no columns": (TABLE, 'columns = { name = "label", share = "computed" }', "columns = {}", "either `columns` or"),
    "matrix without corner": (MATRIX, 'corner = "query and key"', "", "`matrix` and `corner` go together"),
    "unknown kind of column": (TABLE, '"computed"', '"measured"', "'label', 'computed', 'mistaken' or 'cited'"),
    "nothing computed": (CITED_COLUMN, '"computed"', '"cited"', "no column is computed: then the verdict is 'cited'"),
    "mistaken, not disputed": (TABLE, '"computed"', '"mistaken"', "`mistaken` only in errata and qualified tables"),
    "cited column without cites": (CITED_COLUMN, 'cites = ["devlin2019bert"]', "", "a cited column needs `cites`"),
    "again differs in a number": (CITED_COLUMN, "16,", "12,", "`again` must repeat .* differ in 16, 12"),
    "again differs in a range": (CITED_COLUMN, "2 to 4", "2 to 5", "`again` must repeat .* differ in 4, 5"),
    "again is missing": (CITED, 'again = "256"', "", "`again` must repeat the numbers .* differ in 256"),
    "again is needless": (TABLE, "rows", 'again = "0.25"\nrows', "`again` must repeat the numbers .* differ in 0.25"),
    "cited without cites": (CITED, 'cites = ["devlin2019bert"]', "", "verdict 'cited' needs `cites`, a list of keys"),
    "cited, but computed": (CITED_COLUMN, '"measured"', '"cited"', "a cited table has no column that is computed"),
    "no source": (MATRIX, 'source = "slide-15"', "", "verdict 'reproduces' needs `source`, such as \"slide-15\""),
    "qualified without source": (STATEMENT, 'source = "slide-60"', "", "verdict 'qualified' needs `source`"),
    "erratum without source": (VALUE, 'source = "slide-17"', "", "verdict 'erratum' needs `source`"),
    "measured with a source": (TABLE, "rows", 'source = "slide-1"\nrows', "verdict 'measured' is for the book's own"),
    "no such slide": (MATRIX, "slide-15", "slide-61", "should match pattern"),
    "erratum without says": (VALUE, 'says = "it is less."', "", "verdict 'erratum' needs `says` .* and `why`"),
    "qualified without why": (STATEMENT, "why =", "note =", "verdict 'qualified' needs `says` .* and `why`"),
    "why without erratum": (TABLE, "rows", 'why = "No."\nrows', "`says` and `why` are for errata and qualified values"),
    "mistaken without erratum": (
        VALUE,
        'erratum"\nsource = "slide-17"\nsays = "it is less."\nwhy = "It is not."',
        'measured"',
        "`mistaken` is for errata and qualified values",
    ),
    "two kinds": (TABLE, "rows", "margin = 0.4\nrows", "a record has only one of rows, margin"),
    "no kind": (ALIAS, 'same_as = "shares"', "", "a record without `rows`, `value`, `margin` or `same_as` states an"),
    "statement without evidence": (STATEMENT, 'shown_by = ["shares"]', "", "`shown_by` .record ids. or `cites`"),
    "cited claim": (CLAIM, 'measured"', 'cited"\ncites = ["a"]', "a claim is measured by a chapter"),
    "cited alias": (ALIAS, 'measured"', 'cited"\ncites = ["a"]', "an alias is verified where it stands"),
    "margin of zero": (CLAIM, "0.4", "0.0", "a positive number of one significant digit, not 0.0"),
    "negative margin": (CLAIM, "0.4", "-0.4", "a positive number of one significant digit, not -0.4"),
    "margin of two digits": (CLAIM, "0.4", "0.40", "a positive number of one significant digit, not 0.40"),
    "NaN as margin": (CLAIM, "0.4", "nan", "a positive number of one significant digit, not NaN"),
    "bool as margin": (CLAIM, "0.4", "true", "a positive number of one significant digit, not True"),
}


@pytest.mark.parametrize(("text", "old", "new", "message"), FAULTS.values(), ids=FAULTS)
def test_the_schema_objects(record_of, text, old, new, message):
    record_of(text)  # without the fault it is fine
    assert old in text
    with pytest.raises(ValueError, match=message):
        record_of(text.replace(old, new, 1))


@pytest.mark.parametrize("key", ["decimals", "columns", "title", "verdict", "rows"])
def test_a_mistyped_key_is_unknown(record_of, key):
    with pytest.raises(ValidationError, match=f"{key}x\n  Extra inputs are not permitted"):
        record_of(TABLE.replace(key, f"{key}x"))


@pytest.mark.parametrize(
    ("text", "number", "decimals"),
    [(TABLE, "0.1", 1), (VALUE, "0.123456", MOST_DECIMALS), (CITED, "0.000000000001", 12)],
)
def test_a_number_has_as_many_decimals_as_can_be_checked(record_of, text, number, decimals):
    """What is cited is compared with nothing, so it may have more."""
    text = re.sub(r"\b(0\.\d+|256)\b", number, text)
    text = re.sub(r"decimals = \d\n", "", text) + f"decimals = {decimals}"
    assert record_of(text).decimals == decimals


@pytest.mark.parametrize("margin", ["0.4", "0.002", "2", "20"])
def test_a_margin_of_one_digit_is_printed_as_it_is_written(record_of, margin):
    assert printed(record_of(CLAIM.replace("0.4", margin)).margin) == margin


WORDS = {
    "GPT-2, T5 and x_1": [],
    "5e-5, then 2e-5": ["5e-5", "2e-5"],
    "from -1 to +1": [-1, 1],
    "2-4 epochs": [2, 4],
    "12-layer": [12],
    ".5 or 108,495,360": [".5", 108495360],
    "v1.2": [],
}


@pytest.mark.parametrize(("text", "numbers"), WORDS.items())
def test_numbers_in_words(text, numbers):
    assert sorted(numbers_in(text).elements()) == sorted(Decimal(str(number)) for number in numbers)


@given(st.lists(st.decimals(-10_000, 10_000, places=3) | st.integers(-(10**9), 10**9)))
def test_numbers_are_found_however_many(numbers):
    text = " and ".join(f"{number:,}" for number in numbers)
    assert sorted(numbers_in(text).elements()) == sorted(map(Decimal, numbers))


@given(st.decimals(-10_000, 10_000, places=4) | st.integers())
def test_a_number_is_printed_as_it_is_written(number):
    assert "-" not in printed(number)
    written = printed(number).replace("\N{MINUS SIGN}", "-").replace(",", "")
    assert written == f"{number:f}" if isinstance(number, Decimal) else written == str(number)


@pytest.mark.parametrize("cell", ["", "all 1.0", True, False])
def test_texts_and_booleans_are_printed_as_they_are(cell):
    assert printed(cell) == str(cell)
