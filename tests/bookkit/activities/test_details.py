"""The kinds whose answers only open: discuss, trap, draw."""

import pytest

from activity_book import activity_of, parts_of
from tiny_book import text_of


def test_the_parts_of_a_trap(built):
    trap = activity_of(built.doctree("kinds"), "trap--it-is-free")
    assert trap["record"] == "half sizes"
    assert [part["role"] for part in trap.all_parts] == ["claim", "breaks", "fix", "proof"]
    assert [text_of(node) for node in trap.parts("proof")[0].body] == [
        "Hidden twenty-three.",
        "Run in this book: One half of n",
        "Run in this book: Sizes",
    ]


@pytest.mark.parametrize(
    ("activity", "opened"),
    {
        "discuss--is-it-half-of-n": [
            ("Hint", "Hidden one: hint of discuss."),
            ("Answer", "Hidden two: a token of [Nob20], worth 0.625, in Table 2 and Fig. 1. x = 2"),
        ],
        "trap--it-is-free": [
            ("What breaks", "Hidden twenty-one."),
            ("The fix", "Hidden twenty-two."),
            ("What proves it", "Hidden twenty-three. Run in this book: One half of n Run in this book: Sizes"),
        ],
        "draw--the-map": [
            ("Arrows that should be there", "token → layer Hidden twenty-four. layer → head Hidden twenty-five."),
            ("A model drawing", "Fig. 1 The model drawing."),
            ("Answer", "Hidden twenty-six."),
        ],
    }.items(),
)
def test_without_a_script_everything_opens(kinds, activity, opened):
    assert parts_of([kinds.find(id=activity)]) == opened
    assert not kinds.find(id=activity).find("details", open=True)


def test_notes_have_a_label_and_need_a_script(kinds):
    notes = kinds.find(id="discuss--is-it-half-of-n").textarea
    assert kinds.find("label", attrs={"for": notes["id"]}).text == "Your notes"
    assert "needs-script" in notes.parent["class"]


def test_the_claim_of_a_trap_is_there_at_once(kinds):
    section = kinds.find(id="trap--it-is-free")
    assert text_of(section.find("blockquote")) == "Nothing is lost."
    links = {link.text: link["href"] for link in section.select("details a")}
    assert links == {"One half of n": "run.html#half", "Sizes": "run.html#sizes"}


def test_the_model_drawing_moves_into_the_activity(kinds):
    (figure,) = kinds.find_all("figure")
    assert figure.find_parent("section")["id"] == "draw--the-map"
    assert [label.input["type"] for label in kinds.find(id="draw--the-map").find_all("label")] == ["checkbox"] * 2


def test_on_paper_the_drawing_stays_where_it_stands(printed, latex):
    assert "Prompt of trap.\n\n   Nothing is lost.\n\nThe answer stands in the appendix.\n" in printed["kinds"]
    assert printed["kinds"].index("Prompt of draw.") < printed["kinds"].index("The model drawing.")
    assert "includegraphics" not in latex["draw--the-map"]
    answers = " ".join(printed["answers"].split())
    assert "**What breaks** Hidden twenty-one. **The fix** Hidden twenty-two. **What proves it**" in answers
    assert "**token → layer** Hidden twenty-four. **layer → head** Hidden twenty-five. Hidden twenty-six." in answers
