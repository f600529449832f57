"""Programs made of cells: what a cell mentions and changes, which cells it needs, and what is copied for it."""

import ast
import io
import math
import random
import re
import textwrap

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from bookkit.snippets.alone import picture_of
from bookkit.snippets.content import content
from bookkit.snippets.edit import ProgramError
from bookkit.snippets.inline import inline
from bookkit.snippets.names import mentions
from bookkit.snippets.observe import Snapshot, names_of_the_page, what_is_shown
from bookkit.snippets.package import Package
from bookkit.snippets.slice import Facts, Observed, needed, reseeds
from tiny_programs import page_of, program, run

# -- Names --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "read", "bound", "deferred"),
    [
        ("y = x", "x", "y", ""),
        ("x += 1", "x", "x", ""),
        ("a[i] = b.c", "a b i", "", ""),
        ("del a, b[c]", "a b c", "a", ""),
        ("[f(i) for i in rows if i in kept]", "f kept rows", "", ""),
        ("total = sum(i * k for i in rows)", "k rows sum", "total", "k"),
        ("def f(a, b=c, *d, e: T) -> R:\n    g = a + h\n    return g, b", "R T c h", "f", "h"),
        ("def f():\n    def g():\n        return outer + x\n    outer = 1\n    return g", "x", "f", "x"),
        ("def f():\n    global n\n    n = 1", "", "f n", ""),
        ("def f():\n    import math\n    return math.pi", "", "f", ""),
        ("lambda a: a + b", "b", "", "b"),
        (
            "@d\nclass A(B, metaclass=M):\n    x = y\n    z = x\n    def f(self):\n        return x",
            "B M d x y",
            "A",
            "x",
        ),
        ("for i, (j, _) in rows:\n    print(i)", "i print rows", "_ i j", ""),
        ("with open(p) as f:\n    n = f.read()", "f open p", "f n", ""),
        ("try:\n    f()\nexcept E as e:\n    print(e)", "E e f print", "e", ""),
        ("match v:\n    case [a, *b]:\n        print(a)", "a print v", "a b", ""),
        ("import a.b, c as d\nfrom e import f as g", "", "a d g", ""),
        ("if (n := len(rows)) > 1:\n    pass", "len rows", "n", ""),
        ("f'{x:{width}}'", "width x", "", ""),
    ],
)
def test_what_code_mentions(code, read, bound, deferred):
    found = mentions(ast.parse(code))
    assert sorted({m.name for m in found if not m.binds}) == read.split()
    assert sorted({m.name for m in found if m.binds}) == bound.split()
    assert sorted({m.name for m in found if m.deferred and not m.binds}) == deferred.split()


# -- What objects hold --------------------------------------------------------------------


def linear_and_optimizer():
    model = torch.nn.Linear(2, 1)
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


def changed_by(value, change) -> bool:
    before = content(value)
    assert content(value) == before
    change()
    return content(value) != before


def test_a_change_is_noticed_wherever_it_happens():
    model, optimizer = linear_and_optimizer()
    array, generator, numpys = np.zeros(3), torch.Generator(), np.random.default_rng(0)

    def step():
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    def function_with(state=array):
        return array, state

    assert changed_by(model, step)
    assert changed_by([{"deep": optimizer}], step)
    assert changed_by(model, model.eval)
    assert changed_by(model, lambda: model.weight.requires_grad_(False))
    assert changed_by(model, lambda: model.register_forward_hook(print))
    assert changed_by(generator, lambda: torch.rand(1, generator=generator))
    assert changed_by(numpys, numpys.random)
    assert changed_by(function_with, lambda: array.fill(1.0))
    assert changed_by(np.array([[1], {}], dtype=object), lambda: None) is False


def test_gradients_count_and_reading_changes_nothing():
    model, _ = linear_and_optimizer()
    assert not changed_by(model, lambda: model(torch.ones(1, 2)))
    assert changed_by(model, lambda: model(torch.ones(1, 2)).sum().backward())
    assert not changed_by({"a": {1, 2}, "b": [model]}, lambda: model.state_dict())


