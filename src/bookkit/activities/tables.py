"""The kinds made from a record's rows: fill-table and step.

Accessibility: each field is named after its column and row; marks are words beside it, and the count is told. The
buttons of `step` stay in place and keep the focus; the arrow keys work on them, and the number of the row is told.
Fallback: without a script, the fields can be typed into and the filled table opens; all rows are shown with what is
said of them. On paper, blank cells, and the choices below if there are any; `step` is the table, and what is said of
its rows stands in the appendix.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes

from bookkit.activities.directive import (
    HINTS,
    LONGEST,
    ActivityDirective,
    Fault,
    Number,
    button,
    details,
    index_of,
    quoted,
    reasons,
)
from bookkit.activities.tree import Activity, tag
from bookkit.render import build_group, latex_columns
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
        grid, labels = self.table(activity)
        if "without" in self.options:
            grid = without(grid, self.options["without"].split(";"))
        if ("column" in self.options) == ("cells" in self.options):
            raise Fault("name either the blank `:column:` or the blank `:cells:`")
        if "column" in self.options:
            blanks = [(i, index_of(self.options["column"], grid.header, "column")) for i in range(len(labels))]
        else:
            blanks = [cell_of(grid, labels, cell) for cell in self.options["cells"].split(";")]
        for i, j in blanks:
            if not grid.rows[i][j].strip():
                raise Fault(f"the cell {labels[i]!r}, {grid.header[j]!r} is empty, so nobody can fill it in")
        activity["grid"], activity["blanks"] = grid, blanks
        activity["choices"] = sorted({grid.rows[i][j] for i, j in blanks}) if "choose" in self.options else []

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        grid, blanks = activity["grid"], activity["blanks"]

        def cell(i: int, j: int) -> nodes.Node:
            return blank_field(activity, i, j) if (i, j) in blanks else nodes.paragraph("", grid.rows[i][j])

        buttons = tag("div", button("Check all", "check"), button("Reveal all", "reveal"), class_="activity-buttons")
        return [table(grid, cell), buttons]

    @classmethod
    def revealed(cls, activity: Activity) -> list[nodes.Node]:
        filled = details("answer", [nodes.Text("The filled table")], [table(activity["grid"])])
        return [filled, *super().revealed(activity)]

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        grid, blanks = activity["grid"], activity["blanks"]
        shown = [[BLANK if (i, j) in blanks else cell for j, cell in enumerate(row)] for i, row in enumerate(grid.rows)]
        content = [*activity.prompt, *printed_table(replace(grid, rows=shown))]
        if activity["choices"]:
            content.append(nodes.paragraph("", f"Choose from: {' · '.join(activity['choices'])}."))
        return content

    @classmethod
    def solution(cls, activity: Activity) -> list[nodes.Node]:
        return [*printed_table(activity["grid"]), *super().solution(activity)]


class Step(ActivityDirective):
    """The rows of a record, one at a time, with the author's words on each."""

    heading = "Step"
    needs: ClassVar = {"hint": HINTS, "row": Number(1), "answer": Number(0, 1)}
    option_spec: ClassVar = {"record": directives.unchanged_required}

    def complete(self, activity: Activity) -> None:
        activity["grid"], labels = self.table(activity)
        rows = activity.parts("row")
        for row in rows:
            index_of(row.name, labels, "row", row)
        if [row.name for row in rows] != labels:
            raise Fault(f"say something on every row, in the record's order: {quoted(labels)}")

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        comments = (
            tag("li", tag("p", tag("strong", *row.label)), *row.body, data_row=i)
            for i, row in enumerate(activity.parts("row"))
        )
        buttons = tag("div", button("Previous row", "back"), button("Next row", "forward"), class_="activity-buttons")
        return [table(activity["grid"]), tag("ol", *comments, class_="activity-list activity-rows"), buttons]

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        return [*activity.prompt, *printed_table(activity["grid"])]

    @classmethod
    def solution(cls, activity: Activity) -> list[nodes.Node]:
        return reasons(activity.parts("row")) + super().solution(activity)


def without(grid: Grid, names: list[str]) -> Grid:
    """The grid without some of its columns.

    >>> without(Grid(["layer", "size", "rounded"], [["one", "768", "800"]], 1, [False, True, True]), ["rounded"])
    Grid(header=['layer', 'size'], rows=[['one', '768']], label_columns=1, numeric=[False, True])
    """
    left_out = {index_of(name.strip(), grid.header, "column") for name in names}
    kept = [j for j in range(len(grid.header)) if j not in left_out]
    labels = sum(j < grid.label_columns for j in kept)
    rows = [[row[j] for j in kept] for row in grid.rows]
    return Grid([grid.header[j] for j in kept], rows, labels, [grid.numeric[j] for j in kept])


def cell_of(grid: Grid, labels: list[str], cell: str) -> tuple[int, int]:
    row, comma, column = (part.strip() for part in cell.rpartition(","))
    if not comma:
        raise Fault(f"name a cell by its row and column, as in `:cells: row, column`, not {cell.strip()!r}")
    return index_of(row, labels, "row"), index_of(column, grid.header, "column")


def table(grid: Grid, cell: Callable[[int, int], nodes.Node] | None = None) -> nodes.table:
    """A table without number or caption. ``cell(i, j)`` gives the content of a cell, if not its text."""
    return nodes.table("", build_group(grid, cell), classes=["colwidths-auto", "activity-table"], align="center")


def printed_table(grid: Grid) -> list[nodes.Node]:
    """The same for paper: column widths that fit the page."""
    return [addnodes.tabular_col_spec(spec=latex_columns(grid)), table(grid)]


def blank_field(activity: Activity, i: int, j: int) -> nodes.Node:
    """The field for one blank cell, its mark, and the button that reveals it alone."""
    grid, choices = activity["grid"], activity["choices"]
    row = f"row {i + 1}" if (i, 0) in activity["blanks"] else grid.rows[i][0]
    name = f"{grid.header[j]}, {row}"
    attributes = {"data_answer": grid.rows[i][j], "aria_label": name, "autocomplete": "off"}
    if choices:
        options = [tag("option", "choose …", value=""), *(tag("option", text, value=text) for text in choices)]
        field = tag("select", *options, **attributes)
    else:
        field = tag("input", type="text", size=max(6, len(grid.rows[i][j])), maxlength=LONGEST, **attributes)
    mark = tag("span", class_="activity-mark")
    reveal = button("Reveal", "reveal-one", aria_label=f"Reveal: {name}")
    return tag("div", field, " ", mark, " ", reveal, class_="activity-cell")
