"""Drawings of the chapter on architecture: the sum, the parameters, a layer."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from bertbook.figures.style import DARK_BLUE, STYLE

PALE, PALE_BLUE, GREY = "#f2f4f7", "#dbe7f5", "#5b6470"


def embedding_sum(tokens: list[str], segments: list[int]) -> Figure:
    """What BERT adds up for each token: its word, its position, its segment.

    Args:
        tokens: T tokens.
        segments: T segment ids, 0 or 1.

    Raises:
        ValueError: if tokens is empty, the lengths differ, or a segment is not 0 or 1.

    Source: slide 9; after Devlin et al. 2019, figure 2.

    >>> figure = embedding_sum(["[CLS]", "yes", "[SEP]"], [0, 0, 0])
    >>> [text.get_text() for text in figure.axes[0].texts if "yes" in text.get_text()]
    ['yes', 'E[yes]']
    """
    if not tokens or len(tokens) != len(segments):
        raise ValueError(
            "tokens and segments must be as many, and at least one, "
            f"got {len(tokens)} and {len(segments)}"
        )
    if not set(segments) <= {0, 1}:
        raise ValueError(f"segments must hold only 0 and 1, got {segments}")
    rows = [
        ("token", [f"E[{token.strip('[]')}]" for token in tokens]),
        ("position", [f"P[{i}]" for i in range(len(tokens))]),
        ("segment", [f"S[{segment}]" for segment in segments]),
    ]
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 3.0))
        axis.set(xlim=(-1.1, len(tokens) - 0.4), ylim=(-4.55, 0.5))
        axis.axis("off")
        write(axis, -0.6, 0, "input", style="italic", ha="right")
        for column, token in enumerate(tokens):
            write(axis, column, 0, token, weight="bold")
        for row, (name, labels) in enumerate(rows, start=1):
            write(axis, -0.6, -row, name, style="italic", ha="right")
            for column, label in enumerate(labels):
                second = name == "segment" and segments[column] == 1
                hatch = "////" if second else None
                cell(axis, column, -row, label, hatch=hatch)
                if row > 1:
                    write(axis, column, -row + 0.5, "+")
        write(axis, -0.6, -4.15, "sum", style="italic", ha="right")
        for column in range(len(tokens)):
            write(axis, column, -3.5, "=")
            cell(axis, column, -4.15, f"x[{column}]", facecolor=PALE_BLUE)
    plt.close(figure)
    return figure


def cell(axis: Axes, x: float, y: float, label: str, *, hatch=None, facecolor=PALE):
    """One box of the sum, its label on a ground that hides the hatching.

    >>> figure, axis = plt.subplots()
    >>> cell(axis, 0, 0, "E[yes]")
    >>> len(axis.patches)
    1
    >>> plt.close(figure)
    """
    axis.add_patch(
        plt.Rectangle(
            (x - 0.43, y - 0.27),
            0.86,
            0.54,
            facecolor=facecolor,
            edgecolor=GREY,
            hatch=hatch,
        )
    )
    text = write(axis, x, y, label, size=9)
    text.set_bbox({"facecolor": facecolor, "edgecolor": "none", "pad": 1.5})


def write(axis: Axes, x: float, y: float, label: str, **how):
    """Black text, centred unless told otherwise.

    >>> figure, axis = plt.subplots()
    >>> write(axis, 0, 0, "input").get_ha()
    'center'
    >>> plt.close(figure)
    """
    return axis.text(x, y, label, **({"ha": "center", "va": "center"} | how))


def parameter_bars(counts: dict[str, int]) -> Figure:
    """One horizontal bar a component, labelled with its count and its share.

    Args:
        counts: component -> number of parameters, drawn from top to bottom.

    Raises:
        ValueError: if counts is empty or holds a number below 1.

    Source: slide 7.

    >>> figure = parameter_bars({"tokens": 300, "layers": 700})
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['300 (30.0%)', '700 (70.0%)']
    """
    if not counts or min(counts.values()) < 1:
        raise ValueError(f"counts must hold at least one count above 0, got {counts}")
    total = sum(counts.values())
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 0.42 * len(counts) + 0.9))
        bars = axis.barh(list(counts), list(counts.values()), color=DARK_BLUE)
        axis.bar_label(
            bars,
            [f"{count:,} ({share(count, total)})" for count in counts.values()],
            padding=4,
        )
        axis.invert_yaxis()
        axis.set(
            xlabel=f"parameters, of {total:,}", xlim=(0, 1.5 * max(bars.datavalues))
        )
        axis.xaxis.set_major_formatter(lambda count, _: f"{count / 1e6:g}M")
    plt.close(figure)
    return figure


def share(part: int, whole: int) -> str:
    """A part of a whole in percent; what rounds to nothing is said to be little.

    >>> share(1, 2), share(1, 10_000)
    ('50.0%', 'under 0.1%')
    """
    return f"{part / whole:.1%}" if part / whole >= 0.0005 else "under 0.1%"


BLOCKS = {
    "post-LN (BERT)": ("attention", "+", "LayerNorm", "feed-forward", "+", "LayerNorm"),
    "pre-LN (the toy)": (
        "LayerNorm",
        "attention",
        "+",
        "LayerNorm",
        "feed-forward",
        "+",
    ),
}


def norm_placement() -> Figure:
    """A post-LN layer beside a pre-LN layer: where the norm stands, what bypasses it.

    Source: slide 7.

    >>> figure = norm_placement()
    >>> [axis.get_title() for axis in figure.axes]
    ['post-LN (BERT)', 'pre-LN (the toy)']
    """
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(6.5, 4.4))
        for axis, (title, blocks) in zip(axes, BLOCKS.items(), strict=True):
            draw_layer(axis, blocks)
            axis.set_title(title)
    plt.close(figure)
    return figure


def draw_layer(axis: Axes, blocks: tuple[str, ...]) -> None:
    """A layer from bottom to top; every "+" also receives what its branch began with.

    A LayerNorm is hatched. A bypass begins after the "+" before it, or after that
    one's LayerNorm if this is where the next branch begins.

    >>> figure, axis = plt.subplots()
    >>> draw_layer(axis, ("attention", "+", "LayerNorm"))
    >>> [text.get_text() for text in axis.texts]
    ['x', 'attention', '+', 'LayerNorm', 'next layer']
    >>> plt.close(figure)
    """
    axis.set(xlim=(-1.5, 2.1), ylim=(-0.4, len(blocks) + 1.4))
    axis.axis("off")
    write(axis, 0, 0, "x")
    start = 0.3
    post_norm = blocks[0] != "LayerNorm"
    for height, block in enumerate(blocks, start=1):
        arrow(axis, (0, height - 0.72), (0, height - 0.28))
        if block == "+":
            axis.add_patch(plt.Circle((0, height), 0.24, facecolor="white", ec=GREY))
            axis.plot([0, 1.6, 1.6], [start, start, height], color=DARK_BLUE, lw=1.6)
            arrow(axis, (1.6, height), (0.26, height), color=DARK_BLUE, lw=1.6)
        else:
            axis.add_patch(
                FancyBboxPatch(
                    (-1.05, height - 0.22),
                    2.1,
                    0.44,
                    boxstyle="round,pad=0.03",
                    facecolor=PALE_BLUE if block == "LayerNorm" else PALE,
                    edgecolor=GREY,
                    hatch="////" if block == "LayerNorm" else None,
                )
            )
        text = write(axis, 0, height, block)
        if block == "LayerNorm":
            text.set_bbox({"facecolor": PALE_BLUE, "edgecolor": "none", "pad": 2})
        if block == ("LayerNorm" if post_norm else "+"):
            start = height + 0.42
    arrow(axis, (0, len(blocks) + 0.28), (0, len(blocks) + 0.75))
    write(axis, 0, len(blocks) + 1.0, "next layer")


def arrow(axis: Axes, start: tuple, end: tuple, **how) -> None:
    """A thin arrow from one point to another.

    >>> figure, axis = plt.subplots()
    >>> arrow(axis, (0, 0), (1, 1))
    >>> len(axis.patches)
    1
    >>> plt.close(figure)
    """
    look = {"color": GREY, "lw": 1.2} | how
    axis.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=11,
            shrinkA=0,
            shrinkB=0,
            **look,
        )
    )


def influence_grids(*panels: tuple[str, object]) -> Figure:
    """Who reaches whom, side by side: a dot where a replaced token changes a state.

    Args:
        panels: (title, matrix) pairs; bool matrices of shape (T, T), rows are states.

    Raises:
        ValueError: if there is no panel.

    Source: slide 5.

    >>> figure = influence_grids(("all", [[True, True], [True, True]]))
    >>> len(figure.axes[0].patches)
    4
    """
    if not panels:
        raise ValueError("panels is empty: give at least one (title, matrix) pair")
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(panels), figsize=(6.5, 6.5 / len(panels) + 0.5), squeeze=False
        )
        for axis, (title, matrix) in zip(axes[0], panels, strict=True):
            draw_influence(axis, matrix)
            axis.set(title=title, xlabel="token replaced")
        axes[0][0].set_ylabel("state")
    plt.close(figure)
    return figure


def draw_influence(axis: Axes, matrix) -> None:
    """One matrix: a dot where the state changes, hatching where it does not.

    >>> figure, axis = plt.subplots()
    >>> draw_influence(axis, [[True, False], [True, True]])
    >>> [bool(patch.get_hatch()) for patch in axis.patches]
    [False, True, False, False]
    >>> plt.close(figure)
    """
    size = len(matrix)
    axis.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal")
    axis.set_xticks(range(size))
    axis.set_yticks(range(size))
    axis.spines[:].set_visible(False)
    for row, states in enumerate(matrix):
        for column, changes in enumerate(states):
            look = (
                {"facecolor": "white"}
                if changes
                else {"facecolor": "#d5d9de", "hatch": "///"}
            )
            axis.add_patch(
                plt.Rectangle((column - 0.5, row - 0.5), 1, 1, edgecolor=GREY, **look)
            )
            if changes:
                axis.plot(column, row, marker="o", color=DARK_BLUE, markersize=5)
