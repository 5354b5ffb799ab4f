"""`while_loop` whose condition reads what the body stores, and loops of branches, beside plain Python."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax
from functrans.lowering.run.executable import compile_jaxpr
from functrans.testing.finite_difference import directional_derivative

N = 9
OFFSETS = st.integers(-2, 2)
#: Where to store, what to read there, and whether to add.
WRITES = st.lists(st.tuples(OFFSETS, OFFSETS, st.booleans()), min_size=1, max_size=3)
PROGRAMS = st.tuples(st.sampled_from([1, -1, 2]), OFFSETS, st.sampled_from([None, 0, 1]), WRITES)


def stepping(program, loop):
    """A loop that moves along an array and overwrites it around its place, while an element nearby is small."""
    step, offset, row, writes = program

    def place(i):
        return i if row is None else (row, i)

    def f(start, y, limit):
        def going(state):
            i, y = state
            return (i >= 2) & (i < N - 2) & (y[place(i + offset)] < limit)

        def body(state):
            i, y = state
            for to, source, adds in writes:
                new = 0.7 * y[place(i + source)] + 0.4
                y = y.at[place(i + to)].add(new) if adds else y.at[place(i + to)].set(new)
            return i + step, y

        return loop(going, body, (start, y))

    return f


def python_loop(going, body, state):
    while going(state):
        state = body(state)
    return state


def same(program):
    row = program[2]
    f = stepping(program, python_loop)
    g = ft.jit(stepping(program, lax.while_loop))
    rng = np.random.default_rng(5)
    for start, limit in ((2, 1.0), (N - 3, 1.5), (4, 0.5), (3, 9.0), (0, 1.0), (5, np.nan)):
        y = fnp.asarray(rng.uniform(-1, 1, N if row is None else (2, N)))
        try:
            i, expected = f(start, y, limit)
        except errors.IndexOutOfBoundsError as error:  # all of a condition is evaluated
            with pytest.raises(errors.IndexOutOfBoundsError, match=re.escape(str(error).split(" for")[0])):
                g(start, y, limit)
            continue
        j, found = g(start, y, limit)
        assert i == j
        # The numbers are sums of terms around 1, which cancel in places: kernels round a product and a sum once.
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@settings(max_examples=12, deadline=None)
@given(PROGRAMS)
def test_the_condition_reads_what_the_body_stores(program):
    same(program)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(PROGRAMS)
def test_many_conditions_read_what_the_body_stores(program):
    same(program)


def recursion(y, most):
    """Without a bound for the index."""

    def step(state):
        i, y = state
        return i + 1, y.at[i].set(0.5 * y[i - 1] + y[i])

    return lax.while_loop(lambda s: s[1][s[0] - 1] < most, step, (1, y))


def test_an_index_that_leaves_the_array_in_the_condition_or_the_body():
    y = np.array([0.1, 0.2, 5.0, 0.3])
    i, found = ft.jit(recursion)(y, 2.0)
    assert i == 3
    np.testing.assert_allclose(found, [0.1, 0.25, 5.125, 0.3])
    with pytest.raises(errors.IndexOutOfBoundsError, match="index 4 is out of bounds"):
        ft.jit(recursion)(y, 10.0)


def test_gradient_of_a_loop_that_tests_what_it_stores():
    def f(y):
        return fnp.sum(lax.while_loop(going, step, (1, y))[1] ** 2)

    def going(s):
        i, y = s
        return (i < y.shape[0]) & (y[i - 1] < 1.5)

    def step(s):
        i, y = s
        return i + 1, y.at[i].set(fnp.sin(y[i - 1]) + y[i])

    y, v = np.random.default_rng(1).uniform(-0.5, 1, (2, 20))
    slopes, _ = directional_derivative(lambda x: [f(x[0])], [y], [v])
    np.testing.assert_allclose(v @ ft.jit(ft.grad(f))(y), slopes[0], rtol=1e-6)


def below_first(x, a):
    """The elements below a number come first, and how many there are."""

    def step(j, state):
        def swap(i, x):
            return i + 1, x.at[i].set(x[j]).at[j].set(x[i])

        return lax.cond(state[1][j] < a, swap, lambda i, x: (i, x), *state)

    return lax.fori_loop(0, x.shape[0], step, (0, x))


def hints(f, *args):
    (unit,) = compile_jaxpr(ft.make_jaxpr(f)(*args)).compile().kernels
    return unit.llvm.count("unroll.count")


def test_a_loop_of_branches_is_unrolled():
    rng = np.random.default_rng(2)
    compiled = ft.jit(below_first)
    for n in (33, 34, 35, 36, 37, 201):
        x = rng.normal(size=n)
        i, y = compiled(x, 0.2)
        assert i == (x < 0.2).sum()
        assert (y[:i] < 0.2).all()
        assert (np.sort(y) == np.sort(x)).all()
    x = rng.normal(size=100)
    assert hints(below_first, x, 0.2) == 1
    assert hints(lambda x: lax.fori_loop(1, 100, lambda i, y: y.at[i].set(y[i - 1] * y[i]), x), x) == 0
    assert hints(lambda x: fnp.where(x > 0, 2 * x, -x), x) == 0
