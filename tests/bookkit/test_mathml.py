"""Formulas as MathML."""

from xml.etree import ElementTree

import pytest
from docutils.utils.math import MathError

from bookkit.mathml import to_mathml

FORMULAS = [
    r"x",
    r"\frac{1}{2} < x",
    r"\operatorname{attention}(Q, K, V) = \operatorname{softmax}\left(\frac{Q K^{\top}}{\sqrt{d_k}} + M\right) V",
    r"\begin{aligned} a &= b \\ c &= d \end{aligned}",
    r"-\sum_{i=1}^{n} \log p_i \neq \infty",
    r"\mathbf{W} \in \mathbb{R}^{d \times k}, \quad \text{for all } k",
]


@pytest.mark.parametrize("block", [False, True], ids=["inline", "block"])
@pytest.mark.parametrize("tex", FORMULAS)
def test_formulas_are_well_formed_xml(tex, block):
    """EPUB is XML, which has no named entity such as &InvisibleTimes;."""
    math = ElementTree.fromstring(to_mathml(tex, block=block))
    assert math.tag == "{http://www.w3.org/1998/Math/MathML}math"
    assert math.get("display") == ("block" if block else None)


def test_a_fraction_is_a_fraction():
    math = ElementTree.fromstring(to_mathml(r"\frac{1}{2}", block=False))
    names = [element.tag.rpartition("}")[2] for element in math.iter()]
    assert names == ["math", "mfrac", "mn", "mn"]


def test_markup_in_a_formula_stays_escaped():
    assert "&lt;" in to_mathml("a < b", block=False)
    assert "<script" not in to_mathml(r"\text{<script>}", block=False)


@pytest.mark.parametrize("environment", ["align", "align*", "equation", "equation*", "gather"])
def test_environments_that_sphinx_adds_are_taken_off(environment):
    with_environment = f"\\begin{{{environment}}}\nx = 1\n\\end{{{environment}}}"
    assert to_mathml(with_environment, block=True) == to_mathml("x = 1", block=True)


@pytest.mark.parametrize(
    "tex", [r"\unknowncommand{x}", r"\frac{1}", r"\begin{equation} x \end{align}", "x & y", "x } y", "^ {"]
)
def test_what_cannot_be_translated_is_an_error(tex):
    with pytest.raises(MathError):
        to_mathml(tex, block=True)
