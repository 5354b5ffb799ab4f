"""Several products of long matrices, as in the heads of attention: one loop over all of them, with memory for one."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pair_programs import STEPS, data, kernel, program, square

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.loops import ir, queries
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.check import verify
from functrans.lowering.loops.passes import row_blocks, row_calls
from functrans.lowering.python.emit import emit_python
from functrans.lowering.python.runtime import python_function
from functrans.scipy.special import softmax


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Heads and blocks of a few rows."""
    monkeypatch.setattr(row_calls, "MANY", 40)
    monkeypatch.setattr(row_calls, "LARGEST", 8)
    for name, value in {
        "LEAST": 1,
        "LEAST_WIDE": 1,
        "LEAST_HEAD": 1,
        "FEWEST_WIDE": 8,
        "MOST_WIDE": 12,
    }.items():
        monkeypatch.setattr(row_blocks, name, value)


def operands(*axes, rows=61, columns=47, width=5, seed=0):
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(*axes, n, w)) for n, w in ((rows, width), (columns, width), (columns, width + 2))
    ]


def attention(np_, q, k, v):
    scores = q @ np_.swapaxes(k, -1, -2) / 3.0
    e = np_.exp(scores - np_.max(scores, axis=-1, keepdims=True))
    return (e / np_.sum(e, axis=-1, keepdims=True)) @ v


def loops_with_products(f, *args, threads=1):
    """How many of the outermost loops have products inside."""
    body = kernel(f, *args, threads=threads).kernel.body
    return sum(
        any(type(t) is ir.Call for t in queries.walk(inner))
        for s in body.statements
        for inner in queries.bodies_of(s)
    )


def gradient_by_head(q, k, v):
    """The gradient of half the sum of squares, in NumPy's operations."""
    scores = q @ np.swapaxes(k, -1, -2) / 3
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    ct = weights @ v
    d = ct @ np.swapaxes(v, -1, -2)
    d = weights * (d - np.sum(weights * d, -1, keepdims=True)) / 3
    return d @ k, np.swapaxes(d, -1, -2) @ q, np.swapaxes(weights, -1, -2) @ ct


FORMS = {
    "broadcasting": partial(attention, fnp),
    "vmap": lambda *args: over_all(args)(*args),
    "einsum": lambda q, k, v: fnp.einsum(
        "...st,...te->...se", softmax(fnp.einsum("...sd,...td->...st", q, k) / 3.0, axis=-1), v
    ),
    "map": lambda *args: lax.map(lambda a: FORMS["broadcasting"](*a), args),
}


