"""The kinds made from a record's rows: fill-table and step."""

from activity_book import activity_of, parts_of
from tiny_book import text_of

SIZES = [["small", "1,234", "fast"], ["<base>", "28,994", "slow"], ["large", "70,000", "slow"]]


def rows_of(table) -> list[list[str]]:
    return [[text_of(cell) for cell in row.find_all(["th", "td"])] for row in table.tbody.find_all("tr")]


def test_blank_cells_in_the_doctree(built):
    document = built.doctree("kinds")
    column = activity_of(document, "fill-table--the-sizes")
    assert (column["blanks"], column["choices"]) == ([(0, 1), (1, 1), (2, 1)], [])
    assert column["grid"].rows == SIZES
    cells = activity_of(document, "fill-table--the-words")
    assert (cells["blanks"], cells["choices"]) == ([(0, 2), (1, 0)], ["<base>", "fast"])


def test_a_field_a_cell_named_after_its_column_and_row(kinds):
    section = kinds.find(id="fill-table--the-sizes")
    assert section["data-record"] == "sizes"
    fields = section.find_all("input")
    assert [field["data-answer"] for field in fields] == [row[1] for row in SIZES]
    names = ["parameters, small", "parameters, <base>", "parameters, large"]
    assert [field["aria-label"] for field in fields] == names
    reveal = section.find_all("button", attrs={"data-action": "reveal-one"})
    assert [button["aria-label"] for button in reveal] == [f"Reveal: {name}" for name in names]
    assert all(field.find_parent("td").select_one(".activity-mark") for field in fields)
    assert [button.text for button in section.select(".activity-buttons button")] == ["Check all", "Reveal all"]
    assert [header.text for header in section.thead.find_all("th")] == ["model", "parameters", "speed"]


def test_choices_where_words_cannot_be_typed(kinds):
    section = kinds.find(id="fill-table--the-words")
    lists = section.find_all("select")
    assert [[option.text for option in choices.find_all("option")] for choices in lists] == [
        ["choose …", "<base>", "fast"]
    ] * 2
    assert [choices["data-answer"] for choices in lists] == ["fast", "<base>"]
    assert [choices["aria-label"] for choices in lists] == ["speed, small", "model, row 2"]  # not what it asks for


def test_a_column_that_would_tell_can_be_left_out(kinds, printed):
    section = kinds.find(id="fill-table--the-speeds")
    assert [header.text for header in section.thead.find_all("th")] == ["model", "speed"]
    assert [field["data-answer"] for field in section.find_all("input")] == ["fast", "slow", "slow"]
    assert rows_of(section.select_one("details table"))[0] == ["small", "fast"]
    left = [line.split("|")[1:-1] for line in printed["kinds"].splitlines() if line.startswith("|")]
    assert ["large", "________"] in [[cell.strip() for cell in row] for row in left]


def test_without_a_script_the_filled_table_opens(kinds):
    for name in ("fill-table--the-sizes", "fill-table--the-words"):
        filled = kinds.find(id=name).find("summary", string="The filled table").parent
        assert rows_of(filled.table) == SIZES
        assert not filled.find(["input", "select"])


def test_step_shows_all_rows_and_what_is_said_of_them(kinds):
    section = kinds.find(id="step--row-by-row")
    assert section["data-record"] == "shares"
    assert rows_of(section.table) == [["pos 0", "0.2559", "0.7441"], ["pos 1", "0.5000", "0.5000"]]
    comments = section.select("li[data-row]")
    assert [text_of(comment) for comment in comments] == ["pos 0 Hidden seven.", "pos 1 Hidden eight."]
    assert not section.find(hidden=True)
    assert [button["data-action"] for button in section.find_all("button")] == ["back", "forward"]
    assert parts_of([section]) == []


def test_on_paper_blank_cells(printed):
    rows = [line.split("|")[1:-1] for line in printed["kinds"].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    for row in ["small", "________", "fast"], ["small", "1,234", "________"], ["________", "28,994", "slow"]:
        assert row in cells
    assert "Choose from: <base> · fast.\n" in printed["kinds"]
    answers = [line.split("|")[1:-1] for line in printed["answers"].splitlines() if line.startswith("|")]
    assert [[cell.strip() for cell in row] for row in answers].count(SIZES[1]) == 2
    assert "**pos 0**\n\nHidden seven.\n\n**pos 1**\n\nHidden eight.\n" in printed["answers"]


def test_latex_aligns_blank_cells_as_the_numbers(latex):
    assert r"\begin{tabular}[t]{lrl}" in latex["fill-table--the-sizes"]
    assert latex["fill-table--the-sizes"].count(r"\_" * 8) == 3
    assert "28,994" not in latex["fill-table--the-sizes"]
