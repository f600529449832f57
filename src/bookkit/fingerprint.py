"""One hash over everything that decides what the chapters compute, besides their own text."""

import hashlib
import sys
from pathlib import Path


def is_of_a_tool(name: str) -> bool:
    """Whether a file or folder was left by a tool: a cache, or what pip wrote when it installed the project.

    >>> [is_of_a_tool(name) for name in (".ruff_cache", "__pycache__", "demo.egg-info", "ruff.toml")]
    [True, True, True, False]
    """
    return name.startswith(".") or name == "__pycache__" or name.endswith(".egg-info")


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
            if file.is_file() and not any(map(is_of_a_tool, inside.parts)):
                digest.update(f"\0{inside.as_posix()}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
