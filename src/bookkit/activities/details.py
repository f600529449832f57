"""The kinds whose answers only open: discuss, trap, draw.

Accessibility: everything opens as `details` do, by click, Enter or space; the field for notes and the boxes to tick
have labels.
Fallback: without a script, all of it opens; only the field for notes, which nothing would keep, is gone. On paper, the
prompt (of a trap, the claim too); the model drawing stands where its cell does.
"""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives

from bookkit.activities.directive import (
    HINTS,
    LONGEST,
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
        label = tag("label", "Your notes", for_=activity.id_of("notes"))
        field = tag("textarea", id=activity.id_of("notes"), rows=3, maxlength=LONGEST, autocomplete="off")
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
        activity["record"] = self.options["record"]
        for record_id in activity["record"].split():
            entry = self.ledger[record_id]
            if entry not in self.ledger.to_verify():
                raise Fault(f"nothing runs that could prove {record_id!r}: name a record that a chapter verifies")
            reference = link(record_id, nodes.inline("", entry.record.plain_title), self.env.docname)
            activity.parts("proof")[0].append(nodes.paragraph("", "Run in this book: ", reference))

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
            box = tag("input", type="checkbox", value=i, autocomplete="off")
            items.append(tag("li", tag("label", box, " ", *arrow.label), *arrow.body))
        arrows = tag("ul", *items, class_="activity-list")
        opened = [details("answer", [nodes.Text("Arrows that should be there")], [arrows])]
        if figure := figure_of(activity):
            figure.parent.remove(figure)
            opened.append(details("answer", [nodes.Text("A model drawing")], [figure]))
        return opened

    @classmethod
    def solution(cls, activity: Activity) -> list[nodes.Node]:
        return reasons(activity.parts("arrow")) + super().solution(activity)


def figure_of(activity: Activity) -> nodes.figure | None:
    """The figure of the page that the activity names; none, if the cell that draws it was not run."""
    figures = activity.document.findall(nodes.figure)
    return next((figure for figure in figures if activity["figure"] in figure["ids"]), None)
