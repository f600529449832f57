"""The three checks: they pass for our classes, and each assertion fires on a class with one fault."""

import re

import pytest
import torch
from torch import Tensor, nn

from bertbook.attention import attention, causal_mask
from bertbook.milestones import input_of, milestone_1, milestone_2, milestone_3, positions_read
from bertbook.tiny import TinyBertForClassification, TinySelfAttn

HALF_A_DIGIT = 0.5e-4 + 1e-6  # what a number printed with four decimals allows

# Ours pass, with the lesson's numbers


def test_milestone_1_passes():
    *shapes_and_sums, (check, expected, smallest) = milestone_1(TinySelfAttn)
    assert shapes_and_sums == [
        ("output shape", "(2, 6, 32)", "(2, 6, 32)"),
        ("attention row sums", "all 1.0", "all 1.0"),
    ]
    assert (check, expected) == ("smallest weight above the diagonal", "> 0")
    assert abs(smallest - 0.0501) <= HALF_A_DIGIT


def test_milestone_2_passes():
    assert milestone_2(TinyBertForClassification) == [
        ("total params", 28994),
        ("input shape", "(3, 10)"),
        ("logits shape", "(3, 2)"),
        ("[CLS] state used", "x[:, 0, :], shape (3, 32)"),
    ]


def test_milestone_3_passes():
    torch.manual_seed(7)  # the caller's random state does not matter
    losses = milestone_3(TinyBertForClassification)
    assert len(losses) == 30
    printed = [losses[epoch] for epoch in (0, 9, 19, 29)]
    assert printed == pytest.approx([0.7904, 0.5772, 0.4014, 0.1703], abs=HALF_A_DIGIT)


# Attention with one fault each


class Causal(TinySelfAttn):
    def forward(self, x):
        query, key, value = (self.split_heads(part) for part in self.qkv(x).chunk(3, dim=-1))
        heads, weights = attention(query, key, value, mask=causal_mask(x.shape[1]))
        return self.out(heads.transpose(1, 2).flatten(2)), weights


class HeadsNotMerged(TinySelfAttn):
    def forward(self, x):
        output, weights = super().forward(x)
        return self.split_heads(output), weights


class OneHead(TinySelfAttn):
    def __init__(self, hidden_size, num_heads):
        super().__init__(hidden_size, 1)


class NoSoftmax(TinySelfAttn):
    def forward(self, x):
        output, weights = super().forward(x)
        return output, weights.log()


class SoftmaxOverQueries(TinySelfAttn):
    def forward(self, x):
        output, weights = super().forward(x)
        return output, weights.log().softmax(dim=-2)


class GivesNaN(TinySelfAttn):
    def forward(self, x):
        output, weights = super().forward(x)
        return output, weights * float("nan")


class ViewMixesTokens(TinySelfAttn):
    """Views straight to (B, H, T, D/H): the right shape, with tokens and features mixed."""

    def split_heads(self, x):
        B, T, _ = x.shape
        return x.reshape(B, self.num_heads, T, self.head_dim)


class MergeMixesTokens(TinySelfAttn):
    """Merges the heads without transposing them back."""

    def forward(self, x):
        query, key, value = (self.split_heads(part) for part in self.qkv(x).chunk(3, dim=-1))
        heads, weights = attention(query, key, value)
        return self.out(heads.reshape(x.shape)), weights


class ForgetsTheValues(TinySelfAttn):
    def forward(self, x):
        return x, super().forward(x)[1]


@pytest.mark.parametrize(
    ("attention_class", "message"),
    [
        (
            ViewMixesTokens,
            "tokens in another order: expected the same outputs in that order, got other outputs. Is a view mixing",
        ),
        (
            MergeMixesTokens,
            "tokens in another order: expected the same outputs in that order, got other outputs. Is a view mixing",
        ),
        (
            ForgetsTheValues,
            "another last token: expected another first output, got the same first output. Are the values used",
        ),
        (
            Causal,
            "weights above the diagonal: expected all greater than 0, got one that is 0. Is there still a causal mask?",
        ),
        (HeadsNotMerged, "output shape: expected (2, 6, 32), got (2, 4, 6, 8)."),
        (OneHead, "shape of the weights: expected (2, 4, 6, 6), got (2, 1, 6, 6)."),
        (NoSoftmax, "attention row sums: expected every row to sum to 1, got one that is off by "),
        (SoftmaxOverQueries, "attention row sums: expected every row to sum to 1, got one that is off by "),
        (GivesNaN, "attention row sums: expected every row to sum to 1, got one that is off by nan. Softmax over"),
    ],
)
def test_milestone_1_fails(attention_class, message):
    with pytest.raises(AssertionError, match=re.escape(message)):
        milestone_1(attention_class)


