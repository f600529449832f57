"""Where the project is, and which of its pages are chapters."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
CHAPTERS = ["attention", "project"]
