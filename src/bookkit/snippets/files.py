"""Files of the book that a program reads: its code names them, and the archives hold them where it looks for them."""

import ast
import posixpath
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from bookkit.fingerprint import is_of_a_tool
from bookkit.snippets.edit import ProgramError


class Shelf(NamedTuple):
    """Where programs find files."""

    root: Path  # the book's folder, in which chapters run
    folders: tuple[str, ...] = ()  # those below it whose files programs may name

    def holds(self, text: str) -> bool:
        """Whether a text begins as the path of a file does that programs may read."""
        return text.startswith(tuple(f"{folder}/" for folder in self.folders))

    def named_in(self, code: ast.AST, place_of: Callable[[ast.AST], str]) -> set[str]:
        """The files and folders that texts in a piece of code name, such as "results/model".

        Args:
            code: the code. What is no more than a docstring names nothing.
            place_of: tells where a node stands.

        Raises:
            ProgramError: if there is no such file, or only a run could tell which one it is.
        """
        texts, unused, joined = [], set(), set()
        for node in ast.walk(code):
            match node:
                case ast.Constant(value=str()):
                    texts.append(node)
                case ast.Expr(value=ast.Constant() as text):
                    unused.add(text)
                case ast.JoinedStr(values=values):
                    joined.update(values)
        found = [text for text in texts if text not in unused and self.holds(text.value)]
        return {self.checked(text.value, text in joined, place_of(text)) for text in found}

    def checked(self, text: str, goes_on: bool, place: str) -> str:
        """The path that a text is, without what means nothing in it."""
        name, folder = posixpath.normpath(text), text.partition("/")[0]
        if goes_on or name == folder:
            raise ProgramError(
                f"{place}: a program must say which files of {folder}/ it reads, so that they can lie beside it: "
                f"write the whole path, as one text; found: {text!r}"
            )
        if not name.startswith(f"{folder}/"):
            raise ProgramError(f"{place}: {text!r} is not in {folder}/")
        if not (self.root / name).exists():
            raise ProgramError(f"{place}: there is no {text!r} in the book's folder, {self.root}")
        return name

    def files(self, names: Iterable[str]) -> dict[str, Path]:
        """Every file that these names stand for, in an order of their own; what tools leave is no file."""
        found = {}
        for path in (self.root / name for name in names):
            inner = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
            found |= {file.relative_to(self.root).as_posix(): file for file in inner}
        return {name: found[name] for name in sorted(found) if not any(map(is_of_a_tool, name.split("/")))}


def outermost(names: Iterable[str]) -> tuple[str, ...]:
    """The names without those that lie in a folder which is named, too.

    >>> outermost(["results/b", "results/a/weights", "results/a"])
    ('results/a', 'results/b')
    """
    names = set(names)
    return tuple(sorted(name for name in names if not any(name.startswith(f"{other}/") for other in names)))
