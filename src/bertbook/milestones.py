"""The project's three checks. Each takes *your* class, runs it, and says what it found.

A check that fails raises AssertionError with what was expected and what came out;
one that passes returns the rows of the milestone's table.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

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
    torch.manual_seed(42)
    attn = attention_class(32, 4)
    x = torch.randn(2, 6, 32)
    output, weights = attn(x)

    assert output.shape == x.shape, (
        f"the output should have shape (2, 6, 32), got {tuple(output.shape)}"
    )
    assert weights.shape == (2, 4, 6, 6), (
        f"the weights should have shape (2, 4, 6, 6), got {tuple(weights.shape)}"
    )
    worst = (weights.sum(dim=-1) - 1).abs().max().item()
    assert worst < 1e-6, (
        f"every row of weights should sum to 1; one is off by {worst}. "
        "Softmax over the last axis?"
    )
    future = torch.ones(6, 6, dtype=torch.bool).triu(diagonal=1)
    smallest = weights[..., future].min().item()
    assert smallest > 0, (
        f"a weight above the diagonal is {smallest}: is there still a causal mask?"
    )
    check_tokens_are_kept_apart(attn, x, output)
    return [
        ("output shape", str(tuple(x.shape)), str(tuple(output.shape))),
        ("attention row sums", "all 1.0", "all 1.0"),
        ("smallest weight above the diagonal", "> 0", smallest),
    ]


@torch.no_grad()
def check_tokens_are_kept_apart(attn: nn.Module, x: Tensor, output: Tensor) -> None:
    """Exchanging tokens exchanges their outputs; replacing one changes the others'.

    Args:
        attn: an attention, as for milestone_1.
        x: its input, of shape (B, T, D), T at least 2.
        output: what it gave for x.

    Raises:
        AssertionError: if tokens are mixed with features, or do not see each other.

    >>> from bertbook.tiny import TinySelfAttn
    >>> attn, x = TinySelfAttn(), torch.randn(1, 5, 32)
    >>> check_tokens_are_kept_apart(attn, x, attn(x)[0])
    """
    exchanged, _ = attn(x.flip(1))
    assert torch.allclose(exchanged.flip(1), output, atol=1e-5), (
        "tokens in another order should give the same outputs in that order: "
        "is a view mixing tokens with features?"
    )
    replaced = x.clone()
    replaced[:, -1] += 1
    others, _ = attn(replaced)
    assert not torch.allclose(others[:, 0], output[:, 0]), (
        "another last token should change the first output: are the values used?"
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
    torch.manual_seed(42)
    model = model_class()
    input_ids = torch.randint(0, 100, (3, 10))
    read_by_head = input_of(model.head, model, input_ids)
    logits = model(input_ids)

    assert logits.shape == (3, 2), (
        "three sequences and two classes: logits of shape (3, 2), "
        f"got {tuple(logits.shape)}"
    )
    assert read_by_head.shape == (3, 32), (
        "the head should read x[:, 0, :], of shape (3, 32); "
        f"it was given {tuple(read_by_head.shape)}"
    )
    positions = positions_read(model, input_ids, hidden_size=32)
    assert positions == [0], (
        "the head should read x[:, 0, :] and nothing else; "
        f"it reads positions {positions}"
    )
    first_kept = torch.cat([input_ids[:, :1], input_ids[:, 1:].flip(1)], dim=1)
    assert not torch.allclose(model(first_kept), logits), (
        "tokens in another order should give other logits: "
        "do the layers run, and are the position embeddings added?"
    )
    return [
        ("total params", count_parameters(model)),
        ("input shape", str(tuple(input_ids.shape))),
        ("logits shape", str(tuple(logits.shape))),
        ("[CLS] state used", f"x[:, 0, :], shape {tuple(read_by_head.shape)}"),
    ]


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
    logits = model(input_ids)
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
    torch.manual_seed(42)
    model = model_class()
    torch.manual_seed(99)
    input_ids, labels = random_task(50)
    losses = train(model, input_ids, labels, epochs=30)

    assert losses[-1] < 0.3, (
        f"the loss should end under 0.3, "
        f"got {losses[-1]:.4f} after {len(losses)} epochs"
    )
    return losses
