"""The checker: a correct solution passes every case, and each known mistake is recognised by its name.

The mutants are a student's solution, written apart from the book's and from the checker's, with one line changed.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from bertbook import __main__ as command
from bertbook.by_hand import bert_fine_tuning_step
from bertbook.check import EXERCISES, check, examine, examine_file
from bertbook.check.load import CannotCheck, describe_error, load_solution
from bertbook.check.step import MISTAKES
from bertbook.check.toy import ATTENTION_MISTAKES, CLASSIFIER_MISTAKES, COUNT_MISTAKES, LOOP_MISTAKES
from bertbook.findings import Finding, Mistake, Report, recognise
from bertbook.tiny import TinyBertForClassification, TinySelfAttn
from bertbook.training import train
from book_paths import ROOT

STUDENT = """
import numpy as np

def bert_fine_tuning_step(hidden_states, labels, classifier_W, classifier_b, learning_rate):
    arrays = dict(hidden_states=hidden_states, classifier_W=classifier_W, classifier_b=classifier_b)
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(name)
    if hidden_states.ndim != 3 or hidden_states.size == 0:
        raise ValueError("hidden_states")
    if labels.dtype.kind != "i" or labels.shape != hidden_states.shape[:1]:
        raise ValueError("labels")
    if classifier_W.shape[0] != hidden_states.shape[2]:
        raise ValueError("classifier_W")
    if classifier_b.shape != classifier_W.shape[1:]:
        raise ValueError("classifier_b")
    if labels.min() < 0 or labels.max() >= len(classifier_b):
        raise ValueError("labels")
    if not 0 < learning_rate < np.inf:
        raise ValueError("learning_rate")
    B = len(labels)
    x = hidden_states[:, 0, :]
    z = x @ classifier_W + classifier_b
    z = z - z.max(axis=1, keepdims=True)
    e = np.exp(z)
    p = e / e.sum(axis=1, keepdims=True)
    losses = [np.log(e[i].sum()) - z[i, labels[i]] for i in range(B)]
    loss = sum(losses) / B
    g = p.copy()
    for i in range(B):
        g[i, labels[i]] -= 1
    g = g / B
    W = classifier_W - learning_rate * x.T @ g
    b = classifier_b - learning_rate * g.sum(axis=0)
    return {"classifier_W": W, "classifier_b": b, "loss": loss}
