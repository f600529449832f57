"""Runs programs where neither the book's packages nor this one can be imported. A script: it imports nothing of ours.

    python -I alone.py '{"programs": {"one.py": {}}, "blocked": ["book"], "jobs": 2, "fresh": false}'

Each program stands with what shall lie in the folder in which it runs: names, and the paths that they link to.

Importing torch takes longer than most programs do. So each program runs in a process of its own, forked
from one that has imported the libraries and drawn no random number; or, if `fresh`, in a new interpreter.
For each program it writes a line of JSON: its output, its errors, and a hash of each figure that it saves.
"""

import gc
import hashlib
import io
import json
import os
import runpy
import signal
import sys
import tempfile
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

# torch imports the first for every optimizer. JAX is left out: it does not survive a fork.
LIBRARIES = ("torch._dynamo", "numpy", "matplotlib.pyplot")
SECONDS = 300  # longer than any program may take
LOOKS = ("get_text", "get_array", "get_facecolor", "get_edgecolor", "get_color", "get_hatch", "get_linestyle")
LOOKS += ("get_visible", "get_xlim", "get_ylim", "get_offsets")
PLACES = ("get_xydata", "get_xy", "get_width", "get_height", "get_position")


class Blocker:
    """Finds no module of the blocked packages, wherever they are installed."""

    def __init__(self, blocked: list[str]):
        self.blocked = blocked

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self.blocked:
            raise ModuleNotFoundError(f"a program of the book may not import {name}", name=name)


def picture_of(figure: Any) -> str:
    """A hash of what a figure shows, which was drawn: of every line, area, image and text. Where the layout puts them
    is left out, because some layouts move a little each time that a figure is drawn.
    """
    shown = [describe(artist) for artist in figure.findobj()]
    return hashlib.sha256(repr(shown).encode()).hexdigest()


def describe(artist: Any) -> list:
    """What one part of a figure is, says, holds and looks like; and where it is, if that is given in data."""
    getters = LOOKS
    if hasattr(artist.axes, "transData") and artist.get_transform().contains_branch(artist.axes.transData):
        getters += PLACES
    values = [getattr(artist, name)() for name in getters if hasattr(artist, name)]
    return [type(artist).__name__, *(value.tolist() if hasattr(value, "tolist") else str(value) for value in values)]


def run(program: str, pictures: list[str]) -> None:
    """Run one program in this process, as its main module."""
    warnings.filterwarnings("error", module="__main__")
    figures = import_module("matplotlib.figure").Figure
    save = figures.savefig

    def save_and_note(figure: Any, *arguments: Any, **options: Any) -> None:
        save(figure, io.BytesIO(), format="svg")  # ticks and their labels come about when it is drawn
        pictures.append(picture_of(figure))
        save(figure, *arguments, **options)

    figures.savefig = save_and_note
    runpy.run_path(program, run_name="__main__")


def run_in_child(program: str, folder: Path) -> None:
    """What the forked process does; it never returns."""
    status, pictures = 1, []
    try:
        os.chdir(folder / "here")
        for stream in (1, 2):
            os.dup2(os.open(folder / str(stream), os.O_WRONLY | os.O_CREAT), stream)
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w"), encoding="utf-8", write_through=True)
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w"), encoding="utf-8", write_through=True)
        sys.argv = [program]
        run(program, pictures)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        (folder / "pictures").write_text(json.dumps(pictures))
        sys.stdout.flush()
        os._exit(status)


def start(program: str, beside: dict[str, str]) -> tuple[int, tempfile.TemporaryDirectory]:
    """Fork a process that runs the program, in a folder that holds nothing but what shall lie beside it."""
    folder = tempfile.TemporaryDirectory()
    (Path(folder.name) / "here").mkdir()
    for name, place in beside.items():
        link = Path(folder.name, "here", name)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place)
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        run_in_child(program, Path(folder.name))
    return child, folder


def result(program: str, status: int, folder: tempfile.TemporaryDirectory) -> dict:
    """What a program left behind."""
    path = Path(folder.name)
    pictures = path / "pictures"
    found = {
        "program": program,
        "status": os.waitstatus_to_exitcode(status),
        "printed": (path / "1").read_text("utf-8"),
        "errors": (path / "2").read_text("utf-8"),
        "pictures": json.loads(pictures.read_text()) if pictures.exists() else [],
        "files": sorted(file.name for file in (path / "here").iterdir()),
    }
    folder.cleanup()
    return found


def main() -> None:
    """Run every program that the argument lists, so many at a time."""
    task = json.loads(sys.argv[1])
    sys.meta_path.insert(0, Blocker(task["blocked"]))
    if not task["fresh"]:
        for library in LIBRARIES:
            import_module(library)
        gc.freeze()  # else each program looks for garbage among all these objects
    waiting, running = list(reversed(task["programs"].items())), {}
    while waiting or running:
        while waiting and len(running) < task["jobs"]:
            program, beside = waiting.pop()
            child, folder = start(program, beside)
            running[child] = program, folder
        child, status = os.wait()
        program, folder = running.pop(child)
        print(json.dumps(result(program, status, folder)), flush=True)


if __name__ == "__main__":
    main()
