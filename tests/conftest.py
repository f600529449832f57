"""The book as `make html` built it."""

from pathlib import Path

import pytest

from book_paths import ROOT


@pytest.fixture(scope="session")
def html_folder() -> Path:
    folder = ROOT / "_build" / "html"
    if not (folder / "index.html").exists():
        pytest.fail("the book is not built: run `make test`, or `make html` first")
    return folder


def pytest_terminal_summary(terminalreporter) -> None:
    """What tests have to say beside passed or failed: they hand it to ``record_property`` as "summary"."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, text in getattr(report, "user_properties", []):
                if name == "summary" and report.when == "call":
                    terminalreporter.write_line(f"\n{text}")
