"""Both sides or the left side only: the same BERT under two masks and two objectives.

Three arms, of one size, on the same text, for as many steps:

- bidirectional: masked tokens, seen from both sides. The baseline of all comparisons.
- causal: the same masked tokens, seen from the left side only.
- twin: the causal model that is trained for the next token, at every place.

When it is trained, each is asked for the next token of held-out text. The first and the
last also write on, from the same beginnings.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from bertbook.baselines import unigram_baseline
from bertbook.batches import PretrainingCollator
from bertbook.experiments.arm_summary import arm_of, summarize_arms
from bertbook.experiments.distributed import Batch
from bertbook.experiments.next_token import (
    NextLogits,
    ask_for_next,
    left_only,
    next_by_filling,
    next_by_reading,
    next_token_loss,
    write_on,
)
from bertbook.experiments.recording import Experiment, Numbers, RunLog
from bertbook.experiments.small import (
    EVALUATION_BATCH_SIZE,
    MAX_LENGTH,
    THREE_SEEDS,
    Arm,
    SmallText,
    evenly,
    masked_lm_arm,
    measure_ways,
    runs_of,
    small_text,
)

NEXT_TOKEN_SEQUENCES = 500  # held-out ones that are asked token by token, at most
PROMPTS = 3
PROMPT_LENGTH = 5  # tokens, with [CLS]
WRITTEN_TOKENS = 10
WRITING_SEED = 0
ENDINGS = ("nothing", "sep", "masks")  # behind the [MASK]; see with_gap


def bidirectional_arm(text: SmallText) -> Arm:
    """The baseline; at the end it is asked for the next token, and left to write.

    It is asked in three ways, so that nobody can say it was asked in the wrong one. It
    writes with a [SEP] behind the [MASK], as every sequence of its training ends. Its
    masked tokens are also asked for under a causal mask, which it never had.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> bidirectional_arm(one_sentence_text("It rains.")).asked
    'mlm'
    """
    arm = masked_lm_arm(text)
    left = [left_only(batch) for batch in arm.held_out]

    def finish(model: nn.Module) -> dict[str, Any]:
        found = arm.finish(model) | measure_ways(model, {"left_only": left})
        for ending in ENDINGS:
            ask = partial(next_by_filling, model, special=text.special, ending=ending)
            found |= measure_next(ending, model, ask, text)
        ask = partial(next_by_filling, model, special=text.special, ending="sep")
        return {**found, "written": written_texts(model, ask, text)}

    return arm._replace(finish=finish)


def causal_arm(text: SmallText) -> Arm:
    """The baseline with a causal mask, in training and where it is measured.

    At the end, the masked tokens are also asked for without it: slide 21's proposal.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> causal_arm(one_sentence_text("It rains.")).held_out[0]["attention_mask"].dim()
    3
    """
    arm = masked_lm_arm(text)

    def finish(model: nn.Module) -> dict[str, Any]:
        ask = partial(
            next_by_filling, model, special=text.special, ending="nothing", causal=True
        )
        return {
            **measure_ways(model, {"both_sides": arm.held_out}),
            **measure_next("nothing", model, ask, text),
        }

    held_out = [left_only(batch) for batch in arm.held_out]
    return arm._replace(held_out=held_out, change=left_only, finish=finish)


def twin_arm(text: SmallText) -> Arm:
    """The causal model that is asked for the next token at every place.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> twin_arm(one_sentence_text("It rains.")).asked
    'next'
    """

    def finish(model: nn.Module) -> dict[str, Any]:
        ask = partial(next_by_reading, model)
        found = measure_next("reading", model, ask, text)
        return {**found, "written": written_texts(model, ask, text)}

    return Arm(
        text.special,
        ask_for_next(text.training, text.special),
        next_token_batches(text),
        change=left_only,
        finish=finish,
        asked="next",
    )


def next_token_batches(text: SmallText) -> list[Batch]:
    """The held-out examples, each once, asked for every next token.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> [batch] = next_token_batches(one_sentence_text("It rains."))
    >>> batch["input_ids"][0, 1:9].equal(batch["labels"][0, :8])
    True
    """
    examples = ask_for_next(text.held_out, text.special)
    collate = PretrainingCollator(text.special, generator=torch.Generator())
    return [  # the collator draws nothing, since nothing is masked
        left_only(collate(examples[start : start + EVALUATION_BATCH_SIZE]))
        for start in range(0, len(examples), EVALUATION_BATCH_SIZE)
    ]


def full_sequences(text: SmallText, most: int) -> Tensor:
    """Held-out sequences of the full length, (B, MAX_LENGTH), from all times.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> len(full_sequences(one_sentence_text("It rains."), most=2))
    2
    """
    examples = [example.input_ids for example in text.held_out]
    full = [ids for ids in examples if len(ids) == MAX_LENGTH]
    return torch.stack(evenly(full, most))


def measure_next(
    way: str, model: nn.Module, next_logits: NextLogits, text: SmallText
) -> Numbers:
    """Loss, accuracy and perplexity of held-out next tokens, after the way to ask.

    Each token gets a probability from what is left of it alone, so the exponential of
    the loss is a perplexity here, for the masked models too.

    >>> from bertbook.experiments.small import new_small_model, one_sentence_text
    >>> text = one_sentence_text("It rains.")
    >>> model = new_small_model(seed=0, vocab_size=text.special.vocab_size)
    >>> list(measure_next("reading", model, partial(next_by_reading, model), text))
    ['reading_next_loss', 'reading_next_accuracy', 'reading_perplexity']
    """
    device = next(model.parameters()).device
    ids = full_sequences(text, NEXT_TOKEN_SEQUENCES).to(device)
    loss, accuracy = next_token_loss(model, next_logits, ids, text.special)
    return {
        f"{way}_next_loss": loss,
        f"{way}_next_accuracy": accuracy,
        f"{way}_perplexity": math.exp(loss),
    }


def written_texts(
    model: nn.Module, next_logits: NextLogits, text: SmallText
) -> list[str]:
    """How the model goes on after each prompt: without the prompt, as text.

    Each begins with three dots, so that a result never takes one for a path.

    >>> from bertbook.experiments.small import new_small_model, one_sentence_text
    >>> text = one_sentence_text("It rains.")
    >>> model = new_small_model(seed=0, vocab_size=text.special.vocab_size)
    >>> len(written_texts(model, partial(next_by_reading, model), text))
    3
    """
    device = next(model.parameters()).device
    ids = write_on(
        model,
        next_logits,
        prompts(text).to(device),
        text.special,
        count=WRITTEN_TOKENS,
        generator=torch.Generator().manual_seed(WRITING_SEED),
    )
    return [f"... {words}" for words in decoded(ids[:, PROMPT_LENGTH:], text)]


def prompts(text: SmallText) -> Tensor:
    """How some held-out sequences begin, (PROMPTS, PROMPT_LENGTH), [CLS] first.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> text = one_sentence_text("It rains.")
    >>> decoded(prompts(text), text)[0]
    'it rains. it'
    """
    return full_sequences(text, PROMPTS)[:, :PROMPT_LENGTH]


def decoded(ids: Tensor, text: SmallText) -> list[str]:
    """The words of each row.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> text = one_sentence_text("It rains.")
    >>> decoded(text.training[0].input_ids[None, :4], text)
    ['it rains.']
    """
    return [text.tokenizer.decode(row) for row in ids.tolist()]


ARMS: dict[str, Callable[[SmallText], Arm]] = {
    "bidirectional": bidirectional_arm,
    "causal": causal_arm,
    "twin": twin_arm,
}


def summarize_directions(logs: dict[str, RunLog], text: SmallText) -> dict[str, Any]:
    """The arms; what was written, by arm and seed; and what a unigram guess gets.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> log = RunLog(evaluations=[{"step": 0, "next_loss": 2.0, "written": ["It"]}])
    >>> text = one_sentence_text("It rains.")
    >>> summarize_directions({"twin-0": log}, text)["arms"]["twin"]["written"]
    [['It']]
    """
    arms = summarize_arms(logs)
    for label, log in logs.items():
        if "written" in log.evaluations[-1]:
            texts = log.evaluations[-1]["written"]
            arms[arm_of(label)].setdefault("written", []).append(texts)
    loss, accuracy = unigram_baseline(
        torch.cat([example.input_ids for example in text.training]),
        torch.cat([batch["labels"].flatten() for batch in text.held_out_batches()]),
        special=text.special,
    )
    return {
        "arms": arms,
        "prompts": decoded(prompts(text), text),
        "unigram": {"mlm_loss": round(loss, 4), "mlm_accuracy": round(accuracy, 4)},
    }


EXPERIMENT = Experiment(
    "directions",
    seeds=[*THREE_SEEDS],
    runs=runs_of(ARMS, seeds=THREE_SEEDS),
    summarize=lambda logs: summarize_directions(logs, small_text()),
)
