"""The kinds whose answers only open: discuss, trap, draw."""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives

from bookkit.activities.directive import (
    HINTS,
    ONE,
    ActivityDirective,
    Fault,
    Number,
    details,
    needs_script,
    opening,
    reasons,
)
from bookkit.activities.tree import Activity, tag
from bookkit.reports import link


class Discuss(ActivityDirective):
    """An open question: a field for one's own notes, and a model answer on request."""

    heading = "Discuss"
    needs: ClassVar = {"hint": HINTS, "answer": ONE}

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        label = tag("label", "Your notes", for_=f"{activity.id}-notes")
        field = tag("textarea", id=f"{activity.id}-notes", rows=3)
        return [needs_script("div", label, field, class_="activity-notes")]


class Trap(ActivityDirective):
    """A plausible claim; what breaks; the fix; and the records by which this page proves it."""

    heading = "Trap"
    needs: ClassVar = {"hint": HINTS, "claim": ONE, "breaks": ONE, "fix": ONE, "proof": ONE}
    option_spec: ClassVar = {"record": directives.unchanged_required}
    summaries: ClassVar = {"breaks": "What breaks", "fix": "The fix", "proof": "What proves it"}

    def complete(self, activity: Activity) -> None:
        if "record" not in self.options:
            raise Fault("name the records that prove it, as in `:record: one another`")
        for record_id in self.options["record"].split():
            self.ledger.values_of(record_id)  # raises if there is none
            title = self.ledger[record_id].record.plain_title
            reference = link(record_id, nodes.inline("", title), self.env.docname)
            activity.parts("proof")[0].append(nodes.paragraph("", "Run in this book: ", reference))
        activity["record"] = self.options["record"]

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        claim = tag("blockquote", *activity.parts("claim")[0].body, class_="activity-claim")
        opened = (opening(activity.parts(role)[0], summary) for role, summary in cls.summaries.items())
        return [claim, *opened]

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        return [*activity.prompt, nodes.block_quote("", *activity.parts("claim")[0].body)]

    @classmethod
    def solution(cls, activity: Activity) -> list[nodes.Node]:
        content: list[nodes.Node] = []
        for role, summary in cls.summaries.items():
            content += [nodes.paragraph("", "", nodes.strong("", summary)), *activity.parts(role)[0].body]
        return content


class Draw(ActivityDirective):
    """A drawing on paper, a checklist of the arrows it should have, and a model drawing: a figure of the same page."""

    heading = "Draw"
    needs: ClassVar = {"hint": HINTS, "arrow": Number(2), "answer": ONE}
    option_spec: ClassVar = {"figure": directives.unchanged_required}

    def complete(self, activity: Activity) -> None:
        if "figure" not in self.options:
            raise Fault("name the model drawing, a figure of this page, as in `:figure: fig-map`")
        activity["figure"] = self.options["figure"]

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        items = []
        for i, arrow in enumerate(activity.parts("arrow")):
            box = tag("input", type="checkbox", value=str(i))
            items.append(tag("li", tag("label", box, " ", *arrow.label), *arrow.body))
        arrows = tag("ul", *items, class_="activity-list")
        return [
            details("answer", [nodes.Text("Arrows that should be there")], [arrows]),
            details("answer", [nodes.Text("A model drawing")], [figure_of(activity)]),
        ]

    @classmethod
    def solution(cls, activity: Activity) -> list[nodes.Node]:
        return reasons(activity.parts("arrow")) + super().solution(activity)


def figure_of(activity: Activity) -> nodes.Element:
    """The figure that the activity names, taken from where the cell has left it."""
    for figure in activity.document.findall(nodes.figure):
        if activity["figure"] in figure["ids"]:
            figure.parent.remove(figure)
            return figure
    raise Fault(f"this page has no figure {activity['figure']!r}")
