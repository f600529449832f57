"""What the optimiser does with each parameter: weight decay, and Adam's first steps."""

import math
from typing import Any

from torch import nn


def parameter_groups(model: nn.Module, *, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups for AdamW: what decays, and biases and LayerNorms, which do not.

    A parameter is spared if it is a vector, or if the last part of its name holds
    "bias". That spares every kind of norm, whatever its parameters are called.

    Args:
        model: any module. Frozen parameters are left out; a tied one counts once.
        weight_decay: of the first group, at least 0.

    Returns:
        the decayed group and the undecayed one, each with `params`, `names` and
        `weight_decay`. Every trainable parameter is in exactly one of them.

    Raises:
        ValueError: if weight_decay is negative, or no parameter is trainable.

    Source: Devlin et al. 2019, appendix A.2; google-research/bert, optimization.py.

    >>> model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    >>> [group["names"] for group in parameter_groups(model, weight_decay=0.01)]
    [['0.weight'], ['0.bias', '1.weight', '1.bias']]
    """
    if not weight_decay >= 0:
        raise ValueError(f"weight_decay must be at least 0, got {weight_decay}")
    decayed = {"params": [], "names": [], "weight_decay": weight_decay}
    undecayed = {"params": [], "names": [], "weight_decay": 0.0}
    for name, parameter in model.named_parameters():  # a tied one comes once
        if not parameter.requires_grad:
            continue
        is_bias = "bias" in name.rpartition(".")[2]
        group = undecayed if is_bias or parameter.dim() < 2 else decayed
        group["params"].append(parameter)
        group["names"].append(name)
    if not decayed["params"] and not undecayed["params"]:
        raise ValueError(
            "model has no trainable parameter: unfreeze a part of it before you "
            "build the optimiser"
        )
    return [decayed, undecayed]


def adam_updates(
    gradients: list[float],
    *,
    bias_correction: bool,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-6,
) -> list[float]:
    """What Adam subtracts from one parameter at each step, in units of the rate.

    Args:
        gradients: the parameter's gradient at each step.
        bias_correction: divide both running means by 1 - beta**t, as Adam's paper
            does and BERT's released optimiser does not.
        betas: decay of the mean gradient and of the mean squared gradient.
        eps: added to the root.

    Returns:
        one number a step.

    Raises:
        ValueError: if a beta is outside [0, 1) or eps is not positive.

    Source: google-research/bert, optimization.py, AdamWeightDecayOptimizer.

    >>> [round(u, 3) for u in adam_updates([5.0], bias_correction=True)]
    [1.0]
    """
    for beta in betas:
        if not 0 <= beta < 1:
            raise ValueError(f"betas must be in [0, 1), got {betas}")
    if not eps > 0:
        raise ValueError(f"eps must be greater than 0, got {eps}")
    mean, mean_square, updates = 0.0, 0.0, []
    for t, gradient in enumerate(gradients, start=1):
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        mean_square = betas[1] * mean_square + (1 - betas[1]) * gradient**2
        first, second = mean, mean_square
        if bias_correction:
            first, second = first / (1 - betas[0] ** t), second / (1 - betas[1] ** t)
        updates.append(first / (math.sqrt(second) + eps))
    return updates
