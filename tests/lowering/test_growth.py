"""The work of tracing and lowering grows as the program does, counted in calls of Python functions."""

import sys

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.backend import Options
from functrans.lowering.lower import lower

X = np.linspace(0.1, 1, 5)


def calls_of(f):
    """How many Python functions `f` calls."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        f()
    finally:
        sys.setprofile(None)
    return count


def elif_chain(inner, n):
    return lambda x: lax.cond(x[0] > n, lambda x: x * n, inner, x)


def elif_chain_of_pairs(inner, n):
    """Each branch changes two arrays, and swaps them."""

    def f(x):
        y = x * 2.0
        pair = lambda x, y: (inner(x), fnp.cos(y))
        return sum(lax.cond(x[0] > n, lambda x, y: (y * n, x + y), pair, x, y))

    return f


def scan(inner, n):
    return lambda x: lax.scan(lambda c, _: (inner(c) + 0.1, None), x, None, length=2)[0]


def while_loop(inner, n):
    return lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, inner(c[1]) + 0.1), (0, x))[1]


def jitted(inner, n):
    return ft.jit(lambda x: inner(x) + 0.1)


def checkpointed(inner, n):
    return ft.checkpoint(lambda x: fnp.tanh(inner(x)))


NESTS = [elif_chain, elif_chain_of_pairs, scan, while_loop, jitted, checkpointed]


def loop_with_branch(inner, n):
    return scan(elif_chain(inner, n), n)


def loop_or_branch(inner, n):
    return scan(inner, n) if n % 2 else elif_chain(inner, n)


def loop_that_writes(inner, n):
    """Each level writes an element, or is the nest inside."""

    def body(i, c):
        return lax.cond(c[i] > n, lambda c: c.at[i].set(fnp.sin(c[i]) * c[i - 1]), inner, c)

    return lambda x: lax.fori_loop(1, 5, body, x)


LOOPS_WITH_BRANCHES = [loop_with_branch, loop_or_branch, loop_that_writes]


def nested(level, depth):
    f = lambda x: fnp.sin(x) * 1.1
    for n in range(1, depth + 1):
        f = level(f, n)
    return f


@pytest.mark.parametrize("transformation", ["jit", "grad"])
@pytest.mark.parametrize("level", NESTS, ids=lambda f: f.__name__)
def test_a_level_more_costs_what_the_last_one_did(level, transformation):
    """At most quadratic, as nested checkpoints are; work that doubles at each level would grow by a factor of 72."""

    def work(depth):
        f = nested(level, depth)
        g = f if transformation == "jit" else ft.grad(lambda x: fnp.sum(f(x)))
        return calls_of(lambda: ft.jit(g).lower(X))

    work(2)  # what the first programs load
    first, second, third = work(3), work(6), work(12)
    assert third - second <= 6 * (second - first)


@pytest.mark.parametrize("level", LOOPS_WITH_BRANCHES, ids=lambda f: f.__name__)
def test_a_level_more_of_a_hessian_costs_what_the_last_one_did(level):
    """Quadratic growth has the factor 1.9, cubic 3.3, work that doubles at each level 8."""

    def work(depth):
        ft.clear_caches()
        f = nested(level, depth)
        return calls_of(lambda: ft.jit(ft.hessian(lambda x: fnp.sum(f(x)))).lower(X))

    work(2)
    first, second, third = work(2), work(5), work(8)
    assert third - second <= 2.3 * (second - first)


def test_equations_that_a_loop_does_not_change():
    def work(n):
        def f(w, x):
            def body(c, _):
                s = w
                for i in range(n):
                    s = s * 1.01 if i % 2 else fnp.sin(s)
                return c * 0.5 + s, None

            return lax.scan(body, x, None, length=3)[0]

        return calls_of(lambda: ft.jit(f).lower(X, X))

    work(10)
    first, second, third = work(200), work(400), work(800)
    assert third - second <= 2.3 * (second - first)


def shifts(x, n):
    for _ in range(n):
        x = fnp.concatenate([x[1:], x[:1] * 1.1])
    return x


def products(x, n):
    w = fnp.eye(5) * 0.9
    for _ in range(n):
        x = fnp.tanh(w @ x) + x
    return x


def writes(x, n):
    y = fnp.zeros(100)
    for i in range(n):
        y = y.at[i].set(fnp.sin(y[i - 1]) + x[0])
    return y


def test_a_loop_for_threads_more_costs_what_the_last_one_did():
    """Whether iterations share memory was looked for in all of the kernel before them."""

    def work(n):
        def f(x):
            for _ in range(n):
                x = fnp.sort(fnp.tanh(x), axis=1) * 1.1
            return x

        jaxpr = ft.jit(f).lower(np.ones((300, 1000))).jaxpr
        with ft.config.patch(num_threads=2):
            return calls_of(lambda: lower(jaxpr, Options()))

    work(2)
    first, second, third = work(4), work(8), work(16)
    assert third - second <= 2.3 * (second - first)


@pytest.mark.wide(2)
@pytest.mark.parametrize("transformation", ["jit", "grad"])
@pytest.mark.parametrize("program", [shifts, products, writes], ids=lambda f: f.__name__)
def test_an_operation_more_costs_what_the_last_one_did(program, transformation):
    """Working copies and memory were looked for in the whole kernel, for each of them."""

    def work(n):
        f = lambda x: program(x, n)
        jaxpr = ft.jit(f if transformation == "jit" else ft.grad(lambda x: fnp.sum(f(x)))).lower(X).jaxpr
        return calls_of(lambda: lower(jaxpr, Options()))

    work(2)
    first, second, third = work(20), work(40), work(80)
    assert third - second <= 2.3 * (second - first)
