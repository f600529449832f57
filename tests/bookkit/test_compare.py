"""What agrees with a record and what is drift, to the last digit and the last type."""

import math
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from bookkit.compare import SLACK, Comparison, compare
from bookkit.record import MOST_DECIMALS

MATRIX = """
title = "Weights"
verdict = "measured"
matrix = "pos"
corner = "query and key"
decimals = 2
rows = [[0.25, 0.50], [0.75, 1.00], [0.00, -0.50]]
"""
FIT = [[0.25, 0.5], [0.75, 1.0], [0.0, -0.5]]
NAMED = """
title = "Ours and theirs"
verdict = "measured"
cites = ["devlin2019bert"]
columns = { name = "label", ours = "computed", theirs = "cited", seen = "computed" }
rows = [["heads", 12, 16, true], ["layers", 2, 24, false]]
again = "16 24"
"""
VALUE = """
title = "One value"
verdict = "measured"
value = {}
{}
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
def value_of(record_of):
    """A record of one value, as it is written in TOML."""

    def build(written: str):
        decimals = len(written.partition(".")[2])
        return record_of(VALUE.format(written, f"decimals = {decimals}" if decimals else ""))

    return build


def drift(record, computed, mistaken=None) -> list[str]:
    """The differences in words."""
    return [str(difference) for difference in compare(record, computed, mistaken).differences]


# -- Half a unit of the last printed digit -------------------------------------------------


def test_the_slack_covers_the_kernels_and_hides_no_digit():
    assert Decimal("1.2e-7") < SLACK < Decimal(1).scaleb(-MOST_DECIMALS) / 2


@given(st.integers(1, MOST_DECIMALS), st.integers(-(10**6), 10**6), st.sampled_from([-1, 1]))
def test_the_tolerance_is_half_a_unit_and_the_slack(value_of, decimals, units, side):
    """Two neighbouring floats on both sides of the limit: the last that agrees, the first that does not."""
    recorded = Decimal(units).scaleb(-decimals)
    limit = recorded + side * (Decimal(1).scaleb(-decimals) / 2 + SLACK)
    near, outwards = float(limit), side * math.inf
    inside = near if abs(Decimal(near) - recorded) <= abs(limit - recorded) else math.nextafter(near, -outwards)
    record = value_of(f"{recorded:.{decimals}f}")
    assert drift(record, inside) == []
    (difference,) = drift(record, math.nextafter(inside, outwards))
    assert difference.endswith(f", difference {abs(limit - recorded):.1e}")


@given(st.integers(1, MOST_DECIMALS), st.floats(-1e6, 1e6))
def test_what_rounds_to_the_printed_digits_agrees(value_of, decimals, computed):
    assert drift(value_of(f"{Decimal(computed):.{decimals}f}"), computed) == []


@given(st.integers(1, MOST_DECIMALS), st.integers(-(10**6), 10**6), st.integers(-50, 50).filter(bool))
def test_a_changed_last_digit_is_drift(value_of, decimals, units, change):
    computed = float(Decimal(units).scaleb(-decimals))
    changed = Decimal(units + change).scaleb(-decimals)
    assert len(drift(value_of(f"{changed:.{decimals}f}"), computed)) == 1


# -- Types ------------------------------------------------------------------------------

TYPES = {
    "bool for an int": ("1", True, "the record has 1 (int), the chapter computed True (bool)"),
    "int for a bool": ("true", 1, "the record has True (bool), the chapter computed 1 (int)"),
    "int for a float": ("1.0", 1, "the record has 1.0 (float), the chapter computed 1 (int)"),
    "float for an int": ("2", 2.0, "the record has 2 (int), the chapter computed 2.0 (float)"),
    "bool for a float": ("1.0", True, "the record has 1.0 (float), the chapter computed True (bool)"),
    "text for an int": ("2", "2", "the record has 2 (int), the chapter computed '2' (str)"),
    "int for a text": ('"2"', 2, "the record has '2' (str), the chapter computed 2 (int)"),
    "another text": ('"same"', "changes", "the record has 'same' (str), the chapter computed 'changes' (str)"),
    "another count": ("28994", 28995, "the record has 28994 (int), the chapter computed 28995 (int)"),
    "nothing": ("0.5", None, "the record has 0.5 (float), the chapter computed None (NoneType)"),
    "NaN": ("0.5", math.nan, "the record has 0.5 (float), the chapter computed nan (float)"),
    "infinity": ("0.5", -math.inf, "the record has 0.5 (float), the chapter computed -inf (float)"),
    "NaN for an int": ("2", math.nan, "the record has 2 (int), the chapter computed nan (float)"),
    "a complex number": ("0.5", 0.5 + 0j, "the record has 0.5 (float), the chapter computed (0.5+0j) (complex)"),
    "a list": ("0.5", [0.5], "the record has 0.5 (float), the chapter computed [0.5] (list)"),
    "an array of one": ("0.5", np.array([0.5]), "the record has 0.5 (float), the chapter computed [0.5] (list)"),
    "a NumPy bool": ("1", np.True_, "the record has 1 (int), the chapter computed True (bool)"),
    "a tensor of NaN": ("0.5", torch.tensor(math.nan), "the chapter computed nan (float)"),
}


@pytest.mark.parametrize(("written", "computed", "words"), TYPES.values(), ids=TYPES)
def test_another_type_is_drift_even_if_the_value_is_equal(value_of, written, computed, words):
    (difference,) = drift(value_of(written), computed)
    assert difference.startswith("value: ")
    assert words in difference


@pytest.mark.parametrize(
    ("written", "computed"),
    [
        ("0.5", np.float32(0.5)),
        ("0.5", np.float64(0.5)),
        ("0.5", np.array(0.5)),
        ("0.5", torch.tensor(0.5)),
        ("0.5", torch.tensor(0.5, requires_grad=True)),
        ("0.5", torch.tensor(0.5, dtype=torch.bfloat16)),
        ("0.0", -0.0),
        ("-0.0", 0.0),
        ("2", np.int64(2)),
        ("2", torch.tensor(2)),
        ("108495360", 108495360),
        ("true", np.True_),
        ("true", torch.tensor(True)),
        ('"same"', np.str_("same")),
        ('""', ""),
    ],
)
def test_scalars_of_every_library(value_of, written, computed):
    assert compare(value_of(written), computed) == Comparison(1, [])


# -- Tables -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "computed",
    [
        FIT,
        tuple(map(tuple, FIT)),
        np.array(FIT),
        np.array(FIT, dtype=np.float32),
        np.array(FIT, dtype=object),
        np.array(FIT)[:, ::-1][:, ::-1],
        torch.tensor(FIT),
        torch.tensor(FIT, requires_grad=True),
        torch.tensor(FIT, dtype=torch.bfloat16),
        torch.nn.Parameter(torch.tensor(FIT)),
        [np.array(row) for row in FIT],
        [[torch.tensor(cell) for cell in row] for row in FIT],
    ],
    ids=lambda computed: type(computed).__name__,
)
def test_tables_of_every_library(record_of, computed):
    comparison = compare(record_of(MATRIX), computed)
    assert comparison.differences == []
    assert comparison.compared == 6


def test_a_bfloat16_result_has_no_four_decimals(record_of):
    weights = torch.tensor([[0.2442, 0.2573]])
    record = record_of(MATRIX.replace("= 2", "= 4").partition("rows")[0] + "rows = [[0.2442, 0.2573]]")
    assert drift(record, weights) == []
    assert len(drift(record, weights.bfloat16())) == 2


SHAPES = {
    "a row for the table": ([0.25, 0.5], "(2,)"),
    "a row to broadcast": ([[0.25, 0.5]], "(1, 2)"),
    "a column to broadcast": (np.array(FIT)[:, :1], "(3, 1)"),
    "transposed": (np.array(FIT).T, "(2, 3)"),
    "a missing row": (FIT[:2], "(2, 2)"),
    "an extra row": ([*FIT, FIT[0]], "(4, 2)"),
    "an extra column": (np.zeros((3, 3)), "(3, 3)"),
    "flat": (np.array(FIT).ravel(), "(6,)"),
    "a short row": ([[0.25, 0.5], [0.75], [0.0, -0.5]], "rows of different lengths"),
    "a number among rows": ([[0.25, 0.5], 0.75, [0.0, -0.5]], "rows of different lengths"),
    "no rows": ([], "(0,)"),
    "a number": (0.25, "float"),
    "a text": ("0.25", "str"),
    "a generator": (zip(*FIT, strict=True), "zip"),
    "a dict": (dict(enumerate(FIT)), "dict"),
    "nothing": (None, "NoneType"),
}


@pytest.mark.parametrize(("computed", "shape"), SHAPES.values(), ids=SHAPES)
def test_another_shape_is_drift(record_of, computed, shape):
    comparison = compare(record_of(MATRIX), computed)
    assert [str(difference) for difference in comparison.differences] == [
        f"shape (rows, columns): the record has (3, 2), the chapter computed {shape}"
    ]
    assert comparison.compared == 0


@given(array_shapes(min_dims=0, max_dims=4, max_side=4).filter(lambda shape: shape != (3, 2)))
def test_no_other_shape_agrees(record_of, shape):
    constant = record_of(MATRIX.partition("rows")[0] + "rows = [[0.25, 0.25], [0.25, 0.25], [0.25, 0.25]]")
    assert drift(constant, np.full(shape, 0.25)) != []


def test_a_cell_that_is_itself_a_row_is_drift(record_of):
    computed = np.array(FIT)[..., None]  # (3, 2, 1) has the right number of rows and columns
    assert len(drift(record_of(MATRIX), computed)) == 6


def test_every_cell_that_drifted_is_named_with_its_row_and_column(record_of):
    comparison = compare(record_of(MATRIX), [[0.25, math.nan], [0.76, 1.0], [0.0, 1]])
    assert [(d.cell, str(d)) for d in comparison.differences] == [
        ((0, 1), "row 'pos 0', column 'pos 1': the record has 0.50 (float), the chapter computed nan (float)"),
        ((1, 0), "row 'pos 1', column 'pos 0': the record has 0.75, the chapter computed 0.76, difference 1.0e-2"),
        ((2, 1), "row 'pos 2', column 'pos 1': the record has −0.50 (float), the chapter computed 1 (int)"),
    ]


@pytest.mark.parametrize(
    "computed", [[[12, True], [2, False]], [("heads", 12, True), ("layers", 2, False)]], ids=["without", "with labels"]
)
def test_labels_may_be_given_or_left_out(record_of, computed):
    comparison = compare(record_of(NAMED), computed)
    assert comparison.differences == []
    assert comparison.compared == 4  # neither the labels nor what is only cited


def test_given_labels_are_compared(record_of):
    assert drift(record_of(NAMED), [("heads", 12, True), ("layer", 2, False)]) == [
        "row 'layers', column 'name': the record has 'layers' (str), the chapter computed 'layer' (str)"
    ]


def test_cited_cells_are_not_computed(record_of):
    assert drift(record_of(NAMED), [("heads", 12, 16, True), ("layers", 2, 24, False)]) == [
        "shape (rows, columns): the record has (2, 2), the chapter computed (2, 4)"
    ]


# -- The source's mistakes ----------------------------------------------------------------


def test_the_mistake_is_recomputed_too(record_of):
    comparison = compare(record_of(ERRATUM), 0.5, 0.05)
    assert (comparison.compared, comparison.differences) == (2, [])


@pytest.mark.parametrize(
    ("mistaken", "words"),
    [
        (0.5, "the source's mistake: the record has 0.05, the chapter computed 0.5, difference 4.5e-1"),
        (None, "the source's mistake: the record has 0.05 (float), the chapter computed None (NoneType)"),
        (torch.tensor([0.05]), "the source's mistake: the record has 0.05 (float), the chapter computed ["),
    ],
)
def test_another_mistake_is_drift(record_of, mistaken, words):
    (difference,) = compare(record_of(ERRATUM), 0.5, mistaken).differences
    assert str(difference).startswith(words)
    assert difference.cell == (0, 1)


def test_both_values_are_compared_with_their_own(record_of):
    assert len(drift(record_of(ERRATUM), 0.05, 0.5)) == 2


def test_a_needless_mistake_is_drift(value_of):
    (difference,) = drift(value_of("0.5"), 0.5, 0.05)
    assert difference == "the source's mistake: the record has None (NoneType), the chapter computed 0.05 (float)"


@pytest.mark.parametrize(("text", "computed"), [(MATRIX, FIT), (CLAIM, {"after": 0.1, "before": 0.5})])
def test_a_mistake_that_no_place_is_for(record_of, text, computed):
    with pytest.raises(TypeError, match="only the record of one value takes `mistaken`"):
        compare(record_of(text), computed, mistaken=0.05)


# -- Claims -----------------------------------------------------------------------------

MARGIN = "margin by which after is less than before: the record has 0.4, the chapter computed "
CLAIMS = {
    "the margin": ({"after": 0.1, "before": 0.5}, None),
    "more than the margin": ({"after": 0.0, "before": 0.499}, None),
    "in binary a little less": ({"after": 0.3, "before": 0.7}, None),
    "of tensors": ({"before": torch.tensor(0.7), "after": np.float32(0.3)}, None),
    "too strong": ({"after": 0.1, "before": 0.49999}, MARGIN + "0.3999"),
    "too weak": ({"after": 0.25, "before": 0.75}, MARGIN + "0.5000"),
    "far too weak": ({"after": 0, "before": 4}, MARGIN + "4.000"),
    "the wrong way round": ({"after": 0.5, "before": 0.1}, MARGIN + "-0.4000"),
    "equal": ({"after": 0.5, "before": 0.5}, MARGIN + "0.000000"),
    "NaN": ({"after": math.nan, "before": 0.5}, "after: the record has a finite number, the chapter computed nan"),
    "infinity": (
        {"after": 0.1, "before": math.inf},
        "before: the record has a finite number, the chapter computed inf",
    ),
    "a bool": ({"after": False, "before": 0.5}, "after: the record has a finite number, the chapter computed False"),
    "a text": ({"after": 0.1, "before": "0.5"}, "before: the record has a finite number, the chapter computed '0.5'"),
    "a list": ({"after": [0.1], "before": 0.5}, "after: the record has a finite number, the chapter computed [0.1]"),
    "another key": ({"After": 0.1, "before": 0.5}, "the record has a dict with the keys 'after' and 'before', the"),
    "a missing key": ({"before": 0.5}, "the record has a dict with the keys 'after' and 'before', the chapter"),
    "a key too many": ({"after": 0.1, "before": 0.5, "between": 0.3}, "the record has a dict with the keys"),
    "the gap itself": (0.4, "the record has a dict with the keys 'after' and 'before', the chapter computed 0.4"),
    "a pair": ((0.1, 0.5), "the record has a dict with the keys 'after' and 'before', the chapter computed [0.1, 0.5]"),
}


@pytest.mark.parametrize(("sides", "words"), CLAIMS.values(), ids=CLAIMS)
def test_a_claim_holds_by_exactly_its_margin(record_of, sides, words):
    comparison = compare(record_of(CLAIM), sides)
    assert len(comparison.differences) == (words is not None)
    assert all(words in str(difference) for difference in comparison.differences)
    measured = words is None or words.startswith(MARGIN)
    assert comparison.compared == bool(comparison.measured) == measured
    assert all(difference.cell == ((0, 0) if measured else None) for difference in comparison.differences)


def test_a_claim_keeps_what_was_measured(record_of):
    assert compare(record_of(CLAIM), {"after": 0.1, "before": 0.567}).measured == ("0.10", "0.57")
    assert compare(record_of(CLAIM.replace("0.4", "20")), {"after": 1, "before": 22.5}).measured == ("1", "22")


@given(st.integers(1, 9), st.floats(0.02, 0.98), st.integers(-4, 3), st.floats(-1000, 1000), st.integers(1, 9))
def test_the_margin_is_the_gap_rounded_down_to_one_digit(record_of, digit, rest, exponent, after, other):
    sides = {"after": after, "before": after + (digit + rest) * 10**exponent}
    claimed = record_of(CLAIM.replace("0.4", f"{Decimal(other).scaleb(exponent):f}"))
    assert (drift(claimed, sides) == []) == (digit == other)


# -- Records that no chapter computes -------------------------------------------------------


def test_a_statement_has_no_values(record_of):
    statement = ERRATUM.partition("value")[0] + 'cites = ["devlin2019bert"]'
    with pytest.raises(TypeError, match="a statement has no values to compare"):
        compare(record_of(statement), 1)


def test_what_is_cited_is_never_computed(record_of):
    cited = 'title = "The batch"\nverdict = "cited"\ncites = ["a"]\nvalue = 256\nagain = "256"'
    with pytest.raises(TypeError, match="'The batch' is cited: no chapter computes it"):
        compare(record_of(cited), 256)
