"""What needs no model: the baseline that a masked language model must beat."""

import torch
from torch import Tensor

from bertbook.masking import IGNORE_INDEX
from bertbook.wordpiece import SpecialIds


def unigram_baseline(
    training_ids: Tensor,
    labels: Tensor,
    *,
    special: SpecialIds,
    smoothing: float = 1.0,
) -> tuple[float, float]:
    """Guess every masked token by how often each piece occurs, whatever stands around.

    The probability of a piece is its share of the training text, with `smoothing` added
    to each ordinary piece's count, so that none is impossible. Its best guess is always
    the most frequent piece.

    Args:
        training_ids: int64, any shape; special tokens in it are not counted.
        labels: int64, any shape: an id where a held-out token is asked for, and
            IGNORE_INDEX everywhere else.
        special: the ids that cannot be an answer.
        smoothing: greater than 0.

    Returns:
        (loss in nats, accuracy), means over the tokens that are asked for.

    Raises:
        ValueError: if smoothing is not positive, nothing is asked for, or a special
            token is.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=7)
    >>> loss, accuracy = unigram_baseline(  # 3/4 and 1/4
    ...     torch.tensor([2, 5, 5, 3]), torch.tensor([5, -100, 6]), special=special)
    >>> round(loss, 4), accuracy  # the mean of log 4/3 and log 4
    (0.837, 0.5)
    """
    if not smoothing > 0:
        raise ValueError(f"smoothing must be greater than 0, got {smoothing}")
    targets = labels[labels != IGNORE_INDEX]
    if not len(targets):
        raise ValueError("labels must ask for at least one token, got none")
    counts = torch.bincount(training_ids.flatten(), minlength=special.vocab_size)
    counts = counts.double() + smoothing
    counts[special.for_masking["special_token_ids"]] = 0
    log_probabilities = (counts / counts.sum()).log()
    loss = -log_probabilities[targets].mean().item()
    if loss == torch.inf:
        raise ValueError("labels must not ask for special tokens: mask_tokens does not")
    return loss, (targets == counts.argmax()).double().mean().item()
