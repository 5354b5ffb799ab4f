"""Short functions of numbers become a part of the user's ``@njit`` code, and are called where they are others now."""

import re
from math import cos, sin

import numba
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax


def of_quotient(x):
    return (3 * x**2 * (1 + x * x) - 2 * x**4) / (1 + x * x) ** 2


quotient_slope = ft.jit(ft.grad(lambda x: x**3 / (1.0 + x * x)))


@pytest.fixture(autouse=True)
def _as_shipped():
    """Checked kernels are called."""
    with ft.config.patch(checked=False, without=frozenset()):
        quotient_slope.clear_cache()
        yield


def each(f):
    @numba.njit
    def loop(x, y):
        for i in range(len(x)):
            y[i] = f(x[i])

    return loop


def has_vectors(loop):
    (text,) = loop.inspect_llvm().values()
    return re.search(r"fdiv .*<\d x double>", text) is not None


@pytest.mark.parametrize("is_global", [True, False])
def test_a_loop_of_calls_becomes_one_of_vectors(is_global):
    slope = quotient_slope if is_global else ft.jit(ft.grad(lambda x: x**3 / (1.0 + x * x)))
    loop = each(slope)
    for n in (0, 1, 3, 17, 100):
        x, y = np.linspace(-2.0, 3.0, n), np.full(n, np.nan)
        loop(x, y)
        np.testing.assert_allclose(y, of_quotient(x), rtol=1e-14, atol=1e-16)
    assert has_vectors(loop)


def test_functions_of_the_c_library_are_called_by_their_names():
    slope = ft.jit(ft.grad(lambda x: fnp.sin(x) * x))
    loop = each(slope)
    x, y = np.linspace(-40.0, 1e6, 50), np.empty(50)
    loop(x, y)
    np.testing.assert_allclose(y, [t * cos(t) + sin(t) for t in x], rtol=1e-14)
    (assembly,) = loop.inspect_asm().values()
    assert "sin" in assembly
    assert "_ZGV" not in assembly


def test_what_is_traced_again_counts_from_the_next_call():
    factor = [2.0]
    times = ft.jit(lambda x: x * factor[0])
    loop = each(times)
    x, y = np.arange(5.0), np.empty(5)
    for factor[0] in (2.0, 2.0, 3.5, -1.0, 2.0):
        times.clear_cache()
        for _ in range(2):
            loop(x, y)
            assert y.tolist() == [t * factor[0] for t in x]


def test_numbers_of_all_types_and_tuples_of_results():
    g = ft.jit(lambda a, b, c: ((a + b * 0.5, b / 3.0), a * 2, c & True))

    @numba.njit
    def call(a, b, c):
        return g(a, b, c)

    for a, b, c in [(3, 0.25, True), (-7, 2.5, False), (4, np.float32(0.1), True)]:
        (s, q), twice, and_true = call(a, b, c)
        (s_, q_), twice_, and_true_ = g(a, b, c)
        assert (s, q, twice, and_true) == (s_, q_, twice_, and_true_)


def test_what_is_long_or_more_than_arithmetic_is_called():
    @ft.jit
    def looped(x):
        return lax.fori_loop(0, 3, lambda i, s: s * x, 1.0)

    @ft.jit
    def long(x):
        for i in range(150):
            x = x * 1.01 + float(i)
        return x

    @ft.jit
    def shared(x):
        return x, x

    for f, expected in [(looped, 8.0), (long, float(long(2.0))), (shared, (2.0, 2.0))]:
        assert _caller(f)(2.0) == expected


def _caller(f):
    @numba.njit
    def call(x):
        return f(x)

    return call


def test_a_strict_program_is_inlined_as_it_is():
    with ft.config.patch(strict=True):
        g = ft.jit(lambda x: fnp.exp(x) * x + 1.0)
        call = _caller(g)
        for x in np.linspace(-3, 3, 20).tolist():
            assert call(x) == g(x)
            # NumPy's own exp differs in the last bit on some processors.
            np.testing.assert_allclose(g(x), np.exp(x) * x + 1.0, rtol=1e-15)
