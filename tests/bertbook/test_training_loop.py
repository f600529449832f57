"""The loop that pretrains: weighing, resuming, and what it leaves alone."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from torch import nn

from bertbook.experiments.checkpointing import load_checkpoint, save_checkpoint
from bertbook.experiments.data_order import ConsecutiveBatches, ShuffledBatches
from bertbook.experiments.distributed import World
from bertbook.experiments.training_loop import LABELLED, Trainer, TrainingSettings
from fault_reports import check_report, report
from tiny_masked_lm import TinyMaskedLM, losses_of, tiny_trainer, weights_of


def test_it_learns_and_is_repeatable():
    losses = losses_of(tiny_trainer(), 12)
    assert losses[-1] < losses[0] - 0.3
    assert losses == losses_of(tiny_trainer(), 12)


# Resuming


def resumes_to_the_same_end(resume, stopped_at: int) -> bool:
    """Ten steps in one go, and some and the rest in another trainer, are equal to the last bit."""
    whole, first, second = (tiny_trainer(dropout=0.3) for _ in range(3))
    losses = losses_of(whole, 10)
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.pt")
        assert losses_of(first, stopped_at) == losses[:stopped_at]
        save_checkpoint(path, first, log={})
        torch.manual_seed(5)  # another process is in another state
        resume(path, second)
    return losses_of(second, 10) == losses[stopped_at:] and torch.equal(weights_of(second), weights_of(whole))


def keeping(name: str, path: Path, trainer: Trainer) -> None:
    """Load a checkpoint, one part left out."""
    kept = deepcopy(trainer.state_dict()[name])
    load_checkpoint(path, trainer)
    trainer.load_state_dict({**trainer.state_dict(), name: kept})


def forgets_the_weights(path, trainer):
    keeping("model", path, trainer)


def forgets_the_optimizer(path, trainer):
    keeping("optimizer", path, trainer)


def starts_the_data_anew(path, trainer):
    load_checkpoint(path, trainer)
    batches, done = trainer.batches, trainer.steps_done
    trainer.batches = {step: batches[step - done] for step in range(done, 12)}


def starts_the_schedule_anew(path, trainer):
    load_checkpoint(path, trainer)
    if trainer.steps_done:
        trainer.settings = replace(trainer.settings, warmup_steps=9)


def goes_on_with_the_process_random_numbers(path, trainer):
    load_checkpoint(path, trainer)
    trainer.settings = replace(trainer.settings, seed=int(trainer.steps_done > 0))


RESUMING = report(
    "resuming",
    resumes_to_the_same_end,
    load_checkpoint,
    forgets_the_weights,
    forgets_the_optimizer,
    starts_the_data_anew,
    starts_the_schedule_anew,
    goes_on_with_the_process_random_numbers,
    harmless=0,
    harmful=[5],
)


@pytest.mark.parametrize(("holds", "ours", "mutant", "harmless", "harmful"), RESUMING)
def test_a_run_that_was_stopped_ends_as_one_that_was_not(holds, ours, mutant, harmless, harmful):
    check_report(holds, ours, mutant, harmless, harmful)


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    trainer = tiny_trainer()
    save_checkpoint(tmp_path / "run.pt", trainer, log={"losses": [1.0]})
    other = tiny_trainer()
    other.settings = replace(other.settings, learning_rate=0.1, accumulation=2)
    with pytest.raises(ValueError, match="accumulation has changed, learning_rate has changed"):
        load_checkpoint(tmp_path / "run.pt", other)
    assert load_checkpoint(tmp_path / "run.pt", trainer) == {"losses": [1.0]}


def test_a_run_that_is_stopped_while_it_saves_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    trainer = tiny_trainer()
    save_checkpoint(tmp_path / "run.pt", trainer, log={"saved": 1})

    def stopped(state, path):
        path.write_bytes(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", stopped)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(tmp_path / "run.pt", trainer, log={"saved": 2})
    assert load_checkpoint(tmp_path / "run.pt", trainer) == {"saved": 1}


# huggingface/trl#2175, huggingface/transformers PR #34191


class AveragesMeans(Trainer):
    def weighed_losses(self, rows, counts, *, last):
        loss = self.model(**rows).loss / self.settings.accumulation
        loss.backward()
        return {"loss": loss.item()}


class CountsRows(Trainer):
    """Weighs by the number of sequences, as if each had as many labels."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.parts = {"loss": LABELLED["loss"]._replace(count=lambda batch: len(batch["labels"]))}


