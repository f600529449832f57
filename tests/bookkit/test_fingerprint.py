"""What changes the fingerprint, so that everything is executed again, and what does not."""

import sys

import pytest

from bookkit.fingerprint import fingerprint

INPUTS = ["src", "book/ledger", "requirements.txt", "absent"]
FILES = {
    "src/package/module.py": "x = 1\n",
    "src/package/data.bin": "\0",
    "book/ledger/one.toml": "[a]\n",
    "requirements.txt": "torch==2\n",
    "README.md": "words\n",
}


@pytest.fixture
def root(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def rewrite(name, content="changed\n"):
    def change(root):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)

    return change


def swap(one, other):
    def change(root):
        first, second = (root / one).read_text(), (root / other).read_text()
        (root / one).write_text(second)
        (root / other).write_text(first)

    return change


CHANGES = {
    "a module": rewrite("src/package/module.py"),
    "data": rewrite("src/package/data.bin"),
    "a record": rewrite("book/ledger/one.toml"),
    "the lock": rewrite("requirements.txt"),
    "a new file": rewrite("src/package/new.py"),
    "a new empty file": rewrite("src/package/new.py", ""),
    "an input that was absent": rewrite("absent/result.json"),
    "a file less": lambda root: (root / "src/package/data.bin").unlink(),
    "a new name": lambda root: (root / "src/package/module.py").rename(root / "src/package/other.py"),
    "a file moved": lambda root: (root / "src/package/module.py").rename(root / "src/module.py"),
    "contents exchanged": swap("src/package/module.py", "src/package/data.bin"),
}
NO_CHANGES = {
    "nothing": lambda root: None,
    "the same again": rewrite("src/package/module.py", FILES["src/package/module.py"]),
    "a file beside the inputs": rewrite("README.md"),
    "the linter's cache": rewrite("src/package/.ruff_cache/0.1/1234"),
    "compiled modules": rewrite("src/package/__pycache__/module.cpython-311.pyc"),
    "what pip writes": rewrite("src/book.egg-info/PKG-INFO"),
    "an empty folder": lambda root: (root / "src/empty").mkdir(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_an_input_changes_it(root, change):
    before = fingerprint(root, INPUTS)
    change(root)
    assert fingerprint(root, INPUTS) != before


@pytest.mark.parametrize("change", NO_CHANGES.values(), ids=NO_CHANGES)
def test_nothing_else_changes_it(root, change):
    before = fingerprint(root, INPUTS)
    change(root)
    assert fingerprint(root, INPUTS) == before


def test_another_python_changes_it(root, monkeypatch):
    before = fingerprint(root, INPUTS)
    monkeypatch.setattr(sys, "version", "3.99")
    assert fingerprint(root, INPUTS) != before


def test_where_the_project_lies_does_not_matter(root, tmp_path):
    """Not even below a folder whose name is ignored inside the project."""
    before = fingerprint(root, INPUTS)
    moved = tmp_path / "__pycache__" / "book.egg-info"
    moved.mkdir(parents=True)
    for name in ("src", "book", "requirements.txt"):
        (root / name).rename(moved / name)
    assert fingerprint(moved, INPUTS) == before != fingerprint(root, INPUTS)
