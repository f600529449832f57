"""Rates by layer: the schedule, and parameter groups that miss and repeat nothing."""

import re
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.discriminative import factor_per_layer, geometric_rates, layerwise_groups
from bertbook.freezing import freeze, model_parts
from bertbook.tiny import TinyBertForClassification

property_test = settings(max_examples=20, deadline=None, derandomize=True)
PARTS = ["embeddings", "layer.0", "layer.1", "head"]
RATES = dict(zip(PARTS, (1e-4, 2e-4, 3e-4, 4e-4), strict=True))


@given(st.integers(1, 12), st.floats(1e-6, 1.0), st.floats(1.0, 4.0))
@property_test
def test_each_rate_is_the_one_above_divided_by_the_factor(num_parts, top_rate, factor):
    rates = list(geometric_rates([str(i) for i in range(num_parts)], top_rate=top_rate, factor=factor).values())
    assert rates[-1] == top_rate
    for lower, upper in pairwise(rates):
        assert upper / lower == pytest.approx(factor)
    if num_parts > 1:
        assert factor_per_layer((0, rates[0]), (num_parts - 1, rates[-1])) == pytest.approx(factor)


@given(st.sets(st.sampled_from(PARTS), max_size=3))
@property_test
def test_every_trainable_parameter_is_in_exactly_one_group_with_its_parts_rate(frozen):
    model = TinyBertForClassification()
    freeze(model, frozen)
    groups = layerwise_groups(model, RATES, weight_decay=0.1)
    grouped = [id(p) for group in groups for p in group["params"]]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    rate_of = {id(p): RATES[part] for part, parameters in model_parts(model).items() for p in parameters}
    names = {id(p): name for name, p in model.named_parameters()}
    for group in groups:
        for parameter in group["params"]:
            assert group["lr"] == rate_of[id(parameter)]
            spared = "norm" in names[id(parameter)] or names[id(parameter)].endswith("bias")
            assert group["weight_decay"] == (0.0 if spared else 0.1)


def test_the_optimiser_uses_the_rates():
    model = TinyBertForClassification()
    optimizer = torch.optim.Adam(layerwise_groups(model, RATES, weight_decay=0.0), lr=1.0)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    moved = {name: (before[name] - p).max().item() for name, p in model.named_parameters()}
    assert moved["tok_emb.weight"] == pytest.approx(1e-4, rel=1e-2)
    assert moved["layers.1.attn.out.weight"] == pytest.approx(3e-4, rel=1e-2)
    assert moved["head.bias"] == pytest.approx(4e-4, rel=1e-2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: geometric_rates([], top_rate=1, factor=2), "parts is empty: give at least one part"),
        (lambda m: geometric_rates(["a"], top_rate=0, factor=2), "top_rate must be greater than 0, got 0"),
        (lambda m: geometric_rates(["a"], top_rate=1, factor=0.5), "factor must be at least 1, got 0.5"),
        (lambda m: factor_per_layer((6, 1.0), (6, 2.0)), "upper must be a higher layer than 6, got 6"),
        (lambda m: layerwise_groups(m, RATES | {"pooler": 1}), "rates names 'pooler'; this model has the parts emb"),
        (lambda m: geometric_rates(["a"], top_rate=1, factor=float("inf")), "factor must be at least 1, got inf"),
        (lambda m: factor_per_layer((0, -1.0), (3, 8.0)), "lower must have a rate greater than 0, got -1.0"),
        (lambda m: factor_per_layer((0, 1.0), (3, 0)), "upper must have a rate greater than 0, got 0"),
        (lambda m: layerwise_groups(m.requires_grad_(False), RATES), "model has no trainable parameter"),
        (lambda m: layerwise_groups(m, {"head": 1.0}), "rates lacks 'embeddings', which has something to train"),
        (lambda m: layerwise_groups(m, RATES | {"head": 0.0}), "rates must be greater than 0 (freeze a part to keep"),
        (lambda m: layerwise_groups(m, RATES, weight_decay=-1), "weight_decay must not be negative, got -1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(TinyBertForClassification())


def test_parts_are_not_a_text():
    with pytest.raises(TypeError, match="parts must be a list of parts, got the text 'head'"):
        geometric_rates("head", top_rate=1, factor=2)
