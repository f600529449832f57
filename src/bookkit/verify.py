"""`verify`: what a chapter calls with each value it computed."""

import os
import sys
from collections.abc import Callable
from traceback import walk_stack
from typing import Any

from bookkit.compare import Comparison, compare, to_plain
from bookkit.ledger import Entry, find_ledger, load_ledger
from bookkit.show import as_html, as_text

MIME = "application/vnd.bookkit.report+json"
BUILD_VARIABLE = "BOOKKIT_BUILD"  # set by a build for its kernels

# Called with what verify is given: a value, and a mistaken one if there is one.
listeners: list[Callable[..., None]] = []


class DriftError(AssertionError):
    """A computed value is not the recorded one; the message lists every difference."""


class Verified:
    """A verified record. It shows itself as its table, in a notebook and in plain Python."""

    def __init__(self, entry: Entry, values: Entry, comparison: Comparison):
        self.entry, self.values, self.comparison = entry, values, comparison
        self.published = False

    def __repr__(self) -> str:
        return as_text(self.entry.record, self.values.record, self.comparison)

    def _repr_html_(self) -> str:
        return as_html(self.entry.record, self.values.record, self.comparison)

    def _ipython_display_(self) -> None:
        """Nothing more where verify() has published it already; in IPython's terminal, the text."""
        if not self.published:
            print(self)


def verify(record_id: str, computed: Any, *, mistaken: Any = None) -> Verified:
    """Compare a computed value with the record of this id, and show the checked record.

    Decimal numbers must lie within half a unit of the last printed digit (plus 2e-7);
    counts, texts and shapes must be equal, and of the same type.

    Args:
        record_id: a record of the ledger, written as a literal string.
        computed: for a table its rows (a tensor, an array or nested sequences) without
            or with the label columns; for a value the value; for a claim a dict with
            its two sides.
        mistaken: for a value record with a `mistaken` value: what the source's mistake gives.

    Returns:
        an object that shows itself as the table. Inside a notebook or a build the table
        is shown when verify is called, so assigning the result hides nothing.

    Raises:
        DriftError: if a value differs. Inside a build of the book the differences are
            reported to the build instead, which fails when all chapters have run.
        LookupError: if there is no such record.
        TypeError: if record_id is not a string, or the record has no values that a chapter computes.

    >>> from pathlib import Path
    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "demo.toml").write_text('''
    ... [half]
    ... title = "One half"
    ... verdict = "measured"
    ... value = 0.50
    ... decimals = 2
    ... ''')
    >>> getfixture("monkeypatch").setenv("BOOKKIT_LEDGER", str(folder))
    >>> verify("half", 1 / 2)
    One half: 0.50
    Computed here; it agrees with the book's ledger, to two decimals.
    >>> verify("half", 1 / 3)
    Traceback (most recent call last):
    bookkit.verify.DriftError: ...
    """
    if not isinstance(record_id, str):
        raise TypeError(f"record_id must be a string, got {record_id!r}")
    for listen in listeners:
        listen(computed, *([] if mistaken is None else [mistaken]))
    ledger = load_ledger(find_ledger())
    entry, values = ledger[record_id], ledger.values_of(record_id)
    comparison = compare(values.record, computed, mistaken)
    verified = Verified(entry, values, comparison)
    if has_kernel():
        publish(verified, {"computed": repr(to_plain(computed)), "mistaken": repr(to_plain(mistaken))})
        verified.published = True
        if os.environ.get(BUILD_VARIABLE):
            return verified  # the build reports the drift of all chapters together
    if comparison.differences:
        raise DriftError(describe_drift(entry, values, comparison))
    return verified


def has_kernel() -> bool:
    """Whether this process is a live Jupyter kernel, whose outputs somebody collects."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


def publish(verified: Verified, given: dict[str, str]) -> None:
    """Send the report as an output of the running cell: for the build, and for a reader's eyes.

    What was given goes with it, with all its digits, as Python writes it: JSON knows no NaN and no tuple.
    """
    from IPython.display import publish_display_data

    comparison = verified.comparison
    report = {
        "version": 1,
        "id": verified.entry.id,
        "line": line_in_cell(),
        "compared": comparison.compared,
        "measured": list(comparison.measured),
        "differences": [vars(difference) for difference in comparison.differences],
        "given": given,
    }
    publish_display_data(
        {
            MIME: report,
            "text/plain": repr(verified),
            "text/html": verified._repr_html_(),
        }
    )


def line_in_cell() -> int:
    """The line of the running cell from which verify was called, be it through a function of the page."""
    typed = vars(sys.modules["__main__"])
    frames = [frame for frame, _ in walk_stack(sys._getframe()) if frame.f_globals is typed]  # innermost first
    lines = [frame.f_lineno for frame in frames if frame.f_code.co_filename == frames[-1].f_code.co_filename]
    return lines[0] if lines else 1


def describe_drift(entry: Entry, values: Entry, comparison: Comparison) -> str:
    """What drifted, where it is recorded, and what to do."""
    place = entry.place if entry is values else f"{entry.place}, the same as {values.id!r} at {values.place}"
    lines = [f"drift in record {entry.id!r} ({place})"]
    lines += [f"  {difference}" for difference in comparison.differences]
    lines.append(
        "  If the record is right, look for what changed in the code; if the code is right, correct the record."
    )
    return "\n".join(lines)
