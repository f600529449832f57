"""Faults of freezing that other code had. Each is a check that ours passes and a mutant with the fault fails.

A check is called as holds(implementation, case). The mutant has to pass it on a harmless case too, so that it
cannot fail for another reason than its fault.
"""

import pytest
import torch
from torch import nn

from bertbook.discriminative import layerwise_groups
from bertbook.forgetting import grammar_config
from bertbook.freezing import freeze, model_parts
from bertbook.heads import BertForPreTraining
from bertbook.tiny import TinyBertForClassification, count_parameters
from fault_reports import check_report, report

# huggingface/transformers#95, allenai/allennlp#2927


def freezes(freezing, names: list[str]) -> bool:
    """The named parts get no gradient, and the trainable count falls by their size."""
    torch.manual_seed(0)
    model = TinyBertForClassification()
    parts = model_parts(model)
    expected = count_parameters(model) - sum(p.numel() for name in names for p in parts[name])
    freezing(model, names)
    model(torch.zeros(1, 3, dtype=torch.long)).sum().backward()
    untouched = all(p.grad is None for name in names for p in parts[name])
    return untouched and count_parameters(model) == expected


def flag_on_the_module(model, names):
    for name in names:
        module = model.head if name == "head" else model.layers[int(name.removeprefix("layer."))]
        module.requires_grad = False


def refuses_unknown_names(freezing, name: str) -> bool:
    """A part that the model does not have is an error that lists those that it has."""
    model = TinyBertForClassification()
    if name in model_parts(model):
        freezing(model, [name])
        return count_parameters(model) < 28994
    try:
        freezing(model, [name])
    except ValueError as error:
        return name in str(error) and "embeddings, layer.0, layer.1, head" in str(error)
    return False


def by_prefix_of_the_name(model, names):
    for parameter_name, parameter in model.named_parameters():
        if parameter_name.startswith(tuple(name.replace("layer.", "layers.") for name in names)):
            parameter.requires_grad_(False)


# huggingface/transformers#8907


def freezes_the_tied_decoder(model_class, names: list[str]) -> bool:
    """The decoder trains exactly when the token table does, since both are one tensor; the rest of the head trains."""
    torch.manual_seed(0)
    model = model_class(grammar_config())
    freeze(model, names)
    head = model.cls["predictions"]
    model(torch.tensor([[1, 5, 6]])).prediction_logits.sum().backward()
    head_trains = all(p.grad is not None for p in (head.bias, head.transform["dense"].weight))
    return head_trains and (head.decoder.weight.grad is None) == ("embeddings" in names)


class UntiedDecoder(BertForPreTraining):
    """A copy of the token table: frozen embeddings, and a decoder that moves away from them."""

    def __init__(self, config):
        super().__init__(config)
        head = self.cls["predictions"]
        head.decoder.weight = nn.Parameter(head.decoder.weight.detach().clone())


# namisan/mt-dnn PR #37, facebookresearch/BalancingGroups#6


def groups_are_right(make_groups, part: str) -> bool:
    """In this part, each trainable parameter is in one group; matrices are decayed, biases and norms are not."""
    model = TinyBertForClassification()
    rates = dict.fromkeys(model_parts(model), 1e-3)
    decays: dict[int, list[bool]] = {}
    for group in make_groups(model, rates):
        for parameter in group["params"]:
            decays.setdefault(id(parameter), []).append(group["weight_decay"] > 0)
    mine = {id(p) for p in model_parts(model)[part]}
    return all(
        decays.get(id(p)) == [not ("norm" in name or name.endswith("bias"))]
        for name, p in model.named_parameters()
        if id(p) in mine
    )


def grouped(model, rates, decays):
    return [
        {"params": [p], "lr": rates["head"], "weight_decay": d} for n, p in model.named_parameters() for d in decays(n)
    ]


def other_codes_norm_names(model, rates):
    """The list of names was written for another model: LayerNorm.weight exists nowhere in this one."""
    return grouped(model, rates, lambda name: [0.0 if "LayerNorm.weight" in name or name.endswith("bias") else 0.01])


def in_both_groups(model, rates):
    """A norm's bias matches two rules and comes twice."""
    return grouped(model, rates, lambda name: [0.0] * (("norm" in name) + name.endswith("bias")) or [0.01])


def in_no_group(model, rates):
    """What stands in a norm is taken out of one group and put into none."""
    return grouped(model, rates, lambda name: [] if "norm" in name else [0.0] if name.endswith("bias") else [0.01])


GROUP_FAULTS = (other_codes_norm_names, in_both_groups, in_no_group)
REPORTS = [
    *report(
        "huggingface/transformers#95",
        freezes,
        freeze,
        flag_on_the_module,
        harmless=[],
        harmful=[["layer.0"], ["layer.0", "layer.1"], ["head"]],
    ),
    *report(
        "allenai/allennlp#2927",
        refuses_unknown_names,
        freeze,
        by_prefix_of_the_name,
        harmless="layer.1",
        harmful=["layer.2", "encoder", "layers.0"],
    ),
    *report(
        "huggingface/transformers#8907",
        freezes_the_tied_decoder,
        BertForPreTraining,
        UntiedDecoder,
        harmless=["layer.0"],
        harmful=[["embeddings"], ["embeddings", "layer.0", "layer.1"]],
    ),
    *report(
        "namisan/mt-dnn PR #37",
        groups_are_right,
        layerwise_groups,
        *GROUP_FAULTS,
        harmless="head",
        harmful=["layer.0", "layer.1"],
    ),
]


@pytest.mark.parametrize(("holds", "ours", "mutant", "harmless", "harmful"), REPORTS)
def test_report(holds, ours, mutant, harmless, harmful):
    check_report(holds, ours, mutant, harmless, harmful)


def test_huggingface_transformers_95_a_flag_on_a_module_is_found():
    model = TinyBertForClassification()
    model.layers.requires_grad = False
    with pytest.raises(ValueError, match="the module ModuleList has an attribute requires_grad, which freezes nothing"):
        freeze(model, ["embeddings"])
    assert count_parameters(model) == 28994
