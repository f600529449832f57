"""HTML that assistive software reads rightly, where that of docutils and Sphinx breaks the rules."""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

# Sphinx writes the parameters of a long signature as a list of definitions without terms, inside a term.
LINES = {"<dl>": '<div class="sig-lines">', "</dl>": "</div>", "<dd>": "<div>", "</dd>": "</div>"}


def visit_parameters(translator, node: nodes.Element) -> None:
    node["begins_at"] = len(translator.body)
    type(translator).visit_desc_parameterlist(translator, node)


def depart_parameters(translator, node: nodes.Element) -> None:
    """Of a long signature, every parameter becomes a line of its own."""
    type(translator).depart_desc_parameterlist(translator, node)
    written = translator.body[node["begins_at"] :]
    translator.body[node["begins_at"] :] = [as_line(piece) for piece in written]


def as_line(piece: str) -> str:
    r"""
    >>> as_line("<dd>"), as_line("</dl>\n\n"), as_line("&lt;dd&gt;")
    ('<div>', '</div>\n\n', '&lt;dd&gt;')
    """
    tag = piece.strip()
    return piece.replace(tag, LINES[tag]) if tag in LINES else piece


def visit_citation(translator, node: nodes.citation) -> None:
    """The list of references has items: the role that docutils gives them is deprecated, and no list may hold it."""
    type(translator).visit_citation(translator, node)
    translator.body[-1] = translator.body[-1].replace('role="doc-biblioentry"', 'role="listitem"')


def depart_citation(translator, node: nodes.citation) -> None:
    type(translator).depart_citation(translator, node)


def setup(app: Sphinx) -> None:
    app.add_node(addnodes.desc_parameterlist, override=True, html=(visit_parameters, depart_parameters))
    app.add_node(nodes.citation, override=True, html=(visit_citation, depart_citation))
