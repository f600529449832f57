"""Masking and the masked-LM loss: who is selected, what replaces it, what the loss counts; and the errors."""

from statistics import NormalDist

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from bertbook.masking import (
    IGNORE_INDEX,
    MASK_SHARE,
    RANDOM_SHARE,
    SELECTION_RATE,
    evaluate_masked_lm,
    mask_exactly,
    mask_tokens,
    masked_lm_loss,
)

property_test = settings(max_examples=20, deadline=None, derandomize=True)
PAD, CLS, SEP, MASK = range(4)
IDS = {"mask_token_id": MASK, "vocab_size": 30, "special_token_ids": [PAD, CLS, SEP, MASK]}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def any_ids(seed: int, *shape: int) -> torch.Tensor:
    """Ids with a good share of special ones."""
    return torch.randint(0, 10, shape, generator=seeded(seed))


def special_in(ids: torch.Tensor) -> torch.Tensor:
    return ids < 4


@property_test
@given(seed=st.integers(0, 10**6), B=st.integers(0, 4), T=st.integers(0, 20), rate=st.floats(0.01, 0.99))
def test_promises_hold_for_any_input_and_seed(seed, B, T, rate):
    input_ids = any_ids(seed, B, T)
    before = input_ids.clone()
    masked_ids, labels = mask_tokens(input_ids, generator=seeded(seed + 1), probability=rate, **IDS)
    selected = labels != IGNORE_INDEX
    assert torch.equal(input_ids, before)
    assert masked_ids.shape == labels.shape == input_ids.shape
    assert labels.dtype == torch.int64
    assert not (selected & special_in(input_ids)).any()
    assert torch.equal(labels[selected], input_ids[selected])
    assert torch.equal(masked_ids[~selected], input_ids[~selected])
    assert not (special_in(masked_ids) & (masked_ids != MASK) & selected).any()


def token_by_token(input_ids, *, generator, mask_token_id, vocab_size, special_token_ids, probability):
    """The masking in its plainest form: the same draws, and then one decision a token."""
    ordinary = [i for i in range(vocab_size) if i not in special_token_ids]
    selecting = torch.rand(input_ids.shape, generator=generator).tolist()
    drawn = torch.randint(0, len(ordinary), input_ids.shape, generator=generator).tolist()
    parting = torch.rand(input_ids.shape, generator=generator).tolist()
    masked_ids, labels = [], []
    for token, *numbers in zip(input_ids.tolist(), selecting, drawn, parting, strict=True):
        select, number, part = numbers
        selected = token not in special_token_ids and select < probability
        replaced = mask_token_id if part < MASK_SHARE else ordinary[number]
        replaced = token if part >= MASK_SHARE + RANDOM_SHARE else replaced
        masked_ids.append(replaced if selected else token)
        labels.append(token if selected else IGNORE_INDEX)
    return torch.tensor(masked_ids, dtype=input_ids.dtype), torch.tensor(labels, dtype=torch.int64)


@settings(property_test, max_examples=100)
@given(seed=st.integers(0, 10**6), T=st.integers(0, 40), rate=st.floats(0.01, 0.99), data=st.data())
def test_the_fast_way_is_the_plain_way(seed, T, rate, data):
    """For any special ids, whichever and wherever they are."""
    V = data.draw(st.integers(2, 30))
    special = data.draw(st.lists(st.integers(0, V - 1), min_size=1, max_size=V - 1, unique=True))
    input_ids = torch.randint(0, V, (T,), generator=seeded(seed)).to(
        data.draw(st.sampled_from([torch.int64, torch.int32]))
    )
    ids = {"mask_token_id": special[0], "vocab_size": V, "special_token_ids": special, "probability": rate}
    fast = mask_tokens(input_ids, generator=seeded(seed), **ids)
    plain = token_by_token(input_ids, generator=seeded(seed), **ids)
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(fast, plain, strict=True))


@property_test
@given(seed=st.integers(0, 10**6), T=st.integers(1, 20), data=st.data())
def test_exact_count_is_exact(seed, T, data):
    input_ids = any_ids(seed, 3, T)
    fewest = int((~special_in(input_ids)).sum(dim=1).min())
    if fewest == 0:
        with pytest.raises(ValueError, match="has 0 tokens that are not special"):
            mask_exactly(input_ids, count=1, generator=seeded(), **IDS)
        return
    count = data.draw(st.integers(1, fewest))
    before = input_ids.clone()
    masked_ids, labels = mask_exactly(input_ids, count=count, generator=seeded(seed), **IDS)
    selected = labels != IGNORE_INDEX
    assert selected.sum(dim=1).tolist() == [count] * 3
    assert not (selected & special_in(input_ids)).any()
    assert torch.equal(masked_ids[~selected], input_ids[~selected])
    assert torch.equal(input_ids, before)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_shares_lie_in_binomial_bounds(seed):
    n = 1_000_000
    input_ids = torch.full((n,), 7)
    ids = {"mask_token_id": 0, "vocab_size": 50_000, "special_token_ids": [0]}
    masked_ids, labels = mask_tokens(input_ids, generator=seeded(seed), **ids)
    selected = labels != IGNORE_INDEX
    kept = selected & (masked_ids == 7)
    masked = selected & (masked_ids == 0)
    z = NormalDist().inv_cdf(1 - 1e-5 / 2)  # wide: a test may not fail by chance
    for found, p in [
        (selected, SELECTION_RATE),
        (masked, SELECTION_RATE * MASK_SHARE),
        (selected & ~kept & ~masked, SELECTION_RATE * RANDOM_SHARE),
        (kept, SELECTION_RATE * (1 - MASK_SHARE - RANDOM_SHARE)),
    ]:
        assert abs(found.sum().item() - n * p) < z * (n * p * (1 - p)) ** 0.5


