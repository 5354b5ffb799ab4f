"""``checkpoint``: the same numbers from less memory; its policies; scans with checkpoints."""

import re
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.ir import subjaxprs

POLICIES = ft.checkpoint_policies
RANDOM = np.random.default_rng(0)
W = RANDOM.normal(size=(3, 3)) * 0.5
X = RANDOM.normal(size=(4, 3))

EVERY_POLICY = {
    "none": None,
    "everything": POLICIES.everything_saveable,
    "nothing": POLICIES.nothing_saveable,
    "dots": POLICIES.dots_saveable,
    "plain dots": POLICIES.dots_with_no_batch_dims_saveable,
    "only": POLICIES.save_only_these_names("inner"),
    "but": POLICIES.save_any_names_but_these("outer"),
    "except": POLICIES.save_anything_except_these_names("inner"),
    "both": POLICIES.save_from_both_policies(POLICIES.dots_saveable, POLICIES.save_only_these_names("inner")),
    "own": lambda prim, *avals, **params: prim.name == "tanh" and avals[0].shape == (4, 3),
}


def layer(w, x):
    h = ft.checkpoint_name(fnp.tanh(x @ w), "inner")
    return ft.checkpoint_name(fnp.sin(h @ w) * x, "outer")


def loss(block):
    return lambda w, x: fnp.sum(block(w, block(w, x)) ** 2)


def count(jaxpr, name):
    """How often a primitive stands in a jaxpr, those inside of it included."""
    inner = sum(count(j, name) for e in jaxpr.eqns for j in subjaxprs(e.params))
    return inner + sum(e.primitive.name == name for e in jaxpr.eqns)


