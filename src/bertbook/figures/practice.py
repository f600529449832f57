"""Drawings of the chapter on fine-tuning in practice: schedules and losses."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from bertbook.figures.style import DARK_BLUE, STYLE

DASHES = ("-", "--", ":", "-.")
COLOURS = (DARK_BLUE, "#8a3b1b", "#2f6b2f", "#444444")


def schedule_curves(*curves: tuple[str, list[float]]) -> Figure:
    """The factor on the peak rate at every step, one named line a schedule.

    Args:
        curves: (name, factors) pairs, at most four; one factor a step.

    Raises:
        ValueError: if there is no curve or too many, or one is empty or not finite.

    >>> figure = schedule_curves(("warm-up", [0.5, 1.0, 0.5, 0.0]))
    >>> figure.axes[0].get_ylabel()
    'share of the peak rate'
    """
    check_named_curves(curves)
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.4, 3.0))
        for (name, factors), dash, colour in zip(curves, DASHES, COLOURS, strict=False):
            axis.plot(range(len(factors)), factors, dash, color=colour, label=name)
        axis.set(xlabel="step", ylabel="share of the peak rate", ylim=(0, 1.08))
        axis.legend(frameon=False)
    plt.close(figure)
    return figure


def losses_over_epochs(epochs: list[int], *curves: tuple[str, list[float]]) -> Figure:
    """Losses of one run on several sets, each line with its name and its own dashes.

    Args:
        epochs: where the losses were measured.
        curves: (name, losses) pairs, at most four, each as long as epochs.

    Raises:
        ValueError: if there is no curve or too many, or one is empty, not finite, or
            not as long as epochs.

    >>> figure = losses_over_epochs([0, 5], ("training", [0.7, 0.1]))
    >>> figure.axes[0].get_xlabel()
    'epoch'
    """
    check_named_curves(curves)
    for name, losses in curves:
        if len(losses) != len(epochs):
            raise ValueError(
                f"curve {name!r} must have {len(epochs)} losses, one an epoch, "
                f"got {len(losses)}"
            )
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.4, 3.0))
        for (name, losses), dash, colour in zip(curves, DASHES, COLOURS, strict=False):
            axis.plot(
                epochs, losses, dash, marker="o", markersize=4, color=colour, label=name
            )
        axis.set(xlabel="epoch", ylabel="mean loss (nats)", ylim=(0, None))
        axis.legend(frameon=False)
    plt.close(figure)
    return figure


def check_named_curves(curves: tuple[tuple[str, list[float]], ...]) -> None:
    """Raise unless there are one to four curves of finite numbers.

    >>> check_named_curves(())
    Traceback (most recent call last):
    ValueError: curves must hold one to four (name, numbers) pairs, got 0
    """
    if not 1 <= len(curves) <= len(DASHES):
        raise ValueError(
            f"curves must hold one to four (name, numbers) pairs, got {len(curves)}"
        )
    for name, numbers in curves:
        if not len(numbers) or not np.isfinite(numbers).all():
            raise ValueError(
                f"curve {name!r} must hold at least one number, all finite, "
                f"got {numbers!r}"
            )
