"""Runs your file, and tells an error in your code with the line where it happened."""

import linecache
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType

PACKAGE = str(Path(__file__).parents[1])
LIBRARIES = tuple(
    {sysconfig.get_paths()[kind] for kind in ("stdlib", "purelib", "platlib")}
)


class CannotCheck(Exception):
    """Nothing could be checked; the message says what to do.

    >>> raise CannotCheck("there is no file my_step.py")
    Traceback (most recent call last):
    bertbook.check.load.CannotCheck: there is no file my_step.py
    """


def load_solution(path: str) -> ModuleType:
    """The module that running the file gives.

    Raises:
        CannotCheck: if there is no such file, or it does not run to its end.

    >>> load_solution("my_step.py")
    Traceback (most recent call last):
    bertbook.check.load.CannotCheck: There is no file my_step.py. Is this its folder?
    """
    file = Path(path)
    if file.suffix == ".ipynb":
        raise CannotCheck(
            f"{path} is a notebook. Check it from one of its own cells: "
            "from bertbook.check import check; check(exercise, your_function)"
        )
    if file.is_dir():
        raise CannotCheck(f"{path} is a folder; name the Python file in it.")
    if not file.is_file():
        raise CannotCheck(f"There is no file {path}. Is this its folder?")
    module = ModuleType(file.stem)
    module.__file__ = path
    sys.path.insert(0, str(file.parent))  # for what stands beside it
    sys.modules[file.stem], before = module, sys.modules.get(file.stem)
    try:
        exec(compile(file.read_bytes(), path, "exec"), vars(module))
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        code = f": {error.text.strip()}" if error.text else ""
        raise CannotCheck(
            f"{path} is not Python{where}{code}\n{type(error).__name__}: {error.msg}"
        ) from error
    except SystemExit as error:
        raise CannotCheck(
            f"{path} ends the program before it can be checked. "
            "Put what it does besides defining under: if __name__ == '__main__':"
        ) from error
    except Exception as error:
        raise CannotCheck(
            f"{path} does not run to its end.\n{describe_error(error)}"
        ) from error
    finally:
        sys.path.remove(str(file.parent))
        if before is None:
            del sys.modules[file.stem]
        else:
            sys.modules[file.stem] = before
    return module


def describe_error(error: Exception) -> str:
    """The error with the last line of the reader's own code that it passed through.

    >>> try:
    ...     load_solution(42)
    ... except TypeError as error:
    ...     print(describe_error(error).split(":")[0])
    TypeError
    """
    kind = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if is_readers(frame.filename)]
    if not theirs:
        return kind
    last = theirs[-1]
    on_disk = Path(last.filename).is_file() and "ipykernel_" not in last.filename
    place = Path(last.filename).name if on_disk else "your cell"
    code = linecache.getline(last.filename, last.lineno).strip()
    return f"{kind}, in line {last.lineno} of {place}" + (f": {code}" if code else "")


def is_readers(filename: str) -> bool:
    """Whether a file of a traceback is neither ours nor a library's.

    >>> is_readers("my_step.py"), is_readers(__file__), is_readers(linecache.__file__)
    (True, False, False)
    """
    return not filename.startswith((PACKAGE, *LIBRARIES, "<frozen"))
