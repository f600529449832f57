"""Makes the program of a cell: the cells that it needs, what these need of the package, and a print for each verify."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bookkit.cells import MAGIC, Cell, recorded_ids
from bookkit.snippets.edit import ProgramError, Source
from bookkit.snippets.files import Shelf, outermost
from bookkit.snippets.gather import import_block, needed_libraries
from bookkit.snippets.inline import Part, inline
from bookkit.snippets.methods import words_of
from bookkit.snippets.names import Import
from bookkit.snippets.package import Definition, Library, Package, Target
from bookkit.snippets.recorded import write_values
from bookkit.snippets.slice import Facts, Observed, needed

WHOLE_PAGE = "whole-page"  # the tag of a cell whose program holds all earlier cells of its page
PRINTED = '''\
def printed(value, *more):
    """Print the value, and hand it on."""
    print(value, *more)
    return value
'''


@dataclass(frozen=True)
class Book:
    """What the programs of a book have in common."""

    title: str
    package: Package
    usual: tuple[str, ...]  # the libraries that a reader is taken to have
    shelf: Shelf


@dataclass(frozen=True)
class Program:
    """A program, in pieces: the programs of a page share most of them."""

    cell: int  # the cell that it is made for, as MyST-NB counts
    line: int  # of the page, on which that cell begins
    file: str
    pieces: tuple[str, ...]
    printed: str  # what it prints
    pictures: tuple[str, ...]  # a hash of each figure that it saves
    reads: tuple[str, ...]  # files and folders of the book that must lie in the folder in which it runs
    short: "Program | None" = None  # what it would be if its cell had no tag

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class Page:
    """The code cells of a page, and what was observed when they ran."""

    name: str
    title: str
    cells: list[Cell]
    observed: list[Observed]

    @cached_property
    def facts(self) -> list[Facts]:
        return [Facts(cell.tree, seen) for cell, seen in zip(self.cells, self.observed, strict=True)]

    def slug(self, i: int) -> str:
        """What the cell is about: its figure, its record, or at least its page."""
        figure = (self.cells[i].config.get("figure") or {}).get("name")
        return figure or next(iter(recorded_ids([self.cells[i]])), self.name.rpartition("/")[2])


def program_of(book: Book, page: Page, i: int) -> Program:
    """The program of the code cell at this index.

    Raises:
        ProgramError: if no right program can be made.
    """
    if WHOLE_PAGE in page.cells[i].tags:
        whole = program_from(book, page, list(range(i + 1)))
        return replace(whole, short=program_from(book, page, needed(i, page.facts)))
    return program_from(book, page, needed(i, page.facts))


def program_from(book: Book, page: Page, kept: list[int]) -> Program:
    """The program that holds these code cells, of which the last is the one that it is made for."""
    i = kept[-1]
    read = {name for j in kept for name in page.facts[j].reads}
    targets: dict[str, Target] = {}
    for cell in page.cells[: i + 1]:
        targets |= {name: target for name, target in imported(book.package, cell).items() if name in read}
    own = {name: None for j in kept for name in page.facts[j].binds}
    loaders = {name: folder for name, target in targets.items() if (folder := book.package.results_of(target))}
    definitions = [t for name, t in targets.items() if isinstance(t, Definition) and name not in loaders]
    libraries = {(target, name) for name, target in targets.items() if isinstance(target, Library)}
    words = frozenset().union(*(words_of(page.cells[j].tree) for j in kept))
    inlined = inline(book.package, definitions, {**own, **targets}, words)
    bodies = [body_of(page.cells[j], page.observed[j], page.slug(j), loaders) for j in kept]
    renamed = {name: inlined.names[target] for name, target in targets.items() if target in inlined.names}
    blocks = [import_block(inlined.libraries | libraries), *inlined.blocks]
    blocks += [f"{name} = {own}\n" for name, own in renamed.items() if name != own]
    if any("printed(" in body for body in bodies):
        if "printed" in {**own, **targets}:
            raise ProgramError("a program calls its own function printed here: give yours another name")
        blocks.append(PRINTED)
    blocks += [f"# -- Cell {j + 1} {'-' * 60}\n\n{body}" for j, body in zip(kept, bodies, strict=True) if body.strip()]
    pieces = list(with_space_between([block for block in blocks if block]))
    file = f"{i + 1:02}-{page.slug(i)}.py"
    reads = outermost(files_named(book.shelf, [page.cells[j] for j in kept], inlined.parts))
    return Program(
        page.cells[i].index,
        page.cells[i].first_line,
        file,
        ("\n".join(header(book, page, i, pieces) + note_on_files(page.name, file, reads)) + "\n", *pieces),
        "".join(page.observed[j].printed for j in kept),
        tuple(picture for j in kept for picture in page.observed[j].pictures),
        reads,
    )


def files_named(shelf: Shelf, cells: list[Cell], parts: list[Part]) -> Iterator[str]:
    """The files of the book that a program names, in its cells and in what it holds of the package."""
    for cell in cells:
        yield from shelf.named_in(cell.tree, lambda node, cell=cell: f"line {cell.line(node)}")
    for part in parts:
        if any(map(shelf.holds, part.words)):  # few do, and a program has a hundred parts
            yield from shelf.named_in(part.node, lambda node, path=part.definition.path: f"{path}:{node.lineno}")


def header(book: Book, page: Page, i: int, pieces: list[str]) -> list[str]:
    """What a program is, and what to install for it."""
    lines = [
        f'# Cell {i + 1} of the page "{page.title}" of {book.title}, as a program that runs alone:',
        "# what it needs of the page's earlier cells and of the book's own package is copied into it.",
    ]
    if install := needed_libraries(pieces, book.usual):
        lines += ["# Install what it imports:", f"#     python -m pip install {' '.join(install)}"]
    return lines


def note_on_files(page: str, file: str, reads: tuple[str, ...]) -> list[str]:
    """How to run a program that reads files of the book."""
    if not reads:
        return []
    return [
        f"# It reads what the archive of this page's programs, {page.rpartition('/')[2]}.zip, holds beside them:",
        *(f"#     {name}" for name in reads),
        "# Unpack the archive, and in the folder where you did so:",
        f"#     python {page}/{file}",
    ]


def imported(package: Package, cell: Cell) -> dict[str, Target]:
    """What the names stand for that a cell imports, verify left out.

    Raises:
        ProgramError: for an import that a program could not gather or copy.
    """
    if not cell.tree.body and MAGIC.search(cell.source):
        raise ProgramError(f"line {cell.first_line}: a program cannot hold IPython's commands (% and !)")
    found: dict[str, Target] = {}
    for node in ast.walk(cell.tree):
        if not isinstance(node, Import) or is_of_bookkit(node):
            continue
        place = f"line {cell.line(node)}"
        if node in cell.tree.body:
            found |= package.imported(node, place)
        elif package.imports_from(node):
            raise ProgramError(f"{place}: import from {package.name} at the top level of the cell")
    for name, target in found.items():
        if not isinstance(target, Library | Definition):
            raise ProgramError(f"line {cell.first_line}: import what you need of {name}, not the module as a whole")
    return found


def is_of_bookkit(node: Import) -> bool:
    """Whether this is the import of verify, in whose place a program has print."""
    return isinstance(node, ast.ImportFrom) and node.module == "bookkit"


def body_of(cell: Cell, seen: Observed, slug: str, loaders: Mapping[str, Path]) -> str:
    """The cell's code without its imports; it prints what the cell shows, and holds the results that the cell loads."""
    source = Source(cell.source.encode())
    for node in cell.tree.body:
        if isinstance(node, Import):
            source.replace_lines(node)
    statements = [node.value for node in ast.walk(cell.tree) if isinstance(node, ast.Expr)]
    for call in cell.verify_calls():
        print_instead(source, call, "print" if call in statements else "printed")
    if loaders:
        write_values(source, cell, loaders)
    if seen.shown != "nothing":
        show(source, cell.tree.body[-1].value, f"{slug}.png" if seen.shown == "figure" else None)
    text = source.edited()
    closed_up = re.sub(r"\n{4,}", "\n\n\n", text)  # where imports stood
    same = ast.dump(ast.parse(closed_up)) == ast.dump(ast.parse(text))  # no text of the cell has such a gap
    return (closed_up if same else text).strip("\n") + "\n"