def test_objects_that_point_at_each_other_are_hashed_once():
    ring: list = [1]
    ring.append(ring)
    assert changed_by(ring, lambda: ring.append(2))


def test_what_cannot_be_looked_at_is_said():
    assert not content(zip("ab", "cd", strict=True)).seen_whole
    assert not content({"rows": (i for i in range(3))}).seen_whole
    assert content({"rows": [1, "a", None, torch.ones(2), np.float64(3)]}).seen_whole


# -- Slices -------------------------------------------------------------------------------


def as_in_a_new_interpreter() -> None:
    torch.manual_seed(67280421310721)
    np.random.seed(5)
    random.seed(5)


def observe(cells: list[str]) -> list[Observed]:
    """Run a page, and note of each cell what the kernel's observer notes."""
    as_in_a_new_interpreter()
    space: dict = {"__name__": "__main__"}
    observed = []
    for source in cells:
        before = Snapshot(names_of_the_page(space), space)
        printed = run(source, space)
        after = Snapshot(names_of_the_page(space), space)
        observed.append(Observed(source, printed=printed, **before.differences(after)))
    return observed


def slices(cells: list[str]) -> list[list[int]]:
    """The slice of each cell. Each is run by itself, and must print what its cells print on the page."""
    observed = observe(cells)
    facts = [Facts(ast.parse(source), seen) for source, seen in zip(cells, observed, strict=True)]
    found = []
    for i in range(len(cells)):
        kept = needed(i, facts)
        imports = [
            ast.unparse(node)
            for source in cells[: i + 1]
            for node in ast.parse(source).body
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        as_in_a_new_interpreter()
        space: dict = {"__name__": "__main__"}
        run("\n".join(imports), space)
        assert [run(cells[j], space) for j in kept] == [observed[j].printed for j in kept]
        found.append(kept)
    return found


def test_a_layer_draws_its_weights():
    page = [
        "import torch\ntorch.manual_seed(0)\nfirst = torch.nn.Linear(2, 2)",
        "unrelated = 1",
        "second = torch.nn.Linear(2, 2)",
        "print(second.weight)",
    ]
    assert slices(page) == [[0], [1], [0, 2], [0, 2, 3]]


def test_a_cell_that_begins_with_a_reseed_needs_no_earlier_draw():
    page = [
        "import torch\ntorch.manual_seed(0)\nprint(torch.rand(1))",
        "def noise():\n    return torch.rand(1)\n\ntorch.manual_seed(1)\nprint(noise())",
        "print(noise())",
    ]
    assert slices(page) == [[0], [1], [1, 2]]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch\ntorch.manual_seed(1)\nx = torch.rand(1)", {"torch"}),
        ("np.random.seed(1)\nrandom.seed(2)\nx = 1", {"numpy", "random"}),
        ("x = torch.rand(1)\ntorch.manual_seed(1)", set()),
        ("def f(a=torch.rand(1)):\n    return a\ntorch.manual_seed(1)", set()),
        ("if x:\n    torch.manual_seed(1)", set()),
        ("torch.manual_seed(int(torch.randint(9, (1,))))", set()),
    ],
)
def test_which_cells_begin_with_a_reseed(source, found):
    assert reseeds(ast.parse(source)) == found


def test_a_cell_that_imports_torch_may_draw_at_once():
    as_in_a_new_interpreter()
    before = Snapshot({}, {})
    del before.generators["torch"]
    assert before.differences(Snapshot({}, {}))["draws"] == []
    torch.rand(1)
    assert before.differences(Snapshot({}, {}))["draws"] == ["torch"]


def test_each_generator_is_a_variable_of_its_own():
    page = [
        "import random\nimport numpy as np\nimport torch",
        "a = np.random.rand(2)",
        "b = torch.rand(2)",
        "print(random.random())",
        "print(np.random.rand(1))",
        "print(torch.rand(1))",
    ]
    assert slices(page)[3:] == [[3], [1, 4], [2, 5]]


