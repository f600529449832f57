"""The drawings, by what is on them: titles, labels, cell texts, one scale, readable text; and the errors."""

import io
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure

from bertbook.attention import causal_mask, padding_mask
from bertbook.figures.attention import attention_heatmaps, attention_maps, mask_grids
from bertbook.figures.training import loss_curve

property_test = settings(max_examples=15, deadline=None, derandomize=True)
WHITE = to_rgba("white")


pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def panels_of(figure: Figure) -> list[Axes]:
    """The axes that hold a panel, without the colour bar."""
    return [axis for axis in figure.axes if axis.get_title()]


def cell_texts(axis: Axes) -> dict[tuple[int, int], str]:
    """(row, column) -> what is written there."""
    return {(int(text.get_position()[1]), int(text.get_position()[0])): text.get_text() for text in axis.texts}


def luminance(colour: tuple[float, ...]) -> float:
    """WCAG's relative luminance of an sRGB colour."""
    c = np.array(colour[:3])
    return float(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """WCAG's contrast ratio, from 1 to 21."""
    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


def lowest_contrast(figure: Figure) -> float:
    """The contrast of the least readable number with the colour of its own cell."""
    found = []
    for axis in panels_of(figure):
        (image,) = axis.images
        colours = image.to_rgba(image.get_array())
        for text in axis.texts:
            column, row = text.get_position()
            found.append(contrast(to_rgb(text.get_color()), colours[row, column]))
    return min(found)


def random_weights(seed: int, T: int) -> np.ndarray:
    """T rows that sum to 1: anything from even to nearly one-hot."""
    generator = np.random.default_rng(seed)
    return generator.dirichlet(np.full(T, generator.uniform(0.05, 5)), size=T)


def test_contrast_is_wcags():
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert contrast(to_rgb("#767676"), (1, 1, 1)) == pytest.approx(4.54, abs=0.005)


# Attention


def test_heatmaps_say_what_they_show():
    one, two = np.array([[0.9, 0.1], [0.25, 0.75]]), np.eye(3) / 2
    figure = attention_heatmaps(("bidirectional", one), ("causal", two))
    panels = panels_of(figure)
    assert [axis.get_title() for axis in panels] == ["bidirectional", "causal"]
    assert {axis.get_xlabel() for axis in panels} == {"key position"}
    assert {axis.get_ylabel() for axis in panels} == {"query position"}
    assert cell_texts(panels[0]) == {(0, 0): "0.90", (0, 1): "0.10", (1, 0): "0.25", (1, 1): "0.75"}
    assert len(cell_texts(panels[1])) == 9
    for axis, weights in zip(panels, (one, two), strict=True):
        assert np.array_equal(axis.images[0].get_array(), weights)  # row 0 on top, as in a printed matrix
        assert axis.images[0].origin == "upper"
        assert list(axis.get_xticks()) == list(axis.get_yticks()) == list(range(len(weights)))
    (colour_bar,) = set(figure.axes) - set(panels)
    assert colour_bar.get_ylabel() == "attention weight"


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 5), min_size=1, max_size=3))
@property_test
def test_panels_share_one_colour_scale_and_all_numbers_can_be_read(seed, sizes):
    matrices = [random_weights(seed + i, T) for i, T in enumerate(sizes)]
    figure = attention_heatmaps(*((f"panel {i}", matrix) for i, matrix in enumerate(matrices)))
    images = [axis.images[0] for axis in panels_of(figure)]
    top = max(matrix.max() for matrix in matrices)
    assert [(image.norm.vmin, image.norm.vmax) for image in images] == [(0, top)] * len(sizes)
    assert len({image.cmap.name for image in images}) == 1
    assert lowest_contrast(figure) >= 4.5


@pytest.mark.parametrize("top", [1.0, 0.2724, 1e-3])
def test_numbers_can_be_read_on_every_colour_of_the_scale(top):
    every_colour = np.linspace(0, top, 23 * 23).reshape(23, 23)  # twice as many values as the scale has colours
    assert lowest_contrast(attention_heatmaps(("all", every_colour))) >= 4.5


def test_weights_that_are_all_zero_are_drawn():
    figure = attention_heatmaps(("fully masked", np.zeros((2, 2))))
    assert set(cell_texts(figure.axes[0]).values()) == {"0.00"}
    assert lowest_contrast(figure) >= 4.5


def test_maps_of_heads_stand_in_rows_of_layers_on_one_scale():
    tokens = ["[CLS]", "rain", "[SEP]"]
    weights = np.stack([[random_weights(10 * layer + head, 3) for head in range(4)] for layer in range(2)])
    figure = attention_maps(weights, tokens)
    *maps, colour_bar = figure.axes
    for axis, of_head in zip(maps, weights.reshape(8, 3, 3), strict=True):
        (image,) = axis.images
        assert np.array_equal(image.get_array(), of_head)
        assert image.origin == "upper"
        assert (image.norm.vmin, image.norm.vmax, image.cmap.name) == (0, weights.max(), "Blues")
    assert [axis.get_title() for axis in maps] == ["head 0", "head 1", "head 2", "head 3", *[""] * 4]
    assert [axis.get_ylabel() for axis in maps] == ["layer 0", "", "", "", "layer 1", "", "", ""]
    assert colour_bar.get_ylabel() == "attention weight"
    assert figure.get_supxlabel() == "key: the token that is looked at"
    assert figure.get_supylabel() == "query: the token that looks"


