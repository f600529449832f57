"""The cases and the known mistakes of the exercise "One step by hand".

`step_with` is the step in parts. A mistake replaces one or two of them, so what the
mistake gives can be computed and compared with what your function gave.
"""

import inspect
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertbook.by_hand import bert_fine_tuning_step, worked_example
from bertbook.check.load import describe_error
from bertbook.findings import Finding, Mistake, Report, recognise

ARGUMENTS = (
    "hidden_states",
    "labels",
    "classifier_W",
    "classifier_b",
    "learning_rate",
)
RESULTS = ("classifier_W", "classifier_b", "loss")
REFUSALS = "refuses bad arguments"  # the group of these cases

PARTS = {
    "state": lambda hidden: hidden[:, 0],
    "logits": lambda cls, W, b: cls @ W + b,
    "shift": lambda logits: logits.max(axis=1, keepdims=True),
    "total": lambda exponentials: exponentials.sum(axis=1, keepdims=True),
    "log": lambda p, shifted, total: shifted - np.log(total),
    "mean": np.mean,
    "onehot": lambda p, onehot: p - onehot,
    "divide": lambda gradient, B: gradient / B,
    "db": lambda gradient: gradient.sum(axis=0),
    "rate": lambda rate: rate,
    "update": lambda W, dW, rate: W - rate * dW,
    "loss after": False,
    "steps": 1,
}


def step_with(arguments: tuple, replaced: dict) -> dict:
    """What bert_fine_tuning_step gives, with some of its PARTS replaced.

    >>> arguments = np.ones((2, 1, 1)), np.array([0, 0]), np.zeros((1, 2)), np.zeros(2)
    >>> step_with((*arguments, 1.0), {})["classifier_b"]
    array([ 0.5, -0.5])
    >>> step_with((*arguments, 1.0), {"rate": lambda rate: 10})["classifier_b"]
    array([ 5., -5.])
    """
    hidden, labels, W, b, rate = arguments
    part = PARTS | replaced
    rate = part["rate"](rate)

    def forward(W: NDArray, b: NDArray) -> tuple:
        cls = part["state"](hidden)
        logits = part["logits"](cls, W, b)
        shifted = logits - part["shift"](logits)
        total = part["total"](np.exp(shifted))
        p = np.exp(shifted) / total
        log_p = part["log"](p, shifted, total)
        rows = np.arange(len(labels))
        onehot = np.zeros_like(p)
        onehot[rows, labels] = 1
        return cls, p, onehot, part["mean"](-log_p[rows, labels])

    for _ in range(part["steps"]):
        cls, p, onehot, loss = forward(W, b)
        gradient = part["divide"](part["onehot"](p, onehot), len(labels))
        W = part["update"](W, cls.T @ gradient, rate)
        b = part["update"](b, part["db"](gradient), rate)
    if part["loss after"]:
        loss = forward(W, b)[3]
    return {"classifier_W": W, "classifier_b": b, "loss": loss}


def log_of_rounded(p: NDArray, shifted: NDArray, total: NDArray) -> NDArray:
    """The logarithm of probabilities that may have been rounded to 0.

    >>> log_of_rounded(np.array([1.0]), np.array([0.0]), np.array([1.0]))
    array([0.])
    """
    return np.log(p)