def test_dropout_uses_the_stream_and_an_optimizer_changes_the_model_through_another_name():
    page = [
        "import torch\nfrom torch import nn",
        "torch.manual_seed(0)\nmodel = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))",
        "opt = torch.optim.SGD(model.parameters(), lr=0.1)",
        "model(torch.ones(4, 2)).sum().backward()",
        "opt.step()",
        "model.eval()",
        "print(model(torch.ones(1, 2)))",
        "print(opt.param_groups[0]['lr'])",
    ]
    found = slices(page)
    assert found[6] == [1, 2, 3, 4, 5, 6]
    assert found[7] == [1, 2, 3, 4, 7]  # what the optimizer holds reaches the weights, not the mode


def test_a_new_value_makes_the_old_one_needless():
    page = ["x = 1", "y = x", "x = 2\nz = x", "print(x)", "x += y", "print(x)"]
    assert slices(page) == [[0], [0, 1], [2], [2, 3], [0, 1, 2, 4], [0, 1, 2, 4, 5]]


def test_a_value_that_may_not_come_about_replaces_nothing():
    page = ["x = 1", "for _ in range(0):\n    x = 2", "print(x)"]
    assert slices(page)[2] == [0, 1, 2]


def test_a_function_reads_what_its_names_mean_when_it_is_called():
    page = [
        "rate = 1",
        "def step():\n    return rate * 2",
        "run_it = [step]",
        "rate = 5",
        "print(run_it[0]())",
    ]
    assert slices(page)[4] == [0, 1, 2, 3, 4]  # that the list calls nothing, nobody knows


def test_methods_of_the_pages_own_classes_are_functions_too():
    page = [
        "class A:\n    def get(self):\n        return k",
        "class B(A):\n    pass",
        "k = 1",
        "b = {'b': [B()]}",
        "k = 2",
        "print(b['b'][0].get())",
    ]
    assert slices(page)[5] == [0, 1, 2, 3, 4, 5]


def test_a_function_that_was_put_into_an_object_is_followed():
    page = ["hooks = []", "k = 3", "hooks.append(lambda: k)", "print(hooks[0]())"]
    assert slices(page)[3] == [0, 1, 2, 3]


def test_a_function_that_sets_a_global_name():
    page = ["n = 0", "def count():\n    global n\n    n += 1", "count()", "print(n)"]
    assert slices(page)[3] == [0, 1, 2, 3]


def test_an_iterator_is_used_up_by_whoever_mentions_it():
    page = ["rows = iter([1, 2, 3])", "first = next(rows)", "other = 1", "print(next(rows))"]
    assert slices(page)[3] == [0, 1, 3]


@pytest.mark.parametrize(
    "take",
    ["next(rows['first'])", "next(pairs)", "next(doubled)", "take()"],
)
def test_an_iterator_moves_on_under_every_name(take):
    page = [
        "first = iter([1, 2, 3])",
        "rows = {'first': first}\npairs = zip(first)\ndoubled = (2 * i for i in first)",
        "def take():\n    return next(first)",
        take,
        "print(next(first))",
    ]
    assert 3 in slices(page)[4]


def test_an_iterator_goes_through_what_it_was_made_from():
    page = ["k = 1", "d = {'a': 1}", "def f(x):\n    return x * k", "rows = map(f, d.values())", "k = 5", "d['a'] = 2"]
    assert slices([*page, "print(list(rows))"])[6] == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("made", "change", "use"),
    [
        ("bits = np.random.PCG64(1)\nrng = np.random.Generator(bits)", "rng.random()", "bits.random_raw()"),
        ("rng = np.random.default_rng(0)", "more = rng.spawn(1)", "rng.spawn(1)[0].random()"),
        ("rows = [0]\nget = rows.__getitem__", "rows[0] = 5", "get(0)"),
        ("w = torch.ones(1, requires_grad=True)\nh = 2 * w\nh.retain_grad()", "h.sum().backward()", "h.grad"),
        ("@cache\ndef w():\n    return torch.rand(1)", "torch.manual_seed(3)\nw()", "w()"),
        ("_rows = []", "_rows.append(1)", "_rows"),
    ],
)
def test_a_change_counts_although_the_cell_after_it_speaks_of_something_else(made, change, use):
    page = ["from functools import cache\n\nimport numpy as np\nimport torch", made, change, f"print({use})"]
    assert slices(page)[3] == [1, 2, 3]


