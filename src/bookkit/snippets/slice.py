"""Which earlier cells a cell needs, to compute what it computes on the page.

Names alone are not enough: layers and dropout draw random numbers, and `optimizer.step()` changes a model
through another name. So the state of each random generator counts as a variable: a cell whose run changes it
uses and defines it, and a cell that begins with a full reseed only defines it. A cell whose run changes an
earlier object defines the names that reach it. Both were observed while the page ran (see `observe`).
"""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bookkit.snippets.names import Import, bound_by_import, mentions

RESEEDS = {
    "torch.manual_seed": "torch",
    "np.random.seed": "numpy",
    "numpy.random.seed": "numpy",
    "random.seed": "random",
}
# A cell that asks for a generator's state may put it back, and so seem to have drawn nothing.
ASKS_FOR_STATE = {
    "fork_rng": "torch",
    "get_rng_state": "torch",
    "initial_seed": "torch",
    "get_state": "numpy",
    "getstate": "random",
}
HARMLESS = {*RESEEDS, "torch.set_num_threads"}  # how many threads there are decides only how long it takes
STRAIGHT = ast.Assign | ast.AnnAssign | ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Observed:
    """What happened when a cell ran on its page."""

    source: str
    shown: str = "nothing"  # by its last line: "nothing", "figure" or "value"
    pictures: list[str] = field(default_factory=list)  # a hash of each figure
    printed: str = ""  # what a program prints that does the same
    changed: list[str] = field(default_factory=list)  # names whose earlier object holds something else now
    rebound: list[str] = field(default_factory=list)  # names that stand for another object now
    unseen: list[str] = field(default_factory=list)  # names whose object hides what it holds
    reads: dict[str, list[str]] = field(default_factory=dict)  # what functions reached from a name read, before the run
    draws: list[str] = field(default_factory=list)  # generators whose state is another now
    settings: list[str] = field(default_factory=list)  # libraries whose settings are others now


class Facts:
    """What a slice must know of a cell: from its code, and from its run."""

    def __init__(self, tree: ast.Module, observed: Observed):
        self.reads: set[str] = set()
        self.uses: set[str] = set()  # read before this cell gives them a value
        self.binds: set[str] = set(observed.rebound) - imported_names(tree)
        # A program gathers the imports that it needs.
        statements = [node for node in tree.body if not isinstance(node, Import)]
        self.sure = self.take_in(statements, set())  # given a value, whatever happens
        self.functions = observed.reads
        self.changes = set(observed.changed)
        # One object may stand behind several names, or go on when another does.
        if not with_functions(self.reads | self.binds, self).isdisjoint(observed.unseen):
            self.changes |= set(observed.unseen)
        self.reseeds = reseeds(tree)
        self.draws = set(observed.draws) | self.reseeds | asks_for_state(tree)
        self.sets = bool(observed.settings) or sets_what_it_imports(tree)

    def take_in(self, statements: Iterable[ast.stmt], sure: set[str]) -> set[str]:
        """Note what some statements read and bind, one after the other.

        Args:
            sure: names that have a value from this cell already.

        Returns:
            the names that have one afterwards.
        """
        sure = set(sure)
        for node in statements:
            match node:
                case ast.With() | ast.AsyncWith():
                    self.note(node.items, sure)
                    sure = self.take_in(node.body, sure | bound_by(node.items))
                case ast.For() | ast.AsyncFor():
                    self.note([node.iter, node.target], sure)
                    self.take_in(node.body, sure | bound_by([node.target]))
                    self.take_in(node.orelse, sure)
                case ast.If() | ast.While():
                    self.note([node.test], sure)
                    self.take_in(node.body, sure)
                    self.take_in(node.orelse, sure)
                case ast.Try():
                    self.take_in([*node.body, *node.orelse], sure)
                    for handler in node.handlers:
                        self.note([handler.type], sure)
                        self.binds |= {handler.name} - {None}
                        self.take_in(handler.body, sure | {handler.name})
                    self.take_in(node.finalbody, sure)
                case _:
                    bound = self.note([node], sure)
                    sure |= bound if isinstance(node, STRAIGHT) else set()
        return sure

    def note(self, nodes: Iterable[ast.AST | None], sure: set[str]) -> set[str]:
        """Note what a piece of code mentions; the names that it binds."""
        found = [mention for node in nodes if node for mention in mentions(node)]
        read = {m.name for m in found if not m.binds}
        bound = {m.name for m in found if m.binds}
        self.reads |= read
        self.uses |= read - sure
        self.binds |= bound
        return {m.name for m in found if m.binds and not m.deferred}


