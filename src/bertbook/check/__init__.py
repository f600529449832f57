"""Checks your solution of an exercise, and names the mistake if it knows it.

In a notebook cell: ``check("by_hand", bert_fine_tuning_step)``. In a shell:
``python -m bertbook check by_hand my_step.py``.
"""

from collections.abc import Callable
from difflib import get_close_matches
from typing import NamedTuple

from bertbook.check.load import CannotCheck, load_solution
from bertbook.findings import Report


class Exercise(NamedTuple):
    """What an exercise asks for, and where the book asks it.

    >>> EXERCISES["by_hand"].solution
    'bert_fine_tuning_step'
    """

    solution: str  # the name of the function or class to write
    asks: str


EXERCISES = {
    "by_hand": Exercise(
        "bert_fine_tuning_step",
        "one gradient step on a linear classifier, in NumPy (One step by hand)",
    ),
    "milestone_1": Exercise("TinySelfAttn", "multi-head self-attention (The project)"),
    "milestone_2": Exercise(
        "TinyBertForClassification", "the classifier around it (The project)"
    ),
    "milestone_3": Exercise(
        "TinyBertForClassification",
        "trained to a loss under 0.3; if your file also defines "
        "train(model, input_ids, labels, epochs), that loop is checked too "
        "(The project)",
    ),
}


def examine(
    exercise: str,
    solution: Callable,
    *,
    train: Callable | None = None,
    subject: str | None = None,
) -> Report:
    """The report on a solution.

    Args:
        exercise: one of EXERCISES.
        solution: your function or class.
        train: for milestone_3 only: your training loop, if it is to be checked.
        subject: how the report calls the solution; its own name unless given.

    Raises:
        CannotCheck: if there is no such exercise, or the solution cannot be called.

    >>> from bertbook.by_hand import bert_fine_tuning_step
    >>> examine("by_hand", bert_fine_tuning_step).passed
    True
    """
    wanted = find_exercise(exercise).solution
    if not callable(solution):
        raise CannotCheck(f"{wanted} must be callable, got {solution!r}")
    if train is not None and exercise != "milestone_3":
        raise CannotCheck(f"train belongs to milestone_3, not to {exercise}")
    subject = subject or f"{exercise}: {getattr(solution, '__name__', wanted)}"
    if exercise == "by_hand":
        from bertbook.check.step import examine_step

        return examine_step(solution, subject)
    # Imported here, so that an exercise in NumPy need not wait for torch.
    import torch

    from bertbook.check import toy

    with torch.random.fork_rng(devices=[]):  # your own random stream is left alone
        if exercise == "milestone_1":
            return toy.examine_attention(solution, subject)
        if exercise == "milestone_2":
            return toy.examine_classifier(solution, subject)
        return toy.examine_training(solution, subject, train)


def check(exercise: str, solution: Callable, *, train: Callable | None = None) -> None:
    """Print the report on a solution. Arguments and errors as for examine.

    >>> check("by_hand", lambda *arguments: {"loss": 0.5})
    Checking by_hand: <lambda>.
    What came out is what this gives:
    Mistake: missing key.
      There is no classifier_W and no classifier_b in it.
    <BLANKLINE>
    FAILED: form of the result
      expected: a dict with the keys classifier_W, classifier_b, loss
      got: a dict with the keys loss
    <BLANKLINE>
    0 of 1 cases passed.
    """
    print(examine(exercise, solution, train=train))


def examine_file(exercise: str, path: str) -> Report:
    """The report on the solution that a file defines.

    Raises:
        CannotCheck: if there is no such exercise, or the file does not run, or does
            not define the name that the exercise asks for.

    >>> examine_file("by_hnad", "my_step.py")
    Traceback (most recent call last):
    bertbook.check.load.CannotCheck: There is no exercise by_hnad; did you mean by_hand?
    """
    wanted = find_exercise(exercise).solution
    defined = vars(load_solution(path))
    if wanted not in defined:
        own = [
            name
            for name, value in defined.items()
            if callable(value)
            and getattr(value, "__module__", None) == defined.get("__name__")
        ]
        has = (
            f"It defines {', '.join(own)}."
            if own
            else "It defines no function or class."
        )
        raise CannotCheck(f"{path} does not define {wanted}. {has}")
    train = defined.get("train") if exercise == "milestone_3" else None
    subject = f"{exercise}: {wanted} in {path}"
    return examine(exercise, defined[wanted], train=train, subject=subject)


def find_exercise(name: str) -> Exercise:
    """The exercise of this name.

    >>> find_exercise("milestone_1").solution
    'TinySelfAttn'
    """
    if name in EXERCISES:
        return EXERCISES[name]
    close = get_close_matches(str(name), EXERCISES, n=1)
    there_is = (
        f"did you mean {close[0]}?" if close else f"there are {', '.join(EXERCISES)}"
    )
    raise CannotCheck(f"There is no exercise {name}; {there_is}")
