"""Freezing: which parts of a model train, and what is saved when some do not.

A part is what a reader would name: "embeddings", "layer.0", "layer.1", ..., "pooler"
and "head". The names are the same for the toy and for every model on a BertModel.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bertbook.outputs import logits_of
from bertbook.tiny import count_parameters

EMBEDDINGS = re.compile(r"(^|\.)(tok_emb|pos_emb|embeddings)\.")
LAYER = re.compile(r"(^|\.)(layers|encoder\.layer)\.(\d+)\.")
POOLER = re.compile(r"(^|\.)pooler\.")


def part_of(parameter_name: str) -> str:
    """The part to which a parameter belongs, told by its name.

    >>> part_of("bert.encoder.layer.11.attention.self.query.weight")
    'layer.11'
    >>> part_of("pos_emb.weight"), part_of("classifier.bias")
    ('embeddings', 'head')
    """
    if EMBEDDINGS.search(parameter_name):
        return "embeddings"
    if layer := LAYER.search(parameter_name):
        return f"layer.{layer[3]}"
    return "pooler" if POOLER.search(parameter_name) else "head"


def model_parts(model: nn.Module) -> dict[str, list[nn.Parameter]]:
    """Every parameter once, by part, from the bottom to the top.

    A tied parameter has two names and one tensor; it belongs to the part of the first.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> list(model_parts(TinyBertForClassification()))
    ['embeddings', 'layer.0', 'layer.1', 'head']
    """
    parts: dict[str, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        parts.setdefault(part_of(name), []).append(parameter)
    layers = [part for part in parts if part.startswith("layer.")]
    layers.sort(key=lambda part: int(part.removeprefix("layer.")))
    order = ["embeddings", *layers, "pooler", "head"]
    return {part: parts[part] for part in order if part in parts}


@dataclass(frozen=True)
class TrainableCount:
    """What freeze and unfreeze report: trainable numbers before and after.

    >>> print(TrainableCount(before=100, after=40))
    trainable numbers: 100 before, 40 after
    """

    before: int
    after: int

    def __str__(self) -> str:
        return f"trainable numbers: {self.before:,} before, {self.after:,} after"


def freeze(model: nn.Module, names: Iterable[str]) -> TrainableCount:
    """Stop the named parts from training, and report the count before and after.

    Args:
        model: the toy, a BertModel, or a model on top of one.
        names: parts, such as ["embeddings", "layer.0"]; see model_parts.

    Returns:
        the trainable numbers before and after, both counted on the model.

    Raises:
        TypeError: if names is a single string.
        ValueError: if the model has no part of that name, or somebody has set
            requires_grad on a module of it, which freezes nothing.

    Source: the fine-tuning text, layer freezing.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> model = TinyBertForClassification()
    >>> print(freeze(model, ["embeddings", "layer.0", "layer.1"]))
    trainable numbers: 28,994 before, 66 after
    >>> freeze(model, ["layer.2"])
    Traceback (most recent call last):
    ValueError: names holds 'layer.2'; \
this model has the parts embeddings, layer.0, layer.1, head
    """
    return set_trainable(model, names, False)


def unfreeze(model: nn.Module, names: Iterable[str]) -> TrainableCount:
    """Let the named parts train again. Arguments, report and errors as for freeze.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> model = TinyBertForClassification()
    >>> _ = freeze(model, ["embeddings"])
    >>> print(unfreeze(model, ["embeddings"]))
    trainable numbers: 25,282 before, 28,994 after
    """
    return set_trainable(model, names, True)


def set_trainable(
    model: nn.Module, names: Iterable[str], trainable: bool
) -> TrainableCount:
    """What freeze and unfreeze share: check everything, then set the flags.

    >>> linear = nn.Linear(2, 2)
    >>> linear.requires_grad = False  # a new attribute that no code reads
    >>> set_trainable(linear, ["head"], False)
    Traceback (most recent call last):
    ValueError: the module Linear has an attribute requires_grad, which freezes \
