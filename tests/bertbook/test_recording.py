"""Experiments: run, stopped, gone on with, recorded, checked; and the command that does it."""

import json
import re
from functools import partial
from pathlib import Path
from time import sleep

import pytest
import torch

from bertbook import experiments
from bertbook.experiments import command, recording, results
from bertbook.experiments.distributed import ALONE, World
from bertbook.experiments.progress import Progress
from bertbook.experiments.recording import Experiment, FollowUp, Run, RunLog, advance, check_recorded, record
from bertbook.experiments.results import StaleResult, load_result
from tiny_masked_lm import losses_of, tiny_trainer

# The experiments here are called as a module that imports little, so that hashing is quick.
NAME = "progress"


def tiny_run(world: World, seed: int = 0, dropout: float = 0.2) -> Run:
    trainer = tiny_trainer(dropout=dropout, model_seed=seed, world=world)

    def evaluate() -> dict[str, float]:
        trainer.model.eval()
        return {"bias": trainer.model.bias.sum().item()}

    return Run(trainer, evaluate=evaluate, evaluate_every=4)


def summarize(logs: dict[str, RunLog]) -> dict:
    return {label: [log.total()[-1], log.evaluations[-1]["bias"]] for label, log in logs.items()}


def keep(label: str, model: torch.nn.Module, folder: Path) -> None:
    torch.save(model.bias.detach().half(), folder / f"{label}.pt")


def recompute(folder: Path) -> dict[str, float]:
    return {path.stem: torch.load(path, weights_only=True).float().sum().item() for path in sorted(folder.iterdir())}


def tiny_experiment(**changes) -> Experiment:
    runs = {"seed-0": tiny_run, "seed-1": partial(tiny_run, seed=1)}
    given = {"seeds": [0, 1], "runs": runs, "summarize": summarize, "keep": keep, "recompute": recompute}
    return Experiment(NAME, **{**given, **changes})


@pytest.fixture
def folders(tmp_path) -> dict[str, Path]:
    return {"results": tmp_path / "results", "work": tmp_path / "work"}


@pytest.fixture
def recorded(folders) -> Path:
    path = record(tiny_experiment(), ALONE, **folders)
    assert path is not None
    return path


def test_a_recorded_result_holds_what_its_code_gives(recorded, folders):
    result = load_result(NAME, folder=folders["results"])
    whole = tiny_trainer(dropout=0.2)
    losses = losses_of(whole, 12)
    assert result.values["seed-0"] == [losses[-1], whole.model.bias.sum().item()]
    assert result.values["final"]["seed-0"] == pytest.approx(whole.model.bias.sum().item(), abs=1e-3)
    assert result.first_losses["seed-0"] == [round(loss, 6) for loss in losses]
    assert result.first_losses["seed-1"] != result.first_losses["seed-0"]
    assert list(result.files) == ["progress/seed-0.pt", "progress/seed-1.pt"]
    assert result.seeds == [0, 1]
    assert result.computed_on == {"device": "cpu", "processes": 1}
    assert result.seconds > 0


def test_the_time_of_what_is_measured_counts(folders):
    def slow(logs: dict[str, RunLog]) -> dict:
        sleep(0.2)
        return {}

    path = record(tiny_experiment(runs={}, summarize=slow, keep=None, recompute=None), ALONE, **folders)
    assert json.loads(path.read_text())["seconds"] >= 0.2


def without_time(path: Path) -> dict:
    return {**json.loads(path.read_text()), "seconds": 0}


def test_an_experiment_that_was_stopped_anywhere_ends_as_one_that_was_not(recorded, tmp_path, monkeypatch):
    again = {"results": tmp_path / "again", "work": tmp_path / "other work"}
    for steps in (2, 7, 9, 5):  # that a sitting does before it is stopped: in one run, or in two
        left = iter(range(steps))

        def stopped(trainer, *, left=left, step=recording.Trainer.step):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return step(trainer)

        with monkeypatch.context() as patch:
            patch.setattr(recording.Trainer, "step", stopped)
            patch.setattr(recording, "advance", partial(advance, save_every=2))
            with pytest.raises(KeyboardInterrupt):
                record(tiny_experiment(), ALONE, **again)
        assert not (tmp_path / "again/progress.json").exists()
    assert without_time(record(tiny_experiment(), ALONE, **again)) == without_time(recorded)
    assert (tmp_path / "again/progress/seed-1.pt").read_bytes() == (recorded.parent / "progress/seed-1.pt").read_bytes()


