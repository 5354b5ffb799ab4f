"""Donation: the memory that programs need, and random programs with and without it."""

import tracemalloc
import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.runtime.config import config


def fresh(x):
    """An Array of the same numbers in memory of its own."""
    return fnp.asarray(np.array(x))


def peak(f):
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        f()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_an_adam_step_needs_no_memory():
    def adam(state, g, t):
        p, m, v = state
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 1e-3 * (m / (1 - 0.9**t)) / (fnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v

    n = 500_000
    step, g = ft.jit(adam, donate_argnums=0), fnp.ones(n)
    states = [step(tuple(fnp.zeros(n) for _ in range(3)), g, 1.0)]
    expected = adam(tuple(np.array(x) for x in states[0]), np.ones(n), 2.0)
    expected = adam(expected, np.ones(n), 2.0)

    def run():
        states[0] = step(states[0], g, 2.0)

    with config.patch(checked=False):
        run()
        assert peak(run) < 100_000 < 3 * 8 * n
    for x, y in zip(states[0], expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)


# --- random programs ---------------------------------------------------------------------------------------------


SHAPES = [(), (0,), (1,), (4,), (3, 3), (1, 3), (2, 1, 3), (5, 7), (40,)]
OPERATIONS = [
    lambda x, y: x + y,
    lambda x, y: x * y - 1.0,
    lambda x, y: fnp.sin(x),
    lambda x, y: x[::-1] + y if x.ndim else x - y,
    lambda x, y: x - fnp.sum(y),
    lambda x, y: fnp.cumsum(x, axis=-1) if x.ndim else x,
    lambda x, y: x.T.reshape(x.shape) * y,
    lambda x, y: x.at[0].set(y[-1]) if x.ndim and x.shape[0] else y,
    lambda x, y: fnp.where(x > y, x, -y),
    lambda x, y: ft.lax.fori_loop(0, 3, lambda i, c: 0.5 * c + fnp.roll(x, i), y),
    lambda x, y: ft.lax.while_loop(lambda c: fnp.sum(c * c) > 1.0, lambda c: 0.5 * c, fnp.tanh(x)),
    lambda x, y: ft.lax.scan(lambda c, row: (c[::-1] * 0.5 if c.ndim else c, None), x, fnp.arange(3.0))[0],
    lambda x, y: ft.lax.cond(fnp.sum(x) > 0, lambda a, b: a - b, lambda a, b: b, x, y),
]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_programs_with_and_without_donation(data):
    shape = data.draw(st.sampled_from(SHAPES))
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    count = data.draw(st.integers(1, 3))
    plan = [
        (data.draw(st.sampled_from(OPERATIONS)), data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9)))
        for _ in range(data.draw(st.integers(1, 6)))
    ]
    outs = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    donated = data.draw(st.lists(st.integers(0, count - 1), max_size=count, unique=True))
    aliases = data.draw(st.lists(st.integers(0, count - 1), min_size=count, max_size=count))

    def f(*xs):
        values = list(xs)
        for op, i, j in plan:
            values.append(op(values[-1 - i % len(values)], values[-1 - j % len(values)]).astype(dtype))
        return tuple(values[-1 - k % len(values)] for k in outs)

    rng = np.random.default_rng(0)
    numbers = [np.asarray(rng.normal(size=shape), dtype) for _ in range(count)]
    originals, numbers = numbers, [numbers[k] for k in aliases]
    with config.patch(backend="python"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected = ft.jit(f)(*numbers)
        given_arrays = {k: fresh(originals[k]) for k in set(aliases)}
        args = [given_arrays[k] for k in aliases]  # the same Array in several places
        seen = np.asarray(args[0]) if data.draw(st.booleans()) else None
        before = None if seen is None else seen.copy()
        got = ft.jit(f, donate_argnums=donated)(*args)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    for i, x in enumerate(args):
        stored = not any(args[k] is x for k in donated)
        assert x.is_deleted() != stored
        if stored:
            np.testing.assert_array_equal(x, numbers[i])
    if seen is not None:
        np.testing.assert_array_equal(seen, before)
