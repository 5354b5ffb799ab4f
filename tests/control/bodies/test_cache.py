"""A body that is traced again is the same object, so that an eager loop compiles once; unequal ones are told apart."""

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.control.bodies import cache as body_cache
from functrans.core import ir
from functrans.core.aval import aval_of
from functrans.core.ir import Jaxpr
from functrans.lowering.run.cache import kernels
from functrans.transforms.stage import stage

X = np.arange(1.0, 5.0)


def traced(f, *args):
    return body_cache.interned(stage(lambda *xs: [f(*xs)], [aval_of(x) for x in args]))


def test_a_function_traced_twice():
    def f(x, y):
        return fnp.sin(x) * y + 2.0

    assert traced(f, X, X) is traced(f, X, X)
    assert traced(f, X, X) is not traced(f, X, 1.0)
    assert traced(f, X, X) is not traced(f, X.astype(np.float32), X)


def test_bodies_that_differ():
    def with_number(c):
        return lambda x: x * c

    numbers = [1.0, 2.0, 0.0, -0.0, 1j, np.float32(1), np.float64(1), float("nan")]
    actual = [traced(with_number(c), X) for c in numbers]
    assert len({id(j) for j in actual}) == len(numbers)
    assert all(traced(with_number(c), X) is j for c, j in zip(numbers, actual))

    def with_axis(axis):
        return lambda x: fnp.sum(x, axis)

    square = np.ones((3, 3))
    assert traced(with_axis(0), square) is not traced(with_axis(1), square)
    first = traced(lambda x: fnp.sin(x), X)
    second = traced(lambda x: fnp.sin(x), X)  # another line: errors name it
    assert first is not second


def test_wiring_and_nested_bodies():
    def order(flip):
        def f(x, y):
            x, y = (y, x) if flip else (x, y)
            return fnp.subtract(x, y)

        return f

    assert traced(order(False), X, X) is not traced(order(True), X, X)

    def nested(c):
        return lambda x: lax.scan(lambda a, row: (a * c, row), x, length=3)[0]

    assert traced(nested(2.0), 1.0) is traced(nested(2.0), 1.0)
    assert traced(nested(2.0), 1.0) is not traced(nested(3.0), 1.0)


def test_captured_arrays_and_parameters_without_hash_are_left_alone():
    table = np.arange(4.0)
    first = stage(lambda x: [x * table], [aval_of(X)])
    assert first.consts
    assert body_cache.interned(first) is first
    assert body_cache.interned(stage(lambda x: [x * table], [aval_of(X)])) is not first
    eqn = stage(lambda x: [fnp.sin(x)], [aval_of(X)]).eqns[0]
    eqn.params["list"] = [1]
    strange = Jaxpr(eqn.invars, [eqn], eqn.outvars)
    assert body_cache.interned(strange) is strange


def test_an_eager_loop_compiles_once():
    def run(scale, xs):
        weights = fnp.ones(3) * scale
        return lax.scan(lambda c, x: (c * 0.9 + x * fnp.sum(weights) * scale, c), 0.0, xs)[0]

    gradient = ft.grad(run)
    values = [run(np.asarray(s), X) for s in (1.0, 2.0)]
    slopes = [gradient(np.asarray(s), X) for s in (1.0, 2.0)]
    before = len(kernels)
    for s in (3.0, 4.0):
        values.append(run(np.asarray(s), X))
        slopes.append(gradient(np.asarray(s), X))
    assert len(kernels) == before

    def loop(s):
        c = 0.0
        for x in X:
            c = c * 0.9 + x * 3 * s * s
        return c

    np.testing.assert_allclose(values, [loop(s) for s in (1.0, 2.0, 3.0, 4.0)])
    np.testing.assert_allclose(slopes, [2 * loop(s) / s for s in (1.0, 2.0, 3.0, 4.0)])


def test_the_cache_of_bodies_is_bounded():
    first = traced(lambda x: x * 1.0, X)
    for i in range(body_cache.MOST + 5):
        traced(lambda x, i=i: x * (2.0 + i), X)
    assert len(body_cache._bodies) <= body_cache.MOST
    assert traced(lambda x: x * 1.0, X) is not first


def test_the_cache_on_a_body_is_bounded(monkeypatch):
    ft.clear_caches()  # bodies of other tests may hold more
    monkeypatch.setattr(ir, "MOST_DERIVED", 8)
    body, sine = lambda c: (c[0] + 1, 0.5 * c[1]), lambda x: fnp.sin(x)
    for n in range(1, 20):
        lax.while_loop(lambda c: c[0] < n, body, (0, 1.0))  # noqa: B023 - the limit is a constant of the condition
        lax.cond(True, lambda x: (n + 2.5) * x, sine, 1.0)  # noqa: B023
        actual = lax.fori_loop(0, n, lambda i, c: 2.0 * c, 1.0)
        assert actual == 2.0**n
    assert all(len(j._derived) <= 8 for j in body_cache._bodies.values())


def test_clear_caches_forgets_bodies():
    lax.scan(lambda c, x: (c + x, None), 0.0, X)
    assert body_cache._bodies
    ft.clear_caches()
    assert not body_cache._bodies
    assert lax.scan(lambda c, x: (c + x, None), 0.0, X)[0] == X.sum()


def test_functions_that_last():
    """Those of a module; not one that only says that it is of a module, nor one that holds something."""
    names = {"__name__": "math"}
    exec("def f(x): return x", names)
    assert names["f"].__module__ == "math"
    assert not body_cache.lasting(names["f"])
    assert not body_cache.lasting(lambda x, y=X: x)
    assert not body_cache.lasting(X.sum)
    assert all(map(body_cache.lasting, (np.sin, float, traced, abs)))


def test_a_body_that_differs_among_ranks_is_not_that_of_others():
    """A branch without operations is the same for all programs, but for the axes over which its values differ."""

    own = body_cache.interned(stage(lambda x: [x], [aval_of(X)]))
    varying = aval_of(X).over(frozenset({"ranks"}))
    other = body_cache.interned(stage(lambda x: [x], [varying]))
    assert other is not own
    assert other.in_avals == [varying]
    assert body_cache.interned(stage(lambda x: [x], [varying])) is other


def test_programs_with_other_rules_are_not_alike():
    def program(factor):
        f = ft.custom_vjp(lambda x: x * x)
        f.defvjp(lambda x: (f(x), x), lambda x, g: (factor * g * x,))
        return ft.make_jaxpr(f)(X).jaxpr

    a, other = program(2.0), program(3.0)
    assert body_cache.alike(a, a)
    assert not body_cache.alike(a, other)
