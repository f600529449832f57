"""Small BERTs that differ in one thing: the settings, text and run of all comparisons.

Two layers of 128 features learn in minutes what a larger model learns in hours: to
leave the plateau. Of one seed, every arm of every comparison has the same first weights
and the same sequences in the same order, so that arms can be compared seed by seed.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from bertbook.batches import PretrainingCollator, evaluation_batches
from bertbook.config import BertConfig
from bertbook.corpus import Address, hold_out, load_addresses, split_sentences
from bertbook.experiments.data_order import ShuffledBatches
from bertbook.experiments.distributed import Batch, World
from bertbook.experiments.evaluation import evaluate_pretraining
from bertbook.experiments.recording import Numbers, Run
from bertbook.experiments.training_loop import (
    LABELLED,
    LossPart,
    Trainer,
    TrainingSettings,
    count_labelled,
)
from bertbook.heads import BertForMaskedLM, BertForPreTraining
from bertbook.masking import IGNORE_INDEX, SELECTION_RATE, ordinary_ids
from bertbook.pretraining_data import (
    PretrainingExample,
    fill_sequences,
    sequence_examples,
)
from bertbook.tokenization import bert_tokenizer, encode_sentences, train_tokenizer
from bertbook.wordpiece import (
    BERT_SPECIAL_TOKENS,
    SpecialIds,
    basic_tokenize,
    special_ids,
)

STEPS = 4000
LEARNING_RATE = 1e-3
WARMUP_STEPS = 300
BATCH_SIZE = 64
MAX_LENGTH = 16  # tokens of a sequence, marks included; short ones are learned sooner
VOCAB_SIZE = 2048
LAYERS = 2
HIDDEN_SIZE = 128
HEADS = 2
INITIALIZER_RANGE = 0.02
DROPOUT = 0.0  # so short a training is far from learning the text by heart
EVALUATE_EVERY = 250  # steps
HELD_OUT_EXAMPLES = 2000  # at most
EVALUATION_BATCH_SIZE = 200
EVALUATION_SEED = 0
THREE_SEEDS = (0, 1, 2)
TWO_SEEDS = (0, 1)

Documents = Sequence[Sequence[list[int]]]  # ids of sentences, as encode_sentences gives


class SmallText(NamedTuple):
    """What the arms read, and what is held out of it.

    >>> SmallText(bert_tokenizer(BERT_SPECIAL_TOKENS), [], []).special.mask
    4
    """

    tokenizer: Tokenizer
    training: list[PretrainingExample]
    held_out: list[PretrainingExample]

    @property
    def special(self) -> SpecialIds:
        """The ids of the special tokens."""
        return special_ids(self.tokenizer.get_vocab())

    def held_out_batches(self) -> list[Batch]:
        """The held-out examples, each once, under masks that never change."""
        return evaluation_batches(
            self.held_out,
            special=self.special,
            batch_size=EVALUATION_BATCH_SIZE,
            seed=EVALUATION_SEED,
        )


MakeExamples = Callable[[Documents, SpecialIds], list[PretrainingExample]]


def filled_examples(
    documents: Documents, special: SpecialIds
) -> list[PretrainingExample]:
    """Consecutive sentences of a document, up to the full length: no pairs.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> [example] = filled_examples([[[5, 6], [7]]], special)
    >>> example.input_ids
    tensor([2, 5, 6, 7, 3])
    """
    sequences = fill_sequences(documents, max_length=MAX_LENGTH)
    return sequence_examples(sequences, special=special, max_length=MAX_LENGTH)


def prepare_small_text(
    addresses: Sequence[Address],
    make_examples: MakeExamples = filled_examples,
    *,
    vocab_size: int,
) -> SmallText:
    """Hold out every tenth address; learn the vocabulary from the others.

    Args:
        addresses: in order, at least ten.
        make_examples: makes examples of documents.
        vocab_size: V.

    >>> texts = [f"Rain fell in {year}. " * 30 for year in range(1800, 1940, 7)]
    >>> addresses = [Address(1800, "A", text) for text in texts]
    >>> text = prepare_small_text(addresses, vocab_size=50)
    >>> len(text.training) > len(text.held_out)
    True
    """
    training, held_out = hold_out(addresses)
    tokenizer = train_tokenizer([a.text for a in training], vocab_size=vocab_size)
    special = special_ids(tokenizer.get_vocab())
    examples = [
        make_examples(
            encode_sentences([split_sentences(a.text) for a in part], tokenizer),
            special,
        )
        for part in (training, held_out)
    ]
    return SmallText(tokenizer, examples[0], evenly(examples[1], HELD_OUT_EXAMPLES))


def evenly(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many of the items, at even distances from the first; the last may go.

    >>> evenly("abcdefg", 3)
    ['a', 'c', 'e']
    """
    return list(items[:: max(1, len(items) // most)][:most])


def one_sentence_text(sentence: str) -> SmallText:
    """A text that says one thing again and again: enough to try an arm on it.

    >>> text = one_sentence_text("It rains.")
    >>> text.tokenizer.decode(text.training[0].input_ids[:7].tolist())
    'it rains. it rains.'
    """
    pieces = dict.fromkeys(basic_tokenize(sentence))
    tokenizer = bert_tokenizer([*BERT_SPECIAL_TOKENS, *pieces])
    special = special_ids(tokenizer.get_vocab())
    [ids] = encode_sentences([[sentence]], tokenizer)
    examples = filled_examples([ids * MAX_LENGTH], special)
    return SmallText(tokenizer, examples, examples)


@cache
def small_text(make_examples: MakeExamples = filled_examples) -> SmallText:
    """All addresses, prepared once in a process, which takes a while.

    >>> small_text.cache_info().maxsize is None  # importing prepares nothing
    True
    """
    return prepare_small_text(load_addresses(), make_examples, vocab_size=VOCAB_SIZE)


def new_small_model(
    *, seed: int, vocab_size: int, kind: type[nn.Module] = BertForMaskedLM
) -> nn.Module:
    """A small BERT that knows nothing yet; of one seed, also of another kind, equal.

    A kind without pooler draws fewer random numbers. So that every parameter which two
    kinds have in common begins equal, all take theirs from the largest.

    >>> masked_lm = new_small_model(seed=0, vocab_size=50)
    >>> both = new_small_model(seed=0, vocab_size=50, kind=BertForPreTraining)
    >>> torch.equal(masked_lm.cls["predictions"].transform["dense"].weight,
    ...             both.cls["predictions"].transform["dense"].weight)
    True
    """
    config = BertConfig(
        vocab_size=vocab_size,
        hidden_size=HIDDEN_SIZE,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * HIDDEN_SIZE,
        max_position_embeddings=MAX_LENGTH,
        hidden_dropout_prob=DROPOUT,
        attention_probs_dropout_prob=DROPOUT,
        initializer_range=INITIALIZER_RANGE,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        weights = BertForPreTraining(config).state_dict()
        model = kind(config)
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    return model


def nothing_more(model: nn.Module) -> dict[str, Any]:
    """What an arm measures at its end, if it measures nothing of its own.

    >>> nothing_more(nn.Linear(1, 1))
    {}
    """
    return {}


class Arm(NamedTuple):
    """One arm of a comparison: all in which it may differ from another.

    >>> arm = Arm(SpecialIds(0, 1, 2, 3, 4, vocab_size=9), [], [])
    >>> arm._replace(probability=0.4).probability, arm.probability
    (0.4, 0.15)
    """

    special: SpecialIds
    training: Sequence[PretrainingExample]
    held_out: list[Batch]  # the curve's
    probability: float = SELECTION_RATE  # of masking, where it is not masked already
    change: Callable[[Batch], Batch] = dict  # done to each training batch
    finish: Callable[[nn.Module], dict[str, Any]] = nothing_more  # measured at the end
    asked: str = "mlm"  # the name of what is asked: mlm_loss, mlm_accuracy
    kind: type[nn.Module] = BertForMaskedLM
    parts: dict[str, LossPart] = LABELLED

    def collate(
        self, examples: Sequence[PretrainingExample], *, generator: torch.Generator
    ) -> Batch:
        """A training batch. The same generator selects the same tokens in each arm."""
        collator = PretrainingCollator(
            self.special, generator=generator, probability=self.probability
        )
        return self.change(collator(examples))


def masked_lm_arm(text: SmallText) -> Arm:
    """The baseline of all comparisons: 15 %, 80/10/10, masked anew at each step.

    >>> masked_lm_arm(one_sentence_text("It rains.")).probability
    0.15
    """
    held_out = text.held_out_batches()
    ways = asked_three_ways(held_out, text.special)
    return Arm(
        text.special,
        text.training,
        held_out,
        finish=lambda model: measure_ways(model, ways),
    )


def small_settings(seed: int) -> TrainingSettings:
    """How every arm is trained.

    >>> small_settings(1).seed
    1
    """
    return TrainingSettings(
        steps=STEPS,
        learning_rate=LEARNING_RATE,
        warmup_steps=WARMUP_STEPS,
        seed=seed,
    )


def small_run(arm: Arm, *, seed: int, world: World) -> Run:
    """A new model, and the arm's batches and evaluation.

    At the end of the run, the evaluation also has what the arm measures then, and how
    much was read.

    >>> arm = masked_lm_arm(one_sentence_text("It rains."))
    >>> run = small_run(arm, seed=0, world=World())
    >>> run.trainer.batches[0]["input_ids"].shape == (BATCH_SIZE, MAX_LENGTH)
    True
    """
    model = new_small_model(seed=seed, vocab_size=arm.special.vocab_size, kind=arm.kind)
    batches = ShuffledBatches(
        arm.training, arm.collate, batch_size=BATCH_SIZE, seed=seed
    )
    settings = small_settings(seed)
    trainer = Trainer(model, batches, settings, parts=arm.parts, world=world)

    def evaluate() -> dict[str, Any]:
        found = {
            name.replace("mlm", arm.asked): number
            for name, number in evaluate_pretraining(model, arm.held_out).items()
        }
        if trainer.steps_done < settings.steps:
            return found
        read = count_read(batches, settings.steps, pad=arm.special.pad)
        return {**found, **arm.finish(model), **read}

    return Run(trainer, evaluate=evaluate, evaluate_every=EVALUATE_EVERY)


def runs_of(
    arms: dict[str, Callable[[SmallText], Arm]],
    *,
    seeds: Sequence[int],
    make_examples: MakeExamples = filled_examples,
) -> dict[str, Callable[[World], Run]]:
    """A run of each arm with each seed, by a label such as "causal-0".

    Args:
        arms: by its name, what makes an arm of the text.
        make_examples: see small_text, which is asked for the text when a run begins.

    >>> list(runs_of({"causal": masked_lm_arm}, seeds=[0, 1]))
    ['causal-0', 'causal-1']
    """

    def prepare(make_arm: Callable[[SmallText], Arm], seed: int, world: World) -> Run:
        return small_run(make_arm(small_text(make_examples)), seed=seed, world=world)

    return {
        f"{name}-{seed}": partial(prepare, make_arm, seed)
        for name, make_arm in arms.items()
        for seed in seeds
    }


def count_read(batches: ShuffledBatches, steps: int, *, pad: int) -> Numbers:
    """How much a run has read: its batches, made once more and counted.

    Returns:
        tokens (without padding), predictions that were asked for, and epochs.

    >>> def collate(examples, *, generator):
    ...     ids = torch.tensor(examples)
    ...     return {"input_ids": ids, "labels": ids}
    >>> batches = ShuffledBatches([[5, 6], [7, 0]], collate, batch_size=1, seed=0)
    >>> count_read(batches, 4, pad=0)
    {'tokens': 6, 'predictions': 8, 'epochs': 2.0}
    """
    tokens = predictions = 0
    for step in range(steps):
        batch = batches[step]
        tokens += int((batch["input_ids"] != pad).sum())
        predictions += count_labelled(batch)
    epochs = steps * batches.batch_size / len(batches.examples)
    return {"tokens": tokens, "predictions": predictions, "epochs": epochs}


def asked_three_ways(
    batches: Sequence[Batch], special: SpecialIds
) -> dict[str, list[Batch]]:
    """The same tokens asked for, whatever stands there: [MASK], themselves, another.

    Args:
        batches: masked; where they are is all that counts.

    Returns:
        the batches with [MASK] at every selected place ("mask"), with the text as it
        was ("same"), and with a random piece at every selected place ("random").

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> batch = {"input_ids": torch.tensor([[2, 4, 6, 3]]),
    ...          "labels": torch.tensor([[-100, 5, -100, -100]])}
    >>> ways = asked_three_ways([batch], special)
    >>> {name: found["input_ids"].tolist() for name, [found] in ways.items()}
    {'mask': [[2, 4, 6, 3]], 'same': [[2, 5, 6, 3]], 'random': [[2, 8, 6, 3]]}
    """
    generator = torch.Generator().manual_seed(EVALUATION_SEED)
    marks = torch.tensor(sorted(special.for_masking["special_token_ids"]))
    ways: dict[str, list[Batch]] = {"mask": [], "same": [], "random": []}
    for batch in batches:
        labels = batch["labels"]
        ranks = torch.randint(
            special.vocab_size - len(marks), labels.shape, generator=generator
        )
        standing: dict[str, Tensor] = {
            "mask": torch.full_like(labels, special.mask),
            "same": labels,
            "random": ordinary_ids(ranks, marks),
        }
        for name, ids in standing.items():
            shown = torch.where(labels != IGNORE_INDEX, ids, batch["input_ids"])
            ways[name].append({**batch, "input_ids": shown})
    return ways


def measure_ways(model: nn.Module, ways: dict[str, list[Batch]]) -> Numbers:
    """Loss and accuracy of each way to ask, under names such as mask_loss.

    >>> model = new_small_model(seed=0, vocab_size=9)
    >>> batch = {"input_ids": torch.tensor([[2, 4, 3]]),
    ...          "labels": torch.tensor([[-100, 5, -100]])}
    >>> list(measure_ways(model, {"mask": [batch]}))
    ['mask_loss', 'mask_accuracy']
    """
    return {
        name.replace("mlm", way): number
        for way, batches in ways.items()
        for name, number in evaluate_pretraining(model, batches).items()
    }
