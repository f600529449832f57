"""Plugs Bookkit into Sphinx: configuration values, events, roles, directives."""

from pathlib import Path

from myst_nb.sphinx_ext import add_global_html_resources
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

from bookkit import activities, alarm, checked, kernels, markup, mathml, reference, search, verdicts
from bookkit.cells import read_cells, recorded_ids
from bookkit.fingerprint import fingerprint
from bookkit.ledger import load_ledger
from bookkit.lint import lint_chapter
from bookkit.listing import Listing
from bookkit.reports import Reports, ValRole
from bookkit.snippets import page as snippets

log = logging.getLogger(__name__)


def take_fingerprint(app: Sphinx, config) -> None:
    """Whatever the command line said: the fingerprint is that of the files as they are now."""
    config.bookkit_ledger = str(Path(app.confdir, config.bookkit_ledger).resolve())
    config.bookkit_fingerprint = fingerprint(Path(app.confdir), config.bookkit_inputs)


def inspect_cells(app: Sphinx, docname: str, source: list[str]) -> None:
    """Before a chapter runs: note what it means to verify, and warn of what it may not do."""
    app.env.get_domain("record").set_expected(docname, recorded_ids(read_cells(source[0])))
    for fault in lint_chapter(source[0], load_ledger(Path(app.config.bookkit_ledger))):
        log.warning(
            "%s",
            fault.message,
            location=(docname, fault.line),
            type="bookkit",
            subtype="lint",
        )


def copy_cell_styles(app: Sphinx) -> None:
    """MyST-NB copies its style sheet after the pages are written, but a page names a sheet with its checksum only
    if it lies there already: without this, the pages of a second build would differ from those of the first."""
    if app.builder.format == "html":
        Path(app.outdir, "_static").mkdir(parents=True, exist_ok=True)
        add_global_html_resources(app, None)


def after_reading(app: Sphinx, env: BuildEnvironment) -> list[str]:
    alarm.check_coverage(app, env)
    return checked.pages_to_write(app, env)


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_config_value("bookkit_ledger", "book/ledger", "", str)  # relative to conf.py
    app.add_config_value("bookkit_inputs", ["src", "book/ledger"], "", list)  # what the fingerprint covers
    app.add_config_value("bookkit_fingerprint", "", "env", str)  # computed; a change reads everything again
    app.add_config_value("bookkit_source", "/../src", "env", str)  # where `listing` finds packages, from the book
    app.add_config_value("bookkit_versions", [], "env", list)  # packages named on the page of what was checked
    app.add_config_value("bookkit_preload", [], "", list)  # modules imported once for all kernels; none of the book's
    app.add_config_value("bookkit_chapter", "", "", str)  # build this chapter only, without the coverage check

    app.add_domain(Reports)
    app.add_role("val", ValRole())
    app.add_role_to_domain("record", "source", verdicts.SourceRole())
    app.add_directive("listing", Listing)
    app.add_directive("reference", reference.Reference)
    app.add_directive("verdict", verdicts.VerdictDirective)
    app.add_directive("errata", verdicts.ErrataDirective)
    app.add_directive("checked", checked.CheckedDirective)
    app.add_node(checked.CheckedPage)
    app.add_post_transform(checked.FillCheckedPages)
    app.add_node(reference.TaughtIn)
    app.add_post_transform(reference.LinkToListings)
    activities.setup(app)
    markup.setup(app)
    mathml.setup(app)
    snippets.setup(app)

    app.connect("config-inited", take_fingerprint)
    app.connect("builder-inited", alarm.start)
    app.connect("builder-inited", kernels.prepare)
    app.connect("builder-inited", copy_cell_styles)
    app.connect("env-get-outdated", alarm.outdated)
    app.connect("env-before-read-docs", checked.note_what_is_read)
    app.connect("env-before-read-docs", kernels.spread_chapters)
    app.connect("env-before-read-docs", kernels.warm_up)
    app.connect("source-read", inspect_cells)
    app.connect("env-updated", after_reading)
    app.connect("env-updated", search.restore_entries)
    app.connect("missing-reference", reference.leave_foreign_types)
    app.connect("build-finished", kernels.cool_down)
    app.connect("build-finished", alarm.finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