"""
STABLE_LOSS = "losses = [np.log(e[i].sum()) - z[i, labels[i]] for i in range(B)]"
PLAIN_LOSS = "losses = [-np.log(p[i, labels[i]]) for i in range(B)]"
MAXIMUM = "    z = z - z.max(axis=1, keepdims=True)\n"
RETURN = 'return {"classifier_W": W, "classifier_b": b, "loss": loss}'


def student(*changes: tuple[str, str]):
    source = STUDENT
    for old, new in changes:
        assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in the student's solution"
        source = source.replace(old, new)
    module = {}
    exec(source, module)
    return module["bert_fine_tuning_step"]


MUTANTS = [
    ("no maximum subtracted", (MAXIMUM, "")),
    ("no maximum subtracted", (MAXIMUM, ""), (STABLE_LOSS, PLAIN_LOSS)),
    ("one maximum for all rows", ("z.max(axis=1, keepdims=True)", "z.max()")),
    ("logarithm of a probability that was rounded to 0", (STABLE_LOSS, PLAIN_LOSS)),
    ("small number added inside the logarithm", (STABLE_LOSS, PLAIN_LOSS.replace("]])", "]] + 1e-12)"))),
    (
        "small number added inside the logarithm",
        (STABLE_LOSS, PLAIN_LOSS.replace("p[i, labels[i]]", "max(p[i, labels[i]], 1e-9)")),
    ),
    ("missing division by B", ("g = g / B", "g = g")),
    ("sum instead of mean loss", ("sum(losses) / B", "sum(losses)")),
    ("minus missing from the loss", ("sum(losses) / B", "-sum(losses) / B")),
    (
        "loss after the update",
        (RETURN, f"loss = np.mean(F(x @ W + b, labels))\n    {RETURN}"),
        ("import numpy as np\n", LOSS_OF_LOGITS := (
            "import numpy as np\n\ndef F(z, labels):\n    z = z - z.max(axis=1, keepdims=True)\n"
            "    return np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(z)), labels]\n"
        )),
    ),
    ("wrong position: the last one", ("hidden_states[:, 0, :]", "hidden_states[:, -1, :]")),
    ("wrong position: the mean over all of them", ("hidden_states[:, 0, :]", "hidden_states.mean(axis=1)")),
    ("first sequence instead of first position", ("hidden_states[:, 0, :]", "hidden_states[0]")),
    ("bias left out of the logits", ("x @ classifier_W + classifier_b", "x @ classifier_W")),
    ("wrong sign of the update", ("classifier_W - learning", "classifier_W + learning"),
     ("classifier_b - learning", "classifier_b + learning")),
    ("wrong sign of the update", ("g = g / B", "g = -g / B")),
    ("gradient without the one-hot labels", ("g[i, labels[i]] -= 1", "pass")),
    ("bias gradient averaged instead of summed", ("g.sum(axis=0)", "g.mean(axis=0)")),
    ("bias not updated", ("classifier_b - learning_rate * g.sum(axis=0)", "classifier_b.copy()")),
    ("learning rate left out", ("learning_rate * x.T", "x.T"), ("learning_rate * g", "g")),
    ("gradients returned instead of parameters", ("classifier_W - learning_rate * ", ""),
     ("classifier_b - learning_rate * ", "")),
    ("softmax over the batch", ("e.sum(axis=1, keepdims=True)", "e.sum(axis=0)"), (STABLE_LOSS, PLAIN_LOSS),
     ("z.max(axis=1, keepdims=True)", "z.max(axis=0)")),
    ("softmax over the whole matrix", ("e.sum(axis=1, keepdims=True)", "e.sum()"), (STABLE_LOSS, PLAIN_LOSS),
     ("z.max(axis=1, keepdims=True)", "z.max()")),
    ("update applied twice", (RETURN, f"W, b = 2 * W - classifier_W, 2 * b - classifier_b\n    {RETURN}")),
]  # fmt: skip


def test_a_correct_solution_passes_every_case():
    report = examine("by_hand", student())
    assert report.passed
    assert report.failed_cases == []
    assert str(report).endswith("26 of 26 cases passed.")
    assert "Mistake" not in str(report)


@pytest.mark.parametrize(("name", "changes"), [(name, changes) for name, *changes in MUTANTS])
def test_each_mistake_is_recognised_by_name(name, changes):
    report = examine("by_hand", student(*changes))
    assert not report.passed
    names = [mistake.name for mistake in report.mistakes]
    # Logs of rounded probabilities come along where a softmax over the wrong axis is written in the usual way.
    assert names[0] == name
    assert names[1:] in ([], ["logarithm of a probability that was rounded to 0"])
    assert f"Mistake: {name}." in str(report)
    assert "FAILED: " in str(report)


def test_every_known_mistake_has_a_mutant():
    assert {mistake.name for mistake in MISTAKES} == {name for name, *_ in MUTANTS}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_says_why(mistake):
    assert mistake.why.endswith((".", ")"))
    assert mistake.variants


def test_two_mistakes_at_once_are_both_named():
    report = examine("by_hand", student(("g = g / B", "g = g"), ("sum(losses) / B", "sum(losses)")))
    assert [m.name for m in report.mistakes] == ["sum instead of mean loss", "missing division by B"]


def test_three_mistakes_at_once_are_all_named():
    changes = [("g = g / B", "g = g"), (MAXIMUM, ""), ("g[i, labels[i]] -= 1", "pass")]
    names = [m.name for m in examine("by_hand", student(*changes)).mistakes]
    assert names == ["gradient without the one-hot labels", "missing division by B", "no maximum subtracted"]


def test_what_no_known_mistake_explains_is_not_given_a_name():
    report = examine("by_hand", student(("sum(losses) / B", "sum(losses) / B + 0.125")))
    assert report.mistakes == []
    assert "No mistake that this check knows explains all of this.\nBegin with the first" in str(report)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (("W = classifier_W - learning_rate * x.T @ g", "classifier_W -= learning_rate * x.T @ g; W = classifier_W"),
         ["classifier_W"]),
        (("W = classifier_W - learning_rate * x.T @ g", "W = classifier_W - learning_rate * x.T @ g; labels += 1"),
         ["labels"]),
        (("x = hidden_states[:, 0, :]", "x = hidden_states[:, 0, :].copy(); hidden_states *= 2"), ["hidden_states"]),
    ],
)  # fmt: skip
def test_mutated_inputs_are_recognised(change, names):
    report = examine("by_hand", student(change))
    assert report.failed_cases == ["the arguments are left as they were"]
    assert [m.name for m in report.mistakes] == ["mutated inputs"]
    assert f"{', '.join(names)} changed" in str(report)


@pytest.mark.parametrize(
    ("result", "got", "name"),
    [
        ("(W, b, loss)", "a tuple", "returns a tuple"),
        ("None", "None", "nothing returned"),
        ('{"W": W, "b": b, "loss": loss}', "a dict with the keys W, b, loss", "missing key"),
        ('{"classifier_W": W, "classifier_b": b}', "a dict with the keys classifier_W, classifier_b", "missing key"),
        (RETURN[7:].replace("loss}", "losses}"), "float64 of shape (1,)", "wrong shape or kind of loss"),
        (RETURN[7:].replace(": W,", ": W.T,"), "float64 of shape (3, 2)", "wrong shape or kind of classifier_W"),
        (RETURN[7:].replace(": b,", ": None,"), "object of shape ()", "wrong shape or kind of classifier_b"),
    ],
)
def test_the_form_of_the_result_comes_first(result, got, name):
    report = examine("by_hand", student((RETURN, f"return {result}")))
    assert [finding.got for finding in report.findings] == [got]
    assert [mistake.name for mistake in report.mistakes] == [name]


def test_a_ragged_result_is_no_crash_of_the_checker():
    report = examine(
        "by_hand", lambda *arguments: {key: [[1], [1, 2]] for key in ("classifier_W", "classifier_b", "loss")}
    )
    assert not report.passed


def test_input_that_is_not_refused_is_named():
    lenient = student(("if not 0 < learning_rate < np.inf:", "if learning_rate == 0:"))
    report = examine("by_hand", lenient)
    assert report.failed_cases == ["refuses a negative learning rate", "refuses a learning rate of NaN"]
    assert [m.name for m in report.mistakes] == ["bad input not refused with its name"]
    assert "expected: a ValueError whose message says learning_rate\n  got: no error" in str(report)


def test_a_refusal_must_be_a_value_error_that_names_the_argument():
    for raised, got in (("ValueError('bad')", "ValueError: bad"), ("KeyError('learning_rate')", "KeyError")):
        report = examine("by_hand", student(('ValueError("learning_rate")', raised)))
        assert "refuses a learning rate of zero" in report.failed_cases
        assert f"  got: {got}" in str(report)


def test_the_report_is_plain_text_and_the_same_each_time():
    texts = [str(examine("by_hand", student(("g = g / B", "g = g")))) for _ in range(2)]
    assert texts[0] == texts[1]
    assert texts[0].isascii()
    assert "\x1b" not in texts[0]
    assert max(map(len, texts[0].splitlines())) <= 88
    assert "  expected: classifier_W[" in texts[0]


# Files


def write(folder: Path, text: str, name: str = "my_step.py") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_gives_0_1_or_2(folder, capsys):
    assert command.main(["check", "by_hand", write(folder, STUDENT)]) == 0
    assert capsys.readouterr().out.startswith("Checking by_hand: bert_fine_tuning_step in my_step.py.\npassed: one seq")
    assert command.main(["check", "by_hand", write(folder, STUDENT.replace("g = g / B", "g = g"))]) == 1
    assert "Mistake: missing division by B." in capsys.readouterr().out
    assert command.main(["check", "by_hand", "none.py"]) == 2
    assert capsys.readouterr().out == "There is no file none.py. Is this its folder?\n"


@pytest.mark.parametrize(("arguments", "status"), [([], 0), (["--help"], 0), (["check"], 2), (["chekc", "a", "b"], 2)])
def test_help_lists_every_exercise(arguments, status, capsys):
    assert command.main(arguments) == status
    out = capsys.readouterr().out
    assert out.startswith("Usage: python -m bertbook check EXERCISE FILE\n")
    for name, exercise in EXERCISES.items():
        assert f"  {name}: define {exercise.solution}\n" in out


def test_the_module_runs_as_a_program_without_torch(folder):
    write(folder, STUDENT)
    program = (
        "import sys, runpy\n"
        "sys.argv = ['bertbook', 'check', 'by_hand', 'my_step.py']\n"
        "try:\n    runpy.run_module('bertbook', run_name='__main__')\n"
        "finally:\n    print('torch' in sys.modules)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert run.stdout.endswith("26 of 26 cases passed.\nFalse\n")
    assert run.stderr == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def bert(:\n", "my_step.py is not Python in line 1: def bert(:\nSyntaxError: invalid syntax"),
        ("x = 1\n  y = 2\n", "my_step.py is not Python in line 2: y = 2\nIndentationError: unexpected indent"),
        ("x = 1\ny = x / 0\n", "my_step.py does not run to its end.\nZeroDivisionError: division by zero, "
         "in line 2 of my_step.py: y = x / 0"),
        ("import sys\nsys.exit()\n", "my_step.py ends the program before it can be checked."),
        ("def step(): ...\n", "my_step.py does not define bert_fine_tuning_step. It defines step."),
        ("import numpy as np\n", "my_step.py does not define bert_fine_tuning_step. It defines no function or class."),
        ("bert_fine_tuning_step = 3\n", "bert_fine_tuning_step must be callable, got 3"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_checked_says_what_to_do(folder, capsys, text, message):
    assert command.main(["check", "by_hand", write(folder, text)]) == 2
    assert capsys.readouterr().out.startswith(message)


def test_other_paths_are_explained(folder):
    with pytest.raises(CannotCheck, match=r"my\.ipynb is a notebook\. Check it from one of its own cells"):
        load_solution("my.ipynb")
    with pytest.raises(CannotCheck, match="is a folder; name the Python file in it"):
        load_solution(str(folder))
    (folder / "bad.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(CannotCheck, match=r"bad\.py is not Python"):
        load_solution("bad.py")


def test_unknown_exercises_get_a_suggestion():
    with pytest.raises(CannotCheck, match="There is no exercise milestone1; did you mean milestone_1"):
        examine_file("milestone1", "x.py")
    with pytest.raises(CannotCheck, match="there are by_hand, milestone_1, milestone_2, milestone_3"):
        examine("zzz", print)
    with pytest.raises(CannotCheck, match="train belongs to milestone_3, not to by_hand"):
        examine("by_hand", bert_fine_tuning_step, train=train)


def test_an_error_in_their_code_is_reported_with_their_line(folder):
    text = STUDENT.replace("x.T @ g", "x @ g")
    report = examine_file("by_hand", write(folder, text))
    line = text[: text.index("x @ g")].count("\n") + 1
    expected = f"in line {line} of my_step.py: W = classifier_W - learning_rate * x @ g"
    assert report.findings[0].got.startswith("ValueError: matmul: ")
    assert report.findings[0].got.endswith(expected)
    assert not report.passed


def test_a_file_may_import_what_stands_beside_it_and_leaves_no_trace(folder):
    write(folder, STUDENT, "helper_of_mine.py")
    path, modules = list(sys.path), set(sys.modules)
    write(folder, "from helper_of_mine import bert_fine_tuning_step\nmy_own = 1\n")
    assert examine_file("by_hand", "my_step.py").passed
    assert sys.path == path
    assert set(sys.modules) - modules <= {"helper_of_mine"}
    sys.modules.pop("helper_of_mine")


def test_errors_without_a_frame_of_the_reader():
    assert describe_error(ValueError()) == "ValueError"
    assert describe_error(ValueError("x")) == "ValueError: x"


def test_check_prints_and_returns_nothing(capsys):
    assert check("by_hand", bert_fine_tuning_step) is None
    assert capsys.readouterr().out.startswith("Checking by_hand: bert_fine_tuning_step.\n")


# The milestones


def attention_mutant(**parts):
    """A student's attention with one fault."""
    options = {"bias": False, "scale": 8**0.5, "axis": -1, "split": None, "merge": None, "causal": False, "out": True}
    options |= {"order": (0, 1, 2)} | parts

    class TinySelfAttn(nn.Module):
        def __init__(self, hidden_size, num_heads):
            super().__init__()
            self.H = num_heads
            self.qkv = nn.Linear(hidden_size, 3 * hidden_size, bias=options["bias"])
            self.proj = nn.Linear(hidden_size, hidden_size)

        def forward(self, x):
            B, T, D = x.shape
            chunks = self.qkv(x).split(D, dim=-1)
            if options["split"]:
                q, k, v = (chunks[i].reshape(B, self.H, T, -1) for i in options["order"])
            else:
                q, k, v = (chunks[i].reshape(B, T, self.H, -1).permute(0, 2, 1, 3) for i in options["order"])
            scores = torch.einsum("bhid,bhjd->bhij", q, k) / options["scale"]
            if options["causal"]:
                scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
            weights = F.softmax(scores, dim=options["axis"])
            heads = weights @ v
            merged = heads.reshape(B, T, D) if options["merge"] else heads.permute(0, 2, 1, 3).reshape(B, T, D)
            return self.proj(merged) if options["out"] else merged, weights

    return TinySelfAttn


