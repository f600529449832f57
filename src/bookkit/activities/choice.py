"""The kinds with options, one of which is right: check and eliminate.

Accessibility: radio buttons in a group that has a name; buttons that are described by the option they strike. What is
struck says so in a word, besides the line through it, and keeps the focus.
Fallback: without a script, the reason of each option opens below it. On paper, a list with letters.
"""

from typing import ClassVar

from docutils import nodes

from bookkit.activities.directive import (
    HINTS,
    ActivityDirective,
    Fault,
    Number,
    button,
    feedback,
    lettered,
    reasons,
)
from bookkit.activities.tree import Activity, Part, tag


class Choice(ActivityDirective):
    """Options with a reason each; exactly one is right."""

    needs: ClassVar = {"hint": HINTS, "option": Number(2, 8), "answer": Number(0, 1)}
    words: ClassVar[tuple[str, str]]  # what is said of the right option and of the others

    def complete(self, activity: Activity) -> None:
        right = [option for option in activity.parts("option") if is_right(option)]
        if len(right) != 1:
            raise Fault(f"{len(right)} options are marked `:right:` where exactly one must be")

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        return [*activity.prompt, lettered([option.label for option in activity.parts("option")])]

    @classmethod
    def solution(cls, activity: Activity) -> list[nodes.Node]:
        right, wrong = cls.words
        said = reasons(activity.parts("option"), lambda option: right if is_right(option) else wrong)
        return said + super().solution(activity)


class Check(Choice):
    """Multiple choice with feedback for every option."""

    heading = "Check"
    words = ("right", "wrong")

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        items = []
        for i, option in enumerate(activity.parts("option")):
            right = is_right(option) or None
            radio = tag("input", type="radio", name=activity.id, value=i, autocomplete="off", data_right=right)
            reason = feedback(option, f"Why it is {cls.words[0 if right else 1]}")
            items.append(tag("li", tag("label", radio, " ", *option.label), reason))
        legend = tag("legend", "Choose one")
        return [tag("fieldset", legend, tag("ul", *items, class_="activity-list")), button("Check", "check")]


class Eliminate(Choice):
    """Wrong options are struck one at a time, each with its reason; one survives."""

    heading = "Eliminate"
    words = ("survives", "struck")

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        items = []
        for i, option in enumerate(activity.parts("option")):
            words = tag("span", *option.label, class_="activity-option", id=activity.id_of(i))
            right = is_right(option) or None
            strike = button("Strike", "strike", aria_describedby=activity.id_of(i), data_right=right)
            reason = feedback(option, "Why it survives" if right else "Why it falls")
            items.append(tag("li", words, " ", strike, reason, data_option=i))
        return [tag("ol", *items, class_="activity-list activity-letters")]


def is_right(option: Part) -> bool:
    return "right" in option["options"]
