"""The drawing of the Flax chapter: three patterns of attention."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from bertbook.figures.attention import DARK_FROM
from bertbook.figures.style import STYLE


def attention_patterns(*panels: tuple[str, np.ndarray, np.ndarray]) -> Figure:
    """Attention weights side by side; queries and keys may differ in number.

    A cell that a mask hides is hatched and empty; every other cell holds its weight.

    Args:
        panels: (title, weights, visible) triples, both of shape (T_q, T_k); visible is
            True where the query may look at the key.

    Raises:
        ValueError: if there is no panel, a matrix is not 2-D, or shapes differ.

    >>> seen = np.ones((2, 3), dtype=bool)
    >>> len(attention_patterns(("cross", np.full((2, 3), 1 / 3), seen)).axes)
    1
    """
    if not panels:
        raise ValueError("panels is empty: give at least one (title, weights, visible)")
    for title, weights, visible in panels:
        if np.ndim(weights) != 2 or np.shape(weights) != np.shape(visible):
            raise ValueError(
                f"weights and visible of {title!r} must both have shape (T_q, T_k), "
                f"got {np.shape(weights)} and {np.shape(visible)}"
            )
    with plt.rc_context(STYLE):
        widths = [np.shape(weights)[1] for _, weights, _ in panels]
        figure, axes = plt.subplots(
            1,
            len(panels),
            figsize=(8.6, 2.9),
            squeeze=False,
            width_ratios=widths,
        )
        for axis, (title, weights, visible) in zip(axes[0], panels, strict=True):
            weights, visible = np.asarray(weights), np.asarray(visible, dtype=bool)
            axis.imshow(weights, cmap="Blues", vmin=0, vmax=1)
            axis.set(title=title, xlabel="key", ylabel="query")
            axis.set_xticks(range(weights.shape[1]))
            axis.set_yticks(range(weights.shape[0]))
            axis.spines[:].set_visible(False)
            for (row, column), weight in np.ndenumerate(weights):
                if visible[row, column]:
                    colour = "white" if weight > DARK_FROM else "black"
                    axis.text(
                        column,
                        row,
                        f"{weight:.2f}",
                        ha="center",
                        va="center",
                        color=colour,
                    )
                else:
                    axis.add_patch(
                        plt.Rectangle(
                            (column - 0.5, row - 0.5),
                            1,
                            1,
                            facecolor="white",
                            edgecolor="#5b6470",
                            hatch="///",
                        )
                    )
    plt.close(figure)
    return figure
