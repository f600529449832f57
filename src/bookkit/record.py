"""What a ledger record may say: the schema, and how its values are printed.

Numbers are read as they are written (TOML floats become Decimals), so `0.2500` has
four decimals. Every number is either compared with what a chapter computes, or, where
nothing can compute it, entered a second time in `again`. Words carry no loose numbers:
a number in a sentence comes from a record, through the `val` role.
"""

import re
from collections import Counter
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Verdict = Literal["reproduces", "erratum", "qualified", "cited", "measured"]
Kind = Literal[
    "label",  # words that name the row
    "computed",  # compared with what the chapter computes
    "mistaken",  # the source's wrong value, compared with what its mistake computes
    "cited",  # from the literature, entered twice
]
COMPARED = ("computed", "mistaken")

MOST_DECIMALS = 6  # of a compared number: a change of the seventh would hide in the slack of `compare`

NUMBER = re.compile(
    r"(?<![\w.])(?<![^\W\d_]-)"  # neither inside a word nor joined to one by a hyphen
    r"[-+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
)
CODE_AND_ROLES = re.compile(r"(\{[\w:-]+\})?`[^`]*`")


def numbers_in(text: str) -> Counter[Decimal]:
    """The numbers that stand in a text; digits inside a word (T5, GPT-2) are not numbers.

    >>> numbers_in("GPT-2 at 5e-5, then 2e-5")
    Counter({Decimal('0.00005'): 1, Decimal('0.00002'): 1})
    >>> sorted(numbers_in("2-4 epochs"))
    [Decimal('2'), Decimal('4')]
    """
    return Counter(Decimal(found.replace(",", "")) for found in NUMBER.findall(text))


def check_cell(cell: Any) -> Any:
    if not isinstance(cell, bool | int | Decimal | str):
        raise ValueError(f"a cell is a number, a text or a boolean, not {cell!r}")
    if isinstance(cell, Decimal) and not cell.is_finite():
        raise ValueError(f"a cell cannot be {cell}")
    return cell


def check_words(text: str) -> str:
    if not text.strip():
        raise ValueError("empty text")
    if loose := numbers_in(CODE_AND_ROLES.sub("", text)):
        raise ValueError(
            f"the number {next(iter(loose))} in words is checked by nobody: "
            "spell it out, or take it from a record with {val}`id`"
        )
    return text


def check_margin(margin: Any) -> Decimal:
    number = Decimal(margin).normalize() if type(margin) is int else margin
    usable = isinstance(number, Decimal) and number.is_finite() and number > 0
    if not usable or len(number.as_tuple().digits) != 1:
        raise ValueError(f"write the margin as a positive number of one significant digit, not {margin}")
    return number


Cell = Annotated[Any, AfterValidator(check_cell)]
Words = Annotated[str, AfterValidator(check_words)]
# A slide of the lesson, or another source in words: "the fine-tuning text".
Source = Annotated[str, Field(pattern=r"^(slide-([1-9]|[1-5]\d|60)|the [A-Za-z -]+)$")]


