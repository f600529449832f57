"""The nodes that activities are made of, and how an HTML element of our own is written."""

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from bookkit.checked import WholeBookPage

VOID = {"input"}  # elements that HTML never closes


class Label(nodes.Part, nodes.TextElement):
    """The words of an activity's title, of an option, of an item: inline content."""


class Part(nodes.Part, nodes.Element):
    """What is nested in an activity: a hint, an option, an answer. ``role`` says which; a `Label` may come first."""

    @property
    def label(self) -> list[nodes.Node]:
        """The inline content of its label; a copy, since it may be shown twice."""
        return [child.deepcopy() for child in self[0]] if len(self) and isinstance(self[0], Label) else []

    @property
    def name(self) -> str:
        """The label as plain text."""
        return self[0].astext() if self.label else ""

    @property
    def body(self) -> list[nodes.Node]:
        """What stands in the part, without its label."""
        return [child.deepcopy() for child in self if not isinstance(child, Label)]


class Activity(nodes.General, nodes.Element):
    """One activity as its author wrote it: a `Label`, the prompt, and the parts.

    Attributes: ``kind``, ``heading`` (what its title begins with), ``docname`` (its page), ``ids`` (one), and what
    the kind has added. Two hyphens, which no id of a heading has, keep its ids apart from those.
    """

    @property
    def id(self) -> str:
        return self["ids"][0]

    def id_of(self, name: object) -> str:
        """The id of something inside: a field, an option."""
        return f"{self.id}--{name}"

    @property
    def title(self) -> list[nodes.Node]:
        return [nodes.Text(f"{self['heading']}: "), *(child.deepcopy() for child in self[0])]

    @property
    def prompt(self) -> list[nodes.Node]:
        return [child for child in self[1:] if not isinstance(child, Part)]

    @property
    def all_parts(self) -> list[Part]:
        return [child for child in self if isinstance(child, Part)]

    def parts(self, role: str) -> list[Part]:
        return [part for part in self.all_parts if part["role"] == role]


class AnswersPage(WholeBookPage):
    """Stands for all answers, which are known only when every chapter was read."""


class Tag(nodes.General, nodes.TextElement):
    """An HTML element, written as it is; other builders never meet one. Text and links may stand right in it."""


def tag(name: str, /, *children: nodes.Node | str, **attributes: Any) -> Tag:
    """An HTML element. ``data_kind`` becomes ``data-kind``, ``class_`` becomes ``class``; None leaves one out.

    >>> tag("label", "Name", for_="name", hidden=True, title=None)["attributes"]
    {'for': 'name', 'hidden': True}
    """
    names = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    element = Tag(tag=name, attributes={key: value for key, value in names.items() if value is not None})
    element += [nodes.Text(child) if isinstance(child, str) else child for child in children]
    return element


def visit_tag(translator, node: Tag) -> None:
    attributes = (
        f" {name}" if value is True else f' {name}="{escape(str(value))}"' for name, value in node["attributes"].items()
    )
    translator.body.append(f"<{node['tag']}{''.join(attributes)}>")


def depart_tag(translator, node: Tag) -> None:
    if node["tag"] not in VOID:
        translator.body.append(f"</{node['tag']}>\n")


def setup(app: Sphinx) -> None:
    app.add_node(Label)
    app.add_node(Part)
    app.add_node(Activity)
    app.add_node(AnswersPage)
    app.add_node(Tag, html=(visit_tag, depart_tag))
