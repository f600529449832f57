"""Forgetting, measured: generated sentences, a small masked-LM run, and a fine-tuning.

The sentences come from a small grammar, so that there is something to learn and the
loss of a perfect model is known. A sentence has two halves, "the ADJECTIVE NOUN
VERB" and "the ADJECTIVE NOUN", each about one topic; every word belongs to one topic.
A hidden word can be narrowed down to its kind and topic from the words around it.

The models compute in float64: a training blows rounding up, and with sixteen digits the
printed ones are the same on every processor.
"""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.config import BertConfig
from bertbook.heads import BertForPreTraining, BertForSequenceClassification
from bertbook.masking import IGNORE_INDEX
from bertbook.model import initialize
from bertbook.outputs import logits_of

PAD, CLS, SEP, MASK, THE = range(5)  # the ids with a fixed meaning
NUM_TOPICS, NUM_KINDS, WORDS_EACH = 4, 3, 4  # kinds: adjective, noun, verb
GRAMMAR_VOCAB = 5 + NUM_TOPICS * NUM_KINDS * WORDS_EACH
PLAN = ("the", 0, 1, 2, "the", 0, 1)  # numbers are kinds; the first four are one half
FIRST_HALF = 4


def generate_sentences(topics: Tensor, generator: torch.Generator) -> Tensor:
    """One sentence of the grammar a row of topics, [CLS] in front and [SEP] behind.

    Args:
        topics: int64, shape (B, 2), in [0, 4): of the first and of the second half.
        generator: draws the words.

    Returns:
        input_ids, int64, shape (B, 9).

    Raises:
        ValueError: if topics has another shape or holds anything else.

    >>> input_ids = generate_sentences(torch.tensor([[3, 0]]), torch.Generator())
    >>> input_ids.shape, input_ids[0, 0].item() == CLS, input_ids[0, 8].item() == SEP
    (torch.Size([1, 9]), True, True)
    """
    if topics.dim() != 2 or topics.shape[1] != 2:
        raise ValueError(f"topics must have shape (B, 2), got {tuple(topics.shape)}")
    if ((topics < 0) | (topics >= NUM_TOPICS)).any():
        raise ValueError(f"topics must be in [0, {NUM_TOPICS}), got {topics.tolist()}")
    input_ids = torch.full((len(topics), len(PLAN) + 2), THE)
    input_ids[:, 0], input_ids[:, -1] = CLS, SEP
    for place, kind in enumerate(PLAN):
        if kind != "the":
            topic = topics[:, int(place >= FIRST_HALF)]
            word = torch.randint(0, WORDS_EACH, (len(topics),), generator=generator)
            first_id = 5 + (topic * NUM_KINDS + kind) * WORDS_EACH
            input_ids[:, 1 + place] = first_id + word
    return input_ids


def topic_task(num_sentences: int, seed: int) -> tuple[Tensor, Tensor]:
    """Which of four topics is the first half about? Any word of it tells.

    Returns:
        input_ids, int64, shape (num_sentences, 9); labels, int64, in [0, 4).

    Raises:
        ValueError: if num_sentences is not positive.

    >>> input_ids, labels = topic_task(5, seed=0)
    >>> input_ids.shape, labels.shape
    (torch.Size([5, 9]), torch.Size([5]))
    """
    generator = torch.Generator().manual_seed(seed)
    topics = draw_topics(num_sentences, generator)
    return generate_sentences(topics, generator), topics[:, 0]


def same_topic_task(num_sentences: int, seed: int) -> tuple[Tensor, Tensor]:
    """Are both halves about one topic? No single word tells; about half are.

    Returns:
        input_ids, int64, shape (num_sentences, 9); labels, int64: 1 = the same.

    Raises:
        ValueError: if num_sentences is not positive.

    >>> same_topic_task(1000, seed=0)[1].sum().item()
    524
    """
    generator = torch.Generator().manual_seed(seed)
    topics = draw_topics(num_sentences, generator)
    shape = (num_sentences,)
    same = torch.randint(0, 2, shape, generator=generator)
    other = torch.randint(1, NUM_TOPICS, shape, generator=generator)  # 1, 2 or 3 on
    topics[:, 1] = (topics[:, 0] + (1 - same) * other) % NUM_TOPICS
    return generate_sentences(topics, generator), same


def draw_topics(num_sentences: int, generator: torch.Generator) -> Tensor:
    """Independent topics of both halves, int64, shape (num_sentences, 2).

    >>> draw_topics(0, torch.Generator())
    Traceback (most recent call last):
    ValueError: num_sentences must be at least 1, got 0
    """
    if num_sentences < 1:
        raise ValueError(f"num_sentences must be at least 1, got {num_sentences}")
    return torch.randint(0, NUM_TOPICS, (num_sentences, 2), generator=generator)


