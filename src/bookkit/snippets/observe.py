"""Watches a chapter's cells while they run, and notes what a slice must know of each.

An extension of IPython, named in the kernels' configuration by `kernels`. What it notes goes to a file,
a line a cell, so that nothing of it shows on the page.
"""

import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bookkit.snippets.alone import picture_of
from bookkit.snippets.content import Content, content
from bookkit.verify import Verified, listeners

OBSERVED_VARIABLE = "BOOKKIT_OBSERVED"  # the file for the running chapter, set by the build
# Names that IPython defines; those of its history are _, _3, _i3, _ih and the like.
NOT_THE_PAGES = re.compile(r"In|Out|exit|quit|get_ipython|open|_+|_i+|_i?\d+|_[dio]h|_exit_code|__\w+")


class Snapshot:
    """What exists between two cells: each name with its object and what that holds; the generators; the settings."""

    def __init__(self, names: dict[str, Any], page: dict[str, Any]):
        self.page = page
        self.names = {name: (value, content(value, page)) for name, value in names.items()}
        self.generators = {name: content(state()) for name, state in generators().items()}
        self.settings = {name: content(state()) for name, state in settings().items()}

    def differences(self, after: "Snapshot") -> dict[str, Any]:
        """What a cell has changed, in the form in which it is kept."""
        names, now = self.names, after.names
        rebound = [name for name, (value, _) in now.items() if name not in names or names[name][0] is not value]
        changed = [name for name in names if after.of_object(name, names[name][0]).hash != names[name][1].hash]
        return {
            "changed": sorted(changed),
            "rebound": sorted(rebound),
            "unseen": sorted(name for name, (_, before) in names.items() if not before.seen_whole),
            "reads": {name: sorted(before.reads) for name, (_, before) in names.items() if before.reads},
            "draws": changed_states(fresh_generators() | self.generators, after.generators),
            "settings": changed_states(self.settings, after.settings),
        }

    def of_object(self, name: str, value: Any) -> Content:
        """What an object holds now, also when its name was given to another."""
        known, held = self.names.get(name, (None, None))
        return held if held and known is value else content(value, self.page)


def names_of_the_page(space: dict[str, Any]) -> dict[str, Any]:
    """What cells have defined.

    >>> names_of_the_page({"rows": 1, "_rows": 2, "_i3": "_rows = 2", "_": 2, "__name__": "__main__"})
    {'rows': 1, '_rows': 2}
    """
    return {name: value for name, value in space.items() if not NOT_THE_PAGES.fullmatch(name)}


def changed_states(before: dict[str, Content], now: dict[str, Content]) -> list[str]:
    """Which of the states that there were before have changed."""
    return [name for name, state in now.items() if name in before and state != before[name]]


def generators() -> dict[str, Callable[[], Any]]:
    """The state of each library's own random generator, if the chapter has imported the library."""
    return loaded(
        {
            "torch": lambda torch: torch.get_rng_state(),
            "numpy": lambda numpy: numpy.random.get_state(),
            "random": lambda random: random.getstate(),
        }
    )


def fresh_generators() -> dict[str, Content]:
    """The state in which a library's own generator began, for a cell that imports the library and draws at once."""
    began = {"torch": lambda torch: torch.Generator().manual_seed(torch.initial_seed()).get_state()}
    return {name: content(state()) for name, state in loaded(began).items()}


def settings() -> dict[str, Callable[[], Any]]:
    """What a cell can set for all cells after it."""
    return loaded(
        {
            "torch": lambda torch: [
                torch.get_num_threads(),
                torch.is_grad_enabled(),
                str(torch.get_default_dtype()),
                torch.are_deterministic_algorithms_enabled(),
                vars(torch._tensor_str.PRINT_OPTS),
            ],
            "numpy": lambda numpy: [numpy.geterr(), numpy.get_printoptions()],
            "matplotlib": lambda matplotlib: dict(matplotlib.rcParams),
            "jax": lambda jax: dict(jax.config.values),
        }
    )


def loaded(states: dict[str, Callable[[Any], Any]]) -> dict[str, Callable[[], Any]]:
    """Those of the states whose library is imported."""
    return {
        name: lambda state=state, name=name: state(sys.modules[name])
        for name, state in states.items()
        if name in sys.modules
    }


class Observer:
    """Compares what exists before a cell with what exists after it, which is what exists before the next."""

    def __init__(self, shell: Any, file: Path):
        self.shell, self.file = shell, file
        self.before = Snapshot({}, shell.user_ns)
        self.printed = io.StringIO()

    def start(self, info: Any) -> None:
        """Before a cell runs."""
        self.printed = io.StringIO()
        sys.stdout.echo = self.printed  # the kernel's stream writes there too

    def names(self) -> dict[str, Any]:
        """What the page has defined."""
        return names_of_the_page(self.shell.user_ns)

    def hear(self, *values: Any) -> None:
        """A value was given to verify: in its place, a program prints it."""
        print(*values, file=self.printed)

    def stop(self, result: Any) -> None:
        """After a cell ran."""
        sys.stdout.echo = None
        shown = what_is_shown(result.result)
        if shown == "value":
            self.hear(result.result)
        pictures = [picture_of(result.result)] if shown == "figure" else []  # IPython has drawn it by now
        after = Snapshot(self.names(), self.shell.user_ns)
        noted = {
            "source": result.info.raw_cell,
            "shown": shown,
            "pictures": pictures,
            "printed": self.printed.getvalue(),
            **self.before.differences(after),
        }
        self.before = after
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(noted) + "\n")


def what_is_shown(value: Any) -> str:
    """What a cell shows for the value of its last line: "nothing", "figure" or "value"."""
    figure = getattr(sys.modules.get("matplotlib.figure"), "Figure", ())
    if value is None or isinstance(value, Verified):
        return "nothing"
    return "figure" if isinstance(value, figure) else "value"


def load_ipython_extension(shell: Any) -> None:
    """Start to watch; IPython calls this when a kernel starts."""
    if OBSERVED_VARIABLE not in os.environ:
        return
    file = Path(os.environ[OBSERVED_VARIABLE])
    file.write_text("")
    observer = Observer(shell, file)
    shell.events.register("pre_run_cell", observer.start)
    shell.events.register("post_run_cell", observer.stop)
    listeners.append(observer.hear)
