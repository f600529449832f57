"""Warm-up and decay: the shape of the line, its ends, and what is refused."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.optim.lr_scheduler import LambdaLR

from bertbook.schedules import count_steps, linear_warmup_decay

property_test = settings(max_examples=30, deadline=None, derandomize=True)


@st.composite
def runs(draw):
    total = draw(st.integers(1, 300))
    return draw(st.integers(0, total)), total


@given(runs())
@property_test
def test_every_step_moves_and_none_passes_the_peak(run):
    warmup, total = run
    factors = [linear_warmup_decay(s, warmup_steps=warmup, total_steps=total) for s in range(total)]
    assert all(0 < factor <= 1 for factor in factors)
    assert max(factors) == 1
    assert factors[:warmup] == sorted(factors[:warmup])
    assert factors[warmup:] == sorted(factors[warmup:], reverse=True)


@given(runs(), st.integers(0, 1000))
@property_test
def test_after_the_end_nothing_moves(run, later):
    warmup, total = run
    assert linear_warmup_decay(total + later, warmup_steps=warmup, total_steps=total) == 0


@given(runs())
@property_test
def test_both_parts_are_straight_lines(run):
    warmup, total = run
    factors = [linear_warmup_decay(s, warmup_steps=warmup, total_steps=total) for s in range(total + 1)]
    up = {round(b - a, 9) for a, b in zip([0.0, *factors[:warmup]], factors[:warmup], strict=False)}
    down = {round(b - a, 9) for a, b in zip(factors[warmup:], factors[warmup + 1 :], strict=False)}
    assert len(up) == (warmup > 0)
    assert len(down) <= 1 + (warmup == total)


def test_lambda_lr_counts_as_the_schedule_does():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    scheduler = LambdaLR(optimizer, lambda s: linear_warmup_decay(s, warmup_steps=2, total_steps=6))
    rates = []
    for _ in range(8):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates == [1.0, 2.0, 2.0, 1.5, 1.0, 0.5, 0.0, 0.0]


@given(st.integers(1, 500), st.integers(1, 64), st.integers(1, 5))
@property_test
def test_steps_are_the_batches_of_a_loader(num_examples, batch_size, epochs):
    batches = [range(num_examples)[i : i + batch_size] for i in range(0, num_examples, batch_size)]
    assert count_steps(num_examples, batch_size=batch_size, epochs=epochs) == epochs * len(batches)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1, 1, 10), ValueError, "step must be at least 0, got -1"),
        ((0, 11, 10), ValueError, "warmup_steps must be from 0 to total_steps = 10, got 11"),
        ((0, -1, 10), ValueError, "warmup_steps must be from 0 to total_steps = 10, got -1"),
        ((0, 0, 0), ValueError, "total_steps must be at least 1, got 0"),
        ((0.5, 0, 10), TypeError, "step must be an int, got 0.5"),
        ((0, 0.1, 10), TypeError, "warmup_steps must be an int, got 0.1"),  # a share instead of steps
        ((0, 0, True), TypeError, "total_steps must be an int, got True"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(arguments, error, message):
    step, warmup, total = arguments
    with pytest.raises(error, match=re.escape(message)):
        linear_warmup_decay(step, warmup_steps=warmup, total_steps=total)


@pytest.mark.parametrize("name", ["num_examples", "batch_size", "epochs"])
def test_counts_of_nothing_are_refused(name):
    sizes = {"num_examples": 5, "batch_size": 2, "epochs": 1} | {name: 0}
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        count_steps(sizes.pop("num_examples"), **sizes)


@pytest.mark.parametrize(("name", "value"), [("num_examples", 100.5), ("batch_size", 32.2), ("epochs", 1.5)])
def test_counts_are_whole(name, value):
    sizes = {"num_examples": 5, "batch_size": 2, "epochs": 1} | {name: value}
    with pytest.raises(TypeError, match=f"{name} must be an int, got {value}"):
        count_steps(sizes.pop("num_examples"), **sizes)
