"""Sphinx configuration. `make html` runs `sphinx-build -n -W -j 8 -c . book _build/html`."""

import gc
import os
from pathlib import Path

# Reading and writing make millions of small objects and drop few: looking for garbage took 9 seconds of a build.
gc.disable()

# -- The book --------------------------------------------------------------------------

project = "BERT, Recomputed"
author = "the contributors of BERT, Recomputed"
copyright = "the contributors. Text: CC BY 4.0. Code: MIT"
version = release = "0.1"
language = "en"
root_doc = "index"

# One chapter for its author: `make html CHAPTER=attention`. The others are read, but not run,
# so links into their computed tables cannot resolve; nothing else is forgiven.
bookkit_chapter = os.environ.get("CHAPTER", "")

extensions = [
    "myst_nb",
    "sphinxcontrib.bibtex",
    "bookkit.extension",
]  # myst_nb brings myst_parser
exclude_patterns = ["ledger", "results", "_static"]
nitpicky = True
numfig = True
bibtex_bibfiles = ["book/references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"

# -- Executing the chapters ------------------------------------------------------------

nb_execution_mode = "force"  # no cache: its key would not see a change of src/
bookkit_preload = ["torch._dynamo", "matplotlib.pyplot"]  # torch imports the first for every optimizer
nb_execution_timeout = 300  # seconds a cell
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "warn"
if bookkit_chapter:
    pages = sorted(path.name for path in Path("book").glob("*.md"))
    nb_execution_excludepatterns = [page for page in pages if page != f"{bookkit_chapter}.md"]
    suppress_warnings = ["ref.numref", "ref.ref"]

add_module_names = False  # in the reference: the section says in which module a name is
python_maximum_signature_line_length = 88
html_domain_indices = latex_domain_indices = False  # the reference is a list of modules already
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3

# -- Checking them ---------------------------------------------------------------------

bookkit_ledger = "book/ledger"
bookkit_inputs = ["src", "book/ledger", "book/results", "requirements.txt", "conf.py"]
bookkit_versions = [
    "torch",
    "numpy",
    "matplotlib",
    "jax",
    "flax",
    "sphinx",
    "myst-nb",
    "sphinx-book-theme",
]

# -- Programs made of the cells ----------------------------------------------------------

bookkit_package = "bertbook"  # what a program needs of it is copied into the program
# In a program, `load_result("name").values` is what stands under "values" in name.json of this folder.
bookkit_recorded = {"bertbook.experiments.results.load_result": "book/results"}
# What programs may read of book/, by paths such as "results/x/y.json". The archives of programs hold what they name.
bookkit_beside = ["results"]
bookkit_usual_libraries = ["torch", "numpy", "matplotlib"]  # a program that needs more says how to install it

# -- HTML ------------------------------------------------------------------------------

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["book/_static"]
html_favicon = "book/_static/favicon.svg"
html_css_files = ["book.css"]
templates_path = ["book/_templates"]
html_sidebars = {"**": ["book-title.html", "search-button-field.html", "sbt-sidebar-nav.html"]}
html_math_renderer = "mathml"  # made at build time: no script, no request to another host
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_persistent": [],  # else there are two search bars
    "show_toc_level": 2,
    "home_page_in_toc": False,
    "use_download_button": False,
    "use_fullscreen_button": False,
}
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False

# -- LaTeX -----------------------------------------------------------------------------

pygments_style = "a11y-high-contrast-light"  # in print too, code must be readable
latex_engine = "xelatex"
latex_use_xindy = False
latex_show_urls = "footnote"
latex_documents = [(root_doc, "bert-recomputed.tex", project, author, "manual", True)]
latex_elements = {
    "papersize": "a4paper",
    "pointsize": "10pt",
    "extraclassoptions": "openany,oneside",  # no empty pages
    "fvset": r"\fvset{fontsize=\footnotesize}",  # 88 characters of code fit into a line
    "figure_align": "H",  # figures stay where the text speaks of them
    "preamble": r"""
% The bibliography is a chapter with a heading of its own: no second one.
\usepackage{etoolbox}
\patchcmd{\thebibliography}{\chapter*{\bibname}}{}{}{\errmessage{thebibliography has changed}}
\AtBeginDocument{\renewenvironment{sphinxthebibliography}[1]{\begin{thebibliography}{#1}}{\end{thebibliography}}}
\newenvironment{sphinxclassrecord-mark}{\footnotesize\color{black!70}}{}
\newenvironment{sphinxclassrecord-note}{\small}{}
% The mark of what was checked stays under its table.
\pretocmd{\sphinxattableend}{\nobreak}{}{\errmessage{sphinxattableend has changed}}
\AtBeginEnvironment{sphinxtheindex}{\raggedright}
% Boxes hold listings longer than a page, and a frame does not break well: a rule above, and one below.
\newcommand\boxrule{\noindent{\color{black!60}\rule{\linewidth}{0.8pt}}\par}
\renewenvironment{sphinxnote}[1]{%
    \par\needspace{5\baselineskip}\vskip0.6\baselineskip
    \boxrule\nobreak\noindent\sphinxstrong{#1}\par\nobreak
}{\par\nobreak\boxrule\vskip0.6\baselineskip}
""",
}
