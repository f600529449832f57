"""The comparisons of small BERTs: arms differ in what they say, and in nothing else."""

import json
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from bertbook.corpus import Address
from bertbook.experiments import directions, find_experiment, mask_later, next_sentence, recording, results, small
from bertbook.experiments.always_mask import always_mask_arm
from bertbook.experiments.arm_summary import summarize_arms
from bertbook.experiments.directions import bidirectional_arm, causal_arm, twin_arm
from bertbook.experiments.distributed import ALONE
from bertbook.experiments.evaluation import evaluate_pretraining
from bertbook.experiments.masking_rates import rate_arm
from bertbook.experiments.recording import Experiment, RunLog, check_recorded, record
from bertbook.experiments.results import load_result
from bertbook.experiments.small import (
    Arm,
    SmallText,
    asked_three_ways,
    masked_lm_arm,
    measure_ways,
    small_run,
    small_text,
)
from bertbook.experiments.sources import code_hashes
from bertbook.experiments.static_masking import static_arm
from bertbook.masking import IGNORE_INDEX
from fault_reports import check_report, report

STEPS = 4
SEEDED = {
    "directions": {"bidirectional": 3, "causal": 3, "twin": 3},
    "masking_rates": {"rate-40": 2, "rate-80": 2},
    "always_mask": {"always-mask": 2},
    "mask_later": {"mask-later": 2},
    "static_masking": {"static": 2, "static-tenth": 2, "dynamic-tenth": 2},
    "next_sentence": {"with-nsp": 2, "without-nsp": 2},
}


def addresses() -> list[Address]:
    """Twenty documents; each has a word of its own."""
    names = [f"{a}{b}" for a in ("ba", "ke", "li", "mo") for b in ("na", "pe", "ri", "so", "tu")]
    weather = ["Rain fell on {}.", "It was cold in {} that year.", "We thank {} for its grain."]
    return [Address(1800, "A", " ".join(s.format(name.title()) for s in weather * 12)) for name in names]


@pytest.fixture(scope="module", autouse=True)
def tiny():
    """A tiny model and a tiny text, prepared once for all tests; the code, too, is hashed once."""
    sizes = {
        "STEPS": STEPS,
        "WARMUP_STEPS": 1,
        "BATCH_SIZE": 6,
        "VOCAB_SIZE": 80,
        "LAYERS": 1,
        "HIDDEN_SIZE": 16,
        "INITIALIZER_RANGE": 0.1,
        "EVALUATE_EVERY": 2,
        "load_addresses": addresses,
    }
    small_text.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sizes.items():
            patch.setattr(small, name, value)
        hashed_once = cache(code_hashes)
        for module in (recording, results):
            patch.setattr(module, "code_hashes", hashed_once)
        yield
    small_text.cache_clear()


@pytest.fixture(scope="module")
def text() -> SmallText:
    return small_text()


def weights_of(arm: Arm, seed: int = 0) -> dict[str, torch.Tensor]:
    return small_run(arm, seed=seed, world=ALONE).trainer.model.state_dict()


def batches_of(arm: Arm, count: int, seed: int = 0) -> list[dict[str, torch.Tensor]]:
    batches = small_run(arm, seed=seed, world=ALONE).trainer.batches
    return [batches[step] for step in range(count)]


