"""A hash of the code that made a result: of what was reached, and of nothing else."""

import ast
import hashlib
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

PACKAGE = "bertbook"
SOURCE = Path(__file__).parents[2]  # the folder that holds the package


class Piece(NamedTuple):
    """A statement at the top level of a module.

    >>> Piece("bertbook.tiny", "F", "F = 2", frozenset(), ()).text
    'F = 2'
    """

    module: str
    name: str  # what it defines; several names are joined, none is ""
    text: str  # without comments, docstrings and empty lines
    mentions: frozenset[str]  # every name that it speaks of
    files: tuple[Path, ...]  # the data beside the module that it names

    @property
    def key(self) -> str:
        """Under which name it is hashed; imports and other statements together."""
        if self.name and not self.imports:
            return f"{self.module}.{self.name.replace(' ', ',')}"
        return self.module

    @property
    def imports(self) -> bool:
        """Whether it is an import; one from the package has no text."""
        return not self.text or self.text.startswith(("from ", "import "))

    def may_mean(self, other: "Piece") -> bool:
        """Whether a name that the other defines can mean the other in this piece.

        What a module imports, others can only have by importing it from there.
        """
        return self.module == other.module or not other.imports or not self.text


def code_hashes(module: str, *, source: Path = SOURCE) -> dict[str, str]:
    """A hash of each definition that the code of a module can reach in the package.

    All of the module itself counts, and of each module that it imports, directly or
    not, what is mentioned by something that counts. A name is looked for everywhere,
    so rather too much counts than too little. What is said *about* the code
    (comments, docstrings) does not count. A data file counts that is named in the
    code by its path from the module.

    Args:
        module: a dotted name, such as "bertbook.experiments.pretrain".
        source: the folder that holds the package.

    Returns:
        for each dotted name, and each file, the first 12 digits of a SHA-256. What a
        module imports from elsewhere counts under its own name, if it is used.

    Raises:
        ValueError: if there is no such module.

    >>> hashes = code_hashes("bertbook.optimizers")
    >>> list(hashes)
    ['bertbook.optimizers', 'bertbook.optimizers.adam_updates', \
'bertbook.optimizers.parameter_groups']
    >>> {len(digest) for digest in hashes.values()}
    {12}
    """
    pieces, defining = [], defaultdict(list)  # all, and those that define a name
    for name in imported_modules(module, source):
        for piece in read_pieces(name, source):
            pieces.append(piece)
            for defined in piece.name.split():
                defining[defined].append(piece)
    waiting = [piece for piece in pieces if piece.module == module or not piece.name]
    reached: set[Piece] = set()
    while waiting:
        piece = waiting.pop()
        if piece not in reached:
            reached.add(piece)
            meant = chain.from_iterable(defining[name] for name in piece.mentions)
            waiting += [other for other in meant if piece.may_mean(other)]
    texts: dict[str, bytes] = {}
    for piece in pieces:
        if piece in reached and piece.text:
            texts[piece.key] = texts.get(piece.key, b"") + piece.text.encode()
            for file in piece.files:
                texts[file.relative_to(source).as_posix()] = file.read_bytes()
    return {key: hashlib.sha256(texts[key]).hexdigest()[:12] for key in sorted(texts)}


def module_file(module: str, source: Path) -> Path | None:
    """Where a module's code stands; None if there is no such module.

    >>> module_file("bertbook.check", SOURCE).name
    '__init__.py'
    """
    path = source.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def imported_modules(module: str, source: Path) -> list[str]:
    """The module, and all of the package that importing and calling it may import.

    >>> imported_modules("bertbook.schedules", SOURCE)
    ['bertbook', 'bertbook.schedules']
    """
    if module_file(module, source) is None:
        raise ValueError(f"module must be one of {PACKAGE}'s, got {module!r}")
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = module_file(name, source)
        if name in found or file is None or name.split(".")[0] != PACKAGE:
            continue
        found.add(name)
        waiting.append(name.rpartition(".")[0] or name)  # its package runs first
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                waiting.append(node.module)
                waiting += [f"{node.module}.{alias.name}" for alias in node.names]
    return sorted(found)


