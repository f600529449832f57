"""Scaled dot-product attention, and the masks that decide who may look at whom.

Shapes, here and in the whole book: B sequences in a batch, T tokens in a
sequence, H heads, D features. In a matrix of scores or weights, rows are queries
(the token that looks) and columns are keys (the token that is looked at).
"""

import math

import torch
from torch import Tensor, nn


def toy_scores() -> Tensor:
    """Attention scores of four random tokens: the lesson's running example.

    The lesson's recipe, in its order, because every line draws from the same
    stream of random numbers. The caller's random state is left as it was.

    Returns:
        scores, float32 of shape (T, T) = (4, 4), before mask and softmax.

    Source: slide 15.

    >>> scores = toy_scores()
    >>> scores.shape
    torch.Size([4, 4])
    >>> torch.equal(scores, toy_scores())
    True
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = torch.randn(1, 4, 8)  # one sentence, four tokens, eight features
        query_map = nn.Linear(8, 4, bias=False)
        key_map = nn.Linear(8, 4, bias=False)
        torch.manual_seed(1)
        nn.init.normal_(query_map.weight, std=0.1)
        nn.init.normal_(key_map.weight, std=0.1)
    query, key = query_map(x), key_map(x)
    scores = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-1])
    return scores[0].detach()


def causal_mask(num_tokens: int) -> Tensor:
    """The mask that hides the future: 0 = may look, -inf = may not.

    Args:
        num_tokens: T, at least 1.

    Returns:
        additive mask, float32 of shape (T, T): -inf where the key's position
        is greater than the query's. The diagonal is 0: a token sees itself.

    Raises:
        ValueError: if num_tokens is not a positive int.

    Source: slides 12 and 18.

    >>> causal_mask(3)
    tensor([[0., -inf, -inf],
            [0., 0., -inf],
            [0., 0., 0.]])
    """
    if (
        not isinstance(num_tokens, int)
        or isinstance(num_tokens, bool)
        or num_tokens < 1
    ):
        raise ValueError(f"num_tokens must be a positive int, got {num_tokens!r}")
    everywhere = torch.full((num_tokens, num_tokens), -math.inf)
    return everywhere.triu(diagonal=1)


def padding_mask(attention_mask: Tensor) -> Tensor:
    """The mask that hides padding, from a tokenizer's 1s and 0s.

    It hides *keys*: no token looks at padding. (Padding positions still look
    at the real tokens; what they compute is never read.)

    Args:
        attention_mask: int or bool, shape (B, T): 1 = real token, 0 = padding. Or of
            shape (B, T_q, T_k), where each query has a row of its own.

    Returns:
        additive mask, float32 of shape (B, 1, 1, T), which broadcasts over
        heads and queries, or (B, 1, T_q, T_k): 0 at real keys, -inf at padding.

    Raises:
        TypeError: if attention_mask is not of an integer or bool dtype.
        ValueError: if its shape is neither, or it holds anything but 0 and 1.

    Source: slide 12 (which real batches need besides the causal question).

    >>> padding_mask(torch.tensor([[1, 1, 0]]))
    tensor([[[[0., 0., -inf]]]])
    """
    if attention_mask.is_floating_point() or attention_mask.is_complex():
        raise TypeError(
            "attention_mask must hold ints or bools (1 real, 0 padding), "
            f"got {attention_mask.dtype}"
        )
    if attention_mask.dim() not in (2, 3):
        raise ValueError(
            "attention_mask must have shape (B, T) or (B, T_q, T_k), "
            f"got {tuple(attention_mask.shape)}"
        )
    if not ((attention_mask == 0) | (attention_mask == 1)).all():
        found = sorted(set(attention_mask.flatten().tolist()))
        raise ValueError(f"attention_mask must hold only 0 and 1, got values {found}")
    rows = attention_mask if attention_mask.dim() == 3 else attention_mask[:, None, :]
    hidden = (rows == 0)[:, None, :, :]
    nothing_hidden = torch.zeros(hidden.shape, device=hidden.device)
    return nothing_hidden.masked_fill(hidden, -math.inf)


def attention_weights(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(scores + mask) over the keys, with a defined result for every row.

    A row in which every key is masked has nothing to share its attention
    among. A plain softmax gives NaN there; this function gives zeros, as torch's
    own ``scaled_dot_product_attention`` does, so the row contributes nothing.

    Args:
        scores: floating point, shape (..., T_q, T_k); -inf where a key is
            masked already.
        mask: additive mask of the same dtype, 0 or -inf, of any shape that
            broadcasts to scores: (T_q, T_k), (B, 1, 1, T_k), ...

    Returns:
        weights, of the dtype and shape of scores: every row sums to 1, or to
        0 if all its keys are masked.

    Raises:
        TypeError: if scores or mask is not floating point, or their dtypes
            differ.
        ValueError: if mask does not broadcast to the shape of scores, or holds
            a positive number or NaN.

    Source: slide 12; Vaswani et al. 2017, section 3.2.1.

    >>> attention_weights(torch.zeros(2, 2), causal_mask(2))
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    >>> attention_weights(torch.zeros(1, 2), torch.full((1, 2), -math.inf))
    tensor([[0., 0.]])
    """
    if not scores.is_floating_point():
        raise TypeError(f"scores must be floating point, got {scores.dtype}")
    if mask is not None:
        check_additive_mask(mask, scores)
        scores = scores + mask
    nothing_to_see = (scores == -math.inf).all(dim=-1, keepdim=True)
    # Before the softmax: a NaN removed afterwards would stay in the gradient.
    weights = scores.masked_fill(nothing_to_see, 0.0).softmax(dim=-1)
    return weights.masked_fill(nothing_to_see, 0.0)


