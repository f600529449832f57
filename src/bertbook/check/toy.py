"""The cases and the known mistakes of the project's three milestones.

As in `step`, a mistake replaces parts of a calculation. Here the calculation runs with
*your* parameters, so it must give what your class gives.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import permutations, zip_longest

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.attention import causal_mask
from bertbook.check.load import describe_error
from bertbook.findings import Finding, Mistake, Report, recognise
from bertbook.milestones import attention_cases, classifier_cases, training_cases
from bertbook.tiny import TinyBertForClassification, TinySelfAttn, count_parameters
from bertbook.training import random_task

ATTENTION_PARTS = {
    "order": (0, 1, 2),  # of query, key and value in the fused projection
    "split": lambda part, H: part.unflatten(-1, (H, -1)).transpose(1, 2),
    "scale": lambda D, H: math.sqrt(D // H),
    "mask": lambda scores: scores,
    "axis": -1,
    "merge": lambda heads: heads.transpose(1, 2).flatten(start_dim=2),
    "out": lambda merged, out: out(merged),
}

ATTENTION_MISTAKES = (
    Mistake(
        "causal mask left in",
        "BERT's tokens see what comes after them too: add no mask to the scores.",
        (
            {"mask": lambda scores: scores + causal_mask(scores.shape[-1])},
            {"mask": lambda scores: scores.tril()},
        ),
    ),
    Mistake(
        "softmax over the wrong axis",
        "Each query shares its attention among the keys: softmax over the last axis, "
        "dim=-1.",
        ({"axis": -2}, {"axis": 1}, {"axis": 0}),
    ),
    Mistake(
        "missing scaling",
        "Divide the scores by the square root of the head size, here 8.",
        ({"scale": lambda D, H: 1.0},),
    ),
    Mistake(
        "wrong scaling",
        "The scores are divided by the square root of the *head* size D/H: not by the "
        "root of D, and not by the head size itself.",
        (
            {"scale": lambda D, H: math.sqrt(D)},
            {"scale": lambda D, H: D // H},
            {"scale": lambda D, H: 1 / math.sqrt(D // H)},
        ),
    ),
    Mistake(
        "wrong view order when splitting",
        "View as (B, T, H, D/H), then transpose to (B, H, T, D/H). A view straight to "
        "(B, H, T, D/H) mixes tokens with features.",
        ({"split": lambda part, H: part.reshape(len(part), H, part.shape[1], -1)},),
    ),
    Mistake(
        "wrong view order when merging",
        "Transpose the heads back to (B, T, H, D/H) before you flatten them.",
        ({"merge": lambda x: x.reshape(len(x), x.shape[2], -1)},),
    ),
    Mistake(
        "output projection left out",
        "After merging, a last linear layer mixes what the heads found.",
        ({"out": lambda merged, out: merged},),
    ),
    Mistake(
        "chunks in another order",
        "The fused projection holds query, key, value in this order. Another order "
        "learns as well, but gives other numbers from the same seed.",
        tuple(
            {"order": order}
            for order in ((1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1))
        ),
    ),
)


def attention_with(
    fused: nn.Linear, out: nn.Linear, H: int, x: Tensor, replaced: dict
) -> tuple[Tensor, Tensor]:
    """Output and weights of attention with these two layers, some PARTS replaced.

    >>> attn, x = TinySelfAttn(), torch.randn(2, 6, 32)
    >>> output, weights = attention_with(attn.qkv, attn.out, 4, x, {})
    >>> torch.allclose(output, attn(x)[0], atol=1e-6)
    True
    """
    part = ATTENTION_PARTS | replaced
    chunks = fused(x).chunk(3, dim=-1)
    query, key, value = (part["split"](chunks[i], H) for i in part["order"])
    scores = query @ key.transpose(-2, -1) / part["scale"](x.shape[-1], H)
    weights = part["mask"](scores).softmax(dim=part["axis"])
    return part["out"](part["merge"](weights @ value), out), weights


def attention_layers(attn: nn.Module, D: int) -> tuple[nn.Linear, nn.Linear] | None:
    """The fused and the output projection of an attention, if it has just these two.

    Three projections without bias beside an output projection with one count as a
    fused one.

    >>> attn = TinySelfAttn()
    >>> attention_layers(attn, 32) == (attn.qkv, attn.out)
    True
    """
    linear = [layer for layer in attn.modules() if isinstance(layer, nn.Linear)]
    shapes = [tuple(layer.weight.shape) for layer in linear]
    parts = [layer for layer in linear if layer.bias is None]
    if shapes == [(D, D)] * 4 and len(parts) == 3:
        fused = nn.Linear(D, 3 * D, bias=False)
        fused.weight.data = torch.cat([part.weight.data for part in parts])
        return fused, next(layer for layer in linear if layer.bias is not None)
    if sorted(shapes) != [(D, D), (3 * D, D)]:
        return None
    return linear[shapes.index((3 * D, D))], linear[shapes.index((D, D))]


# What each mistake adds to the number of parameters, from the sizes of the toy.
D, LAYERS, LENGTH = 32, 2, 16
COUNT_MISTAKES = {
    LAYERS * 3 * D: Mistake(
        "bias in the fused projection",
        "nn.Linear(D, 3 * D, bias=False): query, key and value have no bias here.",
    ),
    -LAYERS * D: Mistake(
        "no bias in the output projection",
        "The output projection has a bias: nn.Linear(D, D).",
    ),
    LAYERS * (3 - 1) * D: Mistake(
        "bias in the fused projection, none in the output projection",
        "It is the other way round: bias=False belongs to the fused one.",
    ),
    -LENGTH * D: Mistake(
        "missing position embeddings",
        "There is no table of 16 position embeddings.",
    ),
    2 * D: Mistake(
        "a LayerNorm or a table of two rows too many",
        "A layer has two norms; there is no norm after the layers, and none on the "
        "embeddings, and no segment embedding.",
    ),
    -LAYERS * 2 * D: Mistake(
        "one LayerNorm shared by both parts of a layer",
        "Each layer has two norms of its own.",
    ),
    -LAYERS * (2 * D * 2 * D + 2 * D): Mistake(
        "feed-forward network twice as wide instead of four times",
        "nn.Linear(D, 4 * D), then nn.Linear(4 * D, D).",
    ),
    -2: Mistake("head without bias", "The head is nn.Linear(D, 2), with its bias."),
    D + 1: Mistake("three classes", "The head has two outputs."),
}


def count_mistakes(surplus: int) -> list[Mistake]:
    """The known mistake that gives the classifier so many parameters too many.

    >>> [mistake.name for mistake in count_mistakes(-2)], count_mistakes(0)
    (['head without bias'], [])
    """
    return [COUNT_MISTAKES[surplus]] if surplus in COUNT_MISTAKES else []


def examine_attention(attention_class: Callable, subject: str) -> Report:
    """Milestone 1: its cases, and the formula with the class's own weights.

    >>> examine_attention(TinySelfAttn, "ours").passed
    True
    """
    attention_class = in_eval_mode(attention_class)
    findings, stopped = collect(attention_cases(attention_class))
    if stopped or findings[0].case == "what forward returns":
        return Report(subject, findings)
    torch.manual_seed(42)
    attn, x = attention_class(32, 4), torch.randn(2, 6, 32)
    count, right = count_parameters(attn), count_parameters(TinySelfAttn())
    findings.append(
        Finding("number of parameters", count == right, f"{right:,}", f"{count:,}")
    )
    mistakes = count_mistakes(LAYERS * (count - right))
    layers = attention_layers(attn, 32)
    case, formula = "the formula, with your weights", "softmax(Q K^T / sqrt(D/H)) V"
    if layers is None:
        findings.append(
            Finding(
                case,
                False,
                "nn.Linear(D, 3 * D, bias=False) and nn.Linear(D, D), and no other",
                "other layers, with which the formula cannot be computed",
            )
        )
        return Report(subject, findings, mistakes)
    with torch.no_grad():
        result = attn(x)

        def reproduces(parts: dict) -> bool:
            try:
                return same_tensors(attention_with(*layers, 4, x, parts), result)
            except RuntimeError:
                return False

        # Projections of their own may stand in any order: nothing says which is which.
        separate = layers[0] not in list(attn.modules())
        orders = permutations(range(3)) if separate else [(0, 1, 2)]
        right = any(reproduces({"order": order}) for order in orders)
        formula += ", heads merged, output projection"
        findings.append(Finding(case, right, formula, "other numbers"))
        if not right:
            mistakes += unsteady(attn, x) or recognise(
                ATTENTION_MISTAKES, reproduces, at_most=2
            )
        return Report(subject, findings, mistakes)


CLASSIFIER_PARTS = {
    "positions": True,
    "layers": True,
    "norm first": True,
    "residual": True,
    "activation": F.gelu,
    "read": lambda x: x[:, 0],
}

CLASSIFIER_MISTAKES = (
    Mistake(
        "head reads the mean over the positions",
        "The head reads position 0 only: x[:, 0, :].",
        ({"read": lambda x: x.mean(dim=1)},),
    ),
    Mistake(
        "head reads the last position",
        "The head reads position 0: x[:, 0, :], not x[:, -1, :].",
        ({"read": lambda x: x[:, -1]},),
    ),
    Mistake(
        "missing position embeddings",
        "Add pos_emb(torch.arange(T)) to the token embeddings; without it the order "
        "of the tokens is invisible.",
        ({"positions": False},),
    ),
    Mistake(
        "layers not run",
        "Send x through every layer: for layer in self.layers: x = layer(x).",
        ({"layers": False},),
    ),
    Mistake(
        "norm after the addition",
        "A pre-LN layer: x + attention(norm1(x)), then x + feed_forward(norm2(x)).",
        ({"norm first": False},),
    ),
    Mistake(
        "missing residual addition",
        "Each part *adds* to x: x = x + attention(...), x = x + feed_forward(...).",
        ({"residual": False},),
    ),
    Mistake(
        "ReLU instead of GELU",
        "The feed-forward network has a GELU between its two linear layers.",
        ({"activation": F.relu},),
    ),
)


def classifier_with(
    model: TinyBertForClassification, input_ids: Tensor, replaced: dict
) -> Tensor:
    """The toy's logits, with some of CLASSIFIER_PARTS replaced.

    >>> model, ids = TinyBertForClassification(), torch.tensor([[5, 6, 7]])
    >>> torch.allclose(classifier_with(model, ids, {}), model(ids), atol=1e-6)
    True
    """
    part = CLASSIFIER_PARTS | replaced
    x = model.tok_emb(input_ids)
    if part["positions"]:
        x = x + model.pos_emb(torch.arange(input_ids.shape[1]))
    for layer in model.layers if part["layers"] else ():
        first, _, last = layer.feed_forward
        sublayers = (
            (layer.norm1, lambda y, layer=layer: layer.attn(y)[0]),
            (
                layer.norm2,
                lambda y, first=first, last=last: last(part["activation"](first(y))),
            ),
        )
        for norm, sublayer in sublayers:
            added = sublayer(norm(x) if part["norm first"] else x)
            x = x + added if part["residual"] else added
            x = x if part["norm first"] else norm(x)
    return model.head(part["read"](x))


def with_parameters_of(model: nn.Module) -> TinyBertForClassification | None:
    """The toy with a model's parameters, if these have its shapes, in any order.

    A matrix is known by its shape, and a bias by the matrix it belongs to. The other
    vectors are those of the norms, which are all alike in a new model.

    >>> model, ids = TinyBertForClassification(), torch.tensor([[5, 6, 7]])
    >>> torch.equal(with_parameters_of(model)(ids), model(ids))
    True
    """
    toy = TinyBertForClassification()
    ours, theirs = by_role(toy), by_role(model)
    shapes = [
        {role: parameter.shape for role, parameter in roles.items()}
        for roles in (ours, theirs)
    ]
    if shapes[0] != shapes[1]:
        return None
    for role, parameter in ours.items():
        parameter.data = theirs[role].data.clone()
    return toy


def by_role(model: nn.Module) -> dict[tuple, nn.Parameter]:
    """A model's parameters by what they are for, as far as shapes and names tell.

    >>> list(by_role(nn.Linear(3, 2)))
    [('weight', (2, 3), 0), ('bias', (2, 3), 0)]
    """
    named = dict(model.named_parameters())
    roles, seen = {}, {}

    def add(kind: str, shape: tuple, parameter: nn.Parameter) -> None:
        number = seen[kind, shape] = seen.get((kind, shape), -1) + 1
        roles[kind, shape, number] = parameter

    for name, parameter in list(named.items()):
        if parameter.dim() > 1:
            shape = tuple(parameter.shape)
            add("weight", shape, named.pop(name))
            bias = f"{name.rpartition('weight')[0]}bias"
            if name.endswith("weight") and bias in named:
                add("bias", shape, named.pop(bias))
    for name, parameter in named.items():
        kind = "norm bias" if name.endswith("bias") else "norm weight"
        add(kind, tuple(parameter.shape), parameter)
    return roles


def in_book_order(model: nn.Module) -> bool:
    """Whether the parameters are created in the order of the book's classifier.

    >>> in_book_order(TinyBertForClassification()), in_book_order(nn.Linear(2, 2))
    (True, False)
    """
    toy = TinyBertForClassification()
    return [p.shape for p in model.parameters()] == [p.shape for p in toy.parameters()]


def in_eval_mode(module_class: Callable) -> Callable:
    """The class, but what it makes is in evaluation mode: no dropout is drawn.

    >>> in_eval_mode(nn.Dropout)(0.5).training
    False
    """

    def make(*sizes: int) -> nn.Module:
        model = module_class(*sizes)
        return model.eval() if isinstance(model, nn.Module) else model

    return make


def unsteady(model: nn.Module, x: Tensor) -> list[Mistake]:
    """The mistake of a model that gives the same input another result each time.

    >>> unsteady(TinySelfAttn(), torch.ones(1, 2, 32))
    []
    """
    one, other = ([y] if isinstance(y := model(x), Tensor) else y for _ in range(2))
    return [] if same_tensors(one, other) else [UNSTEADY]


UNSTEADY = Mistake(
    "another result at every call",
    "The same input gives other numbers each time, even after eval(). A dropout? "
    "F.dropout needs training=self.training; and the specification has none.",
)


def examine_classifier(model_class: Callable, subject: str) -> Report:
    """Milestone 2: its cases, the parameter count, and the logits from its parameters.

    >>> examine_classifier(TinyBertForClassification, "ours").passed
    True
    """
    model_class = in_eval_mode(model_class)
    findings, _ = collect(classifier_cases(model_class))
    mistakes, notes = [], []
    torch.manual_seed(42)
    try:
        model = model_class()
        count = count_parameters(model)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return Report(subject, findings)  # the first finding says so already
    right = count_parameters(TinyBertForClassification())
    findings.append(
        Finding("number of parameters", count == right, f"{right:,}", f"{count:,}")
    )
    mistakes += count_mistakes(count - right)
    toy = with_parameters_of(model)
    case = "the formula, with your parameters"
    if toy is None:
        findings.append(
            Finding(
                case,
                False,
                "parameters of the book's shapes: a fused projection, two linear "
                "layers and two norms a layer, two embeddings, a head",
                "other shapes, with which the formula cannot be computed",
            )
        )
        return Report(subject, findings, mistakes, notes)
    if not in_book_order(model):
        notes.append(
            "Your parameters are created in another order than the book's. That is no "
            "fault, but the same seed gives other numbers than the book prints."
        )
    input_ids = torch.randint(0, 100, (3, 10))
    with torch.no_grad():
        try:
            logits = model(input_ids)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return Report(subject, findings, mistakes)  # the cases have said so

        def reproduces(parts: dict) -> bool:
            return same_tensors([classifier_with(toy, input_ids, parts)], [logits])

        findings.append(
            Finding(
                case,
                reproduces({}),
                "pre-LN layers with residual additions and GELU, head on position 0",
                "other logits",
            )
        )
        if not reproduces({}):
            mistakes += unsteady(model, input_ids) or recognise(
                CLASSIFIER_MISTAKES, reproduces, at_most=2
            )
            if not mistakes:
                notes.append("Does your attention pass milestone_1?")
    return Report(subject, findings, mistakes, notes)


LOOP_MISTAKES = (
    Mistake(
        "no zero_grad",
        "Gradients add up until optimizer.zero_grad() forgets them: call it at every "
        "step.",
        ({"zero_grad": False},),
    ),
    Mistake(
        "loss measured after the step",
        "The loss of an epoch is that of the model before its step.",
        ({"after": True},),
    ),
    Mistake(
        "plain gradient descent instead of Adam",
        "The recipe is torch.optim.Adam(model.parameters(), lr=1e-3).",
        ({"optimizer": torch.optim.SGD},),
    ),
    Mistake(
        "another learning rate",
        "The recipe's rate is 1e-3.",
        tuple({"rate": rate} for rate in (1e-2, 1e-4, 5e-5, 2e-5, 1e-1, 3e-4)),
    ),
    Mistake(
        "optimiser made anew at every step",
        "Make the optimiser once, before the loop: Adam remembers earlier gradients.",
        ({"new optimizer": True},),
    ),
    Mistake(
        "no step taken",
        "optimizer.step() moves the parameters; without it the loss never changes.",
        ({"rate": 0.0},),
    ),
)


def loop_with(
    model: nn.Module, input_ids: Tensor, labels: Tensor, epochs: int, replaced: dict
) -> Iterator[float]:
    """The losses of the five-step loop one by one, with some of its parts replaced.

    >>> ids, labels = random_task(4)
    >>> model = TinyBertForClassification()
    >>> len(list(loop_with(model, ids, labels, 2, {"zero_grad": False})))
    2
    """
    part = {"zero_grad": True, "after": False, "optimizer": torch.optim.Adam}
    part |= {"rate": 1e-3, "new optimizer": False} | replaced
    for epoch in range(epochs):
        if epoch == 0 or part["new optimizer"]:
            optimizer = part["optimizer"](model.parameters(), lr=part["rate"])
        if part["zero_grad"]:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(input_ids), labels)
        loss.backward()
        optimizer.step()
        if part["after"]:
            loss = F.cross_entropy(model(input_ids), labels)
        yield loss.item()


def examine_training(
    model_class: Callable, subject: str, loop: Callable | None = None
) -> Report:
    """Milestone 3: the book's loop on your class, and your loop, if you give one.

    Args:
        loop: called as loop(model, input_ids, labels, epochs=10); returns the losses.

    >>> from bertbook.training import train
    >>> examine_training(TinyBertForClassification, "ours", train).passed
    True
    """
    findings, stopped = collect(training_cases(model_class))
    mistakes, notes = [], []
    if stopped:
        return Report(subject, findings)
    if not all_passed(findings):
        mistakes = training_mistakes(model_class)
    if loop is None:
        notes.append("The book's own loop trained your class; no loop was checked.")
        return Report(subject, findings, mistakes, notes)

    def task() -> tuple:
        torch.manual_seed(42)
        model = model_class()
        torch.manual_seed(99)
        return model, *random_task(50)

    case = "the losses of your loop, ten epochs"
    wanted = list(loop_with(*task(), 10, {}))
    try:
        losses = [float(torch.as_tensor(x).detach()) for x in loop(*task(), epochs=10)]
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        got = describe_error(error)
        findings.append(Finding(case, False, "ten losses", got))
        return Report(subject, findings, mistakes, notes)

    def reproduces(parts: dict) -> bool:
        return same_losses(loop_with(*task(), 10, parts), losses)

    findings.append(
        Finding(case, same_losses(wanted, losses), in_words(wanted), in_words(losses))
    )
    if not findings[-1].passed:
        mistakes += recognise(LOOP_MISTAKES, reproduces, at_most=2)
    return Report(subject, findings, mistakes, notes)


def training_mistakes(model_class: Callable) -> list[Mistake]:
    """Why a class may fail to train: no gradient somewhere, or ids that do not matter.

    >>> training_mistakes(TinyBertForClassification)
    []
    """
    torch.manual_seed(42)
    model = model_class()
    input_ids, labels = random_task(50)
    F.cross_entropy(model(input_ids), labels).backward()
    mistakes = []
    still = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    ]
    if still:
        mistakes.append(
            Mistake(
                "parameters without a gradient",
                f"{still[0]} gets none ({len(still)} tensors in all). Is there a "
                "detach(), a no_grad, or requires_grad=False on the way?",
            )
        )
    with torch.no_grad():
        if torch.equal(model(input_ids), model(input_ids.roll(1, dims=0))):
            mistakes.append(
                Mistake(
                    "the ids have no influence",
                    "Other sequences give the same logits: is tok_emb(input_ids) used?",
                )
            )
    return mistakes


def collect(findings: Iterator[Finding]) -> tuple[list[Finding], bool]:
    """All findings, and whether an error in the reader's code ended them.

    >>> collect(iter([Finding("it runs", True)]))[1]
    False
    """
    found = []
    try:
        for finding in findings:
            found.append(finding)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        case = "the next case could be run" if found else "your class could be run"
        found.append(Finding(case, False, "no error", describe_error(error)))
        return found, True
    return found, False


def all_passed(findings: list[Finding]) -> bool:
    """Whether no case failed.

    >>> all_passed([Finding("it runs", True)])
    True
    """
    return all(finding.passed for finding in findings)


def same_tensors(found: Iterable[Tensor], wanted: Iterable[Tensor]) -> bool:
    """Equal shapes, and equal numbers up to rounding.

    >>> same_tensors([torch.zeros(2)], [torch.zeros(2, 1)])
    False
    """
    return all(
        a.shape == b.shape and torch.allclose(a, b, rtol=1e-4, atol=1e-5)
        for a, b in zip(found, wanted, strict=True)
    )


def same_losses(found: Iterable[float], wanted: list[float]) -> bool:
    """Equally many losses, equal up to rounding. It stops at the first that differs.

    >>> same_losses([0.5, 0.25], [0.5, 0.250001])
    True
    """
    pairs = zip_longest(found, wanted, fillvalue=math.inf)
    return all(math.isclose(a, b, abs_tol=1e-4) and a < math.inf for a, b in pairs)


def in_words(losses: list[float]) -> str:
    """How many losses, the first and the last of them.

    >>> in_words([0.7, 0.6, 0.25])
    '3 losses, from 0.7000 to 0.2500'
    """
    if not losses:
        return "no losses"
    return f"{len(losses)} losses, from {losses[0]:.4f} to {losses[-1]:.4f}"
