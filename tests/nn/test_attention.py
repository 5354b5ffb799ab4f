"""Attention: stored and in blocks, against NumPy and finite differences; what it stores for long sequences."""

import math

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import nn
from functrans.errors import ArgumentError, ArgumentValueError, DtypeError, ShapeError
from functrans.nn import attention
from functrans.testing.finite_difference import directional_derivative

RANDOM = np.random.default_rng(5)
MASK = RANDOM.random((1, 4, 9, 7)) < 0.4
MASK[0, 1, 3] = False  # a query without keys
CASES = {
    "plain": {},
    "causal": {"is_causal": True},
    "window": {"local_window_size": (2, 1), "is_causal": True},
    "masked": {"mask": MASK, "scale": 0.3},
    "bias": {"bias": RANDOM.normal(size=(1, 4, 9, 7))},
    "bias of keys": {"bias": RANDOM.normal(size=(2, 1, 1, 7)), "is_causal": True},
    "lengths": {
        "key_value_seq_lengths": np.array([3, 7], np.int32),
        "query_seq_lengths": np.array([9, 4], np.int32),
    },
}


def drawn(queries=9, keys=7, heads=4, own=2, dtype=float):
    shapes = (2, queries, heads, 3), (2, keys, own, 3), (2, keys, own, 3)
    return tuple(RANDOM.normal(size=s).astype(dtype) for s in shapes)


