"""What an experiment found, as a file of the book: written once, refused when stale.

A result is ``book/results/<name>.json``: the values, and what made them.
"""

import hashlib
import json
import math
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from bertbook.experiments.sources import SOURCE, code_hashes

RESULTS = SOURCE.parent / "book" / "results"
COMMAND = "python -m bertbook.experiments"
SHOWN_CHANGES = 6  # of a stale result; whoever moves a module changes dozens


class StaleResult(Exception):
    """A result that is not there, or that other code or another file has made.

    >>> raise StaleResult("there is no result")
    Traceback (most recent call last):
    bertbook.experiments.results.StaleResult: there is no result
    """


@dataclass(frozen=True)
class Result:
    """What an experiment found, and how.

    >>> Result("sums", values={"sum": 3.0}, seeds=[0], seconds=1.0).command
    'python -m bertbook.experiments sums'
    """

    name: str  # of the experiment: its module is bertbook.experiments.<name>
    values: dict[str, Any]  # what chapters print and draw
    seeds: list[int]
    seconds: float  # how long it took
    first_losses: dict[str, list[float]] = field(default_factory=dict)  # of each run
    computed_on: dict[str, Any] = field(default_factory=dict)  # kind of device, ...
    versions: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # beside it, with their SHA-256
    code: dict[str, str] = field(default_factory=dict)  # see code_hashes

    @property
    def command(self) -> str:
        """What makes it anew."""
        return f"{COMMAND} {self.name}"

    @property
    def module(self) -> str:
        """The experiment that it is the result of."""
        return f"{__package__}.{self.name}"


def used_versions() -> dict[str, str]:
    """The versions on which seeded numbers depend.

    >>> sorted(used_versions())
    ['numpy', 'python', 'torch']
    """
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "torch")},
    }


def write_result(
    result: Result,
    *,
    files: Sequence[str] = (),
    folder: Path = RESULTS,
    source: Path = SOURCE,
) -> Path:
    """Write a result, with versions, and hashes of its files and of its code.

    Equal results give equal files, byte for byte.

    Args:
        result: its versions, files and code are filled in here.
        files: what belongs to it, such as weights; paths below folder.
        folder: where results lie.
        source: the folder that holds the package.

    Returns:
        the file's path.

    Raises:
        ValueError: if a number is not finite, or a text is an absolute path.
        FileNotFoundError: if one of the files is missing.

    >>> folder = getfixture("tmp_path")
    >>> result = Result("results", values={"sum": 3.0}, seeds=[0], seconds=1.0)
    >>> path = write_result(result, folder=folder)
    >>> load_result("results", folder=folder).values
    {'sum': 3.0}
    """
    found = asdict(result)
    found["versions"] = used_versions()
    found["files"] = {name: file_hash(folder / name) for name in files}
    found["code"] = code_hashes(result.module, source=source)
    found["command"] = result.command
    refuse_unfit(found, result.name)
    path = folder / f"{result.name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
    return path


def refuse_unfit(value: Any, place: str) -> None:
    """Raise a clear error for what does not belong into the book.

    >>> refuse_unfit({"loss": [1.0, float("nan")]}, "sums")
    Traceback (most recent call last):
    ValueError: sums.loss.1 must be a finite number, got nan
    """
    match value:
        case dict():
            for key, inner in value.items():
                refuse_unfit(inner, f"{place}.{key}")
        case list() | tuple():
            for i, inner in enumerate(value):
                refuse_unfit(inner, f"{place}.{i}")
        case float() if not math.isfinite(value):
            raise ValueError(f"{place} must be a finite number, got {value}")
        case str() if (
            PurePosixPath(value).is_absolute() or PureWindowsPath(value).is_absolute()
        ):
            raise ValueError(f"{place} must not be a path of this machine: {value!r}")


def file_hash(path: Path) -> str:
    """The SHA-256 of a file.

    >>> path = getfixture("tmp_path") / "empty"
    >>> _ = path.write_bytes(b"")
    >>> file_hash(path)[:8]
    'e3b0c442'
    """
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load_result(name: str, *, folder: Path = RESULTS, source: Path = SOURCE) -> Result:
    """Read a result, if the code that made it is the code that is here.

    Args:
        name: of the experiment.
        folder: where results lie; by default book/results of this repository.
        source: the folder that holds the package.

    Raises:
        StaleResult: if there is no such result, or the code or a file that belongs to
            it has changed since. It says what, and which command makes it anew.

    >>> load_result("no_such_experiment")
    Traceback (most recent call last):
    bertbook.experiments.results.StaleResult: there is no result \
'no_such_experiment'; to make it: python -m bertbook.experiments no_such_experiment
    """
    path = folder / f"{name}.json"
    remedy = f"{COMMAND} {name}"
    if not path.is_file():
        raise StaleResult(f"there is no result {name!r}; to make it: {remedy}")
    found = json.loads(path.read_text("utf-8"))
    del found["command"]
    result = Result(**found)
    changes = changed_parts(result.code, code_hashes(result.module, source=source))
    for file, digest in result.files.items():
        if not (folder / file).is_file():
            changes.append(f"{file} is missing")
        elif file_hash(folder / file) != digest:
            changes.append(f"{file} has changed")
    if changes:
        first, more = changes[:SHOWN_CHANGES], len(changes) - SHOWN_CHANGES
        words = "; ".join(first) + (f"; and {more} more" if more > 0 else "")
        raise StaleResult(
            f"the result {name!r} is not what this code gives: {words}. "
            f"To make it anew: {remedy}"
        )
    return result


def changed_parts(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """What has changed between two sets of hashes, in words.

    >>> changed_parts({"f": "1", "g": "1"}, {"f": "2", "h": "1"})
    ['f has changed', 'g is gone', 'h is new']
    """
    words = []
    for name in sorted(before | now):
        if name not in now:
            words.append(f"{name} is gone")
        elif name not in before:
            words.append(f"{name} is new")
        elif before[name] != now[name]:
            words.append(f"{name} has changed")
    return words
