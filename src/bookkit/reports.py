"""What each chapter reported to the build, kept in a Sphinx domain; roles and links to records."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.domains import Domain
from sphinx.roles import XRefRole
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

from bookkit.compare import Comparison, Difference
from bookkit.ledger import Entry, Ledger, load_ledger
from bookkit.record import Claim, Statement, Table, Value, printed, source_words

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """One verify call of one chapter."""

    id: str
    document: str
    line: int  # of the chapter's file
    comparison: Comparison
    given: dict[str, str]  # what was computed, and mistaken, with all digits

    @property
    def ok(self) -> bool:
        return not self.comparison.differences


def report_from(published: dict, document: str, line: int) -> Report:
    """A published report as an object; `line` is that of the chapter's file."""
    differences = [
        Difference(**{**raw, "cell": tuple(raw["cell"]) if raw["cell"] else None}) for raw in published["differences"]
    ]
    comparison = Comparison(published["compared"], differences, tuple(published["measured"]))
    return Report(published["id"], document, line, comparison, published["given"])


class RecordRole(XRefRole):
    """``{record:ref}`text <id>` ``: a link to where a record is shown."""

    def process_link(self, env, refnode, has_explicit_title, title, target):
        try:
            load_ledger(Path(env.config.bookkit_ledger))[target]
        except LookupError as error:
            log.warning("record:ref: %s", error, location=refnode, type="bookkit", subtype="ref")
        return title, target


class Reports(Domain):
    """Reports, statements shown, and records that a chapter means to verify, by document."""

    name = "record"
    label = "ledger records"
    roles = {"ref": RecordRole(innernodeclass=nodes.inline, warn_dangling=False)}
    initial_data = {"reports": {}, "expected": {}, "stated": {}}
    data_version = 1

    def clear_doc(self, docname: str) -> None:
        for by_document in self.data.values():
            if isinstance(by_document, dict):
                by_document.pop(docname, None)

    def merge_domaindata(self, docnames: set[str], otherdata: dict[str, Any]) -> None:
        for key in self.initial_data:
            for docname in docnames & otherdata[key].keys():
                self.data[key][docname] = otherdata[key][docname]

    def add_report(self, report: Report) -> None:
        self.data["reports"].setdefault(report.document, []).append(report)

    def add_statement(self, docname: str, record_id: str) -> None:
        self.data["stated"].setdefault(docname, []).append(record_id)

    def set_expected(self, docname: str, record_ids: list[str]) -> None:
        self.data["expected"][docname] = record_ids

    def all_reports(self) -> Iterator[Report]:
        """Every report, document by document."""
        for docname in sorted(self.data["reports"]):
            yield from self.data["reports"][docname]

    def stated_in(self) -> dict[str, list[str]]:
        """For each statement, the documents that show it."""
        where: dict[str, list[str]] = {}
        for docname, ids in sorted(self.data["stated"].items()):
            for record_id in ids:
                where.setdefault(record_id, []).append(docname)
        return where

    def expected_in(self, docname: str) -> list[str]:
        return self.data["expected"].get(docname, [])

    def document_of(self, record_id: str) -> str | None:
        """Where a record is shown."""
        reported = next(
            (report.document for report in self.all_reports() if report.id == record_id),
            None,
        )
        return reported or next(iter(self.stated_in().get(record_id, [])), None)

    def resolve_xref(self, env, fromdocname, builder, typ, target, node, contnode):
        """A link to where the record is shown or the source is taught; plain text if no page of this build does."""
        if typ == "source":
            docname, anchor = env.domains.standard_domain.anonlabels.get(target, (None, None))
        else:
            docname, anchor = self.document_of(target), nodes.make_id(target)
        if docname is None:
            return contnode
        return make_refnode(builder, fromdocname, docname, anchor, contnode)

    def resolve_any_xref(self, env, fromdocname, builder, target, node, contnode):
        return []


def link(target: str, content: nodes.Node, document: str, reftype: str = "record") -> addnodes.pending_xref:
    """A reference to a record's place in the book (or to a source's), resolved when all pages are known."""
    return addnodes.pending_xref(
        "",
        content,
        refdomain="record",
        reftype=reftype,
        reftarget=target,
        refdoc=document,
        refwarn=False,
    )


def source_link(source: str, document: str, *, capital: bool = False) -> addnodes.pending_xref:
    """ "slide 15" (or "Slide 15"), as a link where a page teaches that slide or presents that source."""
    text = source_words(source)
    text = text[0].upper() + text[1:] if capital else text
    return link(nodes.make_id(source), nodes.inline(text, text), document, reftype="source")


def look_up(ledger: Ledger, target: str) -> str:
    """The printed value that ``id`` or ``id[row, column]`` names.

    Raises:
        LookupError: if the record, row or column does not exist, or the cell is missing or needless.
    """
    record_id, bracket, cell = target.partition("[")
    record = ledger.values_of(record_id.strip()).record
    row, comma, column = (part.strip() for part in cell.removesuffix("]").rpartition(","))  # a label may hold commas
    match record:
        case Table() if comma:
            return printed(table_cell(record, row, column))
        case Table():
            raise LookupError(f"{target!r}: name the cell, as in {record_id}[row, column]")
        case Value() if (row, column) == ("", "mistaken") and record.mistaken is not None:
            return printed(record.mistaken)
        case Value() if not bracket:
            return printed(record.value)
        case Claim() if not bracket:
            return printed(record.margin)
        case Statement():
            raise LookupError(f"{target!r} is a statement: it has no value")
    raise LookupError(f"{target!r}: this record has no cells; write {record_id!r} alone")


def table_cell(record: Table, row: str, column: str) -> Any:
    labels = [record.row_label(i) for i in range(len(record.rows))]
    if row not in labels:
        raise LookupError(f"no row {row!r}; there are {', '.join(map(repr, labels))}")
    if column not in record.column_names:
        raise LookupError(f"no column {column!r}; there are {', '.join(map(repr, record.column_names))}")
    return record.rows[labels.index(row)][record.column_names.index(column)]


class ValRole(SphinxRole):
    """``{val}`id` ``: a record's value in a sentence, linked to where it is checked."""

    def run(self):
        ledger = load_ledger(Path(self.config.bookkit_ledger))
        try:
            text = look_up(ledger, self.text)
        except LookupError as error:
            log.warning(
                "val: %s",
                error,
                location=self.get_location(),
                type="bookkit",
                subtype="val",
            )
            return [nodes.problematic(self.rawtext, self.rawtext)], []
        record_id = self.text.partition("[")[0].strip()
        content = nodes.inline(text, text, classes=["val"])
        entry: Entry = ledger[record_id]
        if entry.record.verdict == "cited":
            return [content], []
        return [link(record_id, content, self.env.docname)], []
