"""The primer's drawing: both lines, their names without colour, and what is refused."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba

from bertbook.figures.primer import loss_and_mistake

P = np.array([0.1, 0.4, 0.5, 1.0])


def test_both_lines_are_drawn_and_told_apart_by_their_style():
    figure = loss_and_mistake(P, -np.log(P), P < 0.5)
    (axis,) = figure.axes
    loss, mistake = axis.lines
    assert np.array_equal(loss.get_xdata(), P)
    assert np.array_equal(loss.get_ydata(), -np.log(P))
    assert np.array_equal(mistake.get_xdata(), P)
    assert np.array_equal(mistake.get_ydata(), [1, 1, 0, 0])
    assert mistake.get_drawstyle() == "steps-post"  # a staircase, not a slope
    assert (loss.get_linestyle(), mistake.get_linestyle()) == ("-", "--")
    assert [text.get_text() for text in axis.get_legend().get_texts()] == [
        "cross-entropy (nats)",
        "mistake (1 = wrong)",
    ]
    assert axis.get_xlabel() == "probability of the right class"
    assert axis.get_ylim()[0] == 0
    assert figure.get_facecolor() == to_rgba("white")
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((P, P[:2], P < 0.5), "must have one shape (n,), got (4,), (2,) and (4,)"),
        ((P[None], P[None], P[None] < 0.5), "must have one shape (n,), got (1, 4)"),
        ((P[::-1], P, P < 0.5), "probability must increase in (0, 1], got [1.  0.5 0.4 0.1]"),
        ((P - 0.1, P, P < 0.5), "probability must increase in (0, 1]"),
        ((P + 0.1, P, P < 0.5), "probability must increase in (0, 1]"),
        ((P * np.nan, P, P < 0.5), "probability must increase in (0, 1]"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        loss_and_mistake(*arguments)
