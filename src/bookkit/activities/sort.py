"""The kind sort: items go into buckets, which the author names or a column of a record holds.

Accessibility: a list of choices an item, labelled by the item's words: no dragging. Marks are words beside it.
Fallback: without a script, each item's place and the reason open below it. On paper, the items and the buckets.
"""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives

from bookkit.activities.directive import (
    HINTS,
    ActivityDirective,
    Fault,
    Number,
    button,
    feedback,
    index_of,
    quoted,
    reasons,
)
from bookkit.activities.tree import Activity, Part, tag


class Sort(ActivityDirective):
    """``:buckets: one; two`` and a ``:bucket:`` each item; or ``:record:`` and ``:by:`` a column, items its rows."""

    heading = "Sort"
    needs: ClassVar = {"hint": HINTS, "item": Number(2), "answer": Number(0, 1)}
    option_spec: ClassVar = dict.fromkeys(("buckets", "record", "by"), directives.unchanged_required)

    def complete(self, activity: Activity) -> None:
        if ("record" in self.options) == ("buckets" in self.options):
            raise Fault("name either the `:buckets: one; another`, or a `:record:` and the column to sort `:by:`")
        if "record" in self.options:
            self.take_buckets_from_record(activity)
        else:
            self.take_buckets_from_author(activity)

    def take_buckets_from_author(self, activity: Activity) -> None:
        buckets = [name.strip() for name in self.options["buckets"].split(";")]
        for item in activity.parts("item"):
            bucket = item["options"].get("bucket")
            if bucket not in buckets:
                raise Fault(f"the bucket of an item must be one of {quoted(buckets)}, not {bucket!r}", item)
            item["bucket"] = bucket
        if unused := set(buckets) - {item["bucket"] for item in activity.parts("item")}:
            raise Fault(f"no item belongs into {quoted(sorted(unused))}")
        activity["buckets"] = buckets

    def take_buckets_from_record(self, activity: Activity) -> None:
        grid, labels = self.table(activity)
        if "by" not in self.options:
            raise Fault(f"name the column to sort `:by:`, one of {quoted(grid.header)}")
        column = index_of(self.options["by"], grid.header, "column")
        cells = {label: row[column] for label, row in zip(labels, grid.rows, strict=True)}
        if empty := [label for label, cell in cells.items() if not cell.strip()]:
            raise Fault(f"the record has no bucket for the rows {quoted(empty)}: their cells are empty")
        for item in activity.parts("item"):
            if item["options"]:
                raise Fault("the record says into which bucket an item belongs: leave `:bucket:` out", item)
            index_of(item.name, labels, "row", item)
            item["bucket"] = cells[item.name]
        if left := cells.keys() - {item.name for item in activity.parts("item")}:
            raise Fault(f"there is no item for the rows {quoted(sorted(left))}")
        activity["buckets"] = list(dict.fromkeys(cells.values()))

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        items = []
        for i, item in enumerate(activity.parts("item")):
            words = tag("label", *item.label, for_=activity.id_of(i))
            explanation = feedback(item, "Where it belongs, and why")
            explanation.insert(1, nodes.paragraph("", "", nodes.strong("", item["bucket"])))
            choice = select(item, activity["buckets"], id=activity.id_of(i))
            items.append(tag("li", words, " ", choice, " ", tag("span", class_="activity-mark"), explanation))
        return [tag("ul", *items, class_="activity-list"), button("Check", "check")]

    @classmethod
    def on_paper(cls, activity: Activity) -> list[nodes.Node]:
        items = (nodes.list_item("", nodes.paragraph("", "", *item.label)) for item in activity.parts("item"))
        buckets = " · ".join(activity["buckets"])
        return [*activity.prompt, nodes.bullet_list("", *items), nodes.paragraph("", f"Into: {buckets}.")]

    @classmethod
    def solution(cls, activity: Activity) -> list[nodes.Node]:
        return reasons(activity.parts("item"), lambda item: item["bucket"]) + super().solution(activity)


def select(item: Part, buckets: list[str], *, id: str) -> nodes.Node:
    """The base of sorting, as every browser has it: one list of choices an item."""
    choices = [tag("option", "choose …", value="")]
    choices += [tag("option", bucket, value=bucket) for bucket in buckets]
    return tag("select", *choices, id=id, data_answer=item["bucket"], autocomplete="off")
