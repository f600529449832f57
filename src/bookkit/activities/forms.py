"""The form an activity takes when a page is written, and what the page around it needs."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

from bookkit.activities.directive import Fault, button
from bookkit.activities.kinds import KINDS
from bookkit.activities.tree import Activity, Part, Tag, tag

log = logging.getLogger(__name__)
STATIC = Path(__file__).parent / "static"
SCRIPTS = {  # one a family; activity.js holds what they share
    "discuss": "details.js",
    "trap": "details.js",
    "draw": "details.js",
    "exercise": "details.js",
    "predict": "predict.js",
    "check": "choice.js",
    "eliminate": "choice.js",
    "sort": "sort.js",
    "fill-table": "tables.js",
    "step": "tables.js",
}


def warn(message: object, node: nodes.Node) -> None:
    log.warning("%s", message, location=node, type="bookkit", subtype="activity")


def check_page(app: Sphinx, document: nodes.document) -> None:
    """What can be seen only on the whole page: parts that are nested in nothing, two activities of one name."""
    seen = set()
    for activity in document.findall(Activity):
        if activity.id in seen:
            warn(f"{activity['kind']}: this page has two activities with this title", activity)
        seen.add(activity.id)
        if app.config.bookkit_answers not in app.env.found_docs:
            warn(f"there is no page {app.config.bookkit_answers!r} with the directive `answers`, for print", activity)
        for part in activity:
            if isinstance(part, Part) and part["role"] != "solution":
                for target in part.findall(lambda node: isinstance(node, nodes.Element) and node.get("names")):
                    warn(f"the target {target['names'][0]!r} stands in a part that moves to the answers in print", part)
    for part in document.findall(Part):
        if not isinstance(part.parent, Activity | Part):
            warn(f"{part['role']}: this belongs into an activity", part)
            part.parent.remove(part)


class TakeForm(SphinxPostTransform):
    """Controls in HTML; elsewhere an exercise whose answer stands in the appendix."""

    default_priority = 6  # after the appendix is filled, before the links are resolved

    def run(self, **kwargs) -> None:
        on_screen = self.app.builder.format == "html"
        activities = list(self.document.findall(Activity))
        for activity in activities:
            try:
                form = screen(activity) if on_screen else self.paper(activity)
            except Fault as fault:
                if self.config.bookkit_chapter in ("", self.env.current_document.docname):
                    warn(f"{activity['kind']}: {fault}", activity)
                form = activity.prompt  # a page that was not executed has no figures
            activity.replace_self(form)
        if activities and on_screen:
            self.insert_progress()

    def insert_progress(self) -> None:
        """How many are done, under the page's title; a script fills it in."""
        title = next(self.document.findall(nodes.title))
        count = tag("p", tag("span", class_="activity-count", role="status"))
        clear = button("Clear my answers on this page", "clear")
        progress = tag(
            "div", count, clear, class_="needs-script activity-progress", data_page=self.env.current_document.docname
        )
        title.parent.insert(title.parent.index(title) + 1, progress)

    def paper(self, activity: Activity) -> list[nodes.Node]:
        page, target = self.config.bookkit_answers, answer_id(activity)
        words = nodes.Text("in the appendix")
        to_answer = make_refnode(self.app.builder, activity["docname"], page, target, words)
        line = nodes.paragraph("", "The answer stands ", to_answer, *page_number(page, target), nodes.Text("."))
        title = nodes.title("", "", *activity.title)
        content = KINDS[activity["kind"]].on_paper(activity)
        box = nodes.admonition("", title, *content, line, classes=["activity"])
        return [nodes.target(ids=[activity.id]), box]  # LaTeX has no label for the id of a box


def screen(activity: Activity) -> Tag:
    title = tag("p", *activity.title, class_="activity-title", id=f"{activity.id}-title")
    return tag(
        "section",
        title,
        *KINDS[activity["kind"]].on_screen(activity),
        class_="activity",
        id=activity.id,
        data_kind=activity["kind"],
        data_record=activity.get("record"),
        aria_labelledby=f"{activity.id}-title",
    )


def answer_id(activity: Activity) -> str:
    return nodes.make_id(f"{activity['docname']}-{activity.id}")


def page_number(docname: str, target: str) -> list[nodes.Node]:
    """On paper a link cannot be followed: LaTeX prints the page."""
    label = rf" (page~\pageref{{\detokenize{{{docname}:{target}}}}})"
    return [nodes.raw("", label, format="latex")]


def add_static_files(app: Sphinx) -> None:
    if str(STATIC) not in app.config.html_static_path:
        app.config.html_static_path.append(str(STATIC))
    app.add_css_file("activity.css")


def add_scripts(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """The scripts of the kinds that this page has."""
    if doctree is None:
        return
    kinds = {
        element["attributes"]["data-kind"] for element in doctree.findall(Tag) if "data-kind" in element["attributes"]
    }
    for name in ["activity.js", *sorted({SCRIPTS[kind] for kind in kinds})] if kinds else []:
        app.add_js_file(name)
