"""Turns a published report into a numbered docutils table (or a line) of the book."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging

from bookkit.cells import read_cells
from bookkit.compare import Comparison
from bookkit.ledger import Entry, load_ledger
from bookkit.record import Record, Table, source_words
from bookkit.reports import Report, report_from, source_link
from bookkit.show import Grid, grid_of, mark_of, sentence_of
from bookkit.verdicts import verdict_box
from bookkit.verify import MIME, describe_drift

log = logging.getLogger(__name__)
LATEX_LINE = 90  # characters of a table that fit beside each other on a page


class ReportRenderer:
    """The MyST-NB plug-in for reports. It runs once for each verify call, when a chapter is read."""

    mime_priority_overrides = [("*", MIME, 1)]

    @staticmethod
    def handle_mime(renderer, data, inline: bool) -> list[nodes.Element] | None:
        if inline or data.mime_type != MIME:
            return None
        published = data.content if isinstance(data.content, dict) else json.loads(data.string)
        return show_report(renderer.renderer, published, data.cell_index)


def show_report(mdit, published: dict[str, Any], cell_index: int) -> list[nodes.Element]:
    """Keep the report, warn of drift at the line of the verify call, and show the record."""
    env = mdit.sphinx_env
    ledger = load_ledger(Path(env.config.bookkit_ledger))
    text = env.doc2path(env.docname).read_text(encoding="utf-8")
    first_line = next(cell.first_line for cell in read_cells(text) if cell.index == cell_index)
    report = report_from(published, env.docname, first_line + published["line"] - 1)
    entry, values = ledger[report.id], ledger.values_of(report.id)
    env.get_domain("record").add_report(report)
    if not report.ok:
        warn_of_drift(entry, values, report)
    return show_record(Parser(mdit, report.line), entry, values, report.comparison)


def warn_of_drift(entry: Entry, values: Entry, report: Report) -> None:
    log.warning(
        "%s",
        describe_drift(entry, values, report.comparison),
        location=(report.document, report.line),
        type="bookkit",
        subtype="drift",
    )


class Parser:
    """Parses the records' own words as MyST, in the document that is being read."""

    def __init__(self, mdit, line: int):
        self.mdit, self.line = mdit, line

    @property
    def docname(self) -> str:
        return self.mdit.sphinx_env.docname

    def inline(self, text: str) -> list[nodes.Node]:
        holder = nodes.paragraph()
        holder.source, holder.line = self.mdit.document["source"], self.line
        with self.mdit.current_node_context(holder):
            self.mdit.nested_render_text(text, self.line, inline=True)
        return holder.children

    def target(self, node: nodes.Element, name: str) -> None:
        """Make the node a target of that name, so that `numref` and links find it."""
        node["names"].append(nodes.fully_normalize_name(name))
        node.source, node.line = self.mdit.document["source"], self.line
        self.mdit.document.note_explicit_target(node, node)


def show_record(parser: Parser, entry: Entry, values: Entry, comparison: Comparison) -> list[nodes.Element]:
    """The record's table or line, its mark, its note, and its verdict if the source is disputed."""
    record = entry.record
    body = nodes.container(classes=["record", "drift" if comparison.differences else "checked"])
    if isinstance(values.record, Table):
        body += build_table(parser, entry, values.record, comparison)
    else:
        line = nodes.paragraph("", "", *parser.inline(record.title), nodes.Text(": "))
        line += nodes.strong("", sentence_of(values.record, comparison))
        anchor = nodes.target()  # LaTeX has no label for the id of a paragraph
        parser.target(anchor, entry.id)
        body += [anchor, line]
    body += nodes.container(
        "",
        mark_paragraph(parser, record, values.record, comparison),
        classes=["record-mark"],
    )
    if record.note:
        body += nodes.container(
            "",
            nodes.paragraph("", "", *parser.inline(record.note)),
            classes=["record-note"],
        )
    if record.disputed:
        body += verdict_box(record, parser.docname, parser.inline)
    return [body]


def mark_paragraph(parser: Parser, record: Record, values: Record, comparison: Comparison) -> nodes.paragraph:
    """The quiet line under a record, with the source as a link."""
    sign = "\N{HEAVY EXCLAMATION MARK SYMBOL}" if comparison.differences else "\N{CHECK MARK}"
    mark = f"{sign} {mark_of(record, values, comparison)}"
    if not record.confirmed_source:
        return nodes.paragraph("", mark)
    before, _, after = mark.partition(source_words(record.confirmed_source))
    return nodes.paragraph(
        "",
        "",
        nodes.Text(before),
        source_link(record.confirmed_source, parser.docname),
        nodes.Text(after),
    )


def build_table(parser: Parser, entry: Entry, values: Table, comparison: Comparison) -> list[nodes.Element]:
    """The grid as a docutils table with number, caption and target."""
    grid = grid_of(values, comparison.differences)
    column_spec = addnodes.tabular_col_spec(spec=latex_columns(grid))
    table = nodes.table(classes=["colwidths-auto"], align="center")
    table.source, table.line = parser.mdit.document["source"], parser.line
    title = nodes.title(entry.record.title, "", *parser.inline(entry.record.title))
    title.source, title.line = table.source, table.line
    table += [title, build_group(grid)]
    parser.target(table, entry.id)
    return [column_spec, table]


def build_group(grid: Grid, cell: Callable[[int, int], nodes.Node] | None = None) -> nodes.tgroup:
    """The columns and rows of a table. ``cell(i, j)`` gives the content of a cell, if not its text."""
    group = nodes.tgroup(cols=len(grid.header))
    for j in range(len(grid.header)):
        group += nodes.colspec(colwidth=100 // len(grid.header), stub=1 if j < grid.label_columns else 0)
    texts = [[nodes.paragraph("", text) for text in row] for row in (grid.header, *grid.rows)]
    if cell:
        texts[1:] = [[cell(i, j) for j in range(len(row))] for i, row in enumerate(grid.rows)]
    rows = [build_row(grid, row) for row in texts]
    group += [nodes.thead("", rows[0]), nodes.tbody("", *rows[1:])]
    return group


def build_row(grid: Grid, cells: list[nodes.Node]) -> nodes.row:
    sides = ["text-right" if number else "text-left" for number in grid.numeric]
    entries = (nodes.entry("", cell, classes=[side]) for cell, side in zip(cells, sides, strict=True))
    return nodes.row("", *entries, support_smartquotes=False)  # a value is shown as it is


def latex_columns(grid: Grid) -> str:
    """LaTeX's columns: as wide as their content, or in proportion to it where that might not fit the page.

    >>> latex_columns(Grid(["name", "n"], [["a", "1"]], 1, [False, True]))
    'lr'
    """
    widths = [max(len(line[j]) for line in (grid.header, *grid.rows)) for j in range(len(grid.header))]
    if max(widths) * len(widths) <= LATEX_LINE:  # Sphinx gives no column more than its equal share
        return "".join("r" if number else "l" for number in grid.numeric)
    return "".join(rf"\X{{{width}}}{{{sum(widths)}}}" for width in widths)
