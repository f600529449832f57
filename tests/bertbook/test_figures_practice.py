"""The drawings of schedules and of losses say what they show, without relying on colour."""

import io
import re

import pytest

from bertbook.figures.practice import losses_over_epochs, schedule_curves

WHITE = (1.0, 1.0, 1.0, 1.0)
EPOCHS = [0, 5, 10]


def draw_schedules():
    return schedule_curves(("with warm-up", [0.5, 1.0, 0.5, 0.0]), ("without", [1.0, 0.75, 0.5, 0.0]))


def draw_losses():
    return losses_over_epochs(EPOCHS, ("training", [0.7, 0.3, 0.1]), ("held-out", [0.7, 0.4, 0.9]))


@pytest.mark.parametrize(
    ("draw", "names", "labels", "xs"),
    [
        (draw_schedules, ["with warm-up", "without"], ("step", "share of the peak rate"), [0, 1, 2, 3]),
        (draw_losses, ["training", "held-out"], ("epoch", "mean loss (nats)"), EPOCHS),
    ],
)
def test_each_line_has_a_name_and_dashes_of_its_own(draw, names, labels, xs):
    (axis,) = draw().axes
    assert [text.get_text() for text in axis.get_legend().get_texts()] == names
    assert (axis.get_xlabel(), axis.get_ylabel()) == labels
    assert all(list(line.get_xdata()) == xs for line in axis.lines)
    assert len({line.get_linestyle() for line in axis.lines}) == len(names)
    assert axis.get_ylim()[0] == 0  # a cut axis would make a small change look large


def test_the_lines_show_the_given_numbers():
    (axis,) = draw_losses().axes
    assert [list(line.get_ydata()) for line in axis.lines] == [[0.7, 0.3, 0.1], [0.7, 0.4, 0.9]]
    (axis,) = draw_schedules().axes
    assert list(axis.lines[0].get_ydata()) == [0.5, 1.0, 0.5, 0.0]


@pytest.mark.parametrize("draw", [draw_schedules, draw_losses])
@pytest.mark.parametrize("file_format", ["png", "svg", "pdf"])
def test_figures_are_opaque_and_save_in_every_format(draw, file_format):
    figure, file = draw(), io.BytesIO()
    assert figure.get_facecolor() == WHITE
    figure.savefig(file, format=file_format)
    assert file.tell() > 1000


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (schedule_curves, "curves must hold one to four (name, numbers) pairs, got 0"),
        (lambda: schedule_curves(*[("a", [1.0])] * 5), "one to four (name, numbers) pairs, got 5"),
        (lambda: schedule_curves(("a", [])), "curve 'a' must hold at least one number, all finite, got []"),
        (lambda: losses_over_epochs([0], ("a", [float("nan")])), "all finite, got [nan]"),
        (lambda: losses_over_epochs([0, 1], ("a", [0.5])), "curve 'a' must have 2 losses, one an epoch, got 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        draw()
