"""Where the project is, and which of its pages are chapters."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
CHAPTERS = sorted(page.stem for page in (ROOT / "book").glob("*.md") if "{code-cell}" in page.read_text("utf-8"))
