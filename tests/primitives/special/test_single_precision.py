"""Float32 eagerly: SciPy's float64 value, rounded, as kernels compute it. Boost's float32 loops lose tails."""

import numpy as np
import pytest
import scipy.special
import scipy.stats

import functrans as ft
from functrans.primitives import special_ops

SIZES = [0.0, 1e-20, 1e-8, 0.01, 0.3, 0.5, 0.99, 1.0, 1.5, 2.0, 3.5, 7.0, 30.0, 300.0, 1e8, 1e22]
NUMBERS = np.array([np.nan, np.inf, -np.inf, *[s * x for x in SIZES for s in (1, -1)]], np.float32)
#: Those that SciPy takes from Boost, with the number of operands.
CASES = {"erfinv": 1, "pdtrik": 2, "stdtr": 2, "stdtrit": 2, "betainc": 3, "betaincinv": 3, "betainccinv": 3}


def close(actual, expected):
    """To two ulps, NaN and infinities where they are."""
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isinf(actual), np.isinf(expected))
    apart = np.abs(actual[finite].astype(float) - expected[finite])
    assert np.all(apart <= 2 * np.spacing(np.abs(expected[finite])))


@pytest.mark.parametrize("name", CASES)
def test_eager_float32(name):
    bind = getattr(special_ops, f"{name}_p").bind
    random = np.random.default_rng(0)
    operands = [random.choice(NUMBERS, 500) for _ in range(CASES[name])] if CASES[name] > 1 else [NUMBERS]
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name)(*[x.astype(float) for x in operands]).astype(np.float32)
        actual = np.asarray(bind(*operands))
    assert actual.dtype == np.float32
    close(actual, expected)


@pytest.mark.parametrize("df", [1.0, 2.0])
def test_tails_of_students_t(df):
    """Where the square of the argument does not fit float32."""
    x = np.array([1e10, 3e19, 1e22, 1e30], np.float32)
    expected = scipy.stats.t.sf(x.astype(float), df).astype(np.float32)
    f = lambda x: ft.scipy.stats.t.sf(x, df)
    close(np.asarray(f(x)), expected)
    close(np.asarray(ft.jit(f)(x)), expected)
