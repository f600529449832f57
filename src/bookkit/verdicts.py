"""Where the source is wrong or incomplete: the box on the page, and the page of all errata."""

import sys
from collections.abc import Callable
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from bookkit.ledger import Entry, Ledger, load_ledger
from bookkit.record import Record, Statement
from bookkit.reports import source_link

log = logging.getLogger(__name__)
HEADINGS = {"erratum": "Erratum", "qualified": "True under a condition"}


def verdict_box(record: Record, docname: str, parse_inline: Callable[[str], list[nodes.Node]]) -> nodes.admonition:
    """What the source says, and what is wrong or missing."""
    says = nodes.paragraph("", "", source_link(record.source, docname, capital=True))
    of_the_lesson = " of the lesson" if record.source.startswith("slide-") else ""
    says += parse_inline(f"{of_the_lesson} says: {record.says}")
    why = nodes.paragraph("", "", *parse_inline(record.why + citations(record)))
    title = nodes.title("", HEADINGS[record.verdict])
    return nodes.admonition("", title, says, why, classes=["verdict", record.verdict])


def citations(record: Record) -> str:
    return "".join(f" {{cite}}`{key}`" for key in record.cites)


class SourceRole(SphinxRole):
    """``{record:source}`slide-15` ``: "Slide 15", linked to where the book teaches it."""

    def run(self):
        return [source_link(self.text, self.env.docname, capital=True)], []


class LedgerDirective(SphinxDirective):
    """A directive whose content is written by the ledger."""

    @property
    def ledger(self) -> Ledger:
        return load_ledger(Path(self.config.bookkit_ledger))


class VerdictDirective(LedgerDirective):
    """``{verdict} id``: what the source says in words, and why that is wrong or not the whole truth."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        record_id = self.arguments[0]
        if record_id not in self.ledger or not isinstance(self.ledger[record_id].record, Statement):
            message = f"verdict: {record_id!r} is not a statement of the ledger"
            log.warning("%s", message, location=self.get_location(), type="bookkit", subtype="verdict")
            return []
        self.env.get_domain("record").add_statement(self.env.docname, record_id)
        box = verdict_box(self.ledger[record_id].record, self.env.docname, lambda text: self.parse_inline(text)[0])
        anchor = nodes.target(ids=[nodes.make_id(record_id)])  # LaTeX has no label for the id of a box
        return [anchor, box]


class ErrataDirective(LedgerDirective):
    """Every value and statement of the sources that is wrong, or true only under a condition."""

    def run(self) -> list[nodes.Node]:
        lines = []
        for verdict, heading in (
            ("erratum", "Wrong"),
            ("qualified", "True under a condition"),
        ):
            entries = sorted(
                (e for e in self.ledger if e.record.verdict == verdict),
                key=lesson_first,
            )
            if entries:
                lines += [f"**{heading}**", ""]
                lines += [line for entry in entries for line in self.item(entry)]
        return self.parse_text_to_nodes("\n".join(lines))

    @staticmethod
    def item(entry: Entry) -> list[str]:
        record = entry.record
        return [
            f"* {{record:source}}`{record.source}`: {{record:ref}}`{record.plain_title} <{entry.id}>`",
            "",
            f"  *The source:* {record.says}",
            "",
            f"  *The reason:* {record.why}{citations(record)}",
            "",
        ]


def lesson_first(entry: Entry) -> tuple[int, str]:
    """The lesson's slides in their order, then the other sources by name."""
    slide, _, number = entry.record.source.partition("-")
    return (int(number), "") if slide == "slide" else (sys.maxsize, entry.record.source)