def unmasked(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The text of a batch as it was before it was masked."""
    return torch.where(batch["labels"] != IGNORE_INDEX, batch["labels"], batch["input_ids"])


# What the arms have in common


def all_runs():
    return [(name, label) for name in SEEDED for label in find_experiment(name).runs]


def test_there_is_a_run_for_each_arm_and_seed():
    for name, arms in SEEDED.items():
        labels = [f"{arm}-{seed}" for arm, seeds in arms.items() for seed in range(seeds)]
        assert [*find_experiment(name).runs] == labels


def test_all_runs_of_a_seed_begin_with_the_same_weights():
    first = {}
    for name, label in all_runs():
        seed = label[-1]
        model = find_experiment(name).runs[label](ALONE).trainer.model
        for parameter, value in model.state_dict().items():
            assert torch.equal(value, first.setdefault((seed, parameter), value)), (label, parameter)
    one, two = (first[seed, "bert.embeddings.word_embeddings.weight"] for seed in "01")
    assert not torch.equal(one, two)
    assert ("0", "bert.pooler.dense.weight") in first  # of the arm with pairs


def test_all_runs_of_a_seed_are_trained_in_the_same_way():
    for name, label in all_runs():
        settings = find_experiment(name).runs[label](ALONE).trainer.settings
        assert settings == small.small_settings(int(label[-1]))


ARMS_OF_SEQUENCES = {
    "causal": causal_arm,
    "rate-40": lambda text: rate_arm(text, probability=0.4),
    "always-mask": always_mask_arm,
    "static": static_arm,
}


@pytest.mark.parametrize("make_arm", ARMS_OF_SEQUENCES.values(), ids=ARMS_OF_SEQUENCES)
def test_arms_read_the_same_sequences_in_the_same_order(text, make_arm):
    expected = batches_of(bidirectional_arm(text), 3)
    for batch, other in zip(expected, batches_of(make_arm(text), 3), strict=True):
        assert torch.equal(unmasked(batch), unmasked(other))
    another_seed = batches_of(make_arm(text), 1, seed=1)[0]
    assert not torch.equal(unmasked(expected[0]), unmasked(another_seed))


def changed_by(make_arm, text) -> set[str]:
    """Which parts of the batches are not those of the baseline."""
    pairs = zip(batches_of(masked_lm_arm(text), 3), batches_of(make_arm(text), 3), strict=True)
    return {name for batch, other in pairs for name in batch if not torch.equal(batch[name], other[name])}


def test_arms_differ_in_what_they_say_and_in_nothing_else(text):
    assert changed_by(bidirectional_arm, text) == set()
    assert changed_by(causal_arm, text) == {"attention_mask"}
    assert changed_by(always_mask_arm, text) == {"input_ids"}
    assert changed_by(static_arm, text) == {"input_ids", "labels"}
    assert changed_by(ARMS_OF_SEQUENCES["rate-40"], text) == {"input_ids", "labels"}
    assert changed_by(twin_arm, text) == {"input_ids", "labels", "attention_mask"}


def test_a_higher_rate_asks_for_the_same_tokens_and_for_more(text):
    counts = []
    arms = [masked_lm_arm(text), *(rate_arm(text, probability=p) for p in (0.4, 0.8))]
    for batches in zip(*(batches_of(arm, 3) for arm in arms), strict=True):
        asked = [batch["labels"] != IGNORE_INDEX for batch in batches]
        assert (asked[0] <= asked[1]).all()
        assert (asked[1] <= asked[2]).all()
        counts.append([mask.sum().item() for mask in asked])
    low, middle, high = torch.tensor(counts).sum(dim=0).tolist()
    assert 2 < middle / low < 3.5
    assert 1.7 < high / middle < 2.3


def test_all_rates_are_measured_at_the_same_masks(text):
    one, two = masked_lm_arm(text).held_out, rate_arm(text, probability=0.8).held_out
    for first, second in zip(one, two, strict=True):
        assert all(torch.equal(first[name], second[name]) for name in first)


def test_mask_later_is_the_recipe_first_and_then_shows_nothing_but_masks(text, monkeypatch):
    monkeypatch.setattr(mask_later, "CHANGED_FROM", 2)
    batches = mask_later.mask_later_run(text, seed=1, world=ALONE).trainer.batches
    recipe, gaps = (batches_of(make(text), 4, seed=1) for make in (masked_lm_arm, always_mask_arm))
    for step, expected in enumerate(recipe[:2] + gaps[2:]):
        assert all(torch.equal(batches[step][name], expected[name]) for name in expected)
    assert any(not torch.equal(r["input_ids"], g["input_ids"]) for r, g in zip(recipe[2:], gaps[2:], strict=True))


def test_always_mask_shows_a_mask_wherever_it_asks(text):
    for batch in batches_of(always_mask_arm(text), 3):
        assert torch.equal(batch["labels"] != IGNORE_INDEX, batch["input_ids"] == text.special.mask)


def test_arms_of_pairs_differ_in_whether_they_are_asked_for_pairs(text):
    pairs = small_text(next_sentence.paired_examples)
    with_nsp = next_sentence.with_nsp_arm(pairs, text)
    without = next_sentence.without_nsp_arm(pairs, text)
    for batch, other in zip(batches_of(with_nsp, 3), batches_of(without, 3), strict=True):
        assert batch.keys() - other.keys() == {"next_sentence_label"}
        assert all(torch.equal(batch[name], other[name]) for name in other)
    assert 0.3 < sum(e.next_sentence_label for e in pairs.training) / len(pairs.training) < 0.7
    before = small_run(without, seed=0, world=ALONE).evaluate()
    both = small_run(with_nsp, seed=0, world=ALONE).evaluate()
    assert before.items() < both.items()  # one model, and one more question
    assert both.keys() - before.keys() == {"nsp_loss", "nsp_accuracy"}


# Static and dynamic masks


def epochs_of(arm: Arm) -> list[list]:
    """Two epochs: the masked sequences of each, in an order of their own."""
    whole, rest = divmod(len(arm.training), small.BATCH_SIZE)
    assert rest == 0  # else an epoch would end within a batch
    batches = batches_of(arm, 2 * whole)
    rows = [[*zip(b["input_ids"].tolist(), b["labels"].tolist(), strict=True)] for b in batches]
    return [sorted(chain(*part)) for part in (rows[:whole], rows[whole:])]


def test_static_masks_never_change_and_dynamic_ones_do(text):
    cut = text._replace(training=[e for e in text.training if len(e.input_ids) == small.MAX_LENGTH][:24])
    one, two = epochs_of(static_arm(cut))
    assert one == two
    one, two = epochs_of(masked_lm_arm(cut))
    assert one != two


# To the left only: masks


def sees_no_future(make_arm, position: int) -> bool:
    """Another token behind a position changes nothing that is computed up to it."""
    arm = make_arm(small_text())
    batch = batches_of(arm, 1)[0]
    del batch["labels"]
    other = {**batch, "input_ids": batch["input_ids"].clone()}
    other["input_ids"][:, position + 1 :] = 7
    model = small_run(arm, seed=0, world=ALONE).trainer.model.eval()
    with torch.no_grad():
        one, two = (model(**inputs).logits[:, : position + 1] for inputs in (batch, other))
    return torch.allclose(one, two, atol=1e-6)


REPORTS = [
    case
    for name, make_arm in {"causal": causal_arm, "twin": twin_arm}.items()
    for case in report(
        f"the {name} arm reads ahead",
        sees_no_future,
        make_arm,
        bidirectional_arm,
        harmless=small.MAX_LENGTH - 1,
        harmful=[0, 12],
    )
]


@pytest.mark.parametrize(("holds", "ours", "mutant", "harmless", "harmful"), REPORTS)
def test_report(holds, ours, mutant, harmless, harmful):
    check_report(holds, ours, mutant, harmless, harmful)


def test_the_twin_is_asked_for_each_next_token_in_training_and_where_it_is_measured(text):
    arm = twin_arm(text)
    for batch in [*batches_of(arm, 3), *arm.held_out]:
        asked = batch["labels"] != IGNORE_INDEX
        following = batch["input_ids"].roll(-1, dims=1)
        assert torch.equal(batch["labels"][asked], following[asked])
        assert (following[~asked] <= text.special.mask).all()  # marks, padding, and what the last roll brought
        assert (following[asked] > text.special.mask).all()
        real = batch["input_ids"] != text.special.pad
        assert torch.equal(batch["attention_mask"], real[:, None, :].long().expand(-1, real.shape[1], -1).tril())


# The text


def test_held_out_documents_are_read_by_nobody(text):
    held_out = {address.text.split()[3].strip(".").lower() for address in addresses()[9::10]}
    for prepared in (text, small_text(next_sentence.paired_examples)):
        trained, measured = (
            {prepared.tokenizer.decode(example.input_ids.tolist()).replace(" ", "") for example in part}
            for part in (prepared.training, prepared.held_out)
        )
        assert not any(name in sequence for name in held_out for sequence in trained)
        assert any(name in sequence for name in held_out for sequence in measured)


def test_held_out_examples_are_from_all_times(monkeypatch, text):
    monkeypatch.setattr(small, "HELD_OUT_EXAMPLES", 4)
    few = small.prepare_small_text(addresses(), vocab_size=80).held_out
    whole = [example.input_ids.tolist() for example in text.held_out]
    places = [whole.index(example.input_ids.tolist()) for example in few]
    assert len(places) == 4
    assert places == [0, *(len(whole) // 4 * i for i in (1, 2, 3))]


def test_a_text_is_prepared_once(text):
    assert small_text() is text


# What is measured


def test_the_same_tokens_are_asked_for_whatever_stands_there(text):
    standard = text.held_out_batches()
    ways = asked_three_ways(standard, text.special)
    shown = {name: [] for name in ways}
    for i, batch in enumerate(standard):
        asked = batch["labels"] != IGNORE_INDEX
        for name, batches in ways.items():
            assert torch.equal(batches[i]["labels"], batch["labels"])
            assert torch.equal(batches[i]["input_ids"][~asked], batch["input_ids"][~asked])
            shown[name].append(batches[i]["input_ids"][asked])
    asked = torch.cat([batch["labels"][batch["labels"] != IGNORE_INDEX] for batch in standard])
    mask, same, other = (torch.cat(shown[name]) for name in ("mask", "same", "random"))
    assert (mask == text.special.mask).all()
    assert torch.equal(same, asked)
    assert (other > text.special.mask).all()
    assert (other == asked).float().mean() < 0.1
    assert len(other.unique()) > 20


def recomputed(model, batch) -> dict[str, float]:
    """Loss and accuracy from the model's full logits."""
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        logits = model.eval()(**inputs).logits.flatten(0, 1)
    labels = batch["labels"].flatten()
    right = (logits.argmax(-1) == labels)[labels != IGNORE_INDEX]
    return {"loss": F.cross_entropy(logits, labels).item(), "accuracy": right.float().mean().item()}


def test_each_way_is_measured_as_it_is_asked(text):
    model = small_run(masked_lm_arm(text), seed=0, world=ALONE).trainer.model
    ways = asked_three_ways(text.held_out_batches(), text.special)
    found = measure_ways(model, ways)
    for name, batches in ways.items():
        [batch] = batches
        for number, value in recomputed(model, batch).items():
            assert found[f"{name}_{number}"] == pytest.approx(value, abs=1e-5)


def test_the_last_evaluation_measures_more_and_counts_what_was_read(text):
    run = small_run(twin_arm(text), seed=0, world=ALONE)
    first = run.evaluate()
    assert first.keys() == {"next_loss", "next_accuracy"}
    read = [run.trainer.batches[step] for step in range(STEPS)]
    list(run.trainer.steps(upto=STEPS))
    last = run.evaluate()
    assert last["tokens"] == sum((batch["input_ids"] > 0).sum().item() for batch in read)
    assert last["predictions"] == sum((batch["labels"] >= 0).sum().item() for batch in read)
    assert last["epochs"] == STEPS * small.BATCH_SIZE / len(text.training)
    assert last["next_loss"] == evaluate_pretraining(run.trainer.model, twin_arm(text).held_out)["mlm_loss"]


# What is recorded


def hand_made(loss: float, seconds: float) -> RunLog:
    evaluations = [
        {"step": 0, "mlm_loss": 7.0},
        {"step": 10, "mlm_loss": loss + 1},
        {"step": 15, "mlm_loss": loss, "tokens": 960, "written": ["... it rained"]},
    ]
    return RunLog(losses={"loss": [7.0] * 15}, evaluations=evaluations, seconds=seconds)


def test_a_summary_holds_each_seed_the_mean_and_the_spread():
    logs = {"a-b-0": hand_made(6.0, 2.0), "a-b-1": hand_made(5.0, 3.0), "c-0": hand_made(4.0, 1.0)}
    arms = summarize_arms(logs)
    assert arms["a-b"] == {
        "steps": 15,
        "seconds": [2.0, 3.0],
        "curve": {"step": [0, 10, 15], "mlm_loss": [[7.0, 7.0, 6.0], [7.0, 6.0, 5.0]]},
        "final": {
            "mlm_loss": {"each": [6.0, 5.0], "mean": 5.5, "smallest": 5.0, "largest": 6.0},
            "tokens": {"each": [960, 960], "mean": 960.0, "smallest": 960, "largest": 960},
        },
    }
    assert arms["c"]["final"]["mlm_loss"]["each"] == [4.0]


def test_seeds_that_were_evaluated_at_other_steps_are_no_arm():
    other = hand_made(6.0, 2.0)
    del other.evaluations[1]
    with pytest.raises(ValueError, match="the same steps"):
        summarize_arms({"a-0": hand_made(6.0, 2.0), "a-1": other})


@pytest.fixture(scope="module", params=SEEDED)
def recorded(request, tmp_path_factory) -> tuple[Experiment, Path]:
    """Each experiment, and the folder of its result."""
    experiment, folder = find_experiment(request.param), tmp_path_factory.mktemp(request.param)
    assert record(experiment, ALONE, results=folder, work=folder / "work").exists()
    return experiment, folder


def test_every_arm_is_recorded_and_passes_its_check(recorded):
    experiment, folder = recorded
    values = load_result(experiment.name, folder=folder).values
    assert {name: len(arm["seconds"]) for name, arm in values["arms"].items()} == SEEDED[experiment.name]
    for arm in values["arms"].values():
        assert arm["steps"] == STEPS
        assert arm["curve"]["step"] == [0, 2, 4]
        name = "next_loss" if "next_loss" in arm["final"] else "mlm_loss"
        assert arm["final"][name]["each"] == [curve[-1] for curve in arm["curve"][name]]
        assert all(curve[-1] < curve[0] for curve in arm["curve"][name])
    assert check_recorded(experiment, ALONE, steps=2, results=folder) == []


def without_time(path: Path) -> dict:
    found = json.loads(path.read_text())
    for arm in found["values"]["arms"].values():
        del arm["seconds"]
    return {**found, "seconds": 0}


def test_an_experiment_that_was_stopped_ends_as_one_that_was_not(recorded, tmp_path):
    experiment, folder = recorded
    assert record(experiment, ALONE, steps=3, results=tmp_path, work=tmp_path) is None
    again = record(experiment, ALONE, results=tmp_path, work=tmp_path)
    assert without_time(again) == without_time(folder / f"{experiment.name}.json")


def test_who_writes_writes_once_for_each_prompt_and_seed(text):
    logs = {}
    for name in ("bidirectional", "twin"):
        run = small_run(directions.ARMS[name](text), seed=0, world=ALONE)
        list(run.trainer.steps(upto=STEPS))
        logs[f"{name}-0"] = RunLog(evaluations=[{"step": STEPS, **run.evaluate()}])
    values = directions.summarize_directions(logs, text)
    assert len(values["prompts"]) == directions.PROMPTS
    for name in directions.ARMS.keys() - {"causal"}:
        [texts] = values["arms"][name]["written"]
        assert len(texts) == directions.PROMPTS
        assert all(written.startswith("... ") and len(written) > 20 for written in texts)
    assert 0 < values["unigram"]["mlm_loss"] < 5
