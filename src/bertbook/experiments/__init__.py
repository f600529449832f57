"""The experiments that take minutes: run once, recorded, loaded by the chapters.

An experiment is a module with a constant ``EXPERIMENT``. Beside them: ``results`` and
``sources`` (what was found, and by which code), ``recording`` (run, resume, check),
``training_loop``, ``data_order``, ``checkpointing``, ``distributed``, ``progress``; and
what the comparisons of small models share: ``small``, ``arm_summary``, ``next_token``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertbook.experiments.recording import Experiment

EXPERIMENTS = (  # in the order in which they run
    "text",
    "pretrain",
    "reading",
    "attention_profile",
    "directions",
    "masking_rates",
    "always_mask",
    "mask_later",
    "static_masking",
    "next_sentence",
)


def find_experiment(name: str) -> "Experiment":
    """What the module of this name declares.

    Raises:
        ValueError: if there is no such experiment.

    >>> find_experiment("nothing")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: name must be one of (...), got 'nothing'
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"name must be one of {EXPERIMENTS}, got {name!r}")
    return import_module(f"{__name__}.{name}").EXPERIMENT
