"""Drawings of one training run: its losses, and what they are compared with."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from bertbook.figures.style import DARK_BLUE, STYLE


def run_curve(
    training: tuple[Sequence[float], Sequence[float]],
    held_out: tuple[Sequence[float], Sequence[float]],
    *,
    levels: Mapping[str, float],
    border: float,
) -> Figure:
    """The losses of a run in training (a line) and on held-out text (markers).

    Args:
        training: (steps, losses in nats).
        held_out: likewise, at fewer steps.
        levels: losses to compare with, by their names: labelled horizontal lines.
        border: the step at which the training has changed: a dashed vertical line.

    Raises:
        ValueError: if there are not as many steps as losses, or none.

    >>> figure = run_curve(([1, 2], [9, 7]), ([0, 2], [9, 8]), levels={}, border=1)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['training', 'held out']
    """
    for name, (steps, losses) in {"training": training, "held_out": held_out}.items():
        if not len(steps) or len(steps) != len(losses):
            raise ValueError(
                f"{name} must be as many steps as losses, at least one, "
                f"got {len(steps)} and {len(losses)}"
            )
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 3.6))
        last = training[0][-1]
        for name, loss in levels.items():
            axis.axhline(loss, linestyle="-.", color="#444444", linewidth=0.8)
            axis.text(last, loss, name, ha="right", va="bottom")
        axis.axvline(border, linestyle="--", color="#444444", linewidth=0.8)
        axis.plot(*training, color=DARK_BLUE, linewidth=1, label="training")
        axis.plot(
            *held_out,
            color="#a63d00",
            linestyle="none",
            marker="o",
            markersize=4,
            label="held out",
        )
        axis.set(xlabel="step", ylabel="loss (nats)")
        axis.legend(  # above the axes: everywhere else is something to read
            frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2
        )
    plt.close(figure)
    return figure
