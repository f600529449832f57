"""How long the book takes to build, beside the same code without a book: one run, one machine.

    .venv/bin/python benchmarks/build.py

It works in a copy of the project, prints seconds, and last the ratio

    (cold build with execution) / (the same cells as plain scripts + the build without execution)

which would be 1 if checking and typesetting executed code cost nothing beyond the two.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]

# One process, one namespace a chapter, no kernel: what a reader gets who pastes the cells.
PLAIN_SCRIPTS = """
import sys
from pathlib import Path
from bookkit.cells import read_cells
for chapter in sorted(Path("book").glob("*.md")):
    namespace = {"__name__": "__main__"}
    for cell in read_cells(chapter.read_text("utf-8")):
        exec(compile(cell.source, str(chapter), "exec"), namespace)
"""


def copy_project(folder: Path) -> None:
    """The project without what was built; the environment is shared, and never written to."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns("_build", ".venv", ".git", "__pycache__"))
    (folder / ".venv").symlink_to(Path(sys.prefix))
    for name in ("requirements.txt", "pyproject.toml"):  # older than the environment: nothing to install
        os.utime(folder / name, (0, 0))


def seconds(command: list[str], folder: Path, *, may_fail: bool = False) -> float:
    """The wall-clock time of a command; its output is shown only if it fails."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - start
    if run.returncode and not may_fail:
        sys.exit(f"{' '.join(command)} failed:\n{run.stdout}{run.stderr}")
    return elapsed


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text("utf-8") + text, encoding="utf-8")


def report(label: str, elapsed: float) -> float:
    print(f"{label:<58} {elapsed:6.1f} s", flush=True)
    return elapsed


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "project"
        copy_project(folder)
        make_html = ["make", "html"]
        # Without execution no record is verified: the build fails, having done all its work.
        no_execution = [sys.executable, "-m", "sphinx", "-n", "-j", "8", "-c", ".", "-d", "_build/unexecuted/doctrees"]
        no_execution += ["-D", "nb_execution_mode=off", "-b", "html", "book", "_build/unexecuted/html"]

        seconds([sys.executable, "-c", "import torch, matplotlib.pyplot"], folder)  # warm the disk, for all alike
        cold = report("cold build with execution", seconds(make_html, folder))
        plain = report(
            "the same cells as plain scripts, one process", seconds([sys.executable, "-c", PLAIN_SCRIPTS], folder)
        )
        unexecuted = report("build without execution", seconds(no_execution, folder, may_fail=True))
        report("no-change rebuild", seconds(make_html, folder))
        append(folder / "book/attention.md", "\nOne more sentence.\n")
        report("rebuild after an edit to one chapter's prose", seconds(make_html, folder))
        append(folder / "src/bertbook/attention.py", "\n# One more comment.\n")
        report("rebuild after an edit to src/ (executes everything)", seconds(make_html, folder))
        append(folder / "book/ledger/attention.toml", "\n# One more comment.\n")
        report("rebuild after an edit to the ledger (executes everything)", seconds(make_html, folder))
    print(f"\nratio: {cold:.1f} / ({plain:.1f} + {unexecuted:.1f}) = {cold / (plain + unexecuted):.2f}")


if __name__ == "__main__":
    main()
