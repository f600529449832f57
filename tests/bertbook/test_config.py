"""The configuration: the released sizes, and a clear error for every size that cannot be."""

import dataclasses
import re

import pytest

from bertbook.config import BertConfig
from bertbook.published import BERT_BASE

SIZES = [*BERT_BASE]


def test_the_defaults_are_the_published_sizes():
    config = dataclasses.asdict(BertConfig.base())
    assert config == dataclasses.asdict(BertConfig())
    assert {name: config[name] for name in BERT_BASE} == BERT_BASE
    rates = {name: config[name] for name in config if name not in BERT_BASE}
    assert rates == {
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }


def test_large_differs_from_base_in_four_sizes():
    base, large = dataclasses.asdict(BertConfig.base()), dataclasses.asdict(BertConfig.large())
    assert {name: size for name, size in large.items() if size != base[name]} == {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    }
    assert large["hidden_size"] // large["num_attention_heads"] == base["hidden_size"] // base["num_attention_heads"]


def test_a_configuration_cannot_be_changed_by_accident():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BertConfig().hidden_size = 32


@pytest.mark.parametrize("size", [0, -1, 1.0, True, "12", None])
@pytest.mark.parametrize("name", SIZES)
def test_a_size_is_a_positive_int(name, size):
    with pytest.raises(ValueError, match=re.escape(f"{name} must be a positive int, got {size!r}")):
        BertConfig(**{name: size})


def test_heads_divide_the_hidden_size():
    with pytest.raises(ValueError, match="hidden_size must be a multiple of num_attention_heads = 12, got 770"):
        BertConfig(hidden_size=770)
    assert BertConfig(hidden_size=12).hidden_size == 12


@pytest.mark.parametrize("rate", [-0.1, 1, 1.5, float("nan")])
@pytest.mark.parametrize("name", ["hidden_dropout_prob", "attention_probs_dropout_prob"])
def test_a_dropout_rate_lies_below_one(name, rate):
    with pytest.raises(ValueError, match=re.escape(f"{name} must be in [0, 1), got {rate}")):
        BertConfig(**{name: rate})
    assert getattr(BertConfig(**{name: 0}), name) == 0


@pytest.mark.parametrize("number", [0, -1e-12, float("nan")])
@pytest.mark.parametrize("name", ["initializer_range", "layer_norm_eps"])
def test_a_scale_is_positive(name, number):
    with pytest.raises(ValueError, match=f"{name} must be greater than 0, got {number}"):
        BertConfig(**{name: number})


@pytest.mark.parametrize("pad_token_id", [-1, 9, 0.5, 0.0, False, None])
def test_padding_is_an_id_of_the_vocabulary(pad_token_id):
    message = f"pad_token_id must be in [0, vocab_size) = [0, 9), got {pad_token_id}"
    with pytest.raises(ValueError, match=re.escape(message)):
        BertConfig(vocab_size=9, pad_token_id=pad_token_id)
    assert BertConfig(vocab_size=9, pad_token_id=8).pad_token_id == 8