def equals_the_big_batch(kind, masks: tuple[int, ...]) -> bool:
    """A batch computed in two parts, whose sequences have so many labels, has the same loss and gradient."""
    labels = torch.full((len(masks), 6), -100)
    for row, number in enumerate(masks):
        labels[row, :number] = torch.arange(number) + row
    batch = {"input_ids": torch.arange(len(masks) * 6).reshape(-1, 6) % 20, "labels": labels}
    found = []
    for accumulation in (1, 2):
        settings = TrainingSettings(steps=1, learning_rate=0.1, accumulation=accumulation, max_norm=1e9)
        trainer = (kind if accumulation > 1 else Trainer)(TinyMaskedLM(), [batch], settings)
        (losses,) = trainer.steps(upto=1)
        gradient = torch.cat([p.grad.flatten() for p in trainer.model.parameters()])
        found.append(torch.cat([gradient, torch.tensor([losses["loss"]])]))
    return torch.allclose(*found, rtol=0, atol=1e-6)


EVEN, UNEVEN = (2, 2, 2, 2), [(1, 5), (6, 2, 1), (3, 0), (1, 2, 3, 4)]
REPORTS = [
    *report("huggingface/trl#2175", equals_the_big_batch, Trainer, AveragesMeans, harmless=EVEN, harmful=UNEVEN),
    *report("huggingface/transformers PR #34191", equals_the_big_batch, Trainer, CountsRows, harmless=EVEN,
            harmful=UNEVEN),
]  # fmt: skip


@pytest.mark.parametrize(("holds", "ours", "mutant", "harmless", "harmful"), REPORTS)
def test_report(holds, ours, mutant, harmless, harmful):
    check_report(holds, ours, mutant, harmless, harmful)


# The rest


def test_every_parameter_is_in_one_group_and_only_matrices_decay():
    trainer = tiny_trainer()
    groups = trainer.optimizer.param_groups
    assert [(group["names"], group["weight_decay"]) for group in groups] == [
        (["table.weight"], 0.01),
        (["bias", "LayerNorm.weight", "LayerNorm.bias"], 0.0),
    ]


def test_the_rate_rises_and_falls_and_every_step_moves():
    trainer = tiny_trainer()
    rates, before = [], weights_of(trainer)
    for _ in trainer.steps(upto=12):
        rates.append(trainer.optimizer.param_groups[0]["lr"])
        assert not torch.equal(weights_of(trainer), before)
        before = weights_of(trainer)
    assert rates[:4] == pytest.approx([0.05 / 3, 0.1 / 3, 0.05, 0.05])
    assert rates[-1] == pytest.approx(0.05 / 9)


def test_the_gradient_is_clipped():
    class Steep(nn.Module):
        def __init__(self):
            super().__init__()
            self.slope = nn.Parameter(torch.tensor([1.0]))

        def forward(self, labels):
            return type("Output", (), {"loss": 1000 * self.slope.sum()})

    settings = TrainingSettings(steps=1, learning_rate=0.1, max_norm=0.5)
    trainer = Trainer(Steep(), [{"labels": torch.ones(1, 1)}], settings)
    list(trainer.steps(upto=1))
    assert trainer.model.slope.grad.item() == pytest.approx(0.5, rel=1e-4)


def test_the_callers_random_numbers_and_the_batches_are_left_alone():
    trainer = tiny_trainer(dropout=0.5)
    batch = trainer.batches[3]
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    losses_of(trainer, 5)
    assert torch.equal(torch.rand(4), expected)
    assert all(torch.equal(batch[name], tensor) for name, tensor in trainer.batches[3].items())


def test_an_evaluation_between_two_steps_changes_nothing():
    disturbed = []
    trainer = tiny_trainer(dropout=0.5)
    for losses in trainer.steps(upto=8):
        disturbed.append(losses["loss"])
        torch.rand(7)
        trainer.model.eval()
    assert disturbed == losses_of(tiny_trainer(dropout=0.5), 8)


def test_dropout_differs_from_step_to_step_and_from_process_to_process():
    batch = tiny_trainer().batches[0]
    settings = TrainingSettings(steps=2, learning_rate=1e-30, weight_decay=0.0)
    seen = []
    for rank in (0, 1):
        trainer = Trainer(TinyMaskedLM(0.5), [batch, batch], settings)
        trainer.world = World(rank=rank)  # of one: nothing to wait for
        trainer.accumulate_gradients = lambda rows, trainer=trainer: Trainer.weighed_losses(
            trainer, rows, {"loss": int((rows["labels"] != -100).sum())}, last=True
        )
        seen += losses_of(trainer, 2)
    assert len(set(seen)) == 4


