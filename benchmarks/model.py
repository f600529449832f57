"""How fast the model is, beside the public code: ratios from one run, on one machine.

    .venv/bin/python benchmarks/model.py

Both sides have the same weights, the same batch and as many threads. Each round measures every side once, in
turn, so that a slow minute of the machine meets all of them; a line gives the median of the rounds, and of the
rounds' ratios. Loss and gradients of a step are compared before it is timed. A step is forward, backward and
AdamW. Peak memory is that of the process that makes the steps, one process a side.

A masked-LM step has 15 % of its tokens labelled. Ours passes only these through the decoder.

The C library of Linux gives large freed tensors back to the system, and takes them again page by page. That
costs both models time that no code of theirs takes, and the products alone hardly any. So there the forward pass
is timed a second time, in a process that keeps what it has freed.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch
import transformers
from torch import nn

from bertbook.config import BertConfig
from bertbook.heads import BertForMaskedLM
from bertbook.masking import IGNORE_INDEX
from bertbook.model import BertModel

B, T, VOCAB_SIZE = 8, 128, 30522
SHAPES = {"base": BertConfig.base(), "mini": BertConfig(**vars(BertConfig.mini()) | {"vocab_size": VOCAB_SIZE})}
OURS, THEIRS = "ours", "transformers"
PRODUCTS = "its matrix products alone"
KEEPING = {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8589934592"}
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def build(side: str, shape: str, head: bool) -> nn.Module:
    """Without dropout, so that both sides compute the same."""
    sizes = vars(SHAPES[shape]) | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    torch.manual_seed(0)
    config = BertConfig(**sizes)
    if side == OURS:
        return (BertForMaskedLM if head else BertModel)(config)
    published = transformers.BertConfig(**config.to_dict())
    return (transformers.BertForMaskedLM if head else transformers.BertModel)(published)


def batch() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    input_ids = torch.randint(5, VOCAB_SIZE, (B, T), generator=generator)
    selected = torch.rand(B, T, generator=generator) < 0.15
    return {"input_ids": input_ids, "labels": torch.where(selected, input_ids, IGNORE_INDEX)}


class Step:
    """One training step of one side, as often as it is called."""

    def __init__(self, model: nn.Module, dtype: torch.dtype):
        self.model, self.batch = model.train(), batch()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
        self.autocast = torch.autocast("cpu", dtype, enabled=dtype != torch.float32)

    def gradients(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        with self.autocast:
            loss = self.model(**self.batch).loss
        loss.backward()
        return loss.detach()

    def __call__(self) -> None:
        self.gradients()
        self.optimizer.step()


def matrix_products(config: BertConfig):
    """The products of a forward pass alone, on numbers of the same shapes, laid out as nn.Linear holds its weights."""
    D, H, widened = config.hidden_size, config.num_attention_heads, config.intermediate_size
    x, wide = torch.randn(B * T, D), torch.randn(B * T, widened)
    square, up, down = torch.randn(D, D), torch.randn(widened, D), torch.randn(D, widened)
    heads = torch.randn(B * H, T, D // H)
    weights = torch.randn(B * H, T, T)

    def run() -> None:
        for _ in range(config.num_hidden_layers):
            for _ in range(4):
                x @ square.T
            heads @ heads.mT
            weights @ heads
            x @ up.T
            wide @ down.T

    return run


def seconds(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(title: str, runs: dict, rounds: int, bases: tuple[str, ...] = (THEIRS,)) -> None:
    """Time the runs in turn; print each one's median, and the ratio of each to the bases."""
    for run in runs.values():
        run()  # the first is slower: it allocates
    measured = [{name: seconds(run) for name, run in runs.items()} for _ in range(rounds)]
    print(f"\n{title}")
    for name in runs:
        took = statistics.median(times[name] for times in measured)
        ratios = [statistics.median(times[name] / times[base] for times in measured) for base in bases]
        compared = "   ".join(f"{ratio:5.2f} x {base}" for ratio, base in zip(ratios, bases, strict=True))
        print(f"    {name:<32} {1000 * took:9.1f} ms   {compared}", flush=True)


