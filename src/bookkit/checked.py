"""What this build checked: a page that is filled when every chapter has been read."""

from importlib.metadata import version
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from bookkit.ledger import load_ledger
from bookkit.reports import Reports, link, source_link


class WholeBookPage(nodes.General, nodes.Element):
    """Stands for what is known only when every chapter was read; such a page is written whenever any was."""


class CheckedPage(WholeBookPage):
    """Stands for the table of all reports, which are known only when every chapter was read."""


class CheckedDirective(SphinxDirective):
    """What this build checked: a table of every verified record, and the versions it ran with."""

    def run(self) -> list[nodes.Node]:
        return [CheckedPage(docname=self.env.docname)]


class FillCheckedPages(SphinxPostTransform):
    """Puts the table in place when a page is written, before Sphinx resolves its links."""

    default_priority = 5  # the links are resolved at 10

    def run(self, **kwargs) -> None:
        for placeholder in list(self.document.findall(CheckedPage)):
            content = checked_content(self.env, placeholder["docname"])
            placeholder.replace_self(nodes.container("", *content))


def checked_content(env: BuildEnvironment, docname: str) -> list[nodes.Node]:
    reports: Reports = env.get_domain("record")
    all_reports = list(reports.all_reports())
    compared = sum(report.comparison.compared for report in all_reports)
    drifted = [report.id for report in all_reports if not report.ok]
    summary = f"This build verified {len(all_reports)} records and compared {compared} values with them. "
    summary += f"DRIFT in: {', '.join(drifted)}." if drifted else "All of them agree."
    versions = ", ".join(f"{name} {version(name)}" for name in env.config.bookkit_versions)
    return [
        nodes.paragraph("", summary),
        nodes.paragraph("", f"It ran with {versions}."),
        checked_table(env, all_reports, docname),
    ]


def checked_table(env: BuildEnvironment, all_reports: list, docname: str) -> nodes.table:
    ledger = load_ledger(Path(env.config.bookkit_ledger))
    header = ["record", "chapter", "compared with", "verdict", "values"]
    rows = [row_of(*(nodes.Text(name) for name in header))]
    for report in all_reports:
        entry = ledger[report.id]
        confirmed = entry.record.confirmed_source
        source = source_link(confirmed, docname) if confirmed else nodes.Text("the ledger")
        rows.append(
            row_of(
                link(report.id, nodes.inline(report.id, entry.record.plain_title), docname),
                nodes.Text(env.titles[report.document].astext()),
                source,
                nodes.Text(entry.record.verdict if report.ok else "DRIFT"),
                nodes.Text(str(report.comparison.compared)),
            )
        )
    widths = [40, 24, 14, 14, 8]
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in widths), cols=len(header))
    group += [nodes.thead("", rows[0]), nodes.tbody("", *rows[1:])]
    return nodes.table("", group, classes=["colwidths-given"])


def row_of(*cells: nodes.Node) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


def note_what_is_read(app: Sphinx, env, docnames: list[str]) -> None:
    app.bookkit_any_read = bool(docnames)


def pages_to_write(app: Sphinx, env) -> list[str]:
    """The pages that show what others reported are written whenever any document was read."""
    if not app.bookkit_any_read:
        return []
    return [doc for doc in env.found_docs if any(env.get_doctree(doc).findall(WholeBookPage))]
