"""The torch twin: parity with Flax, and transfers that fail."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from bertbook.attention import causal_mask, padding_mask
from bertbook.config import BertConfig
from bertbook.flax_mini import MiniBERT, causal_boolean_mask
from bertbook.flax_weights import PreNormBlock, PreNormEncoder, flattened, mini_beside_bert, torch_from_flax
from bertbook.heads import BertForPreTraining

IDS = [0, 1, 0, 4]


@cache
def made():
    """A model whose biases and scales are not zeros and ones, so that a swapped one shows."""
    model = MiniBERT(5, 4, 2, 8, 2)
    variables = model.init(jax.random.PRNGKey(0), jnp.array(IDS))
    rng = np.random.default_rng(0)
    return model, jax.tree.map(lambda a: a + rng.normal(0, 0.3, a.shape).astype(np.float32), variables)


def gap(twin, flax_mask=None, torch_mask=None) -> float:
    model, variables = made()
    with torch.no_grad():
        ours = twin(torch.tensor([IDS]), mask=torch_mask)[0].numpy()
    return float(np.abs(ours - model.apply(variables, jnp.array(IDS), flax_mask)).max())


def test_parity_without_a_mask():
    assert gap(torch_from_flax(made()[1])) < 1e-5


def test_parity_with_a_causal_mask():
    twin = torch_from_flax(made()[1])
    assert gap(twin, causal_boolean_mask(4), causal_mask(4)) < 1e-5
    assert gap(twin, None, causal_mask(4)) > 1e-2


def test_parity_with_a_padding_mask():
    real = np.array([1, 1, 1, 0])
    flax_mask = np.broadcast_to(real == 1, (4, 4))
    assert gap(torch_from_flax(made()[1]), flax_mask, padding_mask(torch.tensor([real.tolist()]))) < 1e-5


def test_parity_without_blocks():
    params = made()[1]["params"]
    root = {"params": {name: params[name] for name in ("Embed_0", "pos_embed")}}
    twin = torch_from_flax(root)
    expected = MiniBERT(5, 4, 2, 8, 0).apply(root, jnp.array(IDS))
    assert np.allclose(twin(torch.tensor([IDS]))[0].detach(), expected, atol=1e-6)


@pytest.mark.parametrize("layer", ["query", "key", "value", "out"])
def test_a_forgotten_transpose_fits_and_shows_in_the_numbers(layer):
    careless = torch_from_flax(made()[1])
    with torch.no_grad():
        weight = getattr(careless.blocks[0], layer).weight
        weight.copy_(weight.T.clone())
    assert gap(careless) > 1e-3


def test_torchs_own_epsilon_would_not_do():
    """With features that hardly differ, the epsilon of LayerNorm decides."""
    model, variables = made()
    small = {
        "params": variables["params"]
        | {
            "Embed_0": {"embedding": variables["params"]["Embed_0"]["embedding"] * 1e-3},
            "pos_embed": variables["params"]["pos_embed"] * 1e-3,
        }
    }
    expected = model.apply(small, jnp.array(IDS))
    for eps, fits in ((1e-6, True), (1e-5, False)):
        twin = torch_from_flax(small)
        for block in twin.blocks:
            block.norm1.eps = block.norm2.eps = eps
        assert np.allclose(twin(torch.tensor([IDS]))[0].detach(), expected, rtol=0, atol=1e-5) is fits


def without(tree: dict, path: str) -> dict:
    head, _, rest = path.partition("/")
    return {k: without(v, rest) if k == head else v for k, v in tree.items() if rest or k != head}


def test_a_missing_parameter_is_named():
    params = made()[1]["params"]
    with pytest.raises(ValueError, match=r"missing \['blocks.1.dense2.bias'\], left over \[\]"):
        torch_from_flax({"params": without(params, "BERTBlock_1/Dense_1/bias")})
    with pytest.raises(ValueError, match="variables lacks 'pos_embed'"):
        torch_from_flax({"params": without(params, "pos_embed")})
    with pytest.raises(ValueError, match="variables lacks 'Embed_0/embedding'"):
        torch_from_flax(params)


def test_a_parameter_too_many_is_named():
    with pytest.raises(ValueError, match=r"left over \['head/kernel'\]"):
        torch_from_flax({"params": made()[1]["params"] | {"head": {"kernel": np.zeros((4, 2))}}})


def test_another_shape_is_named():
    params = made()[1]["params"]
    wrong = params["BERTBlock_1"] | {"Dense_0": {"kernel": np.zeros((4, 9)), "bias": np.zeros(9)}}
    with pytest.raises(ValueError, match=r"blocks.1.dense1.weight"):
        torch_from_flax({"params": params | {"BERTBlock_1": wrong}})


def test_the_weights_are_copies():
    params = {"Embed_0": {"embedding": np.eye(2)}, "pos_embed": np.zeros((1, 2))}
    twin = torch_from_flax({"params": params})
    params["pos_embed"][:] = 7
    assert twin.pos_emb.weight.abs().max() == 0


def test_bad_sizes_and_ids():
    with pytest.raises(ValueError, match="d_model must be a positive multiple of num_heads, got 4 and 3"):
        PreNormBlock(3, 4, 8)
    encoder = PreNormEncoder(5, 3, 4, num_heads=2, d_ff=8, num_layers=1)
    for ids in (torch.zeros(3, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long)):
        with pytest.raises(ValueError, match="input_ids must have shape"):
            encoder(ids)


def test_flattened_keeps_every_leaf():
    assert list(flattened({"a": {"b": 1, "c": {"d": 2}}, "e": 3})) == ["a/b", "a/c/d", "e"]


def test_the_comparison_reads_the_modules():
    mini = torch_from_flax(made()[1])
    config = BertConfig(vocab_size=5, hidden_size=4, num_attention_heads=2, num_hidden_layers=1)
    rows = {part: (ours, theirs) for part, ours, theirs in mini_beside_bert(mini, BertForPreTraining(config))}
    assert rows["LayerNorm of a block"] == ("before the sublayer", "after the sum")
    assert rows["epsilon of LayerNorm"] == ("1e-06", "1e-12")
    config = BertConfig(
        vocab_size=5,
        hidden_size=4,
        num_attention_heads=2,
        num_hidden_layers=1,
        layer_norm_eps=1e-3,
        max_position_embeddings=7,
        hidden_dropout_prob=0.3,
    )
    rows = {part: theirs for part, _, theirs in mini_beside_bert(mini, BertForPreTraining(config))}
    assert (rows["epsilon of LayerNorm"], rows["position table"]) == ("1e-03", "7 rows")
    assert rows["dropout"] == "0.1, 0.3"