def bound_by(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that a piece of code binds."""
    return {m.name for node in nodes for m in mentions(node) if m.binds}


def sets_what_it_imports(tree: ast.Module) -> bool:
    """Whether a cell calls or changes what it imports, only for an effect: nobody saw how that was before."""
    imported = imported_names(tree)
    for statement in tree.body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute() as function)):
                name = ast.unparse(function)
                if name.partition(".")[0] in imported and re.fullmatch(r"[\w.]+", name) and name not in HARMLESS:
                    return True
            case (
                ast.Assign(targets=[ast.Attribute() | ast.Subscript() as target, *_])
                | ast.AugAssign(target=ast.Attribute() | ast.Subscript() as target)
            ) if re.match(r"\w*", ast.unparse(target))[0] in imported:
                return True
    return False


def imported_names(tree: ast.Module) -> set[str]:
    """The names that the imports at a cell's top level bind."""
    return {name for node in tree.body if isinstance(node, Import) for name in bound_by_import(node)}


def reseeds(tree: ast.Module) -> set[str]:
    """The generators that a cell seeds anew before it does anything else than define functions."""
    found = set()
    for statement in tree.body:
        if isinstance(statement, Import) or is_plain_definition(statement):
            continue
        match statement:
            case ast.Expr(value=ast.Call(func=function) as call) if ast.unparse(function) in RESEEDS:
                if any(isinstance(node, ast.Call) for seed in call.args for node in ast.walk(seed)):
                    break  # the seed may have been drawn
                found.add(RESEEDS[ast.unparse(function)])
            case _:
                break
    return found


def asks_for_state(tree: ast.Module) -> set[str]:
    """The generators whose state a cell asks for."""
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {ASKS_FOR_STATE[name] for name in names & ASKS_FOR_STATE.keys()}


def is_plain_definition(statement: ast.stmt) -> bool:
    """A function whose definition runs nothing: no decorator, and only constants as defaults."""
    if not isinstance(statement, ast.FunctionDef) or statement.decorator_list:
        return False
    return all(isinstance(d, ast.Constant | None) for d in (*statement.args.defaults, *statement.args.kw_defaults))


def needed(index: int, facts: list[Facts]) -> list[int]:
    """The cells that the cell at this index needs, itself included, in the page's order.

    >>> page = ["a = 1", "b = 2", "a.grow()", "print(a)"]
    >>> changes = [[], [], ["a"], []]
    >>> facts = [Facts(ast.parse(s), Observed(s, changed=c)) for s, c in zip(page, changes)]
    >>> needed(3, facts)
    [0, 2, 3]
    """
    kept = [index]
    names = with_functions(facts[index].uses, facts[index])
    streams = facts[index].draws - facts[index].reseeds
    for j in reversed(range(index)):
        cell = facts[j]
        if not ((cell.binds | cell.changes) & names or cell.draws & streams or cell.sets):
            continue
        kept.append(j)
        used = with_functions(cell.uses, cell)
        names = (names - (cell.sure - used)) | used
        streams = (streams | cell.draws) - cell.reseeds
    return kept[::-1]


def with_functions(names: set[str], cell: Facts) -> set[str]:
    """These names, and those that are read when functions run which a cell can reach through them."""
    reached: set[str] = set()
    waiting = set(names)
    while waiting:
        reached |= waiting
        waiting = {read for name in waiting for read in cell.functions.get(name, ())} - reached
    return reached
