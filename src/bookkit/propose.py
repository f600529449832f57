"""The ledger patch that the drift of the last build would need. It is printed, never applied."""

import difflib
import json
import os
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import tomlkit

from bookkit.compare import round_down
from bookkit.ledger import Ledger
from bookkit.record import Claim, Table, Value


def propose(report: dict, ledger: Ledger) -> Iterator[str]:
    """Unified diff lines, one file after the other; differences of shape or type are named as comments.

    Args:
        report: the content of ``_build/report.json``.
        ledger: the ledger that the build was compared with.
    """
    texts: dict[Path, tomlkit.TOMLDocument] = {}
    for record in report["records"]:
        for difference in record["differences"]:
            values = ledger.values_of(record["id"])
            document = texts.setdefault(values.file, tomlkit.parse(values.file.read_text(encoding="utf-8")))
            if not change(document[values.id], values.record, difference):
                yield f"# {record['id']}: {difference['where']}: {difference['computed']} has to be judged by hand\n"
    for file, document in texts.items():
        name = os.path.relpath(file)  # `patch -p0` refuses an absolute path
        yield from difflib.unified_diff(
            file.read_text(encoding="utf-8").splitlines(keepends=True),
            tomlkit.dumps(document).splitlines(keepends=True),
            name,
            name,
        )


def change(table: tomlkit.items.Table, record, difference: dict) -> bool:
    """Write the computed number into its cell; False if it is no number that the record could hold."""
    if difference["cell"] is None:
        return False
    row, column = difference["cell"]
    recorded = recorded_in(record, row, column)
    digits, _, type_name = difference["computed"].partition(" (")
    if type_name != ("int)" if type(recorded) is int else ""):  # where only the value differs, a float has no type name
        return False
    try:
        computed = Decimal(digits)
        if isinstance(recorded, Decimal) and not isinstance(record, Claim):
            computed = computed.quantize(recorded, rounding=ROUND_HALF_EVEN)
    except InvalidOperation:
        return False
    if isinstance(record, Claim):
        if computed <= 0:
            return False
        table["margin"] = number(round_down(computed))
    elif isinstance(record, Table):
        table["rows"][row][column] = number(computed)
    else:
        table["mistaken" if column else "value"] = number(computed)
    return True


def recorded_in(record: Table | Value | Claim, row: int, column: int) -> Any:
    match record:
        case Table():
            return record.rows[row][column]
        case Value():
            return record.mistaken if column else record.value
    return record.margin


def number(value: Decimal) -> tomlkit.items.Item:
    """A TOML number written exactly like this."""
    return tomlkit.value(f"{value:f}")


def propose_from(report_file: Path, ledger: Ledger) -> str:
    """The whole patch for a report file, or a line that says there is nothing to change.

    Raises:
        FileNotFoundError: if no build has left a report yet.
    """
    if not report_file.exists():
        raise FileNotFoundError(f"{report_file} does not exist: run `make html` first")
    patch = "".join(propose(json.loads(report_file.read_text(encoding="utf-8")), ledger))
    return patch or "The last build found no drift: nothing to change.\n"
