"""Drawings of the recap: the parts of the book, and what makes what possible."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from bertbook.figures.style import DARK_BLUE, STYLE

# Where the middle of each part's box stands; the drawing is 10 wide and 4 high.
PARTS = {
    "attention": (1.4, 3.2),
    "pretraining": (5.0, 3.2),
    "fine-tuning": (8.6, 3.2),
    "architecture": (1.4, 0.7),
    "project": (6.9, 0.7),
}
WIDTH, HEIGHT = 2.2, 0.9


def concept_map(arrows: list[tuple[str, str, str]]) -> Figure:
    """The five parts as boxes, a numbered arrow for each pair, and what it says below.

    Args:
        arrows: (from, to, what the first makes possible in the second) triples; both
            ends are keys of PARTS.

    Raises:
        ValueError: if there is no arrow, an end is no part, an arrow points at its own
            beginning, or two arrows join the same pair in the same direction.

    >>> figure = concept_map([("pretraining", "fine-tuning", "weights to start from")])
    >>> figure.axes[1].texts[0].get_text()
    '1  pretraining to fine-tuning: weights to start from'
    """
    check_arrows(arrows)
    with plt.rc_context(STYLE):
        figure, (map_axis, key_axis) = plt.subplots(
            2,
            1,
            figsize=(6.5, 3.0 + 0.25 * len(arrows)),
            height_ratios=[3.0, 0.25 * len(arrows)],
        )
        for axis in (map_axis, key_axis):
            axis.axis("off")
        map_axis.set(xlim=(0, 10), ylim=(0, 4))
        key_axis.set(xlim=(0, 10), ylim=(len(arrows) - 0.5, -0.5))
        boxes = {}
        for name, (x, y) in PARTS.items():
            boxes[name] = plt.Rectangle(
                (x - WIDTH / 2, y - HEIGHT / 2),
                WIDTH,
                HEIGHT,
                facecolor="white",
                edgecolor=DARK_BLUE,
                linewidth=1.5,
                zorder=2,
            )
            map_axis.add_patch(boxes[name])
            map_axis.text(x, y, name, ha="center", va="center", zorder=3)
        for number, (start, end, what) in enumerate(arrows, start=1):
            (x0, y0), (x1, y1) = PARTS[start], PARTS[end]
            map_axis.annotate(
                "",
                xy=(x1, y1),
                xytext=(x0, y0),
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": "#444444",
                    "patchA": boxes[start],
                    "patchB": boxes[end],
                    "shrinkA": 1,
                    "shrinkB": 1,
                },
            )
            map_axis.text(
                (x0 + x1) / 2,
                (y0 + y1) / 2,
                str(number),
                ha="center",
                va="center",
                zorder=4,
                bbox={
                    "boxstyle": "circle",
                    "facecolor": "white",
                    "edgecolor": "#444444",
                },
            )
            line = f"{number}  {start} to {end}: {what}"
            key_axis.text(0, number - 1, line, va="center", fontsize=9)
    plt.close(figure)
    return figure


def check_arrows(arrows: list[tuple[str, str, str]]) -> None:
    """Raise the error that names what is wrong with arrows (see concept_map).

    >>> check_arrows([("project", "project", "itself")])
    Traceback (most recent call last):
    ValueError: arrows must join two parts, got one from 'project' to itself
    """
    if not arrows:
        raise ValueError("arrows is empty: give at least one (from, to, what) triple")
    pairs = [(start, end) for start, end, _ in arrows]
    for start, end in pairs:
        for name in (start, end):
            if name not in PARTS:
                raise ValueError(f"arrows must join {list(PARTS)}, got {name!r}")
        if start == end:
            raise ValueError(
                f"arrows must join two parts, got one from {start!r} to itself"
            )
        if pairs.count((start, end)) > 1:
            raise ValueError(
                f"arrows must differ, got two from {start!r} to {end!r}: "
                "join their words into one"
            )
