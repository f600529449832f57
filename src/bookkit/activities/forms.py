"""The form an activity takes when a page is written, and what the page around it needs."""

from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

from bookkit.activities.details import figure_of
from bookkit.activities.directive import button
from bookkit.activities.kinds import KINDS
from bookkit.activities.tree import Activity, AnswersPage, Part, Tag, tag

log = logging.getLogger(__name__)
STATIC = Path(__file__).parent / "static"


def check_page(app: Sphinx, document: nodes.document) -> None:
    """What can be seen only on the whole page; what stands where it cannot be shown is left out."""
    for message, place in (*misplaced(document), *faults_of_page(app, document)):
        log.warning("%s", message, location=place, type="bookkit", subtype="activity")


def misplaced(document: nodes.document) -> Iterator[tuple[str, nodes.Element]]:
    """Parts outside of activities, and activities inside of others."""
    for part in list(document.findall(Part)):
        if not isinstance(part.parent, Activity):
            part.parent.remove(part)
            yield f"{part['role']}: this stands right in an activity, and nowhere else", part
    for outer in document.findall(Activity):
        for inner in list(outer.findall(Activity, include_self=False)):
            inner.parent.remove(inner)
            yield f"{inner['kind']}: an activity cannot stand in another", inner


def faults_of_page(app: Sphinx, document: nodes.document) -> Iterator[tuple[str, nodes.Element | str]]:
    """Two activities of one name, targets that would move, a drawing or a page of answers that is not there."""
    page = app.env.docname
    if page == app.config.bookkit_answers and not any(document.findall(AnswersPage)):
        yield "`bookkit_answers` names this page, but the directive `answers` is missing", page
    seen: set[str] = set()
    for activity in document.findall(Activity):
        kind = activity["kind"]
        if not seen and app.config.bookkit_answers not in app.env.found_docs:
            yield f"{kind}: print needs a page {app.config.bookkit_answers!r} with the directive `answers`", activity
        if activity.id in seen:
            yield f"{kind}: this page has another one with this title: change the words", activity
        seen.add(activity.id)
        was_run = app.config.bookkit_chapter in ("", page)
        if kind == "draw" and was_run and not figure_of(activity):
            yield f"draw: this page has no figure {activity['figure']!r}", activity
        for part in activity.all_parts:
            for name in targets_in(part) if part["role"] != "solution" else ():
                yield f"{part['role']}: in print this moves to the answers, so {name!r} cannot stand in it", part


def targets_in(part: Part) -> Iterator[str]:
    """What is found by its place: named elements, labelled formulas, entries of the index, footnotes."""
    for node in part.findall(nodes.Element):
        if isinstance(node, nodes.footnote_reference):
            yield f"footnote {node.astext()}"
        elif node["ids"] and not isinstance(node, addnodes.pending_xref):  # a citation has an id, for nobody
            yield (node["names"] or node["ids"])[0]


class TakeForm(SphinxPostTransform):
    """Controls where a script can work them; elsewhere an exercise whose answer stands in the appendix."""

    default_priority = 6  # after the appendix is filled, before the links are resolved

    def run(self, **kwargs) -> None:
        activities = list(self.document.findall(Activity))
        on_screen = has_scripts(self.app.builder)
        for activity in activities:
            activity.replace_self(screen(activity) if on_screen else self.paper(activity))
        if activities and on_screen:
            self.insert_progress()

    def insert_progress(self) -> None:
        """How many are done, under the page's title; a script fills it in."""
        title = next(self.document.findall(nodes.title))
        count = tag("p", tag("span", class_="activity-count", role="status"))
        clear = button("Clear my answers on this page", "clear")
        title.parent.insert(1, tag("div", count, clear, class_="needs-script activity-progress"))

    def paper(self, activity: Activity) -> list[nodes.Node]:
        kind = KINDS[activity["kind"]]
        page, target = self.config.bookkit_answers, answer_id(activity)
        link = make_refnode(self.app.builder, activity["docname"], page, target, nodes.Text("in the appendix"))
        line = nodes.paragraph("", f"{kind.in_appendix} ", link, *page_number(page, target), nodes.Text("."))
        title = nodes.title("", "", *activity.title)
        content = nodes.container(
            "", *kind.on_paper(activity), line
        )  # plain text runs the paragraphs of a box together
        box = nodes.admonition("", title, content, classes=["activity"])
        return [nodes.target(ids=[activity.id]), box]  # LaTeX has no label for the id of a box


class OneLinkAtATime(SphinxPostTransform):
    """In what does something when it is clicked, a link leaves only its words."""

    default_priority = 20  # when links are resolved

    def run(self, **kwargs) -> None:
        for clicked in self.document.findall(Tag):
            if clicked["tag"] in ("label", "summary"):
                for link in list(clicked.findall(nodes.reference)):
                    link.replace_self(link.children)


def has_scripts(builder: Builder) -> bool:
    """Whether readers get live pages: not so in e-books and help files, which are HTML too."""
    return builder.format == "html" and not builder.embedded


def screen(activity: Activity) -> Tag:
    title = tag("p", *activity.title, class_="activity-title", id=activity.id_of("title"))
    return tag(
        "section",
        title,
        *KINDS[activity["kind"]].on_screen(activity),
        class_="activity",
        id=activity.id,
        data_kind=activity["kind"],
        data_record=activity.get("record"),
        aria_labelledby=activity.id_of("title"),
    )


def answer_id(activity: Activity) -> str:
    """The activity's own id is unique on its page; this one is in the book."""
    return f"{nodes.make_id(activity['docname'])}--{activity.id}"


def page_number(docname: str, target: str) -> list[nodes.Node]:
    """On paper a link cannot be followed: LaTeX prints the page."""
    label = rf" (page~\pageref{{\detokenize{{{docname}:{target}}}}})"
    return [nodes.raw("", label, format="latex")]


def add_static_files(app: Sphinx) -> None:
    if has_scripts(app.builder):
        app.config.html_static_path.append(str(STATIC))
        app.add_css_file("activity.css")


def add_scripts(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """The scripts of the kinds that this page has: one a family, named after its module, and what they share."""
    if doctree is None:
        return
    kinds = {element["attributes"].get("data-kind") for element in doctree.findall(Tag)} - {None}
    families = {KINDS[kind].__module__.rpartition(".")[2] for kind in kinds}
    for name in ["activity", *sorted(families)] if families else []:
        app.add_js_file(f"{name}.js")
