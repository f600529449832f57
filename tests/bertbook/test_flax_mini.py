"""The Flax exercise against its contract, and against NumPy."""

import os
import subprocess
import sys
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.flax_mini import (
    MiniBERT,
    causal_boolean_mask,
    check_mini_bert,
    check_token_ids,
    mini_bert_forward,
    whole_number,
)
from bertbook.flax_weights import flattened
from book_paths import ROOT

# One configuration for all tests: XLA compiles every shape anew, which takes seconds.
V, D, H, F, L = SIZES = (5, 4, 2, 8, 2)
IDS = (0, 1, 0, 4)
NAMED = {"seed": 0, "vocab_size": V, "d_model": D, "num_heads": H, "d_ff": F, "num_layers": L}
STATIC = (0, 2, 3, 4, 5, 6)


@cache
def made(seed: int = 0):
    model = MiniBERT(*SIZES)
    return model, model.init(jax.random.PRNGKey(seed), jnp.array(IDS))


def close(a, b) -> bool:
    return np.allclose(a, b, rtol=0, atol=1e-5)


def numpy_states(params: dict, ids) -> np.ndarray:
    """The contract once more, one head and one query at a time."""
    get = {name: array.astype(np.float64) for name, array in flattened(params).items()}
    x = get["Embed_0/embedding"][list(ids)] + get["pos_embed"]

    def norm(x, name):
        mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-6) * get[f"{name}/scale"] + get[f"{name}/bias"]

    for layer in range(len([name for name in params if name.startswith("BERTBlock_")])):
        block = f"BERTBlock_{layer}"
        attention = f"{block}/MultiHeadDotProductAttention_0"
        normed = norm(x, f"{block}/LayerNorm_0")
        added = np.zeros_like(x) + get[f"{attention}/out/bias"]
        for head in range(get[f"{attention}/query/kernel"].shape[1]):
            query, key, value = (
                normed @ get[f"{attention}/{part}/kernel"][:, head] + get[f"{attention}/{part}/bias"][head]
                for part in ("query", "key", "value")
            )
            for i in range(len(ids)):
                shares = np.exp(key @ query[i] / np.sqrt(key.shape[1]))
                added[i] += (shares / shares.sum()) @ value @ get[f"{attention}/out/kernel"][head]
        x = x + added
        widened = norm(x, f"{block}/LayerNorm_1") @ get[f"{block}/Dense_0/kernel"] + get[f"{block}/Dense_0/bias"]
        x = x + np.maximum(widened, 0) @ get[f"{block}/Dense_1/kernel"] + get[f"{block}/Dense_1/bias"]
    return x


@pytest.mark.parametrize("seed", [0, 7])
def test_equals_numpy(seed):
    _, variables = made(seed)
    states = mini_bert_forward(seed, np.array(IDS, dtype=np.float32), *SIZES)
    assert states.shape == (len(IDS) * D,)
    assert states.dtype == jnp.float32
    assert close(states, numpy_states(variables["params"], IDS).reshape(-1))


def test_numpy_sees_every_parameter():
    """With zeros for biases and ones for scales, a forgotten one would not show: give them other values."""
    model, variables = made()
    rng = np.random.default_rng(0)
    shaken = jax.tree.map(lambda a: a + rng.normal(0, 0.3, a.shape).astype(np.float32), variables)
    assert close(model.apply(shaken, jnp.array(IDS)), numpy_states(shaken["params"], IDS))


