"""Recorded results: where a cell loads one, its program holds the values themselves."""

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bookkit.cells import Cell
from bookkit.snippets.edit import ProgramError, Source
from bookkit.snippets.gather import WIDTH
from bookkit.snippets.names import mentions

STEP = "    "
Parents = dict[ast.AST, ast.AST]


class Use(NamedTuple):
    """A place that loads a result: `load("name").values`, and the keys right after it; or `.seconds`."""

    result: str
    part: str  # of the result
    keys: list[str | int]
    expression: ast.expr


def write_values(source: Source, cell: Cell, loaders: Mapping[str, Path]) -> None:
    """Write recorded values into a cell's code, in place of the calls that load them.

    Args:
        source: the cell's.
        cell: the cell.
        loaders: the names of functions that load results, as the page has them, each with the folder of its results.

    Raises:
        ProgramError: if a result is used otherwise, or is not there.
    """
    parents = {child: node for node in ast.walk(cell.tree) for child in ast.iter_child_nodes(node)}
    for mention in mentions(cell.tree):
        if mention.name not in loaders or mention.binds:
            continue
        place = f"line {cell.line(mention.node)}"
        use = read_use(mention.node, parents, place)
        values, command = read_result(loaders[mention.name] / f"{use.result}.json", use.part, use.keys, place)
        replace(source, use.expression, values, parents)
        comment_on(source, use.expression, f"Recorded by: {command}", parents)


def read_use(name: ast.Name, parents: Parents, place: str) -> Use:
    """How a result is used, given the name of the function that loads it."""
    around = list(ancestors(name, parents))
    if any(isinstance(node, ast.JoinedStr) for node in around):
        raise ProgramError(f"{place}: take {name.id} out of the f-string: a program holds the values in its place")
    match around:
        case [
            ast.Call(func=called, args=[ast.Constant(value=str(result))], keywords=[]),
            ast.Attribute(attr="values" | "seconds" as part) as expression,
            *rest,
        ] if called is name:
            keys = []
            while isinstance(rest[0], ast.Subscript) and isinstance(rest[0].slice, ast.Constant):
                expression, *rest = rest
                keys.append(expression.slice.value)
            return Use(result, part, keys, expression)
    whole = [node for node in (name, *around) if isinstance(node, ast.expr)][-1]
    raise ProgramError(
        f"{place}: in place of a recorded result, a program holds its values: "
        f'write `{name.id}("its name").values` (or `.seconds`); found: {ast.unparse(whole).splitlines()[0]}'
    )


def ancestors(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    """What a node stands in, from the inside."""
    while node := parents.get(node):
        yield node


def read_result(file: Path, part: str, keys: list[str | int], place: str) -> tuple[Any, str]:
    """What the keys lead to in a part of a result, and the command that recorded it."""
    if not file.is_file():
        raise ProgramError(f"{place}: there is no recorded result {file}")
    found = json.loads(file.read_text("utf-8"))
    try:
        value, command = found[part], found["command"]
        for key in keys:
            value = value[key]
    except (LookupError, TypeError) as error:
        wanted = "".join(f"[{key!r}]" for key in keys)
        raise ProgramError(f"{place}: {file} must have a command, and {part}{wanted}") from error
    return value, command


def replace(source: Source, expression: ast.expr, value: Any, parents: Parents) -> None:
    """Write a value in place of an expression."""
    start, end = source.start(expression), source.end(expression)
    before = source.text[:start].rpartition(b"\n")[2].decode()
    after = source.text[end:].partition(b"\n")[0].decode()
    indent = before[: len(before) - len(before.lstrip())]
    code = literal(value, indent, WIDTH - len(before) - len(after))
    is_number = isinstance(value, int | float)
    if is_number and isinstance(parents[expression], ast.BinOp | ast.Attribute):
        code = f"({code})"  # else `-1 ** 2` and `1.real` mean something else
    source.replace(start, end, code)


def comment_on(source: Source, expression: ast.expr, comment: str, parents: Parents) -> None:
    """Put a comment over the statement that an expression stands in."""
    statement = next(node for node in ancestors(expression, parents) if isinstance(node, ast.stmt))
    line = source.starts[statement.lineno - 1]
    indent = source.text[line : source.start(statement)].decode()
    if indent.strip():
        raise ProgramError(f"give this statement a line of its own: {ast.unparse(statement)}")
    source.replace(line, line, f"{indent}# {comment}\n")


def literal(value: Any, indent: str = "", room: int = WIDTH) -> str:
    """A value of a JSON file as Python code.

    Args:
        value: the value.
        indent: of the line that it begins in.
        room: how many characters there are for it in that line; if it needs more, it gets several lines.

    >>> literal({"loss": [1.5, None], "said": "it's"})
    '{"loss": [1.5, None], "said": "it\\'s"}'
    >>> print(literal({"loss": [1.5, None]}, room=20))
    {
        "loss": [1.5, None],
    }
    """
    flat = on_one_line(value)
    if len(flat) <= room or not isinstance(value, dict | list):
        return flat
    inner = indent + STEP
    room = WIDTH - len(inner) - 1  # a comma follows
    if isinstance(value, dict):
        keys = {key: f"{on_one_line(key)}: " for key in value}
        lines = [keys[key] + literal(item, inner, room - len(keys[key])) + "," for key, item in value.items()]
    elif any(isinstance(item, dict) for item in value):
        lines = [literal(item, inner, room) + "," for item in value]
    else:
        lines = filled([literal(item, inner, room) + "," for item in value], room + 1)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([opening, *(inner + line for line in lines), indent + closing])


def on_one_line(value: Any) -> str:
    """A value as Python code, in one line.

    >>> on_one_line([True, "a", {}])
    '[True, "a", {}]'
    """
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{', '.join(map(on_one_line, value))}]"
        case dict():
            return "{" + ", ".join(f"{on_one_line(key)}: {on_one_line(item)}" for key, item in value.items()) + "}"
        case _:
            return repr(value)


def filled(items: list[str], width: int) -> list[str]:
    """As many items in each line as there is room for.

    >>> filled(["1,", "2,", "3,"], 5)
    ['1, 2,', '3,']
    """
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + 1 + len(item) <= width and "\n" not in lines[-1] + item:
            lines[-1] += f" {item}"
        else:
            lines.append(item)
    return lines
