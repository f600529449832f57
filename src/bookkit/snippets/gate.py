"""Runs every program of the last build alone, and compares what it gives with what its page shows."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bookkit.kernels import ENVIRONMENT
from bookkit.snippets import alone

# An error in the reader's code is told with its line, which in a program is another than in the cell.
LINE_OF_CODE = re.compile(r"in line \d+( of)?( your cell| \S+\.py)?")


def run_alone(
    programs: Mapping[Path, Mapping[str, Path]], blocked: list[str], *, fresh: bool = False
) -> Iterator[dict]:
    """Run programs side by side, each in a process of its own, and tell what each leaves behind.

    Args:
        programs: their files, each with what lies in the folder in which it runs, and where that is taken from.
        blocked: the packages that none of them may import.
        fresh: start an interpreter for each, instead of a copy of one that has imported the libraries.
    """
    environment = os.environ | ENVIRONMENT | {"MPLBACKEND": "agg"}
    jobs = os.cpu_count() or 1
    places = {
        str(path.resolve()): {name: str(place.resolve()) for name, place in beside.items()}
        for path, beside in programs.items()
    }
    task = {"programs": places, "blocked": blocked, "jobs": jobs, "fresh": fresh}
    # Isolated: no variable PYTHON… counts, not the folder, not what a user installed.
    command = [sys.executable, "-I", str(Path(alone.__file__)), json.dumps(task)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8") as running:
        yield from map(json.loads, running.stdout)
    if running.returncode:
        raise ChildProcessError(f"{alone.__file__} ended with status {running.returncode}")


class Outcome(NamedTuple):
    """What came of running every program."""

    programs: int
    faults: list[str]  # of all programs, each with its place

    def __str__(self) -> str:
        right = self.programs - len(self.faults)
        return "\n\n".join([*self.faults, f"{right} of {self.programs} programs run alone"])


def check_programs(listing: Path, *, fresh: bool = False, only: str = "") -> Outcome:
    """Run the programs of a build, and compare what each gives with its page.

    Args:
        listing: the build's `programs.json`.
        fresh: start a new interpreter for each program.
        only: a part of the file names; programs without it are left out.
    """
    content = json.loads(listing.read_text("utf-8"))
    wanted = [program for program in content["programs"] if only in program["file"]]
    expected = {str((listing.parent / program["file"]).resolve()): program for program in wanted}
    faults, root = [], listing.parent / content["root"]
    programs = {Path(file): beside(program, root) for file, program in expected.items()}
    for found in run_alone(programs, content["blocked"], fresh=fresh):
        program = expected[found["program"]]
        if wrong := differences(program, found):
            faults.append(fault(program, wrong, content["tag"]))
    return Outcome(len(expected), sorted([*faults, *needless_tags(wanted, content, root)]))


def fault(program: dict, wrong: list[str], tag: str) -> str:
    """What is wrong with a program, and what to do."""
    advice = (
        f"If the cell needs something that nobody can see it needs, give it the tag {tag!r}: "
        "then its program holds all earlier cells of the page."
    )
    if program["short"] is not None:
        advice = "It holds all earlier cells of the page: change what the cell does."
    return "\n".join([f"{program['place']}: the program {program['file']} is not right:", *wrong, advice])


def beside(program: dict, root: Path) -> dict[str, Path]:
    """What lies beside a program when it runs: what it says that it reads, and nothing else of the book."""
    return {name: root / name for name in program["reads"]}


def needless_tags(programs: list[dict], content: dict, root: Path) -> Iterator[str]:
    """The tags that ask for a longer program than is needed."""
    with tempfile.TemporaryDirectory() as folder:
        tagged = {}
        for i, program in enumerate(programs):
            if program["short"] is not None:
                file = Path(folder, f"{i}.py").resolve()
                file.write_text(program["short"]["text"], "utf-8")
                tagged[str(file)] = program
        places = {Path(file): beside(program["short"], root) for file, program in tagged.items()}
        for found in run_alone(places, content["blocked"]) if tagged else ():
            program = tagged[found["program"]]
            if not differences(program["short"], found):
                yield f"{program['place']}: the tag {content['tag']!r} is not needed: remove it"


def differences(expected: dict, found: dict) -> list[str]:
    """How what a program gave differs from what its page shows; empty if it does not."""
    faults = []
    if found["status"]:
        faults.append(f"it ends with status {found['status']}")
    if found["errors"]:
        faults.append(f"it writes to the error stream:\n{found['errors']}")
    if without_line(expected["printed"]) != without_line(found["printed"]):
        faults.append(f"the page shows\n{expected['printed']}but the program prints\n{found['printed']}")
    if expected["pictures"] != found["pictures"]:
        faults.append("a figure is not that of the page")
    return faults


def without_line(printed: str) -> str:
    """The text; if it tells in which line of the code an error was, without that, and without its line breaks."""
    if not LINE_OF_CODE.search(printed):
        return printed
    return LINE_OF_CODE.sub("in some line", " ".join(printed.split()))
