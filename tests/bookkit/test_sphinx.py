"""Tiny books, built by Sphinx: one in which all agrees, and one in which everything that can be wrong is."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from sphinx import addnodes

from tiny_book import Project, line_of, text_of

CONF = """
project = "Tiny"
author = "nobody"
extensions = ["myst_nb", "sphinxcontrib.bibtex", "bookkit.extension"]
exclude_patterns = ["ledger"]
nitpicky = True
numfig = True
bibtex_bibfiles = ["book/references.bib"]
nb_execution_mode = "force"
nb_merge_streams = True
nb_output_stderr = "warn"
nb_execution_show_tb = True
myst_enable_extensions = ["dollarmath"]
html_theme = "basic"
html_math_renderer = "mathml"
bookkit_versions = ["sphinx"]
"""
SUMS = '''"""Sums."""


def half(x: float) -> float:
    """Half of x.

    Args:
        x: H. A number, not a letter.

    Raises:
        TypeError: if x is a text.

    Source: slides 15 and 50; Nobody 2020.

    >>> half(1.0)
    0.5
    """
    return x / 2


def shares() -> list:
    return [[half(0.5), half(1.5)], [half(1), half(1)]]


def counts() -> list:
    return [["layers", 12 * 100 + 34, 12 * 100 + 35, "same"], ["<heads>", 8, 9, "50 %"]]


class Sum:
    """A sum that grows."""

    def __init__(self, start: int = 0, *, step: int = 1):
        self.total, self.step = start, step

    @classmethod
    def empty(cls) -> "Sum":
        """A sum of nothing."""

    def grow(self) -> "Foreign":
        """One step more."""

    def _hidden(self) -> None:
        """Nobody's business."""


def _private() -> None:
    """Nobody's business."""
