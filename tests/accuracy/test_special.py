"""Special functions: derivatives to third order against mpmath, values at special points against SciPy."""

import itertools

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp
from versions import has

import functrans as ft
import functrans.scipy.special as fsp

DIGITS = 60
BEYOND = [-40.0, -5.0, -0.99, -1e-3, 1e-3, 0.4, 1.0, 5.0, 30.0]
POSITIVE = [1e-3, 0.4, 1.0, 2.5, 7.5, 40.0, 1e4]
#: A function, the same for mpmath, points, and the relative error of values and derivatives by order.
ENTRIES = {
    "erfcx": (fsp.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), [-5.0, -1.01, *BEYOND[2:], 1e6], (2e-15,) * 4),
    "dawsn": (
        fsp.dawsn,
        lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
        [*BEYOND, 6.9, 7.1, 1e4],
        (2e-15, 3e-14, 2e-12, 5e-11),
    ),
    "log_ndtr": (
        fsp.log_ndtr,
        lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
        [-300.0, *BEYOND[:-1]],
        (4e-15, 4e-15, 4e-15, 1e-10),
    ),
    "rgamma": (
        fsp.rgamma,
        mp.rgamma,
        [-2.0, -1.0, 0.0, -2.5, -0.3, 0.49, 0.51, 4.0, 30.0],
        (5e-15, 1e-14, 1e-13, 1e-12),
    ),
    "gamma": (fsp.gamma, mp.gamma, [-2.5, 0.3, 4.0, 30.0], (5e-15, 1e-14, 1e-13, 1e-12)),
    "exprel": (
        fsp.exprel,
        lambda x: mp.expm1(x) / x if x else mp.mpf(1),
        [-30.0, -3.0, -2e-3, 1e-3, 1.0, 2.4, 30.0],
        (2e-15, 1e-14, 1e-13, 1e-12),
    ),
    "spence": (
        fsp.spence,
        lambda x: mp.polylog(2, 1 - x),
        [1e-3, 0.5, 0.999, 1.2, 1.7, 30.0],
        (4e-15, 4e-15, 4e-15, 2e-14),
    ),
    "sici": (lambda x: fsp.sici(x)[0], mp.si, [1e-3, 0.4, 1.4, 1.6, 7.0, 40.0], (2e-15, 1e-14, 2e-13, 2e-12)),
    "shichi": (
        lambda x: fsp.shichi(x)[0],
        mp.shi,
        [1e-3, 0.4, 1.4, 1.6, 7.0, 40.0],
        (4e-15, 1e-14, 2e-13, 2e-12),
    ),
    "exp1": (fsp.exp1, mp.e1, POSITIVE[:-1], (4e-15, 4e-15, 4e-15, 4e-15)),
    "expn(2, x)": (
        lambda x: fsp.expn(2, x),
        lambda x: mp.expint(2, x),
        POSITIVE[:-1],
        (4e-15, 8e-15, 8e-15, 8e-15),
    ),
    "kve(2.5, x)": (
        lambda x: fsp.kve(2.5, x),
        lambda x: mp.besselk(mp.mpf(2.5), x) * mp.exp(x),
        [0.4, 2.5, 7.5, 40.0, 1e4],
        (1e-14, 1e-13, 1e-11, 1e-9),
    ),
    "ive(1.5, x)": (
        lambda x: fsp.ive(1.5, x),
        lambda x: mp.besseli(mp.mpf(1.5), x) * mp.exp(-x),
        [0.4, 2.5, 7.5, 40.0, 1e4],
        (1e-14, 1e-13, 1e-11, 1e-9),
    ),
    "boxcox(3, lmbda)": (
        lambda t: fsp.boxcox(3.0, t),
        lambda t: (mp.mpf(3) ** t - 1) / t if t else mp.log(3),
        [-2.0, -1e-9, 1e-3, 0.5, 2.0],
        (1e-14, 1e-14, 1e-13, 1e-12),
    ),
    "inv_boxcox(0.7, lmbda)": (
        lambda t: fsp.inv_boxcox(0.7, t),
        lambda t: (1 + mp.mpf(0.7) * t) ** (1 / t) if t else mp.exp(mp.mpf(0.7)),
        [-1.0, -1e-9, 1e-3, 0.5, 2.0],
        (1e-14, 1e-14, 1e-13, 1e-12),
    ),
    "ellipk": (fsp.ellipk, mp.ellipk, [-3.0, 1e-9, 0.5, 0.9], (4e-15, 4e-15, 1e-13, 1e-12)),
    "jv(1.5, x)": (
        lambda x: fsp.jv(1.5, x),
        lambda x: mp.besselj(mp.mpf(1.5), x),
        [0.3, 2.0, 5.0, 20.0],
        (2e-14, 1e-13, 1e-13, 1e-12),
    ),
    "ndtri_exp": (
        fsp.ndtri_exp,
        lambda y: mp.findroot(
            lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2) - y, mp.mpf(float(sp.ndtri_exp(float(y))))
        ),
        [-300.0, -3.0, -0.5],
        (4e-15, 1e-14, 1e-13, 1e-11),
    ),
}
QUICK = ("erfcx", "dawsn", "log_ndtr", "rgamma", "kve(2.5, x)")