def test_a_property_reads_what_its_names_mean_when_it_is_asked():
    page = ["class A:\n    @property\n    def p(self):\n        return k\n\na = A()", "k = 2", "print(a.p)"]
    assert slices(page)[2] == [0, 1, 2]


@pytest.mark.parametrize(
    ("defined", "used"),
    [
        ("class A:\n    def __getitem__(self, i):\n        return k\n\na = A()", "a[0]"),
        ("class A:\n    def __init__(self):\n        self.k = k", "A().k"),
        ("@dataclass\nclass A:\n    n: int = field(default_factory=lambda: k)", "A().n"),
        ("a = defaultdict(lambda: k)", "a[0]"),
    ],
)
def test_what_python_calls_by_itself_is_a_function_too(defined, used):
    imports = "from collections import defaultdict\nfrom dataclasses import dataclass, field"
    assert slices([imports, defined, "k = 2", f"print({used})"])[3] == [1, 2, 3]


@pytest.mark.parametrize(
    ("seeded", "used"),
    [
        ("torch.manual_seed(3)", "with torch.random.fork_rng():\n    print(torch.rand(1))"),
        ("np.random.seed(3)", "s = np.random.get_state()\nprint(np.random.rand(1))\nnp.random.set_state(s)"),
        ("random.seed(3)", "r = random.Random()\nr.setstate(random.getstate())\nprint(r.random())"),
        ("torch.manual_seed(7)", "print(torch.initial_seed())"),
    ],
)
def test_who_puts_a_state_back_has_used_it(seeded, used):
    assert slices(["import random\n\nimport numpy as np\nimport torch", seeded, used])[2] == [1, 2]


def test_a_name_that_is_deleted_must_be_there():
    assert slices(["x = 1", "y = 2\ndel x", "print(y)"])[2] == [0, 1, 2]


def test_names_of_a_loop_or_a_function_are_not_those_of_the_page():
    page = ["i = 5", "x = 7", "def f(x):\n    return x\nfor i in range(2):\n    print(i, f(i))"]
    assert slices(page)[2] == [2]


def test_a_setting_belongs_to_every_later_cell():
    page = [
        "import numpy as np\nimport torch",
        "np.set_printoptions(precision=2)",
        "torch.set_default_dtype(torch.float64)",
        "print(np.array([1 / 3]), torch.ones(1))",
    ]
    try:
        assert slices(page)[3] == [1, 2, 3]
    finally:
        np.set_printoptions(precision=8)
        torch.set_default_dtype(torch.float32)


def test_a_setting_made_where_the_library_is_imported_is_taken_from_the_code():
    page = [
        "import decimal\ndecimal.getcontext()",
        "import matplotlib.pyplot as plt\nplt.rcParams['lines.linewidth'] = 5",
        "import os\nos.environ['A'] += 'b'",
        "import torch\ntorch.set_num_threads(1)",
        "from demo import rows\n\nx = [rows]\nx[0] = rows[1]\n(x or rows).n = 1",
    ]
    facts = [Facts(ast.parse(source), Observed(source)) for source in page]
    assert [cell.sets for cell in facts] == [True, True, True, False, False]


# -- The package --------------------------------------------------------------------------

