"""The kind exercise: code to write, with hints that open one at a time and a solution on demand."""

from typing import ClassVar

from docutils import nodes

from bookkit.activities.directive import ONE, ActivityDirective, Number, details, needs_script, opening
from bookkit.activities.tree import Activity, Part, tag


class Exercise(ActivityDirective):
    """Code to write. The next hint shows when the one before it was opened."""

    heading = "Write"
    needs: ClassVar = {"hint": Number(1), "solution": ONE}

    @classmethod
    def on_screen(cls, activity: Activity) -> list[nodes.Node]:
        box = tag("input", type="checkbox", value="passes")
        passes = needs_script("p", tag("label", box, " My code passes its check"))
        hints = activity.parts("hint")
        return [
            *activity.prompt,
            *(numbered(hint, i, len(hints)) for i, hint in enumerate(hints, start=1)),
            opening(activity.parts("solution")[0], "A solution"),
            passes,
            tag("p", class_="activity-status", role="status"),
        ]

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        """The solution stays: it is a listing of the book's own code, and chapters refer to it by its number."""
        heading = nodes.paragraph("", "", nodes.strong("", "A solution"))
        return [*activity.prompt, heading, *activity.parts("solution")[0].body]


def numbered(hint: Part, number: int, of: int) -> nodes.Node:
    """A hint that says how many there are, and what it is about if it has a title."""
    title = [nodes.Text(": "), *hint.label] if hint.label else []
    return details("hint", [nodes.Text(f"Hint {number} of {of}"), *title], hint.body)
