"""Reads the book's package: what each of its modules defines, and where the names come from that it uses."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from bookkit.snippets.edit import ProgramError
from bookkit.snippets.names import Import, bound_by_import

Defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Library(NamedTuple):
    """What an import takes from outside the package: `from torch import nn` takes ("torch", "nn")."""

    module: str
    name: str | None  # None: the module itself

    def statement(self, alias: str) -> str:
        """The import that gives it this name."""
        if self.name:
            return f"from {self.module} import {self.name}" + (f" as {alias}" if alias != self.name else "")
        return f"import {self.module}" + (f" as {alias}" if alias != self.module else "")


class Submodule(NamedTuple):
    """A module of the package, imported as a whole."""

    name: str


@dataclass(frozen=True)
class Definition:
    """A function, a class or a constant at the top level of a module."""

    module: str
    name: str
    node: ast.stmt
    path: Path

    @property
    def place(self) -> str:
        return f"{self.path}:{self.node.lineno}"


Target = Library | Submodule | Definition


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str
    path: Path

    @cached_property
    def text(self) -> bytes:
        return self.path.read_bytes()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """What can be inlined, by name.

        Raises:
            ProgramError: if the module does anything else than import and define.
        """
        found: dict[str, Definition] = {}
        for node in self.tree.body:
            if isinstance(node, Import) or is_docstring(node) or is_main(node):
                continue
            names = defined_names(node)
            if not names:
                raise ProgramError(
                    f"{self.path}:{node.lineno}: a module that goes into programs may only import and define; "
                    f"found: {ast.unparse(node).splitlines()[0]}"
                )
            for name in names:
                if name in found:
                    raise ProgramError(f"{self.path}:{node.lineno}: {name} is defined twice: give one another name")
                found[name] = Definition(self.name, name, node, self.path)
        return found

    @cached_property
    def imports(self) -> list[Import]:
        """The imports at the top level."""
        return [node for node in self.tree.body if isinstance(node, Import)]


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_main(node: ast.stmt) -> bool:
    """Whether this is `if __name__ == "__main__":`, which no import runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def defined_names(node: ast.stmt) -> list[str]:
    """The names that a statement defines; none if it does anything else."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return [name]
        case ast.Assign(targets=[ast.Tuple(elts=targets)]) | ast.Assign(targets=targets):
            if all(isinstance(target, ast.Name) for target in targets):
                return [target.id for target in targets]
    return []


def library(node: Import, alias: ast.alias, place: str) -> Library:
    """What one name of an import takes from outside the package.

    Raises:
        ProgramError: for `import a.b` and `from a import *`, which do not say what they bind.
    """
    if isinstance(node, ast.ImportFrom) and alias.name != "*":
        return Library(node.module, alias.name)
    if isinstance(node, ast.Import) and (alias.asname or "." not in alias.name):
        return Library(alias.name, None)
    raise ProgramError(
        f"{place}: programs gather their imports: write `from a import b`, `import a` or `import a.b as c`; "
        f"found: {ast.unparse(node)}"
    )


class Package:
    """The package whose code goes into programs; without a name there is none.

    Args:
        source: the folder that holds it.
        name: its name.
        recorded: full names of functions that load recorded results, each with the folder of its results.
    """

    def __init__(self, source: Path, name: str, recorded: Mapping[str, Path] = MappingProxyType({})):
        self.source, self.name, self.recorded = source, name, recorded
        self.modules: dict[str, Module | None] = {}
        self.parts: dict[Any, Any] = {}  # what `inline` has read already

    def holds(self, module: str | None) -> bool:
        """Whether a module of this name belongs to the package."""
        return bool(self.name and module) and module.partition(".")[0] == self.name

    def imports_from(self, node: Import) -> bool:
        """Whether an import takes something from the package."""
        if isinstance(node, ast.Import):
            return any(self.holds(alias.name) for alias in node.names)
        return bool(node.level) or self.holds(node.module)

    def results_of(self, target: Target) -> Path | None:
        """The folder of the results that a function loads; None if this is no such function."""
        return self.recorded.get(f"{target.module}.{target.name}") if isinstance(target, Definition) else None

    def find(self, name: str) -> Module | None:
        """The module of this name, if there is one."""
        if name not in self.modules:
            path = self.source.joinpath(*name.split("."))
            files = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
            self.modules[name] = Module(name, files[0]) if files else None
        return self.modules[name]

    def imported(self, node: Import, place: str) -> dict[str, Target]:
        """What each name stands for that an import binds.

        Raises:
            ProgramError: for an import of the package that a program could not copy.
        """
        if not self.imports_from(node):
            return {alias.asname or alias.name: library(node, alias, place) for alias in node.names}
        if isinstance(node, ast.Import) or node.level or bound_by_import(node) == {"*"}:
            raise ProgramError(
                f"{place}: programs copy what they need from {self.name}: name it, as in "
                f"`from {self.name}.module import name`; found: {ast.unparse(node)}"
            )
        return {alias.asname or alias.name: self.resolve(node.module, alias.name, place) for alias in node.names}

    def resolve(self, module: str, name: str, place: str) -> Target:
        """What a name of a module of the package stands for, through any number of imports."""
        if self.find(f"{module}.{name}"):
            return Submodule(f"{module}.{name}")
        found = self.find(module)
        if found and (target := self.lookup(found, name)):
            return target
        raise ProgramError(f"{place}: {module} has no {name}")

    def lookup(self, module: Module, name: str) -> Target | None:
        """What a name at the top level of a module stands for; None if it is one of Python's own."""
        if name in module.definitions:
            return module.definitions[name]
        for node in module.imports:
            if name in bound_by_import(node):
                return self.imported(node, f"{module.path}:{node.lineno}")[name]
        return None
