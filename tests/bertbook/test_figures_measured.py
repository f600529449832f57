"""The drawings of recorded comparisons, by what is on them; and the errors."""

import pytest

from bertbook.figures.measured import curves_of_arms, reach_of_seeds

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def drawn(figure) -> list[tuple[list[float], list[float]]]:
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in figure.axes[0].lines]


def test_every_seed_has_its_curve_and_every_arm_its_mean():
    arms = {"one": [[6, 4], [6, 2]], "other": [[5, 5], [5, 4]]}
    figure = curves_of_arms([0, 10], arms, ylabel="loss (nats)")
    both = [[6, 4], [6, 2], [6, 3], [5, 5], [5, 4], [5, 4.5]]
    assert drawn(figure) == [([0, 10], curve) for curve in both]
    (axis,) = figure.axes
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["one", "other"]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("step", "loss (nats)")


def test_arms_differ_by_more_than_colour():
    figure = curves_of_arms([0, 1], {name: [[1, 0]] for name in "abc"}, ylabel="loss")
    means = [line for line in figure.axes[0].lines if line.get_label() in "abc"]
    assert len({line.get_linestyle() for line in means}) == 3
    assert len({line.get_marker() for line in means}) == 3


def test_the_level_is_drawn_and_named():
    figure = curves_of_arms([0, 1], {"a": [[1, 0]]}, ylabel="loss", level=("a guess", 0.5))
    (axis,) = figure.axes
    assert list(axis.lines[0].get_ydata()) == [0.5, 0.5]
    assert [text.get_text() for text in axis.texts] == ["a guess"]


def test_a_row_reaches_from_its_smallest_seed_to_its_largest():
    figure = reach_of_seeds({"one": {"x": [3, 1, 2], "y": [4]}, "other": {"x": [5, 6]}}, xlabel="loss (nats)")
    assert drawn(figure) == [([1, 2, 3], [0, 0, 0]), ([4], [1]), ([5, 6], [2, 2])]
    (axis,) = figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["one: x", "one: y", "other: x"]
    bottom, top = axis.get_ylim()
    assert bottom > top
    assert axis.lines[0].get_marker() != axis.lines[2].get_marker()


def test_both_stand_on_white():
    for figure in (curves_of_arms([0], {"a": [[1]]}, ylabel="y"), reach_of_seeds({"a": {"b": [1]}}, xlabel="x")):
        assert figure.get_facecolor() == (1, 1, 1, 1)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match=r"each of the 2 steps, got curves of \[1, 2\]"):
        curves_of_arms([0, 1], {"a": [[1, 2], [1]]}, ylabel="y")
    with pytest.raises(ValueError, match="arms must be one to 3, got 0"):
        curves_of_arms([0], {}, ylabel="y")
    with pytest.raises(ValueError, match="arms must be one to 3, got 4"):
        reach_of_seeds({name: {"x": [1]} for name in "abcd"}, xlabel="x")
    with pytest.raises(ValueError, match="at least one number each"):
        reach_of_seeds({"a": {"x": []}}, xlabel="x")
