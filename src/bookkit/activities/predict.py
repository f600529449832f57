"""The kind predict: a guess is committed first; only then the answer appears, next to the guess."""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives

from bookkit.activities.directive import HINTS, ONE, ActivityDirective, button, needs_script, opening
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
        value = link(record_id, nodes.strong("", text), self.env.docname)
        activity.parts("answer")[0].insert(0, nodes.paragraph("", "Computed in this book: ", value, nodes.Text(".")))
        activity["record"] = record_id

    @classmethod
    def on_screen(cls, activity: Activity) -> list[nodes.Node]:
        field = tag("input", id=f"{activity.id}-guess", type="text", autocomplete="off")
        form = needs_script(
            "form",
            tag("label", "Your guess", for_=f"{activity.id}-guess"),
            field,
            button("Commit", "commit"),
            class_="activity-guess",
        )
        return [
            *activity.prompt,
            *(opening(hint, "Hint", "hint") for hint in activity.parts("hint")),
            form,
            tag("p", class_="activity-status", role="status"),
            opening(activity.parts("answer")[0], "Answer"),
        ]

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        return [*activity.prompt, nodes.paragraph("", "Your guess: " + "_" * 24)]
