"""Reading the ledger: every fault of every file at once, each with its file and line."""

import os

import pytest

from bookkit.ledger import LEDGER_VARIABLE, Ledger, LedgerError, find_ledger, load_ledger
from bookkit.record import Alias, Table

SHARES = """# A comment before the first record.

[shares]
title = "Two shares"
verdict = "measured"
columns = { name = "label", share = "computed" }
decimals = 2
rows = [
    ["left", 0.25],
    ["right", 0.75],
]
"""
AGAIN = """
[shares-again]  # with another caption
title = "The same"
verdict = "reproduces"
source = "slide-54"
same_as = "shares"
"""
STATED = """
["stated"]
title = "What the source says"
verdict = "qualified"
source = "slide-12"
says = "so."
why = "Only if."
shown_by = ["shares"]
"""
CITED = """
[batch]
title = "The batch"
verdict = "cited"
cites = ["devlin2019bert"]
value = 256
again = "256"
"""


def test_records_know_where_they_stand(ledger_of):
    ledger = ledger_of(SHARES + AGAIN, STATED + CITED)
    assert [(entry.id, entry.file.name, entry.line) for entry in ledger] == [
        ("shares", "one.toml", 3),
        ("shares-again", "one.toml", 13),
        ("stated", "two.toml", 2),
        ("batch", "two.toml", 10),
    ]
    assert ledger["batch"].place == f"{ledger['batch'].file}:10"
    assert "shares" in ledger
    assert "share" not in ledger


def test_an_alias_has_the_values_of_its_record(ledger_of):
    ledger = ledger_of(SHARES + AGAIN)
    assert isinstance(ledger["shares-again"].record, Alias)
    assert ledger.values_of("shares-again") is ledger["shares"]
    assert isinstance(ledger.values_of("shares").record, Table)


def test_a_build_verifies_all_but_statements_and_citations(ledger_of):
    assert [entry.id for entry in ledger_of(SHARES + AGAIN, STATED + CITED).to_verify()] == ["shares", "shares-again"]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("shares-agai", r" Did you mean 'shares-again' or 'shares'\?"),
        ("sharse-again", r" Did you mean 'shares-again'\?"),
        ("xyz", "$"),
    ],
)
def test_an_unknown_id_suggests_those_that_are_near(ledger_of, wrong, hint):
    with pytest.raises(LookupError, match=rf"the ledger has no record '{wrong}'\.{hint}"):
        ledger_of(SHARES + AGAIN)[wrong]


# name: (file, line of the fault, message)
FAULTS = {
    "typo in a key": (SHARES.replace("title", "tittle"), 4, "[shares] unknown key `tittle`: is it a typo?"),
    "missing key": (SHARES.replace('title = "Two shares"\n', ""), 3, "[shares] the key `title` is missing"),
    "missing key before another record": (
        SHARES.replace('title = "Two shares"\n', "") + AGAIN,
        3,
        "[shares] the key `title` is missing",
    ),
    "unknown verdict": (SHARES.replace("measured", "right"), 5, "[shares] `verdict`: Input should be 'reproduces'"),
    "unknown kind": (SHARES.replace("label", "words"), 6, "[shares] `columns.name`: Input should be 'label'"),
    "bool for an int": (SHARES.replace("= 2", "= true"), 7, "[shares] `decimals`: Input should be a valid integer"),
    "int for a text": (SHARES.replace('"Two shares"', "2"), 4, "[shares] `title`: Input should be a valid string"),
    "NaN": (SHARES.replace("0.25", "nan"), 8, "[shares] `rows.0.1`: a cell cannot be NaN"),
    "number in words": (SHARES.replace("Two", "2"), 4, "[shares] `title`: the number 2 in words is checked by nobody"),
    "ragged rows": (SHARES.replace('"left", 0.25', '"left"'), 3, "[shares] row 0 has 1 cells where 2 are expected"),
    "two kinds": (SHARES + "value = 1\n", 3, "[shares] a record has only one of rows, value"),
    "no words in an id": (SHARES.replace("[shares]", "[Shares_]"), 3, "[Shares_] a record's id is made of lower-case"),
    "dots in an id": (SHARES.replace("[shares]", "[shares.left]"), 3, "[shares] unknown key `left`: is it a typo?"),
    "no record": ("shares = 1\n", 1, "[shares] a record is a table: put its keys under a line [id]"),
    "syntax": (SHARES + "why = \n", 12, "Invalid value (at line 12, column 7)"),
    "unfinished": (SHARES + 'why = "', 12, "Unterminated string (at end of document)"),
    "the same id twice": (SHARES + SHARES, 14, "Cannot declare ('shares',) twice (at line 14, column 8)"),
    "same_as to nowhere": (AGAIN, 2, "[shares-again] points at 'shares', which the ledger does not have"),
    "shown_by to nowhere": (STATED, 2, "[stated] points at 'shares', which the ledger does not have"),
    "alias of itself": (AGAIN.replace('"shares"', '"shares-again"'), 2, "points at 'shares-again', which holds no"),
    "shown by an alias": (SHARES + AGAIN + STATED.replace('"shares"', '"shares-again"'), 19, "which holds no values"),
    "alias of a statement": (SHARES + STATED + AGAIN.replace('"shares"', '"stated"'), 21, "which holds no values"),
}


