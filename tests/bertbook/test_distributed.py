"""Two processes train as one; and what is chosen on machines that are not here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bertbook.experiments.distributed import choose_device, choose_precision, rows_of
from bertbook.experiments.results import load_result
from book_paths import ROOT
from tiny_masked_lm import losses_of, tiny_trainer, weights_of

SCRIPT = """
import json
import sys
from pathlib import Path
import torch
from bertbook.experiments.distributed import joined_world
from bertbook.experiments.recording import Experiment, Run, record
from bertbook.experiments.training_loop import Trainer
from tiny_masked_lm import tiny_trainer

def naive(self, rows, counts, *, last):  # what DDP alone does: each process its own mean
    loss = self.replica(**rows).loss
    loss.backward()
    return {"loss": loss.item() / self.world.size}

def prepare(world):
    return Run(tiny_trainer(world=world), evaluate=lambda: {"rank": world.rank}, evaluate_every=4)

def summarize(logs):
    return {"losses": logs["a"].total(), "evaluations": logs["a"].evaluations}

experiment = Experiment("progress", seeds=[0], runs={"a": prepare}, summarize=summarize)
folder = Path(sys.argv[1])
with joined_world("cpu") as world:
    found = {}
    for steps in (5, None):  # stopped, and gone on with
        path = record(experiment, world, steps=steps, results=folder / "results", work=folder / "work")
        assert (path is not None) == (world.leads and steps is None)
    for name, accumulation in {"ours": 1, "accumulated": 2, "naive": 1}.items():
        if name == "naive":
            Trainer.weighed_losses = naive
        trainer = tiny_trainer(accumulation=accumulation, world=world)
        losses = [losses["loss"] for losses in trainer.steps(upto=6)]
        weights = torch.cat([p.detach().flatten() for p in trainer.model.parameters()])
        found[name] = losses, weights.tolist()
    (folder / f"{world.rank}.json").write_text(json.dumps(found))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where two processes, started by torchrun, wrote what they found."""
    folder = tmp_path_factory.mktemp("two")
    (folder / "script.py").write_text(SCRIPT)
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [*run, str(folder / "script.py"), str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def two_processes(folder) -> list[dict]:
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.parametrize("accumulation", [1, 2])
def test_two_processes_give_the_losses_of_one(two_processes, accumulation):
    trainer = tiny_trainer()
    losses = losses_of(trainer, 6)
    for found in two_processes:
        theirs, weights = found["ours" if accumulation == 1 else "accumulated"]
        assert theirs == pytest.approx(losses, rel=0, abs=2e-6)
        assert torch.allclose(torch.tensor(weights), weights_of(trainer), rtol=0, atol=2e-5)
    assert two_processes[0]["ours"] == two_processes[1]["ours"]


def test_two_processes_record_one_result_also_after_a_stop(folder):
    result = load_result("progress", folder=folder / "results")
    assert result.values["losses"] == pytest.approx(losses_of(tiny_trainer(), 12), rel=0, abs=2e-5)
    assert result.values["evaluations"] == [{"step": step, "rank": 0} for step in (0, 4, 8, 12)]
    assert result.computed_on == {"device": "cpu", "processes": 2}


def test_an_average_of_the_processes_means_is_noticed(two_processes):
    losses = losses_of(tiny_trainer(), 6)
    theirs, _ = two_processes[0]["naive"]
    assert max(abs(a - b) for a, b in zip(theirs, losses, strict=True)) > 1e-2


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_the_parts_of_a_batch_are_the_batch(parts):
    batch = {"a": torch.arange(5), "b": torch.arange(10).reshape(5, 2)}
    rows = [rows_of(batch, part, parts=parts) for part in range(parts)]
    assert sorted(torch.cat([part["a"] for part in rows]).tolist()) == list(range(5))
    assert all(torch.equal(part["b"][:, 0], 2 * part["a"]) for part in rows)


def test_a_batch_that_cannot_be_parted_is_refused():
    with pytest.raises(ValueError, match="a row for each of the 3 parts"):
        rows_of({"a": torch.arange(2)}, 0, parts=3)
    with pytest.raises(ValueError, match=r"same rows in each tensor, got \{'a': 2, 'b': 3\}"):
        rows_of({"a": torch.arange(2), "b": torch.arange(3)}, 0, parts=1)


# What is chosen on other machines


@pytest.mark.parametrize(
    ("gpus", "apple", "asked", "device"),
    [
        (0, False, {}, "cpu"),
        (0, True, {}, "mps"),
        (0, True, {"size": 2}, "cpu"),  # Apple's GPU is one
        (2, True, {"local_rank": 1, "size": 2}, "cuda:1"),
    ],
)
def test_the_best_device_is_chosen(monkeypatch, gpus, apple, asked, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: apple)
    assert choose_device(**asked) == torch.device(device)


def test_more_processes_than_gpus_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match="process 2 of this machine has no GPU: there are 2"):
        choose_device(local_rank=2, size=3)


@pytest.mark.parametrize(
    ("found", "precision"),
    [({"avx2": True, "avx512_bf16": False}, "float32"), ({"amx_bf16": True}, "bfloat16"), ({}, "float32")],
)
def test_bfloat16_is_chosen_where_the_processor_has_it(monkeypatch, found, precision):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)
    assert choose_precision(torch.device("cpu")) == precision
    assert choose_precision(torch.device("mps")) == "float32"
