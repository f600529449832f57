"""What a reader finds on the pages: buttons that copy a cell or its program, and the programs as files."""

import json
import math
import os
import posixpath
import shutil
from html import escape
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains import Domain
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from bookkit.cells import read_cells
from bookkit.checked import WholeBookPage
from bookkit.snippets.edit import ProgramError
from bookkit.snippets.files import Shelf, outermost
from bookkit.snippets.observe import OBSERVED_VARIABLE
from bookkit.snippets.package import Package
from bookkit.snippets.program import WHOLE_PAGE, Book, Page, Program, program_of
from bookkit.snippets.slice import Observed

log = logging.getLogger(__name__)
FOLDER = "_downloads/programs"
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the date of every file in an archive: two builds give equal ones


class Programs(Domain):
    """The programs of each page."""

    name = "program"
    label = "programs"
    initial_data = {"pages": {}}
    data_version = 1

    @property
    def pages(self) -> dict[str, list[Program]]:
        return self.data["pages"]

    def clear_doc(self, docname: str) -> None:
        self.pages.pop(docname, None)

    def merge_domaindata(self, docnames: set[str], otherdata: dict[str, Any]) -> None:
        self.pages.update({name: otherdata["pages"][name] for name in docnames & otherdata["pages"].keys()})

    def resolve_any_xref(self, env, fromdocname, builder, target, node, contnode):
        return []


# -- While a page is read ---------------------------------------------------------------


def observed_file(app: Sphinx, docname: str) -> Path:
    """Where the page's kernel notes what its cells do."""
    return Path(app.doctreedir, "observed", f"{docname}.jsonl")


def start_to_observe(app: Sphinx, docname: str, source: list[str]) -> None:
    """Before a page runs: tell its kernel where to write. A book that names no package has no programs."""
    if not app.config.bookkit_package:
        return
    file = observed_file(app, docname)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    os.environ[OBSERVED_VARIABLE] = str(file)