@pytest.mark.parametrize(("text", "line", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_has_its_file_and_line(ledger_of, tmp_path, text, line, message):
    with pytest.raises(LedgerError) as caught:
        ledger_of(text)
    (fault,) = (fault for fault in str(caught.value).splitlines() if message in fault)
    assert fault.startswith(f"{tmp_path}/ledger-0/one.toml:{line}: ")


def test_an_alias_loop_is_no_endless_recursion(ledger_of):
    with pytest.raises(LedgerError) as caught:
        ledger_of(
            AGAIN.replace('"shares"', '"other"')
            + AGAIN.replace("shares-again", "other").replace('"shares"', '"shares-again"')
        )
    assert str(caught.value).count("which holds no values itself") == 2


def test_an_id_in_two_files(ledger_of, tmp_path):
    folder = tmp_path / "ledger-0"
    with pytest.raises(LedgerError) as caught:
        ledger_of(SHARES, SHARES)
    assert str(caught.value) == f"{folder}/two.toml:3: [shares] stands in {folder}/one.toml:3 already"


def test_all_faults_of_all_files_are_listed_at_once(ledger_of):
    one = SHARES.replace("title", "tittle").replace("0.75", "inf") + AGAIN.replace('"shares"', '"elsewhere"')
    two = STATED.replace('"qualified"', '"erratumm"') + CITED.replace("256\nagain", "512\nagain")
    with pytest.raises(LedgerError) as caught:
        ledger_of(one, two)
    faults = [line.partition("ledger-0/")[2] for line in str(caught.value).splitlines()]
    assert [fault.partition(":")[0] for fault in faults] == ["one.toml"] * 3 + ["two.toml"] * 2 + ["one.toml"]
    for fault, words in zip(
        faults,
        ["title` is missing", "cannot be Infinity", "`tittle`", "`verdict`", "`again`", "points at 'elsewhere'"],
        strict=True,
    ):
        assert words in fault


def test_a_link_to_a_faulty_record_is_no_fault_of_its_own(ledger_of):
    with pytest.raises(LedgerError) as caught:
        ledger_of(AGAIN, SHARES.replace("0.75", "nan"))
    assert "points at" not in str(caught.value)


def test_a_syntax_error_hides_no_fault_of_another_file(ledger_of):
    with pytest.raises(LedgerError, match=r"one\.toml:12: Invalid value.*\n.*two\.toml:4: .*`verdict`") as caught:
        ledger_of(SHARES + "why = \n", STATED.replace("qualified", "true") + AGAIN)
    assert "points at" not in str(caught.value)  # nobody knows which ids the first file has


def test_a_file_that_is_not_utf8_is_named_with_its_line(ledger_of, tmp_path):
    ledger_of(SHARES)
    file = tmp_path / "ledger-0" / "one.toml"
    file.write_bytes(SHARES.encode().replace(b"Two", b"Zw\xf6lf"))
    with pytest.raises(LedgerError, match=r"one\.toml:4: 'utf-8' codec can't decode byte 0xf6"):
        load_ledger(file.parent)


def test_a_changed_file_is_read_again(ledger_of, tmp_path):
    before = ledger_of(SHARES)
    file = tmp_path / "ledger-0" / "one.toml"
    assert load_ledger(file.parent) is before
    file.write_text(SHARES.replace("Two shares", "Halves"), encoding="utf-8")
    os.utime(file, ns=(1, 1))  # a clock may be too coarse for a test
    assert load_ledger(file.parent)["shares"].record.title == "Halves"


def test_a_folder_without_records(tmp_path):
    with pytest.raises(LedgerError, match=rf"no \*\.toml file in {tmp_path}"):
        load_ledger(tmp_path)


@pytest.mark.parametrize("place", ["ledger", "book/ledger"])
@pytest.mark.parametrize("start", [".", "a/b"])
def test_the_ledger_is_found_from_any_folder_of_the_project(tmp_path, monkeypatch, place, start):
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / start).mkdir(parents=True, exist_ok=True)
    assert find_ledger(tmp_path / start) == tmp_path / place
    monkeypatch.chdir(tmp_path / start)
    assert find_ledger() == tmp_path / place


def test_the_environment_names_the_ledger_first(tmp_path, monkeypatch):
    (tmp_path / "ledger").mkdir()
    monkeypatch.setenv(LEDGER_VARIABLE, str(tmp_path / "other"))
    assert find_ledger(tmp_path) == tmp_path / "other"


def test_no_ledger_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(LedgerError, match=rf"`ledger` or `book/ledger` in {tmp_path} or above it: run inside"):
        find_ledger(tmp_path)


def test_an_empty_ledger_has_nothing():
    assert not Ledger().to_verify()