def print_instead(source: Source, call: ast.Call, function: str) -> None:
    """Make `print(value)` of `verify("id", value)`."""
    record = call.args[0]
    source.replace(source.start(call.func), source.end(call.func), function)
    source.replace(source.start(record), source.after(source.end(record), rb"\s*,[ \t]*(\n[ \t]*(?=\S))?"), "")
    for keyword in call.keywords:
        source.replace(source.start(keyword), source.after(source.start(keyword), rb"\w+\s*=\s*"), "")


def show(source: Source, value: ast.expr, picture: str | None) -> None:
    """Print the value of a cell's last line, or save it, if it is a figure."""
    if picture is None:
        brackets = 1 + isinstance(value, ast.Tuple)
        source.insert_around(value, "print" + "(" * brackets, ")" * brackets)
    elif isinstance(value, ast.Call | ast.Name):
        source.insert_around(value, "", f'.savefig("{picture}")')
    else:
        source.insert_around(value, "(", f').savefig("{picture}")')


def with_space_between(blocks: list[str]) -> Iterator[str]:
    """Two empty lines around functions, classes and cells; fewer between constants."""
    after_large = False
    for block in blocks:
        large = bool(re.search(r"^(@|def |class |async |# --)", block, re.MULTILINE))
        yield ("\n\n" if large or after_large else "\n") + block
        after_large = large
