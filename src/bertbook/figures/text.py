"""Drawings of the chapter on text: how long sentences are, and batches with padding."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bertbook.figures.style import DARK_BLUE, STYLE

EDGE = "#5b6470"
PADDING = {"facecolor": "white", "hatch": "/////"}
TOKENS = {"facecolor": "#d5d9de"}


def length_histogram(counts: Sequence[int], *, width: int, room: int) -> Figure:
    """How many sentences have which length; the last bar holds all that are longer.

    Args:
        counts: of lengths below width, below 2 width, and so on.
        width: tokens, of each bar.
        room: the length that fills an input; a dashed line.

    Raises:
        ValueError: if counts is empty, or width or room is not positive.

    >>> figure = length_histogram([3, 5, 1], width=10, room=15)
    >>> [int(bar.get_height()) for bar in figure.axes[0].patches]
    [3, 5, 1]
    """
    if not len(counts):
        raise ValueError("counts is empty: give at least one bar")
    if width < 1 or room < 1:
        raise ValueError(f"width and room must be at least 1, got {width} and {room}")
    starts = [width * i for i in range(len(counts))]
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 2.6))
        axis.bar(
            starts,
            counts,
            width=width,
            align="edge",
            color=DARK_BLUE,
            edgecolor="white",
        )
        axis.axvline(room, linestyle="--", color="black")
        axis.text(room + 1, max(counts), "fills an input", va="top")
        ticks = starts[::2]
        names = [f"{start}" for start in ticks]
        if ticks[-1] == starts[-1]:
            names[-1] += " or more"
        axis.set_xticks(ticks, names)
        axis.set(xlabel="length (tokens)", ylabel="sentences")
    plt.close(figure)
    return figure


def padded_batches(*panels: tuple[str, Sequence[Sequence[int]]]) -> Figure:
    """Batches as stacks of bars: tokens are grey, padding is hatched.

    Args:
        panels: (title, batches); a batch is the lengths of its examples.

    Raises:
        ValueError: if there is no panel, or one has no batch, or a batch no example.

    >>> figure = padded_batches(("random", [[2, 5], [3, 3]]))
    >>> [int(bar.get_width()) for bar in figure.axes[0].patches if bar.get_hatch()]
    [3]
    """
    if not panels or not all(
        batches and all(len(batch) for batch in batches) for _, batches in panels
    ):
        raise ValueError("panels must hold batches of at least one example each")
    rows = max(sum(len(batch) + 1 for batch in batches) for _, batches in panels)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(panels), figsize=(6.5, 0.6 + 0.17 * rows), sharex=True, squeeze=False
        )
        for axis, (title, batches) in zip(axes[0], panels, strict=True):
            draw_batches(axis, batches)
            axis.set(title=title, xlabel="position")
    plt.close(figure)
    return figure


def draw_batches(axis: Axes, batches: Sequence[Sequence[int]]) -> None:
    """One bar an example, with a gap after each batch, whose number stands at its left.

    >>> figure, axis = plt.subplots()
    >>> draw_batches(axis, [[1, 2], [4]])
    >>> [label.get_text() for label in axis.get_yticklabels()]
    ['batch 1', 'batch 2']
    >>> plt.close(figure)
    """
    row, middles = 0, []
    for batch in batches:
        middles.append(row + (len(batch) - 1) / 2)
        for length in batch:
            axis.barh(row, length, height=0.9, edgecolor=EDGE, **TOKENS)
            if padding := max(batch) - length:
                axis.barh(
                    row, padding, left=length, height=0.9, edgecolor=EDGE, **PADDING
                )
            row += 1
        row += 1
    axis.set_yticks(middles, [f"batch {i + 1}" for i in range(len(batches))])
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.invert_yaxis()
