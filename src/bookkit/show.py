"""A checked record as a grid of printed cells, and that grid as plain text and HTML."""

from dataclasses import dataclass
from html import escape

from bookkit.compare import Comparison, Difference
from bookkit.record import Claim, Record, Table, Value, printed, source_words

NUMBER_WORDS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
)


@dataclass(frozen=True)
class Grid:
    """What a table shows: printed cells, and which columns are labels or numbers."""

    header: list[str]
    rows: list[list[str]]
    label_columns: int
    numeric: list[bool]


def grid_of(record: Table, differences: list[Difference]) -> Grid:
    """A table record as printed cells. A cell that drifted shows both values."""
    drifted = {d.cell: d for d in differences if d.cell}
    rows = [
        [show_cell(printed(cell), drifted.get((i, j))) for j, cell in enumerate(row)]
        for i, row in enumerate(record.rows)
    ]
    header = list(record.column_names)
    numeric = [all(not isinstance(row[j], str | bool) for row in record.rows) for j in range(len(header))]
    if record.matrix:
        rows = [[record.row_label(i), *row] for i, row in enumerate(rows)]
        return Grid([record.corner, *header], rows, 1, [False, *numeric])
    labels = 0
    while record.kinds[labels] == "label":
        labels += 1
    return Grid(header, rows, labels, numeric)


def show_cell(text: str, difference: Difference | None) -> str:
    return f"{text} \N{NOT EQUAL TO} {difference.computed} (computed)" if difference else text


def sentence_of(record: Value | Claim, comparison: Comparison) -> str:
    """A value or a claim in one line."""
    drift = comparison.differences
    if isinstance(record, Claim):
        less, than = (f" ({value})" for value in comparison.measured or ("not measured", "not measured"))
        broken = f" \N{NOT EQUAL TO} {drift[0].computed} (computed)" if drift else ""
        return f"{record.less}{less} is less than {record.than}{than} by at least {printed(record.margin)}{broken}"
    by_cell = {d.cell: d for d in drift}
    right = show_cell(printed(record.value), by_cell.get((0, 0)))
    if record.mistaken is None:
        return right
    return f"{right}; the source's mistake gives {show_cell(printed(record.mistaken), by_cell.get((0, 1)))}"


def mark_of(record: Record, values: Record, comparison: Comparison) -> str:
    """The quiet line under a checked record: what was compared with what."""
    source = record.confirmed_source
    against = source_words(source) if source else "the book's ledger"
    if comparison.differences:
        count = len(comparison.differences)
        what = "1 difference" if count == 1 else f"{count} differences"
        outside = "".join(f" {difference}." for difference in comparison.differences if difference.cell is None)
        return f"DRIFT: {what} between the values computed here and {against}.{outside}"
    if comparison.compared == 1:
        what = "Computed here; it agrees"
    else:
        what = f"{comparison.compared} values computed here; all agree"
    decimals = getattr(values, "decimals", None)
    places = f", to {NUMBER_WORDS[decimals]} decimal{'s' if decimals > 1 else ''}" if decimals else ""
    return f"{what} with {against}{places}."


def as_text(record: Record, values: Record, comparison: Comparison) -> str:
    """For a terminal: the caption, the aligned table, the mark.

    The caption is the record's own; the values may be those of the record it is the same as.
    """
    mark = mark_of(record, values, comparison)
    if not isinstance(values, Table):
        return f"{record.title}: {sentence_of(values, comparison)}\n{mark}"
    grid = grid_of(values, comparison.differences)
    lines = [grid.header, *grid.rows]
    widths = [max(len(line[j]) for line in lines) for j in range(len(grid.header))]
    aligned = [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, grid.numeric, strict=True)
        ).rstrip()
        for line in lines
    ]
    in_cells = [str(difference) for difference in comparison.differences if difference.cell]
    return "\n".join([record.title, *aligned, mark, *in_cells])


def as_html(record: Record, values: Record, comparison: Comparison) -> str:
    """For a live notebook: a plain table with its caption and mark."""
    mark = f"<p><small>{escape(mark_of(record, values, comparison))}</small></p>"
    if not isinstance(values, Table):
        return f"<p>{escape(record.title)}: {escape(sentence_of(values, comparison))}</p>{mark}"
    grid = grid_of(values, comparison.differences)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in grid.header)
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{escape(cell)}</th>' if j < grid.label_columns else f"<td>{escape(cell)}</td>"
            for j, cell in enumerate(row)
        )
        + "</tr>"
        for row in grid.rows
    )
    caption = f"<caption>{escape(record.title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{mark}"
