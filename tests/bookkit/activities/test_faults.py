"""What an author can do wrong: each is named with file and line, in one build of a page for each."""

import re
from typing import NamedTuple

import pytest

from activity_book import LEDGER, PAGES, activity_book
from tiny_book import line_of


class Fault(NamedTuple):
    """A page, words of the line that must be named, and the beginning of the message."""

    text: str
    place: str
    message: str


def item(words: str, option: str = "") -> str:
    return f"```{{item}} {words}\n{option}\n\nA reason.\n```\n"


def option(words: str, right: str = "") -> str:
    return f"```{{option}} {words}\n{right}\n\nA reason.\n```\n"


def row(words: str) -> str:
    return f"```{{row}} {words}\nWords.\n```\n"


def activity(kind: str, *lines: str) -> str:
    return f":::{{{kind}}} A title\n" + "\n".join(lines) + "\n:::\n"


ANSWER = "```{answer}\nAn answer.\n```\n"
RIGHT = ":right:"
TRAP = "".join(f"```{{{role}}}\nWords.\n```\n" for role in ("claim", "breaks", "fix", "proof"))
ARROWS = "```{arrow} a → b\nA reason.\n```\n```{arrow} b → c\nA reason.\n```\n"
PROMPT = "\nA prompt.\n"
GAPS = """
[gaps]
title = "Gaps"
verdict = "measured"
columns = { word = "label", note = "computed" }
rows = [["one", "good"], ["two", ""]]
"""

