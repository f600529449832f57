"""The kind sort: items go into buckets, which the author names or a column of a record holds."""

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
    reasons,
)
from bookkit.activities.tree import Activity, Part, tag


class Sort(ActivityDirective):
    """``:buckets: one; two`` and a ``:bucket:`` each item; or ``:record:`` and ``:by:`` a column, items its rows."""

    heading = "Sort"
    needs: ClassVar = {"hint": HINTS, "item": Number(2), "answer": Number(0, 1)}
    option_spec: ClassVar = dict.fromkeys(("buckets", "record", "by"), directives.unchanged_required)

    def complete(self, activity: Activity) -> None:
        if "record" in self.options:
            self.take_buckets_from_record(activity)
        elif "buckets" in self.options:
            self.take_buckets_from_author(activity)
        else:
            raise Fault(
                "name the buckets, as in `:buckets: holds; breaks`, or a `:record:` and the column to sort `:by:`"
            )
        names = [item.name for item in activity.parts("item")]
        if len(set(names)) != len(names):
            raise Fault("two items have the same words")

    def take_buckets_from_author(self, activity: Activity) -> None:
        buckets = [name.strip() for name in self.options["buckets"].split(";")]
        for item in activity.parts("item"):
            bucket = item["options"].get("bucket")
            if bucket not in buckets:
                raise Fault(
                    f"the bucket of an item must be one of {', '.join(map(repr, buckets))}, not {bucket!r}", item
                )
            item["bucket"] = bucket
        if unused := set(buckets) - {item["bucket"] for item in activity.parts("item")}:
            raise Fault(f"no item belongs into {', '.join(map(repr, sorted(unused)))}")
        activity["buckets"] = buckets

    def take_buckets_from_record(self, activity: Activity) -> None:
        record, grid = self.table(self.options["record"])
        column = self.options.get("by")
        if column not in grid.header:
            raise Fault(
                f"`:by:` must be a column of the record, one of {', '.join(map(repr, grid.header))}, not {column!r}"
            )
        cells = {record.row_label(i): row[grid.header.index(column)] for i, row in enumerate(grid.rows)}
        for item in activity.parts("item"):
            if item["options"]:
                raise Fault("the record says into which bucket an item belongs: leave `:bucket:` out", item)
            if item.name not in cells:
                raise Fault(f"the record has no row {item.name!r}; there are {', '.join(map(repr, cells))}", item)
            item["bucket"] = cells[item.name]
        if left := cells.keys() - {item.name for item in activity.parts("item")}:
            raise Fault(f"there is no item for the rows {', '.join(map(repr, sorted(left)))}")
        activity["buckets"] = list(dict.fromkeys(cells.values()))
        activity["record"] = self.options["record"]

    @classmethod
    def controls(cls, activity: Activity) -> list[nodes.Node]:
        items = []
        for i, item in enumerate(activity.parts("item")):
            words = tag("label", *item.label, for_=f"{activity.id}-{i}")
            explanation = feedback(item, "Where it belongs, and why")
            explanation.insert(1, nodes.paragraph("", "", nodes.strong("", item["bucket"])))
            choice = select(item, activity["buckets"], id=f"{activity.id}-{i}")
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
