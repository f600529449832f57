"""The five-step training loop, and the accuracy that tells learning from memorising."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.outputs import logits_of


def random_task(
    num_examples: int,
    *,
    num_tokens: int = 10,
    vocab_size: int = 100,
    num_classes: int = 2,
) -> tuple[Tensor, Tensor]:
    """Random ids with random labels, from torch's global stream: ids first.

    There is nothing to learn here: no rule connects a sequence with its label. A
    model can only memorise.

    Returns:
        input_ids, int64 of shape (num_examples, num_tokens), in [0, vocab_size), and
        labels, int64 of shape (num_examples,), in [0, num_classes).

    Raises:
        ValueError: if a size is not positive.

    Source: slide 38.

    >>> _ = torch.manual_seed(99)
    >>> input_ids, labels = random_task(50)
    >>> input_ids.shape, labels.shape
    (torch.Size([50, 10]), torch.Size([50]))
    """
    sizes = {
        "num_examples": num_examples,
        "num_tokens": num_tokens,
        "vocab_size": vocab_size,
        "num_classes": num_classes,
    }
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")
    input_ids = torch.randint(0, vocab_size, (num_examples, num_tokens))
    labels = torch.randint(0, num_classes, (num_examples,))
    return input_ids, labels


def train(
    model: nn.Module,
    input_ids: Tensor,
    labels: Tensor,
    *,
    epochs: int,
    learning_rate: float = 1e-3,
    continue_training: bool = False,
) -> list[float]:
    """Train on the whole data set at once, `epochs` times, and return every loss.

    The five steps: zero the gradients, forward, loss, backward, step. The loss of an
    epoch is the one *before* its step, so the first is that of the untrained model.

    A model that has been trained is refused: running a notebook cell twice would
    otherwise go on from where the first run stopped, and print other numbers.

    Args:
        model: maps input_ids to logits (B, C).
        input_ids: int64, shape (B, T).
        labels: int64, shape (B,), in [0, C).
        epochs: how many steps, at least 1.
        learning_rate: Adam's, greater than 0.
        continue_training: go on with a trained model, with a new optimiser, on purpose.

    Returns:
        the mean cross-entropy (in nats) of each epoch, `epochs` floats.

    Raises:
        ValueError: if epochs or learning_rate is not positive, the batch is empty,
            labels has another shape than (B,), or the model has been trained before.

    Source: slides 38 and 54.

    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Embedding(100, 2), nn.Flatten(1), nn.Linear(20, 2))
    >>> input_ids, labels = random_task(8)
    >>> losses = train(model, input_ids, labels, epochs=3)
    >>> losses[0] > losses[1] > losses[2]
    True
    >>> train(model, input_ids, labels, epochs=3)
    Traceback (most recent call last):
    ValueError: model has already been trained for 3 epochs: \
build a new one (with its seed), or pass continue_training=True
    """
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1, got {epochs}")
    if not learning_rate > 0:
        raise ValueError(f"learning_rate must be greater than 0, got {learning_rate}")
    if len(input_ids) == 0:
        raise ValueError(
            "input_ids is an empty batch: the mean loss over nothing is not defined"
        )
    if labels.shape != input_ids.shape[:1]:
        raise ValueError(
            f"labels must have shape ({len(input_ids)},), got {tuple(labels.shape)}"
        )
    trained = getattr(model, "epochs_trained", 0)
    if trained and not continue_training:
        raise ValueError(
            f"model has already been trained for {trained} epochs: "
            "build a new one (with its seed), or pass continue_training=True"
        )
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    losses = []
    model.train()
    for _ in range(epochs):
        optimizer.zero_grad()
        logits = model(input_ids)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        # Counted here and not at the end, so that an interrupted run counts too.
        model.epochs_trained = trained + len(losses)
    return losses


@torch.no_grad()
def accuracy(model: nn.Module, input_ids: Tensor, labels: Tensor) -> float:
    """The share of sequences whose largest logit is at the label, between 0 and 1.

    The model is put into evaluation mode for the measurement and back afterwards.

    Raises:
        ValueError: if the batch is empty, or labels has another shape than (B,).

    >>> model = nn.Sequential(nn.Embedding(2, 2, _weight=torch.eye(2)), nn.Flatten(1))
    >>> accuracy(model, torch.tensor([[0], [1]]), torch.tensor([0, 0]))
    0.5
    """
    if len(input_ids) == 0:
        raise ValueError(
            "input_ids is an empty batch: accuracy over nothing is not defined"
        )
    if labels.shape != input_ids.shape[:1]:
        raise ValueError(
            f"labels must have shape ({len(input_ids)},), got {tuple(labels.shape)}"
        )
    was_training = model.training
    model.eval()
    predicted = logits_of(model(input_ids)).argmax(dim=-1)
    model.train(was_training)
    return (predicted == labels).sum().item() / len(labels)
