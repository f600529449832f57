"""Every number and word that a chapter computes is guarded: whichever changes, the schema or verify objects."""

import ast
import copy
import json
import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from book_paths import ROOT
from bookkit.compare import compare
from bookkit.ledger import load_ledger
from bookkit.record import COMPARED, NUMBER, record_class

RAW = {
    record_id: raw
    for path in sorted((ROOT / "book/ledger").glob("*.toml"))
    for record_id, raw in tomllib.loads(path.read_text("utf-8"), parse_float=Decimal).items()
}


@pytest.fixture(scope="module")
def computed(html_folder) -> dict[str, tuple[Any, Any]]:
    """What the chapters handed to verify in the last build."""
    records = json.loads((html_folder.parent / "report.json").read_text("utf-8"))["records"]
    return {
        record["id"]: (ast.literal_eval(record["computed"]), ast.literal_eval(record["mistaken"])) for record in records
    }


def test_the_chapters_verify_the_whole_ledger(computed):
    ledger = load_ledger(ROOT / "book/ledger")
    assert {entry.id for entry in ledger.to_verify()} == set(computed)


def objects(raw: dict, values: tuple[Any, Any] | None) -> bool:
    """Whether the schema refuses the record, or comparing it with the computed values finds a difference."""
    try:
        record = record_class(raw).model_validate(raw)
    except (ValidationError, ValueError):
        return True
    return values is not None and bool(compare(record, *values).differences)


def places(node: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """The path and value of every leaf of a raw record."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))
    if not isinstance(node, dict | list):
        yield path, node


def changed(leaf: Any) -> Iterator[Any]:
    """The leaf with one of its numbers changed, by as little as it can be changed, up and down."""
    if isinstance(leaf, bool):
        yield not leaf
    elif isinstance(leaf, int):
        yield from (leaf + 1, leaf - 1)
    elif isinstance(leaf, Decimal):
        unit = Decimal(1).scaleb(leaf.as_tuple().exponent)
        yield from (leaf + unit, leaf - unit)
    elif isinstance(leaf, str):
        for match in re.finditer(r"\d+", leaf):
            yield leaf[: match.start()] + str(int(match[0]) + 1) + leaf[match.end() :]


def is_compared(raw: dict, path: tuple) -> bool:
    """Whether a leaf is a value or a cell that a chapter computes."""
    if path[0] == "rows":
        return list(raw["columns"].values())[path[2]] in COMPARED if "columns" in raw else True
    return path[0] in ("value", "mistaken") and raw["verdict"] != "cited"


def replaced(raw: dict, path: tuple, value: Any) -> dict:
    mutant = copy.deepcopy(raw)
    node = mutant
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return mutant


@pytest.mark.parametrize("record_id", RAW)
def test_changing_any_number_alone_is_noticed(record_id, computed):
    raw = RAW[record_id]
    values = computed.get(record_id)
    assert not objects(raw, values if "same_as" not in raw else None), "the record itself must agree"
    checked = 0
    for path, leaf in places(raw):
        # `source` names a slide's target and `cites` a publication: they are references, not numbers.
        # In sentences, numbers may only stand inside roles, whose records are walked themselves.
        if path[0] in ("source", "cites", "same_as", "shown_by", "says", "why", "note", "title"):
            continue
        other_words = [f"{leaf}, or not"] if isinstance(leaf, str) and is_compared(raw, path) else []
        for value in [*changed(leaf), *other_words]:
            assert objects(replaced(raw, path, value), values), f"{record_id}: {path}: {leaf} -> {value} goes unnoticed"
            checked += 1
    if "rows" in raw or "value" in raw or "margin" in raw:
        assert checked


@pytest.mark.parametrize("record_id", RAW)
def test_words_hold_no_number_of_their_own(record_id):
    for key in ("title", "says", "why", "note"):
        words = re.sub(r"(\{[\w:-]+\})?`[^`]*`", "", RAW[record_id].get(key, ""))
        assert not NUMBER.search(words)
