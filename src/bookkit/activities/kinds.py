"""The directives by name: the ten kinds of activity, and the parts that are nested in them."""

from bookkit.activities.choice import Check, Eliminate
from bookkit.activities.details import Discuss, Draw, Trap
from bookkit.activities.directive import ActivityDirective, Item, Labelled, Option, PartDirective
from bookkit.activities.exercise import Exercise
from bookkit.activities.predict import Predict
from bookkit.activities.sort import Sort
from bookkit.activities.tables import FillTable, Step

KINDS: dict[str, type[ActivityDirective]] = {
    "discuss": Discuss,
    "predict": Predict,
    "fill-table": FillTable,
    "step": Step,
    "sort": Sort,
    "eliminate": Eliminate,
    "check": Check,
    "trap": Trap,
    "draw": Draw,
    "exercise": Exercise,
}


class Titled(PartDirective):
    """A part that may have a title of its own."""

    optional_arguments = 1


PARTS: dict[str, type[PartDirective]] = {
    "hint": Titled,
    "answer": Titled,
    "solution": Titled,
    "claim": PartDirective,
    "breaks": PartDirective,
    "fix": PartDirective,
    "proof": PartDirective,
    "option": Option,
    "item": Item,
    "row": Labelled,
    "arrow": Labelled,
}