def over_all(args):
    f = partial(attention, fnp)
    for _ in range(args[0].ndim - 2):
        f = ft.vmap(f)
    return f


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("axes", [(3,), (2, 3), (7,), (1, 2)], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_value_and_gradient(form, axes, threads):
    q, k, v = operands(*axes)
    f = FORMS[form]
    with ft.config.patch(num_threads=threads):
        np.testing.assert_allclose(ft.jit(f)(q, k, v), attention(np, q, k, v), rtol=1e-11, atol=1e-13)
        value, found = ft.jit(ft.value_and_grad(square(f), argnums=(0, 1, 2)))(q, k, v)
    np.testing.assert_allclose(value, np.sum(attention(np, q, k, v) ** 2) / 2, rtol=1e-11)
    for a, b in zip(found, gradient_by_head(q, k, v), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("form", ["broadcasting", "vmap", "einsum"])
def test_one_loop_over_heads(form, threads):
    q, k, v = operands(3)
    assert loops_with_products(FORMS[form], q, k, v, threads=threads) == 1
    both = ft.value_and_grad(square(FORMS[form]), argnums=(0, 1, 2))
    assert loops_with_products(both, q, k, v, threads=threads) == 1
    q, k, v = operands(2, 3)
    assert loops_with_products(both, q, k, v, threads=threads) == 1


LAYOUTS = ["hsd", "shd", "bhsd", "bshd", "sbhd", "hds", "dhs"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, threads):
    """Heads on any axis: rows of a head are then not side by side."""
    rng = np.random.default_rng(3)
    sizes = {"b": 2, "h": 3, "s": 53, "t": 45, "d": 4}
    of_keys = layout.replace("s", "t")
    q, k, v = [rng.normal(size=[sizes[c] for c in w]) for w in (layout, of_keys, of_keys)]
    scores = layout.replace("d", "").replace("s", "") + "st"

    def f(np_, q, k, v):
        z = np_.einsum(f"{layout},{of_keys}->{scores}", q, k)
        e = np_.exp(z - np_.max(z, axis=-1, keepdims=True))
        return np_.einsum(f"{scores},{of_keys}->{layout}", e / np_.sum(e, axis=-1, keepdims=True), v)

    with ft.config.patch(num_threads=threads):
        np.testing.assert_allclose(ft.jit(partial(f, fnp))(q, k, v), f(np, q, k, v), rtol=1e-10, atol=1e-13)
        g = ft.jit(ft.grad(square(partial(f, fnp)), argnums=(0, 1, 2)))(q, k, v)
    turned = lambda x, names, to: np.einsum(f"{names}->{to}", x)
    heads = scores[:-2]
    rows, keys = heads + "sd", heads + "td"
    args = turned(q, layout, rows), turned(k, of_keys, keys), turned(v, of_keys, keys)
    expected = gradient_by_head(3 * args[0], args[1], args[2])  # scores are not divided by 3 here
    for a, b, (names, to) in zip(
        g, (3 * expected[0], expected[1], expected[2]), ((rows, layout), (keys, of_keys), (keys, of_keys))
    ):
        np.testing.assert_allclose(a, turned(b, names, to), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_shared_by_heads(threads):
    """Keys of a group of heads, a mask, a bias for each head, whose gradient is a result, and a sum over all heads."""
    q, _, _ = operands(4)
    _, k, v = operands()
    rng = np.random.default_rng(5)
    bias, mask = rng.normal(size=(4, 61, 47)), rng.random((61, 47)) < 0.8

    def f(np_, q, k, v, bias):
        z = np_.where(mask, np_.einsum("hsd,td->hst", q, k) + bias, -9.0)
        w = np_.exp(z - np_.max(z, axis=-1, keepdims=True))
        return np_.sum(w / np_.sum(w, axis=-1, keepdims=True) * np_.tanh(z)), w @ v

    def numeric(i, at):
        args = [x.copy() for x in (q, k, v, bias)]
        ends = []
        for h in (1e-5, -2e-5):
            args[i][at] += h
            ends.append(total(np, *args))
        return (ends[0] - ends[1]) / 2e-5

    total = lambda np_, *args: f(np_, *args)[0] + np_.sum(f(np_, *args)[1] ** 2)
    with ft.config.patch(num_threads=threads):
        for a, b in zip(ft.jit(partial(f, fnp))(q, k, v, bias), f(np, q, k, v, bias), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
        g = ft.jit(ft.grad(partial(total, fnp), argnums=(0, 1, 2, 3)))(q, k, v, bias)
    for i, at in (
        (0, (0, 0, 0)),
        (0, (3, 60, 4)),
        (1, (46, 2)),
        (2, (5, 6)),
        (3, (2, 30, 11)),
        (3, (1, 0, 46)),
    ):
        np.testing.assert_allclose(g[i][at], numeric(i, at), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [0, 1, 45])
@pytest.mark.parametrize(("columns", "width"), [(0, 3), (1, 1), (41, 0), (41, 1)])
def test_empty_matrices_and_single_rows(rows, columns, width):
    """Of length 0 or 1 along each axis, of heads along an axis or in `lax.map`."""
    q, k, v = np.ones((3, rows, width)), np.full((3, columns, width), 0.5), np.full((3, columns, 2), 0.25)

    def f(np_, q, k, v):
        return np_.tanh(q @ np_.swapaxes(k, -1, -2)) @ v

    expected = f(np, q, k, v)
    np.testing.assert_allclose(ft.jit(partial(f, fnp))(q, k, v), expected)
    np.testing.assert_allclose(ft.jit(lambda *x: lax.map(lambda a: f(fnp, *a), x))(q, k, v), expected)
    _, _, of_v = ft.jit(ft.grad(lambda *x: fnp.sum(f(fnp, *x)), argnums=(0, 1, 2)))(q, k, v)
    np.testing.assert_allclose(of_v, np.full(v.shape, rows * np.tanh(0.5 * width)))


def test_what_a_later_head_reads_of_an_earlier_one():
    """Scores of the head before: then there is no loop over heads that do all of it."""
    q, k, v = operands(3)

    def f(np_, q, k, v):
        z = np_.tanh(q @ np_.swapaxes(k, 1, 2))
        return np_.roll(z, 1, axis=0) @ v, z[::-1] @ v, np_.cumsum(z, axis=0)[:2] @ v[1:]

    for a, b in zip(ft.jit(partial(f, fnp))(q, k, v), f(np, q, k, v), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("axes", [(4,), (2, 4)], ids=str)
def test_memory_is_that_of_a_few_rows(monkeypatch, axes, threads):
    monkeypatch.undo()
    x = ft.ShapeDtypeStruct((*axes, 2048, 64), float)
    with ft.config.patch(num_threads=threads):
        f = ft.jit(ft.value_and_grad(square(FORMS["vmap"]), argnums=(0, 1, 2)))
        used = f.lower(x, x, x).compile().memory_analysis().temp_size_in_bytes
    assert used < 2.5 * 2048**2 * 8  # of two or three matrices of pairs for each of the heads


def test_equal_bits_with_two_threads():
    q, k, v = operands(5)
    with ft.config.patch(num_threads=2):
        f = ft.jit(ft.value_and_grad(square(FORMS["vmap"]), argnums=(0, 1, 2)))
        first = ft.tree_util.tree_leaves(f(q, k, v))
        for _ in range(20):
            for a, b in zip(first, ft.tree_util.tree_leaves(f(q, k, v)), strict=True):
                np.testing.assert_array_equal(a, b)


def compare(steps, axes, heads, threads):
    """Random programs under vmap, beside NumPy's for each head, and their gradients without blocks."""
    one = data(53, 53, 4)
    args = [one[0], one[1], one[2][:, :4].copy(), one[2][:, 4].copy()]
    rng = np.random.default_rng(heads)
    args = [
        x
        if axis is None
        else np.stack([x + 0.3 * rng.normal(size=x.shape) for _ in range(heads)], min(axis, x.ndim))
        for x, axis in zip(args, axes)
    ]
    axes = [axis if axis is None else min(axis, x.ndim - 1) for x, axis in zip(args, axes)]
    if all(axis is None for axis in axes):
        args[0], axes[0] = np.stack([args[0]] * heads), 0
    f = program(steps)
    of_head = lambda i: [
        x if a is None else np.ascontiguousarray(np.moveaxis(x, a, 0)[i]) for x, a in zip(args, axes)
    ]
    mapped = lambda: ft.vmap(partial(f, fnp), axes)
    slope = lambda: ft.grad(lambda *a: sum(map(fnp.sum, mapped()(*a))), argnums=(0, 1, 2))
    with ft.config.patch(num_threads=threads):
        found = ft.jit(mapped())(*args)
        g = ft.jit(slope())(*args)
    for i in range(heads):
        for a, b in zip(found, f(np, *of_head(i)), strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-9, atol=1e-10 * np.max(np.abs(b), initial=1.0))
    with ft.config.patch(without={"row_blocks"}, num_threads=1):
        expected = ft.jit(slope())(*args)
    for a, b in zip(g, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10 * np.max(np.abs(b), initial=1.0))


AXES = st.tuples(*[st.sampled_from([0, 0, 1, 2, None])] * 4)


@settings(max_examples=10, deadline=None)
@given(STEPS, AXES, st.sampled_from([2, 3, 5]), st.sampled_from([1, 2]))
def test_random_programs(steps, axes, heads, threads):
    compare(steps, axes, heads, threads)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(STEPS, AXES, st.sampled_from([2, 3, 5]), st.sampled_from([1, 2]))
def test_many_random_programs(steps, axes, heads, threads):
    compare(steps, axes, heads, threads)


H, S, D, E = 3, 20, 4, 5


def products_of_heads(shape, place, step, distance):
    """A kernel that puts ``x[h] @ w[h]`` into scratch memory of a `shape`, adds one, and multiplies by ``u[h]``.

    `place` gives the index of an element; heads are `step` elements apart, rows `distance`.
    """
    b, f8 = StatementBuilder("k"), np.dtype("f8")
    x, w = b.buffer("x", f8, (H, S, D), "in"), b.buffer("w", f8, (H, D, E), "in")
    u, g = b.buffer("u", f8, (H, E, D), "in"), b.buffer("g", f8, (H, S, D), "out")
    z = b.buffer("z", f8, shape, "scratch")
    product = ("gemm", "N", "N")
    with b.loop(H, separate=True) as h:
        b.extern(
            *product, E, S, D, 1.0, (w, h * (D * E)), E, (x, h * (S * D)), D, 0.0, (z, h * step), distance
        )
    with b.loop(H, separate=True) as h, b.loop(S) as i, b.loop(E) as j:
        b.store(z, place(h, i, j), b.load(z, place(h, i, j)) + 1.0)
    with b.loop(H, separate=True) as h:
        b.extern(
            *product, D, S, E, 1.0, (u, h * (E * D)), D, (z, h * step), distance, 0.0, (g, h * (S * D)), D
        )
    return b.finish()


@pytest.mark.parametrize(
    ("shape", "place", "step", "distance", "part"),
    [
        ((H, S, E), lambda h, i, j: (h, i, j), S * E, E, (S, E)),
        ((S, H, E), lambda h, i, j: (i, h, j), E, H * E, (S, E)),
        ((H, S, H, E), lambda h, i, j: (h, i, 0, j), S * H * E, H * E, (S, H, E)),
        ((2, H, S, E), lambda h, i, j: (0, h, i, j), S * E, E, (2, S, E)),
        ((S, E * H), lambda h, i, j: (i, h * E + j), E, E * H, None),
        ((H, S, E + 2), lambda h, i, j: (h, i, j), S * (E + 2), E + 2, (S, E + 2)),
    ],
    ids=["in a row", "rows of heads", "of more", "one of two", "one axis for both", "with a gap"],
)
def test_the_memory_of_one_head_keeps_the_order_of_its_elements(shape, place, step, distance, part):
    """Where heads are an axis between others, elements are nearer to each other in the memory of one."""
    kernel = products_of_heads(shape, place, step, distance)
    row_blocks.block_rows(kernel, 1)
    verify(kernel)
    assert [y.shape for y in kernel.buffers if y.name.endswith("_rows")] == ([] if part is None else [part])
    rng = np.random.default_rng(15)
    memory = {y.name: rng.normal(size=y.shape) for y in kernel.buffers if y.role == "in"}
    memory |= {y.name: np.full(y.shape, np.nan) for y in kernel.buffers if y.role != "in"}
    buffers = [y for y in kernel.buffers if y.role not in ("stack", "tape")]
    assert python_function(kernel, emit_python(kernel))(*[memory[y.name] for y in buffers]) == 0
    x, w, u = (memory[name] for name in "xwu")
    np.testing.assert_allclose(memory["g"], (x @ w + 1.0) @ u, rtol=1e-12)
