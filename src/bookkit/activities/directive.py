"""From a chapter's text to an `Activity`: the directive that all kinds share, and those of their parts."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from bookkit.activities.tree import Activity, Label, Part, tag
from bookkit.ledger import Ledger, load_ledger
from bookkit.record import Table
from bookkit.show import Grid, grid_of

log = logging.getLogger(__name__)


class Fault(ValueError):
    """An activity that cannot work, with the node where it went wrong."""

    def __init__(self, message: str, node: nodes.Element | None = None):
        super().__init__(message)
        self.node = node


def index_of(name: str | None, names: list[str], what: str, node: nodes.Element | None = None) -> int:
    """Where a record has the row or column of this name."""
    if name not in names:
        raise Fault(f"the record has no {what} {name!r}; there are {quoted(names)}", node)
    return names.index(name)


def quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


class Number(NamedTuple):
    """How many parts of a role an activity has."""

    least: int
    most: int | None = None

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        return f"at least {self.least}" if self.most is None else f"{self.least} to {self.most}"


HINTS = Number(0)
ONE = Number(1, 1)
LONGEST = 20_000  # letters that a reader can write into a field: `activity.js` takes no longer text for its own


class PartDirective(SphinxDirective):
    """A part of an activity. Its name is its role."""

    has_content = True
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        part = Part(role=self.name.removeprefix("std:"), options=self.options)
        self.set_source_info(part)
        if self.arguments:
            part += Label("", "", *self.parse_inline(self.arguments[0])[0])
        part += self.parse_content_to_nodes()
        return [part]


class Labelled(PartDirective):
    """A part that needs its label: an option, an item, a row, an arrow."""

    required_arguments = 1


class Option(Labelled):
    option_spec = {"right": directives.flag}


class Item(Labelled):
    option_spec = {"bucket": directives.unchanged_required}


class ActivityDirective(SphinxDirective):
    """What all kinds share: a title, a prompt, parts that are counted, and words on where a fault is."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    heading: ClassVar[str]
    in_appendix: ClassVar[str] = "The answer stands"
    needs: ClassVar[dict[str, Number]]  # which parts, and how many of each

    def run(self) -> list[nodes.Node]:
        activity = Activity(kind=self.name, heading=self.heading, docname=self.env.docname)
        self.set_source_info(activity)
        activity += Label("", "", *self.parse_inline(self.arguments[0])[0])
        activity["ids"] = [f"{self.name}--{nodes.make_id(activity[0].astext())}"]
        activity += self.parse_content_to_nodes()
        try:
            self.check_parts(activity)
            self.complete(activity)
        except (Fault, LookupError) as fault:
            node = getattr(fault, "node", None) or activity
            log.warning("%s: %s", self.name, fault, location=node, type="bookkit", subtype="activity")
            return []
        return [activity]

    def check_parts(self, activity: Activity) -> None:
        if not activity.prompt:
            raise Fault("the prompt is missing: say what the reader shall do")
        seen = set()
        for part in activity.all_parts:
            if part["role"] not in self.needs:
                raise Fault(f"a part {part['role']!r} does not belong here; there may be {', '.join(self.needs)}", part)
            if not part.body:
                raise Fault(f"the part {part['role']!r} is empty: write its text, or the reason", part)
            if part.label and (part["role"], part.name) in seen:
                raise Fault(f"two parts {part['role']!r} have the words {part.name!r}", part)
            seen.add((part["role"], part.name))
        for role, number in self.needs.items():
            found = len(activity.parts(role))
            if found < number.least or (number.most is not None and found > number.most):
                raise Fault(f"the number of parts {role!r} is {found}, and must be {number}")

    def complete(self, activity: Activity) -> None:
        """Check what only this kind demands, and add what it takes from the ledger."""

    # -- The ledger ------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        return load_ledger(Path(self.config.bookkit_ledger))

    def table(self, activity: Activity) -> tuple[Grid, list[str]]:
        """The cells of the record that the activity names, as the book prints them, and the labels of its rows."""
        if "record" not in self.options:
            raise Fault("name the table, as in `:record: some-id`")
        activity["record"] = self.options["record"]
        record = self.ledger.values_of(activity["record"]).record
        if not isinstance(record, Table):
            raise Fault(f"{activity['record']!r} has no rows: name a table of the ledger")
        return grid_of(record, []), [record.row_label(i) for i in range(len(record.rows))]

    # -- The forms -------------------------------------------------------------------------

    @classmethod
    def on_screen(cls, activity: Activity) -> list[nodes.Node]:
        """The prompt, the controls, what they say, and hints and answers that open."""
        return [
            *activity.prompt,
            *(opening(hint, name, "hint") for name, hint in hints_of(activity)),
            *cls.controls(activity),
            tag("p", class_="activity-status", role="status"),
            *cls.revealed(activity),
        ]

    @classmethod
    def revealed(cls, activity: Activity) -> list[nodes.Node]:
        """What opens below the controls and their message."""
        return [opening(answer, "Answer") for answer in activity.parts("answer")]

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        return []

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        """The exercise, without its answer."""
        return activity.prompt

    @classmethod
    def answers(cls, activity: Activity) -> list[nodes.Node]:
        """What the appendix says."""
        content: list[nodes.Node] = []
        for name, hint in hints_of(activity):
            content += [nodes.paragraph("", "", nodes.emphasis("", "", *titled(hint, name))), *hint.body]
        return content + cls.solution(activity)

    @classmethod
    def solution(cls, activity: Activity) -> list[nodes.Node]:
        return [node for answer in activity.parts("answer") for node in answer.body]


