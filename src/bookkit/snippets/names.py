"""Which module-level names a piece of code mentions: it reads them or binds them, at once or when it is called."""

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Import = ast.Import | ast.ImportFrom


class Mention(NamedTuple):
    """One place where code reads or binds a module-level name."""

    name: str
    node: ast.AST  # an ast.Name, or what binds the name: a definition, an import, a pattern
    binds: bool
    deferred: bool  # stands in a function's body (or in a generator): it happens when that runs


def mentions(code: ast.AST, is_transparent: Callable[[Import], bool] = lambda node: False) -> list[Mention]:
    """Every mention of a module-level name, a value before the name that it is given to.

    Args:
        code: a module, a statement or an expression, seen from module level.
        is_transparent: says of an import inside a function that it makes no local name.

    >>> [(m.name, m.binds, m.deferred) for m in mentions(ast.parse("x = a + [b for b in c]"))]
    [('a', False, False), ('c', False, False), ('x', True, False)]
    >>> [(m.name, m.binds, m.deferred) for m in mentions(ast.parse("def f(y=d): return y + e"))]
    [('d', False, False), ('e', False, True), ('f', True, False)]
    """
    return list(Walk(is_transparent).visit(code, Scope()))


class Scope(NamedTuple):
    """The names that are local where the walk stands."""

    local: frozenset[str] = frozenset()
    in_class: frozenset[str] | None = None  # names of a class body, which its methods do not see
    deferred: bool = False

    def hides(self, name: str) -> bool:
        return name in self.local or name in (self.in_class or ())


class Walk:
    """Goes through code in the order in which Python evaluates it."""

    def __init__(self, is_transparent: Callable[[Import], bool]):
        self.is_transparent = is_transparent

    def visit(self, node: ast.AST | None, scope: Scope) -> Iterator[Mention]:
        match node:
            case None:
                return
            case ast.Name(id=name, ctx=context):
                if not scope.hides(name):
                    if isinstance(context, ast.Del):  # there must be something to delete
                        yield Mention(name, node, False, scope.deferred)
                    yield Mention(name, node, not isinstance(context, ast.Load), scope.deferred)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                annotations = [a.annotation for a in parameters(node.args)]
                yield from self.visit_all([*node.decorator_list, *defaults(node.args), *annotations], scope)
                yield from self.visit(node.returns, scope)
                yield from self.visit_body(node, node.body, scope)
                yield from self.bind(node.name, node, scope)
            case ast.Lambda():
                yield from self.visit_all(defaults(node.args), scope)
                yield from self.visit_body(node, [node.body], scope)
            case ast.ClassDef():
                yield from self.visit_all([*node.decorator_list, *node.bases, *node.keywords], scope)
                yield from self.visit_class_body(node, scope)
                yield from self.bind(node.name, node, scope)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                yield from self.visit_comprehension(node, scope)
            case ast.Import() | ast.ImportFrom():
                if scope == Scope() or not self.is_transparent(node):
                    for name in bound_by_import(node):
                        yield from self.bind(name, node, scope)
            case ast.Assign(targets=targets, value=value):
                yield from self.visit_all([value, *targets], scope)
            case ast.AugAssign(target=target, value=value):
                if isinstance(target, ast.Name) and not scope.hides(target.id):
                    yield Mention(target.id, target, False, scope.deferred)
                yield from self.visit_all([value, target], scope)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                yield from self.visit_all([annotation, value, target], scope)
            case ast.NamedExpr(target=target, value=value):
                yield from self.visit_all([value, target], scope)
            case ast.For() | ast.AsyncFor():
                yield from self.visit_all([node.iter, node.target, *node.body, *node.orelse], scope)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield from self.bind(name, node, scope)
                yield from self.visit_all(ast.iter_child_nodes(node), scope)
            case ast.MatchMapping(rest=str(name)):
                yield from self.bind(name, node, scope)
                yield from self.visit_all(ast.iter_child_nodes(node), scope)
            case _:
                yield from self.visit_all(ast.iter_child_nodes(node), scope)

    def visit_all(self, nodes: Iterable[ast.AST | None], scope: Scope) -> Iterator[Mention]:
        for node in nodes:
            yield from self.visit(node, scope)

    def bind(self, name: str, node: ast.AST, scope: Scope) -> Iterator[Mention]:
        if not scope.hides(name):
            yield Mention(name, node, True, scope.deferred)

    def visit_body(self, function: Function, body: list, scope: Scope) -> Iterator[Mention]:
        local = {a.arg for a in parameters(function.args)} | self.bound_in(body)
        yield from self.visit_all(body, Scope(scope.local | local, deferred=True))

    def visit_class_body(self, node: ast.ClassDef, scope: Scope) -> Iterator[Mention]:
        """A name of the class is global until the statement that binds it."""
        own: set[str] = set()
        for statement in node.body:
            here = self.bound_in([statement])
            for mention in self.visit(statement, Scope(scope.local, frozenset(own), scope.deferred)):
                if not (mention.binds and mention.name in here and not mention.deferred):
                    yield mention
            own |= here

    def visit_comprehension(self, node: Comprehension, scope: Scope) -> Iterator[Mention]:
        first, *others = node.generators
        yield from self.visit(first.iter, scope)
        targets = {name.id for part in node.generators for name in ast.walk(part.target) if isinstance(name, ast.Name)}
        lazy = scope.deferred or isinstance(node, ast.GeneratorExp)
        inside = Scope(scope.local | targets, None, lazy)
        yield from self.visit_all(first.ifs, inside)
        yield from self.visit_all(others, inside)
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        yield from self.visit_all(values, inside)

    def bound_in(self, body: list) -> set[str]:
        """The names that the statements of a function or class bind in its own scope."""
        bound, elsewhere = set(), set()
        waiting = list(body)
        while waiting:
            node = waiting.pop()
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    bound.add(node.name)
                    outside = [*node.decorator_list]
                    outside += node.bases if isinstance(node, ast.ClassDef) else defaults(node.args)
                    waiting += outside
                    continue
                case ast.Lambda():
                    continue
                case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                    walrus = [inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
                    bound |= {inner.target.id for inner in walrus}
                    continue
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                    bound.add(name)
                case ast.Import() | ast.ImportFrom():
                    bound |= set() if self.is_transparent(node) else bound_by_import(node)
                case ast.Global(names=names) | ast.Nonlocal(names=names):
                    elsewhere |= set(names)
                case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    bound.add(name)
                case ast.MatchMapping(rest=str(name)):
                    bound.add(name)
            waiting += ast.iter_child_nodes(node)
        return bound - elsewhere


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Every parameter of a function."""
    starred = [arg for arg in (arguments.vararg, arguments.kwarg) if arg]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *starred]


def defaults(arguments: ast.arguments) -> list[ast.expr]:
    """The default values, which are evaluated where the function is defined."""
    return [*arguments.defaults, *(value for value in arguments.kw_defaults if value)]


def bound_by_import(node: Import) -> set[str]:
    """The names that an import binds: `import a.b` binds a."""
    if isinstance(node, ast.Import):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    return {alias.asname or alias.name for alias in node.names}
