"""The comparisons of small BERTs: arms differ in what they say, and in nothing else."""

from pathlib import Path

import pytest

from bertbook.corpus import Address
from bertbook.experiments import find_experiment, small
from bertbook.experiments.distributed import ALONE
from bertbook.experiments.recording import Experiment, check_recorded, record
from bertbook.experiments.results import load_result
from bertbook.experiments.small import small_text

NAMES = ("directions", "masking_rates", "always_mask", "static_masking", "next_sentence")
STEPS = 4


def addresses() -> list[Address]:
    """Twenty documents; each has a word of its own."""
    names = [f"{a}{b}" for a in ("ba", "ke", "li", "mo") for b in ("na", "pe", "ri", "so", "tu")]
    weather = ["Rain fell on {}.", "It was cold in {} that year.", "We thank {} for its grain."]
    return [Address(1800, "A", " ".join(s.format(name.title()) for s in weather * 12)) for name in names]


@pytest.fixture(scope="module", autouse=True)
def tiny():
    """A tiny model and a tiny text, prepared once for all tests."""
    small_text.cache_clear()
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
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sizes.items():
            patch.setattr(small, name, value)
        yield
    small_text.cache_clear()


@pytest.fixture(scope="module", params=NAMES)
def recorded(request, tmp_path_factory) -> tuple[Experiment, Path]:
    """Each experiment, and the folder of its result."""
    experiment, folder = find_experiment(request.param), tmp_path_factory.mktemp(request.param)
    assert record(experiment, ALONE, results=folder, work=folder / "work").exists()
    return experiment, folder


def test_every_arm_is_recorded_and_passes_its_check(recorded):
    experiment, folder = recorded
    result = load_result(experiment.name, folder=folder)
    for arm, summary in result.values["arms"].items():
        labels = [label for label in experiment.runs if label.rpartition("-")[0] == arm]
        assert summary["steps"] == STEPS
        assert summary["curve"]["step"] == [0, 2, 4]
        assert len(summary["seconds"]) == len(labels) == len(experiment.seeds)
    assert check_recorded(experiment, ALONE, results=folder) == []
