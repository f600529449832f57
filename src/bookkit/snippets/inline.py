"""Copies what a program needs from the book's package into one flat text, in an order in which it runs."""

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bookkit.snippets.edit import ProgramError, Source
from bookkit.snippets.methods import Method, optional_methods, take_out, without, words_of
from bookkit.snippets.names import mentions
from bookkit.snippets.package import Definition, Library, Module, Package, Submodule, Target

# What a module knows of itself is not true of a program that holds a part of it.
OF_A_MODULE = {"__file__", "__name__", "__package__", "__path__", "__spec__", "__loader__", "globals", "__doc__"}
OF_ITS_FILE = {"getsource", "getsourcelines", "getsourcefile", "getmodule"}
LOADERS = {"importlib", "pkgutil", "runpy"}


class Link(NamedTuple):
    """A place in a definition's code that speaks of something at the top level of a module."""

    node: ast.AST  # an ast.Name or ast.Attribute; for what the definition itself defines, the definition
    name: str  # as it is written there
    target: Library | Definition


@dataclass(frozen=True)
class Part:
    """A definition with all that its code speaks of."""

    definition: Definition
    module: Module
    node: ast.stmt  # the definition's own, or a class without the methods that are left out
    left_out: list[Method]
    words: frozenset[str]  # see words_of
    links: list[Link]
    imports: list[ast.ImportFrom]  # of the package, inside a function: a program does without
    builtins: set[str]


def read_part(package: Package, definition: Definition, left_out: list[Method]) -> Part:
    """Find what a definition needs, if some of its methods are left out.

    Raises:
        ProgramError: if its code would mean something else in a program.
    """
    module, node = package.find(definition.module), without(definition.node, left_out)
    inner = [found for found in ast.walk(node) if isinstance(found, ast.Import | ast.ImportFrom)]
    inner = [found for found in inner if package.imports_from(found)]
    local = {name: target for found in inner for name, target in package.imported(found, definition.place).items()}
    attributes = {id(found.value): found for found in ast.walk(node) if isinstance(found, ast.Attribute)}
    refuse_what_knows_its_file(definition, node)
    links, plain = [], set()
    for mention in mentions(node, package.imports_from):
        target: Target | None = local.get(mention.name) or package.lookup(module, mention.name)
        place = mention.node
        if isinstance(target, Submodule):
            place = attributes.get(id(place))
            if place is None:
                raise ProgramError(f"{definition.place}: a program cannot hold {mention.name}, a module as a whole")
            target = package.resolve(target.name, place.attr, definition.place)
        if target is None:
            plain.add(mention.name)
        elif package.results_of(target):
            raise ProgramError(
                f"{definition.place}: {definition.name} cannot go into a program: it uses {mention.name}. "
                f'Write `{mention.name}("name of the result").values` in a cell, and hand that on'
            )
        elif isinstance(target, Submodule):
            raise ProgramError(f"{definition.place}: a program cannot hold {target.name}, a module as a whole")
        else:
            links.append(Link(place, ast.unparse(place) if isinstance(place, ast.Attribute) else mention.name, target))
    if wrong := (plain & OF_A_MODULE) | {n for n in plain if not hasattr(builtins, n)} - {definition.name}:
        raise ProgramError(f"{definition.place}: {definition.name} cannot go into a program: it uses {min(wrong)}")
    return Part(definition, module, node, left_out, words_of(node), links, inner, plain)


def refuse_what_knows_its_file(definition: Definition, code: ast.stmt) -> None:
    """No program is right that holds code which reads its own file, or writes to a global name."""
    for node in ast.walk(code):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in OF_ITS_FILE:
                found = name
            case ast.Import(names=[ast.alias(name=name), *_]) | ast.ImportFrom(module=str(name)):
                found = name if name.partition(".")[0] in LOADERS else None
            case ast.Global():
                found = ast.unparse(node)
            case _:
                continue
        if found:
            raise ProgramError(f"{definition.place}: {definition.name} cannot go into a program: it uses {found}")


def gather(package: Package, wanted: Iterable[Definition], words: Iterable[str] = ()) -> dict[Definition, Part]:
    """The parts that are wanted, and all that these need, in an order in which they run.

    Each module after those that it imports, and a module's parts as they stand in it.

    Args:
        package: the book's.
        wanted: what the program's cells import from it.
        words: those of the cells. A method that is optional is left out, if neither cells nor parts have its name.
    """
    wanted, known, words = list(wanted), None, frozenset(words)
    while words != known:  # a method that is needed may bring parts which need another
        parts, known = reach(package, wanted, words), words
        words = words.union(*(part.words for part in parts.values()))
    order = list(in_import_order(package, sorted({definition.module for definition in parts})))
    place = {d: (order.index(d.module), d.node.lineno) for d in parts}
    return {definition: parts[definition] for definition in sorted(parts, key=place.__getitem__)}


