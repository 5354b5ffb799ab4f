"""select, casts, stop_gradient, and the derivatives at kinks and singular points."""

import warnings

import numpy as np
import pytest

import functrans.numpy as fnp
from functrans.api.derivatives import jvp
from functrans.api.grad import grad
from functrans.core.aval import Aval, Zero, aval_of
from functrans.core.dtypes import SUPPORTED
from functrans.core.primitive import Linear
from functrans.errors import DtypeError
from functrans.primitives.elementwise.arithmetic import convert_element_type_p, select_p, stop_gradient_p

C = np.array([[True, False, True], [False, False, True]])
X = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]])


@pytest.mark.parametrize("dtype", SUPPORTED, ids=str)
def test_select(check, dtype):
    x, y = X.astype(dtype), (X[::-1] * 2).astype(dtype)
    linear = [(1,), (2,), (1, 2)] if dtype.kind in "fc" else ()
    out = check(select_p, C, x, y, linear=linear)
    np.testing.assert_array_equal(out, np.where(C, x, y))


@pytest.mark.parametrize(
    "operands", [(C, X[0], X[:, :1]), (C[0], X, X[0]), (np.True_, X, X[0]), (C, 1.5, X[0])]
)
def test_select_broadcasts(check, operands):
    operands = tuple(map(np.asarray, operands))
    np.testing.assert_array_equal(check(select_p, *operands, linear=[(1,), (2,)]), np.where(*operands))


def test_select_wants_a_boolean():
    f8 = Aval((), np.dtype(float))
    with pytest.raises(DtypeError, match="expected bool; use a comparison"):
        select_p.abstract(f8, f8, f8)


@pytest.mark.wide(3)
@pytest.mark.parametrize("target", SUPPORTED, ids=str)
@pytest.mark.parametrize("dtype", SUPPORTED, ids=str)
def test_casts(check, dtype, target):
    x = np.array([[3, 1, 0], [2, 5, 100]]).astype(dtype)
    linear = [(0,)] if dtype in (np.float64, np.complex128) and target.kind == dtype.kind else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = x.astype(target)
        out = check(convert_element_type_p, x, linear=linear, jvp=False, dtype=target, backends=("llvm",))
    np.testing.assert_array_equal(out, expected)


def test_casts_are_linear_between_float_and_complex():
    z, t = X + 1j, X * 1j + 2
    _, real = convert_element_type_p.jvp((z,), (t,), dtype=np.dtype(float))
    np.testing.assert_array_equal(real, t.real)
    (back,) = convert_element_type_p.transpose(X, Linear(aval_of(z)), dtype=np.dtype(float))
    assert back.dtype == z.dtype
    np.testing.assert_array_equal(back, X)
    (back,) = convert_element_type_p.transpose(z, Linear(aval_of(X)), dtype=np.dtype(complex))
    np.testing.assert_array_equal(back, X)
    _, single = convert_element_type_p.jvp((X,), (X,), dtype=np.dtype(np.float32))
    assert single.dtype == np.float32
    assert type(convert_element_type_p.jvp((X,), (X,), dtype=np.dtype(int))[1]) is Zero
    # Through float32 and complex64 and back, the gradient has the dtype of the argument.
    g = grad(lambda x: fnp.sum(x.astype(np.complex64).real.astype(np.float32) * 2).astype(np.float64))(X)
    assert g.dtype == np.float64
    np.testing.assert_array_equal(g, np.full_like(X, 2))


def test_stop_gradient(check):
    check(stop_gradient_p, X, jvp=False)
    assert np.array_equal(grad(lambda x: fnp.sum(stop_gradient_p.bind(x) * x))(X), X)


