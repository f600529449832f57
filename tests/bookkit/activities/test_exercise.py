"""The kind exercise."""

from activity_book import activity_of, parts_of
from tiny_book import text_of


def test_the_parts_of_an_exercise(built):
    exercise = activity_of(built.doctree("kinds"), "exercise--a-function")
    assert [part["role"] for part in exercise.all_parts] == ["hint", "hint", "solution"]
    assert [part.name for part in exercise.all_parts] == ["the split", "", ""]


def test_without_a_script_hints_and_solution_open(kinds):
    section = kinds.find(id="exercise--a-function")
    assert parts_of([section]) == [
        ("Hint 1 of 2: the split", "Hidden twenty-seven."),
        ("Hint 2 of 2", "Hidden twenty-eight."),
        ("A solution", "The solution stays. Listing 1 A listing pass"),
    ]
    assert text_of(section.select_one(".needs-script label")) == "My code passes its check"


def test_a_solution_may_be_referred_to(kinds):
    assert kinds.find(id="the-solution")
    assert kinds.find(id="code-solution").find_parent("details")


def test_on_paper_the_solution_stays_and_the_hints_go(printed, latex):
    end = printed["kinds"][printed["kinds"].index("Prompt of exercise.") :]
    assert " ".join(end.split()) == (
        "Prompt of exercise. **A solution** The solution stays. A listing pass Hints stand in the appendix."
    )
    assert "*Hint 1 of 2: the split*\n\nHidden twenty-seven.\n" in printed["answers"]
    assert "The solution stays" not in printed["answers"]
    assert r"\label{\detokenize{kinds:code-solution}}" in latex["exercise--a-function"]
