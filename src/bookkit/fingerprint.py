"""One hash over everything that decides what the chapters compute, besides their own text."""

import hashlib
import sys
from pathlib import Path

IGNORED = {"__pycache__"}


def fingerprint(root: Path, inputs: list[str]) -> str:
    """A hash of the Python version and of every file below the inputs, names included.

    Args:
        root: the folder the inputs are relative to.
        inputs: files and folders; one that does not exist counts as absent.

    >>> from pathlib import Path
    >>> folder = getfixture("tmp_path")
    >>> before = fingerprint(folder, ["data"])
    >>> _ = (folder / "data").write_text("1")
    >>> before == fingerprint(folder, ["data"])
    False
    """
    digest = hashlib.sha256(sys.version.encode())
    for name in inputs:
        path = root / name
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            inside = file.relative_to(root)
            if file.is_file() and not any(part in IGNORED or part.endswith(".egg-info") for part in inside.parts):
                digest.update(f"\0{inside.as_posix()}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