def test_bfloat16_is_close_and_its_weights_stay_float32():
    exact, low = tiny_trainer(), tiny_trainer()
    low.settings = replace(low.settings, precision="bfloat16")
    losses, rough = losses_of(exact, 6), losses_of(low, 6)
    assert rough != losses
    assert rough == pytest.approx(losses, abs=0.05)
    assert {p.dtype for p in low.model.parameters()} == {torch.float32}


def test_a_batch_without_a_label_moves_nothing_by_its_loss():
    batch = {"input_ids": torch.ones(2, 6, dtype=torch.int64), "labels": torch.full((2, 6), -100)}
    settings = TrainingSettings(steps=1, learning_rate=0.1, weight_decay=0.0)
    trainer = Trainer(TinyMaskedLM(), [batch], settings)
    before = weights_of(trainer)
    assert losses_of(trainer, 1) == [0.0]
    assert torch.equal(weights_of(trainer), before)


def test_a_loss_that_is_no_number_stops_the_run_before_it_spoils_the_weights():
    trainer = tiny_trainer()
    losses_of(trainer, 2)
    before = weights_of(trainer)
    trainer.parts = {"loss": LABELLED["loss"]._replace(mean=lambda output: output.loss * float("nan"))}
    with pytest.raises(FloatingPointError, match=r"the loss of step 2 is nan: lower the learning rate \(0.05\)"):
        losses_of(trainer, 3)
    assert torch.equal(weights_of(trainer), before)


WRONG = {
    "steps": (0, "steps must be at least 1, got 0"),
    "learning_rate": (float("nan"), "learning_rate must be greater than 0, got nan"),
    "warmup_steps": (11, "warmup_steps must be from 0 to steps = 10, got 11"),
    "weight_decay": (-1.0, "weight_decay must be at least 0, got -1.0"),
    "max_norm": (0.0, "max_norm must be greater than 0, got 0.0"),
    "accumulation": (0, "accumulation must be at least 1, got 0"),
    "precision": ("float16", "precision must be 'float32' or 'bfloat16', got 'float16'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_is_named(name):
    value, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**{"steps": 10, "learning_rate": 0.1, name: value})


def test_more_steps_than_the_run_has_are_refused():
    with pytest.raises(ValueError, match="upto must be at most the run's 12 steps, got 13"):
        losses_of(tiny_trainer(), 13)


# The order of the data


def numbers(examples, *, generator):
    return {"input_ids": torch.tensor(examples), "drawn": torch.rand(len(examples), generator=generator)}


def test_each_example_comes_once_an_epoch_in_another_order():
    batches = ShuffledBatches(range(10), numbers, batch_size=4, seed=0)
    seen = torch.cat([batches[step]["input_ids"] for step in range(5)])
    first, second = seen[:10].tolist(), seen[10:].tolist()
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second


def test_a_batch_depends_on_its_step_and_on_the_seed_alone():
    batches = ShuffledBatches(range(10), numbers, batch_size=4, seed=0)
    forward = [batches[step] for step in range(6)]
    torch.manual_seed(9)
    again = ShuffledBatches(range(10), numbers, batch_size=4, seed=0)
    for step in (5, 0, 3):
        for name, tensor in again[step].items():
            assert torch.equal(tensor, forward[step][name])
    other = ShuffledBatches(range(10), numbers, batch_size=4, seed=1)
    assert not torch.equal(other[0]["input_ids"], forward[0]["input_ids"])
    assert len({tuple(batch["drawn"].tolist()) for batch in forward}) == 6  # masks are new at each step


def test_batches_without_examples_or_with_wrong_numbers_are_refused():
    with pytest.raises(ValueError, match="examples is empty"):
        ShuffledBatches([], numbers, batch_size=1, seed=0)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        ShuffledBatches([1], numbers, batch_size=0, seed=0)
    with pytest.raises(ValueError, match="step must be at least 0, got -1"):
        ShuffledBatches([1], numbers, batch_size=1, seed=0)[-1]


def test_consecutive_sources_are_asked_for_their_own_steps():
    batches = ConsecutiveBatches([(2, ["a", "b", "unused"]), (1, ["c"])])
    assert [batches[step] for step in range(3)] == ["a", "b", "c"]
    for step in (-1, 3):
        with pytest.raises(IndexError, match="step must be from 0 to 2"):
            batches[step]


@pytest.mark.parametrize("parts", [[], [(0, ["a"])], [(2, ["a", "b"]), (-1, [])]])
def test_sources_without_a_step_are_refused(parts):
    with pytest.raises(ValueError, match="parts must have at least one step each, got"):
        ConsecutiveBatches(parts)
