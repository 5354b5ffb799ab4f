"""Activations where they are delicate: in the tails, at kinks, at infinities, at NaN, with masks."""

import mpmath
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import nn
from functrans.errors import ArgumentValueError, AxisError, DtypeError

FAR = [-np.inf, -1e300, -1e3, -40.0, 40.0, 1e3, 1e300, np.inf]
#: Of each function: its limits at -inf and inf, and those of its derivative.
LIMITS = {
    "relu": (0, np.inf, 0, 1),
    "relu6": (0, 6, 0, 0),
    "hard_sigmoid": (0, 1, 0, 0),
    "hard_silu": (0, np.inf, 0, 1),
    "hard_tanh": (-1, 1, 0, 0),
    "leaky_relu": (-np.inf, np.inf, 0.01, 1),
    "elu": (-1, np.inf, 0, 1),
    "celu": (-1, np.inf, 0, 1),
    "selu": (-1.7580993408473766, np.inf, 0, 1.0507009873554805),
    "sparse_plus": (0, np.inf, 0, 1),
    "sparse_sigmoid": (0, 1, 0, 0),
    "sigmoid": (0, 1, 0, 0),
    "tanh": (-1, 1, 0, 0),
    "soft_sign": (-1, 1, 0, 0),
    "softplus": (0, np.inf, 0, 1),
    "log_sigmoid": (-np.inf, 0, 1, 0),
    "squareplus": (0, np.inf, 0, 1),
    "silu": (0, np.inf, 0, 1),
    "mish": (0, np.inf, 0, 1),
    "gelu": (0, np.inf, 0, 1),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_limits(dtype):
    """No NaN or overflow far from 0, in values and derivatives, eagerly and compiled."""

    def everything(x):
        return {
            name: (getattr(nn, name)(x), ft.vjp(getattr(nn, name), x)[1](fnp.ones_like(x))[0])
            for name in LIMITS
        }

    with np.errstate(all="ignore"):
        ends = np.array([-np.inf, np.inf, np.nan], dtype)
        far = np.array(FAR).astype(dtype)
        for run in (everything, ft.jit(everything)):
            for name, (y, slope) in run(ends).items():
                low, high, low_slope, high_slope = LIMITS[name]
                assert y.dtype == slope.dtype == dtype
                np.testing.assert_allclose(y, np.array([low, high, np.nan], dtype), rtol=1e-6, err_msg=name)
                np.testing.assert_allclose(slope[:2], [low_slope, high_slope], rtol=1e-6, err_msg=name)
            for name, parts in run(far).items():
                assert not np.isnan(parts).any(), name


@pytest.mark.parametrize(
    ("name", "kinks", "slopes"),
    [
        ("relu", [0.0], [0.0]),
        ("relu6", [0.0, 6.0], [0.0, 0.0]),
        ("hard_sigmoid", [-3.0, 3.0], [0.0, 0.0]),
        ("hard_tanh", [-1.0, 1.0], [1.0, 1.0]),
        ("leaky_relu", [0.0], [1.0]),
        ("elu", [0.0], [1.0]),
        ("selu", [0.0], [1.7580993408473766]),
        ("soft_sign", [0.0], [1.0]),
    ],
)
def test_kinks(name, kinks, slopes):
    """JAX's choices."""
    got = ft.vmap(ft.grad(getattr(nn, name)))(np.array(kinks))
    np.testing.assert_allclose(got, slopes, rtol=1e-14)


#: By mpmath, to 60 digits.
EXACT = {
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "log_sigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "squareplus": lambda x: (x + mpmath.sqrt(x * x + 4)) / 2,
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "mish": lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))),
    "elu": lambda x: x if x > 0 else mpmath.expm1(x),
}


@pytest.mark.parametrize("name", EXACT)
def test_accuracy(name):
    points = np.concatenate([np.linspace(-30, 30, 41), [-500.0, -1e-9, 1e-9, 500.0]])
    with mpmath.workdps(60):
        exact = [float(EXACT[name](mpmath.mpf(x))) for x in points]
        slopes = [float(mpmath.diff(EXACT[name], mpmath.mpf(x))) for x in points]
    np.testing.assert_allclose(ft.jit(getattr(nn, name))(points), exact, rtol=1e-14)
    np.testing.assert_allclose(ft.vmap(ft.grad(getattr(nn, name)))(points), slopes, rtol=2e-13, atol=1e-60)


