"""Loops that overwrite elements of arrays which their derivatives read whole: reverse mode restores the arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core import TapeAval, subjaxprs
from functrans.lowering.run.executable import compile_jaxpr

N, STEPS = 40, 7
PLACES = np.arange(1.0 * N)
X, W = np.random.default_rng(0).normal(size=(2, N))


def whole(y, x):
    """A number whose derivative reads the whole of `y`."""
    return fnp.sum(y * y * x)


def by_rows(x, w):
    """Solve a triangular system by products of rows and the whole solution."""

    def body(i, y):
        return y.at[i].set(w[i] - 0.1 * fnp.dot(fnp.roll(x, 3) * y, y))

    return fnp.sum(lax.fori_loop(0, STEPS, body, fnp.ones(N)) ** 2)


def several_writes(x, w):
    """Writes of every kind, at places that repeat, are clipped, or dropped, with reads before and between them."""

    def body(i, state):
        y, s = state
        s = s + whole(y, x)
        y = y.at[fnp.stack([i, 3, i])].set(fnp.stack([x[i], x[1], s]))
        s = s + whole(y, w)
        y = y.at[fnp.stack([2, 2, i + 1])].add(w[i])
        y = y.at[fnp.stack([N + 3, i])].multiply(w[2], mode="drop").at[i + N - 3].set(s, mode="clip")
        s = s + whole(y, x)
        y = y.at[-i - 1].divide(2 + x[i + 1])
        return lax.dynamic_update_slice(y, w[:4] * s, (i + N - 6,)), s

    y, s = lax.fori_loop(0, STEPS, body, (fnp.ones(N), 0.0))
    return fnp.sum(y * w) + s


def under_a_branch(x, w):
    def body(i, state):
        y, s = state
        y = lax.switch(
            i % 3, [lambda y: y.at[i].set(w[i] * s), lambda y: y.at[i].add(s).at[0].set(x[i]), lambda y: y], y
        )
        return y, s + whole(y, x)

    y, s = lax.fori_loop(0, STEPS, body, (fnp.ones(N), 0.5))
    return fnp.sum(y * w) + s


def in_inner_loops(x, w):
    """Inner loops, of known and of unknown length, write an array that the outer one reads."""

    def body(i, state):
        y, s = state
        y = lax.fori_loop(0, 3, lambda j, y: y.at[i + j].set(w[j] * y[j] + s), y)
        y = lax.fori_loop(0, i % 3, lambda j, y: y.at[5 * j].add(x[i] * s), y)
        y = lax.while_loop(lambda s: s[0] < i, lambda s: (s[0] + 2, s[1].at[s[0]].multiply(w[i])), (0, y))[1]
        return y, s + 0.1 * whole(y, x)

    y, s = lax.fori_loop(0, STEPS, body, (fnp.ones(N), 0.5))
    return fnp.sum(y * w) + s


def again_and_again(x, w):
    """Inner loops, in both directions, write the same elements several times: what comes back last counts."""

    def body(i, state):
        y, s = state
        write = lambda y, j: (y.at[(i + j) % 2].set(w[j] * y[(i + j + 1) % 2] + s), None)
        y = lax.scan(write, y, fnp.arange(5), reverse=True)[0]
        y = lax.scan(write, y, fnp.arange(3))[0]
        return y, s + 0.1 * whole(y, x)

    y, s = lax.fori_loop(0, STEPS, body, (fnp.ones(N), 0.5))
    return fnp.sum(y * w) + s


def waiting(x, w):
    """A loop of unknown length."""

    def body(state):
        i, y, s = state
        return i + 1 + i % 2, y.at[i].set(w[i] * s), s + whole(y, x)

    _, y, s = lax.while_loop(lambda s: s[0] < STEPS, body, (0, fnp.ones(N), 0.5))
    return fnp.sum(y * w) + s


def permuted(x, w):
    """A permutation and a mask, carried: integers and booleans."""

    def body(p, i):
        order, mask, s = p
        order = order.at[i].set(order[N - 1 - i]).at[N - 1 - i].set(order[i])
        mask = mask.at[i].set(False)
        return (order, mask, s + fnp.dot(x[order], PLACES) + fnp.sum(fnp.where(mask, w * s, 0.1 * x))), None

    start = fnp.arange(N), fnp.ones(N, bool), 0.5
    return lax.scan(body, start, fnp.arange(STEPS), reverse=True)[0][2]


def in_chunks(x, w):
    """A recursion in chunks, of which each would store the array as it was at its start."""

    def body(y, i):
        return y.at[i].set(fnp.sin(y[i - 1]) + x[i]), None

    return fnp.sum(w * lax.scan(body, fnp.zeros(N), fnp.arange(1, N), checkpoint_every=5)[0])


PROGRAMS: list[Callable[..., Any]] = [
    by_rows,
    several_writes,
    under_a_branch,
    in_inner_loops,
    again_and_again,
    waiting,
    permuted,
    in_chunks,
]


def slope(f, point, direction, eps=1e-6):
    ahead, behind = ([x + s * eps * d for x, d in zip(point, direction)] for s in (1, -1))
    return (np.asarray(f(*ahead)) - np.asarray(f(*behind))) / (2 * eps)


@pytest.mark.wide(2)
@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives(f):
    direction = tuple(np.random.default_rng(1).normal(size=(2, N)))
    compiled = ft.jit(f)
    numeric = slope(compiled, (X, W), direction)
    _, pushforward = ft.linearize(compiled, X, W)
    np.testing.assert_allclose(pushforward(*direction), numeric, rtol=1e-6)
    gradient = ft.grad(compiled, argnums=(0, 1))
    backward = sum(float(np.sum(g * d)) for g, d in zip(gradient(X, W), direction))
    np.testing.assert_allclose(backward, numeric, rtol=1e-6)
    np.testing.assert_allclose(backward, ft.jvp(compiled, (X, W), direction)[1], rtol=1e-11)
    two_kernels = ft.vjp(compiled, X, W)[1](1.0)
    for a, b in zip(two_kernels, gradient(X, W)):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def largest_entry(f: Callable[..., Any], *args: Any) -> int:
    """The most bytes that a loop stores in an iteration, for one value."""

    def inside(jaxpr: Any) -> list[int]:
        sizes = [0]
        for e in jaxpr.eqns:
            if e.primitive.name in ("scan", "while"):
                body = e.params["jaxpr" if e.primitive.name == "scan" else "body_jaxpr"]
                first = e.params["num_carry"] if e.primitive.name == "scan" else len(body.outvars)
                if e.primitive.name == "while":
                    first = len(e.invars) - e.params["num_cond"] - e.params["num_consts"]
                rows = body.outvars[first:]
                sizes += [
                    v.aval.size * v.aval.dtype.itemsize for v in rows if not isinstance(v.aval, TapeAval)
                ]
            for body in subjaxprs(e.params):
                sizes += inside(body)
        return sizes

    return max(inside(compile_jaxpr(ft.make_jaxpr(f)(*args)).compile().simplified))


@pytest.mark.parametrize("f", PROGRAMS)
def test_no_iteration_stores_an_array(f):
    assert largest_entry(ft.grad(f, argnums=(0, 1)), X, W) < X.nbytes


@pytest.mark.wide(2)
@pytest.mark.parametrize("f", [by_rows, in_inner_loops, waiting])
def test_second_derivatives_and_lanes(f):
    direction = np.random.default_rng(1).normal(size=N)
    gradient = ft.jit(ft.grad(f))
    numeric = slope(lambda x: gradient(x, W), (X,), (direction,))
    forward = ft.jvp(lambda x: gradient(x, W), (X,), (direction,))[1]
    np.testing.assert_allclose(forward, numeric, rtol=1e-5, atol=1e-8)
    backward = ft.grad(lambda x: fnp.dot(gradient(x, W), direction))(X)
    np.testing.assert_allclose(backward, forward, rtol=1e-9, atol=1e-11)
    lanes = np.stack([X, W, X + W])
    together = ft.jit(ft.vmap(ft.grad(f), (0, None)))(lanes, W)
    np.testing.assert_allclose(together, [gradient(x, W) for x in lanes], rtol=1e-10, atol=1e-12)
    around = ft.jit(ft.grad(lambda xs: fnp.sum(ft.vmap(f, (0, None))(xs, W))))(lanes)
    np.testing.assert_allclose(around, together, rtol=1e-10, atol=1e-12)
    with ft.config.patch(disable_jit=True):
        np.testing.assert_allclose(ft.grad(f)(X, W), gradient(X, W), rtol=1e-10, atol=1e-12)
