"""What a reader does on a page: questions with answers, as native controls on screen and as exercises in print.

An activity goes through four steps, a file each:

1. `directive`: a chapter's directive and its parts become an `Activity` node; faults are named with file and line.
2. `choice`, `details`, `exercise`, `predict`, `sort`, `tables`: one family of kinds each, with its data, its form on
   screen, its form on paper and its answer. Answers that a record holds are read from the ledger. Each says what it
   does for accessibility, and what is left without a script and on paper.
3. `forms`: when a page is written, each activity takes its form: controls in HTML, an exercise elsewhere.
4. `answers`: the appendix that holds what the printed pages leave out.

`tree` has the nodes, `kinds` the directives by name. `static/` has one style sheet, `activity.js` for what all kinds
share (state in the reader's browser, progress, messages), and one script a family, under the family's name. Scripts
only enhance: without them everything can be read.
"""

from sphinx.application import Sphinx

from bookkit.activities import answers, forms, tree
from bookkit.activities.kinds import KINDS, PARTS


def setup(app: Sphinx) -> None:
    app.add_config_value("bookkit_answers", "answers", "env", str)  # the page that has the directive `answers`
    tree.setup(app)
    for name, directive in {**KINDS, **PARTS}.items():
        app.add_directive(name, directive, override=True)  # docutils has an admonition `hint`
    app.add_directive_to_domain("std", "option", PARTS["option"], override=True)  # Sphinx looks there first
    app.add_directive("answers", answers.AnswersDirective)
    app.add_post_transform(answers.FillAnswers)
    app.add_post_transform(forms.TakeForm)
    app.add_post_transform(forms.OneLinkAtATime)
    app.connect("builder-inited", forms.add_static_files)
    app.connect("doctree-read", forms.check_page)
    app.connect("html-page-context", forms.add_scripts)