nothing: delete it, and freeze parameters
    """
    if isinstance(names, str):
        raise TypeError(f"names must be a list of parts, got the text {names!r}")
    names, parts = list(names), model_parts(model)
    for name in names:
        if name not in parts:
            raise ValueError(
                f"names holds {name!r}; this model has the parts {', '.join(parts)}"
            )
    for module in model.modules():
        if "requires_grad" in vars(module):
            raise ValueError(
                f"the module {type(module).__name__} has an attribute requires_grad, "
                "which freezes nothing: delete it, and freeze parameters"
            )
    before = count_parameters(model)
    for name in names:
        for parameter in parts[name]:
            parameter.requires_grad_(trainable)
    return TrainableCount(before, count_parameters(model))


def bottom_parts(model: nn.Module, num_layers: int) -> list[str]:
    """The embeddings and the lowest num_layers layers: what is usually frozen.

    Raises:
        ValueError: if num_layers is not from 0 to the model's number of layers.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> bottom_parts(TinyBertForClassification(), 1)
    ['embeddings', 'layer.0']
    """
    layers = [part for part in model_parts(model) if part.startswith("layer.")]
    if not 0 <= num_layers <= len(layers):
        raise ValueError(
            f"num_layers must be from 0 to {len(layers)}, got {num_layers}"
        )
    return ["embeddings", *layers[:num_layers]]


def unfreezing_schedule(model: nn.Module) -> Iterator[list[str]]:
    """Which parts train at each stage of gradual unfreezing, from the top down.

    First what stands on the layers (pooler and head), then one layer more each stage,
    at the end the embeddings too.

    Yields:
        the trainable parts of a stage, bottom first. The flags are not touched.

    Source: the fine-tuning text, gradual unfreezing; Howard and Ruder 2018.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> for stage in unfreezing_schedule(TinyBertForClassification()):
    ...     print(stage)
    ['head']
    ['layer.1', 'head']
    ['layer.0', 'layer.1', 'head']
    ['embeddings', 'layer.0', 'layer.1', 'head']
    """
    parts = list(model_parts(model))
    top = next((i for i, part in enumerate(parts) if part in ("pooler", "head")), None)
    top = len(parts) - 1 if top is None else top
    for lowest in range(top, -1, -1):
        yield parts[lowest:]


def gradient_norms(
    model: nn.Module, input_ids: Tensor, labels: Tensor
) -> dict[str, float | str]:
    """The length of each part's gradient of the loss, or "none" where there is none.

    Args:
        model: maps input_ids to logits (B, C).
        input_ids: int64, shape (B, T).
        labels: int64, shape (B,).

    Returns:
        part -> the root of the sum of squares over all its gradients.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> model = TinyBertForClassification()
    >>> _ = freeze(model, ["embeddings", "layer.0", "layer.1"])
    >>> ids, labels = torch.zeros(2, 3, dtype=torch.long), torch.tensor([0, 1])
    >>> norms = gradient_norms(model, ids, labels)
    >>> norms["layer.1"], norms["head"] > 0
    ('none', True)
    """
    model.zero_grad(set_to_none=True)
    if any(parameter.requires_grad for parameter in model.parameters()):
        F.cross_entropy(logits_of(model(input_ids)), labels).backward()
    norms: dict[str, float | str] = {}
    for part, parameters in model_parts(model).items():
        found = [p.grad.norm() for p in parameters if p.grad is not None]
        norms[part] = torch.stack(found).norm().item() if found else "none"
    model.zero_grad(set_to_none=True)
    return norms


def training_flops(
    model: nn.Module, input_ids: Tensor, labels: Tensor
) -> tuple[int, int]:
    """Operations in matrix products of one forward and one backward pass.

    A multiplication and an addition count as two. Table look-ups, sums, norms and
    activations are not counted. The number depends on shapes only, not on a clock.

    Returns:
        (forward, backward).

    >>> model = nn.Sequential(nn.Embedding(4, 2), nn.Flatten(1), nn.Linear(6, 2))
    >>> ids, labels = torch.zeros(5, 3, dtype=torch.long), torch.tensor([0] * 5)
    >>> training_flops(model, ids, labels)
    (120, 240)
    """
    # A fused attention kernel hides its products from the counter; "math" does not.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as forward:
        loss = F.cross_entropy(logits_of(model(input_ids)), labels)
    with FlopCounterMode(display=False) as backward:
        if loss.requires_grad:
            loss.backward()
    model.zero_grad(set_to_none=True)
    return forward.get_total_flops(), backward.get_total_flops()


def numbers_kept(model: nn.Module) -> dict[str, int]:
    """How many numbers a training with Adam keeps between steps, by purpose.

    Weights are kept whether they train or not. Every trainable number also has a
    gradient and Adam's two running averages. What the forward pass keeps for the
    backward pass depends on the batch, and is not counted here.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> numbers_kept(TinyBertForClassification())
    {'weights': 28994, 'gradients': 28994, 'Adam': 57988, 'all': 115976}
    """
    weights = sum(parameter.numel() for parameter in model.parameters())
    trainable = count_parameters(model)
    return {
        "weights": weights,
        "gradients": trainable,
        "Adam": 2 * trainable,
        "all": weights + 3 * trainable,
    }
