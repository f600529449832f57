"""Scores, masks and weights: the printed numbers, the properties of attention, the errors."""

import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from bertbook.attention import attention, attention_weights, causal_mask, check_additive_mask, padding_mask, toy_scores

property_test = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 5)
# One list a sentence, True at real tokens: any pattern, so that padding may also stand in front or in the middle.
real_tokens = st.integers(1, 6).flatmap(
    lambda T: st.lists(st.lists(st.booleans(), min_size=T, max_size=T), min_size=1, max_size=3)
)

HALF_A_DIGIT = 0.5e-4 + 1e-6  # what a number printed with four decimals allows
RAW_SCORES = [
    [-0.0285, 0.0240, -0.1052, 0.0808],
    [-0.0261, 0.0630, 0.0585, 0.0286],
    [-0.1346, 0.0794, 0.0801, -0.0065],
    [0.0085, 0.0113, 0.0431, 0.0154],
]
BIDIRECTIONAL = [
    [0.2442, 0.2573, 0.2261, 0.2724],
    [0.2360, 0.2580, 0.2568, 0.2492],
    [0.2167, 0.2684, 0.2686, 0.2463],
    [0.2472, 0.2479, 0.2559, 0.2489],
]
CAUSAL = [
    [1.0000, 0.0000, 0.0000, 0.0000],
    [0.4777, 0.5223, 0.0000, 0.0000],
    [0.2875, 0.3561, 0.3564, 0.0000],
    [0.2472, 0.2479, 0.2559, 0.2489],
]


