"""Drawings of the chapter on attention: maps of weights, grids of masks."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bertbook.figures.style import STYLE

# Where white text takes over from black, as a share of the "Blues" scale: here, and
# hardly anywhere else, both have a contrast of at least 4.5:1.
DARK_FROM = 0.712


def attention_heatmaps(*panels: tuple[str, np.ndarray]) -> Figure:
    """Weight matrices side by side, on one colour scale from 0 to the largest weight.

    Args:
        panels: (title, weights) pairs; weights of shape (T, T), rows are queries.

    Raises:
        ValueError: if there is no panel, or a matrix is not square.

    >>> figure = attention_heatmaps(("one", np.eye(2)), ("two", np.eye(2)))
    >>> len(figure.axes)  # two panels and the colour bar
    3
    """
    if not panels:
        raise ValueError("panels is empty: give at least one (title, weights) pair")
    matrices = [np.asarray(weights) for _, weights in panels]
    for matrix in matrices:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"weights must have shape (T, T), got {matrix.shape}")
    top = max(matrix.max() for matrix in matrices)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1,
            len(panels),
            figsize=(3.5 * len(panels) + 0.6, 3.4),
            squeeze=False,
        )
        for axis, (title, _), matrix in zip(axes[0], panels, matrices, strict=True):
            image = axis.imshow(matrix, cmap="Blues", vmin=0, vmax=top)
            write_cells(axis, matrix, top)
            axis.set(title=title, xlabel="key position", ylabel="query position")
        figure.colorbar(image, ax=axes[0], label="attention weight", shrink=0.8)
    plt.close(figure)  # else a notebook would show it twice
    return figure


def write_cells(axis: Axes, matrix: np.ndarray, top: float) -> None:
    """Write each value into its cell, white on dark and black on light."""
    size = len(matrix)
    axis.set_xticks(range(size))
    axis.set_yticks(range(size))
    axis.spines[:].set_visible(False)
    for row in range(size):
        for column in range(size):
            value = matrix[row, column]
            colour = "white" if value > DARK_FROM * top else "black"
            axis.text(
                column,
                row,
                f"{value:.2f}",
                ha="center",
                va="center",
                color=colour,
            )


def mask_grids(*panels: tuple[str, np.ndarray]) -> Figure:
    """Additive masks side by side: open cells hold 0, hatched cells -inf.

    Args:
        panels: (title, mask) pairs; mask of shape (T_q, T_k) holding 0 and -inf.

    Raises:
        ValueError: if there is no panel, or a mask holds anything but 0 and -inf.

    >>> len(mask_grids(("causal", np.array([[0.0, -np.inf], [0.0, 0.0]]))).axes)
    1
    """
    if not panels:
        raise ValueError("panels is empty: give at least one (title, mask) pair")
    masks = [np.asarray(mask) for _, mask in panels]
    for mask in masks:
        if mask.ndim != 2 or not np.isin(mask, (0, -np.inf)).all():
            raise ValueError(
                f"mask must have shape (T_q, T_k) and hold only 0 and -inf, got {mask}"
            )
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(panels), figsize=(2.9 * len(panels), 3.1), squeeze=False
        )
        for axis, (title, _), mask in zip(axes[0], panels, masks, strict=True):
            draw_mask(axis, mask)
            axis.set(title=title, xlabel="key position", ylabel="query position")
    plt.close(figure)
    return figure


def draw_mask(axis: Axes, mask: np.ndarray) -> None:
    """One mask: open cells white, hidden cells grey and hatched."""
    queries, keys = mask.shape
    axis.set(xlim=(-0.5, keys - 0.5), ylim=(queries - 0.5, -0.5), aspect="equal")
    axis.set_xticks(range(keys))
    axis.set_yticks(range(queries))
    axis.spines[:].set_visible(False)
    for query in range(queries):
        for key in range(keys):
            hidden = mask[query, key] < 0
            look = (
                {"facecolor": "#d5d9de", "hatch": "///"}
                if hidden
                else {"facecolor": "white"}
            )
            axis.add_patch(
                plt.Rectangle(
                    (key - 0.5, query - 0.5), 1, 1, edgecolor="#5b6470", **look
                )
            )
            label = axis.text(
                key,
                query,
                "$-\\infty$" if hidden else "0",
                ha="center",
                va="center",
            )
            label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.5})


def attention_maps(weights: np.ndarray, tokens: Sequence[str]) -> Figure:
    """The maps of all heads, a row a layer, on one colour scale from 0 to the largest.

    Args:
        weights: shape (L, H, T, T); rows of each map are queries.
        tokens: T of them; they are written at the outer edge only.

    Raises:
        ValueError: if weights has another shape, or there is nothing to draw.

    >>> figure = attention_maps(np.full((2, 3, 2, 2), 0.5), ["[CLS]", "[SEP]"])
    >>> len(figure.axes)  # six maps and the colour bar
    7
    """
    maps, size = np.asarray(weights), len(tokens)
    if maps.ndim != 4 or maps.shape[2:] != (size, size) or not maps.size:
        raise ValueError(
            f"weights must have shape (L, H, T, T) with T = {size}, the number of "
            f"tokens, got {maps.shape}"
        )
    layers, heads = maps.shape[:2]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            layers,
            heads,
            figsize=(1.6 * heads + 1.4, 1.45 * layers + 1.1),
            sharex=True,
            sharey=True,
            squeeze=False,
        )
        for (layer, head), axis in np.ndenumerate(axes):
            image = axis.imshow(
                maps[layer, head], cmap="Blues", vmin=0, vmax=maps.max()
            )
            axis.spines[:].set(visible=True, color="#5b6470", linewidth=0.5)
            axis.tick_params(length=0, labelsize=6)
            axis.tick_params(axis="x", rotation=90)
        for head, axis in enumerate(axes[0]):
            axis.set_title(f"head {head}")
        for layer, axis in enumerate(axes[:, 0]):
            axis.set_ylabel(f"layer {layer}", fontsize=11)
        axes[0, 0].set_xticks(range(size), tokens)
        axes[0, 0].set_yticks(range(size), tokens)
        figure.supxlabel("key: the token that is looked at", fontsize=10)
        figure.supylabel("query: the token that looks", fontsize=10)
        figure.colorbar(image, ax=axes, label="attention weight", shrink=0.4)
    plt.close(figure)
    return figure