FAULTS = {
    # Records
    "unknown record": Fault(
        activity("step", ":record: share", PROMPT, row("pos 0")),
        ":::{step}",
        "step: the ledger has no record 'share'. Did you mean 'shares'?",
    ),
    "record without rows": Fault(
        activity("fill-table", ":record: half", ":column: value", PROMPT),
        ":::{fill-table}",
        "fill-table: 'half' has no rows: name a table of the ledger",
    ),
    "no record": Fault(
        activity("fill-table", ":column: speed", PROMPT),
        ":::{fill-table}",
        "fill-table: name the table, as in `:record: some-id`",
    ),
    "nothing to fill in": Fault(
        activity("fill-table", ":record: gaps", ":column: note", PROMPT),
        ":::{fill-table}",
        "fill-table: the cell 'two', 'note' is empty, so nobody can fill it in",
    ),
    "nothing to sort by": Fault(
        activity("sort", ":record: gaps", ":by: note", PROMPT, item("one"), item("two")),
        ":::{sort}",
        "sort: the record has no bucket for the rows 'two': their cells are empty",
    ),
    "no such column": Fault(
        activity("fill-table", ":record: sizes", ":column: weight", PROMPT),
        ":::{fill-table}",
        "fill-table: the record has no column 'weight'; there are 'model', 'parameters', 'speed'",
    ),
    "no such row": Fault(
        activity("fill-table", ":record: sizes", ":cells: tiny, speed", PROMPT),
        ":::{fill-table}",
        "fill-table: the record has no row 'tiny'; there are 'small', '<base>', 'large'",
    ),
    "no such column of a cell": Fault(
        activity("fill-table", ":record: sizes", ":cells: small, weight", PROMPT),
        ":::{fill-table}",
        "fill-table: the record has no column 'weight'",
    ),
    "cell without a column": Fault(
        activity("fill-table", ":record: sizes", ":cells: small, speed; large", PROMPT),
        ":::{fill-table}",
        "fill-table: name a cell by its row and column, as in `:cells: row, column`, not 'large'",
    ),
    "no such column to leave out": Fault(
        activity("fill-table", ":record: sizes", ":column: speed", ":without: weight", PROMPT),
        ":::{fill-table}",
        "fill-table: the record has no column 'weight'",
    ),
    "column that is asked for and left out": Fault(
        activity("fill-table", ":record: sizes", ":column: speed", ":without: speed", PROMPT),
        ":::{fill-table}",
        "fill-table: the record has no column 'speed'; there are 'model', 'parameters'",
    ),
    "column and cells": Fault(
        activity("fill-table", ":record: sizes", ":column: speed", ":cells: small, speed", PROMPT),
        ":::{fill-table}",
        "fill-table: name either the blank `:column:` or the blank `:cells:`",
    ),
    "neither column nor cells": Fault(
        activity("fill-table", ":record: sizes", PROMPT),
        ":::{fill-table}",
        "fill-table: name either the blank `:column:` or the blank `:cells:`",
    ),
    "missing row": Fault(
        activity("step", ":record: shares", PROMPT, row("pos 1")),
        ":::{step}",
        "step: say something on every row, in the record's order: 'pos 0', 'pos 1'",
    ),
    "rows in another order": Fault(
        activity("step", ":record: shares", PROMPT, row("pos 1"), row("pos 0")),
        ":::{step}",
        "step: say something on every row, in the record's order: 'pos 0', 'pos 1'",
    ),
    "row that is not there": Fault(
        activity("step", ":record: shares", PROMPT, row("pos 0"), row("pos 7")),
        "{row} pos 7",
        "step: the record has no row 'pos 7'; there are 'pos 0', 'pos 1'",
    ),
    # Values and proofs
    "unknown value": Fault(
        activity("predict", ":value: halve", PROMPT, ANSWER),
        ":::{predict}",
        "predict: the ledger has no record 'halve'. Did you mean 'half'?",
    ),
    "no such cell": Fault(
        activity("predict", ":value: shares[pos 9, pos 0]", PROMPT, ANSWER),
        ":::{predict}",
        "predict: no row 'pos 9'; there are 'pos 0', 'pos 1'",
    ),
    "table as a value": Fault(
        activity("predict", ":value: shares", PROMPT, ANSWER),
        ":::{predict}",
        "predict: 'shares': name the cell, as in shares[row, column]",
    ),
    "value that nothing computes": Fault(
        activity("predict", ":value: batch", PROMPT, ANSWER),
        ":::{predict}",
        "predict: nothing computes 'batch': take it into the answer with {val}, and say who found it",
    ),
    "trap without records": Fault(
        activity("trap", PROMPT, TRAP),
        ":::{trap}",
        "trap: name the records that prove it, as in `:record: one another`",
    ),
    "trap with an unknown record": Fault(
        activity("trap", ":record: half size", PROMPT, TRAP),
        ":::{trap}",
        "trap: the ledger has no record 'size'. Did you mean 'sizes'?",
    ),
    "trap that nothing proves": Fault(
        activity("trap", ":record: batch", PROMPT, TRAP),
        ":::{trap}",
        "trap: nothing runs that could prove 'batch': name a record that a chapter verifies",
    ),
    "drawing that is not there": Fault(
        activity("draw", ":figure: fig-mop", PROMPT, ARROWS, ANSWER),
        ":::{draw}",
        "draw: this page has no figure 'fig-mop'",
    ),
    "drawing that is not named": Fault(
        activity("draw", PROMPT, ARROWS, ANSWER),
        ":::{draw}",
        "draw: name the model drawing, a figure of this page, as in `:figure: fig-map`",
    ),
    # Options
    "two right options": Fault(
        activity("check", PROMPT, option("one", RIGHT), option("two", RIGHT)),
        ":::{check}",
        "check: 2 options are marked `:right:` where exactly one must be",
    ),
    "no right option": Fault(
        activity("eliminate", PROMPT, option("one"), option("two")),
        ":::{eliminate}",
        "eliminate: 0 options are marked `:right:` where exactly one must be",
    ),
    "one option": Fault(
        activity("check", PROMPT, option("one", RIGHT)),
        ":::{check}",
        "check: the number of parts 'option' is 1, and must be 2 to 8",
    ),
    "two options of the same words": Fault(
        activity("check", PROMPT, option("*one*", RIGHT), option("one")),
        "{option} one",
        "check: two parts 'option' have the words 'one'",
    ),
    "option without a reason": Fault(
        activity("check", PROMPT, option("one", RIGHT), "```{option} two\n```\n"),
        "{option} two",
        "check: the part 'option' is empty: write its text, or the reason",
    ),
    "option without words": Fault(
        activity("check", PROMPT, option("one", RIGHT), option("two"), "~~~{option}\n~~~\n"),
        "~~~{option}",
        "Directive 'option': 1 argument(s) required, 0 supplied",
    ),
    # Buckets
    "item without a bucket": Fault(
        activity("sort", ":buckets: good; bad", PROMPT, item("one"), item("two", ":bucket: bad")),
        "{item} one",
        "sort: the bucket of an item must be one of 'good', 'bad', not None",
    ),
    "item with an unknown bucket": Fault(
        activity("sort", ":buckets: good; bad", PROMPT, item("one", ":bucket: good"), item("two", ":bucket: worse")),
        "{item} two",
        "sort: the bucket of an item must be one of 'good', 'bad', not 'worse'",
    ),
    "unused bucket": Fault(
        activity("sort", ":buckets: good; bad", PROMPT, item("one", ":bucket: bad"), item("two", ":bucket: bad")),
        ":::{sort}",
        "sort: no item belongs into 'good'",
    ),
    "no buckets": Fault(
        activity("sort", PROMPT, item("one"), item("two")),
        ":::{sort}",
        "sort: name either the `:buckets: one; another`, or a `:record:` and the column to sort `:by:`",
    ),
    "buckets and a record": Fault(
        activity("sort", ":record: sizes", ":buckets: good; bad", PROMPT, item("one"), item("two")),
        ":::{sort}",
        "sort: name either the `:buckets: one; another`, or a `:record:` and the column to sort `:by:`",
    ),
    "no column to sort by": Fault(
        activity("sort", ":record: sizes", PROMPT, item("small"), item("large")),
        ":::{sort}",
        "sort: name the column to sort `:by:`, one of 'model', 'parameters', 'speed'",
    ),
    "unknown column to sort by": Fault(
        activity("sort", ":record: sizes", ":by: weight", PROMPT, item("small"), item("large")),
        ":::{sort}",
        "sort: the record has no column 'weight'; there are 'model', 'parameters', 'speed'",
    ),
    "item that is no row": Fault(
        activity("sort", ":record: shares", ":by: pos 0", PROMPT, item("pos 0"), item("pos 2")),
        "{item} pos 2",
        "sort: the record has no row 'pos 2'; there are 'pos 0', 'pos 1'",
    ),
    "row without an item": Fault(
        activity("sort", ":record: sizes", ":by: speed", PROMPT, item("small"), item("large")),
        ":::{sort}",
        "sort: there is no item for the rows '<base>'",
    ),
    "bucket beside a record": Fault(
        activity("sort", ":record: shares", ":by: pos 0", PROMPT, item("pos 0", ":bucket: 0.5"), item("pos 1")),
        "{item} pos 0",
        "sort: the record says into which bucket an item belongs: leave `:bucket:` out",
    ),
    # Parts
    "item without a reason": Fault(
        activity("sort", ":buckets: bad", PROMPT, "```{item} one\n:bucket: bad\n```\n", item("two", ":bucket: bad")),
        "{item} one",
        "sort: the part 'item' is empty: write its text, or the reason",
    ),
    "row without words": Fault(
        activity("step", ":record: shares", PROMPT, row("pos 0"), "```{row} pos 1\n```\n"),
        "{row} pos 1",
        "step: the part 'row' is empty: write its text, or the reason",
    ),
    "missing prompt": Fault(
        activity("discuss", ANSWER), ":::{discuss}", "discuss: the prompt is missing: say what the reader shall do"
    ),
    "nothing at all": Fault(
        activity("discuss"), ":::{discuss}", "discuss: the prompt is missing: say what the reader shall do"
    ),
    "missing answer": Fault(
        activity("predict", PROMPT), ":::{predict}", "predict: the number of parts 'answer' is 0, and must be 1"
    ),
    "missing hint": Fault(
        activity("exercise", PROMPT, "```{solution}\nCode.\n```\n"),
        ":::{exercise}",
        "exercise: the number of parts 'hint' is 0, and must be at least 1",
    ),
    "part of another kind": Fault(
        activity("discuss", PROMPT, row("pos 0"), ANSWER),
        "{row} pos 0",
        "discuss: a part 'row' does not belong here; there may be hint, answer",
    ),
    "part outside": Fault(
        "```{hint}\nA hint.\n```\n",
        "{hint}",
        "hint: this stands right in an activity, and nowhere else",
    ),
    "part in a part": Fault(
        activity("discuss", PROMPT, "````{answer}\nAn answer.\n\n```{hint}\nA hint.\n```\n````\n"),
        "{hint}",
        "hint: this stands right in an activity, and nowhere else",
    ),
    "activity in a part": Fault(
        "::::{discuss} Outer\nA prompt.\n\n:::{answer}\nAn answer.\n\n"
        f"```{{trap}} Inner\n:record: half\n\nA prompt.\n\n{TRAP.replace('```', '~~~')}```\n:::\n::::\n",
        "{trap}",
        "trap: an activity cannot stand in another",
    ),
    "activity in a prompt": Fault(
        activity("discuss", PROMPT, "~~~~{trap} Inner\n:record: half\n", PROMPT, TRAP, "~~~~\n", ANSWER),
        "{trap}",
        "trap: an activity cannot stand in another",
    ),
    "two of one title": Fault(
        activity("discuss", PROMPT, ANSWER) + activity("discuss", PROMPT, ANSWER).replace("A title", "A *title*"),
        "A *title*",
        "discuss: this page has another one with this title: change the words",
    ),
    # What would move
    "target in an answer": Fault(
        activity("discuss", PROMPT, "```{answer}\n(a-target)=\nAn answer.\n```\n"),
        "{answer}",
        "answer: in print this moves to the answers, so 'a-target' cannot stand in it",
    ),
    "formula with a label in a hint": Fault(
        activity("discuss", PROMPT, "```{hint}\n$$x$$ (a-formula)\n```\n", ANSWER),
        "{hint}",
        "hint: in print this moves to the answers, so 'equation-a-formula' cannot stand in it",
    ),
    "footnote in an answer": Fault(
        activity("discuss", PROMPT, "```{answer}\nAn answer.[^note]\n```\n") + "\n[^note]: A note.\n",
        "{answer}",
        "answer: in print this moves to the answers, so 'footnote 1' cannot stand in it",
    ),
}


