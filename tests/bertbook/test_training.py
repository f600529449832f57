"""The loop: all thirty printed losses, what may not change them, accuracy, the errors."""

import copy
import re
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from bertbook.tiny import TinyBertForClassification
from bertbook.training import accuracy, random_task, train

property_test = settings(max_examples=25, deadline=None, derandomize=True)

HALF_A_DIGIT = 0.5e-4 + 1e-6  # what a number printed with four decimals allows
PRINTED_LOSSES = [
    *[0.7904, 0.7574, 0.7318, 0.7066, 0.6816, 0.6580, 0.6364, 0.6162, 0.5966, 0.5772],
    *[0.5584, 0.5405, 0.5234, 0.5065, 0.4895, 0.4723, 0.4552, 0.4379, 0.4201, 0.4014],
    *[0.3819, 0.3617, 0.3405, 0.3179, 0.2943, 0.2700, 0.2452, 0.2199, 0.1948, 0.1703],
]


def as_printed(losses: list[float], printed: list[float]) -> bool:
    return all(abs(loss - value) <= HALF_A_DIGIT for loss, value in zip(losses, printed, strict=True))


def lesson_run(epochs: int, *, draw_between: bool = False) -> tuple[nn.Module, list[float]]:
    """The lesson's fine-tuning: seed 42 for the model, seed 99 for the data."""
    torch.manual_seed(42)
    model = TinyBertForClassification()
    if draw_between:
        torch.randint(0, 100, (3, 10))  # as milestone 2 does
    torch.manual_seed(99)
    input_ids, labels = random_task(50)
    return model, train(model, input_ids, labels, epochs=epochs)


def small_model(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(100, 2), nn.Flatten(1), nn.Dropout(dropout), nn.Linear(20, 2))


def small_task() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return random_task(8)


@pytest.fixture(scope="module")
def forty_epochs() -> tuple[nn.Module, list[float]]:
    return lesson_run(40)


# The lesson's numbers


def test_all_thirty_losses(forty_epochs):
    losses = forty_epochs[1][:30]
    assert as_printed(losses, PRINTED_LOSSES)
    assert all(later < earlier for earlier, later in pairwise(losses))


def test_the_loss_of_epoch_39(forty_epochs):
    assert as_printed(forty_epochs[1][39:], [0.0129])


@pytest.mark.parametrize("draw_between", [False, True])
def test_neither_earlier_runs_nor_a_draw_between_the_seeds_change_the_losses(forty_epochs, draw_between):
    _, losses = lesson_run(30, draw_between=draw_between)
    assert as_printed(losses, PRINTED_LOSSES)
    assert losses == pytest.approx(forty_epochs[1][:30], abs=1e-6)


def test_the_full_program_seeds_once():
    torch.manual_seed(99)
    model = TinyBertForClassification()
    losses = train(model, *random_task(50), epochs=30)
    assert as_printed([losses[0], losses[29]], [0.8597, 0.2525])


def test_memorised_but_not_learned(forty_epochs):
    model, _ = forty_epochs
    torch.manual_seed(99)
    assert accuracy(model, *random_task(50)) == 1.0
    fresh = accuracy(model, *random_task(2000))
    assert abs(fresh - 0.5) < 0.056  # five standard deviations of 2,000 coin flips


# The task


@given(st.integers(0, 2**32 - 1), *[st.integers(1, 6)] * 4)
@property_test
def test_random_task_draws_ids_first_then_labels(seed, num_examples, num_tokens, vocab_size, num_classes):
    torch.manual_seed(seed)
    ids, labels = random_task(num_examples, num_tokens=num_tokens, vocab_size=vocab_size, num_classes=num_classes)
    torch.manual_seed(seed)
    assert torch.equal(ids, torch.randint(0, vocab_size, (num_examples, num_tokens)))
    assert torch.equal(labels, torch.randint(0, num_classes, (num_examples,)))


# The loop


def test_the_five_steps_by_hand():
    ids, labels = small_task()
    model = small_model()
    by_hand, losses = copy.deepcopy(model), []
    optimizer = torch.optim.Adam(by_hand.parameters(), lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(by_hand(ids), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert train(model, ids, labels, epochs=4, learning_rate=0.01) == losses
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), by_hand.parameters(), strict=True))