def test_random_pieces_are_all_the_ordinary_ones():
    input_ids = torch.full((20_000,), 9)
    masked_ids, labels = mask_tokens(input_ids, generator=seeded(), probability=0.9, **IDS)
    replaced = masked_ids[(labels != IGNORE_INDEX) & (masked_ids != MASK)]
    assert set(replaced.tolist()) == set(range(4, 30))


def test_every_candidate_is_equally_likely_in_exact_mode():
    input_ids = torch.tensor([CLS, 5, 6, 7, SEP]).repeat(6000, 1)
    _, labels = mask_exactly(input_ids, count=1, generator=seeded(), **IDS)
    counts = (labels != IGNORE_INDEX).sum(dim=0)
    assert counts[[0, 4]].tolist() == [0, 0]
    assert (counts[1:4] - 2000).abs().max() < 150  # four standard deviations


@pytest.mark.parametrize("mask", [mask_tokens, lambda ids, **more: mask_exactly(ids, count=2, **more)])
def test_a_seed_decides_everything_and_no_global_state_is_touched(mask):
    state = torch.get_rng_state()
    first = mask(torch.full((3, 50), 8), generator=seeded(1), **IDS)
    second = mask(torch.full((3, 50), 8), generator=seeded(1), **IDS)
    third = mask(torch.full((3, 50), 8), generator=seeded(2), **IDS)
    assert all(map(torch.equal, first, second))
    assert not torch.equal(first[1], third[1])
    assert torch.equal(state, torch.get_rng_state())


def test_int32_ids_stay_int32():
    masked_ids, labels = mask_tokens(torch.full((9,), 8, dtype=torch.int32), generator=seeded(), **IDS)
    assert (masked_ids.dtype, labels.dtype) == (torch.int32, torch.int64)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"input_ids": torch.zeros(2, 3)}, TypeError, "input_ids must be int64 or int32 token ids, got torch.float32"),
        ({"input_ids": torch.tensor([30])}, ValueError, r"input_ids holds 30; ids must be in \[0, vocab_size\)"),
        ({"input_ids": torch.tensor([-1])}, ValueError, "input_ids holds -1"),
        ({"probability": 0.0}, ValueError, "probability must be between 0 and 1, both excluded, got 0.0"),
        ({"probability": 1.0}, ValueError, "probability must be between 0 and 1"),
        ({"probability": float("nan")}, ValueError, "probability must be between 0 and 1"),
        ({"mask_token_id": 9}, ValueError, r"mask_token_id must be one of special_token_ids, got 9"),
        ({"mask_token_id": 3.0}, TypeError, "mask_token_id must hold ints, got 3.0"),
        ({"vocab_size": 0}, ValueError, "vocab_size must be at least 1, got 0"),
        ({"vocab_size": 3}, ValueError, "special_token_ids holds 3"),
        ({"special_token_ids": [3, -2]}, ValueError, "special_token_ids holds -2"),
        ({"special_token_ids": ["[MASK]"]}, TypeError, r"special_token_ids must hold ints, got '\[MASK\]'"),
        ({"special_token_ids": range(30)}, ValueError, "holds all 30 ids of the vocabulary"),
        ({"input_ids": torch.zeros(3).long().numpy()}, TypeError, "input_ids must be a torch.Tensor, got ndarray"),
        ({"input_ids": [5, 6]}, TypeError, "input_ids must be a torch.Tensor, got list"),
        ({"probability": "0.5"}, TypeError, "probability must be a number, got '0.5'"),
        ({"special_token_ids": None}, TypeError, "special_token_ids must be a list of ids, got None"),
        ({"special_token_ids": [3, None]}, TypeError, "special_token_ids must hold ints, got None"),
        ({"special_token_ids": [3, True]}, TypeError, "special_token_ids must hold ints, got True"),
        ({"generator": 42}, TypeError, "generator must be a torch.Generator.*got int"),
    ],
)
def test_unusable_arguments_are_named(change, error, message):
    arguments = {"input_ids": torch.tensor([[CLS, 7, SEP]]), "generator": seeded(), **IDS, **change}
    with pytest.raises(error, match=message):
        mask_tokens(**arguments)


