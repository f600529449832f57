"""How a report of a fault becomes a test: a check that ours passes, and that a mutant with the fault fails."""

import pytest


def report(name, holds, ours, *mutants, harmless, harmful):
    """One test case a mutant, named after the report and the fault.

    A check is called as holds(implementation, case). The mutant has to pass it on the harmless case too,
    so that it cannot fail for another reason than its fault.
    """
    return [pytest.param(holds, ours, mutant, harmless, harmful, id=f"{name}-{mutant.__name__}") for mutant in mutants]


def check_report(holds, ours, mutant, harmless, harmful) -> None:
    assert holds(ours, harmless)
    assert holds(mutant, harmless)
    for case in harmful:
        assert holds(ours, case)
        assert not holds(mutant, case)