def normal(seed: int, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """Standard normal tensors. In float64 by default, so that rounding cannot hide a wrong formula."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


def qkv(seed: int, B: int, T: int, D: int = 4) -> list[torch.Tensor]:
    """Queries, keys and values of B sequences of T tokens."""
    return normal(seed, *[(B, T, D)] * 3)


def hide(real: torch.Tensor) -> torch.Tensor:
    """The padding mask for float64 tensors of shape (B, T, D), which have no axis of heads."""
    return padding_mask(real)[:, 0].double()


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(found, expected, rtol=0, atol=1e-12)


def drawn(found: torch.Tensor, printed: list[list[float]]) -> bool:
    """Whether every printed digit comes out."""
    return found.shape == (4, 4) and bool(((found - torch.tensor(printed)).abs() <= HALF_A_DIGIT).all())


# The lesson's numbers


def test_raw_scores():
    assert drawn(toy_scores(), RAW_SCORES)


def test_bidirectional_weights():
    assert drawn(attention_weights(toy_scores()), BIDIRECTIONAL)


def test_causal_weights():
    weights = attention_weights(toy_scores(), causal_mask(4))
    assert drawn(weights, CAUSAL)
    assert (weights[torch.ones(4, 4, dtype=torch.bool).triu(diagonal=1)] == 0).all()  # exactly, not only as printed
    assert torch.equal(weights[3], attention_weights(toy_scores())[3])


@pytest.mark.parametrize("seed", [0, 1, 99])
def test_toy_scores_ignore_and_keep_the_callers_random_state(seed):
    torch.manual_seed(seed)
    torch.rand(seed)
    before = torch.get_rng_state()
    assert drawn(toy_scores(), RAW_SCORES)
    assert torch.equal(torch.get_rng_state(), before)


def test_toy_scores_are_plain_numbers():
    first = toy_scores()
    assert first.dtype == torch.float32
    assert not first.requires_grad
    first.zero_()  # a caller who edits the result must not edit the next one
    assert drawn(toy_scores(), RAW_SCORES)


# Masks


@given(st.integers(1, 12))
@property_test
def test_causal_mask_hides_exactly_the_future(T):
    mask = causal_mask(T)
    position = torch.arange(T)
    future = position[None, :] > position[:, None]
    assert mask.dtype == torch.float32
    assert (mask[future] == -math.inf).all()
    assert (mask[~future] == 0).all()


@given(real_tokens, st.sampled_from([torch.bool, torch.uint8, torch.int32, torch.int64]))
@property_test
def test_padding_mask_hides_exactly_the_padding_keys(real, dtype):
    attention_mask = torch.tensor(real, dtype=dtype)
    mask = padding_mask(attention_mask)
    assert mask.shape == (len(real), 1, 1, len(real[0]))
    assert mask.dtype == torch.float32
    assert torch.equal(mask[:, 0, 0, :] == 0, attention_mask.bool())
    assert torch.equal(mask[:, 0, 0, :] == -math.inf, ~attention_mask.bool())


# Weights


@given(seeds, real_tokens, st.booleans())
@property_test
def test_rows_sum_to_one_or_to_zero(seed, real, causal):
    real = torch.tensor(real)
    T = real.shape[1]
    (scores,) = normal(seed, (len(real), 2, T, T))
    mask = padding_mask(real).double() + (causal_mask(T).double() if causal else 0)
    weights = attention_weights(scores, mask)
    something_to_see = (mask == 0).any(dim=-1).expand(weights.shape[:-1])
    assert (weights >= 0).all()
    assert close(weights.sum(dim=-1), something_to_see.double())
    assert (weights[(mask < 0).expand_as(weights)] == 0).all()


@given(seeds, sizes, st.integers(1, 8))
@property_test
def test_causal_weights_never_see_the_future(seed, B, T):
    (scores,) = normal(seed, (B, T, T))
    weights = attention_weights(scores, causal_mask(T).double())
    assert torch.equal(weights, weights.tril())
    assert torch.equal(weights[:, -1], attention_weights(scores)[:, -1])  # the last token has no future
    assert (weights[:, 0, 0] == 1).all()  # the first sees itself only


@given(seeds, st.lists(st.booleans(), min_size=1, max_size=6).filter(any))
@property_test
def test_masking_a_key_equals_removing_it(seed, real):
    real = torch.tensor([real])
    query, key, value = qkv(seed, 1, real.shape[1])
    output, weights = attention(query, key, value, mask=hide(real))
    shorter_output, shorter_weights = attention(query, key[:, real[0]], value[:, real[0]])
    assert close(output, shorter_output)
    assert close(weights[..., real[0]], shorter_weights)


@given(seeds, sizes, st.integers(0, 7), st.booleans())
@property_test
def test_any_amount_of_padding_leaves_real_outputs_unchanged(seed, T, padding, in_front):
    query, key, value = qkv(seed, 1, T)
    junk = [1e3 * x for x in qkv(seed + 1, 1, padding)]  # large, so that a trace of it would show
    real = torch.tensor([[1] * T + [0] * padding])
    padded = [torch.cat([x, y], dim=1) for x, y in zip([query, key, value], junk, strict=True)]
    if in_front:
        padded, real = [x.flip(1) for x in padded], real.flip(1)
    output = attention(*padded, mask=hide(real))[0]
    output = output.flip(1)[:, :T] if in_front else output[:, :T]
    assert close(output, attention(query, key, value)[0])


@given(seeds, st.lists(sizes, min_size=1, max_size=4))
@property_test
def test_a_sentence_does_not_depend_on_its_batch(seed, lengths):
    query, key, value = qkv(seed, len(lengths), max(lengths))
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    batch = attention(query, key, value, mask=hide(real))[0]
    for i, length in enumerate(lengths):
        alone = attention(*(x[i, :length] for x in (query, key, value)))[0]
        assert close(batch[i, :length], alone)


@given(seeds, real_tokens, st.booleans())
@property_test
def test_agrees_with_torch(seed, real, causal):
    real = torch.tensor(real)
    B, T = real.shape
    query, key, value = normal(seed, *[(B, 2, T, 4)] * 3)
    mask = padding_mask(real).double() + (causal_mask(T).double() if causal else 0)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask.expand(B, 1, T, T))
    assert close(attention(query, key, value, mask=mask)[0], expected)


def test_more_values_than_features_and_fewer_queries_than_keys():
    query, key, value = normal(0, (2, 3, 4), (2, 5, 4), (2, 5, 7))
    output, weights = attention(query, key, value)
    assert output.shape == (2, 3, 7)
    assert weights.shape == (2, 3, 5)
    assert close(output, F.scaled_dot_product_attention(query, key, value))


def test_inputs_are_left_as_they_were():
    scores, mask = toy_scores(), causal_mask(4)
    attention_weights(scores, mask)
    assert torch.equal(scores, toy_scores())
    assert torch.equal(mask, causal_mask(4))


@pytest.mark.parametrize("shape", [(3, 3), (2, 1, 1, 3), (2, 1, 3, 3)])
def test_every_documented_mask_shape_is_accepted(shape):
    query, key, value = normal(0, *[(2, 4, 3, 8)] * 3)  # B = 2, H = 4, T = 3
    mask = torch.zeros(shape, dtype=torch.float64)
    mask[..., 1] = -math.inf
    output, weights = attention(query, key, value, mask=mask)
    assert close(output, attention(query, key, value, mask=mask.expand(2, 4, 3, 3))[0])
    assert (weights[..., 1] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("by_scores", [False, True], ids=["hidden by the mask", "hidden in the scores"])
def test_a_fully_masked_row_is_zero_forward_and_backward(dtype, by_scores):
    scores = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dtype, requires_grad=True)
    mask = torch.tensor([[0.0, 0.0], [-math.inf, -math.inf]], dtype=dtype)
    weights = attention_weights(scores + mask) if by_scores else attention_weights(scores, mask)
    (weights * torch.tensor([1.0, 3.0], dtype=dtype)).sum().backward()
    assert weights.dtype == dtype
    assert weights[1].tolist() == [0, 0]
    assert scores.grad[1].tolist() == [0, 0]
    assert (scores.grad[0] != 0).all()  # the other row still learns
    assert torch.equal(weights[0], attention_weights(scores)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_sentence_of_padding_alone_gives_zeros(dtype):
    tensors = [x.to(dtype).requires_grad_() for x in qkv(0, 2, 3)]
    mask = padding_mask(torch.tensor([[1, 1, 0], [0, 0, 0]]))[:, 0].to(dtype)
    output, _ = attention(*tensors, mask=mask)
    output.sum().backward()
    assert (output[1] == 0).all()
    assert all((x.grad[1] == 0).all() and x.grad.isfinite().all() for x in tensors)


# Errors

NAN_MASK = torch.tensor([[0.0, math.nan]])
INF_MASK = torch.tensor([[0.0, math.inf]])


@pytest.mark.parametrize("num_tokens", [0, -1, 2.0, True, "4", None])
def test_causal_mask_refuses(num_tokens):
    with pytest.raises(ValueError, match=re.escape(f"num_tokens must be a positive int, got {num_tokens!r}")):
        causal_mask(num_tokens)


@pytest.mark.parametrize(
    ("attention_mask", "error", "message"),
    [
        (torch.ones(2, 3), TypeError, "attention_mask must hold ints or bools (1 real, 0 padding), got torch.float32"),
        (torch.ones(1, 3, dtype=torch.complex64), TypeError, "attention_mask must hold ints or bools"),
        (torch.tensor([1, 1, 0]), ValueError, "attention_mask must have shape (B, T) or (B, T_q, T_k), got (3,)"),
        (
            torch.ones(2, 1, 1, 3, dtype=torch.int64),
            ValueError,
            "attention_mask must have shape (B, T) or (B, T_q, T_k), got",
        ),
        (torch.tensor([[1, 2, -1]]), ValueError, "attention_mask must hold only 0 and 1, got values [-1, 1, 2]"),
    ],
)
def test_padding_mask_refuses(attention_mask, error, message):
    with pytest.raises(error, match=re.escape(message)):
        padding_mask(attention_mask)


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (torch.ones(2, 2, dtype=torch.bool), TypeError, "must be torch.float32 like them (0 = may look, -inf = may"),
        (torch.zeros(2, 2, dtype=torch.int64), TypeError, "may not), got torch.int64"),
        (torch.zeros(2, 2, dtype=torch.float64), TypeError, "mask is added to the scores, so it must be torch.float32"),
        (torch.zeros(3), ValueError, "mask of shape (3,) does not broadcast to scores of shape (2, 2)"),
        (torch.zeros(1, 2, 2), ValueError, "mask of shape (1, 2, 2) does not broadcast to scores of shape (2, 2)"),
        (torch.ones(2, 2), ValueError, "mask must hold 0 (may look) or -inf (may not)"),
        (NAN_MASK, ValueError, "mask must hold 0 (may look) or -inf (may not)"),
        (INF_MASK, ValueError, "mask must hold 0 (may look) or -inf (may not)"),
    ],
)
def test_masks_that_cannot_be_added_are_refused_everywhere(mask, error, message):
    scores = torch.zeros(2, 2)
    for call in (
        lambda: check_additive_mask(mask, scores),
        lambda: attention_weights(scores, mask),
        lambda: attention(scores, scores, scores, mask=mask),
    ):
        with pytest.raises(error, match=re.escape(message)):
            call()


@pytest.mark.parametrize("mask", [None, torch.zeros(2, 2, dtype=torch.int64)])
def test_scores_must_be_floating_point(mask):
    with pytest.raises(TypeError, match=r"scores must be floating point, got torch\.int64"):
        attention_weights(torch.zeros(2, 2, dtype=torch.int64), mask)


def test_attention_refuses_tensors_that_do_not_fit():
    with pytest.raises(ValueError, match="query has 4 features and key 5: the dot product needs as many"):
        attention(torch.zeros(1, 2, 4), torch.zeros(1, 2, 5), torch.zeros(1, 2, 4))
    with pytest.raises(ValueError, match="key has 3 tokens and value 2: each key needs one value"):
        attention(torch.zeros(1, 2, 4), torch.zeros(1, 3, 4), torch.zeros(1, 2, 4))
