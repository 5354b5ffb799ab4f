"""Loops that write arrays: by its kernel, an iteration costs the same for larger arrays; and values are kept."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.backend import Options
from functrans.lowering.lower import lower
from functrans.runtime.config import config

STEPS = 7
RNG = np.random.default_rng(5)
#: A size from which on all arrays of a program are large carries.
N = 50


def repeat(step, *carry):
    return lax.fori_loop(0, STEPS, lambda i, s: step(i, *s), carry)


def old(y, i):
    return y.at[i].get(mode="clip")


def read_and_write(y, z):
    return repeat(lambda i, y: (y.at[i].set(fnp.sin(old(y, i - 1)) + z[i]),), y)


def read_what_was_there(y, z):
    def step(i, y, z):
        new = y.at[i].set(z[i])
        return new.at[i + 1].add(old(y, i)), z.at[i + 2].set(y[i] + new[i + 3])

    return repeat(step, y, z)


def swap(y, z):
    def step(i, y):
        a, b = old(y, i), old(y, i + 3)
        return (y.at[i].set(b).at[i + 3].set(a),)

    return repeat(step, y)


def slices_that_overlap(y, z):
    def step(i, y):
        return (lax.dynamic_update_slice(y, lax.dynamic_slice(y, (i,), (4,))[::-1] * 2.0, (i + 1,)),)

    return repeat(step, y)


def maybe(y, z):
    def step(i, y):
        return (lax.cond(z[i] > 0, lambda y: y.at[i].set(old(y, i + 1) + 1), lambda y: y, y),)

    return repeat(step, y)


def either(y, z):
    def first(i, y, z):
        return y.at[i].add(old(z, i)), z

    def second(i, y, z):
        return y, z.at[i].mul(old(y, i))

    def third(i, y, z):
        return lax.cond(y[i] > z[i], first, second, i, y, z)

    return repeat(lambda i, y, z: tuple(lax.switch(i % 3, [first, second, third], i, y, z)), y, z)


def captured_by_branches(y, z):
    def step(i, y):
        return (lax.cond(z[i] > 0, lambda: y.at[i].set(0.5), lambda: y),)

    return repeat(step, y)


def inner_loops(y, z):
    def inner(j, s):
        y, z = s
        return lax.fori_loop(
            0, 2, lambda k, s: (s[0].at[j + k].add(old(s[1], k)), s[1]), (y.at[j].add(1.0), z)
        )

    def step(i, y, z):
        y, z = lax.fori_loop(i, i + 3, inner, (y, z))
        return y, z.at[i].set(old(y, i))

    return repeat(step, y, z)


def inner_while(y, z):
    def step(i, y):
        key = old(y, i)

        def body(s):
            j, y = s
            return j - 1, y.at[j + 1].set(old(y, j))

        j, y = lax.while_loop(lambda s: (s[0] >= 0) & (old(s[1], s[0]) > key), body, (i - 1, y))
        return (y.at[j + 1].set(key),)

    return repeat(step, y)


def outer_while(y, z):
    def body(s):
        i, y, z = s
        return i + 1, y.at[i].set(old(z, i)), z.at[i].add(old(y, i + 1))

    return lax.while_loop(lambda s: s[0] < STEPS, body, (0, y, z))


PROGRAMS = [
    read_and_write,
    read_what_was_there,
    swap,
    slices_that_overlap,
    maybe,
    either,
    captured_by_branches,
    inner_loops,
    inner_while,
    outer_while,
]


def check(f, *args):
    """Compare the kernel with Python's loops over NumPy; the arguments stay as they are."""
    before = [x.copy() for x in args]
    with ft.disable_jit():
        expected = f(*args)
    for backend in ("python", "llvm"):
        with config.patch(backend=backend):
            actual = ft.jit(lambda *a: f(*a))(*args)
        for x, y in zip(actual, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)
    for x, y in zip(args, before, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("f", PROGRAMS)
def test_an_iteration_costs_the_same_for_larger_arrays(f, step_cost):
    small, large = [step_cost(f, np.ones(n), np.ones(n)) for n in (N, 2 * N)]
    assert small == large


@pytest.mark.parametrize("f", PROGRAMS)
def test_values(f):
    check(f, RNG.normal(size=N), RNG.normal(size=N))


def rows(y, z):
    """The last loop reads where it writes, the others read elsewhere."""

    def step(i, y):
        y = y.at[i].set(fnp.sin(old(y, i + 1)) + z)
        y = y.at[:, i].mul(old(y, i)[1])
        return (y.at[i].set(fnp.minimum(old(y, i), y.at[i, 2].get(mode="clip") + old(y, i + 1))),)

    return repeat(step, y)


def test_rows_and_columns(step_cost):
    check(rows, RNG.normal(size=(N, N)), RNG.normal(size=N))
    costs = [step_cost(rows, np.ones((n, n)), np.ones(n)) for n in (N, 2 * N, 3 * N)]
    assert costs[2] - costs[1] == costs[1] - costs[0]  # linear, where the array is quadratic


def parts(y, z):
    """Writes into parts of rows and columns, of 8 columns: by negative, traced and constant indices and slices."""

    def step(i, y):
        y = y.at[i, 0].set(y[i + 1, 1] + z[0])
        y = y.at[-i - 1, -2].add(y[i, 0])
        y = y.at[i, 1:].add(y[i - 1, :-1] * z[1])
        y = y.at[2:, i].mul(0.5, mode="drop")
        y = y.at[3:5, None, fnp.array([i, i - 1])].add(y[i, i])
        return (y.at[1:4, 2].set(y[0:3, 3]),)

    return repeat(step, y)


def test_parts_of_rows_and_columns(step_cost):
    check(parts, RNG.normal(size=(N, 8)), RNG.normal(size=N))
    small, large = [step_cost(parts, np.ones((n, 8)), np.ones(n)) for n in (N, 2 * N)]
    assert large - small <= 3 * N  # the column that is written


def test_an_index_out_of_bounds_of_a_part_names_the_line():
    f = ft.jit(lambda y, n: lax.fori_loop(0, n, lambda i, y: y.at[i, 1:].add(1.0), y))
    x = RNG.normal(size=(N, 8))
    with pytest.raises(ft.errors.IndexOutOfBoundsError, match=f"{N} is out of bounds for axis 0") as error:
        f(x, N + 1)
    assert "test_order.py" in str(error.value)


def conflicts(y, z):
    """Reads that no order can put before the write."""

    def step(i, y, z):
        new = y.at[i].set(z[i])
        where = fnp.argmax(new)
        first = z.at[i].set(old(y, where))
        second = z.at[i + 1].set(fnp.sum(first))
        y, z = lax.cond(where > 20, lambda a, b: (b, a), lambda a, b: (a.at[i].add(b[i]), b), new, second)
        return y, lax.cond(where > 10, lambda a: a, lambda a: z * 0.5, z)

    return repeat(step, y, z)


def test_conflicts():
    check(conflicts, RNG.normal(size=N), RNG.normal(size=N))


def kept(y, z):
    """What an iteration returns must survive the next ones, and so must constants and the initial carry."""
    table = fnp.asarray(np.arange(float(N)))

    def step(s, i):
        y, t = s
        new = y.at[i].add(old(t, i) + old(table, i))
        return (new, t.at[i].set(old(new, i + 1))), (y, new[i], t)

    (y1, t1), ys = lax.scan(step, (y, table), fnp.arange(STEPS))
    return y1, t1, *ys, y, table


def test_what_is_kept():
    check(kept, RNG.normal(size=N), RNG.normal(size=N))


def test_failure_in_a_loop_that_overwrites():
    x = RNG.normal(size=N)
    before = x.copy()
    f = ft.jit(lambda y, n: lax.fori_loop(0, n, lambda i, y: y.at[i].set(y[2 * i] + 1), y))
    with pytest.raises(ft.errors.IndexOutOfBoundsError, match="50"):
        f(x, 30)
    np.testing.assert_array_equal(x, before)


def test_an_elementwise_write_takes_numbers_first():
    def f(y):
        return repeat(lambda i, y: (y * old(y, 0) + old(y, i),), y)

    assert "float64[2,n" not in ft.jit(f).lower(np.ones(N)).as_text("python")
    check(f, RNG.normal(size=N) * 0.1)


def test_a_branch_keeps_no_array_for_its_derivative(step_cost):
    def f(y, z):
        return fnp.sum(fnp.sin(maybe(y, z)[0]))

    slope = ft.grad(f)
    small, large = [step_cost(slope, np.ones(n), np.ones(n)) for n in (N, 2 * N)]
    assert small == large
    check(lambda y, z: (slope(y, z),), RNG.normal(size=N), RNG.normal(size=N))


def test_carries_that_nothing_reads_are_not_computed():
    def f(y, z):
        def step(s, row):
            a, b, c = s
            return (fnp.sin(a), b + a, c * b + row), (c, a)

        (_, b, _), (_, kept) = lax.scan(step, (y, y, y), z)
        return b, kept

    z = RNG.normal(size=(5, N))
    jaxpr = lower(ft.jit(f).lower(z[0], z).jaxpr, Options()).jaxpr
    (loop,) = [e for e in jaxpr.eqns if e.primitive.name == "scan"]
    assert loop.params["num_carry"] == 2
    assert len(loop.invars) == 2
    assert "sin" in str(jaxpr)
    check(f, z[0], z)


@pytest.mark.parametrize("part", [slice(1, -1), slice(0, -3), slice(2, None), slice(0, 20)])
def test_a_write_of_most_of_an_array(part):
    """It reads one memory and writes another, and copies only what it does not write."""

    def f(y, z):
        def step(i, y):
            y = y.at[part].set(y[part] + 0.1 * fnp.roll(y, 1)[part] * z[i])
            return (y.at[0].set(z[i]),)

        return repeat(step, y)

    check(f, RNG.normal(size=N), RNG.normal(size=N))
    check(
        lambda y, z: (fnp.asarray(y).at[part].set(y[part] * z[0]), y), RNG.normal(size=N), RNG.normal(size=N)
    )
    check(lambda y, z: (fnp.asarray(y).at[:, part].mul(z[0]),), RNG.normal(size=(3, N)), RNG.normal(size=N))