def test_a_loss_is_the_one_before_its_step():
    (ids, labels), model = small_task(), small_model()
    untrained = F.cross_entropy(model(ids), labels).item()
    assert train(model, ids, labels, epochs=1) == [untrained]
    assert F.cross_entropy(model(ids), labels).item() < untrained


def test_training_turns_dropout_on():
    (ids, labels), model = small_task(), small_model(dropout=0.5).eval()
    torch.manual_seed(2)
    dropped = train(model, ids, labels, epochs=1)
    assert model.training
    torch.manual_seed(2)
    assert dropped != train(small_model().eval(), ids, labels, epochs=1)


def test_a_trained_model_goes_on_only_on_purpose():
    (ids, labels), model = small_task(), small_model()
    first = train(model, ids, labels, epochs=3)
    weights = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=r"model has already been trained for 3 epochs: .* continue_training=True"):
        train(model, ids, labels, epochs=2)
    assert all(torch.equal(weights[name], p) for name, p in model.state_dict().items())  # refused, not half done
    assert train(model, ids, labels, epochs=2, continue_training=True)[0] < first[-1]
    with pytest.raises(ValueError, match="already been trained for 5 epochs"):
        train(model, ids, labels, epochs=2)


def test_an_interrupted_run_counts_as_training():
    ids, labels = small_task()
    model = small_model()
    calls = []

    def interrupt(module, inputs):
        calls.append(module)
        if len(calls) == 3:
            raise KeyboardInterrupt

    hook = model.register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(model, ids, labels, epochs=5)
    hook.remove()
    with pytest.raises(ValueError, match="already been trained for 2 epochs"):
        train(model, ids, labels, epochs=5)


# Accuracy


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=9))
@property_test
def test_accuracy_counts_the_hits(pairs):
    predicted, labels = torch.tensor(pairs).T
    says_its_input = nn.Sequential(nn.Embedding(3, 3, _weight=torch.eye(3)), nn.Flatten(1))
    hits = sum(p == label for p, label in pairs)
    assert accuracy(says_its_input, predicted[:, None], labels) == pytest.approx(hits / len(pairs))


@pytest.mark.parametrize("training", [True, False])
def test_accuracy_measures_without_dropout_and_puts_the_mode_back(training):
    (ids, labels), model = small_task(), small_model(dropout=0.5).train(training)
    modes = []
    model.register_forward_hook(lambda module, inputs, output: modes.append((module.training, output.requires_grad)))
    found = accuracy(model, ids, labels)
    assert modes == [(False, False)]  # in evaluation mode, and no gradient recorded
    assert all(module.training == training for module in model.modules())
    assert found == (small_model()(ids).argmax(dim=-1) == labels).float().mean().item()


# Errors


@pytest.mark.parametrize("size", [0, -1])
@pytest.mark.parametrize("name", ["num_examples", "num_tokens", "vocab_size", "num_classes"])
def test_random_task_names_the_size_that_is_not_positive(name, size):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got {size}"):
        random_task(**{"num_examples": 5, name: size})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"epochs": -3}, "epochs must be at least 1, got -3"),
        ({"learning_rate": 0.0}, "learning_rate must be greater than 0, got 0.0"),
        ({"learning_rate": -0.1}, "learning_rate must be greater than 0, got -0.1"),
        ({"learning_rate": float("nan")}, "learning_rate must be greater than 0, got nan"),
    ],
)
def test_train_refuses_settings(wrong, message):
    model = small_model()
    with pytest.raises(ValueError, match=re.escape(message)):
        train(model, *small_task(), **{"epochs": 1, **wrong})
    assert not hasattr(model, "epochs_trained")


@pytest.mark.parametrize("run", [accuracy, lambda *batch: train(*batch, epochs=1)], ids=["accuracy", "train"])
@pytest.mark.parametrize(
    ("num_ids", "label_shape", "message"),
    [
        (0, (0,), "input_ids is an empty batch"),
        (8, (7,), "labels must have shape (8,), got (7,)"),
        (8, (8, 1), "labels must have shape (8,), got (8, 1)"),  # would broadcast to 8 x 8 comparisons
        (8, (), "labels must have shape (8,), got ()"),
    ],
)
def test_batches_that_do_not_fit_are_refused(run, num_ids, label_shape, message):
    ids, labels = torch.zeros(num_ids, 10, dtype=torch.long), torch.zeros(label_shape, dtype=torch.long)
    with pytest.raises(ValueError, match=re.escape(message)):
        run(small_model(), ids, labels)
