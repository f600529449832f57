"""What the task heads minimise. The pretraining losses stand in masking and pairs.

All of them are one mean: the cross-entropy over what has a label, 0 if nothing has.
"""

from torch import Tensor

from bertbook.masking import IGNORE_INDEX, masked_lm_loss


def classifier_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of logits (..., C) over labels (...), in nats.

    Args:
        logits: floating point, shape (..., C).
        labels: int64, shape (...): a class in [0, C), or IGNORE_INDEX.

    Raises:
        TypeError, ValueError: see masked_lm_loss; and if there is one class only.

    >>> import torch
    >>> classifier_loss(torch.zeros(2, 2), torch.tensor([1, IGNORE_INDEX]))  # log two
    tensor(0.6931)
    """
    if logits.shape[-1] == 1:
        raise ValueError(
            "labels need at least 2 classes, and this head has num_labels = 1: "
            "compute a loss for a single number from the logits"
        )
    return masked_lm_loss(logits, labels)


def position_loss(logits: Tensor, positions: Tensor, *, name: str) -> Tensor:
    """The mean cross-entropy of one end of the answers, across the tokens, in nats.

    An answer that was cut off has no position: say so with IGNORE_INDEX, or point at
    [CLS]. A position behind the end is an error, and never moved.

    Args:
        logits: floating point, shape (B, T).
        positions: int64, shape (B,): in [0, T), or IGNORE_INDEX.
        name: what an error calls the positions.

    Raises:
        TypeError: if positions are not int64.
        ValueError: if their shape does not fit, or one is outside the sequence.

    >>> import torch
    >>> position_loss(torch.zeros(1, 3), torch.tensor([3]), name="start_positions")
    Traceback (most recent call last):
    ValueError: start_positions holds 3; a position is in [0, 3), \
or -100 if there is none
    """
    if positions.shape != logits.shape[:1]:
        raise ValueError(
            f"{name} must have shape ({len(logits)},), got {tuple(positions.shape)}"
        )
    inside = (positions >= 0) & (positions < logits.shape[1])
    wrong = positions[~inside & (positions != IGNORE_INDEX)].tolist()
    if wrong:
        raise ValueError(
            f"{name} holds {wrong[0]}; a position is in [0, {logits.shape[1]}), "
            f"or {IGNORE_INDEX} if there is none"
        )
    return masked_lm_loss(logits, positions)
