"""The appendix of answers: what the printed pages leave out, chapter by chapter."""

from docutils import nodes
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from bookkit.activities.forms import answer_id, page_number
from bookkit.activities.kinds import KINDS
from bookkit.activities.tree import Activity
from bookkit.checked import WholeBookPage


class AnswersPage(WholeBookPage):
    """Stands for all answers, which are known only when every chapter was read."""


class AnswersDirective(SphinxDirective):
    """All answers of the book, linked both ways."""

    def run(self) -> list[nodes.Node]:
        return [AnswersPage()]


class FillAnswers(SphinxPostTransform):
    """Puts the answers in place when the page is written, before Sphinx resolves their links."""

    default_priority = 5

    def run(self, **kwargs) -> None:
        for placeholder in list(self.document.findall(AnswersPage)):
            sections = [self.section(docname) for docname in reading_order(self.env, self.config.root_doc)]
            placeholder.replace_self([section for section in sections if section])

    def section(self, docname: str) -> nodes.section | None:
        activities = list(self.env.get_doctree(docname).findall(Activity))
        if not activities:
            return None
        title = nodes.title("", self.env.titles[docname].astext())
        return nodes.section(
            "", title, *(node for activity in activities for node in self.answer(activity)), ids=[docname]
        )

    def answer(self, activity: Activity) -> list[nodes.Node]:
        here, docname = self.env.current_document.docname, activity["docname"]
        back = make_refnode(self.app.builder, here, docname, activity.id, nodes.inline("", "", *activity.title))
        heading = nodes.paragraph("", "", nodes.strong("", "", back), *page_number(docname, activity.id))
        return [nodes.target(ids=[answer_id(activity)]), heading, *KINDS[activity["kind"]].answers(activity)]


def reading_order(env: BuildEnvironment, docname: str) -> list[str]:
    """A page and all below it, as the tables of contents list them."""
    below = (name for child in env.toctree_includes.get(docname, []) for name in reading_order(env, child))
    return [docname, *below]
