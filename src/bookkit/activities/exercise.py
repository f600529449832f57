"""The kind exercise: code to write, with hints that open one at a time and a solution on demand.

Accessibility: hints and solution open as `details` do, by click, Enter or space; the next hint follows an open one.
Fallback: without a script, all hints are there to open. On paper, the hints stand in the appendix.
"""

from typing import ClassVar

from docutils import nodes

from bookkit.activities.directive import ONE, ActivityDirective, Number, needs_script, opening
from bookkit.activities.tree import Activity, tag


class Exercise(ActivityDirective):
    """Code to write. The next hint shows when the one before it was opened."""

    heading = "Write"
    in_appendix = "Hints stand"
    needs: ClassVar = {"hint": Number(1), "solution": ONE}

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        box = tag("input", type="checkbox", value="passes", autocomplete="off")
        passes = needs_script("p", tag("label", box, " My code passes its check"))
        return [opening(activity.parts("solution")[0], "A solution"), passes]

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        """The solution stays: it is a listing of the book's own code, and chapters refer to it by its number."""
        heading = nodes.paragraph("", "", nodes.strong("", "A solution"))
        return [*activity.prompt, heading, *activity.parts("solution")[0].body]