def test_a_trial_records_nothing_and_is_gone_on_with(folders, recorded):
    new = {"results": folders["results"].with_name("new"), "work": folders["work"].with_name("new work")}
    assert record(tiny_experiment(), ALONE, steps=5, **new) is None
    assert not new["results"].exists()
    (checkpoint,) = new["work"].rglob("seed-0.pt")
    assert len(advance(tiny_run(ALONE), checkpoint, upto=5, label="x").total()) == 5
    assert without_time(record(tiny_experiment(), ALONE, **new)) == without_time(recorded)


def test_evaluations_are_at_the_start_at_every_so_many_steps_and_at_the_end(tmp_path):
    run = Run(tiny_trainer(), evaluate=dict, evaluate_every=5)
    log = advance(run, tmp_path / "run.pt", upto=12, label="x")
    assert [numbers["step"] for numbers in log.evaluations] == [0, 5, 10, 12]
    again = advance(Run(tiny_trainer(), evaluate=dict, evaluate_every=5), tmp_path / "run.pt", upto=12, label="x")
    assert again == log


def test_what_was_kept_of_an_older_run_is_removed(folders):
    old = folders["results"] / NAME / "old.pt"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"1")
    assert record(tiny_experiment(), ALONE, steps=1, **folders) is None
    assert old.exists()
    record(tiny_experiment(), ALONE, **folders)
    assert sorted(path.name for path in old.parent.iterdir()) == ["seed-0.pt", "seed-1.pt"]


def test_other_code_does_not_go_on_with_these_checkpoints(tmp_path, monkeypatch):
    before = tiny_experiment().work_folder(tmp_path)
    assert before == tiny_experiment().work_folder(tmp_path)
    monkeypatch.setattr(recording, "code_hashes", lambda module: {"bertbook.model": "other"})
    assert tiny_experiment().work_folder(tmp_path) != before


# Checking


def test_what_is_as_recorded_passes(recorded, folders):
    for steps in (1, 20):
        assert check_recorded(tiny_experiment(), ALONE, steps=steps, results=folders["results"]) == []


def test_another_loss_is_found_and_named(recorded, folders):
    def moved(world):
        run = tiny_run(world, seed=1)
        run.trainer.batches = {step: run.trainer.batches[step + (step == 5)] for step in range(12)}
        return run

    found = tiny_experiment(runs={"seed-0": tiny_run, "seed-1": moved})
    assert check_recorded(found, ALONE, steps=5, results=folders["results"]) == []
    faults = check_recorded(found, ALONE, steps=6, results=folders["results"])
    assert len(faults) == 1
    assert faults[0].startswith("seed-1, loss of step 5: recorded ")


def test_a_margin_is_a_limit_for_both_sides(recorded, folders):
    for change, good in [(0.001, True), (0.003, False), (-0.003, False), (float("nan"), False)]:

        def moved(folder, change=change):
            return {name: number + change for name, number in recompute(folder).items()}

        faults = check_recorded(tiny_experiment(recompute=moved), ALONE, results=folders["results"])
        assert len(faults) == (0 if good else 2)
        assert all(fault.startswith("final seed-") for fault in faults)


def test_a_run_that_is_not_recorded_is_found(recorded, folders):
    more = tiny_experiment(runs={"seed-0": tiny_run, "seed-2": tiny_run})
    assert check_recorded(more, ALONE, results=folders["results"]) == [
        "runs are ['seed-0', 'seed-2'], not ['seed-0', 'seed-1']"
    ]


def test_a_check_of_nothing_recorded_is_an_error(folders):
    with pytest.raises(StaleResult, match="there is no result 'progress'"):
        check_recorded(tiny_experiment(), ALONE, results=folders["results"])


@pytest.mark.parametrize("steps", [0, 21])
def test_a_check_of_no_or_too_many_steps_is_refused(folders, steps):
    with pytest.raises(ValueError, match=f"steps must be from 1 to 20, got {steps}"):
        check_recorded(tiny_experiment(), ALONE, steps=steps, results=folders["results"])


def test_a_label_that_names_no_file_is_refused():
    with pytest.raises(ValueError, match="got 'seed/0'"):
        tiny_experiment(runs={"seed/0": tiny_run})


# Progress


class Screen:
    def __init__(self, terminal: bool):
        self.terminal, self.text = terminal, ""

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_one_line_on_a_terminal_and_few_lines_in_a_log(terminal):
    screen = Screen(terminal)
    progress = Progress("mini", 250, done=50, stream=screen, clock=iter(range(0, 400)).__next__)
    for step in range(51, 251):
        progress.show(step, 1.5)
    assert screen.text.count("\n") == (1 if terminal else 3)
    assert screen.text.count("\r") == (200 if terminal else 0)
    assert "mini: step 250 of 250, loss 1.500" in screen.text.splitlines()[-1]