MODULES = {
    "__init__": "",
    "base": '''
        """The base."""

        import math
        from collections import OrderedDict as Ordered

        # A comment that belongs to the constant.
        SIZE = 4
        HALF, WHOLE = 2, SIZE


        def _double(x: "Whatever") -> float:
            return 2 * x


        class Base:
            """Has a size."""

            size = SIZE

            def twice(self):
                # a comment inside
                return _double(self.size) + math.floor(0.5)


        def unneeded():
            return Ordered()
    ''',
    "other": """
        from dataclasses import dataclass
        from functools import wraps

        import numpy as nn

        from demo.base import Base, _double as double
        from demo.nets import Net as Network


        def noisy(function):
            @wraps(function)
            def inner(*arguments):
                return function(*arguments)

            return inner


        class Derived(Base):
            @noisy
            def thrice(self, scale: "int" = double(1)):
                double_of = double(self.size)
                return double_of + scale + nn.zeros(1).sum()


        @dataclass
        class Point:
            x: Network | None = None


        def lazily():
            from demo import nets
            from demo.base import (
                HALF,
            )

            return nets.width(HALF)
    """,
    "nets": """
        from torch import nn


        class Net(nn.Module):
            pass


        def width(x):
            return nn.Linear(x, 1).in_features
    """,
    "again": "from demo.base import Base as Passed\n",
    "bad": """
        import inspect
        from pathlib import Path

        from demo import base

        FOLDER = Path(__file__).parent


        def folder():
            return FOLDER


        def source():
            return inspect.getsource(folder)


        def whole():
            return vars(base)


        def sets():
            global FOLDER
            FOLDER = None


        def documented():
            return __doc__


        def misspelt():
            return nowhere
    """,
    "doing": "ROWS = []\nROWS.append(1)\n",
}


@pytest.fixture
def package(tmp_path) -> Package:
    folder = tmp_path / "src" / "demo"
    folder.mkdir(parents=True)
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text).lstrip("\n"), "utf-8")
    return Package(tmp_path / "src", "demo")


def code_for(package: Package, *names: str, taken: dict | None = None) -> str:
    """What is copied for some names, with the imports that it needs."""
    targets = {name.rpartition(".")[2]: package.resolve(*name.rsplit(".", 1), "here") for name in names}
    inlined = inline(package, targets.values(), {**(taken or {}), **targets})
    imports = [library.statement(name) for library, name in sorted(inlined.libraries, key=str)]
    return "\n".join([*imports, *inlined.blocks])


def test_a_class_comes_with_its_base_in_another_module_helpers_and_constants(package):
    code = code_for(package, "demo.other.Derived")
    space: dict = {}
    exec(code, space)
    assert (space["Derived"]().thrice(), space["Derived"]().twice()) == (10.0, 8)
    assert "# A comment that belongs to the constant.\nSIZE = 4\n" in code
    assert "        # a comment inside\n" in code
    assert "unneeded" not in code
    assert "Ordered" not in code
    assert "demo" not in code
    assert code.index("SIZE = 4") < code.index("class Base") < code.index("class Derived")


def test_a_name_that_only_an_annotation_uses_is_copied_too(package):
    code = code_for(package, "demo.other.Point")
    assert "class Net(" in code
    assert "    x: Net | None = None" in code
    exec(code, {"__name__": "__main__"})


def test_an_import_inside_a_function_and_a_module_as_a_whole_are_resolved(package):
    code = code_for(package, "demo.other.lazily")
    space: dict = {}
    exec(code, space)
    assert space["lazily"]() == 2
    assert "    return width(HALF)\n" in code
    assert code.count("HALF, WHOLE = 2, SIZE") == 1


def test_an_import_is_followed_through_another_module(package):
    assert code_for(package, "demo.again.Passed").count("class Base:") == 1


def test_two_libraries_under_one_name_get_two(package):
    code = code_for(package, "demo.other.Derived", "demo.nets.Net")
    assert "import numpy as nn" in code or "import numpy as numpy_nn" in code
    exec(code, space := {"__name__": "__main__"})
    assert (space["Derived"]().thrice(), issubclass(space["Net"], torch.nn.Module)) == (10.0, True)


