"""functrans.scipy.special against SciPy."""

import numpy as np
import pytest
import scipy.special as sp

import functrans as ft
import functrans.numpy as fnp
import functrans.scipy.special as fsp
from functrans import lax
from functrans.arrays.array import Array
from functrans.core.operators import operators
from functrans.errors import ArgumentError, ArgumentValueError, AxisError
from functrans.primitives.promotion import make_plan
from functrans.runtime.libraries import SpecialUfunc

UNARY = ("erf", "erfc", "gammaln", "digamma", "psi", "expit", "logit", "entr")
X = np.array([-2.5, -0.7, -1e-9, 0.0, 1e-9, 0.3, 0.5, 1.0, 2.5, 40.0, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    ours, theirs = getattr(fsp, name), getattr(sp, name)
    for x in (
        X,
        X.astype(np.float32),
        X[:, None][::-1],
        0.5,
        np.float32(0.5),
        1,
        np.arange(3, dtype=np.int32),
        [],
    ):
        a, b = ours(x), np.asarray(theirs(x))
        assert type(a) is Array
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_binary(name):
    ours, theirs = getattr(fsp, name), getattr(sp, name)
    np.testing.assert_array_equal(ours(X, X[:, None]), theirs(X, X[:, None]))
    assert ours(np.float32(2), 3.0).dtype == theirs(np.float32(2), 3.0).dtype
    assert ours(0, 0) == 0


def test_polygamma():
    x = np.array([-3.7, -2.5, -0.3, 0.2, 1.0, 5.5, 30.0])
    for n in range(6):
        # SciPy adds terms of both signs left of 0.
        np.testing.assert_allclose(fsp.polygamma(n, x), sp.polygamma(n, x), rtol=1e-11)
    assert fsp.polygamma(1, np.float32(2)).dtype == np.float32
    # DLMF 5.15.2 and 5.4.14: zeta values.
    np.testing.assert_allclose(fsp.polygamma(1, 1), np.pi**2 / 6, rtol=1e-15)
    np.testing.assert_allclose(fsp.polygamma(3, 1), np.pi**4 / 15, rtol=1e-15)
    assert np.array_equal(fsp.polygamma(1, [0.0, -1.0, -2.0]), [np.inf] * 3)
    assert fsp.polygamma(1, -1e22) == np.inf
    with pytest.raises(ArgumentValueError, match="negative"):
        fsp.polygamma(-1, x)
    with pytest.raises(ArgumentError, match="integer"):
        fsp.polygamma(1.5, x)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp(axis, keepdims):
    a = np.random.default_rng(0).normal(size=(2, 3, 4)) * 300
    b = np.random.default_rng(1).normal(size=(3, 4))
    np.testing.assert_allclose(
        fsp.logsumexp(a, axis, keepdims=keepdims), sp.logsumexp(a, axis, keepdims=keepdims)
    )
    ours = fsp.logsumexp(a, axis, b, keepdims, return_sign=True)
    theirs = sp.logsumexp(a, axis, b, keepdims, return_sign=True)
    for x, y in zip(ours, theirs):
        np.testing.assert_allclose(x, y, rtol=1e-12)
    weights = np.abs(b)
    np.testing.assert_allclose(fsp.logsumexp(a, axis, weights), sp.logsumexp(a, axis, weights))


def test_logsumexp_at_the_edges():
    inf = np.inf
    for a in ([-inf, -inf], [inf, 1.0], [-inf, 2.0], [inf, -inf], [np.nan, 1.0], 3.0, [1, 2, 3]):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(fsp.logsumexp(a), sp.logsumexp(a))
    with np.errstate(all="ignore"):
        assert fsp.logsumexp(np.zeros((0, 2)), 0).tolist() == [-inf, -inf]
    assert fsp.logsumexp([inf, 1.0], b=[0.0, 1.0]) == 1.0
    with np.errstate(all="ignore"):
        assert np.isnan(fsp.logsumexp([1.0, 2.0], b=[1.0, -1.0]))
    assert fsp.logsumexp(np.float32([1, 2])).dtype == np.float32
    with pytest.raises(AxisError):
        fsp.logsumexp([1.0], axis=1)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_softmax(axis):
    x = np.random.default_rng(0).normal(size=(3, 4)) * 100
    np.testing.assert_allclose(fsp.softmax(x, axis), sp.softmax(x, axis), rtol=1e-12)
    np.testing.assert_allclose(fsp.log_softmax(x, axis), sp.log_softmax(x, axis), rtol=1e-12)


@pytest.mark.parametrize(
    "x",
    [[np.inf, 1.0], [np.inf, np.inf], [-np.inf, -np.inf], [-np.inf, 1.0], [np.nan, 1.0], [np.inf, -np.inf]],
)
def test_softmax_of_infinities(x):
    with np.errstate(all="ignore"):
        for name in ("softmax", "log_softmax"):
            expected = getattr(sp, name)(np.array(x))
            np.testing.assert_array_equal(getattr(fsp, name)(x), expected)
            np.testing.assert_array_equal(ft.jit(getattr(fsp, name))(np.array(x)), expected)


@pytest.mark.parametrize("run", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_mixed_derivatives_at_zeros(run):
    def mixed(f, first, second):
        return run(ft.grad(ft.grad(f, first), second))

    for first, second in ((0, 1), (1, 0)):
        np.testing.assert_allclose(mixed(fsp.xlogy, first, second)(0.0, 3.0), 1 / 3, rtol=1e-15)
        np.testing.assert_allclose(mixed(fsp.xlog1py, first, second)(0.0, 2.0), 1 / 3, rtol=1e-15)
        np.testing.assert_allclose(mixed(fnp.power, first, second)(3.0, 0.0), 1 / 3, rtol=1e-15)


@pytest.mark.parametrize("run", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_betaln_of_large_and_small_arguments(run):
    # log B(a, 1) = -log(a); its derivative in a is -1 / a, that in b at b = 1 is digamma(1) - digamma(a + 1).
    for a in (1e30, 1e-30, 1e8):
        np.testing.assert_allclose(run(fsp.betaln)(a, 1.0), -np.log(a), rtol=1e-15)
        slopes = run(ft.grad(fsp.betaln, (0, 1)))(a, 1.0)
        np.testing.assert_allclose(slopes[0], -1 / a, rtol=1e-14)
        np.testing.assert_allclose(slopes[1], sp.psi(1.0) - sp.psi(a + 1.0), atol=1e-15, rtol=1e-14)
    np.testing.assert_allclose(run(ft.grad(fsp.betaln))(-0.5, 0.25), sp.psi(-0.5) - sp.psi(-0.25), rtol=1e-14)


@pytest.mark.parametrize("repetition", [False, True])
def test_comb_beside_the_last_whole_number(repetition):
    """No things, fewer than none, and parts of things."""
    total, count = np.meshgrid(
        [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 5.0], [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0]
    )
    expected = sp.binom(total + count - 1, count) if repetition else sp.comb(total, count)
    if repetition:
        expected[(count == 0) & (total >= 0)] = 1.0
    for f in (fsp.comb, ft.jit(fsp.comb, static_argnames="repetition")):
        np.testing.assert_allclose(f(total, count, repetition=repetition), expected, rtol=1e-13)
    assert fsp.comb(0.0, 0.0, repetition=True) == 1
    assert np.isnan(fsp.comb(-1, 0, repetition=True))


def test_polygamma_of_arrays_of_orders():
    x, n = np.array([0.3, 1.0, 2.5, -0.7]), np.array([0, 1, 2, 3])
    np.testing.assert_allclose(fsp.polygamma(n, x), sp.polygamma(n, x), rtol=1e-13)
    expected = sp.polygamma(n[:, None], x)
    np.testing.assert_allclose(fsp.polygamma(n[:, None], x), expected, rtol=1e-13)
    np.testing.assert_allclose(ft.jit(fsp.polygamma)(n[:, None], x), expected, rtol=1e-13)
    np.testing.assert_allclose(ft.vmap(fsp.polygamma, (0, None))(n, x), expected, rtol=1e-13)
    many = np.arange(20)[:, None]
    np.testing.assert_allclose(fsp.polygamma(many, x[:3]), sp.polygamma(many, x[:3]), rtol=1e-13)
    slopes = ft.grad(lambda x, n: fnp.sum(fsp.polygamma(n, x)))
    for gradient in (slopes, ft.jit(slopes)):
        np.testing.assert_allclose(gradient(x, n), sp.polygamma(n + 1, x), rtol=1e-12)
    assert fsp.polygamma(n, x.astype(np.float32)).dtype == np.float32
    assert np.isnan(ft.jit(fsp.polygamma)(-1, 2.0))
    with pytest.raises(ArgumentValueError, match="polygamma: orders must not be negative, got -2"):
        fsp.polygamma([1, -2], 1.0)
    with pytest.raises(ArgumentError, match="polygamma: the order must be a known integer or an array"):
        fsp.polygamma([0.5], 1.0)
    np.testing.assert_allclose(lax.polygamma(n.astype(float), x), sp.polygamma(n, x), rtol=1e-13)
    assert np.isnan(ft.jit(lax.polygamma)(1.5, 2.0))
    with pytest.raises(ArgumentValueError, match=r"lax.polygamma: orders must be whole numbers"):
        lax.polygamma(np.array([0.5, 1.0]), 1.0)


def test_logsumexp_of_complex_numbers():
    x = np.array([[1.0 + 1.0j, -2.0 - 2.0j, 3.0], [1000.0 + 3.0j, 1000.0 - 3.0j, -np.inf]])
    b = np.array([1.0, -2.0, 1.0j])
    for options in ({}, {"axis": 1}, {"axis": 1, "b": b}, {"axis": 0, "keepdims": True}, {"b": 1j}):
        np.testing.assert_allclose(fsp.logsumexp(x, **options), sp.logsumexp(x, **options), rtol=1e-14)
        compiled = ft.jit(lambda x, options=options: fsp.logsumexp(x, **options))(x)
        np.testing.assert_allclose(compiled, sp.logsumexp(x, **options), rtol=1e-14)
    for ours, theirs in zip(
        fsp.logsumexp(x, 1, b, return_sign=True), sp.logsumexp(x, 1, b, return_sign=True)
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    np.testing.assert_allclose(
        fsp.logsumexp([-1.0, 1.0], b=[1j, 1.0]), sp.logsumexp([-1.0, 1.0], b=[1j, 1.0])
    )
    assert fsp.logsumexp(np.full(2, -np.inf + 0j)) == -np.inf
    assert fsp.logsumexp(np.zeros(0, complex)) == -np.inf
    np.testing.assert_allclose(fsp.softmax(x[0]), sp.softmax(x[0]))
    np.testing.assert_allclose(fsp.log_softmax(x[0]), np.log(sp.softmax(x[0])))
    z = x[0, :2]
    gradient = ft.grad(fsp.logsumexp, holomorphic=True)(z)
    np.testing.assert_allclose(gradient, np.exp(z) / np.exp(z).sum())


def test_softmax_of_nothing_is_empty():
    for f in (fsp.softmax, fsp.log_softmax):
        for shape, axis in (((0,), None), ((2, 0), 1), ((2, 0), 0), ((0, 3), -1)):
            assert f(np.ones(shape), axis=axis).shape == shape
        with pytest.raises(AxisError):
            f(np.ones(0), axis=1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_dtypes_that_ufuncs_compute_floats_in_are_scipys(dtype):
    """Of strong and weak operands: while `scipy.special` has not loaded, promotion must know them."""

    def computed_in(ufunc, key):
        values = [0.5 if k is float else np.ones((), k) for k in key]
        casts = make_plan(ufunc, key, keep_weak=False)
        return [np.asarray(x if cast is None else cast(x)).dtype for x, cast in zip(values, casts)]

    dtype = np.dtype(dtype)
    for name in operators.special:
        ufunc, lazy = getattr(sp, name), SpecialUfunc(name)
        for key in ((dtype,) * ufunc.nin, (dtype, *(float,) * (ufunc.nin - 1)), (float,) * ufunc.nin):
            assert computed_in(lazy, key) == computed_in(ufunc, key), (name, key)
    assert len(operators.special) > 80


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["erfinv", "ndtri", "i0", "i0e", "i1", "i1e"])
def test_float32_is_scipys_double_rounded(name):
    """Over all floats, by random bits, and where most of them are used."""
    rng, n = np.random.default_rng(0), 50_000
    x = np.concatenate(
        [
            rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32),
            rng.uniform(-1, 1, n),
            rng.uniform(-90, 90, n),
            np.exp(rng.uniform(-103, 0, n)),
            1 - np.exp(rng.uniform(-17, 0, n)),
            [0.0, -0.0, 1.0, -1.0, 2.0, 8.0, -8.0, 1e-45, np.inf, -np.inf, np.nan],
        ]
    ).astype(np.float32)
    exact = getattr(sp, name)(x.astype(float))
    rounded, actual = exact.astype(np.float32), np.asarray(ft.jit(getattr(fsp, name))(x))
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(actual[~finite], rounded[~finite])
    errors = np.abs(actual[finite] - exact[finite]) / np.spacing(np.abs(rounded[finite]))
    assert errors.max() < 0.65, x[finite][errors.argmax()]
