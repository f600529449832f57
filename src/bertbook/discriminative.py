"""Discriminative learning rates: the lower the layer, the smaller its rate."""

import math

from torch import nn

from bertbook.freezing import model_parts, part_of


def geometric_rates(
    parts: list[str], *, top_rate: float, factor: float
) -> dict[str, float]:
    """The rate of a part is that of the part above it, divided by factor.

    Args:
        parts: from the bottom to the top, as model_parts gives them.
        top_rate: of the last part, greater than 0.
        factor: at least 1; with 1 all rates are equal.

    Raises:
        TypeError: if parts is a single string.
        ValueError: if parts is empty, or a number is out of range.

    Source: the fine-tuning text, discriminative rates; Howard and Ruder 2018.

    >>> geometric_rates(["layer.0", "layer.1", "head"], top_rate=0.4, factor=2)
    {'layer.0': 0.1, 'layer.1': 0.2, 'head': 0.4}
    """
    if isinstance(parts, str):
        raise TypeError(f"parts must be a list of parts, got the text {parts!r}")
    if not parts:
        raise ValueError("parts is empty: give at least one part")
    if not 0 < top_rate < math.inf:
        raise ValueError(f"top_rate must be greater than 0, got {top_rate}")
    if not 1 <= factor < math.inf:
        raise ValueError(f"factor must be at least 1, got {factor}; 1 keeps all equal")
    top = len(parts) - 1
    return {part: top_rate / factor ** (top - i) for i, part in enumerate(parts)}


def factor_per_layer(lower: tuple[int, float], upper: tuple[int, float]) -> float:
    """By what each layer's rate exceeds that of the layer below, between two layers.

    Args:
        lower: (layer, rate).
        upper: (layer, rate) of a higher layer.

    Raises:
        ValueError: if upper is not above lower, or a rate is not positive.

    >>> round(factor_per_layer((0, 1.0), (3, 8.0)), 9)
    2.0
    """
    layers = upper[0] - lower[0]
    if layers < 1:
        raise ValueError(
            f"upper must be a higher layer than {lower[0]}, got {upper[0]}"
        )
    for name, (_, rate) in (("lower", lower), ("upper", upper)):
        if not 0 < rate < math.inf:
            raise ValueError(f"{name} must have a rate greater than 0, got {rate}")
    return (upper[1] / lower[1]) ** (1 / layers)


def layerwise_groups(
    model: nn.Module, rates: dict[str, float], *, weight_decay: float = 0.01
) -> list[dict]:
    """Parameter groups for an optimiser: every trainable parameter in exactly one.

    A part makes up to two groups with one rate: its matrices, and its biases and
    LayerNorm parameters, which get no weight decay. Frozen parameters are left out.

    Args:
        model: the toy, a BertModel, or a model on top of one.
        rates: part -> learning rate, for every part that has something to train.
        weight_decay: for the matrices.

    Returns:
        dicts with params, lr and weight_decay (for torch.optim), and part.

    Raises:
        ValueError: if rates lacks a trainable part or names an unknown one, a rate is
            not positive, weight_decay is negative, or nothing is left to train.

    Source: the fine-tuning text, discriminative rates.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> model = TinyBertForClassification()
    >>> rates = geometric_rates(list(model_parts(model)), top_rate=1e-3, factor=2)
    >>> for group in layerwise_groups(model, rates)[-2:]:
    ...     print(group["part"], group["lr"], group["weight_decay"])
    head 0.001 0.01
    head 0.001 0.0
    """
    parts = list(model_parts(model))
    if not weight_decay >= 0:
        raise ValueError(f"weight_decay must not be negative, got {weight_decay}")
    for part, rate in rates.items():
        if part not in parts:
            raise ValueError(
                f"rates names {part!r}; this model has the parts {', '.join(parts)}"
            )
        if not rate > 0:
            raise ValueError(
                f"rates must be greater than 0 (freeze a part to keep it), "
                f"got {rate} for {part!r}"
            )
    groups: dict[tuple[str, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            decays = parameter.dim() > 1  # biases and LayerNorm are vectors
            groups.setdefault((part_of(name), decays), []).append(parameter)
    if not groups:
        raise ValueError(
            "model has no trainable parameter: unfreeze a part of it before you "
            "build the optimiser"
        )
    for part, _ in groups:
        if part not in rates:
            raise ValueError(f"rates lacks {part!r}, which has something to train")
    return [
        {
            "part": part,
            "params": groups[part, decays],
            "lr": rates[part],
            "weight_decay": weight_decay if decays else 0.0,
        }
        for part in parts
        for decays in (True, False)
        if (part, decays) in groups
    ]
