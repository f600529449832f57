"""The directive ``reference``: the public functions and classes of a package, read without importing it.

Importing would bring torch and jax into the Sphinx process, which forks; reading does not. Each entry
links to the page whose ``listing`` shows its code, and each listing links back to its entry.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import GoogleDocstring
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from bookkit.reports import link

Definition = ast.FunctionDef | ast.ClassDef


class TaughtIn(nodes.General, nodes.Element):
    """Stands for the link to an object's listing, which is known when every page was read."""


class Reference(SphinxDirective):
    """``.. reference:: package``, on a reStructuredText page: a section for each module of the package."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        source = Path(self.env.srcdir, self.config.bookkit_source.lstrip("/"))
        paths = sorted((source / self.arguments[0]).rglob("*.py"))
        if not paths:
            raise self.error(f"there is no package {self.arguments[0]!r} in {self.config.bookkit_source}")
        lines = [line for path in paths for line in module_lines(module_name(path, source), path.read_text("utf-8"))]
        content = self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)
        for section in content:
            for entry in section.findall(addnodes.desc):
                if entry["objtype"] != "method":
                    entry[-1] += TaughtIn(listing=f"code-{entry[0]['fullname']}", docname=self.env.docname)
        return content


def module_name(path: Path, source: Path) -> str:
    """The dotted name of a module's file below the folder of sources.

    >>> module_name(Path("src/shop/till.py"), Path("src")), module_name(Path("src/shop/__init__.py"), Path("src"))
    ('shop.till', 'shop')
    """
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def module_lines(module: str, code: str) -> Iterator[str]:
    """A section for a module; one without a public function or class, or that is private, has none."""
    tree = ast.parse(code)
    if module.rpartition(".")[2].startswith("_") or not any(map(is_public, tree.body)):
        return
    yield from (f".. py:module:: {module}", "", f"``{module}``", "-" * (len(module) + 4), "")
    yield from (*(ast.get_docstring(tree) or "").splitlines(), "")
    for node in filter(is_public, tree.body):
        yield from definition_lines(node, f"   :module: {module}")


def is_public(node: ast.stmt) -> bool:
    return isinstance(node, Definition) and not node.name.startswith("_")


def definition_lines(node: Definition, *options: str) -> Iterator[str]:
    """The entry of a function or class: signature, docstring, and a class's own methods."""
    kind = "class" if isinstance(node, ast.ClassDef) else "function" if options else "method"
    if any(isinstance(decorator, ast.Name) and decorator.id == "classmethod" for decorator in node.decorator_list):
        options = ("   :classmethod:",)
    yield from (f".. py:{kind}:: {node.name}{signature(node)}", *options, "")
    yield from indented([*docstring_lines(node), ""])
    if isinstance(node, ast.ClassDef):
        for method in filter(is_public, node.body):
            if ast.get_docstring(method):
                yield from indented(definition_lines(method))


def signature(node: Definition) -> str:
    """The arguments as they are written; of a class those of ``__init__``, or its annotated fields.

    >>> signature(ast.parse("def add(a: int, *, b: int = 1) -> int: ...").body[0])
    '(a: int, *, b: int = 1) -> int'
    >>> signature(ast.parse("class Point:\\n    x: int\\n    y: int = 0").body[0])
    '(x: int, y: int = 0)'
    """
    if isinstance(node, ast.FunctionDef):
        returns = " -> " + ast.unparse(node.returns).strip("'") if node.returns else ""
        arguments = re.sub(r"^(self|cls)(, )?", "", spaced(node.args))
        return f"({arguments}){returns}"
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return signature(part)
    fields = [ast.unparse(part) for part in node.body if isinstance(part, ast.AnnAssign)]
    return f"({', '.join(fields)})" if fields else ""


def spaced(arguments: ast.arguments) -> str:
    """``ast.unparse`` writes ``a: int=1``; PEP 8 wants ``a: int = 1``."""
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if argument.annotation:
            argument.arg, argument.annotation = f"{argument.arg}: {ast.unparse(argument.annotation)} ", None
    return re.sub(r" =(?=\S)", " = ", ast.unparse(arguments)).replace(" ,", ",").rstrip()


def docstring_lines(node: Definition) -> list[str]:
    """A docstring in Google's style as reStructuredText; its source is linked to the slides' places."""
    config = Config(napoleon_use_rtype=False, napoleon_use_admonition_for_examples=False)
    text = re.sub(r"(?<=: )([A-Z])\.(?=\s|$)", r"\1\\.", ast.get_docstring(node) or "")  # "H." would begin a list
    docstring = str(GoogleDocstring(text, config))
    return re.sub(r"^Source: (.+(\n.+)*)", link_slides, docstring, flags=re.MULTILINE).splitlines()


def link_slides(source: re.Match) -> str:
    """
    >>> link_slides(re.match("Source: (.+)", "Source: slides 3 and 5; Vaswani et al. 2017."))
    '*Source:* :record:source:`slide-3` and :record:source:`slide-5`; Vaswani et al. 2017.'
    """
    numbers = re.compile(r"slides? ((?:\d+(?:, | and )?)+)")
    linked = numbers.sub(lambda found: re.sub(r"\d+", r":record:source:`slide-\g<0>`", found[1]), source[1])
    return f"*Source:* {linked}"


def indented(lines: Iterator[str] | list[str]) -> Iterator[str]:
    return (f"   {line}" if line.strip() else "" for line in lines)


def leave_foreign_types(app: Sphinx, env: BuildEnvironment, node: nodes.Element, content: nodes.Node):
    """Types in signatures that are other packages' (``Tensor``) stay plain text: nothing here could be linked."""
    in_a_signature = (node["refdomain"], node["reftype"]) == ("py", "class") and node.get("py:module")
    return content if in_a_signature else None


class LinkToListings(SphinxPostTransform):
    """Names the page that shows an object's code; entries whose code is on no page say nothing."""

    default_priority = 5  # the links are resolved at 10

    def run(self, **kwargs) -> None:
        labels = self.env.domains.standard_domain.anonlabels
        for placeholder in list(self.document.findall(TaughtIn)):
            label = nodes.fully_normalize_name(placeholder["listing"])
            if label not in labels:
                placeholder.parent.remove(placeholder)
                continue
            title = self.env.titles[labels[label][0]].astext()
            chapter = link(label, nodes.inline(title, title), placeholder["docname"], reftype="source")
            placeholder.replace_self(nodes.paragraph("", "", nodes.Text("Taught in "), chapter, nodes.Text(".")))