KINKS = {
    "abs": (fnp.abs, 0.0, 0.0),
    "fabs": (fnp.fabs, 0.0, 0.0),
    "sign": (fnp.sign, 0.0, 0.0),
    "floor": (fnp.floor, 1.0, 0.0),
    "sqrt": (fnp.sqrt, 0.0, np.inf),
    "cbrt": (fnp.cbrt, 0.0, np.inf),
    "x**0": (lambda x: x**0, 0.0, 0.0),
    "x**0.": (lambda x: fnp.power(x, np.zeros(())), 0.0, 0.0),
    "x**1": (lambda x: x**1, 0.0, 1.0),
    "x**1.": (lambda x: fnp.power(x, np.ones(())), 0.0, 1.0),
    "x**2": (lambda x: x**2, 0.0, 0.0),
    "x**2.": (lambda x: x**2.0, -3.0, -6.0),
    "x**3, float": (lambda x: fnp.power(x, np.full((), 3.0)), -2.0, 12.0),
    "x**-1": (lambda x: x**-1, 2.0, -0.25),
    "x**0.5": (lambda x: x**0.5, 4.0, 0.25),
    "x**0.3 at 0": (lambda x: x**0.3, 0.0, np.inf),
    "x**0.3 at inf": (lambda x: x**0.3, np.inf, 0.0),
    "x**0.3 near 0": (lambda x: x**0.3, 2.0**-100, 0.3 * 2.0**70),
    "x**0.3 below 0": (lambda x: x**0.3, -1.0, np.nan),
    "x**0.3, twice": (grad(lambda x: x**0.3), 2.0, -0.21 * 2.0**-1.7),
    "2**x": (lambda x: 2**x, 3.0, 8 * np.log(2)),
    "0**x": (lambda x: 0.0**x, 2.0, 0.0),
    "0**0": (lambda x: 0.0**x, 0.0, 0.0),
    "max at a tie": (lambda x: fnp.maximum(x, 1.0), 1.0, 0.5),
    "min at a tie": (lambda x: fnp.minimum(1.0, x), 1.0, 0.5),
    "max with itself": (lambda x: fnp.maximum(x, x), 1.0, 1.0),
    "fmax beside nan": (lambda x: fnp.fmax(x, np.nan), 1.0, 1.0),
    "fmin beside nan": (lambda x: fnp.fmin(np.nan, x), 1.0, 1.0),
    "max below": (lambda x: fnp.maximum(x, 1.0), 0.0, 0.0),
    "clip within": (lambda x: fnp.clip(x, 0, 2), 1.0, 1.0),
    "clip beyond": (lambda x: fnp.clip(x, 0, 2), 3.0, 0.0),
    "hypot": (lambda x: fnp.hypot(x, 0.0), 0.0, 0.0),
    "logaddexp": (lambda x: fnp.logaddexp(x, -np.inf), -np.inf, 0.5),
    "logaddexp, one": (lambda x: fnp.logaddexp(x, 2.0), -np.inf, 0.0),
    "clip at a bound": (lambda x: fnp.clip(x, 0, 2), 2.0, 0.5),
    "logaddexp, inf": (lambda x: fnp.logaddexp(x, 1.0), np.inf, 1.0),
    "logaddexp, far": (lambda x: fnp.logaddexp(x, 1000.0), 0.0, 0.0),
    "remainder": (lambda x: x % 3.0, 7.0, 1.0),
    "heaviside": (lambda x: fnp.heaviside(x, 0.5), 0.0, 0.0),
    "nan_to_num": (fnp.nan_to_num, np.nan, 0.0),
    "where guarded": (lambda x: fnp.where(x > 0, fnp.log(fnp.where(x > 0, x, 1.0)), 0.0), 0.0, 0.0),
}


@pytest.mark.parametrize("case", KINKS)
def test_derivative_at_kinks(case):
    f, x, expected = KINKS[case]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(grad(f)(x), expected, rtol=1e-14)
        np.testing.assert_allclose(jvp(f, (x,), (1.0,))[1], expected, rtol=1e-14)


def test_complex_abs_and_sign():
    z = np.array([3 + 4j, 0, -1j])
    g = grad(lambda a: fnp.sum(fnp.abs(a)))(z)
    # df/dx - i df/dy of |z| is conj(z) / |z|, and 0 at 0.
    np.testing.assert_allclose(g, [(3 - 4j) / 5, 0, 1j])
    assert np.isfinite(grad(lambda a: fnp.sum(fnp.sign(a)).real)(z)).all()


def test_prod_and_extremes():
    assert grad(fnp.prod)(np.array([0.0, 2.0, 3.0])).tolist() == [6.0, 0.0, 0.0]
    assert grad(fnp.max)(np.array([1.0, 3.0, 3.0])).tolist() == [0.0, 0.5, 0.5]
    assert grad(fnp.min)(np.array([[1.0, 3.0], [1.0, 1.0]])).tolist() == [[1 / 3, 0.0], [1 / 3, 1 / 3]]
