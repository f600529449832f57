"""The drawings of the chapter on text, by what is on them; and the errors."""

import pytest

from bertbook.figures.text import length_histogram, padded_batches

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def test_each_bar_stands_where_its_lengths_are():
    figure = length_histogram([3, 5, 0, 1, 2], width=10, room=25)
    (axis,) = figure.axes
    assert [(bar.get_x(), bar.get_height()) for bar in axis.patches] == [(0, 3), (10, 5), (20, 0), (30, 1), (40, 2)]
    assert {bar.get_width() for bar in axis.patches} == {10}
    assert list(axis.lines[0].get_xdata()) == [25, 25]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0", "20", "40 or more"]
    assert axis.get_xlabel()
    assert axis.get_ylabel()


def test_the_last_bar_is_named_only_where_it_has_a_tick():
    figure = length_histogram([3, 5], width=10, room=5)
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["0"]


def bars(axis) -> list[tuple[float, float, float, bool]]:
    """(row, from, to, padding) of each bar."""
    return [
        (bar.get_y() + bar.get_height() / 2, bar.get_x(), bar.get_x() + bar.get_width(), bool(bar.get_hatch()))
        for bar in axis.patches
    ]


def test_every_example_is_filled_up_to_the_longest_of_its_batch():
    figure = padded_batches(("mixed", [[2, 5], [3]]), ("sorted", [[2, 3], [5]]))
    mixed, in_order = figure.axes
    assert bars(mixed) == [(0, 0, 2, False), (0, 2, 5, True), (1, 0, 5, False), (3, 0, 3, False)]
    assert bars(in_order) == [(0, 0, 2, False), (0, 2, 3, True), (1, 0, 3, False), (3, 0, 5, False)]
    assert [axis.get_title() for axis in figure.axes] == ["mixed", "sorted"]


def test_a_batch_is_named_at_its_middle_and_the_first_is_on_top():
    figure = padded_batches(("one", [[2, 5], [3]]))
    (axis,) = figure.axes
    assert dict(zip(axis.get_yticks(), [t.get_text() for t in axis.get_yticklabels()], strict=True)) == {
        0.5: "batch 1",
        3: "batch 2",
    }
    bottom, top = axis.get_ylim()
    assert bottom > top


def test_both_stand_on_white():
    for figure in (length_histogram([1], width=1, room=1), padded_batches(("one", [[1]]))):
        assert figure.get_facecolor() == (1, 1, 1, 1)


@pytest.mark.parametrize("panels", [[], [("one", [])], [("one", [[1], []])]])
def test_what_has_no_example_cannot_be_drawn(panels):
    with pytest.raises(ValueError, match="panels must hold batches of at least one example each"):
        padded_batches(*panels)


def test_a_histogram_needs_bars_and_positive_numbers():
    with pytest.raises(ValueError, match="counts is empty: give at least one bar"):
        length_histogram([], width=1, room=1)
    with pytest.raises(ValueError, match="width and room must be at least 1, got 0 and 5"):
        length_histogram([1], width=0, room=5)
    with pytest.raises(ValueError, match="got 1 and 0"):
        length_histogram([1], width=1, room=0)
