"""The kind sort, with buckets of its author and of a record."""

import pytest

from activity_book import activity_of, parts_of
from tiny_book import text_of

ITEMS = {
    "sort--fast-or-slow": {"small": "fast", "large": "slow", "<base>": "slow"},
    "sort--what-holds": {"The sum [Nob20]": "holds", "The order a < b": "breaks & falls"},
}
BUCKETS = {"sort--fast-or-slow": ["fast", "slow"], "sort--what-holds": ["holds", "breaks & falls"]}


@pytest.mark.parametrize("name", ITEMS)
def test_buckets_in_the_doctree(built, name):
    sort = activity_of(built.doctree("kinds"), name)
    assert sort["buckets"] == BUCKETS[name]
    assert [item["bucket"] for item in sort.parts("item")] == list(ITEMS[name].values())


@pytest.mark.parametrize("name", ITEMS)
def test_a_list_of_choices_an_item(kinds, name):
    section = kinds.find(id=name)
    labels = section.select("li > label")
    assert [text_of(label) for label in labels] == list(ITEMS[name])
    for label, bucket in zip(labels, ITEMS[name].values(), strict=True):
        choices = section.find("select", id=label["for"])
        assert choices["data-answer"] == bucket
        assert [option["value"] for option in choices.find_all("option")] == ["", *BUCKETS[name]]
        assert [option.text for option in choices.find_all("option")] == ["choose …", *BUCKETS[name]]


def test_only_a_record_is_named(kinds):
    assert kinds.find(id="sort--fast-or-slow")["data-record"] == "sizes"
    assert "data-record" not in kinds.find(id="sort--what-holds").attrs


def test_without_a_script_each_place_and_reason_opens(kinds):
    assert parts_of([kinds.find(id="sort--what-holds")]) == [
        ("Where it belongs, and why", "holds Hidden twelve."),
        ("Where it belongs, and why", "breaks & falls Hidden thirteen."),
        ("Answer", "Hidden fourteen."),
    ]


def test_on_paper_items_and_buckets(printed):
    assert "* small\n\n* large\n\n* <base>\n\nInto: fast · slow.\n" in printed["kinds"]
    answers = " ".join(printed["answers"].split())
    assert "**small** (fast) Hidden nine. **large** (slow) Hidden ten. **<base>** (slow) Hidden eleven." in answers
    assert "(breaks & falls) Hidden thirteen. Hidden fourteen." in answers


def test_latex_has_the_markup_of_an_item(latex):
    assert r"The \sphinxstyleemphasis{order} \sphinxcode{\sphinxupquote{a < b}}" in latex["sort--what-holds"]
