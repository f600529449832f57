"""The environment in which the chapters' kernels run, and what happens when one dies."""

import importlib.util
import json
import os
import tempfile
from functools import partial
from itertools import zip_longest
from pathlib import Path

from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from myst_nb.core.execute import direct
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from traitlets.config import Config

from bookkit import warm
from bookkit.ledger import LEDGER_VARIABLE
from bookkit.verify import BUILD_VARIABLE

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # one thread a kernel: chapters run side by side, and results do not depend on it
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "PYTHONHASHSEED": "0",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # ipykernel's default; a preloaded matplotlib needs it
    "JUPYTER_PREFER_ENV_PATH": "1",  # the kernel of this environment, not one installed for the user
}
IPYTHON_CONFIG = {
    "InteractiveShellApp": {"extensions": ["bookkit.snippets.observe"]},
    "IPKernelApp": {"log_level": 40},  # no notices of the kernel's own in the output
    "HistoryManager": {"enabled": False},  # parallel kernels would share one database
    "InlineBackend": {
        "figure_formats": ["svg", "pdf"],  # HTML takes the first, LaTeX the second
        "print_figure_kwargs": {"bbox_inches": None},  # figures keep the size and margins they were given
    },
}

# Two builds give equal figures, and a reader's own matplotlibrc changes none of them.
MATPLOTLIBRC = "svg.hashsalt: book\nsvg.fonttype: path\n"


def executed(env: BuildEnvironment, docnames: list[str]) -> list[str]:
    """Those of these pages that run something."""
    return [name for name in docnames if "{code-cell}" in env.doc2path(name).read_text("utf-8")]


def spread_chapters(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Sphinx cuts the list of pages into pieces, a process each: no piece shall hold several long chapters.

    So chapters and pages that run nothing take turns. These come first: they can be read while the kernels warm up.
    """
    chapters = executed(env, docnames)
    others = [name for name in docnames if name not in chapters]
    docnames[:] = [name for pair in zip_longest(others, chapters) for name in pair if name]


def warm_up(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """If several chapters will run: import once what they all import."""
    for name in app.config.bookkit_preload:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            raise ExtensionError(f"bookkit_preload in conf.py: no module {name!r} is installed; correct or remove it")
    several = not app.config.bookkit_chapter and len(executed(env, docnames)) > 1
    if app.config.bookkit_preload and several and warm.possible():
        app.bookkit_warm = warm.Warm(app.config.bookkit_preload)


def cool_down(app: Sphinx, exception: Exception | None) -> None:
    """What was warmed up ends with the build."""
    if hasattr(app, "bookkit_warm"):
        app.bookkit_warm.stop()


def prepare(app: Sphinx) -> None:
    """Give the kernels their environment and their IPython configuration, and outlive one that dies."""
    os.environ.update(ENVIRONMENT)
    os.environ[LEDGER_VARIABLE] = str(app.config.bookkit_ledger)
    os.environ[BUILD_VARIABLE] = "1"
    profile = Path(app.doctreedir) / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_config.json").write_text(json.dumps(IPYTHON_CONFIG))
    os.environ["IPYTHONDIR"] = str(profile.parent)
    style = Path(app.doctreedir) / "matplotlibrc"
    style.write_text(MATPLOTLIBRC)
    os.environ["MATPLOTLIBRC"] = str(style)
    direct.single_nb_execution = partial(execute_in_folder, Path(app.srcdir).resolve())


def execute_in_folder(folder: Path, notebook: NotebookNode, cwd: str, *arguments, **options) -> ExecutionResult:
    """Execute a page in the book's folder, wherever the page lies: so do programs made of it, beside the same files."""
    return execute_or_report_death(notebook, str(folder), *arguments, **options)


def execute_or_report_death(notebook, cwd, timeout, allow_errors, meta_override=True, **kwargs) -> ExecutionResult:
    """MyST-NB's execution, except that a dead kernel is one failed chapter instead of an aborted build."""
    try:
        result = execute_on_own_sockets(notebook, cwd, timeout, allow_errors, meta_override=meta_override, **kwargs)
        join_pieces(notebook)  # executed in place
        return result
    except DeadKernelError as error:
        started = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.get("execution_count")]
        last = started[-1].source.strip().splitlines()[0] if started else "the first cell"
        message = (
            "The kernel died while it ran this chapter: out of memory, a crash in compiled code, or os._exit. "
            f"The last cell that is known to have started begins with: {last}"
        )
        return ExecutionResult(notebook, cwd, 0.0, error, message)


def join_pieces(notebook: NotebookNode) -> None:
    """Join what was printed in one go but sent in several messages, as chance has it.

    MyST-NB would drop the empty lines where two pieces meet, and two builds would differ.
    """
    for cell in notebook.cells:
        joined: list[NotebookNode] = []
        for output in cell.get("outputs", []):
            last = joined[-1] if joined else None
            if last and output.output_type == last.output_type == "stream" and output.name == last.name:
                last.text += output.text
            else:
                joined.append(output)
        if cell.cell_type == "code":
            cell.outputs = joined


def execute_on_own_sockets(*arguments, **options) -> ExecutionResult:
    """MyST-NB's execution, with a kernel that is spoken to through files in a folder of its own.

    Jupyter's usual way are network ports, picked before the kernel takes them. Kernels that start side by side may
    pick the same ones, and if it is that of its output, a kernel neither answers nor ends.

    A kernel that has run its last cell is killed. Asked to end, it takes its time, and may complain of closed sockets.
    """
    options["shutdown_kernel"] = "immediate"
    if os.name != "posix":
        return single_nb_execution(*arguments, **options)
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:  # a short path: sockets' names have 100 characters
        config = Config(KernelManager={"transport": "ipc", "ip": f"{folder}/socket"})
        return single_nb_execution(*arguments, config=config, **options)
