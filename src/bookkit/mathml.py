"""Formulas as MathML, made while the book is built: no script and no request in the page.

docutils translates the TeX. What it cannot translate is a warning, so the build fails
instead of showing raw TeX.
"""

import html
import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

log = logging.getLogger(__name__)
ENVIRONMENT = re.compile(r"^\\begin\{(align|equation|gather)(\*?)\}(.*)\\end\{\1\2\}$", re.DOTALL)
NAMED_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)\w+;")


def to_mathml(tex: str, *, block: bool) -> str:
    r"""MathML for a formula.

    Raises:
        docutils.utils.math.MathError: if docutils cannot read the TeX.

    >>> to_mathml(r"d_k", block=False)
    '<math xmlns="http://www.w3.org/1998/Math/MathML">\n  <msub>\n    <mi>d</mi>\n    <mi>k</mi>\n  </msub>\n</math>'
    """
    tex = tex.strip()
    if environment := ENVIRONMENT.match(tex):
        tex = environment[3].strip()
    try:
        mathml = tex2mathml(tex, as_block=block)
    except (AttributeError, IndexError) as error:
        raise MathError("braces, environments or alignments do not match") from error
    # Named entities (&ApplyFunction;) exist in HTML but not in XML, which EPUB needs.
    return NAMED_ENTITY.sub(lambda match: html.unescape(match[0]), mathml)


def translate(node: nodes.Element, *, block: bool) -> str:
    tex = node.astext()
    try:
        return to_mathml(tex, block=block)
    except MathError as error:
        log.warning("math: %s in %r", error, tex, location=node, type="bookkit", subtype="math")
        return f"<code>{html.escape(tex)}</code>"


def visit_inline(translator, node: nodes.math) -> None:
    translator.body.append(translator.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    translator.body.append(translate(node, block=False) + "</span>")
    raise nodes.SkipNode


def visit_block(translator, node: nodes.math_block) -> None:
    # A formula too wide for a phone scrolls, so the keyboard must be able to reach it.
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate nohighlight", tabindex="0"))
    if node.get("number"):
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append(translate(node, block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
