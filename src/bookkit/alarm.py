"""What makes a build fail, and keep failing until the cause is gone.

Sphinx saves what it read before the last checks run, so a second build would find
nothing to do and succeed. Here every build leaves a list of the documents that had a
warning; the next build, by whichever builder, reads those again. A build that was
interrupted leaves the list saying "all".
"""

import json
import logging as standard_logging
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util import logging

from bookkit.ledger import Entry, LedgerError, load_ledger
from bookkit.record import Statement
from bookkit.reports import Report, Reports

log = logging.getLogger(__name__)
ALL = "all"
CHECKED_EVERY_BUILD = "coverage"


class Watcher(standard_logging.Handler):
    """Collects the documents that warnings speak of, and what Bookkit itself warned of."""

    def __init__(self, app: Sphinx):
        super().__init__(standard_logging.WARNING)
        self.app = app
        self.documents: set[str] = set()
        self.problems: list[str] = []

    def emit(self, record: standard_logging.LogRecord) -> None:
        if getattr(record, "type", None) == "bookkit":
            message = record.getMessage()
            if message not in self.problems:  # a warning that Sphinx held back comes twice
                self.problems.append(message)
            if getattr(record, "subtype", None) == CHECKED_EVERY_BUILD:
                return
        self.documents.add(document_of(getattr(record, "location", None), self.app.env) or ALL)


def document_of(location: object, env: BuildEnvironment) -> str | None:
    """The document that a warning's location names, or None if it cannot be told."""
    if isinstance(location, tuple):
        name = location[0]
        return name if name in env.found_docs else env.path2doc(str(name))
    if isinstance(location, str):
        path = re.sub(r"(:\d*)+$", "", location.partition(":docstring of ")[0])
        if path in env.found_docs:
            return path
        return next((doc for doc in env.found_docs if env.doc2path(doc) == Path(path)), None)
    source = getattr(location, "source", None) or getattr(location, "document", {}).get("source") if location else None
    return document_of(source, env) if isinstance(source, str) else None


def memory(app: Sphinx) -> Path:
    """The file that lists what the next build must read again."""
    return Path(app.doctreedir) / "unfinished.json"


def read_memory(file: Path) -> list[str]:
    """The list that the last build left; all, if it was cut off while it wrote."""
    try:
        return json.loads(file.read_text())
    except FileNotFoundError:
        return []
    except ValueError:
        return [ALL]


def start(app: Sphinx) -> None:
    """Load the ledger, start to watch, and count as interrupted until the end is reached."""
    app.bookkit_started = time.time()
    if any(entry.split(".")[0] == "bookkit" for entry in app.config.suppress_warnings):
        raise ExtensionError("suppress_warnings must not name bookkit: the alarm cannot be silenced")
    try:
        app.bookkit_ledger = load_ledger(Path(app.config.bookkit_ledger))
    except LedgerError as error:
        # A plain end instead of an exception: Sphinx would bury the list under a traceback.
        raise SystemExit(
            f"The build stops before it reads a chapter, because the ledger has faults:\n{error}"
        ) from error
    app.bookkit_watcher = Watcher(app)
    standard_logging.getLogger(logging.NAMESPACE).addHandler(app.bookkit_watcher)
    app.bookkit_remembered = read_memory(memory(app))
    memory(app).parent.mkdir(parents=True, exist_ok=True)
    memory(app).write_text(json.dumps([ALL]))


def outdated(app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set) -> Iterable[str]:
    """The documents that the last build had to complain about (or all, if it could not tell)."""
    return env.found_docs if ALL in app.bookkit_remembered else env.found_docs & set(app.bookkit_remembered)


def check_coverage(app: Sphinx, env: BuildEnvironment) -> None:
    """On every build: each record verified once, each statement shown once."""
    if app.config.bookkit_chapter:
        log.info(
            "only chapter %r was executed: coverage was not checked",
            app.config.bookkit_chapter,
        )
        return
    for message, location in coverage_faults(app, env):
        log.warning(
            "%s",
            message,
            location=location,
            type="bookkit",
            subtype=CHECKED_EVERY_BUILD,
        )


def coverage_faults(app: Sphinx, env: BuildEnvironment) -> Iterator[tuple[str, str | tuple[str, int]]]:
    reports: Reports = env.get_domain("record")
    seen: dict[str, Report] = {}
    for report in reports.all_reports():
        if report.id in seen:
            first = seen[report.id]
            yield (
                f"record {report.id!r} is verified a second time; the first is in {first.document}, line {first.line}",
                (report.document, report.line),
            )
        seen.setdefault(report.id, report)
    excused = {record_id for docname in failed_documents(env) for record_id in reports.expected_in(docname)}
    for entry in app.bookkit_ledger.to_verify():
        if entry.id not in seen and entry.id not in excused:
            yield (
                f'record {entry.id!r} was never verified: call verify("{entry.id}", …) in a chapter, '
                "see that its output is not captured, or remove the record",
                entry.place,
            )
    yield from statement_faults(app, reports)


def statement_faults(app: Sphinx, reports: Reports) -> Iterator[tuple[str, str]]:
    shown = reports.stated_in()
    for entry in app.bookkit_ledger:
        if isinstance(entry.record, Statement) and len(shown.get(entry.id, [])) != 1:
            where = ", ".join(shown.get(entry.id, [])) or "nowhere"
            yield (
                f"statement {entry.id!r} must be shown once, with the directive `verdict`; it is in: {where}",
                entry.place,
            )


def failed_documents(env: BuildEnvironment) -> list[str]:
    """The chapters whose cells did not all run."""
    metadata = getattr(env, "nb_metadata", {})
    return [doc for doc, data in metadata.items() if data.get("exec_data") and not data["exec_data"]["succeeded"]]


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Leave the list for the next build, fail if Bookkit found anything, and write the report."""
    watcher: Watcher | None = getattr(app, "bookkit_watcher", None)
    if watcher is None:
        return
    standard_logging.getLogger(logging.NAMESPACE).removeHandler(watcher)
    memory(app).write_text(json.dumps([ALL] if exception else sorted(watcher.documents)))
    if watcher.problems:
        app.statuscode = 1
    write_report(app, watcher.problems, exception)


def write_report(app: Sphinx, problems: list[str], exception: Exception | None) -> None:
    """`report.json` beside the output folder: what was checked, when, and how long it took."""
    reports: Reports = app.env.get_domain("record")
    content = {
        "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "seconds": round(time.time() - app.bookkit_started, 1),
        "builder": app.builder.name,
        "exception": repr(exception) if exception else None,
        "problems": problems,
        "failed_chapters": failed_documents(app.env),
        "records": [report_as_json(app.bookkit_ledger[report.id], report) for report in reports.all_reports()],
    }
    path = Path(app.outdir).parent / "report.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def report_as_json(entry: Entry, report: Report) -> dict:
    return {
        "id": report.id,
        "document": report.document,
        "line": report.line,
        "verdict": entry.record.verdict,
        "compared": report.comparison.compared,
        "differences": [vars(difference) for difference in report.comparison.differences],
        **report.given,
    }
