"""The kinds with options: check and eliminate."""

from activity_book import activity_of, parts_of
from tiny_book import text_of


def test_options_in_the_doctree(built):
    check = activity_of(built.doctree("kinds"), "check--which-one")
    assert (check["kind"], check["heading"], check["docname"]) == ("check", "Check", "kinds")
    assert [part["role"] for part in check.all_parts] == ["hint", "option", "option"]
    assert [option.name for option in check.parts("option")] == ["The first, nobody2020", "The second, token"]
    assert [option["options"] for option in check.parts("option")] == [{}, {"right": None}]


def test_check_is_a_group_of_radio_buttons(kinds):
    section = kinds.find(id="check--which-one")
    group = section.fieldset
    assert text_of(group.legend) == "Choose one"
    labels = group.find_all("label")
    assert [text_of(label) for label in labels] == ["The first, [Nob20]", "The second, token"]
    radios = [label.input for label in labels]
    assert {(radio["type"], radio["name"], radio["autocomplete"]) for radio in radios} == {
        ("radio", "check--which-one", "off")
    }
    assert [radio["value"] for radio in radios] == ["0", "1"]
    assert ["data-right" in radio.attrs for radio in radios] == [False, True]
    assert [button["data-action"] for button in section.find_all("button")] == ["check"]


def test_without_a_script_each_reason_opens(kinds):
    items = kinds.find(id="check--which-one").fieldset.find_all("li")
    assert parts_of(items) == [("Why it is wrong", "Hidden nineteen."), ("Why it is right", "Hidden twenty.")]
    items = kinds.find(id="eliminate--which-survives").ol.find_all("li", recursive=False)
    assert parts_of(items) == [
        ("Why it falls", "Hidden fifteen."),
        ("Why it survives", "Hidden sixteen."),
        ("Why it falls", "Hidden seventeen."),
    ]


def test_eliminate_describes_each_button_by_its_option(kinds):
    section = kinds.find(id="eliminate--which-survives")
    buttons = section.find_all("button")
    assert {button["data-action"] for button in buttons} == {"strike"}
    assert all("needs-script" in button["class"] for button in buttons)
    described = [section.find(id=button["aria-describedby"]) for button in buttons]
    assert [text_of(option) for option in described] == ["y = 2", "0.625 <script>", "A third “way”"]
    assert [item["data-option"] for item in section.ol.find_all("li")] == ["0", "1", "2"]
    assert ["data-right" in button.attrs for button in buttons] == [False, True, False]


def test_words_of_an_option_hold_markup_but_no_links(kinds):
    """A click on the words chooses; it must not leave the page."""
    option = kinds.find(id="eliminate--which-survives").ol.li
    assert option.find("math")
    assert not [label for label in kinds.find_all(["label", "summary"]) if label.find("a")]


def test_on_paper_a_list_and_an_answer_that_names_each_option(printed):
    assert "Prompt of check.\n\n1. The first, [Nob20]\n\n2. The second, *token*\n" in printed["kinds"]
    answers = " ".join(printed["answers"].split())
    assert "*Hint* Hidden eighteen. **The first, [Nob20]** (wrong) Hidden nineteen." in answers
    assert "**The second, *token*** (right) Hidden twenty." in answers
    assert "**y = 2** (struck) Hidden fifteen. **0.625 <script>** (survives) Hidden sixteen." in answers


def test_latex_letters_the_options(latex):
    box = latex["check--which-one"]
    assert r"\sphinxsetlistlabels{\Alph}{enumi}{enumii}{}{.}" in box
    assert box.index("The first, ") < box.index("The second, ")
