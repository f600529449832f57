"""The project's three checks. Each takes *your* class, runs it, and says what it found.

A check that fails raises AssertionError with what was expected and what came out;
one that passes returns the rows of the milestone's table. `bertbook.check` runs the
same cases, goes on after one that fails, and names the mistake if it knows it.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from bertbook.findings import Finding, require
from bertbook.outputs import logits_of
from bertbook.tiny import count_parameters
from bertbook.training import random_task, train


def milestone_1(
    attention_class: Callable[[int, int], nn.Module],
) -> list[tuple]:
    """Attention without a causal mask: shapes, row sums, and a look at the future.

    Args:
        attention_class: called as attention_class(hidden_size, num_heads); its module
            maps (B, T, D) to output (B, T, D) and weights (B, H, T, T).

    Returns:
        (check, expected, actual) rows.

    Raises:
        AssertionError: naming the first check that fails.

    Source: slide 52.

    >>> from bertbook.tiny import TinySelfAttn
    >>> [check for check, _, _ in milestone_1(TinySelfAttn)]
    ['output shape', 'attention row sums', 'smallest weight above the diagonal']
    """
    require(attention_cases(attention_class))
    torch.manual_seed(42)
    attn = attention_class(32, 4)
    x = torch.randn(2, 6, 32)
    output, weights = attn(x)
    return [
        ("output shape", str(tuple(x.shape)), str(tuple(output.shape))),
        ("attention row sums", "all 1.0", "all 1.0"),
        ("smallest weight above the diagonal", "> 0", smallest_future(weights)),
    ]


def smallest_future(weights: Tensor) -> float:
    """The smallest of the weights (B, H, T, T) above the diagonal.

    >>> smallest_future(torch.tensor([[[[0.75, 0.25], [0.5, 0.5]]]]))
    0.25
    """
    future = torch.ones(weights.shape[-2:], dtype=torch.bool).triu(diagonal=1)
    return weights[..., future].min().item()


@torch.no_grad()
def attention_cases(attention_class: Callable[[int, int], nn.Module]) -> Iterator:
    """The cases of milestone 1, one finding after the other.

    The cases end with the first that makes the later ones meaningless.

    >>> from bertbook.tiny import TinySelfAttn
    >>> next(attention_cases(TinySelfAttn)).case
    'output shape'
    """
    torch.manual_seed(42)
    attn = attention_class(32, 4)
    x = torch.randn(2, 6, 32)
    result = attn(x)
    if not isinstance(result, tuple | list) or len(result) != 2:
        expected, got = "output and weights, a pair", f"one {type(result).__name__}"
        yield Finding("what forward returns", False, expected, got)
        return

    output, weights = result
    shape = tuple(output.shape)
    yield Finding("output shape", shape == (2, 6, 32), "(2, 6, 32)", str(shape))
    if shape != (2, 6, 32):
        return
    shape = tuple(weights.shape)
    expected = (2, 4, 6, 6)
    yield Finding("shape of the weights", shape == expected, str(expected), str(shape))
    if shape != expected:
        return
    worst = (weights.sum(dim=-1) - 1).abs().max().item()
    yield Finding(
        "attention row sums",
        worst < 1e-6,
        "every row to sum to 1",
        f"one that is off by {worst:.3g}",
        "Softmax over the last axis?",
    )
    smallest = smallest_future(weights)
    yield Finding(
        "weights above the diagonal",
        smallest > 0,
        "all greater than 0",
        f"one that is {smallest:.3g}",
        "Is there still a causal mask?",
    )
    exchanged, _ = attn(x.flip(1))
    yield Finding(
        "tokens in another order",
        torch.allclose(exchanged.flip(1), output, atol=1e-5),
        "the same outputs in that order",
        "other outputs",
        "Is a view mixing tokens with features, or a mask left?",
    )
    replaced = x.clone()
    replaced[:, -1] += 1
    others, _ = attn(replaced)
    yield Finding(
        "another last token",
        not torch.allclose(others[:, 0], output[:, 0]),
        "another first output",
        "the same first output",
        "Are the values used, and is the last token seen?",
    )


def milestone_2(model_class: Callable[[], nn.Module]) -> list[tuple]:
    """The classifier: how large it is, and which state its head reads.

    Args:
        model_class: called without arguments; its module maps ids (B, T) to logits
            (B, 2) through a last layer named ``head``.

    Returns:
        (property, value) rows.

    Raises:
        AssertionError: naming the first check that fails.

    Source: slide 53.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> milestone_2(TinyBertForClassification)[0]
    ('total params', 28994)
    """
    require(classifier_cases(model_class))
    torch.manual_seed(42)
    model = model_class()
    input_ids = torch.randint(0, 100, (3, 10))
    read_by_head = input_of(model.head, model, input_ids)
    return [
        ("total params", count_parameters(model)),
        ("input shape", str(tuple(input_ids.shape))),
        ("logits shape", str(tuple(model(input_ids).shape))),
        ("[CLS] state used", f"x[:, 0, :], shape {tuple(read_by_head.shape)}"),
    ]


def classifier_cases(model_class: Callable[[], nn.Module]) -> Iterator[Finding]:
    """The cases of milestone 2, one finding after the other.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> [finding.passed for finding in classifier_cases(TinyBertForClassification)]
    [True, True, True, True]
    """
    torch.manual_seed(42)
    model = model_class()
    input_ids = torch.randint(0, 100, (3, 10))
    read_by_head = input_of(model.head, model, input_ids)
    logits = model(input_ids)

    shape = tuple(logits.shape)
    yield Finding(
        "logits of three sequences, two classes",
        shape == (3, 2),
        "shape (3, 2)",
        str(shape),
    )
    shape = tuple(read_by_head.shape)
    yield Finding(
        "what the head is given",
        shape == (3, 32),
        "x[:, 0, :], of shape (3, 32)",
        f"shape {shape}",
    )
    if logits.shape != (3, 2) or shape != (3, 32):
        return
    positions = positions_read(model, input_ids, hidden_size=32)
    yield Finding(
        "positions that the head reads",
        positions == [0],
        "[0], as in x[:, 0, :]",
        str(positions),
    )
    first_kept = torch.cat([input_ids[:, :1], input_ids[:, 1:].flip(1)], dim=1)
    yield Finding(
        "tokens in another order",
        not torch.allclose(model(first_kept), logits),
        "other logits",
        "the same logits",
        "Do the layers run, and are the position embeddings added?",
    )


def input_of(layer: nn.Module, model: nn.Module, input_ids: Tensor) -> Tensor:
    """What `layer` is given when model(input_ids) runs.

    >>> model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 1))
    >>> input_of(model[1], model, torch.tensor([[0, 1]])).shape
    torch.Size([1, 2, 3])
    """
    seen = []
    hook = layer.register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0])
    )
    model(input_ids)
    hook.remove()
    assert seen, f"the model never calls {layer}"
    return seen[0]


def positions_read(
    model: nn.Module, input_ids: Tensor, *, hidden_size: int
) -> list[int]:
    """From which positions of the last hidden states the logits are computed.

    The last hidden states are the last tensor of shape (B, T, hidden_size) that a
    part of the model returns. A position is read if the gradient there is not 0.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> model = TinyBertForClassification()
    >>> positions_read(model, torch.tensor([[5, 6, 7]]), hidden_size=32)
    [0]
    """
    states = []

    def remember(module: nn.Module, inputs: tuple, output: object) -> None:
        if isinstance(output, Tensor) and output.shape == (
            *input_ids.shape,
            hidden_size,
        ):
            states.append(output)

    hooks = [module.register_forward_hook(remember) for module in model.modules()]
    logits = logits_of(model(input_ids))
    for hook in hooks:
        hook.remove()
    (gradient,) = torch.autograd.grad(logits.square().sum(), states[-1])
    return gradient.abs().sum(dim=(0, 2)).nonzero().flatten().tolist()


def milestone_3(model_class: Callable[[], nn.Module]) -> list[float]:
    """Training on fifty random labels: thirty epochs, to a loss under 0.3.

    Args:
        model_class: called without arguments, as for milestone_2.

    Returns:
        the loss of each of the 30 epochs, before its step.

    Raises:
        AssertionError: if the last loss is not under 0.3.

    Source: slide 54.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> losses = milestone_3(TinyBertForClassification)
    >>> len(losses), losses[-1] < 0.3
    (30, True)
    """
    losses = trace_of(model_class)
    require([loss_under_target(losses)])
    return losses


def trace_of(model_class: Callable[[], nn.Module]) -> list[float]:
    """The losses of milestone 3, whatever they are.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> round(trace_of(TinyBertForClassification)[0], 4)
    0.7904
    """
    torch.manual_seed(42)
    model = model_class()
    torch.manual_seed(99)
    input_ids, labels = random_task(50)
    return train(model, input_ids, labels, epochs=30)


def training_cases(model_class: Callable[[], nn.Module]) -> Iterator[Finding]:
    """The case of milestone 3: where thirty epochs end.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> [finding.passed for finding in training_cases(TinyBertForClassification)]
    [True]
    """
    yield loss_under_target(trace_of(model_class))


def loss_under_target(losses: list[float]) -> Finding:
    """Whether the last loss is under 0.3.

    >>> print(loss_under_target([0.7, 0.69]))
    last loss: expected under 0.3, got 0.6900 after 2 epochs.
    """
    got = f"{losses[-1]:.4f} after {len(losses)} epochs"
    return Finding("last loss", losses[-1] < 0.3, "under 0.3", got)
