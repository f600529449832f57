"""Runs your file, and tells an error in your code with the line where it happened."""

import linecache
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType

HIDING = ("numpy.py", "torch.py", "bertbook.py")
# Where our own code lies; a program that holds a copy of it has no such folder.
PACKAGE = tuple(getattr(sys.modules.get("bertbook"), "__path__", ()))
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
    if file.suffix.lower() == ".ipynb":
        raise CannotCheck(
            f"{path} is a notebook. Check it from one of its own cells: "
            "from bertbook.check import check; check(exercise, your_function)"
        )
    if file.is_dir():
        raise CannotCheck(f"{path} is a folder; name the Python file in it.")
    if not file.is_file():
        raise CannotCheck(f"There is no file {path}. Is this its folder?")
    refuse_hiding_names(file)
    module = ModuleType(file.stem)
    module.__file__ = path
    search, entries, folder = sys.path, sys.path.copy(), str(file.parent)
    search.insert(0, folder)  # for what stands beside it
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
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise CannotCheck(
            f"{path} does not run to its end.\n{describe_error(error)}"
        ) from error
    finally:
        # Whatever the file did to the list, what stood there stands there again.
        added = [entry for entry in sys.path if entry not in (*entries, folder)]
        search[:], sys.path = [*added, *entries], search
        if before is None:
            sys.modules.pop(file.stem, None)
        else:
            sys.modules[file.stem] = before
    return module


def refuse_hiding_names(file: Path) -> None:
    """Refuse a file, or one beside it, that Python would import for a library.

    >>> refuse_hiding_names(Path("json.py"))
    Traceback (most recent call last):
    bertbook.check.load.CannotCheck: json.py hides Python's own json. Rename the file.
    """
    for name in HIDING:
        hiding = file.parent / name
        if hiding.is_file():
            raise CannotCheck(
                f"{hiding} hides the library: import {hiding.stem} finds this file "
                "instead. Rename the file."
            )
    if file.stem in sys.stdlib_module_names:
        raise CannotCheck(f"{file} hides Python's own {file.stem}. Rename the file.")


def describe_error(error: BaseException) -> str:
    """The error with the last line of the reader's own code that it passed through.

    >>> try:
    ...     load_solution(42)
    ... except TypeError as error:
    ...     print(describe_error(error).split(":")[0])
    TypeError
    """
    kind = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return kind + readers_line(traceback.extract_tb(error.__traceback__))


def readers_line(frames: traceback.StackSummary) -> str:
    """The last line of the reader's own code among these, to end a sentence with.

    >>> readers_line(traceback.StackSummary.from_list([("<cell>", 3, "f", None)]))
    ', in line 3 of your cell'
    """
    theirs = [frame for frame in frames if is_readers(frame.filename)]
    if not theirs:
        return ""
    last = theirs[-1]
    on_disk = Path(last.filename).is_file() and "ipykernel_" not in last.filename
    place = Path(last.filename).name if on_disk else "your cell"
    code = linecache.getline(last.filename, last.lineno).strip()
    return f", in line {last.lineno} of {place}" + (f": {code}" if code else "")


def is_readers(filename: str) -> bool:
    """Whether a file of a traceback is neither ours nor a library's.

    >>> is_readers("my_step.py"), is_readers(__file__), is_readers(linecache.__file__)
    (True, False, False)
    """
    return not filename.startswith((*PACKAGE, *LIBRARIES, "<frozen"))