'''
LEDGER = r"""
[shares]
title = "Shares of *four* quarters of $n$"
source = "slide-15"
verdict = "reproduces"
matrix = "pos"
corner = "query \\ key"
decimals = 2
rows = [[0.25, 0.75], [0.50, 0.50]]
note = "Made by {numref}`code-half`."

[counts]
title = "Counts `n`"
verdict = "erratum"
source = "slide-16"
says = "there are {val}`counts[layers, source]` layers."
why = "There are {val}`counts[layers, here]`, see {numref}`shares`."
cites = ["nobody2020"]
columns = { component = "label", here = "computed", source = "mistaken", note = "computed" }
rows = [["layers", 1234, 1235, "same"], ["<heads>", 8, 9, "50 %"]]

[half]
title = "One half"
verdict = "qualified"
source = "slide-17"
value = 0.50
mistaken = 0.05
decimals = 2
says = "a half is {val}`half[mistaken]`."
why = "It is {val}`half`, unless a digit slips."

[learns]
title = "Training lowers the loss"
verdict = "measured"
less = "loss after"
than = "loss before"
margin = 0.4

[shares-again]
title = "The same shares"
verdict = "reproduces"
source = "slide-40"
same_as = "shares"

[sees-itself]
title = "A token sees itself"
source = "slide-7"
verdict = "qualified"
says = "it does not."
why = "It does {cite}`nobody2020`."
shown_by = ["shares"]

[batch]
title = "The batch size"
verdict = "cited"
cites = ["nobody2020"]
value = 256
again = "256"
"""
HEADER = """---
file_format: mystnb
kernelspec:
  name: python3
---
"""
ONE = (
    HEADER
    + r"""
# One

(slide-15)=
See {numref}`shares` and {numref}`code-half`. Values: {val}`shares[pos 0, pos 1]`, {val}`half`, {val}`half[mistaken]`,
{val}`learns`, {val}`batch`, {val}`counts[layers, here]`, {val}`shares-again[pos 1, pos 1]`.
Links: {record:ref}`itself <sees-itself>`, {record:source}`slide-15`, {record:source}`slide-50`.

```{listing} demo.sums.half
```

```{code-cell} ipython3
---
tags: [some-tag]
---

from bookkit import verify
from demo.sums import shares

table = verify("shares", shares());
print("said after the check")
table
```

```{verdict} sees-itself
```

$$
x = \frac{1}{2}
$$ (an-equation)

Inline $y < 2$, and {eq}`an-equation`.
"""
)
TWO = (
    HEADER
    + """
# Two

```{code-cell} ipython3
:tags: [hide-input]

from bookkit import verify
from demo.sums import counts, half, shares


def check(rows):
    verify("counts", rows)


check(counts())
```

```{code-cell} ipython3
verify("half", half(1), mistaken=half(half(1) / 5))
verify("learns", {"loss after": half(0.2), "loss before": half(1.1)})
verify("shares-again", shares())
```
"""
)
PAGES = {
    "index": "# Tiny\n\n```{toctree}\none\ntwo\nerrata\nchecked\nreference\nbibliography\n```\n",
    "one": ONE,
    "two": TWO,
    "errata": "# Errata\n\n```{errata}\n```\n",
    "checked": "# Checked\n\n```{checked}\n```\n",
    "reference": "Reference\n=========\n\n.. reference:: demo\n",
    "bibliography": "# Bibliography\n\n```{bibliography}\n```\n",
}


def project(root: Path, *, pages: dict[str, str], ledger: str, sums: str) -> Project:
    """A book of these pages, with a package whose functions they call."""
    files = {"conf.py": CONF, "src/demo/sums.py": sums, "src/demo/__init__.py": "", "book/ledger/tiny.toml": ledger}
    files |= {f"book/{name}.md": text for name, text in pages.items() if name != "reference"}
    files["book/reference.rst"] = pages["reference"]
    files["book/references.bib"] = "@misc{nobody2020, author={Nobody, Ann}, title={Nothing}, year={2020}}"
    return Project(root, files)


# -- A book in which all agrees ------------------------------------------------------------------


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Project:
    return project(tmp_path_factory.mktemp("book"), pages=PAGES, ledger=LEDGER, sums=SUMS)


@pytest.fixture(scope="module")
def builds(book) -> dict[str, tuple[int, str]]:
    """HTML first: it executes the chapters, and the other builders find them executed."""
    return {builder: book.build(builder) for builder in ("html", "latex", "text")}


@pytest.fixture(scope="module")
def built(book, builds) -> Project:
    assert builds["html"] == (0, "")
    return book


@pytest.mark.parametrize("builder", ["html", "latex", "text"])
def test_no_builder_warns(builds, builder):
    assert builds[builder] == (0, "")


def test_only_the_first_builder_executes(built):
    written = {(built.root / f"_build/doctrees/{name}.doctree").stat().st_mtime for name in PAGES}
    assert max(written) < (built.root / "_build/html/index.html").stat().st_mtime


def test_the_first_build_names_every_style_sheet_as_later_ones_do(built):
    sheets = [link["href"] for link in built.page("one").select("link[rel=stylesheet]")]
    assert any("mystnb" in sheet for sheet in sheets)
    assert all("?v=" in sheet for sheet in sheets)


def test_a_table_in_the_doctree(built):
    document = built.doctree("one")
    (table,) = document.findall(nodes.table)
    assert table["ids"] == table["names"] == ["shares"]
    assert document.nameids["shares"] == "shares"
    (title,) = table.findall(nodes.title)
    assert [type(child) for child in title] == [nodes.Text, nodes.emphasis, nodes.Text, nodes.math]
    assert text_of(title) == "Shares of four quarters of n"
    specification = table.parent[table.parent.index(table) - 1]
    assert isinstance(specification, addnodes.tabular_col_spec)
    assert specification["spec"] == "lrr"
    assert [column["stub"] for column in table.findall(nodes.colspec)] == [1, 0, 0]
    assert [[text_of(entry) for entry in row] for row in table.findall(nodes.row)] == [
        ["query \\ key", "pos 0", "pos 1"],
        ["pos 0", "0.25", "0.75"],
        ["pos 1", "0.50", "0.50"],
    ]
    assert [[*entry["classes"]] for entry in next(table.findall(nodes.row))] == [
        ["text-left"],
        ["text-right"],
        ["text-right"],
    ]


def test_the_lines_under_a_table(built):
    (table,) = built.doctree("one").findall(nodes.table)
    record = table.parent
    assert record["classes"] == ["record", "checked"]
    mark, note = record[-2:]
    assert (mark["classes"], note["classes"]) == (["record-mark"], ["record-note"])
    assert text_of(mark) == "✓ 4 values computed here; all agree with slide 15, to two decimals."
    (link,) = mark.findall(addnodes.pending_xref)
    assert (link["refdomain"], link["reftype"], link["reftarget"]) == ("record", "source", "slide-15")
    assert text_of(note) == "Made by code-half."


def test_the_kinds_of_columns(built):
    table = next(table for table in built.doctree("two").findall(nodes.table) if table["ids"] == ["counts"])
    assert table.parent[0]["spec"] == "lrrl"
    assert [column["stub"] for column in table.findall(nodes.colspec)] == [1, 0, 0, 0]
    assert [text_of(entry) for entry in list(table.findall(nodes.row))[2]] == ["<heads>", "8", "9", "50 %"]


def test_what_is_shown_is_shown_once(built):
    """Not a second time by the name on the last line of the cell."""
    page = built.page("one")
    assert len(page.select(".cell_output table")) == 1
    assert page.select_one(".cell_output pre").text == "said after the check\n"
    assert [table.caption.select_one(".caption-text").text for table in built.page("two").find_all("table")] == [
        "Counts n",
        "The same shares",
    ]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_has_a_target(built, page):
    for link in built.page(page).find_all("a", href=True):
        name, _, anchor = link["href"].partition("#")
        if anchor and "://" not in name:
            target = built.page(name.removesuffix(".html") or page)
            assert target.find(id=anchor), link


def links_of(page: BeautifulSoup) -> dict[str, str]:
    return {link.text: link["href"] for link in page.select("section a.reference")}


def test_numbers_and_values_link_to_where_they_are_checked(built):
    page = built.page("one")
    links = links_of(page)
    assert links["Table 1"] == "#shares"
    assert links["Listing 1"] == "#code-half"
    assert links["itself"] == "#sees-itself"
    assert links["Slide 15"] == links["slide 15"] == "#slide-15"
    assert [(val.text, val.parent.get("href")) for val in page.select("section > p span.val")] == [
        ("0.75", "#shares"),
        ("0.50", "two.html#half"),
        ("0.05", "two.html#half"),
        ("0.4", "two.html#learns"),
        ("256", None),  # cited: no page checks it
        ("1,234", "two.html#counts"),
        ("0.50", "two.html#shares-again"),
    ]
    assert page.find("span", string="Slide 50").find_parent("a") is None  # no page teaches it


def test_tables_are_numbered_through_the_book(built):
    captions = [text_of(t.caption) for name in ("one", "two") for t in built.page(name).find_all("table")]
    assert captions == ["Table 1 Shares of four quarters of n", "Table 2 Counts n", "Table 3 The same shares"]


def test_an_alias_has_its_own_source(built):
    record = built.page("two").find(id="shares-again").find_parent(class_="record")
    assert text_of(record.select_one(".record-mark")) == (
        "✓ 4 values computed here; all agree with slide 40, to two decimals."
    )


def test_a_value_and_a_claim_are_lines(built):
    page = built.page("two")
    assert text_of(page.find(id="half")) == "One half: 0.50; the source’s mistake gives 0.05"
    assert text_of(page.find(id="learns")) == (
        "Training lowers the loss: loss after (0.10) is less than loss before (0.55) by at least 0.4"
    )


def test_a_disputed_record_says_so_on_the_page(built):
    record = built.page("two").find(id="counts").find_parent(class_="record")
    assert text_of(record.select_one(".record-mark")) == "✓ 6 values computed here; all agree with the book’s ledger."
    box = record.select_one(".admonition.verdict.erratum")
    assert [text_of(p) for p in box.find_all("p")] == [
        "Erratum",
        "Slide 16 of the lesson says: there are 1,235 layers.",
        "There are 1,234, see Table 1. [Nob20]",
    ]
    assert links_of(box)["Table 1"] == "one.html#shares"


def test_a_statement_is_a_box(built):
    box = built.page("one").find(id="sees-itself")
    assert {"admonition", "verdict", "qualified"} <= set(box["class"])
    assert [text_of(p) for p in box.find_all("p")] == [
        "True under a condition",
        "Slide 7 of the lesson says: it does not.",
        "It does [Nob20].",
    ]


def test_the_errata_page(built):
    section = built.page("errata").section
    assert [strong.text for strong in section.find_all("strong")] == ["Wrong", "True under a condition"]
    items = [[text_of(p) for p in item.find_all("p")] for item in section.find_all("li")]
    assert items == [
        [
            "Slide 16: Counts n",
            "The source: there are 1,235 layers.",
            "The reason: There are 1,234, see Table 1. [Nob20]",
        ],
        ["Slide 7: A token sees itself", "The source: it does not.", "The reason: It does [Nob20]."],
        ["Slide 17: One half", "The source: a half is 0.05.", "The reason: It is 0.50, unless a digit slips."],
    ]
    links = links_of(section)
    assert (links["Counts n"], links["One half"]) == ("two.html#counts", "two.html#half")
    assert links["A token sees itself"] == "one.html#sees-itself"


def test_the_page_of_what_was_checked(built):
    section = built.page("checked").section
    assert [text_of(p) for p in section.find_all("p", recursive=False)] == []
    text = text_of(section)
    assert "This build verified 5 records and compared 17 values with them. All of them agree." in text
    assert f"It ran with sphinx {version('sphinx')}." in text
    assert [[text_of(cell) for cell in row.find_all("td")] for row in section.find_all("tr")][1:] == [
        ["Shares of four quarters of n", "One", "slide 15", "reproduces", "4"],
        ["Counts n", "Two", "the ledger", "erratum", "6"],
        ["One half", "Two", "the ledger", "qualified", "2"],
        ["Training lowers the loss", "Two", "the ledger", "measured", "1"],
        ["The same shares", "Two", "slide 40", "reproduces", "4"],
    ]
    assert links_of(section)["Counts n"] == "two.html#counts"


def test_a_listing_is_code_from_its_file(built):
    page = built.page("one")
    listing = page.find(id="code-half")
    assert listing.pre.text == SUMS[SUMS.index("def half") : SUMS.index("\n\ndef shares")]
    assert text_of(listing.select_one(".code-block-caption")) == "Listing 1 half, in demo/sums.py (reference)"
    file = built.root / "_build/html" / listing.find("a", download=True)["href"]
    assert file.read_text() == SUMS


def test_a_listing_and_its_entry_in_the_reference_link_to_each_other(built):
    caption = built.page("one").find(id="code-half").select_one(".code-block-caption")
    assert links_of(caption.wrap(BeautifulSoup("<section>", "html.parser").section))["reference"] == (
        "reference.html#demo.sums.half"
    )
    entry = built.page("reference").find(id="demo.sums.half").find_next("dd")
    links = {link.text: link["href"] for link in entry.select("a.reference")}
    assert links["One"] == "one.html#code-half"
    assert "Taught in One." in text_of(entry)


def test_an_entry_of_the_reference(built):
    page = built.page("reference")
    signature = page.find(id="demo.sums.half")
    assert text_of(signature) == "demo.sums.half(x: float) → float"
    entry = signature.find_next("dd")
    assert "x – H. A number, not a letter." in text_of(entry)
    assert "TypeError – if x is a text." in text_of(entry)
    assert "Source: Slide 15 and Slide 50; Nobody 2020." in text_of(entry)
    assert entry.find("a", href="one.html#slide-15")
    assert ">>> half(1.0)" in entry.find(class_="doctest").text


def test_the_reference_shows_what_is_public_and_says_nothing_of_untaught_code(built):
    page = built.page("reference")
    ids = [signature["id"] for signature in page.select("dt.sig")]
    names = ["half", "shares", "counts", "Sum", "Sum.empty", "Sum.grow"]
    assert ids == [f"demo.sums.{name}" for name in names]
    assert text_of(page.find(id="demo.sums.Sum")) == "class demo.sums.Sum(start: int = 0, *, step: int = 1)"
    assert text_of(page.find(id="demo.sums.Sum.empty")) == "classmethod empty() → Sum"
    assert text_of(page.find(id="demo.sums.Sum.grow")) == "grow() → Foreign"
    assert page.text.count("Taught in") == 1


def test_formulas_are_mathml(built):
    page = built.page("one")
    assert not page.find("script", src=re.compile("mathjax", re.IGNORECASE))
    block = page.select_one("div.math")
    assert block["tabindex"] == "0"
    assert block.math["display"] == "block"
    assert block.mfrac.text.split() == ["1", "2"]
    assert text_of(block.select_one(".eqno")).startswith("(1)")
    assert links_of(page)["(1)"] == f"#{block['id']}"
    assert page.select_one("p span.math > math").mo.text == "<"


def test_latex_has_every_label_that_it_refers_to(built):
    tex = (built.root / "_build/latex/tiny.tex").read_text("utf-8")
    references = set(re.findall(r"\\(?:hyperref|ref|pageref)[{\[]\\detokenize\{([^}]*)\}", tex))
    labels = set(re.findall(r"\\label\{\\detokenize\{([^}]*)\}", tex))
    assert {f"one:{name}" for name in ("shares", "sees-itself", "slide-15", "code-half")} <= references
    assert {f"two:{name}" for name in ("counts", "half", "learns", "shares-again")} <= references
    assert references <= labels
    assert r"Table \ref{\detokenize{one:shares}}" in tex


def test_latex_aligns_numbers_to_the_right(built):
    tex = (built.root / "_build/latex/tiny.tex").read_text("utf-8")
    assert re.findall(r"\\begin\{tabular\}\[t\]\{(l?[lr]+)\}", tex) == ["lrr", "lrrl", "lrr"]
    assert r"\textless{}heads\textgreater{}" in tex
    assert r"50 \%" in tex


def test_plain_text_has_the_values(built):
    text = " ".join((built.root / "_build/text/one.txt").read_text("utf-8").split())
    assert "Values: 0.75, 0.50, 0.05, 0.4, 256, 1,234, 0.50." in text
    assert "| pos 0 | 0.25 | 0.75 |" in text
    assert "✓ 4 values computed here; all agree with slide 15, to two decimals." in text
    assert "application/vnd" not in text


def test_the_report_of_a_build(built):
    report = built.report()
    assert (report["builder"], report["exception"]) == ("text", None)  # the last one
    assert (report["problems"], report["failed_chapters"]) == ([], [])
    assert [(r["id"], r["document"], r["line"], r["compared"]) for r in report["records"]] == [
        ("shares", "one", line_of(ONE, 'verify("shares"'), 4),
        ("counts", "two", line_of(TWO, 'verify("counts"'), 6),  # not where the function is called
        ("half", "two", line_of(TWO, 'verify("half"'), 2),
        ("learns", "two", line_of(TWO, 'verify("learns"'), 1),
        ("shares-again", "two", line_of(TWO, 'verify("shares-again"'), 4),
    ]
    assert all(record["differences"] == [] for record in report["records"])
    given = {record["id"]: (record["computed"], record["mistaken"]) for record in report["records"]}
    assert given["shares"] == given["shares-again"] == ("[[0.25, 0.75], [0.5, 0.5]]", "None")
    assert given["half"][1] != "None"


def test_a_parallel_build_is_the_same(built):
    assert built.build("html", output="_parallel", jobs=4) == (0, "")
    alone, together = built.root / "_build/html", built.root / "_parallel/html"
    files = {path.relative_to(alone) for path in alone.rglob("*") if path.is_file()}
    assert files == {path.relative_to(together) for path in together.rglob("*") if path.is_file()}
    assert [name for name in sorted(files) if (alone / name).read_bytes() != (together / name).read_bytes()] == []
    assert built.report("_parallel")["records"] == built.report()["records"]


# -- A book in which everything is wrong ------------------------------------------------------------

SUMS_WRONG = SUMS.replace("half(0.5)", "half(0.6)").replace("100 + 34", "100 + 33").replace('"50 %"', '"51 %"')
LEDGER_WRONG = (
    LEDGER
    + """
[three]
title = "Three numbers"
verdict = "measured"
matrix = "pos"
corner = "row"
rows = [[1, 2, 3]]

[typed]
title = "Typed"
verdict = "measured"
value = 0.5
decimals = 1

[never]
title = "Never verified"
verdict = "measured"
value = 1

[unshown]
title = "Never shown"
verdict = "erratum"
source = "slide-3"
says = "so."
why = "Not so."
shown_by = ["shares"]

[before]
title = "Before the error"
verdict = "measured"
value = 0.5
decimals = 1

[after]
title = "After the error"
verdict = "measured"
value = 0.5
decimals = 1
"""
)
WRONG = (
    HEADER
    + r"""
# Wrong

An unknown {val}`nowhere`, no cell {val}`shares[pos 9, pos 0]`, no link {record:ref}`there <nowhere>`.

```{verdict} shares
```

A formula $\unknown{x}$.

```{code-cell} ipython3
from bookkit import verify
from demo.sums import half

verify("three", [half(2), half(4), half(6)])
verify("half", half(2), mistaken=half(0.1))
```

```{code-cell} ipython3
verify("typed", 0.5)
```
"""
)
BROKEN = (
    HEADER
    + """
# Broken

```{code-cell} ipython3
from bookkit import verify
from demo.sums import half

verify("before", half(1))
```

```{code-cell} ipython3
half(1) / 0
```

```{code-cell} ipython3
verify("after", half(1))
```
"""
)
PAGES_WRONG = PAGES | {"wrong": WRONG, "broken": BROKEN}
PAGES_WRONG["index"] = PAGES["index"].replace("errata\n", "wrong\nbroken\nerrata\n")


@pytest.fixture(scope="module")
def wrong(tmp_path_factory) -> Project:
    return project(tmp_path_factory.mktemp("wrong"), pages=PAGES_WRONG, ledger=LEDGER_WRONG, sums=SUMS_WRONG)


@pytest.fixture(scope="module")
def warnings(wrong) -> str:
    status, warnings = wrong.build("html")
    assert status == 1
    return warnings


def expected_warnings(root: Path) -> list[str]:
    """The first line of each warning, with its place."""
    ledger = f"{root}/book/ledger/tiny.toml"

    def at(page: str, words: str) -> str:
        return f"{page}.md:{line_of(PAGES_WRONG[page], words)}: "

    def drift(record_id: str) -> str:
        return f"drift in record '{record_id}' ({ledger}:{line_of(LEDGER_WRONG, f'[{record_id}]')}"

    def recorded(record_id: str) -> str:
        return f"ledger/tiny.toml:{line_of(LEDGER_WRONG, f'[{record_id}]')}: "

    return [
        "broken.md: Executing notebook failed: CellExecutionError",
        "broken.md: Notebook exception traceback saved in: ",
        at("one", 'verify("shares"') + drift("shares"),
        at("two", 'verify("counts"') + drift("counts"),
        at("two", 'verify("shares-again"') + drift("shares-again") + f", the same as 'shares' at {ledger}:2)",
        at("wrong", 'verify("typed"') + "verify is given a typed value (0.5): compute it in the chapter",
        at("wrong", "{val}`nowhere`") + "val: the ledger has no record 'nowhere'.",
        at("wrong", "{val}`nowhere`") + "val: no row 'pos 9'; there are 'pos 0', 'pos 1'",
        at("wrong", "{val}`nowhere`") + "record:ref: the ledger has no record 'nowhere'.",
        at("wrong", "{verdict} shares") + "verdict: 'shares' is not a statement of the ledger",
        at("wrong", 'verify("three"') + drift("three"),
        at("wrong", 'verify("half"') + drift("half"),
        at("wrong", 'verify("half"') + "record 'half' is verified a second time; the first is in two, line ",
        recorded("never") + "record 'never' was never verified: call verify(\"never\", …) in a chapter",
        recorded("unshown") + "statement 'unshown' must be shown once, with the directive `verdict`; it is in: nowhere",
        at("wrong", r"$\unknown") + 'math: Unknown LaTeX command "\\unknown".',
    ]


def test_one_build_lists_everything_that_is_wrong(wrong, warnings):
    """With the lines of the pages and of the ledger; and nothing is said of what the broken chapter left out."""
    folder = re.escape(f"{wrong.root}/book/")
    found = re.findall(rf"^{folder}(\S+?:(?:\d+:)? )WARNING: (.*)$", warnings, re.MULTILINE)
    expected = expected_warnings(wrong.root)
    assert len(found) == len(expected)
    for (place, message), start in zip(found, expected, strict=True):
        assert (place + message).startswith(start)


def test_a_warning_has_all_values(warnings):
    assert (
        "\n  row 'pos 0', column 'pos 0': the record has 0.25, the chapter computed 0.3, difference 5.0e-2\n"
        in warnings
    )
    assert "\n  row 'layers', column 'here': the record has 1234 (int), the chapter computed 1233 (int)\n" in warnings
    assert "\n  shape (rows, columns): the record has (1, 3), the chapter computed (3,)\n" in warnings
    assert "ZeroDivisionError" in warnings


def test_the_page_shows_both_values(wrong, warnings):
    record = wrong.page("one").find(id="shares").find_parent(class_="record")
    assert "drift" in record["class"]
    assert [text_of(cell) for cell in record.find_all("td")] == ["0.25 ≠ 0.3 (computed)", "0.75", "0.50", "0.50"]
    assert text_of(record.select_one(".record-mark")) == (
        "❗ DRIFT: 1 difference between the values computed here and slide 15."
    )
    counts = wrong.page("two").find(id="counts").find_parent(class_="record")
    assert "1,234 ≠ 1233 (int) (computed)" in text_of(counts)
    assert "50 % ≠ '51 %' (str) (computed)" in text_of(counts)
    three = wrong.page("wrong").find(id="three").find_parent(class_="record")
    assert "the record has (1, 3), the chapter computed (3,)" in text_of(three.select_one(".record-mark"))
    half = wrong.page("wrong").find(id="half")
    assert text_of(half) == "One half: 0.50 ≠ 1.0 (computed); the source’s mistake gives 0.05"


def test_a_chapter_goes_on_after_drift(wrong, warnings):
    assert wrong.page("one").find(string=re.compile("said after the check"))


def test_what_cannot_be_shown_is_marked(wrong, warnings):
    page = wrong.page("wrong")
    assert [problem.text for problem in page.select(".problematic")] == [
        ":val:`nowhere`",
        ":val:`shares[pos 9, pos 0]`",
    ]
    assert page.find("code", string=r"\unknown{x}")


def test_the_page_of_what_was_checked_names_the_drift(wrong, warnings):
    text = text_of(wrong.page("checked"))
    assert "DRIFT in: shares, counts, shares-again, three, half." in text
    assert "All of them agree" not in text


def test_the_report_names_every_problem(wrong, warnings):
    report = wrong.report()
    assert report["failed_chapters"] == ["broken"]
    drifted = [(record["document"], record["id"]) for record in report["records"] if record["differences"]]
    assert drifted == [
        ("one", "shares"),
        ("two", "counts"),
        ("two", "shares-again"),
        ("wrong", "three"),
        ("wrong", "half"),
    ]
    expected = [start.partition(": ")[2] for start in expected_warnings(wrong.root)[2:]]
    assert len(report["problems"]) == len(expected)
    assert all(problem.startswith(start) for problem, start in zip(report["problems"], expected, strict=True))
