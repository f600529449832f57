"""The ledger patch that a change of results would need: printed, never applied."""

import json
import shutil
import subprocess

import pytest

from bookkit.__main__ import main
from bookkit.compare import compare
from bookkit.ledger import load_ledger
from bookkit.propose import propose, propose_from

ONE = """# Comments stay.
[shares]
title = "Two shares"   # also here
verdict = "measured"
columns = { name = "label", share = "computed", count = "computed", how = "computed" }
decimals = 4
rows = [
    # and in a table
    ["left",  0.2500, 1, "same"],
    ["right", 0.7500, 3, "same"],  # the larger one
]

[shares-again]
title = "The same"
verdict = "reproduces"
source = "slide-54"
same_as = "shares"
"""
TWO = """
[half]
title = "One half"
verdict = "erratum"
source = "slide-17"
says = "it is less."
why = "It is not."
value    = 0.50
mistaken = 0.05
decimals = 2

[learns]
title = "Training lowers the loss"
verdict = "measured"
less = "after"
than = "before"
margin = 0.4

[count]
title = "Parameters"
verdict = "measured"
value = 28994
"""
SAME = {
    "shares": [(0.25, 1, "same"), (0.75, 3, "same")],
    "shares-again": [(0.25, 1, "same"), (0.75, 3, "same")],
    "half": (0.5, 0.05),
    "learns": {"after": 0.1, "before": 0.55},
    "count": 28994,
}


@pytest.fixture
def project(ledger_of, tmp_path, monkeypatch):
    """A folder in which the commands find the ledger."""
    ledger_of(ONE, TWO)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ledger-0"


def report_of(folder, **computed) -> dict:
    """What a build reports whose chapters computed these values, and else what is recorded."""
    ledger = load_ledger(folder)
    records = []
    for record_id, value in (SAME | computed).items():
        values = value if record_id == "half" else (value,)
        comparison = compare(ledger.values_of(record_id).record, *values)
        records.append({"id": record_id, "differences": [vars(d) for d in comparison.differences]})
    return json.loads(json.dumps({"records": records}))


def changed_lines(patch: str) -> list[str]:
    return [line for line in patch.splitlines() if line[:1] in "-+" and line[:3] not in ("---", "+++")]


CHANGES = {
    "one cell": (
        {"shares": [(0.24996, 1, "same"), (0.74321, 3, "same")]},
        [
            '-    ["right", 0.7500, 3, "same"],  # the larger one',
            '+    ["right", 0.7432, 3, "same"],  # the larger one',
        ],
    ),
    "two cells of a row": (
        {"shares": [(-0.00004, 2, "same"), (0.75, 3, "same")]},
        ['-    ["left",  0.2500, 1, "same"],', '+    ["left",  -0.0000, 2, "same"],'],
    ),
    "through an alias": (
        {"shares-again": [(0.25, 1, "same"), (0.75, 4, "same")]},
        [
            '-    ["right", 0.7500, 3, "same"],  # the larger one',
            '+    ["right", 0.7500, 4, "same"],  # the larger one',
        ],
    ),
    "a value": ({"half": (0.625, 0.05)}, ["-value    = 0.50", "+value    = 0.62"]),
    "the mistake": ({"half": (0.5, 1e-9)}, ["-mistaken = 0.05", "+mistaken = 0.00"]),
    "a large value": ({"half": (1e20, 0.05)}, ["-value    = 0.50", "+value    = 100000000000000000000.00"]),
    "a weaker claim": ({"learns": {"after": 0.1, "before": 0.4999}}, ["-margin = 0.4", "+margin = 0.3"]),
    "a stronger claim": ({"learns": {"after": 0.1, "before": 23.0}}, ["-margin = 0.4", "+margin = 20"]),
    "a count": ({"count": 29000}, ["-value = 28994", "+value = 29000"]),
}


