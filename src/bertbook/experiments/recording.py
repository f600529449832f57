"""Run an experiment to its end, however often it is stopped, and record the result."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from torch import nn

from bertbook.experiments.checkpointing import load_checkpoint, save_checkpoint
from bertbook.experiments.distributed import World
from bertbook.experiments.progress import Progress
from bertbook.experiments.results import (
    RESULTS,
    SOURCE,
    Result,
    load_result,
    write_result,
)
from bertbook.experiments.sources import code_hashes
from bertbook.experiments.training_loop import Trainer, mixed_seed

CHECKED_STEPS = 20  # how many first losses of each run are recorded
SAVE_EVERY = 250  # steps
WORK = SOURCE.parent / "_experiments"  # checkpoints and logs: `make clean` spares them

Numbers = dict[str, float]


@dataclass
class RunLog:
    """What happened in a run: each loss, each evaluation, and how long it took.

    >>> log = RunLog()
    >>> log.add({"mlm": 6.5, "nsp": 0.75})
    >>> log.total(), log.losses
    ([7.25], {'mlm': [6.5], 'nsp': [0.75]})
    """

    losses: dict[str, list[float]] = field(default_factory=dict)
    evaluations: list[Numbers] = field(default_factory=list)  # each with its "step"
    seconds: float = 0.0

    def add(self, losses: Numbers) -> None:
        """Note the losses of a step."""
        for name, loss in losses.items():
            self.losses.setdefault(name, []).append(loss)

    def total(self) -> list[float]:
        """The loss of each step, its parts together."""
        return [sum(parts) for parts in zip(*self.losses.values(), strict=True)]


@dataclass(frozen=True)
class Run:
    """One training run of an experiment.

    >>> from types import SimpleNamespace
    >>> Run(SimpleNamespace(steps_done=0), evaluate=dict, evaluate_every=10).evaluate()
    {}
    """

    trainer: Trainer
    evaluate: Callable[[], Numbers]  # measures trainer.model on held-out text
    evaluate_every: int  # steps; also at the start and at the end

    def note_evaluation(self, log: RunLog) -> None:
        """Measure in the process that leads; the others would find the same."""
        if self.trainer.world.leads:
            log.evaluations.append({"step": self.trainer.steps_done, **self.evaluate()})
        self.trainer.world.wait()


@dataclass(frozen=True)
class Experiment:
    """What is run, and what of it is recorded.

    Args:
        name: its module is bertbook.experiments.<name>.
        seeds: all that its runs use.
        runs: by a label, what prepares a run.
        summarize: makes the values of the result, of the log of each run.
        keep: writes what is kept of a run's model (weights) below a folder; called
            with the label, the model and the folder.
        recompute: measures anew what was kept, given that folder. Its numbers are the
            result's value "final".
        margin: how far a first loss or a final number may be from the recorded one on
            another machine, in its own unit.

    >>> Experiment("sums", seeds=[0], runs={}, summarize=dict).margin
    0.002
    """

    name: str
    seeds: list[int]
    runs: dict[str, Callable[[World], Run]]
    summarize: Callable[[dict[str, RunLog]], dict[str, Any]]
    keep: Callable[[str, nn.Module, Path], None] | None = None
    recompute: Callable[[Path], Numbers] | None = None
    margin: float = 2e-3

    def __post_init__(self):
        for label in self.runs:
            if not re.fullmatch(r"[a-z0-9_-]+", label):
                raise ValueError(
                    "a label of runs must be of a-z, 0-9, _ and -, since it names a "
                    f"file, got {label!r}"
                )

    @property
    def module(self) -> str:
        """Where its code begins."""
        return f"{__package__}.{self.name}"

    def work_folder(self, work: Path) -> Path:
        """Where its checkpoints are: elsewhere for other code, which has its own."""
        hashes = code_hashes(self.module)
        return work / f"{self.name}-{mixed_seed(*hashes.values()):016x}"


@dataclass(frozen=True)
class FollowUp(Experiment):
    """An experiment that measures what others have kept.

    The files of the others belong to its result: with new weights it is stale.

    Args:
        reads: names of the others.

    >>> FollowUp("sums", seeds=[], runs={}, summarize=dict, reads=("pretrain",)).reads
    ('pretrain',)
    """

    reads: tuple[str, ...] = ()


def read_by(experiment: Experiment) -> tuple[str, ...]:
    """The experiments whose kept files this one measures.

    >>> read_by(Experiment("sums", seeds=[], runs={}, summarize=dict))
    ()
    """
    return experiment.reads if isinstance(experiment, FollowUp) else ()


def advance(
    run: Run, checkpoint: Path, *, upto: int, label: str, save_every: int = SAVE_EVERY
) -> RunLog:
    """Train until so many steps are done, from where the last checkpoint left off.

    Args:
        checkpoint: a file; one that is there is gone on from, and it is written
            every save_every steps and at the end.
        upto: how many steps, at most the run's.
        label: what the progress is called.

    Returns:
        the log of the whole run so far, with the time of earlier sittings.

    >>> import torch
    >>> from bertbook.experiments.training_loop import LossPart, TrainingSettings
    >>> square = LossPart(lambda output: (output**2).mean(), lambda batch: 2)
    >>> trainer = Trainer(nn.Linear(2, 1), [{"input": torch.ones(2, 2)}] * 4,
    ...                   TrainingSettings(steps=4, learning_rate=0.1),
    ...                   parts={"square": square})
    >>> run = Run(trainer, evaluate=lambda: {"loss": 2.0}, evaluate_every=2)
    >>> path = getfixture("tmp_path") / "run.pt"
    >>> log = advance(run, path, upto=3, label="a run")
    >>> [numbers["step"] for numbers in log.evaluations], len(log.total())
    ([0, 2], 3)
    """
    trainer, log = run.trainer, RunLog()
    if checkpoint.exists():
        log = RunLog(**load_checkpoint(checkpoint, trainer))
    total = trainer.settings.steps
    since = perf_counter()
    if not log.evaluations:
        run.note_evaluation(log)
    progress = Progress(
        label, total, done=trainer.steps_done, shown=trainer.world.leads
    )
    for losses in trainer.steps(upto=upto):
        log.add(losses)
        step = trainer.steps_done
        if step % run.evaluate_every == 0 or step == total:
            run.note_evaluation(log)
        if step % save_every == 0 or step == upto:
            log.seconds += perf_counter() - since
            since = perf_counter()
            save_checkpoint(checkpoint, trainer, log=vars(log))
        progress.show(step, sum(losses.values()))
    return log


def record(
    experiment: Experiment,
    world: World,
    *,
    steps: int | None = None,
    results: Path = RESULTS,
    work: Path = WORK,
) -> Path | None:
    """Run each run to its end, keep its weights, and write the result.

    What an earlier sitting has done with the same code is not done again.

    Args:
        steps: None, or after how many steps each run stops for now. Such a trial is
            not recorded; without steps, the runs go on from there.
        results: where the result goes, and below its name what is kept.
        work: where checkpoints and full logs go.

    Returns:
        the file of the result, or None where nothing was recorded: for a trial, and in
        a process that does not lead.

    Raises:
        StaleResult: if what it reads of another experiment is not what the code gives.
        ValueError: if steps is not positive.

    >>> from bertbook.experiments.distributed import ALONE
    >>> folder = getfixture("tmp_path")
    >>> sums = Experiment("results", seeds=[], runs={}, summarize=lambda logs: {"n": 0})
    >>> record(sums, ALONE, results=folder, work=folder).name
    'results.json'
    >>> load_result("results", folder=folder).values
    {'n': 0}
    """
    if steps is not None and steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    for name in read_by(experiment):
        load_result(name, folder=results)  # refuses what is stale
    folder, logs, whole = experiment.work_folder(work), {}, True
    for label, prepare in experiment.runs.items():
        run = prepare(world)
        total = run.trainer.settings.steps
        upto = total if steps is None else min(steps, total)
        name = f"{experiment.name}, {label}"
        logs[label] = advance(run, folder / f"{label}.pt", upto=upto, label=name)
        whole = whole and run.trainer.steps_done == total
        if whole and experiment.keep and world.leads:
            (folder / "kept").mkdir(exist_ok=True)
            experiment.keep(label, run.trainer.model, folder / "kept")
    if not whole or not world.leads:
        return None
    return write_record(experiment, logs, world, folder=folder, results=results)


def write_record(
    experiment: Experiment,
    logs: dict[str, RunLog],
    world: World,
    *,
    folder: Path,
    results: Path,
) -> Path:
    """Write the result of finished runs; what was kept replaces what was there.

    Args:
        logs: of each run, by its label.
        world: on what they were computed.
        folder: the experiment's, below WORK: with what was kept of the models. The full
            logs are written there.
        results: where the result goes.

    >>> folder = getfixture("tmp_path")
    >>> last = Experiment("results", seeds=[0], runs={},
    ...                   summarize=lambda logs: {"last": logs["a"].total()[-1]})
    >>> log = RunLog(losses={"loss": [3.0, 2.0]})
    >>> _ = write_record(last, {"a": log}, World(), folder=folder, results=folder)
    >>> result = load_result("results", folder=folder)
    >>> result.values, result.computed_on
    ({'last': 2.0}, {'device': 'cpu', 'processes': 1})
    """
    since = perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    full = {label: vars(log) for label, log in logs.items()}
    (folder / "log.json").write_text(json.dumps(full, indent=1) + "\n", "utf-8")
    values, kept = experiment.summarize(logs), results / experiment.name
    if experiment.keep:
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder / "kept", kept)
    if experiment.recompute:
        values = {**values, "final": experiment.recompute(kept)}
    result = Result(
        experiment.name,
        values=values,
        seeds=experiment.seeds,
        seconds=round(
            sum(log.seconds for log in logs.values()) + perf_counter() - since, 1
        ),
        computed_on={"device": world.device.type, "processes": world.size},
        first_losses={
            label: [round(loss, 6) for loss in log.total()[:CHECKED_STEPS]]
            for label, log in logs.items()
        },
    )
    folders = [kept, *(results / name for name in read_by(experiment))]
    paths = sorted(path for each in folders for path in each.rglob("*"))
    files = [p.relative_to(results).as_posix() for p in paths if p.is_file()]
    return write_result(result, files=files, folder=results)


def check_recorded(
    experiment: Experiment,
    world: World,
    *,
    steps: int = CHECKED_STEPS,
    results: Path = RESULTS,
) -> list[str]:
    """Do the first steps of each run again, and measure anew what was kept.

    Args:
        steps: how many, at most CHECKED_STEPS.
        results: where the result lies.

    Returns:
        each difference that is larger than the experiment's margin, in words.

    Raises:
        StaleResult: if there is no result, or other code has made it.
        ValueError: if steps is out of range.

    >>> from bertbook.experiments.distributed import ALONE
    >>> folder = getfixture("tmp_path")
    >>> sums = Experiment("results", seeds=[0], runs={}, summarize=lambda logs: {})
    >>> _ = record(sums, ALONE, results=folder, work=folder)
    >>> check_recorded(sums, ALONE, results=folder)
    []
    """
    if not 1 <= steps <= CHECKED_STEPS:
        raise ValueError(f"steps must be from 1 to {CHECKED_STEPS}, got {steps}")
    result = load_result(experiment.name, folder=results)
    if experiment.runs.keys() != result.first_losses.keys():
        return [f"runs are {[*experiment.runs]}, not {[*result.first_losses]}"]
    pairs = {}
    for label, prepare in experiment.runs.items():
        trainer = prepare(world).trainer
        upto = min(steps, trainer.settings.steps)
        recorded = result.first_losses[label]
        for step, losses in enumerate(trainer.steps(upto=upto)):
            place = f"{label}, loss of step {step}"
            pairs[place] = recorded[step], sum(losses.values())
    if experiment.recompute:
        recorded = result.values["final"]
        for name, number in experiment.recompute(results / experiment.name).items():
            pairs[f"final {name}"] = recorded[name], number
    return [
        f"{place}: recorded {before:.6f}, now {now:.6f}"
        for place, (before, now) in pairs.items()
        if not abs(before - now) <= experiment.margin
    ]