ATTENTION_MUTANTS = [
    ("causal mask left in", {"causal": True}),
    ("softmax over the wrong axis", {"axis": -2}),
    ("softmax over the wrong axis", {"axis": 1}),
    ("missing scaling", {"scale": 1}),
    ("wrong scaling", {"scale": 32**0.5}),
    ("wrong scaling", {"scale": 8}),
    ("wrong view order when splitting", {"split": True}),
    ("wrong view order when merging", {"merge": True}),
    ("output projection left out", {"out": False}),
    ("chunks in another order", {"order": (1, 0, 2)}),
    ("chunks in another order", {"order": (2, 0, 1)}),
]


@pytest.mark.parametrize(("name", "parts"), ATTENTION_MUTANTS)
def test_mistakes_of_milestone_1_are_recognised(name, parts):
    report = examine("milestone_1", attention_mutant(**parts))
    assert not report.passed
    assert [mistake.name for mistake in report.mistakes] == [name]


def test_every_mistake_of_milestone_1_has_a_mutant():
    assert {mistake.name for mistake in ATTENTION_MISTAKES} == {name for name, _ in ATTENTION_MUTANTS}


def test_two_mistakes_of_milestone_1_are_both_named():
    names = [m.name for m in examine("milestone_1", attention_mutant(causal=True, scale=1)).mistakes]
    assert names == ["causal mask left in", "missing scaling"]


