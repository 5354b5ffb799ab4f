"""A distribution is one decorated formula."""

import inspect

import numpy as np
import pytest
import scipy.stats

import functrans as ft
import functrans.numpy as fnp
from functrans import random
from functrans.errors import ArgumentValueError, DtypeError, ShapeError
from functrans.random import stream
from functrans.random.arguments import integer_dtype
from functrans.random.sampler import Real, sampler


@sampler(Real("c, k", "Positive.", above=0.0))
def burr(word, c, k, shape, dtype):
    """Draw Burr numbers.

    Examples
    --------
    >>> None
    """
    u = stream.uniform(word, shape, dtype)
    return ((1 - u) ** (-1 / fnp.asarray(k, dtype)) - 1) ** (1 / fnp.asarray(c, dtype))


@sampler(dtype=integer_dtype)
def coin(word, shape, dtype):
    """Draw 0 or 1."""
    return fnp.astype(stream.uniform(word, shape, np.dtype(float)) < 0.5, dtype)


KEY = random.key(11)


def test_it_draws_from_the_distribution_in_the_dtype_and_shape():
    x = burr(KEY, 2.0, 3.0, (20000,))
    assert scipy.stats.kstest(np.asarray(x), scipy.stats.burr12(2.0, 3.0).cdf).pvalue > 1e-3
    assert burr(KEY, np.ones(3), 2.0).shape == (3,)
    for dtype in ("float16", "float32"):
        assert burr(KEY, 1.0, 2.0, 4, dtype).dtype == dtype
    assert coin(KEY, (5,)).dtype == np.int64
    assert coin(KEY, (5,), dtype="uint8").dtype == np.uint8


def test_transformations():
    slope = ft.grad(lambda k: burr(KEY, 2.0, k))(3.0)
    expected = (burr(KEY, 2.0, 3.0 + 1e-6) - burr(KEY, 2.0, 3.0 - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, expected, rtol=1e-7)
    keys = random.split(KEY, 3)
    np.testing.assert_array_equal(ft.vmap(coin)(keys), [coin(k) for k in keys])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: burr(KEY, 0.0, 1.0), ArgumentValueError, r"random\.burr: c must be greater than 0, got 0"),
        (lambda: burr(KEY, 1.0, 1j), DtypeError, r"random\.burr: k must be real"),
        (lambda: burr(KEY, np.ones(2), np.ones(3)), ShapeError, r"the shapes of c \(2,\), k \(3,\)"),
        (lambda: burr(KEY, np.ones(2), 1.0, (3,)), ShapeError, r"do not broadcast to shape \(3,\)"),
        (lambda: burr(KEY, 1.0, 1.0, dtype=int), DtypeError, "must be a float dtype, got int64"),
        (lambda: coin(KEY, dtype=float), DtypeError, "must be an integer dtype, got float64"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_signature_and_docstring():
    assert list(inspect.signature(burr).parameters) == ["key", "c", "k", "shape", "dtype", "out_sharding"]
    sections = [line for line in burr.__doc__.splitlines() if line in ("Parameters", "Examples")]
    assert sections == ["Parameters", "Examples"]
    assert "c, k : array_like\n    Positive." in burr.__doc__
    assert "By default that of the parameters" in burr.__doc__
    assert "An integer dtype, by default int64." in coin.__doc__
    assert coin.__module__ == __name__
