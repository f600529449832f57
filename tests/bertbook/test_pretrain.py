"""The book's own pretraining run, made small: its text, its loss of two parts, what is kept of it."""

from dataclasses import replace

import pytest
import torch

from bertbook.config import BertConfig
from bertbook.corpus import Address
from bertbook.experiments import pretrain
from bertbook.experiments.distributed import ALONE
from bertbook.experiments.evaluation import evaluate_pretraining
from bertbook.experiments.pretrain import (
    EXPERIMENT,
    PHASES,
    Phase,
    curve_of,
    keep_pretrained,
    measure_pretrained,
    pretraining_run,
)
from bertbook.experiments.pretraining_text import (
    MAX_LENGTH,
    SHORT_LENGTH,
    PretrainingText,
    held_out_batches,
    prepare_text,
)
from bertbook.experiments.recording import RunLog, check_recorded, record
from bertbook.experiments.results import load_result
from bertbook.experiments.training_loop import BOTH_TASKS, Trainer, TrainingSettings
from bertbook.heads import BertForPreTraining
from fault_reports import check_report, report

SETTINGS = TrainingSettings(steps=6, learning_rate=3e-3, warmup_steps=2, seed=3)


def addresses() -> list[Address]:
    """Twenty documents; each has a word of its own."""
    names = [f"{a}{b}" for a in ("ba", "ke", "li", "mo") for b in ("na", "pe", "ri", "so", "tu")]
    weather = ["Rain fell on {}.", "It was cold in {} that year.", "We thank {} for its grain."]
    return [Address(1800, "A", " ".join(s.format(name.title()) for s in weather * 12)) for name in names]


@pytest.fixture(scope="module")
def text() -> PretrainingText:
    return prepare_text(addresses(), vocab_size=80)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A small model in small batches."""
    config = BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, initializer_range=0.1
    )
    monkeypatch.setattr(BertConfig, "mini", lambda: config)
    monkeypatch.setattr(pretrain, "PHASES", (Phase("short", 2, batch_size=8), Phase("training", 4, batch_size=6)))


# The text


def test_held_out_documents_are_read_by_nobody(text):
    held_out = {address.text.split()[3].strip(".").lower() for address in addresses()[9::10]}
    vocabulary = text.tokenizer.get_vocab()
    assert len(held_out) == 2
    trained = {text.tokenizer.decode(example.input_ids.tolist()).replace(" ", "") for example in text.training}
    measured = {text.tokenizer.decode(example.input_ids.tolist()).replace(" ", "") for example in text.held_out}
    assert not any(name in sequence for name in held_out for sequence in trained)
    assert any(name in sequence for name in held_out for sequence in measured)
    assert not held_out & vocabulary.keys()  # the vocabulary is learned from the others, too


def test_passes_differ_and_one_seed_gives_one_text():
    once, again, twice = (prepare_text(addresses(), vocab_size=80, passes=passes) for passes in (1, 1, 2))
    as_lists = [[example.input_ids.tolist() for example in text.training] for text in (once, again, twice)]
    assert as_lists[0] == as_lists[1] == as_lists[2][: len(as_lists[0])]
    assert as_lists[2][len(as_lists[0]) :] != as_lists[0]


def test_masks_are_new_at_each_step_and_fixed_where_it_is_measured(text):
    for _, batches in pretraining_run(text, SETTINGS, world=ALONE).trainer.batches.parts:
        one, two = (batches.collate(text.training[:6], generator=torch.Generator().manual_seed(i)) for i in (1, 2))
        assert not torch.equal(one["labels"], two["labels"])
    for first, second in zip(held_out_batches(text), held_out_batches(text), strict=True):
        assert all(torch.equal(first[name], second[name]) for name in first)


def test_short_sequences_come_first_and_each_step_reads_as_many_tokens(text):
    batches = pretraining_run(text, SETTINGS, world=ALONE).trainer.batches
    longest = [max(batch["attention_mask"].sum(dim=1)) for batch in map(batches.__getitem__, range(SETTINGS.steps))]
    assert longest[:2] == [SHORT_LENGTH] * 2
    assert all(SHORT_LENGTH < length <= MAX_LENGTH for length in longest[2:])
    assert [len(batches[step]["input_ids"]) for step in range(SETTINGS.steps)] == [8, 8, 6, 6, 6, 6]
    short, long = PHASES
    assert short.batch_size * SHORT_LENGTH == long.batch_size * MAX_LENGTH


# The loss of two parts: huggingface/trl#2175 again, since one weight cannot serve both


class OneWeight(Trainer):
    """Weighs the whole loss by the number of masked tokens, also what is a mean over pairs."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        mlm = BOTH_TASKS["mlm"]
        self.parts = {"mlm": mlm, "nsp": BOTH_TASKS["nsp"]._replace(count=mlm.count)}