def make_programs(app: Sphinx, doctree: nodes.document) -> None:
    """When a page has run: make the programs of its cells. A page that did not run to its end gets none."""
    os.environ.pop(OBSERVED_VARIABLE, None)
    docname, file = app.env.docname, observed_file(app, app.env.docname)
    if not file.exists():
        return
    observed = [Observed(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]
    cells = read_cells(app.env.doc2path(docname).read_text("utf-8"))
    if not cells or [cell.source for cell in cells] != [seen.source for seen in observed]:
        return
    title = next((title.astext() for title in doctree.findall(nodes.title)), docname)
    page = Page(docname, title, cells, observed)
    programs = []
    for i, cell in enumerate(cells):
        try:
            programs.append(program_of(book_of(app), page, i))
        except ProgramError as error:
            location = (docname, cell.first_line)
            log.warning("no program can be made of this cell: %s", error, location=location, type="bookkit")
    app.env.get_domain("program").pages[docname] = programs


def book_of(app: Sphinx) -> Book:
    """What the programs have in common; made once in each process that reads."""
    if not hasattr(app, "bookkit_programs"):
        source = Path(app.srcdir, app.config.bookkit_source.lstrip("/"))
        recorded = {name: Path(app.confdir, folder) for name, folder in app.config.bookkit_recorded.items()}
        package = Package(source, app.config.bookkit_package, recorded)
        for name in recorded:
            package.resolve(*name.rpartition(".")[::2], f"bookkit_recorded in conf.py names {name}")
        usual = tuple(app.config.bookkit_usual_libraries)
        app.bookkit_programs = Book(app.config.project, package, usual, shelf_of(app))
    return app.bookkit_programs


def shelf_of(app: Sphinx) -> Shelf:
    """Where programs find files of the book."""
    return Shelf(Path(app.srcdir), tuple(app.config.bookkit_beside))


# -- While a page is written ------------------------------------------------------------


class Buttons(nodes.General, nodes.Element):
    """The buttons of one cell."""


class Downloads(WholeBookPage):
    """The link to the programs of one page, or of the book."""


class ProgramsDirective(SphinxDirective):
    """``{programs}``: the link to all programs of the book. Other formats than HTML have none."""

    def run(self) -> list[nodes.Node]:
        return [Downloads(page="")]


class AddButtons(SphinxPostTransform):
    """Puts the buttons under each cell, and the link under the page; takes the links out of other formats."""

    default_priority = 600

    def run(self, **kwargs: Any) -> None:
        if self.app.builder.name != "html":
            for node in list(self.document.findall(Downloads)):
                node.parent.remove(node)
            return
        pages = self.env.get_domain("program").pages
        programs = pages.get(self.env.docname, [])
        cells = {program.cell: program for program in programs}
        for cell in list(self.document.findall(is_code_cell)):
            index = cell["cell_index"]
            cell.insert(place_of_source(cell) + 1, Buttons(program=cells.get(index)))
        if programs:
            place = next(self.document.findall(nodes.section), self.document)
            place += Downloads(page=self.env.docname, count=len(programs))
        for node in self.document.findall(Downloads):
            those = programs if node["page"] else [program for all_of in pages.values() for program in all_of]
            node["files"] = words_of_files(shelf_of(self.app), those)


def words_of_files(shelf: Shelf, programs: list[Program]) -> str:
    """Which files of the book an archive of programs holds, and how much that is to download."""
    names = outermost(name for program in programs for name in program.reads)
    size = sum(file.stat().st_size for file in shelf.files(names).values())
    return f", and what some of them read: {', '.join(names)} ({in_words(size)})" if names else ""


def in_words(size: int) -> str:
    """A number of bytes, rounded up.

    >>> in_words(21_400_000), in_words(300)
    ('22 MB', '1 kB')
    """
    return f"{math.ceil(size / 1e6)} MB" if size >= 1e6 else f"{math.ceil(size / 1e3)} kB"


def is_code_cell(node: nodes.Node) -> bool:
    """Whether this is a cell whose code is shown."""
    is_cell = isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"
    return is_cell and place_of_source(node) is not None


def place_of_source(cell: nodes.container) -> int | None:
    """Which child of the cell is its code, or holds it where readers open it on request."""
    for i, part in enumerate(cell.children):
        if any("cell_input" in inner["classes"] for inner in part.findall(nodes.container)):
            return i
    return None


def visit_buttons(translator: Any, node: Buttons) -> None:
    """Hidden until the script that makes them work shows them."""
    program: Program | None = node["program"]
    index, reads = (program.cell, ", ".join(program.reads)) if program else ("", "")
    copy_program = '<button type="button" value="program">Copy program</button>\n' if program else ""
    data = f'data-cell="{index}"' + (f' data-reads="{escape(reads)}"' if reads else "")
    translator.body.append(
        f'<div class="snippet" {data} hidden>\n{copy_program}'
        '<button type="button" value="cell">Copy cell</button>\n<span role="status"></span></div>\n'
    )
    raise nodes.SkipNode


def visit_downloads(translator: Any, node: Downloads) -> None:
    """A plain link, which works without any script."""
    docname, page = translator.builder.current_docname, node["page"]
    here = posixpath.dirname(translator.builder.get_target_uri(docname)) or "."
    target = posixpath.relpath(f"{FOLDER}/{page or 'all'}", here)
    if page:
        words, name = f"The {node['count']} cells of this page as programs that run alone", posixpath.basename(page)
    else:
        words, name = "Every cell of this book as a program that runs alone", "all"
    data = f' data-script="{escape(target)}.js"' if page else ""
    link = f'<a href="{escape(target)}.zip" download>{escape(name)}.zip</a>'
    translator.body.append(f'<p class="snippet-downloads"{data}>{words}{escape(node["files"])}: {link}</p>\n')
    raise nodes.SkipNode


# -- When the pages are written ---------------------------------------------------------


def write_programs(app: Sphinx, exception: Exception | None) -> None:
    """The programs as files, as archives, and as scripts for the buttons; and the list that the tests go through.

    An archive holds what its programs read, too, each file once, in the place where they look for it.
    """
    if exception or app.builder.name != "html":
        return
    pages: dict[str, list[Program]] = dict(sorted(app.env.get_domain("program").pages.items()))
    folder, shelf = Path(app.outdir, FOLDER), shelf_of(app)
    shutil.rmtree(folder, ignore_errors=True)
    for page, programs in pages.items():
        (folder / page).mkdir(parents=True)
        for program in programs:
            (folder / page / program.file).write_text(program.text, "utf-8")
        (folder / f"{page}.js").write_text(script_of(programs), "utf-8")
        write_archive(folder / f"{page}.zip", {page: programs}, shelf)
    folder.mkdir(parents=True, exist_ok=True)
    write_archive(folder / "all.zip", pages, shelf)
    write_list(app, pages)


def script_of(programs: list[Program]) -> str:
    """The programs of a page as a script: each piece once, and the pieces of each program."""
    pieces = list(dict.fromkeys(piece for program in programs for piece in program.pieces))
    place = {piece: i for i, piece in enumerate(pieces)}
    cells = {program.cell: [place[piece] for piece in program.pieces] for program in programs}
    return f"window.bookPrograms = {json.dumps({'pieces': pieces, 'cells': cells}, ensure_ascii=False)};\n"


def write_archive(file: Path, pages: dict[str, list[Program]], shelf: Shelf) -> None:
    """A zip archive that depends on nothing but what is in it."""
    contents = {f"{page}/{program.file}": program.text.encode() for page, all_of in pages.items() for program in all_of}
    reads = {name for all_of in pages.values() for program in all_of for name in program.reads}
    contents |= {name: path.read_bytes() for name, path in shelf.files(reads).items()}
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            info = ZipInfo(name, EARLIEST)
            info.external_attr = 0o644 << 16
            archive.writestr(info, content, ZIP_DEFLATED)


def write_list(app: Sphinx, pages: dict[str, list[Program]]) -> None:
    """`programs.json` beside the output folder: what each program must give when it runs alone."""
    folder = Path(app.outdir)
    programs = []
    for page, all_of in pages.items():
        path = app.env.doc2path(page, base=False)
        for program in all_of:
            place = {"file": f"{folder.name}/{FOLDER}/{page}/{program.file}", "place": f"{path}:{program.line}"}
            short = program.short and {"text": program.short.text, **given_by(program.short)}
            programs.append({**place, **given_by(program), "short": short})
    content = {
        "blocked": [app.config.bookkit_package, "bookkit"],
        "tag": WHOLE_PAGE,
        "root": Path(os.path.relpath(app.srcdir, folder.parent)).as_posix(),
        "programs": programs,
    }
    (folder.parent / "programs.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def given_by(program: Program) -> dict[str, Any]:
    """What a program prints and draws, and what it reads for it."""
    return {"printed": program.printed, "pictures": program.pictures, "reads": program.reads}


def add_static_files(app: Sphinx, config: Any) -> None:
    """The script and the sheet of the buttons. The path is relative: Sphinx writes a hash of it into the build."""
    config.html_static_path.append(os.path.relpath(Path(__file__).parent / "static", app.confdir))


def setup(app: Sphinx) -> None:
    """Plug the snippets into Sphinx."""
    app.add_config_value("bookkit_package", "", "env", str)  # its code goes into programs; "": none are made
    app.add_config_value("bookkit_usual_libraries", [], "env", list)  # what a reader is taken to have installed
    app.add_config_value("bookkit_recorded", {}, "env", dict)  # functions that load results, with the results' folder
    app.add_config_value("bookkit_beside", [], "env", list)  # folders of the book whose files programs may read
    app.add_domain(Programs)
    app.add_directive("programs", ProgramsDirective)
    app.add_node(Buttons, html=(visit_buttons, None))
    app.add_node(Downloads, html=(visit_downloads, None))
    app.add_post_transform(AddButtons)
    app.add_js_file("snippets.js", loading_method="defer")
    app.add_css_file("snippets.css")
    app.connect("config-inited", add_static_files)
    app.connect("source-read", start_to_observe)
    app.connect("doctree-read", make_programs)
    app.connect("build-finished", write_programs)
