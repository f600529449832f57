"""What heads look at, on weights made by hand, and as a recorded experiment."""

import re
import shutil

import pytest
import torch
from torch import Tensor

from bertbook.experiments import attention_profile
from bertbook.experiments.attention_profile import (
    EXPERIMENT,
    describe_profiles,
    full_examples,
    profile,
    weights_of_heads,
)
from bertbook.experiments.distributed import ALONE
from bertbook.experiments.pretrain import new_pretraining_model
from bertbook.experiments.pretraining_text import MAX_LENGTH, PretrainingText, rain_text
from bertbook.experiments.recording import check_recorded, record
from bertbook.experiments.results import RESULTS, load_result

MARKS = {"cls_token_id": 2, "sep_token_id": 3}
IDS = torch.tensor([[2, 11, 12, 13, 14, 3, 15, 16, 17, 3], [2, 21, 3, 22, 23, 24, 25, 26, 27, 3]])
ASKED = torch.tensor([[0, 0, 1, 1, 0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1, 0, 0]]).bool()
B, T = IDS.shape
SHARES = ("itself", "previous", "next", "cls", "sep", "others")


def looking_at(offset: int) -> Tensor:
    """A head that gives its whole weight to the token so many places on, in a circle."""
    return torch.eye(T).roll(offset, dims=1).expand(1, 1, B, T, T)


def random_heads(layers: int = 3, heads: int = 2) -> Tensor:
    scores = torch.randn(layers, heads, B, T, T, generator=torch.Generator().manual_seed(0))
    return (3 * scores).softmax(dim=-1)


@pytest.mark.parametrize(("offset", "what", "distance"), [(-1, "previous", 1), (0, "itself", 0), (1, "next", 1)])
def test_a_head_that_looks_at_one_place_only_is_reported_as_such(offset, what, distance):
    found = profile(looking_at(offset), IDS, **MARKS)
    assert {name: found[name].item() for name in SHARES} == {name: float(name == what) for name in SHARES}
    assert found["distance"].item() == distance


@pytest.mark.parametrize(("mark", "what"), [(2, "cls"), (3, "sep")])
def test_what_a_mark_gets_is_counted_as_the_marks_and_all_of_its_kind_together(mark, what):
    of_kind = (mark == IDS).float()
    weights = (of_kind / of_kind.sum(dim=1, keepdim=True))[:, None, :].expand(1, 1, B, T, T)
    found = profile(weights, IDS, **MARKS)
    assert {name: found[name].item() for name in SHARES} == {name: float(name == what) for name in SHARES}


def test_the_shares_of_each_head_sum_to_one():
    found = profile(random_heads(), IDS, **MARKS)
    assert {found[name].shape for name in found} == {(3, 2)}
    assert torch.allclose(sum(found[name] for name in SHARES), torch.ones(3, 2))


def test_even_weights_give_each_token_the_same():
    found = profile(torch.full((1, 1, B, T, T), 1 / T), IDS, **MARKS)
    shares = {name: found[name].item() * T for name in SHARES}
    assert shares == pytest.approx({"itself": 1, "previous": 1, "next": 1, "cls": 1, "sep": 2, "others": T - 6})


def test_only_tokens_between_two_others_of_their_segment_are_asked():
    weights = random_heads()
    unasked = weights.clone()
    unasked[:, :, ~ASKED] = torch.nan  # marks among them: what they look at must not count
    found, other = profile(weights, IDS, **MARKS), profile(unasked, IDS, **MARKS)
    for name in found:
        assert torch.equal(found[name], other[name])
    for sequence, position in ASKED.nonzero().tolist():
        changed = weights.clone()
        changed[:, :, sequence, position] = torch.eye(T)[position]
        assert (profile(changed, IDS, **MARKS)["itself"] > found["itself"]).all()


def test_each_head_has_its_own_profile():
    weights = random_heads()
    whole = profile(weights, IDS, **MARKS)
    for layer in range(3):
        for head in range(2):
            alone = profile(weights[layer : layer + 1, head : head + 1], IDS, **MARKS)
            for name, shares in alone.items():
                assert shares.item() == pytest.approx(whole[name][layer, head].item(), abs=1e-5)


@pytest.mark.parametrize(
    ("weights", "input_ids", "message"),
    [
        (torch.ones(1, B, T, T), IDS, f"(L, H, {B}, {T}, {T}) for these input_ids, got (1, {B}, {T}, {T})"),
        (torch.ones(1, 1, B, T, T + 1), IDS, f"got (1, 1, {B}, {T}, {T + 1})"),
        (torch.ones(1, 1, 1, 4, 4), torch.tensor([[2, 7, 8, 3]]), "hold a segment of at least three tokens"),
    ],
)
def test_what_has_no_profile_is_refused(weights, input_ids, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        profile(weights, input_ids, **MARKS)


# The experiment


@pytest.fixture(scope="module")
def text() -> PretrainingText:
    return rain_text()


def test_only_full_examples_are_measured_and_nothing_in_them_is_masked(text):
    examples = full_examples(text)
    assert examples
    for example in examples:
        assert len(example.input_ids) == MAX_LENGTH
        assert not (example.input_ids == text.special.mask).any()


def test_the_weights_are_those_that_the_model_computes_with(text):
    model, examples = new_pretraining_model(text.tokenizer, seed=3), full_examples(text)
    weights = weights_of_heads(model, examples)
    assert model.training  # the caller's mode is as it was
    assert torch.allclose(weights.sum(dim=-1), torch.ones(()))
    last = examples[-1]
    [alone] = weights_of_heads(model, [last]).unbind(dim=2)
    assert torch.allclose(alone, weights[:, :, -1], atol=1e-6)
    swapped = last._replace(token_type_ids=1 - last.token_type_ids)
    assert not torch.allclose(weights_of_heads(model, [swapped])[:, :, 0], alone, atol=1e-4)


def test_the_untrained_model_is_that_which_the_pretraining_began_with(text):
    first = new_pretraining_model(text.tokenizer, seed=0)
    values = describe_profiles(text, first)
    assert values["pretrained"] == values["untrained"]
    assert values["sequences"] == len(full_examples(text))
    other = describe_profiles(text, new_pretraining_model(text.tokenizer, seed=1))
    assert other["pretrained"] != values["pretrained"]
    assert other["untrained"] == values["untrained"]


def test_other_weights_are_noticed(text, tmp_path, monkeypatch):
    """By their numbers, beside the hash of their file."""
    shutil.copy(RESULTS / "pretrain.json", tmp_path)  # without it nothing is measured
    shutil.copytree(RESULTS / "pretrain", tmp_path / "pretrain")
    monkeypatch.setattr(attention_profile, "whole_text", lambda: text)
    model = new_pretraining_model(text.tokenizer, seed=3)
    monkeypatch.setattr(attention_profile, "kept_model", lambda: model)
    record(EXPERIMENT, ALONE, results=tmp_path, work=tmp_path / "work")
    assert load_result("attention_profile", folder=tmp_path).values["pretrained"].keys() == {*SHARES, "distance"}
    assert check_recorded(EXPERIMENT, ALONE, results=tmp_path) == []
    with torch.no_grad():
        for layer in model.bert.encoder["layer"]:
            layer.attention["self"].query.bias += 1.0
            layer.attention["self"].key.weight *= 20
    assert any("pretrained" in fault for fault in check_recorded(EXPERIMENT, ALONE, results=tmp_path))