@pytest.mark.parametrize("attention_class", [attention_mutant(), TinySelfAttn])
def test_correct_attention_passes(attention_class):
    report = examine("milestone_1", attention_class)
    assert report.passed, str(report)
    assert report.mistakes == []
    assert report.findings[-1].case == "the formula, with your weights"


class ThreeProjections(TinySelfAttn):
    def __init__(self, hidden_size, num_heads):
        super().__init__(hidden_size, num_heads)
        del self.qkv
        self.projections = nn.ModuleList(nn.Linear(hidden_size, hidden_size, bias=False) for _ in range(3))

    def qkv(self, x):
        return torch.cat([projection(x) for projection in self.projections], dim=-1)


def test_three_projections_are_held_against_the_formula_in_any_order():
    report = examine("milestone_1", ThreeProjections)
    assert report.passed, str(report)

    class KeyFirst(ThreeProjections):
        def qkv(self, x):
            key, query, value = super().qkv(x).chunk(3, dim=-1)
            return torch.cat([query, key, value], dim=-1)

    assert examine("milestone_1", KeyFirst).passed

    class Unscaled(ThreeProjections):
        def qkv(self, x):
            query, key, value = super().qkv(x).chunk(3, dim=-1)
            return torch.cat([8**0.5 * query, key, value], dim=-1)

    report = examine("milestone_1", Unscaled)
    assert report.failed_cases == ["the formula, with your weights"]
    assert [m.name for m in report.mistakes] == ["missing scaling"]


def test_attention_that_cannot_be_held_against_the_formula_has_not_passed():
    class Scaled(TinySelfAttn):
        def __init__(self, hidden_size, num_heads):
            super().__init__(hidden_size, num_heads)
            self.wide = nn.Linear(1, 1, bias=False)

    report = examine("milestone_1", Scaled)
    assert report.failed_cases == ["number of parameters", "the formula, with your weights"]
    assert "nn.Linear(D, 3 * D, bias=False) and nn.Linear(D, D), and no other" in str(report)


def with_dropout(dropout):
    class Dropped(TinySelfAttn):
        def __init__(self, hidden_size=32, num_heads=4):
            super().__init__(hidden_size, num_heads)
            self.dropout = nn.Dropout(0.5)

        def forward(self, x):
            output, weights = super().forward(x)
            return dropout(self, output), weights

    class Classifier(TinyBertForClassification):
        def __init__(self):
            super().__init__()
            for layer in self.layers:
                layer.attn, before = Dropped(), layer.attn
                layer.attn.load_state_dict(before.state_dict())

    return {"milestone_1": Dropped, "milestone_2": Classifier}


