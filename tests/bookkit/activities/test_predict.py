"""The kind predict."""

from activity_book import activity_of, parts_of
from tiny_book import text_of


def test_the_value_comes_before_the_answer(built):
    predict = activity_of(built.doctree("kinds"), "predict--how-much")
    assert predict["record"] == "shares"
    assert [text_of(node) for node in predict.parts("answer")[0].body] == [
        "Computed in this book: 0.7441.",
        "Hidden five.",
    ]


def test_a_field_with_a_label_in_a_form(kinds):
    section = kinds.find(id="predict--how-much")
    assert section["data-record"] == "shares"
    assert "needs-script" in section.form["class"]
    assert section.form.label["for"] == section.form.input["id"]
    assert section.form.label.text == "Your guess"
    assert section.form.button["type"] == "button"  # a form that is sent would leave the page


def test_without_a_script_hints_and_answer_open(kinds):
    section = kinds.find(id="predict--how-much")
    assert parts_of([section]) == [
        ("Hint 1 of 2: where to look", "Hidden three."),
        ("Hint 2 of 2", "Hidden four."),
        ("Answer", "Computed in this book: 0.7441. Hidden five."),
    ]
    assert section.select_one(".activity-answer a")["href"] == "run.html#shares"


def test_on_paper_a_line_to_write_on(printed):
    assert f"Prompt of predict.\n\nYour guess: {'_' * 24}\n\nThe answer stands in the appendix." in printed["kinds"]
    assert "*Hint 1 of 2: where to look*\n\nHidden three.\n\n*Hint 2 of 2*" in printed["answers"]
