"""The bar chart of trainable numbers by freezing depth."""

import io
import re

import pytest

from bertbook.figures.freezing import trainable_by_depth

DEPTHS = [("nothing", 109_483_778), ("embeddings", 85_646_594), ("+ 12", 592_130)]


def test_every_choice_is_a_bar_with_its_count():
    figure = trainable_by_depth(DEPTHS)
    (axis,) = figure.axes
    assert [bar.get_height() for bar in axis.patches] == [count / 1e6 for _, count in DEPTHS]
    assert [text.get_text() for text in axis.texts] == ["109.5", "85.6", "0.6"]
    assert [label.get_text() for label in axis.get_xticklabels()] == [name for name, _ in DEPTHS]
    assert axis.get_ylabel() == "trainable (millions)"
    assert axis.get_ylim()[0] == 0
    assert figure.get_facecolor() == (1, 1, 1, 1)


@pytest.mark.parametrize("file_format", ["png", "svg", "pdf"])
def test_it_saves(file_format):
    file = io.BytesIO()
    trainable_by_depth(DEPTHS).savefig(file, format=file_format)
    assert file.tell() > 1000


@pytest.mark.parametrize(
    ("depths", "message"),
    [
        ([], "depths is empty: give at least one (name, count) pair"),
        ([("all", -1)], "counts must not be negative, got -1 for 'all'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(depths, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        trainable_by_depth(depths)
