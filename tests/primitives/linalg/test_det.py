"""Determinants and their derivatives, at singular matrices above all."""

import numpy as np
import pytest

import functrans as ft
from functrans.primitives.linalg.det import det_p, slogdet_p


def derivatives(a, e):
    """``d^k det(A + t E) / dt^k`` at 0, k = 0 ... 3: of the polynomial in t through its values on a circle."""
    n = a.shape[-1]
    t = np.exp(2j * np.pi * np.arange(n + 1) / (n + 1))
    coefficients = np.fft.fft(np.linalg.det(a + t[:, None, None] * e)) / (n + 1)
    padded = np.append(coefficients, np.zeros(4))[:4] * [1, 1, 2, 6]
    return padded if np.iscomplexobj(a) else padded.real


def nested(a, e, order):
    def along(f):
        return lambda t: ft.jvp(f, (t,), (np.ones((), a.dtype),))[1]

    def f(t):
        return det_p.bind(a + t * e)

    for _ in range(order):
        f = along(f)
    return np.asarray(f(np.zeros((), a.dtype)))


def singular(n, missing, dtype, seed=0):
    """A random matrix of rank n - missing."""
    rng = np.random.default_rng(seed + 10 * n + missing)
    x, y = rng.standard_normal((2, n, n))
    if np.dtype(dtype).kind == "c":
        x, y = x + 1j * rng.standard_normal((n, n)), y + 1j * rng.standard_normal((n, n))
    return (x[:, missing:] @ y[missing:]).astype(dtype), rng.standard_normal((n, n)).astype(dtype)


def jordan(n):
    return np.eye(n, k=1), np.random.default_rng(n).standard_normal((n, n))


EXACT = {
    "zero": (np.zeros((4, 4)), np.random.default_rng(0).standard_normal((4, 4))),
    "zero of two rows": (np.zeros((2, 2)), np.array([[1.0, 2.0], [5.0, -3.0]])),
    "zero of one row": (np.zeros((1, 1)), np.array([[2.0]])),
    "a row of zeros": (np.diag([1.0, 2.0, 0.0, 3.0]), np.random.default_rng(1).standard_normal((4, 4))),
    "two rows of zeros": (
        np.diag([0.0, 2.0, 0.0, 3.0, 1.0]),
        np.random.default_rng(2).standard_normal((5, 5)),
    ),
    "nilpotent": jordan(5),
    "nilpotent, larger": jordan(9),
    "equal rows": (np.ones((5, 5)), np.random.default_rng(3).standard_normal((5, 5))),
    "identity": (np.eye(5), np.random.default_rng(4).standard_normal((5, 5))),
    "counted": (np.arange(16.0).reshape(4, 4), np.random.default_rng(5).standard_normal((4, 4))),
}


def check(a, e, orders=(0, 1, 2, 3)):
    expected = derivatives(a, e)
    scale = np.linalg.norm(a) + np.linalg.norm(e)
    for order in orders:
        got = nested(a, e, order)
        assert got.dtype == a.dtype
        np.testing.assert_allclose(got, expected[order], rtol=1e-8, atol=1e-11 * scale ** a.shape[-1])


@pytest.mark.parametrize("name", EXACT)
def test_derivatives_where_singular(name):
    check(*EXACT[name])


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("missing", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_derivatives_by_rank(n, missing, dtype):
    if missing <= n:
        check(*singular(n, missing, dtype))


@pytest.mark.parametrize("n", [3, 4, 6])
@pytest.mark.parametrize("missing", [0, 1, 2])
def test_gradient_and_hessian_compiled(n, missing):
    a, e = singular(n, missing, np.float64)
    expected = derivatives(a, e)
    gradient = ft.jit(ft.grad(det_p.bind))(a)
    np.testing.assert_allclose(np.sum(gradient * e), expected[1], rtol=1e-8, atol=1e-10)
    hessian = ft.jit(ft.jacrev(ft.grad(det_p.bind)))(a)
    np.testing.assert_allclose(np.einsum("ij,ijkl,kl", e, hessian, e), expected[2], rtol=1e-8, atol=1e-9)


def test_batches_and_lanes():
    a = np.stack([singular(4, missing, np.float64)[0] for missing in (0, 1, 2)])
    expected = np.stack([ft.grad(det_p.bind)(x) for x in a])
    np.testing.assert_allclose(ft.vmap(ft.grad(det_p.bind))(a), expected, atol=1e-12)
    np.testing.assert_allclose(ft.grad(lambda x: det_p.bind(x).sum())(a), expected, atol=1e-12)
    second = ft.vmap(ft.hessian(det_p.bind))(a)
    np.testing.assert_allclose(second, np.stack([ft.hessian(det_p.bind)(x) for x in a]), atol=1e-11)


def test_gradient_of_single_precision():
    a = np.diag([1.0, 2.0, 0.0]).astype(np.float32)
    gradient = ft.grad(det_p.bind)(a)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, np.diag([0.0, 0.0, 2.0]), atol=1e-6)


