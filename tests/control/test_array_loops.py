"""Loops that write arrays: `benchmarks/workloads/array_loops.py` beside the same as plain Python loops."""

import functools
import inspect
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.testing.finite_difference import directional_derivative

sys.path.append(str(Path(__file__).parents[1] / "support"))

from benchmark_modules import benchmark_module

LOOPS = {loop.name: loop for loop in benchmark_module("workloads.array_loop_cases").ARRAY_LOOPS}

#: Small, and odd where the program allows it.
SIZES = {
    "recursion in scan, checkpoints": 230,
    "alignment 500x500": 5,
    "banded Cholesky, 1000 rows, 8 diagonals": 11,
    "explicit heat, 400 cells": 5,
    "implicit heat, 400 cells": 2,
    "particle filter, 100 steps": 5,
    "Floyd-Warshall 200": 5,
    "Floyd-Warshall 200, by rows": 5,
    "prefix sums of 4096": 16,
    "LU 100x100": 5,
    "event queue": 40,
    "recursion, 64 lanes": 4,
}


def program(name):
    """The program on functrans, the same in Python, its arguments."""
    loop = LOOPS[name]
    spaces = {"np": fnp, "lax": lax, "api": ft}
    wanted = inspect.getfullargspec(loop.f).kwonlyargs
    f = functools.partial(loop.f, **{name: spaces[name] for name in wanted})
    return f, loop.by_hand.py_func, [fnp.asarray(a) for a in loop.arguments(SIZES.get(name, 13))]


def directions(args, argnums):
    """Zero where an argument is: those are not elements of the matrix that a band holds."""
    rng = np.random.default_rng(1)
    return [rng.normal(size=a.shape) * (a != 0) if k in argnums else None for k, a in enumerate(args)]


def check_pullback(name, found, args, argnums, slope, error, ct):
    """<ct, f'(x) v> = <pullback(ct), v>, with f'(x) v by differences of the program in Python."""
    along = sum(np.sum(g * directions(args, argnums)[k]) for g, k in zip(found, argnums, strict=True))
    expected = np.sum(ct * slope)
    margin = 1e-7 * (1 + abs(expected)) + 10 * np.sum(np.abs(ct) * error)
    assert margin < 1e-3 * (1 + abs(expected)), "differences too coarse to show anything"
    assert abs(along - expected) < margin, (name, along, expected)


def slope_in_python(by_hand, args, argnums):
    def f(x):
        return [by_hand(*x)]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (slope,), (error,) = directional_derivative(f, args, directions(args, argnums))
    return slope, error


@pytest.fixture
def _checked():
    """The guards look at the memory of each kernel after each call."""
    with ft.config.patch(checked=True):
        yield


@pytest.mark.usefixtures("_checked")
@pytest.mark.parametrize("name", LOOPS)
def test_value_and_pullback(name):
    """Compiled, in checked mode."""
    f, by_hand, args = program(name)
    argnums = LOOPS[name].argnums
    expected = by_hand(*args)
    ct = np.random.default_rng(2).normal(size=np.shape(expected))
    kept = [a.copy() for a in args]

    @ft.jit
    def value_and_pullback(*args):
        fixed = lambda *wrt: f(*[wrt[argnums.index(k)] if k in argnums else a for k, a in enumerate(args)])
        value, pull = ft.vjp(fixed, *[args[k] for k in argnums])
        return value, pull(ct)

    value, found = value_and_pullback(*args)
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
    check_pullback(name, found, args, argnums, *slope_in_python(by_hand, args, argnums), ct)
    for a, b in zip(args, kept, strict=True):
        np.testing.assert_array_equal(a, b)


def tangents_of(args, argnums):
    return tuple(
        np.zeros_like(a) if v is None else v for a, v in zip(args, directions(args, argnums), strict=True)
    )


@pytest.mark.wide(7)
@pytest.mark.parametrize("name", LOOPS)
def test_forward_mode_eager_and_lanes(name):
    f, by_hand, args = program(name)
    argnums = LOOPS[name].argnums
    expected = by_hand(*args)
    np.testing.assert_allclose(f(*args), expected, rtol=1e-10, atol=1e-12)
    with ft.disable_jit():
        np.testing.assert_allclose(f(*args), expected, rtol=1e-10, atol=1e-12)
    slope, error = slope_in_python(by_hand, args, argnums)
    pushed = ft.jit(lambda *args: ft.jvp(f, args, tangents_of(args, argnums)))
    np.testing.assert_allclose(pushed(*args)[1], slope, rtol=1e-7, atol=1e-7 + 10 * error.max(initial=0))
    lanes = [np.stack([a, a * 1.01, a * 0.98]) for a in args]
    each = [by_hand(*[a[k] for a in lanes]) for k in range(3)]
    np.testing.assert_allclose(ft.jit(ft.vmap(f))(*lanes), each, rtol=1e-10, atol=1e-12)


@pytest.mark.wide(10)
@pytest.mark.parametrize("name", LOOPS)
def test_gradients_in_lanes_and_eager(name):
    f, _, args = program(name)
    argnums = LOOPS[name].argnums
    grad = ft.grad(lambda *args: fnp.sum(fnp.sin(f(*args))), argnums)
    compiled = ft.jit(grad)
    lanes = [np.stack([a, a * 1.01]) for a in args]
    each = [compiled(*[a[k] for a in lanes]) for k in range(2)]
    for k, rows in enumerate(ft.jit(ft.vmap(grad))(*lanes)):
        np.testing.assert_allclose(rows, [e[k] for e in each], rtol=1e-10, atol=1e-12)
    for a, b in zip(grad(*args), each[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_same_as_the_jitted_loop(name):
    """At the size of the benchmark, beside Numba."""
    f, _, _ = program(name)
    args = LOOPS[name].arguments()
    np.testing.assert_allclose(ft.jit(f)(*args), LOOPS[name].by_hand(*args), rtol=1e-8, atol=1e-9)


def lengths(f, x):
    """The trip counts of the scans of a program, from the outermost."""
    found, jaxpr = [], ft.make_jaxpr(f)(x)
    while scans := [e for e in jaxpr.eqns if e.primitive.name == "scan"]:
        jaxpr = scans[0].params["jaxpr"]
        found.append(scans[0].params["length"])
    return found


def test_lanes_with_branches_write_in_place_one_after_the_other():
    def climb(x, w=None):
        def step(i, y):
            y = lax.cond(x[i] > 0, lambda y: y.at[i].set(fnp.sin(y[i - 1])), lambda y: y, y)
            return y if w is None else y + 0.1 * (w @ y)

        return lax.fori_loop(1, x.shape[0], step, x)

    x = fnp.asarray(np.random.default_rng(0).normal(size=(3, 20)))
    assert lengths(ft.vmap(climb), x) == [3, 19]
    np.testing.assert_array_equal(ft.vmap(climb)(x), [climb(row) for row in x])
    w = np.random.default_rng(1).normal(size=(20, 20)) / 20
    batch = ft.vmap(lambda x: climb(x, w))
    assert lengths(batch, x) == [19, 3]  # one product for all lanes
    np.testing.assert_allclose(batch(x), [climb(row, w) for row in x], rtol=1e-12)
