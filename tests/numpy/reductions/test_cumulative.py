"""Running sums and products, compared with NumPy; their derivatives at zeros and ties."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.testing import check

RNG = np.random.default_rng(0)
CUBE = RNG.standard_normal((2, 3, 4))
NAMES = ("cumsum", "cumprod", "nancumsum", "nancumprod")
ODD = [
    np.float64(2.5),
    np.zeros((0, 3)),
    np.ones((1, 1)),
    np.array([1.0, np.nan, 2.0, np.inf, -np.inf, 3.0]),
    np.array([True, False, True]),
    np.arange(5, dtype=np.int8) + 60,
    np.arange(5, dtype=np.uint16),
    CUBE.astype(np.float32),
    CUBE + 1j * CUBE[::-1],
    CUBE[:, ::-2, ::2],
    np.broadcast_to(np.arange(3.0), (2, 3)),
    [[1, 2], [3, 4]],
    3,
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("x", ODD, ids=lambda x: f"{np.asarray(x).dtype}{np.shape(x)}")
def test_odd_inputs(same, name, x):
    for axis in (None, 0, -1, 7):
        same(name, x, axis)
    for dtype in (np.float32, np.complex128, bool, "i2"):
        if not (np.iscomplexobj(x) and np.dtype(dtype).kind != "c"):
            same(name, x, dtype=dtype)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_and_mapped(name):
    f = getattr(fnp, name)
    for axis in (0, 1, 2):
        expected = getattr(np, name)(CUBE, axis)
        np.testing.assert_allclose(ft.jit(f, static_argnums=1)(CUBE, axis), expected, rtol=1e-12)
    np.testing.assert_allclose(
        ft.jit(ft.vmap(lambda x: f(x, axis=1), 1))(CUBE),
        np.moveaxis(getattr(np, name)(CUBE, 2), 1, 0),
        rtol=1e-12,
    )


def test_out_is_refused():
    with pytest.raises(ft.errors.ImmutableArrayError, match="cumsum"):
        fnp.cumsum(np.ones(3), out=np.zeros(3))


def test_of_tracers():
    def f(x):
        return np.cumsum(x) + x.cumsum() + np.cumprod(x) + x.cumprod()

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(ft.jit(f)(x), f(x))
    assert ft.grad(lambda x: np.sum(f(x)))(x).shape == (3,)


@pytest.mark.needs("numpy>=2.1", reason="new there")
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_array_api(same, name):
    for initial in (False, True):
        same(name, CUBE, axis=1, include_initial=initial)
        same(name, CUBE[0, 0], include_initial=initial)
        same(name, CUBE)  # which axis?
        same(name, np.arange(3, dtype=np.int8), include_initial=initial)
        same(name, np.arange(3.0), dtype=np.float32, include_initial=initial)
        same(name, np.zeros((0, 2)), axis=0, include_initial=initial)
        same(name, CUBE, axis=9)


@pytest.mark.parametrize("zeros", [(), (0,), (2,), (1, 3), (0, 1, 4)])
def test_products_with_zeros(zeros):
    """First and second derivatives against those of the polynomials that the products are."""
    x = np.array([1.5, -0.7, 2.0, 0.3, -1.1])
    x[list(zeros)] = 0.0
    n = len(x)
    jacobian, hessian = np.zeros((n, n)), np.zeros((n, n, n))
    for i in range(n):
        for j in range(i + 1):
            jacobian[i, j] = np.prod(np.delete(x[: i + 1], j))
            for k in set(range(i + 1)) - {j}:
                hessian[i, j, k] = np.prod(np.delete(x[: i + 1], [j, k]))
    for transform in (ft.jacrev, ft.jacfwd):
        np.testing.assert_allclose(transform(fnp.cumprod)(x), jacobian, atol=1e-14)
        np.testing.assert_allclose(ft.jit(transform(transform(fnp.cumprod)))(x), hessian, atol=1e-14)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("name", "ufunc"),
    [
        ("cumsum", np.add),
        ("cumprod", np.multiply),
        ("cummax", np.maximum),
        ("cummin", np.minimum),
        ("cumlogsumexp", np.logaddexp),
    ],
)
def test_lax(name, ufunc, reverse):
    f = getattr(lax, name)
    bad = np.array([1.0, -np.inf, np.nan, 2.0])
    infinite = np.array([-np.inf, -np.inf, 0.5, -np.inf, np.inf, 1.0])
    with np.errstate(invalid="ignore"):
        for x in (CUBE, CUBE[0], bad, infinite, np.zeros((0,)), CUBE.astype(np.float32)):
            for axis in range(x.ndim):
                flipped = np.flip(x, axis) if reverse else x
                expected = ufunc.accumulate(flipped, axis=axis)
                expected = np.flip(expected, axis) if reverse else expected
                for g in (f, ft.jit(f, static_argnums=(1, 2))):
                    got = g(x, axis, reverse)
                    assert got.dtype == x.dtype
                    np.testing.assert_allclose(got, expected, rtol=2e-6 if x.dtype == np.float32 else 1e-12)
    check(lambda x: f(x, axis=1, reverse=reverse), CUBE, order=2)


def test_lax_refuses():
    with pytest.raises(ft.errors.AxisError, match=r"lax\.cumsum"):
        lax.cumsum(CUBE, axis=3)
    with pytest.raises(ft.errors.DtypeError):
        lax.cumsum(np.array([True]))
    with pytest.raises(ft.errors.DtypeError):
        lax.cumlogsumexp(np.array([1]))
    assert lax.cumsum(np.array([100, 100], np.uint8)).dtype == np.uint8


def test_ties_share():
    """As of repeated `maximum`: half to the new one, half to those before."""
    jacobian = ft.jacrev(lambda x: lax.cummax(x)[-1])
    np.testing.assert_array_equal(jacobian(np.array([1.0, 1.0])), [0.5, 0.5])
    np.testing.assert_array_equal(jacobian(np.array([0.0, 2.0, 1.0, 2.0])), [0.0, 0.5, 0.0, 0.5])
    np.testing.assert_array_equal(
        ft.jacrev(lambda x: lax.cummin(x)[-1])(np.array([3.0, 1.0, 2.0])), [0, 1, 0]
    )


def test_logsumexp_of_nothing_and_everything():
    """Where there is -inf the derivative stays a number, and what is far apart does not overflow."""
    x = np.array([-np.inf, 0.0, -np.inf, 1000.0, 999.0])
    np.testing.assert_allclose(
        lax.cumlogsumexp(x), [-np.inf, 0.0, 0.0, 1000.0, 1000.0 + np.log1p(np.exp(-1))]
    )
    last = ft.grad(lambda x: lax.cumlogsumexp(x)[-1])
    share = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(last(x), [0.0, 0.0, 0.0, share, 1 - share], atol=1e-15)


def test_long_rows_in_kernels():
    """Many elements, in either direction, along axes of all kinds; the program is one kernel."""
    x = RNG.standard_normal((3, 700, 5))
    for axis in range(3):
        f = ft.jit(lambda x, d=axis: lax.cumsum(fnp.sin(x), d, reverse=True))
        expected = np.flip(np.cumsum(np.flip(np.sin(x), axis), axis), axis)
        np.testing.assert_allclose(f(x), expected, rtol=1e-10, atol=1e-12)
