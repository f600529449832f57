"""The directive ``listing``: a function or class, shown in full from the file that runs."""

from pathlib import PurePosixPath

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.directives.code import LiteralInclude


class Listing(LiteralInclude):
    """``{listing} package.module.object`` shows that object of ``src/package/module.py``.

    It is numbered and captioned with the file it comes from, can be reached with
    ``numref`` under the object's name (``code-object``), offers the file for download, and links to the
    object's entry in the reference.
    """

    option_spec = {"caption": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        path = PurePosixPath(self.config.bookkit_source, *module.split(".")).with_suffix(".py")
        self.arguments[0] = path.as_posix()
        caption = self.options.get("caption", f"`{name}`")
        shown = "/".join(module.split(".")) + ".py"
        self.options |= {
            "language": "python",
            "pyobject": name,
            "name": f"code-{name}",
            "caption": f"{caption}, in {{download}}`{shown} <{path}>` ({{py:obj}}`reference <{module}.{name}>`)",
        }
        return super().run()
