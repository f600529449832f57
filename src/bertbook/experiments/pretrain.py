"""The book's own BERT: pretrained on real text, on a laptop, in less than an hour.

Four layers of 256 features read the State of the Union addresses, for masked tokens
and next sentences. For the first two thousand steps nothing seems to happen.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer
from torch import nn

from bertbook.baselines import unigram_baseline
from bertbook.batches import PretrainingCollator, evaluation_batches
from bertbook.config import BertConfig
from bertbook.corpus import Address, hold_out, load_addresses, split_sentences
from bertbook.experiments.data_order import ShuffledBatches
from bertbook.experiments.distributed import Batch, World, choose_precision
from bertbook.experiments.evaluation import evaluate_pretraining
from bertbook.experiments.recording import Experiment, Numbers, Run, RunLog
from bertbook.experiments.training_loop import (
    LossPart,
    Trainer,
    TrainingSettings,
    count_labelled,
    count_sequences,
)
from bertbook.heads import BertForPreTraining
from bertbook.pretraining_data import (
    PretrainingExample,
    pair_examples,
    sample_segments,
)
from bertbook.tokenization import encode_sentences, save_tokenizer, train_tokenizer
from bertbook.wordpiece import SpecialIds, special_ids

SEED = 0
VOCAB_SIZE = 8192
MAX_LENGTH = 64  # tokens of a sequence, marks included
BATCH_SIZE = 64
PASSES = 4  # through the text, each with segments and random partners of its own
EVALUATE_EVERY = 500  # steps
CURVE_EVERY = 50  # steps: a point of the curve is their mean
EVALUATION_BATCH_SIZE = 128

SETTINGS = TrainingSettings(steps=5000, learning_rate=1e-3, warmup_steps=500, seed=SEED)
BOTH_TASKS = {
    "mlm": LossPart(lambda output: output.masked_lm_loss, count_labelled),
    "nsp": LossPart(lambda output: output.next_sentence_loss, count_sequences),
}


class PretrainingText(NamedTuple):
    """What is read in training, and what is held out.

    >>> from bertbook.tokenization import bert_tokenizer
    >>> from bertbook.wordpiece import BERT_SPECIAL_TOKENS
    >>> PretrainingText(bert_tokenizer(BERT_SPECIAL_TOKENS), [], []).special.mask
    4
    """

    tokenizer: Tokenizer
    training: list[PretrainingExample]
    held_out: list[PretrainingExample]

    @property
    def special(self) -> SpecialIds:
        """The ids of the special tokens."""
        return special_ids(self.tokenizer.get_vocab())


def prepare_text(
    addresses: Sequence[Address], *, vocab_size: int, passes: int = 1
) -> PretrainingText:
    """Hold out every tenth address; learn the vocabulary and make pairs of the others.

    Args:
        addresses: in order, at least twenty.
        vocab_size: V.
        passes: see segment_examples; of the training text.

    >>> texts = [f"Rain fell in {year}. " * 30 for year in range(1800, 1940, 7)]
    >>> addresses = [Address(1800, "A", text) for text in texts]
    >>> text = prepare_text(addresses, vocab_size=50)
    >>> text.tokenizer.get_vocab_size(), len(text.training) > len(text.held_out)
    (50, True)
    """
    training, held_out = hold_out(addresses)
    tokenizer = train_tokenizer([a.text for a in training], vocab_size=vocab_size)
    return PretrainingText(
        tokenizer,
        segment_examples(training, tokenizer, seed=SEED, passes=passes),
        segment_examples(held_out, tokenizer, seed=SEED + 1, passes=1),
    )


def segment_examples(
    addresses: Sequence[Address], tokenizer: Tokenizer, *, seed: int, passes: int
) -> list[PretrainingExample]:
    """Pairs of segments of the addresses, sampled anew in each pass through them.

    Args:
        addresses: at least two.
        tokenizer: with BERT's special tokens.
        seed: of the sampling.
        passes: how often the text is read, at least 1.

    >>> from bertbook.tokenization import bert_tokenizer
    >>> from bertbook.wordpiece import BERT_SPECIAL_TOKENS
    >>> tokenizer = bert_tokenizer([*BERT_SPECIAL_TOKENS, "rain", "."])
    >>> texts = ["Rain. " * 200, "Rain rain. " * 200]
    >>> addresses = [Address(1800, "A", text) for text in texts]
    >>> examples = segment_examples(addresses, tokenizer, seed=0, passes=2)
    >>> sorted({example.next_sentence_label for example in examples})
    [0, 1]
    """
    sentences = [split_sentences(address.text) for address in addresses]
    documents = encode_sentences(sentences, tokenizer)
    generator = torch.Generator().manual_seed(seed)
    pairs = chain.from_iterable(
        sample_segments(documents, max_length=MAX_LENGTH, generator=generator)
        for _ in range(passes)
    )
    special = special_ids(tokenizer.get_vocab())
    return pair_examples(list(pairs), special=special, max_length=MAX_LENGTH)


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
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return BertForPreTraining(config)


def held_out_batches(text: PretrainingText) -> list[Batch]:
    """The held-out examples, each once, under masks that are always the same.

    >>> texts = [f"Rain fell in {year}. " * 30 for year in range(1800, 1940, 7)]
    >>> addresses = [Address(1800, "A", text) for text in texts]
    >>> text = prepare_text(addresses, vocab_size=50)
    >>> [batch] = held_out_batches(text)
    >>> len(batch["input_ids"]) == len(text.held_out)
    True
    """
    return evaluation_batches(
        text.held_out,
        special=text.special,
        batch_size=EVALUATION_BATCH_SIZE,
        seed=SEED,
    )


def pretraining_run(
    text: PretrainingText, settings: TrainingSettings, *, world: World
) -> Run:
    """A new model, with batches of the text that are masked anew at each step.

    A GPU computes in bfloat16 if it can. A CPU computes in float32, also where it could
    do otherwise, so that the result can be checked on every machine.

    >>> texts = [f"Rain fell in {year}. " * 30 for year in range(1800, 1940, 7)]
    >>> addresses = [Address(1800, "A", text) for text in texts]
    >>> text = prepare_text(addresses, vocab_size=50)
    >>> pretraining_run(text, SETTINGS, world=World()).trainer.steps_done
    0
    """
    special = text.special
    if world.device.type == "cuda":
        settings = replace(settings, precision=choose_precision(world.device))

    def collate(examples, *, generator):
        return PretrainingCollator(special, generator=generator)(examples)

    batches = ShuffledBatches(
        text.training, collate, batch_size=BATCH_SIZE, seed=settings.seed
    )
    model = new_pretraining_model(text.tokenizer, seed=settings.seed)
    trainer = Trainer(model, batches, settings, parts=BOTH_TASKS, world=world)
    held_out = held_out_batches(text)
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
    """The values of the result: curve, evaluations, and what a unigram guess gets.

    >>> texts = [f"Rain fell in {year}. " * 30 for year in range(1800, 1940, 7)]
    >>> addresses = [Address(1800, "A", text) for text in texts]
    >>> text = prepare_text(addresses, vocab_size=50)
    >>> log = RunLog(losses={"mlm": [3.0] * 50}, evaluations=[{"step": 50}])
    >>> summarize_pretraining(log, text)["curve"]
    {'step': [50], 'mlm': [3.0]}
    """
    loss, accuracy = unigram_baseline(
        torch.cat([example.input_ids for example in text.training]),
        torch.cat([batch["labels"].flatten() for batch in held_out_batches(text)]),
        special=text.special,
    )
    return {
        "curve": curve_of(log, every=CURVE_EVERY),
        "evaluations": [
            {name: round(number, 4) for name, number in numbers.items()}
            for numbers in log.evaluations
        ],
        "unigram": {"mlm_loss": round(loss, 4), "mlm_accuracy": round(accuracy, 4)},
        "training_examples": len(text.training),
        "held_out_examples": len(text.held_out),
    }


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


@cache
def whole_text() -> PretrainingText:
    """All addresses, prepared once in a process, which takes a while.

    >>> whole_text.cache_info().currsize  # importing prepares nothing
    0
    """
    return prepare_text(load_addresses(), vocab_size=VOCAB_SIZE, passes=PASSES)


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
