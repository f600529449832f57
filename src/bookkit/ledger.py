"""Reads the ledger: every TOML file of one folder, each error with its file and line."""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from bookkit.record import Alias, Record, Statement, record_class

LEDGER_VARIABLE = "BOOKKIT_LEDGER"  # set by a build for its kernels


class LedgerError(Exception):
    """The ledger cannot be used; the message lists every fault as file:line: what."""


@dataclass(frozen=True)
class Entry:
    """One record and where it stands."""

    id: str
    record: Record
    file: Path
    line: int

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Ledger:
    """All records by id, in the order of their files."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())

    def __contains__(self, record_id: str) -> bool:
        return record_id in self.entries

    def __getitem__(self, record_id: str) -> Entry:
        """The entry of this id.

        Raises:
            LookupError: if there is none; the message names the closest ids.
        """
        try:
            return self.entries[record_id]
        except KeyError:
            near = difflib.get_close_matches(record_id, self.entries)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise LookupError(f"the ledger has no record {record_id!r}.{hint}") from None

    def values_of(self, record_id: str) -> Entry:
        """The entry that holds the values: the record itself, or the one it is the same as."""
        entry = self[record_id]
        return self.values_of(entry.record.same_as) if isinstance(entry.record, Alias) else entry

    def to_verify(self) -> list[Entry]:
        """The entries that a build must verify: all but cited ones and statements."""
        return [e for e in self if e.record.verdict != "cited" and not isinstance(e.record, Statement)]


def find_ledger(start: Path | None = None) -> Path:
    """The ledger's folder: named by the environment, or `book/ledger` or `ledger` in a folder above.

    Raises:
        LedgerError: if there is none.
    """
    if named := os.environ.get(LEDGER_VARIABLE):
        return Path(named)
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        for candidate in (folder / "ledger", folder / "book" / "ledger"):
            if candidate.is_dir():
                return candidate
    raise LedgerError(f"no folder `ledger` or `book/ledger` in {start} or above it: run inside the project's folder")


def load_ledger(folder: Path) -> Ledger:
    """Read every *.toml of the folder, again only if one changed since.

    Raises:
        LedgerError: listing every fault of every file.
    """
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise LedgerError(f"no *.toml file in {folder}")
    return _load(tuple((file, file.stat().st_mtime_ns) for file in files))


@cache
def _load(files: tuple[tuple[Path, int], ...]) -> Ledger:
    ledger, faults = Ledger(), []
    written: set[str] = set()  # all ids, also those of records with faults
    unreadable = False
    for file, _ in files:
        try:
            text = file.read_text(encoding="utf-8")
            raw_records = tomllib.loads(text, parse_float=Decimal)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            faults.append(f"{file}:{line_of_syntax_error(error, file.read_bytes())}: {error}")
            unreadable = True
            continue
        written |= raw_records.keys()
        for record_id, raw in raw_records.items():
            line = line_of(text, record_id)
            if record_id in ledger:
                faults.append(f"{file}:{line}: [{record_id}] stands in {ledger[record_id].place} already")
                continue
            try:
                record = parse(record_id, raw)
            except ValidationError as error:
                faults += [
                    f"{file}:{line_of(text, record_id, *e['loc'])}: [{record_id}] {explain(e)}" for e in error.errors()
                ]
            except ValueError as error:
                faults.append(f"{file}:{line}: [{record_id}] {error}")
            else:
                ledger.entries[record_id] = Entry(record_id, record, file, line)
    faults += [] if unreadable else broken_links(ledger, written)
    if faults:
        raise LedgerError("\n".join(faults))
    return ledger


def parse(record_id: str, raw: object) -> Record:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", record_id):
        raise ValueError("a record's id is made of lower-case words, joined by hyphens")
    if not isinstance(raw, dict):
        raise ValueError("a record is a table: put its keys under a line [id]")
    return record_class(raw).model_validate(raw)


def broken_links(ledger: Ledger, written: set[str]) -> list[str]:
    """Records that point at records which are not there, or that cannot be pointed at."""
    faults = []
    for entry in ledger:
        targets = getattr(entry.record, "shown_by", [])
        if isinstance(entry.record, Alias):
            targets = [entry.record.same_as]
        for target in targets:
            if target not in written:
                faults.append(f"{entry.place}: [{entry.id}] points at {target!r}, which the ledger does not have")
            elif target in ledger and isinstance(ledger[target].record, Alias | Statement):
                faults.append(f"{entry.place}: [{entry.id}] points at {target!r}, which holds no values itself")
    return faults


def line_of(text: str, record_id: str, key: object = None, *_: object) -> int:
    """The line of a record's header, or of one of its keys; lines count from 1."""
    lines = text.splitlines()
    opening = re.compile(rf"""\s*\[\s*["']?{re.escape(record_id)}["']?\s*[].]""")
    header = next((i for i, line in enumerate(lines) if opening.match(line)), 0)
    if isinstance(key, str):
        for i, line in enumerate(lines[header + 1 :], start=header + 1):
            if line.startswith("["):
                break
            if re.match(rf"\s*{re.escape(key)}\s*=", line):
                return i + 1
    return header + 1


def line_of_syntax_error(error: ValueError, content: bytes) -> int:
    if isinstance(error, UnicodeDecodeError):
        return content.count(b"\n", 0, error.start) + 1
    found = re.search(r"at line (\d+)", str(error))
    return int(found[1]) if found else content.count(b"\n") + 1


def explain(error: dict) -> str:
    """One pydantic error in the words of the ledger."""
    where = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "extra_forbidden":
            return f"unknown key `{where}`: is it a typo?"
        case "missing":
            return f"the key `{where}` is missing"
        case "value_error":
            message = str(error["ctx"]["error"])
            return f"`{where}`: {message}" if where else message
        case _:
            return f"`{where}`: {error['msg']}"
