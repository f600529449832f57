"""The encoder: published names and shapes, torch's own layer as a witness, padding, positions, errors."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from bertbook.attention import padding_mask
from bertbook.config import BertConfig
from bertbook.model import (
    BertEmbeddings,
    BertLayer,
    BertModel,
    BertPooler,
    BertSelfAttention,
    BertSublayerOutput,
    initialize,
)
from bertbook.published import BERT_BASE, bert_parameter_shapes

property_test = settings(max_examples=12, deadline=None, derandomize=True)
SMALL = {
    "vocab_size": 11,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 7,
}
seeds = st.integers(0, 2**32 - 1)


def small(**sizes) -> BertConfig:
    return BertConfig(**SMALL | sizes)


def evaluated(model_class=BertModel, *, seed: int = 0, **sizes) -> nn.Module:
    """A model in evaluation mode; its weights are wide enough that every part shows in the output."""
    torch.manual_seed(seed)
    return model_class(small(initializer_range=0.5, **sizes)).eval()


def shapes_of(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(p.shape) for name, p in module.named_parameters()}


# Names and shapes


@pytest.mark.parametrize(
    "config",
    [BertConfig.base(), BertConfig.large(), small(type_vocab_size=3)],
    ids=["base", "large", "small"],
)
def test_names_and_shapes_are_the_checkpoints(config):
    with torch.device("meta"):
        model = BertModel(config)
    assert shapes_of(model) == bert_parameter_shapes({name: getattr(config, name) for name in BERT_BASE})
    assert list(shapes_of(model)) == list(model.state_dict())  # and nothing is stored that is no parameter


@given(st.integers(1, 3), st.integers(1, 7), st.sampled_from([1, 2, 4, 8]), seeds)
@property_test
def test_shapes_of_the_output(B, T, H, seed):
    input_ids = torch.randint(0, 11, (B, T), generator=torch.Generator().manual_seed(seed))
    output = evaluated(num_attention_heads=H)(input_ids)
    assert output.last_hidden_state.shape == (B, T, 8)
    assert output.pooler_output.shape == (B, 8)
    assert output.pooler_output.abs().max() <= 1  # a tanh


def test_int32_ids_give_the_same():
    input_ids = torch.tensor([[1, 2, 3]])
    model = evaluated()
    assert torch.equal(model(input_ids).pooler_output, model(input_ids.int()).pooler_output)


# Initialisation


def test_initialisation_is_narrow_normal_with_zero_biases():
    torch.manual_seed(0)
    model = BertModel(BertConfig(vocab_size=500, hidden_size=128, num_hidden_layers=1, num_attention_heads=4))
    for name, p in model.named_parameters():
        if "LayerNorm" in name:
            assert torch.equal(p, torch.full_like(p, float("weight" in name)))
        elif name.endswith("bias"):
            assert not p.any()
        elif p.numel() > 10_000:
            assert p.std().item() == pytest.approx(0.02, rel=0.05)
            assert p.mean().item() == pytest.approx(0, abs=1e-3)


def test_the_row_of_padding_is_zero_and_gets_no_gradient():
    for pad_token_id in (0, 10):
        model = evaluated(pad_token_id=pad_token_id)
        table = model.embeddings.word_embeddings.weight
        assert not table[pad_token_id].any()
        assert table.any(dim=1).sum() == 10
        model(torch.arange(4, 11)[None]).last_hidden_state.square().sum().backward()
        assert not table.grad[pad_token_id].any()
        assert table.grad[5:10].any(dim=1).all()


def test_initialize_leaves_other_modules_alone():
    part = nn.Sequential(nn.Linear(2, 2, bias=False), nn.LayerNorm(2))
    with torch.no_grad():
        part[1].weight.fill_(3.0)
    initialize(part, std=0.02)
    assert torch.equal(part[1].weight, torch.full((2,), 3.0))


# Embeddings


@given(st.integers(1, 7), seeds)
@property_test
def test_embeddings_are_the_normalised_sum_of_three_rows(T, seed):
    generator = torch.Generator().manual_seed(seed)
    input_ids = torch.randint(0, 11, (2, T), generator=generator)
    token_type_ids = torch.randint(0, 2, (2, T), generator=generator)
    embeddings = evaluated(BertEmbeddings, seed=seed)
    found = embeddings(input_ids, token_type_ids=token_type_ids)
    tables = (embeddings.word_embeddings, embeddings.position_embeddings, embeddings.token_type_embeddings)
    word, position, segment = (table.weight for table in tables)
    for b in range(2):
        for t in range(T):
            summed = word[input_ids[b, t]] + position[t] + segment[token_type_ids[b, t]]
            assert torch.allclose(found[b, t], F.layer_norm(summed, (8,), eps=1e-12), atol=1e-5)


def test_no_segments_are_all_segment_a():
    model, input_ids = evaluated(), torch.tensor([[1, 2, 3]])
    zeros, ones = torch.zeros_like(input_ids), torch.ones_like(input_ids)
    without = model(input_ids).last_hidden_state
    assert torch.equal(without, model(input_ids, token_type_ids=zeros).last_hidden_state)
    assert not torch.allclose(without, model(input_ids, token_type_ids=ones).last_hidden_state, atol=1e-3)


def test_order_matters_because_of_positions_only():
    model, input_ids = evaluated(), torch.tensor([[1, 2, 3, 4]])
    backwards = input_ids.flip(1)
    assert not torch.allclose(model(input_ids).last_hidden_state, model(backwards).last_hidden_state.flip(1), atol=1e-3)
    with torch.no_grad():
        model.embeddings.position_embeddings.weight.zero_()
    assert torch.allclose(model(input_ids).last_hidden_state, model(backwards).last_hidden_state.flip(1), atol=1e-5)


# A layer, with torch's own as a witness


def torchs_layer(layer: BertLayer, config: BertConfig) -> nn.TransformerEncoderLayer:
    """torch's post-LN layer with the same weights."""
    witness = nn.TransformerEncoderLayer(
        config.hidden_size,
        config.num_attention_heads,
        config.intermediate_size,
        dropout=0.0,
        activation="gelu",
        layer_norm_eps=config.layer_norm_eps,
        batch_first=True,
        norm_first=False,
        dtype=layer.output.dense.weight.dtype,
    )
    projections = [getattr(layer.attention["self"], part) for part in ("query", "key", "value")]
    pairs = {
        "self_attn.out_proj": layer.attention["output"].dense,
        "norm1": layer.attention["output"].LayerNorm,
        "linear1": layer.intermediate["dense"],
        "linear2": layer.output.dense,
        "norm2": layer.output.LayerNorm,
    }
    weights = {f"{name}.{kind}": getattr(part, kind) for name, part in pairs.items() for kind in ("weight", "bias")}
    for kind in ("weight", "bias"):
        weights[f"self_attn.in_proj_{kind}"] = torch.cat([getattr(part, kind) for part in projections])
    witness.load_state_dict({name: tensor.detach() for name, tensor in weights.items()})
    return witness