# Classifiers with one fault each


class Reads(TinyBertForClassification):
    """A classifier whose head is given whatever `pick` makes of the hidden states."""

    def forward(self, input_ids):
        return self.head(self.pick(self.encode(input_ids)))


class EveryPosition(Reads):
    def pick(self, x: Tensor) -> Tensor:
        return x


class MeanOfStates(Reads):
    def pick(self, x: Tensor) -> Tensor:
        return x.mean(dim=1)


class LastPosition(Reads):
    def pick(self, x: Tensor) -> Tensor:
        return x[:, -1]


class MeanOfLogits(EveryPosition):
    def forward(self, input_ids):
        return super().forward(input_ids).mean(dim=1)


class NoHead(TinyBertForClassification):
    def forward(self, input_ids):
        return self.encode(input_ids)[:, 0, :2]


class ThreeClasses(TinyBertForClassification):
    def __init__(self):
        super().__init__(num_classes=3)


class NoPositions(TinyBertForClassification):
    def __init__(self):
        super().__init__()
        self.pos_emb.weight.data.zero_()


class NoLayers(TinyBertForClassification):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Identity() for _ in range(2))


@pytest.mark.parametrize(
    ("model_class", "message"),
    [
        (
            NoPositions,
            "tokens in another order: expected other logits, got the same logits. Do the layers run, and are",
        ),
        (NoLayers, "tokens in another order: expected other logits, got the same logits. Do the layers run, and are"),
        (EveryPosition, "logits of three sequences, two classes: expected shape (3, 2), got (3, 10, 2)"),
        (ThreeClasses, "logits of three sequences, two classes: expected shape (3, 2), got (3, 3)"),
        (MeanOfLogits, "what the head is given: expected x[:, 0, :], of shape (3, 32), got shape (3, 10, 32)."),
        (MeanOfStates, f"positions that the head reads: expected [0], as in x[:, 0, :], got {list(range(10))}."),
        (LastPosition, "positions that the head reads: expected [0], as in x[:, 0, :], got [9]."),
        (NoHead, "the model never calls Linear(in_features=32, out_features=2, bias=True)"),
    ],
)
def test_milestone_2_fails(model_class, message):
    with pytest.raises(AssertionError, match=re.escape(message)):
        milestone_2(model_class)


class HandMadeLayer(nn.Module):
    """A layer that ends in an addition: its own output is the last module output that can be watched."""

    def __init__(self):
        super().__init__()
        self.attn, self.norm = TinySelfAttn(), nn.LayerNorm(32)

    def forward(self, x):
        return x + self.attn(self.norm(x))[0]


class InlineResidual(TinyBertForClassification):
    """Correct, but the last hidden states are made in the model's own forward, by no module of their own."""

    def forward(self, input_ids):
        x = self.encode(input_ids)
        x = x + self.layers[-1].feed_forward(x)
        return self.head(nn.functional.layer_norm(x, (32,))[:, 0])


class OtherLayers(TinyBertForClassification):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([HandMadeLayer(), HandMadeLayer()])


class DeepHead(TinyBertForClassification):
    def __init__(self):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))


@pytest.mark.parametrize("model_class", [InlineResidual, OtherLayers, DeepHead])
def test_milestone_2_accepts_other_ways_to_read_position_0(model_class):
    assert milestone_2(model_class)[3] == ("[CLS] state used", "x[:, 0, :], shape (3, 32)")


def test_watching_leaves_no_hooks():
    model, ids = TinyBertForClassification(), torch.zeros(2, 4, dtype=torch.long)
    assert torch.equal(input_of(model.head, model, ids), model.encode(ids)[:, 0])
    assert positions_read(model, ids, hidden_size=32) == [0]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


class FrozenBody(TinyBertForClassification):
    def __init__(self):
        super().__init__()
        self.requires_grad_(False)
        self.head.requires_grad_(True)


class NoTokens(TinyBertForClassification):
    """Sees positions only, so all sequences look the same."""

    def encode(self, input_ids):
        return super().encode(torch.zeros_like(input_ids))


class Overflows(TinyBertForClassification):
    def forward(self, input_ids):
        return super().forward(input_ids) * float("inf")


@pytest.mark.parametrize("model_class", [FrozenBody, NoTokens, Overflows])
def test_milestone_3_fails(model_class):
    with pytest.raises(AssertionError, match=r"last loss: expected under 0\.3, got (0\.\d{4}|nan) after 30 epochs"):
        milestone_3(model_class)