def test_maps_of_heads_name_the_tokens_at_the_outer_edge_only():
    tokens = ["[CLS]", "rain", "[SEP]"]
    figure = attention_maps(np.full((2, 2, 3, 3), 1 / 3), tokens)
    figure.draw_without_rendering()
    shown = {
        side: [
            [text.get_text() for text in getattr(axis, f"get_{side}ticklabels")() if text.get_visible()]
            for axis in figure.axes[:4]
        ]
        for side in "xy"
    }
    assert shown == {"x": [[], [], tokens, tokens], "y": [tokens, [], tokens, []]}


# Masks


def test_mask_grids_show_every_cell_without_relying_on_colour():
    causal = causal_mask(3).numpy()
    padding = padding_mask(torch.tensor([[1, 1, 0]]))[0, 0].numpy()
    figure = mask_grids(("causal", causal), ("padding", padding))
    assert [axis.get_title() for axis in figure.axes] == ["causal", "padding"]
    for axis, mask in zip(figure.axes, (causal, padding), strict=True):
        assert (axis.get_xlabel(), axis.get_ylabel()) == ("key position", "query position")
        cells = {(row, column): value for (row, column), value in np.ndenumerate(mask)}
        assert cell_texts(axis) == {cell: "$-\\infty$" if value else "0" for cell, value in cells.items()}
        hatched = {(round(p.get_y() + 0.5), round(p.get_x() + 0.5)) for p in axis.patches if p.get_hatch()}
        assert len(axis.patches) == mask.size
        assert hatched == {cell for cell, value in cells.items() if value}
        assert all(text.get_bbox_patch().get_facecolor() == WHITE for text in axis.texts)
        assert all(contrast(to_rgb(text.get_color()), WHITE) >= 4.5 for text in axis.texts)
        assert axis.yaxis_inverted()  # query 0 on top


# Losses


def test_loss_curve_draws_every_loss_and_the_target():
    losses = [0.8, 0.5, 0.2]
    (axis,) = loss_curve(losses, target=0.3).axes
    curve, target = axis.lines
    assert list(curve.get_xdata()) == [0, 1, 2]
    assert list(curve.get_ydata()) == losses
    assert curve.get_marker() == "o"
    assert set(target.get_ydata()) == {0.3}
    assert target.get_linestyle() == "--"
    assert [text.get_text() for text in axis.texts] == ["target: 0.3"]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("epoch", "loss before the step (nats)")
    assert axis.get_ylim()[0] == 0  # a cut axis would make a small drop look large
    assert all(tick == int(tick) for tick in axis.get_xticks())


def test_loss_curve_without_a_target_has_one_line():
    (axis,) = loss_curve([0.7]).axes
    assert len(axis.lines) == 1
    assert not axis.texts


# All


@pytest.mark.parametrize(
    "draw",
    [
        lambda: attention_heatmaps(("one", np.eye(4)), ("two", np.eye(2))),
        lambda: attention_maps(np.full((1, 2, 2, 2), 0.5), ["[CLS]", "[SEP]"]),
        lambda: mask_grids(("one", causal_mask(4).numpy())),
        lambda: loss_curve([0.7, 0.6], target=0.3),
    ],
    ids=["attention_heatmaps", "attention_maps", "mask_grids", "loss_curve"],
)
@pytest.mark.parametrize("file_format", ["png", "svg", "pdf"])
def test_figures_save_in_every_format_on_an_opaque_white_ground(draw, file_format):
    figure = draw()
    assert figure.get_facecolor() == WHITE
    file = io.BytesIO()
    figure.savefig(file, format=file_format)
    assert file.tell() > 1000


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (attention_heatmaps, "panels is empty: give at least one (title, weights) pair"),
        (mask_grids, "panels is empty: give at least one (title, mask) pair"),
        (lambda: attention_heatmaps(("a", np.eye(2)), ("b", np.ones((2, 3)))), "shape (T, T), got (2, 3)"),
        (lambda: attention_heatmaps(("a", np.ones((1, 2, 2)))), "weights must have shape (T, T), got (1, 2, 2)"),
        (
            lambda: attention_maps(np.eye(2), ["a", "b"]),
            "shape (L, H, T, T) with T = 2, the number of tokens, got (2, 2)",
        ),
        (lambda: attention_maps(np.ones((1, 1, 2, 2)), ["a"]), "with T = 1, the number of tokens, got (1, 1, 2, 2)"),
        (lambda: attention_maps(np.ones((0, 4, 1, 1)), ["a"]), "with T = 1, the number of tokens, got (0, 4, 1, 1)"),
        (lambda: mask_grids(("a", np.zeros(3))), "mask must have shape (T_q, T_k) and hold only 0 and -inf"),
        (lambda: mask_grids(("a", np.array([[0.0, 1.0]]))), "(T_q, T_k) and hold only 0 and -inf, got [[0. 1.]]"),
        (lambda: mask_grids(("a", np.array([[0.0, np.nan]]))), "(T_q, T_k) and hold only 0 and -inf, got [[ 0. nan]]"),
        (lambda: loss_curve([]), "losses must hold at least one loss, all finite, got []"),
        (lambda: loss_curve([0.5, float("nan")]), "losses must hold at least one loss, all finite, got [0.5, nan]"),
        (lambda: loss_curve([float("inf")]), "losses must hold at least one loss, all finite, got [inf]"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        draw()