def test_a_name_that_the_page_uses_for_something_else_is_written_differently(package):
    code = code_for(package, "demo.other.Derived", taken={"SIZE": None, "_double": None, "math": None})
    space: dict = {}
    exec(code + "\nSIZE = _double = math = None\n", space)
    assert space["Derived"]().twice() == 8
    assert "base_SIZE = 4" in code
    assert "def base__double(" in code
    assert "import math as math_math" in code


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("demo.bad.folder", r"bad\.py:6: FOLDER cannot go into a program: it uses __file__"),
        ("demo.bad.source", "source cannot go into a program: it uses getsource"),
        ("demo.bad.whole", "a program cannot hold base, a module as a whole"),
        ("demo.bad.sets", "sets cannot go into a program: it uses global FOLDER"),
        ("demo.bad.documented", "documented cannot go into a program: it uses __doc__"),
        ("demo.bad.misspelt", "misspelt cannot go into a program: it uses nowhere"),
        ("demo.doing.ROWS", r"doing\.py:2: a module that goes into programs may only import and define; found: ROWS"),
        ("demo.base.Missing", "here: demo.base has no Missing"),
    ],
)
def test_what_cannot_be_copied_is_an_error(package, name, words):
    with pytest.raises(ProgramError, match=words):
        code_for(package, name)


def test_a_page_that_takes_a_name_of_python_is_told_so(package):
    (package.source / "demo/sums.py").write_text("def total(rows):\n    return sum(rows)\n")
    with pytest.raises(ProgramError, match="total needs Python's own sum, but the page gives that name"):
        code_for(package, "demo.sums.total", taken={"sum": None})


# -- Programs -----------------------------------------------------------------------------


# -- Methods that fetch their code when they are called -----------------------------------

SAVING = """
    from pathlib import Path

    from demo.base import Base


    def noted(function):
        return function


    # The class.
    class Saved(Base):
        # The first.
        def save(self, path: Path):
            from demo.files import write

            write(self, path)
            # written

        # -- Numbers

        size = 1

        # Reads.
        # Really.
        @classmethod
        def read(cls, path: Path):
            from demo.files import read

            return read(path)

        def use(self):
            return self.size

        # -- More files

        # Checks.
        def check(self, path):
            from demo.files import Checked

            return Checked(path).check()


    class Bare:
        @property
        def saved(self):
            from demo.base import Base
            return Base


    class Documented:
        \"\"\"Saves.\"\"\"

        def save(self):
            from demo.base import SIZE
            return SIZE


    class ByPython:
        def __len__(self):
            from demo.base import SIZE
            return SIZE

        @noted
        def ruled(self):
            from demo.base import HALF
            return HALF

        def plain(self):
            import math
            return math
"""
FILES = """
    import json

    from demo.saving import Saved


    def write(thing, path):
        path.write_text(json.dumps(thing.size))


    def read(path):
        return getattr(Saved(), "check")(path)


    class Checked:
        def __init__(self, path):
            self.path = path

        def check(self):
            return self.path.exists()

        def other(self):
            from demo.nets import width

            return width
"""


@pytest.fixture
def saving(package) -> Package:
    (package.source / "demo/saving.py").write_text(textwrap.dedent(SAVING), "utf-8")
    (package.source / "demo/files.py").write_text(textwrap.dedent(FILES), "utf-8")
    return package


def class_text(code: str, name: str) -> str:
    """The text of a class in a program."""
    return re.search(rf"^class {name}\b.*\n(?:(?: .*)?\n)*", code, re.MULTILINE)[0].rstrip() + "\n"


def methods_of(code: str) -> set[str]:
    """The methods of a program's classes."""
    classes = [node for node in ast.parse(code).body if isinstance(node, ast.ClassDef)]
    return {f"{node.name}.{part.name}" for node in classes for part in node.body if isinstance(part, ast.FunctionDef)}


def test_a_method_that_nobody_calls_is_left_out_with_all_that_it_brings(saving):
    code = code_for(saving, "demo.saving.Saved")
    assert class_text(code, "Saved") == textwrap.dedent(
        """
        class Saved(Base):
            # -- Numbers

            size = 1

            def use(self):
                return self.size
        """
    ).lstrip("\n")
    assert [word for word in ("Path", "json", "def read", "Checked") if word in code] == []
    exec(code, space := {})
    assert space["Saved"]().use() == 1