def details(role: str, summary: list[nodes.Node], body: list[nodes.Node], **attributes: Any) -> nodes.Node:
    """What opens on request: a native ``details``."""
    return tag("details", tag("summary", *summary), *body, class_=f"activity-{role}", **attributes)


def opening(part: Part, name: str, role: str = "answer") -> nodes.Node:
    """A part that opens on request."""
    return details(role, titled(part, name), part.body)


def titled(part: Part, name: str) -> list[nodes.Node]:
    """A part's name, and its own title if it has one."""
    return [nodes.Text(f"{name}: "), *part.label] if part.label else [nodes.Text(name)]


def hints_of(activity: Activity) -> list[tuple[str, Part]]:
    """The hints, each with its name: numbered, if there are several."""
    hints = activity.parts("hint")
    return [(f"Hint {i} of {len(hints)}" if len(hints) > 1 else "Hint", hint) for i, hint in enumerate(hints, start=1)]


def feedback(part: Part, summary: str) -> nodes.Node:
    """What is said of an option or item, whose label the reader sees already."""
    return details("feedback", [nodes.Text(summary)], part.body)


def needs_script(name: str, /, *children: nodes.Node | str, class_: str = "", **attributes: Any) -> nodes.Node:
    """An element that does nothing without a script, and so is not shown without one."""
    return tag(name, *children, class_=f"needs-script {class_}".strip(), **attributes)


def button(text: str, action: str, /, **attributes: Any) -> nodes.Node:
    return needs_script("button", text, type="button", data_action=action, class_="activity-button", **attributes)


def lettered(labels: list[list[nodes.Node]]) -> nodes.Node:
    """Options as a printed list: A, B, C."""
    items = (nodes.list_item("", nodes.paragraph("", "", *label)) for label in labels)
    return nodes.enumerated_list("", *items, enumtype="upperalpha", prefix="", suffix=".")


def reasons(parts: list[Part], verdict=None) -> list[nodes.Node]:
    """Each part's label in bold, what is said of it, and its reason."""
    content: list[nodes.Node] = []
    for part in parts:
        heading = nodes.paragraph("", "", nodes.strong("", "", *part.label))
        if verdict:
            heading += nodes.Text(f" ({verdict(part)})")
        content += [heading, *part.body]
    return content