@pytest.mark.parametrize("exercise", ["milestone_1", "milestone_2"])
def test_dropout_is_turned_off_or_named(exercise):
    report = examine(exercise, with_dropout(lambda self, x: self.dropout(x))[exercise])
    assert report.passed, str(report)
    report = examine(exercise, with_dropout(lambda self, x: F.dropout(x, 0.5))[exercise])
    assert [m.name for m in report.mistakes] == ["another result at every call"]


@pytest.mark.parametrize(
    ("name", "out", "bias"),
    [
        ("bias in the fused projection", True, True),
        ("no bias in the output projection", False, False),
        ("bias in the fused projection, none in the output projection", False, True),
    ],
)
def test_biases_of_milestone_1_are_counted(name, out, bias):
    class Biased(attention_mutant(bias=bias)):
        def __init__(self, hidden_size, num_heads):
            super().__init__(hidden_size, num_heads)
            self.proj = nn.Linear(hidden_size, hidden_size, bias=out)

    report = examine("milestone_1", Biased)
    assert report.failed_cases == ["number of parameters"]
    assert [mistake.name for mistake in report.mistakes] == [name]


def test_attention_that_returns_no_weights_is_told_so():
    class OutputOnly(TinySelfAttn):
        def forward(self, x):
            return super().forward(x)[0]

    report = examine("milestone_1", OutputOnly)
    assert report.failed_cases[0] == "what forward returns"
    assert report.findings[0].got == "one Tensor"


@pytest.mark.parametrize(
    ("exercise", "solution"),
    [
        ("by_hand", bert_fine_tuning_step),
        ("milestone_1", TinySelfAttn),
        ("milestone_2", TinyBertForClassification),
        ("milestone_3", TinyBertForClassification),
    ],
)
def test_a_check_leaves_the_random_streams_alone(exercise, solution):
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    examine(exercise, solution)
    assert torch.equal(torch.get_rng_state(), before)
    assert (np.random.get_state()[1] == numpy_before).all()


class RaisesInForward(TinySelfAttn):
    def forward(self, x):
        return self.qkv(x).view(1, 2, 3), None


class NotYet(TinyBertForClassification):
    def __init__(self):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("exercise", "solution", "got"),
    [
        ("milestone_1", RaisesInForward, "return self.qkv(x).view(1, 2, 3), None"),
        ("milestone_2", NotYet, "NotImplementedError, in line "),
        ("milestone_3", NotYet, "NotImplementedError, in line "),
    ],
)
def test_errors_inside_a_class_are_reported_with_the_line(exercise, solution, got):
    report = examine(exercise, solution)
    assert report.failed_cases == ["your class could be run"]
    assert got in report.findings[0].got
    assert "of test_check.py" in report.findings[0].got