@pytest.mark.parametrize(
    ("cell", "held"),
    [
        ("Saved().save(path)", {"save"}),
        ("write = Saved().save", {"save"}),
        ("save = Saved()", {"save"}),
        ("getattr(Saved(), 'save')(path)", {"save"}),
        ("print('save it')", set()),
        ("Saved.check(1, 2)", {"check"}),
        ("Saved.read(path)", {"read", "check"}),  # which asks for the third by its name
        ("Saved().other", set()),
        ("Saved.check(1, 2).other", {"check", "other"}),
    ],
)
def test_a_method_is_held_if_its_name_occurs_in_a_cell_or_in_what_the_program_holds(saving, cell, held):
    page = page_of(f"from demo.saving import Saved\n\npath = None\n{cell}")
    text = program(saving, page).text
    optional = {"Saved.save", "Saved.read", "Saved.check", "Checked.other"}
    assert methods_of(text) & optional == {name for name in optional if name.partition(".")[2] in held}
    assert ("import json" in text) == ("save" in held)


def test_a_class_that_loses_its_whole_body_is_still_one(saving):
    code = code_for(saving, "demo.saving.Bare", "demo.saving.Documented")
    assert class_text(code, "Bare") == "class Bare:\n    pass\n"
    assert class_text(code, "Documented") == 'class Documented:\n    """Saves."""\n'
    exec(code, space := {})
    assert space["Bare"]() is not None


def test_what_python_or_a_decorator_may_call_is_never_left_out(saving):
    code = code_for(saving, "demo.saving.ByPython")
    exec(code, space := {})
    thing = space["ByPython"]()
    assert (len(thing), thing.ruled(), thing.plain()) == (4, 2, math)


def test_a_program_says_what_it_is_and_runs(package):
    page = page_of(
        "import math\nfrom demo.base import Base  # the base\nfrom bookkit import verify\n\nthing = Base()",
        "verify('size', math.floor(thing.twice()))",
    )
    found = program(package, page)
    assert found.text.startswith('# Cell 2 of the page "A page" of The Book, as a program that runs alone:\n')
    assert "install" not in found.text
    assert found.text.endswith(
        f"# -- Cell 1 {'-' * 60}\n\nthing = Base()\n\n\n# -- Cell 2 {'-' * 60}\n\nprint(math.floor(thing.twice()))\n"
    )
    assert run(found.text, {}) == "8\n"
    assert (found.file, found.printed) == ("02-size.py", "0\n1\n")


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ('verify("a", 1 + 1)', "2\n"),
        ('verify(\n    "a",  # the id\n    [\n        (1, 2),\n    ],\n)', "[(1, 2)]\n"),
        ('verify("a", (1 + 1) * 2, mistaken = 3 + 3)', "4 6\n"),
        ('t = verify("a", 5)\nprint(t)', "5\n5\n"),
        ('print([verify("a", 5), "é"], "é", verify("b", 6))', "5\n6\n[5, 'é'] é 6\n"),
        ('if True:\n    verify("a", 5)', "5\n"),
        ('def f():\n    return verify("a", 5)\n\n\nx = f()', "5\n"),
        ('verify("a", verify("b", 5))', "5\n5\n"),
        ('verify("a", computed=7)', "7\n"),
    ],
)
def test_verify_becomes_a_print_wherever_it_stands(package, source, printed):
    found = program(package, page_of("from bookkit import verify\n" + source))
    assert "verify" not in found.text
    assert run(found.text, {}) == printed


def test_a_text_keeps_its_empty_lines(package):
    page = page_of("x = 1\n\n\nimport math\n\n\nprint(x)", 'print("""a\n\n\n\nb""")')
    assert "x = 1\n\n\nprint(x)\n" in program(package, page, 0).text
    assert run(program(package, page, 1).text, {}) == "a\n\n\n\nb\n"


