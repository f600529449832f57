"""The kinds made from a record's rows: fill-table and step."""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes

from bookkit.activities.directive import (
    HINTS,
    ActivityDirective,
    Fault,
    Number,
    button,
    details,
    reasons,
)
from bookkit.activities.tree import Activity, tag
from bookkit.render import latex_columns
from bookkit.show import Grid

BLANK = "_" * 8


class FillTable(ActivityDirective):
    """A record's table with a column blank, or with the cells that ``:cells: row, column; row, column`` names.

    ``:without: column; column`` leaves out columns that would give the answers away.
    """

    heading = "Fill in"
    needs: ClassVar = {"hint": HINTS, "answer": Number(0, 1)}
    option_spec: ClassVar = {
        "record": directives.unchanged_required,
        "column": directives.unchanged_required,
        "cells": directives.unchanged_required,
        "without": directives.unchanged_required,
        "choose": directives.flag,  # lists of choices instead of fields to type into
    }

    def complete(self, activity: Activity) -> None:
        if "record" not in self.options:
            raise Fault("name the table, as in `:record: some-id`")
        record, grid = self.table(self.options["record"])
        if "without" in self.options:
            grid = without(grid, self.options["without"].split(";"))
        labels = [record.row_label(i) for i in range(len(record.rows))]
        if ("column" in self.options) == ("cells" in self.options):
            raise Fault("name either the blank `:column:` or the blank `:cells:`")
        if "column" in self.options:
            blanks = [(i, column_of(grid, self.options["column"])) for i in range(len(labels))]
        else:
            blanks = [cell_of(grid, labels, cell) for cell in self.options["cells"].split(";")]
        activity["record"] = self.options["record"]
        activity["grid"], activity["blanks"], activity["choose"] = grid, blanks, "choose" in self.options

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        grid, blanks = activity["grid"], activity["blanks"]
        choices = sorted({grid.rows[i][j] for i, j in blanks}) if activity["choose"] else None

        def field(i: int, j: int) -> list[nodes.Node]:
            if (i, j) not in blanks:
                return [nodes.paragraph("", grid.rows[i][j])]
            return blank_field(grid, i, j, choices)

        filled = details("answer", [nodes.Text("The filled table")], [table(grid, text_of(grid))])
        buttons = tag("div", button("Check all", "check"), button("Reveal all", "reveal"), class_="activity-buttons")
        return [table(grid, field), buttons, filled]

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        grid, blanks = activity["grid"], activity["blanks"]
        shown = [[BLANK if (i, j) in blanks else cell for j, cell in enumerate(row)] for i, row in enumerate(grid.rows)]
        content = [*activity.prompt, *printed_table(grid, shown)]
        if activity["choose"]:
            content.append(
                nodes.paragraph("", f"Choose from: {' · '.join(sorted({grid.rows[i][j] for i, j in blanks}))}.")
            )
        return content

    @classmethod
    def solution(cls, activity: Activity) -> list[nodes.Node]:
        grid = activity["grid"]
        return [*printed_table(grid, grid.rows), *super().solution(activity)]


class Step(ActivityDirective):
    """The rows of a record, one at a time, with the author's words on each."""

    heading = "Step"
    needs: ClassVar = {"hint": HINTS, "row": Number(1), "answer": Number(0, 1)}
    option_spec: ClassVar = {"record": directives.unchanged_required}

    def complete(self, activity: Activity) -> None:
        if "record" not in self.options:
            raise Fault("name the table, as in `:record: some-id`")
        record, grid = self.table(self.options["record"])
        labels = [record.row_label(i) for i in range(len(record.rows))]
        rows = activity.parts("row")
        for row in rows:
            if row.name not in labels:
                raise Fault(f"the record has no row {row.name!r}; there are {', '.join(map(repr, labels))}", row)
        if [row.name for row in rows] != labels:
            raise Fault(f"say something on every row, in the record's order: {', '.join(map(repr, labels))}")
        activity["record"], activity["grid"] = self.options["record"], grid

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        grid = activity["grid"]
        comments = (
            tag("li", tag("p", tag("strong", *row.label)), *row.body, data_row=str(i))
            for i, row in enumerate(activity.parts("row"))
        )
        buttons = tag("div", button("Previous row", "back"), button("Next row", "forward"), class_="activity-buttons")
        return [table(grid, text_of(grid)), tag("ol", *comments, class_="activity-list activity-rows"), buttons]

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        return [*activity.prompt, *printed_table(activity["grid"], activity["grid"].rows)]

    @classmethod
    def solution(cls, activity: Activity) -> list[nodes.Node]:
        return reasons(activity.parts("row")) + super().solution(activity)


