"""Counts: the published totals, each parameter once, and the lesson's mistake."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.config import BertConfig
from bertbook.counting import (
    count_chain,
    count_components,
    count_layer,
    dimensions,
    embedding_sizes,
    without_weights,
)
from bertbook.heads import BertForPreTraining
from bertbook.model import BertModel
from bertbook.tiny import count_parameters

BASE, LARGE = BertConfig.base(), BertConfig.large()


def test_nothing_is_allocated():
    model = without_weights(BertForPreTraining, LARGE)
    assert {p.device.type for p in model.parameters()} == {"meta"}
    assert torch.zeros(1).device.type == "cpu"  # and the default device is what it was
    with pytest.raises(TypeError, match="num_labels"):
        without_weights(BertForPreTraining, LARGE, num_labels=2)


def test_components_of_base():
    assert count_components(BASE) == {
        "token embeddings": 23_440_896,
        "position embeddings": 393_216,
        "segment embeddings": 1_536,
        "embedding LayerNorm": 1_536,
        "layers": 85_054_464,
        "pooler": 590_592,
        "masked-LM transform": 592_128,
        "masked-LM bias": 30_522,
        "next-sentence head": 1_538,
    }


def test_the_chain_of_totals():
    assert list(count_chain(BASE).values()) == [108_495_360, 108_891_648, 109_482_240, 109_514_298, 110_106_428]
    assert count_chain(LARGE)["encoder with pooler"] == 335_141_888
    cased = replace(BASE, vocab_size=28_996)
    assert count_chain(cased)["encoder with pooler"] == 108_310_272
    tiny = BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512)
    assert count_chain(tiny)["encoder with pooler"] == 4_385_920


def test_one_layer():
    assert count_layer(BASE) == {
        "attention": 2_362_368,
        "feed-forward": 4_722_432,
        "2 LayerNorms": 3_072,
        "one layer": 7_087_872,
    }


@given(st.integers(1, 9), st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 4))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_counts_add_up_and_equal_those_of_real_weights(V, layers, heads, width, segments):
    config = BertConfig(
        vocab_size=V,
        hidden_size=4 * heads,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=width,
        max_position_embeddings=5,
        type_vocab_size=segments,
    )
    counts, layer = count_components(config), count_layer(config)
    assert sum(counts.values()) == count_parameters(BertForPreTraining(config))
    assert counts["layers"] == layers * layer["one layer"]
    assert layer["one layer"] == sum(n for part, n in layer.items() if part != "one layer")
    D = 4 * heads
    assert layer["attention"] == 4 * (D * D + D)
    assert layer["feed-forward"] == 2 * D * width + D + width
    assert count_chain(config)["encoder with pooler"] == count_parameters(BertModel(config))


def test_heads_decide_no_count():
    assert count_components(replace(BASE, num_attention_heads=3)) == count_components(BASE)


def test_dimensions_are_read_off_the_module():
    assert [row[:2] for row in dimensions(BASE)] == [
        ("transformer layers", 12),
        ("hidden dim H", 768),
        ("attention heads", 12),
        ("FFN dim", 3072),
        ("total params", 109_482_240),
        ("max sequence length", 512),
    ]
    notes = {component: note for component, _, note in dimensions(LARGE)}
    assert notes["attention heads"] == "1024 / 16 = 64 features a head"
    assert notes["FFN dim"] == "4 x H"
    assert notes["max sequence length"] == "learned positions"
    uneven = {row[0]: row[2] for row in dimensions(replace(BASE, intermediate_size=1152))}
    assert uneven["FFN dim"] == "1.5 x H"


def test_embedding_sizes():
    assert embedding_sizes(BASE) == {"token": "30,522 x 768", "position": "512 x 768", "segment": "2 x 768"}
    assert embedding_sizes(replace(LARGE, type_vocab_size=1))["segment"] == "1 x 1024"