@given(st.integers(1, 3), st.integers(1, 6), st.sampled_from([1, 2, 4]), st.booleans(), seeds)
@property_test
def test_a_layer_equals_torchs_forward_and_backward(B, T, H, padded, seed):
    torch.manual_seed(seed)
    config = small(num_attention_heads=H, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    layer = BertLayer(config).double()
    with torch.no_grad():
        for p in layer.parameters():
            p.normal_(std=0.5)
    witness = torchs_layer(layer, config)

    lengths = torch.randint(1, T + 1, (B,)) if padded else torch.full((B,), T)
    real = torch.arange(T) < lengths[:, None]
    x = torch.randn(B, T, 8, dtype=torch.float64)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    found = layer(ours, mask=padding_mask(real).double())
    expected = witness(theirs, src_key_padding_mask=~real)
    assert torch.allclose(found[real], expected[real], rtol=0, atol=1e-10)

    direction = torch.randn(B, T, 8, dtype=torch.float64)
    (found * direction)[real].sum().backward()
    (expected * direction)[real].sum().backward()
    assert torch.allclose(ours.grad, theirs.grad, rtol=0, atol=1e-9)
    projections = [getattr(layer.attention["self"], part).weight.grad for part in ("query", "key", "value")]
    assert torch.allclose(torch.cat(projections), witness.self_attn.in_proj_weight.grad, rtol=0, atol=1e-9)
    assert torch.allclose(layer.output.dense.weight.grad, witness.linear2.weight.grad, rtol=0, atol=1e-9)


def test_a_layer_is_not_torchs_pre_ln_layer():
    config = small(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    torch.manual_seed(0)
    layer = BertLayer(config)
    witness = torchs_layer(layer, config)
    x = torch.randn(1, 3, 8)
    assert torch.allclose(layer(x), witness(x), atol=1e-5)
    witness.norm_first = True
    assert not torch.allclose(layer(x), witness(x), atol=1e-1)


def test_what_leaves_a_layer_is_normalised():
    model = evaluated()
    states = model(torch.tensor([[1, 2, 3]])).last_hidden_state
    assert torch.allclose(states.mean(dim=-1), torch.zeros(1, 3), atol=1e-5)
    assert torch.allclose(states.std(dim=-1, correction=0), torch.ones(1, 3), atol=1e-4)


def test_dropout_acts_on_the_sublayer_and_not_on_what_bypasses_it():
    torch.manual_seed(0)
    output = BertSublayerOutput(8, small(hidden_dropout_prob=0.999999))
    x = torch.randn(1, 3, 8)
    assert torch.allclose(output(torch.randn(1, 3, 8), x), output.LayerNorm(x))


def test_the_modules_that_drop_out_are_those_of_the_released_model():
    torch.manual_seed(0)
    rates = [
        part.p for part in BertModel(small(attention_probs_dropout_prob=0.3)).modules() if type(part) is nn.Dropout
    ]
    assert rates == [0.1, *[0.3, 0.1, 0.1] * 2]


# Padding and position zero


@given(st.integers(1, 6), st.integers(0, 4), seeds)
@property_test
def test_a_sentence_does_not_depend_on_its_batch(T, more, seed):
    generator = torch.Generator().manual_seed(seed)
    longest = min(T + more, 7)
    sentence = torch.randint(0, 11, (1, T), generator=generator)
    batch = torch.randint(0, 11, (3, longest), generator=generator)  # what stands under the padding is arbitrary
    batch[1, :T] = sentence[0]
    real = torch.ones(3, longest, dtype=torch.long)
    real[1, T:] = 0
    model = evaluated()
    alone, together = model(sentence), model(batch, attention_mask=real)
    assert torch.allclose(together.last_hidden_state[1, :T], alone.last_hidden_state[0], atol=1e-5)
    assert torch.allclose(together.pooler_output[1], alone.pooler_output[0], atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.int64])
def test_a_mask_of_ones_hides_nothing(dtype):
    model, input_ids = evaluated(), torch.tensor([[1, 2, 3]])
    masked = model(input_ids, attention_mask=torch.ones(1, 3, dtype=dtype)).last_hidden_state
    assert torch.equal(masked, model(input_ids).last_hidden_state)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_sequence_of_padding_alone_has_no_nan(dtype):
    model = evaluated().to(dtype)
    output = model(torch.tensor([[1, 2], [0, 0]]), attention_mask=torch.tensor([[1, 1], [0, 0]]))
    assert output.last_hidden_state.dtype == dtype
    (output.last_hidden_state.sum() + output.pooler_output.sum()).backward()
    assert output.last_hidden_state.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_the_pooler_reads_position_zero_only():
    torch.manual_seed(0)
    states = torch.randn(2, 5, 8, requires_grad=True)
    BertPooler(small())(states).sum().backward()
    assert states.grad[:, 0].all()
    assert not states.grad[:, 1:].any()


def test_an_empty_batch_gives_an_empty_result():
    output = evaluated()(torch.zeros(0, 3, dtype=torch.long), attention_mask=torch.zeros(0, 3, dtype=torch.long))
    assert output.last_hidden_state.shape == (0, 3, 8)
    assert output.pooler_output.shape == (0, 8)


def test_evaluation_is_repeatable_and_training_is_not():
    model, input_ids = evaluated(), torch.tensor([[1, 2, 3]])
    assert torch.equal(model(input_ids).last_hidden_state, model(input_ids).last_hidden_state)
    model.train()
    assert not torch.equal(model(input_ids).last_hidden_state, model(input_ids).last_hidden_state)


# Errors

IDS = torch.tensor([[1, 2, 3]])


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (TypeError, "input_ids must be int64 or int32, got torch.float32", {"input_ids": IDS.float()}),
        (TypeError, "input_ids must be int64 or int32, got torch.bool", {"input_ids": IDS.bool()}),
        (ValueError, "input_ids must have shape (B, T), got (3,)", {"input_ids": IDS[0]}),
        (ValueError, "input_ids holds 11; ids must be in [0, 11)", {"input_ids": torch.tensor([[3, 11]])}),
        (ValueError, "input_ids holds -1; ids must be in [0, 11)", {"input_ids": torch.tensor([[3, -1]])}),
        (ValueError, "input_ids has 0 tokens a sequence; this model takes 1 to", {"input_ids": IDS[:, :0]}),
        (
            ValueError,
            "input_ids has 8 tokens a sequence; this model takes 1 to max_position_embeddings = 7",
            {"input_ids": torch.ones(1, 8, dtype=torch.long)},
        ),
        (TypeError, "token_type_ids must be int64 or int32, got torch.float32", {"token_type_ids": IDS.float()}),
        (ValueError, "token_type_ids holds 2; ids must be in [0, 2)", {"token_type_ids": torch.tensor([[0, 1, 2]])}),
        (
            ValueError,
            "token_type_ids must have the shape of input_ids, (1, 3), got (1, 1)",
            {"token_type_ids": torch.zeros(1, 1, dtype=torch.long)},
        ),
        (
            ValueError,
            "attention_mask must have the shape of input_ids, (1, 3), or a row for each token, (1, 3, 3), got (1, 4)",
            {"attention_mask": torch.ones(1, 4, dtype=torch.long)},
        ),
        (
            ValueError,
            "attention_mask must hold only 0 and 1, got values [0, 2]",
            {"attention_mask": torch.tensor([[0, 2, 0]])},
        ),
        (TypeError, "attention_mask must hold ints or bools", {"attention_mask": torch.ones(1, 3)}),
    ],
)
def test_bad_input_is_named(error, message, arguments):
    model = evaluated()
    with pytest.raises(error, match=re.escape(message)):
        model(**{"input_ids": IDS} | arguments)