def test_a_process_that_does_not_lead_shows_nothing():
    screen = Screen(True)
    Progress("mini", 1, shown=False, stream=screen).show(1, 1.5)
    assert screen.text == ""


# The command


@pytest.fixture
def run(folders, monkeypatch):
    """The command, with one tiny experiment and folders of its own."""
    monkeypatch.setattr(experiments, "EXPERIMENTS", (NAME,))
    monkeypatch.setattr(command, "EXPERIMENTS", (NAME,))
    monkeypatch.setattr(command, "find_experiment", lambda name: tiny_experiment())
    load = partial(results.load_result, folder=folders["results"])
    monkeypatch.setattr(command, "load_result", load)
    monkeypatch.setattr(command, "record", partial(record, **folders))
    monkeypatch.setattr(command, "check_recorded", partial(check_recorded, results=folders["results"]))

    def call(*arguments: str) -> int:
        return command.run_experiments([*arguments, "--device", "cpu"])

    return call


def test_the_command_runs_what_is_not_recorded_and_states_the_time(run, capsys):
    assert run("--check") == 1
    assert "there is no result 'progress'" in capsys.readouterr().out
    assert run() == 0
    first = capsys.readouterr().out.splitlines()
    said = [re.sub(r"0:00:\d\d", "0:00:00", line) for line in first[1:]]
    assert said == ["progress: took 0:00:00, recorded in results/progress.json", "All 1 together took 0:00:00."]
    assert run(NAME) == 0
    assert capsys.readouterr().out.splitlines()[0] == "progress: recorded already"
    assert run("--check", "--steps", "3") == 0
    assert capsys.readouterr().out == "progress: equal to what is recorded, within 0.002\n"


def test_a_trial_by_the_command_records_nothing(run, folders):
    assert run("--steps", "2") == 0
    assert not folders["results"].exists()


@pytest.fixture
def followed(recorded, folders) -> FollowUp:
    """What measures the weights that the tiny experiment has kept; it is recorded, too."""
    measured = FollowUp("results", seeds=[], runs={}, summarize=lambda logs: {}, reads=(NAME,))
    record(measured, ALONE, **folders)
    return measured


def test_what_was_measured_of_other_weights_is_refused(followed, folders):
    weights = folders["results"] / NAME / "seed-0.pt"
    assert load_result("results", folder=folders["results"]).files.keys() == {
        f"{NAME}/seed-0.pt",
        f"{NAME}/seed-1.pt",
    }
    weights.write_bytes(weights.read_bytes() + b"!")
    with pytest.raises(StaleResult, match=f"'results' .* {NAME}/seed-0.pt has changed.*experiments results"):
        load_result("results", folder=folders["results"])


def test_weights_that_are_stale_are_not_measured(followed, folders):
    (folders["results"] / NAME / "seed-0.pt").unlink()
    with pytest.raises(StaleResult, match=f"seed-0.pt is missing.*experiments {NAME}"):
        record(followed, ALONE, **folders)


def test_the_command_says_which_experiment_comes_first(run, followed, folders, monkeypatch, capsys):
    (folders["results"] / NAME / "seed-0.pt").unlink()
    monkeypatch.setattr(command, "EXPERIMENTS", ("results",))
    monkeypatch.setattr(command, "find_experiment", lambda name: followed)
    capsys.readouterr()
    assert run("results") == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith(f"To make it anew: python -m bertbook.experiments {NAME}")


def test_the_command_fails_where_a_number_differs(run, folders, capsys):
    run()
    path = folders["results"] / "progress.json"
    found = json.loads(path.read_text())
    found["first_losses"]["seed-1"][2] += 0.01
    path.write_text(json.dumps(found))
    capsys.readouterr()
    assert run("--check") == 1
    assert capsys.readouterr().out.startswith("progress: seed-1, loss of step 2: recorded ")


def test_a_command_that_is_stopped_says_how_to_go_on(run, monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "record", stopped)
    assert run() == 130
    assert "The same command goes on" in capsys.readouterr().out


def test_a_check_computes_on_the_cpu_unless_told_otherwise(run, monkeypatch):
    asked = []
    joined = command.joined_world
    monkeypatch.setattr(command, "joined_world", lambda device: joined(asked.append(device) or "cpu"))
    for arguments in (["--check"], ["--check", "--device", "mps"], [], ["--device", "cuda"]):
        command.run_experiments(arguments)
    assert asked == ["cpu", "mps", None, "cuda"]


def test_an_unknown_experiment_is_named(run, capsys):
    assert run("other") == 2
    assert capsys.readouterr().out == "There is no experiment 'other'; there are: progress\n"
