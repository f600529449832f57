"""What needs no model: the baselines that a masked language model must beat."""

import torch
from torch import Tensor

from bertbook.masking import IGNORE_INDEX, MASK_SHARE, RANDOM_SHARE
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


def piece_shares(
    training_ids: Tensor, *, special: SpecialIds, smoothing: float
) -> Tensor:
    """The share of each piece in the training text, as unigram_baseline takes it.

    Args:
        training_ids: int64, any shape; special tokens in it are not counted.
        special: the ids whose share is 0.
        smoothing: added to each ordinary piece's count; greater than 0.

    Returns:
        float64, shape (V,), with the sum 1.

    Raises:
        ValueError: if smoothing is not positive.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=7)
    >>> piece_shares(torch.tensor([2, 5, 5, 3]), special=special, smoothing=1)[5:]
    tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    if not smoothing > 0:
        raise ValueError(f"smoothing must be greater than 0, got {smoothing}")
    counts = torch.bincount(training_ids.flatten(), minlength=special.vocab_size)
    counts = counts.double() + smoothing
    counts[special.for_masking["special_token_ids"]] = 0
    return counts / counts.sum()


def copying_baseline(
    training_ids: Tensor,
    *,
    masked_ids: Tensor,
    labels: Tensor,
    special: SpecialIds,
    smoothing: float = 1.0,
) -> tuple[float, float]:
    """The best guess from how often each piece occurs and what the place itself shows.

    What is asked for is mostly hidden, sometimes random, and sometimes left as it is
    (see mask_tokens). So a model without attention already gains by copying.

    By Bayes' rule: let p_j be the share of piece j, N the number of ordinary pieces, r
    the chance of a random replacement and k that of none. Then P(label = j, shown = x)
    = p_j (r/N + k [j = x]), and with w = k p_x / (k p_x + r/N), the chance that x is
    the token itself, P(label = j | shown = x) = w [j = x] + (1 - w) p_j. [MASK] says
    nothing about the label: w = 0.

    Args:
        training_ids: int64, any shape; special tokens in it are not counted.
        masked_ids: int64, the shape of labels: what is shown at each place, masked as
            mask_tokens does it.
        labels: int64, any shape: an id where a held-out token is asked for, and
            IGNORE_INDEX everywhere else.
        special: the ids that cannot be an answer.
        smoothing: added to each ordinary piece's count; greater than 0.

    Returns:
        (loss in nats, accuracy), means over the tokens that are asked for.

    Raises:
        ValueError: if smoothing is not positive, masked_ids and labels differ in
            shape, nothing is asked for, or a special token is asked for or is shown
            where one is asked for ([MASK] may be).

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=7)
    >>> loss, accuracy = copying_baseline(  # 5 is shown, and is 5 in 12 of 13 cases
    ...     torch.tensor([2, 5, 5, 5, 3]), masked_ids=torch.tensor([2, 5, 3]),
    ...     labels=torch.tensor([-100, 5, -100]), special=special)
    >>> round(loss, 4), accuracy
    (0.08, 1.0)
    """
    shares = piece_shares(training_ids, special=special, smoothing=smoothing)
    if masked_ids.shape != labels.shape:
        raise ValueError(
            "masked_ids and labels must have the same shape, "
            f"got {tuple(masked_ids.shape)} and {tuple(labels.shape)}"
        )
    asked = labels != IGNORE_INDEX
    targets, shown = labels[asked], masked_ids[asked]
    if not len(targets):
        raise ValueError("labels must ask for at least one token, got none")
    ordinary = shares > 0
    if not ordinary[targets].all():
        raise ValueError("labels must not ask for special tokens: mask_tokens does not")
    if not (ordinary[shown] | (shown == special.mask)).all():
        raise ValueError(
            "masked_ids must show [MASK] or an ordinary piece where labels ask: "
            "they are not from the same call of mask_tokens"
        )
    kept = (1 - MASK_SHARE - RANDOM_SHARE) * shares  # 0 for [MASK], as its share is
    random = RANDOM_SHARE / ordinary.sum()
    itself = (kept / (kept + random))[shown]
    probabilities = (1 - itself) * shares[targets] + itself * (targets == shown)
    frequent = shares.argmax()
    copied = itself + (1 - itself) * shares[shown] > (1 - itself) * shares[frequent]
    right = torch.where(copied, shown, frequent) == targets
    return -probabilities.log().mean().item(), right.double().mean().item()
