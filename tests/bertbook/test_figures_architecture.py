"""The drawings of the architecture chapter: what they show, and that it can be read without colour."""

import io
import re

import numpy as np
import pytest
from matplotlib.colors import to_rgb, to_rgba

from bertbook.figures.architecture import (
    BLOCKS,
    embedding_sum,
    influence_grids,
    norm_placement,
    parameter_bars,
)

WHITE = to_rgba("white")
TOKENS = ["[CLS]", "my", "dog", "[SEP]", "it", "barks", "[SEP]"]
SEGMENTS = [0, 0, 0, 0, 1, 1, 1]
CAUSAL = np.tri(3, dtype=bool)


pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def luminance(colour) -> float:
    c = np.array(to_rgb(colour))
    return float(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


def contrast(one, other) -> float:
    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


def texts(axis) -> list[str]:
    return [text.get_text() for text in axis.texts]


# The sum


def test_the_sum_has_three_rows_and_a_result_for_every_token():
    (axis,) = embedding_sum(TOKENS, SEGMENTS).axes
    shown = texts(axis)
    assert [label for label in shown if label in TOKENS] == TOKENS
    assert [label for label in shown if label.startswith("E[")] == [
        *["E[CLS]", "E[my]", "E[dog]", "E[SEP]", "E[it]", "E[barks]", "E[SEP]"]
    ]
    for kind, numbers in (("P", range(7)), ("S", SEGMENTS), ("x", range(7))):
        assert [label for label in shown if label.startswith(f"{kind}[")] == [f"{kind}[{i}]" for i in numbers]
    assert shown.count("+") == 2 * 7
    assert shown.count("=") == 7
    assert {"input", "token", "position", "segment", "sum"} <= set(shown)


def test_the_second_segment_is_hatched_and_nothing_else():
    (axis,) = embedding_sum(TOKENS, SEGMENTS).axes
    hatched = [round(box.get_x() + 0.43) for box in axis.patches if box.get_hatch()]
    assert hatched == [i for i, segment in enumerate(SEGMENTS) if segment]
    assert len(axis.patches) == 4 * 7


def test_labels_stay_inside_their_boxes():
    figure = embedding_sum(TOKENS, SEGMENTS)
    figure.canvas.draw()
    (axis,) = figure.axes
    by_place = {box.get_center().tobytes(): box for box in axis.patches}
    assert len(by_place) == len(axis.patches)
    inside = 0
    for text in axis.texts:
        box = by_place.get(np.array(text.get_position(), dtype=float).tobytes())
        if box is None:
            continue
        extent, border = text.get_window_extent(), box.get_window_extent()
        assert border.x0 <= extent.x0
        assert extent.x1 <= border.x1
        inside += 1
    assert inside >= 7


# The parameters


def test_bars_carry_count_and_share():
    (axis,) = parameter_bars({"tokens": 234, "a LayerNorm": 1, "layers": 9_765}).axes
    assert texts(axis) == ["234 (2.3%)", "1 (under 0.1%)", "9,765 (97.7%)"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["tokens", "a LayerNorm", "layers"]
    assert [bar.get_width() for bar in axis.patches] == [234, 1, 9_765]
    assert axis.yaxis_inverted()  # the first component on top
    assert axis.get_xlim()[0] == 0  # a cut axis would make a small part look large
    assert axis.get_xlabel() == "parameters, of 10,000"


def test_labels_of_the_longest_bar_fit():
    figure = parameter_bars({"layers": 85_054_464, "pooler": 590_592})
    figure.canvas.draw()
    right = figure.bbox.x1
    assert all(text.get_window_extent().x1 <= right for text in figure.axes[0].texts)


# The layers


def test_blocks_stand_in_the_order_of_the_code():
    post, pre = norm_placement().axes
    for axis, title in ((post, "post-LN (BERT)"), (pre, "pre-LN (the toy)")):
        assert axis.get_title() == title
        assert texts(axis) == ["x", *BLOCKS[title], "next layer"]
        heights = [text.get_position()[1] for text in axis.texts]
        assert heights == sorted(heights)


def test_the_norm_stands_after_each_sum_or_before_each_sublayer():
    post, pre = BLOCKS.values()
    for blocks in (post, pre):
        assert sorted(blocks) == sorted(["attention", "feed-forward", "+", "+", "LayerNorm", "LayerNorm"])
    assert all(post[i + 1] == "LayerNorm" for i, block in enumerate(post) if block == "+")
    assert all(pre[i + 1] in ("attention", "feed-forward") for i, block in enumerate(pre) if block == "LayerNorm")


def test_every_sum_has_a_bypass_that_begins_below_its_sublayer():
    for axis, blocks in zip(norm_placement().axes, BLOCKS.values(), strict=True):
        sums = [height for height, block in enumerate(blocks, start=1) if block == "+"]
        bypasses = [line.get_ydata() for line in axis.lines]
        assert [path[-1] for path in bypasses] == sums
        first, second = (path[0] for path in bypasses)
        assert first < 1  # the layer's own input
        norm_between = blocks.index("LayerNorm", 1) + 1
        # Post-LN: the second bypass starts from the normalised sum. Pre-LN: from the sum itself.
        assert (second > norm_between) == (blocks[0] != "LayerNorm")
        assert second > sums[0]


def test_norms_are_hatched():
    for axis in norm_placement().axes:
        assert sum(bool(patch.get_hatch()) for patch in axis.patches) == 2


# Who reaches whom


def test_dots_and_hatching_say_the_same():
    figure = influence_grids(("full", np.ones((3, 3), bool)), ("causal", CAUSAL))
    assert [axis.get_title() for axis in figure.axes] == ["full", "causal"]
    assert {axis.get_xlabel() for axis in figure.axes} == {"token replaced"}
    assert figure.axes[0].get_ylabel() == "state"
    for axis, matrix in zip(figure.axes, (np.ones((3, 3), bool), CAUSAL), strict=True):
        dots = {(int(line.get_ydata()[0]), int(line.get_xdata()[0])) for line in axis.lines}
        hatched = {(round(p.get_y() + 0.5), round(p.get_x() + 0.5)) for p in axis.patches if p.get_hatch()}
        assert dots == {cell for cell, reached in np.ndenumerate(matrix) if reached}
        assert hatched == {cell for cell, reached in np.ndenumerate(matrix) if not reached}
        assert axis.yaxis_inverted()


# All

DRAWINGS = {
    "embedding_sum": lambda: embedding_sum(TOKENS, SEGMENTS),
    "parameter_bars": lambda: parameter_bars({"one": 3, "two": 4}),
    "norm_placement": norm_placement,
    "influence_grids": lambda: influence_grids(("one", CAUSAL)),
}


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_figures_save_on_an_opaque_white_ground_and_can_be_read(draw):
    figure = draw()
    assert figure.get_facecolor() == WHITE
    assert figure.get_figwidth() <= 6.6
    for file_format in ("png", "svg", "pdf"):
        file = io.BytesIO()
        figure.savefig(file, format=file_format)
        assert file.tell() > 1000
    for axis in figure.axes:
        for text in axis.texts:
            ground = text.get_bbox_patch().get_facecolor() if text.get_bbox_patch() else WHITE
            assert contrast(text.get_color(), ground) >= 4.5
            assert text.get_fontsize() >= 9


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: embedding_sum([], []), "tokens and segments must be as many, and at least one, got 0 and 0"),
        (lambda: embedding_sum(["a"], [0, 1]), "tokens and segments must be as many, and at least one, got 1 and 2"),
        (lambda: embedding_sum(["a"], [2]), "segments must hold only 0 and 1, got [2]"),
        (lambda: parameter_bars({}), "counts must hold at least one count above 0, got {}"),
        (lambda: parameter_bars({"a": 0}), "counts must hold at least one count above 0, got {'a': 0}"),
        (influence_grids, "panels is empty: give at least one (title, matrix) pair"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        draw()
