"""The drawing of a run, by what is on it; and its errors."""

import pytest

from bertbook.figures.run import run_curve

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


@pytest.fixture
def axis():
    figure = run_curve(
        ([50, 100, 150], [9.0, 7.0, 4.0]),
        ([0, 100], [9.1, 7.5]),
        levels={"unigram": 6.5, "copying": 5.9},
        border=75,
    )
    assert figure.get_facecolor() == (1, 1, 1, 1)
    return figure.axes[0]


def test_both_losses_are_drawn_where_they_were_measured(axis):
    lines = {line.get_label(): line for line in axis.lines}
    assert lines["training"].get_xydata().tolist() == [[50, 9.0], [100, 7.0], [150, 4.0]]
    assert lines["held out"].get_xydata().tolist() == [[0, 9.1], [100, 7.5]]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("step", "loss (nats)")


def test_they_differ_by_more_than_colour(axis):
    lines = {line.get_label(): line for line in axis.lines}
    assert (lines["training"].get_linestyle(), lines["training"].get_marker()) == ("-", "None")
    assert (lines["held out"].get_linestyle(), lines["held out"].get_marker()) == ("None", "o")


def test_levels_are_named_and_the_border_is_drawn(axis):
    names = {text.get_text(): text.get_position()[1] for text in axis.texts}
    assert names == {"unigram": 6.5, "copying": 5.9}
    drawn = [line.get_xydata().tolist() for line in axis.lines[:3]]
    assert drawn == [[[0, 6.5], [1, 6.5]], [[0, 5.9], [1, 5.9]], [[75, 0], [75, 1]]]


def test_what_cannot_be_drawn_is_refused():
    good = ([1], [2.0])
    with pytest.raises(ValueError, match="training must be as many steps as losses, at least one, got 2 and 1"):
        run_curve(([1, 2], [2.0]), good, levels={}, border=1)
    with pytest.raises(ValueError, match="held_out must be as many steps as losses, at least one, got 0 and 0"):
        run_curve(good, ([], []), levels={}, border=1)