def hide_one_word(
    input_ids: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Replace one word a sentence by [MASK]; never [CLS], [SEP] or "the".

    BERT also leaves or swaps some of the words that it selects; here all are hidden.

    Returns:
        masked ids and labels, both int64 of shape (B, T). A label is the hidden id, or
        IGNORE_INDEX where nothing is hidden. input_ids stays as it was.

    >>> input_ids, _ = topic_task(1, seed=0)
    >>> masked, labels = hide_one_word(input_ids, torch.Generator())
    >>> int((masked == MASK).sum()), int((labels != IGNORE_INDEX).sum())
    (1, 1)
    """
    is_word = (input_ids > THE).float()
    chosen = torch.multinomial(is_word, 1, generator=generator)  # (B, 1)
    labels = torch.full_like(input_ids, IGNORE_INDEX)
    labels.scatter_(1, chosen, input_ids.gather(1, chosen))
    return input_ids.scatter(1, chosen, MASK), labels


def hidden_word_loss(
    model: BertForPreTraining, masked: Tensor, labels: Tensor
) -> Tensor:
    """Mean cross-entropy (nats) at the hidden positions, a scalar.

    >>> model = BertForPreTraining(grammar_config())
    >>> masked, labels = hide_one_word(topic_task(8, seed=0)[0], torch.Generator())
    >>> hidden_word_loss(model, masked, labels).shape
    torch.Size([])
    """
    return model(masked, labels=labels).masked_lm_loss


@torch.no_grad()
def held_out_loss(model: BertForPreTraining) -> float:
    """The masked-LM loss on the same 500 sentences each time, which no run trains on.

    Knowing kind and topic leaves four words: ln 4 = 1.39 nats is the best possible.

    >>> held_out_loss(BertForPreTraining(grammar_config())) > 1.38
    True
    """
    input_ids, _ = topic_task(500, seed=99)
    return hidden_word_loss(
        model, *hide_one_word(input_ids, torch.Generator().manual_seed(99))
    ).item()


def grammar_config() -> BertConfig:
    """A BERT of two narrow layers, without dropout, for the grammar's sentences.

    >>> grammar_config().num_hidden_layers
    2
    """
    return BertConfig(
        vocab_size=GRAMMAR_VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=len(PLAN) + 2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,  # BERT's 0.02 suits a width of 768; this is 32
    )


def pretrain_on_grammar(*, steps: int = 240, seed: int = 0) -> BertForPreTraining:
    """Masked-LM training on fresh sentences: linear warm-up, then linear decay.

    torch's global stream is left as it was.

    Args:
        steps: batches of 32 sentences, at least 1.
        seed: for the first weights and the sentences.

    Raises:
        ValueError: if steps is not positive.

    >>> sum(p.numel() for p in pretrain_on_grammar(steps=1).bert.parameters())
    20256
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertForPreTraining(grammar_config()).double()
        # Again in float64: float32 draws differ in late digits between processors.
        initialize(model, std=model.bert.config.initializer_range)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 20, max(1 - step / steps, 0.05))
    )
    for _ in range(steps):
        input_ids = generate_sentences(draw_topics(32, generator), generator)
        optimizer.zero_grad()
        hidden_word_loss(model, *hide_one_word(input_ids, generator)).backward()
        optimizer.step()
        schedule.step()
    return model


def classifier_from(
    pretrained: BertForPreTraining, *, num_labels: int, seed: int = 1
) -> tuple[BertForSequenceClassification, BertForPreTraining]:
    """A classifier on a copy of the encoder, and the language model on the same copy.

    What fine-tuning does to the classifier's encoder, it does to the language model's.
    The pretrained model itself is left alone.

    Args:
        pretrained: what to copy.
        num_labels: classes of the new head.
        seed: for the head; torch's global stream is left as it was.

    >>> classifier, language_model = classifier_from(
    ...     BertForPreTraining(grammar_config()), num_labels=4)
    >>> classifier.bert is language_model.bert
    True
    """
    language_model = copy.deepcopy(pretrained)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        classifier = BertForSequenceClassification(
            pretrained.bert.config, num_labels=num_labels
        )
        classifier.to(pretrained.cls["predictions"].bias.dtype)
        initialize(classifier.classifier, std=pretrained.bert.config.initializer_range)
    classifier.bert = language_model.bert
    return classifier, language_model


def fine_tune(
    model: nn.Module,
    input_ids: Tensor,
    labels: Tensor,
    *,
    epochs: int,
    learning_rate: float,
    groups: list[dict] | None = None,
    warmup_steps: int = 0,
    batch_size: int = 32,
    seed: int = 0,
) -> list[float]:
    """Train what is trainable, in shuffled batches, at a constant rate after warm-up.

    Args:
        model: maps input_ids to logits (B, C).
        input_ids: int64, shape (N, T).
        labels: int64, shape (N,), in [0, C).
        epochs: passes over the data, at least 1.
        learning_rate: Adam's, greater than 0.
        groups: parameter groups with rates of their own; None: one group.
        warmup_steps: over so many steps the rate grows linearly to its full size.
        batch_size: at least 1; the last batch of an epoch may be smaller.
        seed: for the order of the examples.

    Returns:
        the loss of every step, before it.

    Raises:
        ValueError: if a number is out of range, or nothing is trainable.

    >>> model = nn.Sequential(nn.Embedding(53, 4), nn.Flatten(1), nn.Linear(36, 4))
    >>> losses = fine_tune(model, *topic_task(64, 0), epochs=9, learning_rate=1e-2)
    >>> len(losses), losses[0] > losses[-1]
    (18, True)
    """
    for name, number in {"epochs": epochs, "batch_size": batch_size}.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}")
    if not learning_rate > 0:
        raise ValueError(f"learning_rate must be greater than 0, got {learning_rate}")
    if warmup_steps < 0:
        raise ValueError(f"warmup_steps must not be negative, got {warmup_steps}")
    trainable = [p for p in model.parameters() if p.requires_grad]
    if not trainable:
        raise ValueError("model has nothing to train: unfreeze a part")
    optimizer = torch.optim.Adam(groups or trainable, lr=learning_rate, fused=True)
    warm_up = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / (warmup_steps + 1))
    )
    generator = torch.Generator().manual_seed(seed)
    losses = []
    for _ in range(epochs):
        order = torch.randperm(len(input_ids), generator=generator)
        for batch in order.split(batch_size):
            optimizer.zero_grad()
            logits = logits_of(model(input_ids[batch]))
            loss = F.cross_entropy(logits, labels[batch])
            loss.backward()
            optimizer.step()
            warm_up.step()
            losses.append(loss.item())
    return losses
