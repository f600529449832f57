"""One step of gradient descent on a linear classifier, in NumPy, without autograd.

The whole step fits on a page: the state at position 0, logits, softmax, loss,
gradient, update. It trains the head only; the encoder's states are given.
"""

import numpy as np
from numpy.typing import NDArray


def softmax(logits: NDArray) -> NDArray:
    """Probabilities along the last axis, for logits of any finite size.

    Each row's maximum is subtracted first. That changes no quotient, and the largest
    exponential is then exp(0) = 1: nothing overflows, and no row sums to 0.

    Args:
        logits: float, shape (..., C), finite.

    Returns:
        float, shape (..., C): positive or 0, and each row sums to 1.

    Raises:
        ValueError: if logits has no classes, or holds what is not a finite number.

    Source: the fine-tuning text, softmax and loss.

    >>> softmax(np.array([[0.0, 0.0], [10_000.0, 0.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    logits = finite_array("logits", logits, "fiu")
    if logits.ndim < 1 or logits.shape[-1] < 1:
        raise ValueError(f"logits must have shape (..., C), C > 0, got {logits.shape}")
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def cross_entropy(logits: NDArray, labels: NDArray) -> float:
    """The mean over the batch of -log(probability of the label), in nats.

    The logarithm is taken before anything can be rounded to 0: with z the logits minus
    their maximum, -log(exp(z_label) / sum(exp(z))) = log(sum(exp(z))) - z_label.

    Args:
        logits: float, shape (B, C), finite.
        labels: int, shape (B,), in [0, C).

    Raises:
        ValueError: if an argument has another shape or kind, or the batch is empty.

    Source: the fine-tuning text, softmax and loss.

    >>> round(cross_entropy(np.zeros((1, 2)), np.array([0])), 4)  # log(2)
    0.6931
    >>> cross_entropy(np.array([[0.0, 10_000.0]]), np.array([0]))
    10000.0
    """
    logits = finite_array("logits", logits, "fiu")
    if logits.ndim != 2 or 0 in logits.shape:
        raise ValueError(f"logits must have shape (B, C), both > 0, got {logits.shape}")
    labels = labels_of_batch(labels, *logits.shape)
    rows = np.arange(len(labels))
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_sums = np.log(np.exp(shifted).sum(axis=1))
    return float((log_sums - shifted[rows, labels]).mean())


def bert_fine_tuning_step(
    hidden_states: NDArray,
    labels: NDArray,
    classifier_W: NDArray,
    classifier_b: NDArray,
    learning_rate: float,
) -> dict:
    """One gradient step on a linear classifier over the states at position 0.

    Args:
        hidden_states: float, shape (B, S, D): what the encoder gave.
        labels: int, shape (B,), in [0, C).
        classifier_W: float, shape (D, C).
        classifier_b: float, shape (C,).
        learning_rate: greater than 0.

    Returns:
        a dict: classifier_W (D, C) and classifier_b (C,) after the update, and loss,
        the mean cross-entropy before it. The arguments are not changed.

    Raises:
        ValueError: naming the argument whose shape, kind or value is wrong.

    Source: the fine-tuning text, the NumPy exercise.

    >>> states, labels = np.ones((1, 1, 1)), np.array([0])
    >>> step = bert_fine_tuning_step(states, labels, np.zeros((1, 2)), np.zeros(2), 1)
    >>> step["classifier_W"], step["classifier_b"], round(step["loss"], 4)
    (array([[ 0.5, -0.5]]), array([ 0.5, -0.5]), 0.6931)
    """
    hidden_states, labels, W, b = checked_step(
        hidden_states, labels, classifier_W, classifier_b, learning_rate
    )
    B = len(labels)
    cls = hidden_states[:, 0, :]  # (B, D): position 0 of each sequence
    logits = cls @ W + b  # (B, C)
    loss = cross_entropy(logits, labels)  # before the update

    gradient = softmax(logits)  # (B, C)
    gradient[np.arange(B), labels] -= 1
    gradient /= B  # the loss is a mean over the batch

    return {
        "classifier_W": W - learning_rate * (cls.T @ gradient),
        "classifier_b": b - learning_rate * gradient.sum(axis=0),
        "loss": loss,
    }


def worked_example() -> tuple[NDArray, NDArray, NDArray, NDArray, float]:
    """Two sequences, two tokens, two features, three classes: small enough for paper.

    Returns:
        hidden_states (2, 2, 2), labels (2,), classifier_W (2, 3), classifier_b (3,) and
        the learning rate, in the order of bert_fine_tuning_step.

    Source: the book's own numbers, for the NumPy exercise of the fine-tuning text.

    >>> hidden_states, labels, W, b, _ = worked_example()
    >>> hidden_states[:, 0] @ W + b
    array([[ 1.,  2.,  0.],
           [-1.,  1.,  2.]])
    """
    hidden_states = np.array(
        [
            [[1.0, 2.0], [3.0, -1.0]],  # the first sequence; position 0 is [1, 2]
            [[-1.0, 1.0], [0.0, 4.0]],
        ]
    )
    labels = np.array([0, 2])
    classifier_W = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    classifier_b = np.array([0.0, 0.0, 1.0])
    return hidden_states, labels, classifier_W, classifier_b, 0.5


def checked_step(
    hidden_states: NDArray,
    labels: NDArray,
    classifier_W: NDArray,
    classifier_b: NDArray,
    learning_rate: float,
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """The arrays of a step, or the ValueError that names the one that is wrong.

    >>> checked_step(np.ones((2, 3)), [0, 1], np.ones((3, 2)), np.zeros(2), 0.1)
    Traceback (most recent call last):
    ValueError: hidden_states must have shape (B, S, D), all > 0, got (2, 3)
    """
    hidden_states = finite_array("hidden_states", hidden_states, "f")
    W = finite_array("classifier_W", classifier_W, "f")
    b = finite_array("classifier_b", classifier_b, "f")
    if hidden_states.ndim != 3 or 0 in hidden_states.shape:
        raise ValueError(
            "hidden_states must have shape (B, S, D), all > 0, "
            f"got {hidden_states.shape}"
        )
    B, _, D = hidden_states.shape
    if W.ndim != 2 or len(W) != D or W.shape[1] < 1:
        raise ValueError(
            f"classifier_W must have shape (D, C) with D = {D} as in hidden_states, "
            f"C > 0, got {W.shape}"
        )
    C = W.shape[1]
    if b.shape != (C,):
        raise ValueError(
            f"classifier_b must have shape ({C},), one number for each column of "
            f"classifier_W, got {b.shape}"
        )
    labels = labels_of_batch(labels, B, C)
    rate = np.asarray(learning_rate)
    if rate.ndim or rate.dtype.kind not in "fiu" or not 0 < rate < np.inf:
        raise ValueError(
            "learning_rate must be one finite number greater than 0, "
            f"got {learning_rate!r}"
        )
    return hidden_states, labels, W, b


def finite_array(name: str, numbers: NDArray, kinds: str) -> NDArray:
    """The argument as finite float64 numbers, if it is of these NumPy kinds.

    Whatever is smaller than float64 would overflow where nobody expects it: in int8,
    127 - (-128) is -1.

    >>> finite_array("logits", np.array([127, -128], dtype=np.int8), "fiu")
    array([ 127., -128.])
    >>> finite_array("logits", [0.5, np.nan], "f")
    Traceback (most recent call last):
    ValueError: logits must hold finite numbers, got nan
    """
    array = as_array(name, numbers)
    if array.dtype.kind not in kinds:
        wanted = "floating-point numbers" if kinds == "f" else "numbers"
        raise ValueError(f"{name} must hold {wanted}, got dtype {array.dtype}")
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)].flat[0]
        raise ValueError(f"{name} must hold finite numbers, got {bad}")
    return array.astype(np.float64, copy=False)


def as_array(name: str, numbers: NDArray) -> NDArray:
    """The argument as an array, else the ValueError that names it.

    >>> as_array("labels", [[0], [1, 2]])
    Traceback (most recent call last):
    ValueError: labels must be an array: its rows differ in length
    """
    try:
        return np.asarray(numbers)
    except ValueError:
        message = f"{name} must be an array: its rows differ in length"
        raise ValueError(message) from None


def labels_of_batch(labels: NDArray, B: int, C: int) -> NDArray:
    """The labels as an integer array of shape (B,) in [0, C), else ValueError.

    >>> labels_of_batch([0, 3], B=2, C=3)
    Traceback (most recent call last):
    ValueError: labels must be in [0, C) = [0, 3), got 3
    """
    labels = as_array("labels", labels)
    if labels.shape != (B,):
        raise ValueError(
            f"labels must have shape ({B},), one for each sequence, got {labels.shape}"
        )
    if labels.dtype.kind not in "iu":
        raise ValueError(f"labels must be whole numbers, got dtype {labels.dtype}")
    if labels.min() < 0 or labels.max() >= C:
        bad = labels[(labels < 0) | (labels >= C)][0]
        raise ValueError(f"labels must be in [0, C) = [0, {C}), got {bad}")
    return labels