@pytest.mark.parametrize("count", [0, -1, 2.0, True])
def test_an_unusable_count_is_named(count):
    with pytest.raises(ValueError, match="count must be a positive int, got"):
        mask_exactly(torch.tensor([[7, 8]]), count=count, generator=seeded(), **IDS)


def test_exact_count_wants_sequences():
    with pytest.raises(ValueError, match=r"input_ids must have shape \(B, T\) or \(T,\), got \(1, 1, 2\)"):
        mask_exactly(torch.tensor([[[7, 8]]]), count=1, generator=seeded(), **IDS)


# The loss


@property_test
@given(seed=st.integers(0, 10**6), B=st.integers(1, 3), T=st.integers(1, 6))
def test_loss_is_the_mean_over_selected_positions(seed, B, T):
    logits = torch.randn(B, T, 7, generator=seeded(seed), dtype=torch.float64)
    labels = torch.randint(0, 7, (B, T), generator=seeded(seed + 1))
    labels[torch.rand(B, T, generator=seeded(seed + 2)) < 0.5] = IGNORE_INDEX
    losses = [
        -logits[b, t].log_softmax(dim=0)[labels[b, t]]
        for b in range(B)
        for t in range(T)
        if labels[b, t] != IGNORE_INDEX
    ]
    expected = torch.stack(losses).mean() if losses else torch.tensor(0.0, dtype=torch.float64)
    assert torch.allclose(masked_lm_loss(logits, labels), expected)


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0)])
def test_nothing_selected_costs_nothing(shape):
    logits = torch.full((*shape, 5), torch.inf, requires_grad=True)  # even if the logits are useless
    loss = masked_lm_loss(logits, torch.full(shape, IGNORE_INDEX))
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(logits.grad, torch.zeros(*shape, 5))


def test_ignore_index_is_torchs_own():
    logits, labels = torch.randn(4, 5, generator=seeded()), torch.tensor([1, IGNORE_INDEX, 4, IGNORE_INDEX])
    assert torch.allclose(masked_lm_loss(logits, labels), F.cross_entropy(logits, labels))


@pytest.mark.parametrize(
    ("logits", "labels", "error", "message"),
    [
        (torch.zeros(1, 2, 5, dtype=torch.int64), torch.zeros(1, 2).long(), TypeError, "logits must be floating point"),
        (torch.zeros(1, 2, 5), torch.zeros(1, 2), TypeError, "labels must be int64, got torch.float32"),
        (torch.zeros(1, 2, 5), torch.zeros(2, 1).long(), ValueError, r"got \(1, 2, 5\) and \(2, 1\)"),
        (torch.tensor(0.0), torch.tensor(0), ValueError, "logits must have shape"),
        (torch.zeros(2, 5), torch.tensor([0, 5]), ValueError, r"labels holds 5; a label is an id in \[0, 5\)"),
        (torch.zeros(2, 5), torch.tensor([-1, 0]), ValueError, "labels holds -1.*or IGNORE_INDEX = -100"),
    ],
)
def test_unusable_logits_and_labels_are_named(logits, labels, error, message):
    with pytest.raises(error, match=message):
        masked_lm_loss(logits, labels)


# Evaluation


def test_evaluation_measures_the_masked_text_and_leaves_the_mode():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(30, 8), nn.Dropout(0.5), nn.Linear(8, 30)).train()
    text = torch.randint(4, 30, (5, 40), generator=seeded())
    loss, accuracy = evaluate_masked_lm(model, text, seed=3, **IDS)
    assert model.training
    masked_ids, labels = mask_tokens(text, generator=seeded(3), **IDS)
    logits = model.eval()(masked_ids)
    selected = labels != IGNORE_INDEX
    assert loss == pytest.approx(masked_lm_loss(logits, labels).item())
    right = (logits.argmax(dim=-1) == labels)[selected]
    assert accuracy == pytest.approx(right.double().mean().item())


def test_an_evaluation_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no token of input_ids was selected"):
        evaluate_masked_lm(nn.Embedding(30, 30), torch.tensor([[CLS, SEP]]), seed=0, **IDS)


def test_the_shares_are_the_papers():
    assert (SELECTION_RATE, MASK_SHARE, RANDOM_SHARE) == (0.15, 0.8, 0.1)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_evaluation_gives_each_module_its_mode_back(training, fails):
    model = nn.Sequential(nn.Embedding(30, 9 if fails else 8), nn.Dropout(0.5), nn.Linear(8, 30)).train(training)
    model[1].train(not training)
    modes = [module.training for module in model.modules()]
    text = torch.randint(4, 30, (5, 40), generator=seeded())
    if fails:
        with pytest.raises(RuntimeError):
            evaluate_masked_lm(model, text, seed=3, **IDS)
    else:
        evaluate_masked_lm(model, text, seed=3, **IDS)
    assert [module.training for module in model.modules()] == modes
