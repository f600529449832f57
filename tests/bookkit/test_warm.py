"""Kernels that are forked from a warm process: what they are, what they find, and how they end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bookkit import warm
from bookkit.ledger import LEDGER_VARIABLE
from bookkit.verify import BUILD_VARIABLE

pytestmark = pytest.mark.skipif(not warm.possible(), reason="without pidfd every kernel starts as ever")

CONF = """
extensions = ["myst_nb", "bookkit.extension"]
exclude_patterns = ["ledger"]
nb_execution_mode = "force"
nb_execution_show_tb = True
nb_execution_timeout = {timeout}
html_theme = "basic"
bookkit_preload = {preload}
"""
LEDGER = '[two]\ntitle = "Two"\nverdict = "cited"\ncites = ["nobody2020"]\nvalue = 2\nagain = "2"\n'
# Stands for torch: a module that is none of the book's, and knows where it was imported.
HEAVY = "import os\nimport numpy.random\nPLACE = os.getpid()\n"
THREADED = "import threading, time\nthreading.Thread(target=time.sleep, args=[60], daemon=True).start()\n"
CHAPTER = """---
file_format: mystnb
kernelspec:
  name: python3
---
# Chapter

```{code-cell} ipython3
import json, os, random, signal, sys, warnings
from pathlib import Path

found = sorted(name for name in sys.modules if name.partition(".")[0] in ("bookkit", "demo", "heavy", "sphinx"))
import heavy, numpy
from demo import ANSWER

facts = {
    "same": {
        "main": [__name__, sys.modules["__main__"].__name__, sys.argv[1], Path(sys.argv[0]).name],
        "path": sys.path,
        "environment": {name: text for name, text in os.environ.items() if not name.startswith("JPY_")},
        "folder": os.getcwd(),
        "filters": sorted(str(item) for item in warnings.filters),
        "flags": list(sys.flags),
        "signals": [str(signal.getsignal(number)) for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE)],
        "leads its session": os.getsid(0) == os.getpid(),
        "hash": hash("a text"),
    },
    "found": found,
    "answer": ANSWER,
    "numbers": [random.random(), numpy.random.random()],
    "place": heavy.PLACE,
    "parent": os.getppid(),
    "process": os.getpid(),
}
Path(f"{os.environ['FACTS']}.{os.getpid()}").write_text(json.dumps(facts))
```

```{code-cell} ipython3
#last
```
"""


class Book:
    """Two chapters that do the same, except for the last cell of one."""

    def __init__(self, root: Path):
        self.root = root
        self.write("lib/heavy.py", HEAVY)
        self.write("lib/threaded.py", THREADED)
        self.write("src/demo.py", "ANSWER = 1\n")
        self.write("book/ledger/tiny.toml", LEDGER)
        self.write("book/index.md", "# Index\n\n```{toctree}\none\ntwo\n```\n")
        self.write("book/one.md", CHAPTER)
        self.write("book/two.md", CHAPTER)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def start(self, *preload: str, timeout: int = 60) -> subprocess.Popen:
        self.write("conf.py", CONF.format(preload=list(preload), timeout=timeout))
        for file in self.root.glob("facts.*"):
            file.unlink()
        environment = {k: v for k, v in os.environ.items() if k not in (LEDGER_VARIABLE, BUILD_VARIABLE)}
        places = [*filter(None, sys.path), str(self.root / "src"), str(self.root / "lib")]
        environment |= {"PYTHONPATH": os.pathsep.join(places), "FACTS": str(self.root / "facts")}
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "-c", ".", "-d", "doctrees", "book", "html"]
        return subprocess.Popen(command, cwd=self.root, env=environment, stderr=subprocess.PIPE, text=True)

    def build(self, *preload: str, timeout: int = 60) -> tuple[int, str, list[dict]]:
        """Exit status, warnings, and what each kernel saw."""
        process = self.start(*preload, timeout=timeout)
        _, warnings = process.communicate()
        return process.returncode, warnings, self.facts()

    def facts(self) -> list[dict]:
        return [json.loads(file.read_text()) for file in self.root.glob("facts.*")]


def running(pid: int) -> bool:
    """Whether there is such a process; one that only waits to be noticed has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Book:
    return Book(tmp_path_factory.mktemp("book"))


