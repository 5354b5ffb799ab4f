"""Bodies of loops taken apart: what leaves a loop, and what stays in it."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.control import while_loop
from functrans.control.bodies.building import fixpoint, handed_on, invariant_part
from functrans.control.callbacks.callback import FlatCallback
from functrans.control.loops import scan_loops
from functrans.core.evaluation import evaluate
from functrans.runtime.config import config

X = np.linspace(0.5, 2.0, 5)


def split(f, *args, count=1, outputs=()):
    jaxpr = ft.make_jaxpr(f)(*args)
    chosen = [jaxpr.outvars[i] for i in outputs]
    outside, inside, positions = invariant_part(jaxpr, count, chosen)
    new = [] if outside is None else evaluate(outside, args[:count])
    for a, b in zip(
        evaluate(inside, [*args[:count], *new, *args[count:]]), evaluate(jaxpr, args), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    names = lambda j: [] if j is None else [e.primitive.name for e in j.eqns]
    return names(outside), names(inside), positions, new


def test_what_depends_on_constants_alone_is_computed_outside():
    outside, inside, _, new = split(lambda c, x: fnp.exp(fnp.sin(c)) * x + fnp.cos(x), X, X)
    assert outside == ["sin", "exp"]
    assert inside == ["mul", "cos", "add"]
    np.testing.assert_array_equal(new[0], np.exp(np.sin(X)))
    assert len(new) == 1
    # The value in between is handed on, too, if the rest reads it.
    outside, inside, _, new = split(lambda c, x: (fnp.exp(s := fnp.sin(c)) * x, s), X, X)
    assert outside == ["sin", "exp"]
    assert inside == ["mul"]
    assert len(new) == 2
    # Of no constants, and of a body that reads none.
    assert split(lambda c, x: fnp.sin(x), X, X)[:2] == ([], ["sin"])
    assert split(lambda c, x: fnp.sin(c) * x, X, X, count=0)[:2] == ([], ["sin", "mul"])
    # What is made of numbers alone is not of the constants.
    assert split(lambda c, x: x * fnp.sum(fnp.ones(3)), X, X)[0] == []


def test_what_grows_stays_unless_it_is_wanted():
    wide = lambda c, x: fnp.broadcast_to(c[:, None], (5, 4)) * x
    x = np.ones((5, 4))
    assert "broadcast_in_dim" in split(wide, X, x)[1]
    # What reads a wide value and is small again takes it outside.
    small = lambda c, x: fnp.sum(fnp.broadcast_to(c[:, None], (5, 4)) ** 2) * x
    assert "broadcast_in_dim" in split(small, X, x)[0]
    returned = lambda c, x: (fnp.broadcast_to(c[:, None], (5, 4)), fnp.sin(c), fnp.sin(x), x)
    outside, inside, positions, new = split(returned, X, x, outputs=(0, 1, 2))
    assert "broadcast_in_dim" in outside
    assert inside == ["sin"]
    assert positions[2] == -1
    np.testing.assert_array_equal(new[positions[0]], np.broadcast_to(X[:, None], (5, 4)))
    np.testing.assert_array_equal(new[positions[1]], np.sin(X))
    assert sorted(positions[:2]) == [0, 1]
    # An output that is a constant of the body, or wanted although nothing leaves.
    assert split(lambda c, x: (c, x), X, x, outputs=(0, 1))[2] == [-1, -1]
    kept = split(lambda c, x: (fnp.broadcast_to(c[:, None], (5, 4)) * x, c), X, x, outputs=(0, 1))
    assert kept[2] == [-1, -1]


def test_what_may_raise_or_is_switched_off_stays():
    read = lambda c, x: c[c[0].astype(int)] * x
    assert "gather" in split(read, X, X)[1]
    shown = lambda c, x: (ft.debug.callback(lambda c: None, c), x)[1]
    assert split(shown, X, X)[0] == []
    assert split(lambda c, x: c[:2] * x[:2], X, X)[0] != []
    with config.patch(without=frozenset(["hoisting"])):
        outside, inside, positions, _ = split(lambda c, x: (fnp.sin(c) * x, x), X, X, outputs=(0, 1))
    assert (outside, inside, positions) == ([], ["sin", "mul"], [-1, -1])


def test_fixpoints_and_what_is_handed_on():
    # A part of the carry has a tangent if the next one to the left has.
    assert fixpoint([False, True, False], lambda m: (False, *m[:-1])) == (False, True, True)
    assert fixpoint([True, False], lambda m: (False, False)) == (True, False)
    jaxpr = ft.make_jaxpr(lambda x, y, n: (y, x, 2 * x, 1.0, n, x.astype(np.float32)))(X, X, 2.0)
    assert handed_on(jaxpr)[:4] == [1, 0, None, None]
    assert handed_on(jaxpr)[5] is None
    weak = ft.make_jaxpr(lambda n: ft.lax.fori_loop(0, 1, lambda i, n: n, n))(2.0)
    body = next(e.params["jaxpr"] for e in weak.eqns if "jaxpr" in e.params)
    assert handed_on(body) == [0]


@pytest.mark.parametrize("change", ["function", "static", "lanes"])
def test_callbacks_are_equal_if_they_call_the_same_function_alike(change):
    _, tree = ft.tree_util.tree_flatten((X,))
    static = ((1, "a"),)
    one = FlatCallback(np.sin, tree, static, tree, ())
    assert one == FlatCallback(np.sin, tree, static, tree, ())
    assert hash(one) == hash(FlatCallback(np.sin, tree, static, tree, ()))
    assert one != np.sin
    other = {
        "function": FlatCallback(np.cos, tree, static, tree, ()),
        "static": FlatCallback(np.sin, tree, ((1, ["b"]),), tree, ()),
        "lanes": FlatCallback(np.sin, tree, static, tree, ((3, (True,)),)),
    }[change]
    assert one != other
    assert other != one


def test_callbacks_of_one_method_are_equal():
    """Each look-up of a method makes another object."""

    class Scale:
        def by(self, x):
            return 2.0 * x

        def other(self, x):
            return 2.0 * x

    _, tree = ft.tree_util.tree_flatten((X,))
    of = lambda f: FlatCallback(f, tree, (), tree, ())
    one, two = Scale(), Scale()
    assert of(one.by) == of(one.by)
    assert hash(of(one.by)) == hash(of(one.by))
    assert of(one.by) != of(two.by)
    assert of(one.by) != of(one.other)


def test_loops_outside_of_jit_are_kernels(monkeypatch):
    def in_python(*args, **params):
        raise AssertionError("an iteration in Python")

    for module in (scan_loops, while_loop):
        monkeypatch.setattr(module, "computed", in_python)
    assert lax.scan(lambda c, x: (c + x, None), 0.0, X)[0] == X.sum()
    assert lax.while_loop(lambda c: c < 6.0, lambda c: c + 1.5, 0.0) == 6.0


def test_transposes_of_large_matrices_stay_with_products_that_read_them_as_they_are():
    rng = np.random.default_rng(0)
    square, tall, wide = (rng.normal(size=shape) for shape in [(400, 400), (9000, 16), (16, 9000)])

    def turned(f, matrix, *shape):
        return "transpose" in split(lambda c, x: f(c.T, x), matrix, rng.normal(size=shape))[1]

    product = lambda m, x: m @ x
    assert turned(product, square, 400)
    assert turned(product, square, 400, 1)
    assert turned(product, tall, 9000)
    assert turned(product, tall, 9000, 5)
    assert turned(product, wide, 16, 5)
    # Products of two matrices are faster with one that is turned before; small ones are computed in loops.
    assert not turned(product, square, 400, 9)
    assert not turned(product, square[:300, :300], 300)
    # Something else reads it, it is returned, or the product is computed outside, too.
    assert not turned(lambda m, x: m @ x + fnp.sum(m * x, axis=1), square, 400)
    assert not turned(lambda m, x: (m @ x, m), square, 400)
    assert split(lambda c, x: (c.T @ c[0]) * x, square, rng.normal(size=400))[1] == ["mul"]


def test_conjugate_gradients_do_not_copy_the_matrix():
    rng = np.random.default_rng(0)
    X, b = rng.normal(size=(9000, 20)), rng.normal(size=20)

    def solution(X, b):
        def step(_, state):
            w, r, p = state
            q = X.T @ (X @ p) + p
            size = r @ r / (p @ q)
            new = r - size * q
            return w + size * p, new, new + (new @ new) / (r @ r) * p

        return lax.fori_loop(0, 30, step, (fnp.zeros(20), b, b))[0]

    compiled = ft.jit(solution).lower(X, b).compile()
    np.testing.assert_allclose(compiled(X, b), np.linalg.solve(X.T @ X + np.eye(20), b), rtol=1e-9)
    assert compiled.memory_analysis().temp_size_in_bytes < X.nbytes / 10
