"""How fast text becomes batches, beside transformers, and what length buckets save: one run, one machine.

    .venv/bin/python benchmarks/text.py

Masking: tokens per second of mask_tokens and of transformers' DataCollatorForLanguageModeling on the same
batches. That collator is timed twice: as it works by itself, looking up which tokens are special, and with
that already given, which leaves it less to do than mask_tokens, which always looks.

Buckets: the same examples (whole sentences of the addresses, up to 128 tokens) in random batches, each padded
to its longest, and in length buckets: positions that a model computes, and seconds of a small model's forward.

Everything that is compared is timed in turns, and the median counts.
"""

import statistics
import time
from collections.abc import Callable

import torch
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

from bertbook.batches import LengthBuckets, PretrainingCollator, padding_share
from bertbook.config import BertConfig
from bertbook.corpus import hold_out, load_addresses, split_sentences
from bertbook.masking import mask_tokens
from bertbook.model import BertModel
from bertbook.pretraining_data import PretrainingExample, fill_sequences, sequence_examples
from bertbook.tokenization import encode_sentences, train_tokenizer
from bertbook.wordpiece import BERT_SPECIAL_TOKENS, SpecialIds, special_ids

THREADS = 1  # as a data loader's worker has, and steady where other programs run
MAX_LENGTH = 128
BATCH_SIZE = 32
NUM_EXAMPLES = 16 * BATCH_SIZE


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def medians(runs: dict[str, Callable[[], object]], *, repeats: int) -> dict[str, float]:
    """The median seconds of each, timed in turns after one round that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(found[1:]) for name, found in seconds.items()}


def compare_masking(tokenizer, special: SpecialIds) -> None:
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **dict(zip(names, BERT_SPECIAL_TOKENS, strict=True)))
    collator = DataCollatorForLanguageModeling(wrapped)
    collator.generator = generator = seeded()
    print("masking, million tokens per second   mask_tokens   given special   by itself   ratio   ratio")
    for B, T in ((32, 64), (64, 64), (32, 128), (256, 128), (32, 512)):
        ids = torch.randint(5, special.vocab_size, (B, T), generator=generator)
        ids[:, 0], ids[:, -1] = special.cls, special.sep
        is_special = ids < 5
        runs = {
            "ours": lambda ids=ids: mask_tokens(ids, generator=generator, **special.for_masking),
            "given": lambda ids=ids, known=is_special: collator.torch_mask_tokens(
                ids.clone(), special_tokens_mask=known
            ),
            "alone": lambda ids=ids: collator.torch_mask_tokens(ids.clone()),
        }
        found = medians(runs, repeats=100)
        speeds = [B * T / seconds / 1e6 for seconds in found.values()]
        print(
            f"  {f'{B} x {T}':<34} {speeds[0]:11.2f} {speeds[1]:15.2f} {speeds[2]:11.2f}"
            f" {speeds[0] / speeds[1]:7.2f} {speeds[0] / speeds[2]:7.2f}",
            flush=True,
        )


def real_examples(tokenizer, special: SpecialIds, texts: list[str]) -> list[PretrainingExample]:
    documents = encode_sentences([split_sentences(text) for text in texts], tokenizer)
    sequences = fill_sequences(documents, max_length=MAX_LENGTH, whole_sentences=True)
    chosen = torch.randperm(len(sequences), generator=seeded())[:NUM_EXAMPLES].tolist()
    return sequence_examples([sequences[i] for i in chosen], special=special, max_length=MAX_LENGTH)


def compare_buckets(special: SpecialIds, examples: list[PretrainingExample]) -> None:
    lengths = [len(example.input_ids) for example in examples]
    config = BertConfig(
        vocab_size=special.vocab_size,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=MAX_LENGTH,
    )
    torch.manual_seed(0)
    model = BertModel(config).eval()
    collate = PretrainingCollator(special, generator=seeded())
    epochs = {
        name: list(LengthBuckets(lengths, batch_size=BATCH_SIZE, pool_batches=pool, generator=seeded()))
        for name, pool in (("random batches", 1), ("length buckets", 50))
    }
    batches = {name: [collate([examples[i] for i in batch]) for batch in epoch] for name, epoch in epochs.items()}

    @torch.inference_mode()
    def forward(epoch) -> None:
        for batch in epoch:
            inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
            model(**inputs)

    found = medians({name: lambda epoch=epoch: forward(epoch) for name, epoch in batches.items()}, repeats=3)
    print(f"\n{len(examples)} examples of {min(lengths)} to {max(lengths)} tokens, {sum(lengths)} in all")
    print("                  positions   padding   forward")
    for name, epoch in epochs.items():
        positions = sum(batch["input_ids"].numel() for batch in batches[name])
        print(f"  {name}  {positions:9}  {padding_share(lengths, epoch):7.1%}  {found[name]:6.2f} s")
    print(f"  time of random batches / of length buckets: {found['random batches'] / found['length buckets']:.2f}")


def main() -> None:
    torch.set_num_threads(THREADS)
    training, _ = hold_out([address.text for address in load_addresses()])
    tokenizer = train_tokenizer(training)
    special = special_ids(tokenizer.get_vocab())
    compare_masking(tokenizer, special)
    compare_buckets(special, real_examples(tokenizer, special, training))


if __name__ == "__main__":
    main()
