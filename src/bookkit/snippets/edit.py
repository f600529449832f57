"""Changes source code at the places that its syntax tree names, and leaves all else as it was typed."""

import ast
import re
from functools import cached_property


class ProgramError(Exception):
    """No right program can be made; the message says why, and what to do."""


class Source:
    """A text with changes waiting to be made. Places count bytes, as `ast` does.

    >>> source = Source(b"x = y")
    >>> name = ast.parse("x = y").body[0].value
    >>> source.insert_around(name, "f(", ")")
    >>> source.edited()
    'x = f(y)'
    """

    def __init__(self, text: bytes):
        self.text = text
        self.edits: set[tuple[int, int, str]] = set()

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins."""
        return [0, *(match.end() for match in re.finditer(rb"\n", self.text)), len(self.text)]

    def start(self, node: ast.AST) -> int:
        """Where a node begins."""
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.AST) -> int:
        """Where a node ends."""
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def after(self, place: int, pattern: bytes) -> int:
        """The end of what matches at a place.

        Raises:
            ProgramError: if something else stands there.
        """
        if match := re.compile(pattern).match(self.text, place):
            return match.end()
        line = self.text[:place].count(b"\n")
        found = self.text[self.starts[line] : self.starts[line + 1]].decode().strip()
        raise ProgramError(f'write this plainly, as in `verify("id", value)`, and comments elsewhere: {found}')

    def replace(self, start: int, end: int, new: str) -> None:
        """Put something else between two places."""
        self.edits.add((start, end, new))

    def insert_around(self, node: ast.AST, before: str, after: str) -> None:
        """Put something before a node and after it."""
        self.replace(self.start(node), self.start(node), before)
        self.replace(self.end(node), self.end(node), after)

    def replace_lines(self, node: ast.stmt, new: str = "") -> None:
        """Put something else in place of a statement that has its lines to itself."""
        start, end = self.starts[node.lineno - 1], self.starts[node.end_lineno]
        if (
            not re.fullmatch(rb"[ \t]*(#.*)?\s*", self.text[self.end(node) : end])
            or self.text[start : self.start(node)].strip()
        ):
            raise ProgramError(f"give this statement a line of its own: {ast.unparse(node)}")
        self.replace(start, end, new)

    def edited(self, first: int = 0, last: int | None = None) -> str:
        """What stands between two places, with every change made."""
        text = self.text[:last]
        # From the end to the beginning, so that what stands before keeps its place.
        for start, end, new in sorted(self.edits, reverse=True):
            text = text[:start] + new.encode() + text[end:]
        return text[first:].decode()