# Two ways to the same attention

PADDED = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]])  # the last sees nothing


TRIANGLE = torch.ones(3, 4, 4, dtype=torch.long).tril()


@pytest.mark.parametrize(
    "mask", [None, torch.ones_like(PADDED), PADDED, TRIANGLE], ids=["none", "ones", "padded", "triangle"]
)
def test_the_plain_formula_equals_torchs_forward_and_backward(mask):
    input_ids = torch.arange(12).view(3, 4) % 11
    results = []
    for plain in (True, False):
        model = evaluated().double()
        output = model(input_ids, attention_mask=mask, output_attentions=plain)
        output.last_hidden_state.sin().sum().backward()
        results.append([output.last_hidden_state, *(p.grad for p in model.encoder.parameters())])
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


def test_a_mask_with_a_row_for_each_token_can_hide_the_future():
    """The first tokens of a sequence get what they would get alone."""
    model, input_ids = evaluated(), torch.arange(12).view(3, 4) % 11
    whole = model(input_ids, attention_mask=TRIANGLE).last_hidden_state
    for length in (1, 2, 3):
        first = model(input_ids[:, :length], attention_mask=TRIANGLE[:, :length, :length]).last_hidden_state
        assert torch.allclose(whole[:, :length], first, atol=1e-6)
    assert not torch.allclose(whole, model(input_ids).last_hidden_state, atol=1e-3)


