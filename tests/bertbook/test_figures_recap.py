"""The concept map: every part, every arrow with its number and its words, and what is refused."""

import io
import re

import matplotlib
import matplotlib.pyplot as plt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from bertbook.figures.recap import PARTS, concept_map

PAIRS = [(start, end) for start in PARTS for end in PARTS if start != end]
some_pairs = st.lists(st.sampled_from(PAIRS), min_size=1, max_size=8, unique=True)


def drawn_arrows(axis) -> list[tuple[str, str]]:
    """The parts that each arrow joins, read from where it begins and where its head is."""
    part_at = {place: name for name, place in PARTS.items()}
    arrows = [text for text in axis.texts if isinstance(text, Annotation)]
    return [(part_at[arrow.xyann], part_at[arrow.xy]) for arrow in arrows]


@given(some_pairs)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_every_arrow_is_drawn_numbered_and_explained(pairs):
    before = dict(matplotlib.rcParams)
    figure = concept_map([(start, end, f"words {i}") for i, (start, end) in enumerate(pairs)])
    map_axis, key_axis = figure.axes
    assert drawn_arrows(map_axis) == pairs
    names = [text.get_text() for text in map_axis.texts if text.get_text() in PARTS]
    assert names == list(PARTS)
    numbers = [text for text in map_axis.texts if text.get_text().isdigit()]
    assert [text.get_text() for text in numbers] == [str(i + 1) for i in range(len(pairs))]
    for (start, end), number in zip(pairs, numbers, strict=True):
        middle = [(a + b) / 2 for a, b in zip(PARTS[start], PARTS[end], strict=True)]
        assert list(number.get_position()) == middle
        assert number.get_bbox_patch().get_facecolor() == to_rgba("white")
    assert [text.get_text() for text in key_axis.texts] == [
        f"{i + 1}  {start} to {end}: words {i}" for i, (start, end) in enumerate(pairs)
    ]
    assert plt.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


def test_boxes_do_not_overlap_and_lie_inside():
    map_axis, _ = concept_map([("attention", "architecture", "x")]).axes
    boxes = [patch.get_bbox() for patch in map_axis.patches if isinstance(patch, Rectangle)]
    assert len(boxes) == len(PARTS)
    for i, box in enumerate(boxes):
        assert map_axis.viewLim.contains(box.x0, box.y0)
        assert map_axis.viewLim.contains(box.x1, box.y1)
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


@pytest.mark.parametrize("file_format", ["png", "svg", "pdf"])
def test_the_map_saves_on_an_opaque_white_ground(file_format):
    figure = concept_map([("pretraining", "fine-tuning", "x")])
    assert figure.get_facecolor() == to_rgba("white")
    file = io.BytesIO()
    figure.savefig(file, format=file_format)
    assert file.tell() > 1000


@pytest.mark.parametrize(
    ("arrows", "message"),
    [
        ([], "arrows is empty: give at least one (from, to, what) triple"),
        ([("attention", "gpt", "x")], "arrows must join ['attention', 'pretraining',"),
        ([("attention", "gpt", "x")], "got 'gpt'"),
        ([("project", "project", "x")], "arrows must join two parts, got one from 'project' to itself"),
        (
            [("attention", "project", "x"), ("attention", "project", "y")],
            "arrows must differ, got two from 'attention' to 'project': join their words into one",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(arrows, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        concept_map(arrows)
