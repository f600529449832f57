"""The book's own BERT: pretrained on real text, on a laptop, in less than an hour.

Four layers of 256 features read the State of the Union addresses, for masked tokens
and next sentences. For the first quarter, the latter are guessed like a coin.

Unlike the released BERT, it is asked for forty of a hundred tokens in training: in so
short a run, more predictions were worth more than more context ("masking_rates").
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer
from torch import nn

from bertbook.batches import PretrainingCollator
from bertbook.config import BertConfig
from bertbook.experiments.data_order import ConsecutiveBatches, ShuffledBatches
from bertbook.experiments.distributed import Batch, World, choose_precision
from bertbook.experiments.evaluation import evaluate_pretraining
from bertbook.experiments.pretraining_text import (
    MAX_LENGTH,
    PretrainingText,
    held_out_batches,
    whole_text,
)
from bertbook.experiments.recording import Experiment, Numbers, Run, RunLog
from bertbook.experiments.training_loop import (
    BOTH_TASKS,
    Trainer,
    TrainingSettings,
)
from bertbook.heads import BertForPreTraining
from bertbook.pretraining_data import PretrainingExample
from bertbook.tokenization import save_tokenizer

SEED = 0
EVALUATE_EVERY = 500  # steps
EVALUATE_EACH = 5  # held-out example on the way, to save time; at the end, all are
TRAINING_RATE = 0.4  # of masking in training; what is held out is masked as BERT does
CURVE_EVERY = 50  # steps: a point of the curve is their mean


class Phase(NamedTuple):
    """A part of the run, with sequences of one length.

    >>> Phase("short", steps=10, batch_size=64).batch_size
    64
    """

    text: str  # which examples of the text it reads
    steps: int
    batch_size: int


# Short sequences first, as BERT did: what stands next to a token is found sooner among
# few tokens. Each step reads as many tokens.
PHASES = (
    Phase("short", steps=1000, batch_size=64),
    Phase("training", steps=7200, batch_size=16),
)
SETTINGS = TrainingSettings(
    steps=sum(phase.steps for phase in PHASES),
    learning_rate=5e-4,
    warmup_steps=300,
    seed=SEED,
)


def new_pretraining_model(tokenizer: Tokenizer, *, seed: int) -> BertForPreTraining:
    """A mini BERT that knows nothing yet; equal for equal seeds.

    It has as many positions as its sequences: others would never be trained.

    >>> from bertbook.tokenization import bert_tokenizer
    >>> from bertbook.wordpiece import BERT_SPECIAL_TOKENS
    >>> model = new_pretraining_model(bert_tokenizer(BERT_SPECIAL_TOKENS), seed=0)
    >>> model.config.hidden_size, model.config.max_position_embeddings
    (256, 64)
    """
    config = replace(
        BertConfig.mini(),
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=MAX_LENGTH,
        hidden_dropout_prob=0.0,  # the text is read four times: too few to learn it
        attention_probs_dropout_prob=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return BertForPreTraining(config)


def phase_batches(
    text: PretrainingText, phases: Sequence[Phase], *, seed: int
) -> ConsecutiveBatches:
    """The batches of one phase after the other, masked anew at each step.

    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> text = rain_text()
    >>> phases = [Phase("short", 1, batch_size=8), Phase("training", 1, batch_size=2)]
    >>> batches = phase_batches(text, phases, seed=0)
    >>> batches[0]["input_ids"].shape, batches[1]["input_ids"].shape
    (torch.Size([8, 16]), torch.Size([2, 64]))
    """

    def collate(
        examples: Sequence[PretrainingExample], *, generator: torch.Generator
    ) -> Batch:
        collator = PretrainingCollator(
            text.special, generator=generator, probability=TRAINING_RATE
        )
        return collator(examples)

    return ConsecutiveBatches(
        [
            (
                phase.steps,
                ShuffledBatches(
                    getattr(text, phase.text),
                    collate,
                    batch_size=phase.batch_size,
                    seed=seed,
                ),
            )
            for phase in phases
        ]
    )


def pretraining_run(
    text: PretrainingText, settings: TrainingSettings, *, world: World
) -> Run:
    """A new model, with batches of the text that are masked anew at each step.

    A GPU computes in bfloat16 if it can. A CPU computes in float32, also where it could
    do otherwise, so that the result can be checked on every machine.

    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> text = rain_text()
    >>> pretraining_run(text, SETTINGS, world=World()).trainer.steps_done
    0
    """
    if world.device.type == "cuda":
        settings = replace(settings, precision=choose_precision(world.device))
    batches = phase_batches(text, PHASES, seed=settings.seed)
    model = new_pretraining_model(text.tokenizer, seed=settings.seed)
    trainer = Trainer(model, batches, settings, parts=BOTH_TASKS, world=world)
    some = text._replace(held_out=text.held_out[::EVALUATE_EACH])
    held_out = held_out_batches(some)
    return Run(
        trainer,
        evaluate=lambda: evaluate_pretraining(model, held_out),
        evaluate_every=EVALUATE_EVERY,
    )


def curve_of(log: RunLog, *, every: int) -> dict[str, list[float]]:
    """The training losses, each point the mean of so many steps up to "step".

    >>> curve_of(RunLog(losses={"mlm": [3.0, 2.0, 2.0, 1.0, 1.0]}), every=2)
    {'step': [2, 4], 'mlm': [2.5, 1.5]}
    """
    total = len(log.total())
    curve: dict[str, list[float]] = {"step": [*range(every, total + 1, every)]}
    for name, losses in log.losses.items():
        means = [sum(losses[end - every : end]) / every for end in curve["step"]]
        curve[name] = [round(mean, 4) for mean in means]
    return curve


def summarize_pretraining(log: RunLog, text: PretrainingText) -> dict[str, Any]:
    """The values of the result: phases, curve and evaluations.

    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> log = RunLog(losses={"mlm": [3.0] * 50}, evaluations=[{"step": 50}])
    >>> summarize_pretraining(log, rain_text())["curve"]
    {'step': [50], 'mlm': [3.0]}
    """
    return {
        "phases": [
            {**phase._asdict(), "examples": len(getattr(text, phase.text))}
            for phase in PHASES
        ],
        "training_rate": TRAINING_RATE,
        "learning_rate": SETTINGS.learning_rate,
        "warmup_steps": SETTINGS.warmup_steps,
        "curve": curve_of(log, every=CURVE_EVERY),
        "evaluations": [rounded(numbers) for numbers in log.evaluations],
        "held_out_examples": len(text.held_out),
    }


def rounded(numbers: Numbers) -> Numbers:
    """The same to four decimals.

    >>> rounded({"mlm_loss": 6.123456})
    {'mlm_loss': 6.1235}
    """
    return {name: round(number, 4) for name, number in numbers.items()}


def keep_pretrained(model: nn.Module, tokenizer: Tokenizer, folder: Path) -> None:
    """Write weights as float16, half as large, with configuration and vocabulary.

    The model itself stays as it is.

    >>> from bertbook.tokenization import bert_tokenizer
    >>> from bertbook.wordpiece import BERT_SPECIAL_TOKENS
    >>> tokenizer, folder = bert_tokenizer(BERT_SPECIAL_TOKENS), getfixture("tmp_path")
    >>> model = new_pretraining_model(tokenizer, seed=0)
    >>> keep_pretrained(model, tokenizer, folder)
    >>> sorted(path.name for path in folder.iterdir())
    ['config.json', 'model.safetensors', 'tokenizer.json', 'vocab.txt']
    """
    deepcopy(model).to("cpu").half().save_pretrained(folder)
    save_tokenizer(tokenizer, folder)


def measure_pretrained(folder: Path, text: PretrainingText) -> Numbers:
    """What the stored weights, in float32 again, make of the held-out text.

    Raises:
        FileNotFoundError, ValueError: see BertForPreTraining.from_pretrained.

    >>> measure_pretrained(Path("nowhere"), None)
    Traceback (most recent call last):
    FileNotFoundError: there is no folder nowhere
    """
    model = BertForPreTraining.from_pretrained(folder)
    found = evaluate_pretraining(model, held_out_batches(text))
    return {name: round(number, 6) for name, number in found.items()}


EXPERIMENT = Experiment(
    "pretrain",
    seeds=[SEED],
    runs={"mini": lambda world: pretraining_run(whole_text(), SETTINGS, world=world)},
    summarize=lambda logs: summarize_pretraining(logs["mini"], whole_text()),
    keep=lambda label, model, folder: keep_pretrained(
        model, whole_text().tokenizer, folder
    ),
    recompute=lambda folder: measure_pretrained(folder, whole_text()),
)