def test_equal_rows_are_a_mask_for_the_sequence():
    model, input_ids = evaluated(), torch.arange(12).view(3, 4) % 11
    rows = PADDED[:, None, :].expand(3, 4, 4)
    by_row = model(input_ids, attention_mask=rows).last_hidden_state
    assert torch.equal(by_row, model(input_ids, attention_mask=PADDED).last_hidden_state)


def test_weights_on_request_sum_to_one_or_to_nothing():
    model, input_ids = evaluated(), torch.arange(12).view(3, 4) % 11
    output = model(input_ids, attention_mask=PADDED, output_attentions=True)
    assert len(output.attentions) == 2
    sums = torch.tensor([1.0, 1.0, 0.0])[:, None, None].expand(3, 2, 4)
    for weights in output.attentions:
        assert weights.shape == (3, 2, 4, 4)
        assert torch.allclose(weights.sum(dim=-1), sums)
        assert not weights[1, :, :, 2:].any()
    assert model(input_ids).attentions is None


def test_weights_are_those_before_dropout():
    model = evaluated(attention_probs_dropout_prob=0.5)
    model.encoder.train()
    weights = model(torch.tensor([[1, 2, 3]]), output_attentions=True).attentions[0]
    assert torch.allclose(weights.sum(dim=-1), torch.ones(1, 2, 3))


@pytest.mark.parametrize("plain", [True, False])
def test_both_drop_the_same_weights(plain):
    """The rate is that of the part, in training mode only."""
    config = small(attention_probs_dropout_prob=0.5)
    torch.manual_seed(0)
    attention, x = BertSelfAttention(config), torch.randn(1, 4, 8)
    found = []
    for training in (True, False):
        attention.train(training)
        torch.manual_seed(1)
        found.append(attention(x, attentions=[] if plain else None))
    query, key, value = (attention.split_heads(part(x)) for part in (attention.query, attention.key, attention.value))
    weights = (query @ key.mT / 2).softmax(dim=-1)
    torch.manual_seed(1)
    for one, used in zip(found, (F.dropout(weights, 0.5), weights), strict=True):
        assert torch.allclose(one, (used @ value).transpose(1, 2).flatten(2), atol=1e-6)


@pytest.mark.parametrize("plain", [True, False])
def test_autocast_with_padding_has_no_nan(plain):
    model = evaluated()
    with torch.autocast("cpu", torch.bfloat16):
        output = model(torch.arange(12).view(3, 4) % 11, attention_mask=PADDED, output_attentions=plain)
    output.last_hidden_state.float().square().sum().backward()
    assert output.last_hidden_state.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.encoder.parameters())


def test_an_encoder_may_have_no_pooler():
    torch.manual_seed(0)
    model = BertModel(small(), add_pooling_layer=False)
    assert model(torch.tensor([[1, 2, 3]])).pooler_output is None
    assert not [name for name in model.state_dict() if name.startswith("pooler")]
