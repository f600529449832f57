"""``python -m bertbook``: checks your solutions of the book's exercises."""

import os
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bertbook.check import EXERCISES, examine_file
from bertbook.check.load import CannotCheck, describe_error, readers_line
from bertbook.findings import folded

LIMIT = 120  # seconds; a check takes a few


def help_text() -> str:
    """How to call this, and every exercise with what to write.

    >>> print(help_text().splitlines()[0])
    Usage: python -m bertbook check EXERCISE FILE
    """
    lines = [
        "Usage: python -m bertbook check EXERCISE FILE",
        "",
        "Runs FILE and checks what it defines. The exercises:",
    ]
    for name, exercise in EXERCISES.items():
        lines.append(f"  {name}: define {exercise.solution}")
        lines += folded(f"    {exercise.asks}")
    return "\n".join(
        [
            *lines,
            "",
            'In a notebook: from bertbook.check import check; check("EXERCISE", yours)',
            "Exit status: 0 all cases passed, 1 some failed, 2 nothing to check.",
            f"A check of more than {LIMIT} seconds is stopped; its status is 1.",
        ]
    )


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End the program with status 1 if the block takes longer, and say where it was.

    A thread watches, since no exception ends a loop that catches every exception.

    >>> with time_limit(60):
    ...     print("done in time")
    done in time
    """
    watched = threading.get_ident()

    def stop() -> None:
        try:
            frame = sys._current_frames().get(watched)
            where = readers_line(traceback.extract_stack(frame))
            print(f"Stopped: not done after {seconds:g} seconds{where}")
            print("Is there a loop without an end?", flush=True)
        finally:
            os._exit(1)

    watch = threading.Timer(seconds, stop)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def main(arguments: Sequence[str]) -> int:
    """Run the command, print its report, and return the exit status.

    >>> main(["check", "by_hand", "my_step.py"])
    There is no file my_step.py. Is this its folder?
    2
    """
    match list(arguments):
        case [] | ["-h" | "--help" | "help"] | ["check", "-h" | "--help"]:
            print(help_text())
            return 0
        case ["check", exercise, path]:
            try:
                with time_limit(LIMIT):
                    report = examine_file(exercise, path)
            except CannotCheck as error:
                print(error)
                return 2
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                # What comes only at the second call, or by changing a library.
                print(f"The check could not go on.\n{describe_error(error)}")
                return 1
            print(report)
            return 0 if report.passed else 1
    print(help_text())
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
