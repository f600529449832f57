"""Drawings of recorded comparisons: curves of each seed, and how far seeds reach."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from bertbook.figures.style import DARK_BLUE, STYLE

# An arm is known by its line and its marker; the colour only helps.
LOOKS = (
    {"color": DARK_BLUE, "linestyle": "-", "marker": "o"},
    {"color": "#a63d00", "linestyle": "--", "marker": "s"},
    {"color": "#3d3d3d", "linestyle": ":", "marker": "^"},
)


def curves_of_arms(
    steps: Sequence[int],
    arms: Mapping[str, Sequence[Sequence[float]]],
    *,
    ylabel: str,
    level: tuple[str, float] | None = None,
) -> Figure:
    """The curve of each seed, thin, and of each arm the mean of its seeds, thick.

    Args:
        steps: where the curves were measured.
        arms: by its name, an arm's curves, one a seed, each as long as steps.
        ylabel: what the curves show, with its unit.
        level: (name, value) of a horizontal line, or None.

    Raises:
        ValueError: if there is no arm, or more than three, or a curve of another
            length.

    >>> figure = curves_of_arms([0, 9], {"a": [[3, 2], [3, 1]]}, ylabel="loss (nats)")
    >>> figure.axes[0].lines[-1].get_ydata()
    array([3. , 1.5])
    """
    check_arms(arms)
    lengths = {len(curve) for curves in arms.values() for curve in curves}
    if lengths != {len(steps)}:
        raise ValueError(
            f"each curve must have a value for each of the {len(steps)} steps, "
            f"got curves of {sorted(lengths)}"
        )
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 3.4))
        if level:
            name, value = level
            axis.axhline(value, linestyle="-.", color="#444444", linewidth=1)
            axis.text(steps[-1], value, name, ha="right", va="bottom")
        for (name, curves), look in zip(arms.items(), LOOKS, strict=False):
            seed_look = {"color": look["color"], "linestyle": look["linestyle"]}
            for curve in curves:
                axis.plot(steps, curve, linewidth=0.7, alpha=0.6, **seed_look)
            mean = np.mean(curves, axis=0)
            axis.plot(steps, mean, label=name, linewidth=1.8, markersize=4, **look)
        axis.set(xlabel="step", ylabel=ylabel)
        axis.legend(frameon=False)
    plt.close(figure)
    return figure


def reach_of_seeds(
    rows: Mapping[str, Mapping[str, Sequence[float]]], *, xlabel: str
) -> Figure:
    """A line for each row, from its smallest seed to its largest, a marker each seed.

    Args:
        rows: by the arm's name, by the row's name, the numbers of the seeds.
        xlabel: what the numbers are, with their unit.

    Raises:
        ValueError: if there is no arm, or more than three, or a row without numbers.

    >>> figure = reach_of_seeds({"causal": {"read": [3.0, 3.5]}}, xlabel="loss (nats)")
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['causal: read']
    """
    check_arms(rows)
    if not all(len(numbers) for arm in rows.values() for numbers in arm.values()):
        raise ValueError("rows must hold at least one number each, got an empty one")
    names = [f"{arm}: {row}" for arm, its_rows in rows.items() for row in its_rows]
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 0.9 + 0.32 * len(names)))
        height = 0
        for its_rows, look in zip(rows.values(), LOOKS, strict=False):
            for numbers in its_rows.values():
                axis.plot(
                    sorted(numbers), [height] * len(numbers), markersize=6, **look
                )
                height += 1
        axis.set_yticks(range(len(names)), names)
        axis.set(xlabel=xlabel, ylim=(len(names) - 0.5, -0.5))
        axis.grid(axis="x", color="#d5d9de")
        axis.set_axisbelow(True)
    plt.close(figure)
    return figure


def check_arms(arms: Mapping[str, object]) -> None:
    """Raise a clear error unless each arm gets a look of its own.

    >>> check_arms({})
    Traceback (most recent call last):
    ValueError: arms must be one to 3, got 0
    """
    if not 1 <= len(arms) <= len(LOOKS):
        raise ValueError(f"arms must be one to {len(LOOKS)}, got {len(arms)}")
