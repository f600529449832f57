"""Freezing: parts, flags, counts, what backpropagation still does, and the grammar on which forgetting is measured."""

import re
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bertbook.config import BertConfig
from bertbook.freezing import (
    bottom_parts,
    freeze,
    gradient_norms,
    model_parts,
    numbers_kept,
    training_flops,
    unfreeze,
    unfreezing_schedule,
)
from bertbook.heads import (
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from bertbook.model import BertModel
from bertbook.tiny import TinyBertForClassification, count_parameters

property_test = settings(max_examples=20, deadline=None, derandomize=True)
SMALL = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16)
MODELS = {
    "toy": lambda: TinyBertForClassification(num_layers=3),
    "encoder": lambda: BertModel(SMALL),
    "pretraining": lambda: BertForPreTraining(SMALL),
    "sequence": lambda: BertForSequenceClassification(SMALL, num_labels=2),
    "token": lambda: BertForTokenClassification(SMALL, num_labels=2),
    "answer": lambda: BertForQuestionAnswering(SMALL),
}
LAYERS = ["embeddings", "layer.0", "layer.1", "layer.2"]


def toy_batch(size: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 100, (size, 5), generator=generator), torch.arange(size) % 2


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_is_in_exactly_one_part(name):
    model = MODELS[name]()
    parts = model_parts(model)
    listed = [id(p) for parameters in parts.values() for p in parameters]
    assert sorted(listed) == sorted(id(p) for p in model.parameters())
    top = {"pretraining": ["pooler", "head"], "sequence": ["pooler", "head"], "encoder": ["pooler"]}
    assert list(parts) == LAYERS + top.get(name, ["head"])


def test_layers_are_ordered_by_number_not_by_letters():
    model = TinyBertForClassification(num_layers=11)
    assert list(model_parts(model)) == ["embeddings", *(f"layer.{i}" for i in range(11)), "head"]


@given(st.sets(st.sampled_from([*LAYERS, "pooler", "head"])))
@property_test
def test_freezing_takes_away_exactly_the_named_parts(names):
    model = MODELS["sequence"]()
    sizes = {part: sum(p.numel() for p in ps) for part, ps in model_parts(model).items()}
    report = freeze(model, names)
    assert report.before == sum(sizes.values())
    assert report.after == report.before - sum(sizes[name] for name in names) == count_parameters(model)
    for part, parameters in model_parts(model).items():
        assert {p.requires_grad for p in parameters} == {part not in names}
    assert unfreeze(model, names).after == report.before


@pytest.mark.parametrize("name", MODELS)
def test_frozen_parts_do_not_move_in_training(name):
    model = MODELS[name]()
    frozen = ["embeddings", "layer.0"]
    freeze(model, frozen)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    still = {n for n, p in model.named_parameters() if torch.equal(p, before[n])}
    assert still == {n for n, p in model.named_parameters() if not p.requires_grad}
    assert still


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ("embeddings", TypeError, "names must be a list of parts, got the text 'embeddings'"),
        (["layer.3"], ValueError, "names holds 'layer.3'; this model has the parts embeddings, layer.0, layer.1,"),
        (["embeddings", "tok_emb"], ValueError, "names holds 'tok_emb'"),
    ],
)
def test_wrong_names_are_errors_and_change_nothing(names, error, message):
    model = MODELS["toy"]()
    with pytest.raises(error, match=re.escape(message)):
        freeze(model, names)
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("depth", range(4))
def test_bottom_parts(depth):
    assert bottom_parts(MODELS["sequence"](), depth) == LAYERS[: depth + 1]


@pytest.mark.parametrize("depth", [-1, 4])
def test_bottom_parts_refuses_a_depth_that_does_not_exist(depth):
    with pytest.raises(ValueError, match=f"num_layers must be from 0 to 3, got {depth}"):
        bottom_parts(MODELS["sequence"](), depth)