def equal(actual, expected):
    actual, expected = ft.tree.leaves(actual), ft.tree.leaves(expected)
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@ft.config.patch(checked=False)  # it copies arguments and results
def peak(f, *args):
    """The most bytes that a first run of a compiled function holds at once."""
    run = ft.jit(f).lower(*args).compile()
    tracemalloc.start()
    try:
        run(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("policy", EVERY_POLICY.values(), ids=EVERY_POLICY)
def test_derivatives_are_those_of_the_function(policy):
    prevent_cse = policy is not POLICIES.dots_saveable
    f, plain = loss(ft.checkpoint(layer, policy=policy, prevent_cse=prevent_cse)), loss(layer)
    equal(f(W, X), plain(W, X))
    expected = ft.grad(plain, (0, 1))(W, X)
    equal(ft.grad(f, (0, 1))(W, X), expected)
    equal(ft.jit(ft.grad(f, (0, 1)))(W, X), expected)
    equal(ft.grad(ft.jit(f), (0, 1))(W, X), expected)
    equal(ft.jvp(f, (W, X), (W, X)), ft.jvp(plain, (W, X), (W, X)))
    many = np.stack([W, 2 * W])
    equal(ft.vmap(ft.grad(f), (0, None))(many, X), np.stack([ft.grad(plain)(w, X) for w in many]))
    hessian = ft.jacfwd(ft.grad(plain))(W, X)
    equal(ft.jacfwd(ft.grad(f))(W, X), hessian)
    equal(ft.jit(ft.jacrev(ft.grad(f)))(W, X), hessian)


def backward(policy, layer=layer):
    """The linear half of one checkpointed layer, transposed."""
    f = ft.checkpoint(layer, policy=policy)
    jaxpr = ft.make_jaxpr(ft.grad(lambda w: fnp.sum(f(w, X))))(W)
    return [e for e in jaxpr.eqns if e.primitive.name == "checkpoint"][-1].params["jaxpr"]


@pytest.mark.parametrize(
    ("policy", "tanhs", "products"),
    [("none", 1, 2), ("nothing", 1, 2), ("everything", 0, 0), ("dots", 1, 0), ("only", 0, 1), ("but", 0, 1)],
)
def test_stored_values_are_not_recomputed(policy, tanhs, products):
    for f in (layer, ft.jit(layer)):
        actual = backward(EVERY_POLICY[policy], f)
        assert count(actual, "tanh") == tanhs
        assert count(actual, "dot_general") == products + 3  # those of the backward pass itself


def test_products_with_batch_axes():
    a, b = np.ones((2, 3, 3)), np.ones((3, 3))
    for policy, again in ((POLICIES.dots_saveable, 0), (POLICIES.dots_with_no_batch_dims_saveable, 1)):
        f = ft.checkpoint(lambda a, b: fnp.sin(a @ a) + fnp.cos(b @ b), policy=policy)
        jaxpr = ft.make_jaxpr(ft.grad(lambda a, f=f: fnp.sum(f(a, b))))(a)
        inner = jaxpr.eqns[-2].params.get("jaxpr") or jaxpr.eqns[-1].params["jaxpr"]
        assert count(inner, "dot_general") == 2 + again


def test_compiled_programs_compute_twice_unless_they_may_share():
    def text(prevent_cse):
        f = ft.checkpoint(lambda x: fnp.tanh(fnp.tanh(x)), prevent_cse=prevent_cse)
        text = ft.jit(ft.value_and_grad(lambda x: fnp.sum(f(x)))).lower(X[0]).as_text("python")
        return re.sub("(?m)^#.*$", "", text)  # without the user's lines

    assert text(True).count("tanh(") == 4
    assert text(False).count("tanh(") == 2


def test_memory_of_a_compiled_chain():
    """Blocks of layers with products: what the backward pass needs of a block is there for one block at a time."""

    def chain(wrap, blocks=8):
        def block(x):
            for _ in range(4):
                x = fnp.tanh(x @ W)
            return x

        def f(x):
            for _ in range(blocks):
                x = wrap(block)(x)
            return fnp.sum(x)

        return ft.grad(f)

    x = np.ones((5000, 3))
    plain, small = peak(chain(lambda f: f), x), peak(chain(ft.checkpoint), x)
    assert plain > 30 * x.nbytes
    assert small < 20 * x.nbytes


def test_memory_of_an_eager_chain():
    def held(wrap):
        block = wrap(lambda x: fnp.sin(fnp.sin(fnp.sin(fnp.sin(x)))))
        x = np.ones(10000)
        tracemalloc.start()
        try:
            _, pull = ft.vjp(lambda x: block(block(block(block(x)))), x)
            held = tracemalloc.get_traced_memory()[0]
            pull(x)
            return held / x.nbytes
        finally:
            tracemalloc.stop()

    assert held(lambda f: f) > 15
    assert held(ft.checkpoint) < 6


def test_every_order_of_nesting():
    inner = ft.checkpoint(lambda c, w: fnp.tanh(w * c) + 0.1 * c**2)

    def f(w, of_step, of_loop):
        step = of_step(lambda c, _: (inner(c, w), inner(c, w) * 2.0))
        run = of_loop(lambda c: lax.scan(step, c, None, length=5))
        last, ys = ft.vmap(run)(fnp.asarray([0.2, 0.7]))
        return fnp.sum(last) + fnp.sum(ys**2)

    def plain(w):
        body = lambda c: fnp.tanh(w * c) + 0.1 * c**2
        total = 0.0
        for c in (0.2, 0.7):
            for _ in range(5):
                c, total = body(c), total + (2.0 * body(c)) ** 2
            total = total + c
        return total

    for wraps in ((ft.jit, ft.checkpoint), (ft.checkpoint, ft.jit), (ft.checkpoint, ft.checkpoint)):
        g = lambda w, wraps=wraps: f(w, *wraps)
        equal(g(1.3), plain(1.3))
        for d in (ft.grad, lambda f: ft.grad(ft.grad(f)), lambda f: ft.jit(ft.grad(ft.jacfwd(f)))):
            equal(d(g)(1.3), d(plain)(1.3))


def test_an_outer_checkpoint_does_not_store_the_inner_one():
    inner = ft.checkpoint(lambda x: fnp.sin(fnp.exp(x)))
    f = ft.checkpoint(lambda x: inner(inner(x)))
    equal(ft.jit(ft.grad(f))(0.3), ft.grad(lambda x: fnp.sin(fnp.exp(fnp.sin(fnp.exp(x)))))(0.3))


def test_arguments():
    @ft.checkpoint(static_argnums=(1,))
    def f(tree, flag, *, scale):
        assert flag is True
        return {"y": tree["a"] * fnp.sin(tree["b"][0]) * scale, "n": 3}

    actual = ft.grad(lambda t: f(t, True, scale=2.0)["y"])({"a": 1.5, "b": (0.4,)})
    equal(actual, {"a": 2 * np.sin(0.4), "b": (3 * np.cos(0.4),)})
    assert f({"a": 1.0, "b": (0.0,)}, True, scale=1)["n"] == 3
    assert f.__name__ == "f"


def test_captured_values_are_read_at_each_call():
    scale = {"value": 2.0}
    f = ft.checkpoint(lambda x: scale["value"] * fnp.sin(x))
    assert float(ft.grad(f)(0.0)) == 2.0
    scale["value"] = 3.0
    assert float(ft.grad(f)(0.0)) == 3.0
    assert float(ft.grad(lambda s: ft.grad(ft.checkpoint(lambda x: s * x * x))(2.0))(1.0)) == 4.0


def test_the_results_of_io_callbacks_are_stored():
    calls = []

    def host(x):
        calls.append(float(x))
        return np.asarray(2 * x)

    @ft.checkpoint
    def f(x):
        y = ft.io_callback(host, ft.ShapeDtypeStruct((), "float64"), lax.stop_gradient(x))
        return fnp.sin(x) * y

    equal(ft.grad(f)(0.5), np.cos(0.5) * 1.0)
    equal(ft.jit(ft.grad(f))(0.5), np.cos(0.5) * 1.0)
    assert calls == [0.5, 0.5]


def test_errors():
    with pytest.raises(TypeError, match="checkpoint: expected a function"):
        ft.checkpoint(3)
    with pytest.raises(TypeError, match="expected a function for policy"):
        ft.checkpoint(layer, policy="dots")
    with pytest.raises(TypeError, match="name must be a string"):
        ft.checkpoint_name(X, 3)
    with pytest.raises(TypeError, match="names_which_can_be_saved must be a string"):
        POLICIES.save_only_these_names(["a"])
    with pytest.raises(TypeError, match=r"host's memory\. Use save_only_these_names"):
        POLICIES.save_and_offload_only_these_names(names_which_can_be_saved=["a"])
    with pytest.raises(TypeError, match="Use dots_with_no_batch_dims_saveable"):
        POLICIES.offload_dot_with_no_batch_dims("device", "pinned_host")
    with pytest.raises(ft.errors.FunctransError, match="argument 0"):
        ft.checkpoint(lambda x: x)("text")


# --- scans with checkpoints ---------------------------------------------------------------------------------


def step(w):
    def body(c, x):
        h, k = c
        g = fnp.tanh(h * w + x) * k
        return (fnp.where(g > 0.1, g * g / (1 + w), fnp.sin(g)), k + 0.01 * fnp.sum(g * h)), g * x

    return body


def scanned(run):
    def f(w, h, xs):
        (h, k), ys = run(step(w), (h, 1.0), xs)
        return fnp.sum(h**2) + k + fnp.sum(ys * fnp.cos(xs))

    return f


def unrolled(reverse):
    def run(body, c, xs):
        ys = [None] * len(xs)
        for i in range(len(xs))[:: -1 if reverse else 1]:
            c, ys[i] = body(c, xs[i])
        return c, fnp.stack(ys)

    return run


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.integers(1, 9), st.integers(1, 10), st.booleans(), st.integers(1, 3))
def test_scan_with_checkpoints_is_the_scan(length, every, reverse, unroll):
    xs = np.random.default_rng(length).normal(size=(length, 2))
    args = 0.7, np.array([0.3, -0.5]), xs
    f = scanned(lambda *a: lax.scan(*a, reverse=reverse, unroll=unroll, checkpoint_every=every))
    plain = scanned(unrolled(reverse))
    equal(f(*args), plain(*args))
    equal(ft.grad(f, (0, 1, 2))(*args), ft.grad(plain, (0, 1, 2))(*args))
    equal(ft.jit(ft.grad(f, (0, 1, 2)))(*args), ft.grad(plain, (0, 1, 2))(*args))


