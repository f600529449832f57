"""The toy classifier: its size, its wiring, its symmetries, the errors."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from bertbook.tiny import TinyBertForClassification, TinyLayer, TinySelfAttn, count_parameters, parameter_table

property_test = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def seeded(make: type[nn.Module], *args: int, seed: int = 0) -> nn.Module:
    """A module in float64, so that equal formulas give equal numbers to 12 digits."""
    torch.manual_seed(seed)
    return make(*args).double()


def random_ids(B: int, T: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(0, 100, (B, T), generator=torch.Generator().manual_seed(seed))


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(found, expected, rtol=0, atol=1e-12)


# Size and order


def test_parameter_table():
    assert parameter_table(TinyBertForClassification()) == [
        ("tok_emb (100 x 32)", 3200),
        ("pos_emb (16 x 32)", 512),
        ("2 x TinyLayer", 25216),
        ("head Linear(32, 2)", 66),
        ("total", 28994),
    ]


@given(*[st.integers(1, 4)] * 6)
@property_test
def test_the_parts_add_up_to_the_total_at_any_size(vocab_size, head_dim, num_heads, num_layers, max_len, num_classes):
    hidden_size = head_dim * num_heads
    model = TinyBertForClassification(vocab_size, hidden_size, num_heads, num_layers, max_len, num_classes)
    *parts, total = [count for _, count in parameter_table(model)]
    assert sum(parts) == total == sum(p.numel() for p in model.parameters())
    logits = model(torch.zeros(3, max_len, dtype=torch.long))
    assert logits.shape == (3, num_classes)


def test_only_trainable_parameters_count():
    layer = TinyLayer()
    assert count_parameters(layer) == 12_608
    layer.attn.requires_grad_(False)
    assert count_parameters(layer) == 12_608 - 3 * 32 * 32 - 32 * 32 - 32


def test_layers_draw_their_first_weights_in_the_recipes_order():
    torch.manual_seed(42)
    by_hand = [nn.Embedding(100, 32).weight, nn.Embedding(16, 32).weight]
    for _ in range(2):
        by_hand += nn.Linear(32, 96, bias=False).parameters()
        for inputs, outputs in [(32, 32), (32, 128), (128, 32)]:
            by_hand += nn.Linear(inputs, outputs).parameters()
        for _ in range(2):
            by_hand += nn.LayerNorm(32).parameters()
    by_hand += nn.Linear(32, 2).parameters()
    torch.manual_seed(42)
    parameters = list(TinyBertForClassification().parameters())
    assert len(parameters) == len(by_hand)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(parameters, by_hand, strict=True))


# Attention


@given(seeds, st.integers(1, 3), st.integers(1, 7), st.sampled_from([1, 2, 4]))
@property_test
def test_permuting_the_tokens_permutes_output_and_weights(seed, B, T, num_heads):
    attn = seeded(TinySelfAttn, 8, num_heads, seed=seed)
    x = torch.randn(B, T, 8, dtype=torch.float64)
    order = torch.randperm(T)
    output, weights = attn(x)
    permuted_output, permuted_weights = attn(x[:, order])
    assert close(permuted_output, output[:, order])
    assert close(permuted_weights, weights[:, :, order][..., order])


@given(seeds, st.integers(1, 7))
@property_test
def test_attention_is_torchs_on_the_same_heads(seed, T):
    attn = seeded(TinySelfAttn, 8, 2, seed=seed)
    x = torch.randn(3, T, 8, dtype=torch.float64)
    query, key, value = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in attn.qkv(x).split(8, dim=-1))
    heads = F.scaled_dot_product_attention(query, key, value)
    output, weights = attn(x)
    assert close(output, attn.out(heads.transpose(1, 2).reshape(3, T, 8)))
    assert close(weights.sum(dim=-1), torch.ones(3, 2, T, dtype=torch.float64))
    assert (weights > 0).all()  # both directions, no mask


def test_input_need_not_be_contiguous():
    attn = seeded(TinySelfAttn, 8, 2)
    x = torch.randn(5, 3, 8, dtype=torch.float64).transpose(0, 1)
    assert close(attn(x)[0], attn(x.contiguous())[0])


# Layer and classifier


def test_a_layer_normalises_before_each_sublayer_and_adds_after():
    layer = seeded(TinyLayer, 8, 2)
    for p in layer.parameters():  # move the LayerNorms off their neutral start
        nn.init.normal_(p)
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    middle = x + layer.attn(layer.norm1(x))[0]
    wide = F.gelu(layer.feed_forward[0](layer.norm2(middle)), approximate="none")
    assert close(layer(x), middle + layer.feed_forward[2](wide))


def test_logits_are_the_head_on_position_0():
    model, ids = seeded(TinyBertForClassification), random_ids(3, 10)
    states = model.encode(ids)
    assert states.shape == (3, 10, 32)
    assert torch.equal(model(ids), model.head(states[:, 0]))


@pytest.mark.parametrize("position", [0, 4, 9])
def test_the_answer_depends_on_every_token(position):
    model, ids = seeded(TinyBertForClassification), random_ids(1, 10)
    changed = ids.clone()
    changed[0, position] = (changed[0, position] + 1) % 100
    assert not close(model(changed), model(ids))


def test_the_order_of_tokens_matters():
    model, ids = seeded(TinyBertForClassification), random_ids(1, 10)
    assert not close(model(ids[:, [0, *range(9, 0, -1)]]), model(ids))


@given(st.integers(1, 5), st.integers(1, 16))
@property_test
def test_a_sentence_does_not_depend_on_its_batch(B, T):
    model, ids = seeded(TinyBertForClassification), random_ids(B, T)
    assert close(torch.cat([model(row[None]) for row in ids]), model(ids))


def test_an_empty_batch_and_int32_ids_are_fine():
    model, ids = seeded(TinyBertForClassification), random_ids(2, 5)
    assert model(ids[:0]).shape == (0, 2)
    assert torch.equal(model(ids.int()), model(ids))


# Errors


@pytest.mark.parametrize(("hidden_size", "num_heads"), [(32, 3), (2, 4), (0, 4), (-4, 4), (32, 0), (32, -1)])
def test_attention_refuses_heads_that_do_not_divide(hidden_size, num_heads):
    message = f"hidden_size must be a positive multiple of num_heads, got {hidden_size} and {num_heads}"
    for make in (TinySelfAttn, TinyLayer):
        with pytest.raises(ValueError, match=re.escape(message)):
            make(hidden_size, num_heads)


@pytest.mark.parametrize("shape", [(6, 32), (2, 6, 31), (2, 4, 6, 32)])
def test_attention_refuses_inputs_of_another_shape(shape):
    with pytest.raises(ValueError, match=re.escape(f"x must have shape (B, T, 32), got {shape}")):
        TinySelfAttn()(torch.zeros(shape))


@pytest.mark.parametrize("size", [0, -4])
@pytest.mark.parametrize("name", ["vocab_size", "hidden_size", "num_layers", "max_len", "num_classes"])
def test_the_classifier_names_the_size_that_is_not_positive(name, size):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got {size}"):
        TinyBertForClassification(**{name: size})


@pytest.mark.parametrize("sizes", [{"num_heads": 0}, {"num_heads": -1}, {"hidden_size": 30}])
def test_the_classifier_refuses_heads_that_do_not_divide(sizes):
    with pytest.raises(ValueError, match="hidden_size must be a positive multiple of num_heads, got"):
        TinyBertForClassification(**sizes)


@pytest.mark.parametrize(
    ("input_ids", "error", "message"),
    [
        (torch.zeros(1, 3), TypeError, "input_ids must be int64 or int32 token ids, got torch.float32"),
        (torch.ones(1, 3, dtype=torch.bool), TypeError, "input_ids must be int64 or int32 token ids, got torch.bool"),
        (torch.tensor([1, 2]), ValueError, "input_ids must have shape (B, T), got (2,)"),
        (torch.zeros(2, 0, dtype=torch.long), ValueError, "input_ids has 0 tokens a sequence; this model takes 1 to"),
        (torch.zeros(2, 17, dtype=torch.long), ValueError, "17 tokens a sequence; this model takes 1 to max_len = 16"),
        (torch.tensor([[5, 100]]), ValueError, "input_ids holds 100; ids must be in [0, vocab_size) = [0, 100)"),
        (torch.tensor([[5, -1]]), ValueError, "input_ids holds -1; ids must be in [0, vocab_size) = [0, 100)"),
    ],
)
def test_the_classifier_refuses(input_ids, error, message):
    model = TinyBertForClassification()
    for call in (model, model.encode, model.check_input_ids):
        with pytest.raises(error, match=re.escape(message)):
            call(input_ids)
