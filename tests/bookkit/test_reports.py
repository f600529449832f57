"""A record's value in a sentence, and what chapters report."""

import json

import pytest

from bookkit.compare import Comparison, Difference
from bookkit.reports import look_up, report_from

LEDGER = """
[shares]
title = "Two shares"
verdict = "measured"
columns = { name = "label", share = "computed", "how many" = "computed", seen = "computed" }
decimals = 2
rows = [["left", -0.25, 28994, true], ["to the right, and on", 0.75, 3, false]]

[counts]
title = "By count"
verdict = "measured"
columns = { epoch = "computed", loss = "computed" }
decimals = 4
rows = [[0, 0.7904], [1000, 0.5000]]

[weights]
title = "Weights"
verdict = "measured"
matrix = "pos"
corner = "query and key"
decimals = 1
rows = [[0.5, 1.0]]

[shares-again]
title = "The same"
verdict = "measured"
same_as = "shares"

[half]
title = "One half"
verdict = "erratum"
source = "slide-17"
says = "it is less."
why = "It is not."
value = 0.50
mistaken = 0.05
decimals = 2

[truth]
title = "A truth"
verdict = "measured"
value = true

[learns]
title = "Training lowers the loss"
verdict = "measured"
less = "after"
than = "before"
margin = 0.4

[stated]
title = "What the source says"
verdict = "qualified"
source = "slide-12"
says = "so."
why = "Only if."
shown_by = ["shares"]

[batch]
title = "The batch"
verdict = "cited"
cites = ["devlin2019bert"]
columns = { size = "label", tokens = "cited" }
rows = [["large", "256 x 512"]]
again = "256 512"
"""


@pytest.mark.parametrize(
    ("target", "printed"),
    [
        ("shares[left, share]", "−0.25"),
        ("shares[left, how many]", "28,994"),
        ("shares[left, seen]", "True"),
        ("shares[left, name]", "left"),
        ("shares[to the right, and on, share]", "0.75"),
        (" shares [ left ,  share ]", "−0.25"),
        ("shares-again[left, share]", "−0.25"),
        ("counts[0, loss]", "0.7904"),
        ("counts[1,000, loss]", "0.5000"),
        ("weights[pos 0, pos 1]", "1.0"),
        ("half", "0.50"),
        ("half[mistaken]", "0.05"),
        ("truth", "True"),
        ("learns", "0.4"),
        ("batch[large, tokens]", "256 x 512"),
    ],
)
def test_a_value_is_named_by_its_record_and_cell(ledger_of, target, printed):
    assert look_up(ledger_of(LEDGER), target) == printed


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("haf", "the ledger has no record 'haf'. Did you mean 'half'?"),
        ("shares", "'shares': name the cell, as in shares[row, column]"),
        ("shares[left]", "'shares[left]': name the cell, as in shares[row, column]"),
        ("shares[right, share]", "no row 'right'; there are 'left', 'to the right, and on'"),
        ("shares[left, count]", "no column 'count'; there are 'name', 'share', 'how many', 'seen'"),
        ("weights[0, 1]", "no row '0'; there are 'pos 0'"),
        ("half[value]", "'half[value]': this record has no cells; write 'half' alone"),
        ("half[]", "'half[]': this record has no cells; write 'half' alone"),
        ("half[a, mistaken]", "this record has no cells; write 'half' alone"),
        ("truth[mistaken]", "this record has no cells; write 'truth' alone"),
        ("learns[margin]", "this record has no cells; write 'learns' alone"),
        ("stated", "'stated' is a statement: it has no value"),
    ],
)
def test_what_names_no_value_says_what_there_is(ledger_of, target, message):
    with pytest.raises(LookupError) as caught:
        look_up(ledger_of(LEDGER), target)
    assert message in str(caught.value)


def test_a_report_survives_json():
    comparison = Comparison(
        4, [Difference("value", "0.5", "0.4", "1.0e-1", (0, 1)), Difference("shape", "(1, 2)", "(2,)")], ("0.1", "0.5")
    )
    published = {
        "version": 1,
        "id": "half",
        "line": 3,
        "compared": comparison.compared,
        "measured": comparison.measured,
        "differences": [vars(difference) for difference in comparison.differences],
        "given": {"computed": "0.4", "mistaken": "None"},
    }
    report = report_from(json.loads(json.dumps(published)), "chapter", 42)
    assert (report.id, report.document, report.line, report.ok) == ("half", "chapter", 42, False)
    assert report.comparison == comparison
    assert report.given == published["given"]
