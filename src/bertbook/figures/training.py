"""Drawings of training runs."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bertbook.figures.style import DARK_BLUE, STYLE


def loss_curve(losses: list[float], *, target: float | None = None) -> Figure:
    """Every loss of a run, a dot an epoch, and the target as a labelled dashed line.

    Args:
        losses: one a epoch, in nats.
        target: a loss to reach, or None.

    Raises:
        ValueError: if losses is empty or not finite.

    >>> figure = loss_curve([0.8, 0.5, 0.2], target=0.3)
    >>> figure.axes[0].get_xlabel()
    'epoch'
    """
    if not len(losses) or not np.isfinite(losses).all():
        raise ValueError(
            f"losses must hold at least one loss, all finite, got {losses!r}"
        )
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.4, 3.2))
        axis.plot(
            range(len(losses)),
            losses,
            marker="o",
            markersize=4,
            color=DARK_BLUE,
        )
        axis.set(xlabel="epoch", ylabel="loss before the step (nats)", ylim=(0, None))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        if target is not None:
            axis.axhline(target, linestyle="--", color="#444444", linewidth=1)
            axis.annotate(
                f"target: {target}",
                (0, target),
                xytext=(0, 4),
                textcoords="offset points",
            )
    plt.close(figure)
    return figure
