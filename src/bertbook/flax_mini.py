"""A small bidirectional encoder in Flax Linen: the Flax exercise and its solution.

Shapes: T tokens of one sequence, D features, H heads, F features inside the
feed-forward part, V token ids, L blocks. There is no batch dimension.

Nothing else in this package imports this module, because importing jax takes time.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn


class BERTBlock(nn.Module):
    """One pre-LN block: x + attention(LN(x)), then x + feed_forward(LN(x)).

    The order of the lines is part of the recipe. Flax numbers the layers of each
    class as they are created, and a layer's name decides its random numbers.

    Attributes:
        num_heads: H.
        d_model: D, a multiple of H.
        d_ff: F.

    Source: the Flax exercise.

    >>> block = BERTBlock(num_heads=2, d_model=4, d_ff=8)
    >>> variables = block.init(jax.random.PRNGKey(0), jnp.ones((3, 4)))
    >>> variables["params"]["Dense_0"]["kernel"].shape
    (4, 8)
    """

    num_heads: int
    d_model: int
    d_ff: int

    @nn.compact
    def __call__(self, x: jax.Array, mask: jax.Array | None = None) -> jax.Array:
        """(T, D) -> (T, D). Where the mask, (T, T) or (H, T, T), is False, none looks.

        The weights, (H, T, T), are stored if "intermediates" is mutable.
        """
        normed = nn.LayerNorm()(x)
        attention = nn.MultiHeadDotProductAttention(
            num_heads=self.num_heads, qkv_features=self.d_model
        )
        x = x + attention(normed, mask=mask, sow_weights=True)
        normed = nn.LayerNorm()(x)
        widened = nn.relu(nn.Dense(self.d_ff)(normed))  # created first: Dense_0
        return x + nn.Dense(self.d_model)(widened)


class MiniBERT(nn.Module):
    """Token and position embeddings, added, and num_layers blocks; nothing behind them.

    Attributes:
        vocab_size: V.
        d_model: D, a multiple of num_heads.
        num_heads: H.
        d_ff: F.
        num_layers: L; 0 gives the embeddings themselves.

    Source: the Flax exercise.

    >>> model = MiniBERT(vocab_size=5, d_model=4, num_heads=2, d_ff=8, num_layers=0)
    >>> variables = model.init(jax.random.PRNGKey(0), jnp.array([2, 0, 2]))
    >>> sorted(variables["params"])
    ['Embed_0', 'pos_embed']
    """

    vocab_size: int
    d_model: int
    num_heads: int
    d_ff: int
    num_layers: int

    @nn.compact
    def __call__(
        self, token_ids: jax.Array, mask: jax.Array | None = None
    ) -> jax.Array:
        """Ids, int32 of shape (T,), and a mask for every block -> states (T, D)."""
        tokens = nn.Embed(self.vocab_size, self.d_model)(token_ids)
        positions = self.param(
            "pos_embed",
            nn.initializers.normal(stddev=0.02),
            (token_ids.shape[0], self.d_model),  # as many rows as tokens, no more
        )
        x = tokens + positions
        for _ in range(self.num_layers):
            x = BERTBlock(self.num_heads, self.d_model, self.d_ff)(x, mask)
        return x


def mini_bert_forward(
    seed: int,
    token_ids: Any,
    vocab_size: int,
    d_model: int,
    num_heads: int,
    d_ff: int,
    num_layers: int,
) -> jax.Array:
    """The hidden states of a freshly initialised MiniBERT, as one long row.

    Under ``jax.jit`` everything but token_ids must be static. The ids are then
    traced: their shape and dtype are known, their values are not, so that only the
    shape is checked. Call check_token_ids before, outside.

    Args:
        seed: a whole number; becomes ``jax.random.PRNGKey(int(seed))``.
        token_ids: T whole numbers in [0, vocab_size), of any real dtype, T >= 1.
        vocab_size: V, at least 1.
        d_model: D, a multiple of num_heads.
        num_heads: H, at least 1.
        d_ff: F, at least 1.
        num_layers: L, at least 0.

    Returns:
        float32 of shape (T * D,), features fastest.

    Raises:
        ValueError: if an argument is not as described; it names the argument.

    Source: the Flax exercise.

    >>> states = mini_bert_forward(0, [0.0, 1.0, 0.0], 2, 4, 2, 8, 1)
    >>> states.shape, states.dtype
    ((12,), dtype('float32'))
    >>> mini_bert_forward(0, [0, 2, 0], 2, 4, 2, 8, 1)
    Traceback (most recent call last):
    ValueError: token_ids must be in [0, vocab_size) = [0, 2), got 2 at position 1
    """
    seed = whole_number("seed", seed)
    vocab_size = whole_number("vocab_size", vocab_size, least=1)
    d_model = whole_number("d_model", d_model, least=1)
    num_heads = whole_number("num_heads", num_heads, least=1)
    d_ff = whole_number("d_ff", d_ff, least=1)
    num_layers = whole_number("num_layers", num_layers, least=0)
    if d_model % num_heads:
        raise ValueError(
            f"d_model must be a multiple of num_heads = {num_heads}, got {d_model}"
        )
    ids = jnp.asarray(check_token_ids(token_ids, vocab_size), dtype=jnp.int32)
    model = MiniBERT(vocab_size, d_model, num_heads, d_ff, num_layers)
    variables = model.init(jax.random.PRNGKey(seed), ids)
    return model.apply(variables, ids).reshape(-1)


def whole_number(name: str, value: Any, *, least: int | None = None) -> int:
    """A configuration value as a Python int: 8, numpy.int64(8) and 8.0 are all 8.

    Raises:
        ValueError: if value is not a whole number, is smaller than least, or is
            traced because it was not made static.

    Source: the Flax exercise.

    >>> whole_number("d_model", 8.0, least=1)
    8
    >>> whole_number("num_layers", -1, least=0)
    Traceback (most recent call last):
    ValueError: num_layers must be at least 0, got -1
    """
    if isinstance(value, jax.core.Tracer):
        raise ValueError(
            f"{name} must be static under jax.jit: list it in static_argnames"
        )
    array = np.asarray(value)
    number = array.ndim == 0 and array.dtype.kind in "iuf"
    if not number or not np.isfinite(array) or array != np.floor(array):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if least is not None and array < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}")
    return int(array)


def check_token_ids(token_ids: Any, vocab_size: int) -> Any:
    """The ids as an array, after a clear error for any that has no embedding row.

    Args:
        token_ids: what should be T >= 1 whole numbers in [0, vocab_size).
        vocab_size: V.

    Returns:
        the ids as a NumPy array of shape (T,); traced ids as they came, because
        under ``jax.jit`` there are no values to look at.

    Raises:
        ValueError: if token_ids is not 1-D, is empty, or holds anything but whole
            numbers from 0 to vocab_size - 1.

    Source: the Flax exercise.

    >>> check_token_ids([0.0, 1.0], 2)
    array([0., 1.])
    >>> check_token_ids([0.5], 2)
    Traceback (most recent call last):
    ValueError: token_ids must be whole numbers, got 0.5 at position 0
    """
    traced = isinstance(token_ids, jax.core.Tracer)
    try:
        ids = token_ids if traced else np.asarray(token_ids)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"token_ids must have shape (T,): {error}") from error
    if ids.ndim != 1 or ids.shape[0] == 0:
        raise ValueError(f"token_ids must have shape (T,), T >= 1, got {ids.shape}")
    if not any(jnp.issubdtype(ids.dtype, kind) for kind in (jnp.integer, jnp.floating)):
        raise ValueError(f"token_ids must be numbers, got dtype {ids.dtype}")
    if traced:
        return ids
    whole = np.isfinite(ids) & (ids == np.floor(ids))
    refuse_first(ids, ~whole, "token_ids must be whole numbers")
    rows = f"token_ids must be in [0, vocab_size) = [0, {vocab_size})"
    refuse_first(ids, (ids < 0) | (ids >= vocab_size), rows)
    return ids


def refuse_first(ids: np.ndarray, bad: np.ndarray, rule: str) -> None:
    """Raise a ValueError that states the rule and the first id that breaks it.

    >>> refuse_first(np.array([3, 9]), np.array([False, True]), "ids must be small")
    Traceback (most recent call last):
    ValueError: ids must be small, got 9 at position 1
    """
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(f"{rule}, got {ids[where]:g} at position {where}")


def causal_boolean_mask(num_tokens: int) -> jax.Array:
    """The mask that hides the future, in Flax's convention: True = may look.

    Args:
        num_tokens: T, at least 1.

    Returns:
        bool of shape (T, T), which broadcasts over heads.

    Raises:
        ValueError: if num_tokens is not a positive whole number.

    Source: the Flax exercise.

    >>> causal_boolean_mask(2)
    Array([[ True, False],
           [ True,  True]], dtype=bool)
    """
    num_tokens = whole_number("num_tokens", num_tokens, least=1)
    return jnp.tril(jnp.ones((num_tokens, num_tokens), dtype=bool))


def check_mini_bert(forward: Callable[..., Any]) -> list[tuple[str, bool]]:
    """Your mini_bert_forward beside the book's, a row for each part of the contract.

    Args:
        forward: a function with the arguments of mini_bert_forward.

    Returns:
        rows (what is checked, whether it holds); a check that raises does not hold.

    Source: the Flax exercise.

    >>> all(holds for _, holds in check_mini_bert(mini_bert_forward))
    True
    """
    ids = np.array([0, 1, 0, 4], dtype=np.float32)
    sizes = (5, 4, 2, 8)
    zero, two = (*sizes, 0), (*sizes, 2)
    static = (0, 2, 3, 4, 5, 6)

    def same(seed: int, config: tuple[int, ...], of: Callable[..., Any]) -> bool:
        ours = mini_bert_forward(seed, ids, *config)
        return bool(np.allclose(of(seed, ids, *config), ours, rtol=0, atol=1e-5))

    def shaped() -> bool:
        states = forward(0, ids, *two)
        return states.shape == (len(ids) * sizes[1],) and states.dtype == jnp.float32

    checks = [
        ("one row of T times D, float32", shaped),
        ("without blocks: tokens plus positions", lambda: same(0, zero, forward)),
        ("two blocks", lambda: same(0, two, forward)),
        ("another seed", lambda: same(1, two, forward)),
        ("under jit", lambda: same(0, zero, jax.jit(forward, static_argnums=static))),
        ("refuses an id without a row", lambda: refuses(forward, [0, 5], *two)),
        ("refuses half an id", lambda: refuses(forward, [0, 0.5], *two)),
    ]
    return [(name, holds_quietly(check)) for name, check in checks]


def refuses(forward: Callable[..., Any], token_ids: list, *config: int) -> bool:
    """Whether these ids raise a ValueError that names token_ids.

    >>> refuses(mini_bert_forward, [9], 5, 4, 2, 8, 0)
    True
    """
    try:
        forward(0, token_ids, *config)
    except ValueError as error:
        return "token_ids" in str(error)
    return False


def holds_quietly(check: Callable[[], bool]) -> bool:
    """The answer of a check; False if it raises, so that the other checks still run.

    >>> holds_quietly(lambda: 1 / 0)
    False
    """
    try:
        return bool(check())
    except Exception:
        return False
