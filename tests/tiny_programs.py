"""Programs made of the cells of a page that a test writes down."""

import contextlib
import io
import textwrap
from pathlib import Path

from bookkit.cells import read_cells
from bookkit.snippets.files import Shelf
from bookkit.snippets.package import Package
from bookkit.snippets.program import Book, Page, Program, program_of
from bookkit.snippets.slice import Observed

HEADER = (
    "---\njupytext:\n  text_representation:\n    format_name: myst\nkernelspec:\n  name: python3\n---\n\n# A page\n"
)


NO_FILES = Shelf(Path())


def run(source: str, space: dict) -> str:
    """Run a cell; what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(source, space)
    return printed.getvalue()


def page_of(*sources: str, shown: tuple[str, ...] = (), options: tuple[str, ...] = ()) -> Page:
    """A page of these cells, none of which does anything that only its run shows."""
    options = options or ("",) * len(sources)
    cells = [
        f"\n```{{code-cell}} ipython3\n{o}{textwrap.dedent(s).strip()}\n```\n"
        for o, s in zip(options, sources, strict=True)
    ]
    found = read_cells(HEADER + "".join(cells))
    shown = shown or ("nothing",) * len(found)
    seen = [Observed(c.source, shown=s, printed=f"{i}\n") for i, (c, s) in enumerate(zip(found, shown, strict=True))]
    return Page("chapter/one", "A page", found, seen)


def program(package: Package, page: Page, i: int = -1, shelf: Shelf = NO_FILES) -> Program:
    """The program of one of its cells."""
    return program_of(Book("The Book", package, ("torch", "numpy"), shelf), page, i % len(page.cells))
