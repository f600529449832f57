"""A tiny book with every kind of activity. Its answers are words that stand nowhere else: a leak is seen."""

from pathlib import Path

from docutils import nodes

from bookkit.activities.tree import Activity
from tiny_book import Project, text_of

CONF = """
project = "Tiny"
author = copyright = "nobody"
version = release = "1"
language = "en"
extensions = ["myst_nb", "sphinxcontrib.bibtex", "bookkit.extension"]
exclude_patterns = ["ledger"]
nitpicky = True
numfig = True
bibtex_bibfiles = ["book/references.bib"]
nb_execution_mode = "force"
myst_enable_extensions = ["dollarmath", "colon_fence"]
html_theme = "basic"
html_math_renderer = "mathml"
html_copy_source = False
latex_engine = "xelatex"
latex_use_xindy = False
"""
LEDGER = r"""
[shares]
title = "Shares"
verdict = "measured"
matrix = "pos"
corner = "query \\ key"
decimals = 4
rows = [[0.2559, 0.7441], [0.5000, 0.5000]]

[sizes]
title = "Sizes"
verdict = "measured"
columns = { model = "label", parameters = "computed", speed = "computed" }
rows = [["small", 1234, "fast"], ["<base>", 28994, "slow"], ["large", 70000, "slow"]]

[half]
title = "One half of $n$"
verdict = "measured"
value = 0.625
decimals = 3

[batch]
title = "The batch size"
verdict = "cited"
cites = ["nobody2020"]
value = 256
again = "256"
"""
RUN = """---
file_format: mystnb
kernelspec:
  name: python3
---
# Run

```{code-cell} ipython3
from bookkit import verify
from demo.sums import half, shares, sizes

verify("shares", shares())
verify("sizes", sizes())
verify("half", half())
```
"""
SUMS = '''"""Sums."""


def shares() -> list:
    return [[0.2559, 0.7441], [0.5, 0.5]]


def sizes() -> list:
    return [["small", 1234, "fast"], ["<base>", 28994, "slow"], ["large", 70000, "slow"]]


def half() -> float:
    return 1.25 / 2
'''
KINDS = {
    "discuss": """
:::{discuss} Is it `half` of $n$?

Prompt of discuss, see {numref}`shares`.

```{hint}
Hidden one: hint of discuss.
```

```{answer}
Hidden two: a {term}`token` of {cite}`nobody2020`, worth {val}`half`, in {numref}`sizes` and {numref}`fig-map`.

$$
x = 2
$$
```
:::
""",
    "predict": """
:::{predict} How much?
:value: shares[pos 0, pos 1]

Prompt of predict.

```{hint} where to look
Hidden three.
```

```{hint}
Hidden four.
```

```{answer}
Hidden five.
```
:::
""",
    "fill-table": """
:::{fill-table} The sizes
:record: sizes
:column: parameters

Prompt of fill-table.

```{answer}
Hidden six.
```
:::
""",
    "fill-table cells": """
:::{fill-table} The words
:record: sizes
:cells: small, speed; <base>, model
:choose:

Prompt of choosing.
:::
""",
    "fill-table without": """
:::{fill-table} The speeds
:record: sizes
:column: speed
:without: parameters

Prompt of leaving out.
:::
""",
    "step": """
:::{step} Row by row
:record: shares

Prompt of step.

```{row} pos 0
Hidden seven.
```

```{row} pos 1
Hidden eight.
```
:::
""",
    "sort": """
:::{sort} Fast or slow?
:record: sizes
:by: speed

Prompt of sort.

```{item} small
Hidden nine.
```

```{item} large
Hidden ten.
```

````{item} \\<base>
Hidden eleven.
````
:::
""",
    "sort authored": """
::::{sort} What holds?
:buckets: holds; breaks & falls

Prompt of sorting.

:::{item} The sum {cite}`nobody2020`
:bucket: holds
Hidden twelve.
:::

:::{item} The *order* `a < b`
:bucket: breaks & falls
Hidden thirteen.
:::

:::{answer}
Hidden fourteen.
:::
::::
""",
    "eliminate": """
::::{eliminate} Which survives?

Prompt of eliminate.

:::{option} $y = 2$
Hidden fifteen.
:::

:::{option} {val}`half` \\<script>
:right:
Hidden sixteen.
:::

:::{option} A third "way"
Hidden seventeen.
:::
::::
""",
    "check": """
::::{check} Which one?

Prompt of check.

:::{hint}
Hidden eighteen.
:::

:::{option} The first, {cite}`nobody2020`
Hidden nineteen.
:::

:::{option} The second, {term}`token`
:right:
Hidden twenty.
:::
::::
""",
    "trap": """
:::{trap} It is free
:record: half sizes

Prompt of trap.

```{claim}
Nothing is lost.
```

```{breaks}
Hidden twenty-one.
```

```{fix}
Hidden twenty-two.
```

```{proof}
Hidden twenty-three.
```
:::
""",
    "draw": """
:::{draw} The map
:figure: fig-map

Prompt of draw.

```{arrow} token → layer
Hidden twenty-four.
```

```{arrow} layer → head
Hidden twenty-five.
```

```{answer}
Hidden twenty-six.
```
:::

```{figure} map.png
:name: fig-map
:alt: Two boxes.

The model drawing.
```
""",
    "exercise": """
:::{exercise} A function
Prompt of exercise.

```{hint} the split
Hidden twenty-seven.
```

```{hint}
Hidden twenty-eight.
```

````{solution}
(the-solution)=
The solution stays.

```{code-block} python
:name: code-solution
:caption: A listing

pass
```
````
:::
""",
}
EXAMPLES_IN_ORDER = [
    "discuss--is-it-half-of-n",
    "predict--how-much",
    "fill-table--the-sizes",
    "fill-table--the-words",
    "fill-table--the-speeds",
    "step--row-by-row",
    "sort--fast-or-slow",
    "sort--what-holds",
    "eliminate--which-survives",
    "check--which-one",
    "trap--it-is-free",
    "draw--the-map",
    "exercise--a-function",
]
MORE = """# Is it half of n?

## Discuss: On another page

:::{discuss} On another page

Prompt of the other page.

```{answer}
Hidden twenty-nine, after {record:ref}`the record <half>`.
```
:::
"""
PAGES = {
    "index": "# Tiny\n\n```{toctree}\nrun\nkinds\npart/more\nanswers\nglossary\nbibliography\n```\n",
    "run": RUN,
    "kinds": "# Kinds\n" + "".join(KINDS.values()),
    "part/more": MORE,
    "answers": "# Answers\n\n```{answers}\n```\n",
    "glossary": "# Glossary\n\n```{glossary}\ntoken\n  A piece of text.\n```\n",
    "bibliography": "# Bibliography\n\n```{bibliography}\n```\n",
}
# One grey pixel.
PNG = (
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
    "0000000a49444154789c636800000082008177cd72b60000000049454e44ae426082"
)


def activity_book(
    root: Path, pages: dict[str, str] = PAGES, ledger: str = LEDGER, sums: str = SUMS, settings: str = ""
) -> Project:
    """Writes the book's files. ``settings`` come after those of `CONF`."""
    project = Project(
        root,
        {
            "conf.py": CONF + settings,
            "src/demo/__init__.py": "",
            "src/demo/sums.py": sums,
            "book/ledger/tiny.toml": ledger,
            "book/references.bib": "@misc{nobody2020, author={Nobody, Ann}, title={Nothing}, year={2020}}",
            **{f"book/{name}.md": text for name, text in pages.items()},
        },
    )
    (root / "book/map.png").write_bytes(bytes.fromhex(PNG))
    return project


def activity_of(document: nodes.document, name: str) -> Activity:
    """The activity of this id."""
    return next(activity for activity in document.findall(Activity) if activity.id == name)


def parts_of(elements: list) -> list[tuple[str, str]]:
    """What opens in these elements: the words that one clicks, and what appears."""
    opened = [details for element in elements for details in element.find_all("details")]
    return [
        (text_of(details.summary), " ".join(text_of(child) for child in details.find_all(recursive=False)[1:]))
        for details in opened
    ]
