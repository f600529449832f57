"""The ledger patch that the drift of the last build would need. It is printed, never applied."""

import difflib
import json
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path

import tomlkit

from bookkit.compare import round_down
from bookkit.ledger import Ledger
from bookkit.record import Claim, Table


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
        yield from difflib.unified_diff(
            file.read_text(encoding="utf-8").splitlines(keepends=True),
            tomlkit.dumps(document).splitlines(keepends=True),
            str(file),
            f"{file} (proposed)",
        )


def change(table: tomlkit.items.Table, record, difference: dict) -> bool:
    """Write the computed number into its cell; False if it is no number that the record could hold."""
    try:
        computed = Decimal(difference["computed"].split(" (")[0])
    except InvalidOperation:
        return False
    if difference["cell"] is None or not computed.is_finite():
        return False
    if isinstance(record, Claim):
        if computed <= 0:
            return False
        table["margin"] = number(round_down(computed))
        return True
    row, column = difference["cell"]
    decimals = record.decimals if is_decimal(record, row, column) else 0
    rounded = computed.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN)
    if isinstance(record, Table):
        table["rows"][row][column] = number(rounded)
    else:
        table["mistaken" if column else "value"] = number(rounded)
    return True


def is_decimal(record, row: int, column: int) -> bool:
    if isinstance(record, Table):
        return isinstance(record.rows[row][column], Decimal)
    return isinstance(record.mistaken if column else record.value, Decimal)


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