def check_additive_mask(mask: Tensor, scores: Tensor) -> None:
    """Raise a clear error if mask cannot be added to scores (see attention_weights).

    >>> check_additive_mask(torch.ones(2, 2, dtype=torch.bool), torch.zeros(2, 2))
    Traceback (most recent call last):
    TypeError: mask is added to the scores, so it must be torch.float32 like them \
(0 = may look, -inf = may not), got torch.bool
    """
    if mask.dtype != scores.dtype:
        raise TypeError(
            f"mask is added to the scores, so it must be {scores.dtype} like them "
            f"(0 = may look, -inf = may not), got {mask.dtype}"
        )
    fits = mask.dim() <= scores.dim() and all(
        m in (1, s)
        for m, s in zip(reversed(mask.shape), reversed(scores.shape), strict=False)
    )
    if not fits:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not broadcast "
            f"to scores of shape {tuple(scores.shape)}"
        )
    if not (mask <= 0).all():  # also refuses NaN, and a mask of 1s and 0s
        raise ValueError("mask must hold 0 (may look) or -inf (may not)")


def attention(
    query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """softmax(QK^T / sqrt(d_k) + mask) V: each query's weighted average of the values.

    Args:
        query: floating point, shape (..., T_q, d_k).
        key: same dtype, shape (..., T_k, d_k).
        value: same dtype, shape (..., T_k, d_v).
        mask: additive mask, broadcasting to (..., T_q, T_k). None hides nothing.

    Returns:
        (output, weights) of shapes (..., T_q, d_v) and (..., T_q, T_k).

    Raises:
        ValueError: if the last dimensions of query and key, or the lengths of
            key and value, differ.

    Source: slide 12; Vaswani et al. 2017, equation 1.

    >>> query = key = torch.zeros(1, 3, 4)
    >>> value = torch.tensor([[[0.0], [3.0], [6.0]]])
    >>> output, weights = attention(query, key, value)
    >>> output[0, :, 0]  # equal scores: every query gets the mean of the values
    tensor([3., 3., 3.])
    """
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has {query.shape[-1]} features and key {key.shape[-1]}: "
            "the dot product needs as many"
        )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key has {key.shape[-2]} tokens and value {value.shape[-2]}: "
            "each key needs one value"
        )
    scores = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-1])
    weights = attention_weights(scores, mask)
    return weights @ value, weights
