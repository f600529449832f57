"""What a check of your code found: a finding for each case, and mistakes by name."""

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby, product


@dataclass(frozen=True)
class Finding:
    """One named case: whether it passed, what was expected, what came out, and why.

    `why` is what the case tries: it holds for every solution, and is no diagnosis of
    yours. Cases of one `group` stand together, and a report is short about them when
    not one of them passed.

    >>> print(Finding("output shape", False, "(2, 6)", "(6, 2)", "Transposed?"))
    output shape: expected (2, 6), got (6, 2). Transposed?
    """

    case: str
    passed: bool
    expected: str = ""
    got: str = ""
    why: str = ""
    group: str = ""

    def __str__(self) -> str:
        sentence = f"{self.case}: expected {self.expected}, got {self.got}."
        return f"{sentence} {self.why}".rstrip()


@dataclass(frozen=True)
class Mistake:
    """A known mistake: its name, why it is one, and what it changes in a calculation.

    `variants` holds the ways of making it: each replaces some parts of the correct
    calculation, by name.

    >>> Mistake("no scaling", "The scores grow.", ({"scale": 1.0},)).name
    'no scaling'
    """

    name: str
    why: str
    variants: tuple[dict, ...] = field(default=(), compare=False)


def recognise(
    mistakes: Sequence[Mistake],
    reproduces: Callable[[dict], bool],
    *,
    at_most: int = 3,
) -> list[Mistake]:
    """The fewest mistakes that together give exactly what came out, or none.

    Args:
        mistakes: those that are known. Where two replace the same part, the later
            counts.
        reproduces: called with the replaced parts of one attempt; says whether the
            calculation then gives what came out.
        at_most: how many mistakes are tried together.

    >>> add = Mistake("adds one", "", ({"plus": 1},))
    >>> double = Mistake("doubles", "", ({"times": 2},))
    >>> def gives_9(parts): return 4 * parts.get("times", 1) + parts.get("plus", 0) == 9
    >>> [mistake.name for mistake in recognise([add, double], gives_9)]
    ['adds one', 'doubles']
    """
    for number in range(1, at_most + 1):
        for together in combinations(mistakes, number):
            for variants in product(*(mistake.variants for mistake in together)):
                if reproduces({k: v for parts in variants for k, v in parts.items()}):
                    return list(together)
    return []


@dataclass(frozen=True)
class Report:
    """All findings about one solution, as plain text: the diagnosis, then the cases.

    >>> print(Report("TinyLayer", [Finding("it runs", True)]))
    Checking TinyLayer.
    passed: it runs
    <BLANKLINE>
    1 of 1 cases passed.
    """

    subject: str
    findings: list[Finding]
    mistakes: list[Mistake] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every case passed."""
        return all(finding.passed for finding in self.findings)

    @property
    def failed_cases(self) -> list[str]:
        """The names of the cases that failed, in the order of the report."""
        return [finding.case for finding in self.findings if not finding.passed]

    def __str__(self) -> str:
        lines = [f"Checking {self.subject}."]
        if not self.passed:
            lines += [*self.diagnosis(), ""]
        for group, together in groupby(self.findings, lambda finding: finding.group):
            cases = list(together)
            if group and len(cases) > 1 and not any(case.passed for case in cases):
                lines += none_passed_lines(group, cases)
                continue
            for case in cases:
                lines += [f"passed: {case.case}"] if case.passed else failed_lines(case)
        lines += [""]
        for note in self.notes:
            lines += folded(note)
        right = len(self.findings) - len(self.failed_cases)
        return "\n".join([*lines, f"{right} of {len(self.findings)} cases passed."])

    def diagnosis(self) -> list[str]:
        """The named mistakes, or what to do when none is known that does this."""
        if self.passed:
            return []
        if not self.mistakes:
            return [
                "No mistake that this check knows explains all of this.",
                "Begin with the first case that failed.",
            ]
        lines = ["What came out is what this gives:"]
        for mistake in self.mistakes:
            lines += [f"Mistake: {mistake.name}.", *folded(f"  {mistake.why}")]
        return lines


def failed_lines(finding: Finding) -> list[str]:
    """The lines of a case that failed.

    >>> failed_lines(Finding("row sums", False, "1", "2"))
    ['FAILED: row sums', '  expected: 1', '  got: 2']
    """
    parts = {
        "expected": finding.expected,
        "got": finding.got,
        "this case tests": finding.why,
    }
    lines = [f"  {name}: {text}" for name, text in parts.items() if text]
    return [
        f"FAILED: {finding.case}",
        *(part for line in lines for part in folded(line)),
    ]


def none_passed_lines(group: str, findings: list[Finding]) -> list[str]:
    """The lines of a group of cases of which none passed: how many, and the first.

    >>> cases = [Finding("refuses 0", False, "an error", "no error")] * 2
    >>> print(*none_passed_lines("refuses bad numbers", cases), sep="\\n")
    FAILED: refuses bad numbers (none of 2 cases passed)
      the first: refuses 0: expected an error, got no error.
    """
    return [
        f"FAILED: {group} (none of {len(findings)} cases passed)",
        *folded(f"  the first: {findings[0]}"),
    ]


def folded(line: str) -> list[str]:
    """A line in pieces of at most 88 characters, the later ones indented.

    >>> [len(piece) for piece in folded("  word" * 20)]
    [84, 38]
    """
    return textwrap.wrap(
        line,
        width=88,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def require(findings: Iterable[Finding]) -> list[Finding]:
    """All findings, if all passed.

    Raises:
        AssertionError: with the sentence of the first that did not.

    >>> require([Finding("row sums", False, "1", "2")])
    Traceback (most recent call last):
    AssertionError: row sums: expected 1, got 2.
    """
    passed = []
    for finding in findings:
        if not finding.passed:
            raise AssertionError(str(finding))
        passed.append(finding)
    return passed
