"""Faults that other BERT code had. Each report becomes a check that ours passes and a mutant with that fault fails.

A check is called as holds(implementation, case). The mutant has to pass it on a harmless case too, so that
it cannot fail for another reason than its fault.
"""

import math
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.attention import attention, attention_weights, padding_mask
from bertbook.tiny import TinyBertForClassification, TinyLayer
from bertbook.training import accuracy, random_task
from fault_reports import check_report, report


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def close(found: Tensor, expected: Tensor) -> bool:
    return torch.allclose(found, expected, rtol=0, atol=1e-6)


# hyunwoongko/transformer PR #40


def hides_padding(attend, padding: int) -> bool:
    """The outputs at real positions are those without padding."""
    real = torch.tensor([[1] * 4 + [0] * padding])
    query, key, value = (normal(1, 4 + padding, 8, seed=seed) for seed in range(3))
    alone = attend(query[:, :4], key[:, :4], value[:, :4], real[:, :4])
    return close(attend(query, key, value, real)[:, :4], alone)


def masked_attention(query, key, value, real):
    return attention(query, key, value, mask=padding_mask(real)[:, 0])[0]


def queries_masked(query, key, value, real):
    return attention(query, key, value, mask=padding_mask(real)[:, 0].transpose(-2, -1))[0]


# pytorch/pytorch#103749, huggingface/transformers#31035


def defines_every_row(weigh, mask_rows: list[list[float]], dtype: torch.dtype) -> bool:
    """Rows sum to 1, or to 0 if fully masked, and no gradient is NaN."""
    mask = torch.tensor(mask_rows, dtype=dtype)
    scores = normal(*mask.shape).to(dtype).requires_grad_()
    weights = weigh(scores, mask)
    (weights * normal(*mask.shape, seed=1).to(dtype)).sum().backward()
    sums = (mask == 0).any(dim=-1).to(dtype)
    return torch.allclose(weights.sum(dim=-1), sums, atol=1e-2) and bool(scores.grad.isfinite().all())


def plain_softmax(scores, mask):
    return (scores + mask).softmax(dim=-1)


def nan_replaced_after_softmax(scores, mask):
    return plain_softmax(scores, mask).nan_to_num(0.0)


def lowest_number_for_infinity(scores, mask):
    return scores.masked_fill(mask < 0, torch.finfo(scores.dtype).min).softmax(dim=-1)


# phlippe/uvadlc_notebooks#143


def accepts_mask_shape(attend, shape: tuple[int, ...]) -> bool:
    """With 2 sentences, 4 heads and 3 tokens, a mask of this shape hides the same as when written out in full."""
    query, key, value = (normal(2, 4, 3, 8, seed=seed) for seed in range(3))
    mask = torch.zeros(shape)
    mask[..., 1] = -math.inf
    try:
        found = attend(query, key, value, mask=mask)[0]
    except ValueError:
        return False
    return close(found, attention(query, key, value, mask=mask.expand(2, 4, 3, 3))[0])


def wants_the_full_shape(query, key, value, *, mask):
    if mask.shape != (*query.shape[:-1], key.shape[-2]):
        raise ValueError(f"mask has shape {mask.shape}")
    return attention(query, key, value, mask=mask)


# rasbt/LLMs-from-scratch#990, jina-ai/clip-as-service#93


def ignores_the_batch(summarise, longest: int) -> bool:
    """The vector of a sentence of 3 tokens is the same alone and beside a sentence of `longest` tokens."""
    x = normal(2, longest, 8)
    real = torch.arange(longest) < torch.tensor([[3], [longest]])
    states = masked_attention(x, x, x, real)
    alone = x[:1, :3]
    return close(summarise(states)[0], summarise(masked_attention(alone, alone, alone, real[:1, :3]))[0])


def first_state(states):
    return states[:, 0]


def last_state(states):
    return states[:, -1]


def mean_state(states):
    return states.mean(dim=1)


# huggingface/transformers#1788


def needs_the_name(attend, how: str) -> bool:
    """A mask is taken by its name only, so that segment ids cannot slip into its place."""
    x, fourth = normal(2, 3, 8), torch.zeros(2, 1, 3)
    if how == "by name":
        return close(attend(x, x, x, mask=fourth)[0], attention(x, x, x)[0])
    try:
        attend(x, x, x, fourth)
    except TypeError:
        return True
    return False


def mask_by_position(query, key, value, mask=None):
    return attention(query, key, value, mask=mask)


# huggingface/transformers#679, google-research/bert#857