class Record(BaseModel):
    """What all records have in common: where the value comes from, and what became of it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    title: Words
    verdict: Verdict
    source: Source | None = None  # whose values these are
    cites: list[str] = []  # keys of references.bib
    says: Words | None = None  # what the source says, where it is wrong or incomplete
    why: Words | None = None  # the reason for such a verdict
    note: Words | None = None  # what else the reader should know
    again: str | None = None  # the numbers nothing computes, typed a second time

    @model_validator(mode="after")
    def check(self):
        self.check_verdict()
        self.check_values()
        self.check_again()
        return self

    def check_verdict(self) -> None:
        if self.verdict == "cited" and not self.cites:
            raise ValueError("verdict 'cited' needs `cites`, a list of keys of references.bib")
        if self.verdict in ("reproduces", "erratum", "qualified") and not self.source:
            raise ValueError(f'verdict {self.verdict!r} needs `source`, such as "slide-15"')
        if self.verdict == "measured" and self.source:
            raise ValueError("verdict 'measured' is for the book's own results: it has no `source`")
        if self.disputed and not (self.says and self.why):
            raise ValueError(f"verdict {self.verdict!r} needs `says` (what the source says) and `why` (the reason)")
        if not self.disputed and (self.says or self.why):
            raise ValueError(f"`says` and `why` are for errata and qualified values, not for {self.verdict!r}")

    def check_values(self) -> None:
        """What only this kind of record must fulfil, before `again` can be compared with its values."""

    def check_again(self) -> None:
        once, twice = self.uncomputed_numbers(), numbers_in(self.again or "")
        if once != twice:
            only = [str(number) for number in (once - twice) + (twice - once)]
            raise ValueError(
                f"`again` must repeat the numbers that nothing computes; it and the record differ in {', '.join(only)}"
            )

    @property
    def plain_title(self) -> str:
        """The title without markup, for a link's text."""
        return re.sub(r"\{[\w:-]+\}|[`*$]", "", self.title)

    @property
    def disputed(self) -> bool:
        """Whether the reader must be told that the source is wrong or incomplete."""
        return self.verdict in ("erratum", "qualified")

    @property
    def confirmed_source(self) -> str | None:
        """The source whose values the record's are; a disputed source is compared with nothing."""
        return None if self.disputed else self.source

    def uncomputed_numbers(self) -> Counter[Decimal]:
        return Counter()


class Table(Record):
    """Rows of cells. Either `columns` names each column and its kind, or `matrix` names both axes."""

    rows: list[list[Cell]]
    columns: dict[Words, Kind] | None = None
    matrix: Words | None = None  # "pos": rows and columns are labelled pos 0, pos 1, ...
    corner: Words | None = None  # what stands above the row labels of a matrix
    decimals: int | None = None

    def check_values(self) -> None:
        if bool(self.columns) == bool(self.matrix):
            raise ValueError("a table has either `columns` or `matrix`")
        if (self.matrix is None) != (self.corner is None):
            raise ValueError("`matrix` and `corner` go together")
        if not self.rows or not self.rows[0]:
            raise ValueError("`rows` is empty")
        width = len(self.columns or self.rows[0])
        for i, row in enumerate(self.rows):
            if len(row) != width:
                raise ValueError(f"row {i} has {len(row)} cells where {width} are expected")
            for cell, kind in zip(row, self.kinds, strict=True):
                if kind == "label":
                    if not isinstance(cell, str):
                        raise ValueError(f"row {i}: {cell!r} stands in a label column, where only words may")
                    check_words(cell)
        labels = [self.row_label(i) for i in range(len(self.rows))]
        if len(set(labels)) != len(labels):
            raise ValueError("two rows have the same label")
        check_decimals(self.decimals, [cell for row in self.rows for cell in row], bool(self.compared_columns))
        if "mistaken" in self.kinds and not self.disputed:
            raise ValueError("a column is `mistaken` only in errata and qualified tables")
        if "cited" in self.kinds and not self.cites:
            raise ValueError("a cited column needs `cites`, a list of keys of references.bib")
        if self.verdict == "cited" and self.compared_columns:
            raise ValueError("a cited table has no column that is computed")
        if self.verdict != "cited" and not self.compared_columns:
            raise ValueError("no column is computed: then the verdict is 'cited'")

    @property
    def kinds(self) -> list[Kind]:
        return list(self.columns.values()) if self.columns else ["computed"] * len(self.rows[0])

    @property
    def compared_columns(self) -> list[int]:
        return [i for i, kind in enumerate(self.kinds) if kind in COMPARED]

    @property
    def column_names(self) -> list[str]:
        return list(self.columns) if self.columns else [f"{self.matrix} {i}" for i in range(len(self.rows[0]))]

    def row_label(self, i: int) -> str:
        return f"{self.matrix} {i}" if self.matrix else printed(self.rows[i][0])

    def uncomputed_numbers(self) -> Counter[Decimal]:
        cells = (cell for row in self.rows for cell, kind in zip(row, self.kinds, strict=True) if kind == "cited")
        return sum((numbers_of(cell) for cell in cells), Counter())


