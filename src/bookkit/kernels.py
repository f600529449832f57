"""The environment in which the chapters' kernels run, and what happens when one dies."""

import json
import os
from itertools import zip_longest
from pathlib import Path

from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from myst_nb.core.execute import direct
from nbclient.exceptions import DeadKernelError
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from bookkit.ledger import LEDGER_VARIABLE
from bookkit.verify import BUILD_VARIABLE

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # one thread a kernel: chapters run side by side, and results do not depend on it
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "PYTHONHASHSEED": "0",
    "JUPYTER_PREFER_ENV_PATH": "1",  # the kernel of this environment, not one installed for the user
}
IPYTHON_CONFIG = {
    "IPKernelApp": {"log_level": 40},  # no "running over TCP" notice in the output
    "HistoryManager": {"enabled": False},  # parallel kernels would share one database
    "InlineBackend": {
        "figure_formats": ["svg", "pdf"],  # HTML takes the first, LaTeX the second
        "print_figure_kwargs": {"bbox_inches": None},  # figures keep the size and margins they were given
    },
}

STARTS = 4
DIED_AT_START = "Kernel died before replying to kernel_info"  # as jupyter_client says it

# Two builds give equal figures, and a reader's own matplotlibrc changes none of them.
MATPLOTLIBRC = "svg.hashsalt: book\nsvg.fonttype: path\n"


def spread_chapters(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Sphinx cuts the list of pages into pieces, a process each: no piece shall hold several long chapters.

    So chapters and pages that run nothing take turns.
    """
    chapters = [name for name in docnames if "{code-cell}" in env.doc2path(name).read_text("utf-8")]
    others = [name for name in docnames if name not in chapters]
    docnames[:] = [name for pair in zip_longest(chapters, others) for name in pair if name]


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
    direct.single_nb_execution = execute_or_report_death


def execute_or_report_death(notebook, cwd, timeout, allow_errors, meta_override=True, **kwargs) -> ExecutionResult:
    """MyST-NB's execution, except that a dead kernel is one failed chapter instead of an aborted build."""
    try:
        return execute_once_started(notebook, cwd, timeout, allow_errors, meta_override=meta_override, **kwargs)
    except DeadKernelError as error:
        started = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.get("execution_count")]
        last = started[-1].source.strip().splitlines()[0] if started else "the first cell"
        message = (
            "The kernel died while it ran this chapter: out of memory, a crash in compiled code, or os._exit. "
            f"The last cell that is known to have started begins with: {last}"
        )
        return ExecutionResult(notebook, cwd, 0.0, error, message)


def execute_once_started(*arguments, **options) -> ExecutionResult:
    """A kernel that dies before it runs anything is started again.

    Kernels that start side by side pick their ports before they take them, and may pick the same one.
    """
    for _ in range(STARTS - 1):
        try:
            return single_nb_execution(*arguments, **options)
        except RuntimeError as error:
            if str(error) != DIED_AT_START:
                raise
    return single_nb_execution(*arguments, **options)