@pytest.fixture(scope="module")
def built(book) -> tuple[list[dict], list[dict]]:
    """What the kernels of a build with preloading saw, and those of one without; the code changed in between."""
    status, warnings, warmed = book.build("heavy")
    assert (status, warnings, len(warmed)) == (0, "", 2)
    book.write("src/demo.py", "ANSWER = 1 + 1\n")
    status, warnings, cold = book.build()
    assert (status, warnings, len(cold)) == (0, "", 2)
    return warmed, cold


def test_kernels_are_forked_from_the_process_that_imported(built):
    first, second = built[0]
    assert first["place"] == first["parent"] == second["place"] == second["parent"]
    assert first["process"] != second["process"]


def test_without_preloading_kernels_import_for_themselves(built):
    assert all(facts["place"] == facts["process"] for facts in built[1])


def test_a_fork_finds_what_a_new_process_finds(built):
    for warmed, cold in zip(*built, strict=True):
        assert warmed["same"] == cold["same"]
        assert set(warmed["found"]) - set(cold["found"]) == {"heavy"}  # both have what watches the cells
        assert not set(cold["found"]) - set(warmed["found"])


def test_kernels_draw_random_numbers_of_their_own(built):
    first, second = built[0]
    assert all(one != two for one, two in zip(first["numbers"], second["numbers"], strict=True))


def test_changed_code_of_the_book_is_what_the_next_build_runs(book, built):
    assert [facts["answer"] for facts in built[0]] == [1, 1]
    book.write("src/demo.py", "ANSWER = 1 + 2\n")
    _, _, warmed = book.build("heavy")
    assert [facts["answer"] for facts in warmed] == [3, 3]


def test_nothing_runs_when_the_build_has_ended(built):
    assert not any(running(facts[who]) for facts in built[0] for who in ("parent", "process"))


def test_one_chapter_alone_gets_an_ordinary_kernel(book, built):
    """It would wait for imports that it may not need."""
    assert book.build("heavy")[0] == 0
    with (book.root / "book/one.md").open("a") as file:
        file.write("More.\n")
    status, _, (facts,) = book.build("heavy")
    assert status == 0
    assert facts["place"] == facts["process"]


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_a_kernel_that_dies_is_one_failed_chapter(tmp_path, end):
    book = Book(tmp_path)
    book.write("book/one.md", CHAPTER.replace("#last", end))
    status, warnings, facts = book.build("heavy")
    assert status == 1
    assert "The kernel died while it ran this chapter" in warnings
    assert [kernel["place"] for kernel in facts] == [kernel["parent"] for kernel in facts]
    assert len(facts) == 2


def test_a_cell_that_takes_too_long_is_interrupted(tmp_path):
    book = Book(tmp_path)
    book.write("book/one.md", CHAPTER.replace("#last", "import time; time.sleep(300)"))
    _, warnings, facts = book.build("heavy", timeout=5)
    assert "CellTimeoutError" in warnings
    assert not any(running(kernel["process"]) for kernel in facts)


def test_a_killed_build_leaves_no_process(tmp_path):
    book = Book(tmp_path)
    book.write("book/one.md", CHAPTER.replace("#last", "import time; time.sleep(300)"))
    build = book.start("heavy")
    deadline = time.monotonic() + 60
    while not (facts := [kernel for kernel in book.facts() if kernel["place"] == kernel["parent"]]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    build.send_signal(signal.SIGKILL)
    build.communicate()
    while any(running(kernel[who]) for kernel in facts for who in ("parent", "process")):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_the_kernel_of_another_python_is_not_forked(monkeypatch):
    from jupyter_client.provisioning import local_provisioner

    monkeypatch.setattr(local_provisioner, "launch_kernel", lambda command, **options: (command, options))
    heated = warm.Warm([])
    try:
        other = ["/usr/bin/other-python", "-m", "ipykernel_launcher"]
        assert heated.launch(other, cwd="/", env={}) == (other, {"cwd": "/", "env": {}})
    finally:
        heated.stop()


def test_modules_that_start_threads_are_not_forked(tmp_path):
    status, warnings, facts = Book(tmp_path).build("threaded", "heavy")
    assert (status, len(facts)) == (0, 2)
    assert "bookkit_preload: one of these modules starts a thread" in warnings
    assert [kernel["place"] for kernel in facts] == [kernel["process"] for kernel in facts]


def test_a_module_that_is_not_installed(tmp_path):
    status, warnings, facts = Book(tmp_path).build("hevay.lib")
    assert status == 2
    assert "bookkit_preload in conf.py: no module 'hevay.lib' is installed; correct or remove it" in warnings
    assert facts == []
