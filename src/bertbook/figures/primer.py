"""Drawings of the primer."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from bertbook.figures.style import DARK_BLUE, STYLE


def loss_and_mistake(
    probability: np.ndarray, loss: np.ndarray, mistake: np.ndarray
) -> Figure:
    """Cross-entropy and mistake of one example, over the right class's probability.

    Args:
        probability: increasing, in (0, 1], shape (n,).
        loss: the cross-entropy at each of them, in nats, shape (n,).
        mistake: bool, whether the prediction is wrong there, shape (n,).

    Raises:
        ValueError: if the shapes differ or are not (n,), or probability is not
            increasing in (0, 1].

    >>> p = np.array([0.1, 0.4, 0.9])
    >>> figure = loss_and_mistake(p, -np.log(p), p < 0.5)
    >>> len(figure.axes[0].lines)
    2
    """
    probability, loss, mistake = map(np.asarray, (probability, loss, mistake))
    if probability.ndim != 1 or not probability.shape == loss.shape == mistake.shape:
        raise ValueError(
            "probability, loss and mistake must have one shape (n,), got "
            f"{probability.shape}, {loss.shape} and {mistake.shape}"
        )
    inside = (probability > 0).all() and (probability <= 1).all()
    if not inside or not (np.diff(probability) > 0).all():
        raise ValueError(f"probability must increase in (0, 1], got {probability}")
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.4, 3.2))
        axis.plot(probability, loss, color=DARK_BLUE, label="cross-entropy (nats)")
        axis.plot(
            probability,
            mistake.astype(float),
            color="#444444",
            linestyle="--",
            drawstyle="steps-post",
            label="mistake (1 = wrong)",
        )
        axis.set(
            xlabel="probability of the right class",
            ylabel="cost of the example",
            xlim=(0, 1),
            ylim=(0, None),
        )
        axis.legend(frameon=False)
    plt.close(figure)
    return figure
