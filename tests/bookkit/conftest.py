"""Ledgers for tests: records from text, with or without a file."""

import itertools
import tomllib
from decimal import Decimal

import pytest
from hypothesis import settings

from bookkit.ledger import LEDGER_VARIABLE, load_ledger
from bookkit.record import record_class
from bookkit.verify import BUILD_VARIABLE

# The same examples on every machine, however slow it is.
settings.register_profile("bookkit", max_examples=200, deadline=None, derandomize=True)
settings.load_profile("bookkit")


@pytest.fixture(autouse=True)
def no_build(monkeypatch):
    """A build that ran earlier in this process, or in the shell that started it, must not decide a test."""
    monkeypatch.delenv(LEDGER_VARIABLE, raising=False)
    monkeypatch.delenv(BUILD_VARIABLE, raising=False)


@pytest.fixture(scope="session")
def record_of():
    """Makes a record of its keys in TOML."""

    def build(text: str):
        raw = tomllib.loads(text, parse_float=Decimal)
        return record_class(raw).model_validate(raw)

    return build


@pytest.fixture
def ledger_of(tmp_path, monkeypatch):
    """Writes each text to a file, loads the ledger of these files, and lets verify find it."""
    folders = (tmp_path / f"ledger-{count}" for count in itertools.count())

    def build(*texts: str):
        folder = next(folders)
        folder.mkdir()
        for name, text in zip(("one", "two"), texts, strict=False):
            (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        monkeypatch.setenv(LEDGER_VARIABLE, str(folder))
        return load_ledger(folder)

    return build
