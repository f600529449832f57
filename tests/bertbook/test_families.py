"""The three families: what the experiment finds, and what it must not be fooled by."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bertbook.attention import attention, causal_mask
from bertbook.config import BertConfig
from bertbook.families import (
    CrossAttention,
    DecoderLayer,
    DecoderOnly,
    EncoderDecoder,
    EncoderOnly,
    influence,
    name_attention,
    name_component,
)

CONFIG = BertConfig(
    vocab_size=20,
    hidden_size=16,
    num_hidden_layers=2,
    max_position_embeddings=10,
    num_attention_heads=2,
    intermediate_size=32,
)
property_test = settings(max_examples=6, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def evaluated(family, *, seed: int = 0, **arguments) -> nn.Module:
    torch.manual_seed(seed)
    return family(CONFIG, **arguments).eval()


def ids(T: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 19, (1, T), generator=torch.Generator().manual_seed(seed))


@given(st.integers(2, 6), seeds)
@property_test
def test_each_family_is_recognised_whatever_its_weights(T, seed):
    assert name_attention(influence(evaluated(EncoderOnly, seed=seed), ids(T, seed))) == "bidirectional (full)"
    assert name_attention(influence(evaluated(DecoderOnly, seed=seed), ids(T, seed))) == "causal (left-to-right)"


@given(st.integers(2, 4), st.integers(2, 4), seeds)
@property_test
def test_encoder_and_decoder_have_three_kinds_of_blocks(source_len, target_len, seed):
    model = evaluated(EncoderDecoder, seed=seed, source_len=source_len)
    matrix = influence(model, ids(source_len + target_len, seed))
    assert matrix[:source_len, :source_len].all()
    assert not matrix[:source_len, source_len:].any()
    assert matrix[source_len:, :source_len].all()
    assert torch.equal(matrix[source_len:, source_len:], torch.ones(target_len, target_len).tril().bool())
    assert name_attention(matrix) == "mixed"


def test_one_stack_under_two_masks():
    encoder, decoder = evaluated(EncoderOnly), evaluated(DecoderOnly)
    decoder.decoder.load_state_dict(encoder.encoder.state_dict())
    last = ids(4)
    assert not torch.allclose(encoder(last)[:, 0], decoder(last)[:, 0], atol=1e-4)
    assert torch.allclose(encoder(last[:, :1]), decoder(last[:, :1]), atol=1e-6)  # one token sees itself in both


def test_components():
    assert name_component(evaluated(EncoderOnly)) == "encoder only"
    assert name_component(evaluated(DecoderOnly)) == "decoder only"
    assert name_component(evaluated(EncoderDecoder, source_len=2)) == "encoder + decoder"
    with pytest.raises(ValueError, match="model has neither an encoder nor a decoder; it has head, body"):
        name_component(nn.ModuleDict({"head": nn.Identity(), "body": nn.Identity()}))
    with pytest.raises(ValueError, match="it has no modules"):
        name_component(nn.Identity())


def test_cross_attention_is_the_one_formula_with_two_sources():
    cross = evaluated(CrossAttention)
    written, read = torch.randn(2, 3, 16), torch.randn(2, 5, 16)
    heads = []
    for head in (slice(0, 8), slice(8, 16)):
        query, key, value = cross.query(written), cross.key(read), cross.value(read)
        heads.append(attention(query[..., head], key[..., head], value[..., head])[0])
    assert torch.allclose(cross(written, memory=read), torch.cat(heads, dim=-1), atol=1e-6)


def test_a_decoder_layer_equals_torchs():
    """Against torch's own post-LN decoder layer, with the same weights."""
    torch.manual_seed(0)
    config = BertConfig(**vars(CONFIG) | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0})
    layer = DecoderLayer(config)
    with torch.no_grad():
        for p in layer.parameters():
            p.normal_(std=0.3)
    witness = nn.TransformerDecoderLayer(16, 2, 32, 0.0, "gelu", config.layer_norm_eps, batch_first=True)
    weights = {}
    for kind in ("weight", "bias"):
        for ours, theirs in (("self_attention", "self_attn"), ("cross_attention", "multihead_attn")):
            parts = [getattr(getattr(layer, ours), part) for part in ("query", "key", "value")]
            weights[f"{theirs}.in_proj_{kind}"] = torch.cat([getattr(part, kind) for part in parts])
        pairs = {
            "self_attn.out_proj": layer.self_output.dense,
            "norm1": layer.self_output.LayerNorm,
            "multihead_attn.out_proj": layer.cross_output.dense,
            "norm2": layer.cross_output.LayerNorm,
            "linear1": layer.widen,
            "linear2": layer.output.dense,
            "norm3": layer.output.LayerNorm,
        }
        weights |= {f"{name}.{kind}": getattr(part, kind) for name, part in pairs.items()}
    witness.load_state_dict({name: tensor.detach() for name, tensor in weights.items()})
    written, read = torch.randn(2, 4, 16), torch.randn(2, 5, 16)
    expected = witness(written, read, tgt_mask=causal_mask(4))
    assert torch.allclose(layer(written, memory=read), expected, atol=1e-5)


def test_something_must_be_left_to_write():
    model = evaluated(EncoderDecoder, source_len=3)
    with pytest.raises(ValueError, match="input_ids must hold more than source_len = 3 tokens a sequence, got 3"):
        model(ids(3))


# The experiment


def test_influence_refuses_a_model_with_dropout():
    with pytest.raises(ValueError, match=re.escape("switch it to eval()")):
        influence(evaluated(EncoderOnly).train(), ids(3))


def test_influence_leaves_the_ids_and_finds_no_influence_where_there_is_none():
    input_ids = ids(3)
    before = input_ids.clone()
    matrix = influence(lambda given: torch.zeros(1, 3, 2), input_ids)
    assert torch.equal(input_ids, before)
    assert matrix.shape == (3, 3)
    assert not matrix.any()


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 3, 1)])
def test_influence_takes_one_sequence(shape):
    message = f"input_ids must have shape (1, T), got {shape}"
    with pytest.raises(ValueError, match=re.escape(message)):
        influence(lambda given: given[..., None], torch.zeros(shape, dtype=torch.long))


@given(st.integers(2, 6), seeds)
@property_test
def test_names_follow_from_what_lies_above_the_diagonal(T, seed):
    above = torch.rand(T, T, generator=torch.Generator().manual_seed(seed)) < 0.5
    matrix = torch.ones(T, T).tril().bool() | above
    seen = matrix[torch.ones(T, T).triu(diagonal=1).bool()]
    expected = "bidirectional (full)" if seen.all() else "mixed" if seen.any() else "causal (left-to-right)"
    assert name_attention(matrix) == expected


def test_a_state_that_is_blind_to_the_past_is_none_of_the_three():
    blind = torch.ones(3, 3).bool()
    blind[2, 0] = False
    with pytest.raises(ValueError, match="influenced must be True on and below the diagonal"):
        name_attention(blind)


@pytest.mark.parametrize("matrix", [torch.ones(2, 3).bool(), torch.ones(3).bool(), torch.ones(2, 2)])
def test_a_matrix_of_influences_is_square_and_bool(matrix):
    with pytest.raises(ValueError, match="influenced must be a bool matrix of shape"):
        name_attention(matrix)


def test_a_decoder_works_in_half_precision():
    assert evaluated(DecoderOnly).bfloat16()(ids(4)).dtype == torch.bfloat16
    assert evaluated(EncoderDecoder, source_len=2).bfloat16()(ids(4)).dtype == torch.bfloat16
