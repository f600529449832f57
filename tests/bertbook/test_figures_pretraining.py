"""The drawings of the chapter on pretraining, by what is on them; and the errors."""

import pytest
from matplotlib.colors import to_rgb

from bertbook.figures.pretraining import masking_shares, masking_steps, pair_layout

TOKENS = ["[CLS]", "a", "[SEP]", "b", "[SEP]"]


pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def grid(figure) -> list[list[str]]:
    """The texts of the cells, row by row."""
    (axis,) = figure.axes
    rows: dict[int, dict[int, str]] = {}
    for text in axis.texts:
        column, row = text.get_position()
        rows.setdefault(int(row), {})[int(column)] = text.get_text()
    return [[rows[row][column] for column in sorted(rows[row])] for row in sorted(rows)]


def hatched_columns(figure) -> set[int]:
    (axis,) = figure.axes
    return {round(patch.get_x() + 0.5) for patch in axis.patches if patch.get_hatch()}


def test_steps_show_all_four_rows_and_hatch_what_is_selected():
    figure = masking_steps(["a", "b", "c"], [False, True, False], ["a", "[MASK]", "c"], ["-", "b", "-"])
    assert grid(figure) == [["a", "b", "c"], ["no", "yes", "no"], ["a", "[MASK]", "c"], ["-", "b", "-"]]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "sentence",
        "selected",
        "BERT reads",
        "label",
    ]
    assert hatched_columns(figure) == {1}


def test_layout_counts_positions_and_hatches_segment_b():
    figure = pair_layout(TOKENS, [0, 0, 0, 1, 1])
    assert grid(figure) == [TOKENS, ["0", "1", "2", "3", "4"], ["0", "0", "0", "1", "1"]]
    assert hatched_columns(figure) == {3, 4}


def test_cells_are_readable_on_white():
    figure = pair_layout(TOKENS, [0, 0, 0, 1, 1])
    for text in figure.axes[0].texts:
        assert to_rgb(text.get_color()) == (0, 0, 0)
        assert to_rgb(text.get_bbox_patch().get_facecolor()) == (1, 1, 1)
    assert figure.get_facecolor() == (1, 1, 1, 1)
    assert figure.get_figwidth() <= 6.5


def test_shares_are_drawn_as_distances_from_the_expected_ones():
    figure = masking_shares([("one", 12.0, 11.9, 12.05, 12.1), ("two", 1.5, 1.4, 1.47, 1.6)])
    (axis,) = figure.axes
    dots = [line for line in axis.lines if line.get_marker() == "o"]
    assert [dot.get_xdata()[0] for dot in dots] == pytest.approx([0.05, -0.03])
    reaches = [collection.get_segments()[0][:, 0].tolist() for collection in axis.collections]
    assert reaches == [pytest.approx([-0.1, 0.1]), pytest.approx([-0.1, 0.1])]
    assert sorted(text.get_text() for text in axis.get_legend().get_texts()) == ["bounds", "observed"]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: masking_steps([], [], [], []), "equally long and not empty, got 0, 0, 0 and 0"),
        (lambda: masking_steps(["a"], [True], ["a"], []), "equally long and not empty, got 1, 1, 1 and 0"),
        (lambda: pair_layout([], []), "equally long and not empty, got 0 and 0"),
        (lambda: pair_layout(["a"], [0, 1]), "equally long and not empty, got 1 and 2"),
        (lambda: masking_shares([]), "outcomes is empty"),
    ],
)
def test_what_cannot_be_drawn(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
