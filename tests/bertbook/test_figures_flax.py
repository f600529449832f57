"""The drawing of three patterns of attention."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bertbook.figures.flax import attention_patterns

CAUSAL = np.tril(np.ones((3, 3), dtype=bool))


def test_every_visible_cell_holds_its_weight_and_every_hidden_one_is_hatched():
    weights = CAUSAL / CAUSAL.sum(axis=1, keepdims=True)
    figure = attention_patterns(("causal", weights, CAUSAL))
    axis = figure.axes[0]
    written = {text.get_position(): text.get_text() for text in axis.texts}
    assert written[0, 0] == "1.00"
    assert written[1, 2] == "0.33"
    assert len(written) == CAUSAL.sum()
    assert [patch.get_hatch() for patch in axis.patches] == ["///"] * 3


def test_a_matrix_need_not_be_square():
    figure = attention_patterns(
        ("one", np.eye(3), CAUSAL), ("cross", np.full((2, 4), 0.25), np.ones((2, 4), dtype=bool))
    )
    assert [axis.get_title() for axis in figure.axes] == ["one", "cross"]
    assert len(figure.axes[1].texts) == 8
    assert not plt.get_fignums()


def test_dark_cells_carry_white_text():
    figure = attention_patterns(("w", np.array([[0.9, 0.1]]), np.ones((1, 2), dtype=bool)))
    assert [text.get_color() for text in figure.axes[0].texts] == ["white", "black"]


def test_bad_panels_are_named():
    with pytest.raises(ValueError, match="panels is empty"):
        attention_patterns()
    with pytest.raises(ValueError, match="weights and visible of 'bad' must both have shape"):
        attention_patterns(("bad", np.eye(3), np.ones((2, 3), dtype=bool)))
    with pytest.raises(ValueError, match="weights and visible"):
        attention_patterns(("bad", np.ones(3), np.ones(3, dtype=bool)))