MISTAKES = (
    Mistake(
        "wrong position: the last one",
        "The classifier reads position 0, hidden_states[:, 0, :].",
        ({"state": lambda hidden: hidden[:, -1]},),
    ),
    Mistake(
        "wrong position: the mean over all of them",
        "The classifier reads position 0 only, hidden_states[:, 0, :].",
        ({"state": lambda hidden: hidden.mean(axis=1)},),
    ),
    Mistake(
        "first sequence instead of first position",
        "hidden_states[0] is the first sequence. Position 0 of every sequence is "
        "hidden_states[:, 0, :].",
        ({"state": lambda hidden: hidden[0]},),
    ),
    Mistake(
        "bias left out of the logits",
        "The logits are cls @ W + b.",
        ({"logits": lambda cls, W, b: cls @ W},),
    ),
    Mistake(
        "softmax over the batch",
        "Each sequence has its own probabilities: sum over the classes (axis=1), not "
        "over the batch (axis=0).",
        (
            {
                "shift": lambda logits: logits.max(axis=0, keepdims=True),
                "total": lambda e: e.sum(axis=0, keepdims=True),
            },
            {"total": lambda e: e.sum(axis=0, keepdims=True)},
        ),
    ),
    Mistake(
        "softmax over the whole matrix",
        "A sum without axis adds up everything. Each row needs its own sum: axis=1 "
        "with keepdims=True.",
        (
            {
                "shift": lambda logits: logits.max(),
                "total": lambda e: e.sum(keepdims=True),
            },
            {"total": lambda e: e.sum(keepdims=True)},
        ),
    ),
    Mistake(
        "sum instead of mean loss",
        "The loss is the mean over the batch.",
        ({"mean": np.sum},),
    ),
    Mistake(
        "minus missing from the loss",
        "The loss is *minus* the logarithm of the label's probability.",
        ({"mean": lambda losses: -losses.mean()},),
    ),
    Mistake(
        "gradient without the one-hot labels",
        "The gradient of the logits is the probabilities minus 1 at the label, "
        "divided by B. Without the minus 1 the labels have no influence.",
        ({"onehot": lambda p, onehot: p},),
    ),
    Mistake(
        "missing division by B",
        "The loss is a mean over the batch, so each sequence's gradient is divided by "
        "the number of sequences.",
        ({"divide": lambda gradient, B: gradient},),
    ),
    Mistake(
        "bias gradient averaged instead of summed",
        "The gradient is divided by B already; db is its *sum* over the batch.",
        ({"db": lambda gradient: gradient.mean(axis=0)},),
    ),
    Mistake(
        "bias not updated",
        "b is a parameter too: db is the gradient summed over the batch.",
        ({"db": lambda gradient: 0 * gradient.sum(axis=0)},),
    ),
    Mistake(
        "learning rate left out",
        "The step is the gradient *times the learning rate*.",
        ({"rate": lambda rate: 1.0},),
    ),
    Mistake(
        "wrong sign of the update",
        "The gradient points uphill: subtract it. (A gradient of onehot - p instead "
        "of p - onehot gives the same.)",
        ({"update": lambda W, dW, rate: W + rate * dW},),
    ),
    Mistake(
        "gradients returned instead of parameters",
        "Return the updated W and b, not their gradients or the change alone.",
        (
            {"update": lambda W, dW, rate: dW},
            {"update": lambda W, dW, rate: rate * dW},
            {"update": lambda W, dW, rate: -rate * dW},
        ),
    ),
    Mistake(
        "update applied twice",
        "One call makes exactly one step.",
        (
            {"update": lambda W, dW, rate: W - 2 * rate * dW},
            {"steps": 2},
        ),
    ),
    Mistake(
        "loss after the update",
        "The loss to return is that of the parameters that came in. Compute it before "
        "you change them.",
        ({"loss after": True},),
    ),
    Mistake(
        "one maximum for all rows",
        "Subtract each row's own maximum (axis=1, keepdims=True). With a common one, a "
        "row far below it becomes exp(-large) = 0 throughout, and 0 / 0 is NaN.",
        ({"shift": lambda logits: logits.max()},),
    ),
    Mistake(
        "logarithm of a probability that was rounded to 0",
        "exp(-10000) is 0 in floating point, and log(0) is minus infinity. Take the "
        "logarithm before: log(sum(exp(z))) - z[label], z = logits - maximum.",
        ({"log": log_of_rounded},),
    ),
    Mistake(
        "small number added inside the logarithm",
        "log(p + 1e-12) hides log(0) and gives a wrong loss instead. Take the "
        "logarithm before anything is rounded: log(sum(exp(z))) - z[label].",
        tuple(
            {"log": lambda p, shifted, total, how=how, eps=eps: np.log(how(p, eps))}
            for how in (np.add, np.maximum)
            for eps in (
                float(f"1e-{digits}") for digits in (6, 7, 8, 9, 10, 12, 15, 16)
            )
        ),
    ),
    Mistake(
        "no maximum subtracted",
        "exp of a large logit is infinite, and infinite / infinite is NaN. Subtract "
        "each row's maximum before you exponentiate.",
        (
            {"shift": lambda logits: 0.0},
            {"shift": lambda logits: 0.0, "log": log_of_rounded},
        ),
    ),
)