def measures_the_same_twice(measure, dropout: float) -> bool:
    """Two evaluations of a model that is being trained give the same."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(100, 4), nn.Flatten(1), nn.Dropout(dropout), nn.Linear(40, 2)).train()
    task = random_task(200)
    return len({measure(model, *task) for _ in range(4)}) == 1


def accuracy_in_training_mode(model, input_ids, labels):
    return (model(input_ids).argmax(dim=-1) == labels).float().mean().item()


# huggingface/transformers PR #409


def position_learns(model_class, position: int) -> bool:
    """The position embedding gets a gradient."""
    torch.manual_seed(0)
    model = model_class()
    model(torch.zeros(1, 5, dtype=torch.long)).square().sum().backward()
    return bool((model.pos_emb.weight.grad[position] != 0).any())


class NoFirstPosition(TinyBertForClassification):
    def __init__(self):
        super().__init__()
        self.pos_emb = nn.Embedding(16, 32, padding_idx=0)


# CyberZHG/keras-bert#129


def is_exact_gelu(activation, x: float) -> bool:
    """x times the normal distribution function; the tanh formula is off by up to 4.7e-4."""
    found = activation(torch.tensor([x], dtype=torch.float64)).item()
    return math.isclose(found, x * 0.5 * (1 + math.erf(x / math.sqrt(2))), abs_tol=1e-12)


def tanh_gelu(x):
    return F.gelu(x, approximate="tanh")


FULLY_MASKED = {
    "harmless": [[0, 0], [0, -math.inf]],
    "harmful": [[[0, 0], [-math.inf, -math.inf]], [[-math.inf, -math.inf]]],
}
ROW_FAULTS = (plain_softmax, nan_replaced_after_softmax, lowest_number_for_infinity)
in_float32 = partial(defines_every_row, dtype=torch.float32)
in_bfloat16 = partial(defines_every_row, dtype=torch.bfloat16)

REPORTS = [
    *report(
        "hyunwoongko/transformer PR #40", hides_padding, masked_attention, queries_masked, harmless=0, harmful=[1, 7]
    ),
    *report("pytorch/pytorch#103749", in_float32, attention_weights, *ROW_FAULTS, **FULLY_MASKED),
    *report("huggingface/transformers#31035", in_bfloat16, attention_weights, *ROW_FAULTS, **FULLY_MASKED),
    *report(
        "phlippe/uvadlc_notebooks#143",
        accepts_mask_shape,
        attention,
        wants_the_full_shape,
        harmless=(2, 4, 3, 3),
        harmful=[(3, 3), (2, 1, 1, 3), (2, 1, 3, 3)],
    ),
    *report("rasbt/LLMs-from-scratch#990", ignores_the_batch, first_state, last_state, harmless=3, harmful=[4, 9]),
    *report("jina-ai/clip-as-service#93", ignores_the_batch, first_state, mean_state, harmless=3, harmful=[4, 9]),
    *report(
        "huggingface/transformers#1788",
        needs_the_name,
        attention,
        mask_by_position,
        harmless="by name",
        harmful=["by position"],
    ),
    *report(
        "huggingface/transformers#679",
        measures_the_same_twice,
        accuracy,
        accuracy_in_training_mode,
        harmless=0.0,
        harmful=[0.5],
    ),
    *report(
        "huggingface/transformers PR #409",
        position_learns,
        TinyBertForClassification,
        NoFirstPosition,
        harmless=1,
        harmful=[0],
    ),
    *report(
        "CyberZHG/keras-bert#129",
        is_exact_gelu,
        TinyLayer().feed_forward[1],
        tanh_gelu,
        harmless=0.0,
        harmful=[-2.0, 1.0, 2.5],
    ),
]


@pytest.mark.parametrize(("holds", "ours", "mutant", "harmless", "harmful"), REPORTS)
def test_report(holds, ours, mutant, harmless, harmful):
    check_report(holds, ours, mutant, harmless, harmful)


def test_pytorch_103749_shows_in_the_gradient_only():
    # The outputs of this mutant are right: a test that looks at outputs alone would let it pass.
    mask = torch.tensor([[0.0, 0.0], [-math.inf, -math.inf]])
    scores = normal(2, 2)
    assert torch.equal(nan_replaced_after_softmax(scores, mask), attention_weights(scores, mask))


def test_huggingface_transformers_1788_refuses_segment_ids_even_by_name():
    x, token_type_ids = normal(1, 3, 8), torch.tensor([[0, 0, 1]])
    with pytest.raises(TypeError, match=r"mask is added to the scores, so it must be torch\.float32"):
        attention(x, x, x, mask=token_type_ids)