def without(grid: Grid, names: list[str]) -> Grid:
    """The grid without some of its columns.

    >>> without(Grid(["layer", "size", "rounded"], [["one", "768", "800"]], 1, [False, True, True]), ["rounded"])
    Grid(header=['layer', 'size'], rows=[['one', '768']], label_columns=1, numeric=[False, True])
    """
    left_out = {column_of(grid, name.strip()) for name in names}
    kept = [j for j in range(len(grid.header)) if j not in left_out]
    labels = sum(j < grid.label_columns for j in kept)
    rows = [[row[j] for j in kept] for row in grid.rows]
    return Grid([grid.header[j] for j in kept], rows, labels, [grid.numeric[j] for j in kept])


def column_of(grid: Grid, name: str) -> int:
    if name not in grid.header:
        raise Fault(f"the record has no column {name!r}; there are {', '.join(map(repr, grid.header))}")
    return grid.header.index(name)


def cell_of(grid: Grid, labels: list[str], cell: str) -> tuple[int, int]:
    row, comma, column = (part.strip() for part in cell.rpartition(","))
    if not comma:
        raise Fault(f"name a cell by its row and column, as in `:cells: row, column`, not {cell.strip()!r}")
    if row not in labels:
        raise Fault(f"the record has no row {row!r}; there are {', '.join(map(repr, labels))}")
    return labels.index(row), column_of(grid, column)


def text_of(grid: Grid):
    """For each cell of the grid, what `table` puts there: its text."""
    return lambda i, j: [nodes.paragraph("", grid.rows[i][j])]


def table(grid: Grid, cell) -> nodes.table:
    """A table without number or caption. ``cell(i, j)`` gives the content of a cell."""
    group = nodes.tgroup(cols=len(grid.header))
    for j in range(len(grid.header)):
        group += nodes.colspec(colwidth=100 // len(grid.header), stub=int(j < grid.label_columns))
    group += nodes.thead("", row_of(grid, [[nodes.paragraph("", name)] for name in grid.header]))
    rows = ([cell(i, j) for j in range(len(grid.header))] for i in range(len(grid.rows)))
    group += nodes.tbody("", *(row_of(grid, row) for row in rows))
    return nodes.table("", group, classes=["colwidths-auto", "activity-table"], align="center")


def row_of(grid: Grid, cells: list[list[nodes.Node]]) -> nodes.row:
    sides = ["text-right" if number else "text-left" for number in grid.numeric]
    entries = (nodes.entry("", *cell, classes=[side]) for cell, side in zip(cells, sides, strict=True))
    return nodes.row("", *entries, support_smartquotes=False)


def printed_table(grid: Grid, shown: list[list[str]]) -> list[nodes.Node]:
    """The same for paper: column widths that fit the page."""
    on_paper = Grid(grid.header, shown, grid.label_columns, grid.numeric)
    widths = latex_columns(on_paper, ["r" if number else "l" for number in grid.numeric])
    return [addnodes.tabular_col_spec(spec=widths), table(on_paper, text_of(on_paper))]


def blank_field(grid: Grid, i: int, j: int, choices: list[str] | None) -> list[nodes.Node]:
    """The field for one blank cell, its mark, and the button that reveals it alone."""
    name = f"{grid.header[j]}, row {i + 1}"
    attributes = {"data_answer": grid.rows[i][j], "aria_label": name, "autocomplete": "off"}
    if choices:
        options = [tag("option", "choose …", value=""), *(tag("option", text, value=text) for text in choices)]
        field = tag("select", *options, **attributes)
    else:
        field = tag("input", type="text", size=max(6, len(grid.rows[i][j])), **attributes)
    mark = tag("span", class_="activity-mark")
    reveal = button("Reveal", "reveal-one", aria_label=f"Reveal: {name}")
    return [tag("div", field, " ", mark, " ", reveal, class_="activity-cell")]
