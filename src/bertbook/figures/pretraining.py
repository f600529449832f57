"""Drawings of the chapter on pretraining: a masked sentence, shares, a packed pair."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bertbook.figures.style import DARK_BLUE, STYLE

EDGE = "#5b6470"
SHADED = {"facecolor": "#d5d9de", "hatch": "////"}
OPEN = {"facecolor": "white"}


def masking_steps(
    tokens: Sequence[str],
    selected: Sequence[bool],
    masked: Sequence[str],
    labels: Sequence[str],
) -> Figure:
    """One sentence on its way: what it was, what is selected, what BERT reads, labels.

    Args:
        tokens: the sentence, one text a token.
        selected: one a token; selected columns are hatched.
        masked: what stands in each place after masking.
        labels: the label of each place, as text.

    Raises:
        ValueError: if the four are of different lengths, or empty.

    >>> figure = masking_steps(["a", "b"], [False, True], ["a", "[MASK]"], ["-", "b"])
    >>> len(figure.axes[0].patches)  # four rows of two cells
    8
    """
    lengths = {len(tokens), len(selected), len(masked), len(labels)}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(
            "tokens, selected, masked and labels must be equally long and not empty, "
            f"got {len(tokens)}, {len(selected)}, {len(masked)} and {len(labels)}"
        )
    rows = {
        "sentence": tokens,
        "selected": ["yes" if chosen else "no" for chosen in selected],
        "BERT reads": masked,
        "label": labels,
    }
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 2.1))
        draw_rows(axis, rows, shaded=selected)
    plt.close(figure)
    return figure


def pair_layout(tokens: Sequence[str], token_type_ids: Sequence[int]) -> Figure:
    """A packed pair: token, position and segment of each place; segment B is hatched.

    Args:
        tokens: one text a place.
        token_type_ids: 0 or 1, one a place.

    Raises:
        ValueError: if the two are of different lengths, or empty.

    >>> figure = pair_layout(["[CLS]", "a", "[SEP]", "b", "[SEP]"], [0, 0, 0, 1, 1])
    >>> [text.get_text() for text in figure.axes[0].texts][5:10]  # the positions
    ['0', '1', '2', '3', '4']
    """
    if len(tokens) != len(token_type_ids) or len(tokens) == 0:
        raise ValueError(
            "tokens and token_type_ids must be equally long and not empty, "
            f"got {len(tokens)} and {len(token_type_ids)}"
        )
    rows = {
        "token": tokens,
        "position": [str(position) for position in range(len(tokens))],
        "segment": [str(segment) for segment in token_type_ids],
    }
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 1.7))
        draw_rows(axis, rows, shaded=[segment == 1 for segment in token_type_ids])
    plt.close(figure)
    return figure


def draw_rows(
    axis: Axes, rows: dict[str, Sequence[str]], *, shaded: Sequence[bool]
) -> None:
    """A grid of labelled rows of text cells; the shaded columns are grey and hatched.

    >>> figure, axis = plt.subplots()
    >>> draw_rows(axis, {"row": ["a", "b"]}, shaded=[False, True])
    >>> [text.get_text() for text in axis.texts]
    ['a', 'b']
    >>> plt.close(figure)
    """
    width = len(shaded)
    axis.set(xlim=(-0.5, width - 0.5), ylim=(len(rows) - 0.5, -0.5))
    axis.set_yticks(range(len(rows)), rows)
    axis.set_xticks([])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    for row, texts in enumerate(rows.values()):
        for column, text in enumerate(texts):
            look = SHADED if shaded[column] else OPEN
            cell = plt.Rectangle(
                (column - 0.5, row - 0.5), 1, 1, edgecolor=EDGE, **look
            )
            axis.add_patch(cell)
            label = axis.text(column, row, text, ha="center", va="center", fontsize=8)
            label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.2})


def masking_shares(
    outcomes: Sequence[tuple[str, float, float, float, float]],
) -> Figure:
    """How far each observed share lies from its expectation, inside its bounds.

    Args:
        outcomes: (name, expected, low, observed, high), shares in per cent.

    Raises:
        ValueError: if there is no outcome.

    >>> figure = masking_shares([("kept", 1.5, 1.4, 1.51, 1.6)])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['kept']
    """
    if not outcomes:
        raise ValueError("outcomes is empty: give at least one")
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 2.4))
        for row, (_, expected, low, observed, high) in enumerate(outcomes):
            reach = [[expected - low], [high - expected]]
            axis.errorbar(
                0,
                row,
                xerr=reach,
                color=EDGE,
                capsize=6,
                label=["bounds", None][row > 0],
            )
            axis.plot(
                observed - expected,
                row,
                "o",
                color=DARK_BLUE,
                label=["observed", None][row > 0],
            )
        axis.axvline(0, linestyle="--", linewidth=1, color=EDGE)
        axis.set_yticks(range(len(outcomes)), [name for name, *_ in outcomes])
        axis.set(
            ylim=(len(outcomes) - 0.5, -0.5),
            xlabel="observed minus expected share (percentage points)",
        )
        axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    plt.close(figure)
    return figure