class StepCase(NamedTuple):
    """One input of the step, and why it is tried.

    >>> CASES[0].name
    'one sequence of one token'
    """

    name: str
    arguments: tuple
    why: str


def random_case(name: str, why: str, *, B: int, S: int, D: int, C: int) -> StepCase:
    """A case of these sizes, drawn from a generator of its own.

    >>> random_case("two sequences", "", B=2, S=3, D=4, C=5).arguments[0].shape
    (2, 3, 4)
    """
    rng = np.random.default_rng(seed=1000 * B + 100 * S + 10 * D + C)
    labels = np.arange(B) % C
    parameters = rng.normal(size=(D, C)), rng.normal(size=C)
    return StepCase(name, (rng.normal(size=(B, S, D)), labels, *parameters, 0.3), why)


def steered_case(name: str, why: str, logits: list[list[float]]) -> StepCase:
    """A case whose logits are these: D = C, and W is the identity.

    >>> states, _, W, b, _ = steered_case("", "", [[0.0, 9.0]]).arguments
    >>> states[:, 0] @ W + b
    array([[0., 9.]])
    """
    wanted = np.array(logits)
    B, C = wanted.shape
    states = np.stack([wanted, np.zeros((B, C))], axis=1)
    arguments = (states, np.zeros(B, dtype=np.int64), np.eye(C), np.zeros(C), 0.3)
    return StepCase(name, arguments, why)


CASES = (
    random_case(
        "one sequence of one token",
        "the smallest batch, with nothing to choose and nothing to average.",
        B=1,
        S=1,
        D=2,
        C=3,
    ),
    random_case(
        "one sequence of three tokens",
        "whether position 0 is read, and not another of the three.",
        B=1,
        S=3,
        D=2,
        C=3,
    ),
    StepCase(
        "the worked example",
        worked_example(),
        "the numbers that the chapter works out on paper.",
    ),
    random_case(
        "four sequences",
        "whether the loss and its gradient are means over the batch.",
        B=4,
        S=3,
        D=5,
        C=3,
    ),
    random_case(
        "as many sequences as tokens",
        "mixed-up axes, which raise no error here.",
        B=3,
        S=3,
        D=2,
        C=4,
    ),
    random_case(
        "as many sequences as classes as features",
        "a wrong axis, which raises no error here: every matrix is square.",
        B=3,
        S=2,
        D=3,
        C=3,
    ),
    random_case(
        "one class",
        "a probability of 1, so that the loss is 0 and nothing changes.",
        B=2,
        S=2,
        D=2,
        C=1,
    ),
    steered_case(
        "a logit of ten thousand at the label",
        "large logits: exp(10000) is infinite in floating point.",
        [[10_000.0, 0.0, 0.0], [1.0, 0.0, 2.0]],
    ),
    steered_case(
        "a logit of ten thousand beside the label",
        "a probability rounded to 0 at the label: the loss is 10000 nats all the same.",
        [[0.0, 10_000.0, 0.0], [1.0, 0.0, 2.0]],
    ),
    steered_case(
        "rows of very different size",
        "rows of which one lies ten thousand below the other.",
        [[10_000.0, 9_999.0, 9_998.0], [1.0, 0.0, 2.0]],
    ),
)


