"""What is recorded of a comparison: each arm's curves, and its final numbers."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from bertbook.experiments.recording import RunLog


def spread(numbers: Sequence[float]) -> dict[str, Any]:
    """The numbers of the seeds, their mean, and how far they reach.

    >>> spread([6.0, 6.25, 6.5])
    {'each': [6.0, 6.25, 6.5], 'mean': 6.25, 'smallest': 6.0, 'largest': 6.5}
    """
    mean = sum(numbers) / len(numbers)
    return {
        "each": [round(number, 4) for number in numbers],
        "mean": round(mean, 4),
        "smallest": round(min(numbers), 4),
        "largest": round(max(numbers), 4),
    }


def arm_of(label: str) -> str:
    """Which arm a run belongs to: its label without the seed.

    >>> arm_of("rate-40-1")
    'rate-40'
    """
    return label.rpartition("-")[0]


def summarize_arms(logs: dict[str, RunLog]) -> dict[str, Any]:
    """The summary of each arm, from the logs of its seeds, in their order.

    >>> log = RunLog(evaluations=[{"step": 0, "loss": 7.0}, {"step": 2, "loss": 6.0}])
    >>> list(summarize_arms({"causal-0": log, "causal-1": log, "twin-0": log}))
    ['causal', 'twin']
    """
    arms = defaultdict(list)
    for label, log in logs.items():
        arms[arm_of(label)].append(log)
    return {arm: summarize_arm(seeds) for arm, seeds in arms.items()}


def summarize_arm(logs: Sequence[RunLog]) -> dict[str, Any]:
    """Of one arm: steps, seconds of each seed, curves of each seed, final numbers.

    What was evaluated from the start has a curve. What was evaluated at the end counts
    as a final number, if it is one.

    Args:
        logs: of the same arm with different seeds, evaluated at the same steps.

    Raises:
        ValueError: if they were not.

    >>> log = RunLog(evaluations=[{"step": 0, "loss": 7.0},
    ...                           {"step": 2, "loss": 6.0, "tokens": 64}])
    >>> summary = summarize_arm([log])
    >>> summary["curve"], summary["final"]["loss"]["mean"]
    ({'step': [0, 2], 'loss': [[7.0, 6.0]]}, 6.0)
    """
    steps, *others = [[point["step"] for point in log.evaluations] for log in logs]
    if any(other != steps for other in others):
        raise ValueError(
            f"logs must be evaluated at the same steps, got {[steps, *others]}"
        )
    curve: dict[str, Any] = {"step": steps}
    for name, number in logs[0].evaluations[0].items():
        if name != "step" and isinstance(number, int | float):
            curve[name] = [
                [round(numbers[name], 4) for numbers in log.evaluations] for log in logs
            ]
    last = [log.evaluations[-1] for log in logs]
    final = {
        name: spread([numbers[name] for numbers in last])
        for name, number in last[0].items()
        if name != "step" and isinstance(number, int | float)
    }
    return {
        "steps": steps[-1],
        "seconds": [round(log.seconds, 1) for log in logs],
        "curve": curve,
        "final": final,
    }