def by_numpy(q, k, v, bias=None, mask=None, scale=None, is_causal=False, **limits):
    """The definition, and the logarithms of the rows' sums."""
    k, v = (np.repeat(x, q.shape[2] // x.shape[2], axis=2) for x in (k, v))
    logits = np.einsum("btnd,bsnd->bnts", q, k) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    logits = logits if bias is None else logits + bias
    taken = np.ones(logits.shape, bool) if mask is None else np.broadcast_to(mask, logits.shape).copy()
    t, s = np.arange(q.shape[1])[:, None], np.arange(k.shape[1])
    if is_causal:
        taken &= s <= t
    if "local_window_size" in limits:
        before, after = limits["local_window_size"]
        taken &= (s >= t - before) & (s <= t + after)
    if "key_value_seq_lengths" in limits:
        taken &= s < limits["key_value_seq_lengths"][:, None, None, None]
    logits = np.where(taken, logits, -1e30)  # without any key, all have the same weight
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    total = weights.sum(-1, keepdims=True)
    out = np.einsum("bnts,bsnd->btnd", weights / total, v)
    if "query_seq_lengths" in limits:
        out = out * (t < limits["query_seq_lengths"][:, None, None]).reshape(2, -1, 1, 1)
    return out, (logits.max(-1, keepdims=True) + np.log(total))[..., 0].transpose(0, 2, 1)


WAYS = ["stored", "blocks"]
#: Run always; the others are slow.
QUICK = {("stored", "lengths"), ("blocks", "window"), ("blocks", "masked"), ("blocks", "bias")}


def choose(way, monkeypatch):
    if way == "blocks":
        monkeypatch.setattr(attention, "_SHORT", 0)
        monkeypatch.setattr(attention, "_BLOCK", 4)


@pytest.mark.parametrize(
    ("way", "name"),
    [
        pytest.param(w, n, marks=[] if (w, n) in QUICK else pytest.mark.slow, id=f"{w}-{n}")
        for w in WAYS
        for n in CASES
    ],
)
def test_values_and_derivatives(way, name, monkeypatch):
    choose(way, monkeypatch)
    options = dict(CASES[name])
    traced = (*drawn(), *([options.pop("bias")] if "bias" in options else []))
    f = lambda *x: nn.dot_product_attention(*x, **options)

    def everything(primals, tangents, ct):
        return f(*primals), ft.jvp(f, primals, tangents)[1], ft.vjp(f, *primals)[1](ct)

    directions = tuple(RANDOM.normal(size=x.shape) for x in traced)
    ct = RANDOM.normal(size=traced[0].shape)
    out, moved, cts = ft.jit(everything)(traced, directions, ct)
    np.testing.assert_allclose(out, by_numpy(*traced, **options)[0], rtol=1e-12, atol=1e-12)
    slope, _ = directional_derivative(lambda x: [by_numpy(*x, **options)[0]], traced, directions)
    np.testing.assert_allclose(moved, slope[0], rtol=0, atol=1e-8)
    left, right = np.sum(moved * ct), sum(np.sum(d * c) for d, c in zip(directions, cts))
    assert abs(left - right) < 1e-11 * (1 + abs(left))
    assert all(np.isfinite(c).all() for c in cts)


@pytest.mark.parametrize("way", WAYS)
def test_residual_dtype_and_vmap(way, monkeypatch):
    choose(way, monkeypatch)
    q, k, v = drawn(dtype=np.float32)
    out, lse = nn.dot_product_attention(q, k, v, return_residual=True)
    expected = by_numpy(q, k, v)
    assert out.dtype == lse.dtype == np.float32
    np.testing.assert_allclose(out, expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(lse, expected[1], rtol=1e-5)
    one = ft.vmap(nn.dot_product_attention)(q, k, v)  # three axes in each lane
    np.testing.assert_allclose(one, out, rtol=1e-5, atol=1e-6)


def test_second_derivatives_in_blocks(monkeypatch):
    choose("blocks", monkeypatch)
    q, k, v = (x[:1, :, :2] for x in drawn(6, 6, 2, 2))
    loss = lambda q: fnp.sum(nn.dot_product_attention(q, k, v, is_causal=True) ** 2)
    d = RANDOM.normal(size=q.shape)
    got = ft.jvp(ft.grad(loss), (q,), (d,))[1]
    slope, _ = directional_derivative(lambda x: [ft.grad(loss)(x[0])], (q,), (d,))
    np.testing.assert_allclose(got, slope[0], rtol=0, atol=1e-8)


def sizes(jaxpr):
    """The sizes of all arrays in a program and in its bodies."""
    from functrans.core import subjaxprs

    for eqn in jaxpr.eqns:
        yield from (math.prod(v.aval.shape) for v in eqn.outvars)
        for inner in subjaxprs(eqn.params):
            yield from sizes(inner)


def test_long_sequences_store_no_weights():
    q, k, v = (np.zeros((1, 4096, 1, 4)) for _ in range(3))
    loss = lambda *x: fnp.sum(nn.dot_product_attention(*x, is_causal=True))
    for f in (loss, ft.grad(loss, (0, 1, 2)), lambda *x: ft.jvp(loss, x, x)):
        assert 4096 * 4 <= max(sizes(ft.make_jaxpr(f)(q, k, v))) <= 256 * 256 < 4096 * 4096


def test_empty():
    q, k, v = drawn()
    assert nn.dot_product_attention(q[:, :0], k, v).shape == (2, 0, 4, 3)
    np.testing.assert_array_equal(nn.dot_product_attention(q, k[:, :0], v[:, :0]), np.zeros(q.shape))


def test_scaled():
    a, b = RANDOM.normal(size=(2, 3, 8)), RANDOM.normal(size=(2, 4, 8))
    s, t = RANDOM.random((2, 3, 2)), RANDOM.random((2, 4, 2))
    expected = np.einsum("bmjk,bnjk,bmj,bnj->bmn", a.reshape(2, 3, 2, 4), b.reshape(2, 4, 2, 4), s, t)
    np.testing.assert_allclose(nn.scaled_matmul(a, b, s, t, preferred_element_type=float), expected)


Q, K = np.ones((2, 5, 4, 3)), np.ones((2, 6, 2, 3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.dot_product_attention(Q[0, 0], K, K), ShapeError, "query must have axes"),
        (lambda: nn.dot_product_attention(Q, K, K[:1]), ShapeError, "do not match"),
        (lambda: nn.dot_product_attention(Q, K.astype(np.float32), K), DtypeError, "one dtype"),
        (lambda: nn.dot_product_attention(Q[:, :, :3], K, K), ArgumentValueError, "multiple.*got 3 and 2"),
        (lambda: nn.dot_product_attention(Q, K, K, mask=np.ones((1, 1, 5, 6))), DtypeError, "mask.*bias"),
        (lambda: nn.dot_product_attention(Q, K, K, np.ones((5, 5))), ShapeError, r"bias of shape \(5, 5\)"),
        (lambda: nn.dot_product_attention(Q, K, K, implementation="cudnn"), ArgumentValueError, "Nvidia"),
        (
            lambda: nn.dot_product_attention(Q, K, K, local_window_size="3"),
            ArgumentError,
            "local_window_size",
        ),
        (lambda: nn.dot_product_attention(Q, K, K, query_seq_lengths=[1]), ShapeError, "query_seq_lengths"),
        (lambda: nn.scaled_matmul(Q[0], K[0], Q[0], K[0]), ShapeError, "j divides k"),
        (lambda: nn.get_scaled_dot_general_config("mxfp8"), AttributeError, "nn.scaled_matmul"),
        (lambda: nn.scaled_dot_general(Q, K, None, configs=[1]), ArgumentValueError, "configs must be None"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