def read_pieces(module: str, source: Path) -> list[Piece]:
    """The statements at the top level of a module.

    >>> [piece.name for piece in read_pieces("bertbook.schedules", SOURCE)]
    ['math', 'linear_warmup_decay', 'count_steps']
    """
    file = module_file(module, source)
    text = file.read_text("utf-8")
    tree = ast.parse(text)
    lines = without_comments(text)
    for start, end in docstring_lines(tree):
        lines[start - 1 : end] = [None] * (end - start + 1)
    pieces = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            pieces += list(imported_pieces(module, node))
            continue
        first = min([node.lineno, *(d.lineno for d in decorators(node))])
        kept = [line for line in lines[first - 1 : node.end_lineno] if line is not None]
        if kept:
            names = " ".join(sorted(defined_names(node)))
            files = tuple(named_files(node, file.parent))
            text = "\n".join(kept) + "\n"
            pieces.append(Piece(module, names, text, frozenset(mentioned(node)), files))
    return pieces


def imported_pieces(module: str, node: ast.Import | ast.ImportFrom) -> Iterator[Piece]:
    """A piece for each name that an import binds.

    What is imported from the package has no text: its definition counts instead.

    >>> node = ast.parse("from torch import Tensor, nn").body[0]
    >>> [piece.text for piece in imported_pieces("bertbook.tiny", node)]
    ['from torch import Tensor', 'from torch import nn']
    """
    start = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        bound = alias.asname or alias.name.partition(".")[0]
        if (getattr(node, "module", None) or alias.name).split(".")[0] == PACKAGE:
            yield Piece(module, bound, "", frozenset(mentioned(alias)), ())
        else:
            text = f"{start}import {ast.unparse(alias)}"
            yield Piece(module, bound, text, frozenset(), ())


def without_comments(text: str) -> list[str | None]:
    """The lines of a text; None where there was nothing, or only a comment.

    >>> without_comments("a = 1  # one\\n\\n# two\\n")
    ['a = 1', None, None]
    """
    lines: list[str | None] = text.splitlines()
    said = {}  # the columns in which the lines begin to say something
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        row, column = token.start
        if token.type == tokenize.COMMENT:
            lines[row - 1] = lines[row - 1][:column].rstrip()
        elif token.type != tokenize.NL:
            said |= dict.fromkeys(range(row, token.end[0] + 1), True)
    return [line if said.get(row) else None for row, line in enumerate(lines, start=1)]


def docstring_lines(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """The first and the last line of each docstring that has its lines to itself.

    >>> list(docstring_lines(ast.parse("def f():\\n    'What it does.'\\n")))
    [(2, 2)]
    """
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            said = node.body[0]
            if isinstance(node, ast.Module) or said.lineno > node.lineno:
                yield said.lineno, said.end_lineno


def decorators(node: ast.stmt) -> list[ast.expr]:
    """What is written above a function or class.

    >>> len(decorators(ast.parse("@cache\\ndef f(): pass").body[0]))
    1
    """
    return getattr(node, "decorator_list", [])


def defined_names(node: ast.stmt) -> set[str]:
    """The names that a statement gives a meaning to.

    >>> sorted(defined_names(ast.parse("A, B = 1, 2").body[0]))
    ['A', 'B']
    """
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    stored = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return {n.id for n in stored if isinstance(n.ctx, ast.Store)}


def mentioned(node: ast.AST) -> Iterator[str]:
    """Every name that a statement speaks of, whatever it means there.

    >>> sorted(mentioned(ast.parse("from a.b import c as d\\ne.f(g)").body[0]))
    ['c', 'd']
    """
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr
        elif isinstance(inner, ast.alias):
            yield from inner.name.split(".")
            yield inner.asname or inner.name


def named_files(node: ast.stmt, folder: Path) -> Iterator[Path]:
    """The files beside a module that a statement names in a string.

    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "text.txt").write_text("Once upon a time")
    >>> node = ast.parse("a, b = 'text.txt', 'no.txt'").body[0]
    >>> [file.name for file in named_files(node, folder)]
    ['text.txt']
    """
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            name = inner.value
            plain = 0 < len(name) < 200 and name.isprintable() and ".." not in name
            if plain and not name.endswith(".py") and (folder / name).is_file():
                yield folder / name
