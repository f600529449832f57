"""The kind predict: a guess is committed first; only then the answer appears, next to the guess.

Accessibility: Enter commits, too; then the focus goes to the answer.
Fallback: without a script, the field is gone and the answer opens. On paper, a line to write the guess on.
"""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives

from bookkit.activities.directive import HINTS, LONGEST, ONE, ActivityDirective, Fault, button, needs_script
from bookkit.activities.tree import Activity, tag
from bookkit.reports import link, look_up


class Predict(ActivityDirective):
    """A field for the guess. ``:value: record[row, column]`` puts the computed value next to it."""

    heading = "Predict"
    needs: ClassVar = {"hint": HINTS, "answer": ONE}
    option_spec: ClassVar = {"value": directives.unchanged_required}

    def complete(self, activity: Activity) -> None:
        if "value" not in self.options:
            return
        record_id = self.options["value"].partition("[")[0].strip()
        text = look_up(self.ledger, self.options["value"])
        if self.ledger[record_id].record.verdict == "cited":
            raise Fault(f"nothing computes {record_id!r}: take it into the answer with {{val}}, and say who found it")
        value = link(record_id, nodes.strong("", text), self.env.docname)
        activity.parts("answer")[0].insert(0, nodes.paragraph("", "Computed in this book: ", value, nodes.Text(".")))
        activity["record"] = record_id

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        label = tag("label", "Your guess", for_=activity.id_of("guess"))
        field = tag("input", id=activity.id_of("guess"), type="text", maxlength=LONGEST, autocomplete="off")
        return [needs_script("form", label, field, button("Commit", "commit"), class_="activity-guess")]

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        return [*activity.prompt, nodes.paragraph("", "Your guess: " + "_" * 24)]