def test_a_name_of_the_package_takes_none_that_python_or_a_program_has(package):
    text = "def sum(x):\n    return 'own'\n\n\ndef printed(x):\n    return sum(x)\n"
    (package.source / "demo/own.py").write_text(text)
    head = "from bookkit import verify\nfrom demo.own import printed as total\n"
    page = page_of(head + "x = verify('a', total([1])), sum([1])\nprint(x)")
    assert run(program(package, page).text, {}) == "own\n('own', 1)\n"


def test_a_value_at_the_end_is_printed_and_a_figure_saved(package):
    page = page_of(
        "x = 1, 2\nx",
        "1, 'a'",
        "class F:\n    def savefig(self, name):\n        print(name)\n\nF()  # drawn",
        "F() or None",
        shown=("value", "value", "figure", "figure"),
        options=("", "", "---\nmystnb:\n  figure:\n    name: fig-one\n---\n", ""),
    )
    assert run(program(package, page, 0).text, {}) == "(1, 2)\n"
    assert run(program(package, page, 1).text, {}) == "(1, 'a')\n"
    assert run(program(package, page, 2).text, {}) == "fig-one.png\n"
    assert run(program(package, page, 3).text, {}) == "fig-one.png\none.png\n"


def test_a_program_that_needs_more_says_how_to_install_it(package):
    text = program(
        package, page_of("import pytest\nimport torch\nfrom yaml import load\n\nprint(pytest, torch, load)")
    ).text
    versions = rf"pytest=={pytest.__version__} pyyaml==[\d.]+ torch=={torch.__version__.partition('+')[0]}"
    assert re.search(f"# Install what it imports:\n#     python -m pip install {versions}\n", text)


def test_a_tag_gives_a_program_all_earlier_cells(package):
    page = page_of("x = 1", "y = 2", "print(y)", options=("", "", ":tags: [whole-page]\n\n"))
    found = program(package, page)
    assert ("x = 1" in found.text, "x = 1" in found.short.text) == (True, False)
    assert (found.printed, found.short.printed) == ("0\n1\n2\n", "1\n2\n")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import demo\ndemo", "line 12: programs copy what they need from demo: name it, as in `from demo.module"),
        ("import demo.base as b\nb", "name it"),
        ("from demo.base import *\nSIZE", "name it"),
        ("from demo import base\nbase.SIZE", "import what you need of base, not the module as a whole"),
        ("from demo.base import missing\nmissing", "line 12: demo.base has no missing"),
        ("def f():\n    from demo.base import SIZE\n\nf()", "line 13: import from demo at the top level of the cell"),
        ("import os.path\nos", "write `from a import b`, `import a` or `import a.b as c`"),
        ("import os; x = os.sep", "give this statement a line of its own: import os"),
        ("import pytest, _pytest, nowhere\nnowhere", "it imports nowhere, which is not installed"),
        (
            'from bookkit import verify\nverify("a"  # the id\n    , 5)',
            r'write this plainly, .*: verify\("a"  # the id',
        ),
        ("%matplotlib inline\nx x", "IPython's commands"),
    ],
)
def test_a_cell_that_cannot_become_a_program_is_an_error(package, source, words):
    with pytest.raises(ProgramError, match=words):
        program(package, page_of(source))


def test_what_a_last_line_shows():
    assert what_is_shown(None) == "nothing"
    assert what_is_shown(0) == "value"


def test_a_picture_is_what_a_figure_shows_however_often_it_was_drawn():
    def drawn(height=2.0, word="a", colour="blue", layout="constrained"):
        figure = Figure(layout=layout)
        axes = figure.subplots()
        axes.bar([1, 2], [1.0, height], color=colour)
        axes.set_title(word)
        figure.savefig(io.BytesIO(), format="svg")
        return figure

    figure = drawn()
    first = picture_of(figure)
    figure.savefig(io.BytesIO(), format="pdf")
    assert picture_of(figure) == first
    assert picture_of(drawn()) == first
    others = [picture_of(drawn(**change)) for change in ({"height": 2.5}, {"word": "b"}, {"colour": "red"})]
    assert len({first, *others}) == 4