def test_scopes_and_shapes_are_the_contracts():
    _, variables = made()
    attention = "MultiHeadDotProductAttention_0"
    block = {
        "LayerNorm_0/scale": (D,),
        "LayerNorm_0/bias": (D,),
        **{f"{attention}/{part}/kernel": (D, H, D // H) for part in ("query", "key", "value")},
        **{f"{attention}/{part}/bias": (H, D // H) for part in ("query", "key", "value")},
        f"{attention}/out/kernel": (H, D // H, D),
        f"{attention}/out/bias": (D,),
        "LayerNorm_1/scale": (D,),
        "LayerNorm_1/bias": (D,),
        "Dense_0/kernel": (D, F),
        "Dense_0/bias": (F,),
        "Dense_1/kernel": (F, D),
        "Dense_1/bias": (D,),
    }
    expected = {"Embed_0/embedding": (V, D), "pos_embed": (len(IDS), D)}
    expected |= {f"BERTBlock_{i}/{name}": shape for i in range(L) for name, shape in block.items()}
    assert set(variables) == {"params"}
    assert {name: array.shape for name, array in flattened(variables["params"]).items()} == expected


def test_positions_are_normal_with_std_0_02():
    model = MiniBERT(2, 64, 1, 1, 0)
    table = model.init(jax.random.PRNGKey(0), jnp.zeros(64, dtype=jnp.int32))["params"]["pos_embed"]
    assert 0.019 < float(table.std()) < 0.021


def test_jit_equals_no_jit():
    """The whole public function, with everything but the ids static."""
    compiled = jax.jit(mini_bert_forward, static_argnums=STATIC)
    ids = np.array(IDS, dtype=np.float32)
    assert close(compiled(0, ids, *SIZES), mini_bert_forward(0, ids, *SIZES))


def test_no_blocks_give_the_embeddings():
    _, variables = made()
    params = variables["params"]
    expected = params["Embed_0"]["embedding"][jnp.array(IDS)] + params["pos_embed"]
    assert close(mini_bert_forward(0, IDS, V, D, H, F, 0), expected.reshape(-1))


def test_same_seed_same_numbers_other_seed_others():
    states = [np.asarray(mini_bert_forward(seed, IDS, *SIZES)) for seed in (0, 0.0, np.int64(0), 1)]
    assert (states[0] == states[1]).all()
    assert (states[0] == states[2]).all()
    assert not close(states[0], states[3])


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, V - 1), min_size=4, max_size=4), st.permutations(range(4)))
def test_equivariant_without_positions_only(ids, order):
    model, variables = made()
    bare = {"params": variables["params"] | {"pos_embed": jnp.zeros((4, D))}}
    ids, order = jnp.array(ids), jnp.array(order)
    assert close(model.apply(bare, ids[order]), model.apply(bare, ids)[order])


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, V - 1), min_size=4, max_size=4), st.integers(1, 3), st.integers(0, V - 1))
def test_causal_states_do_not_know_what_comes_later(ids, position, other):
    model, variables = made()
    ids = jnp.array(ids)
    before, after = (model.apply(variables, i, causal_boolean_mask(4)) for i in (ids, ids.at[position].set(other)))
    assert (before[:position] == after[:position]).all()


def test_a_later_token_changes_an_earlier_state():
    model, variables = made()
    ids = jnp.array(IDS)
    assert not close(model.apply(variables, ids)[0], model.apply(variables, ids.at[3].set(2))[0])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0, 5], r"token_ids must be in \[0, vocab_size\) = \[0, 5\), got 5 at position 1"),
        ([-1, 0], "token_ids must be in .* got -1 at position 0"),
        ([0, 0.5], "token_ids must be whole numbers, got 0.5 at position 1"),
        ([0, float("nan")], "token_ids must be whole numbers, got nan"),
        ([float("inf")], "token_ids must be whole numbers, got inf"),
        ([[0, 1]], r"token_ids must have shape \(T,\), T >= 1, got \(1, 2\)"),
        (3, r"token_ids must have shape \(T,\)"),
        ([], r"token_ids must have shape \(T,\)"),
        ([[0], [0, 1]], r"token_ids must have shape \(T,\)"),
        (["a"], "token_ids must be numbers"),
        ([True, False], "token_ids must be numbers, got dtype bool"),
        ([1j], "token_ids must be numbers"),
    ],
)
def test_bad_ids_are_named(ids, message):
    with pytest.raises(ValueError, match=message):
        mini_bert_forward(0, ids, *SIZES)


@pytest.mark.parametrize("name", ["vocab_size", "d_model", "num_heads", "d_ff", "num_layers", "seed"])
@pytest.mark.parametrize("value", [1.5, float("nan"), float("inf"), "2", None, True, [2]])
def test_sizes_that_are_no_numbers_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a whole number"):
        mini_bert_forward(token_ids=IDS, **NAMED | {name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("vocab_size", 0), ("d_model", 0), ("num_heads", 0), ("d_ff", 0), ("num_layers", -1)]
)
def test_sizes_that_are_too_small_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        mini_bert_forward(token_ids=IDS, **NAMED | {name: value})


