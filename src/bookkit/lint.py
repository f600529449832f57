"""What a chapter's cells may not do: type what they claim to compute, or hide a check."""

import ast
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from bookkit.cells import Cell, read_cells
from bookkit.ledger import Ledger
from bookkit.record import Table, Value
from bookkit.snippets.names import Import, mentions

CONVERSIONS = {
    "float",
    "int",
    "str",
    "bool",
    "round",
    "abs",
    "list",
    "tuple",
    "tensor",
    "as_tensor",
    "array",
    "asarray",
}
MACHINERY = {"bookkit", "tomllib", "tomlkit"}
LEDGER_PATH = re.compile(r"(^|/)ledger(/|$)|\.toml$|^BOOKKIT_")
HIDING_TAGS = {
    "hide-output",
    "hide-cell",
    "remove-output",
    "remove-cell",
    "remove_output",
    "remove_cell",
}


class Fault(NamedTuple):
    """One thing a cell may not do, and the line of the chapter on which it stands."""

    line: int
    message: str


def lint_chapter(text: str, ledger: Ledger) -> list[Fault]:
    """Every fault of a chapter's cells, in the order of its lines."""
    cells = read_cells(text)
    faults = [fault for cell in cells for fault in (*hidden_checks(cell), *reading_the_ledger(cell))]
    definitions = definitions_in(cells)
    for cell in cells:
        for call in cell.verify_calls():
            faults += wrong_id(cell, call, ledger)
            faults += typed_values(cell, call, definitions)
    verified = {
        call.args[0].value
        for cell in cells
        for call in cell.verify_calls()
        if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value in ledger
    }
    faults += copied_values(cells, verified, ledger)
    faults += rebound_imports(cells)
    return sorted(set(faults))


def hidden_checks(cell: Cell) -> Iterator[Fault]:
    """A cell that verifies must show what it found."""
    calls = list(cell.verify_calls())
    if not calls:
        return
    for tag in HIDING_TAGS & set(cell.tags):
        yield Fault(
            cell.line(calls[0]),
            f"the tag {tag!r} hides the output of a cell that verifies: remove the tag",
        )
    if cell.config.get("remove_code_outputs"):
        yield Fault(
            cell.line(calls[0]),
            "remove_code_outputs hides the output of a cell that verifies",
        )


def reading_the_ledger(cell: Cell) -> Iterator[Fault]:
    """A cell gets `verify` from bookkit, under its own name, and nothing else."""
    called = [call.func for call in cell.verify_calls()]
    for node in ast.walk(cell.tree):
        match node:
            case ast.ImportFrom(module="bookkit", names=[ast.alias(name="verify", asname=None)]):
                pass
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "bookkit":
                yield Fault(cell.line(node), "a chapter may only write `from bookkit import verify`")
            case ast.ImportFrom(module=str(module)) if module in MACHINERY:
                yield Fault(cell.line(node), "a chapter may not import the ledger's machinery")
            case ast.Import(names=names) if any(n.name.split(".")[0] in MACHINERY for n in names):
                yield Fault(cell.line(node), "a chapter may not import the ledger's machinery")
            case ast.Constant(value=str(text)) if LEDGER_PATH.search(text):
                yield Fault(
                    cell.line(node),
                    "a chapter may not read the ledger: the computed value must be computed",
                )
            case ast.Name(id="verify", ctx=ast.Load()) if node not in called:
                yield Fault(cell.line(node), "verify may only be called, not passed on or given another name")
            case _ if binds_verify(node):
                yield Fault(cell.line(node), "the name verify must stay bookkit's")


def binds_verify(node: ast.AST) -> bool:
    """Whether a node gives the name verify to something."""
    match node:
        case ast.Name(id="verify", ctx=ast.Store()) | ast.arg(arg="verify"):
            return True
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name == "verify"
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return any((n.asname or n.name) == "verify" for n in names)
    return False


def rebound_imports(cells: list[Cell]) -> Iterator[Fault]:
    """A name that a page imports means the same in all its cells: the page's programs gather their imports."""
    imports = [(cell, node) for cell in cells for node in cell.tree.body if isinstance(node, Import)]
    imported: dict[str, str] = {}
    for cell, node in imports:
        for name, origin in origins(node).items():
            if imported.setdefault(name, origin) != origin:
                yield Fault(
                    cell.line(node),
                    f"this page imports {name} as {imported[name]} and as {origin}: "
                    "import one of the two under another name",
                )
    gathered = {id(node) for _, node in imports}
    for cell in cells:
        for mention in mentions(cell.tree):
            if mention.binds and mention.name in imported and id(mention.node) not in gathered:
                yield Fault(
                    cell.line(mention.node),
                    f"this page imports {mention.name} ({imported[mention.name]}): give this another name",
                )