def reach(package: Package, wanted: Iterable[Definition], words: frozenset[str]) -> dict[Definition, Part]:
    """The parts that are wanted and all that these need, without the methods whose names are not among the words."""
    parts: dict[Definition, Part] = {}
    waiting = list(wanted)
    while waiting:
        definition = waiting.pop()
        if definition not in parts:
            parts[definition] = part = part_of(package, definition, words)
            waiting += [link.target for link in part.links if isinstance(link.target, Definition)]
    return parts


def part_of(package: Package, definition: Definition, words: frozenset[str]) -> Part:
    """A definition without the methods whose names are not among the words; read once."""
    left_out = [method for method in optional_methods(package, definition) if method.name not in words]
    key = definition, tuple(method.name for method in left_out)
    if key not in package.parts:
        package.parts[key] = read_part(package, definition, left_out)
    return package.parts[key]


def in_import_order(package: Package, names: Iterable[str]) -> Iterator[str]:
    """The modules and all that they import at their top level, the imported ones first."""
    done: set[str] = set()

    def visit(name: str) -> Iterator[str]:
        module = package.find(name)
        if name in done or module is None:
            return
        done.add(name)
        for node in module.imports:
            if package.imports_from(node):
                for inner in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    yield from visit(inner)
        yield name

    for name in names:
        yield from visit(name)


class Names:
    """Gives everything in a program one name; the page's own names come first, and those of Python stay Python's."""

    def __init__(self, taken: dict[str, Target | None]):
        # What a name stands for; None: something of the page's own, of Python, or of the program's head.
        self.taken = dict.fromkeys([*dir(builtins), "printed"]) | taken

    def give(self, target: Library | Definition, wanted: str) -> str:
        """A name for this target: the wanted one, or if that stands for something else, a longer one."""
        module = target.module if isinstance(target, Library) else target.module.rpartition(".")[2]
        longer = f"{module.replace('.', '_')}_{wanted}"
        while self.taken.get(wanted, target) != target:
            wanted, longer = longer, longer + "_"
        self.taken[wanted] = target
        return wanted


@dataclass(frozen=True)
class Inlined:
    """The package's share of a program."""

    libraries: set[tuple[Library, str]]  # with the name that each gets
    blocks: list[str]  # a definition each
    names: dict[Definition, str]  # under which name each can be used
    parts: list[Part]


def inline(
    package: Package, wanted: Iterable[Definition], taken: dict[str, Target | None], words: Iterable[str] = ()
) -> Inlined:
    """Everything that the wanted definitions need, as text.

    Args:
        package: the book's.
        wanted: what the program's cells import from it.
        taken: the names that the cells bind, with what they import under them, or None.
        words: those of the cells, see `gather`.
    """
    parts = gather(package, wanted, words)
    names = Names(taken)
    own = {definition: names.give(definition, definition.name) for definition in parts}
    libraries: set[tuple[Library, str]] = set()
    blocks: dict[ast.stmt, str] = {}  # `A, B = 1, 2` defines two names, and stands there once
    for part in parts.values():
        if hidden := sorted(name for name in part.builtins if name in taken):
            raise ProgramError(
                f"{part.definition.name} needs Python's own {hidden[0]}, but the page gives that name "
                "to something else: choose another name"
            )
        new_names = []
        for link in part.links:
            if isinstance(link.target, Library):
                new = names.give(link.target, link.name)
                libraries.add((link.target, new))
            else:
                new = own[link.target]
            new_names.append(new)
        blocks[part.definition.node] = text_of(part, new_names)
    return Inlined(libraries, list(blocks.values()), own, list(parts.values()))


def text_of(part: Part, new_names: list[str]) -> str:
    """The code of a part as it stands in its file, comments included, with the new names written in."""
    node, source = part.definition.node, Source(part.module.text)
    lines = part.module.text.splitlines()
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    while first > 1 and lines[first - 2].startswith(b"#"):
        first -= 1
    if part.left_out:
        take_out(source, node, part.left_out)
    for statement in part.imports:
        source.replace_lines(statement)
    for link, new in zip(part.links, new_names, strict=True):
        if new != link.name:
            refuse_capture(part, new)
            source.replace(*place_of_name(link, source), new)
    return source.edited(source.starts[first - 1], source.starts[node.end_lineno]).rstrip() + "\n"


def refuse_capture(part: Part, new: str) -> None:
    """A name that is written into a definition must not mean something of the definition's own there."""
    for node in ast.walk(part.node):
        if new in (getattr(node, "id", None), getattr(node, "arg", None)):
            raise ProgramError(
                f"{part.definition.place}: {part.definition.name} has a name {new} of its own: give it another"
            )


def place_of_name(link: Link, source: Source) -> tuple[int, int]:
    """Where a name stands."""
    start, name = source.start(link.node), link.name.encode()
    if not isinstance(link.node, ast.Name | ast.Attribute):
        start = source.after(start, rb"(async\s+)?(def|class)\s+")
    if source.text[start : start + len(name)] != name:
        # Inside an f-string, old versions of Python do not know where a name stands.
        raise ProgramError(f"{link.name} in an f-string cannot be renamed: take it out of there")
    return start, start + len(name)