@pytest.mark.parametrize("name", MODELS)
def test_each_stage_adds_one_part_below_and_the_last_has_all(name):
    model = MODELS[name]()
    stages = list(unfreezing_schedule(model))
    parts = list(model_parts(model))
    assert len(stages) == 1 + len(LAYERS)
    assert stages[0] == [part for part in parts if part not in LAYERS]
    assert stages[-1] == parts
    for earlier, later in pairwise(stages):
        assert later[1:] == earlier
    assert all(p.requires_grad for p in model.parameters())  # a schedule only tells


def test_bert_base_has_fourteen_stages():
    with torch.device("meta"):
        model = BertForSequenceClassification(BertConfig.base(), num_labels=2)
    assert len(list(unfreezing_schedule(model))) == 14


def test_freezing_below_changes_no_gradient_above():
    torch.manual_seed(0)
    model = MODELS["toy"]()
    free = gradient_norms(model, *toy_batch())
    freeze(model, ["embeddings", "layer.0"])
    frozen = gradient_norms(model, *toy_batch())
    assert frozen == free | {"embeddings": "none", "layer.0": "none"}
    assert all(p.grad is None for p in model.parameters())


def test_gradients_cross_a_frozen_layer():
    torch.manual_seed(0)
    model = MODELS["toy"]()
    free = gradient_norms(model, *toy_batch())
    freeze(model, ["layer.0"])
    assert gradient_norms(model, *toy_batch())["embeddings"] == free["embeddings"] > 0


def test_a_wholly_frozen_model_has_no_gradient_and_no_backward_pass():
    model = MODELS["toy"]()
    freeze(model, model_parts(model))
    assert set(gradient_norms(model, *toy_batch()).values()) == {"none"}
    forward, backward = training_flops(model, *toy_batch())
    assert forward > 0 == backward


def test_flops_by_hand():
    # Linear(6, 2) on 5 rows: 2 * 5 * 6 * 2 forward; as many again for the weight, and for the input.
    model = nn.Sequential(nn.Embedding(4, 2), nn.Flatten(1), nn.Linear(6, 2))
    batch = torch.zeros(5, 3, dtype=torch.long), torch.zeros(5, dtype=torch.long)
    assert training_flops(model, *batch) == (120, 240)
    model[0].requires_grad_(False)
    assert training_flops(model, *batch) == (120, 120)
    model[2].weight.requires_grad_(False)
    assert training_flops(model, *batch) == (120, 0)


def test_flops_of_a_bert_by_hand():
    """What a fused attention kernel computes is counted, too."""
    B, T, D, widened, layers = 6, 5, 8, 16, 3
    per_layer = 4 * B * T * D * D + 2 * B * T * T * D + 2 * B * T * D * widened  # projections, attention, feed-forward
    multiplications = layers * per_layer + B * D * D + B * D * 2  # pooler, classifier
    ids, labels = toy_batch()
    assert training_flops(MODELS["sequence"](), ids % 9, labels)[0] == 2 * multiplications


def test_a_frozen_layer_saves_its_whole_share_only_with_all_below():
    def backward(names):
        model = MODELS["toy"]()
        freeze(model, names)
        return training_flops(model, *toy_batch())[1]

    nothing, alone, with_below = backward([]), backward(["layer.0"]), backward(["embeddings", "layer.0"])
    assert backward(["embeddings"]) == nothing  # the LayerNorm of layer 0 still wants its gradient
    assert nothing > alone > with_below


@given(st.sets(st.sampled_from(LAYERS)))
@property_test
def test_numbers_kept(names):
    model = MODELS["toy"]()
    after = freeze(model, names).after
    kept = numbers_kept(model)
    assert kept["weights"] == sum(p.numel() for p in model.parameters())
    assert kept["gradients"] == after
    assert kept["Adam"] == 2 * after
    assert kept["all"] == kept["weights"] + kept["gradients"] + kept["Adam"]


def test_old_gradients_are_not_counted():
    torch.manual_seed(0)
    model = MODELS["toy"]()
    expected = gradient_norms(model, *toy_batch())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    assert gradient_norms(model, *toy_batch()) == expected
