"""What ``python -m bertbook.experiments`` does, and says.

``torchrun --nproc-per-node 2 -m bertbook.experiments`` does the same in two processes.
"""

import argparse
from collections.abc import Sequence

from bertbook.experiments import EXPERIMENTS, find_experiment
from bertbook.experiments.distributed import World, joined_world
from bertbook.experiments.progress import clock_time
from bertbook.experiments.recording import CHECKED_STEPS, check_recorded, record
from bertbook.experiments.results import StaleResult, load_result


def experiments_parser() -> argparse.ArgumentParser:
    """What the command understands.

    >>> experiments_parser().parse_args(["--steps", "5"]).steps
    5
    """
    parser = argparse.ArgumentParser(
        prog="python -m bertbook.experiments",
        description="Run the book's experiments and record what they find in "
        "book/results. What is recorded already is not run again; what was stopped "
        "goes on.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join(EXPERIMENTS)}; without a name: all",
    )
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="stop each run after so many steps, and record nothing",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"do the first steps (N or {CHECKED_STEPS}) of each run again, measure "
        "stored weights anew, and compare both with what is recorded",
    )
    parser.add_argument(
        "--device",
        help="cpu, cuda or mps; without it, the best there is, and cpu for a check",
    )
    return parser


def run_experiments(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status.

    >>> run_experiments(["nothing"])  # doctest: +ELLIPSIS
    There is no experiment 'nothing'; there are: ...
    2
    """
    asked = experiments_parser().parse_args(arguments)
    for name in asked.names:
        if name not in EXPERIMENTS:
            print(
                f"There is no experiment {name!r}; there are: {', '.join(EXPERIMENTS)}"
            )
            return 2
    names = asked.names or EXPERIMENTS
    # Results are compared where they can be computed everywhere.
    device = asked.device or ("cpu" if asked.check else None)
    with joined_world(device) as world:
        if asked.check:
            good = [report_check(name, world, steps=asked.steps) for name in names]
            return 0 if all(good) else 1
        try:
            for name in names:
                report_record(name, world, steps=asked.steps)
        except KeyboardInterrupt:
            print("\nStopped. The same command goes on from the last checkpoint.")
            return 130
        except StaleResult as error:  # of another experiment, which comes first
            say(world, str(error))
            return 1
        if world.leads and asked.steps is None:
            seconds = sum(load_result(name).seconds for name in names)
            print(f"All {len(names)} together took {clock_time(seconds)}.")
    return 0


def report_record(name: str, world: World, *, steps: int | None) -> None:
    """Run an experiment, unless its result is there, and say what was done.

    Raises:
        ValueError: if there is no such experiment, or steps is not positive.

    >>> report_record("nothing", World(), steps=5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: name must be one of (...), got 'nothing'
    """
    path = None
    if steps is None:
        try:
            load_result(name)
        except StaleResult as error:
            say(world, f"{name}: {error}")
        else:
            say(world, f"{name}: recorded already")
            return
    path = record(find_experiment(name), world, steps=steps)
    if path:
        took = clock_time(load_result(name).seconds)
        say(world, f"{name}: took {took}, recorded in {path.parent.name}/{path.name}")


def report_check(name: str, world: World, *, steps: int | None) -> bool:
    """Check an experiment, say what differs, and return whether nothing does.

    Raises:
        ValueError: if there is no such experiment, or steps is out of range.

    >>> report_check("nothing", World(), steps=5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: name must be one of (...), got 'nothing'
    """
    experiment = find_experiment(name)
    steps = CHECKED_STEPS if steps is None else steps
    try:
        faults = check_recorded(experiment, world, steps=steps)
    except StaleResult as error:
        faults = [str(error)]
    for fault in faults:
        say(world, f"{name}: {fault}")
    if not faults:
        say(world, f"{name}: equal to what is recorded, within {experiment.margin}")
    return not faults


def say(world: World, text: str) -> None:
    """Print a line, once for all processes.

    >>> say(World(rank=1, size=2), "heard from the first process already")
    >>> say(World(), "done")
    done
    """
    if world.leads:
        print(text, flush=True)