@pytest.mark.parametrize("run", [lambda f: f, ft.jit])
def test_slogdet_where_singular(run):
    for a in (np.zeros((2, 2)), np.diag([1.0, 0.0, 2.0]), np.diag([1.0 + 1j, 0.0])):
        sign, size = run(slogdet_p.bind)(a)
        assert sign == 0
        assert size == -np.inf


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_small_matrices_are_written_out(n, dtype):
    """Values and gradients of a batch, by NumPy: the gradient is ``det(a) a^-T``."""
    rng = np.random.default_rng(n)
    a = rng.normal(size=(2, 9, n, n))
    a = (a + 1j * rng.normal(size=a.shape) if np.dtype(dtype).kind == "c" else a).astype(dtype)
    tolerance = 2000 * np.finfo(dtype).eps
    for f in (ft.numpy.linalg.det, ft.jit(ft.numpy.linalg.det)):
        np.testing.assert_allclose(f(a), np.linalg.det(a), rtol=tolerance, atol=tolerance)
    expected = np.linalg.det(a)[..., None, None] * np.swapaxes(np.linalg.inv(a), -1, -2)
    _, pull = ft.vjp(ft.jit(ft.numpy.linalg.det), a)
    np.testing.assert_allclose(pull(np.ones((2, 9), dtype))[0], expected, rtol=tolerance, atol=tolerance)
    sign, size = ft.jit(ft.numpy.linalg.slogdet)(a)
    np.testing.assert_allclose(sign * np.exp(size), np.linalg.det(a), rtol=tolerance, atol=tolerance)


def assert_like_numpy(a, way):
    """Equal determinants, finite where NumPy's are; for complex numbers, infinity and NaN count as equal."""
    with np.errstate(all="ignore"):
        expected = np.linalg.det(a)
    actual = np.asarray(WAYS[way](a))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(actual), finite)
    if a.dtype.kind == "f":
        np.testing.assert_array_equal(actual[~finite], expected[~finite])
    scale = np.abs(expected[finite]).max(initial=0)
    tolerance = 1e4 * np.finfo(a.dtype).eps
    np.testing.assert_allclose(actual[finite], expected[finite], rtol=tolerance, atol=tolerance * scale)


WAYS = {
    "compiled": ft.jit(ft.numpy.linalg.det),
    "eager, differentiated": lambda a: ft.vjp(ft.numpy.linalg.det, a)[0],
    "differentiated": lambda a: ft.jit(lambda a: ft.vjp(ft.numpy.linalg.det, a)[0])(a),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_overflow_and_underflow_as_in_numpy(way, dtype, n):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(6, n, n)) + (1j * rng.normal(size=(6, n, n)) if dtype == "c16" else 0)
    big = 1e15 if dtype == "f4" else 1e120
    a = a * np.array([1.0, big, big**2, 1 / big, 1.0, 1.0])[:, None, None]
    a[4, -1, 0] = np.inf
    a[5, 0, -1] = np.nan
    assert_like_numpy(a.astype(dtype), way)


@pytest.mark.parametrize("way", WAYS)
def test_intermediate_products_overflow_and_underflow_but_not_the_determinant(way):
    pivots = np.array(
        [[1e-200, 1e-200, 1e300, 1e200], [1e200, 1e200, 1e-200, 1e-200], [0, 1e200, 1e200, 1e-300]]
    )
    a = np.zeros((3, 4, 4))
    a[:, range(4), range(4)] = pivots
    np.testing.assert_allclose(WAYS[way](a), [1e100, 1.0, 0.0], rtol=1e-12)
    larger = np.zeros((3, 5, 5))
    larger[:, :4, :4], larger[:, 4, 4] = a, 1.0
    np.testing.assert_allclose(WAYS[way](larger), [1e100, 1.0, 0.0], rtol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_complex_determinants_overflow_to_infinity(way, n):
    a = np.random.default_rng(n).normal(size=(2, n, n)).view(np.float64) * 1e200 * (1 + 1j)
    with np.errstate(all="ignore"):
        assert np.isinf(np.linalg.det(a)).all()
    assert np.isinf(np.asarray(WAYS[way](a))).all()
