"""Groups of parameters, and Adam's updates against torch's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bertbook.config import BertConfig
from bertbook.heads import BertForPreTraining, BertForSequenceClassification
from bertbook.optimizers import adam_updates, parameter_groups

property_test = settings(max_examples=20, deadline=None, derandomize=True)
MINI = BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12)


@given(st.sets(st.integers(0, 60)))
@property_test
def test_every_trainable_parameter_is_in_exactly_one_group(frozen):
    model = BertForPreTraining(MINI)
    for i, parameter in enumerate(model.parameters()):
        parameter.requires_grad = i not in frozen
    if not any(p.requires_grad for p in model.parameters()):
        return
    grouped = [id(p) for group in parameter_groups(model, weight_decay=0.01) for p in group["params"]]
    trainable = [id(p) for p in model.parameters() if p.requires_grad]
    assert sorted(grouped) == sorted(trainable)  # as lists: one that is in twice would show
    assert len(set(grouped)) == len(grouped)


def test_biases_and_layernorms_do_not_decay():
    decayed, undecayed = parameter_groups(BertForSequenceClassification(MINI, num_labels=2), weight_decay=0.01)
    assert (decayed["weight_decay"], undecayed["weight_decay"]) == (0.01, 0.0)
    assert all(name.endswith(".bias") or ".LayerNorm." in name for name in undecayed["names"])
    assert not [name for name in decayed["names"] if name.endswith("bias") or "LayerNorm" in name]
    assert "bert.embeddings.word_embeddings.weight" in decayed["names"]
    assert "bert.embeddings.LayerNorm.weight" in undecayed["names"]


def test_a_layernorm_under_any_name_does_not_decay():
    model = nn.ModuleDict({"gamma_beta": nn.LayerNorm(3), "LayerNorm_like": nn.Linear(3, 3)})
    decayed, undecayed = parameter_groups(model, weight_decay=0.1)
    assert decayed["names"] == ["LayerNorm_like.weight"]
    assert set(undecayed["names"]) == {"gamma_beta.weight", "gamma_beta.bias", "LayerNorm_like.bias"}


def test_the_tied_table_counts_once_and_names_fit_parameters():
    model = BertForPreTraining(MINI)
    named = dict(model.named_parameters())
    groups = parameter_groups(model, weight_decay=0.01)
    for group in groups:
        assert all(named[name] is p for name, p in zip(group["names"], group["params"], strict=True))
    table = model.bert.embeddings.word_embeddings.weight
    assert sum(p is table for group in groups for p in group["params"]) == 1
    assert any(name == "cls.predictions.bias" for name in groups[1]["names"])


def test_the_optimiser_decays_only_the_first_group():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = torch.optim.AdamW(parameter_groups(model, weight_decay=0.5), lr=0.1)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {"0.weight"}


@pytest.mark.parametrize("weight_decay", [-0.1, float("nan")])
def test_a_weight_decay_that_makes_no_sense_is_refused(weight_decay):
    with pytest.raises(ValueError, match="weight_decay must be at least 0, got"):
        parameter_groups(nn.Linear(2, 2), weight_decay=weight_decay)


def test_a_model_that_is_wholly_frozen_is_refused():
    with pytest.raises(ValueError, match="model has no trainable parameter: unfreeze"):
        parameter_groups(nn.Linear(2, 2).requires_grad_(False), weight_decay=0.0)


@given(st.lists(st.floats(-5, 5, allow_nan=False).filter(lambda g: abs(g) > 1e-2), min_size=1, max_size=12))
@property_test
def test_corrected_updates_are_torchs(gradients):
    parameter = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = torch.optim.Adam([parameter], lr=1.0, eps=1e-6)
    found = []
    for gradient in gradients:
        before = parameter.item()
        parameter.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        found.append(before - parameter.item())
    assert adam_updates(gradients, bias_correction=True) == pytest.approx(found, abs=1e-9)


def test_without_correction_the_first_update_is_larger_by_the_known_factor():
    (update,) = adam_updates([0.3], bias_correction=False, eps=1e-12)
    assert update == pytest.approx(0.1 / 0.001**0.5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"betas": (1.0, 0.9)}, "betas must be in"), ({"betas": (0.9, -0.1)}, "betas must be in"), ({"eps": 0.0}, "eps")],
)
def test_rates_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        adam_updates([1.0], bias_correction=True, **wrong)


@pytest.mark.parametrize(
    "module",
    [nn.RMSNorm(4), nn.GroupNorm(2, 4), nn.BatchNorm1d(4), nn.LSTM(3, 4), nn.MultiheadAttention(4, 2)],
    ids=lambda module: type(module).__name__,
)
def test_vectors_and_biases_of_any_module_do_not_decay(module):
    decayed, undecayed = parameter_groups(module, weight_decay=0.1)
    assert all(p.dim() == 2 for p in decayed["params"])
    assert not [name for name in decayed["names"] if "bias" in name]
    assert len(decayed["names"]) + len(undecayed["names"]) == len(list(module.parameters()))


def test_a_beta_of_zero_forgets_at_once():
    assert adam_updates([2.0, -3.0], bias_correction=False, betas=(0.0, 0.0)) == pytest.approx([1.0, -1.0])