def test_features_that_do_not_divide_are_named():
    with pytest.raises(ValueError, match="d_model must be a multiple of num_heads = 3, got 4"):
        mini_bert_forward(0, IDS, V, 4, 3, F, L)


def test_traced_ids_are_checked_by_shape_only():
    assert jax.jit(lambda ids: check_token_ids(ids, 2))(jnp.array([9])) == 9
    with pytest.raises(ValueError, match=r"token_ids must have shape \(T,\)"):
        jax.jit(lambda ids: check_token_ids(ids, 2))(jnp.array([[0]]))


def test_traced_sizes_say_that_they_must_be_static():
    with pytest.raises(ValueError, match="d_model must be static"):
        jax.jit(lambda size: whole_number("d_model", size))(4)


def test_another_length_needs_other_variables():
    model, variables = made()
    with pytest.raises(Exception, match='parameter "pos_embed"'):
        model.apply(variables, jnp.array(IDS[:3]))


# What check_mini_bert finds in a reader's version.


def unchecked(seed, token_ids, *sizes):
    model, ids = MiniBERT(*sizes), jnp.asarray(token_ids).astype(jnp.int32)
    return model.apply(model.init(jax.random.PRNGKey(seed), ids), ids).reshape(-1)


def other_seed(seed, *rest):
    return mini_bert_forward(0, *rest)


def not_flat(seed, token_ids, vocab_size, d_model, *sizes):
    return mini_bert_forward(seed, token_ids, vocab_size, d_model, *sizes).reshape(-1, d_model)


def looks_at_ids(seed, token_ids, *sizes):
    float(token_ids[0])
    return mini_bert_forward(seed, token_ids, *sizes)


class OuterFirst(nn.Module):
    d_model: int
    d_ff: int
    num_heads: int

    @nn.compact
    def __call__(self, x):
        attention = nn.MultiHeadDotProductAttention(num_heads=self.num_heads, qkv_features=self.d_model)
        x = x + attention(nn.LayerNorm()(x))
        return x + nn.Dense(self.d_model)(nn.relu(nn.Dense(self.d_ff)(nn.LayerNorm()(x))))


def one_liner(seed, token_ids, vocab_size, d_model, num_heads, d_ff, num_layers):
    """The common wrong answer: the outer Dense layer is created first."""
    mini_bert_forward(seed, token_ids, vocab_size, d_model, num_heads, d_ff, 0)
    ids = jnp.asarray(token_ids).astype(jnp.int32)

    class Model(MiniBERT):
        @nn.compact
        def __call__(self, token_ids):
            x = nn.Embed(self.vocab_size, self.d_model)(token_ids)
            x += self.param("pos_embed", nn.initializers.normal(0.02), x.shape)
            for i in range(self.num_layers):
                x = OuterFirst(self.d_model, self.d_ff, self.num_heads, name=f"BERTBlock_{i}")(x)
            return x

    model = Model(vocab_size, d_model, num_heads, d_ff, num_layers)
    return model.apply(model.init(jax.random.PRNGKey(seed), ids), ids).reshape(-1)


@pytest.mark.parametrize(
    ("forward", "failing"),
    [
        (mini_bert_forward, set()),
        (unchecked, {"refuses an id without a row", "refuses half an id"}),
        (other_seed, {"another seed"}),
        (not_flat, {"one row of T times D, float32"}),
        (looks_at_ids, {"under jit"}),
        (one_liner, {"two blocks", "another seed"}),
    ],
)
def test_the_readers_check_names_the_fault(forward, failing):
    found = {name for name, holds in check_mini_bert(forward) if not holds}
    if forward is not_flat:
        assert failing <= found
    else:
        assert found == failing


def test_only_this_module_imports_jax():
    """The torch chapters do not pay for it; and importing it prints and warns nothing."""
    modules = sorted(
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "src/bertbook").rglob("*.py")
        if path.name != "flax_mini.py"
    )
    program = f"import sys, {', '.join(modules)}; sys.exit('jax' in sys.modules or 'flax' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
    environment["PYTHONPATH"] = str(ROOT / "src")
    assert subprocess.run([sys.executable, "-c", program], env=environment).returncode == 0
    quiet = "from bertbook.flax_mini import mini_bert_forward as f; f(0, [0], 1, 1, 1, 1, 0)"
    run = subprocess.run([sys.executable, "-W", "error", "-c", quiet], env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