def compare_forward(rounds: int) -> None:
    ours, theirs = build(OURS, "base", head=False).eval(), build(THEIRS, "base", head=False).eval()
    ours.load_state_dict(theirs.state_dict())
    input_ids = batch()["input_ids"]
    with torch.inference_mode():
        gap = (ours(input_ids).last_hidden_state - theirs(input_ids).last_hidden_state).abs().max().item()
        assert gap < 1e-4, gap
        runs = {
            THEIRS: lambda: theirs(input_ids),
            OURS: lambda: ours(input_ids),
            PRODUCTS: matrix_products(ours.config),
        }
        compare(f"forward, base shape, {B} x {T}, float32", runs, rounds, bases=(THEIRS, PRODUCTS))


def compare_steps(shape: str, precision: str, rounds: int) -> None:
    ours, theirs = build(OURS, shape, head=True), build(THEIRS, shape, head=True)
    ours.load_state_dict(theirs.state_dict())
    steps = {THEIRS: Step(theirs, PRECISIONS[precision]), OURS: Step(ours, PRECISIONS[precision])}
    losses = {name: step.gradients() for name, step in steps.items()}
    found, expected = dict(ours.named_parameters()), dict(theirs.named_parameters())
    gaps = [(p.grad - expected[name].grad).abs().max() for name, p in found.items() if p.grad is not None]
    gap = max(torch.stack(gaps).max(), (losses[OURS] - losses[THEIRS]).abs()).item()
    if precision == "float32":
        assert gap < 1e-4, gap
    compare(
        f"masked-LM step, {shape} shape, {B} x {T}, {precision} (loss and gradients within {gap:.0e})", steps, rounds
    )


def peak(side: str, shape: str, precision: str) -> None:
    """Three steps of one side; print the most memory (MiB) that this process ever had.

    Linux counts a parent's memory as its child's in getrusage, so there its own record is read.
    """
    step = Step(build(side, shape, head=True), PRECISIONS[precision])
    for _ in range(3):
        step()
    status = Path("/proc/self/status")
    if status.exists():
        (kibibytes,) = re.findall(r"VmHWM:\s*(\d+) kB", status.read_text("utf-8"))
        print(int(kibibytes) // 1024)
    else:  # macOS, which counts bytes
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024**2)


def compare_peaks(shape: str, precision: str) -> None:
    command = [sys.executable, __file__, "--peak"]
    found = [
        int(subprocess.run([*command, side, shape, precision], capture_output=True, text=True, check=True).stdout)
        for side in (THEIRS, OURS)
    ]
    print(f"    peak memory of the process       {THEIRS} {found[0]} MiB, {OURS} {found[1]} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the model beside the public code.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--parts", nargs="+", choices=["forward", *SHAPES], default=["forward", *SHAPES])
    parser.add_argument("--precisions", nargs="+", choices=[*PRECISIONS], default=[*PRECISIONS])
    parser.add_argument("--peak", nargs=3, metavar=("SIDE", "SHAPE", "PRECISION"))
    options = parser.parse_args()
    if options.peak:
        return peak(*options.peak)
    keeps = KEEPING.items() <= os.environ.items()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {torch.get_num_threads()} threads")
    print(f"freed memory is {'kept' if keeps else 'given back to the system'}")
    for part in options.parts:
        if part == "forward":
            compare_forward(options.rounds)
            if sys.platform == "linux" and not keeps:  # this is read when a process starts
                command = [sys.executable, __file__, "--parts", "forward", "--rounds", str(options.rounds)]
                subprocess.run(command, env=os.environ | KEEPING, check=True)
            continue
        for precision in options.precisions:
            compare_steps(part, precision, options.rounds)
            compare_peaks(part, precision)


if __name__ == "__main__":
    main()
