"""The head of a program: what it is, what to install for it, and its imports, gathered."""

import ast
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from itertools import groupby

from bookkit.snippets.edit import ProgramError
from bookkit.snippets.package import Library

WIDTH = 88


def import_block(libraries: Iterable[tuple[Library, str]]) -> str:
    """The imports, each once: Python's own, then the others.

    >>> print(import_block([(Library("math", "pi"), "pi"), (Library("numpy", None), "np")]), end="")
    from math import pi
    <BLANKLINE>
    import numpy as np
    """
    libraries = set(libraries)
    own = {(library, name) for library, name in libraries if root(library.module) in sys.stdlib_module_names}
    return "\n".join(import_lines(group) for group in (own, libraries - own) if group)


def import_lines(libraries: set[tuple[Library, str]]) -> str:
    """The imports of modules, then those of names; a line a module."""
    modules = sorted((library.module, name) for library, name in libraries if library.name is None)
    lines = [f"import {module}" + (f" as {name}" if name != module else "") for module, name in modules]
    names = sorted((library.module, library.name, name) for library, name in libraries if library.name is not None)
    for module, group in groupby(names, key=lambda triple: triple[0]):
        taken = [own + (f" as {name}" if name != own else "") for _, own, name in group]
        line = f"from {module} import {', '.join(taken)}"
        lines.append(line if len(line) <= WIDTH else f"from {module} import (\n    " + ",\n    ".join(taken) + ",\n)")
    return "\n".join(lines) + "\n"


def root(module: str) -> str:
    """The package that a module belongs to."""
    return module.partition(".")[0]


def needed_libraries(blocks: Iterable[str], usual: Iterable[str]) -> list[str]:
    """What to install for a program, pinned to the versions of this build; empty if the usual libraries are enough.

    Raises:
        ProgramError: if a library comes from no distribution.

    >>> needed_libraries(["import math", "from os import path"], ["torch"])
    []
    """
    roots = frozenset().union(*map(imported_by, blocks)) - sys.stdlib_module_names
    if roots <= set(usual):
        return []
    distributions = {name for each in roots for name in distributions_of().get(each, [each])}
    try:
        # A local label such as "+cpu" is known to no public index.
        return sorted(f"{name.lower()}=={version(name).partition('+')[0]}" for name in distributions)
    except PackageNotFoundError as error:
        raise ProgramError(f"it imports {error.name}, which is not installed: nobody could install it") from error


@cache
def imported_by(block: str) -> frozenset[str]:
    """The packages that a block imports, be it inside a function."""
    roots = set()
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.Import):
            roots |= {root(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            roots.add(root(node.module))
    return frozenset(roots)


@cache
def distributions_of() -> dict[str, list[str]]:
    """Which installed distributions hold which package."""
    return dict(packages_distributions())