def page_name(name: str) -> str:
    return name.replace(" ", "-")


@pytest.fixture(scope="module")
def warnings(tmp_path_factory) -> dict[str, list[tuple[int, str]]]:
    """For each page, the lines and messages of what was said of it."""
    texts = {page_name(name): f"# {name}\n\n{fault.text}" for name, fault in FAULTS.items()}
    pages = {"index": "# Tiny\n\n```{toctree}\n" + "\n".join(texts) + "\nanswers\n```\n", "answers": PAGES["answers"]}
    project = activity_book(tmp_path_factory.mktemp("faults"), pages | texts, LEDGER + GAPS)
    _, output = project.build("dummy")
    found: dict[str, list[tuple[int, str]]] = {}
    for page, line, message in re.findall(r"^.*/book/([\w/-]+)\.md:(\d+): \w+: (.*)$", output, re.MULTILINE):
        found.setdefault(page, []).append((int(line), message))
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_line(warnings, name):
    """Once: there is no other warning on the page."""
    fault = FAULTS[name]
    ((line, message),) = warnings[page_name(name)]
    assert message.startswith(fault.message)
    assert line == line_of(f"# {name}\n\n{fault.text}", fault.place)


def test_there_must_be_a_page_of_answers(tmp_path):
    text = "# Tiny\n\n" + activity("discuss", PROMPT, ANSWER)
    _, output = activity_book(tmp_path, {"index": text}).build("dummy")
    place = f"{tmp_path}/book/index.md:{line_of(text, ':::{discuss}')}: WARNING: "
    assert f"{place}discuss: print needs a page 'answers' with the directive `answers`" in output
    assert output.count("print needs a page") == 1


def test_the_page_of_answers_must_have_them(tmp_path):
    pages = {"index": "# Tiny\n\n```{toctree}\nanswers\n```\n", "answers": "# Answers\n"}
    _, output = activity_book(tmp_path, pages).build("dummy")
    assert f"{tmp_path}/book/answers.md: WARNING: `bookkit_answers` names this page" in output
