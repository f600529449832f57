"""The environment of the kernels, and what is said of one that dies."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from jupyter_cache.executors.utils import ExecutionResult
from myst_nb.core.execute import direct
from nbclient.exceptions import DeadKernelError

from bookkit import kernels
from bookkit.ledger import LEDGER_VARIABLE
from bookkit.verify import BUILD_VARIABLE


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """A build's preparations, undone after the test."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(direct, "single_nb_execution", None)
    config = SimpleNamespace(bookkit_ledger="/book/ledger")
    kernels.prepare(SimpleNamespace(config=config, doctreedir=tmp_path, srcdir=tmp_path / "book"))
    return tmp_path


def test_kernels_run_on_one_thread_and_know_the_build(prepared):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        assert os.environ[name] == "1"
    assert os.environ["JAX_PLATFORMS"] == "cpu"
    assert os.environ["PYTHONHASHSEED"] == "0"
    assert os.environ["JUPYTER_PREFER_ENV_PATH"] == "1"
    assert os.environ[LEDGER_VARIABLE] == "/book/ledger"
    assert os.environ[BUILD_VARIABLE]


def test_kernels_have_a_configuration_of_their_own(prepared):
    file = prepared / "ipython" / "profile_default" / "ipython_config.json"
    assert os.environ["IPYTHONDIR"] == str(prepared / "ipython")
    settings = json.loads(file.read_text())
    assert settings["HistoryManager"] == {"enabled": False}
    assert settings["InlineBackend"]["figure_formats"] == ["svg", "pdf"]
    style = (prepared / "matplotlibrc").read_text()
    assert os.environ["MATPLOTLIBRC"] == str(prepared / "matplotlibrc")
    assert "svg.hashsalt: book\n" in style  # without it two builds give different figures


def test_myst_nb_executes_through_us_in_the_books_folder(prepared, monkeypatch):
    monkeypatch.setattr(
        kernels, "execute_or_report_death", lambda notebook, cwd, *rest, **options: (cwd, rest, options)
    )
    found = direct.single_nb_execution("notebook", cwd="/book/deep", timeout=30, allow_errors=False)
    assert found == (str(prepared / "book"), (), {"timeout": 30, "allow_errors": False})


def execute(monkeypatch, execution, *sources: str) -> ExecutionResult:
    """A notebook of these cells, the last of which was not started."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("words")])
    for count, source in enumerate(sources, start=1):
        started = count if count < len(sources) else None
        notebook.cells.append(nbformat.v4.new_code_cell(source, execution_count=started))
    monkeypatch.setattr(kernels, "single_nb_execution", execution)
    return kernels.execute_or_report_death(notebook, "/cwd", 30, False, meta_override=True)


def die(*_, **__):
    raise DeadKernelError("Kernel died")


@pytest.mark.parametrize(
    ("sources", "last"),
    [(["import os", "\nimport os\nos._exit(1)", "1"], "import os"), (["os._exit(1)"], "the first cell")],
)
def test_a_dead_kernel_is_a_failed_chapter_with_a_readable_line(monkeypatch, sources, last):
    result = execute(monkeypatch, die, *sources)
    assert isinstance(result.err, DeadKernelError)
    assert result.exc_string.startswith("The kernel died while it ran this chapter: out of memory, a crash")
    assert result.exc_string.endswith(f"begins with: {last}")
    assert "\n" not in result.exc_string


def test_other_results_and_errors_pass_unchanged(monkeypatch):
    given = {}

    def run(notebook, cwd, timeout, allow_errors, **options):
        given.update(cwd=cwd, timeout=timeout, allow_errors=allow_errors, **options)
        return "result"

    assert execute(monkeypatch, run, "1") == "result"
    given.pop("config")  # of the kernel's sockets
    options = {"timeout": 30, "allow_errors": False, "meta_override": True, "shutdown_kernel": "immediate"}
    assert given == {"cwd": "/cwd", **options}

    def fail(*_, **__):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        execute(monkeypatch, fail, "1")


def test_what_was_printed_in_one_go_is_in_one_piece():
    stream, display = nbformat.v4.new_output, nbformat.v4.new_output("display_data", {"text/plain": "a figure"})
    pieces = [("stdout", "one\n\n"), ("stdout", "two\n"), ("stderr", "!"), ("stdout", "three")]
    outputs = [stream("stream", name=name, text=text) for name, text in pieces]
    after = [stream("stream", name="stdout", text="four")]
    cells = [nbformat.v4.new_markdown_cell("words"), nbformat.v4.new_code_cell(outputs=[*outputs, display, *after])]
    notebook = nbformat.v4.new_notebook(cells=cells)
    kernels.join_pieces(notebook)
    texts = [output.get("text") for output in notebook.cells[1].outputs]
    assert texts == ["one\n\ntwo\n", "!", "three", None, "four"]


def test_chapters_and_other_pages_take_turns(tmp_path):
    for name in ("a", "b", "d"):
        (tmp_path / name).write_text("```{code-cell} ipython3\n1\n```\n")
    for name in ("c", "e"):
        (tmp_path / name).write_text("words\n")
    names = ["a", "b", "c", "d", "e"]
    kernels.spread_chapters(None, SimpleNamespace(doc2path=tmp_path.joinpath), names)
    assert names == ["c", "a", "e", "b", "d"]


SOCKET = """
from pathlib import Path

app = get_ipython().kernel.parent
print(app.transport, app.ip, len(list(Path(app.ip).parent.iterdir())))
"""


@pytest.mark.skipif(os.name != "posix", reason="elsewhere kernels are spoken to over ports")
def test_no_two_kernels_share_a_socket():
    """A kernel whose port for its output was taken hung, and with it the build."""
    folders = []
    for _ in range(2):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SOCKET)])
        assert kernels.execute_or_report_death(notebook, None, 30, False).err is None
        transport, ip, sockets = notebook.cells[0].outputs[0].text.split()
        assert (transport, sockets) == ("ipc", "5")
        folders.append(Path(ip).parent)
    assert folders[0] != folders[1]
    assert not any(folder.exists() for folder in folders)