@pytest.mark.slow
def test_scan_with_checkpoints_to_second_order_and_mapped():
    args = 0.7, np.array([0.3, -0.5]), RANDOM.normal(size=(7, 2))
    f, plain = scanned(lambda *a: lax.scan(*a, checkpoint_every=3)), scanned(unrolled(False))
    for d in (lambda f: ft.jacfwd(ft.grad(f, 1), (0, 1)), lambda f: ft.jit(ft.jacrev(ft.grad(f, 0), 2))):
        equal(d(f)(*args), d(plain)(*args))
    hs = np.stack([args[1], 2 * args[1]])
    mapped = ft.vmap(ft.grad(f, 1), (None, 0, None))(args[0], hs, args[2])
    equal(mapped, np.stack([ft.grad(plain, 1)(args[0], h, args[2]) for h in hs]))


def test_memory_grows_as_the_square_root():
    x = RANDOM.normal(size=1000)

    def needed(length, every):
        def f(x):
            body = lambda c, _: (fnp.tanh(c * 1.01), None)
            return fnp.sum(lax.scan(body, x, None, length=length, checkpoint_every=every)[0])

        return peak(ft.grad(f), x) / x.nbytes

    plain = [needed(n, None) for n in (100, 400, 1600)]
    root = [needed(n, round(n**0.5)) for n in (100, 400, 1600)]
    for n, a, b in zip((100, 400, 1600), plain, root):
        assert n <= a < 1.2 * n + 5
        assert b < 2 * n**0.5 + 6
    for a, b in pairwise(root):
        assert b < 2.1 * a
