"""The appendix of answers: what the printed pages leave out, chapter by chapter."""

from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from bookkit.activities.forms import answer_id, page_number
from bookkit.activities.kinds import KINDS
from bookkit.activities.tree import Activity, AnswersPage


class AnswersDirective(SphinxDirective):
    """All answers of the book, linked both ways."""

    def run(self) -> list[nodes.Node]:
        return [AnswersPage(docname=self.env.docname)]


class FillAnswers(SphinxPostTransform):
    """Puts the answers in place when the page is written, before Sphinx resolves their links."""

    default_priority = 5

    def run(self, **kwargs) -> None:
        for page in list(self.document.findall(AnswersPage)):
            page.replace_self(list(self.sections(page["docname"])))

    def sections(self, here: str) -> Iterator[nodes.section]:
        """One for each page that has activities, in the order of the book."""
        for docname in self.env.collect_relations():
            activities = list(self.env.get_doctree(docname).findall(Activity))
            if activities:
                title = nodes.title("", self.env.titles[docname].astext())
                section = nodes.section("", title, ids=[f"answers--{nodes.make_id(docname)}"])
                for activity in activities:
                    section += self.answer(activity, here)
                yield section

    def answer(self, activity: Activity, here: str) -> list[nodes.Node]:
        docname = activity["docname"]
        title = nodes.strong("", "", *activity.title)
        back = make_refnode(self.app.builder, here, docname, activity.id, nodes.Text("back to the exercise"))
        heading = nodes.paragraph("", "", title, nodes.Text(" · "), back, *page_number(docname, activity.id))
        content = [heading, *KINDS[activity["kind"]].answers(activity)]
        for node in content:
            settle(node, here)
        return [nodes.target(ids=[answer_id(activity)]), *content]


def settle(content: nodes.Element, docname: str) -> None:
    """Links count from the page to which they have moved; ids stay behind."""
    for link in content.findall(addnodes.pending_xref):
        link["refdoc"], link["ids"] = docname, []
