"""The code cells of a chapter, with the line at which each stands in its file."""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook

MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """One code cell."""

    index: int  # among all cells of the notebook, as MyST-NB counts them
    source: str
    first_line: int  # the line of the file on which the source begins, from 1
    tags: tuple[str, ...]
    config: dict  # the cell's own `mystnb` settings

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed source, magics left out; a cell that is not Python counts as empty."""
        for source in (self.source, MAGIC.sub(r"\1pass", self.source)):
            with suppress(SyntaxError):
                return ast.parse(source)
        return ast.Module(body=[], type_ignores=[])

    def line(self, node: ast.AST) -> int:
        """The line of the file on which a node of the tree stands."""
        return self.first_line + node.lineno - 1

    def verify_calls(self) -> Iterator[ast.Call]:
        """Every call of verify in the cell."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "verify":
                yield node


def read_cells(text: str) -> list[Cell]:
    """The code cells of a chapter's text; a page that is no notebook has none.

    >>> read_cells("# A page without code")
    []
    """
    if not is_myst_markdown_notebook(text):
        return []
    notebook = read_myst_markdown_notebook(text, add_source_map=True)
    lines = text.splitlines()
    return [
        Cell(
            index,
            cell.source,
            first_line_of(cell.source.splitlines(), lines, start),
            tuple(cell.metadata.get("tags", [])),
            dict(cell.metadata.get("mystnb") or {}),
        )
        for index, (cell, start) in enumerate(zip(notebook.cells, notebook.metadata["source_map"], strict=True))
        if cell.cell_type == "code"
    ]


def first_line_of(source: list[str], lines: list[str], start: int) -> int:
    """Where the source begins at or after `start`: a cell's options stand before it."""
    for first in range(start, len(lines)):
        if lines[first : first + len(source)] == source:
            return first + 1
    return start + 1


def recorded_ids(cells: list[Cell]) -> list[str]:
    """The ids that the cells verify, as far as they are written out."""
    calls = (call for cell in cells for call in cell.verify_calls())
    return [
        call.args[0].value
        for call in calls
        if call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    ]