def equals_one_large_batch(kind, masks: tuple[int, ...]) -> bool:
    """Two parts of a batch, whose sequences have so many masks, give the large batch's losses and gradients."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.full((len(masks), 8), -100)
    for row, number in enumerate(masks):
        labels[row, :number] = torch.arange(5, 5 + number)
    batch = {
        "input_ids": torch.randint(5, 30, (len(masks), 8), generator=generator),
        "labels": labels,
        "next_sentence_label": torch.arange(len(masks)) // 2 % 2,
    }
    found = []
    for accumulation in (1, 2):
        torch.manual_seed(0)
        sizes = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.5}
        model = BertForPreTraining(replace(BertConfig.mini(), vocab_size=30, **sizes))
        settings = TrainingSettings(steps=1, learning_rate=1e-3, accumulation=accumulation, max_norm=1e9)
        trainer = (kind if accumulation > 1 else Trainer)(model, [batch], settings, parts=BOTH_TASKS)
        [losses] = trainer.steps(upto=1)
        gradients = [p.grad.flatten() for p in model.parameters()]
        found.append(torch.cat([*gradients, torch.tensor([*losses.values()])]))
    return torch.allclose(*found, rtol=0, atol=2e-6)


REPORTS = report(
    "huggingface/trl#2175",
    equals_one_large_batch,
    Trainer,
    OneWeight,
    harmless=(2, 2, 2, 2),
    harmful=[(1, 6, 1, 5), (4, 0, 3, 1)],
)


@pytest.mark.parametrize(("holds", "ours", "mutant", "harmless", "harmful"), REPORTS)
def test_report(holds, ours, mutant, harmless, harmful):
    check_report(holds, ours, mutant, harmless, harmful)


# The run


@pytest.fixture
def experiment(monkeypatch, text):
    monkeypatch.setattr(pretrain, "whole_text", lambda: text)
    monkeypatch.setattr(pretrain, "SETTINGS", SETTINGS)
    monkeypatch.setattr(pretrain, "CURVE_EVERY", 2)
    monkeypatch.setattr(pretrain, "EVALUATE_EVERY", 3)
    monkeypatch.setattr(pretrain, "EVALUATE_EACH", 1)
    return EXPERIMENT


def test_the_experiment_is_recorded_and_passes_its_check(experiment, text, tmp_path):
    folders = {"results": tmp_path / "results", "work": tmp_path / "work"}
    assert record(experiment, ALONE, steps=4, **folders) is None
    record(experiment, ALONE, **folders)
    result = load_result("pretrain", folder=folders["results"])
    evaluations = result.values["evaluations"]
    assert [numbers["step"] for numbers in evaluations] == [0, 3, 6]
    assert evaluations[-1]["mlm_loss"] < evaluations[0]["mlm_loss"]
    assert result.values["curve"]["step"] == [2, 4, 6]
    assert [phase["text"] for phase in result.values["phases"]] == ["short", "training"]
    assert result.values["final"]["mlm_loss"] == pytest.approx(evaluations[-1]["mlm_loss"], abs=2e-3)
    names = ["config.json", "model.safetensors", "tokenizer.json", "vocab.txt"]
    assert list(result.files) == [f"pretrain/{name}" for name in names]
    assert check_recorded(experiment, ALONE, results=folders["results"]) == []


def test_a_run_that_was_stopped_ends_as_one_that_was_not(experiment, tmp_path):
    stopped = {"results": tmp_path / "stopped", "work": tmp_path / "work"}
    for steps in (2, 3, None):
        record(experiment, ALONE, steps=steps, **stopped)
    record(experiment, ALONE, results=tmp_path / "whole", work=tmp_path / "other")
    one, two = (load_result("pretrain", folder=tmp_path / name) for name in ("stopped", "whole"))
    assert one.values == two.values
    assert one.files == two.files  # the weights, to the last bit


def test_stored_weights_are_half_as_large_and_measure_the_same(text, tmp_path):
    model = pretraining_run(text, SETTINGS, world=ALONE).trainer.model
    before = evaluate_pretraining(model, held_out_batches(text))
    keep_pretrained(model, text.tokenizer, tmp_path)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    numbers = sum(p.numel() for p in model.parameters())
    size = (tmp_path / "model.safetensors").stat().st_size
    assert 2 * numbers <= size < 2 * numbers + 5000
    assert measure_pretrained(tmp_path, text) == pytest.approx(before, abs=2e-3)


def test_a_model_has_no_position_that_is_never_trained(text):
    model = pretraining_run(text, SETTINGS, world=ALONE).trainer.model
    assert model.config.max_position_embeddings == MAX_LENGTH
    assert model.config.vocab_size == text.tokenizer.get_vocab_size()


def test_a_point_of_the_curve_is_a_mean_of_its_own_steps():
    log = RunLog(losses={"mlm": [4.0, 2.0, 1.0, 3.0, 9.0], "nsp": [1.0, 0.0, 0.5, 0.5, 9.0]})
    assert curve_of(log, every=2) == {"step": [2, 4], "mlm": [3.0, 2.0], "nsp": [0.5, 0.5]}
