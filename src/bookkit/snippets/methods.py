"""Methods that a program may do without: those that fetch their code only when they are called."""

import ast
import copy
import re
from functools import cache
from itertools import groupby

from bookkit.snippets.edit import Source
from bookkit.snippets.names import Import
from bookkit.snippets.package import Definition, Package

Method = ast.FunctionDef | ast.AsyncFunctionDef
DECORATORS = {"classmethod", "staticmethod", "property", "cached_property"}  # what others do, nobody knows
EMPTY = rb"(?:[ \t]*\n)*"
COMMENTS = rb"(?:[ \t]*#.*\n)*"


def words_of(code: ast.AST) -> frozenset[str]:
    """Every word by which code could ask for a method: attributes, names, and texts, for getattr and the like.

    >>> sorted(words_of(ast.parse("getattr(model, 'save')(folder.parent)")))
    ['folder', 'getattr', 'model', 'parent', 'save']
    """
    words = set()
    for node in ast.walk(code):
        match node:
            case ast.Attribute(attr=word) | ast.Name(id=word) | ast.Constant(value=str(word)):
                words.add(word)
    return frozenset(words)


@cache
def optional_methods(package: Package, definition: Definition) -> tuple[Method, ...]:
    """The methods of a class whose bodies import from the package, except those that Python calls by itself."""
    body = definition.node.body if isinstance(definition.node, ast.ClassDef) else []
    return tuple(
        method
        for method in body
        if isinstance(method, Method)
        and not re.fullmatch("__.*__", method.name)
        and {ast.unparse(decorator) for decorator in method.decorator_list} <= DECORATORS
        and any(isinstance(node, Import) and package.imports_from(node) for node in ast.walk(method))
    )


def without(node: ast.stmt, left_out: list[Method]) -> ast.stmt:
    """A class without some of its methods. What is left stands where it stood."""
    if not left_out:
        return node
    rest = copy.copy(node)
    rest.body = [statement for statement in node.body if statement not in left_out] or [ast.Pass()]
    return rest


def take_out(source: Source, node: ast.ClassDef, left_out: list[Method]) -> None:
    """Remove methods from the text of their class, with the comments that speak of them and the space around them."""
    runs = [(out, list(run)) for out, run in groupby(node.body, key=left_out.__contains__)]
    for i, (out, run) in enumerate(runs):
        if not out:
            continue
        before = runs[i - 1][1][-1].end_lineno if i else node.lineno
        first = min(part.lineno for part in (run[0], *run[0].decorator_list)) - 1
        above = source.text[source.starts[before] : source.starts[first]]
        # What stands after the last statement speaks of no other.
        theirs = EMPTY + COMMENTS if i < len(runs) - 1 else rb"(?:[ \t]*(?:#.*)?\n)*"
        start = source.starts[first] - len(re.search(rb"(?m:^)" + theirs + rb"\Z", above)[0])
        comments_inside = rb"(?:" + EMPTY + rb"[ \t]{%d}[ \t]+#.*\n)*" % run[-1].col_offset
        end = source.after(source.starts[run[-1].end_lineno], comments_inside + (b"" if i else EMPTY))
        source.replace(start, end, "" if len(runs) > 1 else " " * run[0].col_offset + "pass\n")
