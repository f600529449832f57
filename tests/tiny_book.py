"""A tiny book that Sphinx builds for a test, and how its pages are read."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes

from bookkit.ledger import LEDGER_VARIABLE
from bookkit.verify import BUILD_VARIABLE


class Project:
    """The files of a book (text by their paths), and how it is built."""

    def __init__(self, root: Path, files: Mapping[str, str]):
        self.root = root
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content, encoding="utf-8")

    def build(self, builder: str, output: str = "_build", jobs: int = 1) -> tuple[int, str]:
        """Exit status and warnings. In a process of its own, as `make` does: a build changes its process."""
        environment = {k: v for k, v in os.environ.items() if k not in (LEDGER_VARIABLE, BUILD_VARIABLE)}
        environment["PYTHONPATH"] = os.pathsep.join([*filter(None, sys.path), str(self.root / "src")])
        environment["SOURCE_DATE_EPOCH"] = "1767225600"
        warnings = self.root / f"{output}-{builder}-warnings.txt"  # without what a dying kernel says to the terminal
        command = [sys.executable, "-m", "sphinx", "-n", "-q", "-j", str(jobs), "-w", str(warnings), "-b", builder]
        command += ["-c", ".", "-d", f"{output}/doctrees", "book", f"{output}/{builder}"]
        status = subprocess.run(command, cwd=self.root, env=environment, capture_output=True).returncode
        return status, warnings.read_text("utf-8")

    def doctree(self, name: str) -> nodes.document:
        return pickle.loads((self.root / f"_build/doctrees/{name}.doctree").read_bytes())

    def page(self, name: str) -> BeautifulSoup:
        return BeautifulSoup((self.root / f"_build/html/{name}.html").read_text("utf-8"), "html.parser")

    def report(self, output: str = "_build") -> dict:
        return json.loads((self.root / output / "report.json").read_text("utf-8"))


def text_of(node) -> str:
    """The text of a docutils node or of an HTML element, without the sign for a link to it."""
    text = node.astext() if isinstance(node, nodes.Node) else node.text.replace("¶", "")
    return " ".join(text.split())


def line_of(text: str, words: str) -> int:
    """The only line that has these words."""
    (line,) = (number for number, line in enumerate(text.splitlines(), start=1) if words in line)
    return line
