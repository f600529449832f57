"""Compares what a chapter computed with what the ledger prints, cell by cell."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any

from bookkit.record import Claim, Record, Table, Value, printed

# Added to half a unit of the last printed digit. CPU kernels differ by up to 1.2e-7 on this book's numbers.
# More slack would let a changed last digit pass, where a result lies close to the middle of two printed values.
SLACK = Decimal("2e-7")


@dataclass(frozen=True)
class Difference:
    """One thing that is not as recorded."""

    where: str
    recorded: str
    computed: str
    gap: str = ""
    cell: tuple[int, int] | None = None  # row and column in the record, where a single cell differs

    def __str__(self) -> str:
        gap = f", difference {self.gap}" if self.gap else ""
        return f"{self.where}: the record has {self.recorded}, the chapter computed {self.computed}{gap}"


@dataclass(frozen=True)
class Comparison:
    """How many values were compared, how they differ, and what a claim measured."""

    compared: int
    differences: list[Difference]
    measured: tuple[str, ...] = ()


def compare(record: Record, computed: Any, mistaken: Any = None) -> Comparison:
    """Hold computed values against a record that holds values (not an alias).

    Raises:
        TypeError: if no chapter can compute the record, or it has no place for a mistaken value.
    """
    if record.verdict == "cited":
        raise TypeError(f"{record.title!r} is cited: no chapter computes it")
    if mistaken is not None and not isinstance(record, Value):
        raise TypeError("only the record of one value takes `mistaken`; a table has a column for it")
    match record:
        case Table():
            return compare_table(record, to_plain(computed))
        case Value():
            return compare_value(record, to_plain(computed), to_plain(mistaken))
        case Claim():
            return compare_claim(record, to_plain(computed))
    raise TypeError(f"a {type(record).__name__.lower()} has no values to compare")


def to_plain(computed: Any) -> Any:
    """Tensors, arrays and their scalars as plain Python, without importing torch or NumPy."""
    if hasattr(computed, "tolist"):
        return computed.tolist()
    if isinstance(computed, Mapping):
        return {key: to_plain(value) for key, value in computed.items()}
    if isinstance(computed, list | tuple):
        return [to_plain(item) for item in computed]
    return computed


def compare_table(record: Table, rows: Any) -> Comparison:
    """The computed rows hold the compared columns; labels may be left out, or given and then compared too."""
    columns = record.compared_columns
    with_labels = [i for i, kind in enumerate(record.kinds) if kind != "cited"]
    if isinstance(rows, list) and rows and isinstance(rows[0], list) and len(rows[0]) == len(with_labels):
        columns = with_labels
    expected_shape = (len(record.rows), len(columns))
    if (shape := shape_of(rows)) != expected_shape:
        difference = Difference("shape (rows, columns)", str(expected_shape), str(shape))
        return Comparison(0, [difference])
    differences, compared = [], 0
    for i, row in enumerate(record.rows):
        for column, value in zip(columns, rows[i], strict=True):
            where = f"row {record.row_label(i)!r}, column {record.column_names[column]!r}"
            compared += record.kinds[column] != "label"
            differences += compare_cell(where, row[column], value, (i, column))
    return Comparison(compared, differences)


def compare_value(record: Value, value: Any, mistaken: Any) -> Comparison:
    differences = compare_cell("value", record.value, value, (0, 0))
    if record.mistaken is None and mistaken is None:
        return Comparison(1, differences)
    return Comparison(
        2,
        differences + compare_cell("the source's mistake", record.mistaken, mistaken, (0, 1)),
    )


def compare_cell(where: str, recorded: Any, value: Any, cell: tuple[int, int]) -> list[Difference]:
    """One cell: decimals within half a unit of the last printed digit, everything else exactly."""
    if isinstance(recorded, Decimal) and type(value) is float and math.isfinite(value):
        gap = abs(Decimal(value) - recorded)
        tolerance = Decimal(1).scaleb(recorded.as_tuple().exponent) / 2 + SLACK
        if gap <= tolerance:
            return []
        return [Difference(where, printed(recorded), repr(value), f"{gap:.1e}", cell)]
    if type(value) is type(recorded) and value == recorded:
        return []
    return [Difference(where, described(recorded), described(value), cell=cell)]


def described(value: Any) -> str:
    """A value with its type, for differences that are not only of size."""
    if isinstance(value, Decimal):
        return f"{printed(value)} (float)"
    return f"{value!r} ({type(value).__name__})"


def compare_claim(record: Claim, sides: Any) -> Comparison:
    """The gap between the two sides, rounded down to one significant digit, must be the margin."""
    if not isinstance(sides, dict) or set(sides) != {record.less, record.than}:
        expected = f"a dict with the keys {record.less!r} and {record.than!r}"
        return Comparison(0, [Difference("computed value", expected, repr(sides))])
    less, than = sides[record.less], sides[record.than]
    for name, side in sides.items():
        if type(side) not in (int, float) or not math.isfinite(side):
            return Comparison(0, [Difference(name, "a finite number", described(side))])
    gap = (Decimal(than) - Decimal(less)).quantize(Decimal("1e-6"))  # 0.7 - 0.3 is 0.4, not 0.39999999999999997
    where = f"margin by which {record.less} is less than {record.than}"
    places = max(1 - record.margin.as_tuple().exponent, 0)
    measured = (f"{less:.{places}f}", f"{than:.{places}f}")
    if round_down(gap) == record.margin:
        return Comparison(1, [], measured)
    return Comparison(1, [Difference(where, f"{record.margin:f}", f"{round_down(gap, 4):f}", cell=(0, 0))], measured)


def round_down(gap: Decimal, digits: int = 1) -> Decimal:
    """The gap to so many significant digits, towards zero.

    >>> round_down(Decimal("0.488")), round_down(Decimal("0.39999"), 4)
    (Decimal('0.4'), Decimal('0.3999'))
    """
    return gap.quantize(Decimal(1).scaleb(gap.adjusted() - digits + 1), rounding=ROUND_DOWN) if gap else gap


def shape_of(rows: Any) -> tuple[int, ...] | str:
    """The shape of nested lists, or a word for what has none.

    >>> shape_of([[1, 2], [3, 4], [5, 6]]), shape_of(3), shape_of([[1], [2, 3]])
    ((3, 2), 'int', 'rows of different lengths')
    """
    if not isinstance(rows, list):
        return type(rows).__name__
    if not any(isinstance(row, list) for row in rows):
        return (len(rows),)
    widths = {len(row) if isinstance(row, list) else None for row in rows}
    return (len(rows), *widths) if len(widths) == 1 else "rows of different lengths"