def bad_inputs() -> list[tuple[str, str, tuple]]:
    """(what is wrong, the argument to name, arguments) for each refused input.

    >>> [(what, name) for what, name, _ in bad_inputs()][0]
    ('an empty batch', 'hidden_states')
    """
    states, labels, W, b, rate = CASES[3].arguments

    def replaced(array: NDArray, value: float) -> NDArray:
        changed = array.copy()
        changed.flat[0] = value
        return changed

    right = dict(zip(ARGUMENTS, (states, labels, W, b, rate), strict=True))
    empty = {"hidden_states": states[:0], "labels": labels[:0]}
    changes = [
        ("hidden states without a token axis", "hidden_states", states[:, 0]),
        ("a hidden state of NaN", "hidden_states", replaced(states, np.nan)),
        ("hidden states of whole numbers", "hidden_states", states.astype(int)),
        ("one label too few", "labels", labels[:-1]),
        ("a label of C", "labels", replaced(labels, W.shape[1])),
        ("a label of minus one", "labels", replaced(labels, -1)),
        ("labels that are not whole numbers", "labels", labels + 0.5),
        ("a row of W too few", "classifier_W", W[:-1]),
        ("an infinite weight", "classifier_W", replaced(W, np.inf)),
        ("a bias too few", "classifier_b", b[:-1]),
        ("a bias of NaN", "classifier_b", replaced(b, np.nan)),
        ("a learning rate of zero", "learning_rate", 0.0),
        ("a negative learning rate", "learning_rate", -0.1),
        ("a learning rate of NaN", "learning_rate", np.nan),
    ]
    return [
        ("an empty batch", "hidden_states", tuple((right | empty).values())),
        *(
            (what, name, tuple((right | {name: bad}).values()))
            for what, name, bad in changes
        ),
    ]