@pytest.mark.parametrize(("computed", "lines"), CHANGES.values(), ids=CHANGES)
def test_the_patch_changes_only_what_drifted(project, computed, lines):
    patch = "".join(propose(report_of(project, **computed), load_ledger(project)))
    assert changed_lines(patch) == lines


@pytest.mark.skipif(not shutil.which("patch"), reason="needs the command patch")
def test_the_patch_applies_and_then_all_agrees(project, tmp_path):
    computed = {
        "shares": [(0.2, 2, "same"), (0.8, 8, "same")],
        "shares-again": [(0.2, 2, "same"), (0.8, 8, "same")],
        "half": (0.45, 0.123),
        "learns": {"after": 0.1, "before": 4.0},
        "count": 1,
    }
    before = report_of(project, **computed)
    assert sum(len(record["differences"]) for record in before["records"]) == 4 + 4 + 2 + 1 + 1
    patch = "".join(propose(before, load_ledger(project)))
    subprocess.run(["patch", "-p0", "--posix"], input=patch, text=True, check=True, cwd=tmp_path, capture_output=True)
    after = report_of(project, **computed)
    assert sum(len(record["differences"]) for record in after["records"]) == 0
    assert "# the larger one" in (project / "one.toml").read_text()


BY_HAND = {
    "another shape": {"shares": [(0.25, 1, "same")]},
    "NaN": {"half": (float("nan"), 0.05)},
    "infinity": {"half": (0.5, float("inf"))},
    "a float for a count": {"count": 28994.0},
    "a count for a float": {"half": (1, 0.05)},
    "another word": {"shares": [(0.25, 1, "same"), (0.75, 3, "5 (int)")]},
    "a number for a word": {"shares": [(0.25, 1, "same"), (0.75, 3, 5)]},
    "too many digits": {"half": (1e30, 0.05)},
    "no claim any more": {"learns": {"after": 0.55, "before": 0.1}},
    "equal sides": {"learns": {"after": 0.5, "before": 0.5}},
    "no number in a claim": {"learns": {"after": None, "before": 0.1}},
    "another claim": {"learns": {"after": 0.55}},
    "no mistake": {"half": (0.5, None)},
}


@pytest.mark.parametrize("computed", BY_HAND.values(), ids=BY_HAND)
def test_what_is_no_new_number_has_to_be_judged_by_hand(project, computed):
    lines = "".join(propose(report_of(project, **computed), load_ledger(project))).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"# {next(iter(computed))}: ")
    assert lines[0].endswith(" has to be judged by hand")


def test_both_files_are_patched(project):
    report = report_of(project, count=1, shares=[(0.25, 2, "same"), (0.75, 3, "same")])
    patch = "".join(propose(report, load_ledger(project)))
    assert [line for line in patch.splitlines() if line.startswith("+++")] == [
        "+++ ledger-0/one.toml",
        "+++ ledger-0/two.toml",
    ]


def test_the_command_prints_and_writes_nothing(project, tmp_path, capsys):
    report = tmp_path / "report.json"
    report.write_text(json.dumps(report_of(project, count=1)))
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["propose", "--report", str(report)]) == 0
    assert changed_lines(capsys.readouterr().out) == ["-value = 28994", "+value = 1"]
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_no_drift_needs_no_patch(project, tmp_path):
    report = tmp_path / "report.json"
    report.write_text(json.dumps(report_of(project)))
    assert propose_from(report, load_ledger(project)) == "The last build found no drift: nothing to change.\n"


def test_no_build_yet(project, tmp_path, capsys):
    assert main(["propose", "--report", str(tmp_path / "report.json")]) == 1
    assert capsys.readouterr().err == f"{tmp_path}/report.json does not exist: run `make html` first\n"


def test_a_report_of_a_record_that_is_gone(project, tmp_path, capsys):
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"records": [{"id": "gone", "differences": [{}]}]}))
    assert main(["propose", "--report", str(report)]) == 1
    assert capsys.readouterr().err == "the ledger has no record 'gone'.\n"
