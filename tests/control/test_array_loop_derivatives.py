"""Derivatives of loops that write arrays: right, and without work or memory that grows with the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core import subjaxprs
from functrans.lowering.run.executable import compile_jaxpr

N = 40
X, W = np.random.default_rng(0).normal(size=(2, N))


def written(x, w):
    """An array that is written one element at a time, from the one before it."""
    y = lax.fori_loop(1, N, lambda i, y: y.at[i].set(fnp.sin(y[i - 1]) + x[i]), fnp.zeros(N))
    return fnp.sum(w * y)


def read_twice(x, w):
    """Two look-ups of an array from outside of the loop, and two of the carried one."""

    def body(i, y):
        return y.at[i].set(x[i] * x[N - 1 - i] + y[i - 1] * y[i - 2])

    return fnp.sum(w * lax.fori_loop(2, N, body, fnp.zeros(N)))


def in_a_branch(x, w):
    """A branch that reads both arrays, and another that reads neither."""

    def body(i, y):
        v = lax.cond(i % 3 == 0, lambda i: fnp.sin(x[i]) * y[i - 1], lambda i: 0.5, i)
        return y.at[i].set(v)

    return fnp.sum(w * lax.fori_loop(1, N, body, fnp.ones(N)))


def in_an_inner_loop(x, w):
    """An inner loop, of length unknown in advance, that reads both arrays."""

    def body(i, y):
        s = lax.fori_loop(0, i % 4, lambda k, s: s + fnp.sin(y[i - k - 1]) * x[k], x[i])
        return y.at[i].set(s)

    return fnp.sum(w * lax.fori_loop(4, N, body, fnp.ones(N)))


def three_deep(x, w):
    """Loops in loops in loops that write one array."""

    def cell(i, j, y):
        def term(k, y):
            return y.at[4 * i + j].add(x[k] * y[4 * i + j - k - 1])

        return lax.fori_loop(0, 3, term, y)

    def row(i, y):
        return lax.fori_loop(0, 4, lambda j, y: cell(i, j, y), y)

    return fnp.sum(w * lax.fori_loop(1, N // 4, row, fnp.ones(N)))


def slices(x, w):
    """Slices at computed places, read and written."""

    def body(i, y):
        piece = lax.dynamic_slice(y, (i,), (3,)) * lax.dynamic_slice(x, (i + 1,), (3,))
        return lax.dynamic_update_slice(y, fnp.sin(piece), (i + 2,))

    return fnp.sum(w * lax.fori_loop(0, N - 5, body, fnp.ones(N)))


def waiting(x, w):
    """A loop whose trip count depends on data."""

    def body(s):
        i, y = s
        return i + 1 + (i % 2), y.at[i + 1].set(fnp.cos(y[i]) * x[i])

    return fnp.sum(w * lax.while_loop(lambda s: s[0] < N - 2, body, (0, fnp.ones(N)))[1])


def ends(x, w):
    """Static places, read and written, also in a branch that runs now and then."""

    def body(i, y):
        y = y.at[0].set(fnp.sin(y[-1]) * x[i]).at[-1].set(y[1] + y[2:4].sum())
        return lax.cond(i % 2 == 0, lambda y: y.at[1].add(x[i] * y[0]), lambda y: y, y)

    return fnp.sum(w * lax.fori_loop(0, 9, body, x))


def repeated(x, w):
    """Several places at once, which may be the same, of which an old version is read later."""

    def body(i, y):
        places = fnp.stack([i, 3 * i % 5, 5])
        new = y.at[places].set(fnp.stack([y[i + 1], x[i], x[3]]))
        return new.at[places].add(fnp.sin(y[i]) * y[places])

    return fnp.sum(w * lax.fori_loop(0, 9, body, x))


def tails(x, w):
    """Parts of rows and columns of a matrix; the last axis is short."""

    def body(i, y):
        y = y.at[i, 1:].add(fnp.sin(y[i - 1, :-1]) * x[i]).at[i, 0].set(y[i - 1, 2] * w[i])
        return y.at[1:3, i % 4].multiply(1 + 0.1 * x[:2])

    return fnp.sum(w[:, None] * lax.fori_loop(1, N, body, fnp.stack([x] * 4, 1)))


def in_lanes(x, w):
    """Places that differ between the lanes of a batch."""

    def one(x, start):
        def body(i, state):
            j, y = state
            return (5 * j + 3) % N, y.at[j].set(fnp.sin(y[i - 1]) + x[j])

        return lax.fori_loop(1, N, body, (start, x))[1]

    return fnp.sum(w * ft.vmap(one)(fnp.stack([x, w]), fnp.array([1, 2])))


PROGRAMS: list[Callable[..., Any]] = [
    ends,
    repeated,
    tails,
    in_lanes,
    written,
    read_twice,
    in_a_branch,
    in_an_inner_loop,
    three_deep,
    slices,
    waiting,
]


def slope(f, point, direction, eps=1e-6):
    ahead, behind = ([x + s * eps * d for x, d in zip(point, direction)] for s in (1, -1))
    return (float(f(*ahead)) - float(f(*behind))) / (2 * eps)


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradient_against_finite_differences_and_forward_mode(f):
    direction = tuple(np.random.default_rng(1).normal(size=(2, N)))
    compiled = ft.jit(f)
    _, forward = ft.jvp(compiled, (X, W), direction)
    np.testing.assert_allclose(forward, slope(compiled, (X, W), direction), rtol=1e-6)
    gradient = ft.grad(compiled, argnums=(0, 1))(X, W)
    backward = sum(float(np.sum(g * d)) for g, d in zip(gradient, direction))
    np.testing.assert_allclose(backward, forward, rtol=1e-12)
    with ft.config.patch(disable_jit=True):
        eager = ft.grad(f, argnums=(0, 1))(X, W)
    for a, b in zip(gradient, eager):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


WRITES = {"scatter", "scatter_add", "scatter_mul", "dynamic_update_slice", "write_window"}
VIEWS = {"slice", "reshape", "iota"}  # computed where they are read
IN_PLACE = {*WRITES, *VIEWS, "scan", "while", "cond"}


def whole_arrays(f: Callable[..., Any], *args: Any) -> list[str]:
    """The equations in the loops of a program that compute an array as a whole."""
    jaxpr = compile_jaxpr(ft.make_jaxpr(f)(*args)).compile().simplified

    def inside(jaxpr: Any, in_loop: bool) -> list[str]:
        out = []
        for e in jaxpr.eqns:
            large = any(v.aval.shape and v.aval.size >= N for v in e.outvars)
            if in_loop and large and e.primitive.name not in IN_PLACE:
                out.append(repr(e))
            for body in subjaxprs(e.params):
                out += inside(body, in_loop or e.primitive.name in ("scan", "while"))
        return out

    return inside(jaxpr, False)


@pytest.mark.parametrize("f", PROGRAMS)
def test_an_iteration_backward_computes_no_whole_array(f):
    assert whole_arrays(ft.grad(f, argnums=(0, 1)), X, W) == []
