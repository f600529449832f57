"""The step by hand: against autograd, against finite differences, and what it refuses."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from bertbook.by_hand import bert_fine_tuning_step, cross_entropy, softmax, worked_example

few = settings(max_examples=25, deadline=None, derandomize=True)
sizes = st.integers(1, 5)


@st.composite
def steps(draw):
    """Arguments of a step, of any size."""
    B, S, D, C = (draw(sizes) for _ in range(4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.1, 1.0, 30.0]))
    W, b = rng.normal(0, spread, size=(D, C)), rng.normal(0, spread, size=C)
    return rng.normal(size=(B, S, D)), rng.integers(0, C, size=B), W, b, draw(st.sampled_from([1e-3, 0.5, 2]))


def autograd_step(hidden_states, labels, W, b, rate):
    W, b = (torch.tensor(array, requires_grad=True) for array in (W, b))
    loss = F.cross_entropy(torch.tensor(hidden_states)[:, 0] @ W + b, torch.tensor(labels))
    loss.backward()
    return (W - rate * W.grad).detach().numpy(), (b - rate * b.grad).detach().numpy(), loss.item()


@few
@given(steps())
def test_the_step_is_autograds(arguments):
    step = bert_fine_tuning_step(*arguments)
    W, b, loss = autograd_step(*arguments)
    assert list(step) == ["classifier_W", "classifier_b", "loss"]
    np.testing.assert_allclose(step["classifier_W"], W, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(step["classifier_b"], b, rtol=1e-10, atol=1e-12)
    assert step["loss"] == pytest.approx(loss, rel=1e-10, abs=1e-12)
    assert type(step["loss"]) is float


@few
@given(steps(), st.integers(0, 10**6))
def test_the_gradient_is_the_slope_of_the_loss(arguments, which):
    hidden_states, labels, W, b, _ = arguments
    step = bert_fine_tuning_step(hidden_states, labels, W, b, 1.0)
    i, j = which % W.shape[0], which % W.shape[1]
    for name, array, place in (("classifier_W", W, (i, j)), ("classifier_b", b, (j,))):
        slopes = []
        for h in (1e-5, -1e-5):
            moved = {"classifier_W": W, "classifier_b": b} | {name: array.copy()}
            moved[name][place] += h
            slopes.append(cross_entropy(hidden_states[:, 0] @ moved["classifier_W"] + moved["classifier_b"], labels))
        slope = (slopes[0] - slopes[1]) / 2e-5
        assert (array - step[name])[place] == pytest.approx(slope, abs=1e-6)


@few
@given(steps())
def test_arguments_are_left_alone(arguments):
    before = [np.copy(argument) for argument in arguments]
    step = bert_fine_tuning_step(*arguments)
    for now, then in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(now, then)
    for name in ("classifier_W", "classifier_b"):
        assert not any(np.shares_memory(step[name], array) for array in arguments[:4])


@few
@given(steps())
def test_other_positions_do_not_matter(arguments):
    hidden_states, *others = arguments
    changed = hidden_states.copy()
    changed[:, 1:] += 1
    for name, value in bert_fine_tuning_step(hidden_states, *others).items():
        np.testing.assert_array_equal(value, bert_fine_tuning_step(changed, *others)[name])


@few
@given(steps())
def test_a_small_step_lowers_the_loss(arguments):
    hidden_states, labels, W, b, _ = arguments
    step = bert_fine_tuning_step(hidden_states, labels, W, b, 1e-4)
    after = bert_fine_tuning_step(hidden_states, labels, step["classifier_W"], step["classifier_b"], 1e-4)["loss"]
    assert after <= step["loss"] + 1e-12


@few
@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=6), st.floats(-1e4, 1e4))
def test_softmax_is_a_distribution_and_ignores_a_shift(row, shift):
    p = softmax(np.array([row]))
    assert np.isfinite(p).all()
    assert p.sum() == pytest.approx(1)
    np.testing.assert_allclose(softmax(np.array([row]) + shift), p, atol=1e-9)


@few
@given(st.lists(st.floats(-1e4, 1e4), min_size=2, max_size=6))
def test_cross_entropy_is_torchs_for_extreme_logits(row):
    logits, labels = np.array([row, row[::-1]]), np.array([0, 1])
    loss = cross_entropy(logits, labels)
    assert np.isfinite(loss)
    assert loss == pytest.approx(F.cross_entropy(torch.tensor(logits), torch.tensor(labels)).item(), abs=1e-9)


def test_softmax_of_three_axes_runs_along_the_last():
    logits = np.arange(12.0).reshape(2, 2, 3)
    np.testing.assert_allclose(softmax(logits), torch.tensor(logits).softmax(dim=-1).numpy())


def changed(**replacements):
    names = ("hidden_states", "labels", "classifier_W", "classifier_b", "learning_rate")
    return dict(zip(names, worked_example(), strict=True)) | replacements


@pytest.mark.parametrize(
    ("replacements", "message"),
    [
        ({"hidden_states": np.ones((2, 2))}, r"hidden_states must have shape \(B, S, D\), all > 0, got \(2, 2\)"),
        ({"hidden_states": np.ones((0, 2, 2)), "labels": np.array([], int)}, r"hidden_states .*, got \(0, 2, 2\)"),
        ({"hidden_states": np.ones((2, 0, 2))}, r"hidden_states must have shape .*, got \(2, 0, 2\)"),
        ({"hidden_states": np.ones((2, 2, 2), int)}, "hidden_states must hold floating-point numbers, got dtype int64"),
        ({"hidden_states": np.full((2, 2, 2), np.nan)}, "hidden_states must hold finite numbers, got nan"),
        ({"hidden_states": [[[1.0]], [[1.0, 2.0]]]}, "hidden_states must be an array: its rows differ in length"),
        ({"hidden_states": np.ones((2, 2, 2)) + 1j}, "hidden_states must hold floating-point numbers"),
        ({"labels": np.array([0])}, r"labels must have shape \(2,\), one for each sequence, got \(1,\)"),
        ({"labels": np.array([[0], [2]])}, r"labels must have shape \(2,\), .*, got \(2, 1\)"),
        ({"labels": np.array([0, 3])}, r"labels must be in \[0, C\) = \[0, 3\), got 3"),
        ({"labels": np.array([-1, 0])}, r"labels must be in \[0, C\) = \[0, 3\), got -1"),
        ({"labels": np.array([0.0, 1.0])}, "labels must be whole numbers, got dtype float64"),
        ({"labels": np.array([True, False])}, "labels must be whole numbers, got dtype bool"),
        ({"labels": [[0], [0, 1]]}, "labels must be an array: its rows differ in length"),
        ({"classifier_W": np.ones((3, 3))}, r"classifier_W must have shape \(D, C\) with D = 2 .*, got \(3, 3\)"),
        ({"classifier_W": np.ones((2, 0))}, r"classifier_W must have shape .*, got \(2, 0\)"),
        ({"classifier_W": np.ones(2)}, r"classifier_W must have shape .*, got \(2,\)"),
        ({"classifier_W": np.full((2, 3), -np.inf)}, "classifier_W must hold finite numbers, got -inf"),
        ({"classifier_b": np.zeros((1, 3))}, r"classifier_b must have shape \(3,\), .*, got \(1, 3\)"),
        ({"classifier_b": np.array([0, 0, np.nan])}, "classifier_b must hold finite numbers, got nan"),
        ({"classifier_b": np.array(["a", "b", "c"])}, "classifier_b must hold floating-point numbers, got dtype <U1"),
        ({"learning_rate": 0}, "learning_rate must be one finite number greater than 0, got 0"),
        ({"learning_rate": -1e-3}, "learning_rate must be one finite number greater than 0, got -0.001"),
        ({"learning_rate": np.nan}, "learning_rate must be .*, got nan"),
        ({"learning_rate": np.inf}, "learning_rate must be .*, got inf"),
        ({"learning_rate": "0.1"}, "learning_rate must be .*, got '0.1'"),
        ({"learning_rate": True}, "learning_rate must be .*, got True"),
        ({"learning_rate": np.array([0.1])}, r"learning_rate must be .*, got array\(\[0.1\]\)"),
    ],
)
def test_bad_arguments_are_refused_by_name(replacements, message):
    with pytest.raises(ValueError, match=message):
        bert_fine_tuning_step(**changed(**replacements))


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (softmax, [np.zeros((2, 0))], r"logits must have shape \(..., C\), C > 0, got \(2, 0\)"),
        (softmax, [1.0], r"logits must have shape"),
        (softmax, [np.array([np.inf, 0])], "logits must hold finite numbers, got inf"),
        (cross_entropy, [np.zeros(3), np.array([0])], r"logits must have shape \(B, C\), both > 0, got \(3,\)"),
        (cross_entropy, [np.zeros((0, 3)), np.array([], int)], r"logits must have shape .*, got \(0, 3\)"),
        (cross_entropy, [np.zeros((1, 3)), np.array([3])], r"labels must be in \[0, C\) = \[0, 3\), got 3"),
        (cross_entropy, [np.array([["a"]]), np.array([0])], "logits must hold numbers, got dtype <U1"),
    ],
)
def test_bad_logits_are_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.float16, np.float32])
def test_narrow_numbers_are_widened_before_anything_is_subtracted(dtype):
    logits = np.array([[127, 0], [100, 3]], dtype=dtype) - np.array(0 if dtype == np.uint8 else 28, dtype=dtype)
    wide = logits.astype(np.float64)
    np.testing.assert_array_equal(softmax(logits), softmax(wide))
    labels = np.array([1, 1])
    assert cross_entropy(logits, labels) == cross_entropy(wide, labels)
    expected = F.cross_entropy(torch.tensor(wide), torch.tensor(labels)).item()
    assert cross_entropy(logits, labels) == pytest.approx(expected)


def test_many_classes_in_half_precision():
    assert cross_entropy(np.zeros((1, 100_000), np.float16), [1]) == pytest.approx(np.log(100_000))