def check(name):
    function, formula, points, tolerances = ENTRIES[name]
    x = np.array(points)
    derivative = function
    for order, rtol in enumerate(tolerances):
        found = np.asarray(ft.jit(derivative)(x))
        with mp.workdps(DIGITS):
            exact = [mp.diff(formula, mp.mpf(p), order) if order else formula(mp.mpf(p)) for p in points]
        for p, value, expected in zip(points, found, exact):
            assert abs(value - expected) <= rtol * abs(expected) + mp.mpf(10) ** -300, (
                order,
                p,
                value,
                expected,
            )
        derivative = (lambda f: lambda x: ft.grad(lambda y: f(y).sum())(x))(derivative)


@pytest.mark.parametrize("name", QUICK)
def test_derivatives(name):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in ENTRIES if n not in QUICK])
def test_derivatives_of_more(name):
    check(name)


#: Zeros, poles, thresholds, what overflows.
SPECIAL = np.array([
    0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1e-300, -1e-300, 1e-10, 1e10, -1e10, 1e300, -1e300, np.inf,
    -np.inf, np.nan, 3.7, -3.7, 30.0, -30.0, 170.0, 172.0, -171.5, 700.0, -700.0,
])  # fmt: skip
#: At zeros and poles, and for large powers.
RIGHT_SINCE = {"gammasgn": "scipy>=1.15", "inv_boxcox": "scipy>=1.14"}
UFUNCS = [
    name
    for name in fsp.__all__
    # SciPy does not end for huge arguments of hypergeometric functions and yn; it is wrong in places of the others.
    if isinstance(getattr(sp, name, None), np.ufunc)
    and not name.startswith("hyp")
    and name not in ("inv_boxcox1p", "pseudo_huber", "kn", "yn")
    and has(RIGHT_SINCE.get(name, "scipy"))
]


def points_of(ufunc):
    x = SPECIAL if ufunc.nin < 3 else SPECIAL[[0, 2, 3, 4, 6, 10, 15, 17, 18, 19]]
    points = np.array(list(itertools.product(x, repeat=ufunc.nin))).T
    return list(points.astype(complex) if ufunc.types[0].startswith("D") else points)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("how", ["eager", pytest.param("jit", marks=pytest.mark.slow)])
def test_values_at_special_points(how):
    for name in UFUNCS:
        points = points_of(getattr(sp, name))
        function = getattr(fsp, name)
        with np.errstate(all="ignore"):
            expected = getattr(sp, name)(*points)
            found = (ft.jit(function) if how == "jit" else function)(*points)
        pairs = zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]
        for value, reference in pairs:
            np.testing.assert_allclose(value, reference, rtol=3e-13, err_msg=name)
