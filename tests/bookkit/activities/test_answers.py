"""The appendix of answers."""

from activity_book import EXAMPLES_IN_ORDER
from tiny_book import text_of


def test_a_section_for_each_page_in_the_order_of_the_book(built):
    page = built.page("answers")
    sections = page.select("[role=main] section section")
    assert [section["id"] for section in sections] == ["answers--kinds", "answers--part-more"]
    assert [section.h2.text.removesuffix("¶") for section in sections] == ["Kinds", "Is it half of n?"]


def test_each_activity_is_answered_once_in_order(built):
    section = built.page("answers").find(id="answers--kinds")
    backs = section.find_all("a", string="back to the exercise")
    assert [back["href"] for back in backs] == [f"kinds.html#{name}" for name in EXAMPLES_IN_ORDER]
    assert text_of(backs[0].parent) == "Discuss: Is it half of n ? · back to the exercise"
    assert backs[0].parent.find("code")


def test_links_in_an_answer_lead_on_from_the_appendix(built):
    """To the glossary, the bibliography, a record, a table and a figure: also those that are on the activity's page."""
    start = built.page("answers").find(id="kinds--discuss--is-it-half-of-n")
    paragraph = next(p for p in start.find_all_next("p") if "Hidden two" in p.text)
    links = {link.text: link["href"] for link in paragraph.find_all("a")}
    assert links.pop("Nob20").startswith("bibliography.html#id")
    assert links == {
        "token": "glossary.html#term-token",
        "0.625": "run.html#half",
        "Table 2": "run.html#sizes",
        "Fig. 1": "kinds.html#fig-map",
    }


def test_links_of_an_answer_from_another_folder(built):
    section = built.page("answers").find(id="answers--part-more")
    assert [link["href"] for link in section.select("p a")] == [
        "part/more.html#discuss--on-another-page",
        "run.html#half",
    ]


def test_a_formula_and_a_table_are_in_the_appendix(built):
    section = built.page("answers").find(id="answers--kinds")
    assert section.select_one("div.math math")
    assert len(section.find_all("table")) == 3
    assert not section.find(["button", "input", "select", "details"])