def examine_step(step: Callable[..., dict], subject: str) -> Report:
    """Every case of the exercise, and the mistakes that explain what failed.

    >>> examine_step(bert_fine_tuning_step, "ours").passed
    True
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # an overflow is reported as a finding
        return Report(subject, *findings_of_step(step))


def findings_of_step(step: Callable[..., dict]) -> tuple[list, list]:
    """The findings and the mistakes of examine_step.

    >>> findings, mistakes = findings_of_step(lambda *arguments: None)
    >>> findings[0].got, mistakes[0].name
    ('None', 'nothing returned')
    """
    findings, mistakes, results = [], [], []
    changed = set()
    if (reason := wrong_arguments(step)) is not None:
        wanted = f"a function of {', '.join(ARGUMENTS)}"
        called = Finding("a call with the five arguments", False, wanted, reason)
        return [called], [WRONG_ARGUMENTS]
    for case in CASES:
        arguments = copies(case.arguments)
        try:
            result = step(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            wanted = "a result"
            got = describe_error(error)
            findings.append(Finding(case.name, False, wanted, got, case.why))
            results.append(None)
            continue
        for name, now, before in zip(ARGUMENTS, arguments, case.arguments, strict=True):
            if not np.array_equal(now, before):
                changed.add(name)
        if (wrong := wrong_form(result, case.arguments)) is not None:
            finding, mistake = wrong
            return [finding], [mistake]
        results.append({name: np.asarray(result[name]) for name in RESULTS})
        findings.append(compare_step(case, results[-1]))

    wrong_numbers = not all(finding.passed for finding in findings)
    if wrong_numbers:
        mistakes = named_mistakes(results)
    known = bool(mistakes)
    findings.append(
        Finding(
            "the arguments are left as they were",
            not changed,
            "no argument changed",
            ", ".join(name for name in ARGUMENTS if name in changed) + " changed",
            "whether the arrays that the caller holds stay the same.",
        )
    )
    if changed:
        mistakes = [*mistakes, MUTATED]
    refusals = [refusal(step, *bad) for bad in bad_inputs()]
    lenient = not all(finding.passed for finding in refusals)
    if lenient:
        mistakes = [*mistakes, NOT_REFUSED]
    if wrong_numbers and not known and (changed or lenient):
        mistakes = [UNKNOWN, *mistakes]
    return [*findings, *refusals], mistakes


def named_mistakes(results: list[dict | None]) -> list[Mistake]:
    """The known mistakes that give these results; float32 is one of them.

    >>> named_mistakes([step_with(case.arguments, {}) for case in CASES])
    []
    """
    if gives({}, results):
        return []
    if exact := recognise(MISTAKES, lambda parts: gives(parts, results)):
        return exact
    if gives({}, results, NARROW):
        return [ROUNDED]
    arrays = [array for result in results if result for array in result.values()]
    if not any(np.asarray(array).dtype == np.float32 for array in arrays):
        return []
    rough = recognise(MISTAKES, lambda parts: gives(parts, results, NARROW))
    return [*rough, ROUNDED] if rough else []


def wrong_arguments(step: Callable) -> str | None:
    """Why a function cannot be called with the five arguments, or None if it can.

    >>> wrong_arguments(lambda hidden_states, labels: {})
    'a function of hidden_states, labels'
    """
    try:
        signature = inspect.signature(step)
    except (TypeError, ValueError):  # a callable that does not tell
        return None
    try:
        signature.bind(*ARGUMENTS)
    except TypeError:
        return f"a function of {', '.join(signature.parameters) or 'nothing'}"
    return None


WRONG_ARGUMENTS = Mistake(
    "other arguments",
    "The exercise calls bert_fine_tuning_step(hidden_states, labels, classifier_W, "
    "classifier_b, learning_rate), in this order.",
)
ROUNDED = Mistake(
    "float32 instead of float64",
    "The numbers are right to about seven digits only. The arguments are float64: "
    "compute in float64 throughout, without astype(np.float32).",
)
MUTATED = Mistake(
    "mutated inputs",
    "W -= step changes the caller's array in place. Write W = W - step, and make a "
    "copy of an array before you subtract the one-hot labels from it.",
)
UNKNOWN = Mistake(
    "one that this check does not know",
    "Nothing on its list gives these numbers. Begin with the first case that failed.",
)
NOT_REFUSED = Mistake(
    "bad input not refused with its name",
    "Check the arguments first, and raise ValueError with the argument's name in the "
    "message. NumPy itself would often go on and compute something.",
)


def copies(arguments: tuple) -> tuple:
    """The arguments with arrays copied, so that each call gets its own.

    >>> before = np.zeros(2)
    >>> copies((before, 0.5))[0] is before
    False
    """
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)


def wrong_form(result: object, arguments: tuple) -> tuple[Finding, Mistake] | None:
    """What is wrong with the form of a result, before any number is compared.

    >>> finding, mistake = wrong_form({"loss": 1.0}, CASES[0].arguments)
    >>> print(finding.got, "|", mistake.name)
    a dict with the keys loss | missing key
    """
    expected = f"a dict with the keys {', '.join(RESULTS)}"
    _, _, W, b, _ = arguments
    shapes = {"classifier_W": W.shape, "classifier_b": b.shape, "loss": ()}
    if result is None:
        got, mistake = "None", ("nothing returned", "The function ends in a return.")
    elif not isinstance(result, dict):
        got = f"a {type(result).__name__}"
        why = "Return one dict, so that no caller has to remember an order."
        mistake = (f"returns a {type(result).__name__}", why)
    elif missing := [name for name in RESULTS if name not in result]:
        got = f"a dict with the keys {', '.join(map(str, result))}"
        mistake = ("missing key", f"There is no {' and no '.join(missing)} in it.")
    else:
        for name in RESULTS:
            try:
                array = np.asarray(result[name])
            except ValueError:  # rows of different lengths
                array = np.asarray(None)
            except RuntimeError as error:  # a tensor that requires a gradient
                expected = f"{name} as a NumPy array"
                got = f"a {type(result[name]).__name__}; {describe_error(error)}"
                return Finding("form of the result", False, expected, got), Mistake(
                    f"{name} is not an array",
                    "The exercise is in NumPy, from the arguments to the result.",
                )
            if array.shape != shapes[name] or array.dtype.kind not in "fiu":
                expected = f"{name} of numbers of shape {shapes[name]}"
                got = f"{array.dtype} of shape {array.shape}"
                return Finding("form of the result", False, expected, got), Mistake(
                    f"wrong shape or kind of {name}",
                    "W stays (D, C), b stays (C,), and the loss is one number for the "
                    "whole batch.",
                )
        return None
    return Finding("form of the result", False, expected, got), Mistake(*mistake)


# Tolerances: of float64, and of float32.
EXACT = 1e-9
NARROW = 1e-5


def same_numbers(found: NDArray, wanted: NDArray, tolerance: float = EXACT) -> bool:
    """Equal up to rounding; what is not finite equals only what is not finite.

    >>> same_numbers(np.array([1.0, np.nan]), np.array([1.0 + 1e-12, np.inf]))
    True
    """
    if np.shape(found) != np.shape(wanted):
        return False
    finite = np.isfinite(found)
    return bool(
        np.array_equal(finite, np.isfinite(wanted))
        and np.allclose(found[finite], wanted[finite], rtol=tolerance, atol=tolerance)
    )


def compare_step(case: StepCase, result: dict) -> Finding:
    """One case: the number of each result that is furthest from what it should be.

    >>> right = bert_fine_tuning_step(*CASES[0].arguments)
    >>> compare_step(CASES[0], {k: np.asarray(v) for k, v in right.items()}).passed
    True
    """
    right = bert_fine_tuning_step(*case.arguments)
    wanted, got = [], []
    for name in RESULTS:
        expected = np.asarray(right[name])
        if same_numbers(result[name], expected):
            continue
        gaps = np.abs(np.atleast_1d(result[name] - expected))
        worst = np.unravel_index(np.argmax(np.nan_to_num(gaps, nan=np.inf)), gaps.shape)
        entry = f"{name}[{', '.join(map(str, worst))}]" if expected.ndim else name
        numbers = [np.atleast_1d(array)[worst] for array in (expected, result[name])]
        right_one, other = in_digits(*map(float, numbers))
        wanted.append(f"{entry} = {right_one}")
        got.append(f"{entry} = {other}")
    return Finding(case.name, not got, "; ".join(wanted), "; ".join(got), case.why)


def in_digits(first: float, second: float) -> tuple[str, str]:
    """Two numbers with six decimals, or with more if these are the same.

    >>> in_digits(1.0, 2.0), in_digits(2.472435, 2.4724351)
    (('1.000000', '2.000000'), ('2.472435000', '2.472435100'))
    """
    for decimals in (6, 9, 12):
        texts = f"{first:.{decimals}f}", f"{second:.{decimals}f}"
        if texts[0] != texts[1]:
            break
    return texts


def gives(parts: dict, results: list[dict | None], tolerance: float = EXACT) -> bool:
    """Whether the step with these parts replaced gives these results, in every case.

    >>> gives({}, [bert_fine_tuning_step(*case.arguments) for case in CASES])
    True
    >>> gives({"rate": lambda rate: 1.0}, [None] * len(CASES))
    False
    """
    for case, result in zip(CASES, results, strict=True):
        try:
            made = step_with(case.arguments, parts)
        except (IndexError, ValueError):
            made = None
        if made is None or result is None:
            if made is not result:
                return False
        elif not all(
            same_numbers(np.asarray(made[name]), np.asarray(result[name]), tolerance)
            for name in RESULTS
        ):
            return False
    return True


def refusal(step: Callable, what: str, name: str, arguments: tuple) -> Finding:
    """Whether bad input is refused with a ValueError that names the argument.

    >>> refusal(lambda *arguments: {}, *bad_inputs()[0]).got
    'no error'
    """

    def finding(refused: bool, got: str) -> Finding:
        wanted = f"a ValueError whose message says {name}"
        return Finding(f"refuses {what}", refused, wanted, got, group=REFUSALS)

    try:
        step(*copies(arguments))
    except ValueError as error:
        return finding(name in str(error), describe_error(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return finding(False, describe_error(error))
    return finding(False, "no error")