class Value(Record):
    """One value; `mistaken` is the source's wrong one, if making its mistake recomputes it."""

    value: Cell
    mistaken: Cell | None = None
    decimals: int | None = None

    def check_values(self) -> None:
        check_decimals(self.decimals, [self.value, self.mistaken], self.verdict != "cited")
        if self.mistaken is not None and not self.disputed:
            raise ValueError("`mistaken` is for errata and qualified values")

    def uncomputed_numbers(self) -> Counter[Decimal]:
        return numbers_of(self.value) if self.verdict == "cited" else Counter()


class Claim(Record):
    """`less` is smaller than `than` by at least `margin`: the measured gap, rounded down to one digit."""

    less: Words
    than: Words
    margin: Annotated[Any, AfterValidator(check_margin)]

    def check_values(self) -> None:
        if self.verdict == "cited":
            raise ValueError("a claim is measured by a chapter, so it cannot be 'cited'")


class Statement(Record):
    """Something the source says in words. It is shown by other records, or by citations."""

    shown_by: list[str] = []

    def check_values(self) -> None:
        if not self.disputed:
            raise ValueError("a record without `rows`, `value`, `margin` or `same_as` states an erratum or qualifies")
        if not self.shown_by and not self.cites:
            raise ValueError("a statement needs evidence: `shown_by` (record ids) or `cites`")


class Alias(Record):
    """The same values as another record, verified again where it stands."""

    same_as: str

    def check_values(self) -> None:
        if self.verdict == "cited":
            raise ValueError("an alias is verified where it stands, so it cannot be 'cited'")


KINDS_BY_KEY = {"rows": Table, "value": Value, "margin": Claim, "same_as": Alias}


def record_class(raw: dict) -> type[Record]:
    """The class of a raw TOML record, told by the key that only its kind has.

    >>> record_class({"title": "…", "rows": []}).__name__
    'Table'
    """
    found = [kind for key, kind in KINDS_BY_KEY.items() if key in raw]
    if len(found) > 1:
        raise ValueError(f"a record has only one of {', '.join(key for key in KINDS_BY_KEY if key in raw)}")
    return found[0] if found else Statement


def source_words(source: str) -> str:
    """A source as a sentence names it.

    >>> source_words("slide-15"), source_words("the Flax exercise")
    ('slide 15', 'the Flax exercise')
    """
    return re.sub(r"^slide-", "slide ", source)


def check_decimals(decimals: int | None, cells: list, compared: bool) -> None:
    """Every decimal number must be written with exactly `decimals` places: it is printed as written."""
    numbers = [cell for cell in cells if isinstance(cell, Decimal)]
    if decimals is None and numbers:
        raise ValueError(f"`decimals` is missing: how many are printed of {numbers[0]}?")
    if decimals is not None and not numbers:
        raise ValueError("`decimals` is given, but no number has any")
    if decimals is not None and decimals < 1:
        raise ValueError(f"`decimals` is at least 1, not {decimals}: write whole numbers without a point")
    if decimals is not None and compared and decimals > MOST_DECIMALS:
        raise ValueError(f"of a computed number at most {MOST_DECIMALS} decimals can be checked, not {decimals}")
    for number in numbers:
        places = -number.as_tuple().exponent
        if places != decimals:
            raise ValueError(f"{number} is written with {places} decimals where `decimals` says {decimals}")


def numbers_of(cell: Any) -> Counter[Decimal]:
    """The numbers in a cell, be it a number or a text."""
    if isinstance(cell, str):
        return numbers_in(cell)
    return Counter() if isinstance(cell, bool) else Counter([Decimal(cell)])


def printed(cell: Any) -> str:
    """A cell as the book prints it.

    >>> printed(28994), printed(Decimal("0.2500")), printed(Decimal("-0.0285")), printed(True)
    ('28,994', '0.2500', '−0.0285', 'True')
    """
    if isinstance(cell, str | bool):
        return str(cell)
    text = f"{cell:,}" if isinstance(cell, int) else f"{cell:f}"
    return text.replace("-", "\N{MINUS SIGN}")
