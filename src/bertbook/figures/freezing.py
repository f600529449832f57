"""Drawings of the chapter on freezing: how many numbers train at which depth."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from bertbook.figures.style import DARK_BLUE, STYLE


def trainable_by_depth(depths: list[tuple[str, int]]) -> Figure:
    """One bar a choice: how many numbers train, in millions, written above the bar.

    Args:
        depths: (what is frozen, trainable numbers) pairs, from nothing to everything.

    Raises:
        ValueError: if depths is empty, or a count is negative.

    >>> figure = trainable_by_depth([("nothing", 3_000_000), ("embeddings", 1_500_000)])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['3.0', '1.5']
    """
    if not depths:
        raise ValueError("depths is empty: give at least one (name, count) pair")
    for name, count in depths:
        if count < 0:
            raise ValueError(f"counts must not be negative, got {count} for {name!r}")
    millions = [count / 1e6 for _, count in depths]
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.4, 3.4))
        bars = axis.bar(
            range(len(depths)), millions, color="white", edgecolor=DARK_BLUE, hatch="//"
        )
        axis.bar_label(bars, [f"{value:.1f}" for value in millions], fontsize=8)
        axis.set_xticks(
            range(len(depths)),
            [name for name, _ in depths],
            rotation=60,
            ha="right",
            rotation_mode="anchor",
        )
        axis.set(
            xlabel="frozen from below (embeddings + layers)",
            ylabel="trainable (millions)",
        )
    plt.close(figure)
    return figure
