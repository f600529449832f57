"""The code cells of a chapter, and at which lines of its file they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkit.cells import Cell, read_cells, recorded_ids

HEADER = """---
jupytext:
  text_representation:
    format_name: myst
kernelspec:
  name: python3
---
"""
CHAPTER = (
    HEADER
    + """
# A chapter

```{code-cell} ipython3
first = 1
```

Words.

```{code-cell} ipython3
:tags: [hide-output, raises-exception]

second = 2
```

```{code-cell}
---
tags: [remove-cell]
mystnb:
  remove_code_outputs: true
---


third = 3

third_again = 3
```
```python
not_a_cell = 0
```
```{code-cell} ipython3

```
````{code-cell} ipython3
:tags: [hide-cell]
fourth = '''
```
'''
````
"""
)


def test_cells_know_their_lines():
    lines = CHAPTER.splitlines()
    found = [[lines[cell.line(node) - 1] for node in cell.tree.body] for cell in read_cells(CHAPTER)]
    assert found == [["first = 1"], ["second = 2"], ["third = 3", "third_again = 3"], [], ["fourth = '''"]]


def test_cells_are_counted_with_the_text_between_them():
    assert [cell.index for cell in read_cells(CHAPTER)] == [1, 3, 4, 6, 7]


def test_cells_know_their_options():
    cells = read_cells(CHAPTER)
    assert [cell.tags for cell in cells] == [
        (),
        ("hide-output", "raises-exception"),
        ("remove-cell",),
        (),
        ("hide-cell",),
    ]
    assert [cell.config for cell in cells] == [{}, {}, {"remove_code_outputs": True}, {}, {}]


def test_empty_options_are_none():
    (cell,) = read_cells(HEADER + "\n```{code-cell}\n---\nmystnb:\n---\n1\n```\n")
    assert (cell.tags, cell.config) == ((), {})


@pytest.mark.parametrize(
    "page",
    [
        "# A page\n\n```{code-cell} ipython3\nverify('a', 1)\n```\n",
        "---\ntitle: A page\n---\n\n```{code-cell} ipython3\n1\n```\n",
        "---\n: no YAML [\n---\n",
        "---\n",
        "",
    ],
)
def test_a_page_that_is_no_notebook_has_no_cells(page):
    assert read_cells(page) == []


@given(
    options=st.sampled_from(
        ["", ":tags: [a]\n\n", "---\ntags: [a]\n---\n", "---\nmystnb:\n  figure:\n    name: f\n---\n"]
    ),
    blank_lines=st.integers(0, 3),
    code=st.lists(st.sampled_from(["x = 1", "y = 2  # a comment", "", "if x:", "    z = 3"]), min_size=1),
)
def test_the_first_line_is_found_behind_any_options(options, blank_lines, code):
    body = "\n".join(["begin = 0", *code, "end = 0"])
    text = HEADER + "\n" * blank_lines + "Words.\n\n```{code-cell} ipython3\n" + options + body + "\n```\n"
    (cell,) = read_cells(text)
    assert text.splitlines()[cell.first_line - 1 :][: len(code) + 2] == body.splitlines()


def tree_of(source: str):
    return Cell(0, source, 1, (), {})


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("verify('a', x)", [1]),
        ("%matplotlib inline\n!ls\nverify('a', x)", [3]),
        ("%%time\n\nif x:\n    %time f()\n    verify('a', x)", [5]),
        ("x = (7\n  % 3)\nt = verify('a', x); verify('b', x)", [3, 3]),
        ("other.verify('a', x)\nverify_all('a')\n'verify(1)'", []),
        ("verify('a', x", []),
    ],
    ids=["plain", "magics", "cell magic", "modulo", "other functions", "a typo"],
)
def test_verify_calls_are_found_beside_magics(source, lines):
    assert [call.lineno for call in tree_of(source).verify_calls()] == lines


def test_recorded_ids_are_those_written_out():
    source = "verify('a', 1)\nfor name in names:\n    verify(name, 2)\nverify()\nverify(5)\nassert verify('b', 3)"
    assert sorted(recorded_ids([tree_of(source), tree_of("verify('c', 4)")])) == ["a", "b", "c"]
