"""``python -m bertbook``: checks your solutions of the book's exercises."""

import sys
from collections.abc import Sequence

from bertbook.check import EXERCISES, examine_file
from bertbook.check.load import CannotCheck
from bertbook.findings import folded


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
        ]
    )


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
                report = examine_file(exercise, path)
            except CannotCheck as error:
                print(error)
                return 2
            print(report)
            return 0 if report.passed else 1
    print(help_text())
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