def origins(node: Import) -> dict[str, str]:
    """What each name stands for that an import binds; `verify` left out, which has rules of its own."""
    if isinstance(node, ast.ImportFrom):
        found = {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    else:
        named = {alias.asname: alias.name for alias in node.names if alias.asname}
        found = named | {alias.name.split(".")[0]: alias.name.split(".")[0] for alias in node.names if not alias.asname}
    return {name: origin for name, origin in found.items() if name != "verify"}


def wrong_id(cell: Cell, call: ast.Call, ledger: Ledger) -> Iterator[Fault]:
    """The first argument names a record, literally, so that a build knows what a chapter verifies."""
    if not call.args or not isinstance(call.args[0], ast.Constant) or not isinstance(call.args[0].value, str):
        yield Fault(
            cell.line(call),
            "write the id of the record into the verify call, as a literal string",
        )
        return
    try:
        ledger[call.args[0].value]
    except LookupError as error:
        yield Fault(cell.line(call), str(error))


Definitions = dict[str, list[ast.expr | None]]


def definitions_in(cells: list[Cell]) -> Definitions:
    """What is assigned to each name of the page; None stands for a name bound or changed in another way."""
    definitions: Definitions = {}
    assigned: list[ast.Name] = []
    for cell in cells:
        for node in ast.walk(cell.tree):
            for name, value in assignments(node):
                assigned.append(name)
                definitions.setdefault(name.id, []).append(value)
        for node in ast.walk(cell.tree):
            if (name := changed_name(node)) and name not in assigned:
                definitions.setdefault(name.id, []).append(None)
    return definitions


def assignments(node: ast.AST) -> list[tuple[ast.Name, ast.expr]]:
    """The names that a statement (or a walrus) assigns to, each with its value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            return [pair for target in targets for pair in zip_targets(target, value)]
        case ast.AnnAssign(target=ast.Name() as name, value=ast.expr() as value):
            return [(name, value)]
        case ast.NamedExpr(target=name, value=value):
            return [(name, value)]
    return []


def zip_targets(target: ast.expr, value: ast.expr) -> list[tuple[ast.Name, ast.expr]]:
    """Names with what is assigned to them; `a, b = f()` assigns the call to both."""
    if isinstance(target, ast.Name):
        return [(target, value)]
    if isinstance(target, ast.Tuple | ast.List):
        values = value.elts if isinstance(value, ast.Tuple | ast.List) else [value] * len(target.elts)
        return [pair for t, v in zip(target.elts, values, strict=False) for pair in zip_targets(t, v)]
    return []


def changed_name(node: ast.AST) -> ast.Name | None:
    """The name that a node binds or changes: `for x in`, `x += 1`, `x[i] = 1`, `x.append(1)`."""
    match node:
        case ast.Name(ctx=ast.Store()):
            return node
        case ast.Subscript(value=inner, ctx=ast.Store()):
            while isinstance(inner, ast.Subscript):
                inner = inner.value
            return inner if isinstance(inner, ast.Name) else None
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() as name))):
            return name
    return None


def typed_values(cell: Cell, call: ast.Call, definitions: Definitions) -> Iterator[Fault]:
    """Refuse a number or text that stands in a value's place instead of being computed."""
    values = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    for value in values:
        if is_typed(value, definitions, frozenset()):
            yield Fault(
                cell.line(call),
                f"verify is given a typed value ({ast.unparse(value)}): compute it in the chapter",
            )


def is_typed(node: ast.expr, definitions: Definitions, seen: frozenset[str]) -> bool:
    """Whether a part of the value was written down rather than computed.

    Indices, keys, and what is compared with count as computing; so do the arguments of a
    call, unless it only converts them (as in ``float(0.25)`` or ``torch.tensor([0.25])``).
    """

    def typed(*parts: ast.expr) -> bool:
        return any(is_typed(part, definitions, seen) for part in parts)

    match node:
        case ast.Constant():
            return True
        case ast.JoinedStr(values=parts):
            return all(typed(part.value) for part in parts if isinstance(part, ast.FormattedValue))
        case ast.NamedExpr(value=value):
            return typed(value)
        case ast.Name(id=name):
            if name in seen or name not in definitions:
                return False
            return all(is_typed(value, definitions, seen | {name}) for value in definitions[name])
        case ast.List() | ast.Tuple() | ast.Set():
            # A row may begin with its label; a row that is all typed is no result.
            return bool(node.elts) and (all(map(typed, node.elts)) or any(map(no_label, filter(typed, node.elts))))
        case ast.Dict(values=values):
            return typed(*values)
        case ast.BinOp(left=left, right=right):
            return typed(left) and typed(right)
        case ast.UnaryOp(operand=operand):
            return typed(operand)
        case ast.IfExp(body=body, orelse=orelse):
            # Which of two words it is may be what the code decides.
            return any(map(no_label, filter(typed, (body, orelse))))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if args and name in CONVERSIONS:
            return all(map(typed, args))
    return False


def no_label(node: ast.expr) -> bool:
    """Whether a typed part is a number, be it with a sign, or a row: no word that names a result."""
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    match inner:
        case ast.Constant(value=int() | float()) | ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
            return True
    return False


def copied_values(cells: list[Cell], record_ids: set[str], ledger: Ledger) -> Iterator[Fault]:
    """Refuse a literal of three or more digits that is also a number of a record verified on the page."""
    recorded = {number: record_id for record_id in sorted(record_ids) for number in telling_numbers(ledger, record_id)}
    for cell in cells:
        for node in ast.walk(cell.tree):
            if isinstance(node, ast.Constant) and (number := magnitude(node.value)) in recorded:
                yield Fault(
                    cell.line(node),
                    f"{node.value!r} is a value of record {recorded[number]!r}: compute it instead of typing it",
                )


def telling_numbers(ledger: Ledger, record_id: str) -> set[Decimal]:
    """The numbers of a record that nobody types by chance."""
    record = ledger.values_of(record_id).record
    cells: list[Any] = []
    if isinstance(record, Table):
        cells = [cell for row in record.rows for cell in row]
    elif isinstance(record, Value):
        cells = [record.value, record.mistaken]
    numbers = {magnitude(cell) for cell in cells} - {None}
    return {number for number in numbers if len(number.normalize().as_tuple().digits) >= 3}


def magnitude(value: Any) -> Decimal | None:
    """A number of code or ledger without its sign, which code has outside the literal; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return abs(Decimal(str(value)))