class StudentLayer(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.attn = attention_mutant(bias=options["qkv bias"])(32, 4)
        if not options["out bias"]:
            self.attn.proj = nn.Linear(32, 32, bias=False)
        inner = 32 * options["wide"]
        self.up, self.down = nn.Linear(32, inner), nn.Linear(inner, 32)
        self.norm1 = nn.LayerNorm(32)
        self.norm2 = self.norm1 if options["one norm"] else nn.LayerNorm(32)

    def forward(self, x):
        ffn = lambda y: self.down(self.options["activation"](self.up(y)))  # noqa: E731
        if self.options["post"]:
            x = self.norm1(x + self.attn(x)[0])
            return self.norm2(x + ffn(x))
        if self.options["no residual"]:
            return ffn(self.norm2(self.attn(self.norm1(x))[0]))
        x = x + self.attn(self.norm1(x))[0]
        return x + ffn(self.norm2(x))


def classifier_mutant(**changes):
    options = {"qkv bias": False, "out bias": True, "wide": 4, "one norm": False, "activation": F.gelu, "post": False}
    options |= {"no residual": False, "positions": "added", "read": lambda x: x[:, 0], "final norm": False}
    options |= {"head bias": True, "classes": 2, "run": True} | changes

    class TinyBertForClassification(nn.Module):
        def __init__(self):
            super().__init__()
            self.tok = nn.Embedding(100, 32)
            if options["positions"] != "none":
                self.pos = nn.Embedding(16, 32)
            self.layers = nn.ModuleList([StudentLayer(options), StudentLayer(options)])
            if options["final norm"]:
                self.norm = nn.LayerNorm(32)
            self.head = nn.Linear(32, options["classes"], bias=options["head bias"])

        def forward(self, input_ids):
            x = self.tok(input_ids)
            if options["positions"] == "added":
                x = x + self.pos.weight[: input_ids.shape[1]]
            for layer in self.layers if options["run"] else []:
                x = layer(x)
            if options["final norm"]:
                x = self.norm(x)
            return self.head(options["read"](x))

    return TinyBertForClassification


CLASSIFIER_MUTANTS = [
    ("head reads the mean over the positions", {"read": lambda x: x.mean(dim=1)}),
    ("head reads the last position", {"read": lambda x: x[:, -1]}),
    ("missing position embeddings", {"positions": "forgotten"}),
    ("missing position embeddings", {"positions": "none"}),
    ("layers not run", {"run": False}),
    ("norm after the addition", {"post": True}),
    ("missing residual addition", {"no residual": True}),
    ("ReLU instead of GELU", {"activation": F.relu}),
    ("bias in the fused projection", {"qkv bias": True}),
    ("no bias in the output projection", {"out bias": False}),
    ("bias in the fused projection, none in the output projection", {"qkv bias": True, "out bias": False}),
    ("a LayerNorm or a table of two rows too many", {"final norm": True}),
    ("one LayerNorm shared by both parts of a layer", {"one norm": True}),
    ("feed-forward network twice as wide instead of four times", {"wide": 2}),
    ("head without bias", {"head bias": False}),
    ("three classes", {"classes": 3}),
]


@pytest.mark.parametrize(("name", "changes"), CLASSIFIER_MUTANTS)
def test_mistakes_of_milestone_2_are_recognised(name, changes):
    report = examine("milestone_2", classifier_mutant(**changes))
    assert not report.passed
    assert [mistake.name for mistake in report.mistakes] == [name]


def test_every_mistake_of_milestone_2_has_a_mutant():
    known = {mistake.name for mistake in (*CLASSIFIER_MISTAKES, *COUNT_MISTAKES.values())}
    assert known == {name for name, _ in CLASSIFIER_MUTANTS}


def test_a_classifier_with_a_fault_in_its_attention_is_sent_back_to_milestone_1():
    class Causal(TinyBertForClassification):
        def __init__(self):
            super().__init__()
            for layer in self.layers:
                faulty = attention_mutant(causal=True)(32, 4)
                faulty.qkv, faulty.proj, layer.attn = layer.attn.qkv, layer.attn.out, faulty

    report = examine("milestone_2", Causal)
    assert "the formula, with your parameters" in report.failed_cases
    assert report.mistakes == []
    assert report.notes == ["Does your attention pass milestone_1?"]


@pytest.mark.parametrize("model_class", [classifier_mutant(), TinyBertForClassification])
def test_a_correct_classifier_passes(model_class):
    report = examine("milestone_2", model_class)
    assert report.passed, str(report)
    assert report.mistakes == []


class NormsFirst(StudentLayer):
    def __init__(self, options):
        super().__init__(options)
        norms, rest = ("norm1", "norm2"), ("up", "down", "attn")
        self._modules = {name: self._modules[name] for name in (*norms, *rest)}


@pytest.mark.parametrize("activation", [F.gelu, F.relu])
def test_a_classifier_is_compared_in_whatever_order_it_is_created(activation, monkeypatch):
    monkeypatch.setitem(globals(), "StudentLayer", NormsFirst)
    model_class = classifier_mutant(activation=activation)
    assert next(iter(model_class().layers[0].named_parameters()))[0] == "norm1.weight"
    report = examine("milestone_2", model_class)
    assert report.passed == (activation is F.gelu)
    assert [m.name for m in report.mistakes] == ([] if report.passed else ["ReLU instead of GELU"])
    assert report.notes == [
        "Your parameters are created in another order than the book's. That is no fault, but the same seed gives "
        "other numbers than the book prints."
    ]


def test_a_classifier_that_cannot_be_compared_has_not_passed():
    class Reshaped(TinyBertForClassification):
        def __init__(self):
            super().__init__()
            self.pos_emb.weight = nn.Parameter(self.pos_emb.weight[None])

        def encode(self, input_ids):
            x = self.tok_emb(input_ids) + self.pos_emb.weight[0, : input_ids.shape[1]]
            for layer in self.layers:
                x = layer(x)
            return x

    report = examine("milestone_2", Reshaped)
    assert report.failed_cases == ["the formula, with your parameters"]
    assert "other shapes, with which the formula cannot be computed" in str(report)


def my_loop(zero=True, after=False, optimizer=torch.optim.Adam, lr=1e-3, again=False, step=True):
    def loop(model, input_ids, labels, epochs):
        optim, losses = optimizer(model.parameters(), lr=lr), []
        for _ in range(epochs):
            if again:
                optim = optimizer(model.parameters(), lr=lr)
            if zero:
                model.zero_grad()
            loss = F.cross_entropy(model(input_ids), labels)
            loss.backward()
            if step:
                optim.step()
            losses.append(F.cross_entropy(model(input_ids), labels) if after else loss)
        return losses

    return loop


LOOP_MUTANTS = [
    ("no zero_grad", {"zero": False}),
    ("loss measured after the step", {"after": True}),
    ("plain gradient descent instead of Adam", {"optimizer": torch.optim.SGD}),
    ("another learning rate", {"lr": 2e-5}),
    ("optimiser made anew at every step", {"again": True}),
    ("no step taken", {"step": False}),
]


@pytest.mark.parametrize(("name", "options"), LOOP_MUTANTS)
def test_mistakes_of_the_loop_are_recognised(name, options):
    report = examine("milestone_3", TinyBertForClassification, train=my_loop(**options))
    assert report.failed_cases == ["the losses of your loop, ten epochs"]
    assert [mistake.name for mistake in report.mistakes] == [name]


def test_every_mistake_of_the_loop_has_a_mutant():
    assert {mistake.name for mistake in LOOP_MISTAKES} == {name for name, _ in LOOP_MUTANTS}


@pytest.mark.parametrize("loop", [my_loop(), train])
def test_a_correct_loop_passes(loop):
    assert examine("milestone_3", TinyBertForClassification, train=loop).passed


def test_a_loop_that_returns_too_few_losses_or_fails(folder):
    report = examine("milestone_3", TinyBertForClassification, train=lambda *a, epochs: [0.5])
    assert report.findings[-1].got == "1 losses, from 0.5000 to 0.5000"
    text = "from bertbook.tiny import TinyBertForClassification\n\ndef train(model, ids, labels, epochs):\n    1 / 0\n"
    report = examine_file("milestone_3", write(folder, text))
    assert report.findings[-1].got == "ZeroDivisionError: division by zero, in line 4 of my_step.py: 1 / 0"


class FrozenBody(TinyBertForClassification):
    def __init__(self):
        super().__init__()
        self.layers.requires_grad_(False)


class Detached(TinyBertForClassification):
    def encode(self, input_ids):
        return super().encode(input_ids).detach()


class NoTokens(TinyBertForClassification):
    def encode(self, input_ids):
        return super().encode(input_ids * 0)


@pytest.mark.parametrize(
    ("model_class", "name"),
    [(Detached, "parameters without a gradient"), (NoTokens, "the ids have no influence")],
)
def test_why_a_class_does_not_train(model_class, name):
    report = examine("milestone_3", model_class)
    assert report.failed_cases == ["last loss"]
    assert name in [mistake.name for mistake in report.mistakes]
    assert "no loop was checked" in str(report)


# The findings themselves


def test_the_fewest_mistakes_are_named_and_none_without_need():
    mistakes = [Mistake("a", "", ({"x": 1},)), Mistake("b", "", ({"x": 2}, {"y": 2})), Mistake("c", "", ())]
    assert recognise(mistakes, lambda parts: parts == {"x": 2}) == [mistakes[1]]
    assert recognise(mistakes, lambda parts: parts == {"x": 1, "y": 2}) == mistakes[:2]
    assert recognise(mistakes, lambda parts: parts == {"x": 1, "y": 2}, at_most=1) == []
    assert recognise([], lambda parts: True) == []


def test_a_report_with_a_failed_case_has_not_passed():
    report = Report("it", [Finding("one", True), Finding("two", False, "a", "b", "c")])
    assert not report.passed
    assert report.failed_cases == ["two"]
    assert "FAILED: two\n  expected: a\n  got: b\n  this case tests: c\n" in str(report)
    assert str(report).endswith("1 of 2 cases passed.")


def test_the_diagnosis_comes_before_the_cases():
    report = str(examine("by_hand", student(("hidden_states[:, 0, :]", "hidden_states[:, -1, :]"))))
    assert report.splitlines()[2] == "Mistake: wrong position: the last one."
    assert report.index("Mistake: ") < report.index("FAILED: ")
    assert "why: " not in report


UNCHECKED = re.sub(r'    arrays = .*?"learning_rate"\)\n', "", STUDENT, flags=re.DOTALL)


def test_input_that_is_never_refused_takes_one_entry():
    assert "ValueError" not in UNCHECKED
    module = {}
    exec(UNCHECKED, module)
    report = examine("by_hand", module["bert_fine_tuning_step"])
    assert len(report.failed_cases) == 15
    assert str(report).count("FAILED: ") == 1
    assert "FAILED: refuses bad arguments (none of 15 cases passed)\n  the first: refuses an empty b" in str(report)
    assert str(report).endswith("11 of 26 cases passed.")
    assert [m.name for m in report.mistakes] == ["bad input not refused with its name"]


def test_a_group_of_which_one_case_passed_is_told_in_full():
    cases = [Finding("a", False, "x", "y", group="g"), Finding("b", True, group="g"), Finding("c", False, "x", "y")]
    assert str(Report("it", cases)).count("FAILED: ") == 2
    assert "none of" not in str(Report("it", cases))


def test_wrong_numbers_that_nothing_explains_are_not_put_down_to_something_else():
    change = ("if not 0 < learning_rate < np.inf:", "if learning_rate == 0:")
    names = [m.name for m in examine("by_hand", student(change, ("sum(losses) / B", "sum(losses) / B + 1"))).mistakes]
    assert names == ["one that this check does not know", "bad input not refused with its name"]


def test_results_of_plain_lists_and_numpy_scalars_are_accepted():
    def step(*arguments):
        result = bert_fine_tuning_step(*arguments)
        return result | {"classifier_b": result["classifier_b"].tolist(), "loss": np.float64(result["loss"])}

    assert examine("by_hand", step).passed


# Rounding


def test_a_result_off_by_a_ten_thousandth_fails():
    report = examine("by_hand", student(("sum(losses) / B", "sum(losses) / B + 1e-4")))
    assert "the worked example" in report.failed_cases
    assert report.mistakes == []


def test_a_result_off_by_a_hundred_millionth_fails_and_is_printed_apart():
    report = examine("by_hand", student(("sum(losses) / B", "sum(losses) / B + 1e-8")))
    case = next(finding for finding in report.findings if finding.case == "the worked example")
    assert not case.passed
    assert case.expected != case.got


IN_FLOAT32 = (
    "x = hidden_states[:, 0, :]",
    "x = hidden_states[:, 0, :].astype(np.float32); "
    "classifier_W = classifier_W.astype(np.float32); classifier_b = classifier_b.astype(np.float32)",
)


def test_float32_is_named_and_its_digits_are_shown():
    report = examine("by_hand", student(IN_FLOAT32))
    assert not report.passed
    assert [m.name for m in report.mistakes] == ["float32 instead of float64"]
    wrong = [finding for finding in report.findings if not finding.passed]
    assert all(finding.expected != finding.got for finding in wrong)


def test_a_mistake_in_float32_is_named_too():
    report = examine("by_hand", student(IN_FLOAT32, ("g = g / B", "g = g")))
    assert [m.name for m in report.mistakes] == ["missing division by B", "float32 instead of float64"]


# What ends, hides or never ends


ENDINGS = ["raise SystemExit", "raise SystemExit(0)", "import sys; sys.exit(0)", "raise GeneratorExit",
           "raise type('Own', (BaseException,), {})"]  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_whatever_is_raised_inside_a_solution_is_a_failed_case(exercise, ending, folder, capsys):
    texts = {
        "by_hand": f"def bert_fine_tuning_step(*arguments):\n    {ending}\n",
        "milestone_1": f"class TinySelfAttn:\n    def __init__(self, *sizes):\n        {ending}\n",
        "milestone_2": f"def TinyBertForClassification():\n    {ending}\n",
        "milestone_3": "from bertbook.tiny import TinyBertForClassification\n\n"
        f"def train(model, input_ids, labels, epochs):\n    {ending}\n",
    }
    assert command.main(["check", exercise, write(folder, texts[exercise])]) == 1
    out = capsys.readouterr().out
    assert "FAILED: " in out
    assert " of my_step.py: " in out


@pytest.mark.parametrize("ending", ENDINGS)
def test_whatever_is_raised_while_a_file_runs_is_explained(ending, folder, capsys):
    assert command.main(["check", "by_hand", write(folder, f"{ending}\n")]) == 2
    assert capsys.readouterr().out.startswith(("my_step.py ends the program", "my_step.py does not run to its end."))


def test_the_readers_interrupt_is_left_alone(folder):
    text = "def bert_fine_tuning_step(*arguments):\n    raise KeyboardInterrupt\n"
    with pytest.raises(KeyboardInterrupt):
        command.main(["check", "by_hand", write(folder, text)])


def test_an_ending_at_a_later_call_gives_no_status_of_its_own(folder, capsys):
    text = (
        "from bertbook import tiny\n\nmade = []\n\n"
        "def TinyBertForClassification():\n    made.append(1)\n    if len(made) > 1:\n        raise SystemExit(0)\n"
        "    return tiny.TinyBertForClassification()\n\n"
        "def train(model, input_ids, labels, epochs):\n    return [0.5] * epochs\n"
    )
    assert command.main(["check", "milestone_3", write(folder, text)]) == 1
    assert "SystemExit: 0, in line 8 of my_step.py" in capsys.readouterr().out


@pytest.mark.parametrize("trick", ["del sys.modules[__name__]", "sys.path.clear()", "sys.path = []"])
def test_a_file_that_clears_what_the_check_needs_is_checked_all_the_same(trick, folder, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    path, entries = sys.path, list(sys.path)
    assert examine_file("by_hand", write(folder, f"{STUDENT}\nimport sys\n{trick}\n")).passed
    assert sys.path is path
    assert sys.path == entries


def test_a_file_with_the_name_of_a_library_is_refused(folder):
    write(folder, STUDENT, "json.py")
    with pytest.raises(CannotCheck, match=r"json\.py hides Python's own json\. Rename the file"):
        load_solution("json.py")
    write(folder, STUDENT)
    write(folder, STUDENT, "numpy.py")
    for name in ("numpy.py", "my_step.py"):
        with pytest.raises(CannotCheck, match=r"numpy\.py hides the library: import numpy finds this file"):
            load_solution(name)


@pytest.mark.parametrize("name", ["my.IPYNB", "my.Ipynb"])
def test_a_notebook_is_refused_in_any_case(name, folder):
    write(folder, STUDENT, name)
    with pytest.raises(CannotCheck, match=r"is a notebook\. Check it from one of its own cells"):
        load_solution(name)


def test_a_tensor_that_requires_a_gradient_is_told_so():
    def step(*arguments):
        result = bert_fine_tuning_step(*arguments)
        return result | {"classifier_W": torch.tensor(result["classifier_W"], requires_grad=True)}

    report = examine("by_hand", step)
    assert report.failed_cases == ["form of the result"]
    assert report.findings[0].got.startswith("a Tensor; RuntimeError: ")
    assert [m.name for m in report.mistakes] == ["classifier_W is not an array"]


def test_a_function_of_other_arguments_is_told_once():
    report = examine("by_hand", lambda hidden_states, labels: {})
    assert [finding.got for finding in report.findings] == ["a function of hidden_states, labels"]
    assert [m.name for m in report.mistakes] == ["other arguments"]
    assert examine("by_hand", lambda hidden_states, *rest, more=1: bert_fine_tuning_step(hidden_states, *rest)).passed


def test_a_loop_without_an_end_is_stopped(folder):
    text = (
        "def bert_fine_tuning_step(*arguments):\n    while True:\n        try:\n            1 + 1\n"
        "        except:\n            pass\n"
    )
    write(folder, text)
    program = (
        "import sys\nfrom bertbook import __main__ as command\ncommand.LIMIT = 1\n"
        "sys.exit(command.main(['check', 'by_hand', 'my_step.py']))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=60)
    assert run.returncode == 1
    assert run.stdout.startswith("Stopped: not done after 1 seconds, in line ")
    assert run.stdout.endswith("Is there a loop without an end?\n")
    assert run.stderr == ""