def test_accuracy_of_gelu_and_log1mexp():
    points = np.linspace(-20.0, 20.0, 41)
    with mpmath.workdps(60):
        normal = [float(x * mpmath.ncdf(mpmath.mpf(x))) for x in points]
        tails = [float(mpmath.log1p(-mpmath.exp(-mpmath.mpf(x)))) for x in 10.0 ** np.arange(-20, 3)]
    np.testing.assert_allclose(nn.gelu(points, approximate=False), normal, rtol=2e-13)
    np.testing.assert_allclose(nn.log1mexp(10.0 ** np.arange(-20, 3)), tails, rtol=1e-15)
    slopes = ft.vmap(ft.grad(nn.log1mexp))(np.array([1e-20, 1.0, 800.0, np.inf]))
    np.testing.assert_allclose(slopes, [1e20, 1 / np.expm1(1.0), 0.0, 0.0], rtol=1e-14)


def test_parameters_may_be_traced():
    x = np.array([-2.0, -0.5, 1.5])
    for f in (nn.elu, nn.celu, nn.leaky_relu, nn.squareplus):
        slope = ft.grad(lambda a, f=f: fnp.sum(f(x, a)))(0.7)
        step = (np.sum(f(x, 0.7 + 1e-6)) - np.sum(f(x, 0.7 - 1e-6))) / 2e-6
        assert abs(slope - step) < 1e-8
    assert nn.elu(np.float32([-1.0]), 0.5).dtype == np.float32
    assert nn.squareplus(np.float32([-1.0]), 2).dtype == np.float32


def test_masks():
    x, mask = np.array([[1.0, 2.0, np.inf], [3.0, np.nan, 4.0]]), np.array([[1, 1, 0], [0, 0, 0]], bool)
    np.testing.assert_allclose(nn.softmax(x, where=mask), [[1 / (1 + np.e), np.e / (1 + np.e), 0], [0, 0, 0]])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(nn.logsumexp(x, 1, where=mask), [np.logaddexp(1.0, 2.0), -np.inf])
    np.testing.assert_allclose(nn.logmeanexp(x[:1], 1, mask[:1]), [np.logaddexp(1.0, 2.0) - np.log(2)])
    np.testing.assert_allclose(
        nn.log_softmax(x[:1], where=mask[:1]), [[1 - np.logaddexp(1, 2), 2 - np.logaddexp(1, 2), -np.inf]]
    )
    np.testing.assert_allclose(nn.standardize(x[:1], where=mask[:1], epsilon=0.0)[0, :2], [-1.0, 1.0])
    slopes = ft.jacrev(lambda x: nn.softmax(x, where=mask))(np.where(np.isfinite(x), x, 0.0))
    np.testing.assert_array_equal(slopes[1], 0.0)
    assert np.isfinite(slopes).all()


def test_one_hot():
    np.testing.assert_array_equal(
        nn.one_hot([[0, 2]], 3, axis=0, dtype=int), np.eye(3, dtype=int)[:, [[0, 2]]]
    )
    assert nn.one_hot(np.array([-1, 3]), 3).sum() == 0
    assert ft.vmap(lambda i: nn.one_hot(i, 4, dtype=np.float32))(np.arange(4)).dtype == np.float32


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.relu(1j), DtypeError, "relu: argument 0 is complex"),
        (lambda: nn.glu(np.ones(3)), ArgumentValueError, "axis 0 must be even, got 3"),
        (lambda: nn.softmax(np.ones(3), axis=1), AxisError, "softmax: axis 1"),
        (lambda: nn.one_hot([1], -1), ArgumentValueError, "num_classes"),
        (lambda: nn.standardize(np.ones(3), algorithm="quick"), ArgumentValueError, "'fast', 'stable'"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_softmax_of_nothing_and_of_complex_numbers():
    for f in (nn.softmax, nn.log_softmax):
        assert f(np.ones((2, 0))).shape == (2, 0)
        assert f(np.ones((2, 0)), where=np.ones((2, 0), bool)).shape == (2, 0)
        with pytest.raises(AxisError):
            f(np.ones(0), axis=1)
    z = np.array([1.0 + 1.0j, 2.0, 3.0 - 2.0j])
    expected = np.exp(z) / np.exp(z).sum()
    np.testing.assert_allclose(nn.softmax(z), expected)
    np.testing.assert_allclose(np.exp(nn.log_softmax(z)), expected)
    kept = np.array([True, False, True])
    np.testing.assert_allclose(
        nn.softmax(z, where=kept), np.where(kept, np.exp(z), 0) / np.exp(z[kept]).sum()
    )
    np.testing.assert_allclose(nn.logsumexp(z, where=kept), np.log(np.exp(z[kept]).sum()))
    np.testing.assert_allclose(nn.logsumexp(z, b=[1.0, 2.0, 3.0]), np.log(np.exp(z) @ [1.0, 2.0, 3.0]))
