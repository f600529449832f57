"""Stop a run and go on later, with the result that it would have had."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from bertbook.experiments.results import changed_parts
from bertbook.experiments.training_loop import Trainer


def save_checkpoint(path: Path, trainer: Trainer, *, log: dict[str, Any]) -> None:
    """Write all that the rest of the run depends on, and its log so far.

    One process writes. A checkpoint is whole or not there at all: it is written under
    another name first, since a run may be stopped in between.

    Args:
        path: of the file; its folder is made if missing.
        trainer: what to save.
        log: numbers, texts, lists and dicts.

    >>> from bertbook.experiments.training_loop import TrainingSettings
    >>> path = getfixture("tmp_path") / "run.pt"
    >>> settings = TrainingSettings(steps=3, learning_rate=0.1)
    >>> trainer = Trainer(torch.nn.Linear(2, 1), [], settings)
    >>> save_checkpoint(path, trainer, log={"losses": [0.5]})
    >>> load_checkpoint(path, trainer)
    {'losses': [0.5]}
    """
    if trainer.world.leads:
        path.parent.mkdir(parents=True, exist_ok=True)
        state = {**trainer.state_dict(), "settings": asdict(trainer.settings)}
        unfinished = path.with_suffix(".unfinished")
        torch.save({**state, "log": log}, unfinished)
        os.replace(unfinished, path)
    trainer.world.wait()


def load_checkpoint(path: Path, trainer: Trainer) -> dict[str, Any]:
    """Put a trainer where another was when it was saved.

    Only tensors, numbers, texts, lists and dicts are read: no code in the file runs.

    Returns:
        the log that was saved.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the trainer's settings are not those of the run.

    >>> from bertbook.experiments.training_loop import TrainingSettings
    >>> path = getfixture("tmp_path") / "run.pt"
    >>> settings = TrainingSettings(steps=3, learning_rate=0.1)
    >>> save_checkpoint(path, Trainer(torch.nn.Linear(2, 1), [], settings), log={})
    >>> settings = TrainingSettings(steps=3, learning_rate=0.2)
    >>> load_checkpoint(path, Trainer(torch.nn.Linear(2, 1), [], settings))
    Traceback (most recent call last):
    ValueError: run.pt belongs to a run with other settings (learning_rate has \
changed): train with those, or remove it to start anew
    """
    state = torch.load(path, map_location=trainer.world.device, weights_only=True)
    changes = changed_parts(state["settings"], asdict(trainer.settings))
    if changes:
        raise ValueError(
            f"{path.name} belongs to a run with other settings ({', '.join(changes)}): "
            "train with those, or remove it to start anew"
        )
    trainer.load_state_dict(state)
    return state["log"]
