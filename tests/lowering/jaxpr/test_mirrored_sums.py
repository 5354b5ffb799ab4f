"""Sums of symmetric and antisymmetric arrays along both axes are computed once, and only those."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.jaxpr.simplify import simplify
from functrans.scipy import special

rng = np.random.default_rng(0)
POINTS = rng.normal(size=(7, 3))
ROW = rng.normal(size=7)


def sums(f, *args):
    """How many sums along one of two axes of extent 7 the simplified program has."""
    jaxpr = simplify(ft.jit(f).lower(*args).jaxpr)
    return sum(
        e.primitive.name == "reduce_sum" and 7 in e.outvars[0].aval.shape and e.invars[0].aval.ndim > 1
        for e in jaxpr.eqns
        if len(e.params.get("axes", ())) == 1 and e.invars[0].aval.shape[e.params["axes"][0]] == 7
    )


def gaps(x):
    return x[:, None] - x[None, :]


def gaussian(x):
    return fnp.sum(fnp.exp(-0.5 * fnp.sum(gaps(x) ** 2, axis=-1)))


def coulomb(x):
    square = fnp.sum(gaps(x) ** 2, axis=-1) + fnp.eye(7)
    return fnp.sum((1 - fnp.eye(7)) / fnp.sqrt(square))


def far(x):
    square = gaps(x) ** 2
    return fnp.sum(fnp.where(square > 0.5, square, fnp.abs(gaps(x))))


@pytest.mark.parametrize(
    ("energy", "x"), [(gaussian, POINTS), (coulomb, POINTS), (far, ROW)], ids=["gaussian", "coulomb", "far"]
)
def test_the_gradient_of_an_energy_of_pairs_sums_along_one_axis(energy, x):
    gradient = ft.grad(energy)
    assert sums(gradient, x) == (2 if energy is far else 1)  # its two branches have a gradient each
    with ft.config.patch(strict=True):
        expected = ft.jit(gradient)(x)
    np.testing.assert_allclose(ft.jit(gradient)(x), expected, rtol=1e-13, atol=1e-14)
    step = 1e-6 * rng.normal(size=x.shape)
    slope = np.sum(expected * step)
    np.testing.assert_allclose(energy(x + step) - energy(x - step), 2 * slope, rtol=1e-6, atol=1e-10)


def both(f):
    def sums_of(x, *others):
        a = f(x, *others)
        return fnp.sum(a, axis=0), fnp.sum(a, axis=1)

    return sums_of


def sided(x):
    return gaps(x) * fnp.exp(x[:, None])


@pytest.mark.parametrize(
    ("f", "count"),
    [
        (gaps, 1),
        (lambda x: fnp.cos(gaps(x)), 1),
        (lambda x: gaps(x) / (1 + gaps(x) ** 2), 1),
        (lambda x: fnp.maximum(x[:, None], x[None, :]), 1),
        (lambda x: x[:, None] * x[None, :] + 1.0, 1),
        (lambda x: 3.0 * x[:, None] - 3.0 * x[None, :], 1),
        (lambda x: fnp.sin(x[:, None]) * fnp.sin(x[None, :]), 1),
        (lambda x: fnp.sin(x)[:, None] - fnp.sin(x), 1),
        (lambda x: fnp.where(fnp.eye(7) > 0, 0.0, gaps(x) * fnp.abs(gaps(x))), 1),
        (lambda x: fnp.where(fnp.eye(7) > 0, 1.0, gaps(x) * fnp.abs(gaps(x))), 2),
        (lambda x: fnp.where(fnp.arange(7) > 2, 0.0, gaps(x)), 2),
        (lambda x: fnp.arctan(gaps(x)) / fnp.cosh(gaps(x)), 1),
        (lambda x: fnp.arccos(gaps(x) / 100), 2),
        (lambda x: fnp.exp(gaps(x)), 2),
        (lambda x: gaps(x) + fnp.abs(gaps(x)), 2),
        (lambda x: gaps(x) ** 3 + gaps(x), 1),
        (lambda x: gaps(x) ** 3 + gaps(x) ** 2, 2),
        (sided, 2),
        (lambda x: x[:, None] - 2 * x[None, :], 2),
    ],
)
def test_sums_along_both_axes(f, count):
    assert sums(both(f), ROW) == count
    a = np.asarray(f(ROW))
    rows, columns = ft.jit(both(f))(ROW)
    np.testing.assert_allclose(rows, a.sum(0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(columns, a.sum(1), rtol=1e-12, atol=1e-12)


def test_two_different_arrays_have_two_sums():
    def f(x, y):
        a = x[:, None] - y[None, :]
        return fnp.sum(a, axis=0), fnp.sum(a, axis=1)

    assert sums(f, ROW, ROW) == 2


def test_a_matrix_and_its_transpose_have_the_same_sums():
    def f(m):
        return fnp.sum(fnp.sin(m), axis=0) - fnp.sum(fnp.sin(m.T), axis=1)

    m = rng.normal(size=(7, 7))
    np.testing.assert_allclose(ft.jit(f)(m), np.zeros(7), atol=1e-14)


def test_complex_numbers_and_more_axes():
    z = rng.normal(size=(2, 7)) + 1j * rng.normal(size=(2, 7))

    def f(z):
        a = z[:, :, None] - z[:, None, :]
        a = a * fnp.abs(a)
        return fnp.sum(a, axis=1), fnp.sum(a, axis=2)

    assert sums(f, z) == 1
    a = z[:, :, None] - z[:, None, :]
    a = a * np.abs(a)
    first, second = ft.jit(f)(z)
    np.testing.assert_allclose(first, a.sum(1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(second, a.sum(2), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64])
def test_the_sum_of_a_doubled_array_is_doubled(dtype):
    x = (100 * rng.normal(size=(5, 7))).astype(dtype)
    total = ft.jit(lambda x: fnp.sum(x + x, axis=1))(x)
    np.testing.assert_allclose(total, 2 * x.sum(1), rtol=1e-6 if dtype == np.float32 else 1e-12)
    jaxpr = simplify(ft.jit(lambda x: fnp.sum(x + x, axis=1)).lower(x).jaxpr)
    expected = ["add", "reduce_sum"] if dtype == np.int64 else ["reduce_sum", "add"]
    assert [e.primitive.name for e in jaxpr.eqns] == expected


@pytest.mark.parametrize("middle", [(), (1,), (3,), (1, 2)])
def test_axes_between_the_two(middle):
    """Two shapes of one array are exchanged by an axis of extent 1, unless it moves past others."""
    x = np.sin(np.arange(20.0 * np.prod(middle, dtype=int)))

    def differences(x, xp):
        d = xp.reshape(x, (1, *middle, 20)) - xp.reshape(x, (20, *middle, 1))
        e = d / (1.0 + d * d)
        between = tuple(range(1, len(middle) + 1))
        return xp.sum(e, (0, *between)), xp.sum(e, (*between, len(middle) + 1))

    for a, b in zip(ft.jit(lambda x: differences(x, fnp))(x), differences(x, np), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [3, 1000])
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "f",
    [
        *[fnp.sin, fnp.tan, fnp.arcsin, fnp.arctan, fnp.sinh, fnp.tanh, fnp.arcsinh, fnp.arctanh, fnp.cbrt],
        *[special.erf, fnp.cos, fnp.cosh],
    ],
    ids=lambda f: f.__name__,
)
def test_functions_are_odd_or_even_bit_for_bit(f, compiled, n, dtype):
    g = ft.jit(f) if compiled else f
    sign = 1 if f in (fnp.cos, fnp.cosh) else -1
    for scale in (1e-9, 1e-3, 0.3, 1.0, 40.0, 1e6):
        x = (scale * rng.normal(size=n)).astype(dtype)
        np.testing.assert_array_equal(g(-x), sign * np.asarray(g(x)))
